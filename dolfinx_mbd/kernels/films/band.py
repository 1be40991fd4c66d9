"""Solution of systems of equations with a symmetric band matrix.

The matrix of N unknowns is factorized as L D Lᵀ in place. A row of the band array has the entries
from the diagonal to the right: first of the matrix, afterwards of D Lᵀ. It ends with `PADDING`
zeros, because the loops use four rows and four entries at once. The array `size` (2,) contains N
and the bandwidth, at the indices `UNKNOWNS` and `BANDWIDTH`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.small_vectors import Array
from dolfinx_mbd.kernels.vector_operations import (
    LANES,
    subtract_multiple,
    subtract_multiples,
    subtract_sum,
)

Integers = NDArray[np.int64]

PADDING = 8  #: Zeros at the end of each row of a band
UNKNOWNS, BANDWIDTH = range(2)  #: Indices in `size`


@inner_kernel
def band_rows(size: Integers, band: Array) -> Array:
    """Return the rows of `band` that are used, shape (unknowns, bandwidth + 1 + PADDING)."""
    count, width = size[UNKNOWNS], size[BANDWIDTH] + 1 + PADDING
    return band[: count * width].reshape(count, width)


@inner_kernel
def factorize(size: Integers, rows: Array, inverse: Array, x: Array, start: int = 0) -> None:
    """Factorize the matrix as L D Lᵀ, with D Lᵀ in `rows`, and replace x (unknowns,) by L⁻¹ x.

    `inverse` (unknowns,) receives the reciprocal pivots. Multiples of four earlier rows are
    subtracted from a row at once. The rows before `start` contain the results already.
    """
    count, width, stride = size[UNKNOWNS], size[BANDWIDTH], rows.shape[1]
    flat = rows.reshape(rows.size)
    for r in range(start, count):
        first, right, reach = r * stride, x[r], min(width, r)
        for k in range(1, reach + 1, 4):
            s, source = r - k, (r - k) * stride + k  # `source` is the entry of row s in column r
            if s < 3:  # the first rows
                for m in range(s + 1):
                    f1 = flat[source] * inverse[s - m]
                    subtract_multiple(flat, first, f1, source, width + 1 - k - m)
                    right -= f1 * x[s - m]
                    source += 1 - stride
                continue
            f1, f2 = flat[source] * inverse[s], flat[source + 1 - stride] * inverse[s - 1]
            f3 = flat[source + 2 * (1 - stride)] * inverse[s - 2]
            f4 = flat[source + 3 * (1 - stride)] * inverse[s - 3]
            subtract_multiples(flat, first, f1, f2, f3, f4, source, 1 - stride, width + 1 - k)
            right -= (f1 * x[s] + f2 * x[s - 1]) + (f3 * x[s - 2] + f4 * x[s - 3])
        inverse[r], x[r] = 1.0 / flat[first], right


@inner_kernel
def substitute(size: Integers, rows: Array, inverse: Array, x: Array) -> None:
    """Replace L⁻¹ b in x by the solution; x (N + bandwidth + PADDING,) ends with zeros after N."""
    count, width = size[UNKNOWNS], size[BANDWIDTH]
    for r in range(count - 1, -1, -1):
        row, total = rows[r], x[r]
        k = 1 + 4 * ((width - 1) // 4)  # the term with the neighbour r + 1 is the last one
        while k > 0:
            pair = row[k + 3] * x[r + k + 3] + row[k + 2] * x[r + k + 2]
            total -= (pair + row[k + 1] * x[r + k + 1]) + row[k] * x[r + k]
            k -= 4
        x[r] = total * inverse[r]


@inner_kernel
def substitute_columns(size: Integers, band: Array, X: Array) -> None:
    """Solve for right-hand sides X (unknowns, k) in place; k is a multiple of `LANES`."""
    count, width, columns = size[UNKNOWNS], size[BANDWIDTH], X.shape[1]
    L, flat = band_rows(size, band), X.reshape(X.size)
    inverse, f = np.empty(count), np.empty(width)
    # `reach` is the number of rows within the bandwidth. The row that was computed last is the last
    # one of each sum, so that sums can overlap in time
    for r in range(count):
        inverse[r], reach = 1.0 / L[r, 0], min(width, r)
        for k in range(reach):
            s = r - reach + k
            f[k] = L[s, reach - k] * inverse[s]
        source = (r - reach) * columns
        subtract_sum(flat, r * columns, f, flat, source, columns, reach, 1.0, columns)
    for r in range(count - 1, -1, -1):
        reach = min(width, count - 1 - r)
        for k in range(reach):
            f[k] = L[r, reach - k]
        source = (r + reach) * columns
        subtract_sum(flat, r * columns, f, flat, source, -columns, reach, inverse[r], columns)


@inner_kernel
def gather_nodes(number: Integers, C: Array, factor: float, count: int) -> Array:
    """Return the values C (n, m+1, k) of the unknown nodes, times a factor, as (`count`, k).

    `number` (n, m+1) is the index of the unknown at each node, or −1. The result ends with columns
    of zeros, so that their number is a multiple of `LANES`.
    """
    columns = C.shape[2]
    X = np.zeros((count, LANES * ((columns + LANES - 1) // LANES)))
    for i in range(number.shape[0]):
        for j in range(number.shape[1]):
            if number[i, j] >= 0:
                for k in range(columns):
                    X[number[i, j], k] = factor * C[i, j, k]
    return X


@inner_kernel
def scatter_nodes(number: Integers, X: Array, columns: int) -> Array:
    """Return values (n, m+1, `columns`) at the nodes from those of X (unknowns, k); otherwise 0."""
    out = np.zeros((number.shape[0], number.shape[1], columns))
    for i in range(number.shape[0]):
        for j in range(number.shape[1]):
            if number[i, j] >= 0:
                for k in range(columns):
                    out[i, j, k] = X[number[i, j], k]
    return out
