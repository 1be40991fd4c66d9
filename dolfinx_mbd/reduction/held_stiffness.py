"""The stiffness of a body whose interfaces are all held, and its solver: a factor or iterations."""

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
from dolfinx_mbd.reduction.held_solvers import BorderedSolver, DirectSolver
from dolfinx_mbd.reduction.interfaces import MeshInterface

__all__ = ["HeldStiffness"]

Array = NDArray[np.float64]


class HeldStiffness:
    """The stiffness of a body whose interfaces are all held; its methods are collective.

    Rows of rigid interfaces are held, constraints of averaged ones are met by multipliers. `free`
    states whether the stiffness leaves rigid motions free (not if it contains mass). `dofs` are the
    owned degrees of freedom that rigid interfaces hold, `averaged` the indices of the coordinates
    of averaged interfaces.
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
        border = border_rows(problem.num_owned, interfaces)
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
        if border is None:
            self._solver = DirectSolver(problem, K, self.dofs, **settings)
        else:
            free = free and not problem.supported
            self._solver = BorderedSolver(problem, K, self.dofs, border, free=free, **settings)

    def destroy(self) -> None:
        """Free the solver."""
        self._solver.destroy()

    def constraint_modes(self) -> tuple[Array, Array | None]:
        """Return one mode per coordinate of an interface, and reactions at averaged interfaces."""
        problem, per = self.problem, self.problem.num_rigid
        T = np.zeros((problem.num_owned, per * len(self.interfaces)), order="F")
        for k, i in enumerate(self.interfaces):
            if i.kind == "rigid":
                T[i.dofs, per * k : per * k + per] = problem.rigid_motions(i.point, i.blocks)
        B = -multiply(problem.stiffness, T)
        B[self.dofs] = T[self.dofs]
        del T
        units = np.eye(B.shape[1])[self.averaged]
        modes, multipliers = self._solver.solve(B, units)
        return modes, -multipliers if len(units) else None

    def solve_body(self, loads: Array) -> Array:
        """Return displacements (owned dofs, k) under forces on the body, all interfaces held."""
        B = np.array(loads, order="F")
        B[self.dofs] = 0.0
        return self._solver.solve(B)[0]

    def modes(self, count: int) -> tuple[Array, Array]:
        """Return ω² and the vectors of the lowest modes."""
        if isinstance(self._solver, IterativeSolver):
            return lowest_modes_iteratively(self._solver, self.problem, count)
        return self._solver.modes(count)
