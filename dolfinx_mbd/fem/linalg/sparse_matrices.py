"""Sparse matrices: held rows, owned rows, near-null spaces, and borders of constraints.

Arguments that select rows are local indices of owned rows.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc


def constrain(A: PETSc.Mat, rows: NDArray[np.int32], diagonal: float) -> None:
    """Set rows and their columns to zero, and their diagonal entries to a value, in place."""
    start, _ = A.getOwnershipRange()
    A.setOption(PETSc.Mat.Option.KEEP_NONZERO_PATTERN, True)
    A.zeroRowsColumns((rows + start).astype(PETSc.IntType), diagonal)


def set_unit_diagonal(A: PETSc.Mat, rows: NDArray[np.int32]) -> None:
    """Set the diagonal entries of owned rows to one; they must be zero before."""
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    vector = A.createVecLeft()
    vector.array[rows] = 1.0
    A.setDiagonal(vector, addv=PETSc.InsertMode.ADD_VALUES)
    A.assemble()
    vector.destroy()


def set_near_null_space(
    A: PETSc.Mat, columns: NDArray[np.float64], held: NDArray[np.int32]
) -> None:
    """Attach the span of columns, which need not be orthonormal, as the near-null space."""
    vectors: list[PETSc.Vec] = []
    for column in columns.T:
        vector = A.createVecRight()
        vector.array[:] = column
        vector.array[held] = 0.0
        for other in vectors:
            vector.axpy(-vector.dot(other), other)
        vector.normalize()
        vectors.append(vector)
    space = PETSc.NullSpace().create(vectors=vectors, comm=A.comm)
    A.setNearNullSpace(space)
    for item in (space, *vectors):
        item.destroy()


def owned_rows(A: PETSc.Mat) -> scipy.sparse.csr_matrix:
    """Return the owned rows of a matrix, with global column indices."""
    indptr, columns, values = A.getValuesCSR()
    return scipy.sparse.csr_matrix(
        (values, columns, indptr), shape=(len(indptr) - 1, A.getSize()[1])
    )


def bordered_stiffness(K: PETSc.Mat, border: scipy.sparse.csr_matrix) -> PETSc.Mat:
    """Return [[K, Cᵀ], [C, 0]] with C on the last rank; `border` holds the owned rows of Cᵀ."""
    rows, count = K.getLocalSize()[0], border.shape[1]
    size, owned = K.getSize()[0], _num_owned_constraints(K, count)
    indptr, indices = (a.astype(PETSc.IntType) for a in (border.indptr, border.indices))
    Ct = PETSc.Mat().createAIJ(
        ((rows, size), (owned, count)), csr=(indptr, indices, border.data), comm=K.comm
    )
    C = Ct.transpose(out=PETSc.Mat())
    Z = _zero_matrix(K, count)
    return _join(K, [[K, Ct], [C, Z]], [Ct, C, Z])


def bordered_mass(M: PETSc.Mat, count: int) -> PETSc.Mat:
    """Return [[M, 0], [0, 0]] in the layout of `bordered_stiffness`."""
    Z = _zero_matrix(M, count)
    return _join(M, [[M, None], [None, Z]], [Z])


def _num_owned_constraints(A: PETSc.Mat, count: int) -> int:
    """Return how many of `count` constraints this rank owns: all or none."""
    return count if A.comm.rank == A.comm.size - 1 else 0


def _zero_matrix(A: PETSc.Mat, count: int) -> PETSc.Mat:
    """Return a square zero matrix on the last rank; MUMPS requires a stored diagonal."""
    owned = _num_owned_constraints(A, count)
    indptr, indices = (np.arange(n, dtype=PETSc.IntType) for n in (owned + 1, owned))
    sizes = ((owned, count), (owned, count))
    return PETSc.Mat().createAIJ(sizes, csr=(indptr, indices, np.zeros(owned)), comm=A.comm)


def _join(A: PETSc.Mat, blocks: list[list[PETSc.Mat]], parts: list[PETSc.Mat]) -> PETSc.Mat:
    """Return the matrix that consists of the blocks, and destroy the parts."""
    nest = PETSc.Mat().createNest(blocks, comm=A.comm)
    matrix = nest.convert("aij", PETSc.Mat())
    for part in (nest, *parts):
        part.destroy()
    return matrix
