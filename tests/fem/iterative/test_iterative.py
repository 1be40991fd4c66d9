"""The iterative solver: the same body and the same errors as with a factorization."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import STEEL, ElasticModel, InterfaceSpec, ReductionOptions, reduce
from dolfinx_mbd.errors import InputError, MeshError
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.fem.interfaces.averaged import border_rows
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface, mesh_interfaces
from dolfinx_mbd.fem.iterative import solver_choice
from dolfinx_mbd.fem.iterative.modes import lowest_modes_iteratively
from dolfinx_mbd.fem.iterative.preconditioner import linear_interpolation
from dolfinx_mbd.fem.iterative.solver import IterativeSolver
from dolfinx_mbd.fem.iterative.solver_choice import choose_solver
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram, multiply, solve
from dolfinx_mbd.fem.linalg.eigenvalues import EigenError
from dolfinx_mbd.fem.linalg.factorization import FactorizationError, cholesky
from dolfinx_mbd.fem.linalg.lobpcg import lobpcg
from dolfinx_mbd.fem.linalg.memory import factorization_memory
from dolfinx_mbd.fem.linalg.solver_convergence import IterationError, Stagnation, round_off_level
from dolfinx_mbd.fem.linalg.sparse_matrices import bordered_stiffness, constrain
from dolfinx_mbd.forms import strain
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from tests.models.bodies import box
from tests.models.calls import flat

CELLS = (8, 3, 2)
AVERAGED = InterfaceSpec("right", kind="averaged")


def held(
    comm: MPI.Intracomm, kind: str = "rigid", degree: int = 2
) -> tuple[ElasticProblem, tuple[MeshInterface, ...], np.ndarray]:
    """Return the problem of a box, its two ends and the dofs that rigid ends hold."""
    mesh = box(comm, cells=CELLS, cell=CellType.tetrahedron)
    problem = elastic_problem(ElasticModel(mesh, STEEL, degree=degree))
    ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(("left", "right"), kind))
    rigid = [i.dofs for i in ends if i.kind == "rigid"]
    return problem, ends, np.concatenate([*rigid, np.zeros(0, np.int32)])


def random(solver: IterativeSolver, columns: int) -> np.ndarray:
    """Return random vectors for a solver, distributed over the ranks."""
    rng = np.random.default_rng(solver.comm.rank)
    return np.asfortranarray(rng.standard_normal((solver.rows, columns)))


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_solution_is_the_factors(comm: MPI.Intracomm, kind: str) -> None:
    """Eleven loads in two blocks have the solution of a factorization, with its multipliers."""
    problem, ends, dofs = held(comm, kind)
    border = border_rows(problem.num_owned, ends)
    K = problem.stiffness.copy()
    constrain(K, dofs, 1.0)
    A = K if border is None else bordered_stiffness(K, border)
    ksp = cholesky(A, prefix="test_", negative=0 if border is None else border.shape[1])
    solver = IterativeSolver(problem.stiffness, problem.space, dofs, border, prefix="test_")
    B = random(solver, 11)
    count = 0 if border is None else border.shape[1]
    values = np.random.default_rng(7).standard_normal((count, 11))
    last = comm.rank == comm.size - 1  # (includes the constraints)
    whole = solve(ksp, np.asfortranarray(np.vstack([B, values]) if last else B))
    expected = whole[: problem.num_owned], comm.bcast(whole[problem.num_owned :], comm.size - 1)
    for solution, exact in zip(solver.solve(B, values), expected, strict=True):
        size = np.max(comm.allgather(np.abs(exact).max(axis=0, initial=0.0)), axis=0)
        assert np.abs((solution - exact) / size).max(initial=0.0) < 1e-7
    assert solver.iterations[1] == 11
    assert solver.iterations[0] / 11 < 60  # on average for one load
    assert not solver.solve(0 * B[:, :1])[0].any()
    solver.destroy()
    ksp.destroy()


@pytest.mark.parametrize("degree", [1, 2])
def test_preconditioner_is_symmetric_and_positive(comm: MPI.Intracomm, degree: int) -> None:
    """The preconditioner is linear, symmetric and positive, as conjugate gradients require."""
    problem, _, dofs = held(comm, degree=degree)
    solver = IterativeSolver(problem.stiffness, problem.space, dofs, prefix="test_")
    X = random(solver, 4)
    X[dofs] = 0.0
    Y = solver.precondition(X)
    G = gram(comm, X, Y)
    assert np.abs(G - G.T).max() < 1e-10 * np.abs(G).max()
    assert np.linalg.eigvalsh(G).min() > 0
    W = X @ np.diag([1.0, -2.0, 3.0, 0.5])
    W[:, 0] += X[:, 3]
    expected = Y @ np.diag([1.0, -2.0, 3.0, 0.5])
    expected[:, 0] += Y[:, 3]
    assert np.abs(solver.precondition(W) - expected).max() < 1e-10 * np.abs(Y).max()
    solver.destroy()


def test_coarse_functions_are_linear_elements(comm: MPI.Intracomm) -> None:
    """P reproduces a rigid motion if the body is not held."""
    problem, _, _ = held(comm)
    P, coarse_held, positions = linear_interpolation(problem.space, np.zeros(0, np.int32))
    assert len(coarse_held) == 0
    coarse = np.column_stack([1 + positions[:, 1], 2 - positions[:, 0], np.full(len(positions), 3)])
    v = fem.Function(problem.space)
    v.interpolate(lambda x: np.vstack([1 + x[1], 2 - x[0], 3 + 0 * x[0]]))
    fine = multiply(P, coarse.reshape(-1, 1))[:, 0]
    assert np.allclose(fine, v.x.array[: len(fine)], atol=1e-13)
    P.destroy()


def test_held_unknowns_of_linear_elements(comm: MPI.Intracomm) -> None:
    """The held unknowns are those of the held vertices, and P is zero there."""
    problem, _, dofs = held(comm)
    P, coarse_held, positions = linear_interpolation(problem.space, dofs)
    at_ends = np.isin(
        np.round(positions[:, 0], 9),
        np.round([0.0, comm.allreduce(problem.positions[:, 0].max(initial=0.0), op=MPI.MAX)], 9),
    )
    assert np.array_equal(np.unique(coarse_held // 3), np.flatnonzero(at_ends))
    X = np.ones((P.getLocalSize()[1], 1), order="F")
    assert not multiply(P, X)[dofs].any()
    P.destroy()


@pytest.mark.parametrize(
    ("options", "interfaces"),
    [
        ({}, ["left", "right"]),
        ({"cell": CellType.hexahedron}, {"left": "left", "right": AVERAGED}),
        ({"degree": 1}, ["left", "right"]),
        ({"degree": 3, "cells": (4, 2, 1)}, ["left", "right"]),
    ],
    ids=["two rigid", "rigid and averaged", "linear elements", "cubic elements"],
)
def test_body_is_the_same(comm: MPI.Intracomm, options: dict, interfaces: dict) -> None:
    """Elastic frequencies agree to 1e-8, and the lower half of them to 1e-9."""
    cell = options.get("cell", CellType.tetrahedron)
    mesh = box(comm, cells=options.get("cells", CELLS), cell=cell)
    settings = {"interfaces": interfaces, "num_modes": 6, "degree": options.get("degree", 2)}
    bodies = [
        flat(reduce, mesh, STEEL, solver=solver, skin=False, **settings).body
        for solver in ("direct", "iterative")
    ]
    error = np.abs(bodies[1].frequencies / bodies[0].frequencies - 1)
    assert error.max() < 1e-8
    assert error[: len(error) // 2].max() < 1e-9


def test_coarse_level_without_a_factor(comm: MPI.Intracomm) -> None:
    """Algebraic multigrid on the coarse level gives the same solution in more iterations."""
    problem, _, dofs = held(comm)
    options = {"mg_coarse_pc_type": "gamg"}
    exact = IterativeSolver(problem.stiffness, problem.space, dofs, prefix="test_")
    solver = IterativeSolver(
        problem.stiffness, problem.space, dofs, prefix="test_", options=options
    )
    B = random(solver, 2)
    X, expected = solver.solve(B)[0], exact.solve(B)[0]
    assert np.abs(X - expected).max() < 1e-7 * np.abs(expected).max()
    assert exact.iterations[0] <= solver.iterations[0] < 2.5 * exact.iterations[0]
    exact.destroy()
    solver.destroy()


def test_no_copy_of_the_stiffness_is_changed(comm: MPI.Intracomm) -> None:
    """Constraints apply to vectors only: K of the free body does not change in a calculation."""
    problem, _, dofs = held(comm)
    before = problem.stiffness.norm()
    solver = IterativeSolver(problem.stiffness, problem.space, dofs, prefix="test_")
    values, vectors = lowest_modes_iteratively(solver, problem, 4)
    assert problem.stiffness.norm() == before
    assert np.allclose(gram(comm, vectors, problem.apply_mass(vectors)), np.eye(4), atol=1e-9)
    energies = column_sums(comm, vectors, multiply(problem.stiffness, vectors))
    assert np.allclose(energies, values, rtol=1e-9)
    assert np.abs(vectors[dofs]).max(initial=0.0) == 0.0
    solver.destroy()


@pytest.mark.parametrize("multiplicity", [1, 3])
def test_lobpcg_on_known_eigenvalues(comm: MPI.Intracomm, multiplicity: int) -> None:
    """All multiple eigenvalues of diagonal matrices converge, even with a poor preconditioner."""
    rows = 120
    begin = comm.rank * rows
    eigenvalues = np.arange(begin, begin + rows) // multiplicity + 1.0
    noise = 1 + 0.3 * np.sin(np.arange(begin, begin + rows))
    start = np.random.default_rng(comm.rank).standard_normal((9, rows)).T.copy(order="F")
    values, vectors = lobpcg(
        comm,
        lambda X: eigenvalues[:, None] * X,
        lambda X: X.copy(order="F"),
        lambda R: np.asfortranarray(R * (noise / eigenvalues)[:, None]),
        start,
        5,
        tolerance=1e-14,
    )
    expected = np.sort(np.concatenate(comm.allgather(eigenvalues)))[:5]
    assert np.allclose(values, expected, rtol=1e-11)
    assert np.allclose(gram(comm, vectors, vectors), np.eye(5), atol=1e-10)


def test_tolerance_below_round_off(comm: MPI.Intracomm) -> None:
    """Conjugate gradients stop at the level of round-off."""
    problem, _, dofs = held(comm)
    solver = IterativeSolver(problem.stiffness, problem.space, dofs, prefix="test_")
    B = random(solver, 3)
    B[dofs] = 0.0
    X = solver.solve(B, tolerance=1e-10)[0]
    before = int(solver.iterations[0])
    Y = solver.solve(B, tolerance=1e-100)[0]
    assert solver.iterations[0] - before < 2 * before
    assert np.abs(X - Y).max() < 1e-8 * np.abs(Y).max()
    R = B - solver.multiply(Y)
    assert (round_off_level(comm, solver.scale, R, Y) < 100).all()
    solver.destroy()


def test_stagnation_is_detected() -> None:
    """Stagnation: ten iterations do not halve the error, after a first interval of decrease."""
    stagnation = Stagnation()
    falling = [stagnation.check(k, 0.9**k) for k in range(31)]
    assert not any(falling)
    constant = [stagnation.check(k, 0.9**30) for k in range(31, 41)]
    assert constant == 9 * [False] + [True]


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
def test_stagnation_of_the_eigenvalue_iteration(comm: MPI.Intracomm, kind: str) -> None:
    """For a rod 200 times as long as thick, the solvers agree to 1e-6 in spite of round-off."""
    mesh = box(comm, (1.0, 0.005, 0.005), (200, 1, 1), CellType.tetrahedron)
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    ends = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(("left", "right"), kind))
    squares = []
    for solver in ("direct", "iterative"):
        body = HeldStiffness(problem, ends, "test_", None, solver)
        squares.append(body.modes(6)[0])
        body.destroy()
    # With any solver, round-off causes a relative error ε κ (machine precision, condition).
    assert np.abs(squares[1] / squares[0] - 1).max() < 1e-6


@pytest.mark.slow
def test_thin_plate(comm: MPI.Intracomm) -> None:
    """Cells six times as long as thick converge; cells 25 times as long raise an error."""
    bodies = []
    for solver in ("direct", "iterative"):
        mesh = box(comm, (0.2, 0.2, 0.004), (8, 8, 1), CellType.tetrahedron)
        options = {"interfaces": ["left", "right"], "num_modes": 4, "skin": False}
        bodies.append(flat(reduce, mesh, STEEL, solver=solver, stiffening=False, **options).body)
    assert np.abs(bodies[1].frequencies / bodies[0].frequencies - 1).max() < 1e-7
    mesh = box(comm, (0.2, 0.2, 0.001), (8, 8, 1), CellType.tetrahedron)
    with pytest.raises(IterationError) as error:
        reduce(mesh, STEEL, interfaces=["left", "right"], num_modes=1, solver="iterative")
    assert error.value.iterations == 500
    assert error.value.error > error.value.tolerance == 1e-10
    assert isinstance(pickle.loads(pickle.dumps(error.value)), IterationError)


@pytest.mark.parametrize("solver", ["direct", "iterative"])
def test_one_averaged_interface(comm: MPI.Intracomm, solver: str) -> None:
    """A single averaged interface carries no force, so the test compares frequencies only."""
    mesh = box(comm, cells=CELLS, cell=CellType.tetrahedron)
    settings = {"num_modes": 6, "kind": "averaged", "skin": False}
    body = flat(reduce, mesh, STEEL, interfaces=["left"], solver=solver, **settings).body
    free = reduce(
        mesh, STEEL, interfaces=[], num_modes=2, options=ReductionOptions(skin=False)
    ).body
    ratio = body.frequencies[:2] / free.frequencies
    assert ((ratio > 1 - 1e-9) & (ratio < 1.02)).all()  # (Ritz values of a subspace are higher)


def test_negative_stiffness_is_refused_by_both_iterations(comm: MPI.Intracomm) -> None:
    """Both iterations detect a negative stiffness that the coarse level does not reveal."""
    problem, _, dofs = held(comm)
    solver = IterativeSolver(problem.stiffness, problem.space, dofs, prefix="test_")
    solver.matrix.scale(-1.0)
    with pytest.raises(FactorizationError, match=r"not positive definite.*not held") as error:
        solver.solve(random(solver, 2))
    assert isinstance(error.value, IterationError)
    with pytest.raises(EigenError, match="not positive definite") as error:
        lowest_modes_iteratively(solver, problem, 2)
    assert isinstance(error.value, IterationError)
    solver.destroy()


def negative(mesh, solver: str) -> None:
    """Reduce a body whose energy density is negative under a change of volume."""
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    density = 2e11 * ufl.inner(strain(u), strain(v)) - 1.9e11 * ufl.tr(strain(u)) * ufl.tr(
        strain(v)
    )
    reduce(
        ElasticModel(mesh, space=V, stiffness=density * ufl.dx, density=7800.0),
        interfaces=["left", "right"],
        num_modes=2,
        solver=solver,
    )


@pytest.mark.parametrize("solver", ["direct", "iterative"])
def test_both_solvers_raise_the_same_errors(comm: MPI.Intracomm, solver: str) -> None:
    """The bodies are a hinge with one loose half, and one with a negative stiffness."""
    hinged = box(comm, cells=(8, 4, 2), hinge=True)
    with pytest.raises(MeshError):
        reduce(hinged, STEEL, interfaces=["left"], num_modes=2, solver=solver)
    with pytest.raises(FactorizationError, match="not positive definite"):
        negative(box(comm, cells=CELLS), solver)


def test_bad_settings_are_refused(comm: MPI.Intracomm) -> None:
    """The error names the argument and valid values."""
    mesh = box(comm, cells=(2, 1, 1))
    arguments = {"interfaces": ["left", "right"], "solver": "iterative"}
    with pytest.raises(ValueError, match=r"too many for an iterative solver.*solver='direct'"):
        # 18 modes and 4 guard vectors need 4 free dofs each, 88; the mesh has 81.
        reduce(mesh, STEEL, num_modes=18, **arguments)
    with pytest.raises(ValueError, match="degree 2 or more; use degree=2"):
        flat(reduce, mesh, STEEL, degree=1, num_modes=1, kind="averaged", **arguments)
    with pytest.raises(InputError) as error:
        reduce(mesh, STEEL, interfaces=["left"], solver="cg")  # type: ignore[arg-type]
    assert (error.value.argument, error.value.value) == ("solver", "cg")


def test_choice_by_memory(comm: MPI.Intracomm, monkeypatch: pytest.MonkeyPatch) -> None:
    """The iterative solver is chosen automatically if a factor would not fit into memory."""
    problem, _, _ = held(comm)
    assert factorization_memory(2_000_000) > 2 * factorization_memory(1_000_000)
    assert choose_solver(problem, "auto") == "direct"
    monkeypatch.setattr(solver_choice, "free_memory", lambda comm: 1e3)
    assert choose_solver(problem, "auto") == "iterative"
    assert choose_solver(problem, "direct") == "direct"
