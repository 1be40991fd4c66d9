"""Valid calls of the public functions and methods for engines; see `calls`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dolfinx_mbd as mbd
from dolfinx_mbd.body import Interface
from dolfinx_mbd.mechanism import mechanisms
from tests.campaigns.bench import Bench

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]

_ANGLES = np.radians(np.arange(0.0, 721.0, 30.0))
_CURVE = 2e5 + 1e5 * np.cos(_ANGLES / 2)
_CHAIN: dict[str, Any] = {"inertias": [0.05, 0.05, 1.0], "stiffnesses": [1e6, 2e6]}
_DAMPER: dict[str, Any] = {"disc": 1, "inertia": 0.01, "stiffness": 1e5, "damping": 1.0}


def _torque(angle: Any, speed: float) -> Any:
    return 10 * np.cos(angle)


def _chain() -> mechanisms.TorsionalChain:
    return mechanisms.TorsionalChain(**_CHAIN)


def _crank() -> mbd.ReducedBody:
    places = {"main_1": (0, 0, -0.04), "main_2": (0, 0, 0.04), "pin_1": (0.04, 0, 0)}
    return mbd.ReducedBody.from_arrays(
        name="crank",
        total_mass=1.0,
        first_moments=np.zeros((1, 3)),
        second_moments=1e-3 * np.eye(3)[None, None],
        stiffness=np.zeros((0, 0)),
        interfaces=[
            Interface(key, "rigid", np.array(point), np.eye(3), np.zeros((6, 0)))
            for key, point in places.items()
        ],
        reference="rigid",
    )


def _balance() -> mechanisms.EngineBalance:
    rod = mechanisms.rigid_rod(length=0.137, mass=0.2)
    return mechanisms.engine_balance(mechanisms.EngineDesign(cylinders=2), rod)


ENGINES: dict[str, Call] = {
    "Crankcase": lambda b: (mbd.geometry.Crankcase, {"bays": 1, "size": 0.03, "order": 1}),
    "Crankshaft": lambda b: (
        mbd.geometry.Crankshaft,
        {"throw_angles": [0.0], "crank_radius": 0.04, "size": 0.02, "order": 1},
    ),
    "Crankshaft.fillet_distance": lambda b: (
        mbd.geometry.Crankshaft().fillet_distance,
        {"points": [[0.04, 0.0, 0.0]]},
    ),
    "CylinderTorque": lambda b: (
        mechanisms.CylinderTorque,
        {
            "pressure": mechanisms.FourStrokePressure(0.07, 0.04, 0.137),
            "crank": mechanisms.SliderCrank(0.04, 0.137),
            "bore": 0.07,
            "mass": 0.3,
            "firing": 1.0,
        },
    ),
    "EngineBalance.force_at": lambda b: (_balance().force_at, {"speed": 100.0}),
    "EngineBalance.moment_at": lambda b: (_balance().moment_at, {"speed": 100.0}),
    "EngineBalance.summary": lambda b: (_balance().summary, {"speed": 100.0}),
    "EngineBlock": lambda b: (
        mechanisms.EngineBlock,
        {"body": _crank(), "mains": ["main_1", "main_2"], "cylinders": ["pin_1"]},
    ),
    "EngineCrank": lambda b: (
        mechanisms.EngineCrank,
        {"body": _crank(), "mains": ["main_1", "main_2"], "pins": ["pin_1"]},
    ),
    "PressureMap": lambda b: (
        mechanisms.PressureMap,
        {"angle": _ANGLES, "speed": [100.0, 200.0], "pressure": [_CURVE, 2 * _CURVE]},
    ),
    "TorsionalChain": lambda b: (mechanisms.TorsionalChain, {**_CHAIN, "loss_factor": 0.03}),
    "TorsionalChain.critical_speed": lambda b: (_chain().critical_speed, {"order": 6.0, "mode": 1}),
    "TorsionalChain.response": lambda b: (
        _chain().with_damper(**_DAMPER).response,
        {"speed": 100.0, "torques": {1: _torque}, "orders": [1.0]},
    ),
    "TorsionalChain.system": lambda b: (
        _chain().system,
        {"motion": 10.0, "torques": {1: _torque}, "loss_frequency": 100.0},
    ),
    "TorsionalChain.with_damper": lambda b: (_chain().with_damper, dict(_DAMPER)),
    "TorsionalDamper": lambda b: (
        mechanisms.TorsionalDamper,
        {"inertia": 0.01, "stiffness": 1e4, "damping": 1.0, "hub_inertia": 0.002, "radius": 0.1},
    ),
    "TorsionalDamper.tuned": lambda b: (
        mechanisms.TorsionalDamper.tuned,
        {"inertia": 0.01, "frequency": 300.0, "damping_ratio": 0.2},
    ),
    "TorsionalResponse.torque_at": lambda b: (
        _chain().with_damper(**_DAMPER).response(100.0, {1: _torque}).torque_at,
        {"angle": [0.0, 1.0]},
    ),
    "engine": lambda b: (
        mechanisms.engine,
        {"rod": mechanisms.rigid_rod(length=0.137, mass=0.2), "speed": 100.0, "angle": 0.1},
    ),
    "engine_balance": lambda b: (
        mechanisms.engine_balance,
        {
            "design": mechanisms.EngineDesign(cylinders=2),
            "rod": mechanisms.rigid_rod(length=0.137, mass=0.2),
            "pin_mass": 0.1,
        },
    ),
    "torque_orders": lambda b: (
        mechanisms.torque_orders,
        {"torque": _torque, "speed": 100.0, "orders": [0.5, 1.0]},
    ),
}
"""Calls by the name of the function or method."""
