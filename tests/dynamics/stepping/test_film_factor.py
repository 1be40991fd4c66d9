"""Factors with elastic films: formula, groups of bodies, renewal, results of runs, restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.dynamics import Stepper, consistent_state
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.body_factor import BodyFactor
from dolfinx_mbd.dynamics.stepping.corrections import Step
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.kernels.films.frames import film_wrenches
from dolfinx_mbd.kernels.rotations import exp_rotation, quaternion_from_matrix, rotation_matrix
from dolfinx_mbd.mechanism.bearings import ElasticBearing
from dolfinx_mbd.mechanism.joints import FrameRef
from tests.mechanism.bearings.test_elastic_bearing import (
    LENGTH,
    bearing,
    elastic_body,
    journal_system,
)

pytestmark = pytest.mark.skipif(not COMPILED, reason="without numba, matrices are factorized")

DT = 2e-5
NAMES = "groups", "matrices", "unknowns"  # of the matrices of bodies in the memory of a factor


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


def gap_coefficients(eqs: Assembler) -> np.ndarray:
    """Return the coefficients of the gap of the only film at the present poses, (m,)."""
    film, (pair, surface) = eqs.loads.film_arguments("film")
    e_x, e_y, t_x, t_y = film.pair_motion(pair)[:4]
    assert isinstance(film, ElasticBearing)
    change = np.zeros((5, 3))  # around: the mean, cos θ, sin θ, ...; along: 1, 2z/length, ...
    change[1, :2], change[2, :2] = (e_x, 0.5 * LENGTH * t_x), (e_y, 0.5 * LENGTH * t_y)
    return surface[0] - change.ravel()


def gap_jacobian(eqs: Assembler, q: np.ndarray, t: float) -> np.ndarray:
    """Return the derivatives of `gap_coefficients` at q by increments, by central differences."""
    columns = []
    for unit in np.eye(eqs.system.num_velocities):
        values = []
        for sign in (1.0, -1.0):
            eqs.move(q, sign * 1e-6 * unit)
            eqs.update_poses(t)
            values.append(gap_coefficients(eqs))
        columns.append((values[0] - values[1]) / 2e-6)
    return np.column_stack(columns)


def forces_of_unit_pressures(eqs: Assembler, state: mbd.dynamics.State) -> np.ndarray:
    """Return the generalized forces of unit forces on the coefficients of the gap, (m, nv)."""
    eqs.put(state)
    eqs.update_poses(state.time)
    eqs.frames.update_jacobians()
    film, (pair, surface) = eqs.loads.film_arguments("film")
    assert isinstance(film, ElasticBearing)
    system, m = eqs.system, surface.shape[1]
    # the coefficients of cos θ and sin θ, with 1 and 2z/length along the axis, act on the journal
    loads, out = np.zeros((5, 3, 5)), np.zeros((m, system.num_velocities))
    for k, (around, along) in enumerate([(1, 0), (2, 0), (1, 1), (2, 1)]):
        loads[around, along, k] = -1.0 if k < 2 else -0.5 * LENGTH
    y = film.pair_motion(pair)
    wrenches = np.array([film_wrenches(pair.Q1, y, load) for load in loads.reshape(m, 5)])
    jacobians = eqs.frames.parts(eqs.frames.jacobian_table)
    for name, first in ((("ring", "bore"), 0), (("journal", "pin"), 6)):
        body, J = eqs.frames.frame_jacobian(system.frame_index(FrameRef(*name)), jacobians)
        out[:, system.v_slices[body]] += wrenches[:, first : first + 6] @ J
    out[:, system.v_slices[1]][:, 6:] += film.surface
    return out


@pytest.mark.parametrize("turned", [False, True])
def test_solution_is_that_of_the_matrix(turned: bool) -> None:
    """The solution is that of the matrix that is composed of differences of the gap.

    The film acts with the present directions, and changes with those after the time 1 / `v_by_move`
    at constant velocities. The film has new derivatives, and the bodies have rotated if `turned`.
    """
    steps, state = stepper()
    corrector, eqs, derivatives = steps.corrector, steps.assembler, steps.formulas.derivatives(DT)
    n, zero = steps.system.num_velocities, np.zeros(steps.system.num_velocities)
    eqs.put(state)
    eqs.residual(state.time)
    factor = corrector.refactor(state.time, DT, zero, derivatives)
    assert isinstance(factor, BodyFactor)
    inverse = np.zeros((n, n))  # T⁻¹ in the axes of the bodies: each is one group
    groups, matrices, unknowns = (factor.memory()[f"bodies_{k}"] for k in NAMES)
    assert len(groups) == 2
    for first, size, *_, start in groups:
        part = unknowns[first : first + size]
        inverse[np.ix_(part, part)] = matrices[start : start + size**2].reshape(size, size)
    if turned:
        state = advance(steps, state, 3)
        turn = exp_rotation(np.array([0.0, 0.0, 0.4]))
        for part in steps.system.q_slices[1:]:
            state.q[part][:3] = turn @ state.q[part][:3]
            old = rotation_matrix(state.q[part][3:7])
            state.q[part][3:7] = quaternion_from_matrix(turn @ old)
    for part in steps.system.v_slices[1:]:  # both bodies rotate, so that the directions change
        state.v[part][:6] = 0.3, -0.2, 0.1, 100.0, -200.0, 400.0
    eqs.put(state)
    eqs.residual(state.time)
    factor.connect()
    factor.renew_films(derivatives)
    Q = np.eye(n)
    for part, columns in zip(steps.system.q_slices[1:], steps.system.v_slices[1:], strict=True):
        first = columns.start
        Q[first : first + 3, first : first + 3] = rotation_matrix(eqs.q[part][3:7])
    D = eqs.loads.gap_stiffness(0, derivatives.v_by_move, assembled=False) / -derivatives.a_by_move
    eqs.frames.update_jacobians()
    B, t = corrector.mass * eqs.constraint_matrix(), state.time
    rows = gap_jacobian(eqs, state.q, t)
    actions = forces_of_unit_pressures(eqs, state)
    eqs.move(state.q, state.v / derivatives.v_by_move)
    columns = gap_jacobian(eqs, eqs.q.copy(), t)
    assert np.abs(columns - rows).max() > 1e-3  # the directions matter
    eqs.put(state)
    S = np.zeros((n + len(B), n + len(B)))
    S[:n, :n] = np.linalg.inv(Q @ inverse @ Q.T) + actions.T @ D @ columns
    S[n:, :n], S[:n, n:] = B, B.T
    b = np.random.default_rng(1).normal(size=(len(S), 2))
    expected = np.linalg.solve(S, b)
    limit = 1e-6 * np.abs(expected).max()  # by the differences
    assert np.abs(factor.solve(b.copy()) - expected).max() < limit
    assert np.abs(factor.solve(b[:, 0].copy()) - expected[:, 0]).max() < limit
    S[:n, :n] += actions.T @ D @ (rows - columns)  # with the present directions
    assert np.abs(np.linalg.solve(S, b) - expected).max() > 100 * limit


def test_a_film_does_not_couple_bodies_but_a_spring_does() -> None:
    """The ring and the journal are two groups of bodies, and one group with a stiff spring."""
    body = elastic_body()
    system = journal_system(bearing(body), body, 3000.0)
    _, ring, journal = system.bodies
    for stiffness, count in ((0.0, 2), (1e9, 1)):
        ends = ring.frame("bore"), journal.frame("pin")
        spring = mbd.Bushing("spring", *ends, [stiffness] * 3 + [0.0] * 3)
        coupled = mbd.System(system.bodies, system.joints, loads=[*system.loads, spring])
        steps = Stepper(coupled)
        steps.step(steps.begin(consistent_state(coupled), DT), DT)
        assert isinstance(steps.corrector.factor, BodyFactor)
        assert len(steps.corrector.factor.memory()["bodies_groups"]) == count


def maxwell(motion: Any) -> Any:
    """Return force and moment of a spring of 2 MN/m and a damper in series, and the rates."""
    stretch = motion.states  # of the spring, m
    return -2e6 * stretch, (0, 0, 0), motion.velocity - 2e6 / 500.0 * stretch


def test_loads_with_states_are_permitted() -> None:
    """States of a load are unknowns without rotating axes; the motion is that of new matrices."""
    body = elastic_body()
    base = journal_system(bearing(body), body, 3000.0)
    _, ring, journal = base.bodies
    ends = ring.frame("bore"), journal.frame("pin")
    damper = mbd.PairLoad("damper", *ends, maxwell, states=(0.0, 0.0, 0.0))
    system = mbd.System(base.bodies, base.joints, loads=[*base.loads, damper])
    final = []
    for reuse in (True, False):
        steps = Stepper(system, tolerance=1e-10, reuse=reuse)
        final.append(advance(steps, steps.begin(consistent_state(system), DT), 30))
        assert isinstance(steps.corrector.factor, BodyFactor)
    for name in ("q", "v"):
        value, reference = (getattr(state, name) for state in final)
        np.testing.assert_allclose(value, reference, atol=1e-8 * np.abs(reference).max())


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
    assert np.abs(forces).max() > 1.0 and isinstance(corrector.factor, BodyFactor)
    for error, renewed in ((0.0, False), (1e-6, False), (0.1, True)):
        before = corrector.factor.memory()["bodies_stiffness"]
        # forces before the last correction, and predicted ones after it; `forces` are the true ones
        step.film_forces = np.zeros(len(forces)), (1.0 + error) * forces
        assert corrector.renew_films(step)  # the factor contains films; they may be unchanged
        after = corrector.factor.memory()["bodies_stiffness"]
        assert np.array_equal(after, before) != renewed


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
            corrector.connect_bodies()
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
        if isinstance(factor, BodyFactor) and steps.corrector.renewals > 0:
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
