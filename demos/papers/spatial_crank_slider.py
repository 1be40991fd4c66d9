"""A slider-crank with a slender rod of 17 m: rigid, in absolute coordinates, in a floating frame.

The mechanism of Wang et al. (2022) with its nine ANCF cable elements: what its table says, what
follows from it, and what of it can be compared; generalized-α and implicit Euler; three moduli; and
a skew variant whose motion does not stay in a plane. Files go to `results/spatial_crank_slider`.
Runs on one rank and under `mpirun -n 2`.
"""

# # A spatial slider-crank with a cable for a rod
#
# X. Wang et al., *Rigid-flexible coupling dynamics modeling of spatial crank-slider mechanism based
# on absolute node coordinate formulation*, Mathematics 10 (2022) 881, give a crank of 2 m that
# turns clockwise at π/10 rad/s, a rod of 17 m and 30 mm diameter between two spherical joints, and
# a slider that is pushed along x with −10 N, for one turn of 20 s.
#
# The rod is a line $r(s)$, cubic between nodes at which position and slope are unknown: twelve
# coordinates per element. Its mass matrix is constant. All nonlinear terms follow from the energy
#
# $$\tfrac12\int EA\,\varepsilon^2 + EI\,\kappa^2\,ds,\qquad \varepsilon = \tfrac12(r'\cdot r'-1),
# \quad \kappa^2 = \frac{|r'|^2|r''|^2-(r'\cdot r'')^2}{|r'|^6},$$
#
# which is written once and differentiated. (The paper prints an element of 24 coordinates, with the
# slopes across the rod as well; its energy does not depend on the other twelve.)

# +
from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from dolfinx.mesh import create_interval
from mpi4py import MPI
from scipy.integrate import cumulative_trapezoid

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.dynamics import ImplicitEuler, consistent_state
from dolfinx_mbd.mechanism import Driver, Joint, constant_speed, force
from dolfinx_mbd.mechanism.mechanisms import ALONG_X
from dolfinx_mbd.tutorials import check, report

results = tutorials.results_folder("spatial_crank_slider")
crank_length, length, diameter = 2.0, 17.0, 0.030
crank_mass, rod_mass, slider_mass = 1.0, 0.5, 1.0
speed, thrust, printed = -np.pi / 10, -10.0, 5e9
section = mbd.forms.Section.circle(diameter / 2)
density = rod_mass / (section.area * length)
inertia = rod_mass * length**2 / 12
euler_load = np.pi**2 * section.Iyy / length**2  # at which the rod buckles, over E
weight = (slider_mass + rod_mass / 2) * 9.81
report(
    f"""Table 1                          printed  what follows from the rest of it
inertia of the rod (kg m²)       0.1      {inertia:.2f} = m l²/12
density of the rod (kg/m³)       none     {density:.1f} from 0.5 kg; a plastic has 1000
load on the slider (N)           {thrust:g}      it buckles at {euler_load * printed:.2f} (Euler)
force on its pin along x (N)     0        the load is along x: about 10
flexible less rigid along y (N)  12       {weight:.2f}: weight of slider and half the rod
smaller and larger moduli        none     it buckles below {-thrust / euler_load:.3g} N/m²"""
)
# -

# Therefore the paper has no number of the flexible rod to compare with. It has numbers of the rigid
# rod. The crank turns about z and the slider moves along x through its pivot, so that the printed
# data describe a planar motion.
#
# ## The mechanism
#
# One function creates the mechanism with any rod. `tilt` turns the axis of the crank about y, and
# the line of the slider may pass beside the pivot. Two spherical joints leave the spin of the rod
# free. The cable has no such spin; in the floating frame the spin would be a motion with almost no
# inertia, so that the slider pin is a universal joint there.

# +
Line = tuple[float, float]  # y and z of the slider


def pin(t: Any, tilt: float = 0.0) -> np.ndarray:
    """Return the crank pin at time t, (..., 3), m."""
    angle = speed * np.asarray(t, dtype=float)
    c, s = crank_length * np.cos(angle), crank_length * np.sin(angle)
    return np.stack([c * np.cos(tilt), s, -c * np.sin(tilt)], axis=-1)


def slider_place(t: Any, tilt: float = 0.0, line: Line = (0.0, 0.0)) -> np.ndarray:
    """Return x of the slider with a rigid rod, m."""
    p = pin(t, tilt)
    across = (p[..., 1] - line[0]) ** 2 + (p[..., 2] - line[1]) ** 2
    return np.asarray(p[..., 0] + np.sqrt(length**2 - across))


def rod_body(kind: str, young: float, start: np.ndarray, end: np.ndarray, inertia: float) -> Any:
    """Return the rod between two points: rigid, cable or floating."""
    x = (end - start) / np.linalg.norm(end - start)
    y = np.cross([0.0, 0.0, 1.0], x) / np.linalg.norm(np.cross([0.0, 0.0, 1.0], x))
    turn = np.column_stack([x, y, np.cross(x, y)])
    material = mbd.Material(young, 0.3, density)
    if kind == "rigid":
        frames = {"start": mbd.Frame(), "end": mbd.Frame((length, 0.0, 0.0))}
        moments = (rod_mass * diameter**2 / 8, inertia, inertia)
        centre = (length / 2, 0.0, 0.0)
        return mbd.RigidBody("rod", rod_mass, moments, centre, frames, start, rotation=turn)
    if kind == "cable":
        cable = mbd.forms.Cable.from_section(section, material)
        return mbd.CableBody("rod", cable, start, end, elements=9)
    model = mbd.BeamModel(create_interval(MPI.COMM_WORLD, 18, [0.0, length]), section, material)
    last = mbd.InterfaceSpec(point=(length, 0.0, 0.0), axes=(1.0, 0.0, 0.0))
    body = mbd.reduce_beam(
        model,
        interfaces={"start": 0.0, "end": last},
        num_modes=6,
        points={"middle": length / 2},
    ).body
    origin = start - turn @ body.interface("start").point
    return mbd.FlexibleBody("rod", body, origin, turn, damping_ratio=0.0)


def mechanism(
    kind: str,
    young: float = printed,
    *,
    load: float = thrust,
    inertia: float = inertia,
    tilt: float = 0.0,
    line: Line = (0.0, 0.0),
) -> mbd.System:
    """Return ground, crank, rod and slider at crank angle 0."""
    c, s = np.cos(tilt), np.sin(tilt)
    tilted = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    place = np.array([float(slider_place(0.0, tilt, line)), *line])
    guide = mbd.Frame((0.0, *line), ALONG_X)
    ground = mbd.Ground(frames={"pivot": mbd.Frame(axes=tilted), "guide": guide})
    pins = {"pivot": mbd.Frame(), "pin": mbd.Frame((crank_length, 0.0, 0.0))}
    centre, moments = (crank_length / 2, 0.0, 0.0), (0.005, 0.1, 0.1)
    crank = mbd.RigidBody("crank", crank_mass, moments, centre, pins, rotation=tilted)
    rod = rod_body(kind, young, pin(0.0, tilt), place, inertia)
    frames = {"pin": mbd.Frame(), "guide": mbd.Frame(axes=ALONG_X)}
    slider = mbd.RigidBody("slider", slider_mass, (0.05, 0.05, 0.05), frames=frames, position=place)
    last = ("universal", "guide") if kind == "floating" else ("spherical", "pin")
    joints = [
        Joint("pivot", "revolute", ground.frame("pivot"), crank.frame("pivot")),
        Joint("crank pin", "spherical", crank.frame("pin"), rod.frame("start")),
        Joint("slider pin", last[0], slider.frame(last[1]), rod.frame("end")),  # type: ignore[arg-type]
        Joint("guide", "prismatic", ground.frame("guide"), slider.frame("guide")),
    ]
    drive = Driver("drive", "pivot", constant_speed(speed))
    loads = [force("push", slider.frame("pin"), (load, 0.0, 0.0))]
    return mbd.System([ground, crank, rod, slider], joints, drivers=[drive], loads=loads)


turn, dt = 2 * np.pi / abs(speed), 0.02


def alpha_run(system: mbd.System, t_end: float = turn) -> mbd.results.Solution:
    """Return the run by generalized-α with ρ∞ = 0.8."""
    return mbd.simulate(system, t_end=t_end, dt=dt)


def euler_run(system: mbd.System, dt: float = dt) -> mbd.results.Solution:
    """Return the run by implicit Euler."""
    stepper = ImplicitEuler(system)
    states = [stepper.begin(consistent_state(system), dt)]
    for _ in range(round(turn / dt)):
        states.append(stepper.step(states[-1], dt))
    return mbd.results.Solution(system, states, iterations=stepper.iterations)


def rod_points(run: mbd.results.Solution) -> tuple[np.ndarray, ...]:
    """Return start, middle and end of the rod, (nt, 3) each, m."""
    rod: Any = run.system.body("rod")
    if isinstance(rod, mbd.CableBody):
        return tuple(np.moveaxis(rod.motion(run, [0.0, length / 2, length]).position, 1, 0))
    return tuple(run.sensor("rod", p) for p in ("start", "middle", "end"))


def bow(run: mbd.results.Solution) -> np.ndarray:
    """Return the middle of the rod from the chord between its ends, (nt, 3), m."""
    start, middle, end = rod_points(run)
    return np.asarray(middle - 0.5 * (start + end))


def slider(run: mbd.results.Solution) -> np.ndarray:
    """Return x, v and a of the slider, (3, nt)."""
    s = run.body("slider")
    return np.stack([s.position[:, 0], s.velocity[:, 0], s.acceleration[:, 0]])


# -

# ## The runs
#
# With the printed modulus the load is 1.5 times Euler's critical load. The rod stays straight for
# some seconds; then it buckles, and the slider soon deviates by metres. (The time depends on what
# starts it: here the transverse inertia of a perfect rod.) For larger moduli the trend agrees with
# the paper: a softer rod deviates more from the rigid one. The chord of a rod with the deflection
# $w$ is shorter by the compression $Fl/EA$ and by $\pi^2w^2/4l$, because the deflection is a half
# wave.

# +
moduli = (1e10, 2e10, 5e10)
rigid = alpha_run(mechanism("rigid"))
table = alpha_run(mechanism("rigid", inertia=0.1))
cables = {E: alpha_run(mechanism("cable", E)) for E in moduli}
soft, stiff = cables[moduli[0]], bow(cables[moduli[-1]])
floating = alpha_run(mechanism("floating", moduli[-1]))
buckling = alpha_run(mechanism("cable", printed), t_end=6.0)
pulled = alpha_run(mechanism("cable", printed, load=-thrust))
euler = {kind: euler_run(mechanism(kind, moduli[0])) for kind in ("rigid", "cable")}
half = euler_run(mechanism("cable", moduli[0]), dt=dt / 2)

t, closed = rigid.time, slider_place(rigid.time)
x, v, a = slider(rigid)
drive = rigid.joint("drive").moment[:, 2]
work = cumulative_trapezoid(drive * speed + thrust * v, t, initial=0.0)
energy = rigid.energies().total
balance = np.abs(energy - energy[0] - work).max() / energy.max()
pin_force = [np.linalg.norm(r.joint("slider pin").force, axis=1).max() for r in (rigid, table)]
report(
    f"""
rigid rod: x {x.min():.4f} to {x.max():.4f} m, speed up to {np.abs(v).max():.4f} m/s, acceleration
{a.min():.4f} to {a.max():.4f} m/s², drive up to {np.abs(drive).max():.3f} N m; force on the slider
pin up to {pin_force[0]:.4f} N, with the printed inertia of the rod {pin_force[1]:.4f} N"""
)

bowed = np.linalg.norm(bow(buckling), axis=1)
first = float(buckling.time[np.argmax(bowed > 0.5)])
off_course = np.abs(slider(buckling)[0] - slider_place(buckling.time))[-1]
stays, moved = np.linalg.norm(bow(pulled), axis=1).max(), np.abs(slider(pulled)[0] - closed).max()
report(
    f"""
E = {printed:g} N/m², −10 N: the bow is 0.5 m at {first:.2f} s and {bowed[-1]:.2f} m at 6 s, where
the slider is {off_course:.2f} m off. With +10 N the bow is at most {1e3 * stays:.2f} mm

After 5 s: bow; slider off the rigid one in x, by the formula, in v and in a
E (N/m²)   bow (mm)    x (mm)  formula  v (mm/s)  a (mm/s²)"""
)
late, offs, formula = t > 5.0, {}, {}
for E, run in cables.items():
    offs[E] = np.abs(slider(run) - slider(rigid))[:, late].max(axis=1)
    w = np.linalg.norm(bow(run), axis=1)[late].max()
    formula[E] = -thrust * length / (E * section.area) + (np.pi * w) ** 2 / (4 * length)
    values = 1e3 * np.array([w, offs[E][0], formula[E], *offs[E][1:]])
    report(f"{E:<8.3g}" + "".join(f"{value:10.4f}" for value in values))
bow_error = [
    np.abs(bow(euler["cable"]) - bow(soft)).max(),
    np.abs(bow(half)[::2] - bow(soft)).max(),
]
euler_error = np.abs(slider(euler["rigid"])[0] - x).max()
agreement = np.abs(bow(floating) - stiff).max() / np.abs(stiff).max()
# -

# ## A motion that is not planar
#
# The crank's axis is tilted by 30° about y, and the slider's line passes 1 m beside and 3 m above
# the pivot, so that the rod sweeps a cone. The stiffest rod also runs in a floating frame.

# +
skew: dict[str, Any] = {"tilt": np.deg2rad(30.0), "line": (1.0, 3.0)}
skew_rigid, skew_cable = (
    alpha_run(mechanism(kind, moduli[0], **skew)) for kind in ("rigid", "cable")
)
pair = [bow(alpha_run(mechanism(kind, moduli[-1], **skew))) for kind in ("cable", "floating")]
apart = np.abs(pair[1] - pair[0]).max() / np.abs(pair[0]).max()
skew_closed = slider_place(t, **skew)
start, _, end = rod_points(skew_cable)
direction = (end - start) / np.linalg.norm(end - start, axis=1, keepdims=True)
spread = np.linalg.svd(direction - direction.mean(axis=0))[1] / np.sqrt(len(t))
bow_spread = np.linalg.svd(bow(skew_cable))[1] / np.sqrt(len(t))
report(f"\nskew: rms of the bow along its three axes (mm): {(1e3 * bow_spread).round(2)}")
# -

# ## Figures

# +
plot = tutorials.plot_histories
time = "time (s)", t
rows: dict[str, dict[str, np.ndarray]] = {
    f"{name} of the slider": {
        "rigid": slider(rigid)[k],
        "cable, generalized-α": slider(soft)[k],
        "cable, implicit Euler": slider(euler["cable"])[k],
    }
    for k, name in enumerate(("x (m)", "v (m/s)", "a (m/s²)"))
}
plot(results / "motion.png", time, rows, title="Slider")
joints = {
    "drive (N m)": lambda run: run.joint("drive").moment[:, 2],
    "bearing of the crank (N)": lambda run: np.linalg.norm(run.joint("pivot").force, axis=1),
    "slider pin, x (N)": lambda run: -run.joint("slider pin").force[:, 0],
    "slider pin, y (N)": lambda run: -run.joint("slider pin").force[:, 1],
}
all_runs = {f"E = {E:g} N/m²": run for E, run in cables.items()} | {"rigid": rigid}
rows = {label: {n: value(run) for n, run in all_runs.items()} for label, value in joints.items()}
plot(results / "reactions.png", time, rows, title="Reactions")
rows = {
    f"{name}, less rigid": {
        f"E = {E:g} N/m²": slider(r)[k] - slider(rigid)[k] for E, r in cables.items()
    }
    for k, name in enumerate(("x (m)", "v (m/s)", "a (m/s²)"))
}
plot(results / "moduli.png", time, rows, title="Slider with cables of three moduli")
with tutorials.figure(results / "bow.png") as axes:
    named = {f"E = {E:g} N/m², −10 N": run for E, run in (*cables.items(), (printed, buckling))}
    for name, run in (*named.items(), (f"E = {printed:g} N/m², +10 N", pulled)):
        axes.semilogy(run.time, 1e-9 + np.linalg.norm(bow(run), axis=1), label=name)
    axes.set(xlabel="time (s)", ylabel="bow (m)", ylim=(1e-5, 20.0))
    axes.legend()
rows = {
    "x of the slider (m)": {"cable": slider(skew_cable)[0], "rigid, closed form": skew_closed},
    "bow (mm)": {name: 1e3 * bow(skew_cable)[:, k] for k, name in enumerate("xyz")},
}
plot(results / "skew.png", time, rows, title="Skew variant")
tutorials.save_report(results / "report.txt")
# -

# ## Checks
#
# The results with the rigid rod agree with the closed form, which the figures of the paper also
# show. For the cable, the checks are the buckling load, the dependence on the modulus, and the
# agreement of two descriptions and of two methods.

# +
check("rigid: x and closed form", np.abs(x - closed).max(), 0.0, 1e-9, "m")
check("rigid: least x", x.min(), 15 - 1e-9, 15 + 1e-9, "m")
check("rigid: greatest x", x.max(), 19 - 1e-9, 19 + 1e-9, "m")
check("rigid: greatest speed", np.abs(v).max(), 0.63260, 0.63275, "m/s")
check("rigid: least acceleration", a.min(), -0.22075, -0.22050, "m/s²")
check("rigid: greatest acceleration", a.max(), 0.17410, 0.17425, "m/s²")
check("rigid: work and energy, relative", balance, 0.0, 1e-3)
check("as printed: time when bowed by 0.5 m", first, 3.0, 5.5, "s")
check("pulled instead: slider off its place", moved, 0.0, 1e-4, "m")
for E in moduli:
    check(f"{E:g}: x off the rigid one, over the formula", offs[E][0] / formula[E], 0.95, 1.05)
for softer, stiffer in pairwise(moduli):
    for name, ratio in zip("xva", offs[softer] / offs[stiffer], strict=True):
        check(f"{softer:g} over {stiffer:g}, deviation in {name}", ratio, 1.0, 100.0)
check("floating frame and cable, relative to the bow", agreement, 0.0, 5e-3)
check("implicit Euler, rigid: x off", euler_error, 0.0, 1e-9, "m")
check("implicit Euler, cable: error over that of half the step", np.divide(*bow_error), 1.7, 2.3)
error = np.abs(slider(skew_rigid)[0] - skew_closed).max()
check("skew: rigid x and closed form", error, 0, 1e-9, "m")
error = np.abs(slider(skew_cable)[0] - skew_closed).max()
check("skew: cable and closed form of the rigid rod", error, 1e-6, 1e-2, "m")
check("skew: floating frame and cable, relative to the bow", apart, 0.0, 2e-3)
check("skew: the simulated rod leaves every plane, least spread", spread[2], 1e-3, 0.1)
check("skew: the bow leaves every plane, ratio", bow_spread[1] / bow_spread[0], 0.02, 1.0)
# -
