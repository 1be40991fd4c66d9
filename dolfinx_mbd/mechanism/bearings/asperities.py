"""Rough surfaces of a journal bearing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, number, reject
from dolfinx_mbd.kernels.films.thickness import ASPERITY_FACTOR, ASPERITY_HEIGHT, ASPERITY_POWER

__all__ = ["Asperities"]

# By pattern: C and r of the pressure flow factor 1 − C exp(−r h/s), or 1 + |C| (h/s)^−r if C < 0,
# and A₁, a₁, a₂, a₃ and A₂ of the shear flow factor, see `kernels.films.rough_surfaces`
_FLOW_FACTORS = {
    1 / 9: (1.48, 0.42, 2.046, 1.12, 0.78, 0.03, 1.856),
    1 / 6: (1.38, 0.42, 1.962, 1.08, 0.77, 0.03, 1.754),
    1 / 3: (1.18, 0.42, 1.858, 1.01, 0.76, 0.03, 1.561),
    1.0: (0.90, 0.56, 1.899, 0.98, 0.92, 0.05, 1.126),
    3.0: (-0.225, 1.5, 1.560, 0.85, 1.13, 0.08, 0.556),
    6.0: (-0.520, 1.5, 1.290, 0.62, 1.09, 0.08, 0.388),
    9.0: (-0.870, 1.5, 1.011, 0.54, 1.07, 0.08, 0.295),
}


def _constants_of_pattern(pattern: float) -> tuple[float, ...]:
    """Return the constants of the nearest pattern, which must be within 1 %."""
    nearest = min(_FLOW_FACTORS, key=lambda known: abs(known - pattern) / known)
    if abs(nearest - pattern) > 0.01 * nearest:
        reject("pattern", pattern, "1/9, 1/6, 1/3, 1, 3, 6 or 9, for which factors are published")
    return _FLOW_FACTORS[nearest]


@dataclass(frozen=True)
class Asperities:
    """Contact of rough surfaces, which carries load where the oil film is thin.

    Asperities touch if the gap h is below four times the roughness s. They carry the pressure K
    F(h/s) of Greenwood and Tripp, where F(0) = 0.55. The film thickness in Reynolds' equation is h
    for h ≥ s, and s²/(2s − h) below; it is always positive. With a `pattern` the film has the
    average Reynolds equation of rough surfaces.

    Attributes:
        roughness: Combined standard deviation s of the heights of both surfaces, m.
        modulus: Factor K, Pa: 0.0003 to 0.003 times the combined modulus of elasticity.
        friction: Friction coefficient of the asperities.
        sliding_speed: Sliding speed at which the friction is 76 % of its final value, m/s.
        pattern: Length of the asperities around the bore, relative to that along the axis: 1/9,
            1/6, 1/3, 1 (isotropic), 3, 6 or 9. The film of a `FiniteBearing` or `ElasticBearing`
            then has the flow factors of Patir and Cheng, their mean gap instead of h, and their
            factor of the viscous friction. By default the surfaces are smooth for the flow.
        journal_share: Part of s² that belongs to the journal, for the shear flow: 0 to 1.

    Raises:
        InputError: A value is not positive, the friction coefficient is negative, or the pattern is
            none of those for which factors are published.

    Example:
        >>> surfaces = mbd.bearings.Asperities(roughness=0.4e-6)
        >>> f"{surfaces.pressure(0.8e-6) / 1e6:.2f} MPa"
        '1.48 MPa'
    """

    roughness: float = 0.5e-6
    modulus: float = 3e8
    friction: float = 0.1
    sliding_speed: float = 0.01
    pattern: float | None = None
    journal_share: float = 0.5

    def __post_init__(self) -> None:
        number("roughness", self.roughness, positive=True, unit="m")
        number("modulus", self.modulus, positive=True, unit="Pa")
        number("friction", self.friction, low=0.0)
        number("sliding_speed", self.sliding_speed, positive=True, unit="m/s")
        number("journal_share", self.journal_share, low=0.0, high=1.0)
        if self.pattern is not None:
            # an error for patterns without published factors
            _constants_of_pattern(number("pattern", self.pattern, positive=True))

    @classmethod
    def from_summits(
        cls, roughness: float, density: float, radius: float, elasticity: float, **options: float
    ) -> Asperities:
        """Return surfaces whose `modulus` K follows from their summits (Greenwood and Tripp).

        K = 16 √2 π/15 (η β s)² √(s/β) E′

        Args:
            roughness: Combined standard deviation s of the heights of both surfaces, m.
            density: Number η of summits per area, 1/m².
            radius: Radius β of the summits, m.
            elasticity: Combined modulus E′, Pa, with 1/E′ = (1 − ν₁²)/E₁ + (1 − ν₂²)/E₂.
            **options: Other attributes.

        Raises:
            InputError: A value is not positive.

        Example:
            >>> surfaces = mbd.bearings.Asperities.from_summits(0.5e-6, 1e10, 8e-6, 1.15e11)
            >>> print(f"{surfaces.modulus:.3g} Pa")
            2.18e+08 Pa
        """
        s = number("roughness", roughness, positive=True, unit="m")
        beta = number("radius", radius, positive=True, unit="m")
        eta_beta_s = number("density", density, positive=True, unit="1/m²") * beta * s
        modulus = number("elasticity", elasticity, positive=True, unit="Pa")
        factor = 16.0 * math.sqrt(2.0) * math.pi / 15.0 * eta_beta_s**2 * math.sqrt(s / beta)
        return cls(roughness=s, modulus=factor * modulus, **options)

    def flow_constants(self) -> Array:
        """Return the constants FACTORS to SHEAR_WEIGHT of `kernels.films.fields`, (11,)."""
        if self.pattern is None:
            return np.zeros(11)
        around, along = (
            _constants_of_pattern(self.pattern),
            _constants_of_pattern(1.0 / self.pattern),
        )
        weight = 2.0 * self.journal_share - 1.0
        return np.array([1.0, *around[:2], *along[:2], *around[2:], weight])

    def pressure(self, gap: ArrayLike) -> Array:
        """Return the pressure of the asperities at a gap (m) of any shape, Pa."""
        return self._pressure(self._overlap(array("gap", gap)))

    def energy(self, gap: ArrayLike) -> Array:
        """Return the elastic energy per area at a gap (m) of any shape, J/m²."""
        overlap = self._overlap(gap)
        per_area = self._pressure(overlap) * overlap * self.roughness / (ASPERITY_POWER + 1.0)
        return np.asarray(per_area, dtype=float)

    def _overlap(self, gap: ArrayLike) -> Array:
        """Return the overlap of the asperities relative to the roughness."""
        overlap = np.maximum(ASPERITY_HEIGHT - np.asarray(gap) / self.roughness, 0.0)
        return np.asarray(overlap, dtype=float)

    def _pressure(self, overlap: Array) -> Array:
        """Return the pressure at an overlap relative to the roughness, Pa."""
        return np.asarray(self.modulus * ASPERITY_FACTOR * overlap**ASPERITY_POWER)
