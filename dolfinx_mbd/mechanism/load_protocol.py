"""Base class of all loads: what a load declares to the analyses of a mechanism.

Assembly, results, inputs, pictures and derivatives of runs use these declarations and do not depend
on the class of a load, so that a new load is one class.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.mechanism.joints import AxisMotion, FrameRef
from dolfinx_mbd.mechanism.run_quantities import LOAD, Quantities

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.initial_poses import InitialPoses
    from dolfinx_mbd.mechanism.system import System

__all__ = ["Load", "LoadInput", "Pair", "Port", "input_unit"]

Array = NDArray[np.float64]
Port = Literal["frame", "pair", "joint", "pattern"]
"""A frame, two frames, the axis of a joint, or a distributed load of a body."""

# Units of the numbers of loads, for displacements and for rotations
_UNITS = {
    "value": ("N", "N m"),
    "stiffness": ("N/m", "N m/rad"),
    "damping": ("N s/m", "N m s/rad"),
    "viscous": ("N s/m", "N m s/rad"),
    "limit": ("N", "N m"),
    "static": ("N", "N m"),
    "rate": ("m/s", "rad/s"),
    "stribeck": ("m/s", "rad/s"),
    "length": ("m", "rad"),
    "free": ("m", "rad"),
    "lower": ("m", "rad"),
    "upper": ("m", "rad"),
}


def input_unit(field: str, motion: AxisMotion | None) -> str:
    """Return the unit of a number of a load that acts on a motion, or "" if it is unknown."""
    for_displacement, for_rotation = _UNITS.get(field, ("", ""))
    return for_rotation if motion == "rotation" else for_displacement


class LoadInput(NamedTuple):
    """A number of a load that can be an input of a simulation, see `analyses.signals`.

    Attributes:
        name: Name of the input.
        field: Argument of the load.
        component: Index in an argument that is a vector; None for a number.
        unit: Unit, or "" if it is unknown.
        any_number: Whether every finite number is valid; otherwise the class checks each new one.
    """

    name: str
    field: str
    component: int | None = None
    unit: str = ""
    any_number: bool = False


class Pair(Protocol):
    """Two frames: a joint or a force element."""

    @property
    def first(self) -> FrameRef:
        """First frame."""

    @property
    def second(self) -> FrameRef:
        """Second frame."""


class Load(ABC):
    """Base class of loads.

    The arguments of methods depend on the port: the motion of a frame; a `FramePair`, see
    `PairElement`; coordinate, rate and states of a joint, see `JointForce`.
    """

    name: str
    port: ClassVar[Port]  # on what the load acts
    run_quantities: ClassVar[Quantities] = LOAD
    has_contacts: ClassVar[bool] = False  # whether it acts only while gaps are closed
    has_film: ClassVar[bool] = False  # whether its gap must not close in an iteration
    halves_steps: ClassVar[bool] = False  # whether a step that fails is repeated in halves
    stores_energy: ClassVar[bool] = False  # whether its energy is part of that of a run
    is_elastic: ClassVar[bool] = False
    """Whether the forces without velocities are minus the gradient of the energy."""

    @property
    def kind(self) -> str:
        """Kind of the load for tables and messages."""
        return "force"

    @property
    @abstractmethod
    def location(self) -> str:
        """Place at which the load acts, for tables."""

    @property
    def initial_states(self) -> Array:
        """Values of the states of the load at the start, shape (m,)."""
        return np.zeros(0)

    @property
    def ends(self) -> tuple[tuple[str, FrameRef], ...]:
        """Names of the arguments with the frames on which the load acts, and these frames."""
        return ()

    @property
    def sources(self) -> tuple[FrameRef, ...]:
        """Further frames on whose motion the load depends."""
        return ()

    @property
    def along(self) -> AxisMotion | None:
        """Motion of a joint, `rotation` or `displacement`, on which the load acts."""
        return None

    @property
    def loaded_body(self) -> str | None:
        """Name of the body on which a load without frames acts."""
        return None

    @property
    def exerts_moments(self) -> bool:
        """Whether the load may exert a moment on its frames."""
        return True

    @property
    def acts_on_modes(self) -> bool:
        """Whether the load acts on elastic coordinates other than by its frames."""
        return False

    @property
    def is_smooth(self) -> bool:
        """Whether the load cannot jump, because it contains no user-defined function."""
        return False

    @property
    def has_content(self) -> bool:
        """Whether it depends on the oil in its gap before a step; see `FilmElement`."""
        return False

    @property
    def mark(self) -> str:
        """Shape in pictures, a name in `SHAPES` of `plotting/scene/tubes.py`; by default none."""
        return ""

    @abstractmethod
    def placed_in(self, poses: InitialPoses) -> Load:
        """Check the references of the load; return it with unspecified lengths and angles set."""

    def acting_frames(self, system: System) -> tuple[FrameRef, ...]:
        """Return the frames on which the load acts."""
        return tuple(FrameRef(*ref) for _, ref in self.ends)

    def inputs(self) -> Iterator[LoadInput]:
        """Yield the numbers of the load that can be inputs of a simulation."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, int | float) and not isinstance(value, bool):
                unit = self._input_unit(field.name)
                yield LoadInput(f"{self.name}.{field.name}", field.name, unit=unit)

    def _input_unit(self, field: str) -> str:
        """Return the unit of an argument that can be an input, or "" if it is unknown."""
        return ""

    def record(self, *arguments: Any) -> dict[str, ArrayLike]:
        """Return motion, energy and other quantities of the load at one time by name."""
        return {}

    def surface_power(self, wrenches: Array, *arguments: Any) -> float:
        """Return the power of its wrenches on surfaces that move relative to their frames, W."""
        return 0.0

    def contact_states(self, *arguments: Any) -> Array:
        """Return gap, gap rate and normal force of each contact point or end stop, (points, 3)."""
        return np.zeros((0, 3))
