"""Solutions of (K − λ_j M) x_j = K s_j outside an invariant subspace, with a factor of K only.

With x_j = s_j + y_j this is (K − λ_j M) y_j = λ_j M s_j. Galerkin's method determines all y_j in
one space. The space grows by K⁻¹r_j for the residual r_j of each system that is not accurate yet.
The vectors with the smallest Rayleigh quotients approximate the next eigenvectors. They are kept
for the next right-hand sides, whose systems then need few steps.

Round-off gives residuals small components along M Φ, with the vectors Φ of the subspace. Without
their removal they grow with each step, because the systems are indefinite in the subspace. The
vectors of the space are not made orthogonal. Their Gram matrices, which include the effects of
round-off, determine the solutions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from mpi4py import MPI

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, SolverError, warn
from dolfinx_mbd.linalg.blocks import add_combined, column_sums, combined, gram

TOLERANCE = 1e-8  # estimated error of a solution, relative to s_j in the norm of M
ROUND_OFF = 1e-7  # largest error that is accepted, with a warning
MAX_STEPS = 40
STEPS = 7  # number of steps for which memory is reserved
KEPT = 60  # number of vectors that are kept for the next right-hand sides
UPDATES = 2  # number of calls that improve the kept vectors
SMALL = 1e-7  # size of the part of s_j outside the subspace that counts as zero
INDEPENDENT = 1e-8  # smallest relative eigenvalue of a Gram matrix of independent vectors


class ShiftedSystems:
    """The systems of one body; all methods are collective.

    Args:
        comm: Communicator of the body.
        mass: Function that returns M X for blocks of vectors.
        squares: λ_j, shape (k,), (rad/s)².
        inverse: Function that returns K⁻¹F for a block of forces.
        fixed: Vectors Φ of the subspace with ΦᵀMΦ = I, and M Φ, shape (owned dofs, m).
        norms: Function that returns the norms of forces F, (FᵀM⁻¹F)^½, without the reactions of
            held interfaces.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        mass: Callable[[Array], Array],
        squares: Array,
        inverse: Callable[[Array], Array],
        fixed: tuple[Array, Array],
        norms: Callable[[Array], Array],
    ) -> None:
        self._comm, self._mass, self._squares = comm, mass, squares
        self._inverse, self._fixed, self._norms = inverse, fixed, norms
        # V, K V up to reactions, and M V: the first columns of larger arrays
        self._storage: list[Array] = []
        self._K: Array = np.zeros((0, 0))  # VᵀKV
        self._M: Array = np.zeros((0, 0))  # VᵀMV
        self._updates = UPDATES
        # norms are exact for smooth forces such as M Φ, whose norms are one
        self._scale = float(norms(fixed[1]).min(initial=np.inf))

    def __call__(self, static: Array) -> Array:
        """Return the parts of x_j outside the subspace for s_j of shape (owned dofs, k).

        A solution is zero if s_j is in the subspace.

        Raises:
            SolverError: The iteration does not converge.

        Warns:
            AccuracyWarning: Round-off prevents the accuracy `TOLERANCE`.
        """
        start, mass, size = self._outside(static)
        load = gram(self._comm, self._space(start)[0], mass)
        active = np.flatnonzero(size)
        best = np.where(size > 0, np.inf, 0.0)  # smallest estimated error of each solution
        coefficients: Array = np.zeros((0, len(size)))
        for _ in range(MAX_STEPS if len(active) else 0):
            squares, (_, forces, inertia) = self._squares[active], self._space(start)
            c, gaps = self._galerkin(squares, load[:, active])
            residual = np.asfortranarray(mass[:, active] * squares)
            add_combined(residual, inertia, c * squares)
            add_combined(residual, forces, -c)
            self._remove(residual, *self._fixed)
            errors = self._norms(residual) / (self._scale * gaps * size[active])
            better = ~(errors >= best[active])
            coefficients = np.pad(coefficients, ((0, len(c) - len(coefficients)), (0, 0)))
            coefficients[:, active[better]] = c[:, better]
            slow = (errors > best[active] / 2) & (best[active] <= ROUND_OFF)
            left = ~(errors <= TOLERANCE) & ~slow
            best[active[better]] = np.where(np.isnan(errors[better]), np.inf, errors[better])
            active = active[left]
            if not len(active):
                break
            new = self._extend(np.asfortranarray(residual[:, left]))
            load = np.vstack([load, gram(self._comm, new, mass)])
        self._check(best.max(initial=0.0))
        solution = start.copy(order="F")
        add_combined(solution, self._space(start)[0][:, : len(coefficients)], coefficients)
        self._restart()
        return solution

    def _outside(self, static: Array) -> tuple[Array, Array, Array]:
        """Return the parts outside the subspace, M times them, and their norms.

        Parts that are round-off are zero.
        """
        vectors, inertia = self._fixed
        start = np.array(static, order="F")
        inside = self._remove(start, inertia, vectors)
        mass = self._mass(start)
        squares = column_sums(self._comm, start, mass)
        zero = squares <= SMALL**2 * (squares + (inside**2).sum(axis=0))
        start[:, zero] = mass[:, zero] = squares[zero] = 0.0
        return start, mass, np.sqrt(squares)

    def _galerkin(self, squares: Array, load: Array) -> tuple[Array, Array]:
        """Return the solutions of Galerkin's method for VᵀMs = `load`, and λ − λ_j.

        The residual is orthogonal to the space. It therefore consists mainly of eigenvectors with
        eigenvalues above those of the space; λ is the median of the eigenvalues of the space.
        """
        if not len(load):
            return load, np.full(len(squares), np.nan)  # the error is unknown
        values, vectors = scipy.linalg.eigh(self._M, self._K)
        c = vectors @ (vectors.T @ load * squares / (1.0 - np.outer(values, squares)))
        return c, np.maximum(1.0 / np.median(values) - squares, 0.1 * squares)

    def _remove(self, X: Array, duals: Array, directions: Array) -> Array:
        """Remove the components of X along directions in place, and return them."""
        inside = gram(self._comm, duals, X)
        add_combined(X, directions, -inside)
        return inside

    def _space(self, like: Array) -> list[Array]:
        """Return V, K V and M V, with as many rows as `like`."""
        if not self._storage:
            columns = KEPT + STEPS * like.shape[1]  # untouched memory costs nothing
            self._storage = [np.empty((len(like), columns), order="F") for _ in range(3)]
        return [X[:, : len(self._K)] for X in self._storage]

    def _extend(self, forces: Array) -> Array:
        """Extend the space by K⁻¹ times forces; return the new vectors."""
        comm, X = self._comm, self._inverse(forces)
        self._remove(X, self._fixed[1], self._fixed[0])
        G = gram(comm, X, forces)
        size = np.sqrt(np.maximum(np.diag(G), 1e-300))
        values, vectors = np.linalg.eigh((G + G.T) / 2 / np.outer(size, size))
        good = values > INDEPENDENT * values[-1]
        change = vectors[:, good] / np.sqrt(values[good]) / size[:, None]
        old = self._space(X)[0]
        V, forces = self._append(0, X, change), self._append(1, forces, change)
        inertia = self._append(2, self._mass(V), None)
        self._K = _bordered(self._K, gram(comm, old, forces), gram(comm, V, forces))
        self._M = _bordered(self._M, gram(comm, old, inertia), gram(comm, V, inertia))
        return V

    def _append(self, number: int, block: Array, change: Array | None) -> Array:
        """Append a block, times a matrix, to one of the arrays; return the new columns."""
        begin, old = len(self._K), self._storage[number]
        end = begin + (block if change is None else change).shape[1]
        if end > old.shape[1]:
            self._storage[number] = np.empty((len(old), end + KEPT), order="F")
            self._storage[number][:, :begin] = old[:, :begin]
        new = self._storage[number][:, begin:end]
        if change is None:
            new[:] = block
        else:
            scipy.linalg.blas.dgemm(1.0, block, change, 0.0, new, overwrite_c=1)
        return new

    def _check(self, error: float) -> None:
        """Raise an error or warn if solutions are not accurate."""
        if error > ROUND_OFF:
            text = (
                f"the derivatives of the fixed-interface modes do not converge: their estimated "
                f"error is {error:.1e} of their size; use larger cells, or fewer modes"
            )
            raise SolverError(text)
        if error > TOLERANCE:
            text = (
                f"round-off limits the accuracy of the derivatives of the fixed-interface modes to "
                f"{error:.1e} of their size; use larger cells, or fewer modes"
            )
            quantity = "derivatives of modes"
            warn(AccuracyWarning(text, quantity=quantity, value=error, limit=TOLERANCE))

    def _restart(self) -> None:
        """Keep the vectors of the space with the smallest Rayleigh quotients.

        After some calls the first vectors, which are those of previous calls, are good enough.
        """
        if len(self._K) <= KEPT:
            return
        if self._updates:
            self._updates -= 1
            _, vectors = scipy.linalg.eigh(self._M, self._K)
            best = vectors[:, -KEPT:]
            for X in self._storage:
                X[:, :KEPT] = combined(X[:, : len(self._K)], best)
            self._K, self._M = (best.T @ A @ best for A in (self._K, self._M))
        else:
            self._K, self._M = (A[:KEPT, :KEPT] for A in (self._K, self._M))


def _bordered(A: Array, cross: Array, block: Array) -> Array:
    """Return the symmetric matrix with the blocks A, `cross` and `block`."""
    return np.block([[A, cross], [cross.T, (block + block.T) / 2]])
