"""The small dense eigenproblem of a reduced body, without rigid motions and dependent columns."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["independent_columns", "solve_small_problem"]

Array = NDArray[np.float64]

DEPENDENT_TOLERANCE = 1e-10
"""Squared M-norm of what is new in a column, relative to the column, below which it is dropped."""


def solve_small_problem(K: Array, M: Array, B: Array) -> tuple[Array, Array, list[int]]:
    """Eigenvalues and vectors of (K, M) on the M-complement of the rigid motions; dropped columns.

    The eigenvectors are coefficients of the columns, of those that were not dropped.

    Args:
        K: ΨᵀKΨ.
        M: ΨᵀMΨ.
        B: ΨᵀMR, shape (columns, rigid motions); without rigid motions to be removed, no columns.
    """
    scale = 1 / np.sqrt(np.diag(M))
    K = (K + K.T) / 2 * np.outer(scale, scale)
    M = (M + M.T) / 2 * np.outer(scale, scale)
    kept = independent_columns(M, DEPENDENT_TOLERANCE)
    B = (B * scale[:, None])[kept]
    Z = np.eye(len(kept))
    if B.shape[1]:
        q, _ = np.linalg.qr(B / np.linalg.norm(B, axis=0), mode="complete")
        Z = q[:, B.shape[1] :]
    grid = np.ix_(kept, kept)
    squares, V = scipy.linalg.eigh(Z.T @ K[grid] @ Z, Z.T @ M[grid] @ Z)
    transform = np.zeros((len(K), len(squares)))
    transform[kept] = Z @ V
    dropped = sorted(set(range(len(K))) - set(kept))
    return squares, transform * scale[:, None], dropped


def independent_columns(M: Array, tolerance: float) -> list[int]:
    """Columns of a Gram matrix with unit diagonal that are independent, by pivoted Cholesky.

    Returns:
        Their numbers in ascending order.
    """
    rest = np.array(M)
    kept: list[int] = []
    for _ in range(len(M)):
        diagonal = np.diag(rest).copy()
        diagonal[kept] = -np.inf
        k = int(np.argmax(diagonal))
        if diagonal[k] < tolerance:
            break
        kept.append(k)
        rest -= np.outer(rest[:, k], rest[k]) / rest[k, k]
    return sorted(kept)
