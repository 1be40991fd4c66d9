"""Dense matrices of a system from blocks between its bodies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import kernel

__all__ = ["add_pairs", "add_rows", "fill"]

Array = NDArray[np.float64]


@kernel
def add_pairs(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    pairs: NDArray[np.int64],
    blocks: Array,
    out: Array,
) -> None:
    """Add the blocks (J, 2, 2, w, w) between the bodies of each pair, at the limits of these."""
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
    """Add row `row[c]` of the two blocks of pair `entry[c]` to row c."""
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
    """Fill in the iteration matrix S, zero before, in column order."""
    n = M.shape[0]
    for j in range(n):
        for i in range(n):
            S[i, j] = M[i, j] + (by_speed / by_rate) * C[i, j] + (1.0 / by_rate) * K[i, j]
        for i in range(B.shape[0]):
            S[n + i, j] = mass * B[i, j]
            S[j, n + i] = mass * B[i, j]
    for k in range(columns.shape[0]):
        first, T = columns[k], turns[k]
        for i in range(n):
            x, y, z = K[i, first], K[i, first + 1], K[i, first + 2]
            for c in range(3):
                change = x * T[0, c] + y * T[1, c] + z * T[2, c] - K[i, first + c]
                S[i, first + c] += (1.0 / by_rate) * change
        for i in range(B.shape[0]):
            x, y, z = B[i, first], B[i, first + 1], B[i, first + 2]
            for c in range(3):
                S[n + i, first + c] = mass * (x * T[0, c] + y * T[1, c] + z * T[2, c])
