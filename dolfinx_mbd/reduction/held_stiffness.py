"""The stiffness of a body whose interfaces are all held: one solver that serves everything.

The rows of rigid interfaces are held; the constraints of averaged ones are met by multipliers. The
solver has one factorization, or iterates where no factor fits into memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.iterative.modes import lowest_modes_iteratively
from dolfinx_mbd.iterative.solver import IterativeSolver
from dolfinx_mbd.iterative.solver_choice import Solver, choose_solver
from dolfinx_mbd.linalg.blocks import multiply
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.reduction.averaged import border_rows
from dolfinx_mbd.reduction.bordered_solver import BorderedSolver
from dolfinx_mbd.reduction.direct_solver import DirectSolver
from dolfinx_mbd.reduction.interfaces import MeshInterface

__all__ = ["HeldStiffness"]

Array = NDArray[np.float64]


class HeldStiffness:
    """The stiffness of a body whose interfaces are all held, and what it serves.

    Args:
        problem: Matrices of the free body.
        interfaces: All of them.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        solver: ``direct``, ``iterative`` or ``auto``.
        free: Whether the stiffness leaves rigid motions free; it does not with mass in it.

    Attributes:
        dofs: Owned degrees of freedom that rigid interfaces hold.
        averaged: Which coordinates of the interfaces are those of averaged ones.

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
        solver: Solver = "direct",
        *,
        free: bool = True,
    ) -> None:
        self.problem, self.interfaces = problem, interfaces
        rigid = [i.dofs for i in interfaces if i.kind == "rigid"]
        self.dofs = np.concatenate([*rigid, np.zeros(0, dtype=np.int32)])
        parts = [(i.dofs, i.rows) for i in interfaces if i.rows is not None]
        border = border_rows(problem.num_owned, parts) if parts else None
        averaged = [i.rows is not None for i in interfaces]
        self.averaged = np.flatnonzero(np.repeat(averaged, problem.num_rigid))
        settings: dict[str, Any] = {"prefix": prefix, "options": options}
        self._solver: DirectSolver | BorderedSolver | IterativeSolver
        if choose_solver(problem, solver) == "iterative":
            self._solver = IterativeSolver(
                problem.stiffness, problem.space, self.dofs, border, **settings
            )
            return
        K = problem.stiffness.copy()
        constrain(K, self.dofs, 1.0)
        free = free and not problem.supported
        if border is None:
            self._solver = DirectSolver(problem, K, self.dofs, **settings)
        else:
            self._solver = BorderedSolver(problem, K, self.dofs, border, free=free, **settings)

    def destroy(self) -> None:
        """Free what the solver holds."""
        self._solver.destroy()

    def constraint_modes(self) -> tuple[Array, Array | None]:
        """One for each coordinate of an interface; and the reactions at averaged interfaces."""
        problem, per = self.problem, self.problem.num_rigid
        T = np.zeros((problem.num_owned, per * len(self.interfaces)), order="F")
        for k, i in enumerate(self.interfaces):
            if i.kind == "rigid":
                motions = problem.rigid_motions(i.point, i.blocks)
                T[i.dofs, per * k : per * k + per] = motions
        B = -multiply(problem.stiffness, T)
        B[self.dofs] = T[self.dofs]
        del T
        units = np.zeros((len(self.averaged), B.shape[1]))
        units[np.arange(len(units)), self.averaged] = 1.0
        modes, multipliers = self._solver.solve(B, units)
        return modes, -multipliers if len(units) else None

    def solve_body(self, loads: Array) -> Array:
        """Displacements (owned dofs, k) under body forces, all interfaces held."""
        B = np.array(loads, order="F")
        B[self.dofs] = 0.0
        return self._solver.solve(B)[0]

    def modes(self, count: int) -> tuple[Array, Array]:
        """The lowest modes: ω², and their vectors."""
        if isinstance(self._solver, IterativeSolver):
            return lowest_modes_iteratively(self._solver, self.problem, count)
        return self._solver.modes(count)
