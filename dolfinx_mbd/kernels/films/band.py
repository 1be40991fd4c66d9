"""Solution of systems of equations with a symmetric matrix in a band.

The matrix L D Lᵀ of N unknowns is factorized in place: each row of the band has D Lᵀ from the
diagonal on, and ends with `PADDING` zeros, because four rows or entries are used at once. `size`
(2,) are N and the bandwidth, at the indices `UNKNOWNS` and `BANDWIDTH`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.small_vectors import Array

Integers = NDArray[np.int64]
Vector4 = tuple[float, float, float, float]

PADDING = 4  #: Zeros at the end of each row of a band
UNKNOWNS, BANDWIDTH = range(2)  #: Indices in `size`


@inner_kernel
def band_rows(size: Integers, band: Array) -> Array:
    """Return the part of `band` with the factors, (unknowns, bandwidth + 1 + PADDING)."""
    count, width = size[UNKNOWNS], size[BANDWIDTH] + 1 + PADDING
    return band[: count * width].reshape(count, width)


@inner_kernel
def factorize(size: Integers, rows: Array, inverse: Array, x: Array) -> None:
    """Factorize the matrix as L D Lᵀ, with D Lᵀ in `rows`, and replace x (unknowns,) by L⁻¹ x.

    `inverse` (unknowns,) are the reciprocal pivots. A row subtracts four earlier rows at once.
    """
    count, width = size[UNKNOWNS], size[BANDWIDTH]
    for r in range(count):
        target, known = rows[r], x[r]
        for k in range(1, min(width, r) + 1, 4):
            s = r - k
            one, f1 = rows[s], rows[s, k] * inverse[s]
            if s < 3:  # the first rows
                for d in range(width + 1 - k):
                    target[d] -= f1 * one[k + d]
                known -= f1 * x[s]
                for m in range(1, s + 1):
                    f1, one = rows[s - m, k + m] * inverse[s - m], rows[s - m]
                    for d in range(width + 1 - k - m):
                        target[d] -= f1 * one[k + m + d]
                    known -= f1 * x[s - m]
                continue
            two, three, four = rows[s - 1], rows[s - 2], rows[s - 3]
            f2, f3 = two[k + 1] * inverse[s - 1], three[k + 2] * inverse[s - 2]
            f4 = four[k + 3] * inverse[s - 3]
            for d in range(width + 1 - k):
                pair = f1 * one[k + d] + f2 * two[k + 1 + d]
                target[d] -= pair + (f3 * three[k + 2 + d] + f4 * four[k + 3 + d])
            known -= (f1 * x[s] + f2 * x[s - 1]) + (f3 * x[s - 2] + f4 * x[s - 3])
        inverse[r], x[r] = 1.0 / target[0], known


@inner_kernel
def substitute(size: Integers, rows: Array, inverse: Array, x: Array) -> None:
    """Replace L⁻¹ b in x (N + PADDING,) by the solution for b; x ends with zeros."""
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
def _subtract_four(f: Vector4, X: Array, r: int, step: int, target: Array) -> None:
    """Subtract f₀ X[r] + f₁ X[r + step] + … (four rows) from a row of X."""
    one, two, three, four = X[r], X[r + step], X[r + 2 * step], X[r + 3 * step]
    for c in range(len(target)):
        target[c] -= f[0] * one[c] + f[1] * two[c] + f[2] * three[c] + f[3] * four[c]


@inner_kernel
def substitute_columns(size: Integers, band: Array, X: Array) -> None:
    """Solve for right-hand sides X (unknowns, k) in place; four rows at once to load less."""
    count, width = size[UNKNOWNS], size[BANDWIDTH]
    L = band_rows(size, band)
    inverse = np.empty(count)
    for r in range(count):
        inverse[r] = 1.0 / L[r, 0]
        most, target, k = min(width, r), X[r], 1
        while k <= most:
            s = r - k
            if k + 3 <= most:
                f = (
                    L[s, k] * inverse[s],
                    L[s - 1, k + 1] * inverse[s - 1],
                    L[s - 2, k + 2] * inverse[s - 2],
                    L[s - 3, k + 3] * inverse[s - 3],
                )
                _subtract_four(f, X, s, -1, target)
                k += 4
            else:
                factor, source = L[s, k] * inverse[s], X[s]
                for c in range(len(target)):
                    target[c] -= factor * source[c]
                k += 1
    for r in range(count - 1, -1, -1):
        most, target, row, k = min(width, count - 1 - r), X[r], L[r], 1
        while k <= most:
            if k + 3 <= most:
                f = row[k], row[k + 1], row[k + 2], row[k + 3]
                _subtract_four(f, X, r + k, 1, target)
                k += 4
            else:
                factor, source = row[k], X[r + k]
                for c in range(len(target)):
                    target[c] -= factor * source[c]
                k += 1
        for c in range(len(target)):
            target[c] *= inverse[r]


@inner_kernel
def gather_nodes(number: Integers, C: Array, factor: float, X: Array) -> None:
    """Write the values C (n, m+1, k) of the unknown nodes, times a factor, to X (unknowns, k).

    `number` (n, m+1) is the index of the unknown at each node, or −1.
    """
    for i in range(number.shape[0]):
        for j in range(number.shape[1]):
            if number[i, j] >= 0:
                target, source = X[number[i, j]], C[i, j]
                for k in range(len(target)):
                    target[k] = factor * source[k]


@inner_kernel
def scatter_nodes(number: Integers, X: Array) -> Array:
    """Return values (n, m+1, k) at the nodes from those of X (unknowns, k); otherwise 0."""
    n, columns = number.shape
    out = np.zeros((n, columns, X.shape[1]))
    for i in range(n):
        for j in range(columns):
            if number[i, j] >= 0:
                target, source = out[i, j], X[number[i, j]]
                for k in range(len(target)):
                    target[k] = source[k]
    return out
