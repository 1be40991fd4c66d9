"""Two-level preconditioner: elements of degree two or more, linear elements on the same cells.

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
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import rigid_motions, scalar_space
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.multigrid import two_level_multigrid
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.linalg.sparse_matrices import (
    bordered_stiffness,
    owned_rows,
    set_near_null_space,
    set_unit_diagonal,
)


class TwoLevel:
    """PETSc's PCMG with the elements of a space and linear elements on the same cells.

    K is of type AIJ and has unit rows at held degrees of freedom; `fine` is the same matrix in the
    format used for products. `border` holds the owned rows of Cᵀ. PETSc options that begin with
    ``mg_levels_`` or ``mg_coarse_`` are used. All methods are collective.
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
        return np.asfortranarray(solve(self._coarse_solver, self._pad(B))[: len(B)])

    def multiply_coarse(self, X: Array) -> Array:
        """Return PᵀKP X without forces of constraints, shape (owned coarse unknowns, k)."""
        return np.asfortranarray(multiply(self.coarse, self._pad(X))[: len(X)])

    def _pad(self, X: Array) -> Array:
        """Return vectors with appended zero multipliers."""
        return np.vstack([X, np.zeros((self.coarse.getLocalSize()[0] - len(X), X.shape[1]))])

    def destroy(self) -> None:
        """Free both levels."""
        for item in (self.pc, self.coarse, self.interpolation, self._extended):
            item.destroy()


def linear_interpolation(
    space: fem.FunctionSpace, held: NDArray[np.int32]
) -> tuple[PETSc.Mat, NDArray[np.int32], Array]:
    """Return the interpolation P from linear elements to a space of higher degree (collective).

    Held rows and columns of P are zero; the caller destroys P. The other results are the owned held
    unknowns of the linear elements and the positions of their owned nodes, (nodes, dim), m.
    """
    fine = scalar_space(space)
    linear = fem.functionspace(space.mesh, ("Lagrange", 1))
    scalar = fem_petsc.interpolation_matrix(linear, fine)
    scalar.assemble()
    comm, dim = space.mesh.comm, space.dofmap.bs
    sizes = tuple((dim * owned, dim * size) for owned, size in scalar.getSizes())
    local = owned_rows(scalar)
    scalar.destroy()
    local.data[np.abs(local.data) < 1e-12] = 0.0
    local.eliminate_zeros()
    full = scipy.sparse.kron(local, np.eye(dim), format="csr")
    pattern = full.indptr.astype(PETSc.IntType), full.indices.astype(PETSc.IntType)
    P = PETSc.Mat().createAIJ(sizes, csr=(*pattern, full.data), comm=comm, bsize=dim)
    at_vertices = (np.abs(full.data - 1.0) < 1e-9).astype(float)
    injection = PETSc.Mat().createAIJ(sizes, csr=(*pattern, at_vertices), comm=comm)
    rows, columns = P.createVecLeft(), P.createVecRight()
    rows.array[held] = 1.0
    injection.multTranspose(rows, columns)
    coarse_held = np.flatnonzero(columns.array_r > 0.5).astype(np.int32)
    for vector in (rows, columns):
        vector.array[:] = vector.array_r < 0.5
    P.diagonalScale(rows, columns)
    for item in (injection, rows, columns):
        item.destroy()
    return P, coarse_held, linear.tabulate_dof_coordinates()[: sizes[1][0] // dim, :dim]
