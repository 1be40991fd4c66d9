"""Stress and section forces in a bar that a hub spins up.

You recover stress and section forces from a reduced body with a few modes, and correct them with
the static response that the modes do not contain. Files go to `results/stress`. Runs on one rank
and under `mpirun -n 2`.
"""

# # Stress and section forces
#
# The motion of a mechanism needs few modes; the stress near a joint needs many, or a correction.
# The example is a bar with a closed form. A hub holds the bar at $x=0$ and spins it up from rest
# with a constant angular acceleration $\alpha$. With $\Omega = \alpha t$ and mass $\rho A$ per
# length, the normal force and the bending moment in the section at $x$ are
#
# $$N = \tfrac12\rho A\,\Omega^2\,(L^2 - x^2), \qquad
# M = \rho A\,\alpha\left(\tfrac13 L^3 - \tfrac12 L^2x + \tfrac16 x^3\right).$$
#
# The axial stress at the distance $y$ from the axis is $N/A + My/I$: the side that leads is in
# tension, because inertia bends the bar backwards.

# +
from __future__ import annotations

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.tutorials import check, check_close, report

results = tutorials.results_folder("stress")
length, height, width = 0.300, 0.020, 0.010
# -

# ## The bar
#
# One of the twelve modes is axial; it represents the stretch by the centrifugal force. With fewer
# modes the bar could not lengthen, and `simulate` would warn you. With `static_correction=True` the
# reduction keeps, besides its modes, the static response of the whole mesh to forces at the
# interfaces and to spin.

# +
mesh = tutorials.tagged_bar((length, height, width), (30, 2, 1), ("hub", "tip"))
options = mbd.ReductionOptions(static_correction=True)
reduction = mbd.reduce(
    mesh, mbd.STEEL, interfaces=["hub"], num_modes=12, name="bar", options=options
)
# -

# ## The run

# +
acceleration, t_end = 2000.0, 0.1  # rad/s², s


def spin_up(t: float) -> tuple[float, float, float]:
    """Return the angle, speed and acceleration of the hub."""
    return 0.5 * acceleration * t**2, acceleration * t, acceleration


ground = mbd.Ground({"hub": mbd.Frame()})
bar = mbd.FlexibleBody("bar", reduction.body)
pivot = mbd.revolute("pivot", ground.frame("hub"), bar.frame("hub"))
system = mbd.System([ground, bar], [pivot], drivers=[mbd.Driver("drive", "pivot", spin_up)])
run = mbd.simulate(system, t_end=t_end, dt=1e-4)
history = run.body("bar")
# -

# ## Section forces
#
# `section_forces` integrates the stress over a cut through the body, here at a third of the length.
# The few modes represent the response to the loads only approximately. Static correction adds the
# missing static response to the forces that act at each instant: the wrench at the hub and the
# spin. A reduction with `static_correction=True` applies it automatically, but not to elastic
# coordinates without forces.

# +
at = length / 3
cut = (at, 0.0, 0.0), (1.0, 0.0, 0.0)
plain_section = mbd.durability.section_forces(reduction, history.eta, *cut)
section = mbd.durability.section_forces(reduction, history, *cut)

rho, area = mbd.STEEL.density, height * width
speed = acceleration * run.time
normal = 0.5 * rho * area * speed**2 * (length**2 - at**2)
moment = rho * area * acceleration * (length**3 / 3 - length**2 * at / 2 + at**3 / 6)
leads = np.array([at, height / 2, 0.0])
recovery = mbd.durability.Recovery(reduction)
stress = recovery.at("stress", history, leads)[:, 0, 0, 0]
expected = normal / area + moment * (height / 2) / (width * height**3 / 12)
rows = {
    "normal force (N)": {
        "twelve modes": plain_section.normal,
        "corrected": section.normal,
        "rigid motion, closed form": normal,
    },
    "axial stress, leading side (MPa)": {
        "corrected": 1e-6 * stress,
        "rigid motion, closed form": 1e-6 * expected,
    },
}
tutorials.plot_histories(results / "stress.png", ("time (s)", run.time), rows)
# -

# ## Where is the stress greatest?
#
# An envelope contains the greatest value over time at each point, and the time at which it occurs.
# The table lists the most stressed places. The files open in ParaView.

# +
envelope = mbd.envelope(reduction, history)
table = mbd.most_stressed(reduction, history, 3, envelope=envelope)
report(table)
envelope.write(results / "envelope.bp")
recovery.write(results / "stress.bp", history, "von Mises", stride=50)
# -

# The greatest stress is at the hub, in the corner of the clamped section. The closed form of a beam
# does not hold there, and the computed value grows as the mesh is refined. Round the corner off, or
# use the stress at some distance from it.
#
# ## Checks
#
# The bending moment decreases a little during the run, because the centrifugal force straightens
# the bar; the closed form holds at the start.

# +
plain_error, error = (abs(s.normal[-1] / normal[-1] - 1) for s in (plain_section, section))
check("normal force at the end, twelve modes, relative error", plain_error, 1e-3, 1e-2)
check("normal force at the end, corrected, relative error", error, 0.0, 5e-4)
check_close("bending moment at the start", -section.bending[0, 1], moment, 5e-3, "N m")
check_close("axial stress at the start", 1e-6 * stress[0], 1e-6 * expected[0], 5e-3, "MPa")
check_close("axial stress at the end", 1e-6 * stress[-1], 1e-6 * expected[-1], 1e-2, "MPa")
straightened = section.bending[-1, 1] / section.bending[0, 1]
check("bending moment at the end over that at the start", straightened, 0.98, 0.999)
# -
