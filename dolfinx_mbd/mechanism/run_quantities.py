"""Declarations of the quantities that the parts of a mechanism have over a run.

Each class of bodies, joints, drivers and loads has an attribute `run_quantities` with the names and
units of its quantities. Histories, tables, datasets, outputs, comparisons and files follow from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from dolfinx_mbd.kernels import columns

__all__ = [
    "BODY",
    "ELASTIC",
    "ENERGIES",
    "FORCES",
    "JOINT",
    "LOAD",
    "MOMENTA",
    "Quantities",
    "RunQuantity",
    "StatePlace",
]


class StatePlace(NamedTuple):
    """Columns of a quantity in the coordinates q, velocities v or rates a of its body."""

    array: Literal["q", "v", "a"]
    columns: slice


class RunQuantity(NamedTuple):
    """Unit and components of a quantity of a part.

    Attributes:
        unit: Unit, such as ``N m``; "1" for a pure number, "SI" if the entries have several units.
        components: Names of the components of a vector, one letter each; by default they are
            numbered from 1.
        counts: What numbered components belong to, in the names of coordinates of datasets.
        place: Columns of the state of a body that the quantity consists of, if it does.

    Example:
        >>> from dolfinx_mbd.mechanism.run_quantities import RunQuantity
        >>> class Motor:  # reports a current
        ...     run_quantities = {"current": RunQuantity("A")}
    """

    unit: str
    components: str = ""
    counts: str = "mode"
    place: StatePlace | None = None

    def component(self) -> RunQuantity:
        """Return the declaration of one component."""
        return RunQuantity(self.unit)


Quantities = Mapping[str, RunQuantity]
"""Quantities of a part by name."""

ELASTIC: Quantities = {
    "eta": RunQuantity("SI", place=StatePlace("q", columns.ETA)),
    "eta_rate": RunQuantity("SI/s", place=StatePlace("v", columns.ELASTIC)),
    "eta_acceleration": RunQuantity("SI/s²", place=StatePlace("a", columns.ELASTIC)),
}
MOMENTA: Quantities = {
    "momentum": RunQuantity("kg m/s", "xyz"),
    "angular_momentum": RunQuantity("kg m²/s", "xyz"),
}
ENERGIES: Quantities = {
    "kinetic_energy": RunQuantity("J"),
    "elastic_energy": RunQuantity("J"),
    "gravity_energy": RunQuantity("J"),
}

BODY: Quantities = {
    "position": RunQuantity("m", "xyz", place=StatePlace("q", columns.ORIGIN)),
    "rotation": RunQuantity("1", "wxyz", place=StatePlace("q", columns.QUATERNION)),
    "velocity": RunQuantity("m/s", "xyz", place=StatePlace("v", columns.ORIGIN)),
    "omega": RunQuantity("rad/s", "xyz", place=StatePlace("v", columns.OMEGA)),
    "acceleration": RunQuantity("m/s²", "xyz", place=StatePlace("a", columns.ORIGIN)),
    "alpha": RunQuantity("rad/s²", "xyz", place=StatePlace("a", columns.OMEGA)),
    **ELASTIC,
    **MOMENTA,
    **ENERGIES,
}
"""Quantities of a body with a floating frame."""

FORCES: Quantities = {"force": RunQuantity("N", "xyz"), "moment": RunQuantity("N m", "xyz")}
"""Force and moment at a frame."""

_ROTATION: Quantities = {
    "rotation": RunQuantity("rad", "xyz"),
    "rotation_rate": RunQuantity("rad/s", "xyz"),
}
_DISPLACEMENT: Quantities = {
    "displacement": RunQuantity("m", "xyz"),
    "displacement_rate": RunQuantity("m/s", "xyz"),
}

JOINT: Quantities = {
    **FORCES,
    **_ROTATION,
    **_DISPLACEMENT,
    "violation": RunQuantity("m or rad"),
    "power": RunQuantity("W"),
    "work": RunQuantity("J"),
}
"""Quantities of a joint or a driver."""

LOAD: Quantities = {
    **FORCES,
    "power": RunQuantity("W"),
    "work": RunQuantity("J"),
    "energy": RunQuantity("J"),
    "first_force": RunQuantity("N", "xyz"),
    "first_moment": RunQuantity("N m", "xyz"),
    **_DISPLACEMENT,
    **_ROTATION,
    "states": RunQuantity("SI", counts="state"),
}
"""Quantities that every load may have; a class of loads adds those of its own."""
