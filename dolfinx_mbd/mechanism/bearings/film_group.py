"""Oil films in elastic bores with equal grids, which one call of a kernel evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.kernels.films import elastic_films as kernels
from dolfinx_mbd.mechanism.bearings.elastic_bearing import ElasticBearing
from dolfinx_mbd.mechanism.bearings.film_bearing import FARTHEST

__all__ = ["FilmGroup"]

# Arrays of the bearings and of their grids, in the order of the arguments of the kernel
_OF_BEARINGS = "_point", "_slope", "_around", "_along"
_OF_GRIDS = "values", "_nodes", "_fixed", "_free", "_number", "_size", "_q", "_flow", "_band"
_OF_SOLUTIONS = "pressures", "_slopes", "fraction", "_h", "_rate", "_speeds"


Point = tuple[Array, Array, Array, Array, Array]
"""Arguments of `FilmGroup.evaluate`."""


class FilmGroup:
    """Films that are evaluated together at the poses and velocities of a system.

    The arrays of the films become parts of common arrays, so that their methods also use the last
    common solution. A film can be in one group only.

    Args:
        films: Films with equal `group_key`.
        places: For each film, the frames of bore and journal, and the first elastic coordinate of
            the body of the bore in the coordinates and in the velocities of the system.

    Attributes:
        films: The films.
        frames: Frames of bores and journals, (2 films,).
        wrenches: Wrenches on bores and journals, then forces on the coefficients of the
            displacements of the bores, at the last `evaluate`, (films, 12 + m).
    """

    def __init__(
        self, films: Sequence[ElasticBearing], places: Sequence[tuple[int, int, int, int]]
    ) -> None:
        self.films = films
        surfaces = [film.surface for film in films]
        starts = np.cumsum([0, *(W.size for W in surfaces)])
        rows = [
            (*place, W.shape[1], start)
            for place, W, start in zip(places, surfaces, starts[:-1], strict=True)
        ]
        table = np.array(rows, dtype=np.int64)
        self.frames = table[:, :2].ravel()
        self._table = table, np.concatenate([W.ravel() for W in surfaces])
        grids = [film.grid for film in films]
        links, ends = (
            np.stack(part) for part in zip(*(grid._links for grid in grids), strict=True)
        )
        for grid, *parts in zip(grids, links, ends, strict=True):
            grid._links = tuple(parts)
        points, slope, around, along = (_shared(films, name) for name in _OF_BEARINGS)
        of_grids = [_shared(grids, name) for name in _OF_GRIDS]
        values, nodes, *_ = of_grids
        self._gap_arrays = around, along, values, nodes
        speeds = np.array([film.journal_speed for film in films])
        self._arrays: tuple[Any, ...] = (
            speeds, FARTHEST, points, slope, around, along, *of_grids, links, ends,
            *(_shared(grids, name) for name in _OF_SOLUTIONS),
        )  # fmt: skip
        self._failed = np.zeros(1, dtype=np.int64)
        self.wrenches: Array = np.zeros((len(films), 12 + len(surfaces[0])))

    def evaluate(self, point: Point) -> None:
        """Evaluate all films.

        Args:
            point: Positions, axes and velocities of all frames, coordinates and velocities.

        Raises:
            SolverError: The iteration for the cavitated area of a film did not converge.
        """
        results = self._failed, self.wrenches
        arguments: tuple[Any, ...] = (*point, *self._table, *self._arrays, *results)
        try:
            kernels.elastic_films(*arguments)
        except ZeroDivisionError:  # a singular matrix, because values are out of range
            pass
        if (k := self._failed[0]) != kernels.NO_FILM:
            raise self.films[k].failure()

    def add_to(self, wrenches: Array) -> None:
        """Add the last wrenches to those of all frames, (frames, 6)."""
        np.add.at(wrenches, self.frames, self.wrenches[:, :12].reshape(-1, 6))

    def subtract_forces_on_modes(self, rows: Array, scale: Array) -> None:
        """Subtract the last forces on elastic coordinates from a residual (nv,).

        Their magnitudes are added to `scale` (nv,).
        """
        kernels.subtract_forces_on_modes(*self._table, self.wrenches, rows, scale)

    def smallest_gaps(self, point: Point) -> Array:
        """Return the smallest gaps of all films at their nodes, (films,), m; see `evaluate`."""
        gaps = np.empty(len(self.films))
        kernels.elastic_gaps(*point, *self._table, *self._gap_arrays, gaps)
        return gaps


def _shared(owners: Sequence[Any], name: str) -> Array:
    """Return the stacked arrays of several objects, and replace the arrays by its parts."""
    stack = np.stack([getattr(owner, name) for owner in owners])
    for owner, part in zip(owners, stack, strict=True):
        assign(owner, **{name: part})
    return stack
