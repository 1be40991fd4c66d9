"""Factors from the inverses of the matrices of bodies: same motion, fewer factors, same memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import Stepper, System, consistent_state
from dolfinx_mbd.dynamics.stepping import body_factor
from dolfinx_mbd.dynamics.stepping.body_factor import BodyFactor
from dolfinx_mbd.dynamics.stepping.iteration_matrix import DenseFactor
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.mechanism.mechanisms import EngineDesign, inline_engine
from tests.models.beams import slender_rod

pytestmark = pytest.mark.skipif(not COMPILED, reason="without numba, matrices are factorized")


def engine(cylinders: int = 4) -> System:
    """Return an engine with flexible rods and gas."""
    rod = slender_rod(length=0.14, bending=4, axial=1)
    return inline_engine(rod, EngineDesign(cylinders=cylinders), speed=300.0)


def chain(kind: str = "spherical", spring: float = 0.0, count: int = 12) -> System:
    """Return a chain of rigid bars on a curve, with torsion springs `spring` between them."""
    curve = mbd.mechanism.Curve.of(lambda u: (u, 0.3 * u**2, 0.0), -2.0, 2.0, count=60)
    ground = mbd.Ground({"curve": mbd.Frame()})
    ends = {"a": mbd.Frame(), "b": mbd.Frame((1.0, 0.0, 0.0))}
    bars = [
        mbd.RigidBody(f"bar {k}", 1.0, [0.1] * 3, (0.5, 0, 0), frames=ends, position=(k, 0, 0))
        for k in range(count)
    ]
    pairs = [(one.frame("b"), two.frame("a")) for one, two in pairwise(bars)]
    joints = [mbd.mechanism.Joint(f"pin {k}", kind, *pair) for k, pair in enumerate(pairs)]
    slide = mbd.point_on_curve("slide", ground.frame("curve"), bars[0].frame("a"), curve)
    stiffness = [0.0] * 3 + [spring] * 3
    bushings = [mbd.Bushing(f"bushing {k}", *pair, stiffness) for k, pair in enumerate(pairs)]
    loads = bushings if spring else []
    return System([ground, *bars], [slide, *joints], loads=loads, gravity=(0.0, -9.81, 0.0))


SYSTEMS: dict[str, tuple[Callable[[], System], float]] = {
    "engine": (engine, 1e-5),
    "chain": (chain, 1e-3),
    "chain with springs": (lambda: chain(spring=1e-2), 1e-3),
}


def run(system: System, dt: float, steps: int, **options: Any) -> tuple[Any, Stepper]:
    """Return the last state after some steps, and the stepper."""
    stepper = Stepper(system, **options)
    state = stepper.begin(consistent_state(system), dt)
    for _ in range(steps):
        state = stepper.step(state, dt)
    return state, stepper


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_motion_is_that_with_a_factor_of_each_iteration(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The factors do not change the motion beyond the tolerance, and are used much longer."""
    build, dt = SYSTEMS[name]
    system = build()
    state, stepper = run(system, dt, 100, tolerance=1e-10)
    assert isinstance(stepper.corrector.factor, BodyFactor)
    monkeypatch.setattr(body_factor, "_FEWEST_UNKNOWNS", 10**6)
    expected, renewing = run(system, dt, 100, tolerance=1e-10, reuse=False)
    assert isinstance(renewing.corrector.factor, DenseFactor)
    assert stepper.factorizations <= 5
    round_off = 1e-13 / dt**2  # of accelerations, as that of angles of about 1 rad is 1e-13
    for key, allowed, floor in (("q", 1e-8, 0), ("v", 1e-7, 0), ("a", 1e-5, 1), ("lam", 1e-5, 1)):
        value, reference = getattr(state, key), getattr(expected, key)
        limit = allowed * np.abs(reference).max(initial=floor) + round_off * (key == "a")
        assert np.abs(value - reference).max() < limit, key


@pytest.mark.parametrize("name", SYSTEMS)
def test_no_more_iterations_than_with_the_complete_matrix(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The joints are renewed in each step, which takes fewer iterations and factorizations."""
    build, dt = SYSTEMS[name]
    system = build()
    _, stepper = run(system, dt, 200)
    monkeypatch.setattr(body_factor, "_FEWEST_UNKNOWNS", 10**6)
    _, plain = run(system, dt, 200)
    assert stepper.iterations <= plain.iterations
    assert 2 * stepper.factorizations < plain.factorizations


@pytest.mark.parametrize("name", ["engine", "chain"])
def test_solution_is_that_of_the_matrix(name: str) -> None:
    """After a rotation, the solution of the old factor is that of the present matrix."""
    build, dt = SYSTEMS[name]
    system = build()
    state, stepper = run(system, dt, 100)
    corrector, derivatives = stepper.corrector, stepper.formulas.derivatives(dt)
    stepper.step(state, dt)
    factor, eqs = corrector.factor, corrector.eqs
    assert isinstance(factor, BodyFactor)
    assert factor.steps > 20
    matrix, _ = corrector.matrix.evaluate(
        eqs, state.time + dt, dt * state.v, derivatives.a_by_move, derivatives.v_by_move
    )
    rhs = np.random.default_rng(3).normal(size=(len(matrix), 2))
    expected = np.linalg.solve(matrix, rhs)
    size = np.abs(expected).max()
    assert np.abs(factor.solve(rhs) - expected).max() < 1e-3 * size
    assert np.abs(factor.solve(rhs[:, 0].copy()) - expected[:, 0]).max() < 1e-3 * size


def test_local_errors_are_those_of_a_new_factor() -> None:
    """The mass matrix of the factor rotates with the bodies."""
    system, dt = engine(), 1e-4
    state, stepper = run(system, dt, 60)
    after = stepper.step(state, dt)
    assert isinstance(stepper.corrector.factor, BodyFactor)
    error, _ = stepper.local_error(state, after, dt)
    stepper.corrector.factor = None
    expected, _ = stepper.local_error(state, after, dt)
    assert np.abs(error - expected).max() < 0.02 * np.abs(expected).max()


def test_a_stepper_continues_identically_from_memory() -> None:
    """The memory contains the matrices, the joints and the use of the factor."""
    system, dt = engine(), 1e-5
    state, stepper = run(system, dt, 50)
    restored = Stepper(system)
    restored.restore(stepper.memory())
    for _ in range(20):
        state, same = stepper.step(state, dt), restored.step(state, dt)
        for key in ("q", "v", "a", "lam"):
            np.testing.assert_array_equal(getattr(same, key), getattr(state, key))
    assert restored.factorizations == stepper.factorizations
    factor, restored_factor = (s.corrector.factor for s in (stepper, restored))
    assert isinstance(factor, BodyFactor)
    assert isinstance(restored_factor, BodyFactor)
    assert factor.steps == restored_factor.steps


def test_small_systems_and_strong_couplings_have_complete_factors() -> None:
    """Stiff springs join all bars to one group, and a small matrix is factorized fast."""
    for system in (engine(1), chain(spring=1e6)):
        _, stepper = run(system, 1e-4, 3)
        assert isinstance(stepper.corrector.factor, DenseFactor)


def test_a_slow_new_factor_is_followed_by_one_of_the_complete_matrix() -> None:
    """A factor of bodies that was used for several steps is followed by another one of bodies."""
    system, dt = chain(), 1e-3
    state, stepper = run(system, dt, 10)
    corrector = stepper.corrector
    for steps, kind in ((10, BodyFactor), (1, DenseFactor), (0, BodyFactor)):
        if isinstance(corrector.factor, BodyFactor):
            corrector.factor.steps = steps
        corrector.discard()
        state = stepper.step(state, dt)
        assert isinstance(corrector.factor, kind)
