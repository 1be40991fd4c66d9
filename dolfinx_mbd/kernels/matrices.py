"""Assembly of dense matrices of a system from blocks for pairs of bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels import array_versions
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel, without_numba
from dolfinx_mbd.kernels.small_vectors import Array, put3, tmv3, vector3


@kernel
def add_bodies(
    flat: Array, sizes: NDArray[np.int64], first: NDArray[np.int64], K: Array, C: Array, M: Array
) -> None:
    """Add the three square blocks of each body, stored in sequence in `flat`, to K, C and M.

    The blocks of body b have `sizes[b]` rows and columns and start at row and column `first[b]`.
    """
    start = 0
    for b in range(sizes.shape[0]):
        n, low = sizes[b], first[b]
        for i in range(n):
            _add_row(flat, start + i * n, n, K[low + i], low)
            _add_row(flat, start + (n + i) * n, n, C[low + i], low)
            _add_row(flat, start + (2 * n + i) * n, n, M[low + i], low)
        start += 3 * n * n


@without_numba(array_versions.add_row)
@inner_kernel
def _add_row(flat: Array, start: int, count: int, row: Array, column: int) -> None:
    """Add entries of `flat` to a row of a matrix from a column on."""
    source, target = flat[start : start + count], row[column : column + count]
    for j in range(count):
        target[j] += source[j]


@kernel
def add_products(
    D: Array,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    left: Array,
    right: Array,
    widths: NDArray[np.int64],
    row_starts: NDArray[np.int64],
    column_starts: NDArray[np.int64],
    out: Array,
) -> None:
    """Add the products LᵀDR of matrices D (pairs, 12, 12) between pairs of frames to `out`.

    Args:
        D: Matrices with six rows and columns for each frame of a pair.
        rows: Frames of the rows, (pairs, 2).
        columns: Frames of the columns, (pairs, 2).
        left: Jacobians L of all frames, (frames, 6, w).
        right: Jacobians R of all frames, (frames, 6, w).
        widths: Number of columns of the Jacobians of each frame, (frames,).
        row_starts: First row of the product of each frame of a pair in `out`, (pairs, 2).
        column_starts: First column, (pairs, 2).
        out: Sum of the products.
    """
    DR = np.zeros((left.shape[1], left.shape[2]))
    for n in range(D.shape[0]):
        for k in range(columns.shape[1]):
            frame, column = columns[n, k], column_starts[n, k]
            for i in range(rows.shape[1]):
                row_frame, row = rows[n, i], row_starts[n, i]
                if widths[row_frame] == 0 or widths[frame] == 0:
                    continue
                if _multiply_block(D[n], 6 * i, 6 * k, right[frame], widths[frame], DR):
                    _add_transposed_product(
                        left[row_frame], widths[row_frame], DR, widths[frame], out, row, column
                    )


@without_numba(array_versions.multiply_block)
@inner_kernel
def _multiply_block(A: Array, row: int, column: int, B: Array, width: int, out: Array) -> bool:
    """Write a block (6, 6) of A times columns of B (6, ·); return whether any entry is used."""
    nonzero = False
    for i in range(B.shape[0]):
        target = out[i]
        for j in range(width):
            target[j] = 0.0
        for k in range(0, B.shape[0], 3):
            x, y, z = vector3(A[row + i], column + k)
            if x != 0.0 or y != 0.0 or z != 0.0:
                nonzero = True
                first, second, third = B[k], B[k + 1], B[k + 2]
                for j in range(width):
                    target[j] += x * first[j] + y * second[j] + z * third[j]
    return nonzero


@without_numba(array_versions.add_transposed_product)
@inner_kernel
def _add_transposed_product(
    A: Array, height: int, B: Array, width: int, out: Array, row: int, column: int
) -> None:
    """Add AᵀB of the first columns of A and B (6, ·) to `out` from a row and a column on."""
    for r in range(height):
        target = out[row + r, column : column + width]
        for m in range(0, A.shape[0], 3):
            x, y, z = A[m, r], A[m + 1, r], A[m + 2, r]
            if x != 0.0 or y != 0.0 or z != 0.0:
                first, second, third = B[m], B[m + 1], B[m + 2]
                for c in range(width):
                    target[c] += x * first[c] + y * second[c] + z * third[c]


@kernel
def add_gradients(
    G: Array,
    rows: NDArray[np.int64],
    frames: NDArray[np.int64],
    jacobians: Array,
    widths: NDArray[np.int64],
    starts: NDArray[np.int64],
    out: Array,
) -> None:
    """Add the gradients G (J, 6, 12) of relative motions, times Jacobians, to `out` (nc, ·).

    `rows` (nc, 2) contains the pair of frames and the motion of each row, `frames` (J, 2) the
    frames of the pairs, and `starts` (nc, 2) the first columns of the products for both frames.
    """
    for c in range(rows.shape[0]):
        pair, motion, target = rows[c, 0], rows[c, 1], out[c]
        gradient = G[pair, motion]
        for k in range(frames.shape[1]):
            frame, column = frames[pair, k], starts[c, k]
            for m in range(jacobians.shape[1]):
                factor = gradient[6 * k + m]
                if factor != 0.0:
                    for i in range(widths[frame]):
                        target[column + i] += factor * jacobians[frame, m, i]


@without_numba(array_versions.fill)
@kernel
def fill(
    K: Array,
    C: Array,
    M: Array,
    B: Array,
    columns: NDArray[np.int64],
    turns: Array,
    a_by_move: float,
    v_by_move: float,
    mass: float,
    S: Array,
) -> None:
    """Write the iteration matrix into S, which must be zero; K and B are overwritten.

    The three columns of a rotation, from `columns[k]` on, are multiplied by the tangent operator
    `turns[k]` of this rotation. For `a_by_move`, `v_by_move` and `mass`, see `IterationMatrix`.
    """
    n = M.shape[0]
    for i in range(B.shape[0]):
        for j in range(n):
            S[j, n + i] = mass * B[i, j]
    for k in range(columns.shape[0]):
        _multiply_columns(K, columns[k], turns[k])
        _multiply_columns(B, columns[k], turns[k])
    row, by_damping, by_stiffness = np.empty(n), v_by_move / a_by_move, 1.0 / a_by_move
    for i in range(n):
        mass_row, damping, stiffness = M[i], C[i], K[i]
        for j in range(n):
            row[j] = mass_row[j] + by_damping * damping[j] + by_stiffness * stiffness[j]
        for j in range(n):
            S[i, j] = row[j]
    for j in range(n):
        for i in range(B.shape[0]):
            S[n + i, j] = mass * B[i, j]


@inner_kernel
def _multiply_columns(A: Array, first: int, turn: Array) -> None:
    """Multiply three columns of A by a matrix."""
    T = vector3(turn[0], 0), vector3(turn[1], 0), vector3(turn[2], 0)
    for i in range(A.shape[0]):
        put3(A[i], first, tmv3(T, vector3(A[i], first)))
