"""Short journal bearing after Ocvirk."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import integer, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.films.short_bearing import short_bearing_loads
from dolfinx_mbd.mechanism.bearings.film_bearing import (
    CONTACT_RULES,
    FARTHEST,
    FilmBearing,
    gauss_points,
)

__all__ = ["ShortBearing"]


@dataclass(frozen=True, eq=False)
class ShortBearing(FilmBearing):
    """A journal bearing whose length is small compared with its diameter (L/D ≤ 0.5).

    Oil flows along the axis only. Negative pressures are set to zero (half-Sommerfeld condition),
    so that the boundary of cavitation follows the motion. Rotation of both bodies, squeeze film and
    misalignment are included; the equation along the axis is solved exactly for any misalignment.
    The viscous torque is computed for a gap full of oil.

    Attributes:
        name: Name in the system.
        first: Frame of the bore. Its origin is the centre and its z axis the axis of the bearing.
        second: Frame of the journal, with its z axis along the journal.
        radius: Radius, m.
        length: Length along the axis, m.
        clearance: Radial clearance, m.
        viscosity: Viscosity of the oil at the temperature of the film, Pa s.
        asperities: Contact of the surfaces where the film is thin.
        journal_speed: Rotation of the journal's surface relative to its frame, about the z axis of
            this frame, rad/s, for a rotor that is modelled without its rotation.
        points: Number of angles per half turn at which the pressure is evaluated; twice as many are
            used where the film is thinner than two roughnesses.

    Raises:
        InputError: An argument is invalid, for example a viscosity that is not positive. `System`
            raises it if the initial film thickness is not positive.

    Example:
        >>> film = mbd.bearings.ShortBearing(
        ...     "film", *ends, 0.02, 0.01, 2e-5, 0.01
        ... )
        >>> loads, _, _ = film.film_loads(film.motion_vector((1e-5, 0), speed=300.0), False)
        >>> print(loads[:2].round(2))  # N, on the journal
        [-66.67  90.69]
    """

    __repr__ = short_repr

    viscosity: float = 0.0
    points: int = 32
    _values: Array = field(init=False, repr=False)  # constants of the film
    _angles: Array = field(init=False, repr=False)  # points, in half turns, and weights
    _thin_angles: Array = field(init=False, repr=False)  # the same for thin films
    _axial: Array = field(init=False, repr=False)  # points and weights along the axis

    def __post_init__(self) -> None:
        super().__post_init__()
        label = f"bearing {self.name!r}"
        self._check_units(number(f"{label}: viscosity", self.viscosity, positive=True, unit="Pa s"))
        integer(f"{label}: points", self.points, low=8, high=1000)
        if self.asperities.pattern is not None:
            raise InputError(
                f"{label}: a ShortBearing has no flow factors of rough surfaces; use "
                "FiniteBearing, or Asperities without pattern",
                argument="asperities",
            )
        assign(
            self,
            _values=self._constants(self.viscosity),
            _angles=gauss_points(self.points, 0.0),
            _thin_angles=gauss_points(2 * self.points, 0.0),
            _axial=gauss_points(8),
        )

    def film_loads(self, motion: Array, derivatives: bool) -> tuple[Array, Array, Array]:
        """Return loads, derivatives and state of the film; see `FilmBearing`."""
        gap = self._least_gap(motion)
        if not (gap > -FARTHEST * self.clearance and math.isfinite(motion.sum())):
            return np.full(5, np.nan), np.full((5, 9), np.nan), np.full(4, np.nan)
        thin = gap < 2.0 * self.asperities.roughness
        angles = self._thin_angles if thin else self._angles
        loads: tuple[Array, Array, Array] = short_bearing_loads(
            motion, self._values, angles, self._axial, *CONTACT_RULES, derivatives
        )
        return loads
