"""Derivatives of the terms that a parameter changes equal differences of all equations."""

from __future__ import annotations

import collections
import decimal
import functools
from collections.abc import Mapping

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms
from dolfinx_mbd.design.runs.mechanism_changes import (
    FACTORS,
    MechanismChange,
    States,
    same,
)
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from tests.models.rods import rod

VALUES = {
    "stiffness": 1.0,
    "damping": 1.0,
    "mass": 0.3,
    "radius": 0.2,
    "speed": 1.0,
    "gravity": 9.81,
    "spring": 300.0,
    "push": 20.0,
    "place": 0.1,
    "nothing": 1.0,
}


def crank(p: Mapping[str, float]) -> mbd.System:
    """Return a slider-crank with a spring, a load and parameters of all kinds.

    The body "wall" is free; the spring connects it with the piston. The parameter "nothing" has no
    effect.
    """
    body = rod()
    n = len(body.stiffness)
    body = body.replace(
        stiffness=p["stiffness"] * body.stiffness, damping=p["damping"] * 10.0 * np.eye(n)
    )
    engine = mechanisms.slider_crank(
        body,
        speed=100.0 * p["speed"],
        crank_radius=p["radius"],
        ends=("left", "right"),
        crank_mass=0.5,
        piston_mass=p["mass"],
    )
    bodies = [b for b in engine.bodies if b.num_velocities]
    piston = next(b for b in bodies if b.name == "piston")
    wall = mbd.RigidBody(
        "wall",
        1.0,
        [1.0] * 3,
        position=(1.5, p["place"], 0.0),
        frames={"hook": mbd.Frame((0.0, 0.1, 0.0))},
    )
    spring = mbd.SpringDamper(
        "spring", wall.frame("hook"), piston.frame(piston.frame_names[0]), p["spring"], 2.0
    )
    push = mbd.force(
        "push", bodies[1].frame("right"), lambda t, motion: (p["push"] * np.sin(9 * t), 0.0, 1.0)
    )
    return mbd.System(
        [*engine.bodies, wall],
        engine.joints,
        drivers=engine.drivers,
        loads=[spring, push],
        gravity=(0, -p["gravity"], 0),
    )


@functools.cache
def states() -> tuple[mbd.System, States]:
    """Return the mechanism and some states of a run."""
    run = mbd.simulate(crank(VALUES), t_end=0.004, dt=2e-4, stride=5)
    return run.system, States(list(run._saved.states()))


@pytest.mark.parametrize("name", VALUES)
def test_derivatives_of_changed_terms_equal_differences_of_all_equations(name: str) -> None:
    system, points = states()
    step = 1e-3 * VALUES[name]
    systems = {k: crank({**VALUES, name: VALUES[name] + k * step}) for k in FACTORS}
    change = MechanismChange(Assembler(system), systems, step)
    rows, values = change.terms(points)
    expected_rows, expected_values = change._differences(points)
    size = np.abs(expected_rows).max(axis=1, initial=1e-6, keepdims=True)
    assert np.abs(rows - expected_rows).max() <= 1e-8 * size.max()
    assert values == pytest.approx(expected_values, abs=1e-10)
    assert (np.abs(rows).max() == 0.0) == (name == "nothing")


class Law:
    """A load law whose coefficient is a private attribute."""

    def __init__(self, number: float) -> None:
        self._number = number

    def __call__(self, x: float) -> float:
        return self._number * x


def test_same() -> None:
    def closure(x: float) -> object:
        return lambda t: x * t

    assert same(closure(1.0), closure(1.0)) and not same(closure(1.0), closure(2.0))
    assert same(Law(1.0), Law(1.0)) and not same(Law(1.0), Law(2.0))
    assert same(Law(1.0).__call__, Law(1.0).__call__)
    assert not same(Law(1.0).__call__, Law(2.0).__call__)
    assert same({"a": [np.ones(2), (1, "x")]}, {"a": [np.ones(2), (1, "x")]})
    assert not same({"a": [np.ones(2)]}, {"a": [np.zeros(2)]})
    assert not same({"a": 1}, {"b": 1}) and not same(1, 1.0)
    assert same(functools.partial(max, 1), functools.partial(max, 1))
    assert not same(functools.partial(max, 1), functools.partial(max, 2))
    assert not same(lambda t: t, lambda t: 2 * t)
    assert not same(iter([1]), iter([1]))  # unknown contents
    assert not same(collections.deque([1]), collections.deque([2]))  # written in C
    assert not same(decimal.Decimal(1), decimal.Decimal(2))
