"""Systems of units, and the conversion of reduced bodies to them.

A conversion does not change the values of the elastic coordinates η. Results η(t) of the other
program therefore also apply to the body in SI units. With the factors L of length, m of mass and T
of time relative to SI units, the modes become ψ' = L ψ, and

    S' = m L S,    H' = m L² H,    M' = m L² M,    C' = m L² / T C,    K' = m L² / T² K.

The declarations of the arrays in `dolfinx_mbd.body` contain the units of all parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.tree import checked, map_arrays
from dolfinx_mbd.checks import LENGTHS, MASSES, TIMES, name, number, unit_system


@dataclass(frozen=True)
class Units:
    """A consistent system of units; angles are in radians.

    Attributes:
        name: Name of the system, `<length>-<mass>-<time>`.
        length: Value of one metre in the unit of length.
        mass: Value of one kilogram in the unit of mass.
        time: Value of one second in the unit of time.
        force_name: Name of the unit of force.

    Raises:
        InputError: A factor is not a number from 1e-15 to 1e15.

    Example:
        >>> Units("mm-t-s", length=1e3, mass=1e-3).force
        1.0
    """

    name: str
    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0
    force_name: str = "N"

    def __post_init__(self) -> None:
        name("name", self.name)
        name("force_name", self.force_name)
        for factor in ("length", "mass", "time"):
            number(factor, getattr(self, factor), low=1e-15, high=1e15)

    @property
    def force(self) -> float:
        """Value of one newton in the unit of force."""
        return self.mass * self.length / self.time**2

    @property
    def moment(self) -> float:
        """Value of one newton metre in the unit of moment, or one joule in the unit of energy."""
        return self.force * self.length

    @property
    def inertia(self) -> float:
        """Value of one kg m² in the unit of moments of inertia."""
        return self.mass * self.length**2

    @property
    def statement(self) -> str:
        """Names of the units, for a comment in a file."""
        length, mass, time = self.name.split("-") if self.name.count("-") == 2 else (self.name,) * 3
        force = self.force_name
        return f"{self.name}: length {length}, mass {mass}, time {time}, force {force}, rad"


_FORCES = {
    "N": 1.0,
    "kN": 1e3,
    "MN": 1e6,
    "mN": 1e-3,
    "uN": 1e-6,
    "dyn": 1e-5,
    "lbf": 4.4482216152605,
}
"""Names of units of force, N."""


def as_units(units: Units | str) -> Units:
    """Return a system of units, given directly or by its name `LENGTH-MASS-TIME`.

    The units are those of meshes and decks that `dolfinx_mbd.read_mesh` reads.
    """
    if isinstance(units, Units):
        return units
    known = unit_system("units", units)
    length, mass, time = known.name.split("-")
    force = known.stress * known.length**2
    names = (key for key, value in _FORCES.items() if math.isclose(value, force, rel_tol=1e-9))
    return Units(
        known.name,
        length=1.0 / LENGTHS[length],
        mass=1.0 / MASSES[mass],
        time=1.0 / TIMES[time],
        force_name=next(names, f"{mass} {length}/{time}^2"),
    )


SI = Units("m-kg-s")

UNITS: Mapping[str, Units] = MappingProxyType(
    {name: as_units(name) for name in (SI.name, "mm-t-s", "mm-kg-ms")}
)
"""Frequent systems of units by name; `export` accepts all names `LENGTH-MASS-TIME`."""


def scaled(body: ReducedBody, units: Units | str) -> ReducedBody:
    """Return a body with all its parts, converted from SI to other units."""
    units = as_units(units)
    scales = np.array([units.length, units.mass, units.time])
    if (scales == 1.0).all():
        return body
    return checked(map_arrays(lambda array, v: array.factor(scales, np.shape(v)) * v, body))
