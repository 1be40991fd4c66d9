"""Supernodal Cholesky factors of CHOLMOD in double or single precision, without PETSc.

PETSc passes matrices to CHOLMOD in double precision only, and lets CHOLMOD choose the ordering.
This module calls the CHOLMOD library that PETSc is linked with. METIS orders the graph of the nodes
of the mesh, which is a ninth of the graph of the matrix in space; the supernodes are those of the
displacements.

CHOLMOD keeps its parameters in a C structure. This module writes four of them. Their places are
known for CHOLMOD 5, and `library` checks them by the default values around them.

References:
    Chen, Davis, Hager, Rajamanickam (2008), Algorithm 887: CHOLMOD, supernodal sparse Cholesky
    factorization and update/downdate, ACM Trans. Math. Softw. 35, 22.
"""

from __future__ import annotations

import ctypes
import logging
import sys
import weakref
from ctypes import POINTER, byref, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array

SMALL = 3000  # number of rows below which CHOLMOD chooses the ordering

_COMMON_SIZE = 1 << 16  # bytes; CHOLMOD 5.3 needs 2680
_REAL, _SINGLE, _SUPERNODAL, _GIVEN, _SOLVE_A, _UPPER = 1, 4, 2, 1, 0, 1  # constants of CHOLMOD
# Places of `int` parameters in the structure, in units of four bytes
_KIND, _PRINT, _NUM_METHODS, _FIRST_ORDERING = 12, 36, 42, 79
_DEFAULTS = {_KIND: 1, _PRINT: 3, _NUM_METHODS: 0, 44: -1, _FIRST_ORDERING: _GIVEN, 77: 1}
_REAL_DEFAULTS = {1: 1.2, 2: 1.2, 5: 40.0, 10: 0.8, 11: 0.1, 12: 0.05, 25: 10.0}  # of eight bytes

_log = logging.getLogger("dolfinx_mbd")


class CholmodError(RuntimeError):
    """A matrix that CHOLMOD could not factorize; `positive` is False if a pivot is not positive."""

    def __init__(self, message: str = "", *, positive: bool = True) -> None:
        super().__init__(message)
        self.positive = positive


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


class _FactorHead(ctypes.Structure):
    """The first members of CHOLMOD's factor: rows, and the first column with a bad pivot."""

    _fields_ = (("n", c_size_t), ("minor", c_size_t))


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "cholmod_start": (c_int, (c_void_p,)),
    "cholmod_finish": (c_int, (c_void_p,)),
    "cholmod_metis": (c_int, (POINTER(_Sparse), c_void_p, c_size_t, c_int, c_void_p, c_void_p)),
    "cholmod_analyze_p": (c_void_p, (POINTER(_Sparse), c_void_p, c_void_p, c_size_t, c_void_p)),
    "cholmod_factorize": (c_int, (POINTER(_Sparse), c_void_p, c_void_p)),
    "cholmod_solve": (POINTER(_Dense), (c_int, c_void_p, POINTER(_Dense), c_void_p)),
    "cholmod_free_dense": (c_int, (POINTER(POINTER(_Dense)), c_void_p)),
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
    """The factor of a symmetric positive definite matrix A on one rank.

    With `single`, the factor is that of D^-½ A D^-½ in single precision, D = diag A. It is a
    preconditioner: a solution has a relative error of about 1e-7 times the condition number of the
    scaled matrix.

    Raises:
        CholmodError: A pivot is not positive, or there is not enough memory.
    """

    def __init__(self, A: PETSc.Mat, *, single: bool = False) -> None:
        self._lib = lib = library()
        assert lib is not None
        self.single, self._type = single, np.dtype(np.float32 if single else np.float64)
        self._common = common = ctypes.create_string_buffer(_COMMON_SIZE)
        lib.cholmod_start(common)
        parameters = np.frombuffer(common, dtype=np.int32)
        parameters[_KIND], parameters[_PRINT] = _SUPERNODAL, 0
        self._factor = c_void_p()
        self._free = weakref.finalize(self, _free, lib, common, self._factor)
        indptr, indices, values = A.getValuesCSR()
        self._size, permutation = len(indptr) - 1, None
        if self._size >= SMALL:
            parameters[_NUM_METHODS] = 1  # the given ordering, which is `_GIVEN`
            permutation = self._permutation(indptr, indices, values, A.getBlockSize())
        self._scale = _scale(A) if single else None
        if self._scale is not None:
            values *= self._scale[indices]
            values *= np.repeat(self._scale, np.diff(indptr))
        csr = scipy.sparse.csr_matrix((values, indices, indptr))
        csr.eliminate_zeros()  # otherwise they fill the factor: METIS did not see them
        matrix = _sparse(csr.indptr, csr.indices, csr.data.astype(self._type, copy=False))
        order = None if permutation is None else permutation.ctypes.data
        self._factor.value = lib.cholmod_analyze_p(byref(matrix[0]), order, None, 0, common)
        if not self._factor.value or not lib.cholmod_factorize(
            byref(matrix[0]), self._factor, common
        ):
            self.destroy()
            raise CholmodError("CHOLMOD has not enough memory, or the matrix is too large")
        head = ctypes.cast(self._factor, POINTER(_FactorHead)).contents
        if head.minor != head.n:
            row = int(head.minor)
            self.destroy()
            raise CholmodError(f"pivot {row} of CHOLMOD is not positive", positive=False)

    def _permutation(
        self, indptr: NDArray[np.int32], indices: NDArray[np.int32], values: Array, block: int
    ) -> NDArray[np.int32]:
        """Return the ordering of METIS for the graph of the nodes, expanded to the rows.

        Each node has `block` rows. The graph is that of the first row of each node, without
        couplings that are zero because a node is held. Any graph gives a valid ordering.
        """
        counts = np.diff(indptr)[::block]
        if block > 1 and ((counts % block).any() or self._size % block):
            return self._permutation(indptr, indices, values, 1)
        counts = counts // block
        start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        entries = np.repeat(indptr[:-1:block] - block * start[:-1], counts)
        entries += block * np.arange(start[-1], dtype=np.int32)
        couples = np.zeros(len(entries), dtype=bool)
        for k in range(block):
            couples |= values[entries + k] != 0.0
        kept = np.concatenate([[0], np.cumsum(couples)]).astype(np.int32)[start]
        graph = _sparse(kept, (indices[entries[couples]] // block).astype(np.int32))
        order = np.empty(len(counts), dtype=np.int32)
        if not self._lib.cholmod_metis(
            byref(graph[0]), None, 0, 1, order.ctypes.data, self._common
        ):
            raise CholmodError("METIS has not enough memory")
        return (block * order[:, None] + np.arange(block, dtype=np.int32)).ravel().astype(np.int32)

    def solve(self, B: Array) -> Array:
        """Return A⁻¹B for a block of vectors, in double precision, shape (rows, k)."""
        if self._scale is not None:
            B = self._scale[:, None] * B
        B = np.asfortranarray(B, dtype=self._type)
        right = _dense(B)
        result = self._lib.cholmod_solve(_SOLVE_A, self._factor, byref(right), self._common)
        if not result:
            raise CholmodError("CHOLMOD has not enough memory")
        kind = ctypes.c_float if self.single else ctypes.c_double
        address = ctypes.cast(result.contents.x, POINTER(kind))
        X = np.ctypeslib.as_array(address, shape=B.shape[::-1]).T
        if self._scale is None:
            solution = np.array(X, order="F")
        else:
            solution = np.multiply(X, self._scale[:, None], order="F")
        self._lib.cholmod_free_dense(byref(result), self._common)
        return solution

    def destroy(self) -> None:
        """Free the factor."""
        self._free()


class CholmodPreconditioner:
    """A PETSc preconditioner that applies a factor in double precision; see `CholmodFactor`."""

    factor: CholmodFactor | None = None

    def setUp(self, pc: PETSc.PC) -> None:  # noqa: N802
        """Factorize the matrix; PETSc calls this if the matrix has changed."""
        if self.factor is not None:
            self.factor.destroy()
        self.factor = CholmodFactor(pc.getOperators()[1])

    def apply(self, pc: PETSc.PC, x: PETSc.Vec, y: PETSc.Vec) -> None:
        """Solve for one vector."""
        assert self.factor is not None
        y.array[:] = self.factor.solve(x.array_r[:, None])[:, 0]

    def matApply(self, pc: PETSc.PC, X: PETSc.Mat, Y: PETSc.Mat) -> None:  # noqa: N802
        """Solve for a block of vectors."""
        assert self.factor is not None
        Y.getDenseArray()[:] = self.factor.solve(X.getDenseArray(readonly=True))

    def destroy(self, pc: PETSc.PC) -> None:
        """Free the factor."""
        if self.factor is not None:
            self.factor.destroy()


def _sparse(
    indptr: NDArray[np.int32], indices: NDArray[np.int32], values: Array | None = None
) -> tuple[_Sparse, tuple[Any, ...]]:
    """Return a symmetric matrix for CHOLMOD, which reads its upper half, and the arrays it uses."""
    single = values is not None and values.dtype == np.float32
    size, kind = len(indptr) - 1, int(values is not None) * _REAL
    address = None if values is None else values.ctypes.data
    pointers = indptr.ctypes.data, indices.ctypes.data, None, address, None
    flags = _UPPER, 0, kind, _SINGLE * single, 1, 1
    return _Sparse(size, size, len(indices), *pointers, *flags), (indptr, indices, values)


def _dense(B: Array) -> _Dense:
    """Return a block for CHOLMOD, which shares its memory."""
    single = _SINGLE * (B.dtype == np.float32)
    return _Dense(*B.shape, B.size, len(B), B.ctypes.data, None, _REAL, single)


def _scale(A: PETSc.Mat) -> Array:
    """Return the reciprocal square roots of the diagonal."""
    diagonal = A.getDiagonal()
    values = diagonal.array_r.copy()
    diagonal.destroy()
    if not (values > 0).all():
        raise CholmodError("a diagonal entry is not positive", positive=False)
    return np.asarray(1.0 / np.sqrt(values))


def _free(lib: Any, common: Any, factor: c_void_p) -> None:
    """Free a factor and the memory of CHOLMOD."""
    if factor.value:
        lib.cholmod_free_factor(byref(factor), common)
    lib.cholmod_finish(common)
