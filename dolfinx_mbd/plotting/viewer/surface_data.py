"""Surfaces of a page: integers that the page predicts from neighbouring nodes.

Positions and modes are rounded to integers. The page stores the difference between the value of
each node and its prediction from nodes with lower numbers. For two triangles (a, b, i) and
(b, a, c), the parallelogram rule predicts a + b − c (Touma and Gotsman, 1998); the prediction is
the mean of all such pairs. Smooth fields have small differences, which need a few bits.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import Skin
from dolfinx_mbd.plotting.viewer.data import LARGEST, block

__all__ = ["SurfaceData"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

STEP = 2.0**-20
"""Step of the positions relative to the size of the surface."""


class SurfaceData:
    """The arrays of a surface as JSON objects of a page.

    Args:
        skin: The surface.
    """

    def __init__(self, skin: Skin) -> None:
        self._points = skin.points
        self._triangles = _sorted(np.asarray(skin.triangles, dtype=np.int64).reshape(-1, 3))
        self._count = len(skin.points)

    def triangles(self) -> dict[str, str]:
        """Return the triangles: differences of successive corners, shape (3, nt)."""
        a, b, c = self._triangles.T
        return block(np.stack([np.diff(a, prepend=0), b - a, _unsigned(c - b)]), "u4")

    def points(self) -> dict[str, Any]:
        """Return the positions, m, in steps of about a millionth of the size of the surface."""
        low = self._points.min(axis=0)
        step = STEP * float(np.ptp(self._points, axis=0).max()) or 1.0
        values = np.rint((self._points - low) / step).astype(np.int64)
        stored = {"scale": step, "origin": low.tolist(), "count": self._count}
        return {**stored, "values": self._differences(values)}

    def fields(self, modes: Array, steps: Array) -> dict[str, Any]:
        """Return modes (m, n, components) as integers with one scale factor for each mode.

        `steps` (m,) are differences between successive values of each mode that are small enough.
        """
        largest = np.abs(modes).max(axis=(1, 2), initial=0.0)
        scale = np.maximum(largest / LARGEST, steps)
        scale[scale == 0] = 1.0
        values = np.rint(modes / scale[:, None, None]).astype(np.int64)
        columns = np.moveaxis(values, 0, 1).reshape(self._count, -1)
        return {"scale": scale.tolist(), "values": self._differences(columns)}

    @cached_property
    def _sides(self) -> tuple[Integers, Integers, Integers]:
        """Lower and higher node numbers of the sides of each triangle, opposite nodes, (3 nt,)."""
        T = self._triangles
        ends = np.stack([T[:, [0, 1]], T[:, [1, 2]], T[:, [2, 0]]], axis=1).reshape(-1, 2)
        return ends.min(axis=1), ends.max(axis=1), T[:, [2, 0, 1]].ravel()

    @cached_property
    def _edges(self) -> Integers:
        """Lower and higher node numbers of the edges, each edge once, shape (2, ne)."""
        lower, upper, _ = self._sides
        keys = np.unique((lower * self._count + upper)[lower < upper])
        return np.stack([keys // max(self._count, 1), keys % max(self._count, 1)])

    @cached_property
    def _parallelograms(self) -> Integers:
        """Predicted nodes, and the nodes a, b, c of their predictions a + b − c, shape (4, n)."""
        lower, upper, opposite = self._sides
        keys = lower * self._count + upper
        order = np.argsort(keys, kind="stable")
        first = np.ones(len(keys), dtype=bool)
        first[1:] = np.diff(keys[order]) != 0
        index = np.arange(len(keys))
        # Number of each side among those of its edge
        rank = index - np.maximum.accumulate(np.where(first, index, 0))
        # Pairs of sides on one edge; more than two triangles may have one edge
        second = np.flatnonzero(rank % 2 == 1)
        i, j = order[second - 1], order[second]
        predicted = np.maximum(opposite[i], opposite[j])
        other = np.minimum(opposite[i], opposite[j])
        # The page predicts a node from nodes with lower numbers
        usable = (predicted > upper[i]) & (predicted > other)
        return np.stack([predicted, lower[i], upper[i], other])[:, usable]

    def _differences(self, values: Integers) -> dict[str, str]:
        """Return the differences of values (n, c) from their predictions, stored as (c, n)."""
        node, a, b, c = self._parallelograms
        lower, upper = self._edges
        # Numbers of predictions of each node
        parallelograms, neighbours = (
            np.bincount(index, minlength=self._count) for index in (node, upper)
        )
        out = np.empty(values.shape[::-1], dtype=np.int64)
        for k, v in enumerate(values.T):
            # The node before; where they exist, mean of neighbours, then mean of parallelograms
            guess = np.zeros(self._count)
            guess[1:] = v[:-1]
            for index, terms, count in (
                (upper, v[lower], neighbours),
                (node, v[a] + v[b] - v[c], parallelograms),
            ):
                total = np.bincount(index, terms, self._count)
                np.divide(total, count, out=guess, where=count > 0)
            out[k] = v - np.floor(guess + 0.5).astype(np.int64)
        return block(_unsigned(out), "u4")


def _sorted(triangles: Integers) -> Integers:
    """Return triangles that begin with their lowest node, in ascending order."""
    first = triangles.argmin(axis=1)[:, None]
    turned = np.take_along_axis(triangles, (first + np.arange(3)) % 3, axis=1)
    return turned[np.lexsort(turned.T[::-1])]


def _unsigned(values: Integers) -> Integers:
    """Return 2v for values v ≥ 0, and −2v − 1 for negative ones."""
    return np.where(values < 0, -2 * values - 1, 2 * values)
