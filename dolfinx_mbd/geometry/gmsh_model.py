"""gmsh sessions, reproducible meshing, and conversion of gmsh meshes to checked arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import memory, reject
from dolfinx_mbd.errors import MeshError, MeshWarning, SolverError, warn
from dolfinx_mbd.geometry.deck_materials import DeckMaterial
from dolfinx_mbd.geometry.mesh_topology import check_facets, check_topology
from dolfinx_mbd.optional import optional_module

_CELL_TYPES = {0: {15}, 1: {1, 8, 26}, 2: {2, 3, 9, 10, 21, 36}, 3: {4, 5, 11, 12, 29, 92}}
"""gmsh's element types that DOLFINx reads, by dimension: Lagrange elements of order 1 to 3."""

_COUNTERS = {2: ("Triangles", "Quadrangles"), 3: ("Tetrahedra", "Hexahedra", "Prisms", "Pyramids")}
"""Names of gmsh's counters of elements, by dimension; there is no counter of lines."""

MIN_JACOBIAN = 0.1  # smallest scaled Jacobian that is accepted
BYTES_PER_CELL = 300  # lower bound of the memory that gmsh needs for each tetrahedron, bytes
WARNING_CELLS = 250_000  # a warning is given for more tetrahedra (about 1e6 unknowns)

_REPRODUCIBLE = {
    "General.NumThreads": 1,
    "Mesh.MaxNumThreads1D": 1,
    "Mesh.MaxNumThreads2D": 1,
    "Mesh.MaxNumThreads3D": 1,
    "Mesh.RandomSeed": 1,
    "Mesh.Algorithm": 6,  # Frontal-Delaunay
    "Mesh.Algorithm3D": 1,  # Delaunay
    "Mesh.MeshSizeMin": 0,
    "Mesh.MeshSizeFactor": 1,
    "Mesh.MeshSizeFromPoints": 0,
    "Mesh.MeshSizeExtendFromBoundary": 1,
    "Mesh.Optimize": 1,
    "Mesh.ElementOrder": 1,
    "Mesh.SecondOrderLinear": 0,
    "Mesh.HighOrderOptimize": 0,  # can abort the process if elements are distorted
}
"""Options of gmsh that make a mesh independent of the machine."""

_ATTEMPTS = ((1.0, 1.0), (1.0, 1.5), (0.7, 1.5), (0.5, 2.25), (0.3, 10 / 3))
"""Size and number of elements around a circle, relative to the requested ones, of each attempt."""


@dataclass(frozen=True, eq=False)
class MeshArrays:
    """A mesh as arrays, with its nodes and cells in gmsh's order."""

    points: NDArray[np.float64]  # coordinates of the nodes of the cells, m, shape (nodes, 3)
    cell_type: int  # gmsh's number of the type of the cells
    cells: NDArray[np.int64]  # rows of `points`, shape (cells, nodes of a cell)
    cell_tags: NDArray[np.int32]  # physical tag of each cell
    facets: NDArray[np.int64]  # rows of `points`, shape (tagged facets, nodes of a facet)
    facet_tags: NDArray[np.int32]  # physical tag of each tagged facet
    groups: Mapping[str, tuple[int, int]]  # dimension and tag of every named group
    gdim: int  # number of coordinates of a node that DOLFINx uses, 2 or 3
    materials: Mapping[str, DeckMaterial] = field(default_factory=dict)  # by group of cells

    def without_rows(self) -> MeshArrays:
        """Return a copy without nodes, cells and facets, for all ranks except 0."""
        names = ("points", "cells", "cell_tags", "facets", "facet_tags")
        return replace(self, **{name: getattr(self, name)[:0].copy() for name in names})


@contextmanager
def gmsh_session() -> Iterator[Any]:
    """Provide gmsh without output and with a new model, and restore its state afterwards."""
    gmsh = optional_module("gmsh", "meshes of geometries")
    initialized = gmsh.isInitialized()
    if not initialized:
        gmsh.initialize(readConfigFiles=False, interruptible=False)
        gmsh.option.setNumber("General.Terminal", 0)
    terminal = gmsh.option.getNumber("General.Terminal")
    known, current = set(gmsh.model.list()), gmsh.model.getCurrent()
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.model.add(f"dolfinx_mbd {len(known)}")
        yield gmsh
    finally:
        if not initialized and gmsh.isInitialized():
            gmsh.finalize()
        elif gmsh.isInitialized():
            for name in set(gmsh.model.list()) - known:
                gmsh.model.setCurrent(name)
                gmsh.model.remove()
            gmsh.model.setCurrent(current)
            gmsh.option.setNumber("General.Terminal", terminal)


def name_groups(
    model: Any,
    part: str,
    volume: int,
    named_surfaces: Callable[[Any, list[int]], Mapping[str, list[int]]],
) -> None:
    """Name a volume after its part, and its surfaces as `named_surfaces(model, tags)` returns."""
    model.occ.synchronize()
    faces = model.getBoundary([(3, volume)], combined=False, oriented=False)
    for name, tags in named_surfaces(model, sorted({tag for _, tag in faces})).items():
        if not tags:
            raise SolverError(f"the {part} has no surface {name!r}; change the dimensions")
        model.addPhysicalGroup(2, tags, name=name)
    model.addPhysicalGroup(3, [volume], name=part)


def longest_side(model: Any) -> float:
    """Return the longest side of the box around a model, m."""
    low, high = np.split(np.array(model.getBoundingBox(-1, -1)), 2)
    return float((high - low).max())


def nodes_of_elements(model: Any, kind: int, tags: Any) -> Any:
    """Return the tags of the nodes of elements of one type, one row for each element."""
    _, _, _, num_nodes, *_ = model.mesh.getElementProperties(kind)
    return tags.reshape(-1, num_nodes)


def mesh_volumes(
    model: Any, volumes: Iterable[int], size: float, order: int, per_circle: int = 12
) -> None:
    """Mesh volumes reproducibly with tetrahedra of at most a given size (m).

    `per_circle` is the smallest number of elements around a circle.
    """
    tags = list(volumes)
    longest = longest_side(model)
    if size > longest:
        hint = "sizes are in metres; on the command line 5mm is five millimetres"
        reject("size", size, f"at most the length of the part, {longest:.3g} m", hint=hint)
    volume = sum(model.occ.getMass(3, tag) for tag in tags)
    # A regular tetrahedron with the edge `size` has the volume size³/(6 √2); size³ may underflow
    count = 6 * 2**0.5 * volume / size**3 if size**3 > 0 else math.inf
    memory("size", size, BYTES_PER_CELL * count)
    if count > WARNING_CELLS:
        text = f"elements of {size:g} m divide the {volume:.3g} m³ of the part into about"
        text = f"{text} {count:.2g} tetrahedra, and meshing takes long"
        text = f"{text}; check the dimensions, which are in metres, or choose a larger size"
        warn(MeshWarning(text, quantity="number of cells", value=count, limit=WARNING_CELLS))
    for size_factor, circle_factor in _ATTEMPTS:
        around = round(circle_factor * per_circle)
        sizes = {"Mesh.MeshSizeMax": size_factor * size, "Mesh.MeshSizeFromCurvature": around}
        with _options({**_REPRODUCIBLE, **sizes}):
            model.mesh.clear()
            generate = model.mesh.generate
            try:
                generate(3)
            except Exception as error:  # gmsh raises only this class; it cannot mesh a second time
                text = f"gmsh cannot mesh a part with elements of {size:g} m: {error}"
                raise SolverError(f"{text}; choose another size, or omit small features") from None
            model.mesh.setOrder(order)
        elements = []
        for tag in tags:
            _, numbers, _ = model.mesh.getElements(3, tag)
            elements.extend(np.concatenate(numbers))
        if min(model.mesh.getElementQualities(elements, "minSJ")) > MIN_JACOBIAN:
            return
    text = f"the mesh of size {size:g} m has nearly inverted elements; choose a smaller size"
    raise SolverError(text)


def refine(model: Any, points: Sequence[Sequence[float]], radius: float, size: float) -> None:
    """Limit the element size within a radius of points; beyond it, the limit grows (m).

    Over a distance of four radii, the limit grows linearly to five radii.
    """
    fields, balls = model.mesh.field, []
    for point in points:
        balls.append(fields.add("Ball"))
        values = dict(zip(("XCenter", "YCenter", "ZCenter"), point, strict=True))
        values |= {"Radius": radius, "Thickness": 4 * radius, "VIn": size, "VOut": 5 * radius}
        for name, value in values.items():
            fields.setNumber(balls[-1], name, value)
    if balls:
        least = fields.add("Min")
        fields.setNumbers(least, "FieldsList", balls)
        fields.setAsBackgroundMesh(least)


def extrude(occ: Any, surface: int, dz: float) -> tuple[int, int]:
    """Return the volume that a surface sweeps along z."""
    return next((dim, int(tag)) for dim, tag in occ.extrude([(2, surface)], 0, 0, dz) if dim == 3)


def is_bore(
    model: Any,
    surface: int,
    x: float,
    radius: float,
    y: float = 0.0,
    *,
    axis: tuple[float, float] | None = None,
    z: float = 0.0,
) -> bool:
    """Return whether a surface lies on a cylinder of given radius about an axis through (x, y, z).

    The axis is parallel to z, or has the direction `axis` in the plane z = 0.
    """
    if model.getType(2, surface) != "Cylinder":
        return False
    (u0, v0), (u1, v1) = model.getParametrizationBounds(2, surface)
    for fraction in (0.2, 0.5, 0.8):  # three points on the surface
        values = [u0 + fraction * (u1 - u0), v0 + fraction * (v1 - v0)]
        dx, dy, dz = np.array(model.getValue(2, surface, values)) - (x, y, z)
        if axis is None:
            distance = math.hypot(dx, dy)
        else:
            along_x, along_y = axis
            distance = math.hypot(along_x * dy - along_y * dx, dz)
        if abs(distance - radius) > 1e-6 * radius:
            return False
    return True


@contextmanager
def _options(values: Mapping[str, float]) -> Iterator[None]:
    """Set options of gmsh, and restore them afterwards."""
    gmsh = optional_module("gmsh", "meshes of geometries")
    before = {name: gmsh.option.getNumber(name) for name in values}
    try:
        for name, value in values.items():
            gmsh.option.setNumber(name, value)
        yield
    finally:
        for name, value in before.items():
            gmsh.option.setNumber(name, value)


def mesh_arrays(model: Any, gdim: int | None = None) -> MeshArrays:
    """Return the mesh of the current gmsh model as arrays that DOLFINx can distribute.

    By default the geometric dimension `gdim` is the smallest one that the nodes require.
    """
    tdim = _check_groups(model)
    _check_order(model, tdim)
    cell_type, cell_nodes, cell_tags = _elements(model, tdim)
    _, facet_nodes, facet_tags = _elements(model, tdim - 1)
    tags, coordinates, _ = model.mesh.getNodes()
    order = np.argsort(tags)
    tags, coordinates = tags[order], coordinates.reshape(-1, 3)[order]
    nodes, cells = np.unique(cell_nodes, return_inverse=True)
    rows = np.searchsorted(tags, nodes)
    missing = (rows == len(tags)) | (tags[np.minimum(rows, len(tags) - 1)] != nodes)
    if missing.any():
        raise MeshError(f"node {nodes[missing][0]} belongs to a cell and has no coordinates")
    points = coordinates[rows]
    if not np.isfinite(points).all():
        node = nodes[~np.isfinite(points).all(axis=1)][0]
        raise MeshError(f"the coordinates of node {node} are not finite")
    cells = cells.reshape(cell_nodes.shape).astype(np.int64)
    _, _, _, _, reference, num_corners = model.mesh.getElementProperties(cell_type)
    check_topology(cells, np.reshape(reference, (-1, tdim)), num_corners)
    facets = np.minimum(np.searchsorted(nodes, facet_nodes), len(nodes) - 1)
    check_facets(np.where(nodes[facets] == facet_nodes, facets, -1), facet_tags)
    groups, gdim = _named_groups(model, tdim), _geometric_dimension(points, tdim, gdim)
    facets = facets.astype(np.int64)
    return MeshArrays(points, cell_type, cells, cell_tags, facets, facet_tags, groups, gdim)


def _elements(model: Any, dim: int) -> tuple[int, NDArray[np.uint64], NDArray[np.int32]]:
    """Return the type, node tags and physical tags of the elements in the groups of a dimension."""
    kind, nodes, tags = 0, [], []
    for _, tag in model.getPhysicalGroups(dim):
        for entity in model.getEntitiesForPhysicalGroup(dim, tag):
            for kind, _, flat in zip(*model.mesh.getElements(dim, entity), strict=True):
                rows = nodes_of_elements(model, kind, flat)
                nodes.append(rows)
                tags.append(np.full(len(rows), tag, dtype=np.int32))
    if not nodes:
        return kind, np.empty((0, 0), dtype=np.uint64), np.empty(0, dtype=np.int32)
    return int(kind), np.concatenate(nodes), np.concatenate(tags)


def _check_groups(model: Any) -> int:
    """Return the dimension of the cells after checking the physical groups."""
    tdim = max((d for d in (1, 2, 3) if len(model.mesh.getElementTypes(d))), default=0)
    if tdim == 0:
        raise MeshError("the model has no elements; a builder must also call model.mesh.generate")
    kind = {1: "curve", 2: "surface", 3: "volume"}[tdim]
    if not model.getPhysicalGroups(tdim):
        advice = f"e.g. model.addPhysicalGroup({tdim}, tags, name='body')"
        text = f"the model has elements of dimension {tdim} but no physical {kind}"
        raise MeshError(f"{text}; add one to name the body, {advice}")
    for dim in (tdim, tdim - 1):
        owners: dict[int, str] = {}
        types: set[int] = set()
        for _, tag in model.getPhysicalGroups(dim):
            label = f"'{model.getPhysicalName(dim, tag)}' ({dim}, {tag})"
            for entity in map(int, model.getEntitiesForPhysicalGroup(dim, tag)):
                types.update(map(int, model.mesh.getElementTypes(dim, entity)))
                if entity in owners:
                    raise MeshError(
                        f"physical groups {owners[entity]} and {label} share entity {entity}; an "
                        "element can have one tag only, so groups of one dimension must not overlap"
                    )
                owners[entity] = label
        filled = {e for _, e in model.getEntities(dim) if len(model.mesh.getElementTypes(dim, e))}
        if dim == tdim and (stray := sorted(filled - set(owners))):
            text = f"{kind} {stray[0]} has elements and no physical group"
            raise MeshError(f"{text}; every {kind} needs one")
        if len(types) > 1 or not types <= _CELL_TYPES[dim]:
            raise MeshError(
                f"elements of dimension {dim} are {_type_names(model, types)}; they must all be of "
                "one type, with Lagrange nodes of order 1 to 3: tetrahedra, hexahedra, triangles, "
                "quadrilaterals or lines"
            )
    return tdim


def _check_order(model: Any, tdim: int) -> None:
    """Raise an error if elements of one shape have different orders.

    In this case gmsh returns only the elements that have the order of the first element.
    """
    gmsh = optional_module("gmsh", "meshes of geometries")
    for dim in (d for d in (tdim, tdim - 1) if d in _COUNTERS):
        _, elements, _ = model.mesh.getElements(dim)
        tags = np.concatenate([np.empty(0, np.uint64), *elements])
        count = sum(int(gmsh.option.getNumber(f"Mesh.Nb{name}")) for name in _COUNTERS[dim])
        if len(tags) != count:
            types = _type_names(model, set(map(int, model.mesh.getElementTypes(dim))))
            raise MeshError(
                f"{count - len(tags)} of its {count} elements of dimension {dim} have a different "
                f"order from the rest, which are {types}; all must be of one type (gmsh: "
                "Mesh.ElementOrder, model.mesh.setOrder)"
            )


def _type_names(model: Any, types: set[int]) -> str:
    """Return gmsh's names of types of elements, as a text."""
    return ", ".join(sorted(str(model.mesh.getElementProperties(t)[0]) for t in types))


def _named_groups(model: Any, tdim: int) -> dict[str, tuple[int, int]]:
    """Return the groups of cells and facets that have a name."""
    groups: dict[str, tuple[int, int]] = {}
    for dim in (tdim - 1, tdim):
        for _, tag in model.getPhysicalGroups(dim):
            name = model.getPhysicalName(dim, tag)
            if name in groups:
                raise MeshError(f"two physical groups have the name '{name}'; rename one of them")
            if name:
                groups[name] = (dim, int(tag))
    return groups


def _geometric_dimension(points: NDArray[np.float64], tdim: int, gdim: int | None) -> int:
    """Return `gdim` or, if None, the smallest geometric dimension that the nodes need."""
    needed = 3
    if tdim < 3:
        used = np.abs(points).max(axis=0) > 1e-10 * np.ptp(points, axis=0).max()
        needed = max(tdim, 1 + int(np.flatnonzero(used).max(initial=0)))
    if gdim is None and (tdim, needed) == (2, 3):
        raise MeshError(
            "it has surface elements in space but no volume elements; a solid needs a physical "
            "volume (gmsh saves only physical groups); for a surface use gdim=3"
        )
    if gdim is not None and not needed <= gdim <= 3:
        text = f"its nodes need {needed} coordinates; got gdim={gdim}"
        raise MeshError(text, argument="gdim", value=gdim)
    return needed if gdim is None else gdim
