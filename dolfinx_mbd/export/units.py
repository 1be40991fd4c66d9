"""Systems of units, and a reduced body in other units than SI.

A body is converted to other units with the elastic coordinates η kept as they are, number for
number, so that a result η(t) of the other program is one for this package too.  With the factors L
of length, m of mass and T of time from SI, hence ψ' = L ψ,

    S' = m L S,    H' = m L² H,    M' = m L² M,    C' = m L² / T C,    K' = m L² / T² K,

displacements of interfaces and points scale with L and rotations do not; the geometric stiffness of
a unit spin (a term ω² ηᵀKη of an energy) scales with m L², that of a unit force with L, and that of
a unit moment not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from dolfinx_mbd.body import ReducedBody, Stiffening
from dolfinx_mbd.checks import choice, name, number

__all__ = ["SI", "UNITS", "Units", "as_units", "scaled"]


@dataclass(frozen=True)
class Units:
    """A consistent system of units; angles are in radians.

    Attributes:
        name: Its name, ``<length>-<mass>-<time>``.
        length: What a metre is in its unit of length.
        mass: What a kilogram is in its unit of mass.
        time: What a second is in its unit of time.
        force_name: What its unit of force is called.
    """

    name: str
    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0
    force_name: str = "N"

    def __post_init__(self) -> None:
        name("name", self.name)
        name("force_name", self.force_name)
        for what in ("length", "mass", "time"):
            label = f"units {self.name!r}: {what}"
            number(label, getattr(self, what), low=1e-15, high=1e15)

    @property
    def force(self) -> float:
        """What a newton is in the unit of force."""
        return self.mass * self.length / self.time**2

    @property
    def moment(self) -> float:
        """What a newton metre is in the unit of moment, and a joule in that of energy."""
        return self.force * self.length

    @property
    def inertia(self) -> float:
        """What a kg m² is in the unit of moments of inertia."""
        return self.mass * self.length**2

    @property
    def statement(self) -> str:
        """The units in words, for a comment in a file."""
        length, mass, time = self.name.split("-") if self.name.count("-") == 2 else (self.name,) * 3
        return (
            f"{self.name}: length {length}, mass {mass}, time {time}, force {self.force_name}, rad"
        )


SI = Units("m-kg-s")

#: Systems of units by name.
UNITS: Mapping[str, Units] = MappingProxyType(
    {
        units.name: units
        for units in (
            SI,
            Units("mm-t-s", length=1e3, mass=1e-3),
            Units("mm-kg-ms", length=1e3, time=1e3, force_name="kN"),
        )
    }
)


def as_units(units: Units | str) -> Units:
    """The system of units of a name.

    Raises:
        ValueError: If there is none of this name; the message lists those known.
    """
    if isinstance(units, Units):
        return units
    return UNITS[choice("units", units, UNITS)]


def scaled(body: ReducedBody, units: Units | str) -> ReducedBody:
    """The body with its numbers in other units than SI; η stay as they are (see above).

    Only for a writer: everywhere else a :class:`ReducedBody` is in SI.  Stress modes and
    distributed loads are left out, as no format here holds them.
    """
    units = as_units(units)
    if (units.length, units.mass, units.time) == (1.0, 1.0, 1.0):
        return body
    L, J = units.length, units.inertia
    six = np.repeat([L, 1.0], 3)
    cases = body.stiffening
    if cases is not None:
        cases = Stiffening(J * cases.spin, six[:, None, None] * cases.interfaces)
    skin = body.skin
    if skin is not None:
        skin = replace(skin, points=L * skin.points, modes=L * skin.modes)
    return body.replace(
        total_mass=units.mass * body.total_mass,
        first_moments=units.mass * L * body.first_moments,
        second_moments=J * body.second_moments,
        mass=J * body.mass,
        damping=J / units.time * body.damping,
        stiffness=units.moment * body.stiffness,
        interfaces=tuple(
            replace(i, point=L * i.point, motion=six[:, None] * i.motion) for i in body.interfaces
        ),
        points=tuple(replace(p, position=L * p.position, modes=L * p.modes) for p in body.points),
        loads=(),
        skin=skin,
        stiffening=cases,
        stress=None,
        modes=tuple(replace(m, frequency=m.frequency / units.time) for m in body.modes),
        left_out=tuple(replace(m, frequency=m.frequency / units.time) for m in body.left_out),
    )
