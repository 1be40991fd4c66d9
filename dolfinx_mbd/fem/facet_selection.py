"""Selection of boundary facets by their geometry, for meshes without names of surfaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from dolfinx import la
from dolfinx.geometry import squared_distance
from dolfinx.mesh import Mesh, entities_to_geometry, exterior_facet_indices
from mpi4py import MPI
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, entries, instance, metres, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.meshing import TaggedMesh, plain_mesh
from dolfinx_mbd.fem.surface_integrals import body_size

TOLERANCE = 1e-5  # largest distance of a node from a shape, relative to the size of the body
NEAR_TOLERANCE = 0.1  # largest distance of a point from the boundary, relative to the same size
MAX_SUGGESTION = 0.01  # largest tolerance that an error suggests, relative to the same size
TIE = 1e-6  # difference of distances that counts as equal, relative to the same size
MAX_EDGE_ANGLE = 40.0  # largest angle between the normals of facets of a smooth patch, degrees
MAX_AXIAL_NORMAL = 0.7  # largest component along the axis of the normal of a facet on a cylinder

CORNERS = {"triangle": 2, "quadrilateral": 2, "tetrahedron": 3, "hexahedron": 4}
"""Number of corners of a facet of each cell."""

EDGES = {2: [[0], [1]], 3: [[0, 1], [1, 2], [0, 2]], 4: [[0, 1], [0, 2], [1, 3], [2, 3]]}
"""Corners of the edges of a facet (of its ends, in the plane) by its number of corners."""


def pick(
    mesh: TaggedMesh | Mesh,
    *,
    cylinder: tuple[ArrayLike, ArrayLike, float | str] | None = None,
    plane: tuple[ArrayLike, ArrayLike] | None = None,
    box: tuple[ArrayLike, ArrayLike] | None = None,
    near: ArrayLike | None = None,
    tolerance: float | str | None = None,
) -> NDArray[np.int32]:
    """Return the boundary facets on a shape, or the smooth surface near a point.

    A facet is on a shape if all its nodes are, including the nodes on curved edges. With several
    shapes, the facets are on all of them: a cylinder and a box select a part of a long bore. A
    facet across the axis is not on a cylinder, even if its corners are.

    The smooth surface near a point is the facet closest to the point, with all the facets that are
    connected to it by edges at which the normal turns by less than 40°. On a bore with fewer than
    ten facets around, use `cylinder`. `smooth_faces` lists these surfaces.

    Args:
        mesh: The mesh; names of groups are not used.
        cylinder: Point on the axis, direction of the axis, and radius. In a plane mesh the
            direction is (0, 0, 1). Lengths are in m, or texts with a unit such as ``"5mm"``.
        plane: Point on the plane, and its normal, which can have any length and sign.
        box: Smallest and largest coordinates of a box that contains the facets, m.
        near: Point, shape (3,), m; it must not be combined with shapes. The points of a plane mesh
            can have shape (2,).
        tolerance: Largest distance of a node from the shapes, by default 1e-5 times the diagonal of
            the bounding box of the mesh, m. With `near`, it is the largest distance of this point
            from the boundary, by default 0.1 times the diagonal.

    Returns:
        Local indices, ascending, including ghosts; a rank may have none. Use them in
        `interfaces={"name": facets}` or `InterfaceSpec(facets)`.

    Raises:
        InputError: An argument is invalid, no facet is selected, or `near` is equally close to two
            smooth surfaces. The message states the distance of the nearest facet.

    Note: Collective; the selection does not depend on the number of ranks. Errors are raised on
        all ranks.

    Examples:
        >>> mesh = mbd.build_mesh(bar, MPI.COMM_WORLD)
        >>> end = mbd.fem.pick(mesh, plane=((1.0, 0, 0), (1, 0, 0)))
        >>> bool((end == mesh.facets("right")).all())
        True
        >>> bool((end == mbd.fem.pick(mesh, near=(1.0, 0.05, 0.05))).all())
        True
    """
    instance("mesh", mesh, (TaggedMesh, Mesh))
    domain = plain_mesh(mesh)
    cell, dim = domain.topology.cell_name(), domain.geometry.dim
    if cell not in CORNERS or domain.topology.dim != dim:
        text = f"pick needs a mesh of solids, or of faces in the plane; got {cell} cells in {dim}D"
        raise InputError(text, argument="mesh")
    options = {"cylinder": cylinder, "plane": plane, "box": box}
    shapes = {name: value for name, value in options.items() if value is not None}
    if bool(shapes) == (near is not None):  # both or neither
        raise InputError("give one or more of cylinder, plane and box, or near alone")
    checked = {name: _checked_shape(name, value, dim) for name, value in shapes.items()}
    point = None if near is None else _vector("near", metres(near), dim)
    size = body_size(domain)
    limit = (TOLERANCE if shapes else NEAR_TOLERANCE) * size
    if tolerance is not None:
        limit = number("tolerance", metres(tolerance), low=0.0, unit="m")
    surface = boundary(domain)
    if point is None:
        # The largest of the distances from the shapes: a facet must be on all of them
        distances = np.max([_DISTANCES[k](surface, *v) for k, v in checked.items()], axis=0)
    else:
        points: Any = np.tile(point, (len(surface.facets), 1)).astype(domain.geometry.x.dtype)
        facets: Any = surface.facets
        squares = squared_distance(domain, dim - 1, facets, points)
        distances = np.sqrt(np.asarray(squares, dtype=np.float64).reshape(-1))
    _check_nearest(domain, surface, distances, limit, size, list(checked))
    selected = distances <= limit if point is None else _patch(domain, surface, distances, size)
    marks = la.vector(domain.topology.index_map(dim - 1))
    marks.array[:] = 0
    marks.array[surface.facets[selected]] = 1
    marks.scatter_forward()
    return np.flatnonzero(marks.array > 0.5).astype(np.int32)


@dataclass(frozen=True, eq=False)
class Boundary:
    """The owned facets on the boundary of a mesh."""

    facets: NDArray[np.int32]
    corners: NDArray[np.int64]  # global nodes, (facets, corners)
    x: Array  # positions of the nodes, (facets, nodes of a facet, 3), m
    normals: Array  # outward, of the plane through the first corners, (facets, 3)


def boundary(mesh: Mesh) -> Boundary:
    """Return the owned facets on the boundary of a mesh."""
    topology, dim = mesh.topology, mesh.topology.dim
    topology.create_connectivity(dim - 1, dim)
    topology.create_connectivity(dim, dim - 1)
    facets = np.sort(exterior_facet_indices(topology)).astype(np.int32)
    count = CORNERS[topology.cell_name()]
    if not len(facets):
        empty = np.zeros((0, count), dtype=np.int64)
        return Boundary(facets, empty, np.zeros((0, count, 3)), np.zeros((0, 3)))
    nodes = entities_to_geometry(mesh, dim - 1, facets)
    corners = mesh.geometry.index_map().local_to_global(nodes[:, :count].ravel().astype(np.int32))
    x = np.asarray(mesh.geometry.x, dtype=np.float64)
    edges = x[nodes[:, 1:count]] - x[nodes[:, :1]]
    across = edges[:, 1] if dim == 3 else np.array([0.0, 0.0, 1.0])
    normals: Array = np.asarray(np.cross(edges[:, 0], across), dtype=np.float64)
    table = topology.connectivity(dim - 1, dim)
    cells = table.array[table.offsets[facets]]  # a facet on the boundary has one cell
    inside = x[compat.geometry_dofmap(mesh)[cells]].mean(axis=1)
    outward = np.einsum("fi,fi->f", normals, x[nodes[:, :count]].mean(axis=1) - inside)
    normals *= (np.sign(outward) / np.linalg.norm(normals, axis=1))[:, None]
    return Boundary(facets, corners.reshape(-1, count), x[nodes], normals)


def _vector(argument: str, value: Any, dim: int) -> Array:
    """Return a vector of shape (3,); in the plane z is 0 and can be omitted."""
    shapes = "(3,)" if dim == 3 else "(2,), or (3,) with z = 0"
    expected = f"finite numbers of shape {shapes}"
    numbers = array(argument, value, (None,), expected=expected)
    if len(numbers) not in (dim, 3) or numbers[dim:].any():
        reject(argument, value, expected)
    return np.concatenate([numbers, np.zeros(3 - len(numbers))])


def _direction(argument: str, value: Any, dim: int) -> Array:
    """Return a unit vector; see `_vector`."""
    vector = _vector(argument, value, dim)
    length = np.linalg.norm(vector)
    if not length > 0:
        reject(argument, value, "a direction other than zero")
    return np.asarray(vector / length)


def _checked_shape(name: str, value: Any, dim: int) -> tuple[Any, ...]:
    """Return the vectors and numbers that define a cylinder, a plane or a box."""
    expected = {
        "cylinder": "(point on the axis, direction of the axis, radius)",
        "plane": "(point, normal)",
        "box": "(smallest coordinates, largest coordinates)",
    }[name]
    items = entries(name, value, expected)
    if len(items) != (3 if name == "cylinder" else 2):
        reject(name, value, expected)
    first = _vector(f"the first entry of {name}", metres(items[0]), dim)
    if name == "plane":
        return first, _direction("the normal of plane", items[1], dim)
    if name == "box":
        high = _vector("the second entry of box", metres(items[1]), dim)
        if not (first <= high).all():
            reject(name, value, "(smallest coordinates, largest coordinates) in this order")
        return first, high
    axis = _direction("the axis of cylinder", items[1], 3)
    if dim == 2 and abs(axis[2]) < 1 - 1e-12:
        reject("the axis of cylinder", items[1], "(0, 0, 1) in a plane mesh")
    return first, axis, number("the radius of cylinder", metres(items[2]), positive=True, unit="m")


def _from_cylinder(surface: Boundary, point: Array, axis: Array, radius: float) -> Array:
    """Return the distance of each facet from a cylinder; large for facets across its axis."""
    offset = surface.x - point
    offset = offset - (offset @ axis)[..., None] * axis
    distance = np.abs(np.linalg.norm(offset, axis=2) - radius).max(axis=1, initial=0.0)
    across = np.abs(surface.normals @ axis) > MAX_AXIAL_NORMAL
    length = np.linalg.norm(np.ptp(surface.x, axis=1), axis=1)
    return np.where(across, np.maximum(distance, length), distance)


def _from_plane(surface: Boundary, point: Array, normal: Array) -> Array:
    """Return the distance of each facet from a plane."""
    return np.asarray(np.abs((surface.x - point) @ normal).max(axis=1))


def _from_box(surface: Boundary, low: Array, high: Array) -> Array:
    """Return the distance of each facet from a box; zero inside."""
    outside = np.maximum(np.maximum(low - surface.x, surface.x - high), 0.0)
    return np.asarray(np.linalg.norm(outside, axis=2).max(axis=1))


_DISTANCES: dict[str, Callable[..., Array]] = {
    "cylinder": _from_cylinder,
    "plane": _from_plane,
    "box": _from_box,
}
"""Functions that return the largest distance of the nodes of each facet from a shape, m."""


def _check_nearest(
    mesh: Mesh,
    surface: Boundary,
    distances: Array,
    limit: float,
    size: float,
    shapes: list[str],
) -> None:
    """Raise an error on all ranks if every facet is further away than the limit (collective)."""
    local = (np.inf, (np.inf, np.inf, np.inf))
    if len(distances):
        k = int(distances.argmin())
        local = float(distances[k]), tuple(surface.x[k].mean(axis=0).tolist())
    distance, place = min(mesh.comm.allgather(local))
    if distance <= limit:
        return
    title = f"lies on the {' and the '.join(shapes)}" if shapes else "is near the point"
    where = ", ".join(f"{c:.4g}" for c in place)
    text = (
        f"no boundary facet {title} within a tolerance of {limit:.3g} m: the nearest one, at "
        f"({where}) m, has a distance of {distance:.3g} m; check the numbers and their unit (m)"
    )
    if not shapes or distance < MAX_SUGGESTION * size:
        text += f", or set a tolerance of at least {1.01 * distance:.3g} m"
    raise InputError(text, argument=shapes[0] if len(shapes) == 1 else None if shapes else "near")


def _patch(mesh: Mesh, surface: Boundary, distances: Array, size: float) -> NDArray[np.bool_]:
    """Return a mask of the facets of the smooth surface that is closest to a point (collective)."""
    comm = mesh.comm
    lengths = np.concatenate(comm.allgather(distances))
    labels = smooth_labels(comm, surface)
    closest = np.unique(labels[lengths <= lengths.min() + TIE * size])
    if len(closest) > 1:
        text = (
            f"near is equally close to {len(closest)} smooth surfaces, which meet at an edge; "
            "choose a point inside one of them"
        )
        raise InputError(text, argument="near")
    start = comm.exscan(len(distances)) or 0
    return np.asarray(labels[start : start + len(distances)] == closest[0])


def smooth_labels(comm: MPI.Intracomm, surface: Boundary) -> NDArray[np.int32]:
    """Return a number of the smooth surface of each facet, for the facets of all ranks in order.

    Facets with a common edge belong to the same surface if the normal turns by less than
    `MAX_EDGE_ANGLE` at the edge.

    Note: Collective.
    """
    corners, normals = (
        np.concatenate(comm.allgather(a)) for a in (surface.corners, surface.normals)
    )
    edges = np.sort(corners[:, EDGES[corners.shape[1]]], axis=2)  # (facets, edges, ends)
    facet = np.repeat(np.arange(len(corners)), edges.shape[1])
    _, edge, counts = np.unique(
        edges.reshape(-1, edges.shape[2]), axis=0, return_inverse=True, return_counts=True
    )
    facets_by_edge = facet[np.argsort(edge.reshape(-1), kind="stable")]
    # Edges of two facets only, so that surfaces that touch at an edge are not connected
    first = (np.cumsum(counts) - counts)[counts == 2]
    a, b = facets_by_edge[first], facets_by_edge[first + 1]
    smooth = np.einsum("fi,fi->f", normals[a], normals[b]) > np.cos(np.radians(MAX_EDGE_ANGLE))
    a, b = a[smooth], b[smooth]
    graph = scipy.sparse.coo_matrix((np.ones(len(a)), (a, b)), 2 * (len(corners),))
    return np.asarray(scipy.sparse.csgraph.connected_components(graph, directed=False)[1])
