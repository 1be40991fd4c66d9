"""A slider-crank with a slender rod of 17 m: rigid, in absolute coordinates, in a floating frame.

The mechanism of Wang et al. (2022) with its nine ANCF cable elements: what its table says, what
follows from it, and what of it can be compared; generalized-α and implicit Euler; three moduli; and
a skew variant whose motion does not stay in a plane. A table and four pictures go to
`results/spatial_crank_slider`. Runs serial and under `mpirun -n 2`.
"""

# # A spatial slider-crank with a cable for a rod
#
# X. Wang et al., *Rigid-flexible coupling dynamics modeling of spatial crank-slider mechanism based
# on absolute node coordinate formulation*, Mathematics 10 (2022) 881, give a crank of 2 m that
# turns clockwise at π/10 rad/s, a rod of 17 m and 30 mm diameter between two spherical joints, and
# a slider that is pushed along x with −10 N; one turn of 20 s.
#
# The rod is a line $r(s)$ with position and slope at its nodes, cubic between them, twelve
# coordinates an element: its mass matrix is constant, and all that is difficult is in the energy
#
# $$\tfrac12\int EA\,\varepsilon^2 + EI\,\kappa^2\,ds,\qquad \varepsilon = \tfrac12(r'\cdot r'-1),
# \quad \kappa^2 = \frac{|r'|^2|r''|^2-(r'\cdot r'')^2}{|r'|^6}$$
#
# which is written once, and differentiated. (The paper prints an element of 24 coordinates, with
# the slopes across the rod as well; its energy does not see the other twelve.)

# +
from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from dolfinx.mesh import create_interval
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.beams import BeamModel, reduce_beam
from dolfinx_mbd.cables.cable_body import CableBody
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.forms.cables import Cable
from dolfinx_mbd.multibody import (
    Driver,
    FlexibleBody,
    Frame,
    Ground,
    RigidBody,
    Solution,
    System,
    constant_speed,
    simulate,
)
from dolfinx_mbd.multibody.model.joints import Joint
from dolfinx_mbd.multibody.model.loads import force
from dolfinx_mbd.multibody.start.consistent_state import consistent_state
from dolfinx_mbd.multibody.stepping.implicit_euler import ImplicitEuler

comm = MPI.COMM_WORLD
root = comm.rank == 0
results = Path("results/spatial_crank_slider")
results.mkdir(parents=True, exist_ok=True)
lines: list[str] = []


def report(text: str = "") -> None:
    """Print once, not once a rank, and keep for the file."""
    lines.append(text)
    if root:
        print(text, flush=True)


# -

# ## What the table says, and what follows from it

# +
crank_length, length, diameter = 2.0, 17.0, 0.030
crank_mass, rod_mass, slider_mass = 1.0, 0.5, 1.0
speed, push, printed = -np.pi / 10, -10.0, 5e9
section = Section.circle(diameter / 2)
density = rod_mass / (section.area * length)
inertia = rod_mass * length**2 / 12
EULER = np.pi**2 * section.Iyy / length**2  # load at which the rod buckles, over E
weight = (slider_mass + rod_mass / 2) * 9.81

rows = [
    ("Table 1", "printed", "what follows from the rest of it"),
    ("inertia of the rod (kg m²)", "0.1", f"{inertia:.2f} = m l²/12, {inertia / 0.1:.0f} times"),
    ("density of the rod (kg/m³)", "none", f"{density:.1f} from 0.5 kg; a plastic has 1000"),
    ("load on the slider (N)", f"{push:g}", f"Euler's load is {EULER * printed:.2f}: it buckles"),
    ("force on its pin along x (N)", "0", "the load is along x: about 10"),
    ("flexible less rigid along y (N)", "12", f"{weight:.2f}: weight of slider and half the rod,"),
    ("", "", "as if the guide carried in one model only"),
    ("smaller and larger moduli", "none", f"it buckles below {-push / EULER:.3g} N/m²"),
]
report("\n" + "\n".join(f"{a:<32} {b:<8} {c}" for a, b, c in rows))
# -

# So there is no number of the flexible rod to compare with. The rigid ones there are. Crank about z
# and slider along x through its pivot: what is printed as spatial is a planar motion.
#
# ## The mechanism
#
# One function for all rods. `tilt` turns the crank's axis about y, and the slider's line may pass
# beside the pivot. Two spherical joints leave the rod's spin idle; in the cable it does not exist.
# In the floating frame it is a motion of next to no inertia, which any moment sets going: there the
# slider pin is a universal joint.

# +
ALONG_X = np.column_stack([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])  # a frame whose z is x


def pin(t: Any, tilt: float = 0.0) -> np.ndarray:
    """The crank pin at time t, (..., 3), m."""
    angle = speed * np.asarray(t, dtype=float)
    c, s = crank_length * np.cos(angle), crank_length * np.sin(angle)
    return np.stack([c * np.cos(tilt), s, -c * np.sin(tilt)], axis=-1)


def slider_place(t: Any, tilt: float, line: tuple[float, float]) -> np.ndarray:
    """x of the slider on the line y, z with a rod that is rigid, m."""
    p = pin(t, tilt)
    across = (p[..., 1] - line[0]) ** 2 + (p[..., 2] - line[1]) ** 2
    return np.asarray(p[..., 0] + np.sqrt(length**2 - across))


def triad(direction: np.ndarray) -> np.ndarray:
    """A rotation whose x is a direction."""
    x = direction / np.linalg.norm(direction)
    y = np.cross([0.0, 0.0, 1.0], x)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def rod_body(kind: str, young: float, start: np.ndarray, end: np.ndarray, inertia: float) -> Any:
    """The rod between two points: ``rigid``, ``cable`` or ``floating``."""
    turn = triad(end - start)
    material = mbd.Material(young, 0.3, density)
    if kind == "rigid":
        axial = rod_mass * diameter**2 / 8
        frames = {"start": Frame(), "end": Frame((length, 0.0, 0.0))}
        centre = (length / 2, 0.0, 0.0)
        return RigidBody(
            "rod", rod_mass, (axial, inertia, inertia), centre, frames, start, rotation=turn
        )
    if kind == "cable":
        return CableBody("rod", Cable.from_section(section, material), start, end, elements=9)
    mesh = create_interval(comm, 18, [0.0, length])
    body = reduce_beam(
        BeamModel(mesh, section, material),
        interfaces={
            "start": 0.0,
            "end": mbd.InterfaceSpec(point=(length, 0.0, 0.0), axes=(1.0, 0.0, 0.0)),
        },
        num_modes=6,
        points={"middle": length / 2},
        options=mbd.ReductionOptions(skin=False),
    ).body
    origin = start - turn @ body.interface("start").point
    return FlexibleBody("rod", body, origin, turn, damping_ratio=0.0)


def mechanism(
    kind: str,
    young: float = printed,
    *,
    load: float = push,
    inertia: float = inertia,
    tilt: float = 0.0,
    line: tuple[float, float] = (0.0, 0.0),
) -> System:
    """Ground, crank, rod and slider at crank angle 0."""
    tilted = np.array(
        [[np.cos(tilt), 0, np.sin(tilt)], [0, 1, 0], [-np.sin(tilt), 0, np.cos(tilt)]]
    )
    place = np.array([float(slider_place(0.0, tilt, line)), *line])
    ground = Ground(frames={"pivot": Frame(axes=tilted), "guide": Frame((0.0, *line), ALONG_X)})
    crank = RigidBody(
        "crank",
        crank_mass,
        (0.005, 0.1, 0.1),
        (crank_length / 2, 0.0, 0.0),
        {"pivot": Frame(), "pin": Frame((crank_length, 0.0, 0.0))},
        rotation=tilted,
    )
    rod = rod_body(kind, young, pin(0.0, tilt), place, inertia)
    slider = RigidBody(
        "slider",
        slider_mass,
        (0.05, 0.05, 0.05),
        frames={"pin": Frame(), "guide": Frame(axes=ALONG_X)},
        position=place,
    )
    joints = [
        Joint("pivot", "revolute", ground.frame("pivot"), crank.frame("pivot")),
        Joint("crank pin", "spherical", crank.frame("pin"), rod.frame("start")),
        Joint(
            "slider pin",
            "universal" if kind == "floating" else "spherical",
            slider.frame("guide" if kind == "floating" else "pin"),
            rod.frame("end"),
        ),
        Joint("guide", "prismatic", ground.frame("guide"), slider.frame("guide")),
    ]
    system = System(
        [ground, crank, rod, slider],
        joints,
        drivers=[Driver("drive", "pivot", constant_speed(speed))],
        loads=[force("push", slider.frame("pin"), (load, 0.0, 0.0))],
    )
    return system


turn, dt = 2 * np.pi / abs(speed), 0.02


def alpha_run(system: System, t_end: float = turn, dt: float = dt) -> Solution:
    """By generalized-α, ρ∞ = 0.8."""
    return simulate(system, t_end=t_end, dt=dt)


def euler_run(system: System, t_end: float = turn, dt: float = dt) -> Solution:
    """By implicit Euler."""
    stepper = ImplicitEuler(system)
    states = [stepper.begin(consistent_state(system), dt)]
    for _ in range(round(t_end / dt)):
        states.append(stepper.step(states[-1], dt))
    return Solution.from_states(system, states, stepper, complete=True)


def bow(run: Solution) -> np.ndarray:
    """The middle of the rod from the chord between its ends, (nt, 3), m."""
    rod: Any = run.system.body("rod")
    if isinstance(rod, CableBody):
        start, middle, end = np.moveaxis(rod.motion(run, [0.0, length / 2, length]).position, 1, 0)
    else:
        start, middle, end = (run.sensor("rod", p) for p in ("start", "middle", "end"))
    return np.asarray(middle - 0.5 * (start + end))


def slider(run: Solution) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, v and a of the slider, (nt,) each."""
    s = run.body("slider")
    return s.position[:, 0], s.velocity[:, 0], s.acceleration[:, 0]


# -

# ## The runs

# +
moduli = (1e10, 2e10, 5e10)
rigid = alpha_run(mechanism("rigid"))
table = alpha_run(mechanism("rigid", inertia=0.1))
cables = {E: alpha_run(mechanism("cable", E)) for E in moduli}
euler = {"rigid": euler_run(mechanism("rigid")), "cable": euler_run(mechanism("cable", moduli[0]))}
half = euler_run(mechanism("cable", moduli[0]), dt=dt / 2)
floating = alpha_run(mechanism("floating", moduli[-1]))
buckling = alpha_run(mechanism("cable", printed), t_end=6.0)
pulled = alpha_run(mechanism("cable", printed, load=-push))
x, v, a = slider(rigid)

# -

# ### Rigid
#
# The drive does the work, the load takes or gives its share, and what is left is kinetic energy.

# +
closed = slider_place(rigid.time, 0.0, (0.0, 0.0))
drive = rigid.joint("drive").moment[:, 2]
power = drive * speed + push * v
work = np.concatenate([[0.0], np.cumsum(0.5 * dt * (power[1:] + power[:-1]))])
energy = rigid.energies().total
balance = np.abs(energy - energy[0] - work).max() / energy.max()
report(
    f"""
rigid rod: x from {x.min():.4f} to {x.max():.4f} m, speed up to {np.abs(v).max():.4f} m/s,
acceleration from {a.min():.4f} to {a.max():.4f} m/s², drive up to {np.abs(drive).max():.3f} N m"""
)
slider_force = {
    name: np.linalg.norm(run.joint("slider pin").force, axis=1).max()
    for name, run in (("m l²/12", rigid), ("the table", table))
}
report(
    "greatest force on the slider pin, N, with the rod's inertia of "
    + ", ".join(f"{name}: {value:.4f}" for name, value in slider_force.items())
)
# -

# ### As printed
#
# The load is half as large again as Euler's. Nothing happens for some seconds; then the rod gives
# way, and the slider is soon metres from its place. (The time depends on what starts it: here the
# transverse inertia of a perfect rod.)

# +
bowed = np.linalg.norm(bow(buckling), axis=1)
first = float(buckling.time[np.argmax(bowed > 0.5)])
off_course = np.abs(slider(buckling)[0] - slider_place(buckling.time, 0.0, (0.0, 0.0)))
stays, moved = np.linalg.norm(bow(pulled), axis=1).max(), np.abs(slider(pulled)[0] - closed).max()
report(
    f"""
E = {printed:g} N/m², −10 N: the bow is 0.5 m at {first:.2f} s and {bowed[-1]:.2f} m at 6 s,
where the slider is {off_course[-1]:.2f} m from its place. With +10 N, pulling, the bow is at most
{1e3 * stays:.2f} mm and the slider {1e6 * moved:.0f} µm off its place"""
)
# -

# ### Three moduli, two methods, two descriptions
#
# Above the limit the trend is the paper's: the softer, the farther from the rigid one. How much
# shorter a rod bowed by w gets is told by its stretch, F l/EA, and by what the half wave of the bow
# takes from the chord, π²w²/4l.

# +
report("\nAfter 5 s: bow, and how far the slider is off the rigid one in x (as told), v and a")
report("E (N/m²)   bow (mm)    x (mm)   (told)  v (mm/s)  a (mm/s²)")
late = rigid.time > 5.0
offs, told = {}, {}
for E, run in cables.items():
    apart = [np.abs(p - q)[late].max() for p, q in zip(slider(run), (x, v, a), strict=True)]
    offs[E] = np.array(apart)
    w = np.linalg.norm(bow(run), axis=1)[late].max()
    told[E] = -push * length / (E * section.area) + (np.pi * w) ** 2 / (4 * length)
    report(
        f"{E:<9.3g}  {1e3 * w:8.3f}  {1e3 * apart[0]:8.4f}  {1e3 * told[E]:7.4f}  "
        f"{1e3 * apart[1]:8.4f}  {1e3 * apart[2]:8.4f}"
    )
soft = cables[moduli[0]]
difference = {
    "rigid, x": np.abs(slider(euler["rigid"])[0] - x).max(),
    "rigid, v": np.abs(slider(euler["rigid"])[1] - v).max(),
    "cable, bow": np.abs(bow(euler["cable"]) - bow(soft)).max(),
    "cable, bow, half the step": np.abs(bow(half)[::2] - bow(soft)).max(),
}
report(
    "\nimplicit Euler less generalized-α (mm, mm/s): "
    + ", ".join(f"{name} {1e3 * value:.3g}" for name, value in difference.items())
)
stiff = bow(cables[moduli[-1]])
agreement = np.abs(bow(floating) - stiff).max() / np.abs(stiff).max()
report(
    f"floating frame less absolute coordinates at {moduli[-1]:g} N/m²: "
    f"{100 * agreement:.3f} % of the bow"
)
# -

# ## Truly spatial
#
# The crank's axis is tilted by 30° about y, and the slider's line passes 1 m beside and 3 m above
# the pivot. The rod now sweeps a cone. Rods that do not buckle, 10¹⁰ N/m²; the stiffest also in a
# floating frame, which it differs from by the vibration that its start sets going (above).

# +
skew = {"tilt": np.deg2rad(30.0), "line": (1.0, 3.0)}
skew_rigid = alpha_run(mechanism("rigid", **skew))
skew_cable = alpha_run(mechanism("cable", moduli[0], **skew))
stiff_cable, stiff_frame = (
    bow(alpha_run(mechanism(kind, moduli[-1], **skew))) for kind in ("cable", "floating")
)
apart = np.abs(stiff_frame - stiff_cable).max() / np.abs(stiff_cable).max()
skew_closed = slider_place(skew_rigid.time, *skew.values())
chord = np.array([[place, 1.0, 3.0] for place in skew_closed]) - pin(skew_rigid.time, skew["tilt"])
spread = np.linalg.svd(chord / length - (chord / length).mean(axis=0))[1] / np.sqrt(len(chord))
bow_spread = np.linalg.svd(bow(skew_cable))[1] / np.sqrt(len(chord))
report(
    f"""
skew: x from {skew_closed.min():.3f} to {skew_closed.max():.3f} m; bow up to """
    f"""{1e3 * np.linalg.norm(bow(skew_cable), axis=1).max():.2f} mm,
root mean squares of it along three axes {", ".join(f"{1e3 * s:.2f}" for s in bow_spread)} mm;
floating frame less absolute coordinates at {moduli[-1]:g} N/m²: {100 * apart:.2f} % of the bow"""
)
# -

# ## Pictures


# +
def plot() -> None:
    """The paper's figures, and the skew variant."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    t = rigid.time
    all_runs = {"rigid": rigid, **{f"E = {E:g} N/m²": run for E, run in cables.items()}}

    canvas, axes = plt.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    joints = {"rigid": pin(t), "cable": soft.system.body("rod").motion(soft, [0.0]).position[:, 0]}  # type: ignore[attr-defined]
    for name, place in joints.items():
        axes[0, 0].plot(t, place[:, 0], label=f"x, {name}")
        axes[0, 0].plot(t, place[:, 1], "--", label=f"y, {name}")
    axes[0, 0].set(title="crank pin", ylabel="m")
    for ax, k, name in (
        (axes[0, 1], 0, "x (m)"),
        (axes[1, 0], 1, "v (m/s)"),
        (axes[1, 1], 2, "a (m/s²)"),
    ):
        ax.plot(t, slider(rigid)[k], label="rigid")
        ax.plot(t, slider(soft)[k], "--", label="cable, generalized-α")
        ax.plot(t, slider(euler["cable"])[k], ":", label="cable, implicit Euler")
        ax.set(title="slider", ylabel=name)
    finish(plt, canvas, axes, "motion.png")

    canvas, axes = plt.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    for name, run in all_runs.items():
        for ax, values, label in (
            (axes[0, 0], run.joint("drive").moment[:, 2], "drive (N m)"),
            (axes[0, 1], np.linalg.norm(run.joint("pivot").force, axis=1), "crank's bearing (N)"),
            (axes[1, 0], -run.joint("slider pin").force[:, 0], "slider pin, along x (N)"),
            (axes[1, 1], -run.joint("slider pin").force[:, 1], "slider pin, along y (N)"),
        ):
            ax.plot(run.time, values, label=name, lw=4 if run is rigid else 1)
            ax.set(ylabel=label)
    finish(plt, canvas, axes, "reactions.png")

    canvas, axes = plt.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    for E, run in cables.items():
        for k, name in enumerate(("x (m)", "v (m/s)", "a (m/s²)")):
            axes.flat[k].plot(t, slider(run)[k] - slider(rigid)[k], label=f"E = {E:g} N/m²")
            axes.flat[k].set(ylabel=f"slider less the rigid one, {name}")
        axes[1, 1].semilogy(t, 1e-9 + np.linalg.norm(bow(run), axis=1), label=f"E = {E:g}, −10 N")
    axes[1, 1].semilogy(buckling.time, 1e-9 + bowed, label=f"E = {printed:g}, −10 N")
    axes[1, 1].semilogy(t, 1e-9 + np.linalg.norm(bow(pulled), axis=1), label="the same, +10 N")
    axes[1, 1].set(ylabel="bow (m)", ylim=(1e-5, 20.0))
    finish(plt, canvas, axes, "moduli.png")

    canvas, axes = plt.subplots(1, 2, figsize=(11, 4), constrained_layout=True)
    axes[0].plot(t, slider(skew_cable)[0], label="cable")
    axes[0].plot(t, skew_closed, ":", label="rigid, closed form")
    axes[0].set(title="skew variant", ylabel="x of the slider (m)")
    for k, name in enumerate("xyz"):
        axes[1].plot(t, 1e3 * bow(skew_cable)[:, k], label=name)
    axes[1].set(ylabel="bow (mm)")
    finish(plt, canvas, axes, "skew.png")


def finish(plt: Any, canvas: Any, axes: Any, name: str) -> None:
    """Labels and file."""
    for ax in axes.flat:
        ax.set(xlabel="time (s)")
        ax.grid(alpha=0.3)
        ax.legend(fontsize="small")
    canvas.savefig(results / name, dpi=100)
    plt.close(canvas)


if root:
    plot()
    (results / "report.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"\n{results}: report.txt, motion, reactions, moduli, skew.png are written")
# -

# ## Does it hold?
#
# The rigid numbers are those of the closed form, which the figures of the paper show too. Of the
# cable: where it must buckle, what must follow E, and that two descriptions and two methods agree.

# +
failed = False


def check(what: str, value: float, low: float, high: float) -> None:
    """Print a number with its bounds and remember if it is outside."""
    global failed
    ok = low <= value <= high
    failed |= not ok
    report(f"{'ok  ' if ok else 'FAIL'} {what:<58} {value:10.5g} in [{low:g}, {high:g}]")


report()
check("rigid: least x (m)", x.min(), 15 - 1e-9, 15 + 1e-9)
check("rigid: greatest x (m)", x.max(), 19 - 1e-9, 19 + 1e-9)
check("rigid: x off the closed form (m)", np.abs(x - closed).max(), 0.0, 1e-9)
check("rigid: greatest speed (m/s)", np.abs(v).max(), 0.63260, 0.63275)
check("rigid: least acceleration (m/s²)", a.min(), -0.22075, -0.22050)
check("rigid: greatest acceleration (m/s²)", a.max(), 0.17410, 0.17425)
check("rigid: work less energy, relative", balance, 0.0, 1e-3)
check("rod's inertia over the printed one", inertia / 0.1, 119.0, 122.0)
check("as printed: time when bowed by 0.5 m (s)", first, 3.0, 5.5)
check("pulled instead: slider off its place (m)", moved, 0.0, 1e-4)
for E in moduli:
    check(f"{E:g}: x off the rigid one over what is told", offs[E][0] / told[E], 0.95, 1.05)
for softer, stiffer in pairwise(moduli):
    for name, ratio in zip("xva", offs[softer] / offs[stiffer], strict=True):
        check(f"{softer:g} farther off than {stiffer:g} in {name}", ratio, 1.0, 100.0)
check("floating frame less cable, of the bow", agreement, 0.0, 5e-3)
check("implicit Euler, rigid: x off (m)", difference["rigid, x"], 0.0, 1e-9)
order = difference["cable, bow"] / difference["cable, bow, half the step"]
check("implicit Euler, cable: error over that of half the step", order, 1.7, 2.3)
check("skew: x off the closed form (m)", np.abs(slider(skew_rigid)[0] - skew_closed).max(), 0, 1e-9)
check("skew: cable off that (m)", np.abs(slider(skew_cable)[0] - skew_closed).max(), 1e-6, 1e-2)
check("skew: floating frame less cable, of the bow", apart, 0.0, 2e-3)
check("skew: rod sweeps a cone, third singular value", spread[2], 1e-4, 1.0)
check("skew: the bow leaves every plane", bow_spread[1] / bow_spread[0], 0.02, 1.0)
sys.exit(failed)
# -
