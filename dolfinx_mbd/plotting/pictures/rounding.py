"""Subdivision of triangulated surfaces, so that coarse meshes of curved surfaces look round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["SHARP", "Rounding"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

SHARP = 40.0
"""Triangles, or edges of a line, are not rounded if their angle is larger, degrees."""


class Rounding:
    """Division of each triangle of a surface into four.

    The new point on an edge is the middle of a cubic curve between its ends. On an edge between two
    triangles, the curve is perpendicular to the surface normals at both ends. On a sharp edge, the
    curve has the tangents of the line of sharp edges. The old points do not move.

    Source: Vlachos, Peters, Boyd, Mitchell (2001), Curved PN triangles, equations 3 and 4.

    Args:
        points: Points, shape (points, 3), m.
        triangles: Indices of points, shape (nt, 3).
    """

    def __init__(self, points: Array, triangles: Index) -> None:
        corners = np.column_stack([triangles, np.roll(triangles, -1, axis=1)])
        sides = np.sort(corners[:, [0, 3, 1, 4, 2, 5]].reshape(-1, 2), axis=1)
        self.edges, index, counts = np.unique(
            sides, axis=0, return_inverse=True, return_counts=True
        )
        a, b, c = triangles.T
        ab, bc, ca = len(points) + index.reshape(-1, 3).T
        parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        self.triangles: Index = np.vstack([np.column_stack(part) for part in parts])
        self._corners = triangles
        normals = self._normals_of_triangles(points)
        order = np.argsort(index.ravel(), kind="stable")
        first = order[np.cumsum(counts) - counts]  # first and last side on each edge
        last = order[np.cumsum(counts) - 1]
        products = np.einsum("ij,ij->i", normals[first // 3], normals[last // 3])
        self._smooth = (counts == 2) & (products > np.cos(np.radians(SHARP)))
        self._find_groups(points, first[self._smooth], last[self._smooth])
        self._find_lines(points)

    def _normals_of_triangles(self, points: Array) -> Array:
        """Return the unit normals of the triangles, shape (nt, 3)."""
        a, b, c = (points[column] for column in self._corners.T)
        normals = np.cross(b - a, c - a)
        return normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)

    def _find_groups(self, points: Array, first: Index, last: Index) -> None:
        """Group the corners of triangles at a point, so that smooth edges connect each group."""
        flat = self._corners.ravel()
        ends = self.edges[self._smooth]

        def corner(side: Index, node: Index) -> Index:
            """Return the corner at a node of the triangle with the given side."""
            start = side // 3 * 3
            return start + np.argmax(flat[start[:, None] + np.arange(3)] == node[:, None], axis=1)

        pairs = [(corner(first, node), corner(last, node)) for node in ends.T]
        rows, columns = (np.concatenate(part) for part in zip(*pairs, strict=True))
        graph = coo_array((np.ones(len(rows)), (rows, columns)), shape=(len(flat),) * 2)
        self._num_groups, self._group = connected_components(graph, directed=False)
        # Groups of the corners at both ends of each smooth edge, and the angles of all corners
        self._ends = self._group[pairs[0][0]], self._group[pairs[1][0]]
        x = points[self._corners]
        ahead, back = np.roll(x, -1, axis=1) - x, np.roll(x, 1, axis=1) - x
        sines = np.linalg.norm(np.cross(ahead, back), axis=2)
        self._weights = np.arctan2(sines, np.einsum("ijk,ijk->ij", ahead, back)).ravel()

    def _find_lines(self, points: Array) -> None:
        """Find the nodes with exactly two sharp edges that form a smooth line."""
        sharp = self.edges[~self._smooth]
        starts, others = sharp.ravel(), sharp[:, ::-1].ravel()
        order = np.argsort(starts, kind="stable")
        nodes, first, counts = np.unique(starts[order], return_index=True, return_counts=True)
        nodes, first = nodes[counts == 2], first[counts == 2]
        line = np.column_stack([others[order][first], nodes, others[order][first + 1]])
        before, after = (np.diff(points[line], axis=1)[:, k] for k in (0, 1))
        sizes = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
        cosines = np.einsum("ij,ij->i", before, after)
        self._line = line[cosines > np.cos(np.radians(SHARP)) * sizes]

    def points(self, points: Array) -> Array:
        """Return the points of a deformed surface, then a point on each edge, (points, 3), m."""
        chord = points[self.edges[:, 1]] - points[self.edges[:, 0]]
        shift = np.zeros_like(chord)
        weighted = self._weights[:, None] * np.repeat(self._normals_of_triangles(points), 3, axis=0)
        normals = np.zeros((self._num_groups, 3))
        np.add.at(normals, self._group, weighted)
        normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        for sign, group in zip((-1, 1), self._ends, strict=True):
            n = normals[group]
            shift[self._smooth] += sign * np.einsum("ij,ij->i", chord[self._smooth], n)[:, None] * n
        shift[~self._smooth] = self._tangent_change(points, chord[~self._smooth])
        # The middle of a cubic curve whose ends have tangents with the difference `shift`
        return np.vstack([points, points[self.edges].mean(axis=1) + shift / 8])

    def _tangent_change(self, points: Array, chord: Array) -> Array:
        """Return the difference of the tangents at the ends of each sharp edge times its length."""
        before, after = (np.diff(points[self._line], axis=1)[:, k] for k in (0, 1))
        squares = (np.einsum("ij,ij->i", v, v)[:, None] for v in (before, after))
        square_before, square_after = (np.maximum(square, 1e-300) for square in squares)
        tangents = np.zeros_like(points)  # tangents of the parabola through three points
        tangents[self._line[:, 1]] = before / square_before + after / square_after
        tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-300)
        length = np.linalg.norm(chord, axis=1, keepdims=True)
        straight = chord / np.maximum(length, 1e-300)
        at_ends = []
        for node in self.edges[~self._smooth].T:
            t = tangents[node]
            t = t * np.sign(np.einsum("ij,ij->i", t, straight))[:, None]
            at_ends.append(np.where(t.any(axis=1)[:, None], t, straight))
        return np.asarray(length * (at_ends[0] - at_ends[1]))

    def values(self, values: Array) -> Array:
        """Return values (points,) at the points, then the mean of both end values of each edge."""
        return np.concatenate([values, values[self.edges].mean(axis=1)])
