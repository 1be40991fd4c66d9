"""A whole four-cylinder engine; `--full` has finer meshes, and oil films in the run-ups."""

# # A whole engine: flexible crankshaft, four rods and block, on rubber mounts

# +
from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import scipy
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms, tutorials
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.tutorials import check

full, comm = "--full" in sys.argv, MPI.COMM_WORLD
results = tutorials.results_folder("engine_block")
# -

# ## The engine: averaged interfaces leave the fillets free to deform
#
# The pressures are half of those of Mendes, Meirelles and Zampieri (Proc. IMechE K 222 (2008)).

# +
fine: Any = {"size": 0.012, "per_circle": 6} if full else {"size": 0.016, "per_circle": 4}
shaft = mbd.geometry.Crankshaft(throw_angles=[0, np.pi, np.pi, 0], fillet=0.003, order=1, **fine)
case = mbd.geometry.Crankcase(bays=4, size=0.014 if full else 0.025, order=1)  # the body "block"
along_z, along_x = (mbd.InterfaceSpec(kind="averaged", axes=a) for a in ((0, 0, 1), (1, 0, 0)))
z = case.main_positions
mains = {f"main_{k + 1}": replace(along_z, point=(0, 0, z[k])) for k in range(5)}
pins = dict.fromkeys([*(f"pin_{k}" for k in range(1, 5)), "nose", "flange"], along_z)
guides = dict.fromkeys((f"cylinder_{k}" for k in range(1, 5)), along_x)
parts: dict[str, Any] = {
    "crank": (shaft, mbd.STEEL, mains | pins),
    "block": (case, mbd.ALUMINIUM_7075, mains | guides | {"front": along_z, "rear": along_z}),
    "rod": (mbd.ConnectingRod(size=0.012), mbd.STEEL, {"big_end": along_z, "small_end": along_z}),
}


def reduced(name: str, geometry: Any, material: Any, interfaces: Any) -> mbd.ReducedBody:
    """Return a body with stresses at its surface."""
    options: Any = {"interfaces": interfaces, "num_modes": 6, "stiffening": False, "name": name}
    reduction = mbd.reduce(mbd.build_mesh(geometry, comm), material, **options)
    return reduction.body.replace(stress=mbd.durability.skin_stress(reduction, peaks=False))


def whole_engine(motion: Any, films: bool, tuned: float, **options: Any) -> mbd.System:
    """Return the engine driven by a motion, with a damper tuned to the frequency `tuned` (Hz)."""
    damper = mechanisms.TorsionalDamper.tuned(ring, tuned, 0.25, hub_inertia=4e-3, radius=0.1)
    chosen: Any = {"pressure": gas, "bearings": {"main": film} if films else {}} | options
    return mechanisms.engine(
        bodies["rod"], replace(design, damper=damper), crank=bodies["crank"], block=bodies["block"],
        mounts={"front": rubber, "rear": rubber}, speed=motion, damping_ratio=0.02, **chosen,
    )  # fmt: skip


bodies = {name: reduced(name, *part) for name, part in parts.items()}
ring = 0.01  # moment of inertia of the damper's ring, kg m²
rpm, start = 2 * np.pi / 60, np.radians(100.0)  # the bearings carry little at this crank angle
design = mechanisms.EngineDesign(cylinders=4, flywheel_inertia=0.15)
length = mechanisms.rod_length(bodies["rod"])
angles = np.radians(np.arange(-180.0, 541.0, 2.0))
peaks = 0.5e6 * np.array([14.28, 14.83, 14.91, 15.15, 11.81, 5.88])  # half of the paper's, Pa
curves = [mechanisms.FourStrokePressure(0.07, 0.04, length, peak)(angles) for peak in peaks]
gas = mechanisms.PressureMap(angles, rpm * np.array([1e3, 1500, 2e3, 2200, 2400, 2550]), curves)
film = OilFilm(ShortBearing, radius=0.025, length=0.018, clearance=4e-5, viscosity=0.02)
rubber = [2e6] * 3 + [2e4] * 3, [400.0] * 3 + [4.0] * 3
# -

# ## Run-ups
#
# At rest, with the ring of the damper nearly rigid on its hub (3000 Hz), a share p of the kinetic
# energy of the torsional mode is in the ring; Den Hartog tunes it to √(1 − p) times the frequency
# of the mode. The twist of hub against flywheel is compared for the rigid and the tuned ring, from
# 1000 to 2600 rpm. At low speed films get thin, with a warning.

# +
still: Any = {"pressure": False, "angle": start, "gravity": (-9.81, 0, 0)}
linear = mbd.linearize(rest := whole_engine(0.0, False, 3000.0, **still), mbd.equilibrium(rest))
rotations = np.array([abs(linear.mode("ring", k)[5]) for k in range(1, 21)])  # largest entry: 1
mode = np.linalg.lstsq(linear.basis, linear.modes[:, k := int(rotations.argmax())])[0]
share = ring * rotations[k] ** 2 / (mode.conj() @ linear.mass @ mode).real
frequency = float(linear.frequencies[k] * np.sqrt(1 - share))

duration, step, overlap = (1.5, 5e-5, 0.5) if full else (0.5, 1e-4, 0.75)
run_up = mbd.mechanism.integrated(lambda t: rpm * (1000 + 1600 * t / duration), start=start)
largest = {}
for name, tuned in {"stiff": 3000.0, "tuned": frequency}.items():
    system = whole_engine(run_up, full, tuned)
    run = mbd.simulate(system, t_end=duration, dt=step, elastic_start="undeformed")
    rate = run.body("hub").omega[:, 2] - run.body("flywheel").omega[:, 2]
    twist = 1e3 * scipy.integrate.cumulative_trapezoid(rate, run.time, initial=0.0)
    data = run.time, scipy.signal.detrend(twist), run.joint("output").rotation
    orders = mbd.analyses.waterfall(*data, axis="order", length=4, overlap=overlap, up_to=14)
    style: Any = {"orders": [4, 6, 8, 10], "unit": "mrad", "title": f"twist, {name} damper"}
    tutorials.show(mbd.plotting.plot_waterfall, orders, results / f"{name}.png", **style)
    lines = mbd.analyses.waterfall(*data, length=0.08, up_to=800)
    peaks = np.sqrt(2 * lines.mean_square.max(axis=0)) * (lines.lines > 150)  # Hz, above order 2, 4
    largest[name] = peaks.max()
# -

# ## The closed cycle of 720° at 2000 rpm, with films in all main bearings
#
# The journals start in the middle of the bores, and fall onto their films in the first period; the
# closed cycle does not contain this start.

# +
speed, period, steps = 2000 * rpm, 0.06, 2400 if full else 720
system = whole_engine(mbd.constant_speed(speed, start), True, frequency)
first = mbd.Simulator(system, dt=period / steps, elastic_start="undeformed").state
cycle = mbd.analyses.periodic(system, period, dt=period / steps, start=first, closed=1e-6)
films = {k + 1: cycle.element(f"main {k + 1}" if k < 4 else "main contact") for k in range(5)}
thickness = {f"main {k}": 1e6 * film.film_thickness for k, film in films.items()}
load = {f"main {k}": 1e-3 * np.linalg.norm(film.force, axis=1) for k, film in films.items()}
rows = {"smallest film thickness (µm)": thickness, "force of the bearing (kN)": load}
angle = "crank angle (°)", np.degrees(speed * cycle.time + start)
tutorials.plot_histories(results / "bearings.png", angle, rows)
orbits = {f"main {k} (µm)": 1e6 * film.displacement[:, :2] for k, film in films.items()}
tutorials.plot_orbits(results / "orbits.png", orbits, 40.0)
sound = mbd.durability.radiated_power(bodies["block"], cycle.body("block"), rigid_motion=False)
crank, history = bodies["crank"], cycle.body("crank")
life = mbd.fatigue(crank, [(history, 1.0)], material="AISI 4340", planes=20, comm=comm)
style = {"quantity": "von Mises", "signals": {**orbits, "force of main 2 (kN)": load["main 2"]}}
style |= {"view": (0.6, 0.7, -0.9), "opacity": {"block": 0.15, "flywheel": 0.3}}
tutorials.show(mbd.plotting.player, cycle, results / "engine.html", **style)
worst = life.worst(1)[0]
distance = 1e3 * shaft.fillet_distance([worst.position])[0]
# -

# ## Checks

# +
gas_power = sum(cycle.element(f"gas {k}").power[:-1].mean() for k in range(1, 5))
efficiency = -speed * cycle.joint("drive").moment[:-1, 2].mean() / gas_power
with tutorials.report_page(results / "report.html", "Four-cylinder engine"):
    for name in thickness:
        check(f"{name}: smallest film thickness", thickness[name].min(), 0.2, 20.0, "µm")
        check(f"{name}: largest force", load[name].max(), 5.0, 30.0, "kN")
    check("sound power level of the block", sound.level, 70.0, 95.0, "dB")
    check("frequency of the damper", frequency, 200.0, 450.0, "Hz")
    check("brake power over the power of the gas", efficiency, 0.9, 1.0)
    check("twist above 150 Hz, tuned over stiff", largest["tuned"] / largest["stiff"], 0.0, 0.5)
    check("largest Floquet multiplier", float(np.abs(cycle.multipliers).max()), 0.0, 1.0)
    check("distance of the shortest life from a fillet", distance, 0.0, 0.1, "mm")
    check(f"life of the crankshaft, near {worst.interface}", worst.cycles, 1e7, 1e30, "cycles")
