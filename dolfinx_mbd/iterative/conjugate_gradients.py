"""Conjugate gradients for several right-hand sides at once, with held rows and constraints C u = c.

The columns are independent of each other, but share each product with K and each cycle of the
preconditioner. Constraints are kept by projection: with T ≈ K⁻¹, G = T Cᵀ and S = C G,

    P = T - G S⁻¹ Gᵀ

preconditions K on all u with C u = 0, and what is left of the residual in the end is Cᵀλ.

References:
    Gould, Hribar, Nocedal (2001), On the solution of equality constrained quadratic programming
    problems arising in optimization, SIAM J. Sci. Comput. 23, 1376-1395.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.iterative.convergence import ROUND_OFF, IterationError, Stagnation, round_off_level
from dolfinx_mbd.iterative.multigrid import Algebraic, Preconditioner, TwoLevel
from dolfinx_mbd.iterative.products import COLUMNS, Products, column_sums
from dolfinx_mbd.linalg.factorization import Options, constrain, gram

__all__ = ["IterativeSolver"]

Array = NDArray[np.float64]

TOLERANCE = 1e-10
"""Error in the norm of energy relative to the solution, as the preconditioner estimates it."""

MAX_ITERATIONS = 500

_log = logging.getLogger("dolfinx_mbd")


class Projection:
    """What keeps C u = 0, made once from the preconditioner's answer to the constraints."""

    def __init__(
        self,
        comm: MPI.Comm,
        border: scipy.sparse.csr_matrix,
        precondition: Callable[[Array], Array],
    ) -> None:
        self.comm, self.border = comm, border
        columns = np.asfortranarray(border.toarray())
        parts = [columns[:, k : k + COLUMNS] for k in range(0, columns.shape[1], COLUMNS)]
        self.G = np.asfortranarray(np.hstack([precondition(part) for part in parts]))
        S = gram(comm, columns, self.G)
        self.inverse = np.linalg.inv((S + S.T) / 2)

    def multipliers(self, R: Array) -> Array:
        """λ with which R - Cᵀλ is least, shape (constraints, k)."""
        return np.asarray(self.inverse @ gram(self.comm, self.G, R))

    def motion(self, c: Array) -> Array:
        """A displacement with C u = c."""
        return np.asfortranarray(self.G @ (self.inverse @ c))

    def constraints(self, X: Array) -> Array:
        """C X."""
        return gram(self.comm, self.border, X)  # type: ignore[arg-type]


class IterativeSolver:
    """K⁻¹ for a stiffness with held rows, and constraints if there are, without its factor.

    The counterpart of `la.cholesky`. It holds no copy of K but for linear elements. Spaces of
    degree two and more: two levels, coarse options ``mg_coarse_...``; others: algebraic multigrid,
    options ``pc_gamg_...``.

    Attributes:
        rows: Owned degrees of freedom.
        scale: Square roots of the diagonal of K, zero in held rows, shape (rows,).
        iterations: Of all solutions so far, and of how many columns.

    Args:
        K: Stiffness of the free body, or with its held rows.
        space: Its displacement space.
        held: Owned held degrees of freedom (local numbers).
        border: Cᵀ of the constraints, owned rows (`reduction.averaged.border_rows`).
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Raises:
        FactorizationError: The preconditioner cannot be set up.
        ValueError: There are constraints and linear elements.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        K: PETSc.Mat,
        space: Any,
        held: NDArray[np.int32],
        border: scipy.sparse.csr_matrix | None = None,
        *,
        prefix: str,
        options: Options = None,
    ) -> None:
        self.comm: MPI.Comm = K.comm.tompi4py()
        self.held, self._own_copy = held, None
        degree = space.ufl_element().sub_elements[0].degree
        if degree < 2:
            if border is not None:
                raise InputError(
                    "averaged interfaces and an iterative solver need elements of degree 2 or "
                    "more; take degree=2, or solver='direct'"
                )
            K = K.copy()
            constrain(K, held, 1.0)
            self._own_copy = K
        self.products = Products(K, held)
        diagonal = K.getDiagonal()
        self.scale: Array = np.sqrt(np.maximum(diagonal.array_r, 0.0))
        self.scale[held] = 0.0
        diagonal.destroy()
        self.precondition: Preconditioner
        if degree < 2:
            x = space.tabulate_dof_coordinates()[: K.getLocalSize()[0] // space.dofmap.bs]
            motions = rigid_motions(x[:, : space.dofmap.bs])
            motions[held] = 0.0
            self.precondition = Algebraic(K, motions, prefix=prefix, options=options)
        else:
            self.precondition = TwoLevel(
                self.products, space, border, prefix=prefix, options=options
            )
        self.projection: Projection | None = None
        if border is not None:
            border = scipy.sparse.diags(_mask(border.shape[0], held)) @ border
            self.projection = Projection(self.comm, border.tocsr(), self.precondition)
        self.rows: int = K.getLocalSize()[0]
        self.iterations = np.zeros(2, dtype=int)

    def solve(
        self, f: Array, g: Array | None = None, *, tolerance: float = TOLERANCE
    ) -> tuple[Array, Array]:
        """Displacements (owned dofs, k) and multipliers of the constraints, (constraints, k).

        Args:
            f: Forces, shape (owned dofs, k); what is prescribed in held rows.
            g: Values of C u, shape (constraints, k); zero by default.
            tolerance: Error in the norm of energy, relative.

        Raises:
            FactorizationError: No convergence: K is not positive definite, for instance.
        """
        count = 0 if self.projection is None else self.projection.border.shape[1]
        U, multipliers = np.empty(f.shape, order="F"), np.zeros((count, f.shape[1]))
        for begin in range(0, f.shape[1], COLUMNS):
            part = slice(begin, begin + COLUMNS)
            values = None if g is None else g[:, part]
            U[:, part], multipliers[:, part] = self._solve(f[:, part], values, tolerance)
        return U, multipliers

    def _solve(self, f: Array, g: Array | None, tolerance: float) -> tuple[Array, Array]:
        R = f.copy(order="F")
        R[self.held] = 0.0
        if self.projection is None:
            U, left = self._iterate(R, np.zeros(R.shape, order="F"), tolerance), f[:0]
        else:
            c = np.zeros((self.projection.border.shape[1], f.shape[1])) if g is None else g
            load, start = R.copy(order="F"), self.projection.motion(c)
            R -= self.products.multiply(start)
            U = self._iterate(R, start, tolerance)
            U += self.projection.motion(c - self.projection.constraints(U))
            left = self.projection.multipliers(load - self.products.multiply(U))
        U[self.held] = f[self.held]
        return U, left

    def projected(self, R: Array) -> Array:
        """P R for up to `COLUMNS` columns; takes what only constraints can resist out of R."""
        if self.projection is None:
            return self.precondition(R)
        R -= self.projection.border @ self.projection.multipliers(R)
        Z = self.precondition(R)
        Z -= self.projection.motion(self.projection.constraints(Z))  # zero but for round-off
        return Z

    def _iterate(self, R: Array, X: Array, tolerance: float) -> Array:
        """Preconditioned conjugate gradients from X with its residual R; overwrites both.

        A column is done when it reaches the tolerance, or when its residual is at the level of
        round-off.
        """
        columns, search = R.shape[1], self.projected(R)
        rz = column_sums(self.comm, R, search)
        goal, done, stagnation = tolerance**2 * np.abs(rz), rz == 0, Stagnation()
        for count in range(MAX_ITERATIONS + 1):
            if not np.isfinite(rz).all():
                break
            done |= (rz >= 0) & (rz <= goal)
            stalled = stagnation.found(count, np.abs(rz))
            if stalled is not None:
                done |= self._at_round_off(R, X, ~done, stalled)
            if done.all():
                self.iterations += count * columns, columns
                return X
            self.products.input(columns)[:] = search
            Q = self.products.product(columns)
            pq = column_sums(self.comm, search, Q)
            lost = ~done & ((pq <= 0) | (rz <= 0))
            if lost.any():
                done |= self._at_round_off(R, X, lost, lost)
                self._check_energy(search, pq, lost & ~done, count)
            alpha = np.where(done, 0.0, rz / np.where(done, 1.0, pq))
            for k in range(columns):
                X[:, k] += alpha[k] * search[:, k]
                R[:, k] -= alpha[k] * Q[:, k]
            Z = self.projected(R)
            new = column_sums(self.comm, R, Z)
            beta = np.where(done, 0.0, new / np.where(done, 1.0, rz))
            search *= beta
            search += Z
            rz = new
        worst = float(np.sqrt(np.max(np.abs(rz[~done]) / goal[~done]))) * tolerance
        raise IterationError(
            f"the conjugate gradients did not converge in {count} iterations (relative error "
            f"{worst:.1e}, tolerance {tolerance:.1e}). They are slow where walls are thin compared "
            "with the length of their cells, and they fail where a part of the body is hardly "
            "held. Use solver='direct': the factor of a thin body is small",
            iterations=count,
            error=worst,
            tolerance=tolerance,
        )

    def _at_round_off(
        self,
        R: Array,
        X: Array,
        columns: NDArray[np.bool_],
        stalled: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Which of some columns cannot be improved."""
        level = round_off_level(self.comm, self.scale, R, X)
        result = columns & (level <= np.where(stalled, ROUND_OFF, 1.0))
        if result.any():
            _log.info("conjugate gradients: %d columns at the level of round-off", result.sum())
        return np.asarray(result)

    def _check_energy(
        self, search: Array, pq: Array, columns: NDArray[np.bool_], count: int
    ) -> None:
        """Raise an error for search directions without positive strain energy."""
        if not columns.any():
            return
        scaled = np.asfortranarray(search * self.scale[:, None])
        size = column_sums(self.comm, scaled, scaled)
        negative = pq < -ROUND_OFF * np.finfo(float).eps * size
        if (negative & columns).any():
            text = (
                "the stiffness matrix is not positive definite (conjugate gradients met negative "
                "energy): a part of the body is not held, or the stiffness form is wrong"
            )
        else:
            text = (
                "the softest motion of the body has no strain energy beyond round-off: a part of "
                "the body is not held, the body is too slender for its cells, or the stiffness "
                "form is wrong. Use solver='direct', which tells these apart, or longer cells"
            )
        raise IterationError(text, iterations=count)

    def destroy(self) -> None:
        """Free all that is PETSc's but K."""
        self.precondition.destroy()
        self.products.destroy()
        if self._own_copy is not None:
            self._own_copy.destroy()


def _mask(rows: int, held: NDArray[np.int32]) -> Array:
    values = np.ones(rows)
    values[held] = 0.0
    return values
