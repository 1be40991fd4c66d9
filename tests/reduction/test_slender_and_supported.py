"""Slender bodies, whose stiffness is close to round-off, and stiffness forms with supports."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from dolfinx.mesh import CellType
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, InterfaceSpec, ReductionOptions
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.forms import STEEL, elastic_stiffness
from dolfinx_mbd.reduction import reduce
from dolfinx_mbd.reduction.craig_bampton import rigid_rows
from dolfinx_mbd.reduction.stiffening import interface_motions
from tests.models.bodies import box
from tests.models.calls import flat


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rigid", "averaged"])
@pytest.mark.parametrize("interfaces", [["left"], ["left", "right"]])
@pytest.mark.parametrize(
    ("size", "cells", "cell"),
    [
        ((1.0, 0.02, 0.002), (50, 2, 1), CellType.hexahedron),
        ((1.0, 0.02, 0.001), (100, 2, 1), CellType.hexahedron),
        ((1.0, 0.02, 0.001), (100, 2, 1), CellType.tetrahedron),
        ((1.0, 0.001, 0.001), (300, 1, 1), CellType.hexahedron),
    ],
)
def test_slender_bodies(
    comm: MPI.Intracomm, size: Any, cells: Any, cell: CellType, interfaces: list[str], kind: Any
) -> None:
    """The first free mode of strips and rods, 500 to 1000 times as long as thick, is exact."""
    mesh = box(comm, size, cells, cell)
    body = reduce(
        mesh,
        STEEL,
        interfaces=InterfaceSpec.each(interfaces, kind),
        num_modes=8,
        options=ReductionOptions(skin=False),
    ).body
    exact = 4.730041**2 / (2 * np.pi) * np.sqrt(STEEL.young / STEEL.density / 12) * size[2]
    assert body.frequencies[0] == pytest.approx(exact, rel=1e-3)
    assert body.total_mass == pytest.approx(STEEL.density * np.prod(size), rel=1e-9)


def test_inaccurate_solver(comm: MPI.Intracomm) -> None:
    """An iterative method that stops early raises an error: its residual is not round-off."""
    options = {"ksp_type": "cg", "pc_type": "jacobi", "ksp_rtol": 1e-3, "ksp_max_it": 4000}
    with pytest.raises(FactorizationError, match="residual"):
        reduce(box(comm), STEEL, interfaces=["left", "right"], petsc_options=options)


def test_soft_interfaces_are_released() -> None:
    """A bar between two hinges is 1e12 times softer in bending than in tension."""
    k = np.diag([1.0, 1e-12, 1e-12, 1e-3, 1e-12, 1e-12])
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])

    class At:
        def __init__(self, point: np.ndarray) -> None:
            self.point = point

    C = rigid_rows(tuple(At(p) for p in points), np.zeros(3), 3)  # type: ignore[misc]
    relative = np.linalg.svd(C.T)[2][6:]  # deformations: no part in rigid motions
    stiffness = relative.T @ k @ relative
    forces = relative.T @ np.eye(6)
    moved = interface_motions(stiffness, forces, C)
    assert stiffness @ moved == pytest.approx(forces, rel=1e-6, abs=1e-9)


def forms(comm: MPI.Intracomm, square: float) -> tuple[Any, Any, Any]:
    """Return a bar, its space, and its stiffness with a foundation that adds this to all ω²."""
    mesh = box(comm)
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    u, v = ufl.TrialFunction(V), ufl.TestFunction(V)
    c = fem.Constant(mesh.mesh, square * STEEL.density)
    return mesh, V, elastic_stiffness(u, v, STEEL) + c * ufl.inner(u, v) * ufl.dx


@pytest.mark.parametrize("kind", ["rigid", "averaged"])
@pytest.mark.parametrize("square", [1e2, 1e8])
def test_foundation_that_moves_with_an_interface(
    comm: MPI.Intracomm, kind: Any, square: float
) -> None:
    """A foundation c u per volume adds c/ρ to all ω² of the body that is held at the interface."""
    mesh, V, form = forms(comm, square)
    request: dict[str, Any] = {"interfaces": ["left"], "num_modes": 4, "attached_to": "left"}
    request |= {"kind": kind, "skin": False, "space": V}
    free = flat(reduce, mesh, STEEL, **request).body
    body = flat(reduce, mesh, STEEL, stiffness=form, **request).body
    squares = [(2 * np.pi * b.frequencies) ** 2 for b in (free, body)]
    error = 1e-8 * squares[0].max()  # error of the eigenvalue solver
    assert squares[1] - squares[0] == pytest.approx(np.full(4, square), rel=1e-6, abs=error)


def test_compliance_on_a_foundation() -> None:
    """The stiffness of the other interface is that of the full matrix with a rigid face."""
    mesh, V, form = forms(MPI.COMM_SELF, 1e8)
    request: dict[str, Any] = {"interfaces": ["left", "right"], "attached_to": "left"}
    body = reduce(
        ElasticModel(mesh, STEEL, stiffness=form, space=V),
        num_modes=2,
        options=ReductionOptions(skin=False),
        **request,
    ).body
    motion = body.interfaces[1].motion
    compliance = motion @ np.linalg.solve(body.stiffness, motion.T)
    K = fem.assemble_matrix(fem.form(form)).to_dense()
    x = V.tabulate_dof_coordinates()
    T = np.zeros((len(K), 6))
    for k, point in enumerate(x):
        if np.isclose(point[0], x[:, 0].max()):
            arm = point - body.interfaces[1].point
            T[3 * k : 3 * k + 3, :3] = np.eye(3)
            T[3 * k : 3 * k + 3, 3:] = np.cross(np.eye(3), arm).T
    at_right_end = T.any(axis=1)
    inner = ~at_right_end & np.repeat(~np.isclose(x[:, 0], 0.0), 3)
    edge = K[inner] @ T
    condensed = T.T @ K @ T - edge.T @ np.linalg.solve(K[np.ix_(inner, inner)], edge)
    assert compliance == pytest.approx(
        np.linalg.inv(condensed), rel=1e-6, abs=1e-9 * np.abs(compliance).max()
    )


@pytest.mark.parametrize("square", [1e2, 1e8])
def test_floating_body_on_a_foundation(comm: MPI.Intracomm, square: float) -> None:
    """The error names the form of the support, which would not act on the rigid motion."""
    mesh, V, form = forms(comm, square)
    for interfaces in ([], ["left"]):
        with pytest.raises(InputError) as error:
            reduce(ElasticModel(mesh, STEEL, stiffness=form, space=V), interfaces=interfaces)
        assert error.value.argument == "stiffness"
    with pytest.raises(InputError) as error:
        reduce(
            ElasticModel(mesh, STEEL, stiffness=form, space=V),
            interfaces=["left"],
            attached_to="left",
            options=ReductionOptions(effective_mass=0.9),
        )
    assert error.value.argument == "effective_mass"
