"""Meshes with named groups, from a gmsh builder or a `.msh` file.

gmsh runs on rank 0; its errors are raised on all ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
from dolfinx.mesh import Mesh, MeshTags, meshtags
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import (
    file_path,
    file_units,
    flag,
    function,
    instance,
    integer,
    name,
    reject,
)
from dolfinx_mbd.errors import InputError, MeshError, MissingFileError, UnitsWarning, warn
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.file_materials import FileMaterials
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.files import check_directory, write_atomically
from dolfinx_mbd.forms import AnyMaterial
from dolfinx_mbd.geometry.deck_materials import DeckMaterial
from dolfinx_mbd.geometry.gmsh_model import MeshArrays, gmsh_session, mesh_arrays
from dolfinx_mbd.geometry.mesh_files import read_msh
from dolfinx_mbd.html import HtmlView
from dolfinx_mbd.parallel import on_rank_zero

MIN_PLAUSIBLE_SIZE, MAX_PLAUSIBLE_SIZE = 1e-3, 1e3
"""Limits of the diagonal of the bounding box of a part in a file, m."""

Builder = Callable[[Any], object]
"""A function of `gmsh.model` that adds a geometry, meshes it and names its physical groups."""


@dataclass(frozen=True, eq=False)
class TaggedMesh(HtmlView):
    """A mesh whose regions and surfaces have names.

    Attributes:
        mesh: The distributed mesh.
        cell_tags: Tags of cells; by default no cell has a tag.
        facet_tags: Tags of facets; by default no facet has a tag.
        groups: `name -> (dimension, tag)` of every named group of cells or facets.
        materials: Materials by the name of a group of cells; `ElasticModel` uses them if it gets
            no material. `read_mesh` takes them from the file, and reading an entry that cannot be
            used raises an error.

    Raises:
        InputError: Tags have the wrong dimension, or a group is not a pair of integers.

    Example:
        >>> import numpy as np
        >>> from dolfinx.mesh import create_unit_cube, locate_entities_boundary, meshtags
        >>> cube = create_unit_cube(MPI.COMM_WORLD, 2, 2, 2)
        >>> end = locate_entities_boundary(cube, 2, lambda x: np.isclose(x[0], 1.0))
        >>> tags = meshtags(cube, 2, end, np.full(len(end), 5, dtype=np.int32))
        >>> tagged = mbd.fem.TaggedMesh(cube, facet_tags=tags, groups={"end": (2, 5)})
        >>> len(tagged.facets("end"))
        8
    """

    mesh: Mesh
    cell_tags: MeshTags | None = None
    facet_tags: MeshTags | None = None
    groups: Mapping[str, tuple[int, int]] = MappingProxyType({})
    materials: Mapping[str, AnyMaterial] = MappingProxyType({})

    def __post_init__(self) -> None:
        instance("mesh", self.mesh, Mesh)
        tdim = self.mesh.topology.dim
        for attribute, dim in (("cell_tags", tdim), ("facet_tags", tdim - 1)):
            tags = instance(attribute, getattr(self, attribute), (MeshTags, type(None)))
            if tags is None:
                self.mesh.topology.create_entities(dim)
                tags = meshtags(self.mesh, dim, *2 * [np.empty(0, dtype=np.int32)])
                assign(self, **{attribute: tags})
            elif tags.dim != dim:
                text = f"{attribute} must tag dimension {dim}; it tags {tags.dim}"
                raise InputError(text, argument=attribute, value=tags)
            tags.name = attribute
        groups = {}
        for key, group in instance("groups", self.groups, Mapping).items():
            if not isinstance(group, (tuple, list)) or len(group) != 2:
                reject(f"group {key!r}", group, "(dimension, tag)")
            dim, tag = (integer(f"group {key!r}", entry, low=0) for entry in group)
            groups[name("the name of a group", key)] = dim, tag
        assign(self, groups=MappingProxyType(groups))
        for key in instance("materials", self.materials, Mapping):
            self._tag(key, tdim, "region")

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the titles and the texts of the table that notebooks show."""
        mesh, tdim = self.mesh, self.mesh.topology.dim
        cells, nodes = mesh.topology.index_map(tdim), mesh.geometry.index_map()
        kind = f"{mesh.topology.cell_name()}, degree {compat.geometry_degree(mesh)}"
        rows = [
            ("cells", f"{cells.size_global} ({kind})"),
            ("nodes", str(nodes.size_global)),
        ]
        if mesh.comm.size == 1:
            size = np.ptp(mesh.geometry.x, axis=0)
            rows.append(("size", f"{' × '.join(f'{x:.4g}' for x in size)} m"))
        for dim, title in ((tdim, "groups of cells"), (tdim - 1, "groups of facets")):
            names = sorted(name for name, (group_dim, _) in self.groups.items() if group_dim == dim)
            rows.append((title, ", ".join(names) or "none"))
        if self.materials:
            rows.append(("materials of", ", ".join(self.materials)))
        return rows

    def facets(self, name: str) -> NDArray[np.int32]:
        """Return the local facets of a named group, including ghosts; a rank may have none.

        Args:
            name: Name of a group of facets.

        Returns:
            Local indices, ascending.

        Raises:
            InputError: The mesh has no group of facets with this name; raised on every rank.
        """
        tag = self._tag(name, self.mesh.topology.dim - 1, "group")
        return self.facet_tags.find(tag)  # type: ignore[union-attr]

    def cells(self, name: str) -> NDArray[np.int32]:
        """Return the local cells of a named group, including ghosts; a rank may have none.

        Args:
            name: Name of a group of cells.

        Returns:
            Local indices, ascending.

        Raises:
            InputError: The mesh has no group of cells with this name; raised on every rank.
        """
        tag = self._tag(name, self.mesh.topology.dim, "region")
        return self.cell_tags.find(tag)  # type: ignore[union-attr]

    def _tag(self, group: str, dim: int, kind: str) -> int:
        """Return the tag of a group of cells or facets; raise an error for an unknown name."""
        name("name", group)
        tags = {key: tag for key, (group_dim, tag) in self.groups.items() if group_dim == dim}
        if group not in tags:
            names = ", ".join(f"'{key}'" for key in sorted(tags)) or f"no named {kind}"
            text = f"unknown {kind} '{group}'; this mesh has {names}"
            raise InputError(text, argument="name", value=group)
        return tags[group]


def plain_mesh(mesh: TaggedMesh | Mesh) -> Mesh:
    """Return the DOLFINx mesh."""
    return mesh.mesh if isinstance(mesh, TaggedMesh) else mesh


def tagged_entities(
    mesh: TaggedMesh | Mesh, title: str, key: str | int, tags: MeshTags | None, kind: str
) -> NDArray[np.int32]:
    """Return the local cells or facets of a group, given by name or tag.

    `title` begins error messages; `kind` is "cell" or "facet"; `tags` are by default the tags of
    the mesh.
    """
    argument, tagged = f"{kind}_tags", isinstance(mesh, TaggedMesh)
    if tags is None and tagged:
        tags = getattr(mesh, argument)
    dim = plain_mesh(mesh).topology.dim - (kind == "facet")
    if tags is not None and tags.dim != dim:
        text = f"{argument} must tag {kind}s (dimension {dim}), these have dimension {tags.dim}"
        raise InputError(text, argument=argument, value=tags)
    if isinstance(key, str):
        if isinstance(mesh, TaggedMesh):
            return mesh.cells(key) if kind == "cell" else mesh.facets(key)
        text = (
            f"{title}: a plain mesh has no group names; give tags and {argument}, or a TaggedMesh"
        )
        names = "interfaces" if kind == "facet" else "material"
        raise InputError(text, argument=names, value=key)
    if tags is None:
        raise InputError(f"{title} has tag {key}, but no {argument} were given", argument=argument)
    return tags.find(key)


def build_mesh(builder: Builder, comm: MPI.Comm, *, gdim: int | None = None) -> TaggedMesh:
    """Make a mesh with a gmsh builder and distribute it.

    Args:
        builder: Function that is called as `builder(gmsh.model)` on rank 0 only. It adds a geometry
            to the current model, meshes it and gives cells and facets their physical groups.
        comm: Communicator of the mesh.
        gdim: Number of coordinates; by default 2 for faces in the plane z = 0, otherwise 3.

    Returns:
        The mesh with its tags and the names of its physical groups.

    Raises:
        MeshError: The model has no mesh or no physical group of cells, or DOLFINx cannot represent
            it.
        Exception: Any error of the builder on rank 0 is raised on every rank.

    Note: Collective over `comm`.

    Example:
        >>> mesh = mbd.build_mesh(bar, MPI.COMM_WORLD)
        >>> sorted(mesh.groups)
        ['body', 'left', 'right']
    """
    gdim = _check_communicator(comm, gdim)
    function("builder", builder, "builder(gmsh.model)")

    def work() -> MeshArrays:
        with gmsh_session() as gmsh:
            builder(gmsh.model)
            return mesh_arrays(gmsh.model, gdim)

    return _distribute(comm, work)[0]


def read_mesh(
    path: str | os.PathLike[str],
    comm: MPI.Comm,
    *,
    gdim: int | None = None,
    unit: float | str = 1.0,
) -> TaggedMesh:
    """Read a mesh from a file and distribute it.

    The file is a Gmsh file (`.msh`, format 2 or 4), whose cells are in physical groups; a universal
    file (`.unv`); a mesh of Salome (`.med`); or a deck of Abaqus, CalculiX (`.inp`), Ansys (`.cdb`)
    or Nastran (`.bdf`, `.nas`). Sets of nodes or of surface elements become groups of facets, sets
    of cells or properties become groups of cells, and cells with 20 nodes become cells with 27
    nodes of the same shape. Names of groups are optional; `groups` holds the
    named groups. The file is read in a separate process, and the mesh is checked before it is
    distributed.

    Decks of Abaqus, CalculiX, Ansys and Nastran may contain linear elastic materials. They are in
    `materials` of the result, by groups of cells, and a model without a material uses them. Decks
    have no units: their materials are in SI units unless `unit` is a system of units.

    Args:
        path: Path of the file; it is read on rank 0 only.
        comm: Communicator of the mesh.
        gdim: Number of coordinates; by default 2 for faces in the plane z = 0, otherwise 3.
        unit: Length unit of the file: its name, such as `mm`, or its length, m. By default 1 m.
            Or its system of units, such as `mm-t-s`, which its materials need.

    Returns:
        The mesh with its tags and the names of its physical groups.

    Raises:
        MissingFileError: The file does not exist.
        FileError: The file has another format; the message says how to convert it.
        ImportError: A deck requires the package meshlane or pyNastran, which is not installed.
        MeshError: The mesh cannot be used; the message states the reason.

    Warns:
        UnitsWarning: The part is shorter than 1 mm or longer than 1 km.
        FileWarning: A deck contains more than its solids (point masses, beams, constraints, loads),
            or lines that are not understood, and they are left out; or some of its sets are not
            groups; or the file declares another unit of length. One message lists all.

    Note: Collective over `comm`. Every error is raised on all ranks.

    Example:
        >>> write_mesh(bar, "bar.msh")
        >>> mesh = mbd.read_mesh("bar.msh", MPI.COMM_WORLD)
        >>> len(mesh.facets("left")) > 0
        True
    """
    gdim = _check_communicator(comm, gdim)
    units = file_units("unit", unit)
    factor = units.length
    file = file_path("path", path)

    def work() -> MeshArrays:
        if not file.is_file():
            raise MissingFileError(f"no mesh file '{file}'")
        return read_msh(file, gdim, factor)

    tagged, materials = _distribute(comm, work, f"cannot use '{file}' as a mesh: ")
    tagged = replace(tagged, materials=FileMaterials(file, materials, units))
    if factor != 1:
        tagged.mesh.geometry.x[:] *= factor
    _warn_of_size(tagged.mesh, file, factor)
    return tagged


def _warn_of_size(mesh: Mesh, file: Path, factor: float) -> None:
    """Warn if the size of the part in a file suggests another unit of length (collective)."""
    size = body_size(mesh)
    if MIN_PLAUSIBLE_SIZE <= size <= MAX_PLAUSIBLE_SIZE:
        return
    text = (
        f"implausible: with {factor:g} m as the unit of length, the part in '{file}' is "
        f"{size:.3g} m long. Check the unit: read_mesh(..., unit='mm') or --unit mm if the file is "
        "in millimetres, unit='mm-t-s' or --unit mm-t-s if it also has materials (MPa and t/mm³), "
        "unit='m' or --unit m if it is in metres"
    )
    limit = MIN_PLAUSIBLE_SIZE if size < MIN_PLAUSIBLE_SIZE else MAX_PLAUSIBLE_SIZE
    warn(UnitsWarning(text, quantity="size", value=size, limit=limit))


def write_mesh(builder: Builder, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the mesh of a gmsh builder to a `.msh` file (format 4.1) with its physical groups.

    Args:
        builder: See `build_mesh`.
        path: Path of the file to write; its name ends with `.msh`. Missing directories are created.
        overwrite: Whether an existing file with other contents is replaced.

    Raises:
        InputError: The name does not end with `.msh`.
        MeshError: The builder made no usable mesh.
        OverwriteError: The file exists with other contents.
        OSError: The file cannot be written; an existing file is then unchanged.

    Note: Not collective: under MPI, call it on one rank.

    Example:
        >>> write_mesh(bar, "bar.msh", overwrite=True)
    """
    function("builder", builder, "builder(gmsh.model)")
    flag("overwrite", overwrite)
    path = file_path("path", path, (".msh",))
    check_directory(path.parent)
    with gmsh_session() as gmsh, TemporaryDirectory() as folder:
        builder(gmsh.model)
        mesh_arrays(gmsh.model)  # raises an error if `read_mesh` would
        file = Path(folder) / "mesh.msh"
        gmsh.write(str(file))
        data = file.read_bytes()

    def write(out: BinaryIO) -> None:
        out.write(data)

    write_atomically(path, write, "mesh", replaces=lambda _: overwrite)


def _check_communicator(comm: Any, gdim: Any) -> int | None:
    """Check a communicator, and return the number of coordinates."""
    instance("comm", comm, MPI.Comm, "mpi4py.MPI.COMM_WORLD")
    if comm == MPI.COMM_NULL:
        text = "comm is COMM_NULL: this rank belongs to no communicator and must not call this"
        raise InputError(text, argument="comm", value=comm)
    return None if gdim is None else integer("gdim", gdim, low=1, high=3)


def _distribute(
    comm: MPI.Comm, work: Callable[[], MeshArrays], prefix: str = ""
) -> tuple[TaggedMesh, Mapping[str, DeckMaterial]]:
    """Distribute the mesh that `work()` returns on rank 0, and check that it is complete.

    The second result contains the materials of the file by groups of cells, in its units.
    """
    mesh: list[MeshArrays] = []

    def describe() -> tuple[MeshArrays, tuple[int, int], dict[int, int]]:
        mesh.append(work())
        tags, counts = np.unique(mesh[0].facet_tags, return_counts=True)
        facets = {int(tag): int(count) for tag, count in zip(tags, counts, strict=True)}
        return mesh[0].without_rows(), (len(mesh[0].cells), len(mesh[0].points)), facets

    arrays, size, facets = on_rank_zero(comm, describe)
    tags = compat.distribute(comm, mesh[0] if mesh else arrays)
    tagged = TaggedMesh(*tags, groups=arrays.groups)
    if message := _losses(tagged, size, facets):
        raise MeshError(prefix + message)
    return tagged, arrays.materials


def _losses(tagged: TaggedMesh, size: tuple[int, int], facets: dict[int, int]) -> str:
    """Describe the cells, nodes and tagged facets that a distributed mesh lacks, or return ""."""
    topology, geometry, tags = tagged.mesh.topology, tagged.mesh.geometry, tagged.facet_tags
    assert tags is not None
    sizes = topology.index_map(topology.dim).size_global, geometry.index_map().size_global
    if sizes != size:
        return (
            f"it has {size[0]} cells and {size[1]} nodes, but DOLFINx has {sizes[0]} and {sizes[1]}"
        )
    owned = tags.indices < topology.index_map(topology.dim - 1).size_local
    for tag, expected in facets.items():
        count = tagged.mesh.comm.allreduce(int(np.count_nonzero(tags.values[owned] == tag)))
        if count != expected:
            return f"{expected - count} of {expected} facets with tag {tag} belong to no cell"
    return ""
