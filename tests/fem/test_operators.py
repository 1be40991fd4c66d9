"""Full-order inertia operators through the scalar mass matrix: equal to the assembled forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from dolfinx.la import InsertMode
from dolfinx.mesh import CellType
from mpi4py import MPI
from petsc4py import PETSc

from dolfinx_mbd import ElasticModel, forms
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem, rigid_motions
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.meshing import build_mesh
from dolfinx_mbd.fem.operators import (
    apply_inertia,
    centrifugal,
    coriolis,
    frame_load,
    inertia_matrix,
    load_fields,
    spin_matrix,
)
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.geometry import ConnectingRod
from tests.models.bodies import box
from tests.models.plates import plate

THICKNESS = 0.012
MOTION: Mapping[int, dict[str, Any]] = {
    3: {
        "acceleration": np.array([3.0, -2.0, 0.7]),
        "omega": np.array([1.2, -0.4, 0.9]),
        "alpha": np.array([-0.3, 2.0, 0.8]),
        "gravity": np.array([0.2, 0.1, -9.81]),
    },
    2: {
        "acceleration": np.array([3.0, -2.0]),
        "omega": 1.7,
        "alpha": -2.3,
        "gravity": np.array([0.3, -9.81]),
    },
}
TERMS = ("mass", "coriolis", "centrifugal", "euler")


@pytest.fixture(scope="module", params=["box", "tetrahedra", "curved", "plate", "triangles"])
def problem(request: pytest.FixtureRequest) -> ElasticProblem:
    """Return bodies in space and in the plane, with straight and curved cells."""
    comm = MPI.COMM_WORLD
    plane: dict[str, Any] = {"plane": "stress", "thickness": THICKNESS}
    match request.param:
        case "box":
            return elastic_problem(ElasticModel(box(comm, cells=(4, 2, 1)), STEEL))
        case "tetrahedra":
            mesh = box(comm, cells=(3, 1, 1), cell=CellType.tetrahedron)
            return elastic_problem(ElasticModel(mesh, STEEL, degree=3))
        case "curved":
            return elastic_problem(ElasticModel(build_mesh(ConnectingRod(size=0.02), comm), STEEL))
        case "plate":
            return elastic_problem(ElasticModel(plate(comm, cells=(6, 2)), STEEL, **plane))
        case _:
            mesh = plate(comm, cells=(5, 2), cell=CellType.triangle, origin=(-0.1, 0.3))
            return elastic_problem(ElasticModel(mesh, STEEL, degree=1, **plane))


def density(problem: ElasticProblem) -> float:
    """Return the mass per volume, or per area of a plane body."""
    return STEEL.density * (problem.thickness or 1.0)


def weights(name: str, dim: int) -> np.ndarray:
    """Return the matrix W of an operator ∫ρ v·(W u)."""
    omega, alpha = MOTION[dim]["omega"], MOTION[dim]["alpha"]
    return {
        "mass": np.eye(dim),
        "coriolis": coriolis(omega),
        "centrifugal": centrifugal(omega),
        "euler": spin_matrix(alpha),
    }[name]


def form(problem: ElasticProblem, name: str) -> ufl.Form:
    """Return the form of an operator from `dolfinx_mbd.forms`."""
    u, v = ufl.TrialFunction(problem.space), ufl.TestFunction(problem.space)
    mesh, rho = problem.space.mesh, density(problem)
    omega, alpha = (
        fem.Constant(mesh, np.asarray(MOTION[problem.dim][key])) for key in ("omega", "alpha")
    )
    return {
        "mass": lambda: forms.mass(u, v, rho),
        "coriolis": lambda: forms.coriolis(u, v, rho, omega),
        "centrifugal": lambda: forms.centrifugal_stiffness(u, v, rho, omega),
        "euler": lambda: forms.euler_stiffness(u, v, rho, alpha),
    }[name]()


def assembled(problem: ElasticProblem, name: str) -> PETSc.Mat:
    """Return the matrix of an operator from its UFL form."""
    A = fem_petsc.assemble_matrix(fem.form(form(problem, name)))
    A.assemble()
    return A


def field(problem: ElasticProblem, columns: int = 2) -> np.ndarray:
    """Return smooth fields independent of the partition, shape (owned dofs, columns)."""
    x, dim = problem.positions, problem.dim
    matrix = np.random.default_rng(3).normal(size=(columns, dim, dim))
    return np.sin(30 * np.einsum("kij,nj->nik", matrix, x)).reshape(-1, columns)


@pytest.mark.parametrize("name", TERMS)
def test_matrix_is_the_assembled_form(problem: ElasticProblem, name: str) -> None:
    """Entries agree to 1e-13 of the largest one; the pattern is part of that of K."""
    A, B = assembled(problem, name), inertia_matrix(problem, weights(name, problem.dim))
    scale = A.norm(PETSc.NormType.NORM_INFINITY)
    A.axpy(-1.0, B, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    assert scale > 0
    assert A.norm(PETSc.NormType.NORM_INFINITY) < 1e-13 * scale
    K = problem.stiffness.copy()
    K.axpy(1.0, B, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
    for matrix in (A, B, K):
        matrix.destroy()


@pytest.mark.parametrize("name", TERMS)
def test_product_is_that_of_the_assembled_form(problem: ElasticProblem, name: str) -> None:
    """One vector and several vectors give the same products."""
    W, X, comm = weights(name, problem.dim), field(problem), problem.comm
    A = assembled(problem, name)
    expected = multiply(A, X)
    A.destroy()
    size = comm.allreduce(np.abs(expected).max(initial=0), op=MPI.MAX)
    product = apply_inertia(problem, W, X)
    assert product.shape == X.shape
    assert np.abs(product - expected).max(initial=0) < 1e-13 * size
    single = apply_inertia(problem, W, X[:, 1])
    assert single.shape == X[:, 1].shape
    assert np.abs(single - expected[:, 1]).max(initial=0) < 1e-13 * size


@pytest.mark.parametrize("only", ["acceleration", "omega", "alpha", "gravity", None])
def test_load_is_the_assembled_one(problem: ElasticProblem, only: str | None) -> None:
    """Each load alone, and all loads together from precomputed fields."""
    motion = MOTION[problem.dim]
    v, rho, mesh = ufl.TestFunction(problem.space), density(problem), problem.space.mesh
    make = {
        "acceleration": forms.translational_load,
        "omega": forms.centrifugal_load,
        "alpha": forms.euler_load,
        "gravity": forms.gravity_load,
    }
    names = list(motion) if only is None else [only]
    terms = [make[key](v, rho, fem.Constant(mesh, np.asarray(motion[key]))) for key in names]
    b = fem.assemble_vector(fem.form(sum(terms[1:], terms[0])))
    b.scatter_reverse(InsertMode.add)
    expected = b.array[: problem.num_owned]
    fields = load_fields(problem) if only is None else None
    load = frame_load(problem, **{key: motion[key] for key in names}, fields=fields)
    size = problem.comm.allreduce(np.abs(expected).max(initial=0), op=MPI.MAX)
    assert load.shape == expected.shape
    assert np.abs(load - expected).max(initial=0) < 1e-13 * size


def test_coriolis_does_no_work(problem: ElasticProblem) -> None:
    """v·(G v) = 0; the load of a rotation has the resultant -m ω×(ω×c) with the centre c."""
    V = field(problem, 1)[:, 0]
    omega = MOTION[problem.dim]["omega"]
    G = apply_inertia(problem, coriolis(omega), V)
    work, size = problem.comm.allreduce(np.array([V @ G, np.abs(V * G).sum()]))
    assert abs(work) < 1e-14 * size
    R = rigid_motions(problem.positions)[:, : problem.dim]
    resultant = problem.comm.allreduce(R.T @ frame_load(problem, omega=omega))
    # the mass m and the first moments m c
    sums = problem.comm.allreduce(load_fields(problem).sum(axis=0))
    assert np.allclose(resultant, -centrifugal(omega) @ sums[1:], rtol=1e-10)


def test_wrong_shapes_are_named(comm: MPI.Intracomm) -> None:
    """Errors name a vector ω of a plane body, and a scalar ω or a plane load of a solid."""
    flat = elastic_problem(
        ElasticModel(plate(comm, cells=(2, 1)), STEEL, plane="stress", thickness=THICKNESS)
    )
    solid = elastic_problem(ElasticModel(box(comm, cells=(2, 1, 1)), STEEL))
    with pytest.raises(ValueError, match="angular velocities that are scalars"):
        inertia_matrix(flat, coriolis([0.0, 0.0, 1.0]))
    with pytest.raises(ValueError, match=r"angular velocities of shape \(3,\)"):
        apply_inertia(solid, spin_matrix(1.0), np.zeros(solid.num_owned))
    with pytest.raises(InputError) as error:
        coriolis([1.0, 2.0])
    assert error.value.argument == "omega"
    with pytest.raises(InputError) as error:
        frame_load(solid, gravity=[0.0, -9.81])
    assert error.value.argument == "gravity"
