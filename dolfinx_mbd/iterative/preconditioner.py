"""Preconditioners of a stiffness with held rows: PETSc's PCMG with two levels, or PETSc's GAMG.

The two levels are the elements of degree two or more and linear elements on the same cells, with
about an eighth of the unknowns. The coarse stiffness is PᵀKP with the interpolation P, and it is
factorized as long as the factor is small. Constraints C u = 0 are imposed on the coarse level.

References:
    Sundar, Stadler, Biros (2015), Comparison of multigrid algorithms for high-order continuous
    finite element discretizations, Numer. Linear Algebra Appl. 22, 664-680.
"""

from __future__ import annotations

import logging

import numpy as np
import scipy
from dolfinx import fem
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.fem.interpolation import linear_interpolation
from dolfinx_mbd.linalg.blocks import multiply, solve
from dolfinx_mbd.linalg.factorization import cholesky
from dolfinx_mbd.linalg.matrices import bordered_stiffness, set_near_null_space, set_unit_diagonal
from dolfinx_mbd.linalg.options import Options, configure, forget

__all__ = ["TwoLevel", "algebraic_multigrid"]

Array = NDArray[np.float64]

SMOOTHER = {
    "ksp_type": "chebyshev",
    "ksp_max_it": 2,
    "ksp_chebyshev_esteig": "0,0.1375,0,1.1",
    "pc_type": "jacobi",
}
"""PETSc options of the smoother, ``mg_levels_...``."""

LARGEST_FACTOR = 1_000_000
"""Number of coarse unknowns above which GAMG replaces the factorization of the coarse level."""

GAMG = {
    "pc_type": "gamg",
    "pc_gamg_threshold": 0.01,
    "pc_gamg_aggressive_coarsening": 1,
    "mg_levels_ksp_type": "chebyshev",
    "mg_levels_ksp_max_it": 3,
    "mg_levels_pc_type": "jacobi",
}
"""PETSc options of algebraic multigrid by smoothed aggregation."""

_log = logging.getLogger("dolfinx_mbd")


def algebraic_multigrid(
    K: PETSc.Mat,
    space: fem.FunctionSpace,
    held: NDArray[np.int32],
    *,
    prefix: str,
    options: Options,
) -> PETSc.KSP:
    """Return a solver whose preconditioner is algebraic multigrid; the caller destroys it.

    Args:
        K: Stiffness of linear elements with unit rows where it is held.
        space: Displacement space.
        held: Owned held degrees of freedom.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix, for example ``pc_gamg_threshold``.

    Raises:
        FactorizationError: PETSc cannot set up the preconditioner.

    Note: Collective.
    """
    positions = space.tabulate_dof_coordinates()[: K.getLocalSize()[0] // space.dofmap.bs]
    set_near_null_space(K, _motions(positions[:, : space.dofmap.bs], held))
    return cholesky(K, prefix=prefix, options={**GAMG, **(options or {})})


class TwoLevel:
    """PCMG with the elements of a space and linear elements on the same cells.

    Args:
        K: Stiffness with unit rows where it is held, of type AIJ.
        fine: The same matrix in the format of the products on the fine level.
        space: Displacement space of degree two or more.
        held: Owned held degrees of freedom.
        border: Owned rows of Cᵀ; None without constraints.
        prefix: PETSc options prefix.
        options: PETSc options; those that begin with ``mg_levels_`` or ``mg_coarse_`` are used.

    Attributes:
        pc: The preconditioner.
        interpolation: P; rows and columns of held degrees of freedom are zero.
        coarse: PᵀKP with unit diagonal in held rows; bordered if there are constraints.
        coarse_held: Owned held unknowns of the coarse level.

    Raises:
        FactorizationError: The stiffness is not positive definite, or the coarse level is not held.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        K: PETSc.Mat,
        fine: PETSc.Mat,
        space: fem.FunctionSpace,
        held: NDArray[np.int32],
        border: scipy.sparse.csr_matrix | None,
        *,
        prefix: str,
        options: Options,
    ) -> None:
        P, self.coarse_held, positions = linear_interpolation(space, held)
        self.interpolation, self.coarse = P, K.PtAP(P)
        set_unit_diagonal(self.coarse, self.coarse_held)
        self._extended = P
        if border is None:
            set_near_null_space(self.coarse, _motions(positions, self.coarse_held))
        else:
            inner = self.coarse
            rows = scipy.sparse.csr_matrix(_transposed(P, border.toarray()))
            self.coarse = bordered_stiffness(inner, rows)
            inner.destroy()
            self._extended = _with_zero_columns(P, self.coarse)
        self.pc = PETSc.PC().create(K.comm)
        self.pc.setOptionsPrefix(prefix)
        self.pc.setOperators(fine)
        self.pc.setType("mg")
        self.pc.setMGLevels(2)
        self.pc.setMGInterpolation(1, self._extended)
        user = {"mg_levels_": SMOOTHER, "mg_coarse_": {}}
        for name, settings in user.items():
            relevant = {k: v for k, v in (options or {}).items() if k.startswith(name)}
            user[name] = settings | {k.removeprefix(name): v for k, v in relevant.items()}
        size, coarse_options = self.coarse.getSize()[0], user["mg_coarse_"]
        if size > LARGEST_FACTOR and border is None and "pc_type" not in coarse_options:
            coarse_options = {**GAMG, **coarse_options}
        method = coarse_options.get("pc_type", "factorization")
        _log.info("coarse level: %d unknowns, %s", size, method)
        self._coarse_solver = cholesky(
            self.coarse,
            prefix=prefix + "mg_coarse_",
            options=coarse_options,
            negative=0 if border is None else border.shape[1],
            ksp=self.pc.getMGCoarseSolve(),
        )
        smoother = self.pc.getMGSmoother(1)
        smoother.setOperators(fine)
        keys = configure(smoother, prefix + "mg_levels_", user["mg_levels_"])
        self.pc.setUp()
        forget(prefix + "mg_levels_", keys)

    def solve_coarse(self, B: Array) -> Array:
        """Return the solution of the coarse level without the forces of constraints.

        Args:
            B: Right-hand sides, shape (owned coarse unknowns, k).
        """
        return np.asfortranarray(solve(self._coarse_solver, self._padded(B))[: len(B)])

    def multiply_coarse(self, X: Array) -> Array:
        """Return the product with the coarse stiffness without the forces of constraints.

        Args:
            X: Vectors, shape (owned coarse unknowns, k).
        """
        return np.asfortranarray(multiply(self.coarse, self._padded(X))[: len(X)])

    def _padded(self, X: Array) -> Array:
        return np.vstack([X, np.zeros((self.coarse.getLocalSize()[0] - len(X), X.shape[1]))])

    def destroy(self) -> None:
        """Free both levels."""
        for item in (self.pc, self.coarse, self.interpolation, self._extended):
            item.destroy()


def _transposed(P: PETSc.Mat, X: Array) -> Array:
    """Return PᵀX."""
    transposed = P.transpose(out=PETSc.Mat())
    result = multiply(transposed, np.asfortranarray(X))
    transposed.destroy()
    return result


def _with_zero_columns(P: PETSc.Mat, coarse: PETSc.Mat) -> PETSc.Mat:
    """Return P with zero columns for the multipliers, which are the last rows of `coarse`."""
    sizes = (P.getSizes()[0], coarse.getSizes()[1])
    return PETSc.Mat().createAIJ(sizes, csr=P.getValuesCSR(), comm=P.comm)


def _motions(positions: Array, held: NDArray[np.int32]) -> Array:
    """Return the rigid motions, zero in held rows."""
    motions = rigid_motions(positions)
    motions[held] = 0.0
    return motions
