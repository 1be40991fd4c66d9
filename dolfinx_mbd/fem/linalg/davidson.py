"""Block Davidson iteration for the lowest eigenpairs of K ψ = λ M ψ with an approximate K⁻¹.

The search space grows by T r for the residuals r = K x - λ M x of the lowest Ritz pairs that have
not converged, where T ≈ K⁻¹. The residuals are those of K, so that errors of T cost iterations but
no accuracy. Only the basis V is stored; products with K and M are computed again. Vectors are
distributed over the ranks; small matrices are equal on all ranks.

References:
    Morgan, Scott (1986), Generalizations of Davidson's method for computing eigenvalues of sparse
    symmetric matrices, SIAM J. Sci. Stat. Comput. 7, 817-825.
    Stathopoulos, Wu (2002), A block orthogonalization procedure with constant synchronization
    requirements, SIAM J. Sci. Comput. 23, 2165-2182.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.block_lanczos import GUARD_TOLERANCE, Breakdown, tolerances
from dolfinx_mbd.fem.linalg.blocks import add_combined, column_sums, combined, gram, multiply
from dolfinx_mbd.fem.linalg.solver_convergence import round_off_level

Operator = Callable[[Array], Array]

TOLERANCE = 3e-9  # largest relative error of a mode in the energy norm
BLOCK_SIZE = 12  # largest number of residuals in a step
MAX_STEPS = 40  # largest number of steps, in addition to the number of requested pairs
SPACE = 160  # largest number of basis vectors beyond the requested pairs
CHANGE_LIMIT = 1e-10  # a pair is iterated again if its eigenvalue changes more, relatively
LEVEL = 10.0  # residuals up to this level of round-off count as zero (see `round_off_level`)

# Orthogonalization: smallest remaining part of a squared length for which one pass suffices;
# smallest eigenvalue of the normalized Gram matrix of the directions that are appended
SAFE_PART, RANK_TOLERANCE, MAX_PASSES = 1e-2, 1e-6, 4

_log = logging.getLogger("dolfinx_mbd")


def davidson(
    comm: MPI.Comm,
    stiffness: Operator,
    mass: Operator,
    precondition: Operator,
    start: Array,
    num_modes: int,
    *,
    tolerance: float,
    scale: Array,
    num_loose: int = 0,
) -> tuple[Array, Array]:
    """Return the lowest eigenpairs, M-normalized.

    A pair has converged if the relative error of its vector in the energy norm, √(rᵀT r / λ), is
    below the tolerance, or if the residual is round-off. For the last `num_loose` pairs, the limit
    is `LOOSE_TOLERANCE` (see `block_lanczos`); the residual of the next higher mode must be below
    `GUARD_TOLERANCE`.

    The operators accept blocks of shape (owned rows, k); `precondition` applies T and may subtract
    forces of constraints from its argument in place. The start vectors are loads. `scale` holds the
    square roots of the diagonal of K, with zeros in held rows.
    """
    space = _Space(comm, stiffness, mass, num_modes + SPACE)
    space.extend(precondition(start))
    values, S = space.ritz()
    error = np.full(num_modes + 1, np.inf)
    max_steps = MAX_STEPS + num_modes
    for count in range(1, max_steps + 1):
        limits = tolerances(values[:num_modes], num_modes, num_loose, tolerance)
        limits = np.append(limits, GUARD_TOLERANCE)
        targets = np.flatnonzero(error > limits)[:BLOCK_SIZE]
        if not len(targets):
            _log.info("block Davidson: %d steps, %d vectors", count, space.size)
            return space.pairs(S[:, :num_modes])
        targets = targets[targets < space.size]
        if not len(targets):
            raise Breakdown("the search space has stopped growing")
        X = combined(space.basis, np.asfortranarray(S[:, targets]))
        R = stiffness(X) - mass(X) * values[targets]
        W = precondition(R)
        level = round_off_level(comm, scale, R, X)
        squares = column_sums(comm, W, R) / values[targets]
        if not (np.isfinite(squares).all() and values[0] > 0):
            raise Breakdown("the stiffness is not positive definite to working accuracy")
        error[targets] = np.where(level <= LEVEL, 0.0, np.sqrt(np.abs(squares)))
        new = error[targets] > limits[targets]
        if new.any():
            space.restart_if_full(S, num_modes)
            space.extend(np.asfortranarray(W[:, new]))
            previous, (values, S) = values, space.ritz()
            size = min(len(error), len(previous))
            changes = np.abs(values[:size] - previous[:size])
            error[:size][changes > CHANGE_LIMIT * values[:size]] = np.inf
    raise Breakdown(f"no convergence in {max_steps} steps")


def davidson_modes(
    stiffness: Operator,
    M: PETSc.Mat,
    precondition: Operator,
    num_modes: int,
    *,
    scale: Array,
    num_loose: int = 0,
) -> tuple[Array, Array]:
    """Return the result of `davidson` for a mass matrix with zeros in held rows.

    The start vectors are M times random vectors.
    """
    comm, rows = M.comm.tompi4py(), M.getLocalSize()[0]
    random = np.random.default_rng(comm.rank).standard_normal((BLOCK_SIZE, rows)).T
    start, mass = multiply(M, random), partial(multiply, M)
    operators = stiffness, mass, precondition
    options: dict[str, Any] = {"tolerance": TOLERANCE, "scale": scale, "num_loose": num_loose}
    return davidson(comm, *operators, start, num_modes, **options)


class _Space:
    """A search space with an M-orthonormal basis V and the matrix H = VᵀK V."""

    def __init__(self, comm: MPI.Comm, stiffness: Operator, mass: Operator, max_size: int) -> None:
        self.comm, self._stiffness, self._mass = comm, stiffness, mass
        self.size, self._max_size = 0, max_size
        self._V: Array | None = None
        self._H = np.zeros((max_size, max_size))

    @property
    def basis(self) -> Array:
        """The vectors V, shape (owned rows, size)."""
        assert self._V is not None
        return self._V[:, : self.size]

    def extend(self, W: Array) -> None:
        """Append the part of W that is not in the space."""
        if self._V is None:
            self._V = np.empty((len(W), self._max_size), order="F")
        W = self._orthonormalize(W)
        begin, end = self.size, self.size + W.shape[1]
        self._V[:, begin:end], self.size = W, end
        h = gram(self.comm, self.basis, self._stiffness(W))
        self._H[:end, begin:end], self._H[begin:end, :end] = h, h.T

    def _orthonormalize(self, W: Array) -> Array:
        """Return an M-orthonormal basis of the part of W that is M-orthogonal to V."""
        W = W / np.sqrt(np.maximum(column_sums(self.comm, W, W), np.finfo(float).tiny))
        for _ in range(MAX_PASSES):
            image = self._mass(W)
            before = column_sums(self.comm, W, image)
            add_combined(W, self.basis, -gram(self.comm, self.basis, image))
            G = gram(self.comm, W, image)  # equals WᵀM W, because VᵀM W = 0
            if (np.diag(G) > SAFE_PART * before).all():
                break
        d = 1.0 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
        s, U = self.comm.bcast(scipy.linalg.eigh(d[:, None] * (G + G.T) / 2 * d), root=0)
        large = s > RANK_TOLERANCE
        return combined(W, np.asfortranarray(d[:, None] * U[:, large] / np.sqrt(s[large])))

    def ritz(self) -> tuple[Array, Array]:
        """Return the Ritz values, the smallest first, and the eigenvectors of H."""
        H = self._H[: self.size, : self.size]
        values, S = self.comm.bcast(scipy.linalg.eigh((H + H.T) / 2), root=0)
        return values, np.asfortranarray(S)

    def pairs(self, S: Array) -> tuple[Array, Array]:
        """Return the Ritz pairs in the span of V S, without errors of the basis."""
        X = combined(self.basis, S)
        k, m = gram(self.comm, X, self._stiffness(X)), gram(self.comm, X, self._mass(X))
        values, s = self.comm.bcast(scipy.linalg.eigh((k + k.T) / 2, (m + m.T) / 2), root=0)
        return values, combined(X, np.asfortranarray(s))

    def restart_if_full(self, S: Array, num_modes: int) -> None:
        """Restart with the best Ritz vectors if the space is full."""
        if self.size + BLOCK_SIZE <= self._max_size:
            return
        assert self._V is not None
        count = num_modes + 4 * BLOCK_SIZE  # further vectors keep the convergence fast
        s = S[:, :count]
        H = s.T @ self._H[: self.size, : self.size] @ s
        self._V[:, :count] = combined(self.basis, np.asfortranarray(s))
        self._H[:count, :count], self.size = H, count
