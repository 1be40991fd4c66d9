"""Eigenvalues of (λ²M + λC + K) z = 0 with real matrices: vibrations with damping or Coriolis.

M is symmetric and positive semi-definite, K symmetric and possibly indefinite (spin softening, or
compression), C anything: damping, and the skew Coriolis operator. Real matrices have complex
eigenvalues in conjugate pairs; of a pair the one with Im λ > 0 is returned. Two real eigenvalues
count as one mode as well, represented by the greater: an unstable ±σ is the mode +σ. So the number
of modes is that of the degrees of freedom, whatever happens to the eigenvalues.

SLEPc's two-level Arnoldi method (TOAR) with shift-and-invert at zero needs the factor of K alone,
whatever C is. Where K is all but singular that is no good, which the residuals tell, and a real
shift with a factor of its own replaces it. Then λ is improved as a root of

    (zᴴMz) λ² + (zᴴCz) λ + zᴴKz = 0.

Without damping iω is an eigenvalue of a Hermitian matrix, K - ω²M + iωC, so that the error of the
root is the square of that of z, and the real part is zero to round-off.

Without C the problem is symmetric in λ². Problems of few unknowns go to LAPACK.

References:
    C. Campos, J. E. Roman: Parallel Krylov solvers for the polynomial eigenvalue problem in SLEPc,
    SIAM J. Sci. Comput. 38 (2016), S385-S411.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray
from petsc4py import PETSc
from slepc4py import SLEPc

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.linalg.eigenvalues import DENSE_ALWAYS, EigenError, eigensolver, lowest_modes
from dolfinx_mbd.linalg.factorization import (
    WORKSPACE,
    Options,
    agreed,
    configure,
    forget,
    multiply,
    solve,
)

__all__ = ["dense_modes", "quadratic_modes", "select_modes"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

TOLERANCE, ITERATIONS, SPARE = 1e-10, 300, 2
"""Of TOAR: backward error, restarts; modes beyond those wanted, so that no pair is cut in two."""

DENSE_MOST = 500
"""Free dofs up to which modes come from LAPACK where at least half of all are wanted."""

RESIDUAL = 1e-3
"""Size of z + K⁻¹(λ²M + λC)z over that of z above which the solver of K is not trusted.

Round-off makes 1e-16 times the square of the ratio of the highest frequency of the mesh to that of
the mode, and what SLEPc leaves is enlarged by the square of the ratio of λ to the smallest one.
"""

SHIFTED = {
    "st_ksp_type": "preonly",
    "st_pc_type": "lu",
    "st_pc_factor_mat_solver_type": "mumps",
    "st_mat_mumps_icntl_14": WORKSPACE,
}
"""Options of the factorization at a shift, of an unsymmetric matrix."""


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
    """The modes of λ²M + λC + K closest to zero; real unstable ones that were found come first.

    Args:
        M: Zero rows and columns at held degrees of freedom.
        C: Likewise; None if there is nothing of the kind.
        K: Unit rows and columns there.
        ksp: Solver of K.
        num_modes: How many, two eigenvalues each.
        held: Owned held degrees of freedom (local numbers).
        negative: Number of negative eigenvalues of K, if known. Without C so many modes are
            unstable, and all of them are returned, even if they are more than `num_modes`.
        prefix: PETSc options prefix.
        options: PETSc options; those of the eigensolver begin with ``pep_``, ``eps_`` or ``st_``.

    Returns:
        λ, Im λ ≥ 0, shape (num_modes,), bitwise equal on every rank, and z, shape (owned rows,
        num_modes).

    Raises:
        EigenError: The solver did not converge.
        ValueError: More modes are asked for than there are free degrees of freedom.

    Note: Collective.
    """
    comm = K.comm.tompi4py()
    free = K.getSize()[0] - comm.allreduce(len(held))
    if num_modes > free:
        raise InputError(
            f"{num_modes} modes were asked for, and the mesh has {free} free dofs only"
        )
    if free <= DENSE_ALWAYS or (2 * num_modes >= free and free <= DENSE_MOST):
        return _gathered_modes(comm, M, C, K, num_modes, held)
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
        # SLEPc has taken the KSP over, and makes its factors anew
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
    """Modes by TOAR, improved, and their greatest residual with the solver of K."""
    wanted = num_modes + SPARE
    for _ in range(4):
        pep = _toar(M, C, K, ksp, 2 * wanted, shift, prefix=prefix, options=options)
        found, z = _eigenpairs(pep, K)
        values, columns = select_modes(found)
        if len(values) >= num_modes:
            break
        pep.destroy()
        wanted += 2 * (num_modes - len(values)) + SPARE
    else:
        raise EigenError(f"{len(values)} of {num_modes} modes found; raise the option pep_ncv")
    values, vectors = values[:num_modes], np.asfortranarray(z[:, columns[:num_modes]])
    comm, n = K.comm.tompi4py(), num_modes
    parts = np.asfortranarray(np.hstack([vectors.real, vectors.imag]))
    products = []
    for A in (M, C, K):
        y = multiply(A, parts)
        products.append(y[:, :n] + 1j * y[:, n:])
    local = np.array([np.sum(vectors.conj() * y, axis=0) for y in products])
    values = _improved(values, comm.bcast(comm.allreduce(local), root=0))
    residual = 0.0
    if ksp is not None:  # it is the eigensolver's until that is destroyed
        rest = values**2 * products[0] + values * products[1]
        y = solve(ksp, np.asfortranarray(np.hstack([rest.real, rest.imag])))
        rest = vectors + y[:, :n] + 1j * y[:, n:]
        diagonal = M.getDiagonal()
        local = np.array([diagonal.array_r @ np.abs(a) ** 2 for a in (rest, vectors)])
        diagonal.destroy()
        squares = comm.allreduce(local)
        residual = float(np.sqrt((squares[0] / squares[1]).max(initial=0.0)))
    pep.destroy()
    return values, vectors, residual


def _improved(values: ComplexArray, quotients: ComplexArray) -> ComplexArray:
    """The roots closest to the values; quotients zᴴMz, zᴴCz, zᴴKz, shape (3, n)."""
    m, c, k = quotients
    m, k = m.real, k.real
    root = np.sqrt(c * c - 4 * m * k + 0j)
    both = np.array([-c + root, -c - root]) / (2 * m)
    closest = np.argmin(np.abs(both - values), axis=0)
    better = both[closest, np.arange(len(values))]
    return np.where(values.imag == 0, better.real, better.real + 1j * np.abs(better.imag))


def select_modes(values: ComplexArray) -> tuple[ComplexArray, NDArray[np.intp]]:
    """One eigenvalue per mode, by distance from zero, real unstable ones first.

    Of conjugate pairs the one with Im λ > 0, of real ones (two by two, by distance from zero) the
    greater.

    Returns:
        The eigenvalues and their places in `values`.
    """
    upper = [int(k) for k in np.flatnonzero(values.imag > 0)]
    real = [int(k) for k in np.flatnonzero(values.imag == 0)]
    real.sort(key=lambda k: (abs(values[k]), values[k].real))
    pairs = [real[k : k + 2] for k in range(0, len(real), 2)]
    chosen = upper + [max(pair, key=lambda k: values[k].real) for pair in pairs]
    growing = {k for k in chosen if values[k].imag == 0 and values[k].real > 0}
    chosen.sort(key=lambda k: -abs(values[k]) if k in growing else abs(values[k]))
    columns = np.array(chosen, dtype=np.intp)
    return values[columns], columns


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
    """A solver that found `count` or more eigenvalues closest to a shift, both of each pair.

    The caller destroys it. With a solver of K the shift is zero; without, the matrix of the shift
    is factorized here.
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
    own = {key: value for key, value in (options or {}).items() if key.startswith(("pep_", "st_"))}
    if ksp is not None:
        st.setKSP(ksp)
    else:
        own = {**SHIFTED, **own}
    keys = configure(pep, prefix, own)
    try:
        pep.solve()
    except Exception as error:  # slepc4py raises SystemError for SLEPc's own refusals
        raise EigenError(f"the quadratic eigenvalue solver failed: {error}") from error
    finally:
        forget(prefix, keys)
    found = pep.getConverged()
    if found < count:
        iterations = pep.getIterationNumber()
        pep.destroy()
        raise EigenError(
            f"{found} of {count} eigenvalues converged in {iterations} iterations; raise the "
            "option pep_max_it or pep_ncv"
        )
    return pep


def _eigenpairs(pep: SLEPc.PEP, K: PETSc.Mat) -> tuple[ComplexArray, ComplexArray]:
    xr, xi = K.createVecs()
    found = pep.getConverged()
    values = np.empty(found, dtype=complex)
    vectors = np.empty((K.getLocalSize()[0], found), dtype=complex, order="F")
    for k in range(found):
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
    """K z = ω² M z: λ = iω, or λ = +√(-ω²) where K is not positive."""
    wanted = max(num_modes, negative or 0)
    for _ in range(4):
        squares, vectors = lowest_modes(K, M, ksp, wanted, held, prefix=prefix, options=options)
        below = int(np.sum(squares < 0))
        if negative is None or below == negative:
            break
        wanted += 2 * (negative - below) + SPARE
    else:
        raise EigenError(
            f"the solver found {below} of {negative} unstable modes; raise the option eps_ncv"
        )
    order = np.argsort(squares)[: max(num_modes, below)]
    return _rates(squares[order]), np.asfortranarray(vectors[:, order].astype(complex))


def _rates(squares: Array) -> ComplexArray:
    root = np.sqrt(np.abs(squares))
    return np.where(squares < 0, root + 0j, 1j * root)


def dense_modes(
    M: Array, C: Array | None, K: Array, num_modes: int | None = None
) -> tuple[ComplexArray, ComplexArray]:
    """The same of small matrices, by LAPACK, in the modes of (K, M); M is positive definite.

    Returns:
        λ, shape (num_modes,), and z, shape (n, num_modes).
    """
    n = len(M)
    squares, modes = scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2)
    if C is None:
        count = max(num_modes or n, int(np.sum(squares < 0)))
        return _rates(squares[:count]), modes[:, :count].astype(complex)
    scale = np.sqrt(np.abs(squares).max())  # of 1/time
    small = modes.T @ C @ modes
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:], A[n:, :n], A[n:, n:] = np.eye(n), -np.diag(squares) / scale**2, -small / scale
    found, y = np.linalg.eig(A)
    values, columns = select_modes(scale * found)
    values, y = values[:num_modes], y[:n, columns[:num_modes]]
    sides = [np.einsum("ik,ik->k", y.conj(), a) for a in (y, small @ y, squares[:, None] * y)]
    return _improved(values, np.array(sides)), modes @ y


def _gathered_modes(
    comm: Any,
    M: PETSc.Mat,
    C: PETSc.Mat | None,
    K: PETSc.Mat,
    num_modes: int,
    held: NDArray[np.int32],
) -> tuple[ComplexArray, ComplexArray]:
    """All on the first rank, by LAPACK, without the held degrees of freedom."""
    start, end = K.getOwnershipRange()
    mine = tuple(None if A is None else _rows(A) for A in (M, C, K))
    parts = comm.gather((mine, np.asarray(held) + start, end - start), root=0)
    pieces: list[Any] | None = None
    values = None
    with agreed(comm):
        if parts is not None:
            fixed = np.concatenate([part[1] for part in parts])
            free = np.setdiff1d(np.arange(K.getSize()[0]), fixed)
            grid = np.ix_(free, free)
            m, c, k = (
                None
                if parts[0][0][i] is None
                else scipy.sparse.vstack([part[0][i] for part in parts]).toarray()[grid]
                for i in range(3)
            )
            assert m is not None and k is not None
            values, v = dense_modes(m, c, k, num_modes)
            full = np.zeros((K.getSize()[0], v.shape[1]), dtype=complex)
            full[free] = v
            pieces = np.split(full, np.cumsum([part[2] for part in parts])[:-1])
    local = comm.scatter(pieces, root=0)
    return comm.bcast(values, root=0), np.asfortranarray(local)


def _rows(A: PETSc.Mat) -> scipy.sparse.csr_matrix:
    indptr, columns, values = A.getValuesCSR()
    return scipy.sparse.csr_matrix(
        (values, columns, indptr), shape=(len(indptr) - 1, A.getSize()[1])
    )
