"""Interpolation of linear elements in a space of higher degree on the same cells."""

from __future__ import annotations

import numpy as np
import scipy
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.linalg.matrices import owned_rows

__all__ = ["linear_interpolation"]

Array = NDArray[np.float64]


def linear_interpolation(
    space: fem.FunctionSpace, held: NDArray[np.int32]
) -> tuple[PETSc.Mat, NDArray[np.int32], Array]:
    """Return the interpolation of linear elements in a space; held rows and columns are zero.

    Args:
        space: Blocked Lagrange space of degree two or more.
        held: Owned held degrees of freedom.

    Returns:
        P, which the caller destroys; the owned held unknowns of the linear elements; the positions
        of their owned nodes, shape (nodes, dim), m.

    Note: Collective.
    """
    fine = fem.functionspace(space.mesh, space.ufl_element().sub_elements[0])
    linear = fem.functionspace(space.mesh, ("Lagrange", 1))
    scalar = fem_petsc.interpolation_matrix(linear, fine)
    scalar.assemble()
    dim = space.dofmap.bs
    sizes = tuple((dim * owned, dim * size) for owned, size in scalar.getSizes())
    local = owned_rows(scalar)
    scalar.destroy()
    local.data[np.abs(local.data) < 1e-12] = 0.0
    local.eliminate_zeros()
    full = scipy.sparse.kron(local, np.eye(dim), format="csr")
    pattern = full.indptr.astype(PETSc.IntType), full.indices.astype(PETSc.IntType)
    comm = space.mesh.comm
    P = PETSc.Mat().createAIJ(sizes, csr=(*pattern, full.data), comm=comm, bsize=dim)
    at_vertices = (np.abs(full.data - 1.0) < 1e-9).astype(float)
    same = PETSc.Mat().createAIJ(sizes, csr=(*pattern, at_vertices), comm=comm)
    rows, columns = P.createVecLeft(), P.createVecRight()
    rows.array[held] = 1.0
    same.multTranspose(rows, columns)
    coarse_held = np.flatnonzero(columns.array_r > 0.5).astype(np.int32)
    for vector in (rows, columns):
        vector.array[:] = vector.array_r < 0.5
    P.diagonalScale(rows, columns)
    for item in (same, rows, columns):
        item.destroy()
    return P, coarse_held, linear.tabulate_dof_coordinates()[: sizes[1][0] // dim, :dim]
