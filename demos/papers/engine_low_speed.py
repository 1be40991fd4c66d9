"""The engine paper's measurements: accelerations of a rod at 0.7, 1.0 and 1.3 Hz.

One cylinder without gas, as on the paper's test rig: accelerations of the rod and the piston, force
in the rod and stroke, beside the closed form and the ranges in the paper. Figures go to
`results/engine_low_speed`. Runs on one rank and under `mpirun -n 2`.
"""

# # The engine at low speed
#
# The engine paper (*Mathematics* 13 (2025) 2797, section 4) turns one piston of a sectioned engine
# without load at about 0.7, 1 and 1.3 Hz. Figures 30 to 33 of the paper show the signals of
# accelerometers on the rod, strain gauges and a displacement transducer. Here the flexible rod of
# `demos/engine.py` moves in a slider-crank. The engine stands upright: gravity acts along the
# cylinder.
#
# At this speed the deformation of the rod is too small to be measured. The flexible model must
# therefore give the closed form of the rigid slider-crank; the difference is the error of the
# program.

# +
from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism.mechanisms.kinematics import SliderCrank
from dolfinx_mbd.plotting import plot_spectrum
from dolfinx_mbd.tutorials import check, check_close, report

Array = NDArray[np.float64]
results = tutorials.results_folder("engine_low_speed")
# -

# ## The flexible mechanism
#
# The paper does not give the place of the accelerometer; here it is the middle of the rod.
# The integrator excites the elastic coordinates a little in its first steps; numerical damping
# removes this vibration within the first turn, which is not evaluated. The remaining time consists
# of whole turns, so that the spectra need no window.

# +
geometry = mbd.ConnectingRod(size=0.008)
rod = mbd.reduce(
    mbd.build_mesh(geometry, MPI.COMM_WORLD),
    mbd.ALUMINIUM_7075,
    interfaces=["big_end", "small_end"],
    num_modes=6,
    points={"middle": (geometry.length / 2, 0.0, 0.0)},
    name="rod",
).body
radius, piston_mass, length = 0.040, 0.214, mbd.mechanisms.rod_length(rod)
weight = -mbd.STANDARD_GRAVITY  # along the cylinder
STEPS, TURNS = 400, 8  # steps in a turn, recorded turns
frequencies = (0.7, 1.0, 1.3)


def flexible(frequency: float) -> tuple[Array, dict[str, Array]]:
    """Return the time and the record of the flexible mechanism, (nt,) each; m/s², N, m."""
    engine = mbd.mechanisms.slider_crank(
        rod,
        crank_radius=radius,
        crank_mass=0.952,
        piston_mass=piston_mass,
        speed=2 * np.pi * frequency,
        gravity=(weight, 0.0, 0.0),
    )
    dt = 1 / (STEPS * frequency)
    first = mbd.simulate(engine, t_end=1 / frequency, dt=dt)
    run = mbd.simulate(engine, t_end=(1 + TURNS) / frequency, dt=dt, start=first.final_state)
    middle = run.sensor("rod", "middle", "acceleration", axes="body")
    wrenches, piston = run.body("rod").wrenches, run.body("piston")
    return run.time - run.time[0], {
        "along": middle[:, 0],
        "across": middle[:, 1],
        "piston": piston.acceleration[:, 0],
        "tension at the piston pin": wrenches["small_end"][:, 0],
        "tension at the crank pin": -wrenches["big_end"][:, 0],
        "force of the guide": run.joint("guide").force[:, 0],
        "stroke": radius + length - piston.position[:, 0],
    }


# -

# ## The closed form
#
# The middle of a rigid rod has the mean acceleration of crank pin $A$ and piston pin $B$. Along the
# cylinder the piston exerts the force $-m_p(\ddot x-g_x)$ on the rod. Across, the force follows
# from the moments about the crank pin, with mass $m$, centre $C$ and moment of inertia $J$:
#
# $$J\,\ddot\beta + m\,[\vec{AC}\times(\mathbf a_C-\mathbf g)]_z = [\vec{AB}\times\mathbf R_B]_z.$$


# +
def closed_form(time: Array, frequency: float) -> dict[str, Array]:
    """Return the record of the rigid mechanism, (nt,) each."""
    speed = 2 * np.pi * frequency
    motion = SliderCrank(radius, length).motion(speed * time, speed)
    cos, sin = np.cos(motion.rod_angle), np.sin(motion.rod_angle)
    along, across = np.stack([cos, sin], axis=1), np.stack([-sin, cos], axis=1)
    pin = -radius * speed**2 * np.stack([np.cos(speed * time), np.sin(speed * time)], axis=1)
    slider = np.stack([motion.slider_acceleration, 0 * time], axis=1)
    c = rod.centre[0] - rod.interface("big_end").point[0]
    centre = rod.total_mass * (pin + (slider - pin) * c / length - [weight, 0.0])
    axial = -piston_mass * (motion.slider_acceleration - weight)
    moment = rod.central_inertia[2, 2] * motion.rod_acceleration
    moment += c * np.sum(across * centre, axis=1)
    lateral = (moment + length * sin * axial) / (length * cos)
    at_piston = np.stack([axial, lateral], axis=1)
    middle = tutorials.middle_acceleration(radius, length, speed, time)
    return {
        "along": middle[:, 0],
        "across": middle[:, 1],
        "piston": motion.slider_acceleration,
        "tension at the piston pin": np.sum(at_piston * along, axis=1),
        "tension at the crank pin": np.sum((at_piston - centre) * along, axis=1),
        "force of the guide": lateral,
        "stroke": radius + length - motion.slider,
    }


records = {f: flexible(f) for f in frequencies}
exact = {f: closed_form(time, f) for f, (time, _) in records.items()}
# -

# ## Comparison with the paper
#
# An accelerometer measures $\mathbf a-\mathbf g$, and a piezoelectric one without the mean. Because
# the rod swings by $\pm\arcsin(r/l) = \pm17°$, the direction of gravity relative to the rod
# changes.
#
# *Along the rod*, the paper's −2.5 … 1.8 m/s² lies between the ranges at 1.0 and 1.3 Hz. *Across*,
# the paper has up to 7.9 m/s². The motion itself causes smaller accelerations: the largest, at the
# crank pin, is 2.7 m/s² at 1.3 Hz. The difference is due to impacts, which the paper describes and
# which this model does not contain. They occur near the upper dead centre, where the piston changes
# from one side of the cylinder to the other through its clearance.
#
# The paper compares its measurements with its models over 0.04 s at 6000 rpm. There, accelerations
# are ten thousand times as large as at 1 Hz. Curves of the same size cannot show the same motion.


# +
def measured(time: Array, record: dict[str, Array], frequency: float) -> dict[str, Array]:
    """Return what an accelerometer on the rod shows along and across, (nt,) each."""
    angle = SliderCrank(radius, length).motion(2 * np.pi * frequency * time).rod_angle
    along = record["along"] - weight * np.cos(angle)
    across = record["across"] + weight * np.sin(angle)
    return {"along": along - along[:-1].mean(), "across": across - across[:-1].mean()}


paper = {"along": "−2.5 … 1.8 m/s²", "across": "up to 7.9 m/s²"}
report(f"{'range':<28}" + "".join(f"{f:>15} Hz" for f in frequencies) + "   paper, about 1 Hz")
shown = {f: measured(*records[f], f) for f in frequencies}
histories = {name: [records[f][1][name] for f in frequencies] for name in exact[1.0]}
histories |= {f"{name}, measured": [shown[f][name] for f in frequencies] for name in paper}
for name, columns in histories.items():
    cells = "".join(f"{f'{x.min():.3f} … {x.max():.3f}':>18}" for x in columns)
    report(f"{name:<28}{cells}   {paper.get(name, '')}")
time, record = records[1.0]
rows = {
    f"{name} (m/s²)": {
        "flexible rod": record[name],
        "rigid, closed form": exact[1.0][name],
        "as an accelerometer shows it": shown[1.0][name],
    }
    for name in paper
}
levels = {"along (m/s²)": (-2.5, 1.8), "across (m/s²)": (-7.9, 7.9)}
title = "Middle of the rod at 1 Hz, figures 32 and 33 (dashed: the paper's extremes)"
tutorials.plot_histories(
    results / "comparison.png", ("time (s)", time), rows, title=title, levels=levels, xlim=(0, 3)
)
with tutorials.figure(results / "time.png", 5, title="One rod without load (figure 30)") as axes:
    for ax, name in zip(
        axes, ("along", "across", "piston", "tension at the piston pin", "stroke"), strict=True
    ):
        for f, (t, values) in records.items():
            ax.plot(t, values[name], label=f"{f} Hz")
        ax.set(ylabel=name.removesuffix(" at the piston pin"), xlim=(0, 3))
    axes[0].legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1), frameon=False)
    axes[-1].set(xlabel="time (s), SI units")
spectra = {
    name: {
        f: mbd.spectrum(t[:-1], values[name][:-1], window="boxcar")
        for f, (t, values) in records.items()
    }
    for name in ("along", "across", "piston", "tension at the piston pin", "stroke")
}
if MPI.COMM_WORLD.rank == 0:
    for name, lines in spectra.items():
        named = {f"{f} Hz": line for f, line in lines.items()}
        unit = {"stroke": "m", "tension at the piston pin": "N"}.get(name, "m/s²")
        path = results / f"spectrum_{name.split()[0]}.png"
        plot_spectrum(named, path, unit=unit, up_to=10.0)
# -

# ## Checks
#
# The integrator's error in accelerations is of the order $(2\pi/400)^2 = 2.5\cdot10^{-4}$. The rod
# lengthens the stroke by some nanometres; bounds are springs as long as the shank and as long as
# the rod. The lengthening grows with the square of the speed. The acceleration of the piston has
# the harmonics $r\omega^2(\cos\varphi+(\lambda+\lambda^3/4+15\lambda^5/128)\cos2\varphi+\dots)$
# with $\lambda=r/l$.

# +
order = (2 * np.pi / STEPS) ** 2
E, ratio = mbd.ALUMINIUM_7075.young, radius / length
shank = length - 0.5 * (geometry.big_outer + geometry.small_outer)
stiffest = shank / (E * tutorials.shank_section(geometry, geometry.shank_big).area)
softest = length / (E * tutorials.shank_section(geometry, geometry.shank_small).area)
growth = {f: np.ptp(record["stroke"]) - 2 * radius for f, (_, record) in records.items()}
for f, (_, record) in records.items():
    for name, expected in exact[f].items():
        if name != "stroke":
            error = np.abs(record[name] - expected).max() / np.abs(expected).max()
            check(f"{f} Hz, {name}, relative error", error, 0.0, order)
    pulls = [exact[f][f"tension at the {pin} pin"] for pin in ("piston", "crank")]
    least, most = (1e9 * (pull[0] - pull[STEPS // 2]) for pull in pulls)
    check(f"{f} Hz, stroke minus 2 r", 1e9 * growth[f], least * stiffest, most * softest, "nm")
    size = radius * (2 * np.pi * f) ** 2
    second = size * (ratio + ratio**3 / 4 + 15 * ratio**5 / 128)
    for k, height in ((1, size), (2, second)):
        line = spectra["piston"][f].amplitudes[k * TURNS]
        check_close(f"{f} Hz, harmonic {k} of the piston", line, height, order, "m/s²")
lengthening = growth[1.3] / growth[0.7]
check_close("growth of the stroke from 0.7 to 1.3 Hz", lengthening, (1.3 / 0.7) ** 2, 1e-2)
shortest, fastest = (np.ptp(records[f][1]["along"]) for f in (1.0, 1.3))
check("range along the rod in the paper, between 1.0 and 1.3 Hz", 4.3, shortest, fastest, "m/s²")
# -
