"""Products of small matrices for kernels: plain loops where they are compiled, NumPy where they are
not; and vectors and matrices of space as tuples.

For 3×3 matrices loops are faster than a call of BLAS, and they compile in a tenth of the time.
Tuples live in registers: what is evaluated in every iteration makes no array for three numbers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import COMPILED, inner_kernel

__all__ = [
    "Matrix3",
    "Vector3",
    "add",
    "add3",
    "cross3",
    "dot",
    "dot3",
    "identity",
    "mm",
    "mm3",
    "mv",
    "mv3",
    "outer",
    "plus3",
    "put3",
    "put33",
    "rows3",
    "scaled3",
    "tmv",
    "tmv3",
    "tmv_sizes",
    "transposed3",
    "vector3",
]

Array = NDArray[np.float64]
Vector3 = tuple[float, float, float]
Matrix3 = tuple[Vector3, Vector3, Vector3]  #: by rows


@inner_kernel
def _dot(x: Array, y: Array) -> float:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@inner_kernel
def _mv(A: Array, x: Array) -> Array:
    y = np.empty(A.shape[0])
    columns = A.shape[1]
    whole = columns - columns % 4
    for i in range(A.shape[0]):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0  # four sums: one would wait for itself
        for j in range(0, whole, 4):
            a += A[i, j] * x[j]
            b += A[i, j + 1] * x[j + 1]
            c += A[i, j + 2] * x[j + 2]
            d += A[i, j + 3] * x[j + 3]
        for j in range(whole, columns):
            a += A[i, j] * x[j]
        y[i] = (a + b) + (c + d)
    return y


@inner_kernel
def _tmv(A: Array, x: Array) -> Array:
    y = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        factor = x[i]
        for j in range(A.shape[1]):
            y[j] += factor * A[i, j]
    return y


@inner_kernel
def _mm(A: Array, B: Array) -> Array:
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                C[i, j] += a * B[k, j]
    return C


@inner_kernel
def _tmv_sizes(A: Array, x: Array) -> Array:
    y = np.zeros(A.shape[1])
    for i in range(A.shape[0]):
        factor = abs(x[i])
        for j in range(A.shape[1]):
            y[j] += factor * abs(A[i, j])
    return y


@inner_kernel
def _add(out: Array, A: Array, factor: float) -> None:
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] += factor * A[i, j]


@inner_kernel
def _outer(x: Array, y: Array) -> Array:
    A = np.empty((x.shape[0], y.shape[0]))
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            A[i, j] = x[i] * y[j]
    return A


@inner_kernel
def identity(scale: float) -> Array:
    """A multiple of the 3×3 identity."""
    A = np.zeros((3, 3))
    A[0, 0] = A[1, 1] = A[2, 2] = scale
    return A


def _transposed_times(A: Array, x: Array) -> Array:
    return x @ A


def _transposed_sizes(A: Array, x: Array) -> Array:
    return np.abs(x) @ np.abs(A)


def _add_array(out: Array, A: Array, factor: float) -> None:
    out += factor * A


#: Scalar product, matrix times vector (tmv: its transpose; tmv_sizes: with the magnitudes of all
#: entries), matrix times matrix, dyadic product, and a multiple of a matrix added to another.
dot: Callable[[Array, Array], float] = _dot if COMPILED else np.dot
mv: Callable[[Array, Array], Array] = _mv if COMPILED else np.matmul
tmv: Callable[[Array, Array], Array] = _tmv if COMPILED else _transposed_times
tmv_sizes: Callable[[Array, Array], Array] = _tmv_sizes if COMPILED else _transposed_sizes
mm: Callable[[Array, Array], Array] = _mm if COMPILED else np.matmul
outer: Callable[[Array, Array], Array] = _outer if COMPILED else np.multiply.outer
add: Callable[[Array, Array, float], None] = _add if COMPILED else _add_array


@inner_kernel
def vector3(x: Array, k: int) -> Vector3:
    """Three entries of an array, from k."""
    return x[k], x[k + 1], x[k + 2]


@inner_kernel
def add3(a: Vector3, b: Vector3) -> Vector3:
    """a + b."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@inner_kernel
def scaled3(factor: float, a: Vector3) -> Vector3:
    """A multiple of a vector."""
    return factor * a[0], factor * a[1], factor * a[2]


@inner_kernel
def dot3(a: Vector3, b: Vector3) -> float:
    """a·b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inner_kernel
def cross3(a: Vector3, b: Vector3) -> Vector3:
    """a×b."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


@inner_kernel
def mv3(A: Matrix3, x: Vector3) -> Vector3:
    """A x."""
    return dot3(A[0], x), dot3(A[1], x), dot3(A[2], x)


@inner_kernel
def tmv3(A: Matrix3, x: Vector3) -> Vector3:
    """Aᵀx."""
    return (
        A[0][0] * x[0] + A[1][0] * x[1] + A[2][0] * x[2],
        A[0][1] * x[0] + A[1][1] * x[1] + A[2][1] * x[2],
        A[0][2] * x[0] + A[1][2] * x[1] + A[2][2] * x[2],
    )


@inner_kernel
def mm3(A: Matrix3, B: Matrix3) -> Matrix3:
    """A B."""
    return tmv3(B, A[0]), tmv3(B, A[1]), tmv3(B, A[2])


@inner_kernel
def transposed3(A: Matrix3) -> Matrix3:
    """Aᵀ."""
    return (
        (A[0][0], A[1][0], A[2][0]),
        (A[0][1], A[1][1], A[2][1]),
        (A[0][2], A[1][2], A[2][2]),
    )


@inner_kernel
def plus3(A: Matrix3, B: Matrix3) -> Matrix3:
    """A + B."""
    return add3(A[0], B[0]), add3(A[1], B[1]), add3(A[2], B[2])


@inner_kernel
def rows3(A: Array) -> Matrix3:
    """A 3×3 array as a tuple of rows."""
    return (
        (A[0, 0], A[0, 1], A[0, 2]),
        (A[1, 0], A[1, 1], A[1, 2]),
        (A[2, 0], A[2, 1], A[2, 2]),
    )


@inner_kernel
def put3(out: Array, a: Vector3) -> None:
    """Write a vector into the first three entries of an array."""
    out[0], out[1], out[2] = a


@inner_kernel
def put33(out: Array, A: Matrix3) -> None:
    """Write a tuple of rows into a 3×3 array."""
    out[0, 0], out[0, 1], out[0, 2] = A[0]
    out[1, 0], out[1, 1], out[1, 2] = A[1]
    out[2, 0], out[2, 1], out[2, 2] = A[2]
