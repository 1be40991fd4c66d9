"""Lowest eigenpairs of K ψ = λ M ψ with an existing factorization of K.

Block Lanczos is the default. SLEPc's Krylov-Schur method is used if the user sets options for it,
if the matrix is too small for blocks, or if block Lanczos breaks down. LAPACK solves problems of
few unknowns.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc
from slepc4py import SLEPc

from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.linalg.block_lanczos import BLOCK, Breakdown, block_lanczos, largest_space
from dolfinx_mbd.linalg.blocks import multiply, solve
from dolfinx_mbd.linalg.dense_problems import solve_on_first_rank
from dolfinx_mbd.linalg.options import Options, configure, database_options, forget

__all__ = [
    "DENSE_ALWAYS",
    "EigenError",
    "block_modes",
    "check_num_modes",
    "eigensolver",
    "log_completed_group",
    "lowest_modes",
    "uses_block_lanczos",
]

Array = NDArray[np.float64]

TOLERANCE = 1e-9
"""Residual tolerance of the iterations, relative to the eigenvalue."""

DENSE_ALWAYS, DENSE_MOST = 150, 3000
"""Numbers of free dofs up to which LAPACK computes the modes: always; if at least half of all modes
are requested."""

_log = logging.getLogger("dolfinx_mbd")


class EigenError(SolverError):
    """An eigenvalue solver that did not converge.

    Args:
        message: Text of the error.
        requested: Number of eigenpairs that were requested; None if the solver failed otherwise.
        converged: Number of eigenpairs that converged; None likewise.
    """

    def __init__(
        self, message: str = "", *, requested: int | None = None, converged: int | None = None
    ) -> None:
        super().__init__(message)
        self.requested, self.converged = requested, converged


def log_completed_group(requested: int, count: int, values: Array) -> None:
    """Log that more modes are computed than were requested, if that is the case.

    Args:
        requested: Number of modes.
        count: Number of modes with the group of the last one (`body.multiple.end_of_group`).
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


def check_num_modes(num_modes: int, free: int) -> None:
    """Raise an error if more modes are requested than there are free degrees of freedom.

    Args:
        num_modes: Requested number.
        free: Number of free degrees of freedom.

    Raises:
        InputError: There are too few.
    """
    if num_modes > free:
        raise InputError(
            f"{num_modes} modes were requested, but the mesh has only {free} free degrees of "
            "freedom",
            argument="num_modes",
            value=num_modes,
            expected=f"at most {free}",
        )


def eigensolver(
    K: PETSc.Mat,
    M: PETSc.Mat,
    ksp: PETSc.KSP,
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
) -> SLEPc.EPS:
    """Return a solved Krylov-Schur solver with shift-and-invert at zero.

    Args:
        K: Symmetric matrix.
        M: Symmetric positive semi-definite matrix.
        ksp: Solver of K; SLEPc takes it over.
        num_modes: Number of eigenpairs.
        prefix: PETSc options prefix.
        options: PETSc options; those that begin with ``eps_`` or ``st_`` are used.

    Returns:
        The solver; the caller destroys it.

    Raises:
        EigenError: Fewer eigenpairs converged than were requested.

    Note: Collective.
    """
    eps = SLEPc.EPS().create(K.comm)
    eps.setOperators(K, M)
    eps.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    eps.setType(SLEPc.EPS.Type.KRYLOVSCHUR)
    eps.setTarget(0.0)
    eps.setWhichEigenpairs(SLEPc.EPS.Which.TARGET_MAGNITUDE)
    space = min(K.getSize()[0], max(2 * num_modes, num_modes + 15))
    eps.setDimensions(num_modes, space)
    eps.setTolerances(TOLERANCE, 200)
    st = eps.getST()
    st.setType(SLEPc.ST.Type.SINVERT)
    st.setShift(0.0)
    st.setKSP(ksp)
    relevant = {k: value for k, value in (options or {}).items() if k.startswith(("eps_", "st_"))}
    keys = configure(eps, prefix, relevant)
    try:
        eps.solve()
    except Exception as error:  # slepc4py raises SystemError for some errors of SLEPc
        raise EigenError(f"the eigenvalue solver failed: {error}") from error
    finally:
        forget(prefix, keys)
    converged = eps.getConverged()
    if converged < num_modes:
        raise EigenError(
            f"{converged} of {num_modes} modes converged in {eps.getIterationNumber()} "
            f"iterations ({_reason(eps.getConvergedReason())}); raise the option eps_max_it or "
            "eps_ncv",
            requested=num_modes,
            converged=converged,
        )
    return eps


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
    """Return the eigenpairs with the smallest |λ|, M-normalized.

    Args:
        K: Symmetric matrix with unit rows at the held degrees of freedom; or such a matrix bordered
            by constraints, whose rows are the last ones.
        M: Positive semi-definite, with zero rows at held degrees of freedom and constraints.
        ksp: Solver of K.
        num_modes: Number of eigenpairs.
        held: Owned held degrees of freedom (local numbers).
        num_border: Number of constraints.
        prefix: PETSc options prefix.
        options: PETSc options; those that begin with ``eps_`` or ``st_`` select SLEPc's solver.

    Returns:
        Eigenvalues λ, shape (num_modes,), bitwise equal on all ranks; eigenvectors, shape
        (owned rows of K, num_modes).

    Raises:
        EigenError: The solver did not converge.
        InputError: There are fewer free degrees of freedom than requested modes.

    Note: Collective.
    """
    comm = K.comm.tompi4py()
    if num_modes == 0:
        return np.zeros(0), np.zeros((K.getLocalSize()[0], 0), order="F")
    free = K.getSize()[0] - 2 * num_border - comm.allreduce(len(held))
    check_num_modes(num_modes, free)
    if free <= DENSE_ALWAYS or (2 * num_modes >= free and free <= DENSE_MOST):
        dense = partial(_dense_modes, num_modes=num_modes, num_border=num_border)
        return solve_on_first_rank((K, M), held, dense)
    if uses_block_lanczos(num_modes, free, prefix=prefix, options=options):
        try:
            return block_modes(comm, partial(solve, ksp), M, num_modes)
        except Breakdown as error:
            _log.warning("block Lanczos: %s; SLEPc's Krylov-Schur is used instead", error)
    eps = eigensolver(K, M, ksp, num_modes, prefix=prefix, options=options)
    vectors = np.empty((K.getLocalSize()[0], num_modes), order="F")
    x = K.createVecRight()
    for k in range(num_modes):
        eps.getEigenvector(k, x)
        vectors[:, k] = x.array_r
    values = comm.bcast(np.array([eps.getEigenvalue(k).real for k in range(num_modes)]), root=0)
    x.destroy()
    eps.destroy()
    return values, vectors


def uses_block_lanczos(num_modes: int, free: int, *, prefix: str, options: Options) -> bool:
    """Return whether block Lanczos is used: no option for SLEPc, and enough degrees of freedom.

    Args:
        num_modes: Number of eigenpairs.
        free: Number of free degrees of freedom.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
    """
    keys = (*(options or {}), *database_options(prefix))
    if any(key.startswith(("eps_", "st_")) for key in keys):
        return False
    return largest_space(num_modes) + BLOCK <= free // 2


def block_modes(
    comm: MPI.Comm, inverse: Callable[[Array], Array], M: PETSc.Mat, num_modes: int
) -> tuple[Array, Array]:
    """Return the eigenpairs with the smallest |λ| by block Lanczos.

    The start vectors are M times random vectors, so that they are zero where M has zero rows.

    Args:
        comm: Communicator of the rows.
        inverse: Returns X = K⁻¹B for blocks of vectors, shape (owned rows, k).
        M: Mass matrix with zero rows where the body is held.
        num_modes: Number of eigenpairs.

    Raises:
        Breakdown: The iteration did not converge.

    Note: Collective.
    """
    random = np.random.default_rng(comm.rank).standard_normal((BLOCK, M.getLocalSize()[0])).T
    start, mass = multiply(M, random), partial(multiply, M)
    return block_lanczos(comm, inverse, mass, start, num_modes, tolerance=TOLERANCE)


def _dense_modes(
    free: NDArray[np.int64], K: Array, M: Array, *, num_modes: int, num_border: int
) -> tuple[Array, Array]:
    """Return the modes by LAPACK, in the null space of the constraints."""
    inner = len(K) - num_border
    free = free[free < inner]
    grid, Z = np.ix_(free, free), np.eye(len(free))
    if num_border:
        q, _ = np.linalg.qr(K[free, inner:], mode="complete")
        Z = q[:, num_border:]
    k, m = Z.T @ K[grid] @ Z, Z.T @ M[grid] @ Z
    values, v = scipy.linalg.eigh(k, m, subset_by_index=(0, num_modes - 1))
    if len(values) < num_modes or not np.isfinite(values).all():
        raise EigenError(
            f"LAPACK found {len(values)} of {num_modes} modes: the ratio of stiffness to mass is "
            "outside the range of floating-point numbers",
            requested=num_modes,
            converged=len(values),
        )
    vectors = np.zeros((len(K), num_modes))
    vectors[free] = Z @ v
    return values, vectors
