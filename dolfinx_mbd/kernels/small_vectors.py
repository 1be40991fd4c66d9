"""Vectors and 3×3 matrices as tuples, which compiled code keeps in registers without arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel

Array = NDArray[np.float64]
Table = NDArray[np.int64]
Vector3 = tuple[float, float, float]
Matrix3 = tuple[Vector3, Vector3, Vector3]  #: a tuple of rows


@inner_kernel
def vector3(x: Array, k: int) -> Vector3:
    """Return three entries of an array, starting at index k."""
    return x[k], x[k + 1], x[k + 2]


@inner_kernel
def sum3(a: Vector3, b: Vector3) -> Vector3:
    """Return a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inner_kernel
def scaled3(factor: float, a: Vector3) -> Vector3:
    """Return factor · a."""
    return factor * a[0], factor * a[1], factor * a[2]


@inner_kernel
def dot3(a: Vector3, b: Vector3) -> float:
    """Return a·b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner_kernel
def cross3(a: Vector3, b: Vector3) -> Vector3:
    """Return a×b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@inner_kernel
def mv3(A: Matrix3, x: Vector3) -> Vector3:
    """Return A x."""
    return dot3(A[0], x), dot3(A[1], x), dot3(A[2], x)


@inner_kernel
def transposed3(A: Matrix3) -> Matrix3:
    """Return Aᵀ."""
    return (
        (A[0][0], A[1][0], A[2][0]),
        (A[0][1], A[1][1], A[2][1]),
        (A[0][2], A[1][2], A[2][2]),
    )


@inner_kernel
def tmv3(A: Matrix3, x: Vector3) -> Vector3:
    """Return Aᵀx."""
    return mv3(transposed3(A), x)


@inner_kernel
def mm3(A: Matrix3, B: Matrix3) -> Matrix3:
    """Return A B."""
    return tmv3(B, A[0]), tmv3(B, A[1]), tmv3(B, A[2])


@inner_kernel
def sum33(A: Matrix3, B: Matrix3) -> Matrix3:
    """Return A + B."""
    return sum3(A[0], B[0]), sum3(A[1], B[1]), sum3(A[2], B[2])


@inner_kernel
def scaled33(factor: float, A: Matrix3) -> Matrix3:
    """Return factor · A."""
    return scaled3(factor, A[0]), scaled3(factor, A[1]), scaled3(factor, A[2])


@inner_kernel
def outer3(factor: float, a: Vector3, b: Vector3) -> Matrix3:
    """Return factor · a⊗b."""
    return scaled3(factor * a[0], b), scaled3(factor * a[1], b), scaled3(factor * a[2], b)


@inner_kernel
def put3(out: Array, k: int, a: Vector3) -> None:
    """Write a vector into an array, starting at index k."""
    out[k], out[k + 1], out[k + 2] = a


@inner_kernel
def put33(out: Array, r: int, c: int, A: Matrix3) -> None:
    """Write a matrix into a two-dimensional array, starting at row r and column c."""
    out[r, c], out[r, c + 1], out[r, c + 2] = A[0]
    out[r + 1, c], out[r + 1, c + 1], out[r + 1, c + 2] = A[1]
    out[r + 2, c], out[r + 2, c + 1], out[r + 2, c + 2] = A[2]


@inner_kernel
def add_column3(out: Array, r: int, c: int, a: Vector3) -> None:
    """Add a vector to column c of a two-dimensional array, starting at row r."""
    out[r, c] += a[0]
    out[r + 1, c] += a[1]
    out[r + 2, c] += a[2]


@inner_kernel
def add_scaled33(out: Array, r: int, c: int, factor: float, A: Matrix3) -> None:
    """Add a multiple of a matrix to a two-dimensional array, starting at row r and column c."""
    columns = transposed3(scaled33(factor, A))
    add_column3(out, r, c, columns[0])
    add_column3(out, r, c + 1, columns[1])
    add_column3(out, r, c + 2, columns[2])
