"""Gradients by the adjoint: equal to forward sensitivities to round-off, and Taylor tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.results.outputs import Outputs
from tests.design.runs.mechanisms import (
    double_pendulum,
    oscillator,
    own_pendulum,
    slider_crank,
)

PENDULUM = double_pendulum, {"mass": 1.5, "length": 0.5, "k": 3.0, "g": 9.81}, 0.2, 2e-3
CRANK = slider_crank, {"stiffness": 1.0, "radius": 0.2, "piston": 0.3, "speed": 1.0}, 0.01, 2e-4


DIRECT = ("acceleration", "force", "moment", "function")  # in outputs of accelerations or forces
KINDS = ("final", "mean", "norm")


def slopes_of(kind: str, y: np.ndarray, order: float) -> np.ndarray:
    """Return the derivatives of a functional by the values y of an output at equal steps."""
    weights = np.ones(len(y))
    weights[[0, -1]] = 0.5
    weights /= weights.sum()
    if kind == "final":
        return np.eye(len(y))[-1]
    if kind == "mean":
        return weights
    size = (weights @ np.abs(y) ** order) ** (1 / order)
    return weights * np.sign(y) * (np.abs(y) / size) ** (order - 1)


@pytest.mark.parametrize(
    ("case", "outputs"),
    [
        (PENDULUM, ["lower.position.x", "lower.omega.y", "lower.acceleration.y", "hook.force.y"]),
        pytest.param(
            PENDULUM,
            ["pin.moment.x", "pin.rotation", "pin.rotation_rate", "coil.moment.z"],
            marks=pytest.mark.slow,
        ),
        (PENDULUM, [lambda run: np.linalg.norm(run.joint("hook").force, axis=1)]),
        (CRANK, ["rod.eta.1", "piston.velocity.x", "crank pin.force.x", "drive.moment.z"]),
        (CRANK, [lambda run: run.body("rod").eta[:, 0] * run.body("crank").omega[:, 2]]),
        ((oscillator, {"k": 400.0, "m": 2.0}, 0.1, 1e-3), ["spring.tension", "spring.length_rate"]),
    ],
    ids=["states", "joints", "function", "crank", "function of the crank", "spring"],
)
def test_adjoint_equals_forward(
    case: Any, outputs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both gradients agree to round-off.

    The runs are bitwise identical, because no exact tangent replaces the matrix of the iterations.
    """
    monkeypatch.setattr(Stepper, "adopt", lambda self, factor: None)
    build, values, t_end, dt = case
    functionals = {
        f"{number} {kind}": mbd.design.Functional(output, kind, order=6)
        for number, output in enumerate(outputs)
        for kind in KINDS
    }
    results = mbd.design.run_gradient(build, values, functionals, t_end=t_end, dt=dt)
    forward = mbd.run_sensitivities(build, values, t_end=t_end, dt=dt)
    for number, output in enumerate(outputs):

        def evaluate(run: mbd.results.Solution, output: Any = output) -> np.ndarray:
            request = [output] if isinstance(output, str) else {"output": output}
            return Outputs(request).of(run)[:, 0]

        y, derivatives = evaluate(forward.run), forward.derivative(evaluate)
        for kind in KINDS:
            result, by_output = results[f"{number} {kind}"], slopes_of(kind, y, 6)
            assert (result.output == y).all()
            for name, slopes in derivatives.items():
                error = result.gradient[name] - by_output @ slopes
                # the round-off of differences is relative to y/p, p being the parameter
                size = max(np.abs(slopes).max(), np.abs(y).max() / values[name])
                scale = np.abs(by_output).sum() * size
                # constraints determine accelerations and forces: round-off is divided by dt²
                direct = kind == "final" and any(w in str(output) for w in DIRECT)
                tolerance = 1e-8 if direct else 1e-10
                assert abs(error) <= tolerance * scale, (number, kind, name)


@pytest.mark.parametrize("case", [PENDULUM, CRANK], ids=["pendulum", "crank"])
@pytest.mark.parametrize("kind", KINDS)
def test_taylor(case: Any, kind: Any) -> None:
    """The remainder of first order decreases with the square of the step."""
    build, values, t_end, dt = case
    output = "hook.force.y" if build is double_pendulum else "crank pin.force.x"
    functional = mbd.design.Functional(output, kind, order=6)
    options = {"t_end": t_end, "dt": dt, "tolerance": 1e-12}
    result = mbd.design.run_gradient(build, values, functional, **options)
    direction = {name: (-1) ** k * value for k, (name, value) in enumerate(values.items())}
    slope = sum(result.gradient[name] * change for name, change in direction.items())
    remainders = []
    for h in (4e-3, 2e-3, 1e-3):
        moved = {name: value + h * direction[name] for name, value in values.items()}
        run = mbd.simulate(build(moved), **options)
        remainders.append(abs(functional.of(run) - result.value - h * slope))
    rates = np.log2(np.array(remainders[:-1]) / remainders[1:])
    assert rates == pytest.approx(2.0 * np.ones(2), abs=0.2)


@pytest.mark.parametrize("case", [PENDULUM, CRANK], ids=["pendulum", "crank"])
def test_checkpoints(case: Any) -> None:
    """States that are computed again are bitwise identical, and so are the gradients."""
    build, values, t_end, dt = case
    output = "hook.force.y" if build is double_pendulum else "crank pin.force.x"
    functional = mbd.design.Functional(output, "norm")
    saved, *repeated = (
        mbd.design.run_gradient(build, values, functional, t_end=t_end, dt=dt, checkpoints=count)
        for count in (None, 1, 7)
    )
    for result in repeated:
        assert result.value == saved.value
        for name, slope in saved.gradient.items():
            assert result.gradient[name] == pytest.approx(slope, rel=1e-10)


def test_bodies_of_other_kinds_and_start_rates() -> None:
    """The gradient agrees with differences for a body with a method of its own and a start rate."""
    values = {"mass": 2.0, "length": 0.5}
    options = {"t_end": 0.2, "dt": 2e-3, "tolerance": 1e-10, "start": {"pin": 3.0}}
    functional = mbd.design.Functional("pin.force.x", "mean")
    result = mbd.design.run_gradient(own_pendulum, values, functional, **options)
    for name, value in values.items():
        h = 1e-4 * value
        runs = [
            mbd.simulate(own_pendulum({**values, name: value + s * h}), **options) for s in (-1, 1)
        ]
        low, high = map(functional.of, runs)
        assert result.gradient[name] == pytest.approx((high - low) / (2 * h), rel=1e-6)


def test_norm_tends_to_the_peak() -> None:
    build, values, t_end, dt = PENDULUM
    values = {"mass": values["mass"]}
    full = PENDULUM[1]
    functionals = {str(p): mbd.design.Functional("hook.force.y", "norm", p) for p in (8, 64, 512)}
    results = mbd.design.run_gradient(
        lambda p: build({**full, **p}), values, functionals, t_end=t_end, dt=dt
    )
    peak = np.abs(results["8"].output).max()
    errors = [1 - result.value / peak for result in results.values()]
    assert 0.02 > errors[2] > 0 and errors[0] > errors[1] > errors[2]


def test_errors() -> None:
    values, options = {"k": 400.0, "m": 2.0}, {"t_end": 0.02, "dt": 1e-3}

    def gradient(functional: Any, **changes: Any) -> Any:
        return mbd.design.run_gradient(oscillator, values, functional, **{**options, **changes})

    with pytest.raises(InputError, match="name of a body"):
        gradient(mbd.design.Functional("nothing.position.x"))
    with pytest.raises(InputError, match="a quantity or a component"):
        gradient(mbd.design.Functional("weight.position"))
    with pytest.raises(InputError, match="one number for each time"):
        gradient(mbd.design.Functional(lambda run: run.body("weight").position))
    for output in (
        lambda run: np.cumsum(run.body("weight").position[:, 1]),
        lambda run: run.body("weight").position[:, 1] - run.body("weight").position[0, 1],
    ):
        with pytest.raises(InputError, match="depends on other times"):
            gradient(mbd.design.Functional(output))
    with pytest.raises(InputError, match="zero at all times, is not differentiable"):
        gradient(mbd.design.Functional("weight.position.x", "norm"))
    with pytest.raises(InputError, match="functional"):
        gradient("weight.position.y")
    with pytest.raises(InputError, match="functional"):
        gradient({})
    with pytest.raises(InputError, match="kind"):
        mbd.design.Functional("weight.position.y", "median")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="order"):
        mbd.design.Functional("weight.position.y", "norm", order=1)
    with pytest.raises(InputError, match="run must be"):
        mbd.design.Functional("weight.position.y").of("run")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="checkpoints"):
        gradient(mbd.design.Functional("weight.position.y"), checkpoints=0)


def test_parameter_without_effect() -> None:
    """The derivative is zero."""

    def build(p: Mapping[str, float]) -> mbd.System:
        return oscillator({"k": p["k"], "m": 2.0})

    functional = mbd.design.Functional("weight.position.y", "mean")
    result = mbd.design.run_gradient(build, {"k": 400.0, "x": 1.0}, functional, t_end=0.02, dt=1e-3)
    assert result.gradient["x"] == 0.0
    assert result.gradient["k"] != 0.0
