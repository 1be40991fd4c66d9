"""K u = f with held rows by a factor of K, and the modes by the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.linalg.blocks import solve
from dolfinx_mbd.linalg.eigenvalues import lowest_modes
from dolfinx_mbd.linalg.factorization import cholesky
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.parallel import released

__all__ = ["DirectSolver"]

Array = NDArray[np.float64]


class DirectSolver:
    """Solves for displacements.

    Args:
        problem: Its mass matrix.
        K: Stiffness, unit rows where it is held; taken over.
        held: Owned degrees of freedom that are held.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        K: PETSc.Mat,
        held: NDArray[np.int32],
        *,
        prefix: str,
        options: Options,
    ) -> None:
        self._problem, self._K, self._held = problem, K, held
        self._solver: dict[str, Any] = {"prefix": prefix, "options": options}
        self._ksp = cholesky(K, **self._solver)

    def solve(self, f: Array, g: Array | None = None) -> tuple[Array, Array]:
        """Displacements (owned dofs, k); there are no constraints, and no multipliers."""
        return solve(self._ready(), f), np.zeros((0, f.shape[1]))

    def modes(self, count: int) -> tuple[Array, Array]:
        """The lowest modes: ω², and their vectors."""
        M = self._problem.mass()
        constrain(M, self._held, 0.0)
        with released(self._problem.comm, M):
            return lowest_modes(self._K, M, self._ready(), count, self._held, **self._solver)

    def _ready(self) -> PETSc.KSP:
        """The factor, made again if SLEPc has taken it over."""
        if self._ksp.getOperators()[0].handle != self._K.handle:
            self._ksp.destroy()
            self._ksp = cholesky(self._K, **self._solver)
        return self._ksp

    def destroy(self) -> None:
        """Free the factor and the matrix."""
        self._ksp.destroy()
        self._K.destroy()
