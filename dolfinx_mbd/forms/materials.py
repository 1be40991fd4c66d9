"""Isotropic linear elastic materials in SI units, homogeneous or graded, and a table of names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ufl.core.expr import Expr

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import instance, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import positive, scalar


class _Isotropic:
    """Checks and Lamé's constants, shared by `Material` and `GradedMaterial`."""

    young: Any
    poisson: Any
    density: Any
    name: str
    thermal_expansion: Any

    def __post_init__(self) -> None:
        instance("name", self.name, str)
        constants = {
            "young": positive("young", self.young, "Pa (steel: 210e9)"),
            "poisson": scalar("poisson", self.poisson),
            "density": positive("density", self.density, "kg/m^3 (steel: 7850)"),
        }
        ratio = constants["poisson"]
        if not isinstance(ratio, Expr) and not -1 < ratio < 0.5:
            reject("poisson", ratio, "between -1 and 0.5, both excluded (steel: 0.3)")
        if self.thermal_expansion is not None:
            constants["thermal_expansion"] = scalar("thermal_expansion", self.thermal_expansion)
        assign(self, **constants)

    @property
    def shear(self) -> Any:
        """Shear modulus G = μ = E/(2(1+ν)), Pa."""
        return self.young / (2 * (1 + self.poisson))

    @property
    def lame(self) -> Any:
        """Lamé's first parameter λ = Eν/((1+ν)(1-2ν)), Pa."""
        return self.young * self.poisson / ((1 + self.poisson) * (1 - 2 * self.poisson))


@dataclass(frozen=True)
class Material(_Isotropic):
    """An isotropic, homogeneous, linear elastic material.

    Attributes:
        young: Young's modulus E, Pa, positive.
        poisson: Poisson's ratio ν, between -1 and 0.5, both excluded.
        density: Mass density ρ, kg/m³, positive.
        name: Name in summaries and files.
        thermal_expansion: Coefficient of linear expansion, 1/K; needed only with `Temperature`.
        yield_strength: Stress at which the material yields, Pa, positive; needed only by
            `strength`. The materials of the table in `material` have none, because it depends on
            grade, temper and thickness: use the data sheet.
        tensile_strength: Stress at which the material breaks in tension, Pa, positive; see
            `yield_strength`.

    Raises:
        InputError: A constant is outside its range.

    Example:
        >>> resin = Material(young=3e9, poisson=0.35, density=1200.0, name="resin")
        >>> round(resin.shear / 1e9, 3)
        1.111
    """

    young: float
    poisson: float
    density: float
    name: str = ""
    thermal_expansion: float | None = None
    yield_strength: float | None = None
    tensile_strength: float | None = None

    def __post_init__(self) -> None:
        for name in ("young", "poisson", "density"):
            number(name, getattr(self, name))
        if self.thermal_expansion is not None:
            number("thermal_expansion", self.thermal_expansion)
        for name in ("yield_strength", "tensile_strength"):
            if getattr(self, name) is not None:
                value = number(name, getattr(self, name), positive=True, unit="Pa")
                assign(self, **{name: value})
        super().__post_init__()


@dataclass(frozen=True, eq=False)
class GradedMaterial(_Isotropic):
    """An isotropic material whose constants are functions of space.

    Each constant is a number or a scalar UFL expression, for example of the coordinates of the
    mesh. Only numbers are checked here; the assembly checks that a stiffness and a density given
    as expressions are positive everywhere.

    Attributes:
        young: Young's modulus E, Pa.
        poisson: Poisson's ratio ν.
        density: Mass density ρ, kg/m³.
        name: Name in summaries and files.
        thermal_expansion: Coefficient of linear expansion, 1/K; needed only with `Temperature`.

    Raises:
        InputError: A number is outside its range, or an expression is not scalar.

    Example:
        >>> x = ufl.SpatialCoordinate(box)
        >>> graded = GradedMaterial(young=210e9 * (1 + x[0]), poisson=0.3, density=7850.0)
    """

    young: float | Expr
    poisson: float | Expr
    density: float | Expr
    name: str = ""
    thermal_expansion: float | Expr | None = None


@dataclass(frozen=True, eq=False)
class Temperature:
    """A rise of temperature above the stress-free state.

    Attributes:
        rise: A number or a scalar UFL expression, K.

    Raises:
        InputError: The rise is neither a finite number nor a scalar expression.

    Example:
        >>> uniform = Temperature(80.0)
        >>> along_the_body = Temperature(80.0 * ufl.SpatialCoordinate(box)[0])
    """

    rise: float | Expr

    def __post_init__(self) -> None:
        assign(self, rise=scalar("rise", self.rise))


def material(name: str) -> Material:
    """Return an isotropic material by its name, with its constants at room temperature.

    The values are typical values from the listed sources. If the data sheet of a part gives other
    values, use the data sheet.

    | name | E, GPa | ν | ρ, kg/m³ | α, 1e-6/K | source |
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

    Args:
        name: A name of the table; case, hyphens and underscores are ignored.

    Raises:
        InputError: The name is unknown; the message lists the known names.

    Example:
        >>> material("Stainless-Steel").density
        7900.0
    """
    key = " ".join(checked_name("name", name).lower().replace("-", " ").replace("_", " ").split())
    if key not in MATERIALS:
        expected = f"one of {', '.join(map(repr, MATERIALS))}"
        text = f"unknown material {name!r}; expected {expected}"
        raise InputError(text, argument="name", value=name, expected=expected)
    return MATERIALS[key]


def expansion(material: Any) -> Any:
    """Return the coefficients of thermal expansion, 1/K; raise an error if they are not set."""
    if material.thermal_expansion is None:
        expected = f"set for material {material.name!r}, in 1/K (steel: 12e-6)"
        reject("thermal_expansion", None, f"{expected}, if there is a temperature")
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
"""The materials that `material` returns, by name."""
