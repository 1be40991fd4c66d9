"""A whole four-cylinder engine: flexible crankshaft, block and rods, oil films, damper, mounts.

The closed cycle at one speed, and run-ups without and with a torsional damper. Figures and a page go
to `results/engine_block`. Runs on one rank and under `mpirun -n 2`; `--full` has finer meshes, oil
films in the run-ups, and more time.
"""

# # A whole engine
#
# You put an engine together: a crankshaft with fillets, a block with five main bearings, and rods,
# all flexible; oil films in the main bearings, a flywheel, a torsional damper and rubber mounts.

# +
from __future__ import annotations

import argparse
import time

import numpy as np
import scipy
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms, tutorials
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineBlock, EngineDesign, FourStrokePressure
from dolfinx_mbd.tutorials import check, report

parser = argparse.ArgumentParser()
parser.add_argument("--full", action="store_true", help="finer meshes and films in the run-ups")
full = parser.parse_known_args()[0].full
comm, begin, rpm = MPI.COMM_WORLD, time.perf_counter(), 2 * np.pi / 60
results = tutorials.results_folder("engine_block")
# -

# ## The parts
#
# The builders of gmsh name the bores and journals. Averaged interfaces leave the fillets free. The
# bodies contain the stress of their modes at the surface.

# +
sizes = {"order": 1} | ({"size": 0.012, "per_circle": 6} if full else {"size": 0.016, "per_circle": 4})
throws = np.radians([0.0, 180.0, 180.0, 0.0])
shaft = mbd.geometry.Crankshaft(throw_angles=throws, fillet=0.003 if full else 0.004, **sizes)
case = mbd.geometry.Crankcase(bays=4, size=0.014 if full else 0.025, order=1)
numbers = {"pin": range(1, 5), "main": range(1, 6), "cylinder": range(1, 5)}
names = {key: [f"{key}_{k}" for k in values] for key, values in numbers.items()}
mains = {
    name: mbd.InterfaceSpec(kind="averaged", point=(0, 0, z), axes=(0, 0, 1))
    for name, z in zip(names["main"], case.main_positions, strict=True)
}
round_z = mbd.InterfaceSpec(kind="averaged", axes=(0, 0, 1))
along_x = mbd.InterfaceSpec(kind="averaged", axes=(1, 0, 0))
ends = dict.fromkeys(("big_end", "small_end"), round_z)
parts = {
    "crank": (shaft, mbd.STEEL, mains | dict.fromkeys([*names["pin"], "nose", "flange"], round_z)),
    "block": (case, mbd.ALUMINIUM_7075, mains | dict.fromkeys(names["cylinder"], along_x)),
    "rod": (mbd.ConnectingRod(size=0.012), mbd.STEEL, ends),
}
parts["block"][2].update(front=round_z, rear=round_z)
bodies = {}
for name, (geometry, material, interfaces) in parts.items():
    with tutorials.timed(name):
        mesh = mbd.build_mesh(geometry, comm)
        options = {"num_modes": 6, "stiffening": False, "name": name}
        reduction = mbd.reduce(mesh, material, interfaces=interfaces, **options)
        stress = mbd.durability.skin_stress(reduction, peaks=False)
        bodies[name] = reduction.body.replace(stress=stress)
# -

# ## The engine
#
# The gas pressure depends on the crank angle and on the speed. Its peaks over the speed are those of
# the engine of Mendes, Meirelles and Zampieri (Proc. IMechE K 222 (2008)), times 0.6. The hub of the
# damper is fixed to the nose of the crankshaft, and its ring is bonded to the hub by rubber.

# +
radius, length = 0.040, mechanisms.rod_length(bodies["rod"])
design = EngineDesign(cylinders=4, piston_mass=0.4, flywheel_inertia=0.15, crank_radius=radius)
speeds = rpm * np.array([1000.0, 1500.0, 2000.0, 2200.0, 2400.0, 2550.0])
peaks = 0.6e6 * np.array([14.28, 14.83, 14.91, 15.15, 11.81, 5.88])
angles = np.radians(np.arange(-180.0, 541.0, 2.0))
curves = [FourStrokePressure(0.070, radius, length, peak, 15.0)(angles) for peak in peaks]
gas = mechanisms.PressureMap(angles, speeds, curves)
film = OilFilm(ShortBearing, radius=0.025, length=0.02, clearance=3e-5, viscosity=0.015)
rubber = [2e6] * 3 + [2e4] * 3, [400.0] * 3 + [4.0] * 3
START = np.radians(100.0)  # crank angle at which the loads of the bearings are small
HUB, RING, DAMPING = 0.004, 0.010, 0.25  # kg m², and the damping ratio of the rubber


def whole_engine(motion, films: bool, frequency: float | None = None) -> mbd.System:
    """Return the engine at a motion of its brake; without a frequency, the ring is fixed."""
    base = mechanisms.engine(
        bodies["rod"], design, crank=bodies["crank"], block=EngineBlock(bodies["block"]),
        mounts={"front": rubber, "rear": rubber}, pressure=gas, speed=1.0, angle=START, damping_ratio=0.02,
        bearings={"main": film} if films else {},
    )  # fmt: skip
    nose = bodies["crank"].interface("nose")
    hub, ring = (
        mbd.RigidBody.cylinder(
            name, 0.07, 0.02, mass=2 * inertia / 0.07**2, frames={"axis": mbd.Frame()},
            position=nose.point, rotation=[np.cos(START / 2), 0, 0, np.sin(START / 2)],
        )
        for name, inertia in (("hub", HUB), ("ring", RING))
    )  # fmt: skip
    join = mbd.fixed if frequency is None else mbd.revolute
    joints = [
        mbd.fixed("nose", base.body("crank").frame("nose"), hub.frame("axis")),
        join("damper", hub.frame("axis"), ring.frame("axis")),
    ]
    loads = [load for load in base.loads if load.name != "main contact"]  # that of the joint
    if frequency is not None:
        w = 2 * np.pi * frequency
        loads.append(mbd.JointSpring("rubber", "damper", RING * w**2, 2 * DAMPING * RING * w))
    brake = mbd.Driver("drive", "output", motion, offset=0.0)
    joints = [*base.joints, *joints]
    return mbd.System([*base.bodies, hub, ring], joints, drivers=[brake], loads=loads)
# -

# ## Run-ups
#
# The brake prescribes the speed of the crankshaft from 1000 to 2600 rpm. The twist is the rotation
# of the hub relative to the flywheel. Without a damper it is large where an order meets the first
# torsional frequency; the damper is tuned to that frequency.

# +
duration, dt = (1.5, 5e-5) if full else (0.5, 1e-4)
low, high = 1000 * rpm, 2600 * rpm


def run_up(t: float) -> tuple[float, float, float]:
    """Return angle, speed and acceleration of the crankshaft."""
    rate = (high - low) / duration
    return START + low * t + 0.5 * rate * t**2, low + rate * t, rate


def twist(run) -> np.ndarray:
    """Return the rotation of the hub relative to the flywheel over time, mrad."""
    rate = run.body("hub").omega[:, 2] - run.body("flywheel").omega[:, 2]
    return 1e3 * scipy.signal.detrend(scipy.integrate.cumulative_trapezoid(rate, run.time, initial=0))


maps, twists, frequency = {}, {}, None
for name in ("ring fixed", "damper"):
    with tutorials.timed(f"run-up, {name}"):
        system = whole_engine(run_up, full, frequency)
        run = mbd.simulate(system, t_end=duration, dt=dt, elastic_start="undeformed")
    twists[name], angle = twist(run), run.joint("output").rotation
    orders = mbd.analyses.waterfall(run.time, twists[name], angle, axis="order", length=4, up_to=14)
    maps[name] = mbd.analyses.waterfall(run.time, twists[name], angle, length=0.08, up_to=800)
    file = results / f"twist_{name.replace(' ', '_')}.png"
    options = {"orders": [4, 6, 8, 10], "unit": "mrad", "title": f"twist at the pulley, {name}"}
    tutorials.show(mbd.plotting.plot_waterfall, orders, file, **options)
    if frequency is None:
        band = maps[name].lines > 150  # above the orders 2 and 4
        frequency = float(maps[name].lines[band][maps[name].mean_square[:, band].max(axis=0).argmax()])
        report(f"first torsional frequency about {frequency:.0f} Hz; the damper is tuned to it")
# -

# ## The closed cycle at 2000 rpm
#
# `mbd.analyses.periodic` finds the motion over 720° that repeats exactly, with films in all main
# bearings. The drive of the brake is the load torque. The journals move in orbits, and the smallest
# thickness of the films is a few micrometres.

# +
speed, steps = 2000 * rpm, 2400 if full else 1200
period = 4 * np.pi / speed
system = whole_engine(mbd.constant_speed(speed, START), True, frequency)
with tutorials.timed("closed cycle"):
    cycle = mbd.analyses.periodic(system, period, dt=period / steps, transient=2)
report(cycle)
angle = np.degrees(START + speed * cycle.time)
films = {f"main {k}": cycle.element(f"main {k}") for k in range(1, 5)}
films["main 5"] = cycle.element("main contact")
thickness = {name: 1e6 * film.film_thickness for name, film in films.items()}
load = {name: 1e-3 * np.linalg.norm(film.force, axis=1) for name, film in films.items()}
mounts = {name: cycle.element(f"mount {name}") for name in ("front", "rear")}
rows = {"smallest film thickness (µm)": thickness, "force of the bearing (kN)": load}
rows["force on a mount, along x (N)"] = {k: mount.force[:, 0] for k, mount in mounts.items()}
tutorials.plot_histories(results / "bearings.png", ("crank angle (°)", angle), rows)
with tutorials.figure(results / "orbits.png", 1, 5, title="orbits of the journals (µm)") as axes:
    for ax, (name, history) in zip(axes, films.items(), strict=True):
        ax.plot(*(1e6 * history.displacement[:, :2].T))
        ax.set(title=name, aspect="equal", xlim=(-31, 31), ylim=(-31, 31))
# -

# ## Noise of the block, fatigue of the crankshaft, and the page
#
# `radiated_power` is an estimate of the sound power; `fatigue` counts the cycles of stress at each
# point of the surface. The page shows the running engine, coloured by stress.

# +
sound = mbd.durability.radiated_power(bodies["block"], cycle.body("block"))
history = [(cycle.body("crank"), 1.0)]
with tutorials.timed("fatigue"):
    life = mbd.fatigue(bodies["crank"], history, material="AISI 4340", planes=50, comm=comm)
worst = life.worst(1)[0]
report(f"sound power level of the block {sound.level:.1f} dB; crankshaft: {worst}")
tutorials.show(
    mbd.plotting.player, cycle, results / "engine.html", quantity="von Mises", scale=100
)
# -

# ## Checks

# +
torque = cycle.joint("drive").moment[:, 2]
indicated = sum(
    float(np.mean(cycle.element(f"gas {k}").power[:-1])) for k in range(1, 5)
)
brake = -float(np.mean((torque * speed)[:-1]))
check("brake power over indicated power", brake / indicated, 0.9, 1.0)
