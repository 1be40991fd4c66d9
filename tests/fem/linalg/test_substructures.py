"""Factors of the substructures of ranks: solutions, nodes, matrices that are not definite."""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from dolfinx.mesh import CellType, GhostMode, Mesh, create_box
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd.fem.linalg import cholmod, substructures
from dolfinx_mbd.fem.linalg.blocks import multiply, solve
from dolfinx_mbd.fem.linalg.cholmod import CholmodError, CholmodFactor
from dolfinx_mbd.fem.linalg.factorization import FactorizationError, cholesky, factor_package
from dolfinx_mbd.fem.linalg.substructures import SubstructurePreconditioner, Substructures

Array = np.ndarray
COMM = MPI.COMM_WORLD

pytestmark = pytest.mark.skipif(cholmod.library() is None, reason="CHOLMOD 5 with PETSc")


def bar(
    cells: tuple[int, int, int], kind: CellType, ghosts: GhostMode, shift: float = 0.1
) -> tuple[Mesh, fem.FunctionSpace, PETSc.Mat]:
    """Return mesh, space and K + shift · M of a free bar."""
    mesh = create_box(COMM, [[0, 0, 0], [3, 1, 1]], cells, kind, ghost_mode=ghosts)
    V = fem.functionspace(mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    strain = ufl.inner(ufl.sym(ufl.grad(u)), ufl.sym(ufl.grad(v)))
    A = fem_petsc.assemble_matrix(fem.form((strain + shift * ufl.inner(u, v)) * ufl.dx))
    A.assemble()
    return mesh, V, A


def largest(values: Array) -> float:
    """Return the largest magnitude on all ranks."""
    return float(COMM.allreduce(np.abs(values).max() if values.size else 0.0, MPI.MAX))


@pytest.mark.parametrize("ghosts", [GhostMode.none, GhostMode.shared_facet])
@pytest.mark.parametrize("kind", [CellType.hexahedron, CellType.tetrahedron])
@pytest.mark.parametrize("cells", [(1, 1, 1), (2, 1, 1), (11, 2, 3), (4, 4, 4)])
def test_solutions(cells: tuple[int, int, int], kind: CellType, ghosts: GhostMode) -> None:
    """One and several vectors are solved for; a mesh of one cell leaves ranks without cells."""
    mesh, V, A = bar(cells, kind, ghosts)
    parts = Substructures.of(V)
    ksp = cholesky(A, prefix="test_", parts=parts)
    assert factor_package(ksp) == "cholmod"
    rows = A.getLocalSize()[0]
    X = np.random.default_rng(COMM.rank).standard_normal((4, rows)).T
    B = multiply(A, X)
    assert largest(solve(ksp, B) - X) < 1e-11
    b, x = A.createVecs()
    b.array[:] = B[:, 2]
    ksp.solve(b, x)
    assert largest(x.array_r - X[:, 2]) < 1e-11
    for item in (b, x, ksp, A):
        item.destroy()


def test_each_node_is_interior_to_one_rank_or_shared() -> None:
    """No node is interior to two ranks, and all ranks have the same list of shared nodes."""
    mesh, V, A = bar((6, 2, 2), CellType.hexahedron, GhostMode.shared_facet)
    parts = Substructures.of(V)
    interior = np.concatenate(COMM.allgather(parts.nodes[~parts.is_shared]))
    everything = np.sort(np.concatenate([interior, parts.shared]))
    assert np.array_equal(everything, np.arange(V.dofmap.index_map.size_global))
    shared = np.unique(np.concatenate(COMM.allgather(parts.nodes[parts.is_shared])))
    assert np.array_equal(shared, parts.shared)
    assert (len(shared) > 0) == (COMM.size > 1)
    A.destroy()


def test_many_shared_nodes_are_left_to_mumps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dense matrix of the shared unknowns would be too large."""
    mesh, V, A = bar((4, 2, 2), CellType.tetrahedron, GhostMode.none)
    parts = Substructures.of(V)
    monkeypatch.setattr(substructures, "MAX_SHARED", 3 * len(parts.shared) - 1)
    ksp = cholesky(A, prefix="test_", parts=parts)
    assert factor_package(ksp) == ("cholmod" if COMM.size == 1 else "mumps")
    ksp.destroy()
    A.destroy()


@pytest.mark.parametrize("shift", [-0.5, -300.0])
def test_matrix_that_is_not_positive_definite(shift: float) -> None:
    """All ranks raise the error of the ranks that have a bad pivot, and MUMPS explains it."""
    mesh, V, A = bar((8, 1, 1), CellType.hexahedron, GhostMode.none, shift)
    with pytest.raises(CholmodError):
        SubstructurePreconditioner(A, Substructures.of(V))
    with pytest.raises(FactorizationError, match="positive definite"):
        cholesky(A, prefix="test_", parts=Substructures.of(V))
    A.destroy()


@pytest.mark.parametrize("place", [0, -1])
def test_matrix_that_is_not_finite(place: int) -> None:
    """The matrix of an inverted cell raises an error on all ranks, in place of a crash of MUMPS."""
    mesh, V, A = bar((8, 1, 1), CellType.hexahedron, GhostMode.none)
    row = range(A.getSize()[0])[place]
    A.setValue(row, row, np.nan)
    A.assemble()
    with pytest.raises(FactorizationError, match="NaN"):
        cholesky(A, prefix="test_", parts=Substructures.of(V))
    A.destroy()


def test_corner_of_the_factor_is_the_schur_complement() -> None:
    """The last block L_s of the factor fulfils L_s L_sᵀ = A_ss − A_si A_ii⁻¹A_is for any rows s."""
    mesh = create_box(MPI.COMM_SELF, [[0, 0, 0], [3, 1, 1]], (9, 2, 2))
    V = fem.functionspace(mesh, ("Lagrange", 1, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    A = fem_petsc.assemble_matrix(
        fem.form((ufl.inner(ufl.grad(u), ufl.grad(v)) + ufl.inner(u, v)) * ufl.dx)
    )
    A.assemble()
    rng, size = np.random.default_rng(7), A.getSize()[0]
    full = A[:, :]
    for count in (3, 24, size - 6, size):
        last = np.zeros(size, dtype=bool)
        last[rng.permutation(size)[:count]] = True
        factor = substructures._PartFactor(A, last)
        assert isinstance(factor, CholmodFactor)
        s, i = factor.last_rows, np.flatnonzero(~last)
        schur = full[np.ix_(s, s)]
        if len(i):
            schur = schur - full[np.ix_(s, i)] @ np.linalg.solve(
                full[np.ix_(i, i)], full[np.ix_(i, s)]
            )
        error = np.abs(factor.corner @ factor.corner.T - schur).max()
        assert error < 1e-12 * np.abs(full).max()
        factor.destroy()
    A.destroy()
