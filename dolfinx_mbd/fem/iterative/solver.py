"""Solver for K u = f without a factorization: PETSc's conjugate gradients with multigrid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.fem.iterative.preconditioner import TwoLevel
from dolfinx_mbd.fem.linalg.constraint_projection import Projection
from dolfinx_mbd.fem.linalg.multigrid import algebraic_multigrid
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.linalg.solver_convergence import (
    INTERVAL,
    ROUND_OFF,
    IterationError,
    Stagnation,
    round_off_level,
)
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain, set_near_null_space
from dolfinx_mbd.parallel import destroying

TOLERANCE = 1e-10
"""Largest relative error of a solution in the energy norm, estimated with the preconditioner."""

MAX_ITERATIONS = 500

NOT_CONVERGED = (
    "conjugate gradients did not converge in {} iterations (relative error {:.1e}, tolerance "
    "{:.1e}). They are slow if walls are thin compared with their cells, and fail if a part of the "
    "body is weakly held. Use solver='direct': the factor of a thin body is small"
)
NOT_POSITIVE = (
    "the stiffness matrix is not positive definite to working accuracy (conjugate gradients): a "
    "part of the body is not held, the stiffness form is wrong, or the body is too slender for its "
    "cells; solver='direct' distinguishes the causes"
)


class IterativeSolver:
    """Iterative solver for a stiffness K with held rows and with constraints C u = 0.

    The preconditioner is PCMG with two levels for spaces of degree two or more, and GAMG for linear
    elements. K is copied to PETSc's symmetric format, which needs less than half of the memory.
    `border` holds the owned rows of Cᵀ (`interfaces.averaged.border_rows`). PETSc options are
    ``mg_levels_...`` and ``mg_coarse_...`` for PCMG, ``pc_gamg_...`` for linear elements.

    T ≈ K⁻¹ is the preconditioner, and P its projection onto C u = 0; P = T without constraints.
    `scale` holds the square roots of the diagonal of K, with zeros in held rows; `iterations` holds
    the total number of iterations and the number of solutions; `level` is the two-level
    preconditioner, None for linear elements. All methods are collective.
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
        self.held, self.rows = held, K.getLocalSize()[0]
        self.iterations = np.zeros(2, dtype=int)
        linear = space.ufl_element().sub_elements[0].degree < 2
        if linear and border is not None:
            raise InputError(
                "averaged interfaces and an iterative solver need elements of degree 2 or more; "
                "use degree=2, or solver='direct'"
            )
        K = K.copy()
        constrain(K, held, 1.0)
        K.setOption(PETSc.Mat.Option.SPD, True)
        self.matrix = K if linear else K.convert("sbaij", PETSc.Mat())
        self._x, self._y = self.matrix.createVecs()
        self.matrix.getDiagonal(self._x)
        self.scale: Array = np.sqrt(np.maximum(self._x.array_r, 0.0))
        self.scale[held] = 0.0
        self.level: TwoLevel | None = None
        if linear:
            dim = space.dofmap.bs
            positions = space.tabulate_dof_coordinates()[: self.rows // dim, :dim]
            set_near_null_space(K, rigid_motions(positions), held)
            self._owner = algebraic_multigrid(K, prefix=prefix, options=options)
            self._pc = self._owner.getPC()
        else:
            if border is not None:
                free = scipy.sparse.diags(np.sign(self.scale))  # zero in held rows
                border = scipy.sparse.csr_matrix(free @ border)
            self.level = TwoLevel(
                K, self.matrix, space, held, border, prefix=prefix, options=options
            )
            self._owner, self._pc = self.level, self.level.pc
            K.destroy()
        self._projection: Projection | None = None
        self._ksp = PETSc.KSP().create(self.matrix.comm)
        if border is None:
            self._ksp.setPC(self._pc)
        else:
            self._projection = Projection(self.comm, border, self.precondition)
            self._ksp.setPC(PETSc.PC().createPython(self._projection, comm=self.matrix.comm))
        self._ksp.setOperators(self.matrix)
        self._ksp.setType("cg")
        self._ksp.setNormType(PETSc.KSP.NormType.NATURAL)
        self._ksp.setTolerances(max_it=MAX_ITERATIONS)

    def multiply(self, X: Array) -> Array:
        """Return K X for vectors that are zero in held rows, shape (rows, k)."""
        return self._apply(self.matrix.mult, X)

    def precondition(self, R: Array) -> Array:
        """Return T R for vectors that are zero in held rows, shape (rows, k)."""
        return self._apply(self._pc.apply, R)

    def _apply(self, operation: Callable[[PETSc.Vec, PETSc.Vec], None], X: Array) -> Array:
        """Apply an operation of PETSc to each column of X."""
        Y = np.empty(X.shape, order="F")
        for k in range(X.shape[1]):
            self._x.array[:] = X[:, k]
            operation(self._x, self._y)
            Y[:, k] = self._y.array_r
        return Y

    def project(self, R: Array) -> Array:
        """Return P R, and subtract the forces Cᵀλ of the constraints from R in place."""
        if self._projection is None:
            return self.precondition(R)
        return self._projection.precondition(R)

    def solve(
        self, f: Array, g: Array | None = None, *, tolerance: float = TOLERANCE
    ) -> tuple[Array, Array]:
        """Return displacements (rows, k) and multipliers of the constraints (constraints, k).

        f (rows, k) contains displacements in held rows and forces in the other rows; g
        (constraints, k) contains the values of C u, zero by default. `tolerance` is the relative
        error in the energy norm.
        """
        load: Array = np.array(f, order="F")
        load[self.held] = 0.0
        R, U = load, np.zeros(f.shape, order="F")
        multipliers: Array = np.zeros((0, f.shape[1]))
        if self._projection is not None and g is not None:
            U[:] = self._projection.motion(g)
            R = load - self.multiply(U)
        for k in range(f.shape[1]):
            U[:, k] += self._iterate(R[:, k : k + 1], tolerance)
        if self._projection is not None:
            c = 0.0 if g is None else g
            U += self._projection.motion(c - self._projection.constraints(U))
            multipliers = self._projection.multipliers(load - self.multiply(U))
        U[self.held] = f[self.held]
        return U, multipliers

    def _iterate(self, load: Array, tolerance: float) -> Array:
        """Return the solution of one load by conjugate gradients."""
        ksp, Reason = self._ksp, PETSc.KSP.ConvergedReason
        b, x = self.matrix.createVecs()
        b.array[:] = load[:, 0]
        stagnation, norms = Stagnation(), []

        def converged(_: PETSc.KSP, count: int, norm: float) -> int:
            norms.append(norm)
            if not np.isfinite(norm):
                return int(Reason.DIVERGED_NANORINF)
            if norm <= tolerance * norms[0]:
                return int(Reason.CONVERGED_RTOL)
            if count % INTERVAL == 0:  # true residual; `norm` also falls below round-off
                level = self._level(load, x)
                if stagnation.check(count, level) and level <= ROUND_OFF:
                    return int(Reason.CONVERGED_ATOL)
            return int(Reason.ITERATING)

        with destroying(self.comm, b, x):
            ksp.setConvergenceTest(converged)
            ksp.solve(b, x)
            reason, count = ksp.getConvergedReason(), ksp.getIterationNumber()
            if reason in (Reason.DIVERGED_INDEFINITE_MAT, Reason.DIVERGED_INDEFINITE_PC):
                indefinite, failed = self._level(load, x) > ROUND_OFF, False
            else:
                indefinite, failed = b.dot(x) < 0, reason < 0
            if indefinite:
                raise IterationError(NOT_POSITIVE, iterations=count)
            if failed:
                error = norms[-1] / norms[0]
                text = NOT_CONVERGED.format(count, error, tolerance)
                raise IterationError(text, iterations=count, error=error, tolerance=tolerance)
            self.iterations += count, 1
            return np.array(x.array_r)

    def _level(self, load: Array, x: PETSc.Vec) -> float:
        """Return the level of round-off of an approximate solution."""
        X = np.array(x.array_r)[:, None]
        R = load - self.multiply(X)
        if self._projection is not None:
            R -= self._projection.forces(R)
        return float(round_off_level(self.comm, self.scale, R, X)[0])

    def destroy(self) -> None:
        """Free all PETSc objects."""
        for item in (self._ksp, self._owner, self._x, self._y, self.matrix):
            item.destroy()
