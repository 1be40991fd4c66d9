"""The connecting rod: its mass, bores, symmetry, repeatability and invalid parameters."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem
from mpi4py import MPI

from dolfinx_mbd.errors import InputError, MeshWarning
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.compat import geometry_dofmap
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh, read_mesh
from dolfinx_mbd.fem.modal.natural_modes import modal_analysis
from dolfinx_mbd.forms import ALUMINIUM_7075
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.geometry.gmsh_model import gmsh_session


@pytest.fixture(scope="module")
def rod() -> TaggedMesh:
    """Return the mesh of the default rod."""
    return build_mesh(ConnectingRod(), MPI.COMM_WORLD)


def _integral(msh: TaggedMesh, value: Any, measure: ufl.Measure | None = None) -> float:
    """Return the integral of a value over the mesh or another measure."""
    form = fem.form(value * (measure or ufl.Measure("dx", msh.mesh)))
    return msh.mesh.comm.allreduce(fem.assemble_scalar(form))


def test_mass_of_the_paper(rod: TaggedMesh) -> None:
    """The mass of the mesh is 0.153 kg, the specified mass of the default rod, within 2 %."""
    mass = _integral(rod, fem.Constant(rod.mesh, ALUMINIUM_7075.density))
    assert mass == pytest.approx(0.153, rel=0.02)


def test_lengths_with_units() -> None:
    assert ConnectingRod(size="5mm").size == 0.005
    with pytest.raises(InputError, match="size must be a finite number from 1e-06 to 1e"):
        ConnectingRod(size="5 parsec")


def test_size_of_the_default(rod: TaggedMesh) -> None:
    """The default has about 30,000 displacements of second order on curved cells."""
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
    """The group contains the complete surface of the bore, and normals point into the bore."""
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

    # The same number of facets by geometry: cells with three corners on the cylinder.
    nodes = rod.mesh.geometry.x[geometry_dofmap(rod.mesh)[:, :4]]
    on = np.abs(np.hypot(nodes[:, :, 0] - at, nodes[:, :, 1]) - diameter / 2) < 1e-9
    owned = rod.mesh.topology.index_map(3).size_local
    cells_with_three = int(np.sum(on[:owned].sum(axis=1) == 3))
    total = rod.mesh.comm.allreduce(_owned_facets(rod, name))
    assert total == rod.mesh.comm.allreduce(cells_with_three)


def _owned_facets(rod: TaggedMesh, name: str) -> int:
    """Return the number of facets of a group on this rank."""
    return int(np.sum(rod.facets(name) < rod.mesh.topology.index_map(2).size_local))


def test_every_cell_is_the_rod(rod: TaggedMesh) -> None:
    cells = rod.mesh.topology.index_map(3)
    assert len(rod.cells("rod")) == cells.size_local + cells.num_ghosts


def _nodes(parameters: ConnectingRod) -> tuple[float, int, np.ndarray]:
    """Return least scaled Jacobian, number of tetrahedra and coordinates of the nodes, by gmsh."""
    gmsh = pytest.importorskip("gmsh")
    starts_gmsh = not gmsh.isInitialized()
    if starts_gmsh:
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
        split = {"cap": 3, "parting": 2} if parameters.split_big_end else {}
        assert groups == {"rod": 3, "big_end": 2, "small_end": 2} | split
        return min(quality), len(tags[0]), gmsh.model.mesh.getNodes()[1]
    finally:
        gmsh.model.remove()
        if starts_gmsh:
            gmsh.finalize()


def test_is_repeatable() -> None:
    """Two runs give exactly the same mesh."""
    first, second = (_nodes(ConnectingRod(size=0.008))[2] for _ in range(2))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("order", [1, 2])
def test_sizes(order: int) -> None:
    """Smaller sizes give more cells, and no inverted ones."""
    numbers = []
    for size in (0.012, 0.008, 0.004):
        worst, number, nodes = _nodes(ConnectingRod(size=size, order=order))
        assert worst > 0.1
        # three coordinates; fewer than 1.5 cells for each node of second order
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
    ("argument", "value"),
    [
        ("length", -0.1),
        ("size", 0.0),
        ("size", math.nan),
        ("size", "fine"),
        ("fillet_big", 1e300),
        ("web_thickness", 10**400),
        ("order", 3),
        ("order", 1.5),
        ("split_big_end", 1),
    ],
)
def test_impossible_values_are_refused(argument: str, value: Any) -> None:
    with pytest.raises(InputError) as error:
        ConnectingRod(**{argument: value})
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [
        ("big_bore", 0.056, "less than 0.93 times big_outer, 0.05394 m"),
        ("small_bore", 0.03, "less than 0.93 times small_outer"),
        ("shank_small", 0.028, "less than 0.87 times small_outer"),
        ("flange_width", 0.0198, "equal to big_width, 0.02 m, or less than 0.95 times"),
        ("flange_thickness", 0.0099, "the end radius of the pockets"),
        ("shank_big", 0.058, "less than 0.87.* times big_outer"),
        ("flange_width", 0.021, "at most big_width, 0.02 m"),
        ("web_thickness", 0.015, "less than flange_width"),
        ("length", 0.04, "above 0.044 m"),
        ("fillet_big", 1.0, "the fillets overlap"),
        ("flange_thickness", 0.011, "the end radius of the pockets is -"),
        ("pocket_margin", 0.05, "too short for pockets"),
    ],
)
def test_impossible_parameters_are_refused(argument: str, value: float, expected: str) -> None:
    with pytest.raises(InputError) as error:
        ConnectingRod(**{argument: value})  # type: ignore[arg-type]
    assert (error.value.argument, error.value.value) == (argument, value)
    assert re.search(expected, error.value.expected or "")


SPLIT = ConnectingRod(split_big_end=True)


@pytest.fixture(scope="module")
def split() -> TaggedMesh:
    """Return the mesh of a rod with a separate cap."""
    return build_mesh(SPLIT, MPI.COMM_WORLD)


def test_split_big_end(rod: TaggedMesh, split: TaggedMesh) -> None:
    """Rod and cap are the whole rod, cut at x = 0 across both sides of the ring."""
    dx = ufl.Measure("dx", split.mesh, subdomain_data=split.cell_tags)
    one, x = fem.Constant(split.mesh, 1.0), ufl.SpatialCoordinate(split.mesh)
    parts = {name: _integral(split, one, dx(split.groups[name][1])) for name in ("rod", "cap")}
    whole = _integral(rod, fem.Constant(rod.mesh, 1.0))
    assert sum(parts.values()) == pytest.approx(whole, rel=1e-4)
    area = math.pi * (SPLIT.big_outer**2 - SPLIT.big_bore**2) / 8
    assert parts["cap"] == pytest.approx(area * SPLIT.big_width, rel=3e-4)
    for name, side in {"rod": 1, "cap": -1}.items():
        nodes = split.mesh.geometry.x[compat.geometry_dofmap(split.mesh)[split.cells(name)]]
        assert (side * nodes[..., 0] > -1e-9).all()
    cut = ufl.Measure("dS", split.mesh, subdomain_data=split.facet_tags)
    parting = cut(split.groups["parting"][1])
    integral = _integral(split, ufl.avg(one * abs(x[0])), parting)
    assert integral < 1e-12
    integral = _integral(split, ufl.avg(one), parting)
    assert integral == pytest.approx((SPLIT.big_outer - SPLIT.big_bore) * SPLIT.big_width, rel=1e-9)


def test_split_bore_is_whole(split: TaggedMesh) -> None:
    """The interface of the crank pin contains both halves."""
    ds = ufl.Measure("ds", split.mesh, subdomain_data=split.facet_tags)
    area = _integral(split, fem.Constant(split.mesh, 1.0), ds(split.groups["big_end"][1]))
    assert area == pytest.approx(math.pi * SPLIT.big_bore * SPLIT.big_width, rel=2e-4)


def test_split_body_is_bonded(comm: MPI.Intracomm) -> None:
    """Cap and rod share their nodes: one body, with the frequencies of the undivided rod."""
    rods = [ConnectingRod(size=COARSE, split_big_end=split) for split in (False, True)]
    undivided, divided = (
        modal_analysis(build_mesh(rod, comm), ALUMINIUM_7075, num_modes=2).frequencies
        for rod in rods
    )
    assert divided == pytest.approx(undivided, rel=0.01)


def _documented_ranges() -> dict[str, tuple[float, float]]:
    """Return the ranges of the parameters, relative to the length, from the docstring."""
    matches = re.findall(r"(\w+) +([\d.]+) … ([\d.]+)", ConnectingRod.__doc__ or "")
    return {name: (float(low), float(high)) for name, low, high in matches}


RANGES = _documented_ranges()
LENGTH = ConnectingRod.length
COARSE = LENGTH / 7


def _inside(name: str, share: float) -> float:
    """Return a value of a parameter at a fraction of its range."""
    low, high = RANGES[name]
    return LENGTH * (low + share * (high - low))


def _meshes_or_is_refused(monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]) -> bool:
    """Return whether a rod is valid; otherwise a ValueError is raised before gmsh is called."""
    try:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "gmsh", None)
            rod = ConnectingRod(**{"size": COARSE} | changes)
    except ValueError as error:
        assert re.search(r"must|decrease|increase", str(error)), error
        return False
    assert _nodes(rod)[0] > 0.1
    return True


def test_every_length_has_a_range() -> None:
    names = {field.name for field in fields(ConnectingRod)}
    assert set(RANGES) | {"length", "order", "split_big_end"} == names
    for name, (low, high) in RANGES.items():
        assert low * LENGTH <= getattr(ConnectingRod(), name) <= high * LENGTH, name


alone = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="gmsh alone, the same on every rank")


@pytest.mark.slow
@alone
@pytest.mark.parametrize("name", RANGES)
def test_both_ends_of_each_range(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least one end of each range is possible with the defaults of the other parameters."""
    shares = (0.0, 1.0)
    is_valid = [_meshes_or_is_refused(monkeypatch, {name: _inside(name, s)}) for s in shares]
    assert any(is_valid)


@alone
@pytest.mark.parametrize("length", [0.01, 0.05, 0.5, 2.0])
def test_any_length(length: float) -> None:
    """The shape of the rod does not depend on its length."""
    shape = {n: getattr(ConnectingRod(), n) * length / LENGTH for n in RANGES}
    assert _nodes(ConnectingRod(**{**shape, "length": length, "size": length / 7}))[0] > 0.1


@pytest.mark.slow
@alone
@pytest.mark.parametrize("split_big_end", [False, True])
def test_random_rods(split_big_end: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parameters are drawn from their ranges; at least a third of the rods are possible."""
    rng = np.random.default_rng(1)
    points = [{name: _inside(name, rng.uniform()) for name in RANGES} for _ in range(30)]
    is_valid = [
        _meshes_or_is_refused(
            monkeypatch, {**point, "size": COARSE, "split_big_end": split_big_end}
        )
        for point in points
    ]
    assert sum(is_valid) >= 10


@alone
def test_script_writes_a_split_rod(tmp_path: Path) -> None:
    """`meshes/connecting_rod.py` has an option for each parameter and clear errors."""
    script = Path(__file__).parents[2] / "meshes" / "connecting_rod.py"

    def run(*options: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(script), "-o", str(tmp_path / "rod.msh"), *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("--size", "0.02", "--split-big-end")
    assert done.returncode == 0, done.stderr
    mesh = read_mesh(tmp_path / "rod.msh", MPI.COMM_SELF)
    assert set(mesh.groups) == {"rod", "cap", "parting", "big_end", "small_end"}
    failed = run("--big-bore", "0.06")
    assert failed.returncode == 1
    assert "big_bore must be less than" in failed.stderr


def test_a_mesh_of_too_many_cells_causes_a_warning_before_gmsh_meshes() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", MeshWarning)
        with gmsh_session() as gmsh, pytest.raises(MeshWarning) as error:
            ConnectingRod(small_width=10.0)(gmsh.model)
    assert error.value.quantity == "number of cells"
    assert error.value.limit is not None and error.value.value is not None
    assert error.value.limit < 3e5 < error.value.value < 5e5
