"""Vectors of nodal values that every MPI rank holds completely, in an order of the geometry."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from dolfinx import fem
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.structures.mesh_bodies.embedding import Embedding

_STEP = 1e-8  # difference of coordinates that count as equal, relative to the size of the mesh


class NodalVectors:
    """Exchange of nodal vectors (nodes, 3) between all ranks and the functions of a space.

    All ranks hold the values of all nodes. The nodes are sorted by their coordinates, so that their
    order does not depend on the number of ranks. Vectors have three components in space, and those
    of the mesh in functions, matrices and owned rows; see `Embedding`.

    Args:
        space: Blocked Lagrange space.
        embedding: Its mesh in space.

    Attributes:
        positions: Reference positions of all nodes, shape (nodes, 3), m.
        embedding: The embedding.
        owned: Numbers of the owned nodes of this rank in the global order.
        stored: The same numbers in increasing order, that of nodal values in results.
        stored_of_ranks: `stored` of all ranks.
    """

    def __init__(self, space: fem.FunctionSpace, embedding: Embedding) -> None:
        self.embedding = embedding
        self._comm, self._dim = space.mesh.comm, space.dofmap.bs
        count = space.dofmap.index_map.size_local
        x = space.tabulate_dof_coordinates()[:count, : self._dim]
        parts = self._comm.allgather(np.ascontiguousarray(x))
        gathered = np.concatenate(parts)
        size = float(np.ptp(gathered, axis=0).max())
        # Coordinates in steps of the round-off, which have the same order on any number of ranks
        keys = np.round((gathered - gathered.min(axis=0)) / (_STEP * size))
        order = np.lexsort(keys.T[::-1])
        self.positions = in_space(gathered[order])
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        first = sum(len(part) for part in parts[: self._comm.rank])
        self.owned: NDArray[np.int64] = number[first : first + count]
        self._order, self._number = order, number
        self._counts = [len(part) for part in parts]
        self.stored = np.sort(self.owned)
        self.stored_of_ranks: list[NDArray[np.int64]] = self._comm.allgather(self.stored)
        self._stored_rows = np.searchsorted(self.stored, self.owned)
        index = fem.Function(space)
        index.x.array[: count * self._dim] = np.repeat(self.owned, self._dim)
        index.x.scatter_forward()
        self._local = np.rint(index.x.array[:: self._dim]).astype(np.int64)

    def __len__(self) -> int:
        """Return the number of all nodes."""
        return len(self.positions)

    def gathered(self, owned: Array) -> Array:
        """Return the vectors (nodes, 3) of all nodes from those of the owned nodes (collective).

        Args:
            owned: Values of the owned nodes, shape (owned nodes, dim) or (owned nodes · dim,).
        """
        rows = np.asarray(owned, dtype=np.float64).reshape(-1, self._dim)
        return self.embedding.vectors(self._gathered(rows))

    def gathered_block(self, owned: Array) -> Array:
        """Return nodal columns (nodes, 3, k) from the owned rows (owned nodes · dim, k).

        With one row for each owned node, the result has the shape (nodes, k).
        """
        count, columns = len(self.owned), owned.shape[1]
        if owned.size == count * columns:
            return self._gathered(owned)
        rows = self._gathered(np.ascontiguousarray(owned).reshape(count, self._dim * columns))
        return self.embedding.vectors(rows.reshape(len(self), self._dim, columns))

    def _gathered(self, rows: Array) -> Array:
        """Return the rows (nodes, k) of all nodes from those of the owned nodes (collective)."""
        rows = np.ascontiguousarray(rows)
        if self._comm.size == 1:
            return np.asarray(rows[self._order])
        width = rows.shape[1]
        all_rows = np.empty((len(self), width), dtype=rows.dtype)
        self._comm.Allgatherv(rows, (all_rows, [width * count for count in self._counts]))
        return np.asarray(all_rows[self._order])

    def matrix_rows(self, matrix: PETSc.Mat) -> PETSc.Mat:
        """Return the owned rows of a matrix of the nodes on this rank, with columns for all nodes.

        Its products with nodal values (nodes, k) need no communication.
        """
        indptr, columns, values = matrix.getValuesCSR()
        columns = self._number[columns].astype(PETSc.IntType)
        rows = scipy.sparse.csr_matrix((values, columns, indptr), (len(self.owned), len(self)))
        rows.sort_indices()
        csr = rows.indptr, rows.indices, rows.data
        return PETSc.Mat().createAIJ(rows.shape, csr=csr, comm=PETSc.COMM_SELF)

    def owned_rows(self, columns: Array) -> Array:
        """Return the owned rows (owned nodes · dim, k) of nodal columns (nodes, 3, k)."""
        return self.packed(columns[self.owned])

    def packed(self, columns: Array) -> Array:
        """Return the owned rows (owned nodes · dim, k) of columns (owned nodes, 3, k)."""
        part = self.embedding.components(columns)
        return np.asfortranarray(part.reshape(self._dim * len(part), columns.shape[2]))

    def unpacked(self, rows: Array) -> Array:
        """Return the columns (owned nodes, 3, k) of owned rows (owned nodes · dim, k)."""
        count = len(self.owned)
        part = np.ascontiguousarray(rows).reshape(count, self._dim, rows.shape[1])
        return self.embedding.vectors(part)

    def dofs_of(self, blocks: NDArray[np.integer[Any]]) -> NDArray[np.int32]:
        """Return the local degrees of freedom of local blocks."""
        return (self._dim * blocks[:, None] + np.arange(self._dim)).ravel().astype(np.int32)

    def numbers(self, blocks: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the global numbers of local blocks, owned or ghosts."""
        return np.asarray(self._local[blocks])

    def numbers_of(self, blocks: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the sorted global numbers of owned blocks of all ranks (collective)."""
        return np.unique(np.concatenate(self._comm.allgather(self.owned[blocks])))

    def assign(self, function: fem.Function, values: Array) -> None:
        """Set a function, with its ghosts, to the vectors (nodes, 3) of all nodes."""
        function.x.array[:] = self.embedding.components(values[self._local]).ravel()

    def displace(self, function: fem.Function, u: Array) -> None:
        """Set a function, with its ghosts, to the displacements (nodes, 3) of all nodes."""
        embedding, u = self.embedding, u[self._local]
        if embedding.is_plane:
            u = embedding.mesh_displacements(self.positions[self._local], u)
        function.x.array[:] = u.ravel()

    def assign_stored(self, function: fem.Function, values: Array) -> None:
        """Set a function, with its ghosts, to vectors (n, 3) of the stored nodes (collective)."""
        self._set(function, self.embedding.components(values[self._stored_rows]))

    def displace_stored(self, function: fem.Function, u: Array) -> None:
        """Set a function, with its ghosts, to displacements of the stored nodes (collective)."""
        X = self.positions[self.owned]
        self._set(function, self.embedding.mesh_displacements(X, u[self._stored_rows]))

    def whole(self, stored: Array) -> Array:
        """Return values (nodes, ...) of all nodes from those of the stored nodes (collective)."""
        out = np.empty((len(self), *stored.shape[1:]))
        out[np.concatenate(self.stored_of_ranks)] = np.concatenate(self._comm.allgather(stored))
        return out

    def _set(self, function: fem.Function, owned: Array) -> None:
        """Set a function, with its ghosts, to the values of the owned nodes (collective)."""
        function.x.array[: owned.size] = owned.ravel()
        function.x.scatter_forward()
