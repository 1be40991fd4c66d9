"""Derivatives of simulations: closed forms, and central differences of whole runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd import mechanisms
from dolfinx_mbd.errors import InputError
from tests.models.rods import rod

GROUND = mbd.Ground({"pivot": mbd.Frame()})
TIGHT = 1e-12


def oscillator(p: Mapping[str, float]) -> mbd.System:
    """A mass on a spring that starts at y = -1.2 with the spring's length of 1."""
    frames = {"centre": mbd.Frame()}
    weight = mbd.RigidBody("weight", p["m"], [0.01] * 3, position=(0, -1.2, 0), frames=frames)
    ends = GROUND.frame("pivot"), weight.frame("centre")
    spring = mbd.SpringDamper("spring", *ends, p["k"], length=1.0)
    return mbd.System([GROUND, weight], loads=[spring])


def double_pendulum(p: Mapping[str, float]) -> mbd.System:
    """Two bars with a coil spring; parameters are a mass, a length, a stiffness and gravity."""
    frames = {"a": mbd.Frame((0, p["length"] / 2, 0)), "b": mbd.Frame((0, -0.25, 0))}
    upper = mbd.RigidBody(
        "upper", p["mass"], [0.02, 0.01, 0.02], position=(0, -p["length"] / 2, 0), frames=frames
    )
    lower = mbd.RigidBody(
        "lower",
        1.0,
        [0.03, 0.01, 0.02],
        position=(0.2, -p["length"] / 2 - 0.35, 0.0),
        frames={"a": mbd.Frame((-0.2, 0.1, 0)), "tip": mbd.Frame((0, -0.3, 0.05))},
    )
    pins = [
        mbd.revolute("pin", GROUND.frame("pivot"), upper.frame("a")),
        mbd.universal("hook", upper.frame("b"), lower.frame("a")),
    ]
    coil = mbd.JointSpring("coil", "pin", stiffness=p["k"], damping=0.05)
    return mbd.System([GROUND, upper, lower], pins, loads=[coil], gravity=(1.0, -p["g"], 0.3))


def slider_crank(p: Mapping[str, float]) -> mbd.System:
    """A slider-crank with a flexible rod, a driver, and parameters of rod, crank and piston."""
    body = rod()
    body = body.replace(stiffness=p["stiffness"] * body.stiffness)
    return mechanisms.slider_crank(
        body,
        speed=100.0,
        crank_radius=p["radius"],
        ends=("left", "right"),
        crank_mass=0.5,
        piston_mass=p["piston"],
    )


def differences(
    build: Callable[[Mapping[str, float]], mbd.System],
    values: Mapping[str, float],
    output: Callable[[mbd.Solution], Any],
    **options: Any,
) -> dict[str, np.ndarray]:
    """Return central differences of fourth order of whole simulations.

    Newton's method leaves errors in the forces of joints, which the differences amplify.
    """
    result = {}
    for name, value in values.items():
        h = 1e-2 * value
        runs = [
            output(mbd.simulate(build({**values, name: value + s * h}), **options))
            for s in (-2, -1, 1, 2)
        ]
        a, b, c, d = (np.asarray(run, dtype=float) for run in runs)
        result[name] = (8 * (c - b) - (d - a)) / (12 * h)
    return result


def test_harmonic_oscillator() -> None:
    """y = -1 - 0.2 cos ωt: second order, and the closed form to 1e-8 by extrapolation.

    The derivatives are those of the computed motion. Their error is a power series of the time
    step that begins with its square; Richardson extrapolation removes three terms of the series.
    """
    k, m, t = 400.0, 2.0, 0.3
    omega = np.sqrt(k / m)
    exact = {"k": 0.2 * t * np.sin(omega * t) * omega / (2 * k)}
    exact["m"] = -exact["k"] * k / m
    errors = []
    for dt in (6e-3, 3e-3, 1.5e-3, 7.5e-4):
        options: dict[str, Any] = {"t_end": t, "dt": dt, "tolerance": TIGHT}
        result = mbd.run_sensitivities(oscillator, {"k": k, "m": m}, **options)
        slope = result.derivative(lambda run: run.body("weight").position[-1, 1])
        errors.append([slope[name] / exact[name] - 1 for name in ("k", "m")])
    rate = np.log2(np.abs(errors[:-1]) / np.abs(errors[1:]))
    assert rate == pytest.approx(2.0 * np.ones((3, 2)), abs=0.1)
    rest = np.array(errors)
    for power in (2, 3, 4):
        rest = (2**power * rest[1:] - rest[:-1]) / (2**power - 1)
    assert np.abs(rest).max() < 1e-8


@pytest.mark.parametrize(
    ("build", "values", "t_end", "dt", "outputs"),
    [
        (
            double_pendulum,
            {"mass": 1.5, "length": 0.5, "k": 3.0, "g": 9.81},
            0.2,
            2e-3,
            [
                (lambda run: run.body("lower").position, 1e-7),
                (lambda run: run.joint("pin").rotation, 1e-7),
                (lambda run: run.body("lower").velocity[-1], 1e-7),
                (lambda run: run.joint("hook").force, 1e-5),
            ],
        ),
        (
            slider_crank,
            {"stiffness": 1.0, "radius": 0.2, "piston": 0.3},
            0.01,
            2e-4,
            [
                (lambda run: run.body("rod").eta, 1e-6),
                (lambda run: run.body("piston").position, 1e-7),
                (lambda run: run.joint("crank pin").force, 1e-5),
            ],
        ),
    ],
)
def test_differences_of_runs(
    build: Any, values: dict[str, float], t_end: float, dt: float, outputs: list[Any]
) -> None:
    options: dict[str, Any] = {"t_end": t_end, "dt": dt, "tolerance": TIGHT}
    result = mbd.run_sensitivities(build, values, **options)
    for output, tolerance in outputs:
        expected = differences(build, values, output, **options)
        slopes = result.derivative(output)
        for name in values:
            size = np.abs(expected[name]).max()
            assert np.abs(slopes[name] - expected[name]).max() <= tolerance * size, name


def test_errors() -> None:
    with pytest.raises(InputError, match="must not be zero"):
        mbd.run_sensitivities(oscillator, {"k": 0.0, "m": 1.0}, t_end=0.1, dt=0.01)

    def changing(p: Mapping[str, float]) -> mbd.System:
        bodies = [mbd.RigidBody("a", 1.0, [0.01] * 3), mbd.RigidBody("b", 1.0, [0.01] * 3)]
        return mbd.System([GROUND, *bodies[: 1 if p["x"] < 1.0 else 2]])

    with pytest.raises(InputError, match="different sizes"):
        mbd.run_sensitivities(changing, {"x": 1.0}, t_end=0.1, dt=0.01)
