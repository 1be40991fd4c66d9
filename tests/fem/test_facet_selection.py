"""Facets selected by geometry are those of the named groups, on any number of ranks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import (
    CellType,
    Mesh,
    create_box,
    create_rectangle,
    entities_to_geometry,
    locate_entities_boundary,
)
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem import ElasticModel, TaggedMesh, build_mesh, pick
from dolfinx_mbd.forms import STEEL
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.reduction import reduce

gmsh = pytest.importorskip("gmsh")

SIZE = (2.0, 1.0, 0.5)
X, Z = (1, 0, 0), (0, 0, 1)


def box(comm: MPI.Intracomm, cell: CellType = CellType.tetrahedron) -> Mesh:
    """Return a box without tags."""
    return create_box(comm, [(0, 0, 0), SIZE], (6, 4, 3), cell)


def count(mesh: Mesh, facets: NDArray[np.int32]) -> int:
    """Return the number of selected facets of all ranks; each counts on its owner."""
    owned = mesh.topology.index_map(mesh.topology.dim - 1).size_local
    return int(mesh.comm.allreduce(int(np.sum(facets < owned))))


def centres(mesh: Mesh, facets: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the sorted centres of the owned facets of all ranks."""
    dim = mesh.topology.dim
    owned = facets[facets < mesh.topology.index_map(dim - 1).size_local]
    local = np.zeros((0, 3))
    if len(owned):
        local = mesh.geometry.x[entities_to_geometry(mesh, dim - 1, owned)].mean(axis=1)
    all_centres = np.round(np.concatenate(mesh.comm.allgather(local)), 9)
    return all_centres[np.lexsort(all_centres.T)]


def on_boundary(mesh: Mesh, where: Any) -> NDArray[np.int32]:
    """Return DOLFINx' selection; unlike that of `pick`, it may lack ghosts."""
    return np.sort(locate_entities_boundary(mesh, mesh.topology.dim - 1, where))


@pytest.fixture(scope="module", params=[1, 2])
def rod(request: pytest.FixtureRequest) -> tuple[ConnectingRod, TaggedMesh]:
    """Return a connecting rod and its mesh."""
    part = ConnectingRod(size=0.014, order=request.param)
    return part, build_mesh(part, MPI.COMM_WORLD)


def bores(part: ConnectingRod) -> dict[str, Any]:
    """Return a point of the axis, its direction and the radius of both bores."""
    return {
        "big_end": ((0, 0, 0.3), (0, 0, -2), part.big_bore / 2),
        "small_end": ((part.length, 0, 0), Z, part.small_bore / 2),
    }


def test_bores_of_a_rod(rod: tuple[ConnectingRod, TaggedMesh]) -> None:
    """The selected facets, including ghosts, equal those of the name, also from a point."""
    part, mesh = rod
    for name, cylinder in bores(part).items():
        expected = mesh.facets(name)
        assert np.array_equal(pick(mesh.mesh, cylinder=cylinder), expected)
        (x, y, _), _, radius = cylinder
        angle = 0.3
        near = (x + radius * math.cos(angle), y + radius * math.sin(angle), 0.001)
        assert np.array_equal(pick(mesh, near=near), expected)


def test_texts_with_units(rod: tuple[ConnectingRod, TaggedMesh]) -> None:
    part, mesh = rod
    radius = f"{part.small_bore / 2 * 1e3!r}mm"
    cylinder = ((f"{part.length * 1e3!r}mm", 0, 0), Z, radius)
    assert np.array_equal(pick(mesh, cylinder=cylinder), mesh.facets("small_end"))


def test_half_of_a_bore(rod: tuple[ConnectingRod, TaggedMesh]) -> None:
    """A cylinder and a box select the common facets."""
    part, mesh = rod
    cylinder = bores(part)["big_end"]
    low, high = (-1, -1, -1), (1, 1, 0.25 * part.big_width)
    selected = pick(mesh, cylinder=cylinder, box=(low, high))
    expected = np.intersect1d(pick(mesh, cylinder=cylinder), pick(mesh, box=(low, high)))
    assert np.array_equal(selected, expected)
    assert 0 < count(mesh.mesh, selected) < count(mesh.mesh, mesh.facets("big_end"))


def test_same_reduction_as_with_names() -> None:
    part = ConnectingRod(size=0.02)
    mesh = build_mesh(part, MPI.COMM_WORLD)
    named = reduce(ElasticModel(mesh, STEEL), interfaces=["big_end", "small_end"], num_modes=2)
    facets = {name: pick(mesh.mesh, cylinder=shape) for name, shape in bores(part).items()}
    picked = reduce(ElasticModel(mesh.mesh, STEEL), interfaces=facets, num_modes=2)
    assert picked.body.frequencies == pytest.approx(named.body.frequencies, rel=1e-10)
    for expected, interface in zip(named.body.interfaces, picked.body.interfaces, strict=True):
        assert expected.name == interface.name
        assert np.allclose(expected.point, interface.point, atol=1e-14)
        assert np.allclose(expected.axes, interface.axes, atol=1e-14)


@pytest.mark.parametrize("cell", [CellType.tetrahedron, CellType.hexahedron])
def test_faces_of_a_box(comm: MPI.Intracomm, cell: CellType) -> None:
    mesh = box(comm, cell)
    for axis in range(3):
        for value in (0.0, SIZE[axis]):
            # any point of the plane, and a point inside the face
            normal, point, middle = np.zeros(3), np.full(3, 0.123), 0.47 * np.array(SIZE)
            normal[axis], point[axis], middle[axis] = -3.0, value, value
            expected = centres(mesh, on_boundary(mesh, lambda x: np.isclose(x[axis], value)))
            low, high = np.full(3, -1.0), np.full(3, 3.0)
            low[axis] = high[axis] = value
            for facets in (
                pick(mesh, plane=(point, normal)),
                pick(mesh, box=(low, high)),
                pick(mesh, near=middle),
            ):
                assert np.array_equal(centres(mesh, facets), expected)


def test_oblique_plane(comm: MPI.Intracomm) -> None:
    """Select a face of a rotated box, and the part of this face in a box."""
    mesh = box(comm)
    c, s = math.cos(0.7), math.sin(0.7)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    end = on_boundary(mesh, lambda x: np.isclose(x[0], SIZE[0]))
    upper = on_boundary(mesh, lambda x: np.isclose(x[0], SIZE[0]) & (x[2] > 0.16))
    mesh.geometry.x[:] = mesh.geometry.x @ R.T
    plane = R @ [SIZE[0], 5.0, 0], R[:, 0]
    assert np.array_equal(centres(mesh, pick(mesh, plane=plane)), centres(mesh, end))
    upper_part = pick(mesh, plane=plane, box=((-9, -9, 0.16), (9, 9, 9)))
    assert np.array_equal(centres(mesh, upper_part), centres(mesh, upper))


def test_ghosts_have_the_same_selection_as_their_owners(comm: MPI.Intracomm) -> None:
    mesh = box(comm)
    facets = pick(mesh, plane=((0, 0, 0), Z))
    index_map = mesh.topology.index_map(2)
    owned = index_map.local_to_global(facets[facets < index_map.size_local])
    all_owned = np.concatenate(comm.allgather(owned))
    local = index_map.local_to_global(np.arange(index_map.size_local + index_map.num_ghosts))
    assert np.array_equal(facets, np.flatnonzero(np.isin(local, all_owned)))
    assert len(np.unique(all_owned)) == len(all_owned) == 6 * 4 * 2


@pytest.mark.parametrize(
    "options",
    [
        {"near": (1.3, 0.45, 0.5)},
        {"near": (0.4, 1.02, 0.2)},
        {"plane": ((0, 0, 0.5), Z), "box": ((0.5, -1, 0), (9, 0.8, 1))},
        {"cylinder": ((1, 0.5, 0), X, math.hypot(0.5, 0.25)), "tolerance": 0.3},
    ],
)
def test_same_facets_as_on_one_rank(comm: MPI.Intracomm, options: dict[str, Any]) -> None:
    mesh, alone = box(comm), box(MPI.COMM_SELF)
    expected = centres(alone, pick(alone, **options))
    assert np.array_equal(centres(mesh, pick(mesh, **options)), expected)
    assert len(expected) > 0


def test_ranks_without_facets(comm: MPI.Intracomm) -> None:
    """The selected corner leaves most ranks without facets, and some without cells."""
    mesh = box(comm)
    facets = pick(mesh, plane=((0, 0, 0), X), box=((-1, -1, -1), (1, 0.25, 1 / 6)))
    assert count(mesh, facets) == 2
    small = create_box(comm, [(0, 0, 0), (1, 1, 1)], (1, 1, 1), CellType.hexahedron)
    assert count(small, pick(small, plane=((1, 0, 0), X))) == 1
    assert count(small, pick(small, near=(1, 0.5, 0.5))) == 1


@pytest.mark.parametrize("cell", [CellType.triangle, CellType.quadrilateral])
def test_plane_mesh(comm: MPI.Intracomm, cell: CellType) -> None:
    mesh = create_rectangle(comm, [(0, 0), (2, 1)], (8, 4), cell)
    expected = centres(mesh, on_boundary(mesh, lambda x: np.isclose(x[0], 2.0)))
    for facets in (
        pick(mesh, plane=((2, 0), (1, 0))),
        pick(mesh, plane=((2, 0.3, 0), X)),
        pick(mesh, near=(2.01, 0.4)),
        pick(mesh, box=((2, 0), (2, 1))),
    ):
        assert np.array_equal(centres(mesh, facets), expected)


def test_circle_in_a_plane_mesh(comm: MPI.Intracomm) -> None:
    def plate(model: Any) -> None:
        occ = model.occ
        hole = occ.addDisk(0.4, 0.5, 0, 0.2, 0.2)
        occ.cut([(2, occ.addRectangle(0, 0, 0, 2, 1))], [(2, hole)])
        occ.synchronize()
        model.addPhysicalGroup(2, [tag for _, tag in model.getEntities(2)], name="plate")
        circle = [t for _, t in model.getEntities(1) if model.getType(1, t) != "Line"]
        model.addPhysicalGroup(1, circle, name="hole")
        model.mesh.setSize(model.getEntities(0), 0.08)
        model.mesh.generate(2)

    mesh = build_mesh(plate, comm)
    assert count(mesh.mesh, mesh.facets("hole")) > 10
    assert np.array_equal(pick(mesh, cylinder=((0.4, 0.5), Z, 0.2)), mesh.facets("hole"))
    assert np.array_equal(pick(mesh, near=(0.6, 0.51)), mesh.facets("hole"))


@pytest.mark.parametrize(
    ("cell", "per_side"), [(CellType.tetrahedron, 2), (CellType.hexahedron, 1)]
)
def test_ends_of_a_pin_are_not_on_its_cylinder(
    comm: MPI.Intracomm, cell: CellType, per_side: int
) -> None:
    """All corners of a square prism are on a cylinder, also those of its ends."""
    mesh = create_box(comm, [(-1, -1, 0), (1, 1, 4)], (1, 1, 3), cell)
    facets = pick(mesh, cylinder=((0, 0, 0), Z, math.sqrt(2)))
    assert count(mesh, facets) == 4 * 3 * per_side
    sides = on_boundary(mesh, lambda x: np.isclose(np.abs(x[:2]).max(axis=0), 1))
    sides = np.setdiff1d(sides, on_boundary(mesh, lambda x: np.isclose(x[2] % 4, 0)))
    assert np.array_equal(centres(mesh, facets), centres(mesh, sides))


def test_tolerance(comm: MPI.Intracomm) -> None:
    mesh = box(comm)
    facets = pick(mesh, plane=((2.001, 0, 0), X), tolerance="1.1mm")
    assert count(mesh, facets) == 4 * 3 * 2


@pytest.mark.parametrize(
    ("shapes", "distance"),
    [
        ({"plane": ((2.001, 0, 0), X)}, 0.001),
        ({"plane": ((2, 0, 0), X), "box": ((0, 0, -3), (2, 1, -0.25))}, 1 / 3),
        ({"near": (2.0, 0.5, 3.5)}, 3.0),
        ({"near": (2.5, 0.5, 0.2), "tolerance": 0.1}, 0.5),
    ],
)
def test_nothing_selected(comm: MPI.Intracomm, shapes: dict[str, Any], distance: float) -> None:
    """The error has the distance of the nearest facet, and a tolerance if it is small."""
    mesh = box(comm)
    with pytest.raises(InputError) as error:
        pick(mesh, **shapes)
    text = str(error.value)
    assert len(set(comm.allgather(text))) == 1
    assert float(text.split("a distance of ")[1].split()[0]) == pytest.approx(distance, rel=2e-3)
    small = distance < 0.01 * np.linalg.norm(SIZE)
    assert ("tolerance of at least" in text) == (small or "near" in shapes)
    if small:
        suggestion = float(text.rsplit(" ", 2)[1])
        assert count(mesh, pick(mesh, **shapes | {"tolerance": suggestion})) == 4 * 3 * 2


def test_point_on_an_edge(comm: MPI.Intracomm) -> None:
    with pytest.raises(InputError, match="2 smooth surfaces") as error:
        pick(box(comm), near=(2, 0.41, 0.5))
    assert error.value.argument == "near"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, InputError),
        ({"near": (0, 0, 0), "plane": ((0, 0, 0), X)}, InputError),
        ({"near": (0, 0)}, InputError),
        ({"near": "bore"}, InputTypeError),
        ({"plane": ((0, 0, 0), (0, 0, 0))}, InputError),
        ({"plane": ((0, 0, 0),)}, InputError),
        ({"plane": 3.0}, InputTypeError),
        ({"cylinder": ((0, 0, 0), Z, 0.0)}, InputError),
        ({"cylinder": ((0, 0, 0), Z, -1.0)}, InputError),
        ({"cylinder": ((0, 0, 0), Z)}, InputError),
        ({"cylinder": ((0, math.nan, 0), Z, 1.0)}, InputError),
        ({"box": ((1, 1, 1), (0, 2, 2))}, InputError),
        ({"plane": ((0, 0, 0), X), "tolerance": -1.0}, InputError),
        ({"plane": ((0, 0, 0), X), "tolerance": "mm"}, InputError),
    ],
)
def test_invalid_arguments(
    comm: MPI.Intracomm, options: dict[str, Any], kind: type[InputError]
) -> None:
    with pytest.raises(kind):
        pick(box(comm), **options)


def test_invalid_meshes(comm: MPI.Intracomm) -> None:
    with pytest.raises(InputTypeError):
        pick("rod.msh", near=(0, 0, 0))  # type: ignore[arg-type]
    flat = create_rectangle(comm, [(0, 0), (1, 1)], (2, 2))
    with pytest.raises(InputError, match="plane mesh"):
        pick(flat, cylinder=((0, 0), X, 1.0))
    with pytest.raises(InputError):
        pick(flat, near=(0, 0, 1.0))
