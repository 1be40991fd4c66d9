"""Checks of cells and facets before a mesh is distributed.

DOLFINx takes for granted that cells differ and that at most two share a facet. A mesh that breaks
this corrupts its memory on one rank and makes several ranks wait for each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import MeshError

__all__ = ["check_facets", "check_topology"]

# Corners of the facets in gmsh's order, by dimension and number of corners of the cell.
_FACETS = {
    (1, 2): ((0,), (1,)),
    (2, 3): ((0, 1), (1, 2), (2, 0)),
    (2, 4): ((0, 1), (1, 2), (2, 3), (3, 0)),
    (3, 4): ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)),
    (3, 8): (
        (0, 1, 2, 3),
        (0, 1, 4, 5),
        (0, 3, 4, 7),
        (1, 2, 5, 6),
        (2, 3, 6, 7),
        (4, 5, 6, 7),
    ),
}
_EDGES = {
    (3, 4): ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
    (3, 8): (
        *((0, 1), (1, 2), (2, 3), (3, 0)),
        *((4, 5), (5, 6), (6, 7), (7, 4)),
        *((0, 4), (1, 5), (2, 6), (3, 7)),
    ),
}


def check_topology(
    cells: NDArray[np.int64], reference: NDArray[np.float64], num_corners: int
) -> None:
    """Check that cells differ and that neighbours agree in the nodes that they share.

    Args:
        cells: Nodes of each cell, shape (cells, nodes), numbered without gaps, corners first.
        reference: Nodes of the reference cell, shape (nodes, dimension of the cells).
        num_corners: Corners of a cell.

    Raises:
        MeshError: A cell is degenerate or given twice, more than two cells share a facet, or
            neighbours have different nodes between their common corners.
    """
    tdim, size = reference.shape[1], int(cells.max()) + 1
    ordered = np.sort(cells, axis=1)
    collapsed = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if collapsed.any():
        raise MeshError(f"{collapsed.sum()} of its {len(cells)} cells have a node twice")
    copies = len(cells) - len(np.bincount(_numbers(cells[:, :num_corners])))
    if copies:
        raise MeshError(
            f"{copies} of its {len(cells)} cells are given twice; remove the copies "
            "(gmsh: model.mesh.removeDuplicateElements)"
        )
    expected = len(np.unique(cells[:, :num_corners]))
    inner = cells.shape[1] - num_corners
    key = tdim, num_corners
    tables = [_EDGES[key], _FACETS[key]] if tdim == 3 else [_FACETS[key]]
    below = np.full(cells.shape[1], False)  # nodes on edges, when it comes to facets
    for table in tables:
        numbers = _numbers(cells[:, np.array(table)].reshape(-1, len(table[0])))
        if table is tables[-1] and (shared := np.bincount(numbers) > 2).any():
            what = {1: "nodes", 2: "edges", 3: "facets"}[tdim]
            raise MeshError(f"{shared.sum()} of its {what} are shared by more than two cells")
        rows = [_nodes_between(reference, corners, num_corners, below) for corners in table]
        if rows[0]:
            inner -= len(table) * len(rows[0])
            _check_agreement(numbers, cells[:, np.array(rows)].reshape(-1, len(rows[0])))
            expected += (numbers.max() + 1) * len(rows[0])
            below[np.concatenate(rows)] = True
    if size != expected + inner * len(cells):
        raise MeshError(
            f"its cells have {size} nodes, but {expected + inner * len(cells)} if each edge, facet "
            "and cell has nodes of its own between the corners"
        )


def _nodes_between(
    reference: NDArray[np.float64],
    corners: tuple[int, ...],
    num_corners: int,
    below: NDArray[np.bool_],
) -> list[int]:
    """Return the nodes of the reference cell on an edge or facet, without those on its boundary."""
    origin = reference[corners[0]]
    span = np.linalg.pinv((reference[list(corners[1:])] - origin).T)
    offsets = (reference - origin).T
    rest = offsets - (reference[list(corners[1:])] - origin).T @ (span @ offsets)
    on = np.linalg.norm(rest, axis=0) < 1e-6
    on[:num_corners] = False
    return [int(node) for node in np.flatnonzero(on & ~below)]


def _check_agreement(numbers: NDArray[np.int64], nodes: NDArray[np.int64]) -> None:
    """Check that each edge or facet, given by numbers, has the same nodes in all its cells."""
    nodes = np.sort(nodes, axis=1)
    first = np.empty(numbers.max() + 1, dtype=np.int64)
    first[numbers] = np.arange(len(numbers))
    different = (nodes != nodes[first[numbers]]).any(axis=1)
    if different.any():
        raise MeshError(
            f"{len(np.unique(numbers[different]))} of its edges and facets have different nodes "
            "between their corners in neighbouring cells; let neighbours share these nodes"
        )


def check_facets(facets: NDArray[np.int64], tags: NDArray[np.int32]) -> None:
    """Check that tagged facets differ and have nodes of the mesh.

    Args:
        facets: Nodes of each facet; -1 for a node that no cell has.
        tags: Tag of each facet.

    Raises:
        MeshError: A facet is given twice, or has a node that no cell has.
    """
    if facets.size == 0:
        return
    stray = (facets < 0).any(axis=1)
    if stray.any():
        raise MeshError(
            f"{stray.sum()} facets of its groups, one of them with tag {tags[stray][0]}, have "
            "nodes that no cell has"
        )
    copies = len(facets) - len(np.bincount(_numbers(facets)))
    if copies:
        raise MeshError(f"{copies} facets of its groups are given twice")


def _numbers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the different sets of nodes among the rows, and return the number of each row."""
    rows = np.sort(rows, axis=1)
    size = int(rows.max()) + 1
    numbers = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        numbers = np.unique(numbers * size + column, return_inverse=True)[1].reshape(-1)
    return numbers
