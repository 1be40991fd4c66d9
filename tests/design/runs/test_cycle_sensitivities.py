"""Derivatives of periodic motions against differences of periodic motions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.analyses import periodic
from dolfinx_mbd.analyses.shooting import difference
from dolfinx_mbd.design import RunSensitivities, cycle_sensitivities
from dolfinx_mbd.errors import InputError

SPEED = 9.0
PERIOD = 2 * np.pi / SPEED


def shaken(p: Mapping[str, float]) -> mbd.System:
    """Return a double pendulum whose first arm is driven, with friction and a spring."""
    ground = mbd.Ground({"o": mbd.Frame()})
    ends = {"a": mbd.Frame((0, 0.5, 0)), "b": mbd.Frame((0, -0.5, 0))}
    one = mbd.RigidBody("one", 1.0, [0.1] * 3, frames=ends, position=(0, -0.5, 0))
    two = mbd.RigidBody("two", p.get("mass", 1.0), [0.1] * 3, frames=ends, position=(0, -1.5, 0))
    joints = [
        mbd.revolute("pin", ground.frame("o"), one.frame("a")),
        mbd.revolute("elbow", one.frame("b"), two.frame("a")),
    ]
    speed, k, c = p.get("speed", SPEED), p.get("stiffness", 3.0), p.get("friction", 0.2)
    size = p.get("angle", 0.3)

    def motion(t: float) -> tuple[float, float, float]:
        s, co = np.sin(speed * t), np.cos(speed * t)
        return size * s, size * speed * co, -size * speed**2 * s

    spring = mbd.JointLoad("spring", "elbow", "rotation", lambda t, x, v: -k * x - c * v)
    drive = mbd.Driver("drive", "pin", motion)
    return mbd.System(
        [ground, one, two], joints, drivers=[drive], loads=[spring], gravity=(0, -9.81, 0)
    )


VALUES = {"mass": 1.3, "stiffness": 4.0, "friction": 0.15, "angle": 0.25}
STEPS = 100
OPTIONS: dict[str, Any] = {"dt": PERIOD / STEPS, "closed": 1e-11, "tolerance": 1e-11}


@cache
def derivatives() -> RunSensitivities:
    """Return the derivatives with respect to all parameters."""
    return cycle_sensitivities(shaken, VALUES, PERIOD, **OPTIONS)


@pytest.mark.parametrize(
    "name",
    [
        "friction",
        "angle",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("mass", "stiffness")),
    ],
)
def test_against_differences(name: str) -> None:
    """Derivatives of three states and of the driving torque agree with central differences."""
    result, column = derivatives(), list(VALUES).index(name)
    h = 1e-4 * VALUES[name]
    runs = [
        periodic(shaken(VALUES | {name: VALUES[name] + s * h}), PERIOD, **OPTIONS) for s in (-1, 1)
    ]
    for k in (0, 35, STEPS):
        below, above = (run.states[k] for run in runs)
        exact = difference(runs[0].system, below, above)[0] / (2 * h)
        error = np.abs(result.increments[k, :, column] - exact).max()
        assert error < 1e-6 * np.abs(exact).max()
    # `derivative` of an output is a difference quotient, whose relative error is about 1e-4
    torque = result.derivative(lambda run: run.joint("drive").moment[:, 2])[name]
    exact = (runs[1].joint("drive").moment - runs[0].joint("drive").moment)[:, 2] / (2 * h)
    assert np.abs(torque - exact).max() < 1e-3 * np.abs(exact).max()


def test_a_parameter_that_changes_the_period() -> None:
    with pytest.raises(InputError, match="'speed' changes the period"):
        cycle_sensitivities(shaken, {"speed": SPEED}, PERIOD, dt=PERIOD / 100)
