"""Matrices of a system, assembled from blocks for pairs of bodies.

Systems of few bodies have dense matrices. In long chains almost all blocks are zero: only nonzero
blocks are stored, so that work and memory grow linearly with the number of bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.matrices import add_pairs, add_rows

Index = NDArray[np.int64]


class DenseBlocks:
    """A dense matrix with blocks at the given slices."""

    def __init__(self, rows: Sequence[slice], columns: Sequence[slice]) -> None:
        self._rows, self._columns = rows, columns
        self.array = np.zeros((rows[-1].stop if rows else 0, columns[-1].stop if columns else 0))

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to the block with the given indices."""
        self.array[self._rows[row], self._columns[column]] += block

    def add_pairs(self, pairs: Index, blocks: Array) -> None:
        """Add the four blocks (2, 2, w, w) between the bodies of each pair (J, 2)."""
        add_pairs(_limits(self._rows), _limits(self._columns), pairs, blocks, self.array)

    def add_rows(self, pairs: Index, blocks: Array, rows: Sequence[Index]) -> None:
        """Add the rows `rows[j]` of the two blocks (2, 6, w) of pair j to block row j."""
        entry = np.repeat(np.arange(len(rows)), [len(numbers) for numbers in rows])
        add_rows(entry, np.concatenate(rows), _limits(self._columns), pairs, blocks, self.array)


def _limits(slices: Sequence[slice]) -> Index:
    return np.array([(s.start, s.stop) for s in slices], dtype=np.int64)


class SparseBlocks(dict[tuple[int, int], NDArray]):
    """A sparse matrix as a dictionary of the blocks with contributions."""

    def __init__(self, columns: Sequence[slice]) -> None:
        super().__init__()
        self._sizes = [s.stop - s.start for s in columns]

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to a block, or create it."""
        key = row, column
        self[key] = self[key] + block if key in self else block

    def add_pairs(self, pairs: Index, blocks: Array) -> None:
        """See `DenseBlocks.add_pairs`."""
        for j, i, k in np.ndindex(len(pairs), 2, 2):
            row, column = int(pairs[j, i]), int(pairs[j, k])
            rows, columns = self._sizes[row], self._sizes[column]
            if rows and columns:
                self.add(row, column, blocks[j, i, k, :rows, :columns])

    def add_rows(self, pairs: Index, blocks: Array, rows: Sequence[Index]) -> None:
        """See `DenseBlocks.add_rows`."""
        for j, numbers in enumerate(rows):
            for k, column in enumerate(pairs[j].tolist()):
                if self._sizes[column]:
                    self.add(j, column, blocks[j, k, numbers, : self._sizes[column]])


Blocks = DenseBlocks | SparseBlocks


class RepeatedAssembly:
    """A sparse matrix assembled repeatedly from blocks at the same positions.

    The sparsity pattern is computed once; later assemblies only copy the values.
    """

    def __init__(self, rows: Sequence[slice], columns: Sequence[slice]) -> None:
        self._rows, self._columns = rows, columns
        self._keys: tuple[tuple[int, int], ...] = ()

    def matrix(self, blocks: SparseBlocks) -> scipy.sparse.csc_matrix:
        """Return the matrix in compressed sparse column format."""
        if tuple(blocks) != self._keys:
            self._find_pattern(tuple(blocks))
        data = np.concatenate([block.ravel() for block in blocks.values()])[self._order]
        shape = self._rows[-1].stop, self._columns[-1].stop
        return scipy.sparse.csc_matrix((data, self._indices, self._indptr), shape=shape)

    def _find_pattern(self, keys: tuple[tuple[int, int], ...]) -> None:
        rows, columns = (
            np.concatenate([np.mgrid[self._rows[i], self._columns[j]][k].ravel() for i, j in keys])
            for k in range(2)
        )
        self._order = np.lexsort((rows, columns))
        self._indices = rows[self._order].astype(np.int32)
        count = np.bincount(columns, minlength=self._columns[-1].stop)
        self._indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        self._keys = keys
