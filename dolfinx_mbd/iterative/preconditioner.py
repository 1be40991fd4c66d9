"""Two levels: elements of degree two or more, and linear elements on the same cells.

The coarse level has about an eighth of the unknowns. Its stiffness is PᵀKP with the interpolation
P. Constraints C u = 0 are imposed on the coarse level.

References:
    Sundar, Stadler, Biros (2015), Comparison of multigrid algorithms for high-order continuous
    finite element discretizations, Numer. Linear Algebra Appl. 22, 664-680.
"""

from __future__ import annotations

import numpy as np
import scipy
from dolfinx import fem
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.fem.interpolation import linear_interpolation
from dolfinx_mbd.linalg.blocks import multiply, solve
from dolfinx_mbd.linalg.matrices import bordered_stiffness, set_near_null_space, set_unit_diagonal
from dolfinx_mbd.linalg.multigrid import two_level_multigrid
from dolfinx_mbd.linalg.options import Options

__all__ = ["TwoLevel"]

Array = NDArray[np.float64]


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
        self.interpolation, self._extended, coarse = P, P, K.PtAP(P)
        set_unit_diagonal(coarse, self.coarse_held)
        count = 0
        if border is None:
            set_near_null_space(coarse, rigid_motions(positions), self.coarse_held)
            self.coarse = coarse
        else:
            restriction = P.transpose(out=PETSc.Mat())
            rows, count = multiply(restriction, border.toarray(order="F")), border.shape[1]
            self.coarse = bordered_stiffness(coarse, scipy.sparse.csr_matrix(rows))
            sizes = P.getSizes()[0], self.coarse.getSizes()[1]  # with columns of the multipliers
            self._extended = PETSc.Mat().createAIJ(sizes, csr=P.getValuesCSR(), comm=P.comm)
            restriction.destroy()
            coarse.destroy()
        self.pc, self._coarse_solver = two_level_multigrid(
            fine, self.coarse, self._extended, negative=count, prefix=prefix, options=options
        )

    def solve_coarse(self, B: Array) -> Array:
        """Return the solution of the coarse level, shape (owned coarse unknowns, k)."""
        return np.asfortranarray(solve(self._coarse_solver, self._padded(B))[: len(B)])

    def multiply_coarse(self, X: Array) -> Array:
        """Return PᵀKP X without forces of constraints, shape (owned coarse unknowns, k)."""
        return np.asfortranarray(multiply(self.coarse, self._padded(X))[: len(X)])

    def _padded(self, X: Array) -> Array:
        """Return vectors with zero multipliers."""
        return np.vstack([X, np.zeros((self.coarse.getLocalSize()[0] - len(X), X.shape[1]))])

    def destroy(self) -> None:
        """Free both levels."""
        for item in (self.pc, self.coarse, self.interpolation, self._extended):
            item.destroy()
