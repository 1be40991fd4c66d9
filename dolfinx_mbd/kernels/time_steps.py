"""Prediction and correction of a time step, and the residual relative to its tolerance."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import kernel
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

_ROUND_OFF = 1e-15  # round-off of constraints relative to the size of the mechanism


@kernel
def relative_residual(
    rows: Array,
    scale: Array,
    groups: NDArray[np.int64],
    masses: Array,
    values: Array,
    pairs: NDArray[np.int64],
    rotations: NDArray[np.bool_],
    length: float,
    tolerance: float,
    rate: float,
) -> float:
    """Return the largest ratio of a residual to its tolerance, see `Measure.error`.

    `masses` contains the mass of each group of equations. `pairs` contains the two groups with the
    forces on the two bodies of each constraint, or −1 for a body that does not move.
    """
    count = masses.shape[0]
    most, size = np.zeros(count), np.zeros(count)
    for i in range(rows.shape[0]):
        if not math.isfinite(rows[i]):
            return math.inf
        k = groups[i]
        most[k] = max(most[k], abs(rows[i]))
        size[k] = max(size[k], scale[i])
    error = 0.0
    for k in range(count):
        error = max(error, most[k] / max(tolerance * size[k], 1e-300))
    for c in range(values.shape[0]):
        if not math.isfinite(values[c]):
            return math.inf
        acceleration = math.inf
        for k in pairs[c]:
            if k >= 0:
                acceleration = min(acceleration, size[k] / masses[k])
        if not math.isfinite(acceleration):
            acceleration = 0.0
        allowed = tolerance * acceleration / rate + _ROUND_OFF * length
        error = max(error, abs(values[c]) * (length if rotations[c] else 1.0) / allowed)
    return error


@kernel
def largest_size(x: Array, least: float) -> float:
    """Return the largest magnitude in an array (n, m), at least `least`."""
    size = least
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            size = max(size, abs(x[i, j]))
    return size


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


@kernel
def right_hand_side(rows: Array, values: Array, by_rate: float, mass: float, out: Array) -> None:
    """Write the right-hand side of a correction: scaled negative residual and constraints."""
    n = rows.shape[0]
    for i in range(n):
        out[i] = -rows[i] / by_rate
    for c in range(values.shape[0]):
        out[n + c] = -mass * values[c]


@kernel
def correct(
    solution: Array,
    by_speed: float,
    by_rate: float,
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
        v[i] += by_speed * solution[i]
        a[i] += by_rate * solution[i]
        new[i] += ratio * by_rate * solution[i]
    for c in range(lam.shape[0]):
        lam[c] += by_rate * mass * solution[n + c]


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
