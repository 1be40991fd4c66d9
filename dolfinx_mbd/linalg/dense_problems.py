"""Dense eigenvalue problems: that of a reduced body, and sparse ones of few unknowns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.linalg.matrices import owned_rows
from dolfinx_mbd.parallel import agreed

__all__ = ["independent_columns", "solve_on_first_rank", "solve_small_problem"]

Array = NDArray[np.float64]

DEPENDENT_TOLERANCE = 1e-10
"""Squared M-norm of the new part of a column, relative to the column, below which it is dropped."""


def solve_small_problem(K: Array, M: Array, B: Array) -> tuple[Array, Array, list[int]]:
    """Return the eigenpairs of (K, M) on the M-complement of the rigid motions.

    Args:
        K: ΨᵀKΨ for the columns Ψ of a basis.
        M: ΨᵀMΨ.
        B: ΨᵀMR for the rigid motions R to be removed, shape (columns, rigid motions), or no
            columns.

    Returns:
        Eigenvalues; eigenvectors as coefficients of the columns; numbers of the dependent columns,
        which were dropped and have zero coefficients.
    """
    scale = 1 / np.sqrt(np.diag(M))
    K = (K + K.T) / 2 * np.outer(scale, scale)
    M = (M + M.T) / 2 * np.outer(scale, scale)
    columns = independent_columns(M, DEPENDENT_TOLERANCE)
    B = (B * scale[:, None])[columns]
    Z = np.eye(len(columns))
    if B.shape[1]:
        q, _ = np.linalg.qr(B / np.linalg.norm(B, axis=0), mode="complete")
        Z = q[:, B.shape[1] :]
    grid = np.ix_(columns, columns)
    squares, V = scipy.linalg.eigh(Z.T @ K[grid] @ Z, Z.T @ M[grid] @ Z)
    transform = np.zeros((len(K), len(squares)))
    transform[columns] = Z @ V
    dropped = sorted(set(range(len(K))) - set(columns))
    return squares, transform * scale[:, None], dropped


def independent_columns(M: Array, tolerance: float) -> list[int]:
    """Return the numbers of independent columns, in ascending order, by pivoted Cholesky.

    Args:
        M: Gram matrix of the columns with unit diagonal.
        tolerance: Squared norm of the new part of a column below which it is dependent.
    """
    rest = np.array(M)
    columns: list[int] = []
    for _ in range(len(M)):
        diagonal = np.diag(rest).copy()
        diagonal[columns] = -np.inf
        k = int(np.argmax(diagonal))
        if diagonal[k] < tolerance:
            break
        columns.append(k)
        rest -= np.outer(rest[:, k], rest[k]) / rest[k, k]
    return sorted(columns)


def solve_on_first_rank(
    matrices: Sequence[PETSc.Mat | None],
    held: NDArray[np.int32],
    solve: Callable[..., tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gather sparse matrices on the first rank, solve an eigenvalue problem, scatter the vectors.

    Args:
        matrices: Square matrices with the same layout; None is passed on.
        held: Owned held rows (local numbers).
        solve: Called on the first rank with the numbers of all other rows and the dense matrices;
            returns eigenvalues, and vectors of shape (rows, modes).

    Returns:
        Eigenvalues, bitwise equal on all ranks; owned rows of the vectors, shape (owned rows,
        modes).

    Note: Collective.
    """
    first = next(A for A in matrices if A is not None)
    comm, size = first.comm.tompi4py(), first.getSize()[0]
    begin, end = first.getOwnershipRange()
    rows = [None if A is None else owned_rows(A) for A in matrices]
    parts = comm.gather((rows, np.asarray(held) + begin, end - begin), root=0)
    values, pieces = None, None
    with agreed(comm):
        if parts is not None:
            dense = [
                None if A is None else scipy.sparse.vstack([p[0][i] for p in parts]).toarray()
                for i, A in enumerate(matrices)
            ]
            free = np.setdiff1d(np.arange(size), np.concatenate([p[1] for p in parts]))
            values, vectors = solve(free, *dense)
            pieces = np.split(vectors, np.cumsum([p[2] for p in parts])[:-1])
    local = comm.scatter(pieces, root=0)
    return comm.bcast(values, root=0), np.asfortranarray(local)
