"""Hyperelastic bodies that spin: energies, equilibrium, vibrations about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx import mesh as dmesh
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd import forms
from dolfinx_mbd.structures.rotating import rotating_modes, rotating_structure, spinning_equilibrium
from dolfinx_mbd.structures.rotating.spinning_hyperelastic import SpinningEquilibriumError

STEEL = mbd.Material(2.1e11, 0.3, 7850.0)
RUBBER = mbd.Material(1e6, 0.3, 1000.0)
Energy = Callable[..., Any]


def strip(
    comm: MPI.Comm, length: float, height: float, cells: tuple[int, int]
) -> mbd.fem.TaggedMesh:
    """Return a plane cantilever along x; its end at the origin is the group "root"."""
    low, high = [0.0, -height / 2], [length, height / 2]
    mesh = dmesh.create_rectangle(comm, [low, high], cells, dmesh.CellType.quadrilateral)
    facets = dmesh.locate_entities_boundary(mesh, 1, lambda x: np.isclose(x[0], 0.0))
    tags = dmesh.meshtags(mesh, 1, np.sort(facets), np.ones(len(facets), dtype=np.int32))
    return mbd.fem.TaggedMesh(mesh, None, tags, {"root": (1, 1)})


@pytest.mark.parametrize(
    "energy, dim, plane",
    [
        (forms.saint_venant_kirchhoff, 3, None),
        (forms.neo_hookean, 3, None),
        (forms.saint_venant_kirchhoff, 2, "strain"),
        (forms.saint_venant_kirchhoff, 2, "stress"),
        (forms.neo_hookean, 2, "strain"),
        (forms.linear_elastic, 2, "stress"),
    ],
)
def test_tangents_at_rest_are_hookes_stiffness(
    comm: MPI.Comm, energy: Energy, dim: int, plane: Any
) -> None:
    """The tangent at rest is Hooke's stiffness, and there are no forces at rest."""
    if dim == 2:
        mesh = dmesh.create_unit_square(comm, 2, 2)
    else:
        mesh = dmesh.create_unit_cube(comm, 1, 2, 1)
    V = fem.functionspace(mesh, ("Lagrange", 1, (dim,)))
    u, v, w = fem.Function(V), ufl.TestFunction(V), ufl.TrialFunction(V)
    options = {"plane": plane} if plane else {}
    force = ufl.derivative(energy(u, STEEL, **options) * ufl.dx, u, v)
    b = fem_petsc.assemble_vector(fem.form(force))
    matrices = []
    for form in (ufl.derivative(force, u, w), forms.elastic_stiffness(w, v, STEEL, **options)):
        A = fem_petsc.assemble_matrix(fem.form(form))
        A.assemble()
        matrices.append(A)
    size = matrices[1].norm()
    assert b.norm() < 1e-12 * size
    matrices[0].axpy(-1.0, matrices[1])
    assert matrices[0].norm() < 1e-12 * size
    for item in (b, *matrices):
        item.destroy()


@pytest.mark.parametrize("energy", [forms.saint_venant_kirchhoff, forms.neo_hookean])
def test_energies_are_invariant_under_rotation(comm: MPI.Comm, energy: Energy) -> None:
    """W(QF) = W(F) for all energies except Hooke's."""
    mesh = dmesh.create_unit_square(comm, 1, 1)
    V = fem.functionspace(mesh, ("Lagrange", 1, (2,)))
    F = np.array([[1.2, 0.1], [-0.3, 0.9]])
    c, s = np.cos(0.7), np.sin(0.7)
    values = []
    for gradient in (F, np.array([[c, -s], [s, c]]) @ F):
        u = fem.Function(V)
        u.interpolate(lambda x, g=gradient: (g - np.eye(2)) @ x[:2])
        form = fem.form(energy(u, RUBBER) * ufl.dx)
        values.append(comm.allreduce(fem.assemble_scalar(form)))
    assert values[0] > 0
    assert np.isclose(*values, rtol=1e-12)


def test_load_follows_the_deformed_position(comm: MPI.Comm) -> None:
    """A bar with ν = 0: EA u'' + ρAΩ²(x+u) = 0, u(L) = tan(kL)/k − L, k² = ρΩ²/E.

    With the load at the reference position u(L) would be ρΩ²L³/3E, 12 % less.
    """
    length, material = 1.0, mbd.Material(1e6, 0.0, 1000.0)
    mesh = strip(comm, length, 0.05, (12, 1))
    s = rotating_structure(
        mbd.ElasticModel(mesh, material, plane="stress", thickness=0.1), held=["root"]
    )
    speed = 0.55 * np.sqrt(material.young / material.density) / length
    k = speed * np.sqrt(material.density / material.young)
    state = spinning_equilibrium(
        s, lambda u: forms.linear_elastic(u, material, plane="stress"), speed
    )
    assert state.iterations == (2,)  # linear: the second correction is zero
    x = s.problem.positions
    tip = np.isclose(x[:, 0], length) & np.isclose(x[:, 1], 0.0)
    u = state.displacement.x.array[: x.size].reshape(x.shape)[:, 0]
    reached = comm.allreduce(u[tip].max(initial=-np.inf), MPI.MAX)
    assert reached == pytest.approx(np.tan(k * length) / k - length, rel=1e-3)
    assert abs(reached / (k**2 * length**3 / 3) - 1) > 0.12
    state.destroy()
    s.destroy()


def test_frequencies_agree_and_matrices_do_not(comm: MPI.Comm) -> None:
    """Frequencies agree with linear prestress at γ = 3; matrices differ by the deformed shape."""
    length, height = 1.0, 0.02
    mesh = strip(comm, length, height, (20, 1))
    s = rotating_structure(
        mbd.ElasticModel(mesh, STEEL, plane="strain", thickness=0.01), held=["root"]
    )
    speed = 3 * np.sqrt(STEEL.young / 12 / STEEL.density) * height / length**2
    rest = rotating_modes(s, 0.0, num_modes=3).frequencies
    for energy, agreement in ((forms.saint_venant_kirchhoff, 5e-5), (forms.neo_hookean, 4e-4)):
        for with_coriolis in (False, True):
            linear = rotating_modes(s, speed, num_modes=3, coriolis=with_coriolis)
            K = s.factor.matrix.copy()  # K(Ω) with linear prestress
            state = spinning_equilibrium(s, lambda u, law=energy: law(u, STEEL), speed)
            assert state.negative == 0 and state.iterations[0] <= 6
            modes = state.modes(3, coriolis=with_coriolis)
            assert np.allclose(modes.frequencies, linear.frequencies, rtol=agreement)
            assert np.all(modes.frequencies / rest - 1 > 10 * agreement)
            # The tangent of the deformed shape is more than twice as far from K(Ω) as K(0) is.
            K.axpy(-1.0, s.stiffness)
            change = K.norm()
            K.axpy(1.0, s.stiffness)
            K.axpy(-1.0, state.tangent)
            assert K.norm() > 2 * change
            K.destroy()
            state.destroy()
    s.destroy()


def test_great_strains(comm: MPI.Comm) -> None:
    """Rubber stretched by a third gives the same in one or more steps, on one or more ranks."""
    results = []
    for c, steps in ((comm, 1), (MPI.COMM_SELF, 4)):
        mesh = strip(c, 0.2, 0.05, (8, 2))
        s = rotating_structure(
            mbd.ElasticModel(mesh, RUBBER, plane="strain", thickness=0.01), held=["root"]
        )
        state = spinning_equilibrium(s, lambda u: forms.neo_hookean(u, RUBBER), 130.0, steps=steps)
        assert len(state.iterations) == steps
        u = state.displacement.x.array
        stretch = c.allreduce(u.max(initial=0.0), MPI.MAX) / 0.2
        assert stretch > 0.3
        results.append(np.append(state.modes(3).frequencies, stretch))
        state.destroy()
        s.destroy()
    assert np.allclose(results[0], results[1], rtol=1e-8)


def test_bad_input(comm: MPI.Comm) -> None:
    mesh = strip(comm, 0.2, 0.05, (4, 1))
    s = rotating_structure(
        mbd.ElasticModel(mesh, RUBBER, plane="strain", thickness=0.01), held=["root"]
    )
    with pytest.raises(SpinningEquilibriumError, match=r"at 2000 rad/s .* in iteration 2;"):
        spinning_equilibrium(s, lambda u: forms.neo_hookean(u, RUBBER), 2000.0)
    with pytest.raises(SpinningEquilibriumError, match="at 50 rad/s after 1 iterations"):
        spinning_equilibrium(s, lambda u: forms.neo_hookean(u, RUBBER), 50.0, max_iterations=1)
    with pytest.raises(ValueError, match="scalar UFL expression"):
        spinning_equilibrium(s, lambda u: u, 1.0)
    with pytest.raises(ValueError, match="steps must be"):
        spinning_equilibrium(s, lambda u: forms.neo_hookean(u, RUBBER), 1.0, steps=0)
    with pytest.raises(ValueError, match="plane must be 'strain'"):
        spinning_equilibrium(s, lambda u: forms.neo_hookean(u, RUBBER, plane="stress"), 1.0)
    with pytest.raises(ValueError, match="plane must be"):
        forms.saint_venant_kirchhoff(fem.Function(s.space), RUBBER, plane="none")  # type: ignore[arg-type]
    s.destroy()
