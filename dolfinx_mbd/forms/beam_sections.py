"""Cross-sections of beams: area, second moments and torsion constant; uniform or tapered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import choice, reject
from dolfinx_mbd.forms.arguments import positive, scalar

SERIES = 1.0045237627951396  # sum of 1/n⁵ over all odd n
LAST_TERM = 11  # last n in the sum of (1 − tanh)/n⁵ for a rectangle; the rest is round-off


@dataclass(frozen=True, eq=False)
class Section:
    """A cross-section with axes y and z at its centroid.

    The shear centre must coincide with the centroid. Each value is a number or a scalar UFL
    expression, for example of the coordinates of the mesh for a tapered beam.

    Attributes:
        area: A, m².
        Iyy: ∫z² dA, m⁴, for bending in the plane of x and z.
        Izz: ∫y² dA, m⁴, for bending in the plane of x and y.
        torsion: Torsion constant J of Saint-Venant, m⁴; the torque is G J φ'. It equals the polar
            moment for a circle and is smaller for other sections.
        Iyz: ∫yz dA, m⁴; zero if y and z are principal axes.
        shape: Shape in pictures, with the section's radii of gyration: `rectangle` or `ellipse`.

    Raises:
        InputError: A value is out of its range.

    Example:
        >>> section = Section.rectangle(width=0.02, height=0.04)
        >>> round(section.area, 6)
        0.0008
    """

    area: Any
    Iyy: Any
    Izz: Any
    torsion: Any
    Iyz: Any = 0.0
    shape: Literal["rectangle", "ellipse"] = "ellipse"

    def __post_init__(self) -> None:
        for name in ("area", "Iyy", "Izz", "torsion"):
            assign(self, **{name: positive(name, getattr(self, name))})
        assign(self, Iyz=scalar("Iyz", self.Iyz))
        numbers = (self.Iyy, self.Izz, self.Iyz)
        if not any(isinstance(value, Expr) for value in numbers) and not (
            abs(self.Iyz) < math.sqrt(self.Iyy) * math.sqrt(self.Izz)
        ):
            reject("Iyz", self.Iyz, f"such that Iyz² < Iyy Izz = {self.Iyy:g} * {self.Izz:g} m⁸")
        choice("shape", self.shape, ("rectangle", "ellipse"))

    @property
    def polar(self) -> Any:
        """Polar moment ∫(y² + z²) dA, m⁴; multiply it by ρ for the inertia of the twist."""
        return self.Iyy + self.Izz

    @classmethod
    def rectangle(cls, width: Any, height: Any) -> Section:
        """Return a solid rectangle.

        The torsion constant is a b³ (1/3 − 64 b/(π⁵ a) Σ tanh(nπa/2b)/n⁵), n = 1, 3, ..., where a
        is the longer side and b the shorter one.

        Args:
            width: Length along y, m.
            height: Length along z, m.
        """
        b, h = _length("width", width), _length("height", height)
        expression = isinstance(b, Expr) or isinstance(h, Expr)
        long = ufl.max_value(b, h) if expression else max(b, h)
        short = ufl.min_value(b, h) if expression else min(b, h)
        tanh = ufl.tanh if expression else math.tanh
        series = SERIES - sum(
            (1 - tanh(n * math.pi / 2 * long / short)) / n**5 for n in range(1, LAST_TERM + 1, 2)
        )
        torsion = long * short**3 * (1 / 3 - 64 / math.pi**5 * short / long * series)
        return cls(b * h, b * h**3 / 12, h * b**3 / 12, torsion, shape="rectangle")

    @classmethod
    def circle(cls, radius: float | Expr) -> Section:
        """Return a solid circle.

        Args:
            radius: Radius, m.
        """
        r = _length("radius", radius)
        second = math.pi / 4 * r**4
        return cls(math.pi * r**2, second, second, 2 * second)

    @classmethod
    def tube(cls, radius: float | Expr, thickness: float | Expr) -> Section:
        """Return a circular tube.

        Args:
            radius: Outer radius, m.
            thickness: Thickness of the wall, m.
        """
        r, t = _length("radius", radius), _length("thickness", thickness)
        if not isinstance(r, Expr) and not isinstance(t, Expr) and t >= r:
            reject("thickness", thickness, f"less than the radius, {r:g} m")
        inner = r - t
        second = math.pi / 4 * (r**4 - inner**4)
        return cls(math.pi * (r**2 - inner**2), second, second, 2 * second)


def _length(argument: str, value: Any) -> Any:
    """Return a checked length, m: a positive number, or a UFL expression."""
    length = positive(argument, value, "m")
    if not isinstance(length, Expr) and not 1e-30 < length < 1e30:
        reject(argument, value, "a length from 1e-30 to 1e30 m")
    return length
