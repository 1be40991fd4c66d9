"""Solutions of (K − λ_j M) x_j = K s_j outside an invariant subspace, with a factor of K only.

With x_j = s_j + y_j this is (K − λ_j M) y_j = λ_j M s_j. Galerkin's method determines all y_j in
one space. The space grows by K⁻¹R for a few combinations R of the residuals of all systems that are
not accurate yet. Wide blocks need less time per vector, because each application of the factor
reads it from memory, and the residuals of several parameters have much in common. The vectors with
the smallest Rayleigh quotients approximate the next eigenvectors. They are kept for the next
right-hand sides, whose systems then need few steps.

Round-off gives residuals small components along M Φ, with the vectors Φ of the subspace. Without
their removal they grow with each step, because the systems are indefinite in the subspace. The
vectors of the space are not made orthogonal. Their Gram matrices, which include the effects of
round-off, determine the solutions. Combinations of the vectors of each block, which improve the
conditioning, are part of the small matrices only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, SolverError, warn
from dolfinx_mbd.fem.linalg.blocks import add_combined, column_sums, combined, gram

TOLERANCE = 1e-8  # estimated error of a solution, relative to s_j in the norm of M
ROUND_OFF = 1e-7  # largest error that is accepted, with a warning
MAX_STEPS = 40
STEPS = 7  # number of steps for which memory is reserved
KEPT = 60  # number of vectors that are kept for the next right-hand sides
SHARE = 0.1  # part of a residual that may be omitted, relative to it
REST = 0.3  # part of a residual that may be omitted, relative to the tolerance
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
        weighted: Function that returns M^(−½)F for a block of forces, without the reactions of held
            interfaces; M may be lumped.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        mass: Callable[[Array], Array],
        squares: Array,
        inverse: Callable[[Array], Array],
        fixed: tuple[Array, Array],
        weighted: Callable[[Array], Array],
    ) -> None:
        self._comm, self._mass, self._squares = comm, mass, squares
        self._inverse, self._fixed, self._weighted = inverse, fixed, weighted
        # V, K V up to reactions, and M V: the first columns of larger arrays
        self._storage: list[Array] = []
        self._change: Array = np.zeros((0, 0))  # T; the space is V T
        self._K: Array = np.zeros((0, 0))  # (V T)ᵀK V T
        self._M: Array = np.zeros((0, 0))  # (V T)ᵀM V T
        self._updates = UPDATES
        # norms are exact for smooth forces such as M Φ, whose norms are one
        _, inertia = fixed
        images = weighted(inertia)
        self._scale = float(np.sqrt(column_sums(comm, images, images)).min(initial=np.inf))

    def __call__(self, static: Array) -> Array:
        """Return the parts of x_j outside the subspace for s_j of shape (owned dofs, p k).

        The columns are those of p parameters, one after another. A solution is zero if s_j is in
        the subspace.

        Raises:
            SolverError: The iteration does not converge.

        Warns:
            AccuracyWarning: Round-off prevents the accuracy `TOLERANCE`.
        """
        comm, squares = self._comm, np.resize(self._squares, static.shape[1])
        self._restart()
        start, mass, size = self._outside(static)
        load = self._change.T @ gram(comm, self._space(start)[0], mass)
        active = np.flatnonzero(size)
        best = np.where(size > 0, np.inf, 0.0)  # smallest estimated error of each solution
        coefficients: Array = np.zeros((0, len(size)))
        for _ in range(MAX_STEPS if len(active) else 0):
            c, gaps = self._galerkin(squares[active], load[:, active])
            residual = self._residual(np.asfortranarray(mass[:, active]), squares[active], c)
            images = self._weighted(residual)
            products = gram(comm, images, images)
            del images
            errors = np.sqrt(np.diag(products)) / (self._scale * gaps * size[active])
            better = ~(errors >= best[active])  # also true for NaN
            coefficients = np.pad(coefficients, ((0, len(c) - len(coefficients)), (0, 0)))
            coefficients[:, active[better]] = c[:, better]
            slow = (errors > best[active] / 2) & (best[active] <= ROUND_OFF)
            left = ~(errors <= TOLERANCE) & ~slow
            best[active[better]] = np.where(np.isnan(errors[better]), np.inf, errors[better])
            active = active[left]
            if not len(active):
                break
            forces = combined(residual, _combinations(products, errors, left))
            del residual
            load = np.vstack([load, self._extend(forces, mass)])
        self._check(best.max(initial=0.0))
        raw = self._change[:, : len(coefficients)] @ coefficients
        add_combined(start, self._space(start)[0], raw)
        return start

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
        eigenvalues above those of the space; λ is the median of the eigenvalues of the space, at
        most that of number `KEPT`. The difference counts as at least 0.1 λ_j.
        """
        if not len(load):
            return load, np.full(len(squares), np.nan)  # the error is unknown
        values, vectors = scipy.linalg.eigh(self._M, self._K)
        c = vectors @ (vectors.T @ load * squares / (1.0 - np.outer(values, squares)))
        representative = max(float(np.median(values)), float(values[-KEPT:][0]))
        return c, np.maximum(1.0 / representative - squares, 0.1 * squares)

    def _residual(self, mass: Array, squares: Array, c: Array) -> Array:
        """Return the residuals for M s_j = `mass`, which is overwritten, and coefficients c."""
        raw, (_, forces, inertia) = self._change @ c, self._space(mass)
        mass *= squares
        add_combined(mass, inertia, raw * squares)
        add_combined(mass, forces, -raw)
        self._remove(mass, *self._fixed)
        return mass

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
        return [X[:, : len(self._change)] for X in self._storage]

    def _extend(self, forces: Array, mass: Array) -> Array:
        """Extend the space by K⁻¹ times forces; return the products of the new vectors with `mass`.

        Combinations of the new vectors that depend on others are omitted.
        """
        comm, old = self._comm, self._change
        X = self._inverse(forces)
        fixed, fixed_inertia = self._fixed
        self._remove(X, fixed_inertia, fixed)
        begin, end = len(old), len(old) + X.shape[1]
        V, stiff, inertia = (
            self._appended(number, block, begin)
            for number, block in enumerate((X, forces, self._mass(X)))
        )
        del X
        K, M = (gram(comm, V, A[:, begin:end]) for A in (stiff, inertia))
        size = np.sqrt(np.maximum(np.diag(K[begin:]), 1e-300))
        values, vectors = np.linalg.eigh((K[begin:] + K[begin:].T) / 2 / np.outer(size, size))
        independent = values > INDEPENDENT * values[-1]
        change = vectors[:, independent] / np.sqrt(values[independent]) / size[:, None]
        self._K, self._M = (
            _bordered(A, old.T @ B[:begin] @ change, change.T @ B[begin:] @ change)
            for A, B in ((self._K, K), (self._M, M))
        )
        self._change = scipy.linalg.block_diag(old, change)
        return np.asarray(change.T @ gram(comm, V[:, begin:], mass))

    def _appended(self, number: int, block: Array, begin: int) -> Array:
        """Write a block behind the first columns of one of the arrays; return all columns."""
        old, end = self._storage[number], begin + block.shape[1]
        if end > old.shape[1]:
            self._storage[number] = np.empty((len(old), end + KEPT), order="F")
            self._storage[number][:, :begin] = old[:, :begin]
        self._storage[number][:, begin:end] = block
        return self._storage[number][:, :end]

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
        """Keep the vectors of the space with the smallest Rayleigh quotients, before a new call.

        After some calls the first vectors, which are those of previous calls, are good enough.
        """
        if len(self._K) <= KEPT:
            return
        if self._updates:
            self._updates -= 1
            best = scipy.linalg.eigh(self._M, self._K)[1][:, -KEPT:]
            raw = self._change @ best
            for X in self._storage:
                X[:, :KEPT] = combined(X[:, : len(raw)], raw)
            self._K, self._M = (best.T @ A @ best for A in (self._K, self._M))
        else:
            self._K, self._M = (A[:KEPT, :KEPT] for A in (self._K, self._M))
        self._change = np.eye(KEPT)


def _combinations(products: Array, errors: Array, left: NDArray[np.bool_]) -> Array:
    """Return coefficients of a few combinations of residuals, shape (residuals, combinations).

    The parts of the residuals `left` outside these combinations are small: relative to a residual
    they are below `SHARE`, or below the part `REST` of the tolerance.

    Args:
        products: RᵀM⁻¹R of the residuals R, shape (residuals, residuals).
        errors: Relative errors of the solutions, NaN if unknown.
        left: Whether each solution is not accurate yet, shape (residuals,).

    Example:
        >>> R = np.array([[1.0, 1.0, 0.0], [0.0, 0.01, 1.0]])
        >>> errors = np.array([1e-3, 1e-3, 1e-9])
        >>> _combinations(R.T @ R, errors, errors > 1e-8).shape
        (3, 1)
    """
    limits = np.fmax(SHARE, REST * TOLERANCE / errors[left])
    scale = 1.0 / (np.sqrt(np.diag(products)[left]) * limits)
    values, vectors = np.linalg.eigh(products[np.ix_(left, left)] * np.outer(scale, scale))
    parts = np.cumsum(np.maximum(values, 0.0) * vectors**2, axis=1).max(axis=0)
    needed = parts > 1.0  # the part of a residual in the first combinations, over its limit
    needed[-1] = True
    coefficients: Array = np.zeros((len(left), int(needed.sum())))
    coefficients[left] = scale[:, None] * vectors[:, needed]
    return coefficients


def _bordered(A: Array, cross: Array, block: Array) -> Array:
    """Return the symmetric matrix with the blocks A, `cross` and `block`."""
    return np.block([[A, cross], [cross.T, (block + block.T) / 2]])
