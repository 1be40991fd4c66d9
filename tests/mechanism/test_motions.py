"""Drivers whose angle, rate and acceleration contradict each other are refused."""

from __future__ import annotations

import numpy as np
import pytest

from dolfinx_mbd.analyses import kinematic_analysis, simulate
from dolfinx_mbd.dynamics import System
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism import (
    Driver,
    Frame,
    Ground,
    RigidBody,
    constant_speed,
    differentiated,
    integrated,
    revolute,
)
from dolfinx_mbd.mechanism.motions import Motion, check_derivatives

# Times, values and slopes of a piecewise linear motion
TABLE = np.linspace(0.0, 2.0, 41)
VALUES = np.cumsum(np.random.default_rng(4).normal(size=41))
SLOPES = np.diff(VALUES) / np.diff(TABLE)


def rotor(motion: Motion) -> System:
    """Return a rotor on a hinge with a driven motion."""
    ground = Ground({"o": Frame()})
    body = RigidBody("rotor", 1.0, [0.1] * 3, frames={"o": Frame()})
    joint = revolute("axis", ground.frame("o"), body.frame("o"))
    return System([ground, body], [joint], drivers=[Driver("drive", "axis", motion)])


def table(t: float) -> tuple[float, float, float]:
    """Return a piecewise linear motion, whose rate jumps at each point of the table."""
    k = min(max(int(np.searchsorted(TABLE, t, side="right")) - 1, 0), len(SLOPES) - 1)
    return float(VALUES[k] + SLOPES[k] * (t - TABLE[k])), float(SLOPES[k]), 0.0


def ramp(t: float) -> tuple[float, float, float]:
    """Return a motion with constant acceleration until 0.3 s, then with constant speed."""
    s = min(t, 0.3)
    return 50.0 * s * s + 100.0 * s * (t - s), 100.0 * s, 100.0 if t < 0.3 else 0.0


def inside(t: float) -> tuple[float, float, float]:
    """Return a motion that is defined from 0 to 2 s only."""
    assert 0.0 <= t <= 2.0
    return np.sin(t), np.cos(t), -np.sin(t)


def late(t: float) -> tuple[float, float, float]:
    """Return a motion that starts after 1.6 s."""
    s = max(t - 1.6, 0.0)
    return s**3, 3 * s**2, 6 * s


@pytest.mark.parametrize(
    "motion",
    [
        constant_speed(0.0),
        constant_speed(1e-6),
        constant_speed(1e3, 1e4),
        constant_speed(-20.0, 0.7),
        lambda t: (1e6, 0.0, 0.0),
        lambda t: (1e-6 * np.sin(400 * t), 4e-4 * np.cos(400 * t), -0.16 * np.sin(400 * t)),
        lambda t: (np.sin(3e4 * t), 3e4 * np.cos(3e4 * t), -9e8 * np.sin(3e4 * t)),
        lambda t: (0.7 + 50.0 * t**4, 200.0 * t**3, 600.0 * t**2),
        lambda t: (np.sign(t - 1) * (t - 1) ** 2 / 2, abs(t - 1), np.sign(t - 1)),
        table,
        ramp,
        inside,
        late,
        differentiated(lambda t: 30.0 * t),
        differentiated(lambda t: 1e3 + np.sin(20 * t)),
        integrated(lambda t: 3 * np.cos(7 * t), start=0.2),
        integrated(lambda t: 100.0 * min(t, 0.3)),
    ],
)  # fmt: skip
def test_motions_whose_derivatives_fit(motion: Motion) -> None:
    check_derivatives("motion", motion, 0.0, 2.0)


# The reported value and the expected one, or None if the test does not compare them
@pytest.mark.parametrize(
    ("motion", "value", "actual"),
    [
        (lambda t: (10.0 * t, 0.0, 0.0), 0.0, 10.0),
        (lambda t: (10.0 * t, 10.5, 0.0), 10.5, 10.0),
        (lambda t: (10.0 * t, 10.0, 3.0), 3.0, 0.0),
        (lambda t: (0.0, 5.0, 0.0), 5.0, 0.0),
        (lambda t: (np.sin(3 * t), np.cos(3 * t), -9 * np.sin(3 * t)), None, None),
        (lambda t: (np.sin(3 * t), 3 * np.cos(3 * t), 9 * np.sin(3 * t)), None, None),
        (lambda t: (t * t, 2 * t, 0.0), 0.0, 2.0),
        (lambda t: (np.radians(40.0 * t), 40.0, 0.0), 40.0, np.radians(40.0)),
        (lambda t: (table(t)[0], 1.1 * table(t)[1], 0.0), None, None),
        (lambda t: (*late(t)[:2], 0.0), 0.0, None),
    ],
)
def test_motions_that_contradict_themselves(
    motion: Motion, value: float | None, actual: float | None
) -> None:
    with pytest.raises(InputError) as error:
        check_derivatives("motion", motion, 0.0, 2.0)
    assert error.value.argument == "motion"
    if value is not None:
        assert error.value.value == pytest.approx(value, rel=1e-6, abs=1e-9)
    if actual is not None:
        assert float(str(error.value.expected)) == pytest.approx(actual, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("wrong", [lambda t: (10.0 * t, 0.0, 0.0), lambda t: (t * t, 2 * t, 0.0)])
def test_runs_with_contradictory_drivers_are_errors(wrong: Motion) -> None:
    with pytest.raises(InputError) as error:
        simulate(rotor(wrong), t_end=0.1, dt=1e-3)
    assert error.value.argument == "driver 'drive'"
    with pytest.raises(InputError):
        kinematic_analysis(rotor(wrong), [0.0, 0.1])


def test_jumps_of_the_acceleration_are_no_errors() -> None:
    run = simulate(rotor(ramp), t_end=0.6, dt=1e-3)
    assert run.joint("axis").rotation[-1] == pytest.approx(ramp(0.6)[0], abs=1e-10)
