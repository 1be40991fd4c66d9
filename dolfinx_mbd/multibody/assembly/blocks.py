"""Matrices of a system, put together from blocks between its bodies.

Few bodies make dense matrices. In a long chain almost all blocks are zero: there only those that
are not are kept, and work and memory grow with the number of bodies and not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dolfinx_mbd.kernels.matrices import add_pairs, add_rows

__all__ = ["Blocks", "DenseBlocks", "SparseBlocks", "Stacked"]

Array = NDArray[np.float64]


class Blocks(Protocol):
    """A matrix to which blocks are added."""

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to the block of the given numbers."""

    def add_pairs(self, pairs: NDArray[np.int64], blocks: Array) -> None:
        """Add the four blocks (2, 2, w, w) between the two of each pair (J, 2), of which the first
        rows and columns count."""

    def add_rows(
        self, pairs: NDArray[np.int64], blocks: Array, rows: Sequence[NDArray[np.int64]]
    ) -> None:
        """Add to row j the blocks (2, 6, w) of the two of pair j, of which the given rows and the
        first columns count."""


class DenseBlocks:
    """An array; blocks are where the slices say.

    Attributes:
        array: The matrix.
    """

    def __init__(self, rows: Sequence[slice], columns: Sequence[slice]) -> None:
        self._rows, self._columns = rows, columns
        self.array = np.zeros((rows[-1].stop if rows else 0, columns[-1].stop if columns else 0))

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to the block of the given numbers."""
        self.array[self._rows[row], self._columns[column]] += block

    def add_pairs(self, pairs: NDArray[np.int64], blocks: Array) -> None:
        """See :meth:`Blocks.add_pairs`."""
        add_pairs(_limits(self._rows), _limits(self._columns), pairs, blocks, self.array)

    def add_rows(
        self, pairs: NDArray[np.int64], blocks: Array, rows: Sequence[NDArray[np.int64]]
    ) -> None:
        """See :meth:`Blocks.add_rows`."""
        entry = np.repeat(np.arange(len(rows)), [len(held) for held in rows])
        add_rows(entry, np.concatenate(rows), _limits(self._columns), pairs, blocks, self.array)


def _limits(slices: Sequence[slice]) -> NDArray[np.int64]:
    return np.array([(s.start, s.stop) for s in slices], dtype=np.int64)


class SparseBlocks(dict[tuple[int, int], NDArray]):
    """Only the blocks that something was added to.

    Args:
        columns: Where the columns of the blocks are in the matrix.
    """

    def __init__(self, columns: Sequence[slice]) -> None:
        super().__init__()
        self._sizes = [s.stop - s.start for s in columns]

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to the block of the given numbers."""
        key = row, column
        self[key] = self[key] + block if key in self else block

    def add_pairs(self, pairs: NDArray[np.int64], blocks: Array) -> None:
        """See :meth:`Blocks.add_pairs`."""
        for j, i, k in np.ndindex(len(pairs), 2, 2):
            row, column = int(pairs[j, i]), int(pairs[j, k])
            rows, columns = self._sizes[row], self._sizes[column]
            if rows and columns:
                self.add(row, column, blocks[j, i, k, :rows, :columns])

    def add_rows(
        self, pairs: NDArray[np.int64], blocks: Array, rows: Sequence[NDArray[np.int64]]
    ) -> None:
        """See :meth:`Blocks.add_rows`."""
        for j, held in enumerate(rows):
            for k, column in enumerate(pairs[j].tolist()):
                if self._sizes[column]:
                    self.add(j, column, blocks[j, k, held, : self._sizes[column]])


class Stacked:
    """A sparse matrix made again and again of blocks in the same places.

    The places of the entries are found once; after that making the matrix is copying numbers.
    """

    def __init__(self, rows: Sequence[slice], columns: Sequence[slice]) -> None:
        self._rows, self._columns = rows, columns
        self._keys: tuple[tuple[int, int], ...] = ()
        self._order: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._starts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._indices: NDArray[np.int32] = np.zeros(0, dtype=np.int32)
        self._indptr: NDArray[np.int32] = np.zeros(0, dtype=np.int32)

    def matrix(self, blocks: SparseBlocks) -> scipy.sparse.csc_matrix:
        """The matrix, in compressed columns."""
        keys = tuple(blocks)
        if keys != self._keys:
            self._find(keys)
        data = np.concatenate([block.ravel() for block in blocks.values()])[self._order]
        shape = self._rows[-1].stop, self._columns[-1].stop
        return scipy.sparse.csc_matrix((data, self._indices, self._indptr), shape=shape)

    def _find(self, keys: tuple[tuple[int, int], ...]) -> None:
        places = [
            np.meshgrid(
                np.arange(self._rows[i].start, self._rows[i].stop),
                np.arange(self._columns[j].start, self._columns[j].stop),
                indexing="ij",
            )
            for i, j in keys
        ]
        rows = np.concatenate([r.ravel() for r, _ in places])
        columns = np.concatenate([c.ravel() for _, c in places])
        self._order = np.lexsort((rows, columns))
        self._indices = rows[self._order].astype(np.int32)
        count = np.bincount(columns, minlength=self._columns[-1].stop)
        self._indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        self._keys = keys
