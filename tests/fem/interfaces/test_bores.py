"""Pressure modes of elastic bores: compliance, virtual work, files, bad input.

w is the radial displacement of a bore, as coefficients of the patterns of its pressure modes:
2K + 1 functions cos kθ and sin kθ around the bore times three Legendre polynomials along it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse.linalg
import ufl
from dolfinx import fem, la
from mpi4py import MPI

from dolfinx_mbd import ElasticModel, InterfaceSpec, ReductionOptions, build_mesh
from dolfinx_mbd.body import Bore, ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.interfaces.interfaces import mesh_interfaces
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.forms import ALUMINIUM_7075
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.reduction import Reduction, reduce
from tests.models.bodies import box

RADIUS, LENGTH = 0.021, 0.020  # big end, m
TOLERANCE = 0.01  # of the pressure modes: largest relative error of the compliance
THETA = (np.arange(720) + 0.5) * np.pi / 360  # midpoints of intervals of 0.5°, rad


@cache
def mesh(alone: bool = False) -> Any:
    """Return a coarse connecting rod, distributed over all ranks, or whole on this one."""
    comm = MPI.COMM_SELF if alone else MPI.COMM_WORLD
    return build_mesh(ConnectingRod(size=0.012, order=2), comm)


def specs(**options: Any) -> dict[str, InterfaceSpec]:
    """Return averaged interfaces, the big end with pressure modes."""
    big = InterfaceSpec(kind="averaged", pressure_modes=TOLERANCE, **options)
    return {"big_end": big, "small_end": InterfaceSpec(kind="averaged")}


@cache
def rod(alone: bool = False) -> Reduction:
    """Return the rod with pressure modes at the big end."""
    return reduce(mesh(alone), ALUMINIUM_7075, interfaces=specs(), num_modes=4, stiffening=False)


def compliance(body: ReducedBody) -> np.ndarray:
    """Return w for unit values of its conjugate forces; the frame of the bore is held."""
    W = body.bore("big_end").displacement.reshape(-1, body.num_modes)
    return W @ np.linalg.solve(body.stiffness, W.T)


def cosine(theta: np.ndarray, direction: float) -> np.ndarray:
    """Return cos(3δ/2) for angles δ up to 60° from a direction."""
    delta = np.remainder(theta - direction + np.pi, 2 * np.pi) - np.pi
    return np.where(np.abs(delta) < np.pi / 3, np.cos(1.5 * delta), 0.0)


def film_forces(bore: Bore, around_bore: np.ndarray) -> np.ndarray:
    """Return the integrals of the patterns times a pressure that is parabolic along the bore."""
    theta = THETA
    x, weights = np.polynomial.legendre.leggauss(4)
    around, along = bore.patterns(theta, 0.5 * bore.length * x)
    area = bore.radius * np.pi / 360 * 0.5 * bore.length
    p = np.multiply.outer(around_bore, (1 - x**2) * weights) * area  # parabola: 1 − (2z/L)²
    return np.einsum("ta,tz,zl->al", around, p, along).ravel()


def nodal_pressure(space: fem.FunctionSpace, facets: Any, direction: float, full: bool) -> Any:
    """Return nodal forces on the facets (tags and value) against their outward normals.

    The pressure is 1 + cos δ if `full`, otherwise cos(3δ/2) up to 60°, and parabolic along the
    bore.
    """
    x = ufl.SpatialCoordinate(space.mesh)
    delta = ufl.atan2(
        x[1] * np.cos(direction) - x[0] * np.sin(direction),
        x[0] * np.cos(direction) + x[1] * np.sin(direction),
    )
    p = ufl.conditional(ufl.lt(abs(delta), np.pi / 3), ufl.cos(1.5 * delta), 0.0)
    p = (1 + ufl.cos(delta) if full else p) * (1 - (2 * x[2] / LENGTH) ** 2)
    v = ufl.TestFunction(space)
    ds = ufl.Measure("ds", subdomain_data=facets[0], subdomain_id=facets[1])
    form = fem.form(-p * ufl.inner(ufl.FacetNormal(space.mesh), v) * ds(degree=8))
    vector = fem.assemble_vector(form)
    vector.scatter_reverse(la.InsertMode.add)
    return np.array(vector.array[: 3 * space.dofmap.index_map.size_local])[:, None]


def test_the_compliance_is_symmetric_positive_definite() -> None:
    """Every pattern of pressure deforms the bore, and the compliance is reciprocal."""
    body = rod().body
    C = compliance(body)
    assert len(C) == 3 * (2 * body.bore("big_end").harmonics + 1) >= 15
    np.testing.assert_allclose(C, C.T, atol=1e-12 * np.abs(C).max())
    values = np.linalg.eigvalsh(C)
    assert values.min() > 1e-4 * values.max()
    bore = body.bore("big_end")
    np.testing.assert_allclose([bore.radius, bore.length], [RADIUS, LENGTH], rtol=1e-9)
    assert 0 < bore.error <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("direction", [0.0, 0.4, 2.0])
def test_a_cosine_pressure_deforms_the_bore_as_in_the_full_model(direction: float) -> None:
    """∫p w dA agrees to 1 % with a direct solve that uses no reduction and no pattern."""
    body, part = rod(True).body, mesh(True)
    problem = elastic_problem(ElasticModel(part, ALUMINIUM_7075))
    interface = mesh_interfaces(part, problem.space, specs())[0]
    tag = part.groups["big_end"][1]
    f = nodal_pressure(problem.space, (part.facet_tags, tag), direction, False)[:, 0]
    rows = np.zeros((problem.num_owned, 6))
    rows[interface.dofs] = interface.rows
    rigid = problem.rigid_motions(interface.point)
    load = f - rows @ (rigid.T @ f)  # balanced by the reaction of the averaged interface
    np.testing.assert_allclose(rigid.T @ load, 0.0, atol=1e-9 * np.abs(f).sum() * LENGTH)
    i, j, values = problem.stiffness.getValuesCSR()
    # A penalty on the mean motion removes the rigid motions from K.
    K = scipy.sparse.csr_matrix((values, j, i)) + 1e9 * scipy.sparse.csr_matrix(rows @ rows.T)
    u = scipy.sparse.linalg.splu(K.tocsc()).solve(load)
    u -= rigid @ (rows.T @ u)
    g = film_forces(body.bore("big_end"), cosine(THETA, direction))
    assert g @ compliance(body) @ g == pytest.approx(f @ u, rel=0.01)


def test_virtual_work_counts_once() -> None:
    """The forces on w and on the frame do the work of the nodal pressure on each mode."""
    r = rod(True)
    body, bore = r.body, r.body.bore("big_end")
    part, direction = mesh(True), 0.7
    tag = part.groups["big_end"][1]
    f = nodal_pressure(r.space, (part.facet_tags, tag), direction, True)
    full = gram(MPI.COMM_SELF, r.modes, f)[:, 0]
    pressure = 1 + np.cos(THETA - direction)
    force = pressure @ np.column_stack([np.cos(THETA), np.sin(THETA)])
    force *= RADIUS * np.pi / 360 * LENGTH * 2 / 3  # ∫1 − (2z/L)² dz = 2L/3
    frame = body.interface("big_end").motion[:2].T @ force
    elastic = film_forces(bore, pressure) @ bore.displacement.reshape(-1, body.num_modes)
    size = np.abs(full).max()
    np.testing.assert_allclose(frame + elastic, full, atol=1e-3 * size)
    assert np.abs(elastic).max() > 0.1 * size
    assert np.abs(frame).max() > 0.1 * size


def test_bores_do_not_depend_on_the_number_of_ranks() -> None:
    """The compliance of the bore on all ranks equals that on one rank."""
    C = compliance(rod(True).body)
    np.testing.assert_allclose(compliance(rod().body), C, atol=1e-8 * np.abs(C).max())


def test_a_file_contains_the_bore(tmp_path: Path) -> None:
    """A saved body contains size, error and displacements of its bore."""
    body = rod(True).body
    bore, loaded = (
        body.bore("big_end"),
        ReducedBody.load(body.save(tmp_path / "rod")).bore("big_end"),
    )
    assert (loaded.radius, loaded.length, loaded.error) == (bore.radius, bore.length, bore.error)
    np.testing.assert_array_equal(loaded.displacement, bore.displacement)
    assert "pressure modes" in body.summary()


def test_missing_pressure_modes() -> None:
    """An error names the interface and the option; a truncated body has no bores."""
    body = rod(True).body
    with pytest.raises(InputError, match=r"'small_end'.*pressure_modes"):
        body.bore("small_end")
    with pytest.raises(InputError, match=r"'big_end'.*pressure_modes"):
        body.truncated(body.num_modes - 1).bore("big_end")
    assert body.truncated(body.num_modes).bores


def test_interfaces_that_are_not_bores(comm: MPI.Intracomm) -> None:
    """A plane end, a bore with a point aside, and a rigid interface have no pressure modes.

    Neither has a basis that is cut at a frequency; a tolerance near round-off is out of reach.
    """
    spec = InterfaceSpec(kind="averaged", pressure_modes=0.02)
    with pytest.raises(InputError, match="need a bore"):
        reduce(box(comm), ALUMINIUM_7075, interfaces={"left": spec})
    with pytest.raises(InputError, match="middle of the bore"):
        reduce(mesh(), ALUMINIUM_7075, interfaces=specs(point=(0, 0, 0.002), axes=(0, 0, 1)))
    with pytest.raises(InputError, match="averaged"):
        InterfaceSpec(pressure_modes=0.02)
    with pytest.raises(InputError, match="pressure modes"):
        options = ReductionOptions(up_to=1e4)
        reduce(mesh(), ALUMINIUM_7075, interfaces=specs(), options=options)
    tight = {"big_end": InterfaceSpec(kind="averaged", pressure_modes=1e-12)}
    with pytest.raises(InputError, match="16 harmonics"):
        reduce(mesh(), ALUMINIUM_7075, interfaces=tight)
