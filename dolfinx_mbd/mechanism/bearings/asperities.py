"""Rough surfaces of a journal bearing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, number
from dolfinx_mbd.kernels.films.thickness import ASPERITY_FACTOR, ASPERITY_HEIGHT, ASPERITY_POWER

__all__ = ["Asperities"]


@dataclass(frozen=True)
class Asperities:
    """Contact of rough surfaces, which carries load where the oil film is thin.

    Asperities touch if the gap h is below four times the roughness s. They carry the pressure K
    F(h/s) of Greenwood and Tripp, where F(0) = 0.55. The film thickness in Reynolds' equation is h
    for h ≥ s, and s²/(2s − h) below; it is always positive.

    Attributes:
        roughness: Combined standard deviation s of the heights of both surfaces, m.
        modulus: Factor K, Pa: 0.0003 to 0.003 times the combined modulus of elasticity.
        friction: Friction coefficient of the asperities.
        sliding_speed: Sliding speed at which the friction is 76 % of its final value, m/s.

    Raises:
        InputError: A value is not positive, or the friction coefficient is negative.

    Example:
        >>> surfaces = mbd.bearings.Asperities(roughness=0.4e-6)
        >>> f"{surfaces.pressure(0.8e-6) / 1e6:.2f} MPa"
        '1.48 MPa'
    """

    roughness: float = 0.5e-6
    modulus: float = 3e8
    friction: float = 0.1
    sliding_speed: float = 0.01

    def __post_init__(self) -> None:
        number("roughness", self.roughness, positive=True, unit="m")
        number("modulus", self.modulus, positive=True, unit="Pa")
        number("friction", self.friction, low=0.0)
        number("sliding_speed", self.sliding_speed, positive=True, unit="m/s")

    def pressure(self, gap: ArrayLike) -> Array:
        """Return the pressure of the asperities at a gap (m) of any shape, Pa."""
        return self._pressure(self._overlap(array("gap", gap)))

    def energy(self, gap: ArrayLike) -> Array:
        """Return the elastic energy per area at a gap (m) of any shape, J/m²."""
        overlap = self._overlap(gap)
        density = self._pressure(overlap) * overlap * self.roughness / (ASPERITY_POWER + 1.0)
        return np.asarray(density, dtype=float)

    def _overlap(self, gap: ArrayLike) -> Array:
        """Return the overlap of the asperities relative to the roughness."""
        overlap = np.maximum(ASPERITY_HEIGHT - np.asarray(gap) / self.roughness, 0.0)
        return np.asarray(overlap, dtype=float)

    def _pressure(self, overlap: Array) -> Array:
        """Return the pressure at an overlap relative to the roughness, Pa."""
        return np.asarray(self.modulus * ASPERITY_FACTOR * overlap**ASPERITY_POWER)
