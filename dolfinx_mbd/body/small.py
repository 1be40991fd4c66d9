"""Products of small matrices for kernels: plain loops where they are compiled, NumPy where they are
not.

For 3×3 matrices loops are faster than a call of BLAS, and they compile in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.jit import COMPILED, kernel

__all__ = ["dot", "identity", "mm", "mv", "outer"]

Array = NDArray[np.float64]


@kernel
def _dot(x: Array, y: Array) -> float:
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@kernel
def _mv(A: Array, x: Array) -> Array:
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[i] += A[i, j] * x[j]
    return y


@kernel
def _mm(A: Array, B: Array) -> Array:
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            a = A[i, k]
            for j in range(B.shape[1]):
                C[i, j] += a * B[k, j]
    return C


@kernel
def _outer(x: Array, y: Array) -> Array:
    A = np.empty((x.shape[0], y.shape[0]))
    for i in range(x.shape[0]):
        for j in range(y.shape[0]):
            A[i, j] = x[i] * y[j]
    return A


@kernel
def identity(scale: float) -> Array:
    """A multiple of the 3×3 identity."""
    A = np.zeros((3, 3))
    A[0, 0] = A[1, 1] = A[2, 2] = scale
    return A


#: Scalar product, matrix times vector, matrix times matrix, dyadic product.
dot: Callable[[Array, Array], float] = _dot if COMPILED else np.dot
mv: Callable[[Array, Array], Array] = _mv if COMPILED else np.matmul
mm: Callable[[Array, Array], Array] = _mm if COMPILED else np.matmul
outer: Callable[[Array, Array], Array] = _outer if COMPILED else np.multiply.outer
