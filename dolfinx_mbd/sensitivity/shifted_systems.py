"""Solutions of (K − λ_j M) x_j = K s_j outside an invariant subspace, with a factor of K only.

With x_j = s_j + y_j this is (K − λ_j M) y_j = λ_j M s_j. Galerkin's method determines all y_j in
one space. The space grows by K⁻¹r_j for the residual r_j of each system that is not accurate yet.
The vectors with the smallest Rayleigh quotients approximate the next eigenvectors. They are kept
for the next right-hand sides, whose systems then need few steps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from mpi4py import MPI

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.linalg.blocks import column_sums, gram

TOLERANCE = 1e-8  # estimated error of a solution, relative to s_j in the norm of M
ROUND_OFF = 1e-6  # largest accepted error if round-off prevents a smaller error
MAX_STEPS = 40
KEPT = 60  # number of vectors that are kept for the next right-hand sides
INDEPENDENT = 1e-8  # smallest relative eigenvalue of a Gram matrix of independent vectors
NOT_ORTHOGONAL = 1e-10  # largest inner product that counts as zero


class ShiftedSystems:
    """The systems of one body; all methods are collective.

    Args:
        comm: Communicator of the body.
        mass: Function that returns M X for blocks of vectors.
        squares: λ_j, shape (k,), (rad/s)².
        inverse: Function that returns K⁻¹F for a block of forces.
        project: Function that removes the components of displacements along the subspace.
        norms: Function that returns the norms of forces F, (FᵀM⁻¹F)^½, without the reactions of
            held interfaces.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        mass: Callable[[Array], Array],
        squares: Array,
        inverse: Callable[[Array], Array],
        project: Callable[[Array], Array],
        norms: Callable[[Array], Array],
    ) -> None:
        self._comm, self._mass, self._squares = comm, mass, squares
        self._inverse, self._project, self._norms = inverse, project, norms
        # V with VᵀKV = I, K V up to reactions, and M V: the first columns of larger arrays
        self._storage: list[Array] = []
        self._T: Array = np.zeros((0, 0))  # VᵀMV

    def __call__(self, start: Array) -> Array:
        """Return the solutions x_j for s_j of shape (owned dofs, k); zero columns remain zero.

        Raises:
            SolverError: The iteration does not converge.
        """
        mass = self._mass(start)
        size = np.sqrt(column_sums(self._comm, start, mass))
        load = gram(self._comm, self._space(start)[0], mass)
        solution, active = start.copy(order="F"), np.flatnonzero(size)
        best = np.full(len(size), np.inf)  # smallest estimated error of each solution
        for _ in range(MAX_STEPS if len(active) else 0):
            squares, (V, forces, inertia) = self._squares[active], self._space(start)
            c = self._coefficients(squares, load[:, active])
            residual = np.asfortranarray(mass[:, active] * squares)
            _add(residual, inertia, c * squares)
            _add(residual, forces, -c)
            errors = self._errors(residual, squares) / size[active]
            better = (errors < best[active]) & (errors <= ROUND_OFF)
            improved = np.asfortranarray(start[:, active[better]])
            _add(improved, V, c[:, better])
            solution[:, active[better]] = improved
            best[active[better]] = errors[better]
            left = (best[active] > TOLERANCE) & (errors <= 2 * best[active])
            left |= best[active] > ROUND_OFF
            active = active[left]
            if not len(active):
                break
            new = self._extend(np.asfortranarray(residual[:, left]))
            load = np.vstack([load, gram(self._comm, new, mass)])
        if (best[active] > ROUND_OFF).any():
            raise SolverError("the derivatives of the fixed-interface modes do not converge")
        self._compress()
        return solution

    def _coefficients(self, squares: Array, load: Array) -> Array:
        """Return the solutions of Galerkin's method; `load` is VᵀMs."""
        if not len(load):
            return load
        shifted = np.eye(len(load)) - squares[:, None, None] * self._T
        right = (squares * load).T[:, :, None]
        return np.asarray(np.linalg.solve(shifted, right)[:, :, 0].T, float)

    def _errors(self, residual: Array, squares: Array) -> Array:
        """Return estimates of the errors of solutions in the norm of M.

        The residual is orthogonal to the space. It therefore consists mainly of eigenvectors with
        eigenvalues above those of the space; the estimate uses the median of the eigenvalues of
        the space.
        """
        if not len(self._T):
            return np.full(len(squares), np.inf)
        gap = 1.0 / np.median(np.linalg.eigvalsh(self._T)) - squares
        return np.asarray(self._norms(residual) / np.maximum(gap, 0.1 * squares))

    def _space(self, like: Array) -> list[Array]:
        """Return V, K V and M V, with as many rows as `like`."""
        if not self._storage:
            self._storage = [np.zeros((len(like), 2 * KEPT), order="F") for _ in range(3)]
        return [X[:, : len(self._T)] for X in self._storage]

    def _extend(self, forces: Array) -> Array:
        """Extend the space by K⁻¹ times forces, which are overwritten; return the new vectors."""
        comm = self._comm
        X = self._project(self._inverse(forces))
        V, old_forces, old_inertia = self._space(X)
        inside = gram(comm, V, forces)  # zero up to round-off in Galerkin's method
        size = np.sqrt(np.maximum(column_sums(comm, X, forces), 1e-300))
        if np.abs(inside / size).max(initial=0.0) > NOT_ORTHOGONAL:
            _add(X, V, -inside)
            _add(forces, old_forces, -inside)
        for _ in range(2):
            G = gram(comm, X, forces)
            size = np.sqrt(np.maximum(np.diag(G), 1e-300))
            values, vectors = np.linalg.eigh((G + G.T) / 2 / np.outer(size, size))
            good = values > INDEPENDENT * values[-1]
            change = vectors[:, good] / np.sqrt(values[good]) / size[:, None]
            X, forces = _product(X, change), _product(forces, change)
        inertia = self._mass(X)
        cross, block = gram(comm, old_inertia, X), gram(comm, X, inertia)
        self._store([X, forces, inertia])
        self._T = np.block([[self._T, cross], [cross.T, (block + block.T) / 2]])
        return X

    def _store(self, blocks: list[Array]) -> None:
        """Append blocks to V, K V and M V."""
        begin, end = len(self._T), len(self._T) + blocks[0].shape[1]
        for k, block in enumerate(blocks):
            if end > self._storage[k].shape[1]:
                old = self._storage[k]
                self._storage[k] = np.zeros((len(old), end + KEPT), order="F")
                self._storage[k][:, :begin] = old[:, :begin]
            self._storage[k][:, begin:end] = block

    def _compress(self) -> None:
        """Keep the vectors of the space with the smallest Rayleigh quotients."""
        if len(self._T) <= KEPT:
            return
        values, vectors = np.linalg.eigh(self._T)
        best = vectors[:, -KEPT:]
        for X in self._storage:
            X[:, :KEPT] = _product(X[:, : len(self._T)], best)
        self._T = np.diag(values[-KEPT:])


def _product(X: Array, c: Array) -> Array:
    """Return X c in Fortran order."""
    return np.asarray(scipy.linalg.blas.dgemm(1.0, X, c))


def _add(Y: Array, X: Array, c: Array) -> None:
    """Add X c to Y in place; X and Y are in Fortran order."""
    assert Y.flags.f_contiguous  # BLAS would work on a copy otherwise
    if X.shape[1] and Y.size:
        scipy.linalg.blas.dgemm(1.0, X, c, 1.0, Y, overwrite_c=1)
