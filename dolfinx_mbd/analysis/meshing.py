"""Meshes with named parts: from a gmsh builder or a `.msh` file to a distributed DOLFINx mesh.

gmsh runs on one rank; whatever goes wrong there is raised on all.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from dolfinx.mesh import Mesh, MeshTags, meshtags
from mpi4py import MPI

from dolfinx_mbd.analysis import compat

__all__ = ["TaggedMesh", "build_mesh", "on_rank_zero", "read_mesh", "write_mesh"]

T = TypeVar("T")

Builder = Callable[[Any], object]
"""A function of `gmsh.model` that adds a geometry, meshes it and names its physical groups."""

# gmsh's element types that DOLFINx reads: Lagrange of order 1 to 3, by dimension.
_CELL_TYPES = {0: {15}, 1: {1, 8, 26}, 2: {2, 3, 9, 10, 21, 36}, 3: {4, 5, 11, 12, 29, 92}}


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
        tdim = self.mesh.topology.dim
        nothing = np.empty(0, dtype=np.int32)
        for attribute, dim in (("cell_tags", tdim), ("facet_tags", tdim - 1)):
            tags = getattr(self, attribute)
            if tags is None:
                self.mesh.topology.create_entities(dim)
                tags = meshtags(self.mesh, dim, nothing, nothing)
                object.__setattr__(self, attribute, tags)
            elif tags.dim != dim:
                raise ValueError(f"{attribute} must tag dimension {dim}; it tags {tags.dim}")
            tags.name = attribute
        groups = {name: (int(dim), int(tag)) for name, (dim, tag) in dict(self.groups).items()}
        object.__setattr__(self, "groups", MappingProxyType(groups))

    def facets(self, name: str) -> npt.NDArray[np.int32]:
        """Local indices of the facets of a named group, owned and ghosts; may be empty.

        Raises:
            ValueError: The mesh has no facets of that name (on every rank).
        """
        tag = self._tag(name, self.mesh.topology.dim - 1, "interface")
        return self.facet_tags.find(tag)  # type: ignore[union-attr]

    def cells(self, name: str) -> npt.NDArray[np.int32]:
        """Local indices of the cells of a named group, owned and ghosts; may be empty.

        Raises:
            ValueError: The mesh has no cells of that name (on every rank).
        """
        tag = self._tag(name, self.mesh.topology.dim, "region")
        return self.cell_tags.find(tag)  # type: ignore[union-attr]

    def _tag(self, name: str, dim: int, kind: str) -> int:
        valid = {key: tag for key, (group_dim, tag) in self.groups.items() if group_dim == dim}
        if name not in valid:
            names = ", ".join(f"'{key}'" for key in sorted(valid))
            raise ValueError(
                f"unknown {kind} '{name}'; this mesh has {names or f'no named {kind}'}"
            )
        return valid[name]


def build_mesh(builder: Builder, comm: MPI.Comm, *, gdim: int | None = None) -> TaggedMesh:
    """Mesh made by a gmsh builder, distributed over `comm`.

    Args:
        builder: Called as `builder(gmsh.model)` on rank 0 only; adds a geometry to the current
            model, meshes it and gives cells and facets their physical groups.
        comm: Who shares the mesh.
        gdim: Number of coordinates; from the mesh by default (2 if it lies in the plane z = 0).

    Raises:
        ValueError: There is no mesh, no physical group of cells, or one that DOLFINx cannot hold.
        Exception: What the builder raised on rank 0 is raised on every rank.

    Note:
        Collective over `comm`.
    """
    with ExitStack() as stack:

        def work() -> tuple[int, dict[str, tuple[int, int]]]:
            gmsh = stack.enter_context(_gmsh_session())
            builder(gmsh.model)
            return _prepare(gmsh.model, gdim)

        gdim, groups = on_rank_zero(comm, work)
        model = None
        if comm.rank == 0:
            import gmsh

            model = gmsh.model
        return TaggedMesh(*compat.model_to_mesh(model, comm, gdim), groups=groups)


def read_mesh(
    path: str | os.PathLike[str],
    comm: MPI.Comm,
    *,
    gdim: int | None = None,
    unit: float = 1.0,
) -> TaggedMesh:
    """Mesh from a file that gmsh reads, usually `.msh`, distributed over `comm`.

    The cells need a physical group; names are optional, and `groups` holds those that have one.

    Args:
        path: The file; read on rank 0 only.
        comm: Who shares the mesh.
        gdim: Number of coordinates; from the mesh by default (2 if it lies in the plane z = 0).
        unit: Length of the file's unit, m: 0.001 for a mesh in millimetres.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is not a mesh, or not one that can be used; the message says why.

    Note:
        Collective over `comm`. Every error is raised on all ranks.
    """

    def merge(model: Any) -> None:
        if not Path(path).is_file():
            raise FileNotFoundError(f"no mesh file '{os.fspath(path)}'")
        try:
            _merge(os.fspath(path))
            _check(model, gdim)
        except Exception as error:
            raise ValueError(f"cannot use '{os.fspath(path)}' as a mesh: {error}") from error

    if not (isinstance(unit, (int, float, np.number)) and 0 < unit < np.inf):
        raise ValueError(f"unit is the length of the file's unit, m (0.001 for mm); got {unit!r}")
    tagged = build_mesh(merge, comm, gdim=gdim)
    if unit != 1:
        tagged.mesh.geometry.x[:] *= unit
    return tagged


def write_mesh(builder: Builder, path: str | os.PathLike[str]) -> None:
    """Write what a gmsh builder makes as a `.msh` file (format 4.1) with its physical groups.

    Args:
        builder: See `build_mesh`.
        path: The file to write; its name ends with `.msh`.

    Raises:
        ValueError: The name does not end with `.msh`, or the builder made no usable mesh.
        FileNotFoundError: The directory does not exist.

    Note:
        Not collective: under MPI, call it on one rank.
    """
    path = Path(path)
    if path.suffix != ".msh":
        raise ValueError(f"a mesh file's name ends with '.msh'; got '{path}'")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"no directory '{path.parent}' to write '{path.name}' to")
    with _gmsh_session() as gmsh:
        builder(gmsh.model)
        _check(gmsh.model, None)
        gmsh.write(str(path))


@contextmanager
def _gmsh_session() -> Iterator[Any]:
    """gmsh, silent and with a fresh current model; afterwards everything is as it was before."""
    try:
        import gmsh
    except ImportError as error:
        raise ImportError(
            "meshes are made and read with gmsh's Python module, which is not installed: "
            "apt install python3-gmsh, conda install python-gmsh or pip install gmsh"
        ) from error

    mine = not gmsh.isInitialized()
    if mine:
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
    terminal = gmsh.option.getNumber("General.Terminal")
    known, current = set(gmsh.model.list()), gmsh.model.getCurrent()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.add(f"dolfinx_mbd {len(known)}")
        yield gmsh
    finally:
        if mine and gmsh.isInitialized():
            gmsh.finalize()
        elif gmsh.isInitialized():
            for name in set(gmsh.model.list()) - known:
                gmsh.model.setCurrent(name)
                gmsh.model.remove()
            gmsh.model.setCurrent(current)
            gmsh.option.setNumber("General.Terminal", terminal)


def _merge(path: str) -> None:
    import gmsh

    gmsh.merge(path)


def _check(model: Any, gdim: int | None) -> tuple[int, int]:
    """Dimensions `(topological, geometric)` of the mesh of a model, or an error if unusable."""
    tdim = max((d for d in (1, 2, 3) if len(model.mesh.getElementTypes(d))), default=0)
    if tdim == 0:
        raise ValueError("it has no elements; a builder must also call model.mesh.generate")
    kind = {1: "curve", 2: "surface", 3: "volume"}[tdim]
    if not model.getPhysicalGroups(tdim):
        raise ValueError(
            f"it has elements of dimension {tdim} but no physical {kind}; "
            f"add one to name the body, e.g. model.addPhysicalGroup({tdim}, tags, name='body')"
        )

    for dim in (tdim, tdim - 1):
        owners: dict[int, str] = {}
        types: set[int] = set()
        for _, tag in model.getPhysicalGroups(dim):
            label = f"'{model.getPhysicalName(dim, tag)}' ({dim}, {tag})"
            for entity in map(int, model.getEntitiesForPhysicalGroup(dim, tag)):
                types.update(map(int, model.mesh.getElementTypes(dim, entity)))
                if entity in owners:
                    raise ValueError(
                        f"physical groups {owners[entity]} and {label} share entity {entity}; an "
                        "element can have one tag only, so groups of one dimension must not overlap"
                    )
                owners[entity] = label
        if dim == tdim:
            _check_all_owned(model, dim, kind, set(owners))
        names = sorted(str(model.mesh.getElementProperties(t)[0]) for t in types)
        if len(types) > 1 or not types <= _CELL_TYPES[dim]:
            raise ValueError(
                f"elements of dimension {dim} are {', '.join(names)}; they must be all of one "
                "type, with Lagrange nodes of order 1 to 3: tetrahedra, hexahedra, triangles, "
                "quadrilaterals or lines"
            )

    names = [
        model.getPhysicalName(d, t) for d in (tdim, tdim - 1) for _, t in model.getPhysicalGroups(d)
    ]
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        raise ValueError(
            f"two physical groups are called '{repeated[0]}'; give them different names"
        )
    return tdim, _geometric_dimension(model, tdim, gdim)


def _check_all_owned(model: Any, dim: int, kind: str, owned: set[int]) -> None:
    """Every element of the highest dimension has a physical group (DOLFINx 0.9 would drop it)."""
    filled = {e for _, e in model.getEntities(dim) if len(model.mesh.getElementTypes(dim, e))}
    if stray := sorted(filled - owned):
        raise ValueError(
            f"{kind} {stray[0]} has elements and no physical group; every {kind} needs one"
        )


def _geometric_dimension(model: Any, tdim: int, gdim: int | None) -> int:
    """Number of coordinates that the nodes need, or an error if `gdim` is fewer."""
    if tdim == 3:
        needed = 3
    else:
        x = model.mesh.getNodes()[1].reshape(-1, 3)
        used = np.abs(x).max(axis=0) > 1e-10 * np.ptp(x, axis=0).max()
        needed = max(tdim, 1 + int(np.flatnonzero(used).max(initial=0)))
    if gdim is None and (tdim, needed) == (2, 3):
        raise ValueError(
            "it has surface elements in space but no volume elements; a solid needs a physical "
            "volume (gmsh saves only what is in a physical group); for a surface, say gdim=3"
        )
    if gdim is not None and not needed <= gdim <= 3:
        raise ValueError(f"its nodes need {needed} coordinates; got gdim={gdim}")
    return needed if gdim is None else gdim


def _prepare(model: Any, gdim: int | None) -> tuple[int, dict[str, tuple[int, int]]]:
    """Bring a model into the form that DOLFINx reads; its geometric dimension and its named groups.

    DOLFINx wants nodes numbered without gaps, and elements in every entity of every group.
    """
    tdim, gdim = _check(model, gdim)
    groups: dict[str, tuple[int, int]] = {}
    for dim, tag in model.getPhysicalGroups():
        name = model.getPhysicalName(dim, tag)
        entities = [int(e) for e in model.getEntitiesForPhysicalGroup(dim, tag)]
        filled = [e for e in entities if len(model.mesh.getElementTypes(dim, e))]
        if dim in (tdim, tdim - 1):
            if name:
                groups[name] = (dim, tag)
            if filled == entities:
                continue
        else:
            filled = []
        model.removePhysicalGroups([(dim, tag)])
        if filled:
            model.addPhysicalGroup(dim, filled, tag)
            model.setPhysicalName(dim, tag, name)
    model.mesh.renumberNodes()
    return gdim, groups


def on_rank_zero(comm: MPI.Comm, work: Callable[[], T]) -> T:
    """Result of `work()`, run on rank 0 only; what it raises there is raised on every rank.

    Note: Collective over `comm`.
    """
    result: T | None = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = work()
        except Exception as caught:
            error = caught
    shared = comm.bcast((result, None if error is None else _picklable(error)), root=0)
    if error is not None:
        raise error
    if shared[1] is not None:
        raise shared[1]
    return shared[0]


def _picklable(error: Exception) -> Exception:
    """`error`, or one with the same message if it does not survive being sent to another rank."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
