"""Accelerations and multipliers after a jump of the loads between two steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.floating_frame import Table, residual
from dolfinx_mbd.kernels.joints import constraint_rows
from dolfinx_mbd.kernels.small_vectors import Array


@inner_kernel
def solve_by_columns(lu: Array, pivots: NDArray[np.int32], x: Array) -> None:
    """Replace a right-hand side (n,) by the solution, with LAPACK's LU factors in column order."""
    n = x.shape[0]
    for k in range(n):
        p = pivots[k]
        x[k], x[p] = x[p], x[k]
    for k in range(n):
        value = x[k]
        if value != 0.0:
            for i in range(k + 1, n):
                x[i] -= lu[i, k] * value
    for k in range(n - 1, -1, -1):
        value = x[k] / lu[k, k]
        x[k] = value
        for i in range(k):
            x[i] -= lu[i, k] * value


@kernel
def correct_accelerations(
    count: int,
    table: Table,
    data: Array,
    gravity: Array,
    position: Array,
    rotation: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    signs: Array,
    motion_rows: NDArray[np.int64],
    offsets: Array,
    q: Array,
    v: Array,
    loads: Array,
    lu: Array,
    pivots: NDArray[np.int32],
    mass: float,
    a: Array,
    algorithmic: Array,
    lam: Array,
    spread: Array,
    values: Array,
    wrenches: Array,
    rows: Array,
    scale: Array,
) -> None:
    """Correct `a`, `algorithmic` (nv,) and `lam` (nc,) a number of times for their residual.

    `loads` (frames, 6) are the wrenches of the loads, and `mass` is the factor of the multipliers
    in the factorized matrix. The other arguments are those of `constraint_rows` and `residual`.
    """
    n, x = a.shape[0], np.zeros(lu.shape[0])
    for _ in range(count):
        for k in range(loads.shape[0]):
            for i in range(6):
                wrenches[k, i] = loads[k, i]
        constraint_rows(
            position, rotation, first, second, turns, signs, motion_rows, offsets, lam, spread,
            wrenches, values,
        )  # fmt: skip
        residual(table, data, q, v, a, gravity, wrenches, rows, scale)
        x[:] = 0.0
        for i in range(n):
            x[i] = -rows[i]
        solve_by_columns(lu, pivots, x)
        for i in range(n):
            a[i] += x[i]
            algorithmic[i] += x[i]
        for c in range(lam.shape[0]):
            lam[c] += mass * x[n + c]
