"""Forces and torques on frames and about or along the axes of joints.

User functions are called about four times per step, and up to 24 more times when the iteration
matrix is updated. Their derivatives are central differences, unless the function of a `JointLoad`
returns them; all other derivatives are exact.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, choice, function, instance, number, reject, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.columns import DISPLACEMENT, ROTATION, SPIN, VELOCITY
from dolfinx_mbd.kernels.rotations import exp_rotation, skew
from dolfinx_mbd.mechanism.expressions.functions import (
    JOINT_VARIABLES,
    expression,
    expressions,
)
from dolfinx_mbd.mechanism.expressions.laws import check_states
from dolfinx_mbd.mechanism.joints import MOTIONS, AxisMotion, FrameRef, checked_frame
from dolfinx_mbd.mechanism.load_protocol import Load, LoadInput, Port, input_unit
from dolfinx_mbd.mechanism.run_quantities import LOAD, Quantities

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.initial_poses import InitialPoses
    from dolfinx_mbd.mechanism.system import System

__all__ = [
    "FrameLoad",
    "FrameMotion",
    "JointCoordinate",
    "JointForce",
    "JointLoad",
    "check_coordinate",
    "force",
    "motion_derivatives",
    "slopes",
    "torque",
]

Array = NDArray[np.float64]


class FrameMotion(NamedTuple):
    """Motion of a frame in global components, an argument of the functions of frame loads.

    Attributes:
        position: Position of the frame's point, shape (3,), m.
        rotation: Axes of the frame as columns, shape (3, 3).
        velocity: Velocity of the frame's point, shape (3,), m/s.
        omega: Angular velocity, shape (3,), rad/s.

    Example:
        >>> def drag(t, motion: mbd.mechanism.FrameMotion):
        ...     return -3.0 * motion.velocity
    """

    position: Array
    rotation: Array
    velocity: Array
    omega: Array

    def __repr__(self) -> str:
        return short_repr(self)


class JointCoordinate(NamedTuple):
    """A rotation about a joint axis (rad, including full turns) or a displacement along it (m).

    Attributes:
        joint: Name of the joint.
        motion: `rotation` or `displacement`.

    Example:
        >>> angle = mbd.mechanism.JointCoordinate("hinge", "rotation")
    """

    joint: str
    motion: AxisMotion


def check_coordinate(argument: str, value: Any) -> None:
    """Raise an error if a value is neither a coordinate of a joint nor None."""
    if instance(argument, value, (JointCoordinate, type(None))) is not None:
        checked_name(f"{argument}.joint", value.joint)
        choice(f"{argument}.motion", value.motion, MOTIONS)


def slopes(
    function: Callable[[float, float], float], s: float, rate: float, step: float | None = None
) -> tuple[float, float]:
    """Return the derivatives of `function(s, rate)` by central differences.

    `step` is the step of s, by default 1e-6 times |s|, but at least 1e-8.
    """
    h, h_rate = step or 1e-6 * max(1e-2, abs(s)), 1e-6 * max(1.0, abs(rate))
    by_s = (function(s + h, rate) - function(s - h, rate)) / (2 * h)
    by_rate = (function(s, rate + h_rate) - function(s, rate - h_rate)) / (2 * h_rate)
    return by_s, by_rate


Value = ArrayLike | Callable[[float, FrameMotion], ArrayLike]
"""Three components, or a function of the time and the motion of a frame, which returns them."""


@dataclass(frozen=True, eq=False)
class FrameLoad(Load):
    """A force or a torque at a frame; `force` and `torque` create it.

    Attributes:
        name: Name in the system.
        frame: Frame at which the load acts, for example `rod.frame("left")`.
        value: Three components in N or N m, or a function `value(t, motion)` that returns them for
            the time (s) and the motion of the frame. The components may be expressions, for
            example ``("0", "50*sin(9*t)", "-3*vz")``; see `VectorFormula`.
        kind: `force` or `torque`.
        axes: `global` or `frame` (the moving frame): axes along which `value` has its components.

    Raises:
        InputError: An argument is invalid. If `value` is a function, its result is checked at each
            call.

    Example:
        >>> weight = mbd.mechanism.FrameLoad("weight", rod.frame("right"), (0, -9.81, 0))
    """

    port: ClassVar[Port] = "frame"  # on what the load acts
    run_quantities: ClassVar[Quantities] = LOAD
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
        assign(self, value=expressions(self.value))
        if callable(self.value):
            function(f"{label}: value", self.value, "value(t, motion)")
        else:
            vector(f"{label}: value", self.value)

    @property
    def location(self) -> str:
        """Frame at which the load acts, for tables."""
        body, frame = self.frame
        return f"{body}: {frame}"

    @property
    def ends(self) -> tuple[tuple[str, FrameRef], ...]:
        """Frame at which the load acts."""
        return (("frame", self.frame),)

    @property
    def exerts_moments(self) -> bool:
        """Whether the load is a torque."""
        return self.kind == "torque"

    @property
    def is_smooth(self) -> bool:
        """Whether the value is constant, so that it cannot jump."""
        return not callable(self.value)

    @property
    def mark(self) -> str:
        """Shape in pictures: an arrow."""
        return "arrow"

    def placed_in(self, poses: InitialPoses) -> FrameLoad:
        """Return the load; raise an error if its frame does not exist."""
        poses.system.frame_index(self.frame)
        return self

    def inputs(self) -> Iterator[LoadInput]:
        """Yield the three components of the value, which may be any finite numbers."""
        unit = "N" if self.kind == "force" else "N m"
        for k, x in enumerate("xyz"):
            yield LoadInput(f"{self.name}.{x}", "value", k, unit, any_number=True)

    def wrench(self, t: float, motion: FrameMotion) -> Array:
        """Return force and moment at the frame's point in global components, shape (6,)."""
        value = self.value(t, motion) if callable(self.value) else self.value
        value = vector(f"load {self.name!r}: value", value)
        if self.axes == "frame":
            value = motion.rotation @ value
        zero = np.zeros(3)
        return np.concatenate([value, zero] if self.kind == "force" else [zero, value])

    def derivatives(self, t: float, motion: FrameMotion, length: float) -> tuple[Array, Array]:
        """Return the derivatives with respect to pose and velocity of the frame, (6, 6) each.

        `length` (m) is the largest coordinate of a frame, for the steps of differences.
        """
        if not callable(self.value):
            D = np.zeros((6, 6))
            if self.axes == "frame":
                wrench = self.wrench(t, motion)
                D[:3, 3:], D[3:, 3:] = -skew(wrench[:3]), -skew(wrench[3:])
            return D, np.zeros((6, 6))
        derivative = motion_derivatives(lambda moved: self.wrench(t, moved), motion, length)
        return derivative[:, :6], derivative[:, 6:]  # by position and rotation, by their rates


def motion_derivatives(
    function: Callable[[FrameMotion], Array], motion: FrameMotion, length: float
) -> Array:
    """Return the derivatives (m, 12) of a function (m,) with respect to the motion of a frame.

    They are central differences for position, rotation, velocity and omega. The step for positions
    is 1e-6 times `length` (m), the largest coordinate of a frame in the mechanism.
    """
    speed = max(1.0, float(np.abs(motion.velocity).max()), float(np.abs(motion.omega).max()))
    steps = 1e-6 * np.repeat([length, 1.0, speed], [3, 3, 6])
    columns = [
        (function(_displaced_motion(motion, step)) - function(_displaced_motion(motion, -step)))
        / (2 * step.max())
        for step in np.diag(steps)
    ]
    return np.stack(columns, axis=1)


def _displaced_motion(motion: FrameMotion, step: Array) -> FrameMotion:
    """Return a motion after increments (12,) of position, rotation, velocity and omega."""
    position, rotation, velocity, omega = motion
    return FrameMotion(
        position + step[DISPLACEMENT],
        exp_rotation(step[ROTATION]) @ rotation,
        velocity + step[VELOCITY],
        omega + step[SPIN],
    )


def force(
    name: str, frame: FrameRef, value: Value, axes: Literal["global", "frame"] = "global"
) -> FrameLoad:
    """Return a force at a frame; see `FrameLoad` for the arguments.

    >>> thrust = mbd.force("thrust", rod.frame("right"), (0, 50.0, 0), axes="frame")
    >>> drag = mbd.force("drag", rod.frame("right"), lambda t, motion: -3.0 * motion.velocity)
    """
    return FrameLoad(name, frame, value, "force", axes)


def torque(
    name: str, frame: FrameRef, value: Value, axes: Literal["global", "frame"] = "global"
) -> FrameLoad:
    """Return a torque at a frame; see `FrameLoad` for the arguments.

    >>> swing = mbd.torque("swing", rod.frame("left"), lambda t, motion: (0, 0, np.sin(10 * t)))
    """
    return FrameLoad(name, frame, value, "torque", axes)


class JointForce(Load):
    """Base class of torques about and forces along the z axes of joints.

    The arguments of `record` and `contact_states` are the coordinate on which the load acts (rad or
    m), its rate and the states (m,).
    """

    port: ClassVar[Port] = "joint"  # on what the load acts
    joint: str
    motion: AxisMotion | None

    @property
    def location(self) -> str:
        """Joint on which the load acts, for tables."""
        return f"joint {self.joint}"

    @property
    def along(self) -> AxisMotion | None:
        """Motion of the joint on which the load acts."""
        return self.motion

    @property
    def loaded_coordinate(self) -> JointCoordinate:
        """Joint coordinate on which the load acts."""
        return JointCoordinate(self.joint, self.motion or "rotation")

    @property
    def coordinate(self) -> JointCoordinate:
        """Joint coordinate on which the load depends, by default that on which it acts."""
        return self.loaded_coordinate

    def acting_frames(self, system: System) -> tuple[FrameRef, ...]:
        """Return the frames of the joint."""
        joint = system.joint(self.joint)
        return joint.first, joint.second

    @abstractmethod
    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Return the torque (N m) or force (N) on the second body."""

    @abstractmethod
    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the magnitude with respect to the coordinate and its rate."""

    def evaluate(self, t: float, s: float, rate: float, states: Array) -> Array:
        """Return the magnitude and the rates of the states, shape (1 + m,)."""
        return np.array([self.magnitude(t, s, rate)])

    def slopes(self, t: float, s: float, rate: float, states: Array) -> Array:
        """Return the derivatives of `evaluate` by s, its rate and the states, (1 + m, 2 + m)."""
        return np.array([self.derivatives(t, s, rate)])

    def energy(self, s: float) -> float:
        """Return the stored energy, J."""
        return 0.0

    def record(self, *arguments: Any) -> dict[str, ArrayLike]:
        """Return coordinate, rate, energy and states."""
        s, rate, states = arguments
        motion = str(self.motion)
        values: dict[str, ArrayLike] = {motion: s, f"{motion}_rate": rate, "energy": self.energy(s)}
        return values | ({"states": states.copy()} if len(states) else {})

    def _input_unit(self, field: str) -> str:
        """Return the unit of a number of the load that can be an input."""
        return input_unit(field, self.motion)


@dataclass(frozen=True, eq=False)
class JointLoad(JointForce):
    """A torque about or a force along the z axis of a joint.

    The load acts on the second body of the joint, and the opposite load on the first.

    Attributes:
        name: Name in the system.
        joint: Name of the joint.
        motion: `rotation` for a torque in N m or `displacement` for a force in N.
        value: A number, or a function `value(t, s, rate)` of time (s), a joint coordinate s (rad or
            m) and its rate. If it is an object with a method `derivatives(t, s, rate)`, this method
            returns the derivatives with respect to s and to the rate, instead of differences. The
            function may be an expression such as ``"2 - 0.1*rate + sin(9*t)"``.
        of: The coordinate s; by default the coordinate of the loaded joint.
        states: States x of the load at the start, shape (m,), for example the integral of a
            controller; by default it has none. A load with states has a function
            `value(t, s, rate, x)` that returns the value and the rates of the states, (m,); see
            `StateFormula` for expressions. The states are integrated together with the mechanism.

    Raises:
        InputError: An argument is invalid. If `value` is a function, its result is checked at each
            call.

    Example:
        >>> motor = mbd.JointLoad("motor", "hinge", "rotation", lambda t, s, rate: 2 - 0.1 * rate)
        >>> motor.magnitude(t=0.0, s=0.0, rate=5.0)
        1.5

        A motor whose torque follows its command of 2 N m with a time constant of 20 ms:

        >>> def lag(t, s, rate, torque):
        ...     return torque[0], (2.0 - torque) / 0.02
        >>> motor = mbd.JointLoad("motor", "hinge", "rotation", lag, states=[0.0])
    """

    run_quantities: ClassVar[Quantities] = LOAD
    name: str
    joint: str
    motion: AxisMotion
    value: float | str | Callable[..., Any]
    of: JointCoordinate | None = None
    states: ArrayLike = ()

    def __post_init__(self) -> None:
        label = f"load {checked_name('name', self.name)!r}"
        checked_name(f"{label}: joint", self.joint)
        choice(f"{label}: motion", self.motion, MOTIONS)
        check_coordinate(f"{label}: of", self.of)
        states = array(
            f"{label}: states", self.states, (None,), expected="a list of finite numbers"
        )
        assign(self, states=states, value=expression(self.value, JOINT_VARIABLES))
        check_states(label, self.value, states)
        if callable(self.value) or states.size:
            call = "value(t, s, rate, states)" if states.size else "value(t, s, rate)"
            function(f"{label}: value", self.value, call)
        else:
            number(f"{label}: value", self.value)

    @property
    def initial_states(self) -> Array:
        """Values of the states at the start, shape (m,)."""
        return np.asarray(self.states)

    @property
    def kind(self) -> str:
        """``torque`` or ``force``."""
        return "torque" if self.motion == "rotation" else "force"

    @property
    def is_smooth(self) -> bool:
        """Whether the value is constant, so that it cannot jump."""
        return not callable(self.value)

    @property
    def mark(self) -> str:
        """Shape in pictures: an arrow."""
        return "arrow"

    def placed_in(self, poses: InitialPoses) -> JointLoad:
        """Return the load; raise an error if its joints do not exist or do not move."""
        for joint, motion in (self.loaded_coordinate, self.coordinate):
            poses.system.joint(joint).free_motion(motion, f"load {self.name!r}")
        return self

    def inputs(self) -> Iterator[LoadInput]:
        """Yield the only input, which sets the value to any finite number."""
        unit = self._input_unit("value")
        yield LoadInput(self.name, "value", unit=unit, any_number=True)

    @property
    def coordinate(self) -> JointCoordinate:
        """Joint coordinate on which the function depends."""
        return self.of if self.of is not None else JointCoordinate(self.joint, self.motion)

    def evaluate(self, t: float, s: float, rate: float, states: Array) -> Array:
        """Return the force (N) or torque (N m) and the rates of the states, shape (1 + m,)."""
        result = self.value(t, s, rate, states)  # type: ignore[operator, call-arg]
        label = f"load {self.name!r}"
        if not isinstance(result, (tuple, list)) or len(result) != 2:
            reject(f"{label}: result of value", result, "(value, rates of states)", InputTypeError)
        rates = vector(f"{label}: rates of the states", np.atleast_1d(result[1]), len(states))
        return np.concatenate([[number(f"{label}: value", result[0])], rates])

    def slopes(self, t: float, s: float, rate: float, states: Array) -> Array:
        """Return the derivatives of `evaluate`, shape (1 + m, 2 + m).

        The columns belong to s, its rate and the states.
        """
        point = np.array([s, rate, *states])
        steps = 1e-6 * np.maximum([1e-2, *np.ones(len(point) - 1)], np.abs(point))

        def result(x: Array) -> Array:
            return self.evaluate(t, float(x[0]), float(x[1]), x[2:])

        columns = [result(point + step) - result(point - step) for step in np.diag(steps)]
        return np.array(columns).T / (2 * steps)

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Return the force (N) or torque (N m) on the second body, for states as at the start."""
        if len(self.states):  # type: ignore[arg-type]
            return float(self.evaluate(t, s, rate, self.initial_states)[0])
        value = self.value(t, s, rate) if callable(self.value) else self.value
        if isinstance(value, float) and math.isfinite(value):  # the fast and usual case
            return value
        return number(f"load {self.name!r}: value", value)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the magnitude with respect to the coordinate and its rate."""
        if not callable(self.value):
            return 0.0, 0.0
        derivatives = getattr(self.value, "derivatives", None)
        if derivatives is not None:
            by_s, by_rate = derivatives(t, s, rate)
            label = f"load {self.name!r}: value.derivatives"
            return number(label, by_s), number(label, by_rate)
        return slopes(lambda x, w: self.magnitude(t, x, w), s, rate)
