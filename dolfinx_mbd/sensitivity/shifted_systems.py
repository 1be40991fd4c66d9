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

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.linalg.blocks import column_sums, gram

TOLERANCE = 1e-8  # estimated error of a solution, relative to s_j in the norm of M
MAX_STEPS = 40
KEPT = 60  # number of vectors that are kept for the next right-hand sides
INDEPENDENT = 1e-8  # smallest relative eigenvalue of a Gram matrix of independent vectors
NOT_ORTHOGONAL = 1e-10  # largest inner product that counts as zero


class ShiftedSystems:
    """The systems of one body; all methods are collective.

    Args:
        problem: Matrices of the body.
        squares: λ_j, shape (k,), (rad/s)².
        inverse: Function that returns K⁻¹F for a block of forces.
        project: Function that removes the components of displacements along the subspace.
        norms: Function that returns the norms of forces F, (FᵀM⁻¹F)^½, without the reactions of
            held interfaces.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        squares: Array,
        inverse: Callable[[Array], Array],
        project: Callable[[Array], Array],
        norms: Callable[[Array], Array],
    ) -> None:
        self._problem, self._squares = problem, squares
        self._inverse, self._project, self._norms = inverse, project, norms
        self._V: Array = np.zeros((problem.num_owned, 0), order="F")  # VᵀKV = I
        self._forces = self._inertia = self._V  # K V, up to reactions, and M V
        self._T: Array = np.zeros((0, 0))  # VᵀMV
        self.num_solved = 0
        """Number of columns to which K⁻¹ was applied."""

    def __call__(self, start: Array) -> Array:
        """Return the solutions x_j for s_j of shape (owned dofs, k); zero columns remain zero.

        Raises:
            SolverError: The iteration does not converge.
        """
        comm = self._problem.comm
        mass = self._problem.apply_mass(start)
        size = np.sqrt(column_sums(comm, start, mass))
        solution, active = start.copy(order="F"), np.flatnonzero(size)
        for _ in range(MAX_STEPS if len(active) else 0):
            squares = self._squares[active]
            c = self._coefficients(squares, gram(comm, self._inertia, start[:, active]))
            residual = np.asfortranarray(mass[:, active] * squares)
            _add(residual, self._inertia, c * squares)
            _add(residual, self._forces, -c)
            left = self._errors(residual, squares) > TOLERANCE * size[active]
            done = np.asfortranarray(start[:, active[~left]])
            _add(done, self._V, c[:, ~left])
            solution[:, active[~left]] = done
            active = active[left]
            if not len(active):
                break
            self._extend(np.asfortranarray(residual[:, left]))
        if len(active):
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

        The residual is orthogonal to the space. The eigenvalues that it contains are therefore
        larger than those of the space; the median of these is used.
        """
        if not len(self._T):
            return np.full(len(squares), np.inf)
        gap = 1.0 / np.median(np.linalg.eigvalsh(self._T)) - squares
        return np.asarray(self._norms(residual) / np.maximum(gap, 0.1 * squares))

    def _extend(self, forces: Array) -> None:
        """Extend the space by K⁻¹ times forces, which are overwritten."""
        comm = self._problem.comm
        X = self._project(self._inverse(forces))
        self.num_solved += X.shape[1]
        for _ in range(2):
            G = gram(comm, X, forces)
            size = np.sqrt(np.maximum(np.diag(G), 1e-300))
            inside = gram(comm, self._V, forces)  # zero but for round-off: Galerkin's method
            if np.abs(inside / size).max(initial=0.0) > NOT_ORTHOGONAL:
                _add(X, self._V, -inside)
                _add(forces, self._forces, -inside)
                G = gram(comm, X, forces)
            values, vectors = np.linalg.eigh((G + G.T) / 2 / np.outer(size, size))
            good = values > INDEPENDENT * values[-1]
            change = vectors[:, good] / np.sqrt(values[good]) / size[:, None]
            X, forces = _product(X, change), _product(forces, change)
        inertia = self._problem.apply_mass(X)
        cross, own = gram(comm, self._inertia, X), gram(comm, X, inertia)
        self._T = np.block([[self._T, cross], [cross.T, (own + own.T) / 2]])
        self._V, self._forces, self._inertia = (
            np.concatenate(pair, axis=1)
            for pair in ((self._V, X), (self._forces, forces), (self._inertia, inertia))
        )

    def _compress(self) -> None:
        """Keep the vectors of the space with the smallest Rayleigh quotients."""
        if len(self._T) <= KEPT:
            return
        values, vectors = np.linalg.eigh(self._T)
        best = vectors[:, -KEPT:]
        self._V, self._forces, self._inertia = (
            _product(X, best) for X in (self._V, self._forces, self._inertia)
        )
        self._T = np.diag(values[-KEPT:])


def _product(X: Array, c: Array) -> Array:
    """Return X c in Fortran order."""
    return np.asarray(scipy.linalg.blas.dgemm(1.0, X, c))


def _add(Y: Array, X: Array, c: Array) -> None:
    """Add X c to Y in place; X and Y are in Fortran order."""
    assert Y.flags.f_contiguous  # BLAS would work on a copy otherwise
    if X.shape[1] and Y.size:
        scipy.linalg.blas.dgemm(1.0, X, c, 1.0, Y, overwrite_c=1)
