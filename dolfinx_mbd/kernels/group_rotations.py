"""Rotations of groups of three unknowns between the orientations at two times."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.kernels.small_vectors import Array, Matrix3, mv3, put33, transposed3, vector3

# Kinds of groups. The columns of their table are the kind, the first unknown, and two indices
BODY = 0  # displacement of a body, with the place of its quaternion in q
SPACE = 1  # three constraints of a joint, with its two frames
PLANE = 2  # two constraints normal to the axis of a joint, after the first unknown


@inner_kernel
def _rows(A: Array) -> Matrix3:
    """Return the rows of a matrix (3, 3)."""
    return vector3(A[0], 0), vector3(A[1], 0), vector3(A[2], 0)


@inner_kernel
def _orientation(group: NDArray[np.int64], q: Array, rotation: Array) -> Matrix3:
    """Return the axes that a group follows, in components of the axes of its unknowns."""
    kind, _, i, j = group
    if kind == BODY:
        return rotation_rows(q[i], q[i + 1], q[i + 2], q[i + 3])
    first, second = transposed3(_rows(rotation[i])), transposed3(_rows(rotation[j]))
    x, y, z = mv3(second, first[0]), mv3(second, first[1]), mv3(second, first[2])
    if kind == SPACE:
        return x, y, z
    # the rotation about the z axis of the joint that is closest to x, y; the first unknown is fixed
    c, s = x[0] + y[1], y[0] - x[1]
    size = math.sqrt(c * c + s * s)
    if size == 0.0:
        return (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    return (1.0, 0.0, 0.0), (0.0, c / size, -s / size), (0.0, s / size, c / size)


@kernel
def orientations(groups: NDArray[np.int64], q: Array, rotation: Array, out: Array) -> None:
    """Write the orientation A (groups, 3, 3) of each group.

    Args:
        groups: Table of the groups, (groups, 4).
        q: Coordinates, (nq,).
        rotation: Orientations of the frames, (frames, 3, 3).
        out: Result.
    """
    for k in range(groups.shape[0]):
        put33(out[k], 0, 0, _orientation(groups[k], q, rotation))


@kernel
def rotate_back(
    groups: NDArray[np.int64], q: Array, rotation: Array, origin: Array, turns: Array, x: Array
) -> None:
    """Multiply each group of x by the transpose of A A₀ᵀ, which `turns` (groups, 3, 3) receives.

    See `orientations`; `origin` (groups, 3, 3) contains A₀.
    """
    for k in range(groups.shape[0]):
        A, B, i = _orientation(groups[k], q, rotation), _rows(origin[k]), groups[k, 1]
        turn = mv3(B, A[0]), mv3(B, A[1]), mv3(B, A[2])
        put33(turns[k], 0, 0, turn)
        x[i], x[i + 1], x[i + 2] = mv3(transposed3(turn), vector3(x, i))


@kernel
def rotate_forward(groups: NDArray[np.int64], turns: Array, x: Array) -> None:
    """Multiply each group of x by its matrix in `turns`, (groups, 3, 3)."""
    for k in range(groups.shape[0]):
        i = groups[k, 1]
        x[i], x[i + 1], x[i + 2] = mv3(_rows(turns[k]), vector3(x, i))
