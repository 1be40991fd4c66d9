"""Dense eigenvalue problems: reduced bodies, quadratic problems, and small sparse problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array, ComplexArray
from dolfinx_mbd.fem.linalg.sparse_matrices import owned_rows
from dolfinx_mbd.parallel import shared_errors

# A column is dependent if the part outside the span of the other columns has a squared M-norm below
# this number, relative to the whole column.
RANK_TOLERANCE = 1e-10


def solve_small_problem(K: Array, M: Array, B: Array) -> tuple[Array, Array, list[int]]:
    """Return the eigenpairs in the span of a basis Ψ that are M-orthogonal to rigid motions R.

    The arguments are ΨᵀKΨ, ΨᵀMΨ and ΨᵀMR; ΨᵀMR has no columns if no motions are removed. The
    eigenvectors are coefficients of the columns of Ψ. The third result lists the indices of
    dependent columns, which were dropped and have zero coefficients.
    """
    scale = 1 / np.sqrt(np.diag(M))
    K = (K + K.T) / 2 * np.outer(scale, scale)
    M = (M + M.T) / 2 * np.outer(scale, scale)
    columns = independent_columns(M, RANK_TOLERANCE)
    B = (B * scale[:, None])[columns]
    Z = np.eye(len(columns))  # basis of the coefficients of vectors that are M-orthogonal to R
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
    """Return the indices of independent columns.

    M is the Gram matrix of all columns, with unit diagonal. A column is dependent if the part
    outside the span of the other columns has a squared norm below the tolerance.
    """
    _, pivots, rank, _ = scipy.linalg.lapack.dpstrf(M, tol=tolerance)
    return sorted((pivots[:rank] - 1).tolist())


def solve_on_first_rank(
    matrices: Sequence[PETSc.Mat | None],
    held: NDArray[np.int32],
    solve: Callable[..., tuple[NDArray[Any], NDArray[Any]]],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Solve an eigenvalue problem of sparse matrices as a dense problem on the first rank.

    The first rank gathers the matrices and calls `solve(free, *matrices)`, which returns
    eigenvalues and vectors; `free` are the indices of the rows that are not held. A matrix that is
    None is passed as None. The results are the eigenvalues, bitwise identical on all ranks, and the
    owned rows of the vectors.
    """
    first = next(A for A in matrices if A is not None)
    comm, size = first.comm.tompi4py(), first.getSize()[0]
    begin, end = first.getOwnershipRange()
    rows = [None if A is None else owned_rows(A) for A in matrices]
    parts = comm.gather((rows, np.asarray(held) + begin, end - begin), root=0)
    values, pieces = None, None
    with shared_errors(comm):
        if parts is not None:
            by_matrix = zip(*(rows for rows, _, _ in parts), strict=True)
            dense = [
                None if A is None else scipy.sparse.vstack(rows).toarray()
                for A, rows in zip(matrices, by_matrix, strict=True)
            ]
            free = np.setdiff1d(np.arange(size), np.concatenate([held for _, held, _ in parts]))
            values, vectors = solve(free, *dense)
            pieces = np.split(vectors, np.cumsum([count for _, _, count in parts])[:-1])
    local = comm.scatter(pieces, root=0)
    return comm.bcast(values, root=0), np.asfortranarray(local)


def dense_modes(
    M: Array, C: Array | None, K: Array, num_modes: int | None = None
) -> tuple[ComplexArray, ComplexArray]:
    """Return the modes λ, z of λ²M + λC + K with the smallest |λ|, computed by LAPACK.

    By default all modes are returned. Without C, at least all unstable modes are returned.
    """
    n = len(M)
    squares, modes = scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2)
    if C is None:
        count = max(num_modes or n, int(np.sum(squares < 0)))
        return rates(squares[:count]), modes[:, :count].astype(complex)
    scale = np.sqrt(np.abs(squares).max())  # 1/time
    damping = modes.T @ C @ modes
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:], A[n:, :n], A[n:, n:] = np.eye(n), -np.diag(squares) / scale**2, -damping / scale
    eigenvalues, y = np.linalg.eig(A)
    values, columns = select_modes(scale * eigenvalues)
    values, y = values[:num_modes], y[:n, columns[:num_modes]]
    products = (y, damping @ y, squares[:, None] * y)
    quotients = np.array([np.einsum("ik,ik->k", y.conj(), a) for a in products])
    return improved_roots(values, quotients), modes @ y


def select_modes(values: ComplexArray) -> tuple[ComplexArray, NDArray[np.intp]]:
    """Return one eigenvalue λ for each mode, and its index in `values`.

    Real positive eigenvalues, which are unstable, are first; the others are sorted by |λ|. The
    eigenvalue with Im λ > 0 represents a conjugate pair. Real eigenvalues are paired in the order
    of |λ|, and the one with the larger real part represents the pair.
    """
    upper, real = (list(map(int, np.flatnonzero(a))) for a in (values.imag > 0, values.imag == 0))
    real.sort(key=lambda k: (abs(values[k]), values[k].real))
    pairs = [real[k : k + 2] for k in range(0, len(real), 2)]
    selected = upper + [max(pair, key=lambda k: values[k].real) for pair in pairs]
    growing = {k for k in selected if values[k].imag == 0 and values[k].real > 0}
    selected.sort(key=lambda k: -abs(values[k]) if k in growing else abs(values[k]))
    columns = np.array(selected, dtype=np.intp)
    return values[columns], columns


def improved_roots(values: ComplexArray, quotients: ComplexArray) -> ComplexArray:
    """Return the roots of mλ² + cλ + k that are closest to approximate eigenvalues.

    The rows of `quotients` are m = zᴴMz, c = zᴴCz and k = zᴴKz.
    """
    m, c, k = quotients
    m, k = m.real, k.real
    root = np.sqrt(c * c - 4 * m * k + 0j)
    both = np.array([-c + root, -c - root]) / (2 * m)
    closest = np.argmin(np.abs(both - values), axis=0)
    better = both[closest, np.arange(len(values))]
    return np.where(values.imag == 0, better.real, better.real + 1j * np.abs(better.imag))


def rates(squares: Array) -> ComplexArray:
    """Return λ = iω for positive ω², and the growth rate √(-ω²) for negative ω²."""
    root = np.sqrt(np.abs(squares))
    return np.where(squares < 0, root + 0j, 1j * root)
