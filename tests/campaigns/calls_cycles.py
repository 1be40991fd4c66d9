"""Valid calls of the public functions for cycles, curves of equilibria and bodies on meshes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from dolfinx.mesh import create_box, locate_entities_boundary
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import analyses
from dolfinx_mbd.durability import recovery
from tests.campaigns.bench import Bench

Call = Callable[[Bench], tuple[Callable[..., Any], dict[str, Any]]]

_PERIOD = 2 * np.pi / 9


def _system(k: float = 40.0, push: float = 0.0, speed: float = 9.0) -> mbd.System:
    """Return a pendulum with a spring, a harmonic torque and the gravity `push`."""
    ground = mbd.Ground({"pin": mbd.Frame()})
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (0.1, 0, 0), frames={"pin": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))

    def law(t: float, x: float, v: float) -> float:
        return -k * x - 4 * v + 5 * np.cos(speed * t)

    loads = [mbd.JointLoad("spring", "pin", "rotation", law)]
    return mbd.System([ground, bob], [pin], loads=loads, gravity=(0, -push, 0))


def _pushed(speed: float) -> mbd.System:
    """Return the pendulum with a torque of another frequency."""
    return _system(speed=speed)


def _rocker(values: Any) -> mbd.System:
    """Return the pendulum with a parameter."""
    return _system(values["k"])


@cache
def _cycle() -> analyses.PeriodicMotion:
    """Return the periodic motion of the pendulum."""
    return analyses.periodic(_system(), _PERIOD, dt=_PERIOD / 20)


def _harmonics(bench: Bench) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return a call of `harmonics`."""
    return _cycle().harmonics, {"signal": _cycle().joint("pin").rotation, "count": 2}


def _resting(weight: float) -> mbd.System:
    """Return a pendulum with a spring and a weight."""
    ground = mbd.Ground({"pin": mbd.Frame()})
    bob = mbd.RigidBody("bob", 2.0, [0.01] * 3, (0.1, 0, 0), frames={"pin": mbd.Frame()})
    pin = mbd.revolute("pin", ground.frame("pin"), bob.frame("pin"))
    spring = mbd.JointSpring("spring", "pin", 40.0)
    return mbd.System([ground, bob], [pin], loads=[spring], gravity=(0, -weight, 0))


@cache
def _curve() -> analyses.EquilibriumCurve:
    """Return the equilibria of the pendulum over the weight."""
    return analyses.continuation(_resting, (0.0, 5.0))


@cache
def _bar() -> tuple[mbd.MeshBody, mbd.reduction.Reduction, mbd.results.Solution]:
    box = create_box(MPI.COMM_SELF, [(0, 0, 0), (0.2, 0.02, 0.01)], [4, 1, 1])
    left = locate_entities_boundary(box, 2, lambda x: np.isclose(x[0], 0.0))
    reduction = mbd.reduce(box, mbd.STEEL, interfaces={"left": left}, num_modes=2)
    rod = mbd.MeshBody("rod", reduction.model, {"left": left}, omega=(0, 0, 90))
    return rod, reduction, mbd.simulate(mbd.System([rod]), t_end=0.002, dt=0.001)


CYCLES: dict[str, Call] = {
    "ClosedRun.harmonics": _harmonics,
    "ClosedRun.repeated": lambda b: (_cycle().repeated, {"count": 2}),
    "EquilibriumCurve.values": lambda b: (
        _curve().values,
        {"output": lambda system, state: state.q[:3]},
    ),
    "HarmonicCurve.values": lambda b: (
        analyses.harmonic_curve(
            _pushed, (5.0, 8.0), period=lambda w: 2 * np.pi / w, num_harmonics=1, max_points=3
        ).values,
        {"output": lambda motion: motion.residual},
    ),
    "HarmonicMotion.harmonics": _harmonics,
    "HarmonicMotion.repeated": lambda b: (_cycle().repeated, {"count": 2}),
    "MeshRecovery": lambda b: (recovery.MeshRecovery, {"body": _bar()[0], "where": "cells"}),
    "MeshRecovery.write": lambda b: (
        recovery.MeshRecovery(_bar()[0]).write,
        {"path": b.folder / "rod.pvd", "history": _bar()[2], "what": ["von Mises"]},
    ),
    "PeriodicMotion.harmonics": _harmonics,
    "PeriodicMotion.repeated": lambda b: (_cycle().repeated, {"count": 2}),
    "compare_with_modes": lambda b: (
        recovery.compare_with_modes,
        {"body": _bar()[0], "history": _bar()[2], "reduction": _bar()[1], "count": 1},
    ),
    "continuation": lambda b: (
        analyses.continuation,
        {"build": _resting, "span": (0.0, 5.0), "max_points": 20},
    ),
    "cycle_sensitivities": lambda b: (
        mbd.design.cycle_sensitivities,
        {"build": _rocker, "values": {"k": 40.0}, "period": _PERIOD, "dt": _PERIOD / 20},
    ),
    "harmonic_balance": lambda b: (
        analyses.harmonic_balance,
        {"system": _system(), "period": _PERIOD, "num_harmonics": 2, "max_corrections": 5},
    ),
    "harmonic_curve": lambda b: (
        analyses.harmonic_curve,
        {
            "build": _pushed,
            "span": (5.0, 8.0),
            "period": lambda speed: 2 * np.pi / max(speed, 0.1),
            "num_harmonics": 1,
            "max_points": 3,
        },
    ),
    "orders_of_cycles": lambda b: (
        analyses.orders_of_cycles,
        {
            "cycles": [_cycle()],
            "signal": lambda run: run.joint("pin").rotation,
            "angle": lambda run: 9 * run.time,
            "up_to": 3.0,
        },
    ),
    "periodic": lambda b: (
        analyses.periodic,
        {"system": _system(), "period": _PERIOD, "dt": _PERIOD / 20, "max_corrections": 3},
    ),
    "poles_over_speed": lambda b: (
        analyses.poles_over_speed,
        {"build": _resting, "speeds": [1.0, 2.0], "num_modes": 1},
    ),
}
"""Calls by the name of the function or method."""
