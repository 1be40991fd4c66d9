"""V9: Craig-Bampton of a free-free Hermite beam, small matrices through the reduction's core.

V9 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.dense_problems import solve_small_problem
from dolfinx_mbd.fem.linalg.eigenvalues import lowest_modes
from dolfinx_mbd.fem.linalg.factorization import cholesky
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain

Array = NDArray[np.float64]

ELEMENTS = {"LAPACK": 60, "Krylov-Schur": 100}
"""Numbers of elements for which a solver is used; the relative error is (βh)⁴/1440 ≤ 2e-6."""

EXACT = np.array([4.730041, 7.853205, 10.995608, 14.137165]) ** 2
"""ω of the first four modes for E I = ρ A = L = 1."""

TABLE = {
    2: (3.6e-3, 4.4e-3),
    4: (4.1e-4, 9.2e-4, 4.3e-3, 3.9e-3),
    8: (2.6e-5, 9.6e-5, 4.7e-4, 6.4e-4),
    12: (4.3e-6, 2.0e-5, 9.2e-5, 1.5e-4),
}
"""Relative errors of the frequencies by the number of fixed-interface modes, from case V9."""

DIGITS = 2.5e-7
"""Error of EXACT, whose βL has seven digits; TABLE has two digits of the error."""


def beam(elements: int) -> tuple[Array, Array, Array]:
    """Return K, M and both rigid motions of a free beam with degrees of freedom (w, w')."""
    h = 1 / elements
    k = np.array([[12, 6, -12, 6], [6, 4, -6, 2], [-12, -6, 12, -6], [6, 2, -6, 4]]) / h**3
    m = np.array([[156, 22, 54, -13], [22, 4, 13, -3], [54, 13, 156, -22], [-13, -3, -22, 4]])
    scale = np.diag([1, h, 1, h])
    n = 2 * elements + 2
    K, M = np.zeros((n, n)), np.zeros((n, n))
    for e in range(elements):
        dofs = slice(2 * e, 2 * e + 4)
        K[dofs, dofs] += scale @ k @ scale
        M[dofs, dofs] += scale @ m @ scale * h / 420
    x = np.linspace(0, 1, elements + 1)
    R = np.zeros((n, 2))
    R[0::2, 0] = 1
    R[0::2, 1], R[1::2, 1] = x - 0.5, 1
    return K, M, R


def petsc(A: Array) -> PETSc.Mat:
    """Return a PETSc matrix from an array."""
    sparse = scipy.sparse.csr_matrix(A)
    csr = sparse.indptr, sparse.indices, sparse.data
    return PETSc.Mat().createAIJ(A.shape, csr=csr, comm=MPI.COMM_SELF)


def craig_bampton(elements: int, num_modes: int) -> Array:
    """Return ω with both ends as interfaces (w, w') and a number of fixed-interface modes."""
    K, M, R = beam(elements)
    n = len(K)
    held = np.array([0, 1, n - 2, n - 1], dtype=np.int32)
    T = np.asfortranarray(np.eye(n)[:, held])  # unit motions of the ends
    stiffness, inner, mass = petsc(K), petsc(K), petsc(M)
    constrain(inner, held, 1.0)
    constrain(mass, held, 0.0)
    ksp = cholesky(inner, prefix="test_beam_")
    B = -multiply(stiffness, T)
    B[held] = T[held]
    constraint = solve(ksp, B)
    _, fixed = lowest_modes(inner, mass, ksp, num_modes, held, prefix="test_beam_")
    basis = np.hstack([constraint, fixed])
    for item in (ksp, stiffness, inner, mass):
        item.destroy()
    squares, _, dropped = solve_small_problem(
        basis.T @ K @ basis, basis.T @ M @ basis, basis.T @ M @ R
    )
    assert not dropped
    assert len(squares) == 2 + num_modes  # four constraint modes, two of them rigid motions
    return np.sqrt(squares)


@pytest.mark.parametrize("num_modes", TABLE)
@pytest.mark.parametrize("solver", ELEMENTS)
def test_errors_agree_with_the_table(solver: str, num_modes: int) -> None:
    """Errors agree with both digits of the table, and are positive."""
    table = np.array(TABLE[num_modes])
    error = craig_bampton(ELEMENTS[solver], num_modes)[: len(table)] / EXACT[: len(table)] - 1
    assert (error > 0).all()
    last_digit = 10.0 ** (np.floor(np.log10(table)) - 1)
    mesh = EXACT[: len(table)] ** 2 / ELEMENTS[solver] ** 4 / 1440
    assert (np.abs(error - table) < 0.5 * last_digit + mesh + DIGITS).all()


def test_more_modes_never_raise_a_frequency() -> None:
    """The spaces are nested, so each Rayleigh-Ritz value falls."""
    values = [craig_bampton(60, n)[:4] for n in range(2, 13)]
    assert (np.diff(values, axis=0) < 1e-8 * EXACT).all()
