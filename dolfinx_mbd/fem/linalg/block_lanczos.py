"""Block Lanczos iteration with K⁻¹M for the eigenpairs of K ψ = λ M ψ nearest to zero.

The Krylov space grows by a block of vectors at a time, because a solution with eight right-hand
sides costs little more than a solution with two: the factors are read from memory once. A block
also finds eigenvalues with a multiplicity up to its number of vectors. Vectors are distributed over
the ranks; small matrices are equal on all ranks.

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

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import gram

BLOCK_SIZE = 8
"""Number of vectors in a block (see `benchmarks/lanczos.py`).

Larger blocks cost less time per vector, but the iteration needs more vectors.
"""

LOOSE_TOLERANCE = 1e-5  # for pairs whose eigenvalue alone is needed (error 1e-10)
CLOSE = 1e-3  # relative distance of eigenvalues whose pairs have the same accuracy
GUARD_TOLERANCE = 1e-2  # largest relative residual of the first pair beyond the requested pairs
MAX_SOLVES = 400  # largest number of blocks

# Orthogonalization of a block: largest condition number for which one pass suffices; smallest
# reciprocal condition number of a block with full rank; largest number of passes; relative size of
# a part whose square is round-off
SAFE_CONDITION, RANK_TOLERANCE, MAX_PASSES, SMALL_PART = 1e3, 1e-7, 4, 1e-10

_log = logging.getLogger("dolfinx_mbd")


class Breakdown(RuntimeError):
    """An iteration that did not converge, or a block that lost its rank."""


def largest_space(num_modes: int) -> int:
    """Return the dimension at which the Krylov space is restarted."""
    return num_modes + max(num_modes, 16 * BLOCK_SIZE)


def num_accurate(values: Array, num_strict: int) -> int:
    """Return `num_strict` plus the number of further values that are close to the last of these.

    The values are λ in ascending or 1/λ in descending order. Pairs of a multiple eigenvalue must
    have the same accuracy.
    """
    if not 0 < num_strict <= len(values):
        return num_strict
    ratio = np.abs(values) / np.abs(values[num_strict - 1])
    return int(np.sum(np.maximum(ratio, 1 / ratio)[num_strict:] <= 1 + CLOSE)) + num_strict


def tolerances(values: Array, num_modes: int, num_loose: int, tolerance: float) -> Array:
    """Return the largest residual of each pair, shape (num_modes,); see `block_lanczos`."""
    loose = np.arange(num_modes) >= num_accurate(values, num_modes - num_loose)
    return np.where(loose, max(tolerance, LOOSE_TOLERANCE), tolerance)


def block_lanczos(
    comm: MPI.Comm,
    solve: Callable[[Array], Array],
    mass: Callable[[Array], Array],
    start: Array,
    num_modes: int,
    *,
    tolerance: float,
    num_loose: int = 0,
) -> tuple[Array, Array]:
    """Return the eigenpairs with the smallest |λ|, M-normalized.

    A mode can be missed only if all start vectors are orthogonal to it. For eight random vectors
    this is practically impossible: the probability that all their components along the mode are
    below ε is of the order ε⁸. In addition, the residual of the next higher mode must be below
    `GUARD_TOLERANCE`.

    `solve` returns K⁻¹B and `mass` returns M X for blocks of shape (owned rows, k). The start
    vectors are zero in the zero rows of M. The tolerance limits the residuals relative to λ; for
    the last `num_loose` pairs, the limit is `LOOSE_TOLERANCE`, except for those whose eigenvalue is
    close to that of another pair (see `num_accurate`).
    """
    space = _Space(comm, mass, start, largest_space(num_modes))
    for count in range(1, MAX_SOLVES + 1):
        space.extend(solve(space.image))
        theta, S, residual = space.ritz()  # theta approximates 1/λ
        error = residual / np.abs(theta)
        limits = tolerances(theta[:num_modes], num_modes, num_loose, tolerance)
        guarded = len(theta) > num_modes and error[num_modes] <= GUARD_TOLERANCE
        if guarded and (error[:num_modes] <= limits).all():
            _log.info("block Lanczos: %d solves of %d right-hand sides", count, start.shape[1])
            return np.reciprocal(theta[:num_modes]), space.combined(S[:, :num_modes])
        space.restart_if_full(theta, S, num_modes)
    raise Breakdown(f"no convergence in {MAX_SOLVES} solves")


class _Space:
    """A Krylov space of K⁻¹M with an M-orthonormal basis V."""

    def __init__(
        self, comm: MPI.Comm, mass: Callable[[Array], Array], start: Array, max_size: int
    ) -> None:
        self.comm, self.mass = comm, mass
        self._width = width = start.shape[1]
        self._V = np.empty((len(start), max_size + 2 * width), order="F")
        self._images = np.zeros((len(start), 2 * width), order="F")  # M times the last two blocks
        self._num_near = 0  # number of their vectors that take part in the recurrence
        self._T = np.zeros((max_size + width, max_size + width))  # VᵀM K⁻¹M V
        self._max_size = max_size
        self._size = 0  # number of vectors to which K⁻¹M was applied
        self._R: Array = np.zeros((width, width))  # factor R of the last `_orthonormalize`
        self._error: Array = np.zeros((0, width))  # E of the last `_orthonormalize`
        self._orthonormalize(start.copy(order="F"), end=0)

    @property
    def image(self) -> Array:
        """M times the last block of V (up to E), to which K⁻¹M has not been applied."""
        return self._images[:, self._width :]

    def extend(self, W: Array) -> None:
        """Append W, which is K⁻¹ times `image`."""
        begin, end = self._size, self._size + self._width
        near = slice(end - self._num_near, end)
        images = self._images[:, 2 * self._width - self._num_near :]
        h = gram(self.comm, images, W)  # three-term recurrence, before the full pass
        _subtract(W, self._V[:, near], h)
        correction = self._T[:end, :begin] @ self._error
        H, R = self._orthonormalize(W, end)
        H[near] += h
        H -= correction
        self._T[:end, begin:end] = H
        self._T[begin:end, :begin] = H[:begin].T
        self._T[end : end + self._width, begin:end] = self._R = R
        self._size = end

    def _orthonormalize(self, W: Array, end: int) -> tuple[Array, Array]:
        """Decompose W = V H + Q R with the first `end` vectors V; append Q; return H and R.

        The image of W is computed before the part of V is subtracted. If this part is small, it
        remains the image, that of Q + V E with a small matrix E. The next block is then
        K⁻¹M (Q + V E), and `extend` subtracts the part of E from its coefficients.
        """
        V, new = self._V[:, :end], slice(end, end + W.shape[1])
        H, R = np.zeros((end, W.shape[1])), np.eye(W.shape[1])
        for _ in range(MAX_PASSES):
            image: Array = self.mass(W)
            h = gram(self.comm, V, image)
            _subtract(W, V, h)
            G, error = gram(self.comm, W, image), h
            if np.linalg.norm(h) > SMALL_PART * np.sqrt(np.maximum(np.diag(G).min(), 0.0)):
                image, error = self.mass(W), np.zeros_like(h)
                G = gram(self.comm, W, image)
            low, high, r = self.comm.bcast(_cholesky(G) if self.comm.rank == 0 else None, root=0)
            if r is None:
                raise Breakdown("the vectors of a block have become linearly dependent")
            W, image = _divide(W, r), _divide(image, r)
            H += h @ R
            R = r @ R
            if high + np.linalg.norm(h) < SAFE_CONDITION * low:
                self._V[:, new] = W
                self._append_image(image)
                self._error = scipy.linalg.solve_triangular(r, error.T, trans="T").T
                return H, R
        raise Breakdown("a block cannot be made orthogonal")

    def _append_image(self, image: Array) -> None:
        """Keep the images of the last two blocks."""
        self._images[:, : self._width] = self.image
        self._images[:, self._width :] = image
        self._num_near = min(self._num_near + self._width, 2 * self._width)

    def ritz(self) -> tuple[Array, Array, Array]:
        """Return the eigenvalues of T, its eigenvectors, and the norms of the residuals.

        The eigenvalue with the largest magnitude is first.
        """
        pairs = None
        if self.comm.rank == 0:  # other processors may round differently
            T = self._T[: self._size, : self._size]
            theta, S = scipy.linalg.eigh((T + T.T) / 2)
            order = np.argsort(-np.abs(theta))
            pairs = theta[order], np.asfortranarray(S[:, order])
        theta, S = self.comm.bcast(pairs, root=0)
        return theta, S, np.sqrt(np.sum((self._R @ S[-self._width :]) ** 2, axis=0))

    def combined(self, S: Array) -> Array:
        """Return V S, shape (owned rows, columns of S)."""
        return scipy.linalg.blas.dgemm(1.0, self._V[:, : self._size], S)

    def restart_if_full(self, theta: Array, S: Array, num_modes: int) -> None:
        """Restart with the best Ritz vectors and the last block, if the space is full."""
        size, width = self._size, self._width
        if size + width <= self._max_size:
            return
        count = num_modes + 2 * width  # further vectors keep the convergence fast
        self._V[:, :count] = self.combined(S[:, :count])
        self._V[:, count : count + width] = self._V[:, size : size + width]
        self._T[:] = 0.0
        # `extend` adds the coupling of the Ritz vectors to the last block
        self._T[:count, :count] = np.diag(theta[:count])
        self._images[:, width:] = self.mass(self._V[:, count : count + width])
        self._num_near, self._size = width, count
        self._error = np.zeros((count, width))


def _cholesky(G: Array) -> tuple[float, float, Array | None]:
    """Return the smallest and largest singular value of a block, and its Cholesky factor R.

    RᵀR = G is the Gram matrix of the block. R is None if the block has lost its rank.
    """
    low, high = np.sqrt(np.maximum(scipy.linalg.eigvalsh(G)[[0, -1]], 0.0)).tolist()
    return low, high, scipy.linalg.cholesky(G) if low > RANK_TOLERANCE * high else None


def _divide(X: Array, r: Array) -> Array:
    """Return X r⁻¹ for an upper triangular r, and overwrite X."""
    return scipy.linalg.blas.dtrsm(1.0, r, X, side=1, overwrite_b=1)


def _subtract(W: Array, V: Array, h: Array) -> None:
    """Subtract V h from W in place; all are in Fortran order."""
    assert W.flags.f_contiguous  # BLAS would work on a copy otherwise
    if V.size:
        scipy.linalg.blas.dgemm(-1.0, V, h, 1.0, W, overwrite_c=1)
