"""Meshes with named parts: from a gmsh builder or a `.msh` file to a distributed DOLFINx mesh.

gmsh runs on one rank; whatever goes wrong there is raised on all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from dolfinx.mesh import Mesh, MeshTags, meshtags
from mpi4py import MPI

from dolfinx_mbd.checks import file_path, flag, function, instance, integer, name, number, refuse
from dolfinx_mbd.errors import InputError, MeshError, MissingFileError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.files import write_aside
from dolfinx_mbd.geometry.gmsh_model import MeshArrays, gmsh_session, mesh_arrays
from dolfinx_mbd.geometry.mesh_files import read_msh
from dolfinx_mbd.parallel import on_rank_zero

__all__ = ["TaggedMesh", "build_mesh", "read_mesh", "write_mesh"]

Builder = Callable[[Any], object]
"""A function of `gmsh.model` that adds a geometry, meshes it and names its physical groups."""


@dataclass(frozen=True, eq=False)
class TaggedMesh:
    """A mesh whose regions and surfaces have names.

    Attributes:
        mesh: The distributed mesh.
        cell_tags: Tags of cells; empty if `None` is given.
        facet_tags: Tags of facets; empty if `None` is given.
        groups: `name -> (dimension, tag)` of every named group of cells or facets.
    """

    mesh: Mesh
    cell_tags: MeshTags | None = None
    facet_tags: MeshTags | None = None
    groups: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def __post_init__(self) -> None:
        instance("mesh", self.mesh, Mesh)
        tdim = self.mesh.topology.dim
        nothing = np.empty(0, dtype=np.int32)
        for attribute, dim in (("cell_tags", tdim), ("facet_tags", tdim - 1)):
            tags = instance(attribute, getattr(self, attribute), (MeshTags, type(None)))
            if tags is None:
                self.mesh.topology.create_entities(dim)
                tags = meshtags(self.mesh, dim, nothing, nothing)
                object.__setattr__(self, attribute, tags)
            elif tags.dim != dim:
                raise InputError(
                    f"{attribute} must tag dimension {dim}; it tags {tags.dim}",
                    argument=attribute,
                    value=tags,
                )
            tags.name = attribute
        groups = {}
        for key, group in instance("groups", self.groups, Mapping).items():
            if not isinstance(group, (tuple, list)) or len(group) != 2:
                refuse(f"group {key!r}", group, "(dimension, tag)")
            dim, tag = (integer(f"group {key!r}", entry, low=0) for entry in group)
            groups[name("the name of a group", key)] = dim, tag
        object.__setattr__(self, "groups", MappingProxyType(groups))

    def facets(self, name: str) -> npt.NDArray[np.int32]:
        """Return local indices of the facets of a named group, owned and ghosts; may be empty.

        Raises:
            InputError: The mesh has no facets of that name (on every rank).
        """
        tag = self._tag(name, self.mesh.topology.dim - 1, "group")
        return self.facet_tags.find(tag)  # type: ignore[union-attr]

    def cells(self, name: str) -> npt.NDArray[np.int32]:
        """Return local indices of the cells of a named group, owned and ghosts; may be empty.

        Raises:
            InputError: The mesh has no cells of that name (on every rank).
        """
        tag = self._tag(name, self.mesh.topology.dim, "region")
        return self.cell_tags.find(tag)  # type: ignore[union-attr]

    def _tag(self, group: str, dim: int, kind: str) -> int:
        name("name", group)
        valid = {key: tag for key, (group_dim, tag) in self.groups.items() if group_dim == dim}
        if group not in valid:
            names = ", ".join(f"'{key}'" for key in sorted(valid))
            raise InputError(
                f"unknown {kind} '{group}'; this mesh has {names or f'no named {kind}'}",
                argument="name",
                value=group,
            )
        return valid[group]


def build_mesh(builder: Builder, comm: MPI.Comm, *, gdim: int | None = None) -> TaggedMesh:
    """Make a mesh with a gmsh builder and distribute it over `comm`.

    Args:
        builder: Called as `builder(gmsh.model)` on rank 0 only; adds a geometry to the current
            model, meshes it and gives cells and facets their physical groups.
        comm: Who shares the mesh.
        gdim: Number of coordinates; from the mesh by default (2 if it lies in the plane z = 0).

    Raises:
        MeshError: There is no mesh, no physical group of cells, or one that DOLFINx cannot hold.
        Exception: What the builder raised on rank 0 is raised on every rank.

    Note:
        Collective over `comm`.
    """

    gdim = _checked(comm, gdim)
    function("builder", builder, "builder(gmsh.model)")

    def work() -> MeshArrays:
        with gmsh_session() as gmsh:
            builder(gmsh.model)
            return mesh_arrays(gmsh.model, gdim)

    return _distribute(comm, work)


def read_mesh(
    path: str | os.PathLike[str],
    comm: MPI.Comm,
    *,
    gdim: int | None = None,
    unit: float = 1.0,
) -> TaggedMesh:
    """Read a mesh from a Gmsh file (`.msh`, format 2 or 4) and distribute it over `comm`.

    The file is read by gmsh in a process of its own, and checked before it is distributed. The
    cells need a physical group; names are optional, and `groups` holds those that have one.

    Args:
        path: The file; read on rank 0 only.
        comm: Who shares the mesh.
        gdim: Number of coordinates; from the mesh by default (2 if it lies in the plane z = 0).
        unit: Length of the file's unit, m: 0.001 for a mesh in millimetres.

    Raises:
        MissingFileError: There is no such file.
        FileError: It is not a `.msh` file; the message says how to convert other formats.
        MeshError: Its mesh cannot be used; the message says why.

    Note:
        Collective over `comm`. Every error is raised on all ranks.
    """
    gdim = _checked(comm, gdim)
    unit = number("unit", unit, positive=True, unit="m (0.001 for a mesh in millimetres)")
    file = file_path("path", path)

    def work() -> MeshArrays:
        if not file.is_file():
            raise MissingFileError(f"no mesh file '{file}'")
        return read_msh(file, gdim)

    tagged = _distribute(comm, work, f"cannot use '{file}' as a mesh: ")
    if unit != 1:
        tagged.mesh.geometry.x[:] *= unit
    return tagged


def write_mesh(builder: Builder, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write the mesh of a gmsh builder to a `.msh` file (format 4.1) with its physical groups.

    Args:
        builder: See `build_mesh`.
        path: The file to write; its name ends with `.msh`.
        overwrite: Replace a file that is there already and has another content.

    Raises:
        InputError: The name does not end with `.msh`.
        MeshError: The builder made no usable mesh.
        OverwriteError: The file is there already, with another content.
        MissingFileError: The directory does not exist.

    Note:
        Not collective: under MPI, call it on one rank.
    """
    function("builder", builder, "builder(gmsh.model)")
    flag("overwrite", overwrite)
    path = file_path("path", path, (".msh",))
    if not path.parent.is_dir():
        raise MissingFileError(f"no directory '{path.parent}' to write '{path.name}' to")
    with gmsh_session() as gmsh:
        builder(gmsh.model)
        mesh_arrays(gmsh.model)  # (raises an error if `read_mesh` would)
        with TemporaryDirectory() as folder:
            whole = Path(folder) / "mesh.msh"
            gmsh.write(str(whole))
            data = whole.read_bytes()

    def write(file: BinaryIO) -> None:
        file.write(data)

    write_aside(path, write, "mesh", replaces=lambda _: overwrite)


def _checked(comm: Any, gdim: Any) -> int | None:
    """Check a communicator, and return the number of coordinates."""
    instance("comm", comm, MPI.Comm, "mpi4py.MPI.COMM_WORLD")
    return None if gdim is None else integer("gdim", gdim, low=1, high=3)


def _distribute(comm: MPI.Comm, work: Callable[[], MeshArrays], prefix: str = "") -> TaggedMesh:
    """Distribute the mesh that `work()` returns on rank 0, and check that nothing was lost."""
    whole: list[MeshArrays] = []

    def describe() -> tuple[MeshArrays, int, int, dict[int, int]]:
        mesh = work()
        whole.append(mesh)
        tags, counts = np.unique(mesh.facet_tags, return_counts=True)
        facets = {int(tag): int(count) for tag, count in zip(tags, counts, strict=True)}
        return mesh.without_rows(), len(mesh.points), len(mesh.cells), facets

    arrays, nodes, cells, facets = on_rank_zero(comm, describe)
    tags = compat.distribute(comm, whole[0] if whole else arrays)
    tagged = TaggedMesh(*tags, groups=arrays.groups)
    message = _losses(tagged, nodes, cells, facets)
    if message:
        raise MeshError(prefix + message)
    return tagged


def _losses(tagged: TaggedMesh, nodes: int, cells: int, facets: dict[int, int]) -> str:
    """Describe the nodes, cells and tagged facets that a distributed mesh lacks, or return "".

    Note:
        Collective; the same text on every rank.
    """
    mesh, comm = tagged.mesh, tagged.mesh.comm
    tdim = mesh.topology.dim
    read = mesh.topology.index_map(tdim).size_global, mesh.geometry.index_map().size_global
    if read != (cells, nodes):
        return f"it has {cells} cells and {nodes} nodes, and DOLFINx has {read[0]} and {read[1]}"
    tags = tagged.facet_tags
    assert tags is not None
    values = tags.values[tags.indices < mesh.topology.index_map(tdim - 1).size_local]
    for tag, expected in facets.items():
        if (count := comm.allreduce(int(np.count_nonzero(values == tag)))) != expected:
            return f"{expected - count} of {expected} facets with tag {tag} belong to no cell"
    return ""
