"""Prescribed motion as data: functions, histories, bad input."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd import errors
from dolfinx_mbd.kernels.rotations import exp_quaternion, rotation_matrix
from dolfinx_mbd.structures.prescribed_motion.motion import PrescribedMotion


def turning(count: int) -> SimpleNamespace:
    """Return a frame that rotates about z by 3t + sin(5t) while its origin moves on a circle."""
    t = np.linspace(0.0, 1.0, count)
    zero = np.zeros_like(t)
    angle, speed, rate = 3 * t + np.sin(5 * t), 3 + 5 * np.cos(5 * t), -25 * np.sin(5 * t)
    return SimpleNamespace(
        time=t,
        rotation=np.array([exp_quaternion(np.array([0.0, 0.0, a])) for a in angle]),
        omega=np.stack([zero, zero, speed], axis=1),
        alpha=np.stack([zero, zero, rate], axis=1),
        acceleration=np.stack([np.cos(4 * t), np.sin(4 * t), zero], axis=1),
    )


def test_recorded_times_are_exact() -> None:
    history = turning(11)
    wrench = np.arange(66.0).reshape(11, 6) ** 2
    motion = PrescribedMotion.from_history(
        history, gravity=(0.0, -9.81, 0.0), wrenches={"end": wrench}
    )
    for k in (0, 4, 10):
        now = motion(float(history.time[k]))
        A = rotation_matrix(history.rotation[k])
        assert now.omega == pytest.approx(history.omega[k], abs=1e-12)
        assert now.alpha == pytest.approx(history.alpha[k], abs=1e-12)
        expected = A.T @ (history.acceleration[k] - [0.0, -9.81, 0.0])
        assert now.acceleration == pytest.approx(expected, abs=1e-12)
        assert now.wrenches["end"] == pytest.approx(wrench[k], abs=1e-9)


def test_order_between_recorded_times() -> None:
    """Interpolation of ω has order four, that of a₀ at least order three."""
    fine = turning(1601)
    errors = []
    for count in (21, 41):
        motion = PrescribedMotion.from_history(turning(count))
        inside = range(400, 1200, 7)
        omega = [motion(float(fine.time[k])).omega - fine.omega[k] for k in inside]
        a = [
            motion(float(fine.time[k])).acceleration
            - rotation_matrix(fine.rotation[k]).T @ fine.acceleration[k]
            for k in inside
        ]
        errors.append([np.abs(omega).max(), np.abs(a).max()])
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert orders[0] == pytest.approx(4, abs=0.3)
    assert orders[1] > 2.7


def test_numbers_and_functions() -> None:
    """A plane motion has a scalar about z and two components; gravity is subtracted from a₀."""
    motion = PrescribedMotion(
        omega=2.0, alpha=lambda t: 3.0 * t, acceleration=(1.0, 2.0), gravity=(0.0, -9.81)
    )
    now = motion(2.0)
    assert now.omega == pytest.approx([0, 0, 2])
    assert now.alpha == pytest.approx([0, 0, 6])
    assert now.acceleration == pytest.approx([1, 11.81, 0])
    assert now.wrenches == {}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PrescribedMotion(omega=(1.0, 2.0)), "omega must be three finite numbers"),
        (lambda: PrescribedMotion(acceleration=np.nan), "acceleration must be three"),
        (lambda: PrescribedMotion(wrenches={"a": [1.0] * 3}), "wrench at 'a' must be six"),
        (lambda: PrescribedMotion(alpha=lambda t: [t])(1.0), "alpha must be three"),
        (lambda: PrescribedMotion.from_history(turning(2)), "3 or more finite numbers"),
        (lambda: PrescribedMotion.from_history(turning(5))(1.5), "known from 0 s to 1 s"),
        (
            lambda: PrescribedMotion.from_history(turning(5), wrenches={"a": np.zeros((4, 6))}),
            r"shape \(5, 6\); got .* \(4, 6\)",
        ),
    ],
)
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_the_law_of_a_driver_gives_the_motion_of_the_driven_body() -> None:
    """The motion agrees with a simulation of a body on a driven hinge under gravity."""
    ground = mbd.Ground({"o": mbd.Frame()})
    bar = mbd.RigidBody.box(
        "bar",
        (1.0, 0.1, 0.1),
        mass=1.0,
        position=(0.3, 0, 0),
        frames={"o": mbd.Frame((-0.3, 0, 0))},
    )
    hinge = mbd.revolute("hinge", ground.frame("o"), bar.frame("o"))
    driver = mbd.Driver(
        "drive", "hinge", mbd.mechanism.differentiated(lambda t: 0.8 * np.sin(5 * t))
    )
    gravity = (0.0, -9.81, 0.0)
    system = mbd.System([ground, bar], [hinge], drivers=[driver], gravity=gravity)
    run = mbd.simulate(system, t_end=0.5, dt=1e-3)
    law = PrescribedMotion.from_law(driver, point=(-0.3, 0, 0), gravity=gravity)
    simulated = PrescribedMotion.from_run(run, "bar")
    for t in (0.1, 0.25, 0.4):
        exact, computed = law(t), simulated(t)
        assert exact.omega == pytest.approx(computed.omega, abs=1e-4)
        assert exact.alpha == pytest.approx(computed.alpha, abs=1e-2)
        assert exact.acceleration == pytest.approx(computed.acceleration, abs=1e-2)
    assert simulated(0.1).wrenches["o"] == pytest.approx(run.body("bar").wrenches["o"][100])


def test_the_law_of_a_sliding_body() -> None:
    law = mbd.mechanism.differentiated(lambda t: np.sin(3 * t))
    motion = PrescribedMotion.from_law(law, along="displacement", axis=(0, 2, 0), gravity=(1, 0, 0))
    now = motion(0.4)
    assert now.acceleration == pytest.approx([-1.0, -9 * np.sin(1.2), 0.0], abs=1e-6)
    assert not now.omega.any() and not now.alpha.any()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"law": 3.0}, "a function of time or a driver"),
        ({"law": lambda t: 3.0}, "value, rate and acceleration"),
        ({"axis": (0, 0, 0)}, "not zero"),
        ({"along": "spin"}, "along"),
    ],
)
def test_laws_that_are_rejected(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InputError, match=text):
        PrescribedMotion.from_law(**{"law": mbd.constant_speed(1.0), **arguments})(0.1)
