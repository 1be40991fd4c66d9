"""Lowest eigenpairs of K ψ = λ M ψ from products and a preconditioner T ≈ K⁻¹, a block at a time.

In each iteration the Ritz vectors X, the preconditioned residuals W = T (K X - M X Λ) and the last
steps P span the space in which the next Ritz vectors are best. Beside the wanted pairs some more
are iterated, so that the last wanted ones converge as fast as the others.

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

from dolfinx_mbd.iterative.convergence import ROUND_OFF, IterationError, Stagnation, round_off_level
from dolfinx_mbd.iterative.products import column_sums
from dolfinx_mbd.linalg.factorization import gram

__all__ = ["guards", "lobpcg"]

Array = NDArray[np.float64]
Operator = Callable[[Array], Array]

MAX_ITERATIONS = 500

DEPENDENT = 1e-12
"""Squared length of what is new in a direction, relative to it, below which it is left out."""

MOVED = 1e-10
"""Relative change of an eigenvalue from which its pair is no longer taken as converged."""

ROWS = 8192
"""Rows at a time in which vectors are combined in place."""

_log = logging.getLogger("dolfinx_mbd")


def guards(num_modes: int) -> int:
    """How many vectors to iterate beside the wanted ones."""
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
    """The lowest eigenpairs, M-normalized.

    An eigenvalue is taken as converged when rᵀT r ≤ `tolerance` λ for its residual r: with T = K⁻¹
    that is the relative error of the eigenvalue, but for the distance to the other eigenvalues.
    Residuals that no longer fall are accepted at the level of round-off.

    Args:
        comm: Communicator of the distributed rows.
        stiffness: K X for blocks of vectors, shape (owned rows, k).
        mass: M X, likewise.
        precondition: T R, likewise; its range is where solutions are sought. May overwrite R by
            what differs from it by forces of constraints.
        start: Vectors in that range, shape (owned rows, `num_modes` and some more).
        num_modes: How many are wanted.
        tolerance: Of the eigenvalues, relative.
        scale: Square roots of the diagonal of K, zero in held rows, shape (owned rows,), by which
            the level of round-off is known; None: it is not, and `tolerance` must be reached.

    Returns:
        Eigenvalues λ, ascending, shape (num_modes,), the same on every rank; eigenvectors, shape
        (owned rows, num_modes), Fortran order.

    Raises:
        IterationError: No convergence, or K is not positive definite.

    Note: Collective over `comm`.
    """
    size = start.shape[1]
    S = _Vectors(comm, start, 3 * size, stiffness, mass)
    values = S.rayleigh_ritz(np.zeros(0), size)
    error, going = np.full(size, np.inf), np.ones(size, dtype=bool)
    stagnation, fresh = Stagnation(), False
    for count in range(MAX_ITERATIONS + 1):
        if not values[0] > 0:
            raise IterationError(
                "the stiffness is not positive definite: a part of the body is not held, or the "
                "stiffness form is wrong",
                iterations=count,
            )
        on = np.flatnonzero(going)
        R = S.residuals(on, values)
        W = precondition(R)
        error[on] = column_sums(comm, R, W) / values[on]
        if not np.isfinite(error).all():
            break
        done = error[:num_modes] <= tolerance
        stalled = stagnation.found(count, error[:num_modes].max(keepdims=True))
        if scale is not None and stalled is not None and stalled.all():
            level = np.zeros(size)
            level[on] = round_off_level(comm, scale, R, S.V[:, on])
            if not fresh or (level[:num_modes] > ROUND_OFF).any():
                S.refresh(size)
                values, fresh = S.rayleigh_ritz(values[:0], size), True
                continue
            done |= True
        if done.all():
            _log.info("LOBPCG: %d iterations of %d vectors", count, size)
            return values[:num_modes], S.V[:, :num_modes].copy(order="F")
        going[on] = error[on] > tolerance / 10
        S.append(W[:, going[on]], size)
        del R, W
        before, values = values, S.rayleigh_ritz(values, size)
        going |= np.abs(values - before) > MOVED * values
    raise IterationError(
        f"the eigenvalue iteration did not converge in {count} steps (relative error "
        f"{error[:num_modes].max():.1e}, tolerance {tolerance:.1e}); use solver='direct', or ask "
        "for fewer modes",
        iterations=count,
        error=float(error[:num_modes].max()),
        tolerance=tolerance,
    )


class _Vectors:
    """Vectors V with K V and M V, in the order Ritz vectors, last steps, new directions."""

    def __init__(
        self, comm: MPI.Comm, start: Array, most: int, stiffness: Operator, mass: Operator
    ) -> None:
        self.comm, self._stiffness, self._mass = comm, stiffness, mass
        self.V, self.K, self.M = (np.empty((len(start), most), order="F") for _ in range(3))
        self.used = 0
        self._take_in(start)

    def _take_in(self, W: Array) -> None:
        part = slice(self.used, self.used + W.shape[1])
        self.V[:, part], self.K[:, part], self.M[:, part] = W, self._stiffness(W), self._mass(W)
        self.used = part.stop

    def refresh(self, size: int) -> None:
        """Multiply the Ritz vectors anew, without the round-off of their combinations."""
        self.used = 0
        self._take_in(self.V[:, :size].copy(order="F"))

    def residuals(self, columns: NDArray[np.int64], values: Array) -> Array:
        """K X - M X Λ of some Ritz vectors."""
        R = np.empty((len(self.V), len(columns)), order="F")
        for j, k in enumerate(columns):
            np.multiply(self.M[:, k], -values[k], out=R[:, j])
            R[:, j] += self.K[:, k]
        return R

    def append(self, W: Array, size: int) -> None:
        """Take in new directions, less what the Ritz vectors have of them."""
        overlap = gram(self.comm, self.M[:, :size], W)
        for begin in range(0, len(W), ROWS):
            rows = slice(begin, begin + ROWS)
            W[rows] -= (overlap.T @ self.V[rows, :size].T).T
        W /= np.sqrt(np.maximum(column_sums(self.comm, W, W), np.finfo(float).tiny))
        self._take_in(np.asfortranarray(W))

    def rayleigh_ritz(self, values: Array, size: int) -> Array:
        """Replace the vectors by the best `size` ones in their span, and the steps to them."""
        used = slice(0, self.used)
        known = len(values)
        k, m = (np.zeros((self.used, self.used)) for _ in range(2))
        for small, images in ((k, self.K), (m, self.M)):
            small[known:] = gram(self.comm, self.V[:, known : self.used], images[:, used])
            small[:known, known:] = small[known:, :known].T
            small[known:, known:] += small[known:, known:].T.copy()
            small[known:, known:] /= 2
        k[range(known), range(known)], m[range(known), range(known)] = values, 1.0
        found = None
        if self.comm.rank == 0:
            found = _small_problem(k, m, size, known)
        values, C = self.comm.bcast(found, root=0)
        for X in (self.V, self.K, self.M):
            for begin in range(0, len(X), ROWS):
                rows = slice(begin, begin + ROWS)
                X[rows, : C.shape[1]] = (C.T @ X[rows, used].T).T
        self.used = C.shape[1]
        return np.asarray(values)


def _small_problem(k: Array, m: Array, size: int, known: int) -> tuple[Array, Array]:
    """Lowest eigenvalues; coefficients of their vectors, and of the steps from the old ones."""
    scale = 1.0 / np.sqrt(np.diag(m))
    lengths, Q = scipy.linalg.eigh(m * np.outer(scale, scale))
    good = lengths > DEPENDENT * lengths[-1]
    Q = scale[:, None] * Q[:, good] / np.sqrt(lengths[good])
    values, Z = scipy.linalg.eigh(Q.T @ k @ Q, subset_by_index=(0, size - 1))
    C = Q @ Z
    if not known:
        return values, C
    steps = C.copy()
    steps[:known] = 0.0
    lengths = np.sqrt(np.einsum("ik,ij,jk->k", steps, m, steps))
    kept = lengths > 1e-10
    return values, np.hstack([C, steps[:, kept] / lengths[kept]])
