"""Run-up of a machine on a plate: vibration, radiated sound power, and orders.

An unbalanced rotor runs up on a plate. You compute the sound power that the plate radiates, and
find the speeds and orders at which the plate is loud. Files go to `results/run_up`. Runs on one
rank and under `mpirun -n 2`.
"""

# # Noise of a run-up
#
# The forces of a machine repeat with its revolutions. A component with $k$ periods per revolution
# has the order $k$. When the frequency of an order meets a natural frequency of the housing, the
# housing becomes loud. The *equivalent radiated power* follows from the normal velocity of the
# surface,
#
# $$P = \rho c \int v_n^2\,\mathrm dS = \rho c\;\dot\eta^{\mathsf T} B\,\dot\eta,$$
#
# with the density $\rho$ and the speed of sound $c$ of the air, the normal velocity $v_n$, the
# elastic coordinates $\eta$ and a matrix $B$ of surface integrals of the modes, which is computed
# once. The radiation efficiency is assumed to be one. For most machines, the result is an upper
# estimate.

# +
from __future__ import annotations

from typing import Any

import numpy as np
from dolfinx.mesh import CellType, create_box, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.tutorials import check, report, results_folder, show

comm = MPI.COMM_WORLD
results = results_folder("run_up")
size, thickness = (0.40, 0.30), 0.004
# -

# ## The plate
#
# The steel plate has four feet, which are bolted to a rigid foundation. A bearing is on its upper
# side, away from the centre, with its axis along $y$.

# +
mesh = create_box(comm, [(0, 0, 0), (*size, thickness)], [16, 12, 1], CellType.hexahedron)


def on_feet(x: np.ndarray) -> np.ndarray:
    """Return whether points are on the lower side, near the corners."""
    near_ends = [np.minimum(x[k], size[k] - x[k]) < 0.026 for k in (0, 1)]
    return np.isclose(x[2], 0.0) & near_ends[0] & near_ends[1]


def on_bearing(x: np.ndarray) -> np.ndarray:
    """Return whether points are on the patch of the bearing."""
    return np.isclose(x[2], thickness) & (np.abs(x[:2] - 0.125) < 0.026).all(axis=0)


feet, bearing = (
    mbd.InterfaceSpec(locate_entities_boundary(mesh, 2, marker), axes=(0.0, 1.0, 0.0))
    for marker in (on_feet, on_bearing)
)
reduction = mbd.reduce(
    mesh, mbd.STEEL, interfaces={"feet": feet, "bearing": bearing}, num_modes=8, name="plate"
)
body = reduction.body.with_damping(mbd.ModalDamping(0.02))
report(f"plate: {body.total_mass:.2f} kg, {body.num_modes} modes")
# -

# ## The machine
#
# A rotor whose centre of mass is 0.02 mm away from the shaft excites the plate at the frequency of
# rotation, the first order. An engine with four cylinders also has free inertia forces of the
# second order; a force along $z$ that grows with the square of the speed represents them.

# +
first_speed, last_speed, duration = 2 * np.pi * 20, 2 * np.pi * 150, 1.6  # rad/s, s
rate = (last_speed - first_speed) / duration
speed = f"({first_speed} + {rate}*t)"
phase = f"({first_speed}*t + {rate / 2}*t^2)"  # rad
second_order = f"1e-4*{speed}^2*cos(2*{phase})"  # free inertia force, N
seat, foot = body.interface("bearing"), body.interface("feet")
ground = mbd.Ground({"foundation": mbd.Frame(foot.point, foot.axes)})
plate = mbd.FlexibleBody("plate", body)
rotor = mbd.RigidBody(
    "rotor",
    mass=2.0,
    inertia=[2e-3, 2e-3, 1e-3],
    centre=(2e-5, 0.0, 0.0),
    frames={"shaft": mbd.Frame()},
    position=seat.point,
    rotation=seat.axes,
)
bolts = mbd.fixed("bolts", ground.frame("foundation"), plate.frame("feet"))
shaft = mbd.revolute("shaft", plate.frame("bearing"), rotor.frame("shaft"))
inertia = mbd.force("second order", plate.frame("bearing"), ("0", "0", second_order))
drive = mbd.Driver("motor", "shaft", phase)
bodies: list[Any] = [ground, plate, rotor]
system = mbd.System(bodies, [bolts, shaft], drivers=[drive], loads=[inertia])
run = mbd.simulate(system, t_end=duration, dt=2e-4)
# -

# ## Radiated power
#
# The map shows the power at each frequency over the speed. Orders are straight lines through the
# origin, and natural frequencies are horizontal lines: the plate is loud at their intersections.

# +
sound = mbd.durability.radiated_power(reduction, run.body("plate"))
angle = run.joint("shaft").rotation
frequencies = sound.waterfall(angle, length=0.16, up_to=400.0)
orders = sound.waterfall(angle, axis="order", length=8, up_to=4)
report(f"mean sound power level {sound.level:.1f} dB")
report(f"mean velocity level    {sound.velocity_level:.1f} dB")
figure = {"orders": [1, 2], "reference": 1e-12, "title": "radiated power, dB re 1 pW"}
show(mbd.plotting.plot_waterfall, frequencies, results / "waterfall.png", **figure)
# -

# ## Checks
#
# Nearly all power is in two orders. The second order is loudest where it meets a natural frequency
# of the plate with the rotor. These frequencies are computed by linearizing the mechanism at rest.
# A resonance may appear a little late, because the speed rises while the vibration builds up.

# +
at_rest = mbd.System(bodies, [bolts, shaft])
natural = mbd.linearize(at_rest, mbd.equilibrium(at_rest)).frequencies
natural = natural[natural > 1.0]
second = 0.5 * orders.cut(2) ** 2
peak = orders.speed[np.nanargmax(second)]
report(f"natural frequencies {', '.join(f'{f:.1f}' for f in natural[:6])} Hz")
report(f"second order: loudest at {peak * 30 / np.pi:.0f} 1/min, {peak / np.pi:.1f} Hz")
total = orders.mean_square.sum(axis=1) / orders.bandwidth
share = np.sum(0.5 * orders.cut(1) ** 2 + second) / total.sum()
near = natural[np.argmin(np.abs(natural - peak / np.pi))]
check("second order: loudest frequency over a natural one", peak / np.pi / near, 0.97, 1.03)
check("share of the first two orders in the power", share, 0.95, 1.001)
# -
