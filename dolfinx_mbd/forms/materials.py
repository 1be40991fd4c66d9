"""Isotropic linear elastic materials in SI units, homogeneous or graded, and some by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ufl.core.expr import Expr

from dolfinx_mbd import checks
from dolfinx_mbd.checks import instance, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import scalar

__all__ = [
    "ALUMINIUM",
    "ALUMINIUM_7075",
    "MATERIALS",
    "STEEL",
    "GradedMaterial",
    "Material",
    "Temperature",
    "checked_range",
    "expansion",
    "material",
]


@dataclass(frozen=True)
class Material:
    """An isotropic, homogeneous, linear elastic material.

    Attributes:
        young: Young's modulus E, Pa, positive.
        poisson: Poisson's ratio ν, between -1 and 0.5, both excluded.
        density: Mass density ρ, kg/m³, positive.
        name: What to call it in summaries and files.
        thermal_expansion: Coefficient of linear expansion, 1/K; only `Temperature` needs it.

    Raises:
        ValueError: A constant is outside its range.
    """

    young: float
    poisson: float
    density: float
    name: str = ""
    thermal_expansion: float | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        for attribute in ("young", "poisson", "density"):
            value = number(attribute, getattr(self, attribute))
            checked_range(attribute, value)
            object.__setattr__(self, attribute, value)
        if self.thermal_expansion is not None:
            value = number("thermal_expansion", self.thermal_expansion)
            object.__setattr__(self, "thermal_expansion", value)

    @property
    def shear(self) -> float:
        """Shear modulus G = μ = E/(2(1+ν)), Pa."""
        return self.young / (2 * (1 + self.poisson))

    @property
    def lame(self) -> float:
        """Lamé's first parameter λ = Eν/((1+ν)(1-2ν)), Pa."""
        return self.young * self.poisson / ((1 + self.poisson) * (1 - 2 * self.poisson))


@dataclass(frozen=True, eq=False)
class GradedMaterial:
    """An isotropic material whose constants are functions of space.

    Each constant is a number or any scalar UFL expression: of the coordinates of the mesh, or a
    function on it. Only numbers are checked here; a stiffness or a density that is not positive
    everywhere shows when it is assembled.

    Attributes:
        young: Young's modulus E, Pa.
        poisson: Poisson's ratio ν.
        density: Mass density ρ, kg/m³.
        name: What to call it in summaries and files.
        thermal_expansion: Coefficient of linear expansion, 1/K; only `Temperature` needs it.

    Raises:
        ValueError: A number is outside its range, or an expression is no scalar.
    """

    young: float | Expr
    poisson: float | Expr
    density: float | Expr
    name: str = ""
    thermal_expansion: float | Expr | None = None

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        for attribute in ("young", "poisson", "density", "thermal_expansion"):
            value = getattr(self, attribute)
            if value is None and attribute == "thermal_expansion":
                continue
            value = scalar(attribute, value)
            if attribute != "thermal_expansion":
                checked_range(attribute, value)
            object.__setattr__(self, attribute, value)

    @property
    def shear(self) -> Any:
        """Shear modulus G = μ = E/(2(1+ν)), Pa."""
        return self.young / (2 * (1 + self.poisson))

    @property
    def lame(self) -> Any:
        """Lamé's first parameter λ = Eν/((1+ν)(1-2ν)), Pa."""
        return self.young * self.poisson / ((1 + self.poisson) * (1 - 2 * self.poisson))


@dataclass(frozen=True, eq=False)
class Temperature:
    """The rise of temperature above that at which the body is free of stress.

    Attributes:
        rise: A number or a scalar UFL expression, K.

    Raises:
        ValueError: It is neither.
    """

    rise: float | Expr

    def __post_init__(self) -> None:
        object.__setattr__(self, "rise", scalar("rise", self.rise))


def material(name: str) -> Material:
    """An isotropic material by its name, at room temperature.

    Capitals, hyphens and underscores do not matter. The values are those usually quoted from the
    sources named; the data sheet of a part goes before.

    | name | E, GPa | ν | ρ, kg/m³ | α, 1e-6/K | is |
    |---|---|---|---|---|---|
    | steel | 210 | 0.3 | 7850 | 12 | structural steel, EN 1993-1-1, 3.2.6 |
    | stainless steel | 200 | 0.3 | 7900 | 16 | 1.4301 (304), EN 10088-1 |
    | cast iron | 110 | 0.26 | 7200 | 11.7 | EN-GJL-250, EN 1561 |
    | ductile iron | 169 | 0.275 | 7100 | 12.5 | EN-GJS-400-15, EN 1563 |
    | aluminium | 70 | 0.33 | 2700 | 23 | EN 1999-1-1, 3.2.5; ν of the pure metal |
    | aluminium 6061 | 68.9 | 0.33 | 2700 | 23.6 | T6, ASM data sheet |
    | aluminium 7075 | 71.7 | 0.33 | 2810 | 23.6 | T6, ASM data sheet |
    | titanium | 113.8 | 0.342 | 4430 | 8.6 | Ti-6Al-4V annealed, ASM data sheet |
    | bronze | 110 | 0.33 | 8800 | 18.2 | CuSn8 (C52100), Copper Development Association |
    | brass | 97 | 0.32 | 8490 | 20.5 | CuZn36Pb3 (C36000), Copper Development Association |
    | copper | 117 | 0.33 | 8910 | 17 | C11000, Copper Development Association |

    Raises:
        ValueError: There is none of that name; the message lists them.
    """
    key = " ".join(checks.name("name", name).lower().replace("-", " ").replace("_", " ").split())
    if key not in MATERIALS:
        raise InputError(f"unknown material {name!r}; known are {', '.join(map(repr, MATERIALS))}")
    return MATERIALS[key]


def checked_range(attribute: str, value: float | Expr) -> None:
    """Refuse a number that no stable material has; an expression passes."""
    if isinstance(value, Expr):
        return
    if attribute == "young" and not value > 0:
        raise InputError(
            f"Young's modulus must be positive, in Pa (steel: 210e9); got young={value:g}"
        )
    if attribute == "poisson" and not -1 < value < 0.5:
        raise InputError(
            "Poisson's ratio must lie between -1 and 0.5, both excluded (steel: 0.3); "
            f"got poisson={value:g}"
        )
    if attribute == "density" and not value > 0:
        raise InputError(
            f"density must be positive, in kg/m^3 (steel: 7850); got density={value:g}"
        )


def expansion(material: Any) -> Any:
    """The coefficients of thermal expansion, or an error that says that there are none."""
    if material.thermal_expansion is None:
        raise InputError(
            f"the material {material.name!r} has no thermal_expansion, 1/K (steel: 12e-6), which a "
            "temperature needs"
        )
    return material.thermal_expansion


STEEL = Material(210e9, 0.3, 7850.0, "steel", 12e-6)
ALUMINIUM = Material(70e9, 0.33, 2700.0, "aluminium", 23e-6)
ALUMINIUM_7075 = Material(71.7e9, 0.33, 2810.0, "aluminium 7075", 23.6e-6)

MATERIALS = {
    m.name: m
    for m in (
        STEEL,
        Material(200e9, 0.3, 7900.0, "stainless steel", 16e-6),
        Material(110e9, 0.26, 7200.0, "cast iron", 11.7e-6),
        Material(169e9, 0.275, 7100.0, "ductile iron", 12.5e-6),
        ALUMINIUM,
        Material(68.9e9, 0.33, 2700.0, "aluminium 6061", 23.6e-6),
        ALUMINIUM_7075,
        Material(113.8e9, 0.342, 4430.0, "titanium", 8.6e-6),
        Material(110e9, 0.33, 8800.0, "bronze", 18.2e-6),
        Material(97e9, 0.32, 8490.0, "brass", 20.5e-6),
        Material(117e9, 0.33, 8910.0, "copper", 17e-6),
    )
}
"""The materials that `material` knows, by name."""
