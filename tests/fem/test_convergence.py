"""Validation case V7 in closed form, and the order of convergence for degrees 1 to 3.

V7 is a case of docs/verification/reference_cases.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.la import InsertMode
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, InterfaceSpec
from dolfinx_mbd.fem.assembly import ElasticProblem, elastic_problem, rigid_motions, spin_fields
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg.blocks import gram, multiply, solve
from dolfinx_mbd.fem.linalg.factorization import cholesky
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import (
    STEEL,
    Material,
    centrifugal_load,
    euler_load,
    strain,
    stress,
    traction_load,
    translational_load,
)
from dolfinx_mbd.reduction.craig_bampton import craig_bampton_basis
from tests.models.bodies import AXES, CENTRE, box, ellipsoid
from tests.models.plates import plate

CORK = Material(1e9, 0.0, 1000.0)
"""Material with Poisson's ratio 0, for which the closed forms of a bar are exact."""


def solved(problem: ElasticProblem, load: ufl.Form, held: np.ndarray) -> fem.Function:
    """Return the static displacement with some owned degrees of freedom held."""
    b = fem.assemble_vector(fem.form(load))
    b.scatter_reverse(InsertMode.add)
    forces = b.array[: problem.num_owned].copy()
    forces[held] = 0.0
    K = problem.stiffness.copy()
    constrain(K, held.astype(np.int32), 1.0)
    ksp = cholesky(K, prefix="test_convergence_")
    u = fem.Function(problem.space)
    u.x.array[: problem.num_owned] = solve(ksp, forces[:, None])[:, 0]
    u.x.scatter_forward()
    ksp.destroy()
    K.destroy()
    return u


def dofs_at(problem: ElasticProblem, axis: int, value: float, components: Any) -> np.ndarray:
    """Return the owned degrees of freedom of some components in a coordinate plane."""
    nodes = np.flatnonzero(np.isclose(problem.positions[:, axis], value, atol=1e-9))
    return (problem.dim * nodes[:, None] + np.atleast_1d(components)).ravel()


def norm(comm: MPI.Intracomm, expression: Any, mesh: Any, degree: int = 8) -> float:
    """Return the L2 norm."""
    form = fem.form(ufl.inner(expression, expression) * ufl.dx(domain=mesh, degree=degree))
    return float(np.sqrt(comm.allreduce(fem.assemble_scalar(form))))


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_spinning_bar(comm: MPI.Intracomm, degree: int) -> None:
    """V7: u(L) = ρΩ²L³/3E, exact at the vertices in every degree, and everywhere with cubics.

    The bar is held at x = 0 along x, and free to move across; without Poisson's ratio the solution
    is u_x(x), u_y(y), and a Galerkin solution of such a one-dimensional problem has no error at the
    vertices.
    """
    length, side, spin = 1.0, 0.1, 200.0
    mesh = box(comm, (length, side, side), (4, 2, 2))
    mesh.mesh.geometry.x[:, 1:] -= side / 2
    problem = elastic_problem(ElasticModel(mesh, CORK, degree=degree))
    held = [dofs_at(problem, axis, 0.0, axis) for axis in range(3)]
    load = centrifugal_load(
        ufl.TestFunction(problem.space), CORK.density, ufl.as_vector((0.0, 0.0, spin))
    )
    u = solved(problem, load, np.concatenate(held))
    tip = u.x.array[dofs_at(problem, 0, length, 0)]
    scale = CORK.density * spin**2 / CORK.young
    exact = scale * length**3 / 3
    assert np.allclose(tip, exact, rtol=1e-9)
    x, y, _ = ufl.SpatialCoordinate(mesh.mesh)
    field = ufl.as_vector(
        (scale * (length**2 * x / 2 - x**3 / 6), scale * (side**2 * y / 8 - y**3 / 6), 0 * x)
    )
    error = norm(comm, u - field, mesh.mesh) / norm(comm, field, mesh.mesh)
    if degree == 3:
        assert error < 1e-10
    else:
        assert error > 1e-6


def test_bar_under_angular_acceleration(comm: MPI.Intracomm) -> None:
    """V7: the tip deflects by −11ρAαL⁵/120EI, and by two contributions of a solid.

    They are the shear −ραL³/(3·5/6·G) under the transverse load, and −ραL³/3E, the bending by the
    axial load ραy, whose moment per length is ραI.
    """
    length, side, alpha = 1.0, 0.05, 30.0
    mesh = box(comm, (length, side, side), (8, 1, 1))
    mesh.mesh.geometry.x[:, 1:] -= side / 2
    problem = elastic_problem(ElasticModel(mesh, CORK, degree=3))
    load = euler_load(
        ufl.TestFunction(problem.space), CORK.density, ufl.as_vector((0.0, 0.0, alpha))
    )
    u = solved(problem, load, dofs_at(problem, 0, 0.0, [0, 1, 2]))
    tip = u.x.array[dofs_at(problem, 0, length, 1)]
    bending = 11 * CORK.density * alpha * length**5 / (120 * CORK.young * side**2 / 12)
    shear = CORK.density * alpha * length**3 / (3 * 5 / 6 * CORK.shear)
    deflection = comm.allreduce(tip.sum()) / comm.allreduce(len(tip))
    axial_bending = CORK.density * alpha * length**3 / (3 * CORK.young)
    # The tolerance of the comparison is smaller than both contributions.
    assert min(shear, axial_bending) > 5e-4 * bending
    assert deflection == pytest.approx(-bending - shear - axial_bending, rel=2e-5)


MESHES: dict[str, Any] = {
    "triangle": lambda comm, n: plate(comm, (1.0, 0.8), (n, n), CellType.triangle),
    "hexahedron": lambda comm, n: box(comm, (1.0, 0.8, 0.6), (n, n, n)),
}
SIZES = {"triangle": {1: 8, 2: 8, 3: 8}, "hexahedron": {1: 4, 2: 2, 3: 2}}
"""Cells along a side of the coarser mesh, by degree; the finer one has twice as many."""


@pytest.mark.slow
@pytest.mark.parametrize("cell", MESHES)
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_order_of_the_statics(comm: MPI.Intracomm, cell: str, degree: int) -> None:
    """A manufactured solution under body force and tractions: L2 of order p + 1, H1 of order p."""
    errors = []
    rubber = Material(1.0, 0.3, 2.0)
    for n in (SIZES[cell][degree], 2 * SIZES[cell][degree]):
        mesh: TaggedMesh = MESHES[cell](comm, n)
        dim = mesh.mesh.topology.dim
        plane: dict[str, Any] = {} if dim == 3 else {"plane": "strain", "thickness": 1.0}
        problem = elastic_problem(ElasticModel(mesh, rubber, degree=degree, **plane))
        v = ufl.TestFunction(problem.space)
        x = ufl.SpatialCoordinate(mesh.mesh)
        parts = [ufl.sin(2 * x[0]) * ufl.cos(x[1] + k) for k in range(dim)]
        if dim == 3:
            parts = [part * ufl.exp(0.5 * x[2]) for part in parts]
        exact = ufl.as_vector(parts)  # zero at x = 0
        sigma = stress(exact, rubber)
        dx, ds = (m(degree=2 * degree + 4) for m in (ufl.dx, ufl.ds))
        traction = ufl.dot(sigma, ufl.FacetNormal(mesh.mesh))
        body = translational_load(v, rubber.density, ufl.div(sigma) / rubber.density, dx)
        load = body + traction_load(v, traction, ds)  # ρa₀ = div σ: the body force is −div σ
        u = solved(problem, load, dofs_at(problem, 0, 0.0, range(dim)))
        errors.append([norm(comm, e, mesh.mesh) for e in (u - exact, strain(u - exact))])
        problem.destroy()
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert orders == pytest.approx([degree + 1, degree], abs=0.15)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_order_of_the_frequencies(comm: MPI.Intracomm, degree: int) -> None:
    """Lamé's mode of a square, ω² = 2π²G/ρL² for any ν, converges with order 2p from above."""
    errors = []
    material = Material(1.0, 0.3, 1.0)
    for n in {1: (8, 16), 2: (4, 8), 3: (2, 4)}[degree]:
        mesh = plate(comm, (1.0, 1.0), (n, n))
        modes = modal_analysis(
            ElasticModel(mesh, material, degree=degree, plane="strain", thickness=1.0), num_modes=8
        )
        x, y = np.pi * ufl.SpatialCoordinate(mesh.mesh)
        lame = ufl.as_vector((ufl.cos(x) * ufl.sin(y), -ufl.sin(x) * ufl.cos(y))) * np.sqrt(
            2
        )  # ∫ψ·ψ = 1
        shares = [
            abs(comm.allreduce(fem.assemble_scalar(fem.form(ufl.inner(m, lame) * ufl.dx))))
            for m in modes.modes
        ]
        k = int(np.argmax(shares))
        assert shares[k] > 0.95
        square = (2 * np.pi * modes.frequencies[k]) ** 2
        errors.append(square / (2 * np.pi**2 * material.shear) - 1)
    assert min(errors) > 0
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2 * degree, abs=0.35)


@pytest.mark.parametrize("order", [1, 2])
def test_solid_ellipsoid(comm: MPI.Intracomm, order: int) -> None:
    """V7: m = 4/3 πρabc, J = m/5 (b² + c²): error of order 2 with flat cells, 4 with curved."""
    pytest.importorskip("gmsh")
    a, b, c = AXES
    m = 4 / 3 * np.pi * STEEL.density * a * b * c
    J = m / 5 * np.diag([b * b + c * c, c * c + a * a, a * a + b * b])
    errors = []
    for size in (0.008, 0.004):
        problem = elastic_problem(
            ElasticModel(build_mesh(ellipsoid(size, order), comm), STEEL, degree=order)
        )
        moments = inertia(problem, np.zeros((problem.num_owned, 0), order="F"))
        H, mass = moments.second_moments[0, 0], moments.total_mass
        centre = moments.first_moments[0] / mass
        assert centre == pytest.approx(CENTRE, abs=2e-3 * a)
        about = np.trace(H) * np.eye(3) - H
        about -= mass * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        errors.append([abs(mass / m - 1), np.abs(about - J).max() / J.max()])
        problem.destroy()
    bounds = {1: (0.05, 0.08), 2: (2e-4, 4e-4)}[order]
    assert (np.array(errors[1]) < bounds).all()
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert (orders > {1: 1.5, 2: 3.0}[order]).all()


def test_relief_however_the_body_is_held(comm: MPI.Intracomm) -> None:
    """With inertia relief, supports at single nodes and an averaged end give the same stress.

    The supports carry no force because the load of the spin is in equilibrium with the inertia
    forces; the displacements differ by a rigid motion, which has no stress.
    """
    mesh = box(comm, (0.2, 0.02, 0.03), (6, 2, 2))
    problem = elastic_problem(ElasticModel(mesh, STEEL))
    R = rigid_motions(problem.positions)
    spins = problem.apply_mass(spin_fields(problem.positions))
    MR = problem.apply_mass(R)
    load = spins - MR @ np.linalg.solve(gram(comm, R, MR), gram(comm, R, spins))

    def node(*place: float) -> np.ndarray:
        return np.flatnonzero(np.isclose(problem.positions, place, atol=1e-9).all(axis=1))

    corners = (0.0, 0.0, 0.0), (0.2, 0.0, 0.0), (0.0, 0.02, 0.0)
    others = (0.2, 0.02, 0.03), (0.0, 0.02, 0.03), (0.2, 0.0, 0.03)
    solutions = []
    for p, q, r in (corners, others):
        held = [3 * node(*p)[:, None] + [0, 1, 2], 3 * node(*q)[:, None] + [1, 2],
                3 * node(*r)[:, None] + [2]]  # fmt: skip
        held_dofs = np.concatenate([part.ravel() for part in held]).astype(np.int32)
        K = problem.stiffness.copy()
        constrain(K, held_dofs, 1.0)
        rhs = load.copy(order="F")
        rhs[held_dofs] = 0.0
        ksp = cholesky(K, prefix="test_relief_")
        solutions.append(solve(ksp, rhs))
        ksp.destroy()
        K.destroy()
    interfaces = mesh_interfaces(mesh, problem.space, InterfaceSpec.each(["right"], "averaged"))
    basis = craig_bampton_basis(problem, interfaces, 1, prefix="test_relief_", stiffening=True)
    assert basis.cases is not None
    solutions.append(basis.cases.displacements[:, :6])
    # The elastic forces have no resultant.
    assert np.allclose(gram(comm, R, multiply(problem.stiffness, solutions[0])), 0, atol=1e-6)
    for k in range(6):
        fields = []
        for solution in solutions:
            u = fem.Function(problem.space)
            u.x.array[: problem.num_owned] = solution[:, k]
            u.x.scatter_forward()
            fields.append(stress(u, STEEL))
        size = norm(comm, fields[0], mesh.mesh)
        for field in fields[1:]:
            assert norm(comm, field - fields[0], mesh.mesh) < 1e-8 * size
