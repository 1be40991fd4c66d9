"""Lowest eigenpairs of K ψ = λ M ψ with an existing factorization of K.

Block Lanczos is the default. SLEPc's Krylov-Schur method is used if the user sets options for it,
if the matrix is too small for blocks, or if block Lanczos breaks down. LAPACK solves problems of
few unknowns.
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

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.linalg.block_lanczos import BLOCK_SIZE, Breakdown, block_lanczos, largest_space
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.dense_problems import solve_on_first_rank
from dolfinx_mbd.fem.linalg.factorization import GENERAL
from dolfinx_mbd.fem.linalg.options import Options, configured, database_options

TOLERANCE = 1e-9  # largest residual of the iterations, relative to the eigenvalue

DENSE_ALWAYS, DENSE_HALF = 150, 3000
"""Largest numbers of free dofs for which LAPACK computes the modes.

The first number applies always, the second if at least half of all modes are requested.
"""

SHIFT_OPTIONS = {f"st_{key}": value for key, value in GENERAL.items()}
"""Options of SLEPc's factorization at a shift."""

_log = logging.getLogger("dolfinx_mbd")


class EigenError(SolverError):
    """An eigenvalue solver that did not converge.

    If some of the requested eigenpairs are missing, `requested` and `converged` are numbers of
    eigenpairs; otherwise they are None.
    """

    def __init__(
        self, message: str = "", *, requested: int | None = None, converged: int | None = None
    ) -> None:
        super().__init__(message)
        self.requested, self.converged = requested, converged


def log_completed_group(requested: int, count: int, values: Array) -> None:
    """Log that `count` modes are returned, more than requested, to complete a group of equal ω²."""
    if count > requested:
        frequency = float(np.sqrt(max(values[count - 1], 0.0)) / (2 * np.pi))
        text = "%d modes instead of %d: the last ones share the frequency %.6g Hz"
        _log.info(text, count, requested, frequency)


def check_num_modes(num_modes: int, free: int) -> None:
    """Raise an error if more modes are requested than there are free degrees of freedom."""
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
    """Run a Krylov-Schur solver and return it; the solver changes the operators of `ksp`."""
    eps = SLEPc.EPS().create(K.comm)
    eps.setOperators(K, M)
    eps.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    eps.setType(SLEPc.EPS.Type.KRYLOVSCHUR)
    eps.setTolerances(TOLERANCE, 200)
    return run_slepc(eps, "eps", num_modes, ksp, prefix=prefix, options=options)


def run_slepc(
    solver: SLEPc.EPS | SLEPc.PEP,
    kind: str,
    count: int,
    ksp: PETSc.KSP | None,
    shift: float = 0.0,
    *,
    prefix: str,
    options: Options,
) -> SLEPc.EPS | SLEPc.PEP:
    """Compute the eigenvalues closest to a shift with an EPS or PEP, and return the solver.

    With a `ksp` of K the shift must be zero; without a `ksp`, SLEPc factorizes the matrix at the
    shift. `kind` is "eps" or "pep"; only options that begin with `kind` or with "st" are used.
    """
    size = solver.getOperators()[0].getSize()[0]
    solver.setDimensions(count, min(size, max(2 * count, count + 15)))  # SLEPc's default
    solver.setWhichEigenpairs(type(solver).Which.TARGET_MAGNITUDE)
    solver.setTarget(shift)
    st = solver.getST()
    st.setType(SLEPc.ST.Type.SINVERT)
    settings = dict(SHIFT_OPTIONS) if ksp is None else {}
    if ksp is not None:
        st.setKSP(ksp)
    prefixes = f"{kind}_", "st_"
    settings |= {k: value for k, value in (options or {}).items() if k.startswith(prefixes)}
    with configured(solver, prefix, settings):
        try:
            solver.solve()
        except Exception as error:  # slepc4py raises SystemError for some errors of SLEPc
            raise EigenError(f"the eigenvalue solver failed: {error}") from error
    converged, iterations = solver.getConverged(), solver.getIterationNumber()
    if converged < count:
        code = solver.getConvergedReason()
        reasons = vars(type(solver).ConvergedReason).items()
        reason = next((k for k, v in reasons if k.isupper() and v == code), "unknown")
        solver.destroy()
        raise EigenError(
            f"{converged} of {count} eigenvalues converged in {iterations} iterations "
            f"({reason.lower().replace('_', ' ')}); raise the option {kind}_max_it or {kind}_ncv",
            requested=count,
            converged=converged,
        )
    return solver


def lowest_modes(
    K: PETSc.Mat,
    M: PETSc.Mat,
    ksp: PETSc.KSP,
    num_modes: int,
    held: NDArray[np.int32],
    *,
    num_border: int = 0,
    num_loose: int = 0,
    prefix: str,
    options: Options = None,
) -> tuple[Array, Array]:
    """Return the eigenvalues of smallest |λ|, and owned rows of their M-normalized eigenvectors.

    At the owned `held` degrees of freedom (local indices), K has unit rows and M has zero rows. The
    last `num_border` rows of K may be constraints; M is zero in these rows. The last `num_loose`
    pairs may have the residual `LOOSE_TOLERANCE`. Options that begin with "eps_" or "st_" select
    SLEPc's solver. The eigenvalues are bitwise identical on all ranks.
    """
    comm, rows = K.comm.tompi4py(), K.getLocalSize()[0]
    if num_modes == 0:
        return np.zeros(0), np.zeros((rows, 0), order="F")
    # Each row of the border is one multiplier, and its constraint removes one degree of freedom
    free = K.getSize()[0] - 2 * num_border - comm.allreduce(len(held))
    check_num_modes(num_modes, free)
    if free <= DENSE_ALWAYS or (2 * num_modes >= free and free <= DENSE_HALF):
        dense = partial(_dense_modes, num_modes=num_modes, num_border=num_border)
        return solve_on_first_rank((K, M), held, dense)
    if uses_block_lanczos(num_modes, free, prefix=prefix, options=options):
        try:
            return block_modes(comm, partial(solve, ksp), M, num_modes, num_loose)
        except Breakdown as error:
            _log.warning("block Lanczos: %s; SLEPc's Krylov-Schur is used instead", error)
    eps = eigensolver(K, M, ksp, num_modes, prefix=prefix, options=options)
    values, vectors = np.empty(num_modes), np.empty((rows, num_modes), order="F")
    x = K.createVecRight()
    for k in range(num_modes):
        values[k] = eps.getEigenpair(k, x).real
        vectors[:, k] = x.array_r
    x.destroy()
    eps.destroy()
    return comm.bcast(values, root=0), vectors


def uses_block_lanczos(num_modes: int, free: int, *, prefix: str, options: Options) -> bool:
    """Return True if there are no options for SLEPc and enough degrees of freedom for blocks."""
    keys = (*(options or {}), *database_options(prefix))
    if any(key.startswith(("eps_", "st_")) for key in keys):
        return False
    return largest_space(num_modes) + BLOCK_SIZE <= free // 2


def block_modes(
    comm: MPI.Comm,
    inverse: Callable[[Array], Array],
    M: PETSc.Mat,
    num_modes: int,
    num_loose: int = 0,
) -> tuple[Array, Array]:
    """Return the result of `lowest_modes` by block Lanczos; `inverse` returns K⁻¹B for blocks B.

    The start vectors are M times random vectors, so that they are zero in the zero rows of M.
    """
    random = np.random.default_rng(comm.rank).standard_normal((BLOCK_SIZE, M.getLocalSize()[0])).T
    start, mass = multiply(M, random), partial(multiply, M)
    options: dict[str, Any] = {"tolerance": TOLERANCE, "num_loose": num_loose}
    return block_lanczos(comm, inverse, mass, start, num_modes, **options)


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
