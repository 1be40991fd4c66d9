"""Matrices bordered by the rows of constraints."""

from __future__ import annotations

import numpy as np
import scipy
from petsc4py import PETSc

__all__ = ["bordered_mass", "bordered_stiffness"]


def bordered_stiffness(K: PETSc.Mat, border: scipy.sparse.csr_matrix) -> PETSc.Mat:
    """[[K, Cᵀ], [C, 0]], with the rows of C on the last rank; the caller destroys it.

    Args:
        K: Stiffness.
        border: Cᵀ, owned rows.

    Note: Collective.
    """
    rows, count = K.getLocalSize()[0], border.shape[1]
    size, own = K.getSize()[0], _own(K, count)
    indptr, indices = (a.astype(PETSc.IntType) for a in (border.indptr, border.indices))
    Ct = PETSc.Mat().createAIJ(
        ((rows, size), (own, count)), csr=(indptr, indices, border.data), comm=K.comm
    )
    C = Ct.transpose(out=PETSc.Mat())
    Z = _zero(K, count)
    return _joined(K, [[K, Ct], [C, Z]], [Ct, C, Z])


def bordered_mass(M: PETSc.Mat, count: int) -> PETSc.Mat:
    """[[M, 0], [0, 0]] in the layout of `bordered_stiffness`; the caller destroys it.

    Note: Collective.
    """
    Z = _zero(M, count)
    return _joined(M, [[M, None], [None, Z]], [Z])


def _own(A: PETSc.Mat, count: int) -> int:
    return count if A.comm.rank == A.comm.size - 1 else 0


def _zero(A: PETSc.Mat, count: int) -> PETSc.Mat:
    """A square zero matrix on the last rank; MUMPS wants its diagonal to be stored."""
    own = _own(A, count)
    indptr, indices = np.arange(own + 1, dtype=PETSc.IntType), np.arange(own, dtype=PETSc.IntType)
    sizes = ((own, count), (own, count))
    return PETSc.Mat().createAIJ(sizes, csr=(indptr, indices, np.zeros(own)), comm=A.comm)


def _joined(A: PETSc.Mat, blocks: list[list[PETSc.Mat]], parts: list[PETSc.Mat]) -> PETSc.Mat:
    nest = PETSc.Mat().createNest(blocks, comm=A.comm)
    joined = nest.convert("aij", PETSc.Mat())
    for part in (nest, *parts):
        part.destroy()
    return joined
