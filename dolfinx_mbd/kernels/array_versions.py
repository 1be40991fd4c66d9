"""Array versions of kernels with loops, which are used if numba is not installed.

Each function has the arguments and the results of the kernel with the same name, up to round-off.
The arguments `a_by_move` and `v_by_move` are the derivatives of accelerations and velocities with
respect to the increments `move` of a step.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import (
    DAMPING,
    FIRST_MOMENTS,
    FIRST_Q,
    FIRST_V,
    H_ROWS,
    MASS,
    MASS_MATRIX,
    NUM_MODES,
    STIFFNESS,
    matrix,
)
from dolfinx_mbd.kernels.small_vectors import Array, Matrix3, Table, Vector3

Index = NDArray[np.int64]


# ---- bodies with a floating frame ---------------------------------------------------------------
def inertia_integrals(
    row: Table, data: Array, q: Array, v: Array, a: Array
) -> tuple[Array, Array, Matrix3, Array]:
    """Return X, P, the integrals of ρ(c, u̇, ü), and Q, Q̇ and Q̈."""
    n, i, j = row[NUM_MODES], row[FIRST_Q] + 7, row[FIRST_V] + 6
    X = np.zeros((3, n + 1))
    X[0, 0] = 1.0
    X[0, 1:], X[1, 1:], X[2, 1:] = q[i : i + n], v[j : j + n], a[j : j + n]
    s = X @ matrix(data, row[FIRST_MOMENTS], n + 1, 3)
    P = (X[:2] @ matrix(data, row[H_ROWS], n + 1, 9 * n + 9)).reshape(2, 9, n + 1)
    moments = tuple((float(x), float(y), float(z)) for x, y, z in s)
    return X, P, (moments[0], moments[1], moments[2]), (P[0] @ X.T).reshape(27)


def elastic_forces(
    row: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    P: Array,
    weights: Array,
    acceleration: Vector3,
) -> tuple[Array, Array, Array, Array]:
    """Return inertia, elastic and damping forces on the modes, and the inertia forces M η̈.

    `P` is a result of `inertia_integrals`, and `weights` that of `elastic_weights`.
    """
    n, i, j = row[NUM_MODES], row[FIRST_Q] + 7, row[FIRST_V] + 6
    transposed = weights.reshape(2, 3, 3).transpose(0, 2, 1).reshape(18)
    eta_inertia = matrix(data, row[MASS_MATRIX], n, n) @ a[j : j + n]
    linear = matrix(data, row[FIRST_MOMENTS], n + 1, 3)[1:] @ acceleration
    moving = (transposed @ P.reshape(18, n + 1))[1:] + linear + eta_inertia
    elastic = matrix(data, row[STIFFNESS], n, n) @ q[i : i + n]
    damping = matrix(data, row[DAMPING], n, n) @ v[j : j + n]
    return moving, elastic, damping, eta_inertia


def elastic_rows(
    row: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    P: Array,
    weights: Array,
    acceleration: Vector3,
    size: float,
    out: Array,
    scale: Array,
) -> float:
    """Write the elastic residual; return `size` plus the contribution of η̈."""
    n, j, m, M = row[NUM_MODES], row[FIRST_V] + 6, data[row[MASS]], row[MASS_MATRIX]
    inertia, elastic, damping, eta_inertia = elastic_forces(
        row, data, q, v, a, P, weights, acceleration
    )
    size += math.sqrt(m * abs(a[j : j + n] @ eta_inertia))
    out[j : j + n] = inertia + elastic + damping
    terms = np.abs(inertia) + np.abs(elastic) + np.abs(damping)
    scale[j : j + n] = terms + size * np.sqrt(data[M : M + n * n : n + 1] / m)
    return size


def subtract_loads(loads: Array, jacobian: Array, first: int, out: Array, scale: Array) -> None:
    """Subtract the forces of loads on the modes from the residual from the row `first` on."""
    forces = loads[:, None] * jacobian
    rows = slice(first, first + jacobian.shape[1])
    out[rows] -= forces.sum(axis=0)
    scale[rows] += np.abs(forces).sum(axis=0)


# ---- matrices of a system -----------------------------------------------------------------------
def add_row(flat: Array, start: int, count: int, row: Array, column: int) -> None:
    """Add entries of `flat` to a row of a matrix from a column on."""
    row[column : column + count] += flat[start : start + count]


def multiply_block(A: Array, row: int, column: int, B: Array, width: int, out: Array) -> bool:
    """Write a block (6, 6) of A times columns of B (6, ·); return whether any entry is used."""
    block = A[row : row + 6, column : column + 6]
    out[:, :width] = block @ B[:, :width]
    return bool(block.any())


def add_transposed_product(
    A: Array, height: int, B: Array, width: int, out: Array, row: int, column: int
) -> None:
    """Add AᵀB of the first columns of A and B (6, ·) to `out` from a row and a column on."""
    out[row : row + height, column : column + width] += A[:, :height].T @ B[:, :width]


def fill(
    K: Array,
    C: Array,
    M: Array,
    B: Array,
    columns: Index,
    turns: Array,
    a_by_move: float,
    v_by_move: float,
    mass: float,
    S: Array,
) -> None:
    """Write the iteration matrix into S, which must be zero; K and B are overwritten.

    See `fill` of `dolfinx_mbd.kernels.matrices` for the arguments.
    """
    n = M.shape[0]
    S[:n, n:] = mass * B.T
    for column, turn in zip(columns, turns, strict=True):
        part = slice(column, column + 3)
        K[:, part], B[:, part] = K[:, part] @ turn, B[:, part] @ turn
    S[:n, :n] = M + (v_by_move / a_by_move) * C + K / a_by_move
    S[n:, :n] = mass * B


# ---- steps --------------------------------------------------------------------------------------
def relative_residual(
    rows: Array, scale: Array, groups: Index, tolerance: float, size: Array
) -> float:
    """Return the largest ratio of a residual of the equations of motion to its tolerance."""
    if not np.isfinite(rows).all():
        return math.inf
    largest = np.zeros(len(size))
    size[:] = 0.0
    np.maximum.at(largest, groups, np.abs(rows))
    np.maximum.at(size, groups, scale)
    return float((largest / np.maximum(tolerance * size, 1e-300)).max(initial=0.0))


def largest_product(x: Array, factors: Array) -> float:
    """Return the largest magnitude of the products of two arrays (n,), NaN if one of them is."""
    return float(np.abs(x[: len(factors)] * factors).max(initial=0.0))


def right_hand_side(rows: Array, values: Array, a_by_move: float, mass: float, out: Array) -> None:
    """Write the right-hand side of a correction: scaled negative residual and constraints."""
    n = len(rows)
    out[:n], out[n:] = -rows / a_by_move, -mass * values


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
    """Add a correction (increments, scaled multipliers) to the state."""
    n = len(move)
    increments = solution[:n]
    move += increments
    v += v_by_move * increments
    a += a_by_move * increments
    new += ratio * a_by_move * increments
    lam += a_by_move * mass * solution[n : n + len(lam)]


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

    `numbers` are α_m, α_f, β and γ; `old` and `new` are the algorithmic accelerations before and
    after the step.
    """
    alpha_m, alpha_f, beta, gamma = map(float, numbers)
    new[:] = ((1 - alpha_f) * guess + alpha_f * a - alpha_m * old) / (1 - alpha_m)
    move[:] = dt * velocity + dt * dt * ((0.5 - beta) * old + beta * new)
    v[:] = velocity + dt * ((1 - gamma) * old + gamma * new)


def product(A: Array, x: Array, first: int) -> Array:
    """See `vector_operations.product`."""
    return A @ x[first : first + A.shape[1]]


def weighted_sum(weights: Array, A: Array) -> Array:
    """See `vector_operations.weighted_sum`."""
    return weights @ A


def subtract_multiple(x: Array, target: int, f: float, source: int, count: int) -> None:
    """See `vector_operations.subtract_multiple`."""
    x[target : target + count] -= f * x[source : source + count]


def subtract_multiples(
    x: Array,
    target: int,
    f1: float,
    f2: float,
    f3: float,
    f4: float,
    source: int,
    step: int,
    count: int,
) -> None:
    """See `vector_operations.subtract_multiples`."""
    x1, x2, x3, x4 = (x[source + k * step :][:count] for k in range(4))
    x[target : target + count] -= (f1 * x1 + f2 * x2) + (f3 * x3 + f4 * x4)


def subtract_sum(
    out: Array,
    target: int,
    f: Array,
    x: Array,
    source: int,
    step: int,
    terms: int,
    scale: float,
    count: int,
) -> None:
    """See `vector_operations.subtract_sum`."""
    rows = x[source + step * np.arange(terms)[:, None] + np.arange(count)]
    out[target : target + count] = scale * (out[target : target + count] - f[:terms] @ rows)
