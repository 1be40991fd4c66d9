"""Back from modes to the mesh: displacement fields, points, the surface, and files for ParaView."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import basix
import basix.ufl
import numpy as np
from dolfinx import fem, geometry
from dolfinx.io import VTXWriter
from dolfinx.mesh import Mesh, exterior_facet_indices
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import Skin, Station
from dolfinx_mbd.body.stress_modes import motion_of, rows_at
from dolfinx_mbd.checks import array, choice, file_path, instance, number, refuse
from dolfinx_mbd.errors import InputError, OverwriteError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.parallel import agreed, raise_together

__all__ = [
    "History",
    "as_function",
    "locate",
    "output_folder",
    "stations",
    "surface_nodes",
    "surface_skin",
    "write_history",
]

Array = NDArray[np.float64]

INSIDE = 1e-8
"""Distance from the mesh, over the size of the mesh, up to which a point counts as inside."""


class History(Protocol):
    """The motion of a flexible body: what a simulation returns for it."""

    @property
    def time(self) -> Array:
        """Shape (nt,), s."""

    @property
    def eta(self) -> Array:
        """Elastic coordinates, shape (nt, n)."""

    @property
    def position(self) -> Array:
        """Origin of the body frame, shape (nt, 3), m."""

    @property
    def rotation(self) -> Array:
        """Quaternions w, x, y, z, body to global, shape (nt, 4)."""


def as_function(
    space: fem.FunctionSpace, owned: Array, out: fem.Function | None = None
) -> fem.Function:
    """A function from its owned degrees of freedom, ghosts included.

    Note: Collective.
    """
    function = fem.Function(space) if out is None else instance("out", out, fem.Function)
    function.x.array[: len(owned)] = owned
    function.x.scatter_forward()
    return function


def stations(
    space: fem.FunctionSpace, modes: Array, points: Mapping[str, ArrayLike]
) -> tuple[Station, ...]:
    """Modes at named material points.

    Args:
        space: Displacement space.
        modes: Shape (owned dofs, n).
        points: Name to position, shape (3,), m; in the plane also (2,), and z = 0.

    Raises:
        ValueError: A point is not in the mesh; the same error on every rank.

    Note: Collective.
    """
    if not points:
        return ()
    comm = space.mesh.comm
    x, cells, mine = locate(space.mesh, points)
    values = np.zeros((len(points), modes.shape[1], 3))
    function = fem.Function(space)
    dim = space.dofmap.bs
    for k in range(modes.shape[1]):
        as_function(space, modes[:, k], function)
        if len(mine):
            values[mine, k, :dim] = function.eval(x[mine], cells[mine]).reshape(-1, dim)
    values = comm.bcast(comm.reduce(values, root=0), root=0)
    return tuple(Station(name, x[k], values[k]) for k, name in enumerate(points))


def locate(
    mesh: Mesh, points: Mapping[str, ArrayLike]
) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]:
    """Cells that hold named points, each on one rank.

    Args:
        mesh: Where to look.
        points: Name to position, shape (3,), m; in the plane also (2,).

    Returns:
        Positions (np, 3), a local cell of each or −1, and the numbers of the points of this rank.

    Raises:
        ValueError: A point is not in the mesh; the same error on every rank.

    Note: Collective.
    """
    x = np.zeros((len(points), 3))
    for k, (name, position) in enumerate(points.items()):
        x[k] = _position(name, position, mesh.geometry.dim)
    cells = _containing_cells(mesh, x, tuple(points))
    comm = mesh.comm
    owner = np.min(comm.allgather(np.where(cells >= 0, comm.rank, comm.size)), axis=0)
    return x, cells, np.flatnonzero(owner == comm.rank)


def _position(name: str, position: ArrayLike, dim: int) -> Array:
    """A point of three coordinates; in the plane two will do."""
    expected = "three finite numbers" if dim == 3 else "two or three finite numbers"
    x = array(f"point {name!r}", position, expected=expected)
    if x.shape not in (((3,),) if dim == 3 else ((2,), (3,))):
        refuse(f"point {name!r}", position, expected)
    if dim == 2 and x[2:].any():
        raise InputError(
            f"point {name!r}: the points of a plane body have z = 0; got z = {x[2]:g} m"
        )
    return in_space(x)


def _containing_cells(mesh: Mesh, x: Array, names: tuple[str, ...]) -> NDArray[np.int32]:
    """A local cell for each point, or -1; every point has one on some rank."""
    comm, tdim = mesh.comm, mesh.topology.dim
    owned = np.arange(mesh.topology.index_map(tdim).size_local, dtype=np.int32)
    boxes = comm.allgather(
        (
            mesh.geometry.x.min(axis=0, initial=np.inf),
            mesh.geometry.x.max(axis=0, initial=-np.inf),
        )
    )
    size = float(
        np.linalg.norm(np.max([b for _, b in boxes], 0) - np.min([a for a, _ in boxes], 0))
    )
    cells = np.full(len(x), -1, dtype=np.int32)
    distance = np.full(len(x), np.inf)
    with agreed(comm):
        if len(owned):
            tree = geometry.bb_tree(mesh, tdim, entities=owned, padding=INSIDE * size)
            candidates = geometry.compute_collisions_points(tree, x)
            dofmap = compat.geometry_dofmap(mesh)
            for k in range(len(x)):
                for cell in candidates.links(k):
                    gap = geometry.compute_distance_gjk(x[k : k + 1], mesh.geometry.x[dofmap[cell]])
                    if np.linalg.norm(gap) < distance[k]:
                        cells[k], distance[k] = cell, np.linalg.norm(gap)
    cells[distance > INSIDE * size] = -1
    outside = np.flatnonzero(comm.allreduce((cells >= 0).astype(int)) == 0)
    if len(outside):
        k = outside[0]
        near = comm.allreduce(_nearest_node(mesh, x[k]), op=_closer)
        raise InputError(
            f"point {names[k]!r} at ({_list(x[k])}) is not in the mesh; the nearest node is "
            f"({_list(near[1])}), {near[0]:.3g} m away"
        )
    return cells


def _list(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.6g}" for value in values)


def _nearest_node(mesh: Mesh, point: Array) -> tuple[float, tuple[float, ...]]:
    nodes = mesh.geometry.x
    if not len(nodes):
        return np.inf, (np.nan,) * 3
    distances = np.linalg.norm(nodes - point, axis=1)
    k = int(np.argmin(distances))
    return float(distances[k]), tuple(map(float, nodes[k]))


def _closer(
    a: tuple[float, tuple[float, ...]], b: tuple[float, tuple[float, ...]]
) -> tuple[float, tuple[float, ...]]:
    return min(a, b)


def surface_skin(space: fem.FunctionSpace, modes: Array) -> Skin:
    """The surface of the mesh as triangles between vertices, with the modes there.

    Quadrilaterals are two triangles each. A plane body is its own surface, at z = 0. Nodes are in
    the order of the mesh's input, triangles in the order of their nodes with normals outwards (in
    the plane towards z): neither depends on the partition.

    Args:
        space: Displacement space.
        modes: Shape (owned dofs, n).

    Note: Collective.
    """
    comm = space.mesh.comm
    corners, dofs, triangles = _surface_triangles(space)
    local = np.empty((len(corners), modes.shape[1], 3))
    function = fem.Function(space)
    for k in range(modes.shape[1]):
        as_function(space, modes[:, k], function)
        local[:, k] = in_space(function.x.array.reshape(-1, space.dofmap.bs)[dofs])
    keys = np.asarray(space.mesh.geometry.input_global_indices)[corners]
    gathered = comm.gather((keys, space.mesh.geometry.x[corners], local, keys[triangles]), root=0)
    result = None
    with agreed(comm):
        if gathered is not None:
            all_keys, first = np.unique(
                np.concatenate([part[0] for part in gathered]), return_index=True
            )
            nodes = np.concatenate([part[1] for part in gathered])[first]
            values = np.concatenate([part[2] for part in gathered])[first].transpose(1, 0, 2)
            faces = np.searchsorted(all_keys, np.concatenate([part[3] for part in gathered]))
            start = np.argmin(faces, axis=1)
            faces = faces[np.arange(len(faces))[:, None], (start[:, None] + np.arange(3)) % 3]
            faces = faces[np.lexsort(faces.T[::-1])]
            result = nodes, faces, np.ascontiguousarray(values)
    nodes, faces, values = comm.bcast(result, root=0)
    return Skin(nodes, faces, values)


def _surface_triangles(
    space: fem.FunctionSpace,
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
    """Geometry nodes and blocks of the surface's vertices here, and triangles between them."""
    mesh = space.mesh
    reference = basix.topology(mesh.basix_cell())
    vertices = len(reference[0])
    node_map = compat.geometry_dofmap(mesh)[:, :vertices]
    layout = space.dofmap.dof_layout
    block_map = space.dofmap.list[:, [layout.entity_dofs(0, i)[0] for i in range(vertices)]]
    nodes: list[NDArray[np.int32]] = [np.zeros((0, 3), np.int32)]
    blocks: list[NDArray[np.int32]] = [np.zeros((0, 3), np.int32)]
    for on, face in _faces(mesh):
        for corners in [(0, 1, 2)] if len(face) == 3 else [(0, 1, 3), (0, 3, 2)]:
            columns = [face[c] for c in corners]
            triangle, block = node_map[on][:, columns], block_map[on][:, columns]
            order = np.where(_inwards(mesh, triangle, node_map[on]), [0, 2, 1], [0, 1, 2])
            nodes.append(np.take_along_axis(triangle, order, axis=1))
            blocks.append(np.take_along_axis(block, order, axis=1))
    flat, first, inverse = np.unique(
        np.concatenate(nodes).ravel(), return_index=True, return_inverse=True
    )
    return flat, np.concatenate(blocks).ravel()[first], inverse.reshape(-1, 3)


def _faces(mesh: Mesh) -> Iterator[tuple[NDArray[np.int32], list[int]]]:
    """Faces of the surface by their number in the cell: cells, and corners within each.

    Those of a plane mesh are its owned cells.
    """
    topology = mesh.topology
    faces = basix.topology(mesh.basix_cell())[2]
    if topology.dim == 2:
        yield np.arange(topology.index_map(2).size_local, dtype=np.int32), faces[0]
        return
    topology.create_connectivity(2, 3)
    topology.create_connectivity(3, 2)
    facets = exterior_facet_indices(topology)
    to_cell, to_facet = topology.connectivity(2, 3), topology.connectivity(3, 2)
    cells = to_cell.array[to_cell.offsets[facets]]
    own = to_facet.array.reshape(-1, len(faces))[cells]
    which = np.argmax(own == facets[:, None], axis=1)
    for row, face in enumerate(faces):
        yield cells[which == row], face


def _inwards(
    mesh: Mesh, triangles: NDArray[np.int32], cells: NDArray[np.int32]
) -> NDArray[np.bool_]:
    """Whether normals of triangles point into their cells, in the plane to z < 0; shape (nt, 1)."""
    x = mesh.geometry.x[triangles]
    normal = np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0])
    if mesh.topology.dim == 2:
        return normal[:, 2:] < 0
    centre = mesh.geometry.x[cells].mean(axis=1)
    return np.einsum("ki,ki->k", normal, x[:, 0] - centre)[:, None] < 0


def surface_nodes(space: fem.FunctionSpace) -> NDArray[np.int64]:
    """Numbers of the surface's vertices in the mesh's input, rising: the order of `surface_skin`.

    Note: Collective.
    """
    corners = _surface_triangles(space)[0]
    keys = np.asarray(space.mesh.geometry.input_global_indices)[corners]
    return np.unique(np.concatenate(space.mesh.comm.allgather(keys)))


def output_folder(comm: Any, path: str | Path) -> Path:
    """Check the name of a VTX folder and make the directory that holds it.

    A VTX folder of that name is replaced; anything else is not.

    Raises:
        InputError: The name does not end with ``.bp``.
        OverwriteError: There is something else of that name.
        OSError: The directory cannot be made; all errors are the same on every rank.

    Note: Collective.
    """
    folder = file_path("path", path, (".bp",))
    message, kind = None, OSError
    if comm.rank == 0:
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"cannot write {folder}: {error}"
        if not _is_replaceable(folder):
            message = f"'{folder}' is there already, and is not a VTX folder; choose another name"
            kind = OverwriteError
    kind = comm.bcast(kind, root=0)
    raise_together(comm, message, kind)
    return folder


def _is_replaceable(folder: Path) -> bool:
    """Return whether there is nothing, an empty directory or a VTX folder."""
    if not folder.is_dir():
        return not folder.exists()
    return (folder / "md.idx").is_file() or not any(folder.iterdir())


def write_history(
    space: fem.FunctionSpace,
    modes: Array,
    positions: Array,
    path: str | Path,
    history: History,
    *,
    times: ArrayLike | None = None,
    stride: int = 1,
    motion: Literal["global", "body"] = "global",
    scale: float = 1.0,
) -> None:
    """Write the motion of a body as VTX (``.bp``), in parallel; see `Reduction.write`."""
    comm = space.mesh.comm
    choice("motion", motion, ("global", "body"))
    number("scale", scale)
    file_path("path", path)
    time, eta = motion_of(history, modes.shape[1])
    rows = rows_at(time, times, stride)
    path = output_folder(comm, path)
    # Three components also in the plane: a plane body may leave it.
    element = space.ufl_element().sub_elements[0]
    shown_in = fem.functionspace(space.mesh, basix.ufl.blocked_element(element, shape=(3,)))
    total = fem.Function(shown_in, name="displacement")
    elastic = fem.Function(shown_in, name="elastic")
    x = in_space(positions)
    with VTXWriter(comm, str(path), [total, elastic]) as writer:
        for row in rows:
            u = modes @ eta[row]
            u = in_space(u.reshape(-1, space.dofmap.bs))
            as_function(shown_in, u.ravel(), elastic)
            shown = scale * u
            if motion == "global":
                A = rotation_matrix(np.asarray(history.rotation[row], dtype=float))
                shown = history.position[row] + (x + shown) @ A.T - x
            as_function(shown_in, shown.ravel(), total)
            writer.write(float(time[row]))
