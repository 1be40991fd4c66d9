"""Kernels that eliminate the velocities of single bodies from the equations of a system.

A body is coupled only to some of the other unknowns: to the bodies to which joints and loads
connect it, and to the multipliers of its joints. The front of a body contains its velocities and
these neighbours. A partial LU decomposition of the front, with the velocities of the body as
pivots, gives the contribution of the body to the equations of the neighbours. Bodies that are not
coupled to each other can be eliminated independently.

The fronts (m, m) of all bodies are in one array, one after the other. Each row of `table` describes
a front:

    first   first velocity of the body
    n       number of its velocities
    m       number of unknowns of the front, the velocities and the neighbours
    near    first entry of the neighbours in `neighbours`
    start   first entry of the front in the array

The system has N unknowns; r of them, the `rest`, are not eliminated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import matrix
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.small_vectors import Array

Index = NDArray[np.int64]

# Smallest pivot relative to the largest entry of its row; such a pivot costs four digits
_SMALL_PIVOT = 1e-4


@kernel
def eliminate(
    A: Array,
    transposed: bool,
    table: Index,
    neighbours: Index,
    places: Index,
    rest: Index,
    fronts: Array,
    exchanges: Index,
    R: Array,
) -> bool:
    """Eliminate bodies from a matrix; return whether all pivots are large enough.

    Args:
        A: Matrix of all unknowns, (N, N).
        transposed: Whether the transpose of A is used instead.
        table: Fronts, see the module.
        neighbours: Indices of the neighbours of all bodies among the N unknowns.
        places: Positions of the neighbours in `rest`.
        rest: Indices of the unknowns that are not eliminated, (r,).
        fronts: Receives the decomposed fronts.
        exchanges: Receives the exchanges of columns; entry i belongs to velocity i.
        R: Receives the matrix of the remaining unknowns, (r, r).
    """
    _copy_part(A, transposed, rest, R)
    for b in range(table.shape[0]):
        first, n, m, near, start = table[b]
        F = matrix(fronts, start, m, m)
        unknowns = np.zeros(m, dtype=np.int64)
        for i in range(m):
            unknowns[i] = first + i if i < n else neighbours[near + i - n]
        _copy_part(A, transposed, unknowns, F)
        # R contains the entries of A between neighbours; this block receives only their changes
        for i in range(n, m):
            row = F[i]
            for j in range(n, m):
                row[j] = 0.0
        if not _decompose(F, n, exchanges, first):
            return False
        for i in range(n, m):
            target, source = R[places[near + i - n]], F[i]
            for j in range(n, m):
                target[places[near + j - n]] += source[j]
    return True


@inner_kernel
def _copy_part(A: Array, transposed: bool, unknowns: Index, out: Array) -> None:
    """Copy the rows and columns of some unknowns from A, or from its transpose, to `out`."""
    count, start = unknowns.shape[0], 0
    while start < count:  # contiguous unknowns are copied together
        stop = start + 1
        while stop < count and unknowns[stop] == unknowns[stop - 1] + 1:
            stop += 1
        first = unknowns[start]
        for i in range(count):
            row = A[unknowns[i], first : first + stop - start]
            if transposed:
                target = out[start:stop, i]
            else:
                target = out[i, start:stop]
            for j in range(stop - start):
                target[j] = row[j]
        start = stop


@inner_kernel
def _decompose(F: Array, n: int, exchanges: Index, first: int) -> bool:
    """Decompose F row by row with pivots in the first n rows and columns.

    Columns are exchanged. Return whether the pivots are large enough.
    """
    m, inverse = F.shape[0], np.zeros(n)
    for i in range(m):
        # size: largest entry of the row before the elimination; k: next earlier row to subtract
        row, count, size, k = F[i], min(i, n), 0.0, 0
        for j in range(n):
            size = max(size, abs(row[j]))
        while k < count - 1:  # two earlier rows at once
            upper, lower = F[k], F[k + 1]
            x = row[k] * inverse[k]
            y = (row[k + 1] - x * upper[k + 1]) * inverse[k + 1]
            row[k], row[k + 1] = x, y
            for j in range(k + 2, m):
                row[j] -= x * upper[j] + y * lower[j]
            k += 2
        if k < count:
            upper, x = F[k], row[k] * inverse[k]
            row[k] = x
            for j in range(k + 1, m):
                row[j] -= x * upper[j]
        if i < n:
            best = i
            for j in range(i + 1, n):
                if abs(row[j]) > abs(row[best]):
                    best = j
            if not abs(row[best]) > _SMALL_PIVOT * size:
                return False
            exchanges[first + i] = best
            if best != i:
                for r in range(m):
                    F[r, i], F[r, best] = F[r, best], F[r, i]
            inverse[i] = 1.0 / row[i]
    return True


@kernel
def reduce_columns(
    table: Index,
    neighbours: Index,
    rest: Index,
    fronts: Array,
    exchanges: Index,
    X: Array,
    Y: Array,
) -> None:
    """Eliminate bodies from right-hand sides of the transposed equations.

    X has the shape (right-hand sides, N); the eliminated entries receive intermediate results. Y,
    of shape (right-hand sides, r), receives those of the remaining unknowns.
    """
    for b in range(table.shape[0]):
        first, n, m, near, start = table[b]
        F, x = matrix(fronts, start, m, m), np.zeros(m)
        for c in range(X.shape[0]):
            for i in range(m):
                x[i] = X[c, first + i] if i < n else 0.0
            for k in range(n):
                column = exchanges[first + k]
                x[k], x[column] = x[column], x[k]
            for k in range(n):
                row = F[k]
                x[k] /= row[k]
                factor = x[k]
                for j in range(k + 1, m):
                    x[j] -= factor * row[j]
            for i in range(m):
                if i < n:
                    X[c, first + i] = x[i]
                else:
                    X[c, neighbours[near + i - n]] += x[i]
    for c in range(X.shape[0]):
        for i in range(rest.shape[0]):
            Y[c, i] = X[c, rest[i]]


@kernel
def expand_columns(
    table: Index,
    neighbours: Index,
    rest: Index,
    fronts: Array,
    Y: Array,
    X: Array,
) -> None:
    """Compute all unknowns X (right-hand sides, N) from the remaining ones Y, (…, r).

    Call `reduce_columns` before, which leaves intermediate results in X.
    """
    for c in range(X.shape[0]):
        for i in range(rest.shape[0]):
            X[c, rest[i]] = Y[c, i]
    for b in range(table.shape[0]):
        first, n, m, near, start = table[b]
        F, x = matrix(fronts, start, m, m), np.zeros(m)
        for c in range(X.shape[0]):
            for i in range(m):
                x[i] = X[c, first + i] if i < n else X[c, neighbours[near + i - n]]
            for i in range(m - 1, 0, -1):
                row, factor = F[i], x[i]
                for k in range(min(i, n)):
                    x[k] -= factor * row[k]
            for i in range(n):
                X[c, first + i] = x[i]
