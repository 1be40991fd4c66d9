"""Cost of oil films in the big end of an engine, relative to an ideal joint.

    ./with-fenicsx python3 benchmarks/bearings.py [--rounds 3] [--steps 500]

The engine has one cylinder and runs at 6000 rpm with gas pressure and steps of 20 µs. All variants
have the same rod and run one after the other in each round. The table shows medians of the
processor time of a step. The ideal joint and the rigid bores use a rod without pressure modes.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing, OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine

DT, SPEED = 2e-5, 628.3  # time step, s, and angular velocity of the crank, rad/s
START = np.radians(440.0)  # crank angle at the start, where the load of the bearing is small, rad
# Largest acceptable time of a step relative to the ideal joint
LIMITS = {
    "ideal": 1.0,
    "short": 2.0,
    "Reynolds 64×12": 6.0,
    "mass-conserving": 12.0,
    "elastic bore 64×12": 15.0,
}


def engines() -> dict[str, mbd.System]:
    """Return the engine with each kind of big end."""
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.01), MPI.COMM_SELF)
    rods = []
    for tolerance in (None, 0.01):
        big = mbd.InterfaceSpec(kind="averaged", pressure_modes=tolerance)
        ends = {"big_end": big, "small_end": mbd.InterfaceSpec(kind="averaged")}
        rods.append(mbd.reduce(mesh, mbd.ALUMINIUM_7075, interfaces=ends, num_modes=20).body)
    rigid, elastic = rods  # without and with pressure modes of the big end
    bore = elastic.bore("big_end")
    size = {"radius": bore.radius, "length": bore.length, "clearance": 30e-6}
    grid: dict[str, Any] = {"oil": 0.01, "shape": (64, 12)}
    hole = mbd.bearings.OilSupply(4e5, angle=np.pi, arc=0.3, length=0.006, round=True)
    content: dict[str, Any] = {"supply": [hole], "cavitation": "mass_conserving"}
    films = {
        "ideal": (rigid, None),
        "short": (rigid, OilFilm(ShortBearing, **size, viscosity=0.01)),
        "Reynolds 64×12": (rigid, OilFilm(FiniteBearing, **size, **grid)),
        "mass-conserving": (rigid, OilFilm(FiniteBearing, **size, **grid, **content)),
        "elastic bore 64×12": (elastic, OilFilm(ElasticBearing, **size, **grid, bore=bore)),
    }
    design = EngineDesign(cylinders=1)
    return {
        name: inline_engine(
            rod, design, speed=SPEED, angle=START, bearings={"big_end": film} if film else None
        )
        for name, (rod, film) in films.items()
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=500)
    arguments = parser.parse_args()
    systems = engines()
    seconds: dict[str, list[float]] = {name: [] for name in systems}
    for system in systems.values():  # compile the kernels
        mbd.simulate(system, t_end=3 * DT, dt=DT)
    for _ in range(arguments.rounds):
        for name, system in systems.items():
            start = time.process_time()
            mbd.simulate(system, t_end=arguments.steps * DT, dt=DT)
            seconds[name].append(time.process_time() - start)
    medians = {name: float(np.median(values)) for name, values in seconds.items()}
    print(f"{'big end':<20} {'ms per step':>12} {'ratio':>7} {'limit':>7}")
    for name, value in medians.items():
        ratio = value / medians["ideal"]
        step = 1e3 * value / arguments.steps
        print(f"{name:<20} {step:12.3f} {ratio:7.2f} {LIMITS[name]:7.1f}")


if __name__ == "__main__":
    main()
