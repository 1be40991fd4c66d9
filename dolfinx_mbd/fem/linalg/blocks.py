"""Blocks of vectors: products with a matrix, solutions, and inner products.

A block is a NumPy array of shape (owned rows, columns) in Fortran order, which PETSc uses without a
copy. Small matrices are NumPy arrays that are bitwise identical on all ranks.
"""

from __future__ import annotations

import numpy as np
import scipy
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.factorization import solver_error
from dolfinx_mbd.parallel import summed


def multiply(A: PETSc.Mat, X: Array) -> Array:
    """Return A X."""
    Y = np.empty((A.getLocalSize()[0], X.shape[1]), order="F")
    if X.shape[1] == 0:
        return Y
    DX, DY = _dense_matrix(A.comm, np.asfortranarray(X)), _dense_matrix(A.comm, Y)
    A.matMult(DX, DY)
    DY.destroy()
    DX.destroy()
    return Y


def solve(ksp: PETSc.KSP, B: Array) -> Array:
    """Return A⁻¹B, with all right-hand sides in one call of the solver."""
    if B.shape[1] == 0:
        return np.zeros_like(B)
    X = np.zeros(B.shape, order="F")
    DB, DX = _dense_matrix(ksp.comm, np.asfortranarray(B)), _dense_matrix(ksp.comm, X)
    try:
        ksp.matSolve(DB, DX)
    except PETSc.Error as error:
        raise solver_error(error, "the linear solver failed") from error
    DX.destroy()
    DB.destroy()
    return X


def combined(X: Array, c: Array) -> Array:
    """Return X c as a block; NumPy's product is not in Fortran order."""
    if not X.size or not c.size:
        return np.zeros((len(X), c.shape[1]), order="F")
    return np.asarray(scipy.linalg.blas.dgemm(1.0, X, c))


def add_combined(Y: Array, X: Array, c: Array) -> None:
    """Add X c to Y in place; X and Y are blocks."""
    assert Y.flags.f_contiguous  # BLAS would work on a copy otherwise
    if X.size and Y.size:
        scipy.linalg.blas.dgemm(1.0, X, c, 1.0, Y, overwrite_c=1)


def gram(comm: MPI.Comm, X: Array, Y: Array) -> Array:
    """Return XᵀY over all ranks, bitwise identical on all ranks."""
    return np.asarray(summed(comm, X.T @ Y))


def column_sums(comm: MPI.Comm, X: Array, Y: Array) -> Array:
    """Return xᵀy for each pair of columns, bitwise identical on all ranks."""
    return np.asarray(summed(comm, np.array([np.dot(x, y) for x, y in zip(X.T, Y.T, strict=True)])))


def _dense_matrix(comm: MPI.Comm, values: Array) -> PETSc.Mat:
    """Return a dense PETSc matrix that shares the memory of a block."""
    rows, columns = values.shape
    D = PETSc.Mat().createDense(
        ((rows, PETSc.DETERMINE), (PETSc.DECIDE, columns)), array=values, comm=comm
    )
    D.assemble()
    return D
