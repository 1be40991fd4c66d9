"""Eigenvalues of (λ²M + λC + K) z = 0: vibrations with damping or Coriolis terms.

The matrices are real. M is symmetric and positive semi-definite. K is symmetric, and indefinite if
spin softening or compression outweighs the elastic stiffness. C is arbitrary: damping and the skew
Coriolis operator. Complex eigenvalues form conjugate pairs; the eigenvalue with Im λ > 0 represents
the mode. Two real eigenvalues also count as one mode, represented by the larger one: an unstable
pair ±σ is the mode +σ. Therefore there are as many modes as degrees of freedom.

SLEPc's two-level Arnoldi method (TOAR) with shift-and-invert at zero needs a factorization of K
only. If K is almost singular, the residuals are large, and the computation is repeated with a real
shift and another factorization. Finally λ is replaced by the closest root of

    (zᴴMz) λ² + (zᴴCz) λ + zᴴKz = 0.

Without damping, K - ω²M + iωC is Hermitian, so that the error of the root is of the order of the
square of the error of z, and the real part of the root is zero up to round-off. Without C the
problem is symmetric in λ². LAPACK solves problems of few unknowns.

References:
    C. Campos, J. E. Roman: Parallel Krylov solvers for the polynomial eigenvalue problem in SLEPc,
    SIAM J. Sci. Comput. 38 (2016), S385-S411.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc
from slepc4py import SLEPc

from dolfinx_mbd.arrays import Array, ComplexArray
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.dense_problems import (
    dense_modes,
    improved_roots,
    rates,
    select_modes,
    solve_on_first_rank,
)
from dolfinx_mbd.fem.linalg.eigenvalues import (
    DENSE_ALWAYS,
    EigenError,
    check_num_modes,
    eigensolver,
    lowest_modes,
    run_slepc,
)
from dolfinx_mbd.fem.linalg.options import Options

TOLERANCE, MAX_RESTARTS = 1e-10, 300  # limits of TOAR: backward error, restarts

EXTRA_MODES = 2  # modes beyond the requested ones, so that no conjugate pair is split

DENSE_HALF = 500
"""Number of free dofs up to which LAPACK is used if at least half of all modes are requested."""

MAX_RESIDUAL = 1e-3
"""Limit of the relative residual z + K⁻¹(λ²M + λC)z; above it, the solver of K is too inaccurate.

Round-off contributes 1e-16 times the squared ratio of the mesh's highest frequency to the mode's
frequency. SLEPc's residual is amplified by the squared ratio of λ to the smallest eigenvalue.
"""


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
    """Return λ (Im λ ≥ 0) and z of the modes closest to zero; real unstable modes come first.

    At the owned `held` degrees of freedom (local indices), K has unit rows, and M and C have zero
    rows. `negative` is the number of negative eigenvalues of K, None if unknown. Without C,
    `negative` is the number of unstable modes. All unstable modes are then returned, even if they
    are more than `num_modes`. The eigenvalues are bitwise identical on all ranks; the vectors
    have the owned rows.
    """
    comm = K.comm.tompi4py()
    free = K.getSize()[0] - comm.allreduce(len(held))
    check_num_modes(num_modes, free)
    settings: dict[str, Any] = {"prefix": prefix, "options": options}
    if free <= DENSE_ALWAYS or (2 * num_modes >= free and free <= DENSE_HALF):
        return solve_on_first_rank((M, C, K), held, partial(_free_modes, num_modes=num_modes))
    if C is None:
        modes = partial(lowest_modes, K, M, ksp, held=held, **settings)
        return _symmetric_modes(modes, num_modes, negative)
    try:
        values, vectors, residual = _toar_modes(M, C, K, ksp, num_modes, 0.0, settings)
    except EigenError:
        residual = np.inf
    if residual > MAX_RESIDUAL:
        # SLEPc has changed the KSP and factorizes again
        eps = eigensolver(K, M, ksp, num_modes, **settings)
        squares = [abs(eps.getEigenvalue(k)) for k in range(num_modes)]
        eps.destroy()
        # A real shift, half of the largest frequency of the modes without C
        shift = 0.5 * comm.bcast(float(np.sqrt(max(squares))), root=0)
        values, vectors, _ = _toar_modes(M, C, K, None, num_modes, shift, settings)
    return comm.bcast(values, root=0), vectors


def _toar_modes(
    M: PETSc.Mat,
    C: PETSc.Mat,
    K: PETSc.Mat,
    ksp: PETSc.KSP | None,
    num_modes: int,
    shift: float,
    settings: dict[str, Any],
) -> tuple[ComplexArray, ComplexArray, float]:
    """Return modes by TOAR with improved eigenvalues, and their largest relative residual."""
    requested = num_modes + EXTRA_MODES
    # SLEPc 3.22 hangs on a rank without rows in the default type of basis (LAPACK's dlascl fails)
    no_rows = K.comm.tompi4py().allreduce(K.getLocalSize()[0], op=MPI.MIN) == 0
    for _ in range(4):
        pep = SLEPc.PEP().create(K.comm)
        pep.setOperators([K, C, M])
        pep.setType(SLEPc.PEP.Type.TOAR)
        pep.setScale(SLEPc.PEP.Scale.SCALAR)
        pep.setTolerances(TOLERANCE, MAX_RESTARTS)
        if no_rows:
            pep.getBV().setType(SLEPc.BV.Type.VECS)
        run_slepc(pep, "pep", 2 * requested, ksp, shift, **settings)  # two eigenvalues per mode
        eigenvalues, z = _eigenpairs(pep, K)
        values, columns = select_modes(eigenvalues)
        if len(values) >= num_modes:
            break
        pep.destroy()
        requested += 2 * (num_modes - len(values)) + EXTRA_MODES
    else:
        raise _missing_modes(len(values), num_modes, "modes", "pep_ncv")
    values, vectors = values[:num_modes], np.asfortranarray(z[:, columns[:num_modes]])
    products = [_apply_to_complex(partial(multiply, A), vectors) for A in (M, C, K)]
    local = np.array([np.sum(vectors.conj() * y, axis=0) for y in products])
    comm = K.comm.tompi4py()
    values = improved_roots(values, comm.bcast(comm.allreduce(local), root=0))
    residual = 0.0
    if ksp is not None:  # `ksp` belongs to `pep` until `pep` is destroyed
        y = _apply_to_complex(partial(solve, ksp), values**2 * products[0] + values * products[1])
        diagonal = M.getDiagonal()
        local = np.array([diagonal.array_r @ np.abs(a) ** 2 for a in (vectors + y, vectors)])
        diagonal.destroy()
        squares = comm.allreduce(local)
        residual = float(np.sqrt((squares[0] / squares[1]).max(initial=0.0)))
    pep.destroy()
    return values, vectors, residual


def _missing_modes(converged: int, requested: int | None, modes: str, option: str) -> EigenError:
    """Return the error about modes that did not converge."""
    text = f"{converged} of {requested} {modes} converged; raise the option {option}"
    return EigenError(text, requested=requested, converged=converged)


def _apply_to_complex(operator: Callable[[Array], Array], Z: ComplexArray) -> ComplexArray:
    """Apply a real operator to a complex block."""
    y = operator(np.asfortranarray(np.hstack([Z.real, Z.imag])))
    return y[:, : Z.shape[1]] + 1j * y[:, Z.shape[1] :]


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
    modes: Callable[..., tuple[Array, Array]], num_modes: int, negative: int | None
) -> tuple[ComplexArray, ComplexArray]:
    """Return the modes of K z = ω² M z: λ = iω, or λ = √(-ω²) if ω² is negative."""
    requested = max(num_modes, negative or 0)
    for _ in range(4):
        squares, vectors = modes(num_modes=requested)
        below = int(np.sum(squares < 0))
        if negative is None or below == negative:
            break
        requested += 2 * (negative - below) + EXTRA_MODES
    else:
        raise _missing_modes(below, negative, "unstable modes", "eps_ncv")
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
