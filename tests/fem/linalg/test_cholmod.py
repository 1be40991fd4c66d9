"""Factors of CHOLMOD with METIS on the nodes: against LAPACK, PETSc's CHOLMOD and MUMPS."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd import ElasticModel, InterfaceSpec
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg import cholmod, factorization
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.cholmod import CholmodError, CholmodFactor
from dolfinx_mbd.fem.linalg.factorization import cholesky, factor_package, held_cholesky
from dolfinx_mbd.fem.linalg.single_precision import SingleFactor
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.forms import STEEL
from tests.models.bodies import box

Array = np.ndarray
MUMPS = {"pc_factor_mat_solver_type": "mumps"}

pytestmark = pytest.mark.skipif(
    MPI.COMM_WORLD.size > 1 or cholmod.library() is None,
    reason="CHOLMOD 5 with PETSc, on one rank",
)


def held_bar(cells: tuple[int, int, int] = (9, 2, 2), length: float = 0.2) -> PETSc.Mat:
    """Return K of a bar held at its left end."""
    mesh = box(MPI.COMM_SELF, (length, 0.02, 0.02), cells)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    (end,) = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(("left",), "rigid"))
    constrain(problem.stiffness, end.dofs, 1.0)
    problem.stiffness.setAttr("mesh", mesh)  # DOLFINx 0.9 may crash if a matrix outlives its mesh
    return problem.stiffness


def loads(A: PETSc.Mat, count: int = 5) -> Array:
    """Return products of A with random vectors, shape (rows, count)."""
    return multiply(A, np.random.default_rng(count).standard_normal((count, A.getSize()[0])).T)


def dense(A: PETSc.Mat) -> Array:
    """Return a matrix as an array."""
    indptr, columns, values = A.getValuesCSR()
    return scipy.sparse.csr_matrix((values, columns, indptr), shape=A.getSize()).toarray()


@pytest.mark.parametrize("small", [10, 10**9])
@pytest.mark.parametrize("block", [1, 3])
def test_solutions_are_those_of_lapack(
    small: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """METIS orders nodes (blocks of 3) or rows; CHOLMOD orders matrices below `small` rows."""
    monkeypatch.setattr(cholmod, "SMALL", small)
    A = held_bar()
    B = loads(A)
    monkeypatch.setattr(cholmod, "_upper_triangle", lambda *_: upper)
    upper = scipy.sparse.csr_matrix(np.triu(dense(A)))
    # an empty matrix with the size of the blocks; its entries are those of `upper`
    sized = PETSc.Mat().createAIJ(A.getSize(), bsize=block, nnz=1, comm=MPI.COMM_SELF)
    factor = CholmodFactor(sized)
    exact = scipy.linalg.solve(dense(A), B, assume_a="pos")
    assert np.abs(factor.solve(B) - exact).max() < 1e-9 * np.abs(exact).max()
    assert np.abs(factor.solve(B[:, 2:3]) - exact[:, 2:3]).max() < 1e-9 * np.abs(exact).max()
    factor.destroy()


def test_nodes_are_ordered_as_a_whole() -> None:
    """The ordering is a permutation in which the three rows of a node are neighbours."""
    A = held_bar((30, 3, 3))
    upper = cholmod._upper_triangle(A)
    order = CholmodFactor(A)._node_ordering(upper, A.getBlockSize())
    assert np.array_equal(np.sort(order), np.arange(A.getSize()[0]))
    assert np.array_equal(order.reshape(-1, 3) - order[::3, None], [[0, 1, 2]] * (len(order) // 3))


@pytest.mark.parametrize("cells", [(60, 3, 3), (9, 9, 9)])
def test_entries_of_a_factor_are_counted_without_a_matrix(cells: tuple[int, int, int]) -> None:
    """The expected numbers for a bar and a cube are within 25 % of those of the factors."""
    mesh = box(MPI.COMM_SELF, (0.02 * cells[0] / cells[1], 0.02, 0.02), cells)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    (end,) = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(("left",), "rigid"))
    constrain(problem.stiffness, end.dofs, 1.0)
    factor = CholmodFactor(problem.stiffness)
    expected = cholmod.expected_entries(problem.space.dofmap.list, 3)
    assert expected == pytest.approx(factor._head().xsize, rel=0.25)
    factor.destroy()


def test_upper_triangle_contains_no_zeros() -> None:
    """Held rows and columns are stored as zeros; they have one entry each in the upper triangle."""
    A = held_bar()
    upper = cholmod._upper_triangle(A)
    assert np.array_equal(upper.toarray(), np.triu(dense(A)))
    assert (upper.data != 0).all()
    assert upper.nnz < 0.5 * len(A.getValuesCSR()[2])


@pytest.mark.parametrize(("cells", "length"), [((40, 3, 3), 0.2), ((300, 1, 1), 10.0)])
def test_large_matrices_are_solved_as_accurately_as_by_mumps(
    cells: tuple[int, int, int], length: float
) -> None:
    """One bar is stout, the other is 500 times as long as thick."""
    A = held_bar(cells, length)
    assert A.getSize()[0] > cholmod.SMALL
    rng = np.random.default_rng(3)
    exact = np.asfortranarray(rng.standard_normal((A.getSize()[0], 3)))
    B = multiply(A, exact)
    errors = []
    for options in (None, MUMPS):
        ksp = cholesky(A, prefix="cholmod_test_", options=options)
        residual = multiply(A, solve(ksp, B)) - B
        errors.append(np.abs(residual).max() / np.abs(B).max())
        assert factor_package(ksp) == ("mumps" if options else "cholmod")
        ksp.destroy()
    assert errors[0] < 10 * errors[1] + 1e-15


def test_changed_matrices_are_factorized_again() -> None:
    """PETSc calls the factorization if the values of the matrix have changed."""
    A = held_bar()
    B = loads(A)
    ksp = cholesky(A, prefix="cholmod_test_")
    before = solve(ksp, B)
    assert np.array_equal(solve(ksp, B), before)
    A.scale(2.0)
    assert np.allclose(solve(ksp, B), before / 2, rtol=1e-9, atol=1e-9 * np.abs(before).max())
    ksp.solve(b := A.createVecLeft(), x := A.createVecRight())  # a zero load
    assert x.norm() == b.norm() == 0.0


def test_matrices_that_are_not_positive_raise_an_error() -> None:
    """The test makes one entry in the middle of the diagonal negative."""
    A = held_bar()
    row = A.getSize()[0] // 2
    A[row, row] = -1e3
    A.assemble()
    with pytest.raises(CholmodError):
        CholmodFactor(A)


@pytest.mark.parametrize("cause", ["options", "library"])
def test_petsc_calls_cholmod_otherwise(cause: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PETSc calls CHOLMOD if there are options for it, or another version of the library."""
    A = held_bar()
    B = loads(A)
    expected = solve(cholesky(A, prefix="cholmod_test_"), B)
    if cause == "library":
        monkeypatch.setattr(factorization, "library", lambda: None)
    options = {"mat_cholmod_supernodal_switch": 0.0} if cause == "options" else None
    ksp = cholesky(A, prefix="cholmod_test_", options=options)
    assert ksp.getPC().getType() == "cholesky"
    assert factor_package(ksp) == "cholmod"
    assert np.allclose(solve(ksp, B), expected, rtol=0, atol=1e-9 * np.abs(expected).max())


def test_other_parameters_of_cholmod_are_recognized(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A library with other default values in its parameters is not called directly."""
    monkeypatch.setitem(cholmod._DEFAULTS, cholmod._NUM_METHODS, 7)
    with caplog.at_level("INFO", "dolfinx_mbd"):
        assert cholmod.library.__wrapped__() is None
    assert "its parameters differ" in caplog.text


def test_held_rows_need_no_copy() -> None:
    """The factor of K with held rows equals that of a copy with unit rows; K does not change."""
    mesh = box(MPI.COMM_SELF, (0.2, 0.02, 0.02), (40, 3, 3))
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    (end,) = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(("left",), "rigid"))
    # the rows of an end, and one of the three rows of another node
    held = np.append(end.dofs, problem.num_owned - 1).astype(np.int32)
    K = problem.stiffness
    before = [part.copy() for part in K.getValuesCSR()]
    A = K.copy()
    constrain(A, held, 1.0)
    B = loads(A)
    expected = solve(cholesky(A, prefix="cholmod_test_"), B)
    upper = cholmod._upper_triangle(K, held)
    assert (upper != cholmod._upper_triangle(A)).nnz == 0
    for options in (None, MUMPS, {"mat_cholmod_print": 0}):
        ksp = held_cholesky(K, held, prefix="cholmod_test_", options=options)
        assert (ksp.getOperators()[0].handle == K.handle) == (options is None)
        assert np.allclose(solve(ksp, B), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        ksp.destroy()
    single = SingleFactor(K, held)
    solution = single.solve(B)
    assert single.is_single
    assert np.allclose(solution, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    single.destroy()
    assert all(map(np.array_equal, K.getValuesCSR(), before))


def test_entries_of_petsc_are_not_copied() -> None:
    """The arrays are those of PETSc; the values are a view of its memory."""
    A = held_bar()
    with cholmod._entries(A) as (indptr, indices, values):
        expected = A.getValuesCSR()
        assert all(map(np.array_equal, (indptr, indices, values), expected))
        assert not values.flags.owndata
