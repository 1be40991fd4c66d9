"""Products of a sparse matrix with blocks of vectors, in memory that is kept from call to call."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

__all__ = ["COLUMNS", "Products", "column_sums"]

Array = NDArray[np.float64]

COLUMNS = 8
"""Vectors in a block: the matrix comes from memory once for all, and twice as many gain nothing."""


class Products:
    """A X for up to `COLUMNS` vectors at once, of which some rows are held.

    The product with held rows is that of a matrix whose held rows and columns are zero, whatever
    they are in A.
    """

    def __init__(self, A: PETSc.Mat, held: NDArray[np.int32]) -> None:
        self.A, self.held = A, held
        self._kept: dict[int, tuple[Array, PETSc.Mat, PETSc.Mat]] = {}

    def input(self, columns: int) -> Array:
        """Memory for the vectors, shape (owned rows, columns); to be filled before `product`."""
        return self._memory(columns)[0]

    def product(self, columns: int) -> Array:
        """A times what is in `input`; valid until the next product of as many columns.

        Note: Collective.
        """
        _, D, Y = self._memory(columns)
        self.A.matMult(D, Y)
        result: Array = Y.getDenseArray()
        result[self.held] = 0.0
        return result

    def multiply(self, X: Array, out: Array | None = None) -> Array:
        """A X for any number of columns, shape (owned rows, k), Fortran order; `out` may be X.

        Note: Collective.
        """
        out = np.empty(X.shape, order="F") if out is None else out
        for begin in range(0, X.shape[1], COLUMNS):
            part = slice(begin, min(begin + COLUMNS, X.shape[1]))
            width = part.stop - begin
            self.input(width)[:] = X[:, part]
            out[:, part] = self.product(width)
        return out

    def _memory(self, columns: int) -> tuple[Array, PETSc.Mat, PETSc.Mat]:
        if columns not in self._kept:
            rows = self.A.getLocalSize()[1]
            values = np.zeros((rows, columns), order="F")
            sizes = ((rows, self.A.getSize()[1]), (PETSc.DECIDE, columns))
            D = PETSc.Mat().createDense(sizes, array=values, comm=self.A.comm)
            D.assemble()
            self._kept[columns] = values, D, self.A.matMult(D)
        return self._kept[columns]

    def destroy(self) -> None:
        """Free the memory; the matrix stays."""
        for _, D, Y in self._kept.values():
            D.destroy()
            Y.destroy()
        self._kept.clear()


def column_sums(comm: MPI.Comm, X: Array, Y: Array) -> Array:
    """x·y of each pair of columns over all ranks, the same bits on every rank.

    Note: Collective over `comm`.
    """
    local = np.array([np.dot(x, y) for x, y in zip(X.T, Y.T, strict=True)])
    total = np.empty_like(local)
    comm.Reduce(local, total, op=MPI.SUM, root=0)
    comm.Bcast(total, root=0)
    return total
