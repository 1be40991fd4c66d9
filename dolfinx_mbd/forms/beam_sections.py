"""Cross-sections of beams: area, second moments, torsion constant; uniform or tapered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.checks import choice, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import scalar

__all__ = ["Section"]

SERIES = 21
"""Last odd term of the series of a rectangle's torsion constant: the rest is below 1e-6 of it."""


@dataclass(frozen=True, eq=False)
class Section:
    """A cross-section; y and z are measured from its centroid, which is also its shear centre.

    Every value may be a number or a scalar UFL expression, such as a function of the coordinates
    of the mesh: a tapered beam.

    Attributes:
        area: A, m².
        Iyy: ∫z² dA, m⁴: bending in the plane of x and z.
        Izz: ∫y² dA, m⁴: bending in the plane of x and y.
        torsion: Torsion constant J of Saint-Venant, m⁴: the torque is G J φ'. Of a circle it is the
            polar moment, of anything else less.
        Iyz: ∫yz dA, m⁴; zero if y and z are principal axes.
        shape: What to draw: a ``rectangle`` or an ``ellipse`` with these radii of gyration.

    Raises:
        ValueError: A value is out of its range.
    """

    area: Any
    Iyy: Any
    Izz: Any
    torsion: Any
    Iyz: Any = 0.0
    shape: Literal["rectangle", "ellipse"] = "ellipse"

    def __post_init__(self) -> None:
        for name in ("area", "Iyy", "Izz", "torsion", "Iyz"):
            value = scalar(name, getattr(self, name))
            if name != "Iyz":
                _check_positive(name, value)
            object.__setattr__(self, name, value)
        numbers = (self.Iyy, self.Izz, self.Iyz)
        if not any(isinstance(v, Expr) for v in numbers) and not (
            abs(self.Iyz) < math.sqrt(self.Iyy) * math.sqrt(self.Izz)
        ):
            raise InputError(
                f"the second moments of a section need Iyz² < Iyy Izz; got {self.Iyz:g}, "
                f"{self.Iyy:g} and {self.Izz:g} m⁴"
            )
        choice("shape", self.shape, ("rectangle", "ellipse"))

    @property
    def polar(self) -> Any:
        """Polar moment ∫(y² + z²) dA, m⁴: the inertia of the twist over ρ."""
        return self.Iyy + self.Izz

    @classmethod
    def rectangle(cls, width: Any, height: Any) -> Section:
        """A solid rectangle, `width` along y and `height` along z, m.

        The torsion constant is a b³ (1/3 − 64 b/(π⁵ a) Σ tanh(nπa/2b)/n⁵), n = 1, 3, ..., with the
        longer side a.
        """
        b, h = (_length(n, v) for n, v in (("width", width), ("height", height)))
        expression = isinstance(b, Expr) or isinstance(h, Expr)
        long = ufl.max_value(b, h) if expression else max(b, h)
        short = ufl.min_value(b, h) if expression else min(b, h)
        tanh = ufl.tanh if expression else math.tanh
        series = sum(tanh(n * math.pi / 2 * long / short) / n**5 for n in range(1, SERIES + 1, 2))
        torsion = long * short**3 * (1 / 3 - 64 / math.pi**5 * short / long * series)
        return cls(b * h, b * h**3 / 12, h * b**3 / 12, torsion, shape="rectangle")

    @classmethod
    def circle(cls, radius: Any) -> Section:
        """A solid circle, radius in m."""
        r = _length("radius", radius)
        second = math.pi / 4 * r**4
        return cls(math.pi * r**2, second, second, 2 * second)

    @classmethod
    def tube(cls, radius: Any, thickness: Any) -> Section:
        """A circular tube, outer radius and wall thickness in m."""
        r, t = _length("radius", radius), _length("thickness", thickness)
        if not isinstance(r, Expr) and not isinstance(t, Expr) and t >= r:
            raise InputError(f"the wall of a tube, {t:g} m, is not below its radius, {r:g} m")
        inner = r - t
        second = math.pi / 4 * (r**4 - inner**4)
        return cls(math.pi * (r**2 - inner**2), second, second, 2 * second)


def _length(name: str, value: Any) -> Any:
    length = scalar(name, value)
    _check_positive(name, length)
    if not isinstance(length, Expr) and not 1e-30 < length < 1e30:
        refuse(name, value, "a length in m")
    return length


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, Expr) and not value > 0:
        refuse(name, value, "positive")
