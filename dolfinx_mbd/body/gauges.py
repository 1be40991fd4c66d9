"""Strain gauges and rosettes on the surface of a body: strains per elastic coordinate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.body.stress_modes import motion_of
from dolfinx_mbd.body.tree import array_of, freeze_arrays, number_of
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.checks import number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr, vector_text


@dataclass(frozen=True, eq=False)
class StrainGauge:
    """A strain gauge with one grid, or a rosette with three grids at the same place.

    `mbd.gauges` creates it. The strain of a grid is its elongation divided by its length, so that
    it is an average along the grid. It is linear in the elastic coordinates.

    Attributes:
        name: Name of the gauge.
        position: Centre of the grids on the surface, shape (3,), m.
        normal: Outward normal of the surface, shape (3,).
        directions: Unit vectors along the grids, shape (1, 3) or (3, 3).
        length: Length of a grid, m.
        modes: Strain of each grid per unit of each elastic coordinate, shape (grids, n).

    Example:
        >>> gauge = mbd.body.StrainGauge("g", (0, 0, 0), (0, 0, 1), [[1, 0, 0]], 3e-3, [[2e-6, 0]])
        >>> gauge.history([[1.0, 0.0], [2.0, 5.0]]).strain[:, 0]
        array([2.e-06, 4.e-06])
    """

    name: str
    position: Array = field(metadata=array_of("3", "m"))
    normal: Array = field(metadata=array_of("3", "1", directions=True))
    directions: Array = field(metadata=array_of("g3", "1", directions=True))
    length: float = field(metadata=number_of("m"))
    modes: Array = field(metadata=array_of("gn", "1"))
    summary_titles: ClassVar[str] = (
        "strain gauge               position (mm)                      grids  length (mm)"
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        label = f"gauge {checked_name('name', self.name)!r}"
        freeze_arrays(self, label)
        if len(self.directions) not in (1, 3):
            reject(f"{label}: directions", self.directions, "the directions of 1 or 3 grids")
        assign(self, length=number(f"{label}: length", self.length, positive=True, unit="m"))

    def summary_row(self) -> str:
        """Return the row of the gauge in the summary of the body."""
        grids = f"{len(self.directions):>5}  {1e3 * self.length:11.3g}"
        return f"{self.name:<24} {vector_text(self.position, 1e3)}  {grids}"

    @property
    def angles(self) -> Array:
        """Angles of the grids from the first grid, counterclockwise from outside, (grids,), rad."""
        x = self.directions[0]
        y = np.cross(self.normal, x)
        return np.arctan2(self.directions @ y, self.directions @ x)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the grids: the name of the gauge, followed by the angle for a rosette."""
        if len(self.directions) == 1:
            return (self.name,)
        return tuple(f"{self.name} {round(angle)}°" for angle in np.rad2deg(self.angles))

    def history(self, motion: Any) -> GaugeHistory:
        """Return the strains over a motion.

        Args:
            motion: An object with `time` (nt,), s, and `eta` (nt, n), such as `run.body("rod")`;
                or elastic coordinates, shape (nt, n) or (n,), whose times are 0, 1, ...

        Raises:
            InputError: The motion does not belong to the body.
        """
        time, eta = motion_of(motion, self.modes.shape[1])
        return GaugeHistory(self.name, time, eta @ self.modes.T, self.angles)


@dataclass(frozen=True, eq=False)
class GaugeHistory:
    """Strains of a gauge or a rosette over nt times.

    In a rosette, x is the direction of the first grid, and y is 90° from it, counterclockwise if
    you look at the surface from outside.

    Attributes:
        name: Name of the gauge.
        time: Times, (nt,), s.
        strain: Strains of the grids, (nt, grids), m/m.
        angles: Angles of the grids from x, (grids,), rad.

    Example:
        >>> grids = np.deg2rad([0.0, 45.0, 90.0])
        >>> rosette = mbd.body.GaugeHistory("r", [0.0], np.array([[1e-6, 0.0, 1e-6]]), grids)
        >>> print(rosette.principal, np.rad2deg(rosette.direction))
        [[2.e-06 0.e+00]] [-45.]
    """

    name: str
    time: Array
    strain: Array
    angles: Array

    __repr__ = short_repr

    @property
    def surface_strain(self) -> Array:
        """Strains εx, εy and εxy (half the shear angle) in the surface, (nt, 3); rosettes only."""
        if len(self.angles) != 3:
            raise InputError(
                f"gauge {self.name!r} has one grid; the strain of the surface needs a rosette: "
                "kind='rectangular' or 'delta'"
            )
        c, s = np.cos(self.angles), np.sin(self.angles)
        return np.linalg.solve(np.stack([c * c, s * s, 2 * s * c], axis=1), self.strain.T).T

    @property
    def principal(self) -> Array:
        """Greatest and least principal strain in the surface, (nt, 2); rosettes only."""
        x, y, xy = self.surface_strain.T
        mean, radius = (x + y) / 2, np.hypot((x - y) / 2, xy)
        return np.stack([mean + radius, mean - radius], axis=1)

    @property
    def direction(self) -> Array:
        """Angle of the greatest principal strain from x, −π/2 to π/2, (nt,), rad; rosettes only."""
        x, y, xy = self.surface_strain.T
        return 0.5 * np.arctan2(2 * xy, x - y)
