"""Time steps of a mechanism as compiled functions of its `Model`.

They take the steps of `Stepper` with reuse of the factorization and dense matrices: the same
prediction, iteration matrix, tests of convergence and corrections. `a_by_move` and `v_by_move` are
the derivatives of accelerations and velocities with respect to the increments of a step.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.frames import frame_velocities
from dolfinx_mbd.kernels.group_rotations import orientations, rotate_back, rotate_forward
from dolfinx_mbd.kernels.joints import (
    ABOUT,
    joint_angles,
    joint_frames,
    joint_gradients,
    joint_values,
)
from dolfinx_mbd.kernels.matrices import fill
from dolfinx_mbd.kernels.mechanism_steps.equations import (
    coordinates,
    derivatives,
    evaluate,
    move,
    update_poses,
)
from dolfinx_mbd.kernels.mechanism_steps.model import (
    ALPHA_F,
    ALPHA_M,
    BETA,
    DISPLACEMENT,
    DT,
    EARLIER,
    FACTOR,
    GAMMA,
    LAST,
    MASS,
    MULTIPLIER,
    NOISE,
    OF_ALL,
    RADIUS,
    ROTATION,
    ROTATION_RATE,
    SECOND_LAST,
    SMOOTH,
    TOLERANCE,
    VELOCITY,
    A,
    Model,
    Q,
    V,
)
from dolfinx_mbd.kernels.small_vectors import Array
from dolfinx_mbd.kernels.time_steps import (
    correct,
    largest_coordinates,
    largest_product,
    predict,
    relative_forces,
    relative_residual,
    right_hand_side,
    round_off,
    step_rotations,
)

# Constants of `integrators`, `corrections` and `convergence`; a test compares them
MAX_ITERATIONS, JUMP_ITERATIONS = 15, 2
SAFETY, NEXT_STEP_RATIO, THIS_STEP_RATIO, ROUND_OFF, COSTLY_ITERATIONS = 10.0, 0.07, 0.3, 1e-14, 4

DONE, NOT_CONVERGED, SINGULAR = range(3)


@inner_kernel
def copy(source: Array, target: Array) -> None:
    """Copy the numbers of an array."""
    for i in range(source.shape[0]):
        target[i] = source[i]


@inner_kernel
def factorize(S: Array, pivots: Array) -> bool:
    """Replace S (unknowns, unknowns) by its LU factors; return False if S is singular."""
    N = S.shape[0]
    for k in range(N):
        pivot, size = k, abs(S[k, k])
        for i in range(k + 1, N):
            if abs(S[i, k]) > size:
                pivot, size = i, abs(S[i, k])
        pivots[k] = pivot
        if size == 0.0:
            return False
        if pivot != k:
            for j in range(N):
                S[k, j], S[pivot, j] = S[pivot, j], S[k, j]
        upper, inverse = S[k], 1.0 / S[k, k]
        for i in range(k + 1, N):
            row = S[i]
            if row[k] != 0.0:
                factor = row[k] * inverse
                row[k] = factor
                for j in range(k + 1, N):
                    row[j] -= factor * upper[j]
    return True


@inner_kernel
def solve(S: Array, pivots: Array, x: Array) -> None:
    """Replace a right-hand side (unknowns,) by the solution of the factorized equations."""
    N = S.shape[0]
    for k in range(N):
        p = int(pivots[k])
        x[k], x[p] = x[p], x[k]
    for i in range(N):
        row, total = S[i], x[i]
        for j in range(i):
            total -= row[j] * x[j]
        x[i] = total
    for i in range(N - 1, -1, -1):
        row, total = S[i], x[i]
        for j in range(i + 1, N):
            total -= row[j] * x[j]
        x[i] = total / row[i]


@inner_kernel
def _refactor(m: Model, t: float, a_by_move: float, v_by_move: float) -> bool:
    """Factorize the iteration matrix at the point of evaluation."""
    derivatives(m, t)
    count = m.columns.shape[0]
    turns = np.zeros((count, 3, 3))
    step_rotations(m.move, m.columns, turns, m.carried)
    m.lu[:] = 0.0
    fill(m.K, m.C, m.M, m.B, m.columns, turns, a_by_move, v_by_move, m.numbers[MASS], m.lu)
    orientations(m.rotating, m.q, m.rotation, m.orientations)
    m.flags[NOISE] = 0.0
    done = factorize(m.lu, m.pivots)
    m.flags[FACTOR] = 1.0 if done else 0.0
    return done


@inner_kernel
def _solve(m: Model) -> None:
    """Replace `right` by a correction, as `Corrector.solve`."""
    rotate_back(m.rotating, m.q, m.rotation, m.orientations, m.group_turns, m.right)
    solve(m.lu, m.pivots, m.right)
    rotate_forward(m.rotating, m.group_turns, m.right)


@inner_kernel
def _joint_error(m: Model, a_by_move: float, error: float, last: bool) -> float:
    """Return the larger of an error and those of the joints, as `Corrector.joint_error`."""
    scale, tolerance = a_by_move * m.numbers[MASS], m.numbers[TOLERANCE]
    noise = m.noise if m.flags[NOISE] != 0.0 else m.no_noise
    joints = relative_forces(
        m.right, scale, m.lam, noise, m.values, m.rotations, m.parts, m.pairs, m.sizes, m.largest,
        tolerance,
    )  # fmt: skip
    if last and joints > 1.0 and m.flags[NOISE] == 0.0:
        round_off(
            m.scale, m.rotations, m.signs, m.largest[OF_ALL], a_by_move, m.numbers[MASS], m.samples
        )
        n, count, x = m.v.shape[0], m.samples.shape[1], np.zeros(m.samples.shape[0])
        m.noise[:] = 0.0
        for j in range(count):
            for i in range(x.shape[0]):
                x[i] = m.samples[i, j]
            solve(m.lu, m.pivots, x)
            for c in range(m.noise.shape[0]):
                m.noise[c] += x[n + c] * x[n + c]
        for c in range(m.noise.shape[0]):
            m.noise[c] = scale * math.sqrt(m.noise[c] / count)
        m.flags[NOISE] = 1.0
        joints = relative_forces(
            m.right, scale, m.lam, m.noise, m.values, m.rotations, m.parts, m.pairs, m.sizes,
            m.largest, tolerance,
        )  # fmt: skip
    return max(error, joints)


@inner_kernel
def _predict(m: Model) -> None:
    """Extrapolate a and λ, and compute increments and velocities, as `AlphaFormulas.predict`."""
    for x, x0, old in ((m.a, m.a0, m.earlier_a), (m.lam, m.lam0, m.earlier_lam)):
        for i in range(x.shape[0]):
            if m.flags[EARLIER] == 2.0:
                x[i] = 3 * (x0[i] - old[LAST, i]) + old[SECOND_LAST, i]
            elif m.flags[EARLIER] == 1.0:
                x[i] = 2 * x0[i] - old[LAST, i]
            else:
                x[i] = x0[i]
    velocity = m.velocity if m.flags[VELOCITY] != 0.0 else m.v0
    predict(
        m.a, m.a0, m.algorithmic, velocity, m.numbers[ALPHA_M : GAMMA + 1], m.numbers[DT], m.new,
        m.move, m.v,
    )  # fmt: skip


@inner_kernel
def _accept(m: Model, t: float, slow: bool) -> int:
    """Make the point of evaluation the state."""
    if slow:
        m.flags[FACTOR] = 0.0
    for x0, old in ((m.a0, m.earlier_a), (m.lam0, m.earlier_lam)):
        for i in range(x0.shape[0]):
            old[SECOND_LAST, i] = old[LAST, i]
            old[LAST, i] = x0[i]
    m.flags[EARLIER] = min(m.flags[EARLIER] + 1.0, 2.0)
    m.flags[VELOCITY] = 0.0
    m.now[0] = t
    angles = joint_angles(m.rotation, m.joint_first, m.joint_second, m.angles)
    copy(angles, m.angles0)
    copy(m.new, m.algorithmic)
    pairs = (m.q, m.q0), (m.v, m.v0), (m.a, m.a0), (m.lam, m.lam0)
    for source, target in pairs:
        copy(source, target)
    return DONE


@inner_kernel
def _step_derivatives(m: Model) -> tuple[float, float, float]:
    """Return the numbers of `AlphaFormulas.derivatives`."""
    dt, beta = m.numbers[DT], m.numbers[BETA]
    ratio = (1 - m.numbers[ALPHA_F]) / (1 - m.numbers[ALPHA_M])
    return 1 / (dt * dt * beta * ratio), m.numbers[GAMMA] / (dt * beta), ratio


@inner_kernel
def step(m: Model) -> int:
    """Take one step as `Stepper.step`; if it fails, the state is invalid."""
    a_by_move, v_by_move, ratio = _step_derivatives(m)
    n, mass, tolerance = m.v.shape[0], m.numbers[MASS], m.numbers[TOLERANCE]
    t = m.now[0] + m.numbers[DT]
    copy(m.angles0, m.angles)
    _predict(m)
    # the attributes `error`, `_factor`, `_factors` and `is_round_off` of `Monitor`
    before, factor, factors, small = math.nan, 0.0, -1, False
    for iteration in range(MAX_ITERATIONS + 1):
        move(m)
        evaluate(m, t)
        largest_coordinates(m.position, m.q, m.origins, 1e-3, m.largest)
        error = relative_residual(m.rows, m.scale, m.groups, tolerance, m.sizes)
        if not math.isfinite(error):
            return NOT_CONVERGED
        outdated = m.flags[FACTOR] != 0.0
        if not outdated and not _refactor(m, t, a_by_move, v_by_move):
            return SINGULAR
        right_hand_side(m.rows, m.values, a_by_move, mass, m.right)
        _solve(m)
        if m.lam.shape[0] > 0:
            error = _joint_error(m, a_by_move, error, error <= 1.0 or small)
        factors += 1
        exhausted = small and error > 0.5 * before
        if factors > 0:
            factor = max(factor, error / before)
        before = error
        if error <= 1.0 or exhausted:
            return _accept(m, t, factor > NEXT_STEP_RATIO)
        if not math.isfinite(error) or iteration == MAX_ITERATIONS:
            return NOT_CONVERGED
        remaining = min(COSTLY_ITERATIONS, MAX_ITERATIONS - iteration - 1)
        if outdated and (factor > THIS_STEP_RATIO or error * factor**remaining > 1.0):
            if not _refactor(m, t, a_by_move, v_by_move):
                return SINGULAR
            right_hand_side(m.rows, m.values, a_by_move, mass, m.right)
            _solve(m)
            outdated = False
        if not outdated:
            factor, factors = 0.0, 0
        correct(m.right, v_by_move, a_by_move, ratio, mass, m.move, m.v, m.a, m.new, m.lam)
        length = max(m.largest[OF_ALL], m.numbers[RADIUS])
        small = largest_product(m.right[:n], m.lengths) <= ROUND_OFF * length
        if m.numbers[SMOOTH] != 0.0 and factors > 1 and error * factor * SAFETY <= 1.0:
            move(m)
            update_poses(m, t)
            return _accept(m, t, factor > NEXT_STEP_RATIO)
    return NOT_CONVERGED


@inner_kernel
def put(m: Model) -> None:
    """Set the point of evaluation to the state."""
    pairs = (m.q0, m.q), (m.v0, m.v), (m.a0, m.a), (m.lam0, m.lam), (m.angles0, m.angles)
    for source, target in pairs:
        copy(source, target)


@inner_kernel
def jump(m: Model) -> int:
    """Adapt accelerations and multipliers to changed loads, as `Stepper.after_jump`."""
    a_by_move, v_by_move, _ = _step_derivatives(m)
    n, t = m.v.shape[0], m.now[0]
    put(m)
    for _ in range(JUMP_ITERATIONS):
        evaluate(m, t)
        if m.flags[FACTOR] == 0.0:
            m.move[:] = 0.0
            if not _refactor(m, t, a_by_move, v_by_move):
                return SINGULAR
        m.right[:] = 0.0
        for i in range(n):
            m.right[i] = -m.rows[i]
        _solve(m)
        for i in range(n):
            m.a[i] += m.right[i]
        for c in range(m.lam.shape[0]):
            m.lam[c] += m.numbers[MASS] * m.right[n + c]
    for i in range(n):
        m.algorithmic[i] += m.a[i] - m.a0[i]
    for x, x0, old in ((m.a, m.a0, m.earlier_a), (m.lam, m.lam0, m.earlier_lam)):
        for i in range(x.shape[0]):
            change = x[i] - x0[i]
            old[LAST, i] += change
            old[SECOND_LAST, i] += change
            x0[i] += change
    return DONE


@inner_kernel
def report(m: Model) -> int:
    """Compute the outputs at the state."""
    put(m)
    update_poses(m, m.now[0])
    frame_velocities(m.table, m.data, m.q, m.v, m.velocities)
    copy(m.angles0, m.angles)
    (_, rates, _), J = coordinates(m), m.joint_first.shape[0]
    p1, Q1, p2, Q2 = joint_frames(
        m.position, m.rotation, m.joint_first, m.joint_second, np.zeros(J), np.ones(J)
    )
    values, gradients = joint_values(p1, Q1, p2, Q2), joint_gradients(p1, Q1, p2, Q2)
    for k in range(m.reported.shape[0]):
        kind, i, c = m.reported[k, 0], m.reported[k, 1], m.reported[k, 2]
        value = 0.0
        if kind == Q:
            value = m.q0[i]
        elif kind == V:
            value = m.v0[i]
        elif kind == A:
            value = m.a0[i]
        elif kind == MULTIPLIER:
            value = -m.lam0[i] if i >= 0 else 0.0  # −1: no such constraint
        elif kind == ROTATION:
            value = m.angles0[i]
        elif kind == ROTATION_RATE:
            value = rates[i, ABOUT]
        elif kind == DISPLACEMENT:
            value = values[i, c]
        else:
            first, second = m.joint_first[i], m.joint_second[i]
            for b in range(6):
                value += gradients[i, c, b] * m.velocities[first, b]
                value += gradients[i, c, 6 + b] * m.velocities[second, b]
        m.outputs[k] = value
    return DONE


@inner_kernel
def run(m: Model, action: int) -> int:
    """Take a step (0), adapt to changed inputs (1), or compute the outputs (2)."""
    if action == 0:
        return step(m)
    return jump(m) if action == 1 else report(m)
