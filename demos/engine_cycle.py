"""The closed working cycle of a three-cylinder engine with flexible rods and oil films.

You find the motion over 720° that repeats exactly, by Newton's method instead of many simulated
cycles. Figures go to `results/engine_cycle`. Runs on one rank and under `mpirun -n 2`.
"""

# # The closed cycle of an engine
#
# A simulation starts with a transient: the rods vibrate, and the journals settle in their oil
# films. `mbd.analyses.periodic` finds the cycle that is left after the transient. It corrects the
# state at the start of the cycle until the state after two turns of the crank equals it.

# +
from __future__ import annotations

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import tutorials
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, FourStrokePressure, inline_engine
from dolfinx_mbd.tutorials import check, report

comm = MPI.COMM_WORLD
results = tutorials.results_folder("engine_cycle")
# -

# ## The engine
#
# It is the engine of `engine.py`, at 6000 rpm, with short bearings at the big ends.

# +
geometry, radius, speed = mbd.ConnectingRod(size=0.01), 0.040, 628.318  # –, m, rad/s
mesh = mbd.build_mesh(geometry, comm)
rod = mbd.reduce(
    mesh, mbd.ALUMINIUM_7075, interfaces=["big_end", "small_end"], num_modes=6, name="rod"
).body
length = mbd.mechanisms.rod_length(rod)
film = OilFilm(ShortBearing, radius=0.02, length=0.016, clearance=3e-5, viscosity=0.01)
pressure = FourStrokePressure(0.070, crank_radius=radius, rod_length=length)
design = EngineDesign(crank_radius=radius)
engine = inline_engine(
    rod, design, speed=speed, pressure=pressure, damping_ratio=0.01, bearings={"big_end": film}
)
period, steps = 4 * np.pi / speed, 1000
# -

# ## The cycle
#
# One period is simulated first. Each correction by Newton's method needs one more period.

# +
with tutorials.timed("periodic"):
    cycle = mbd.analyses.periodic(engine, period, dt=period / steps)
report(cycle)
# -

# The Floquet multipliers are the fractions of a disturbance that are left after a cycle. The motion
# that decays most slowly is hardly excited here, so that a simulation comes near the cycle earlier
# than the largest multiplier suggests.

# +
largest = float(np.abs(cycle.multipliers[0]))
slow = np.log(1e-8) / np.log(largest)
report(f"largest multiplier {largest:.3f}: a disturbance decays to 1e-8 in {slow:.0f} cycles")
with tutorials.timed("four cycles from the start"):
    run = mbd.simulate(engine, t_end=4 * period, dt=period / steps, tolerance=1e-9)
names = [f"crank pin {k}" for k in (1, 2, 3)]
force = {name: np.linalg.norm(cycle.joint(name).force, axis=1) for name in names}
errors = []
for k in range(4):
    rows = slice(k * steps, (k + 1) * steps + 1)
    parts = {n: np.linalg.norm(run.joint(n).force[rows], axis=1) - force[n] for n in names}
    errors.append(max(np.abs(part).max() / force[n].max() for n, part in parts.items()))
text = ", ".join(f"{error:.1e}" for error in errors)
report(f"differences of the simulated cycles from the closed one: {text}")
# -

# ## Orders without a window
#
# The cycle repeats exactly, so that its harmonics need no window and have no leakage. The torque of
# three cylinders has the orders 1.5, 3, 4.5, ...: multiples of the 1.5 ignitions in a turn.

# +
torque = cycle.joint("drive").moment[:, 2]
harmonics = np.abs(cycle.harmonics(torque, 24))
orders = 0.5 * np.arange(25)
angle = np.degrees(speed * cycle.time)
with tutorials.figure(results / "cycle.png", 1, 3, title="Closed cycle") as (left, middle, right):
    for name in names:
        left.plot(angle, 1e-3 * force[name], label=name)
    left.set(xlabel="crank angle (°)", ylabel="force (kN)", xticks=np.arange(0, 721, 180))
    left.legend()
    thickness = cycle.element("crank pin 1 contact").film_thickness
    middle.plot(angle, 1e6 * thickness)
    middle.set(xlabel="crank angle (°)", ylabel="film thickness (µm)")
    right.bar(orders, harmonics, 0.4)
    right.set(xlabel="order", ylabel="drive torque (N m)")
# -

# ## Checks

# +
check("corrections", cycle.corrections, 1, 5)
check("periods of simulation", cycle.periods, 2, 10)
check("largest multiplier", largest, 0.0, 1.0)
check("last simulated cycle minus closed cycle", errors[-1], 0.0, max(errors[0], 1e-6))
others = np.delete(harmonics, np.arange(0, 25, 3))  # not multiples of 1.5
check("orders other than 0, 1.5, 3, ... over the largest", others.max() / harmonics.max(), 0, 1e-2)
ends = [np.abs(x[-1] - x[0]) / np.abs(x).max() for x in (*force.values(), torque)]
check("seam of the forces", max(ends), 0.0, 1e-6)
# -
