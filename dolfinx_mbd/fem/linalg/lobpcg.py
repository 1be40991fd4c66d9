"""Lowest eigenpairs of K ψ = λ M ψ from products and a preconditioner T ≈ K⁻¹ (LOBPCG).

In each iteration the Ritz vectors X, the preconditioned residuals W = T (K X - M X Λ) and the last
steps P span the space of the next Ritz vectors. More pairs than requested are iterated, so that the
last requested pairs converge as fast as the first.

References:
    Knyazev (2001), Toward the optimal preconditioned eigensolver: locally optimal block
    preconditioned conjugate gradient method, SIAM J. Sci. Comput. 23, 517-541.
    Hetmaniuk, Lehoucq (2006), Basis selection in LOBPCG, J. Comput. Phys. 218, 324-332.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram
from dolfinx_mbd.fem.linalg.solver_convergence import (
    ROUND_OFF,
    IterationError,
    Stagnation,
    round_off_level,
)

Operator = Callable[[Array], Array]

MAX_ITERATIONS = 500
RANK_TOLERANCE = 1e-12  # largest relative squared length of the new part of a dropped direction
CHANGE_LIMIT = 1e-10  # a pair is iterated again if its eigenvalue changes more, relatively
CHUNK_ROWS = 8192  # number of rows that are combined in place at a time

_log = logging.getLogger("dolfinx_mbd")


def guard_vectors(num_modes: int) -> int:
    """Return the number of vectors to iterate in addition to the requested ones."""
    return max(4, num_modes // 4)


def lobpcg(
    comm: MPI.Comm,
    stiffness: Operator,
    mass: Operator,
    precondition: Operator,
    start: Array,
    num_modes: int,
    *,
    tolerance: float,
    scale: Array | None = None,
) -> tuple[Array, Array]:
    """Return the lowest eigenpairs, M-normalized.

    An eigenvalue has converged if rᵀT r ≤ `tolerance` λ for its residual r. With T = K⁻¹, rᵀT r / λ
    is the relative error of the eigenvalue up to a factor that depends on the other eigenvalues.
    With `scale` (the square roots of the diagonal of K, zero in held rows), residuals that no
    longer decrease are accepted at the level of round-off.

    The operators accept blocks of vectors of shape (owned rows, k); `precondition` applies T and
    may subtract forces of constraints from its argument in place. The start vectors are in the
    range of T and include `guard_vectors`. The eigenvectors have shape (owned rows, `num_modes`).
    """
    size = start.shape[1]
    basis = _Basis(comm, start, stiffness, mass)
    values = basis.rayleigh_ritz(np.zeros(0))
    error, active = np.full(size, np.inf), np.ones(size, dtype=bool)
    stagnation, refreshed = Stagnation(), False
    for count in range(MAX_ITERATIONS + 1):
        if not values[0] > 0:
            raise IterationError(
                "the stiffness is not positive definite: a part of the body is not held, or the "
                "stiffness form is wrong",
                iterations=count,
            )
        columns = np.flatnonzero(active)
        R = basis.residuals(columns, values)
        W = precondition(R)
        error[columns] = column_sums(comm, R, W) / values[columns]
        if not np.isfinite(error).all():
            break
        largest = float(error[:num_modes].max())
        converged = largest <= tolerance
        if stagnation.check(count, largest) and scale is not None and not converged:
            level = np.zeros(size)
            level[columns] = round_off_level(comm, scale, R, basis.V[:, columns])
            converged = refreshed and bool((level[:num_modes] <= ROUND_OFF).all())
            if not converged:
                basis.refresh()
                # after a refresh no vector is known to be a Ritz vector
                values, refreshed = basis.rayleigh_ritz(np.zeros(0)), True
                continue
        if converged:
            _log.info("LOBPCG: %d iterations of %d vectors", count, size)
            return values[:num_modes], basis.V[:, :num_modes].copy(order="F")
        active[columns] = error[columns] > tolerance / 10
        basis.append(W[:, active[columns]])
        del R, W
        previous, values = values, basis.rayleigh_ritz(values)
        active |= np.abs(values - previous) > CHANGE_LIMIT * values
    raise IterationError(
        f"the eigenvalue iteration did not converge in {count} steps (relative error "
        f"{error[:num_modes].max():.1e}, tolerance {tolerance:.1e}); use solver='direct', or "
        "request fewer modes",
        iterations=count,
        error=float(error[:num_modes].max()),
        tolerance=tolerance,
    )


class _Basis:
    """Vectors V and the products K V and M V.

    V consists of the Ritz vectors, the steps and the new directions, in this order.
    """

    def __init__(self, comm: MPI.Comm, start: Array, stiffness: Operator, mass: Operator) -> None:
        self.comm, self._stiffness, self._mass = comm, stiffness, mass
        self.size, self.used = start.shape[1], 0
        shape = len(start), 3 * self.size
        self.V, self.K, self.M = (np.empty(shape, order="F") for _ in range(3))
        self._store(start)

    def _store(self, W: Array) -> None:
        """Append vectors W and the products K W and M W."""
        new = slice(self.used, self.used + W.shape[1])
        self.V[:, new], self.K[:, new], self.M[:, new] = W, self._stiffness(W), self._mass(W)
        self.used = new.stop

    def refresh(self) -> None:
        """Recompute the products of the Ritz vectors, to remove accumulated round-off."""
        self.used = 0
        self._store(self.V[:, : self.size].copy(order="F"))

    def residuals(self, columns: NDArray[np.int64], values: Array) -> Array:
        """Return K X - M X Λ of some Ritz vectors."""
        R = np.empty((len(self.V), len(columns)), order="F")
        for j, k in enumerate(columns):
            np.multiply(self.M[:, k], -values[k], out=R[:, j])
            R[:, j] += self.K[:, k]
        return R

    def append(self, W: Array) -> None:
        """Append new directions without their components along the Ritz vectors."""
        overlap = gram(self.comm, self.M[:, : self.size], W)
        for begin in range(0, len(W), CHUNK_ROWS):
            rows = slice(begin, begin + CHUNK_ROWS)
            W[rows] -= (overlap.T @ self.V[rows, : self.size].T).T
        W /= np.sqrt(np.maximum(column_sums(self.comm, W, W), np.finfo(float).tiny))
        self._store(np.asfortranarray(W))

    def rayleigh_ritz(self, values: Array) -> Array:
        """Replace the basis by the lowest Ritz vectors and their steps; return the Ritz values.

        The first vectors are Ritz vectors with these `values`, so that their matrices are diagonal.
        """
        used, num_ritz = slice(0, self.used), len(values)
        matrices: list[Array] = []
        for images, diagonal in ((self.K, values), (self.M, np.ones(num_ritz))):
            A = np.zeros((self.used, self.used))
            A[num_ritz:] = gram(self.comm, self.V[:, num_ritz : self.used], images[:, used])
            A[:num_ritz, num_ritz:] = A[num_ritz:, :num_ritz].T
            A[range(num_ritz), range(num_ritz)] = diagonal
            matrices.append((A + A.T) / 2)
        pairs = None
        if self.comm.rank == 0:
            stiffness, mass = matrices
            pairs = _small_problem(stiffness, mass, self.size, num_ritz)
        values, C = self.comm.bcast(pairs, root=0)
        for X in (self.V, self.K, self.M):
            for begin in range(0, len(X), CHUNK_ROWS):
                rows = slice(begin, begin + CHUNK_ROWS)
                X[rows, : C.shape[1]] = (C.T @ X[rows, used].T).T
        self.used = C.shape[1]
        return np.asarray(values)


def _small_problem(k: Array, m: Array, size: int, num_ritz: int) -> tuple[Array, Array]:
    """Return the lowest eigenvalues and the coefficients of the Ritz vectors and their steps."""
    scale = 1.0 / np.sqrt(np.diag(m))
    lengths, Q = scipy.linalg.eigh(m * np.outer(scale, scale))
    independent = lengths > RANK_TOLERANCE * lengths[-1]
    Q = scale[:, None] * Q[:, independent] / np.sqrt(lengths[independent])
    values, Z = scipy.linalg.eigh(Q.T @ k @ Q, subset_by_index=(0, size - 1))
    C = Q @ Z
    if not num_ritz:
        return values, C
    steps = C.copy()
    steps[:num_ritz] = 0.0
    lengths = np.sqrt(np.einsum("ik,ij,jk->k", steps, m, steps))
    nonzero = lengths > 1e-10
    return values, np.hstack([C, steps[:, nonzero] / lengths[nonzero]])
