"""Eigenpairs of K ψ = λ M ψ nearest to zero by a block Lanczos iteration with K⁻¹M.

A factorization solves eight right-hand sides at hardly the cost of two: the factors must come from
memory once whatever their number. So the Krylov space grows by a block at a time, which also finds
eigenvalues of a multiplicity up to the block's size. Vectors are distributed over the ranks; small
matrices are the same on all.

References:
    Grimes, Lewis, Simon (1994), A shifted block Lanczos algorithm for solving sparse symmetric
    generalized eigenproblems, SIAM J. Matrix Anal. Appl. 15, 228-272.
    Wu, Simon (2000), Thick-restart Lanczos method for large symmetric eigenvalue problems, SIAM J.
    Matrix Anal. Appl. 22, 602-616.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.linalg.factorization import gram

__all__ = ["BLOCK", "Breakdown", "block_lanczos"]

Array = NDArray[np.float64]

BLOCK = 8
"""Vectors in a block. More are cheaper each, and make more of them (benchmarks/lanczos.py)."""

GUARD = 1e-2
"""Relative residual up to which the first pair that was not asked for counts as known."""

MAX_SOLVES = 400
"""Blocks after which the iteration is given up."""

SAFE, DEPENDENT, PASSES = 1e3, 1e-7, 4
"""Condition of a block up to which it is orthogonal enough after a pass; from which it has lost its
rank; and the most passes."""

_log = logging.getLogger("dolfinx_mbd")


class Breakdown(RuntimeError):
    """The iteration came to no end, or the Krylov space to its."""


def largest_space(num_modes: int) -> int:
    """Vectors of the Krylov space at which it is restarted."""
    return num_modes + max(num_modes, 16 * BLOCK)


def block_lanczos(
    comm: MPI.Comm,
    solve: Callable[[Array], Array],
    mass: Callable[[Array], Array],
    start: Array,
    num_modes: int,
    *,
    tolerance: float,
) -> tuple[Array, Array]:
    """The eigenpairs with the smallest |λ|, M-normalized.

    A mode could be missed only if all vectors of the start lack it. Of random ones of a block of
    eight that is as good as impossible: they lack it up to ε with a probability of the order ε⁸,
    and the iteration goes on until the next higher mode is known as well.

    Args:
        comm: Communicator of the distributed rows.
        solve: X = K⁻¹B for blocks of shape (owned rows, k).
        mass: M X, likewise.
        start: Random vectors, shape (owned rows, block), zero where M has no rows.
        num_modes: How many.
        tolerance: Residual relative to the eigenvalue.

    Returns:
        Eigenvalues λ, |λ| ascending, shape (num_modes,), the same on every rank; eigenvectors,
        shape (owned rows, num_modes), Fortran order.

    Raises:
        Breakdown: No convergence, or the vectors of a block have become dependent.

    Note: Collective over `comm`.
    """
    space = _Space(comm, mass, start, largest_space(num_modes))
    for count in range(1, MAX_SOLVES + 1):
        space.extend(solve(space.image))
        theta, S, residual = space.ritz()
        error = residual / np.abs(theta)
        known = len(theta) > num_modes and error[num_modes] <= GUARD
        if known and (error[:num_modes] <= tolerance).all():
            _log.info("block Lanczos: %d solves of %d right-hand sides", count, start.shape[1])
            return np.reciprocal(theta[:num_modes]), space.combined(S[:, :num_modes])
        space.restart_if_full(theta, S, num_modes)
    raise Breakdown(f"no convergence in {MAX_SOLVES} solves")


class _Space:
    """A Krylov space of K⁻¹M in M-orthonormal vectors V, the last of which K⁻¹M has not seen.

    Attributes:
        image: M times the last block.
    """

    def __init__(
        self, comm: MPI.Comm, mass: Callable[[Array], Array], start: Array, most: int
    ) -> None:
        self.comm, self.mass = comm, mass
        self.image: Array
        self._near: Array  # M times the last block, or the last two
        self._width = width = start.shape[1]
        self._V = np.empty((len(start), most + 2 * width), order="F")
        self._T = np.zeros((most + width, most + width))  # VᵀM K⁻¹M V
        self._most, self._size = most, 0  # vectors that K⁻¹M was applied to
        self._R: Array = np.zeros((width, width))  # what came of the last of these, in the new ones
        _, _, self.image = self._orthonormal(start.copy(order="F"), mass(start), end=0)
        self._near = self.image

    def extend(self, W: Array) -> None:
        """Take in K⁻¹M times the last block."""
        begin, end = self._size, self._size + self._width
        image: Array = self.mass(W)
        near = slice(end - self._near.shape[1], end)
        h = gram(self.comm, self._V[:, near], image)  # most of it: the recurrence of three terms
        _subtract(W, self._V[:, near], h)
        _subtract(image, self._near, h)
        H, self._R, image = self._orthonormal(W, image, end)
        H[near] += h
        self._T[:end, begin:end] = H
        self._T[begin:end, :begin] = H[:begin].T
        self._near = np.asfortranarray(np.hstack([self.image, image]))
        self.image, self._size = image, end

    def _orthonormal(self, W: Array, image: Array, end: int) -> tuple[Array, Array, Array]:
        """W = V H + Q R for the first vectors; Q becomes the next. Returns H, R and M Q."""
        V, new = self._V[:, :end], slice(end, end + W.shape[1])
        H, R = np.zeros((end, W.shape[1])), np.eye(W.shape[1])
        for _ in range(PASSES):
            h = gram(self.comm, V, image)
            _subtract(W, V, h)
            image = self.mass(W)
            G = gram(self.comm, W, image)
            low, high, r = self.comm.bcast(_cholesky(G) if self.comm.rank == 0 else None, root=0)
            if r is None:
                raise Breakdown("the vectors of a block have become dependent")
            W, image = _over(W, r), _over(image, r)
            H += h @ R
            R = r @ R
            if high + np.linalg.norm(h) < SAFE * low:
                self._V[:, new] = W
                return H, R, image
        raise Breakdown("a block cannot be made orthogonal")

    def ritz(self) -> tuple[Array, Array, Array]:
        """Eigenvalues of T, those of greatest size first, eigenvectors, norms of the residuals."""
        found = None
        if self.comm.rank == 0:  # other processors may round in other ways
            T = self._T[: self._size, : self._size]
            theta, S = scipy.linalg.eigh((T + T.T) / 2)
            order = np.argsort(-np.abs(theta))
            found = theta[order], np.asfortranarray(S[:, order])
        theta, S = self.comm.bcast(found, root=0)
        return theta, S, np.sqrt(np.sum((self._R @ S[-self._width :]) ** 2, axis=0))

    def combined(self, S: Array) -> Array:
        """V S, shape (owned rows, columns of S)."""
        return scipy.linalg.blas.dgemm(1.0, self._V[:, : self._size], S)

    def restart_if_full(self, theta: Array, S: Array, num_modes: int) -> None:
        """Keep the best of the space, and the last block."""
        size, width = self._size, self._width
        if size + width <= self._most:
            return
        kept = num_modes + 2 * width
        self._V[:, :kept] = self.combined(S[:, :kept])
        self._V[:, kept : kept + width] = self._V[:, size : size + width]
        self._T[:] = 0.0
        self._T[:kept, :kept] = np.diag(theta[:kept])
        self._near, self._size = self.image, kept


def _cholesky(G: Array) -> tuple[float, float, Array | None]:
    """Least and greatest length of a combination of vectors with Gram matrix G; R with RᵀR = G.

    R is None where they are dependent.
    """
    low, high = np.sqrt(np.maximum(scipy.linalg.eigvalsh(G)[[0, -1]], 0.0)).tolist()
    return low, high, scipy.linalg.cholesky(G) if low > DEPENDENT * high else None


def _over(X: Array, r: Array) -> Array:
    """X r⁻¹ for an upper triangle r; overwrites X."""
    return scipy.linalg.blas.dtrsm(1.0, r, X, side=1, overwrite_b=1)


def _subtract(W: Array, V: Array, h: Array) -> None:
    """W -= V h in place, all in Fortran order."""
    assert W.flags.f_contiguous  # or BLAS would work on a copy
    if V.size:
        scipy.linalg.blas.dgemm(-1.0, V, h, 1.0, W, overwrite_c=1)
