"""Assembly of dense matrices of a system from blocks for pairs of bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
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
            for j in range(n):
                entry = start + i * n + j
                K[low + i, low + j] += flat[entry]
                C[low + i, low + j] += flat[entry + n * n]
                M[low + i, low + j] += flat[entry + 2 * n * n]
        start += 3 * n * n


@kernel
def add_pairs(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    pairs: NDArray[np.int64],
    blocks: Array,
    out: Array,
) -> None:
    """Add the blocks (J, 2, 2, w, w) of J pairs of bodies to `out`.

    The rows of body b in `out` are from `rows[b, 0]` to `rows[b, 1]`, and likewise its columns.
    """
    for j in range(pairs.shape[0]):
        for i in range(blocks.shape[1]):
            low, high = rows[pairs[j, i]]
            for k in range(blocks.shape[2]):
                left, right = columns[pairs[j, k]]
                for r in range(high - low):
                    for c in range(right - left):
                        out[low + r, left + c] += blocks[j, i, k, r, c]


@kernel
def add_rows(
    entry: NDArray[np.int64],
    row: NDArray[np.int64],
    columns: NDArray[np.int64],
    pairs: NDArray[np.int64],
    blocks: Array,
    out: Array,
) -> None:
    """Add row `row[c]` of the two blocks of pair `entry[c]` to row c of `out`."""
    for c in range(entry.shape[0]):
        for k in range(blocks.shape[1]):
            left, right = columns[pairs[entry[c], k]]
            for i in range(right - left):
                out[c, left + i] += blocks[entry[c], k, row[c], i]


@kernel
def fill(
    K: Array,
    C: Array,
    M: Array,
    B: Array,
    columns: NDArray[np.int64],
    turns: Array,
    by_rate: float,
    by_speed: float,
    mass: float,
    S: Array,
) -> None:
    """Write the iteration matrix into S, which must be zero; K and B are overwritten.

    The three columns of a rotation, from `columns[k]` on, are multiplied by the tangent operator
    `turns[k]` of this rotation. For `by_rate`, `by_speed` and `mass`, see `IterationMatrix`.
    """
    n = M.shape[0]
    for i in range(B.shape[0]):
        for j in range(n):
            S[j, n + i] = mass * B[i, j]
    for k in range(columns.shape[0]):
        _multiply_columns(K, columns[k], turns[k])
        _multiply_columns(B, columns[k], turns[k])
    for j in range(n):
        for i in range(n):
            S[i, j] = M[i, j] + (by_speed / by_rate) * C[i, j] + (1.0 / by_rate) * K[i, j]
        for i in range(B.shape[0]):
            S[n + i, j] = mass * B[i, j]


@inner_kernel
def _multiply_columns(A: Array, first: int, turn: Array) -> None:
    """Multiply three columns of A by a matrix."""
    T = vector3(turn[0], 0), vector3(turn[1], 0), vector3(turn[2], 0)
    for i in range(A.shape[0]):
        put3(A[i], first, tmv3(T, vector3(A[i], first)))
