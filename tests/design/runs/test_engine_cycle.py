"""The cycle of an engine with oil films: effort, and derivatives against differences."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import periodic
from dolfinx_mbd.analyses.shooting import difference
from dolfinx_mbd.design import cycle_sensitivities
from dolfinx_mbd.mechanism.bearings import OilFilm, ShortBearing
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, FourStrokePressure, inline_engine
from tests.models.beams import slender_rod

SPEED, STEPS = 628.318, 1000  # rad/s (6000 rpm), steps in a period of two revolutions
PERIOD = 4 * np.pi / SPEED


@cache
def rod() -> mbd.ReducedBody:
    """Return a slender aluminium rod with three modes."""
    return slender_rod(length=0.14, side=0.02, young=7e10, density=2700.0, bending=2, axial=1)


def engine(p: Mapping[str, float]) -> mbd.System:
    """Return three cylinders with flexible rods and oil films at the big ends."""
    film = OilFilm(
        ShortBearing, radius=0.02, length=0.016, clearance=p.get("clearance", 3e-5),
        viscosity=p.get("viscosity", 0.01),
    )  # fmt: skip
    length = mbd.mechanisms.rod_length(rod())
    pressure = FourStrokePressure(0.05, crank_radius=0.04, rod_length=length)
    design = EngineDesign(crank_radius=0.04, piston_mass=p.get("piston", 0.4))
    bearings = {"big_end": film}
    return inline_engine(
        rod(), design, speed=SPEED, pressure=pressure, damping_ratio=0.01, bearings=bearings
    )


@pytest.mark.slow
def test_derivatives_against_differences() -> None:
    options: dict[str, Any] = {"dt": PERIOD / STEPS, "closed": 1e-10, "tolerance": 1e-11}
    values = {"viscosity": 0.01, "clearance": 3e-5, "piston": 0.4}
    result = cycle_sensitivities(engine, values, PERIOD, **options)
    cycle: Any = result.run
    assert cycle.corrections <= 5
    assert cycle.periods <= 10
    near = options | {"start": cycle, "transient": 0}
    for column, (name, value) in enumerate(values.items()):
        h = 1e-4 * value
        runs = [periodic(engine({name: value + s * h}), PERIOD, **near) for s in (-1, 1)]
        for k in (0, STEPS // 3, STEPS):
            below, above = (run.states[k] for run in runs)
            exact = difference(runs[0].system, below, above)[0] / (2 * h)
            error = np.abs(result.increments[k, :, column] - exact).max()
            assert error < 1e-4 * np.abs(exact).max()
