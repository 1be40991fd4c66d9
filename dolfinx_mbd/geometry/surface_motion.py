"""Velocity of the nodes on points, curves and faces of a CAD geometry that changes with a number.

The topology of the geometry must not change, so that points, curves and faces keep their numbers.
A node on a curve keeps its share of the parameter range of the curve. A node on a face follows the
boundary of the face and is then moved to the closest point of the changed face, so that its normal
velocity is that of the geometry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import splu

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import function
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.geometry.gmsh_model import gmsh_session, mesh_arrays, nodes_of_elements

WEIGHTS = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}
"""Weights of the central difference of fourth order, by the number of steps."""

MAX_CURVATURE = 0.1
"""Largest sum of forward and backward displacements, relative to the largest displacement."""


class _Meshing(Exception):
    """Exception that ends a builder when it starts to mesh its geometry."""


class _Unmeshed:
    """A gmsh model, or its part `mesh`, whose `mesh.generate` raises `_Meshing`."""

    def __init__(self, part: Any) -> None:
        self._part = part

    def __getattr__(self, name: str) -> Any:
        if name == "generate":
            raise _Meshing
        value = getattr(self._part, name)
        return _Unmeshed(value) if name == "mesh" else value


@dataclass(frozen=True, eq=False)
class _Entity:
    """A point, curve or face of the geometry with the mesh nodes in its interior."""

    dim: int
    tag: int
    rows: NDArray[np.int64]  # rows of its nodes in the points of the mesh
    shares: Array  # for a curve: place of each node in the parameter range, 0 to 1
    edges: NDArray[np.int64]  # for a face: pairs of rows in one element, also on the boundary


def surface_velocity(
    build: Callable[[float], Callable[[Any], object]], value: float, step: float
) -> tuple[Array, Array]:
    """Return the nodes of a mesh, and their velocities per unit of a number.

    Args:
        build: Function that returns the builder of the geometry for a value of the number.
        value: The number.
        step: Step of the differences.

    Returns:
        Nodes in the order of the mesh, shape (nodes, 3), m, and velocities of the same shape; those
        of nodes inside the body are NaN.

    Raises:
        InputError: The topology depends on the number, or the geometry does not depend smoothly
            on it.

    Note: Not collective.
    """
    with gmsh_session() as gmsh:
        function("build(value)", build(value), "a builder")(gmsh.model)
        points = mesh_arrays(gmsh.model).points
        topology, entities = _topology(gmsh.model), _entities(gmsh.model)
    changes = {}
    for count in WEIGHTS:
        other = value + count * step
        with gmsh_session() as gmsh:
            try:
                function("build(value)", build(other), "a builder")(_Unmeshed(gmsh.model))
            except _Meshing:
                pass
            _check_topology(topology, _topology(gmsh.model), value, other)
            changes[count] = _displacements(gmsh.model, points, entities)
    velocity = sum(weight * changes[count] for count, weight in WEIGHTS.items()) / step
    size = np.nanmax(np.abs([changes[1], changes[-1]]))
    if size <= 1e-14 * np.ptp(points, axis=0).max():
        raise InputError(f"the geometry does not depend on the number {value:g}", argument="build")
    if np.nanmax(np.abs(changes[1] + changes[-1])) > MAX_CURVATURE * size:
        raise InputError(
            f"the geometry does not change smoothly near {value:g}: steps of {step:g} in both "
            "directions move its points by different distances; take a smaller step or another "
            "value",
            argument="build",
        )
    return points, np.asarray(velocity)


def _topology(model: Any) -> dict[tuple[int, int], tuple[str, tuple[int, ...]]]:
    """Return the type and boundary of all entities of a model, by dimension and number."""
    result = {}
    for dim, tag in model.getEntities():
        boundary = model.getAdjacencies(dim, tag)[1] if dim else ()
        result[int(dim), int(tag)] = model.getType(dim, tag), tuple(sorted(map(int, boundary)))
    return result


def _check_topology(
    first: dict[Any, Any], second: dict[Any, Any], value: float, other: Any
) -> None:
    """Raise an error if two models differ in the number, type or boundary of their entities."""
    names, reason = ("points", "curves", "faces", "volumes"), ""
    for dim, name in enumerate(names):
        counts = [sum(key[0] == dim for key in each) for each in (first, second)]
        if counts[0] != counts[1]:
            reason = f"it has {counts[0]} and {counts[1]} {name}"
            break
    else:
        if different := [key for key in first if first[key] != second.get(key)]:
            dim, tag = different[0]
            reason = f"{names[dim][:-1]} {tag} differs in type or boundary"
    if reason:
        text = f"the topology of the geometry changes between {value:g} and {other:g}: {reason}"
        raise InputError(f"{text}; take a smaller step or another value", argument="build")


def _entities(model: Any) -> list[_Entity]:
    """Return the points, curves and, if the mesh has volumes, the faces with nodes of cells."""
    tdim = max(dim for dim in (1, 2, 3) if len(model.mesh.getElementTypes(dim)))
    _, _, nodes_of_cells = model.mesh.getElements(tdim)
    nodes = np.unique(np.concatenate(nodes_of_cells))
    size, result = int(nodes[-1]) + 1, []
    row = np.full(max(size, int(model.mesh.getMaxNodeTag()) + 1), -1)
    row[nodes.astype(np.int64)] = np.arange(len(nodes))
    for dim, tag in model.getEntities():
        if dim >= tdim:
            continue
        kind = model.getType(dim, tag)
        if kind.startswith("Discrete"):
            text = f"the builder makes no CAD geometry, but a {kind.lower()}; use `gmsh.model.occ`"
            raise InputError(text, argument="build")
        tags, coordinates, _ = model.mesh.getNodes(dim, tag)
        rows = row[tags.astype(np.int64)]
        shares: Array = np.zeros(0)
        edges: NDArray[np.int64] = np.zeros((0, 2), dtype=np.int64)
        if dim == 1 and len(rows):
            (start,), (end,) = model.getParametrizationBounds(1, tag)
            shares = (model.getParametrization(1, tag, coordinates) - start) / (end - start)
            shares = shares[rows >= 0]
        if dim == 2:
            edges = row[_node_pairs(model, tag)]
            edges = edges[(edges >= 0).all(axis=1)]
        result.append(_Entity(int(dim), int(tag), rows[rows >= 0], shares, edges))
    return result


def _node_pairs(model: Any, face: int) -> NDArray[np.int64]:
    """Return all pairs of nodes that belong to one element of a face, shape (pairs, 2)."""
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for kind, _, flat in zip(*model.mesh.getElements(2, face), strict=True):
        nodes = nodes_of_elements(model, kind, flat).astype(np.int64)
        first, second = np.triu_indices(nodes.shape[1], 1)
        pairs.append(np.stack([nodes[:, first].ravel(), nodes[:, second].ravel()], axis=1))
    return np.unique(np.sort(np.concatenate(pairs), axis=1), axis=0)


def _displacements(model: Any, points: Array, entities: list[_Entity]) -> Array:
    """Return the displacements of nodes to a changed geometry, NaN inside the body."""
    result = np.full(points.shape, np.nan)
    for entity in entities:
        dim, tag, rows = entity.dim, entity.tag, entity.rows
        if not len(rows):
            continue
        if dim == 0:
            moved = model.getValue(0, tag, [])
        elif dim == 1:
            (start,), (end,) = model.getParametrizationBounds(1, tag)
            moved = model.getValue(1, tag, start + (end - start) * entity.shares)
        else:
            guess = points[rows] + _extended(points, result, entity)
            moved = model.getClosestPoint(2, tag, guess.ravel())[0]
        result[rows] = np.reshape(moved, (-1, 3)) - points[rows]
    return result


def _extended(points: Array, displacements: Array, face: _Entity) -> Array:
    """Return displacements of the nodes in a face that continue those of its boundary.

    The result is the affine motion that is closest to that of the boundary, plus an average of the
    remainder at the neighbours, weighted by the inverse square of the distance.
    """
    nodes, ends = np.unique(face.edges, return_inverse=True)
    ends = ends.reshape(-1, 2)
    inside = np.isin(nodes, face.rows)
    boundary = nodes[~inside]
    if not len(boundary):
        return np.zeros((len(face.rows), 3))
    x = points[nodes] - points[nodes].mean(axis=0)
    design = np.column_stack([np.ones(len(x)), x / np.abs(x).max()])
    affine = design @ np.linalg.lstsq(design[~inside], displacements[boundary], rcond=1e-9)[0]
    # The remainder r satisfies L r = 0 at the nodes inside, with the graph Laplacian L of weights W
    weight = 1 / np.sum((x[ends[:, 0]] - x[ends[:, 1]]) ** 2, axis=1)
    W = coo_array((np.tile(weight, 2), (ends.T.ravel(), ends[:, ::-1].T.ravel()))).tocsr()
    L = (diags_array(W.sum(axis=1)) - W).tocsr()
    remainder = displacements[boundary] - affine[~inside]
    factor = splu(L[inside][:, inside].tocsc())
    result = affine[inside] + factor.solve(W[inside][:, ~inside] @ remainder)
    return np.asarray(result[np.searchsorted(nodes[inside], face.rows)])
