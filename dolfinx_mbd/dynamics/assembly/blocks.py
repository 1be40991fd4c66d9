"""Matrices of a system, assembled from blocks for pairs of bodies.

Systems of few bodies have dense matrices. In long chains almost all blocks are zero: only nonzero
blocks are stored, so that work and memory grow linearly with the number of bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.matrices import add_gradients, add_products

Index = NDArray[np.int64]


class FrameColumns(NamedTuple):
    """Bodies of all frames, and the places of their velocities in v, (frames,) each."""

    body: Index  # body of each frame
    start: Index  # index of the first velocity of this body
    width: Index  # number of velocities of this body


class FrameTerms:
    """Matrices (12, 12) between two pairs of frames, which Jacobians transform to velocities."""

    def __init__(self) -> None:
        self._parts: list[tuple[Array, Index, Index]] = []

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, matrices: Array, rows: Index, columns: Index) -> None:
        """Add matrices (pairs, 12, 12) between the frames `rows` and `columns`, (pairs, 2) each."""
        self._parts.append((matrices, rows, columns))

    def add_to(self, target: Blocks, left: Array, right: Array, frames: FrameColumns) -> None:
        """Add products with the Jacobians of rows and columns, (frames, 6, w) each, to a matrix.

        w is the largest number of velocities of a body; other bodies use fewer columns.
        """
        if len(self._parts) == 1:
            target.add_products(*self._parts[0], left, right, frames)
        elif self._parts:
            matrices, rows, columns = map(np.concatenate, zip(*self._parts, strict=True))
            target.add_products(matrices, rows, columns, left, right, frames)


class DenseBlocks:
    """A dense matrix with blocks at the given slices, by default zero."""

    def __init__(
        self, rows: Sequence[slice], columns: Sequence[slice], array: Array | None = None
    ) -> None:
        self._rows, self._columns = rows, columns
        shape = rows[-1].stop if rows else 0, columns[-1].stop if columns else 0
        self.array = np.zeros(shape) if array is None else array

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to the block with the given indices."""
        self.array[self._rows[row], self._columns[column]] += block

    def add_products(
        self,
        matrices: Array,
        rows: Index,
        columns: Index,
        left: Array,
        right: Array,
        frames: FrameColumns,
    ) -> None:
        """Add the matrices (pairs, 12, 12) of `FrameTerms` with Jacobians of rows and columns."""
        starts = frames.start[rows], frames.start[columns]
        add_products(matrices, rows, columns, left, right, frames.width, *starts, self.array)

    def add_gradients(
        self, gradients: Array, rows: Index, ends: Index, jacobians: Array, frames: FrameColumns
    ) -> None:
        """Add gradients (J, 6, 12) of the motions of frames `ends` (J, 2), times Jacobians.

        `rows` (nc, 2) contains the pair of frames and the motion of each row of the matrix.
        """
        pairs, _ = rows.T
        starts = frames.start[ends[pairs]]
        add_gradients(gradients, rows, ends, jacobians, frames.width, starts, self.array)


class SparseBlocks(dict[tuple[int, int], NDArray]):
    """A sparse matrix as a dictionary of the blocks with contributions."""

    def __init__(self, columns: Sequence[slice]) -> None:
        super().__init__()
        self._sizes = [s.stop - s.start for s in columns]

    def add(self, row: int, column: int, block: NDArray) -> None:
        """Add to a block, or create it."""
        key = row, column
        self[key] = self[key] + block if key in self else block

    def add_products(
        self,
        matrices: Array,
        rows: Index,
        columns: Index,
        left: Array,
        right: Array,
        frames: FrameColumns,
    ) -> None:
        """See `DenseBlocks.add_products`."""
        count, width = len(matrices), left.shape[2]
        starts = width * np.arange(2 * count).reshape(count, 2), np.tile([0, width], (count, 1))
        out = np.zeros((2 * count * width, 2 * width))
        add_products(matrices, rows, columns, left, right, frames.width, *starts, out)
        blocks = out.reshape(count, 2, width, 2, width)
        for n, i, k in np.ndindex(count, 2, 2):
            row, column = int(frames.body[rows[n, i]]), int(frames.body[columns[n, k]])
            height, length = self._sizes[row], self._sizes[column]
            if height and length:
                self.add(row, column, blocks[n, i, :height, k, :length])

    def add_gradients(
        self, gradients: Array, rows: Index, ends: Index, jacobians: Array, frames: FrameColumns
    ) -> None:
        """See `DenseBlocks.add_gradients`."""
        width = jacobians.shape[2]
        out = np.zeros((len(rows), 2 * width))
        starts = np.tile([0, width], (len(rows), 1))
        add_gradients(gradients, rows, ends, jacobians, frames.width, starts, out)
        pairs, _ = rows.T
        for pair in map(int, np.unique(pairs)):
            part = out[pairs == pair].reshape(-1, 2, width)
            for k, body in enumerate(map(int, frames.body[ends[pair]])):
                if self._sizes[body]:
                    self.add(pair, body, part[:, k, : self._sizes[body]])


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
        """Set the pattern of the sparse matrix of blocks, and the order of their entries in it."""
        rows, columns = (
            np.concatenate([np.mgrid[self._rows[i], self._columns[j]][k].ravel() for i, j in keys])
            for k in range(2)
        )
        self._order = np.lexsort((rows, columns))
        self._indices = rows[self._order].astype(np.int32)
        count = np.bincount(columns, minlength=self._columns[-1].stop)
        self._indptr = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        self._keys = keys
