"""Edges of grooves and holes on the grid of a bearing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.mechanism.bearings.supply import OilSupply

__all__ = ["supply_links"]


def supply_links(
    theta: Array, z: Array, areas: Sequence[OilSupply], levels: Sequence[float]
) -> tuple[Array, NDArray[np.int64], Array]:
    """Return the nodes in supplies, and the links of other nodes to the edges of supplies.

    Args:
        theta: Angles of the nodes, (n,), rad.
        z: Axial positions of the nodes, (m+1,), m.
        areas: Grooves and holes.
        levels: Reduced pressure of each area, Pa.

    Returns:
        Reduced pressures of the nodes, NaN outside of all areas, (n, m+1); and the arrays `links`,
        (links, 4), and `ends`, (links, 3), of `kernels.films.reynolds`.

    Raises:
        InputError: Areas with different pressures overlap on the lines of the grid.
    """
    n, columns = len(theta), len(z)
    inside = np.full((n, columns), np.nan)
    # Where the first area begins and the last one ends in each interval, as in `_crossed`
    first, last = np.full((2, n, columns), np.inf), np.full((2, n, columns), -np.inf)
    pressures = np.zeros((2, 2, n, columns))  # at the first and last point of an interval
    earlier_areas: list[tuple[OilSupply, NDArray[np.bool_], Array, Array]] = []
    for area, level in zip(areas, levels, strict=True):
        covered = area.covers(theta, z)
        low, high = _crossed(theta, z, area)
        # An area without nodes that crosses at most one interval becomes a node without links
        if not covered.any() and np.count_nonzero(low <= high) < 2:
            low[:], covered[area.nearest(theta, z)] = np.inf, True
            _warn_of_size(area, len(theta), len(z) - 1)
        for other, nodes, begin, end in earlier_areas:
            common = np.maximum(low, begin) <= np.minimum(high, end)
            if other.pressure != area.pressure and (common.any() or (covered & nodes).any()):
                raise _overlap(other, area)
        earlier_areas.append((area, covered, low, high))
        inside[covered] = level
        earlier, later = (low < first) & (low <= high), (high > last) & (low <= high)
        first[earlier], last[later] = low[earlier], high[later]
        pressures[0][earlier], pressures[1][later] = level, level
    links, ends = [], []
    for row in np.argwhere(first <= last):
        kind, i, j = (int(index) for index in row)  # kind 0: around the bore, 1: along it
        end_node = ((i + 1) % n, j) if kind == 0 else (i, j + 1)
        gap = first[kind, i, j], 1.0 - last[kind, i, j]
        for k, (node, neighbour) in enumerate((((i, j), end_node), (end_node, (i, j)))):
            if np.isnan(inside[node]):
                links.append((*node, *neighbour))
                # The kernels compute the conductance, which is zero here
                ends.append((gap[k], pressures[k, kind, i, j], 0.0))
    return (
        inside,
        np.array(links, dtype=np.int64).reshape(-1, 4),
        np.array(ends, dtype=float).reshape(-1, 3),
    )


def _overlap(first: OilSupply, second: OilSupply) -> InputError:
    """Return the error for two areas with different pressures that overlap."""
    places = [f"angle = {a.angle:g} rad, position = {a.position:g} m" for a in (first, second)]
    return InputError(
        f"the supplies at {places[0]} and at {places[1]} overlap and have different pressures, "
        f"{first.pressure:g} Pa and {second.pressure:g} Pa; give them the same pressure, or "
        "separate them",
        argument="supply",
        value=second.pressure,
    )


def _warn_of_size(area: OilSupply, n: int, m: int) -> None:
    """Warn of a hole that is too small for the grid."""
    warn(
        AccuracyWarning(
            f"the supply at angle = {area.angle:g} rad, position = {area.position:g} m is smaller "
            f"than the intervals of the grid, shape = ({n}, {m}). One node has its pressure "
            "instead, like a hole with a radius of about 0.2 intervals. Increase shape",
            quantity="size of a supply",
        )
    )


def _crossed(theta: Array, z: Array, area: OilSupply) -> tuple[Array, Array]:
    """Return where an area begins and ends in the intervals around and along the bore.

    Both arrays (2, n, m+1) are fractions of the interval that starts at a node; the area misses an
    interval if it begins after its end.
    """
    n, columns = len(theta), len(z)
    low, high = np.full((2, n, columns), np.inf), np.full((2, n, columns), -np.inf)
    around, along = area.extent(theta, z)
    step, full_turn = 2.0 * math.pi / n, 2.0 * math.pi
    start = ((theta - area.angle + math.pi) % full_turn - math.pi)[:, None]
    for middle in (0.0, full_turn):  # the area may begin before π and end after it
        begin = np.maximum((middle - around - start) / step, 0.0)
        end = np.minimum((middle + around - start) / step, 1.0)
        hit = (around >= 0.0) & (begin <= end)
        low[0][hit] = np.minimum(low[0][hit], begin[hit])
        high[0][hit] = np.maximum(high[0][hit], end[hit])
    begin = np.maximum((area.position - along[:, None] - z[:-1]) / np.diff(z), 0.0)
    end = np.minimum((area.position + along[:, None] - z[:-1]) / np.diff(z), 1.0)
    hit = (along[:, None] >= 0.0) & (begin <= end)
    low[1, :, :-1][hit], high[1, :, :-1][hit] = begin[hit], end[hit]
    return low, high
