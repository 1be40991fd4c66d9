"""Checks of cells and facets before a mesh is distributed.

DOLFINx assumes that no cell occurs twice and that at most two cells share a facet. Other meshes
corrupt its memory on one rank and cause a deadlock on several ranks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import MeshError

_FACETS = {
    (1, 2): ((0,), (1,)),
    (2, 3): ((0, 1), (1, 2), (2, 0)),
    (2, 4): ((0, 1), (1, 2), (2, 3), (3, 0)),
    (3, 4): ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)),
    (3, 8): ((0, 1, 2, 3), (0, 1, 4, 5), (0, 3, 4, 7), (1, 2, 5, 6), (2, 3, 6, 7), (4, 5, 6, 7)),
}
"""gmsh's numbers of the corners of each facet, by dimension and number of corners of the cell."""

_EDGES = {
    (3, 4): ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
    (3, 8): (
        *((0, 1), (1, 2), (2, 3), (3, 0)),
        *((4, 5), (5, 6), (6, 7), (7, 4)),
        *((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
}
"""gmsh's numbers of the corners of each edge, by dimension and number of corners of the cell."""


def check_topology(
    cells: NDArray[np.int64], reference: NDArray[np.float64], num_corners: int
) -> None:
    """Check that cells are different, and that neighbours share the nodes of common facets.

    `cells` (cells, nodes of a cell) contains node numbers without gaps, the corners of a cell
    first; `reference` (nodes, dimension of the cells) contains the nodes of the reference cell.
    """
    tdim, num_nodes = reference.shape[1], int(cells.max()) + 1
    ordered = np.sort(cells, axis=1)
    collapsed = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if collapsed.any():
        raise MeshError(f"{collapsed.sum()} of its {len(cells)} cells have a node twice")
    copies = len(cells) - len(np.bincount(_numbers(cells[:, :num_corners])))
    if copies:
        advice = "remove the copies (gmsh: model.mesh.removeDuplicateElements)"
        raise MeshError(f"{copies} of its {len(cells)} cells are given twice; {advice}")
    expected = len(np.unique(cells[:, :num_corners]))  # number of nodes, counted step by step
    inner = cells.shape[1] - num_corners  # nodes inside a cell, after those of edges and facets
    key = tdim, num_corners
    tables = [_EDGES[key], _FACETS[key]] if tdim == 3 else [_FACETS[key]]
    on_edges = np.full(cells.shape[1], False)  # nodes on edges; they are not inside facets
    for table in tables:
        # Number of the edge or facet of each row of the table in each cell
        numbers = _numbers(cells[:, np.array(table)].reshape(-1, len(table[0])))
        if table is tables[-1] and (shared := np.bincount(numbers) > 2).any():
            kind = {1: "nodes", 2: "edges", 3: "facets"}[tdim]
            raise MeshError(f"{shared.sum()} of its {kind} are shared by more than two cells")
        rows = [_nodes_between(reference, corners, num_corners, on_edges) for corners in table]
        if rows[0]:
            inner -= len(table) * len(rows[0])
            _check_agreement(numbers, cells[:, np.array(rows)].reshape(-1, len(rows[0])))
            expected += (numbers.max() + 1) * len(rows[0])
            on_edges[np.concatenate(rows)] = True
    expected += inner * len(cells)
    if num_nodes != expected:
        reason = "the number if cells share exactly the nodes on common edges and facets"
        raise MeshError(f"its cells have {num_nodes} nodes instead of {expected}, {reason}")


def _nodes_between(
    reference: NDArray, corners: tuple[int, ...], num_corners: int, on_edges: NDArray
) -> list[int]:
    """Return the nodes of the reference cell inside an edge or facet, without its boundary."""
    offsets = (reference - reference[corners[0]]).T
    span = offsets[:, list(corners[1:])]
    distance = offsets - span @ (np.linalg.pinv(span) @ offsets)
    inside = np.linalg.norm(distance, axis=0) < 1e-6
    inside[:num_corners] = False
    return [int(node) for node in np.flatnonzero(inside & ~on_edges)]


def _check_agreement(numbers: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
    """Check that each edge or facet, identified by a number, has the same nodes in all cells."""
    nodes = np.sort(nodes, axis=1)
    first = np.empty(numbers.max() + 1, dtype=np.int64)
    first[numbers] = np.arange(len(numbers))
    different = (nodes != nodes[first[numbers]]).any(axis=1)
    if different.any():
        count = len(np.unique(numbers[different]))
        raise MeshError(
            f"{count} of its edges and facets have different nodes between their corners in "
            "neighbouring cells; neighbours must share these nodes"
        )


def check_facets(facets: NDArray[np.int64], tags: NDArray[np.int32]) -> None:
    """Check that no tagged facet occurs twice or contains -1, the mark of nodes without a cell."""
    if facets.size == 0:
        return
    stray = (facets < 0).any(axis=1)
    if stray.any():
        text = f"{stray.sum()} facets of its groups, one of them with tag {tags[stray][0]},"
        raise MeshError(f"{text} have nodes that belong to no cell")
    copies = len(facets) - len(np.bincount(_numbers(facets)))
    if copies:
        raise MeshError(f"{copies} facets of its groups are given twice")


def _numbers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each row; rows with the same set of nodes have the same number."""
    rows = np.sort(rows, axis=1)
    size = int(rows.max()) + 1
    numbers = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        numbers = np.unique(numbers * size + column, return_inverse=True)[1].reshape(-1)
    return numbers
