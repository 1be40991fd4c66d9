"""Loads that jump at a time which depends on the motion or on a parameter are errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning, InputError
from tests.design.runs.mechanisms import GROUND

VALUES = {"k": 400.0, "m": 2.0, "begin": 0.0513}  # `begin` is between two steps
OPTIONS: dict[str, Any] = {"t_end": 0.2, "dt": 1e-3, "tolerance": 1e-12}
HEIGHT = mbd.design.Functional("weight.position.y", "mean")
Force = Callable[[Mapping[str, float], float, Any], float]


def loaded(force: Force) -> Callable[[Mapping[str, float]], mbd.System]:
    """Return the oscillator with a vertical force; it stays below the pivot."""

    def build(p: Mapping[str, float]) -> mbd.System:
        frames = {"centre": mbd.Frame()}
        weight = mbd.RigidBody("weight", p["m"], [0.01] * 3, position=(0, -1.2, 0), frames=frames)
        spring = mbd.SpringDamper(
            "spring", GROUND.frame("pivot"), weight.frame("centre"), p["k"], length=1.0
        )
        push = mbd.force("push", weight.frame("centre"), lambda t, x: (0, force(p, t, x), 0))
        return mbd.System([GROUND, weight], loads=[spring, push])

    return build


def both(build: Any, values: Mapping[str, float] = VALUES) -> list[dict[str, float]]:
    """Return the forward derivatives and those of the adjoint."""
    forward = mbd.run_sensitivities(build, values, **OPTIONS).derivative(HEIGHT.of)
    return [forward, dict(mbd.design.run_gradient(build, values, HEIGHT, **OPTIONS).gradient)]


@pytest.mark.parametrize(
    ("force", "cause"),
    [
        (lambda p, t, x: 10.0 * (t > p["begin"]), "'begin'"),
        (lambda p, t, x: -3.0 * np.sign(x.velocity[1]), "the motion"),
        (lambda p, t, x: 5.0 * np.sin(9 * t) + 4.0 * (x.position[1] > -1.1), "the motion"),
    ],
    ids=["time", "friction", "position"],
)
def test_jumps_that_move_are_errors(force: Force, cause: str) -> None:
    build, match = loaded(force), f"'push' jumps at .* depends on {cause}"
    with pytest.raises(InputError, match=match):
        mbd.run_sensitivities(build, VALUES, **OPTIONS)
    with pytest.raises(InputError, match=match):
        mbd.design.run_gradient(build, VALUES, HEIGHT, **OPTIONS)


def test_small_jump_is_a_warning() -> None:
    build = loaded(lambda p, t, x: 10.0 * np.sin(9 * t) + 0.02 * (t > p["begin"]))
    with pytest.warns(AccuracyWarning, match="'push' jumps at t = 0.0513 s") as records:
        both(build)
    assert len(records) == 2  # one for each of the two runs


@pytest.mark.parametrize(
    "force",
    [
        lambda p, t, x: p["k"] / 40 * (t > 0.0513),
        lambda p, t, x: -200.0 * max(t - p["begin"], 0.0),
        lambda p, t, x: 10.0 * np.sin(300 * t) - 3.0 * x.velocity[1],
    ],
    ids=["fixed jump", "kink", "smooth"],
)
def test_other_loads_agree_with_differences(force: Force) -> None:
    """The derivatives of a kink have an error of first order in the step of the differences."""
    build = loaded(force)
    for slopes in both(build):
        for name, value in VALUES.items():
            h = 1e-5 * value
            low, high = (
                HEIGHT.of(mbd.simulate(build({**VALUES, name: value + s * h}), **OPTIONS))
                for s in (-1, 1)
            )
            tolerance = 1e-6 / value
            assert slopes[name] == pytest.approx((high - low) / (2 * h), abs=tolerance), name


def test_bushing_of_a_turning_body() -> None:
    """The states between two steps have unit quaternions, which a bushing needs."""

    def build(p: Mapping[str, float]) -> mbd.System:
        frames = {"arm": mbd.Frame((0.03, 0.01, 0.2))}
        body = mbd.RigidBody("body", 2.0, [0.01, 0.012, 0.02], frames=frames, omega=(0.1, 0.2, 30))
        stiffness = [p["k"], 1.2e4, 2e4, 30.0, 40.0, 5.0]
        ends = GROUND.frame("pivot"), body.frame("arm")
        return mbd.System([GROUND, body], loads=[mbd.Bushing("mount", *ends, stiffness)])

    options: dict[str, Any] = {"t_end": 0.1, "dt": 5e-4, "tolerance": 1e-12}
    force = mbd.design.Functional("mount.force.x", "norm")
    slope = mbd.design.run_gradient(build, {"k": 1e4}, force, **options).gradient["k"]
    high, low = (force.of(mbd.simulate(build({"k": 1e4 + h}), **options)) for h in (1.0, -1.0))
    assert slope == pytest.approx((high - low) / 2, rel=1e-5)
