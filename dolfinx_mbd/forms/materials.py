"""Isotropic linear elastic materials in SI units, and a few common ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["ALUMINIUM", "ALUMINIUM_7075", "STEEL", "Material"]


@dataclass(frozen=True)
class Material:
    """An isotropic, homogeneous, linear elastic material.

    Attributes:
        young: Young's modulus E, Pa, positive.
        poisson: Poisson's ratio ν, between -1 and 0.5, both excluded.
        density: Mass density ρ, kg/m³, positive.
        name: What to call it in summaries and files.

    Raises:
        ValueError: A constant is outside its range.
    """

    young: float
    poisson: float
    density: float
    name: str = ""

    def __post_init__(self) -> None:
        for attribute in ("young", "poisson", "density"):
            object.__setattr__(self, attribute, _number(attribute, getattr(self, attribute)))
        if not self.young > 0:
            raise ValueError(
                f"Young's modulus must be positive, in Pa (steel: 210e9); got young={self.young:g}"
            )
        if not -1 < self.poisson < 0.5:
            raise ValueError(
                "Poisson's ratio must lie between -1 and 0.5, both excluded (steel: 0.3); "
                f"got poisson={self.poisson:g}"
            )
        if not self.density > 0:
            raise ValueError(
                f"density must be positive, in kg/m^3 (steel: 7850); got density={self.density:g}"
            )

    @property
    def shear(self) -> float:
        """Shear modulus G = μ = E/(2(1+ν)), Pa."""
        return self.young / (2 * (1 + self.poisson))

    @property
    def lame(self) -> float:
        """Lamé's first parameter λ = Eν/((1+ν)(1-2ν)), Pa."""
        return self.young * self.poisson / ((1 + self.poisson) * (1 - 2 * self.poisson))


def _number(attribute: str, value: Any) -> float:
    """`value` as a finite float, or an error that names the attribute."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{attribute} must be a number; got {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{attribute} must be a finite number; got {value!r}")
    return number


STEEL = Material(210e9, 0.3, 7850.0, "steel")
ALUMINIUM = Material(70e9, 0.33, 2700.0, "aluminium")
ALUMINIUM_7075 = Material(71.7e9, 0.33, 2810.0, "aluminium 7075")
