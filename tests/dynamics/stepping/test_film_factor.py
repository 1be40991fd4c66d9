"""Factors with elastic films: formula, groups of bodies, renewal, results of runs, restart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import Stepper, consistent_state
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.loads import Loads
from dolfinx_mbd.dynamics.stepping.corrections import Step
from dolfinx_mbd.dynamics.stepping.film_factor import BodyInverses, FilmFactor, _coupled
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


def test_solution_is_that_of_the_matrix() -> None:
    """The solution is that of the assembled matrix, for new connections, films and axes."""
    rng = np.random.default_rng(1)
    n, films, joints = 30, 7, 5
    groups = [slice(0, 12), slice(12, 25), np.arange(25, n)]
    matrices = [rng.normal(size=(m, m)) + 10 * np.eye(m) for m in (12, 13, 5)]
    parts = [(k, np.linalg.inv(matrix)) for k, matrix in zip(groups, matrices, strict=True)]
    # S = Q T Qᵀ + P₀ᵀ D P₁ with rows and columns of the joints: T contains matrices of groups of
    # bodies, Q the rotations since then, P the connections of films and joints, D blocks of films
    T = block_diag(*matrices)
    columns = np.array([0, 12])  # of the translations that rotate
    first, last = Rotation.random(2, rng=1).as_matrix(), Rotation.random(2, rng=2).as_matrix()
    mass, increments = rng.normal(size=(n, n)), rng.normal(size=n)
    bodies = BodyInverses(DT, mass, parts, columns, first)
    unrotated = np.tile(np.eye(3), (2, 1, 1))
    no_films = [np.zeros((films, films))]
    factor = FilmFactor(bodies, unrotated, rng.normal(size=(2, films + joints, n)), no_films)
    b = rng.normal(size=(n + joints, 2))
    for rotations in (first, last):
        P = rng.normal(size=(2, films + joints, n))
        P[1, films:] = P[0, films:]
        Q = np.eye(n)
        for k, R, old in zip(columns, rotations, first, strict=True):
            Q[k : k + 3, k : k + 3] = R @ old.T
        for renew in (False, True):
            blocks = [rng.normal(size=(m, m)) for m in (3, 4)]
            assert factor is not None
            factor = (
                factor.with_films(blocks) if renew else factor.renewed(P.copy(), blocks, rotations)
            )
            S = np.zeros((n + joints, n + joints))
            S[:n, :n] = Q @ T @ Q.T + P[0, :films].T @ block_diag(*blocks) @ P[1, :films]
            S[n:, :n], S[:n, n:] = P[0, films:], P[0, films:].T
            expected = np.linalg.solve(S, b)
            np.testing.assert_allclose(factor.solve(b.copy()), expected, atol=1e-9)
            np.testing.assert_allclose(factor.solve(b[:, 0].copy()), expected[:, 0], atol=1e-9)
            inertia = Q @ mass @ Q.T @ increments
            np.testing.assert_allclose(factor.inertia(increments), inertia, atol=1e-12)


def test_groups_of_bodies_that_other_loads_couple() -> None:
    """A film and a load on one body do not join bodies to a group, a spring between them does."""
    body = elastic_body()
    system = journal_system(bearing(body), body, 3000.0)
    _, ring, journal = system.bodies
    assert Loads(Frames(system)).groups_without_films() == [[1], [2]]
    spring = mbd.SpringDamper("spring", ring.frame("bore"), journal.frame("pin"), 1.0)
    coupled = mbd.System(system.bodies, system.joints, loads=[*system.loads, spring])
    assert Loads(Frames(coupled)).groups_without_films() == [[1, 2]]


def test_bodies_are_one_group_only_where_loads_couple_them_strongly() -> None:
    """Couplings count relative to the diagonal, in both triangles, and through a third body."""
    one, two, three = bodies = [np.arange(6 * k, 6 * k + 6) for k in range(3)]
    scale = np.repeat([1.0, 1e4, 1e-4], 6)
    T = np.diag(scale)

    def groups() -> list[list[int]]:
        return sorted(k.tolist() for k in _coupled(T, bodies))

    T[0, 7], T[8, 13] = 0.01 * 1e2, 0.01  # products of the roots of the diagonals: 1e2 and 1
    assert groups() == [k.tolist() for k in bodies]
    T[14, 3] = 0.5e-2
    assert groups() == [[*one, *three], two.tolist()]
    T[8, 13] = -0.5
    assert groups() == [[*one, *two, *three]]


def test_films_with_accurate_forces_keep_their_derivatives() -> None:
    """A film is renewed if its force differs from the prediction, otherwise its matrix is kept."""
    steps, state = stepper()
    corrector, eqs = steps.corrector, steps.assembler
    zero = np.zeros(steps.system.num_velocities)
    # the last two, increments and algorithmic accelerations, have no effect on the renewal
    step = Step(state, DT, state.time, steps.formulas.derivatives(DT), zero, zero)
    eqs.put(state)
    eqs.residual(state.time)
    (forces,) = eqs.loads.gap_forces()
    assert np.abs(forces).max() > 1.0 and isinstance(corrector.factor, FilmFactor)
    for error, renewed in ((0.0, False), (1e-6, False), (0.1, True)):
        (before,) = corrector.factor.blocks
        # forces before the last correction, and predicted ones after it; `forces` are the true ones
        step.film_forces = np.zeros(len(forces)), (1.0 + error) * forces
        assert corrector.renew_films(step)  # the factor contains films; they may be unchanged
        assert (corrector.factor.blocks[0] is not before) == renewed


def test_renewed_matrix_is_nearly_the_new_one() -> None:
    """After some steps, the renewal removes almost all of the error of the old matrix.

    The elastic coordinates of the ring and the translation of the journal are compared. Rotation
    of the journal and moments also depend on what is not renewed: constraints and drag torque.
    """
    steps, state = stepper()
    corrector, eqs = steps.corrector, steps.assembler
    derivatives, zero = steps.formulas.derivatives(DT), np.zeros(steps.system.num_velocities)
    rhs = np.random.default_rng(2).normal(size=len(zero) + steps.system.num_constraints)

    def solution(state: mbd.dynamics.State, renew: bool) -> np.ndarray:
        eqs.put(state)
        eqs.residual(state.time)
        if renew:
            step = Step(state, DT, state.time, derivatives, zero, zero)
            assert corrector.renew_films(step)  # the factor contains films
        else:
            corrector.refactor(state.time, DT, zero, derivatives)
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
        value, reference = getattr(state, name), getattr(expected, name)
        np.testing.assert_allclose(value, reference, atol=1e-7 * np.abs(reference).max())


def test_run_continues_identically_from_memory() -> None:
    """A stepper with the memory of another one, which has renewed its films, continues equally."""
    steps, state = stepper()
    for _ in range(20):
        factor = steps.corrector.factor
        if isinstance(factor, FilmFactor) and steps.corrector.renewals > 0:
            break
        state = steps.step(state, DT)
    else:
        pytest.fail("no step renewed the film of its matrix")
    restored = Stepper(steps.system)
    restored.restore(steps.memory())
    last, restored_last = advance(steps, state, 5), advance(restored, state, 5)
    for name in ("q", "v", "a", "lam"):
        np.testing.assert_array_equal(getattr(last, name), getattr(restored_last, name))
    assert restored.corrector.renewals == steps.corrector.renewals
