"""Valid calls of strength, loads from measurements, and noise; see `calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd import plotting
from dolfinx_mbd.durability import acoustics
from tests.campaigns.bench import Bench

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]

TIME = np.linspace(0.0, 1.0, 401)
ANGLE = 2 * np.pi * (10 * TIME + 5 * TIME**2)


def _waterfall() -> mbd.analyses.Waterfall:
    return mbd.analyses.waterfall(TIME, np.sin(2 * ANGLE), ANGLE, axis="order", length=5)


def _strength(b: Bench) -> mbd.durability.Strength:
    return mbd.strength(b.reduction, b.history, limit=1e8)


def _sound(b: Bench) -> acoustics.RadiatedPower:
    n = b.reduction.body.num_modes
    history = type("History", (), {"time": TIME, "eta_rate": np.ones((len(TIME), n))})
    return mbd.durability.radiated_power(b.reduction, history)


STRENGTH: dict[str, Call] = {
    "IdentifiedLoads.load": lambda b: (
        mbd.analyses.identify_loads(
            b.rod, TIME, {"big_end ax": np.cos(ANGLE)}, ["big_end fx"]
        ).load,
        {"name": "big_end fx"},
    ),
    "RadiatedPower": lambda b: (
        acoustics.RadiatedPower,
        {"time": [0.0, 1.0], "velocities": [[1.0], [2.0]], "area": 0.1, "impedance": 413.0},
    ),
    "RadiatedPower.spectrum": lambda b: (_sound(b).spectrum, {}),
    "RadiatedPower.waterfall": lambda b: (_sound(b).waterfall, {"angle": ANGLE}),
    "RadiatingSurface": lambda b: (
        acoustics.RadiatingSurface,
        {"area": 0.1, "products": np.eye(7)},
    ),
    "Strength.field": lambda b: (_strength(b).field, {"name": "utilization"}),
    "Strength.write": lambda b: (_strength(b).write, {"path": "strength.bp"}),
    "Waterfall.cut": lambda b: (_waterfall().cut, {"order": 2.0, "width": 0.5}),
    "identify_loads": lambda b: (
        mbd.analyses.identify_loads,
        {
            "body": b.rod, "time": TIME, "signals": {"big_end ax": np.cos(ANGLE)},
            "loads": ["big_end fx"], "omega": np.zeros((len(TIME), 3)),
        },
    ),
    "inertia_relief": lambda b: (
        mbd.durability.inertia_relief,
        {"source": b.reduction, "wrenches": {"left": [1.0, 0, 0, 0, 0, 0]}, "omega": (0, 0, 1.0)},
    ),
    "plot_waterfall": lambda b: (plotting.plot_waterfall, {"spectra": _waterfall(), "orders": [2]}),
    "radiated_power": lambda b: (
        mbd.durability.radiated_power,
        {"source": b.reduction, "history": b.history, "where": lambda x: x[0] > -1.0},
    ),
    "radiating_surface": lambda b: (acoustics.radiating_surface, {"source": b.reduction}),
    "strength": lambda b: (
        mbd.strength,
        {"source": b.reduction, "history": b.history, "limit": 1e8, "count": 2, "apart": 0.01},
    ),
    "waterfall": lambda b: (
        mbd.analyses.waterfall,
        {"time": TIME, "signal": np.sin(2 * ANGLE), "angle": ANGLE, "length": 0.2},
    ),
}  # fmt: skip
