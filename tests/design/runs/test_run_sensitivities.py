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
from dolfinx_mbd.errors import AccuracyWarning, InputError
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from tests.design.runs.mechanisms import (
    GROUND,
    double_pendulum,
    oscillator,
    slider_crank,
)
from tests.models.beams import slender_rod
from tests.models.bodies import box
from tests.models.rods import rod

TIGHT = 1e-12


def differences(
    build: Callable[[Mapping[str, float]], mbd.System],
    values: Mapping[str, float],
    output: Callable[[mbd.results.Solution], Any],
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
    """y = −1 − 0.2 cos ωt: errors are of second order, and 1e-8 after extrapolation.

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
        pytest.param(
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
            marks=pytest.mark.slow,
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


def test_the_run_uses_the_exact_tangent_of_the_last_step() -> None:
    """The run hardly factorizes its own matrix, and its results agree within the tolerance."""
    options: dict[str, Any] = {"t_end": 0.02, "dt": 2e-4}
    values = {"stiffness": 1.0, "radius": 0.2, "piston": 0.3}
    result = mbd.run_sensitivities(slider_crank, values, **options).run
    run = mbd.simulate(slider_crank(values), **options)
    assert result.factorizations < 0.2 * run.factorizations
    assert result.iterations < 1.2 * run.iterations
    force, expected = (x.joint("crank pin").force for x in (result, run))
    assert np.abs(force - expected).max() <= 1e-5 * np.abs(expected).max()


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
        mbd.design.run_gradient(driven, {"m": 1.0}, mbd.design.Functional("pin.force.y"), **options)


def test_bodies_that_jump_are_errors() -> None:
    """The sign of a mode changes at the value; a large step of a smooth function is no error."""

    def build(p: Mapping[str, float], turns: bool = True) -> mbd.System:
        body, signs = rod(), np.ones(2)
        signs[0] = -1.0 if turns and p["x"] > 1.0 else 1.0
        changed = body.replace(
            stiffness=(1 + (p["x"] - 1) ** 2) * body.stiffness,
            interfaces=[replace(i, motion=i.motion * signs) for i in body.interfaces],
        )
        return mbd.System([mbd.Ground(), mbd.FlexibleBody("rod", changed)])

    options: dict[str, Any] = {"t_end": 0.01, "dt": 1e-3, "steps": {"x": 0.3}}
    with pytest.raises(InputError, match="body 'rod' is not a smooth function of 'x'"):
        mbd.run_sensitivities(build, {"x": 1.0}, **options)
    result = mbd.run_sensitivities(lambda p: build(p, turns=False), {"x": 1.0}, **options)
    assert np.isfinite(result.increments).all()


def test_equations_that_jump_are_errors() -> None:
    """A jump or a kink of a stiffness at the value raises an error, a parabola does not."""
    options: dict[str, Any] = {"t_end": 0.1, "dt": 0.01, "steps": {"x": 0.1}}
    laws: list[Callable[[float], float]] = [
        lambda x: 400.0 + 40.0 * (x > 1),
        lambda x: 400 + abs(x - 1),
        lambda x: 400 - abs(x - 1),
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


def test_multiple_frequencies_need_the_modes_of_the_base(comm: MPI.Intracomm) -> None:
    """A shape splits the equal bending modes of a square bar, so that its own modes jump."""
    mesh = box(comm, size=(0.2, 0.02, 0.02), cells=(6, 2, 2))
    model = mbd.ElasticModel(mesh, mbd.STEEL)
    x = ufl.SpatialCoordinate(model.plain_mesh)
    # along the diagonal of the section
    stretch = ufl.as_vector([0 * x[0], x[1] + x[2], x[1] + x[2]])
    reduction = mbd.reduce(model, interfaces=["left", "right"], num_modes=4)
    table = mbd.sensitivities(reduction, [mbd.Parameter("h", "shape", velocity=stretch)])

    def build(p: Mapping[str, float], own_modes: bool) -> mbd.System:
        body = mbd.FlexibleBody("bar", table.at({"h": p["h"]}, own_modes=own_modes))
        return mbd.System([mbd.Ground(), body], gravity=(0, -9.81, 0))

    options: dict[str, Any] = {"t_end": 1e-4, "dt": 1e-5, "steps": {"h": 1e-4}}
    functional = mbd.design.Functional("bar.eta.1", "final")
    with pytest.raises(InputError, match="own_modes=False"):
        mbd.design.run_gradient(lambda p: build(p, True), {"h": 0.0}, functional, **options)
    result = mbd.design.run_gradient(lambda p: build(p, False), {"h": 0.0}, functional, **options)
    assert np.isfinite(result.gradient["h"])


def test_contacts_are_an_error() -> None:
    def bouncing(p: Mapping[str, float]) -> mbd.System:
        frames = {"pin": mbd.Frame((0, 0.5, 0))}
        bob = mbd.RigidBody("bob", p["m"], [0.01] * 3, position=(0, -0.5, 0), frames=frames)
        pin = mbd.revolute("pin", GROUND.frame("pivot"), bob.frame("pin"))
        stop = mbd.mechanism.JointStop("stop", "pin", mbd.ContactLaw(1e4), upper=0.1)
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


def test_changed_lengths_in_short_steps() -> None:
    """Lengths of a slider-crank move the start; the side force on the piston has a closed form.

    The crank turns by φ = φ₀ + Ωt, and the piston is at x = r cos φ + √(l² − r² sin² φ). Without
    friction and with massless parts other than the piston, the side force is m ẍ tan β, where
    sin β = r sin φ / l.
    """
    speed, phi0, mass = 300.0, 0.7, 0.3

    def build(p: Mapping[str, float]) -> mbd.System:
        r, length = p["r"], p["l"]
        axes = [[0.0, 0, 1], [1, 0, 0], [0, 1, 0]]  # z of a frame is x of its body
        pin = r * np.array([np.cos(phi0), np.sin(phi0), 0.0])
        end = np.array([pin[0] + np.sqrt(length**2 - pin[1] ** 2), 0.0, 0.0])
        ground = mbd.Ground({"pivot": mbd.Frame(), "guide": mbd.Frame(axes=axes)})
        crank_rotation = (np.cos(phi0 / 2), 0, 0, np.sin(phi0 / 2))
        small = 1e-9, [1e-11] * 3  # mass and moments of inertia
        ends = {"pivot": mbd.Frame(), "pin": mbd.Frame((r, 0, 0))}
        crank = mbd.RigidBody("crank", *small, frames=ends, rotation=crank_rotation)
        ends = {"big": mbd.Frame(), "small": mbd.Frame((length, 0, 0))}
        rod = mbd.RigidBody("rod", *small, frames=ends)
        rod = mbd.place(rod, by="big", at=pin, rotation=(0, 0, -np.arcsin(pin[1] / length)))
        ends = {"pin": mbd.Frame(), "guide": mbd.Frame(axes=axes)}
        piston = mbd.RigidBody("piston", mass, [1e-4] * 3, frames=ends, position=end)
        joints = [
            mbd.revolute("main", ground.frame("pivot"), crank.frame("pivot")),
            mbd.cylindrical("big end", crank.frame("pin"), rod.frame("big")),
            mbd.spherical("small end", rod.frame("small"), piston.frame("pin")),
            mbd.prismatic("guide", ground.frame("guide"), piston.frame("guide")),
        ]
        drivers = [mbd.Driver("drive", "main", mbd.constant_speed(speed, phi0), offset=0.0)]
        return mbd.System([ground, crank, rod, piston], joints, drivers=drivers)

    def side(r: Any, length: Any, t: np.ndarray) -> np.ndarray:
        phi = phi0 + speed * t
        s, c = r * np.sin(phi), r * np.cos(phi)
        root = np.sqrt(length**2 - s**2)
        x_ddot = -c * speed**2 - (c**2 - s**2) * speed**2 / root - (s * c) ** 2 * speed**2 / root**3
        return np.abs(mass * x_ddot * s / root)

    values, dt = {"r": 0.04, "l": 0.137}, 5e-6
    result = mbd.run_sensitivities(build, values, t_end=60 * dt, dt=dt)
    slopes = result.derivative(lambda run: np.linalg.norm(run.joint("guide").force, axis=1))
    t = result.run.time
    for name, value in values.items():
        h = 1e-6 * value
        high, low = (side(*({**values, name: value + f * h}).values(), t) for f in (1, -1))
        exact = (high - low) / (2 * h)
        assert np.abs(slopes[name] - exact)[1:].max() < 1e-3 * np.abs(exact).max(), name


def turning(p: Mapping[str, float]) -> mbd.System:
    """Return a bar that a driver turns, with a force of another frequency."""
    frames = {"pin": mbd.Frame((-0.5, 0, 0))}
    bar = mbd.RigidBody("bar", 1.0, [0.01] * 3, position=(0.5, 0, 0), frames=frames)
    pin = mbd.revolute("pin", GROUND.frame("pivot"), bar.frame("pin"))
    push = mbd.force("push", bar.frame("pin"), lambda t, x: (np.sin(p["load"] * t), 0, 0))
    drive = mbd.Driver("drive", "pin", mbd.constant_speed(p["speed"]))
    return mbd.System([GROUND, bar], [pin], loads=[push], drivers=[drive])


def test_speed_of_a_driver_over_many_turns() -> None:
    """x = cos(Ωt)/2 has the derivative −t sin(Ωt)/2; the default step 1e-4 Ω is too large.

    In 10 s, it turns the joint by 1e-4 · 200 · 10 = 0.2 rad.
    """
    values, options = {"speed": 200.0, "load": 3.0}, {"t_end": 10.0, "dt": 5e-3}

    def error(steps: Mapping[str, float] | None) -> float:
        result = mbd.run_sensitivities(turning, values, steps=steps, **options)
        t = result.run.time
        slopes = result.derivative(lambda run: run.body("bar").position[:, 0])["speed"]
        return float(np.abs(slopes + 0.5 * t * np.sin(200.0 * t)).max() / 5.0)

    with pytest.warns(AccuracyWarning, match=r"respect to 'speed' .* steps={'speed': 0.0002}"):
        assert 1e-3 < error(None) < 1e-2
    assert error({"speed": 2e-4}) < 1e-6


def test_output_that_oscillates_with_a_parameter() -> None:
    """The force sin(ωt) has the derivative t cos(ωt), without an effect on the motion."""
    values = {"load": 300.0, "speed": 1.0}
    result = mbd.run_sensitivities(turning, values, t_end=1.0, dt=2e-3)
    slopes = result.derivative(lambda run: run.element("push").force[:, 0])
    t = result.run.time
    assert slopes["load"] == pytest.approx(t * np.cos(300.0 * t), abs=1e-4)
    assert np.abs(slopes["speed"]).max() < 1e-9


def test_most_steps_of_an_engine_need_one_correction() -> None:
    rod = slender_rod(0.14, 0.02, 2e11, 7870.0)

    def build(p: Mapping[str, float]) -> mbd.System:
        design = EngineDesign(crank_radius=0.04, piston_mass=p["piston"])
        return inline_engine(rod, design, speed=600.0)

    result = mbd.run_sensitivities(build, {"piston": 0.4}, t_end=1e-3, dt=1e-5)
    plain = mbd.simulate(build(result.values), t_end=1e-3, dt=1e-5)
    assert result.run.iterations < min(130, 0.75 * plain.iterations)  # 100 steps
