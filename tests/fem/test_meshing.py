"""Meshes with named parts: groups, files, dimensions, and errors that every rank raises."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh, read_mesh, write_mesh

gmsh = pytest.importorskip("gmsh")


@pytest.fixture
def folder(comm: MPI.Intracomm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one empty directory for all ranks."""
    path = tmp_path_factory.mktemp("meshes") if comm.rank == 0 else None
    return comm.bcast(path, root=0)


def box(
    order: int = 1,
    size: float = 0.5,
    cells: str = "body",
    facets: tuple[str, ...] = ("low", "high"),
) -> Callable[[Any], None]:
    """Return a function that builds a box of 2×1×1 in gmsh with a physical group at each end.

    An empty string as the name of a group makes a group without a name.
    """

    def build(model: Any) -> None:
        volume = model.occ.addBox(0, 0, 0, 2, 1, 1)
        model.occ.synchronize()
        ends = [
            tag
            for x in (0, 2)
            for _, tag in model.getEntitiesInBoundingBox(x - 0.1, -1, -1, x + 0.1, 2, 2, 2)
        ]
        model.addPhysicalGroup(3, [volume], 7, name=cells)
        for number, (tag, name) in enumerate(zip(ends, facets, strict=False)):
            model.addPhysicalGroup(2, [tag], number + 1, name=name)
        model.mesh.setSize(model.getEntities(0), size)
        model.mesh.generate(3)
        model.mesh.setOrder(order)

    return build


def _integral(msh: TaggedMesh, measure: ufl.Measure) -> float:
    """Return the volume or area that a measure integrates over."""
    one = fem.Constant(msh.mesh, 1.0)
    return msh.mesh.comm.allreduce(fem.assemble_scalar(fem.form(one * measure)))


def _area(msh: TaggedMesh, name: str) -> float:
    """Return the area of a group of facets."""
    ds = ufl.Measure("ds", msh.mesh, subdomain_data=msh.facet_tags)
    return _integral(msh, ds(msh.groups[name][1]))


def _write(comm: MPI.Intracomm, builder: Callable[[Any], None], path: Path) -> Path:
    """Write a mesh on the first rank, and return its path."""
    if comm.rank == 0:
        write_mesh(builder, path)
    comm.Barrier()
    return path


def _write_raw(comm: MPI.Intracomm, builder: Callable[[Any], None], path: Path) -> Path:
    """Write with gmsh a mesh that `write_mesh` would reject."""
    if comm.rank == 0:
        gmsh.initialize(interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
        builder(gmsh.model)
        gmsh.write(str(path))
        gmsh.finalize()
    comm.Barrier()
    return path


def _raised(comm: MPI.Intracomm, kind: type[Exception], call: Callable[[], object]) -> str:
    """Return the message of the error of `call`, which must be the same on every rank."""
    with pytest.raises(kind) as error:
        call()
    messages = comm.allgather((type(error.value), str(error.value)))
    assert len(set(messages)) == 1
    return str(error.value)


@pytest.mark.parametrize("order", [1, 2])
def test_build(comm: MPI.Intracomm, order: int) -> None:
    msh = build_mesh(box(order), comm)
    assert msh.mesh.geometry.dim == msh.mesh.topology.dim == 3
    assert dict(msh.groups) == {"body": (3, 7), "low": (2, 1), "high": (2, 2)}
    assert _integral(msh, ufl.Measure("dx", msh.mesh)) == pytest.approx(2.0, rel=1e-13)
    for name, x in (("low", 0.0), ("high", 2.0)):
        assert _area(msh, name) == pytest.approx(1.0, rel=1e-13)
        facets = msh.facets(name)
        assert facets.dtype == np.int32
        expected = mesh.locate_entities_boundary(msh.mesh, 2, lambda p, x=x: np.isclose(p[0], x))
        assert np.array_equal(np.sort(facets), np.sort(expected))
    assert msh.cell_tags is not None and msh.facet_tags is not None
    assert (msh.cell_tags.name, msh.facet_tags.name) == ("cell_tags", "facet_tags")


@pytest.mark.parametrize("order", [1, 2])
def test_file_is_the_same_mesh(comm: MPI.Intracomm, folder: Path, order: int) -> None:
    path = _write(comm, box(order), folder / "box.msh")
    read, built = read_mesh(path, comm), build_mesh(box(order), comm)
    assert dict(read.groups) == dict(built.groups)
    for dim in (0, 3):
        sizes = [m.mesh.topology.index_map(dim).size_global for m in (read, built)]
        assert sizes[0] == sizes[1]
    assert _area(read, "low") == pytest.approx(1.0, rel=1e-13)
    assert _integral(read, ufl.Measure("dx", read.mesh)) == pytest.approx(2.0, rel=1e-13)
    assert read_mesh(str(path), comm).mesh.geometry.dim == 3  # a path may be a string


def test_unnamed_groups_are_read(comm: MPI.Intracomm, folder: Path) -> None:
    path = _write(comm, box(cells="", facets=("low", "")), folder / "unnamed.msh")
    msh = read_mesh(path, comm)
    assert dict(msh.groups) == {"low": (2, 1)}
    assert msh.cell_tags is not None and msh.facet_tags is not None
    assert comm.allreduce(len(msh.facet_tags.find(2))) > 0
    assert comm.allreduce(len(msh.cell_tags.find(7))) > 0


def test_no_facet_groups(comm: MPI.Intracomm) -> None:
    msh = build_mesh(box(facets=()), comm)
    assert msh.facet_tags is not None
    assert msh.facet_tags.dim == 2
    assert len(msh.facet_tags.indices) == 0
    message = _raised(comm, ValueError, lambda: msh.facets("low"))
    assert message == "unknown group 'low'; this mesh has no named group"


def test_unknown_names(comm: MPI.Intracomm) -> None:
    msh = build_mesh(box(facets=("big_end", "small_end")), comm)
    assert _raised(comm, ValueError, lambda: msh.facets("bigend")) == (
        "unknown group 'bigend'; this mesh has 'big_end', 'small_end'"
    )
    # A region is not an interface, and an interface is not a region.
    assert "unknown group 'body'" in _raised(comm, ValueError, lambda: msh.facets("body"))
    assert _raised(comm, ValueError, lambda: msh.cells("big_end")) == (
        "unknown region 'big_end'; this mesh has 'body'"
    )


def test_own_mesh_and_tags(comm: MPI.Intracomm) -> None:
    """A mesh that was created with DOLFINx may have tags or not."""
    cube = mesh.create_unit_cube(comm, 2, 2, 2)
    facets = mesh.locate_entities_boundary(cube, 2, lambda x: np.isclose(x[0], 1.0))
    tags = mesh.meshtags(cube, 2, np.sort(facets), np.full(len(facets), 5, dtype=np.int32))
    msh = TaggedMesh(cube, facet_tags=tags, groups={"end": (2, 5), "start": (2, 6)})
    assert np.array_equal(msh.facets("end"), np.sort(facets))
    assert len(msh.facets("start")) == 0
    with pytest.raises(TypeError):
        msh.groups["other"] = (2, 1)  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        msh.mesh = cube  # type: ignore[misc]
    with pytest.raises(ValueError, match="cell_tags must tag dimension 3; it tags 2"):
        TaggedMesh(cube, cell_tags=tags)
    assert dict(TaggedMesh(cube).groups) == {}


def test_named_points_and_curves_do_no_harm(comm: MPI.Intracomm) -> None:
    def build(model: Any) -> None:
        box()(model)
        model.addPhysicalGroup(0, [1], name="corner")
        model.addPhysicalGroup(
            1, [1, 2], name="body"
        )  # the same name may exist in a lower dimension

    assert set(build_mesh(build, comm).groups) == {"body", "low", "high"}


def test_nodes_without_elements_and_gaps(comm: MPI.Intracomm, folder: Path) -> None:
    """Node numbers need not be contiguous."""
    path = _write(comm, box(), folder / "gaps.msh")
    if comm.rank == 0:
        gmsh.initialize(interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.merge(str(path))
        tags = gmsh.model.mesh.getNodes()[0]
        gmsh.model.mesh.renumberNodes(tags, 3 * tags + 10)
        gmsh.write(str(path))
        gmsh.finalize()
    comm.Barrier()
    assert _area(read_mesh(path, comm), "high") == pytest.approx(1.0, rel=1e-13)


def _rectangle(z: float = 0.0, cells: bool = True, tilted: bool = False) -> Callable[[Any], None]:
    """Return a function that builds a rectangle, also tilted or without cells."""

    def build(model: Any) -> None:
        surface = model.occ.addRectangle(0, 0, z, 2, 1)
        if tilted:
            model.occ.rotate([(2, surface)], 0, 0, 0, 1, 0, 0, 0.5)
        model.occ.synchronize()
        if cells:
            model.addPhysicalGroup(2, [surface], 1, name="plate")
        model.addPhysicalGroup(1, [4], 1, name="left")
        model.mesh.setSize(model.getEntities(0), 0.5)
        model.mesh.generate(2)

    return build


def test_plane_mesh(comm: MPI.Intracomm, folder: Path) -> None:
    """A mesh in the plane z = 0 has two coordinates."""
    path = _write(comm, _rectangle(), folder / "plate.msh")
    msh = read_mesh(path, comm)
    assert msh.mesh.geometry.dim == msh.mesh.topology.dim == 2
    assert dict(msh.groups) == {"plate": (2, 1), "left": (1, 1)}
    assert _area(msh, "left") == pytest.approx(1.0)
    assert len(msh.cells("plate")) > 0 or comm.size > 1
    assert read_mesh(path, comm, gdim=3).mesh.geometry.dim == 3


@pytest.mark.parametrize(
    ("builder", "gdim", "message"),
    [
        (lambda model: None, None, "no elements"),
        (_rectangle(cells=False), None, "no physical surface"),
        (_rectangle(z=1.0), None, "surface elements in space but no volume"),
        (_rectangle(tilted=True), None, "surface elements in space but no volume"),
        (_rectangle(tilted=True), 2, "need 3 coordinates; got gdim=2"),
        (box(), 2, "need 3 coordinates; got gdim=2"),
        (box(facets=("body",)), None, "two physical groups have the name 'body'"),
    ],
)
def test_unusable_meshes(
    comm: MPI.Intracomm, builder: Callable[[Any], None], gdim: int | None, message: str
) -> None:
    assert message in _raised(comm, ValueError, lambda: build_mesh(builder, comm, gdim=gdim))


def test_overlapping_and_missing_groups(comm: MPI.Intracomm) -> None:
    def overlapping(model: Any) -> None:
        box()(model)
        model.addPhysicalGroup(2, [1, 2, 3, 4, 5, 6], name="skin")

    message = _raised(comm, ValueError, lambda: build_mesh(overlapping, comm))
    assert "'low'" in message and "'skin'" in message and "overlap" in message

    def stray(model: Any) -> None:
        model.occ.addBox(5, 5, 5, 1, 1, 1)
        box()(model)

    message = _raised(comm, ValueError, lambda: build_mesh(stray, comm))
    assert "has elements and no physical group" in message


def test_mixed_elements(comm: MPI.Intracomm) -> None:
    def build(model: Any) -> None:
        base = model.occ.addRectangle(0, 0, 0, 1, 1)
        layer = model.occ.extrude([(2, base)], 0, 0, 1, numElements=[2], recombine=True)
        model.occ.synchronize()
        model.addPhysicalGroup(3, [tag for dim, tag in layer if dim == 3], name="body")
        model.mesh.generate(3)

    message = _raised(comm, ValueError, lambda: build_mesh(build, comm))
    assert "Prism" in message and "of one type" in message


def test_group_without_elements_is_an_empty_interface(comm: MPI.Intracomm, folder: Path) -> None:
    """A group without facets in the mesh exists and is empty."""

    def build(model: Any) -> None:
        box()(model)
        model.addPhysicalGroup(2, [model.addDiscreteEntity(2)], name="ghost")

    msh = build_mesh(build, comm)
    assert len(msh.facets("ghost")) == 0
    assert _area(msh, "low") == pytest.approx(1.0, rel=1e-13)


def test_volume_that_was_not_saved(comm: MPI.Intracomm, folder: Path) -> None:
    """gmsh does not save volumes without a physical group: only the surface remains."""

    def build(model: Any) -> None:
        box()(model)
        model.removePhysicalGroups([(3, 7)])

    path = _write_raw(comm, build, folder / "surface.msh")
    message = _raised(comm, ValueError, lambda: read_mesh(path, comm))
    assert "surface.msh" in message and "physical volume" in message


@pytest.mark.parametrize("text", ["", "this is not a mesh\n", "$MeshFormat\n4.1 0 8\n"])
def test_file_that_is_not_a_mesh(comm: MPI.Intracomm, folder: Path, text: str) -> None:
    path = folder / "no.msh"
    if comm.rank == 0:
        path.write_text(text)
    comm.Barrier()
    message = _raised(comm, ValueError, lambda: read_mesh(path, comm))
    assert message.startswith(f"cannot use '{path}' as a mesh: ")


def test_truncated_file(comm: MPI.Intracomm, folder: Path) -> None:
    path = _write(comm, box(), folder / "cut.msh")
    if comm.rank == 0:
        text = path.read_text()
        path.write_text(text[: len(text) // 2])
    comm.Barrier()
    assert "cut.msh" in _raised(comm, ValueError, lambda: read_mesh(path, comm))


def test_missing_file_and_directory(comm: MPI.Intracomm, folder: Path) -> None:
    path = folder / "missing.msh"
    message = _raised(comm, FileNotFoundError, lambda: read_mesh(path, comm))
    assert message == f"no mesh file '{path}'"
    assert "no mesh file" in _raised(comm, FileNotFoundError, lambda: read_mesh(folder, comm))
    with pytest.raises(NotADirectoryError):
        write_mesh(box(), Path(__file__) / "box.msh")
    with pytest.raises(InputError) as error:
        write_mesh(box(), "box.vtk")
    assert (error.value.argument, error.value.value) == ("path", "box.vtk")


class _Odd(Exception):
    """Error that cannot be pickled and sent to another rank."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)
        self.hook = lambda: None


def test_errors_of_the_builder_are_raised_on_all_ranks(comm: MPI.Intracomm) -> None:
    def fails(model: Any) -> None:
        raise KeyError("where")

    assert _raised(comm, KeyError, lambda: build_mesh(fails, comm)) == "'where'"

    def fails_in_gmsh(model: Any) -> None:
        model.occ.addBox(0, 0, 0, 0, 1, 1)

    assert "box" in _raised(comm, Exception, lambda: build_mesh(fails_in_gmsh, comm)).lower()

    def fails_oddly(model: Any) -> None:
        raise _Odd("strange ", "things")

    with pytest.raises((_Odd, RuntimeError), match="strange things"):
        build_mesh(fails_oddly, comm)
    # The error has no effect on the next mesh.
    assert not gmsh.isInitialized()
    assert _area(build_mesh(box(), comm), "low") == pytest.approx(1.0, rel=1e-13)


@pytest.fixture
def running_gmsh() -> Iterator[None]:
    """Run the test while gmsh is initialized."""
    gmsh.initialize(interruptible=False)
    gmsh.option.setNumber("General.Terminal", 0)
    yield
    gmsh.finalize()


def test_a_running_gmsh_is_unchanged(comm: MPI.Intracomm, running_gmsh: None) -> None:
    gmsh.model.add("mine")
    gmsh.model.occ.addBox(0, 0, 0, 1, 1, 1)
    gmsh.model.occ.synchronize()
    gmsh.model.add("also mine")
    gmsh.model.setCurrent("mine")
    models, entities = gmsh.model.list(), gmsh.model.getEntities()
    gmsh.option.setNumber("General.Terminal", 1)

    def adds_a_model(model: Any) -> None:
        model.add("a model of the builder's own")
        box()(model)

    for builder in (box(), adds_a_model):
        assert _area(build_mesh(builder, comm), "low") == pytest.approx(1.0, rel=1e-13)
        assert gmsh.isInitialized()
        assert gmsh.model.list() == models
        assert gmsh.model.getCurrent() == "mine"
        assert gmsh.model.getEntities() == entities
        assert gmsh.option.getNumber("General.Terminal") == 1


def test_gmsh_is_silent(
    comm: MPI.Intracomm, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = _write(comm, box(), folder / "silent.msh")
    read_mesh(path, comm)
    build_mesh(box(), comm)
    captured = capfd.readouterr()
    assert captured.out == "" and captured.err == ""
