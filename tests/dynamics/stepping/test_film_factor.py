"""Renewal of elastic films in a factor: formula, effect, results of runs, restart."""

from __future__ import annotations

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import Stepper, consistent_state
from dolfinx_mbd.dynamics.stepping.film_factor import FilmFactor
from dolfinx_mbd.dynamics.stepping.iteration_matrix import DenseFactor
from tests.mechanism.bearings.test_elastic_bearing import bearing, elastic_body, journal_system

DT = 2e-5


def stepper(**options: object) -> tuple[Stepper, mbd.dynamics.State]:
    """Return a stepper of a journal in an elastic bore, and the state after 20 steps."""
    body = elastic_body()
    system = journal_system(bearing(body), body, 3000.0)
    steps = Stepper(system, **options)  # type: ignore[arg-type]
    return steps, advance(steps, steps.begin(consistent_state(system), DT), 20)


def advance(steps: Stepper, state: mbd.dynamics.State, count: int) -> mbd.dynamics.State:
    """Return the state after some steps."""
    for _ in range(count):
        state = steps.step(state, DT)
    return state


def test_solution_is_that_of_the_matrix_with_new_films() -> None:
    """Woodbury's formula agrees with the factors of the whole matrix, also after two renewals."""
    rng = np.random.default_rng(1)
    S, L = rng.normal(size=(30, 30)) + 10 * np.eye(30), rng.normal(size=(7, 30))
    blocks, second, third = ([rng.normal(size=(m, m)) for m in (3, 4)] for _ in range(3))
    factor = FilmFactor(DenseFactor.of(S.copy(order="F"), DT, np.eye(30)), L, blocks)
    b = rng.normal(size=(30, 2))
    np.testing.assert_allclose(factor.solve(b.copy(order="F")), np.linalg.solve(S, b), rtol=1e-9)
    for new in (second, third):
        factor = factor.renewed(new)
        change = np.zeros((7, 7))
        change[:3, :3], change[3:, 3:] = (x - y for x, y in zip(new, blocks, strict=True))
        expected = np.linalg.solve(S + L.T @ change @ L, b)
        np.testing.assert_allclose(factor.solve(b.copy(order="F")), expected, atol=1e-9)
        np.testing.assert_allclose(factor.solve(b[:, 0].copy()), expected[:, 0], atol=1e-9)


def test_renewed_matrix_is_nearly_the_new_one() -> None:
    """After some steps, the renewal removes almost all of the error of the old matrix.

    The elastic coordinates of the ring and the translation of the journal are compared. Rotation
    of the journal and moments also depend on what is not renewed: constraints and drag torque.
    """
    steps, state = stepper()
    corrector, eqs = steps.corrector, steps.assembler
    derivatives, still = steps.formulas.derivatives(DT), np.zeros(steps.system.num_velocities)
    rhs = np.random.default_rng(2).normal(size=len(still) + steps.system.num_constraints)

    def solution(state: mbd.dynamics.State, renew: bool) -> np.ndarray:
        eqs.put(state)
        eqs.residual(state.time)
        if renew:
            assert corrector.renew_films(derivatives)
        else:
            corrector.refactor(state.time, DT, still, derivatives)
        assert corrector.factor is not None
        return corrector.factor.solve(rhs.copy())[6:24]

    later = advance(steps, state, 5)
    expected, old = solution(later, renew=False), solution(state, renew=False)
    renewed = solution(later, renew=True)
    error = np.linalg.norm(old - expected)
    assert error > 1e-3 * np.linalg.norm(expected)
    assert np.linalg.norm(renewed - expected) < 1e-5 * error


def test_results_are_those_without_renewal() -> None:
    """States agree with those of a new matrix in each iteration, with far fewer matrices."""
    (steps, state), (plain, expected) = stepper(), stepper(reuse=False)
    assert steps.corrector.renewals > 0 and plain.corrector.renewals == 0
    assert steps.factorizations < 0.3 * plain.factorizations
    state, expected = advance(steps, state, 40), advance(plain, expected, 40)
    for name in ("q", "v"):
        one, two = getattr(state, name), getattr(expected, name)
        np.testing.assert_allclose(one, two, atol=1e-7 * np.abs(two).max())


def test_run_continues_bitwise_from_memory() -> None:
    """A stepper with the memory of another one, which has renewed its films, continues equally."""
    steps, state = stepper()
    for _ in range(20):
        factor = steps.corrector.factor
        if isinstance(factor, FilmFactor) and any("change" in name for name in factor.memory()):
            break
        state = steps.step(state, DT)
    else:
        pytest.fail("no step renewed the film of its matrix")
    other = Stepper(steps.system)
    other.restore(steps.memory())
    one, two = advance(steps, state, 5), advance(other, state, 5)
    for name in ("q", "v", "a", "lam"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert other.corrector.renewals == steps.corrector.renewals
