"""Joints and drivers: a mask per kind of joint over the six relative motions of two frames.

A joint holds the motions in its mask at zero (:mod:`dolfinx_mbd.kernels.joints`); z is
its axis.  A driver prescribes the rotation about z (the first frame is turned by the angle) or the
displacement along z.

Axes z that the bodies are placed with in opposite directions stay so in revolute, cylindrical and
planar joints, whose z is that of the first frame.

Forces and moments of a joint act on its second body and are given in the joint's own frame.  That
is the first frame, except that

- a universal joint's one moment, along the normal of the plane of its two pins, is its moment z;
  with both shafts in line that is the first frame's z;
- a distance's one force, along the line from the first point to the second, is its force x: it is
  negative where the points are held together (tension) and positive where they are held apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice, function, integer, number, refuse
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError, InputTypeError

__all__ = [
    "JOINT_KINDS",
    "MOTIONS",
    "ROW_NAMES",
    "SLIDING",
    "TURNING",
    "Axis",
    "Driver",
    "FrameRef",
    "Joint",
    "checked_frame",
    "constant_speed",
    "cylindrical",
    "distance",
    "fixed",
    "planar",
    "point_on_line",
    "point_on_plane",
    "prismatic",
    "revolute",
    "spherical",
    "universal",
]

Array = NDArray[np.float64]

Axis = Literal["rotation", "displacement"]

#: Motions along the axis of a joint.
MOTIONS = ("rotation", "displacement")

#: Which of the six relative motions (x, y, z, about x, about y, about z) each kind of joint holds.
JOINT_KINDS: dict[str, tuple[int, ...]] = {
    "fixed": (0, 1, 2, 3, 4, 5),
    "revolute": (0, 1, 2, 3, 4),
    "spherical": (0, 1, 2),
    "cylindrical": (0, 1, 3, 4),
    "prismatic": (0, 1, 3, 4, 5),
    "universal": (0, 1, 2, 5),
    "planar": (2, 3, 4),
    "point_on_line": (0, 1),
    "point_on_plane": (2,),
    "distance": (0,),
}

#: Kinds of joint whose rotation about z, or displacement along z, is one coordinate.
TURNING = ("revolute", "cylindrical", "planar")
SLIDING = ("prismatic", "cylindrical", "point_on_line")

#: Names of the six rows, for messages.
ROW_NAMES = (
    "displacement along x",
    "displacement along y",
    "displacement along z",
    "rotation about x",
    "rotation about y",
    "rotation about z",
)


class FrameRef(NamedTuple):
    """A frame of a body, by name."""

    body: str
    frame: str


def checked_frame(argument: str, value: Any) -> FrameRef:
    """Return a reference to a frame.

    Raises:
        InputTypeError: The value is not a tuple of two names.
    """
    if (
        not isinstance(value, tuple)
        or len(value) != 2
        or not all(isinstance(entry, str) for entry in value)
    ):
        refuse(argument, value, "a frame of a body, body.frame('name')", InputTypeError)
    return FrameRef(*value)


@dataclass(frozen=True)
class Joint:
    """A joint between two frames.

    Attributes:
        name: Its name in the system and in the results.
        kind: A key of :data:`JOINT_KINDS`.
        first: Frame whose axes the joint's displacements, forces and moments are given in.
        second: The other frame.
        length: Of a distance, m; None: as the bodies are placed.

    Raises:
        InputError: An argument is unusable: the kind is unknown, both frames belong to one body, or
            a length is not positive or given to a joint that has none.
    """

    name: str
    kind: str
    first: FrameRef
    second: FrameRef
    length: float | None = None

    def __post_init__(self) -> None:
        label = f"joint {checked_name('name', self.name)!r}"
        choice(f"{label}: kind", self.kind, JOINT_KINDS)
        for which in ("first", "second"):
            frame = checked_frame(f"{label}: {which}", getattr(self, which))
            object.__setattr__(self, which, frame)
        if self.first.body == self.second.body:
            raise InputError(
                f"{label} connects body {self.first.body!r} with itself; give frames of two bodies "
                "(or of the ground)"
            )
        if self.length is None:
            return
        if self.kind != "distance":
            refuse(f"{label}: length", self.length, f"None, because a {self.kind} joint has none")
        number(f"{label}: length", self.length, positive=True, unit="m")

    @property
    def rows(self) -> tuple[int, ...]:
        """The relative motions that it holds."""
        return JOINT_KINDS[self.kind]

    def row_name(self, motion: int) -> str:
        """Return the name of a motion, 0 to 5, for messages."""
        motion = integer("motion", motion, low=0, high=5)
        if self.kind == "distance":
            return "length"
        if self.kind == "universal" and motion == 5:
            return "angle between its pins"
        return ROW_NAMES[motion]

    @property
    def axis_by_default(self) -> Axis:
        """The motion along the axis that is meant where none is named: the only one, or the
        rotation."""
        return "displacement" if self.kind in ("prismatic", "point_on_line") else "rotation"

    def axis(self, motion: Axis | None, what: str) -> Axis:
        """Return the motion along the joint's axis that something acts on; None: the default.

        Raises:
            InputError: The joint has no such motion; the message begins with ``what``.
        """
        checked_name("what", what)
        motion = choice(f"{what}: motion", motion, MOTIONS, none=True) or self.axis_by_default
        able = TURNING if motion == "rotation" else SLIDING
        if self.kind not in able:
            raise InputError(
                f"{what}: {self.kind} joint {self.name!r} has no {motion} along one axis; it needs "
                f"one of {able}",
                argument="motion",
                value=motion,
            )
        return motion


def fixed(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint that holds all six relative motions."""
    return Joint(name, "fixed", first, second)


def revolute(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint that leaves the rotation about z free."""
    return Joint(name, "revolute", first, second)


def spherical(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint that leaves the three rotations free."""
    return Joint(name, "spherical", first, second)


def cylindrical(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint that leaves rotation about z and displacement along z free."""
    return Joint(name, "cylindrical", first, second)


def prismatic(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint that leaves the displacement along z free."""
    return Joint(name, "prismatic", first, second)


def universal(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint of two crossed pins: y of the first frame and x of the second, held at right angles.

    The shafts are z of both frames; where they are in line the frames coincide.
    """
    return Joint(name, "universal", first, second)


def planar(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """A joint that leaves displacement in the first frame's x, y and the rotation about z free."""
    return Joint(name, "planar", first, second)


def point_on_line(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """The second frame's point stays on the first frame's z axis."""
    return Joint(name, "point_on_line", first, second)


def point_on_plane(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """The second frame's point stays in the plane x, y of the first frame."""
    return Joint(name, "point_on_plane", first, second)


def distance(name: str, first: FrameRef, second: FrameRef, length: float | None = None) -> Joint:
    """A massless rod between the points of two frames; its length None: as they are placed."""
    return Joint(name, "distance", first, second, length)


@dataclass(frozen=True)
class Driver:
    """A prescribed rotation about or displacement along the axis of a joint.

    Attributes:
        name: Its name in the system and in the results.
        joint: Name of the driven joint.
        motion: ``motion(t)`` gives angle (rad), rate (rad/s) and acceleration (rad/s²), or the same
            of a displacement in m; rate and acceleration must be derivatives of the first, which
            is checked at some times of each run.  Of a position or a speed alone they are made by
            :func:`~dolfinx_mbd.multibody.model.motions.differentiated` and
            :func:`~dolfinx_mbd.multibody.model.motions.integrated`.
        along: ``rotation`` or ``displacement``; None: the joint's only one, and the rotation of a
            cylindrical joint.
        offset: Added to the motion's angle or displacement. By default it is what the joint has
            where the bodies are placed, so that the motion counts from there and a motion that
            begins at zero leaves the bodies where they are. With ``offset=0.0`` the motion is that
            of the joint's own coordinate, and the start turns the bodies to its first value.
    """

    name: str
    joint: str
    motion: Callable[[float], tuple[float, float, float]]
    along: Axis | None = None
    offset: float | None = None

    def __post_init__(self) -> None:
        label = f"driver {checked_name('name', self.name)!r}"
        checked_name(f"{label}: joint", self.joint)
        function(f"{label}: motion", self.motion, "motion(t), for example constant_speed(10.0)")
        choice(f"{label}: along", self.along, MOTIONS, none=True)
        if self.offset is not None:
            number(f"{label}: offset", self.offset)

    def at(self, t: float) -> tuple[float, float, float]:
        """Return angle or displacement, its rate and acceleration at a time.

        Raises:
            InputError: The function does not return three finite numbers.
        """
        value = self.motion(number("t", t))
        try:
            angle, rate, acceleration = (float(x) for x in value)
        except (TypeError, ValueError):
            angle = rate = acceleration = math.nan
        if not math.isfinite(angle + rate + acceleration):
            raise InputError(
                f"driver {self.name!r}: motion({t:g}) must give angle (rad), rate (rad/s) and "
                f"acceleration (rad/s²), three finite numbers; got {value!r}. A function that "
                "gives one number is made to by differentiated(...), or integrated(...) if it is "
                "the rate"
            )
        return angle + (self.offset or 0.0), rate, acceleration


def constant_speed(
    speed: float, angle: float = 0.0
) -> Callable[[float], tuple[float, float, float]]:
    """Motion of a driver at constant speed (rad/s or m/s) from an initial angle (rad or m)."""
    speed, angle = number("speed", speed), number("angle", angle)

    def motion(t: float) -> tuple[float, float, float]:
        return angle + speed * t, speed, 0.0

    return motion
