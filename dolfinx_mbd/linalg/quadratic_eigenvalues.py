"""Eigenvalues of (λ²M + λC + K) z = 0: vibrations with damping or Coriolis terms.

The matrices are real. M is symmetric and positive semi-definite. K is symmetric, and indefinite if
spin softening or compression outweighs the elastic stiffness. C is arbitrary: damping and the skew
Coriolis operator. Complex eigenvalues are conjugate pairs; the one with Im λ > 0 represents the
mode. Two real eigenvalues also count as one mode, represented by the greater one: an unstable ±σ
is the mode +σ. Therefore the number of modes is that of the degrees of freedom.

SLEPc's two-level Arnoldi method (TOAR) with shift-and-invert at zero needs a factorization of K
only. If K is almost singular this is inaccurate, which the residuals show; a real shift with a
factorization of its own is used then. Afterwards λ is improved as a root of

    (zᴴMz) λ² + (zᴴCz) λ + zᴴKz = 0.

Without damping iω is an eigenvalue of the Hermitian matrix K - ω²M + iωC, so that the error of the
root is the square of that of z, and its real part is zero to round-off. Without C the problem is
symmetric in λ². LAPACK solves problems of few unknowns.

References:
    C. Campos, J. E. Roman: Parallel Krylov solvers for the polynomial eigenvalue problem in SLEPc,
    SIAM J. Sci. Comput. 38 (2016), S385-S411.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc
from slepc4py import SLEPc

from dolfinx_mbd.linalg.blocks import multiply, solve
from dolfinx_mbd.linalg.dense_problems import solve_on_first_rank
from dolfinx_mbd.linalg.dense_quadratic import dense_modes, improved_roots, rates, select_modes
from dolfinx_mbd.linalg.eigenvalues import (
    DENSE_ALWAYS,
    EigenError,
    check_num_modes,
    eigensolver,
    lowest_modes,
)
from dolfinx_mbd.linalg.factorization import GENERAL
from dolfinx_mbd.linalg.options import Options, configure, forget

__all__ = ["quadratic_modes"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

TOLERANCE, ITERATIONS, SPARE = 1e-10, 300, 2
"""Settings of TOAR: backward error; restarts; modes beyond the requested ones, so that no conjugate
pair is split."""

DENSE_MOST = 500
"""Number of free dofs up to which LAPACK is used if at least half of all modes are requested."""

RESIDUAL = 1e-3
"""Relative residual z + K⁻¹(λ²M + λC)z above which the solver of K is too inaccurate.

Round-off contributes 1e-16 times the square of the ratio of the highest frequency of the mesh to
that of the mode. The residual of SLEPc is amplified by the square of the ratio of λ to the smallest
one.
"""

SHIFTED = {f"st_{key}": value for key, value in GENERAL.items()}
"""Options of the factorization at a shift."""


def quadratic_modes(
    M: PETSc.Mat,
    C: PETSc.Mat | None,
    K: PETSc.Mat,
    ksp: PETSc.KSP,
    num_modes: int,
    held: NDArray[np.int32],
    *,
    negative: int | None = None,
    prefix: str,
    options: Options = None,
) -> tuple[ComplexArray, ComplexArray]:
    """Return the modes of λ²M + λC + K closest to zero; real unstable modes come first.

    Args:
        M: Mass matrix with zero rows and columns at held degrees of freedom.
        C: Velocity matrix, likewise; None if there is no such term.
        K: Stiffness with unit rows and columns at held degrees of freedom.
        ksp: Solver of K.
        num_modes: Number of modes, which have two eigenvalues each.
        held: Owned held degrees of freedom (local numbers).
        negative: Number of negative eigenvalues of K; None if unknown. Without C it is the number
            of unstable modes, and all of them are returned, even if they are more than
            `num_modes`.
        prefix: PETSc options prefix.
        options: PETSc options; those of the eigensolver begin with ``pep_``, ``eps_`` or ``st_``.

    Returns:
        λ, Im λ ≥ 0, shape (num_modes,), bitwise equal on all ranks; z, shape (owned rows,
        num_modes).

    Raises:
        EigenError: The solver did not converge.
        InputError: There are fewer free degrees of freedom than requested modes.

    Note: Collective.
    """
    comm = K.comm.tompi4py()
    free = K.getSize()[0] - comm.allreduce(len(held))
    check_num_modes(num_modes, free)
    if free <= DENSE_ALWAYS or (2 * num_modes >= free and free <= DENSE_MOST):
        return solve_on_first_rank((M, C, K), held, partial(_free_modes, num_modes=num_modes))
    if C is None:
        return _symmetric_modes(
            M, K, ksp, num_modes, held, negative=negative, prefix=prefix, options=options
        )
    try:
        values, vectors, residual = _attempt(
            M, C, K, ksp, num_modes, 0.0, prefix=prefix, options=options
        )
    except EigenError:
        residual = np.inf
    if residual > RESIDUAL:
        # SLEPc has taken over the KSP and factorizes again
        eps = eigensolver(K, M, ksp, num_modes, prefix=prefix, options=options)
        squares = [abs(eps.getEigenvalue(k)) for k in range(num_modes)]
        eps.destroy()
        shift = 0.5 * comm.bcast(float(np.sqrt(max(squares))), root=0)
        values, vectors, _ = _attempt(
            M, C, K, None, num_modes, shift, prefix=prefix, options=options
        )
    return comm.bcast(values, root=0), vectors


def _attempt(
    M: PETSc.Mat,
    C: PETSc.Mat,
    K: PETSc.Mat,
    ksp: PETSc.KSP | None,
    num_modes: int,
    shift: float,
    *,
    prefix: str,
    options: Options,
) -> tuple[ComplexArray, ComplexArray, float]:
    """Return modes by TOAR with improved eigenvalues, and their greatest relative residual."""
    requested = num_modes + SPARE
    for _ in range(4):
        pep = _toar(M, C, K, ksp, 2 * requested, shift, prefix=prefix, options=options)
        eigenvalues, z = _eigenpairs(pep, K)
        values, columns = select_modes(eigenvalues)
        if len(values) >= num_modes:
            break
        pep.destroy()
        requested += 2 * (num_modes - len(values)) + SPARE
    else:
        raise EigenError(
            f"{len(values)} of {num_modes} modes converged; raise the option pep_ncv",
            requested=num_modes,
            converged=len(values),
        )
    values, vectors = values[:num_modes], np.asfortranarray(z[:, columns[:num_modes]])
    products = [_multiply(A, vectors) for A in (M, C, K)]
    local = np.array([np.sum(vectors.conj() * y, axis=0) for y in products])
    comm = K.comm.tompi4py()
    values = improved_roots(values, comm.bcast(comm.allreduce(local), root=0))
    residual = 0.0
    if ksp is not None:  # the solver of K belongs to the eigensolver until that is destroyed
        y = _solve(ksp, values**2 * products[0] + values * products[1])
        diagonal = M.getDiagonal()
        local = np.array([diagonal.array_r @ np.abs(a) ** 2 for a in (vectors + y, vectors)])
        diagonal.destroy()
        squares = comm.allreduce(local)
        residual = float(np.sqrt((squares[0] / squares[1]).max(initial=0.0)))
    pep.destroy()
    return values, vectors, residual


def _multiply(A: PETSc.Mat, Z: ComplexArray) -> ComplexArray:
    """Return A Z for a complex block."""
    y = multiply(A, np.asfortranarray(np.hstack([Z.real, Z.imag])))
    return y[:, : Z.shape[1]] + 1j * y[:, Z.shape[1] :]


def _solve(ksp: PETSc.KSP, Z: ComplexArray) -> ComplexArray:
    """Return A⁻¹ Z for a complex block."""
    y = solve(ksp, np.asfortranarray(np.hstack([Z.real, Z.imag])))
    return y[:, : Z.shape[1]] + 1j * y[:, Z.shape[1] :]


def _toar(
    M: PETSc.Mat,
    C: PETSc.Mat,
    K: PETSc.Mat,
    ksp: PETSc.KSP | None,
    count: int,
    shift: float,
    *,
    prefix: str,
    options: Options,
) -> SLEPc.PEP:
    """Return a solver with at least `count` eigenvalues closest to a shift.

    Both eigenvalues of a pair count. The caller destroys the solver. With a solver of K the shift
    is zero; without one, SLEPc factorizes the matrix at the shift.
    """
    pep = SLEPc.PEP().create(K.comm)
    pep.setOperators([K, C, M])
    pep.setType(SLEPc.PEP.Type.TOAR)
    pep.setScale(SLEPc.PEP.Scale.SCALAR)
    pep.setDimensions(count, min(K.getSize()[0], max(2 * count, count + 15)))
    pep.setTarget(shift)
    pep.setWhichEigenpairs(SLEPc.PEP.Which.TARGET_MAGNITUDE)
    pep.setTolerances(TOLERANCE, ITERATIONS)
    st = pep.getST()
    st.setType(SLEPc.ST.Type.SINVERT)
    relevant = {k: value for k, value in (options or {}).items() if k.startswith(("pep_", "st_"))}
    if ksp is not None:
        st.setKSP(ksp)
    else:
        relevant = {**SHIFTED, **relevant}
    keys = configure(pep, prefix, relevant)
    try:
        pep.solve()
    except Exception as error:  # slepc4py raises SystemError for some errors of SLEPc
        raise EigenError(f"the quadratic eigenvalue solver failed: {error}") from error
    finally:
        forget(prefix, keys)
    converged = pep.getConverged()
    if converged < count:
        iterations = pep.getIterationNumber()
        pep.destroy()
        raise EigenError(
            f"{converged} of {count} eigenvalues converged in {iterations} iterations; raise the "
            "option pep_max_it or pep_ncv",
            requested=count,
            converged=converged,
        )
    return pep


def _eigenpairs(pep: SLEPc.PEP, K: PETSc.Mat) -> tuple[ComplexArray, ComplexArray]:
    """Return all converged eigenvalues, and their vectors."""
    xr, xi = K.createVecs()
    count = pep.getConverged()
    values = np.empty(count, dtype=complex)
    vectors = np.empty((K.getLocalSize()[0], count), dtype=complex, order="F")
    for k in range(count):
        values[k] = pep.getEigenpair(k, xr, xi)
        vectors[:, k] = xr.array_r + 1j * xi.array_r
    xr.destroy()
    xi.destroy()
    return values, vectors


def _symmetric_modes(
    M: PETSc.Mat,
    K: PETSc.Mat,
    ksp: PETSc.KSP,
    num_modes: int,
    held: NDArray[np.int32],
    *,
    negative: int | None,
    prefix: str,
    options: Options,
) -> tuple[ComplexArray, ComplexArray]:
    """Return the modes of K z = ω² M z: λ = iω, or λ = √(-ω²) if ω² is negative."""
    requested = max(num_modes, negative or 0)
    for _ in range(4):
        squares, vectors = lowest_modes(K, M, ksp, requested, held, prefix=prefix, options=options)
        below = int(np.sum(squares < 0))
        if negative is None or below == negative:
            break
        requested += 2 * (negative - below) + SPARE
    else:
        raise EigenError(
            f"{below} of {negative} unstable modes converged; raise the option eps_ncv",
            requested=negative,
            converged=below,
        )
    order = np.argsort(squares)[: max(num_modes, below)]
    return rates(squares[order]), np.asfortranarray(vectors[:, order].astype(complex))


def _free_modes(
    free: NDArray[np.int64], M: Array, C: Array | None, K: Array, *, num_modes: int
) -> tuple[ComplexArray, ComplexArray]:
    """Return the modes of dense matrices without the held degrees of freedom."""
    grid = np.ix_(free, free)
    values, v = dense_modes(M[grid], None if C is None else C[grid], K[grid], num_modes)
    z = np.zeros((len(K), v.shape[1]), dtype=complex)
    z[free] = v
    return values, z
