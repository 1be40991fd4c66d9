"""Cholesky factors of a matrix on several ranks: one factor of CHOLMOD on each rank.

The cells of a rank are a *substructure*. Its nodes are interior to it, or shared with cells of
other ranks. With the interior unknowns i of each rank and the shared unknowns s, elimination gives

    S x_s = b_s − Σ A_si A_ii⁻¹ b_i,    S = A_ss − Σ A_si A_ii⁻¹ A_is.

Each rank extracts the rows and columns of its nodes from the matrix, with its shared nodes p last,
and factorizes this submatrix:

    [A_ii A_ip]   [L_i   0  ] [L_iᵀ  L_piᵀ]
    [A_pi A_pp] = [L_pi  L_p] [0     L_pᵀ ],    L_p L_pᵀ = A_pp − A_pi A_ii⁻¹ A_ip.

As a principal submatrix, it is positive definite if the whole matrix is. S is A_ss plus the
matrices L_p L_pᵀ − A_pp of all ranks, each added to the rows and columns of p. To solve a system,
each rank substitutes forward and backward once; between these two substitutions, it solves with the
dense factor of S, which all ranks hold. The ranks therefore exchange only the shared unknowns, and
each rank stores only the factor of its own submatrix and that of S.

References:
    Przemieniecki (1963), Matrix structural analysis of substructures, AIAA J. 1, 138-147.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from dolfinx import fem, la
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.cholmod import CholmodError, CholmodFactor, CholmodPreconditioner
from dolfinx_mbd.parallel import summed

__all__ = ["MAX_SHARED", "SubstructurePreconditioner", "Substructures"]

MAX_SHARED = 4000
"""Largest number of shared unknowns for a dense matrix; see `Substructures.are_small`."""


@dataclass(frozen=True, eq=False)
class Substructures:
    """Partition of the nodes of a space into those interior to a rank and those that ranks share.

    Attributes:
        block: Number of unknowns of a node.
        nodes: Global numbers of the nodes of this rank's cells, in increasing order.
        is_shared: Whether the node also belongs to cells of other ranks, one entry for each of
            `nodes`.
        shared: Global numbers of the shared nodes of all ranks, in increasing order.
    """

    block: int
    nodes: NDArray[np.int32]
    is_shared: NDArray[np.bool_]
    shared: NDArray[np.int32]

    @classmethod
    def of(cls, space: fem.FunctionSpace) -> Substructures:
        """Return the substructures of a Lagrange space (collective)."""
        dofmap, topology = space.dofmap, space.mesh.topology
        blocks, num_owned = dofmap.index_map, dofmap.index_map.size_local
        cells = dofmap.list[: topology.index_map(topology.dim).size_local]
        counts = la.vector(blocks)
        counts.array[:] = 0.0
        counts.array[cells.ravel()] = 1.0
        members = np.flatnonzero(counts.array > 0.0)
        others = np.setdiff1d(np.arange(num_owned), members)
        counts.scatter_reverse(la.InsertMode.add)
        counts.array[others] = 2.0  # a node without cells of its rank belongs to no interior
        counts.scatter_forward()
        numbers = blocks.local_to_global(members.astype(np.int32)).astype(np.int32)
        order = np.argsort(numbers)
        first = blocks.local_range[0]
        owned = first + np.flatnonzero(counts.array[:num_owned] > 1.0).astype(np.int32)
        shared = np.concatenate(space.mesh.comm.allgather(owned)).astype(np.int32)
        return cls(dofmap.bs, numbers[order], counts.array[members][order] > 1.0, np.sort(shared))

    @property
    def are_small(self) -> bool:
        """Whether a dense matrix of the shared unknowns is small enough for each rank."""
        return self.block * len(self.shared) <= MAX_SHARED

    def rows(self, nodes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """Return the numbers of the unknowns of nodes."""
        return (self.block * nodes[:, None].astype(np.int64) + np.arange(self.block)).ravel()


class _PartFactor(CholmodFactor):
    """The factor of a matrix, ordered so that the rows marked by `last` come last.

    Args:
        A: The matrix.
        last: Mask of the rows that are last in the ordering.
    """

    def __init__(self, A: PETSc.Mat, last: NDArray[np.bool_]) -> None:
        self._last = last
        super().__init__(A)
        self._order = self.permutation()
        # Indices of the last unknowns in the order of the factor
        self._places = np.flatnonzero(last[self._order])
        self.last_rows = self._order[self._places]
        self.corner = self.corner_block(self._places)  # L_p

    def _ordering(self, upper: scipy.sparse.csr_matrix, block: int) -> NDArray[np.int32]:
        """Return an ordering of the rows in which the shared unknowns are last."""
        order = self._node_ordering(upper, block)
        last = self._last[order]
        return np.concatenate([order[~last], order[last]])

    def eliminate(self, B: Array) -> tuple[Array, Array]:
        """Return L⁻¹B with zeros in the last rows of B, and −A_pi A_ii⁻¹b_i in rows `last_rows`."""
        right = B[self._order]
        right[self._places] = 0.0
        Y = self.forward(right)
        return Y, self.corner @ Y[self._places]

    def substitute(self, Y: Array, last: Array) -> Array:
        """Return the solution from the first result of `eliminate` and the known last unknowns."""
        Y[self._places] = self.corner.T @ last
        X = np.empty_like(Y)
        X[self._order] = self.backward(Y)
        return X


class SubstructuredFactor:
    """The factors of the substructures of all ranks, and of the shared unknowns.

    Args:
        A: Distributed matrix whose rows are the degrees of freedom of the space of `parts`.
        parts: The substructures.

    Raises:
        CholmodError: The matrix is not positive definite, or there is not enough memory.

    Note: Collective. Errors are raised on all ranks.
    """

    def __init__(self, A: PETSc.Mat, parts: Substructures) -> None:
        self._comm = comm = A.comm.tompi4py()
        begin, end = A.getOwnershipRange()
        members, shared = parts.rows(parts.nodes), parts.rows(parts.shared)
        last = np.repeat(parts.is_shared, parts.block)
        local, corner = _submatrices(A, parts)
        self._part: _PartFactor | None = None
        error = None
        try:
            if len(members):
                self._part = _PartFactor(local, last)
        except CholmodError as caught:
            error = str(caught)
        surplus = np.zeros(corner.shape)
        if self._part is not None:
            # Indices of the shared unknowns of this rank among those of all ranks
            self._shared = np.searchsorted(shared, members[self._part.last_rows])
            L = self._part.corner
            among = np.ix_(self._shared, self._shared)
            surplus[among] = L @ L.T - corner[among]
        local.destroy()
        corner += summed(comm, surplus)
        try:  # LAPACK also rejects a pivot that is NaN
            self._corner = scipy.linalg.cho_factor(corner, True, True, check_finite=False)
        except scipy.linalg.LinAlgError:
            error = error or "the matrix of the shared unknowns is not positive definite"
        failures = [text for text in comm.allgather(error) if text]
        if failures:
            self.destroy()
            raise CholmodError(failures[0])
        is_owned = (members >= begin) & (members < end)
        # Indices of the owned rows in the submatrix of this rank, and among its owned rows
        self._rows = np.flatnonzero(is_owned), members[is_owned] - begin
        is_owned = (shared >= begin) & (shared < end)
        self._owned_shared = np.flatnonzero(is_owned), shared[is_owned] - begin
        self._num_rows = len(members)

    def solve(self, B: Array, out: Array | None = None) -> Array:
        """Return A⁻¹B for owned rows of a block of vectors, shape (rows, k) (collective).

        The result is `out` if it is given.
        """
        loads = np.zeros((len(self._corner[0]), B.shape[1]))
        among, rows = self._owned_shared
        loads[among] = B[rows]
        X = np.empty(B.shape, order="F") if out is None else out
        part = self._part
        if part is not None:
            right = np.zeros((self._num_rows, B.shape[1]), order="F")
            right[self._rows[0]] = B[self._rows[1]]
            Y, forces = part.eliminate(right)
            loads[self._shared] += forces
        loads = summed(self._comm, loads)
        values = loads
        if len(loads):  # loads that are not finite give such solutions, as those of one factor do
            values = scipy.linalg.cho_solve(self._corner, loads, check_finite=False)
        if part is not None:
            solution = part.substitute(Y, values[self._shared])
            X[self._rows[1]] = solution[self._rows[0]]
        X[rows] = values[among]
        return X

    def destroy(self) -> None:
        """Free the factor of this rank."""
        if self._part is not None:
            self._part.destroy()


class SubstructurePreconditioner(CholmodPreconditioner):
    """A PETSc preconditioner that applies a `SubstructuredFactor`.

    Args:
        A: The matrix.
        parts: The substructures.

    Raises:
        CholmodError: See `SubstructuredFactor`.
    """

    def __init__(self, A: PETSc.Mat, parts: Substructures) -> None:
        self._parts = parts
        super().__init__(A)

    def _factorized(self, A: PETSc.Mat) -> SubstructuredFactor:
        """Return the factor of A by the substructures."""
        return SubstructuredFactor(A, self._parts)


def _submatrices(A: PETSc.Mat, parts: Substructures) -> tuple[PETSc.Mat, Array]:
    """Return the matrix of the nodes of this rank, and that of all shared nodes as an array."""
    sets = [
        PETSc.IS().createBlock(parts.block, nodes, comm=PETSc.COMM_SELF)
        for nodes in (parts.nodes, parts.shared)
    ]
    local, corner = A.createSubMatrices(sets, sets)
    for index in sets:
        index.destroy()
    local.setBlockSize(parts.block)
    indptr, columns, values = corner.getValuesCSR()
    dense = scipy.sparse.csr_matrix((values, columns, indptr), shape=corner.getSize()).toarray()
    corner.destroy()
    return local, dense
