"""Mean-axis modes of a free body from its small matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dolfinx_mbd.imports.matrices import MatrixError

__all__ = ["mean_axis_modes"]

Array = NDArray[np.float64]

DEPENDENT_TOLERANCE = 1e-10
"""Least eigenvalue of the mass matrix with a unit diagonal, below which columns are dependent."""


def mean_axis_modes(K: Array, M: Array, R: Array, motion: Array) -> tuple[Array, Array, int]:
    """Modes orthogonal to the rigid motions: ω², their coefficients, and how many were dependent.

    M of the modes is I. A mode's sign is such that the greatest component of the interfaces'
    motion is positive.

    Args:
        K: Shape (c, c).
        M: Shape (c, c).
        R: Coefficients of the rigid motions, shape (c, 6).
        motion: Rows of which the sign is told, shape (any, c).

    Raises:
        MatrixError: If modes without stiffness remain.
    """
    scale = 1 / np.sqrt(np.diag(M))
    Ks, Ms = K * np.outer(scale, scale), M * np.outer(scale, scale)
    sizes, V = np.linalg.eigh((Ms + Ms.T) / 2)
    V = V[:, sizes > DEPENDENT_TOLERANCE]
    B = V.T @ Ms @ (R / scale[:, None])
    q, _ = np.linalg.qr(B / np.linalg.norm(B, axis=0), mode="complete")
    Z = V @ q[:, R.shape[1] :]
    A, C = Z.T @ Ks @ Z, Z.T @ Ms @ Z
    squares, Y = scipy.linalg.eigh((A + A.T) / 2, (C + C.T) / 2)
    loose = int(np.sum(squares < 1e-12 * squares.max(initial=0.0)))
    if loose:
        raise MatrixError(
            f"{loose} modes without stiffness remain beside the rigid motions: the body is in "
            "parts that are not connected, or parts are hinged"
        )
    T = scale[:, None] * (Z @ Y)
    seen = motion @ T
    if seen.size:
        T = T * np.where(seen[np.abs(seen).argmax(axis=0), np.arange(T.shape[1])] < 0, -1.0, 1.0)
    return squares, T, int(np.sum(sizes <= DEPENDENT_TOLERANCE))
