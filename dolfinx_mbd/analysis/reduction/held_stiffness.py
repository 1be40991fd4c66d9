"""The stiffness of a body whose interfaces are all held: one factorization that serves everything.

The rows of rigid interfaces are held; the constraints of averaged ones border the matrix.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.analysis.assembly import ElasticProblem
from dolfinx_mbd.analysis.eigen import lowest_modes
from dolfinx_mbd.analysis.la import Options, cholesky, constrain, multiply, solve
from dolfinx_mbd.analysis.reduction.averaged import border_rows, bordered_mass, bordered_stiffness
from dolfinx_mbd.analysis.reduction.interfaces import MeshInterface

__all__ = ["HeldStiffness"]

Array = NDArray[np.float64]


class HeldStiffness:
    """The factorized stiffness of a body whose interfaces are all held, and what it serves.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        prefix: str,
        options: Options,
    ) -> None:
        self.problem, self.interfaces = problem, interfaces
        self.solver: dict[str, Any] = {"prefix": prefix, "options": options}
        rigid = [i.dofs for i in interfaces if i.kind == "rigid"]
        self.dofs = np.concatenate([*rigid, np.zeros(0, dtype=np.int32)])
        parts = [(i.dofs, i.rows) for i in interfaces if i.rows is not None]
        self.border = border_rows(problem.num_owned, parts) if parts else None
        self.num_border = problem.num_rigid * len(parts)
        averaged = [i.rows is not None for i in interfaces]
        self.averaged = np.flatnonzero(np.repeat(averaged, problem.num_rigid))
        self.K: PETSc.Mat = problem.stiffness.copy()
        constrain(self.K, self.dofs, 1.0)
        if self.border is not None:
            inner = self.K
            self.K = bordered_stiffness(inner, self.border)
            inner.destroy()
        self._ksp = self._factorized()

    def _factorized(self) -> PETSc.KSP:
        return cholesky(self.K, negative=self.num_border, **self.solver)

    def _ready(self) -> PETSc.KSP:
        """The solver, factorized again if SLEPc has taken it over."""
        if self._ksp.getOperators()[0].handle != self.K.handle:
            self._ksp.destroy()
            self._ksp = self._factorized()
        return self._ksp

    def destroy(self) -> None:
        """Free the factors and the matrix."""
        self._ksp.destroy()
        self.K.destroy()

    def constraint_modes(self) -> tuple[Array, Array | None]:
        """One for each coordinate of an interface; and the reactions at averaged interfaces."""
        problem, per = self.problem, self.problem.num_rigid
        T = np.zeros((problem.num_owned, per * len(self.interfaces)), order="F")
        for k, i in enumerate(self.interfaces):
            if i.kind == "rigid":
                motions = problem.rigid_motions(i.point, i.blocks)
                T[i.dofs, per * k : per * k + per] = motions
        B = np.zeros((self.K.getLocalSize()[0], T.shape[1]), order="F")
        np.negative(multiply(problem.stiffness, T), out=B[: problem.num_owned])
        B[self.dofs] = T[self.dofs]
        del T
        own = slice(problem.num_owned, None)  # the border, on one rank
        if len(B[own]):
            B[own][np.arange(self.num_border), self.averaged] = 1.0
        X = solve(self._ready(), B)
        if self.border is None:
            return X, None
        gathered = problem.comm.bcast(X[own], root=problem.comm.size - 1)
        return np.asfortranarray(X[: problem.num_owned]), -gathered

    def solve_body(self, loads: Array) -> Array:
        """Displacements (owned dofs, k) under body forces, all interfaces held."""
        B = np.zeros((self.K.getLocalSize()[0], loads.shape[1]), order="F")
        B[: self.problem.num_owned] = loads
        B[self.dofs] = 0.0
        return np.asfortranarray(solve(self._ready(), B)[: self.problem.num_owned])

    def modes(self, count: int) -> tuple[Array, Array]:
        """The lowest modes: ω², and their vectors."""
        M = self.problem.mass()
        constrain(M, self.dofs, 0.0)
        if self.border is not None:
            inner = M
            M = bordered_mass(inner, self.num_border)
            inner.destroy()
        values, vectors = lowest_modes(
            self.K, M, self._ready(), count, self.dofs, num_border=self.num_border, **self.solver
        )
        M.destroy()
        return values, vectors[: self.problem.num_owned]
