"""K u + Cᵀλ = f, C u = g for the rows C of averaged interfaces, by a positive definite factor of K.

Where a rigid interface holds the body, u = K⁻¹(f - Cᵀλ) makes λ the solution of a small system. A
body that only averaged interfaces hold is free in K. Then λ = λ₀ + N ν, where λ₀ balances the loads
and N ν are all that are in equilibrium by themselves, so that the solver only meets forces in
equilibrium; six degrees of freedom are held for it, which take none, and a rigid motion R a is left
to be found together with ν.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.determinate_support import centred_motions, determinate_dofs
from dolfinx_mbd.fem.phases import log
from dolfinx_mbd.linalg.block_lanczos import Breakdown
from dolfinx_mbd.linalg.blocks import gram, solve
from dolfinx_mbd.linalg.eigenvalues import block_modes, lowest_modes, uses_block_lanczos
from dolfinx_mbd.linalg.factorization import FactorizationError, cholesky
from dolfinx_mbd.linalg.matrices import bordered_mass, bordered_stiffness, constrain
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.parallel import released

__all__ = ["BorderedSolver"]

Array = NDArray[np.float64]

SINGULAR = 1e-13
"""Reciprocal condition of the small system, scaled, below which it is singular."""


class BorderedSolver:
    """Solves for displacements and multipliers.

    Args:
        problem: Matrices of the free body.
        K: Stiffness, unit rows where it is held; taken over.
        held: Owned degrees of freedom that rigid interfaces hold.
        border: Cᵀ, owned rows.
        free: Whether K leaves rigid motions free; it does not with mass in it.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Raises:
        FactorizationError: A part of the body is not held, the mesh is too coarse to tell the
            motions of the interfaces apart, or the solver failed.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        K: PETSc.Mat,
        held: NDArray[np.int32],
        border: scipy.sparse.csr_matrix,
        *,
        free: bool = True,
        prefix: str,
        options: Options,
    ) -> None:
        self.comm, self._problem, self._rigid = problem.comm, problem, held
        self._solver: dict[str, Any] = {"prefix": prefix, "options": options}
        self._border, count = border, border.shape[1]
        self._balancing = np.zeros((count, 0))  # λ₀ = this times the resultants Rᵀf
        self._R: Array = np.zeros((problem.num_owned, 0))
        own, self._held = np.eye(count), held
        if free and not self.comm.allreduce(len(held)):
            self._R = centred_motions(problem)
            CR = self._motions(self._R)
            size = np.linalg.norm(CR, axis=0)
            left, values, right = np.linalg.svd(CR / size)
            rank = len(values)
            self._balancing = left[:, :rank] / values @ right / size
            own = left[:, rank:]
            self._held = determinate_dofs(self.comm, self._R)
            constrain(K, self._held, 1.0)
        self._own = own  # N
        self._K, self._ksp = K, cholesky(K, **self._solver)
        forces = border @ own
        forces[self._held] = 0.0
        self._under_own = solve(self._ksp, np.asfortranarray(forces))
        parts = self._motions(np.hstack([self._under_own, -self._R]))
        self._scale = 1.0 / np.linalg.norm(parts, axis=0)
        self._small = parts * self._scale
        values = np.linalg.svd(self._small / np.linalg.norm(self._small, axis=1)[:, None])[1]
        if not values[-1] > SINGULAR * values[0]:
            self.destroy()
            raise FactorizationError(
                "the stiffness with averaged interfaces is singular: a part of the body is not "
                "held, or the mesh is too coarse to tell the motions of the interfaces apart"
            )

    def solve(self, f: Array, g: Array | None = None) -> tuple[Array, Array]:
        """Displacements (owned dofs, k) and multipliers (constraints, k).

        Args:
            f: Forces, shape (owned dofs, k); what is prescribed where a rigid interface holds.
            g: Values of C u, shape (constraints, k); zero by default.
        """
        balance = self._balancing @ gram(self.comm, self._R, f)
        B = np.asfortranarray(f - self._border @ balance)
        if self._R.shape[1]:
            B[self._held] = 0.0
        u = solve(self._ksp, B)
        rest = self._motions(u)
        if g is not None:
            rest -= g
        found = self._scale[:, None] * np.linalg.solve(self._small, rest)
        cut = self._own.shape[1]
        u += np.hstack([-self._under_own, self._R]) @ found
        return u, balance + self._own @ found[:cut]

    def modes(self, count: int) -> tuple[Array, Array]:
        """The lowest modes with C u = 0: ω², and their vectors."""
        M = self._problem.mass()
        constrain(M, self._rigid, 0.0)
        number, rows = self._border.shape[1], self.comm.allreduce(len(self._rigid))
        free = self._problem.num_dofs - rows - number
        with released(self.comm, M):
            if uses_block_lanczos(count, free, **self._solver):
                try:
                    return block_modes(self.comm, lambda B: self.solve(B)[0], M, count)
                except Breakdown as error:
                    log.warning("block Lanczos: %s; SLEPc's Krylov-Schur is used instead", error)
            return self._bordered_modes(M, count)

    def _bordered_modes(self, M: PETSc.Mat, count: int) -> tuple[Array, Array]:
        """By SLEPc, or of few dofs by LAPACK: with the bordered matrix itself."""
        number = self._border.shape[1]
        inner = self._problem.stiffness.copy()
        constrain(inner, self._rigid, 1.0)
        K, mass = bordered_stiffness(inner, self._border), bordered_mass(M, number)
        ksp = cholesky(K, negative=number, **self._solver)
        values, vectors = lowest_modes(
            K, mass, ksp, count, self._rigid, num_border=number, **self._solver
        )
        for item in (ksp, K, mass, inner):
            item.destroy()
        return values, vectors[: self._problem.num_owned]

    def _motions(self, u: Array) -> Array:
        """C u, the same on every rank."""
        return gram(self.comm, self._border, u)  # type: ignore[arg-type]

    def destroy(self) -> None:
        """Free the factors and the matrix."""
        self._ksp.destroy()
        self._K.destroy()
