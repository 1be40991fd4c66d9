"""Solutions in double precision with a factor in single precision, on one rank.

The factor needs half of the memory. Conjugate gradients with the factor as preconditioner compute
solutions with the accuracy of a factor in double precision, in three or four iterations for stout
bodies. If a body is so slender that they converge slowly, it is factorized in double precision.

References:
    Higham, Mary (2022), Mixed precision algorithms in numerical linear algebra, Acta Numerica 31,
    347-414.
"""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import column_sums, multiply
from dolfinx_mbd.fem.linalg.cholmod import (
    NONE,
    CholmodError,
    CholmodFactor,
    CholmodPreconditioner,
    library,
)
from dolfinx_mbd.fem.linalg.factorization import cholmod_solver, create_solver
from dolfinx_mbd.fem.linalg.options import Options, database_options
from dolfinx_mbd.fem.linalg.solver_convergence import ROUND_OFF, round_off_level

MIN_ROWS = 500_000  # number of rows from which the factor has single precision
MAX_ITERATIONS = 12  # largest number of iterations before a factorization in double precision
TOLERANCE = 1e-9  # estimate of the relative error in the energy norm before the last correction
MAX_COLUMNS = 16  # largest number of solutions at a time, which limits the memory

_log = logging.getLogger("dolfinx_mbd")


class SingleFactor:
    """A factor in single precision whose solutions are improved to double precision.

    Args:
        A: The matrix, which must not change.
        held: Rows that are held; see `CholmodFactor`.

    Raises:
        CholmodError: A pivot is not positive, or there is not enough memory.
    """

    def __init__(self, A: PETSc.Mat, held: NDArray[np.int32] = NONE) -> None:
        self.matrix, self._held, self.is_single = A, held, True
        diagonal = A.getDiagonal()
        self.scale: Array = np.sqrt(np.maximum(diagonal.array_r, 0.0))
        diagonal.destroy()
        self.scale[held] = 1.0
        self.factor = CholmodFactor(A, held, single=True)

    def apply(self, B: Array) -> Array:
        """Return A⁻¹B approximately."""
        return self.factor.solve(B)

    def _product(self, X: Array) -> Array:
        """Return the product of the matrix, with unit rows and columns at held rows, and X."""
        values, X[self._held] = X[self._held], 0.0
        Y = multiply(self.matrix, X)
        X[self._held] = Y[self._held] = values
        return Y

    def solve(self, B: Array, out: Array | None = None) -> Array:
        """Return A⁻¹B for a block of vectors, shape (rows, k), in `out` if it is given."""
        X = np.empty(B.shape, order="F") if out is None else out
        for begin in range(0, B.shape[1], MAX_COLUMNS):
            columns = slice(begin, begin + MAX_COLUMNS)
            part = self._refined(B[:, columns]) if self.is_single else None
            X[:, columns] = self._in_double(B[:, columns]) if part is None else part
        return X

    def _refined(self, B: Array) -> Array | None:
        """Return A⁻¹B by conjugate gradients for each column, or None if they converge slowly."""
        comm, tiny = self.matrix.comm.tompi4py(), np.finfo(float).tiny
        X = self.factor.solve(B)
        R, P = B - self._product(X), np.zeros_like(X)
        before: Array = np.ones(B.shape[1])
        limit = TOLERANCE**2 * np.maximum(column_sums(comm, B, X), 0.0)
        for count in range(MAX_ITERATIONS + 1):
            Z = self.factor.solve(R)
            square = column_sums(comm, R, Z)
            if not np.isfinite(square).all():
                return None
            if (square <= limit).all():
                X += Z
                R = B - self._product(X)
                return X if (round_off_level(comm, self.scale, R, X) <= ROUND_OFF).all() else None
            P *= square / before if count else 0.0
            P += Z
            before, image = np.maximum(square, tiny), self._product(P)
            step = square / np.maximum(column_sums(comm, P, image), tiny)
            X += step * P
            R -= step * image
        return None

    def _in_double(self, B: Array) -> Array:
        """Return A⁻¹B with a factor in double precision, computed in the first call."""
        if self.is_single:
            _log.info("the factor in single precision is too inaccurate; double is used instead")
            self.destroy()
            self.factor, self.is_single = CholmodFactor(self.matrix, self._held), False
        return self.factor.solve(B)

    def destroy(self) -> None:
        """Free the factor."""
        self.factor.destroy()


class _SinglePreconditioner(CholmodPreconditioner):
    """A PETSc preconditioner with a `SingleFactor`."""

    def _factorized(self, A: PETSc.Mat) -> SingleFactor:
        """Return the factor of A with its held rows."""
        return SingleFactor(A, self._held)


def is_large(num_rows: int, num_ranks: int) -> bool:
    """Return whether the factor of a matrix has single precision by default."""
    return num_ranks == 1 and num_rows >= MIN_ROWS and library() is not None


def single_cholesky(
    A: PETSc.Mat, held: NDArray[np.int32] = NONE, *, prefix: str, options: Options = None
) -> PETSc.KSP | None:
    """Return a KSP that solves with a `SingleFactor`, or None if double precision is better.

    The rows `held` of A count as unit rows and columns; A is not copied.

    Double precision is better if the matrix has few rows, is on several ranks or has a pivot that
    is not positive in single precision, without CHOLMOD 5, and if options select a solver.
    """
    keys = (*(options or {}), *database_options(prefix))
    chosen = any(key.startswith(("pc_", "ksp_", "mat_", "eps_", "st_")) for key in keys)
    rows = A.getSize()[0]
    if chosen or not is_large(rows, A.comm.size):
        if not chosen and rows >= MIN_ROWS:
            _log.info("no factor in single precision, which needs one rank and CHOLMOD 5")
        return None
    operator = create_solver(A).getOperators()[0]  # a reference that outlives the caller's A
    try:
        preconditioner = _SinglePreconditioner(operator, held)
    except CholmodError as error:
        _log.info("no factor in single precision: %s; double is used instead", error)
        return None
    A.setOption(PETSc.Mat.Option.SYMMETRIC, True)
    _log.info("%d rows: cholesky by cholmod in single precision", rows)
    return cholmod_solver(A, preconditioner, prefix, options)


def single_factor(ksp: PETSc.KSP) -> SingleFactor | None:
    """Return the factor of `single_cholesky` if it still has single precision."""
    pc = ksp.getPC()
    context = pc.getPythonContext() if pc.getType() == "python" else None
    factor = context.factor if isinstance(context, _SinglePreconditioner) else None
    return factor if factor is not None and factor.is_single else None
