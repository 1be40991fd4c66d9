"""Rotation of right-hand sides and solutions from and to the orientations of a factorization."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.kernels.small_vectors import Array, Matrix3, dot3, mv3, put33, transposed3, vector3

#: Columns of the table of groups: kind, first of its three unknowns, and two places.
BODY, SPACE, PLANE = 0, 1, 2


@inner_kernel
def matrix3(A: Array) -> Matrix3:
    """Return a matrix (3, 3) as tuples."""
    return vector3(A[0], 0), vector3(A[1], 0), vector3(A[2], 0)


@inner_kernel
def product3(A: Matrix3, B: Matrix3) -> Matrix3:
    """Return A Bᵀ."""
    return mv3(B, A[0]), mv3(B, A[1]), mv3(B, A[2])


@kernel
def group_orientations(groups: NDArray[np.int64], q: Array, rotation: Array, out: Array) -> None:
    """Write the orientation of each group (groups, 3, 3)."""
    for k in range(groups.shape[0]):
        kind, _, i, j = groups[k]
        if kind == BODY:
            put33(out[k], 0, 0, rotation_rows(q[i], q[i + 1], q[i + 2], q[i + 3]))
            continue
        if kind == 3:
            put33(out[k], 0, 0, transposed3(matrix3(rotation[i])))
            continue
        one, two = transposed3(matrix3(rotation[i])), transposed3(matrix3(rotation[j]))
        relative = product3(one, two)
        if kind == PLANE:
            c, s = relative[0][0] + relative[1][1], relative[1][0] - relative[0][1]
            size = math.sqrt(c * c + s * s)
            c, s = (c / size, s / size) if size > 0.0 else (1.0, 0.0)
            relative = (1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)
        put33(out[k], 0, 0, relative)


@kernel
def rotate(
    groups: NDArray[np.int64], source: Array, target: Array, x: Array
) -> None:
    """Multiply the unknowns of each group in x (n,) by target sourceᵀ."""
    for k in range(groups.shape[0]):
        i = groups[k, 1]
        y = mv3(transposed3(matrix3(source[k])), vector3(x, i))
        x[i], x[i + 1], x[i + 2] = mv3(matrix3(target[k]), y)
