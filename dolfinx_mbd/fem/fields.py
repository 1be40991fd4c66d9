"""Displacement fields of modes, material points and mesh surfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import basix
import numpy as np
from dolfinx import fem, geometry
from dolfinx.mesh import Mesh, entities_to_geometry, exterior_facet_indices
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import MaterialPoint, Skin
from dolfinx_mbd.checks import array, instance, metres, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.parallel import on_rank_zero, shared_errors

POINT_TOLERANCE = 1e-8
"""Largest distance from the mesh, relative to its size, of a point that counts as inside."""


def as_function(
    space: fem.FunctionSpace, owned: Array, out: fem.Function | None = None
) -> fem.Function:
    """Return a function with the given owned degrees of freedom and updated ghosts (collective)."""
    function = fem.Function(space) if out is None else instance("out", out, fem.Function)
    function.x.array[: len(owned)] = owned
    function.x.scatter_forward()
    return function


def material_points(
    space: fem.FunctionSpace,
    modes: Array,
    points: Mapping[str, ArrayLike],
    tolerance: float = POINT_TOLERANCE,
) -> tuple[MaterialPoint, ...]:
    """Return the values of modes (owned dofs, n) at named points; see `locate` (collective)."""
    if not points:
        return ()
    comm, dim = space.mesh.comm, space.dofmap.bs
    x, cells, local = locate(space.mesh, points, tolerance)
    values = np.zeros((len(points), modes.shape[1], 3))
    function = fem.Function(space)
    for k in range(modes.shape[1]):
        as_function(space, modes[:, k], function)
        if len(local):
            values[local, k, :dim] = function.eval(x[local], cells[local]).reshape(-1, dim)
    values = comm.bcast(comm.reduce(values, root=0), root=0)
    return tuple(MaterialPoint(name, x[k], values[k]) for k, name in enumerate(points))


def locate(
    mesh: Mesh, points: Mapping[str, ArrayLike], tolerance: float = POINT_TOLERANCE
) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]:
    """Return positions (points, 3), local cells, and the indices of the points of this rank.

    A point has three coordinates; in the plane it has two, or z = 0. Each point belongs to one
    rank; the cell is −1 if no owned cell contains the point. If a point is farther from the mesh
    than `tolerance` times the size of the mesh, every rank raises the same error. Collective.
    """
    comm, dim = mesh.comm, mesh.geometry.dim
    x = np.zeros((len(points), 3))
    for k, (name, position) in enumerate(points.items()):
        x[k] = _checked_point(f"point {name!r}", position, dim)
    cells, distances = _nearest_cells(mesh, x, tolerance * body_size(mesh))
    distances = np.array(comm.allgather(distances))
    owner = distances.argmin(axis=0)
    outside = np.flatnonzero(np.isinf(distances.min(axis=0)))
    if len(outside):
        k = int(outside[0])
        gaps = np.linalg.norm(mesh.geometry.x - x[k], axis=1)
        nearest = [(gaps.min(), *mesh.geometry.x[gaps.argmin()])] if len(gaps) else []
        gap, *node = min(entry for entries in comm.allgather(nearest) for entry in entries)
        raise InputError(
            f"point {list(points)[k]!r} at ({_coordinates(x[k])}) is not in the mesh; the nearest "
            f"node is ({_coordinates(node)}), {gap:.3g} m away"
        )
    return x, cells, np.flatnonzero(owner == comm.rank)


def _checked_point(argument: str, position: ArrayLike, dim: int) -> Array:
    """Return the position of a point, shape (3,), m."""
    expected = "three finite numbers" if dim == 3 else "two or three finite numbers"
    x = array(argument, metres(position), expected=expected)
    if x.shape not in (((3,),) if dim == 3 else ((2,), (3,))):
        reject(argument, position, expected)
    if dim == 2 and x[2:].any():
        raise InputError(f"{argument}: the points of a plane body have z = 0; got z = {x[2]:g} m")
    return in_space(x)


def _nearest_cells(mesh: Mesh, points: Array, limit: float) -> tuple[NDArray[np.int32], Array]:
    """Return the owned cell nearest to each point and its distance, or −1 and ∞ beyond a limit."""
    tdim = mesh.topology.dim
    owned = np.arange(mesh.topology.index_map(tdim).size_local, dtype=np.int32)
    cells, distances = np.full(len(points), -1, dtype=np.int32), np.full(len(points), np.inf)
    with shared_errors(mesh.comm):
        if len(owned):
            tree = geometry.bb_tree(mesh, tdim, entities=owned, padding=limit)
            candidates = geometry.compute_collisions_points(tree, points)
            nodes = compat.geometry_dofmap(mesh)
            for k, point in enumerate(points):
                links = candidates.links(k)
                cell_nodes = mesh.geometry.x[nodes[links]]
                vectors = [geometry.compute_distance_gjk(point[None], x) for x in cell_nodes]
                gaps = [float(np.linalg.norm(vector)) for vector in vectors]
                if gaps and min(gaps) <= limit:
                    cells[k], distances[k] = links[np.argmin(gaps)], min(gaps)
    return cells, distances


def _coordinates(values: Iterable[float]) -> str:
    """Return coordinates as text."""
    return ", ".join(f"{value:.6g}" for value in values)


def surface_skin(space: fem.FunctionSpace, modes: Array) -> Skin:
    """Return the surface of the mesh as triangles, with the modes at their vertices.

    Quadrilaterals are split into triangles. The surface of a plane body is the body at z = 0. Nodes
    have the order of the input mesh. Triangles are sorted by their nodes; their normals point
    outwards (in the plane to z > 0). Neither order depends on the partition. All ranks return the
    whole surface. Collective.
    """
    mesh, comm = space.mesh, space.mesh.comm
    corners, triangles = np.unique(_surface_triangles(mesh), return_inverse=True)
    blocks = _blocks_of_vertices(space)[corners]
    local = np.empty((len(corners), modes.shape[1], 3))
    function = fem.Function(space)
    for k in range(modes.shape[1]):
        as_function(space, modes[:, k], function)
        local[:, k] = in_space(function.x.array.reshape(-1, space.dofmap.bs)[blocks])
    keys = np.asarray(mesh.geometry.input_global_indices)[corners]
    parts = comm.gather((keys, mesh.geometry.x[corners], local, keys[triangles.ravel()]), root=0)

    def merge() -> tuple[Any, Any, Any]:
        all_keys, points, values, faces = map(np.concatenate, zip(*parts, strict=True))
        known, first = np.unique(all_keys, return_index=True)
        faces = np.searchsorted(known, faces).reshape(-1, 3)
        # Each triangle begins with its smallest node; its orientation does not change
        start = np.argmin(faces, axis=1)[:, None]
        faces = np.take_along_axis(faces, (start + np.arange(3)) % 3, axis=1)
        values = np.ascontiguousarray(values[first].transpose(1, 0, 2))
        return points[first], faces[np.lexsort(faces.T[::-1])], values

    return Skin(*on_rank_zero(comm, merge))


def _blocks_of_vertices(space: fem.FunctionSpace) -> NDArray[np.int32]:
    """Return the index of the displacement block at each vertex, by geometry node; 0 elsewhere."""
    layout, nodes = space.dofmap.dof_layout, compat.geometry_dofmap(space.mesh)
    vertices = range(_num_vertices(space.mesh))
    blocks = np.zeros(len(space.mesh.geometry.x), dtype=np.int32)
    dofs = [layout.entity_dofs(0, i)[0] for i in vertices]
    blocks[nodes[:, vertices]] = space.dofmap.list[:, dofs]
    return blocks


def _num_vertices(mesh: Mesh) -> int:
    """Return the number of vertices of a cell."""
    return len(basix.topology(mesh.basix_cell())[0])


def _surface_triangles(mesh: Mesh) -> NDArray[np.int32]:
    """Return the surface of the mesh on this rank as triangles of geometry nodes, shape (nt, 3).

    The surface of a plane mesh is its owned cells. Normals point outwards (in the plane to z > 0).
    """
    topology, nodes, positions = mesh.topology, compat.geometry_dofmap(mesh), mesh.geometry.x
    if topology.dim == 2:
        corners = nodes[: topology.index_map(2).size_local, : _num_vertices(mesh)]
        inward = np.broadcast_to([0.0, 0.0, -1.0], (len(corners), 3))
    else:
        topology.create_connectivity(2, 3)
        topology.create_connectivity(3, 2)
        facets, to_cell = exterior_facet_indices(topology), topology.connectivity(2, 3)
        count = len(basix.topology(mesh.basix_cell())[2][0])
        corners = np.empty((0, count), dtype=np.int32)
        if len(facets):  # DOLFINx divides by their number
            corners = entities_to_geometry(mesh, 2, facets)[:, :count]
        cells = to_cell.array[to_cell.offsets[facets]]
        inward = positions[nodes[cells]].mean(axis=1) - positions[corners[:, 0]]
    columns = [[0, 1, 2]] if corners.shape[1] == 3 else [[0, 1, 3], [0, 3, 2]]
    triangles = np.concatenate([corners[:, c] for c in columns])
    x = positions[triangles]
    normals = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    is_reversed = np.einsum("ki,ki->k", normals, np.tile(inward, (len(columns), 1))) > 0
    triangles[is_reversed] = triangles[is_reversed][:, [0, 2, 1]]
    return triangles


def surface_nodes(space: fem.FunctionSpace) -> NDArray[np.int64]:
    """Return the indices of the surface vertices in the input mesh, in the order of the skin."""
    corners = np.unique(_surface_triangles(space.mesh))
    keys = np.asarray(space.mesh.geometry.input_global_indices)[corners]
    return np.unique(np.concatenate(space.mesh.comm.allgather(keys)))
