"""Prediction and correction of a time step, and its errors relative to their tolerances.

The arguments `a_by_move` and `v_by_move` are the derivatives of accelerations and velocities with
respect to the increments `move` of the step.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels import array_versions
from dolfinx_mbd.kernels.compilation import kernel, without_numba
from dolfinx_mbd.kernels.rotations import tangent3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    cross3,
    dot3,
    mv3,
    put33,
    scaled3,
    scaled33,
    transposed3,
    vector3,
)

_ROUND_OFF = 1e-15  # round-off of constraints relative to the largest coordinate, or in rad
_EQUATIONS = 1e-15  # round-off of equations of motion relative to the sum of their terms
# Smallest force or moment to which the error of a joint is related, relative to its bodies' forces
_FLOOR = 1e-5
_FORCES = 5.0  # tolerance of forces of joints relative to that of the equations of motion


@without_numba(array_versions.relative_residual)
@kernel
def relative_residual(
    rows: Array, scale: Array, groups: NDArray[np.int64], tolerance: float, size: Array
) -> float:
    """Return the largest ratio of a residual of the equations of motion to its tolerance.

    `size` receives the largest sum of terms of each group of equations.
    """
    count = size.shape[0]
    largest = np.zeros(count)
    size[:] = 0.0
    for i in range(rows.shape[0]):
        if not math.isfinite(rows[i]):
            return math.inf
        k = groups[i]
        largest[k] = max(largest[k], abs(rows[i]))
        size[k] = max(size[k], scale[i])
    error = 0.0
    for k in range(count):
        error = max(error, largest[k] / max(tolerance * size[k], 1e-300))
    return error


@kernel
def relative_forces(
    solution: Array,
    factor: float,
    lam: Array,
    noise: Array,
    values: Array,
    rotations: NDArray[np.bool_],
    parts: NDArray[np.int64],
    pairs: NDArray[np.int64],
    size: Array,
    lengths: Array,
    tolerance: float,
) -> float:
    """Return the largest ratio of an error of a joint to its tolerance, see `Measure.forces`.

    The last entries of `solution`, times `factor`, are the changes of the multipliers `lam` by a
    correction, and `noise` contains their round-off. `parts` contains the number of the force or
    moment to which each multiplier belongs, in ascending order. `pairs` contains the two groups of
    equations with the forces or moments on the two bodies of each constraint, or −1 for a body that
    does not move. `size` contains the size of each group. `lengths` (2,) contains the scale of
    violations, and the largest coordinate.
    """
    error, c, count = 0.0, 0, lam.shape[0]
    scale, largest = lengths[0], lengths[1]
    n = solution.shape[0] - count
    while c < count:
        first, change, force, round_off = c, 0.0, 0.0, 0.0
        while c < count and parts[c] == parts[first]:
            violation_allowed = tolerance + _ROUND_OFF
            if not rotations[c]:  # an error of a length, not of an angle
                violation_allowed = tolerance * scale + _ROUND_OFF * largest
            error = max(error, abs(values[c]) / violation_allowed)
            correction = factor * solution[n + c]
            change += correction * correction
            force += lam[c] * lam[c]
            round_off += noise[c] * noise[c]
            c += 1
        least = math.inf  # smallest group of forces or moments on the moving bodies
        for body in range(pairs.shape[1]):
            k = pairs[first, body]
            if k >= 0:
                least = min(least, size[k])
        if not math.isfinite(least):
            least = 0.0
        allowed = _FORCES * tolerance * max(math.sqrt(force), _FLOOR * least)
        allowed += math.sqrt(round_off)
        error = max(error, math.sqrt(change) / max(allowed, 1e-300))
    return error


@kernel
def round_off(
    scale: Array,
    rotations: NDArray[np.bool_],
    signs: Array,
    length: float,
    a_by_move: float,
    mass: float,
    out: Array,
) -> None:
    """Write right-hand sides of corrections that consist of round-off with the given signs."""
    n = scale.shape[0]
    for j in range(signs.shape[1]):
        for i in range(n):
            out[i, j] = signs[i, j] * _EQUATIONS * scale[i] / a_by_move
        for c in range(rotations.shape[0]):
            size = 1.0 if rotations[c] else length
            out[n + c, j] = signs[n + c, j] * mass * _ROUND_OFF * size


@kernel
def largest_coordinates(
    position: Array, q: Array, origins: NDArray[np.int64], least: float, out: Array
) -> None:
    """Write the largest coordinates of frames, and of frames and bodies, into `out` (2,).

    `origins` contains the indices of the first coordinates of the bodies' origins. The values are
    at least `least`.
    """
    size = least
    for i in range(position.shape[0]):
        for j in range(3):
            size = max(size, abs(position[i, j]))
    out[0] = size
    for i in origins:
        for j in range(3):
            size = max(size, abs(q[i + j]))
    out[1] = size


@without_numba(array_versions.largest_product)
@kernel
def largest_product(x: Array, factors: Array) -> float:
    """Return the largest magnitude of the products of two arrays (n,), NaN if one of them is."""
    size = 0.0
    for i in range(factors.shape[0]):
        product = abs(x[i]) * factors[i]
        if math.isnan(product):
            return product
        size = max(size, product)
    return size


@without_numba(array_versions.right_hand_side)
@kernel
def right_hand_side(rows: Array, values: Array, a_by_move: float, mass: float, out: Array) -> None:
    """Write the right-hand side of a correction: scaled negative residual and constraints."""
    n = rows.shape[0]
    for i in range(n):
        out[i] = -rows[i] / a_by_move
    for c in range(values.shape[0]):
        out[n + c] = -mass * values[c]


@without_numba(array_versions.correct)
@kernel
def correct(
    solution: Array,
    v_by_move: float,
    a_by_move: float,
    ratio: float,
    mass: float,
    move: Array,
    v: Array,
    a: Array,
    new: Array,
    lam: Array,
) -> None:
    """Add a correction (increments, scaled multipliers) to the state.

    The algorithmic accelerations `new` change by `ratio` times the change of a.
    """
    n = move.shape[0]
    for i in range(n):
        move[i] += solution[i]
        v[i] += v_by_move * solution[i]
        a[i] += a_by_move * solution[i]
        new[i] += ratio * a_by_move * solution[i]
    for c in range(lam.shape[0]):
        lam[c] += a_by_move * mass * solution[n + c]


@without_numba(array_versions.predict)
@kernel
def predict(
    guess: Array,
    a: Array,
    old: Array,
    velocity: Array,
    numbers: Array,
    dt: float,
    new: Array,
    move: Array,
    v: Array,
) -> None:
    """Compute increments and velocities by Newmark's formulas for guessed accelerations.

    `a` and `velocity` belong to the last step, `old` and `new` are the last and the next
    algorithmic accelerations, `numbers` contains α_m, α_f, β and γ.
    """
    alpha_m, alpha_f, beta, gamma = numbers
    for i in range(guess.shape[0]):
        new[i] = ((1 - alpha_f) * guess[i] + alpha_f * a[i] - alpha_m * old[i]) / (1 - alpha_m)
        move[i] = dt * velocity[i] + dt * dt * ((0.5 - beta) * old[i] + beta * new[i])
        v[i] = velocity[i] + dt * ((1 - gamma) * old[i] + gamma * new[i])


@kernel
def step_rotations(move: Array, columns: NDArray[np.int64], turns: Array, carried: Array) -> None:
    """Compute the derivatives of rotations exp(θ), θ = move[columns[k]:][:3], of a step.

    `turns` (B, 3, 3) receives the tangent operators T(θ). `carried` receives T(θ)⁻¹ exp(θ)ᵀ, which
    is T(−θ)⁻¹: it maps an increment before the step to an increment of θ.
    """
    for k in range(columns.shape[0]):
        theta = vector3(move, columns[k])
        put33(turns[k], 0, 0, tangent3(theta))
        a, b, c = tangent3(scaled3(-1.0, theta))
        x, y, z = cross3(b, c), cross3(c, a), cross3(a, b)
        inverse = scaled33(1.0 / dot3(a, x), transposed3((x, y, z)))
        put33(carried[k], 0, 0, inverse)


@kernel
def rotate_rows(blocks: Array, columns: NDArray[np.int64], transposed: bool, x: Array) -> None:
    """Multiply three rows of x (n, m), from `columns[k]` on, by `blocks[k]` or its transpose."""
    for k in range(columns.shape[0]):
        first = columns[k]
        T = vector3(blocks[k, 0], 0), vector3(blocks[k, 1], 0), vector3(blocks[k, 2], 0)
        if transposed:
            T = transposed3(T)
        for j in range(x.shape[1]):
            a, b, c = mv3(T, (x[first, j], x[first + 1, j], x[first + 2, j]))
            x[first, j], x[first + 1, j], x[first + 2, j] = a, b, c
