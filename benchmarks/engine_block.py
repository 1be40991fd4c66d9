"""Cost of a whole four-cylinder engine, relative to the three-cylinder engine of `demos/engine.py`.

    ./with-fenicsx python3 benchmarks/engine_block.py [--rounds 3] [--steps 300] [--size 0.025]

The four-cylinder engine has a flexible crankshaft (11 interfaces), a flexible block (11 interfaces)
on mounts, and flexible rods; the three-cylinder engine has a rigid crank and the same rods. Both
take 2000 steps per working cycle. The rows "oil films" have short bearings in the mains, and
"elastic films" solves Reynolds' equation on 64×12 intervals in the elastic bores of all mains and
big ends. The first table shows medians of the processor time of a step, divided by the number of
cylinders; the first 100 steps from a crank angle of 100° are not timed. `--steps 2000` is a cycle.
The second table compares the reduction of the block with that of a rod of about as many degrees of
freedom and as many fixed-interface modes. The last line is the peak memory of the whole script.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.bearings import ElasticBearing, OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, engine, inline_engine

STEPS_PER_CYCLE, RUN_IN = 2000, 100  # steps; the first RUN_IN are not timed
START, MODES = np.radians(100.0), 6  # crank angle at the start, rad; modes of each body
PRESSURE_TOLERANCE = 0.05  # of the pressure modes, see `InterfaceSpec.pressure_modes`
CLEARANCE, VISCOSITY = 3e-5, 0.015  # m, Pa s
SPEEDS = {3: 628.3, 4: 209.4}  # rad/s by number of cylinders: 6000 and 2000 rpm
# Goals: the largest ratios of the rows of the tables, and the peak memory in GB
LIMITS = {
    "ideal joints": 3.0,
    "oil films": 8.0,
    "elastic films": 8.0,
    "reduction": 3.0,
    "memory": 8.0,
}
THROWS = np.radians([0.0, 180.0, 180.0, 0.0])


def timed_reduction(geometry: Any, rounds: int, **options: Any) -> tuple[Any, float]:
    """Return the reduction of a part and the median of its processor time, s."""
    mesh, seconds = mbd.build_mesh(geometry, MPI.COMM_SELF), []
    for _ in range(rounds):
        start = time.process_time()
        reduction = mbd.reduce(mesh, mbd.STEEL, **options)
        seconds.append(time.process_time() - start)
    return reduction, float(np.median(seconds))


def interfaces(case: mbd.geometry.Crankcase) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the interfaces of the crankshaft and of the block."""
    mains = {
        f"main_{k + 1}": mbd.InterfaceSpec(kind="averaged", point=(0, 0, z), axes=(0, 0, 1))
        for k, z in enumerate(case.main_positions)
    }
    along_z, along_x = (mbd.InterfaceSpec(kind="averaged", axes=a) for a in ((0, 0, 1), (1, 0, 0)))
    pins = dict.fromkeys([*(f"pin_{k}" for k in range(1, 5)), "nose", "flange"], along_z)
    guides = dict.fromkeys((f"cylinder_{k}" for k in range(1, 5)), along_x)
    return mains | pins, mains | guides | dict.fromkeys(("front", "rear"), along_z)


def with_pressure_modes(interfaces: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return the interfaces, with pressure modes in the bores whose names begin with a prefix."""
    return {
        name: replace(spec, kind="averaged", pressure_modes=PRESSURE_TOLERANCE)
        if name.startswith(prefix)
        else spec
        for name, spec in interfaces.items()
    }


def elastic_film(bore: mbd.body.Bore) -> OilFilm:
    """Return the film in an elastic bore."""
    size = {"radius": bore.radius, "length": bore.length, "clearance": CLEARANCE}
    return OilFilm(ElasticBearing, **size, oil=VISCOSITY, bore=bore)


def engines(crank: Any, blocks: Any, rods: Any) -> dict[str, tuple[mbd.System, int]]:
    """Return the engines with their numbers of cylinders.

    Block and rod are pairs: without pressure modes, and with pressure modes for elastic films.
    """
    (block, elastic_block), (rod, elastic_rod) = blocks, rods
    film = OilFilm(
        ShortBearing, radius=0.025, length=0.018, clearance=CLEARANCE, viscosity=VISCOSITY
    )
    films = {"main": [elastic_film(elastic_block.bore(f"main_{k}")) for k in range(1, 6)]}
    films["big_end"] = [elastic_film(elastic_rod.bore("big_end"))] * 4
    # stiffnesses and dampings along and about the axes: N/m, N m/rad, N s/m, N m s/rad
    mount = [2e6] * 3 + [2e4] * 3, [400.0] * 3 + [4.0] * 3
    design = EngineDesign(cylinders=4, flywheel_inertia=0.15)
    common: dict[str, Any] = {"speed": SPEEDS[4], "angle": START, "damping_ratio": 0.02}
    common |= {"crank": crank, "mounts": {"front": mount, "rear": mount}}
    three = inline_engine(rod, speed=SPEEDS[3], angle=START)
    ideal, elastic = common | {"block": block}, common | {"block": elastic_block}
    return {
        "three cylinders": (three, 3),
        "ideal joints": (engine(rod, design, **ideal), 4),
        "oil films": (engine(rod, design, bearings={"main": film}, **ideal), 4),
        "elastic films": (engine(elastic_rod, design, bearings=films, **elastic), 4),
    }


def step_times(systems: dict[str, tuple[mbd.System, int]], steps: int, rounds: int) -> Any:
    """Return the medians of the processor time per step and cylinder, s."""
    starts, seconds = {}, {name: [] for name in systems}  # type: ignore[var-annotated]
    for name, (system, count) in systems.items():
        dt = 4 * np.pi / SPEEDS[count] / STEPS_PER_CYCLE
        run = mbd.simulate(system, t_end=RUN_IN * dt, dt=dt, elastic_start="undeformed")
        starts[name] = dt, run.final_state
    for _ in range(rounds):
        for name, (system, count) in systems.items():
            dt, state = starts[name]
            begin = time.process_time()
            mbd.simulate(system, t_end=(RUN_IN + steps) * dt, dt=dt, start=state)
            seconds[name].append((time.process_time() - begin) / steps / count)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--size", type=float, default=0.025, help="elements of the block, m")
    arguments = parser.parse_args()
    case = mbd.geometry.Crankcase(bays=4, bulkhead=0.018, size=arguments.size, order=1)
    shaft = mbd.geometry.Crankshaft(
        throw_angles=THROWS, fillet=0.003, size=0.016, per_circle=4, order=1
    )
    options: dict[str, Any] = {"num_modes": MODES, "stiffening": False}
    of_crank, of_block = interfaces(case)
    # with 0.172 times the element size, the solid rod has about as many displacements as the block
    rod_mesh = mbd.ConnectingRod(size=0.172 * arguments.size)
    ends = {name: mbd.InterfaceSpec(kind="averaged") for name in ("big_end", "small_end")}
    rounds = arguments.rounds
    rod, rod_time = timed_reduction(rod_mesh, rounds, interfaces=ends, **options)
    block, block_time = timed_reduction(case, rounds, interfaces=of_block, **options)
    crank, _ = timed_reduction(shaft, 1, interfaces=of_crank, **options)
    elastic_mains = with_pressure_modes(of_block, "main")
    elastic_block, _ = timed_reduction(case, 1, interfaces=elastic_mains, **options)
    # the rods of the engines, whose big ends are as long as the oil films
    thin = mbd.build_mesh(mbd.ConnectingRod(big_width=0.018), MPI.COMM_SELF)
    bores = {name: mbd.InterfaceSpec() for name in ("big_end", "small_end")}
    rods = [
        mbd.reduce(thin, mbd.ALUMINIUM_7075, interfaces=i, num_modes=20, name="rod").body
        for i in (bores, with_pressure_modes(bores, "big"))
    ]
    systems = engines(crank.body, (block.body, elastic_block.body), rods)
    times = step_times(systems, arguments.steps, rounds)
    print(f"| {'engine':<15} | ms per step and cylinder | ratio | goal |\n|---|---|---|---|")
    reference = times["three cylinders"]
    for name, value in times.items():
        base = times["ideal joints"] if name.endswith("films") else reference
        print(f"| {name:<15} | {1e3 * value:.3f} | {value / base:.2f} | {LIMITS.get(name, '')} |")
    print("\nThe ratios of the films are to the ideal joints.\n")
    print(
        "| reduction | displacements | interfaces | s | ratio | goal |\n|---|---|---|---|---|---|"
    )
    for name, item, seconds in (("rod", rod, rod_time), ("block", block, block_time)):
        dofs, count = int(item.body.provenance["dofs"]), len(item.body.interfaces)
        goal = LIMITS["reduction"] if name == "block" else ""
        ratio = seconds / rod_time
        print(f"| {name} | {dofs:,} | {count} | {seconds:.2f} | {ratio:.2f} | {goal} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"\npeak memory {peak:.2f} GB, goal {LIMITS['memory']:g} GB")


if __name__ == "__main__":
    main()
