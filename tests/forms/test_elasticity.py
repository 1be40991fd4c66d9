"""Forms of elasticity: symmetry, rigid motions without energy, and the patch test."""

from __future__ import annotations

import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from dolfinx.fem.petsc import assemble_matrix
from mpi4py import MPI

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms import (
    STEEL,
    Material,
    Plane,
    elastic_stiffness,
    geometric_stiffness,
    strain,
    stress,
)

COMM = MPI.COMM_WORLD


def _space(dim: int, degree: int) -> fem.FunctionSpace:
    """Return vector-valued functions on a unit square or cube."""
    make = {2: mesh.create_unit_square, 3: mesh.create_unit_cube}[dim]
    return fem.functionspace(make(COMM, *[2] * dim), ("Lagrange", degree, (dim,)))


def _function(V: fem.FunctionSpace, matrix: np.ndarray, shift: np.ndarray) -> fem.Function:
    """Return the linear field x -> matrix x + shift."""
    f = fem.Function(V)
    dim = len(shift)
    f.interpolate(lambda x: matrix @ x[:dim] + shift[:, None])
    return f


def _scalar(form: ufl.Form) -> float:
    """Return the value of a form without arguments."""
    return COMM.allreduce(fem.assemble_scalar(fem.form(form)))


def _rigid(dim: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return matrices and shifts of all infinitesimal rigid motions, 3 in the plane, 6 in space."""
    motions = [(np.zeros((dim, dim)), shift) for shift in np.eye(dim)]
    for i in range(dim):
        for j in range(i):
            rotation = np.zeros((dim, dim))
            rotation[i, j], rotation[j, i] = 1.0, -1.0
            motions.append((rotation, np.zeros(dim)))
    return motions


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("degree", [1, 2])
def test_rigid_motions_have_no_energy_and_no_force(dim: int, degree: int) -> None:
    V = _space(dim, degree)
    motions = _rigid(dim)
    assert len(motions) == {2: 3, 3: 6}[dim]
    v = ufl.TestFunction(V)
    for matrix, shift in motions:
        u = _function(V, matrix, shift)
        scale = STEEL.young * max(1.0, np.abs(matrix).max())
        assert abs(_scalar(elastic_stiffness(u, u, STEEL))) < 1e-14 * scale
        force = fem.assemble_vector(fem.form(elastic_stiffness(u, v, STEEL))).array
        assert np.abs(force).max(initial=0.0) < 1e-14 * scale


@pytest.mark.parametrize("dim", [2, 3])
def test_only_rigid_motions_have_no_energy(dim: int) -> None:
    """The null space of an element's stiffness are the rigid motions; K is otherwise positive."""
    make = {2: mesh.create_unit_square, 3: mesh.create_unit_cube}[dim]
    V = fem.functionspace(make(MPI.COMM_SELF, *[1] * dim), ("Lagrange", 1, (dim,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    K = fem.assemble_matrix(fem.form(elastic_stiffness(u, v, STEEL))).to_dense()
    assert np.abs(K - K.T).max() < 1e-15 * np.abs(K).max()
    eigenvalues = np.linalg.eigvalsh(K) / STEEL.young
    number = {2: 3, 3: 6}[dim]
    assert np.abs(eigenvalues[:number]).max() < 1e-14
    assert eigenvalues[number] > 1e-2


def test_uniaxial_tension() -> None:
    """A bar that contracts by ν has σ = E ε along it and none across."""
    V = _space(3, 1)
    stretch = np.diag([1.0, -STEEL.poisson, -STEEL.poisson]) * 1e-3
    sigma = stress(_function(V, stretch, np.zeros(3)), STEEL)
    integrals = [[_scalar(sigma[i, j] * ufl.dx) for j in range(3)] for i in range(3)]
    expected = np.diag([STEEL.young * 1e-3, 0.0, 0.0])
    assert np.allclose(integrals, expected, rtol=0, atol=1e-13 * STEEL.young * 1e-3 * 10)


def test_plane_strain() -> None:
    """A plate that is stretched by ε along x and held along y has the stress λ ε across."""
    V = _space(2, 1)
    u = _function(V, np.diag([1e-3, 0.0]), np.zeros(2))
    held = _scalar(stress(u, STEEL)[1, 1] * ufl.dx)
    assert held == pytest.approx(STEEL.lame * 1e-3, rel=1e-12)


def test_plane_stress() -> None:
    """A plate that is pulled and contracts by ν has σ = E ε along it and none across."""
    V = _space(2, 1)
    u = _function(V, np.diag([1e-3, -STEEL.poisson * 1e-3]), np.zeros(2))
    sigma = stress(u, STEEL, plane="stress")
    integrals = [[_scalar(sigma[i, j] * ufl.dx) for j in range(2)] for i in range(2)]
    expected = np.diag([STEEL.young * 1e-3, 0.0])
    assert np.allclose(integrals, expected, rtol=0, atol=1e-12 * STEEL.young * 1e-3)


@pytest.mark.parametrize("plane", ["strain", "stress"])
def test_plane_bodies_have_no_energy_in_rigid_motion_only(plane: Plane) -> None:
    """Only three rigid motions have no stiffness; both assumptions agree for ν = 0."""
    V = fem.functionspace(mesh.create_unit_square(MPI.COMM_SELF, 1, 1), ("Lagrange", 1, (2,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)

    def matrix(material: Material) -> np.ndarray:
        form = elastic_stiffness(u, v, material, plane=plane)
        return fem.assemble_matrix(fem.form(form)).to_dense()

    eigenvalues = np.linalg.eigvalsh(matrix(STEEL)) / STEEL.young
    assert np.abs(eigenvalues[:3]).max() < 1e-14
    assert eigenvalues[3] > 1e-2
    cork = Material(STEEL.young, 0.0, 1.0)
    strained = fem.assemble_matrix(fem.form(elastic_stiffness(u, v, cork))).to_dense()
    assert np.allclose(matrix(cork), strained, rtol=1e-14)


def test_thickness_is_a_factor() -> None:
    """The thickness may be a number or a constant."""
    V = _space(2, 1)
    u = _function(V, np.array([[1.0, 2.0], [-3.0, 0.5]]), np.zeros(2))
    of_unit_thickness = _scalar(elastic_stiffness(u, u, STEEL, plane="stress"))
    for t in (0.02, fem.Constant(V.mesh, 0.02)):
        thin = _scalar(elastic_stiffness(u, u, STEEL, plane="stress", thickness=t))
        assert thin == pytest.approx(0.02 * of_unit_thickness, rel=1e-14)


def test_unknown_plane() -> None:
    V = _space(2, 1)
    with pytest.raises(InputError) as error:
        stress(fem.Function(V), STEEL, plane="stres")  # type: ignore[arg-type]
    assert error.value.argument == "plane"
    assert error.value.value == "stres"


def test_strain_is_symmetric_gradient() -> None:
    V = _space(3, 1)
    matrix = np.arange(9.0).reshape(3, 3)
    eps = strain(_function(V, matrix, np.zeros(3)))
    integrals = [[_scalar(eps[i, j] * ufl.dx) for j in range(3)] for i in range(3)]
    assert np.allclose(integrals, (matrix + matrix.T) / 2, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("dim", [2, 3])
def test_geometric_stiffness_is_a_second_derivative(dim: int) -> None:
    """∫(∇u σ₀):∇v is the second derivative of ½ ∫ σ₀:(∇wᵀ∇w), and of ∫ σ₀:E(w).

    E is the strain of Green and Lagrange.
    """
    V = _space(dim, 2)
    u, v, w, u0 = ufl.TrialFunction(V), ufl.TestFunction(V), fem.Function(V), fem.Function(V)
    for f, seed in ((w, 1), (u0, 2)):
        f.interpolate(lambda x, s=seed: np.sin(s + np.arange(1, dim + 1)[:, None] * x[:dim]))
    sigma = stress(u0, STEEL)
    gradient = ufl.grad(w)
    quadratic = 0.5 * ufl.inner(sigma, gradient.T * gradient) * ufl.dx
    strain = 0.5 * (gradient + gradient.T + gradient.T * gradient)
    second = [
        ufl.derivative(ufl.derivative(energy, w, v), w, u)
        for energy in (quadratic, ufl.inner(sigma, strain) * ufl.dx)
    ]
    stiffness = assemble_matrix(fem.form(geometric_stiffness(u, v, sigma)))
    stiffness.assemble()
    for form in second:
        derivative = assemble_matrix(fem.form(form))
        derivative.assemble()
        derivative.axpy(-1.0, stiffness)
        assert derivative.norm() < 1e-13 * stiffness.norm()
