"""Joints and drivers: a mask per kind of joint over the six relative motions of two frames.

A joint holds the motions in its mask at zero (:mod:`dolfinx_mbd.multibody.joint_kernels`); z is
its axis.  A driver is the rotation about z with the first frame turned by the prescribed angle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "JOINT_KINDS",
    "ROW_NAMES",
    "Driver",
    "FrameRef",
    "Joint",
    "constant_speed",
    "cylindrical",
    "fixed",
    "prismatic",
    "revolute",
    "spherical",
]

Array = NDArray[np.float64]

#: Which of the six relative motions (x, y, z, about x, about y, about z) each kind of joint holds.
JOINT_KINDS: dict[str, tuple[int, ...]] = {
    "fixed": (0, 1, 2, 3, 4, 5),
    "revolute": (0, 1, 2, 3, 4),
    "spherical": (0, 1, 2),
    "cylindrical": (0, 1, 3, 4),
    "prismatic": (0, 1, 3, 4, 5),
}

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


@dataclass(frozen=True)
class Joint:
    """A joint between two frames.

    Attributes:
        name: Its name in the system and in the results.
        kind: A key of :data:`JOINT_KINDS`.
        first: Frame whose axes the joint's displacements, forces and moments are given in.
        second: The other frame.

    Raises:
        ValueError: If the kind is unknown or both frames belong to one body.
    """

    name: str
    kind: str
    first: FrameRef
    second: FrameRef

    def __post_init__(self) -> None:
        if self.kind not in JOINT_KINDS:
            raise ValueError(
                f"joint {self.name!r}: unknown kind {self.kind!r}; use one of {sorted(JOINT_KINDS)}"
            )
        for which in ("first", "second"):
            ref = getattr(self, which)
            if not (isinstance(ref, tuple) and len(ref) == 2):
                raise TypeError(
                    f"joint {self.name!r}: {which} must be a frame of a body, "
                    f"body.frame('name'); got {ref!r}"
                )
            object.__setattr__(self, which, FrameRef(*ref))
        if self.first.body == self.second.body:
            raise ValueError(
                f"joint {self.name!r} connects body {self.first.body!r} with itself; "
                "give frames of two bodies (or of the ground)"
            )

    @property
    def rows(self) -> tuple[int, ...]:
        """The relative motions that it holds."""
        return JOINT_KINDS[self.kind]


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


@dataclass(frozen=True)
class Driver:
    """A prescribed rotation about the axis of a revolute or cylindrical joint.

    Attributes:
        name: Its name in the system and in the results.
        joint: Name of the driven joint.
        motion: ``motion(t)`` gives angle (rad), rate (rad/s) and acceleration (rad/s²); rate and
            acceleration must be derivatives of the angle, since the start is solved from them.
    """

    name: str
    joint: str
    motion: Callable[[float], tuple[float, float, float]]

    def __post_init__(self) -> None:
        if not callable(self.motion):
            raise TypeError(
                f"driver {self.name!r}: motion must be a function of time, for instance "
                f"constant_speed(10.0) (rad/s); got {self.motion!r}"
            )

    def at(self, t: float) -> tuple[float, float, float]:
        """Angle, rate and acceleration at a time.

        Raises:
            ValueError: If the function does not give three finite numbers.
        """
        value = self.motion(t)
        try:
            angle, rate, acceleration = (float(x) for x in value)
        except (TypeError, ValueError):
            angle = rate = acceleration = math.nan
        if not math.isfinite(angle + rate + acceleration):
            raise ValueError(
                f"driver {self.name!r}: motion({t:g}) must give angle (rad), rate (rad/s) and "
                f"acceleration (rad/s²), three finite numbers; got {value!r}"
            )
        return angle, rate, acceleration


def constant_speed(
    speed: float, angle: float = 0.0
) -> Callable[[float], tuple[float, float, float]]:
    """Motion of a driver at constant speed (rad/s) from an initial angle (rad)."""

    def motion(t: float) -> tuple[float, float, float]:
        return angle + speed * t, speed, 0.0

    return motion
