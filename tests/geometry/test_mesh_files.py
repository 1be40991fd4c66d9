"""Mesh files that must be refused: scripts, damaged files, and meshes that DOLFINx cannot hold.

Every error is raised on all ranks, and nothing hangs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dolfinx.mesh import Mesh, create_unit_cube
from mpi4py import MPI

from dolfinx_mbd.errors import FileError, InputError, MeshError, UnitsWarning
from dolfinx_mbd.fem.facets import facet_groups
from dolfinx_mbd.fem.meshing import TaggedMesh, build_mesh, read_mesh, write_mesh
from dolfinx_mbd.geometry import ConnectingRod
from dolfinx_mbd.io.cli import main

gmsh = pytest.importorskip("gmsh")

Lines = list[list[str]]


@pytest.fixture
def folder(comm: MPI.Intracomm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return one empty directory for all ranks."""
    path = tmp_path_factory.mktemp("files") if comm.rank == 0 else None
    return comm.bcast(path, root=0)


def bar(model: Any) -> None:
    """Add a bar of 1×0.2×0.2 with tagged ends to the model."""
    volume = model.occ.addBox(0, 0, 0, 1, 0.2, 0.2)
    model.occ.synchronize()
    model.addPhysicalGroup(3, [volume], 7, name="body")
    for tag, name, x in ((1, "left", 0.0), (2, "right", 1.0)):
        ends = model.getEntitiesInBoundingBox(x - 0.01, -1, -1, x + 0.01, 1, 1, 2)
        model.addPhysicalGroup(2, [s for _, s in ends], tag, name=name)
    gmsh.option.setNumber("Mesh.MeshSizeMax", 0.15)
    model.mesh.generate(3)


def _file(
    comm: MPI.Intracomm,
    path: Path,
    *,
    order: int = 1,
    version: float = 2.2,
    binary: int = 0,
    change: Callable[[Lines, Lines], None] | None = None,
) -> Path:
    """Write the bar; `change` may edit the lists of words of nodes and elements in format 2.2."""
    if comm.rank == 0:
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
        bar(gmsh.model)
        gmsh.model.mesh.setOrder(order)
        gmsh.option.setNumber("Mesh.MshFileVersion", version)
        gmsh.option.setNumber("Mesh.Binary", binary)
        gmsh.write(str(path))
        gmsh.finalize()
        if change is not None:
            lines = path.read_text().split("\n")
            n, e = lines.index("$Nodes"), lines.index("$Elements")
            nodes = [line.split() for line in lines[n + 2 : e - 1]]
            elements = [line.split() for line in lines[e + 2 : lines.index("$EndElements")]]
            change(nodes, elements)
            text = [*lines[: n + 1], str(len(nodes)), *map(" ".join, nodes), "$EndNodes"]
            text += ["$Elements", str(len(elements)), *map(" ".join, elements), "$EndElements"]
            path.write_text("\n".join([*text, ""]))
    comm.Barrier()
    return path


def _refused(
    comm: MPI.Intracomm, path: Path, kind: type[Exception] = MeshError, **options: Any
) -> Exception:
    """Return the error of `read_mesh`, which must be the same on all ranks."""
    with pytest.raises(kind) as error:
        read_mesh(path, comm, **options)
    assert len(set(comm.allgather((type(error.value), str(error.value))))) == 1
    assert path.name in str(error.value)
    return error.value


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(("version", "binary"), [(2.2, 0), (2.2, 1), (4.0, 0), (4.1, 0), (4.1, 1)])
def test_all_formats_are_the_same_mesh(
    comm: MPI.Intracomm, folder: Path, order: int, version: float, binary: int
) -> None:
    path = _file(comm, folder / "bar.msh", order=order, version=version, binary=binary)

    def build(model: Any) -> None:
        bar(model)
        model.mesh.setOrder(order)

    read, built = read_mesh(path, comm), build_mesh(build, comm)
    assert dict(read.groups) == dict(built.groups)
    for name in ("left", "right"):
        assert _owned(read, name) == _owned(built, name) > 0
    sizes = [
        (m.mesh.topology.index_map(3).size_global, m.mesh.geometry.index_map().size_global)
        for m in (read, built)
    ]
    assert sizes[0] == sizes[1]


def _owned(tagged: TaggedMesh, name: str) -> int:
    """Return the number of facets of a group on all ranks."""
    count = np.count_nonzero(tagged.facets(name) < tagged.mesh.topology.index_map(2).size_local)
    return tagged.mesh.comm.allreduce(count)


SCRIPT = 'SystemCall "touch {}/executed";\n'


@pytest.mark.parametrize("start", ["", "\n \n", "// $MeshFormat\n", "$PostFormat\n", "$Comments\n"])
@pytest.mark.parametrize("suffix", [".msh", ".inp", ".cdb", ".unv", ".xyz", ""])
def test_scripts_are_not_executed(
    comm: MPI.Intracomm, folder: Path, start: str, suffix: str
) -> None:
    path = folder / f"part{suffix}"
    if comm.rank == 0:
        path.write_text(start + SCRIPT.format(folder))
    comm.Barrier()
    is_parsed = suffix in (".inp", ".cdb", ".unv")  # by a reader of this format
    error = _refused(comm, path, MeshError if is_parsed else FileError)
    assert str(path) in str(error)
    words = ["--material", "steel", "--interface", "a", "--modes", "2", "--dry-run"]
    assert main(["reduce", str(path), *words]) == 1
    assert not (folder / "executed").exists()


def test_nothing_beside_a_mesh_is_executed(comm: MPI.Intracomm, folder: Path) -> None:
    """gmsh runs `part.msh.opt` with `part.msh`, and unpacks `part.msh.gz` with a shell."""
    path = _file(comm, folder / "part.msh")
    named = folder / f"x; touch {folder.name}; .msh.gz"
    if comm.rank == 0:
        (folder / "part.msh.opt").write_text(SCRIPT.format(folder))
        named.write_bytes(path.read_bytes())
    comm.Barrier()
    assert _owned(read_mesh(path, comm), "left") == _owned(read_mesh(named, comm), "left") > 0
    assert not (folder / "executed").exists() and not Path(folder.name).exists()


def test_a_script_after_the_mesh_is_not_executed(comm: MPI.Intracomm, folder: Path) -> None:
    path = _file(comm, folder / "part.msh")
    if comm.rank == 0:
        with path.open("a") as file:
            file.write(SCRIPT.format(folder) + "$Script\n" + SCRIPT.format(folder) + "$EndScript\n")
    comm.Barrier()
    try:
        assert _owned(read_mesh(path, comm), "left") > 0
    except MeshError:  # a refusal is correct, too
        pass
    assert not (folder / "executed").exists()


@pytest.mark.parametrize("version", ["1 0 8", "3 0 8", "4.2 0 8", "4.1 2 8", "4.1 0 4", "x", ""])
def test_unknown_versions(comm: MPI.Intracomm, folder: Path, version: str) -> None:
    path = folder / "part.msh"
    if comm.rank == 0:
        path.write_text(f"$MeshFormat\n{version}\n$EndMeshFormat\n")
    comm.Barrier()
    _refused(comm, path, FileError)


def test_blank_lines_before_the_header(comm: MPI.Intracomm, folder: Path) -> None:
    path = _file(comm, folder / "bar.msh")
    if comm.rank == 0:
        path.write_text("\n  \n" + path.read_text())
    comm.Barrier()
    assert _owned(read_mesh(path, comm), "left") > 0


def _duplicate_cell(nodes: Lines, elements: Lines) -> None:
    """Add the last cell again."""
    elements.append([str(int(elements[-1][0]) + 1), *elements[-1][1:]])


def _permuted_cell(nodes: Lines, elements: Lines) -> None:
    """Add the last cell again, with its nodes in another order."""
    *head, a, b, c, d = elements[-1]
    elements.append([str(int(head[0]) + 1), *head[1:], b, c, a, d])


def _third_cell_at_a_facet(nodes: Lines, elements: Lines) -> None:
    """Add a cell, with a node of its own, on a facet inside the bar."""
    cells = [set(e[-4:]) for e in elements if e[1] == "4"]
    shared = next(c & d for i, c in enumerate(cells) for d in cells[:i] if len(c & d) == 3)
    nodes.append([str(len(nodes) + 1), "0.5", "0.1", "3"])
    elements.append([str(len(elements) + 1), *elements[-1][1:-4], *sorted(shared), nodes[-1][0]])


def _no_last_node(nodes: Lines, elements: Lines) -> None:
    """Remove the last node."""
    del nodes[-1]


def _not_a_number(nodes: Lines, elements: Lines) -> None:
    """Replace a coordinate by NaN."""
    nodes[-1][1] = "nan"


def _collapsed_cell(nodes: Lines, elements: Lines) -> None:
    """Let a cell have one node twice."""
    elements[-1][-1] = elements[-1][-2]


def _facet_that_is_not_one(nodes: Lines, elements: Lines) -> None:
    """Add a tagged triangle between three nodes that belong to no common cell."""
    cells = [set(e[-4:]) for e in elements if e[1] == "4"]
    first = next(e for e in elements if e[1] == "2")
    a, b = first[-3:-1]
    c = next(
        n[0] for n in nodes if n[0] not in (a, b) and not any({a, b, n[0]} <= c for c in cells)
    )
    first[-1] = c


def _facet_twice(nodes: Lines, elements: Lines) -> None:
    """Add a facet again."""
    first = next(e for e in elements if e[1] == "2")
    elements.insert(0, [str(len(elements) + 1), *first[1:]])


@pytest.mark.parametrize(
    "change",
    [
        _duplicate_cell,
        _permuted_cell,
        _third_cell_at_a_facet,
        _no_last_node,
        _not_a_number,
        _collapsed_cell,
        _facet_that_is_not_one,
        _facet_twice,
    ],
)
def test_meshes_that_dolfinx_cannot_hold(
    comm: MPI.Intracomm, folder: Path, change: Callable[[Lines, Lines], None]
) -> None:
    _refused(comm, _file(comm, folder / "part.msh", change=change))


def _linear(elements: Lines, kind: str, corners: int, count: int) -> None:
    """Make the last elements of a type of gmsh linear: "11" (tetrahedra) or "9" (triangles)."""
    for element in [e for e in elements if e[1] == kind][-count:]:
        num_tags = int(element[2])
        element[1] = {"11": "4", "9": "2"}[kind]
        del element[3 + num_tags + corners :]


@pytest.mark.parametrize(("kind", "corners"), [("11", 4), ("9", 3)])
def test_mixed_orders(comm: MPI.Intracomm, folder: Path, kind: str, corners: int) -> None:
    """gmsh returns only the elements of an entity that have the order of the first."""

    def change(nodes: Lines, elements: Lines) -> None:
        _linear(elements, kind, corners, 3)

    error = _refused(comm, _file(comm, folder / "part.msh", order=2, change=change))
    assert "Tetrahedron" in str(error) or "Triangle" in str(error)


def test_mixed_orders_of_a_builder(comm: MPI.Intracomm) -> None:
    def build(model: Any) -> None:
        bar(model)
        corner = model.mesh.getElements(3)[2][0][:4]
        model.mesh.setOrder(2)
        model.mesh.addElementsByType(1, 4, [], corner)

    with pytest.raises(MeshError, match="Tetrahedron"):
        build_mesh(build, comm)


def test_neighbours_with_other_nodes_between_corners(comm: MPI.Intracomm, folder: Path) -> None:
    """Two cells share the corners of an edge, but not the node in its middle."""

    def change(nodes: Lines, elements: Lines) -> None:
        cell = [e for e in elements if e[1] == "11"][-1]
        middle = next(n for n in nodes if n[0] == cell[-1])
        nodes.append([str(len(nodes) + 1), *middle[1:]])
        cell[-1] = nodes[-1][0]

    _refused(comm, _file(comm, folder / "part.msh", order=2, change=change))


@pytest.mark.parametrize("version", [2.2, 4.1])
def test_a_count_that_is_too_small(comm: MPI.Intracomm, folder: Path, version: float) -> None:
    """Elements beyond those that the file declares are not dropped without an error."""
    path = _file(comm, folder / "part.msh", version=version)
    if comm.rank == 0:
        lines = path.read_text().split("\n")
        line_number = lines.index("$Elements") + 1
        words = lines[line_number].split()
        words[0 if version < 3 else 1] = str(int(words[0 if version < 3 else 1]) - 2)
        lines[line_number] = " ".join(words)
        path.write_text("\n".join(lines))
    comm.Barrier()
    _refused(comm, path)


def test_the_environment_of_mpi_does_not_reach_gmsh(
    comm: MPI.Intracomm, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "17")
    path = _file(comm, folder / "bar.msh")
    assert _owned(read_mesh(path, comm), "right") > 0
    assert os.environ["OMPI_COMM_WORLD_SIZE"] == "17"


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("unit", lambda comm: read_mesh("bar.msh", comm, unit="parsec")),
        ("unit", lambda comm: read_mesh("bar.msh", comm, unit=float("nan"))),
        ("path", lambda comm: read_mesh(3, comm)),
        ("comm", lambda comm: read_mesh("bar.msh", None)),
        ("gdim", lambda comm: read_mesh("bar.msh", comm, gdim=4)),
        ("gdim", lambda comm: build_mesh(bar, comm, gdim=2.5)),
        ("builder", lambda comm: build_mesh("bar", comm)),
        ("builder", lambda comm: write_mesh(None, "bar.msh")),
        ("path", lambda comm: write_mesh(bar, "bar.vtk")),
        ("mesh", lambda comm: TaggedMesh(None)),
        ("cell_tags", lambda comm: TaggedMesh(_cube(comm), cell_tags=[1])),
        ("groups", lambda comm: TaggedMesh(_cube(comm), groups=["body"])),
        ("group 'body'", lambda comm: TaggedMesh(_cube(comm), groups={"body": 3})),
        ("group 'body'", lambda comm: TaggedMesh(_cube(comm), groups={"body": (3, "x")})),
        ("name", lambda comm: TaggedMesh(_cube(comm)).facets(3)),
        ("name", lambda comm: TaggedMesh(_cube(comm)).cells("body")),
        ("mesh", lambda comm: facet_groups(None, ["left"], None)),
        ("interfaces", lambda comm: facet_groups(_cube(comm), 5, None)),
        ("interfaces", lambda comm: facet_groups(_cube(comm), ["left", "left"], None)),
        ("facet_tags", lambda comm: facet_groups(_cube(comm), {"left": 1}, None)),
        ("facet_tags", lambda comm: facet_groups(_cube(comm), {"left": 1}, [1])),
        ("group 'left'", lambda comm: facet_groups(_cube(comm), {"left": [0.5]}, None)),
        ("group 'left'", lambda comm: facet_groups(_cube(comm), {"left": None}, None)),
        ("group 'left'", lambda comm: facet_groups(_cube(comm), {"left": [[1], []]}, None)),
    ],
)
def test_bad_arguments(comm: MPI.Intracomm, argument: str, call: Callable[[Any], object]) -> None:
    with pytest.raises(InputError) as error:
        call(comm)
    assert error.value.argument == argument


def _cube(comm: MPI.Intracomm) -> Mesh:
    """Return a unit cube."""
    return create_unit_cube(comm, 2, 2, 2)


@pytest.mark.parametrize(
    ("unit", "limit"), [("mm", 1e-3), (1e-6, 1e-3), (1e5, 1e3), ("m", None), ("cm", None)]
)
def test_implausible_sizes(
    comm: MPI.Intracomm, tmp_path: Path, unit: float | str, limit: float | None
) -> None:
    """A part of 0.14 m causes a warning if a wrong unit makes it too small or too large."""
    path = comm.bcast(tmp_path) / "rod.msh"
    if comm.rank == 0:
        write_mesh(ConnectingRod(size=0.05), path)
    comm.Barrier()
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        read_mesh(path, comm, unit=unit)
    messages = [w.message for w in records if isinstance(w.message, UnitsWarning)]
    assert [m.limit for m in messages] == ([] if limit is None else [limit])
    assert all(m.quantity == "size" and m.value is not None for m in messages)
