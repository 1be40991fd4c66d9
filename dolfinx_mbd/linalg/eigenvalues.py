"""Lowest eigenpairs of K ψ = λ M ψ for a positive definite K that is already factorized.

By the block Lanczos iteration of `lanczos`; by SLEPc's Krylov-Schur where the user gives options
for it, the matrix is too small for blocks, or the iteration breaks down; by LAPACK if it is tiny.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc
from slepc4py import SLEPc

from dolfinx_mbd.errors import AccuracyWarning, InputError, SolverError, warn
from dolfinx_mbd.linalg.block_lanczos import BLOCK, Breakdown, block_lanczos, largest_space
from dolfinx_mbd.linalg.factorization import (
    Options,
    agreed,
    configure,
    forget,
    given,
    multiply,
    solve,
)

__all__ = [
    "EigenError",
    "block_modes",
    "by_blocks",
    "eigensolver",
    "log_completed_group",
    "lowest_modes",
    "round_off",
    "warn_of_round_off",
]

Array = NDArray[np.float64]

TOLERANCE = 1e-9
"""Residual tolerance of the iterations, relative to the eigenvalue."""

ROUND_OFF = 0.02
"""Relative error of the first frequency by round-off above which a warning is given."""

DENSE_ALWAYS, DENSE_MOST = 150, 3000
"""Free dofs up to which modes come from LAPACK: always; where at least half of all are wanted."""


_log = logging.getLogger("dolfinx_mbd")


class EigenError(SolverError):
    """An eigenvalue solver did not converge."""


def log_completed_group(requested: int, count: int, values: Array) -> None:
    """Log that more modes are taken than were requested, if that is so.

    Args:
        requested: Number of modes.
        count: Number with the group of the last one (`body.multiple.end_of_group`).
        values: ω².
    """
    if count > requested:
        frequency = float(np.sqrt(max(values[count - 1], 0.0)) / (2 * np.pi))
        _log.info(
            "%d modes instead of %d: the last ones share the frequency %.6g Hz",
            count,
            requested,
            frequency,
        )


def round_off(problem: Any, vectors: Array) -> Array:
    """Return the errors of eigenvalues ω² that the round-off in K makes, shape (k,).

    Four times the unit round-off times ψᵀ diag(K) ψ, which cancels nearly completely in ψᵀKψ for
    a slow mode ψ of a slender body. In strips 1000 to 3300 times as long as thick, with one layer
    of cells, the greatest error was 1.1 times this.

    Args:
        problem: Matrices of a body.
        vectors: M-normalized modes, shape (owned dofs, k).

    Note: Collective.
    """
    diagonal = problem.stiffness.getDiagonal()
    local = np.einsum("i,ik,ik->k", diagonal.array_r, vectors, vectors)
    diagonal.destroy()
    total = problem.comm.bcast(problem.comm.reduce(local, root=0), root=0)
    return np.asarray(4 * np.finfo(float).eps * total)


def warn_of_round_off(squares: Array, errors: Array) -> None:
    """Warn if round-off changes the first frequency by more than `ROUND_OFF` of it.

    Args:
        squares: ω², ascending.
        errors: From `round_off`, for each of them.
    """
    if not len(squares):
        return
    relative = errors[0] / max(2 * squares[0], errors[0])
    if relative > ROUND_OFF:
        frequency = np.sqrt(max(squares[0], 0.0)) / (2 * np.pi)
        text = (
            f"round-off may change the first frequency, {frequency:.4g} Hz, by "
            f"{100 * relative:.2g} %: the body is very thin for its length. Use larger cells, or "
            "a beam model"
        )
        quantity, value = "round-off of the first frequency", float(relative)
        warn(AccuracyWarning(text, quantity=quantity, value=value, limit=ROUND_OFF))


def eigensolver(
    K: PETSc.Mat,
    M: PETSc.Mat,
    ksp: PETSc.KSP,
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
) -> SLEPc.EPS:
    """A solved Krylov-Schur solver, shift-invert at zero with an existing factorization of K.

    The caller destroys it.

    Raises:
        EigenError: Fewer modes converged than were asked for.

    Note: Collective.
    """
    eps = SLEPc.EPS().create(K.comm)
    eps.setOperators(K, M)
    eps.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    eps.setType(SLEPc.EPS.Type.KRYLOVSCHUR)
    eps.setTarget(0.0)
    eps.setWhichEigenpairs(SLEPc.EPS.Which.TARGET_MAGNITUDE)
    eps.setDimensions(num_modes, subspace_size(num_modes, K.getSize()[0]))
    eps.setTolerances(TOLERANCE, 200)
    st = eps.getST()
    st.setType(SLEPc.ST.Type.SINVERT)
    st.setShift(0.0)
    st.setKSP(ksp)
    own = {key: value for key, value in (options or {}).items() if key.startswith(("eps_", "st_"))}
    keys = configure(eps, prefix, own)
    try:
        eps.solve()
    except Exception as error:  # slepc4py raises SystemError for SLEPc's own refusals
        raise EigenError(f"the eigenvalue solver failed: {error}") from error
    finally:
        forget(prefix, keys)
    if eps.getConverged() < num_modes:
        raise EigenError(
            f"{eps.getConverged()} of {num_modes} modes converged in {eps.getIterationNumber()} "
            f"iterations ({_reason(eps.getConvergedReason())}); raise the option eps_max_it or "
            "eps_ncv"
        )
    return eps


def subspace_size(num_modes: int, size: int) -> int:
    """Dimension of the Krylov space for a number of modes."""
    return min(size, max(2 * num_modes, num_modes + 15))


def _reason(code: int) -> str:
    names = {v: k for k, v in vars(SLEPc.EPS.ConvergedReason).items() if k.isupper()}
    return str(names.get(code, code)).lower().replace("_", " ")


def lowest_modes(
    K: PETSc.Mat,
    M: PETSc.Mat,
    ksp: PETSc.KSP,
    num_modes: int,
    held: NDArray[np.int32],
    *,
    num_border: int = 0,
    prefix: str,
    options: Options = None,
) -> tuple[Array, Array]:
    """Lowest eigenpairs, M-normalized.

    Args:
        K: Positive definite; unit rows at the held degrees of freedom. Or bordered by constraints,
            whose rows are the last.
        M: Positive semi-definite; zero rows there and at the constraints.
        ksp: Solver of K.
        num_modes: How many.
        held: Owned held degrees of freedom (local numbers).
        num_border: Number of constraints.
        prefix: PETSc options prefix.
        options: PETSc options; those that begin with ``eps_`` or ``st_`` are for SLEPc, which then
            does the work.

    Returns:
        Eigenvalues λ, shape (num_modes,), bitwise equal on every rank; eigenvectors, shape
        (owned rows of K, num_modes).

    Raises:
        EigenError: The solver did not converge.
        ValueError: More modes are asked for than there are free degrees of freedom.

    Note: Collective.
    """
    comm = K.comm.tompi4py()
    owned = K.getLocalSize()[0]
    if num_modes == 0:
        return np.zeros(0), np.zeros((owned, 0), order="F")
    free = K.getSize()[0] - 2 * num_border - comm.allreduce(len(held))
    if num_modes > free:
        raise InputError(
            f"{num_modes} modes were asked for, and the mesh has {free} free dofs only"
        )
    if free <= DENSE_ALWAYS or (2 * num_modes >= free and free <= DENSE_MOST):
        return _dense_modes(comm, K, M, num_modes, held, num_border)
    if by_blocks(num_modes, free, prefix=prefix, options=options):
        try:
            return block_modes(comm, partial(solve, ksp), M, num_modes)
        except Breakdown as error:
            _log.warning("block Lanczos: %s; SLEPc goes on from the start", error)
    eps = eigensolver(K, M, ksp, num_modes, prefix=prefix, options=options)
    vectors = np.empty((owned, num_modes), order="F")
    x = K.createVecRight()
    for k in range(num_modes):
        eps.getEigenvector(k, x)
        vectors[:, k] = x.array_r
    values = comm.bcast(np.array([eps.getEigenvalue(k).real for k in range(num_modes)]), root=0)
    x.destroy()
    eps.destroy()
    return values, vectors


def by_blocks(num_modes: int, free: int, *, prefix: str, options: Options) -> bool:
    """Whether block Lanczos is used: no option for SLEPc, and enough free degrees of freedom.

    Args:
        num_modes: How many are wanted.
        free: Degrees of freedom that nothing holds.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
    """
    if any(key.startswith(("eps_", "st_")) for key in (*(options or {}), *given(prefix))):
        return False
    return largest_space(num_modes) + BLOCK <= free // 2


def block_modes(
    comm: MPI.Comm, inverse: Callable[[Array], Array], M: PETSc.Mat, num_modes: int
) -> tuple[Array, Array]:
    """By block Lanczos, from random vectors that M has smoothed: zero where it has no rows.

    Args:
        comm: Communicator of the rows.
        inverse: X = K⁻¹B for blocks of vectors, shape (owned rows, k).
        M: Mass matrix, zero rows where the body is held.
        num_modes: How many.

    Raises:
        Breakdown: The iteration came to no end.

    Note: Collective.
    """
    random = np.random.default_rng(comm.rank).standard_normal((BLOCK, M.getLocalSize()[0])).T
    start, mass = multiply(M, random), partial(multiply, M)
    return block_lanczos(comm, inverse, mass, start, num_modes, tolerance=TOLERANCE)


def _dense_modes(
    comm: MPI.Comm,
    K: PETSc.Mat,
    M: PETSc.Mat,
    num_modes: int,
    held: NDArray[np.int32],
    num_border: int,
) -> tuple[Array, Array]:
    """All on the first rank, by LAPACK, in the null space of the constraints."""
    owned, size = K.getLocalSize()[0], K.getSize()[0]
    start, _ = K.getOwnershipRange()
    parts = comm.gather((_rows(K), _rows(M), np.asarray(held) + start, owned), root=0)
    pieces: list[Any] | None = None
    values = None
    with agreed(comm):
        if parts is not None:
            k, m = (scipy.sparse.vstack([part[i] for part in parts]).toarray() for i in (0, 1))
            inner = np.arange(size - num_border)
            free = np.setdiff1d(inner, np.concatenate([part[2] for part in parts]))
            grid = np.ix_(free, free)
            k_free, m_free, Z = k[grid], m[grid], np.eye(len(free))
            if num_border:
                q, _ = np.linalg.qr(k[free, size - num_border :], mode="complete")
                Z = q[:, num_border:]
                k_free, m_free = Z.T @ k_free @ Z, Z.T @ m_free @ Z
            values, v = scipy.linalg.eigh(k_free, m_free, subset_by_index=(0, num_modes - 1))
            if len(values) < num_modes or not np.isfinite(values).all():
                raise EigenError(
                    f"LAPACK found {len(values)} of {num_modes} modes: stiffness over mass is "
                    "beyond the range of floating-point numbers"
                )
            full = np.zeros((size, num_modes))
            full[free] = Z @ v
            pieces = np.split(full, np.cumsum([part[3] for part in parts])[:-1])
    local = comm.scatter(pieces, root=0)
    return comm.bcast(values, root=0), np.asfortranarray(local)


def _rows(A: PETSc.Mat) -> scipy.sparse.csr_matrix:
    indptr, columns, values = A.getValuesCSR()
    return scipy.sparse.csr_matrix(
        (values, columns, indptr), shape=(len(indptr) - 1, A.getSize()[1])
    )
