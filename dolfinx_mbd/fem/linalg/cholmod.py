"""Supernodal Cholesky factors of CHOLMOD with an ordering of the nodes of the mesh.

PETSc lets CHOLMOD choose the ordering, which is AMD or METIS for the graph of the matrix, and
passes entries that are zero to CHOLMOD, such as those of held nodes. This module calls the same
CHOLMOD library without them. METIS orders the graph of the nodes of the mesh, which is a ninth of
the graph of the matrix in space.

CHOLMOD keeps its parameters in a C structure. This module writes three of them. Their places are
known for CHOLMOD 5, and `library` checks them by the default values of these and of others.

References:
    Chen, Davis, Hager, Rajamanickam (2008), Algorithm 887: CHOLMOD, supernodal sparse Cholesky
    factorization and update/downdate, ACM Trans. Math. Softw. 35, 22.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_double, c_int, c_size_t, c_void_p, pointer
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import SolverError

NONE: NDArray[np.int32] = np.zeros(0, dtype=np.int32)  # no held rows
SMALL = 3000  # number of rows below which CHOLMOD chooses the ordering

_COMMON_SIZE = 1 << 16  # bytes; CHOLMOD 5.3 needs 2680
_REAL, _SIMPLICIAL, _SUPERNODAL, _GIVEN, _LOWER = 1, 0, 2, 1, -1  # constants of CHOLMOD
_SOLVE_A, _SOLVE_L, _SOLVE_LT = 0, 4, 5
_INT32 = 0  # indices of 32 bits
_PRECISIONS = {np.dtype(np.float64): 0, np.dtype(np.float32): 4}
# Places of `int` parameters in the structure, in units of four bytes; the first three are written
_KIND, _PRINT, _NUM_METHODS, _FIRST_ORDERING = 12, 36, 42, 79
_DEFAULTS = {_KIND: 1, _PRINT: 3, _NUM_METHODS: 0, 44: -1, _FIRST_ORDERING: _GIVEN, 77: 1}
# Parameters of eight bytes, by their place
_REAL_DEFAULTS = {1: 1.2, 2: 1.2, 5: 40.0, 10: 0.8, 11: 0.1, 12: 0.05, 25: 10.0}

_log = logging.getLogger("dolfinx_mbd")


class CholmodError(SolverError):
    """A matrix that CHOLMOD could not factorize, or a system that it could not solve."""


class _Sparse(ctypes.Structure):
    """CHOLMOD's sparse matrix in compressed columns."""

    _fields_ = (
        *((name, c_size_t) for name in ("nrow", "ncol", "nzmax")),
        *((name, c_void_p) for name in ("p", "i", "nz", "x", "z")),
        *((name, c_int) for name in ("stype", "itype", "xtype", "dtype", "sorted", "packed")),
    )


class _Dense(ctypes.Structure):
    """CHOLMOD's dense matrix, column by column."""

    _fields_ = (
        *((name, c_size_t) for name in ("nrow", "ncol", "nzmax", "d")),
        ("x", c_void_p),
        ("z", c_void_p),
        ("xtype", c_int),
        ("dtype", c_int),
    )


class _Factor(ctypes.Structure):
    """CHOLMOD's factor.

    The first columns of each supernode are in `super`. Places of its rows in `s` are in `pi`, those
    of its values in `x`, column by column, are in `px`.
    """

    _fields_ = (
        *((name, c_size_t) for name in ("n", "minor")),
        *((name, c_void_p) for name in ("Perm", "ColCount", "IPerm")),
        ("nzmax", c_size_t),
        *((name, c_void_p) for name in ("p", "i", "x", "z", "nz", "next", "prev")),
        *((name, c_size_t) for name in ("nsuper", "ssize", "xsize", "maxcsize", "maxesize")),
        *((name, c_void_p) for name in ("super", "pi", "px", "s")),
        *((name, c_int) for name in ("ordering", "is_ll", "is_super", "is_monotonic")),
        *((name, c_int) for name in ("itype", "xtype", "dtype")),
    )


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "cholmod_start": (c_int, (c_void_p,)),
    "cholmod_finish": (c_int, (c_void_p,)),
    "cholmod_metis": (c_int, (POINTER(_Sparse), c_void_p, c_size_t, c_int, c_void_p, c_void_p)),
    "cholmod_analyze_p": (c_void_p, (POINTER(_Sparse), c_void_p, c_void_p, c_size_t, c_void_p)),
    "cholmod_factorize": (c_int, (POINTER(_Sparse), c_void_p, c_void_p)),
    "cholmod_solve2": (
        c_int,
        (
            *(c_int, c_void_p, POINTER(_Dense), c_void_p, POINTER(POINTER(_Dense))),
            *(c_void_p, POINTER(c_void_p), POINTER(c_void_p), c_void_p),
        ),
    ),
    "cholmod_free_dense": (c_int, (POINTER(c_void_p), c_void_p)),
    "cholmod_free_factor": (c_int, (POINTER(c_void_p), c_void_p)),
}


@cache
def library() -> Any:
    """Return the CHOLMOD library, or None if it cannot be used; the log states the cause."""
    if not PETSc.Sys.hasExternalPackage("cholmod"):
        return None
    try:
        lib = ctypes.CDLL("libcholmod.5.dylib" if sys.platform == "darwin" else "libcholmod.so.5")
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(lib, name)
            function.restype, function.argtypes = result, arguments
        version = (c_int * 3)()
        lib.cholmod_version(version)
    except (OSError, AttributeError) as error:
        _log.info("CHOLMOD 5 is not used directly: %s", error)
        return None
    common = ctypes.create_string_buffer(_COMMON_SIZE)
    lib.cholmod_start(common)
    numbers = np.frombuffer(common, dtype=np.int32)
    reals = np.frombuffer(common, dtype=np.float64)
    known = all(numbers[k] == value for k, value in _DEFAULTS.items())
    known = known and all(reals[k] == value for k, value in _REAL_DEFAULTS.items())
    lib.cholmod_finish(common)
    if not known or tuple(version[:2]) < (5, 1) or PETSc.IntType != np.int32:
        _log.info("CHOLMOD %d.%d.%d is used through PETSc only: its parameters differ", *version)
        return None
    return lib


class CholmodFactor:
    """The factor of a symmetric positive definite matrix on one rank.

    Args:
        A: The matrix; it is not used after the factorization.
        held: Rows of A that are held. The factor is that of A with unit rows and columns there; A
            itself does not change.
        single: Whether the factor has single precision. The matrix is then scaled to a unit
            diagonal, so that the factor represents soft and stiff parts equally well.

    Raises:
        CholmodError: A pivot is not positive, or there is not enough memory.
    """

    def __init__(
        self, A: PETSc.Mat, held: NDArray[np.int32] = NONE, *, single: bool = False
    ) -> None:
        self._lib = lib = library()
        assert lib is not None
        self._common = common = ctypes.create_string_buffer(_COMMON_SIZE)
        lib.cholmod_start(common)
        parameters = np.frombuffer(common, dtype=np.int32)
        parameters[_KIND], parameters[_PRINT] = _SUPERNODAL, 0
        self._factor = c_void_p()
        self._workspace = c_void_p(), c_void_p()  # memory of CHOLMOD for solutions
        self._free = weakref.finalize(self, _free, lib, common, self._factor, self._workspace)
        self._scale: Array | None = None
        try:
            upper = _upper_triangle(A, held)
            if single:
                self._scale = _scale_to_unit_diagonal(upper)
                upper = upper.astype(np.float32)
            self._factorize(upper, A.getBlockSize(), parameters)
        except CholmodError:
            self.destroy()
            raise

    def _factorize(
        self, upper: scipy.sparse.csr_matrix, block: int, parameters: NDArray[np.int32]
    ) -> None:
        """Compute the factor of a symmetric matrix, which is given by its upper triangle."""
        lib, common, order = self._lib, self._common, None
        permutation = self._ordering(upper, block)
        if permutation is not None:
            order, parameters[_NUM_METHODS] = permutation.ctypes.data, 1
        matrix = _sparse(upper.indptr, upper.indices, upper.data)
        self._factor.value = lib.cholmod_analyze_p(byref(matrix), order, None, 0, common)
        if not self._factor.value or not lib.cholmod_factorize(byref(matrix), self._factor, common):
            raise CholmodError("CHOLMOD has not enough memory, or the matrix is too large")
        head = self._head()
        if head.minor != head.n:
            raise CholmodError(
                f"pivot {head.minor + 1} of {head.n} in CHOLMOD's order is not positive"
            )

    def _head(self) -> _Factor:
        """Return the C structure that describes the factor, with its sizes and addresses."""
        return ctypes.cast(self._factor, POINTER(_Factor)).contents

    def _ordering(self, upper: scipy.sparse.csr_matrix, block: int) -> NDArray[np.int32] | None:
        """Return an ordering of the rows, or None if CHOLMOD chooses the ordering."""
        return self._node_ordering(upper, block) if upper.shape[0] >= SMALL else None

    def _node_ordering(self, upper: scipy.sparse.csr_matrix, block: int) -> NDArray[np.int32]:
        """Return the METIS ordering of the nodes, expanded to an ordering of the rows.

        Each node has `block` rows. Two nodes are neighbours in the graph if the first row of one
        has an entry in a column of the other. Couplings that it omits only increase the fill-in.
        """
        counts = np.diff(upper.indptr)[::block]
        start = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(start[-1]) + np.repeat(upper.indptr[:-1:block] - start[:-1], counts)
        nodes = upper.indices[entries] // block
        first = np.ones(len(nodes), dtype=bool)  # the first of the entries that couple two nodes
        first[1:] = nodes[1:] != nodes[:-1]
        first[start[:-1]] = True
        pointers = np.concatenate([[0], np.cumsum(first)])[start].astype(np.int32)
        nodes = nodes[first].astype(np.int32)
        order = _metis(self._lib, self._common, _sparse(pointers, nodes))
        rows = block * order[:, None] + np.arange(block, dtype=np.int32)
        return np.ascontiguousarray(rows.ravel(), dtype=np.int32)

    def solve(self, B: Array, out: Array | None = None) -> Array:
        """Return A⁻¹B, shape (rows, k), for k right-hand sides, in `out` if it is given."""
        return self._solved(_SOLVE_A, B, out)

    def forward(self, B: Array) -> Array:
        """Return L⁻¹B, shape (rows, k); the rows of B and of the result are in factor order."""
        return self._solved(_SOLVE_L, B)

    def backward(self, B: Array) -> Array:
        """Return L⁻ᵀB, shape (rows, k); the rows of B and of the result are in factor order."""
        return self._solved(_SOLVE_LT, B)

    def permutation(self) -> NDArray[np.int32]:
        """Return the row of the matrix at each place of the factor order."""
        head = self._head()
        if head.itype != _INT32 or not head.is_super:
            raise CholmodError("the factor of CHOLMOD is not supernodal")
        return _shared(head.Perm, c_int, head.n).copy()

    def corner_block(self, places: NDArray[np.integer[Any]]) -> Array:
        """Return the rows and columns of L at increasing places, in the order of the factor.

        The places must contain all rows of their columns of L, as the last unknowns do.
        """
        head, count = self._head(), len(places)
        number = np.full(head.n, -1)  # row in the result of each place, −1 for other places
        number[places] = np.arange(count)
        starts, rows_at, values_at = (
            _shared(address, c_int, head.nsuper + 1).astype(np.int64)
            for address in (head.super, head.pi, head.px)
        )
        rows, values = _shared(head.s, c_int, head.ssize), _shared(head.x, c_double, head.xsize)
        corner = np.zeros((count, count))
        for k in np.unique(np.searchsorted(starts, places, side="right") - 1):
            members = number[rows[rows_at[k] : rows_at[k + 1]]]
            columns = number[starts[k] : starts[k + 1]]
            size = len(members) * len(columns)
            panel = values[values_at[k] : values_at[k] + size].reshape(len(columns), -1).T
            chosen = np.ix_(members >= 0, columns >= 0)
            corner[np.ix_(members[members >= 0], columns[columns >= 0])] = panel[chosen]
        return np.asarray(np.tril(corner))

    def _solved(self, kind: int, B: Array, out: Array | None = None) -> Array:
        """Return the solution of one of the systems of CHOLMOD.

        CHOLMOD writes to the memory of the result, which has the size that it expects.
        """
        if out is None or not out.flags.f_contiguous:
            out = np.empty(B.shape, order="F")
        if self._scale is None:
            B, X = np.asfortranarray(B, dtype=float), out
        else:
            scaled = np.empty(B.shape, dtype=np.float32, order="F")
            B = np.multiply(B, self._scale[:, None], out=scaled, casting="same_kind")
            X = np.empty_like(scaled)
        right, result = _dense(B), pointer(_dense(X))
        arguments = byref(right), None, byref(result), None, *map(byref, self._workspace)
        if not self._lib.cholmod_solve2(kind, self._factor, *arguments, self._common):
            raise CholmodError("CHOLMOD has not enough memory")
        if self._scale is not None:
            np.multiply(X, self._scale[:, None], out=out)
        return out

    def destroy(self) -> None:
        """Free the factor."""
        self._free()


def expected_entries(cells: NDArray[np.integer[Any]], block: int) -> int:
    """Return the approximate number of entries of the factor of a stiffness, without a matrix.

    METIS orders the nodes, and CHOLMOD counts the entries of a factor of their graph. A factor has
    up to a fifth more, because CHOLMOD joins columns, or less, because nodes are held.

    Args:
        cells: Nodes of each cell, shape (cells, nodes of a cell).
        block: Number of unknowns of a node.

    Raises:
        CholmodError: There is not enough memory.
    """
    lib = library()
    assert lib is not None
    starts = np.arange(0, cells.size + 1, cells.shape[1], dtype=np.int32)
    ones = np.ones(cells.size, dtype=np.float32)
    incidence = scipy.sparse.csr_matrix((ones, cells.ravel(), starts))
    upper = scipy.sparse.triu(incidence.T @ incidence, format="csr")
    upper.sort_indices()
    common, factor = ctypes.create_string_buffer(_COMMON_SIZE), c_void_p()
    lib.cholmod_start(common)
    parameters = np.frombuffer(common, dtype=np.int32)
    parameters[_KIND], parameters[_PRINT], parameters[_NUM_METHODS] = _SIMPLICIAL, 0, 1
    graph = _sparse(upper.indptr, upper.indices)
    try:
        order = _metis(lib, common, graph)
        factor.value = lib.cholmod_analyze_p(byref(graph), order.ctypes.data, None, 0, common)
        if not factor.value:
            raise CholmodError("CHOLMOD has not enough memory")
        head = ctypes.cast(factor, POINTER(_Factor)).contents
        counts = _shared(head.ColCount, c_int, head.n)
        return block**2 * int(counts.sum(dtype=np.int64))
    finally:
        _free(lib, common, factor, ())


class CholmodPreconditioner:
    """A PETSc preconditioner that applies a factor in double precision; see `CholmodFactor`.

    The constructor computes the factor, because an exception that passes through PETSc's C code may
    end the process.

    Args:
        A: The matrix.
        held: Its rows that are held.

    Raises:
        CholmodError: See `CholmodFactor`.
    """

    def __init__(self, A: PETSc.Mat, held: NDArray[np.int32] = NONE) -> None:
        self._held = held
        self.factor: Any = self._factorized(A)
        self._is_current = True

    def _factorized(self, A: PETSc.Mat) -> Any:
        """Return an object with the methods `solve` and `destroy`."""
        return CholmodFactor(A, self._held)

    def setUp(self, pc: PETSc.PC) -> None:
        """Factorize the matrix again if it has changed.

        PETSc also calls this before the first solution, for which the factor already exists.
        """
        if not self._is_current:
            self.factor.destroy()
            self.factor = self._factorized(pc.getOperators()[1])
        self._is_current = False

    def apply(self, pc: PETSc.PC, x: PETSc.Vec, y: PETSc.Vec) -> None:
        """Solve for one vector."""
        y.array[:] = self.factor.solve(x.array_r[:, None])[:, 0]

    def matApply(self, pc: PETSc.PC, X: PETSc.Mat, Y: PETSc.Mat) -> None:
        """Solve for a block of vectors."""
        columns = Y.getDenseArray()
        solution = self.factor.solve(X.getDenseArray(readonly=True), columns)
        if solution is not columns:
            columns[:] = solution

    def destroy(self, pc: PETSc.PC) -> None:
        """Free the factor."""
        self.factor.destroy()


def _upper_triangle(A: PETSc.Mat, held: NDArray[np.int32] = NONE) -> scipy.sparse.csr_matrix:
    """Return the upper triangle of a symmetric matrix in compressed rows, without zero entries.

    Rows and columns of held nodes would fill the factor: they have an entry of one on the diagonal.
    """
    with _entries(A) as entries:
        indptr, indices, values = _upper_runs(*entries, A.getBlockSize())
        rows = _row_numbers(indptr)
        mask = (values != 0.0) & (indices >= rows)
        if len(held):
            free = np.ones(len(indptr) - 1, dtype=bool)
            free[held] = False
            mask &= free[indices] & np.repeat(free, np.diff(indptr))
            diagonal = np.flatnonzero(indices == rows)
            mask[diagonal[held]] = True  # each row of a stiffness has an entry on the diagonal
        del rows
        starts = np.concatenate([[0], np.cumsum(mask, dtype=np.int32)])[indptr].astype(np.int32)
        upper = scipy.sparse.csr_matrix((values[mask], indices[mask], starts), shape=A.getSize())
    upper.data[starts[held]] = 1.0
    return upper


@contextmanager
def _entries(A: PETSc.Mat) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32], Array]]:
    """Provide the compressed rows of a matrix on one rank, to read; they are not copied."""
    petsc, matrix = _petsc(), c_void_p(A.handle)
    if petsc is None or A.getType() != PETSc.Mat.Type.SEQAIJ:
        yield A.getValuesCSR()
        return
    count, done = c_int(), c_int()
    starts, columns, values = c_void_p(), c_void_p(), c_void_p()
    structure = matrix, 0, 0, 0, byref(count), byref(starts), byref(columns), byref(done)
    petsc.MatGetRowIJ(*structure)
    petsc.MatSeqAIJGetArrayRead(matrix, byref(values))
    try:
        indptr = _shared(starts.value, c_int, count.value + 1)
        size = int(indptr[-1])
        yield (
            indptr,
            _shared(columns.value, c_int, size),
            _shared(values.value, c_double, size),
        )
    finally:
        petsc.MatSeqAIJRestoreArrayRead(matrix, byref(values))
        petsc.MatRestoreRowIJ(*structure)


@cache
def _petsc() -> Any:
    """Return the PETSc library, or None if it cannot be used directly."""
    try:
        petsc = ctypes.CDLL(PETSc.__file__)
        for name in ("GetRowIJ", "RestoreRowIJ", "SeqAIJGetArrayRead", "SeqAIJRestoreArrayRead"):
            getattr(petsc, f"Mat{name}")
    except (OSError, AttributeError):
        return None
    return petsc


def _upper_runs(
    indptr: NDArray[np.int32], indices: NDArray[np.int32], values: Array, length: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], Array]:
    """Return the runs of entries of each row that reach the upper triangle.

    A run consists of the `length` entries of a row in the columns of one node. The columns increase
    in each row. All entries are returned if not all rows consist of runs.
    """
    starts = indptr // length
    if length == 1 or (starts * length != indptr).any():
        return indptr, indices, values
    keep = indices[length - 1 :: length] >= _row_numbers(starts)
    starts = np.concatenate([[0], np.cumsum(keep, dtype=np.int32)])[starts]
    chosen = indices.reshape(-1, length)[keep].ravel()
    return (length * starts).astype(np.int32), chosen, values.reshape(-1, length)[keep].ravel()


def _row_numbers(indptr: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the row of each entry of a matrix in compressed rows."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))


def _scale_to_unit_diagonal(upper: scipy.sparse.csr_matrix) -> Array:
    """Scale an upper triangle symmetrically in place, and return the scale factors of the rows."""
    diagonal = upper.diagonal()
    if not (diagonal > 0).all():
        raise CholmodError("a diagonal entry is not positive")
    scale = 1.0 / np.sqrt(diagonal)
    upper.data *= np.repeat(scale, np.diff(upper.indptr))
    upper.data *= scale[upper.indices]
    return np.asarray(scale)


def _sparse(
    indptr: NDArray[np.int32], indices: NDArray[np.int32], values: NDArray[Any] | None = None
) -> _Sparse:
    """Return a symmetric matrix for CHOLMOD, given by its upper triangle; it shares the arrays.

    CHOLMOD reads the rows of the upper triangle as columns of the lower triangle.
    """
    address = None if values is None else values.ctypes.data
    pointers = indptr.ctypes.data, indices.ctypes.data, None, address, None
    kind, precision = (0, 0) if values is None else (_REAL, _PRECISIONS[values.dtype])
    rows = len(indptr) - 1
    types = {"stype": _LOWER, "itype": _INT32, "xtype": kind, "dtype": precision}
    return _Sparse(rows, rows, len(indices), *pointers, **types, sorted=1, packed=1)


def _metis(lib: Any, common: Any, graph: _Sparse) -> NDArray[np.int32]:
    """Return the ordering of METIS for a graph."""
    order = np.empty(graph.nrow, dtype=np.int32)
    if not lib.cholmod_metis(byref(graph), None, 0, 1, order.ctypes.data, common):
        raise CholmodError("METIS has not enough memory")
    return order


def _shared(address: int | None, kind: Any, count: int) -> NDArray[Any]:
    """Return an array that shares the memory of CHOLMOD."""
    return np.ctypeslib.as_array(ctypes.cast(c_void_p(address), POINTER(kind)), shape=(count,))


def _dense(values: Array) -> _Dense:
    """Return a block of vectors for CHOLMOD; it shares the array, which is in Fortran order."""
    rows, columns = values.shape
    precision = _PRECISIONS[values.dtype]
    return _Dense(rows, columns, values.size, rows, values.ctypes.data, None, _REAL, precision)


def _free(lib: Any, common: Any, factor: c_void_p, workspace: Sequence[c_void_p]) -> None:
    """Free a factor and the memory of CHOLMOD."""
    for block in workspace:
        if block.value:
            lib.cholmod_free_dense(byref(block), common)
    if factor.value:
        lib.cholmod_free_factor(byref(factor), common)
    lib.cholmod_finish(common)
