"""Grid of oil films against one with intervals of half the size, over a working cycle.

All films have the default grid, 64×12.

    ./with-fenicsx python3 -m pytest -n 0 -m "slow or not slow" -s \
        tests/mechanism/mechanisms/test_film_grid.py

prints the changes of the smallest film thickness, the mean friction power and the mean flow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.mechanism.bearings import ElasticBearing, FiniteBearing, OilFilm, OilSupply
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine

SPEED, DT, START = 628.3, 2e-5, np.radians(440.0)  # rad/s, s, rad
CYCLE, RUN_IN = 1000, 170  # numbers of steps for 720° and 122°


@pytest.fixture(scope="module")
def rod() -> mbd.ReducedBody:
    """Return a reduced rod with pressure modes in its big end."""
    big = mbd.InterfaceSpec(kind="averaged", pressure_modes=0.02)
    ends = {"big_end": big, "small_end": mbd.InterfaceSpec(kind="averaged")}
    mesh = mbd.build_mesh(mbd.ConnectingRod(size=0.012), MPI.COMM_WORLD)
    return mbd.reduce(mesh, mbd.STEEL, interfaces=ends, num_modes=6).body


def results(rod: mbd.ReducedBody, place: str, film: OilFilm) -> np.ndarray:
    """Return smallest thickness, and mean friction power and flow at the ends over a cycle."""
    design = EngineDesign(cylinders=1)
    system = inline_engine(rod, design, speed=SPEED, angle=START, bearings={place: film})
    run = mbd.simulate(system, t_end=(CYCLE + RUN_IN) * DT, dt=DT)
    name = {"big_end": "crank pin 1 contact", "main": "main contact"}[place]
    history = run[RUN_IN:].element(name)
    flow = np.asarray(history.side_flow)
    return np.array([history.film_thickness.min(), np.mean(history.friction_power), flow.mean()])


HOLE = OilSupply(4e5, angle=np.pi, arc=0.3, length=0.006, round=True)
CASES: dict[str, Any] = {
    "main": (FiniteBearing, "main", (64, 12), {}),
    "big end": (FiniteBearing, "big_end", (64, 12), {}),
    "elastic big end": (ElasticBearing, "big_end", (64, 12), {}),
    "elastic big end with a hole": (ElasticBearing, "big_end", (64, 12), {"supply": [HOLE]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_half_the_intervals(rod: mbd.ReducedBody, name: str) -> None:
    bearing, place, shape, options = CASES[name]
    bore = rod.bore("big_end")
    size: dict[str, Any] = {"radius": bore.radius, "length": bore.length, "clearance": 30e-6}
    size |= options | {"oil": 0.01} | ({"bore": bore} if bearing is ElasticBearing else {})
    grids = shape, (2 * shape[0], 2 * shape[1])
    values = [results(rod, place, OilFilm(bearing, **size, shape=grid)) for grid in grids]
    change = values[1] / values[0] - 1.0
    print(f"\n{name}: {1e6 * values[0][0]:.2f} µm, {values[0][1]:.1f} W, "
          f"{1e6 * values[0][2]:.2f} cm³/s; changes {(100 * change).round(2)} %")  # fmt: skip
    assert np.abs(change).max() < 0.012
