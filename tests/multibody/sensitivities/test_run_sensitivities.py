"""Derivatives of simulations: closed forms, and central differences of whole runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import ufl
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import InputError
from tests.models.bodies import box
from tests.models.rods import rod
from tests.multibody.sensitivities.mechanisms import (
    GROUND,
    double_pendulum,
    oscillator,
    slider_crank,
)

TIGHT = 1e-12


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
    with pytest.raises(InputError, match="k is zero"):
        mbd.run_sensitivities(oscillator, {"k": 0.0, "m": 1.0}, t_end=0.1, dt=0.01)

    def changing(p: Mapping[str, float]) -> mbd.System:
        bodies = [mbd.RigidBody("a", 1.0, [0.01] * 3), mbd.RigidBody("b", 1.0, [0.01] * 3)]
        return mbd.System([GROUND, *bodies[: 1 if p["x"] < 1.0 else 2]])

    with pytest.raises(InputError, match="different sizes"):
        mbd.run_sensitivities(changing, {"x": 1.0}, t_end=0.1, dt=0.01)

    with pytest.raises(InputError, match="unknown parameter 'x'"):
        mbd.run_sensitivities(oscillator, {"k": 1.0, "m": 1.0}, t_end=0.1, dt=0.01, steps={"x": 1})

    for changes in ({"t_end": 1e300, "dt": 1e-12}, {"t_end": 1e300, "dt": 1, "stride": 10**400}):
        with pytest.raises(InputError, match="t_end must be a value that fits into memory"):
            mbd.run_sensitivities(oscillator, {"k": 1.0, "m": 1.0}, **changes)


def test_contradictory_driver_is_an_error() -> None:
    """As in `simulate`, the rate of a driver must be that of its position."""

    def driven(p: Mapping[str, float]) -> mbd.System:
        frames = {"pin": mbd.Frame((0, 0.5, 0))}
        bob = mbd.RigidBody("bob", p["m"], [0.01] * 3, position=(0, -0.5, 0), frames=frames)
        pin = mbd.revolute("pin", GROUND.frame("pivot"), bob.frame("pin"))
        driver = mbd.Driver("drive", "pin", lambda t: (t * t, 3 * t, 3.0))
        return mbd.System([GROUND, bob], [pin], drivers=[driver])

    options: dict[str, Any] = {"t_end": 0.1, "dt": 0.01}
    with pytest.raises(InputError, match="driver 'drive': the rate"):
        mbd.run_sensitivities(driven, {"m": 1.0}, **options)
    with pytest.raises(InputError, match="driver 'drive': the rate"):
        mbd.run_gradient(driven, {"m": 1.0}, mbd.Functional("pin.force.y"), **options)


def test_bodies_that_jump_are_errors() -> None:
    """The sign of a mode changes at the value; a large step of a smooth function is no error."""

    def build(p: Mapping[str, float], turns: bool = True) -> mbd.System:
        body, turn = rod(), np.ones(2)
        turn[0] = -1.0 if turns and p["x"] > 1.0 else 1.0
        changed = body.replace(
            stiffness=(1 + (p["x"] - 1) ** 2) * body.stiffness,
            interfaces=[replace(i, motion=i.motion * turn) for i in body.interfaces],
        )
        return mbd.System([mbd.Ground(), mbd.FlexibleBody("rod", changed)])

    options: dict[str, Any] = {"t_end": 0.01, "dt": 1e-3, "steps": {"x": 0.3}}
    with pytest.raises(InputError, match="body 'rod' is not a smooth function of 'x'"):
        mbd.run_sensitivities(build, {"x": 1.0}, **options)
    result = mbd.run_sensitivities(lambda p: build(p, turns=False), {"x": 1.0}, **options)
    assert np.isfinite(result.increments).all()


def test_equations_that_jump_are_errors() -> None:
    """A stiffness with a jump or a kink at the value; a parabola is no error."""
    options: dict[str, Any] = {"t_end": 0.1, "dt": 0.01, "steps": {"x": 0.1}}
    laws: list[Callable[[float], float]] = [
        lambda x: 400.0 + 40.0 * (x > 1),
        lambda x: 400 + abs(x - 1),
    ]
    for law in laws:
        with pytest.raises(InputError, match="not a smooth function of 'x'"):
            mbd.run_sensitivities(
                lambda p, law=law: oscillator({"k": law(p["x"]), "m": 2.0}), {"x": 1.0}, **options
            )
    smooth = mbd.run_sensitivities(
        lambda p: oscillator({"k": 400 + (p["x"] - 1) ** 2, "m": 2.0}), {"x": 1.0}, **options
    )
    assert np.abs(smooth.increments).max() == 0.0


def test_equal_frequencies_need_the_modes_of_the_base(comm: MPI.Intracomm) -> None:
    """A shape splits the equal bending modes of a square bar, so that its own modes jump."""
    mesh = box(comm, size=(0.2, 0.02, 0.02), cells=(6, 2, 2))
    model = mbd.ElasticModel(mesh, mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    across = ufl.as_vector([0 * x[0], x[1] + x[2], x[1] + x[2]])
    reduction = mbd.reduce(model, interfaces=["left", "right"], num_modes=4)
    table = mbd.sensitivities(reduction, [mbd.Parameter("h", "shape", velocity=across)])

    def build(p: Mapping[str, float], own_modes: bool) -> mbd.System:
        body = mbd.FlexibleBody("bar", table.at({"h": p["h"]}, own_modes=own_modes))
        return mbd.System([mbd.Ground(), body], gravity=(0, -9.81, 0))

    options: dict[str, Any] = {"t_end": 1e-4, "dt": 1e-5, "steps": {"h": 1e-4}}
    functional = mbd.Functional("bar.eta.1", "final")
    with pytest.raises(InputError, match="own_modes=False"):
        mbd.run_gradient(lambda p: build(p, True), {"h": 0.0}, functional, **options)
    result = mbd.run_gradient(lambda p: build(p, False), {"h": 0.0}, functional, **options)
    assert np.isfinite(result.gradient["h"])


def test_contacts_are_an_error() -> None:
    def bouncing(p: Mapping[str, float]) -> mbd.System:
        frames = {"pin": mbd.Frame((0, 0.5, 0))}
        bob = mbd.RigidBody("bob", p["m"], [0.01] * 3, position=(0, -0.5, 0), frames=frames)
        pin = mbd.revolute("pin", GROUND.frame("pivot"), bob.frame("pin"))
        stop = mbd.JointStop("stop", "pin", mbd.ContactLaw(1e4), upper=0.1)
        return mbd.System([GROUND, bob], [pin], loads=[stop])

    with pytest.raises(InputError, match="'stop' acts only while a gap is closed"):
        mbd.run_sensitivities(bouncing, {"m": 1.0}, t_end=0.1, dt=0.01)


def test_value_of_zero() -> None:
    values = {"mass": 1.5, "length": 0.5, "k": 3.0, "g": 9.81, "side": 0.0}
    options: dict[str, Any] = {"t_end": 0.1, "dt": 2e-3, "tolerance": TIGHT}
    result = mbd.run_sensitivities(double_pendulum, values, steps={"side": 0.01}, **options)
    low, high = (
        mbd.simulate(double_pendulum({**values, "side": side}), **options) for side in (-0.01, 0.01)
    )
    expected = (high.body("lower").position - low.body("lower").position) / 0.02
    slope = result.derivative(lambda run: run.body("lower").position)["side"]
    assert np.abs(slope - expected).max() <= 1e-6 * np.abs(expected).max()
