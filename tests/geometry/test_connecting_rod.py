"""The connecting rod: its mass, its bores, its symmetry, repeatability and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from mpi4py import MPI

from dolfinx_mbd.analysis.meshing import TaggedMesh, build_mesh
from dolfinx_mbd.forms import ALUMINIUM_7075
from dolfinx_mbd.geometry import ConnectingRod


@pytest.fixture(scope="module")
def rod() -> TaggedMesh:
    return build_mesh(ConnectingRod(), MPI.COMM_WORLD)


def _integral(msh: TaggedMesh, value: Any, measure: ufl.Measure | None = None) -> float:
    form = fem.form(value * (measure or ufl.Measure("dx", msh.mesh)))
    return msh.mesh.comm.allreduce(fem.assemble_scalar(form))


def test_mass_of_the_paper(rod: TaggedMesh) -> None:
    """0.153 kg within 2 %, measured on the mesh."""
    mass = _integral(rod, fem.Constant(rod.mesh, ALUMINIUM_7075.density))
    assert mass == pytest.approx(0.153, rel=0.02)


def test_size_of_the_default(rod: TaggedMesh) -> None:
    """About 30,000 displacements of second order, on curved cells."""
    V = fem.functionspace(rod.mesh, ("Lagrange", 2, (3,)))
    assert 25_000 < 3 * V.dofmap.index_map.size_global < 36_000
    assert rod.mesh.geometry.index_map().size_global == V.dofmap.index_map.size_global


def test_centre_is_on_the_planes_of_symmetry(rod: TaggedMesh) -> None:
    """The geometry is symmetric; an unsymmetric mesh of curved cells nearly is."""
    x = ufl.SpatialCoordinate(rod.mesh)
    volume = _integral(rod, fem.Constant(rod.mesh, 1.0))
    centre = [_integral(rod, x[i]) / volume for i in range(3)]
    assert abs(centre[1]) < 1e-7
    assert abs(centre[2]) < 1e-7
    assert 0.3 * 0.137 < centre[0] < 0.5 * 0.137


@pytest.mark.parametrize(
    ("name", "diameter", "width", "at"),
    [("big_end", 0.042, 0.020, 0.0), ("small_end", 0.019, 0.020, 0.137)],
)
def test_bores(rod: TaggedMesh, name: str, diameter: float, width: float, at: float) -> None:
    """The group is the complete surface of the bore, about its axis, and points into it."""
    ds = ufl.Measure("ds", rod.mesh, subdomain_data=rod.facet_tags)(rod.groups[name][1])
    x, n = ufl.SpatialCoordinate(rod.mesh), ufl.FacetNormal(rod.mesh)
    area = _integral(rod, fem.Constant(rod.mesh, 1.0), ds)
    # Quadratic edges of an arc of angle φ miss its length by φ⁴/720 or so: 1e-4 at 30°.
    assert area == pytest.approx(math.pi * diameter * width, rel=2e-4)
    centre = [_integral(rod, x[i], ds) / area for i in range(3)]
    assert centre == pytest.approx([at, 0.0, 0.0], abs=1e-6)
    radius = _integral(rod, ufl.sqrt((x[0] - at) ** 2 + x[1] ** 2), ds) / area
    assert radius == pytest.approx(diameter / 2, rel=2e-4)
    inward = _integral(rod, ((x[0] - at) * n[0] + x[1] * n[1]) / (diameter / 2), ds) / area
    assert inward == pytest.approx(-1.0, rel=2e-3)

    # The same facets by geometry: all nodes on the cylinder.
    nodes = rod.mesh.geometry.x[rod.mesh.geometry.dofmap[:, :4]]
    on = np.abs(np.hypot(nodes[:, :, 0] - at, nodes[:, :, 1]) - diameter / 2) < 1e-9
    owned = rod.mesh.topology.index_map(3).size_local
    cells_with_three = int(np.sum(on[:owned].sum(axis=1) == 3))
    total = rod.mesh.comm.allreduce(_owned_facets(rod, name))
    assert total == rod.mesh.comm.allreduce(cells_with_three)


def _owned_facets(rod: TaggedMesh, name: str) -> int:
    return int(np.sum(rod.facets(name) < rod.mesh.topology.index_map(2).size_local))


def test_every_cell_is_the_rod(rod: TaggedMesh) -> None:
    cells = rod.mesh.topology.index_map(3)
    assert len(rod.cells("rod")) == cells.size_local + cells.num_ghosts


def _nodes(parameters: ConnectingRod) -> tuple[float, int, np.ndarray]:
    """Least scaled Jacobian, number of tetrahedra and nodes of a rod, by gmsh alone."""
    gmsh = pytest.importorskip("gmsh")
    mine = not gmsh.isInitialized()
    if mine:
        gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.add("test rod")
        before = gmsh.option.getNumber("Mesh.MeshSizeMax")
        parameters(gmsh.model)
        assert gmsh.option.getNumber("Mesh.MeshSizeMax") == before
        _, tags, _ = gmsh.model.mesh.getElements(3)
        quality = gmsh.model.mesh.getElementQualities(tags[0], "minSJ")
        groups = {gmsh.model.getPhysicalName(*g): g[0] for g in gmsh.model.getPhysicalGroups()}
        assert groups == {"rod": 3, "big_end": 2, "small_end": 2}
        return min(quality), len(tags[0]), gmsh.model.mesh.getNodes()[1]
    finally:
        gmsh.model.remove()
        if mine:
            gmsh.finalize()


def test_is_repeatable() -> None:
    """Two runs give the same mesh to the bit."""
    first, second = (_nodes(ConnectingRod(size=0.008))[2] for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("order", [1, 2])
def test_sizes(order: int) -> None:
    """From coarse to fine: no inverted cells, and more of them."""
    numbers = []
    for size in (0.012, 0.008, 0.004):
        worst, number, nodes = _nodes(ConnectingRod(size=size, order=order))
        assert worst > 0.1
        assert 3 * number / 1.5 < len(nodes) * {1: 10, 2: 1}[order]
        numbers.append(number)
    assert numbers[-1] > 1.5 * numbers[-2]


@pytest.mark.parametrize(
    "changes",
    [
        {"big_bore": 0.050},
        {"small_outer": 0.036},
        {"shank_big": 0.018, "shank_small": 0.022},
        {"shank_big": 0.020, "shank_small": 0.020},
        {"flange_width": 0.020},
        {"web_thickness": 0.002},
        {"length": 0.170, "fillet_big": 0.030},
        {"flange_thickness": 0.003, "pocket_margin": 0.001},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_variations(changes: dict[str, float]) -> None:
    assert _nodes(ConnectingRod(size=0.006, **changes))[0] > 0.1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": -0.1}, "length must be positive and finite; got -0.1"),
        ({"size": 0.0}, "size must be positive"),
        ({"size": math.nan}, "size must be positive and finite; got nan"),
        ({"size": "fine"}, "size must be a number; got 'fine'"),
        ({"order": 3}, "order must be 1 or 2; got 3"),
        ({"order": 1.5}, "order must be 1 or 2; got 1.5"),
        ({"big_bore": 0.06}, "big_bore must be less than big_outer.*0.06 and 0.058"),
        ({"small_bore": 0.03}, "small_bore must be less than small_outer"),
        ({"shank_small": 0.028}, "shank_small must be less than 0.906 times small_outer"),
        ({"shank_big": 0.058}, "shank_big must be less than"),
        ({"flange_width": 0.021}, "flange_width must not exceed big_width; got 0.021 and 0.02"),
        ({"web_thickness": 0.015}, "web_thickness must be less than flange_width"),
        ({"length": 0.04}, "length must exceed the outer radii"),
        ({"fillet_big": 1.0}, "the fillets meet on the shank"),
        ({"flange_thickness": 0.011}, "flange_thickness leaves no web"),
        ({"pocket_margin": 0.05}, "the shank is too short for a pocket"),
    ],
)
def test_impossible_parameters_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ConnectingRod(**changes)
