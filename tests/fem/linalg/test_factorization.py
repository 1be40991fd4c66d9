"""Factorization, counts of eigenvalues and orthogonalization of matrices with known results."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.fem.linalg.blocks import gram, multiply, solve
from dolfinx_mbd.fem.linalg.dense_problems import independent_columns, solve_small_problem
from dolfinx_mbd.fem.linalg.factorization import (
    FactorizationError,
    cholesky,
    count_below,
    factor_package,
)
from dolfinx_mbd.fem.modal import modal_analysis
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.structures.rotating import rotating_structure
from tests.models.bodies import box
from tests.models.calls import flat

SIZE = 40


def chain(comm: MPI.Intracomm, ground: float) -> PETSc.Mat:
    """Return K of a chain of masses and unit springs; a spring `ground` holds its first mass."""
    A = PETSc.Mat().createAIJ(SIZE, nnz=3, comm=comm)
    for i in range(*A.getOwnershipRange()):
        A[i, i] = 2.0 if 0 < i < SIZE - 1 else 1.0 + (ground if i == 0 else 0.0)
        for j in (i - 1, i + 1):
            if 0 <= j < SIZE:
                A[i, j] = -1.0
    A.assemble()
    return A


def identity(A: PETSc.Mat) -> PETSc.Mat:
    """Return the identity matrix with the pattern of `A`."""
    M = A.copy()
    M.zeroEntries()
    M.shift(1.0)
    return M


def test_solve_with_many_right_hand_sides(comm: MPI.Intracomm) -> None:
    """A A⁻¹B = B, where one call solves for all columns of B."""
    A = chain(comm, 1.0)
    owned = A.getLocalSize()[0]
    B = np.asfortranarray(np.random.default_rng(comm.rank).standard_normal((owned, 5)))
    ksp = cholesky(A, prefix="la_test_")
    if comm.size > 1:
        # ICNTL(14) is the percentage of additional memory.
        assert ksp.getPC().getFactorMatrix().getMumpsIcntl(14) == 100
    assert not PETSc.Options("la_test_").hasName("mat_mumps_icntl_14")
    assert np.allclose(multiply(A, solve(ksp, B)), B, atol=1e-10)
    assert np.allclose(gram(comm, B, B), gram(comm, B, B).T)
    assert multiply(A, B[:, :0]).shape == (owned, 0)


@pytest.mark.parametrize("ground", [-1e-3, -1.0])
def test_indefinite_matrices_are_refused(comm: MPI.Intracomm, ground: float) -> None:
    """MUMPS itself does not notice that a matrix is not definite."""
    with pytest.raises(FactorizationError, match=r"not positive definite|singular"):
        cholesky(chain(comm, ground), prefix="la_test_")


def test_the_package_is_logged_and_may_be_chosen(
    comm: MPI.Intracomm, caplog: pytest.LogCaptureFixture
) -> None:
    """CHOLMOD on one rank if it is available; MUMPS on several ranks and on request."""
    A = chain(comm, 1.0)
    chosen: tuple[dict[str, object] | None, ...] = (
        None,
        {"pc_factor_mat_solver_type": "mumps"},
        {"mat_mumps_icntl_7": 0},
    )
    with caplog.at_level(logging.INFO, "dolfinx_mbd"):
        used = [
            factor_package(cholesky(A, prefix="la_test_", options=options)) for options in chosen
        ]
    serial = comm.size == 1 and PETSc.Sys.hasExternalPackage("cholmod")
    assert used == ["cholmod" if serial else "mumps", "mumps", "mumps"]
    messages = [r.getMessage() for r in caplog.records]
    assert all(
        f"{SIZE} rows: cholesky by {name}" in text
        for name, text in zip(used, messages, strict=True)
    )
    assert all(
        "ordering" in text for name, text in zip(used, messages, strict=True) if name == "mumps"
    )


def test_count_is_sturms(comm: MPI.Intracomm) -> None:
    """Eigenvalues of a free chain are 4 sin²(kπ/2n)."""
    A = chain(comm, 0.0)
    exact = 4 * np.sin(np.arange(SIZE) * np.pi / (2 * SIZE)) ** 2
    for value in (-1e-6, 1e-6, 0.5, 2.001, 5.0):
        assert count_below(A, identity(A), value) == np.sum(exact < value)


def test_dependent_columns_are_found() -> None:
    """One column is a copy of another one, one is the difference of two others."""
    X = np.random.default_rng(1).standard_normal((30, 6))
    X[:, 3] = X[:, 0]
    X[:, 5] = X[:, 1] - X[:, 2]
    X /= np.linalg.norm(X, axis=0)
    independent = independent_columns(X.T @ X, 1e-10)
    assert len(independent) == 4
    assert np.linalg.matrix_rank(X[:, independent]) == 4


def test_dependent_columns_do_not_change_the_modes() -> None:
    """The basis contains a column twice, with different scales."""
    rng = np.random.default_rng(2)
    n, m = 40, 12
    L = rng.standard_normal((n, n - 6))
    Psi = rng.standard_normal((n, m))
    R = np.linalg.svd(L.T)[2][-6:].T  # basis of the null space of K
    Psi[:, :6] = R
    K = L @ L.T
    exact, transform, dropped = solve_small_problem(Psi.T @ K @ Psi, Psi.T @ Psi, Psi.T @ R)
    assert not dropped
    assert np.allclose(transform.T @ Psi.T @ Psi @ transform, np.eye(6))
    assert np.allclose(R.T @ Psi @ transform, 0)
    more = np.column_stack([Psi, 1e3 * Psi[:, 7]])
    squares, _, dropped = solve_small_problem(more.T @ K @ more, more.T @ more, more.T @ R)
    assert len(dropped) == 1
    assert squares == pytest.approx(exact, rel=1e-9)


def test_an_iterative_solver_gives_the_same_body(comm: MPI.Intracomm) -> None:
    """PETSc options replace the factorization by conjugate gradients."""
    options = {"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-13, "ksp_max_it": 5000}
    mesh = box(comm, cells=(4, 2, 1))
    arguments = {"interfaces": ["left", "right"], "num_modes": 3, "degree": 1}
    direct = flat(reduce, mesh, STEEL, **arguments).body
    iterative = flat(reduce, mesh, STEEL, petsc_options=options, **arguments).body
    assert iterative.frequencies == pytest.approx(direct.frequencies, rel=1e-8)


@pytest.mark.parametrize("preconditioner", ["jacobi", "gamg"])
def test_a_preconditioner_alone_is_no_solver(comm: MPI.Intracomm, preconditioner: str) -> None:
    """A preconditioner alone does not solve the system; results would be wrong."""
    options, mesh = {"pc_type": preconditioner}, box(comm, cells=(4, 2, 1))
    with pytest.raises(ValueError, match=f"pc_type={preconditioner}, which alone does not solve"):
        rotating_structure(mesh, STEEL, held=["left"], petsc_options=options)
    with pytest.raises(ValueError, match="ksp_type"):
        modal_analysis(mesh, STEEL, held=["left"], num_modes=1, petsc_options=options)


def test_options_of_the_whole_program(comm: MPI.Intracomm) -> None:
    """Options without a prefix, set by other code, have no effect or cause a clear error."""
    mesh, database = box(comm, cells=(4, 2, 1)), PETSc.Options()
    expected = modal_analysis(mesh, STEEL, num_modes=1).frequencies
    for key, value, message in (
        ("mat_type", "baij", "mat_type=baij in PETSc's database"),
        ("dolfinx_mbd_count_pc_type", "lu", "cannot be counted"),
        ("ksp_type", "gmres", None),
        ("pc_type", "none", None),
    ):
        database[key] = value
        try:
            if message is None:
                frequencies = modal_analysis(mesh, STEEL, num_modes=1).frequencies
                np.testing.assert_allclose(frequencies, expected, rtol=1e-9)
            else:
                with pytest.raises((ValueError, FactorizationError), match=message):
                    modal_analysis(mesh, STEEL, num_modes=1)
        finally:
            database.delValue(key)
