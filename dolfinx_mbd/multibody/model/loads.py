"""Forces and torques as functions of time and state, on frames of bodies and along joints.

A load gives wrenches on frames and their derivatives to the frames' poses and velocities.  What the
user gives is a function; its derivative is taken by central differences of that function alone
(relative error about 1e-9), the mechanics around it are exact.

Such a function is called about four times a step, in Python, and up to 24 times more when the
iteration matrix is made anew; a step with one is not accepted before it was called at its end.
What that costs is measured in ``benchmarks/engine.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import choice, instance, number, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.kernels.rotations import exp_rotation, skew
from dolfinx_mbd.multibody.model.joints import MOTIONS, FrameRef, checked_frame

__all__ = [
    "FrameLoad",
    "FrameMotion",
    "JointCoordinate",
    "JointLoad",
    "check_coordinate",
    "force",
    "torque",
]

Array = NDArray[np.float64]


class FrameMotion(NamedTuple):
    """Motion of a frame, as a load function sees it; global components."""

    position: Array
    rotation: Array
    velocity: Array
    omega: Array


class JointCoordinate(NamedTuple):
    """Rotation about (rad, counted over turns) or displacement along (m) a joint's axis."""

    joint: str
    motion: Literal["rotation", "displacement"]


def check_coordinate(argument: str, value: Any) -> None:
    """Raise an error if a value is not a coordinate of a joint, or None."""
    if instance(argument, value, (JointCoordinate, type(None))) is not None:
        checked_name(f"{argument}.joint", value.joint)
        choice(f"{argument}.motion", value.motion, MOTIONS)


Value = ArrayLike | Callable[[float, FrameMotion], ArrayLike]


@dataclass(frozen=True, eq=False)
class FrameLoad:
    """A force or a torque at a frame.

    Attributes:
        name: Its name in the system.
        frame: Where it acts.
        value: Three components in N or N m, or a function ``value(t, motion)`` that returns them.
        kind: ``force`` or ``torque``.
        axes: ``global``, or ``frame``: components along the frame's axes, which follow its
            rotation.

    Raises:
        InputError: An argument is unusable; the value of a function is checked when it is called.
    """

    name: str
    frame: FrameRef
    value: Value
    kind: Literal["force", "torque"] = "force"
    axes: Literal["global", "frame"] = "global"

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        checked_frame(f"{label}: frame", self.frame)
        choice(f"{label}: kind", self.kind, ("force", "torque"))
        choice(f"{label}: axes", self.axes, ("global", "frame"))
        if not callable(self.value):
            vector(f"{label}: value", self.value)

    def wrench(self, t: float, motion: FrameMotion) -> Array:
        """Force and moment at the frame's point, global components, shape (6,)."""
        value: Array = vector(
            f"load {self.name!r}: value",
            self.value(t, motion) if callable(self.value) else self.value,
        )
        if self.axes == "frame":
            value = motion.rotation @ value
        zero = np.zeros(3)
        return np.concatenate([value, zero] if self.kind == "force" else [zero, value])

    def derivatives(self, t: float, motion: FrameMotion, length: float) -> tuple[Array, Array]:
        """Derivatives of the wrench to the pose and to the velocity of the frame, (6, 6) each."""
        D, E = np.zeros((6, 6)), np.zeros((6, 6))
        if not callable(self.value):
            if self.axes == "frame":
                wrench = self.wrench(t, motion)
                D[:3, 3:] = -skew(wrench[:3])
                D[3:, 3:] = -skew(wrench[3:])
            return D, E
        speed = max(1.0, float(np.abs(motion.velocity).max()), float(np.abs(motion.omega).max()))
        for k in range(3):
            unit = np.eye(3)[k]
            for column, step, move in (
                (k, 1e-6 * length, lambda m, h: m._replace(position=m.position + h * unit)),
                (
                    k + 3,
                    1e-6,
                    lambda m, h: m._replace(rotation=exp_rotation(h * unit) @ m.rotation),
                ),
            ):
                pair = [self.wrench(t, move(motion, sign * step)) for sign in (1.0, -1.0)]
                D[:, column] = (pair[0] - pair[1]) / (2 * step)
            for column, key in ((k, "velocity"), (k + 3, "omega")):
                step = 1e-6 * speed
                pair = [
                    self.wrench(t, motion._replace(**{key: getattr(motion, key) + s * step * unit}))
                    for s in (1.0, -1.0)
                ]
                E[:, column] = (pair[0] - pair[1]) / (2 * step)
        return D, E


def force(
    name: str, frame: FrameRef, value: Value, axes: Literal["global", "frame"] = "global"
) -> FrameLoad:
    """A force (N) at a frame: three components or ``value(t, motion)``."""
    return FrameLoad(name, frame, value, "force", axes)


def torque(
    name: str, frame: FrameRef, value: Value, axes: Literal["global", "frame"] = "global"
) -> FrameLoad:
    """A torque (N m) at a frame: three components or ``value(t, motion)``."""
    return FrameLoad(name, frame, value, "torque", axes)


@dataclass(frozen=True, eq=False)
class JointLoad:
    """A torque about or a force along the axis (z) of a joint, on its second body, opposite on its
    first.

    Attributes:
        name: Its name in the system.
        joint: Name of the joint along which it acts.
        motion: ``rotation``: a torque in N m; ``displacement``: a force in N.
        value: A number, or ``value(t, s, rate)`` of a joint coordinate s (rad or m) and its rate.
        of: The coordinate that the function sees; None: the joint's own.

    Raises:
        InputError: An argument is unusable; the value of a function is checked when it is called.
    """

    name: str
    joint: str
    motion: Literal["rotation", "displacement"]
    value: float | Callable[[float, float, float], float]
    of: JointCoordinate | None = None

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        checked_name(f"{label}: joint", self.joint)
        choice(f"{label}: motion", self.motion, MOTIONS)
        check_coordinate(f"{label}: of", self.of)
        if not callable(self.value):
            number(f"{label}: value", self.value)

    @property
    def coordinate(self) -> JointCoordinate:
        """The coordinate that the load's function sees."""
        return self.of if self.of is not None else JointCoordinate(self.joint, self.motion)

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Force (N) or torque (N m)."""
        value = self.value(t, s, rate) if callable(self.value) else self.value
        return number(f"load {self.name!r}: value", value)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Derivatives of the magnitude to the coordinate and to its rate."""
        if not callable(self.value):
            return 0.0, 0.0
        h, k = 1e-6 * max(1e-2, abs(s)), 1e-6 * max(1.0, abs(rate))
        by_s = (self.magnitude(t, s + h, rate) - self.magnitude(t, s - h, rate)) / (2 * h)
        by_rate = (self.magnitude(t, s, rate + k) - self.magnitude(t, s, rate - k)) / (2 * k)
        return by_s, by_rate
