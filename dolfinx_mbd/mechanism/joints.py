"""Joints and drivers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import choice, function, instance, integer, number, reject
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.kernels.columns import ABOUT_X, ABOUT_Y, ABOUT_Z, ALONG_X, ALONG_Y, ALONG_Z
from dolfinx_mbd.mechanism.expressions.functions import ExpressionMotion, Formula
from dolfinx_mbd.mechanism.joint_relations import Distance, JointRelation
from dolfinx_mbd.mechanism.run_quantities import JOINT, Quantities

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.force_elements import FramePair, PairElement

__all__ = [
    "JOINT_KINDS",
    "MOTIONS",
    "SLIDING",
    "TURNING",
    "AxisMotion",
    "ConstantSpeed",
    "Driver",
    "FrameRef",
    "Joint",
    "JointClearance",
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

AxisMotion = Literal["rotation", "displacement"]
"""Motions about and along the axis of a joint."""
MOTIONS: tuple[AxisMotion, AxisMotion] = ("rotation", "displacement")

JOINT_KINDS: dict[str, tuple[int, ...]] = {
    "fixed": (ALONG_X, ALONG_Y, ALONG_Z, ABOUT_X, ABOUT_Y, ABOUT_Z),
    "revolute": (ALONG_X, ALONG_Y, ALONG_Z, ABOUT_X, ABOUT_Y),
    "spherical": (ALONG_X, ALONG_Y, ALONG_Z),
    "cylindrical": (ALONG_X, ALONG_Y, ABOUT_X, ABOUT_Y),
    "prismatic": (ALONG_X, ALONG_Y, ABOUT_X, ABOUT_Y, ABOUT_Z),
    "universal": (ALONG_X, ALONG_Y, ALONG_Z, ABOUT_Z),
    "planar": (ALONG_Z, ABOUT_X, ABOUT_Y),
    "point_on_line": (ALONG_X, ALONG_Y),
    "point_on_plane": (ALONG_Z,),
    "distance": (0,),  # the number of its only constraint
}
"""Motions that each kind of joint constrains: 0, 1, 2 along x, y, z; 3, 4, 5 about x, y, z."""

TURNING = ("revolute", "cylindrical", "planar")
"""Kinds of joints with a rotation about z that is a single coordinate."""
SLIDING = ("prismatic", "cylindrical", "point_on_line")
"""Kinds of joints with a displacement along z that is a single coordinate."""
MARKS = {
    "revolute": "pin",
    "cylindrical": "pin",
    "spherical": "ball",
    "prismatic": "rail",
    "point_on_line": "rail",
}
"""Shapes of joints without a relation in pictures; the others are blocks."""


class FrameRef(NamedTuple):
    """Names of a body and one of its frames, as returned by `body.frame("name")`."""

    body: str
    frame: str


def checked_frame(argument: str, value: Any) -> FrameRef:
    """Return a reference to a frame; `value` may also be a tuple of two names."""
    if not (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(entry, str) for entry in value)
    ):
        reject(argument, value, "a frame of a body, body.frame('name')", InputTypeError)
    return FrameRef(*value)


class JointClearance(ABC):
    """Base class of clearances: an element replaces some constraints of a joint.

    `Clearance` and `GuideClearance` are contacts. A subclass may also be an oil film.
    """

    @property
    def size(self) -> tuple[float, float, float]:
        """Radius, length and radial clearance of the bearing, m; 0 if unknown."""
        return 0.0, 0.0, 0.0

    @abstractmethod
    def rows(self, joint: Joint) -> tuple[int, ...]:
        """Return the motions that the joint constrains in spite of its clearance.

        A joint whose kind does not permit this clearance raises an `InputError`.
        """

    @abstractmethod
    def element(self, name: str, joint: Joint) -> PairElement:
        """Return the force element between the frames of the joint."""


@dataclass(frozen=True)
class Joint:
    """A joint between two frames; `revolute`, `prismatic` and similar functions create it.

    A joint constrains some of the six motions of its second frame relative to its first frame. Its
    axis is the z axis of the first frame; in revolute, cylindrical and planar joints the z axes of
    the frames may be opposite.

    Joint forces and moments act on the second body, in components of the first frame. There are two
    exceptions. The moment of a universal joint is normal to the plane of its pins and is reported
    as moment z. The force of a distance joint acts along the line from the first point to the
    second; it is reported as force x and is negative in tension.

    Joints that constrain other functions of the relative motion have a `relation`, for example
    those of `screw` and `rolling_disc`.

    Attributes:
        name: Name in the system and in the results.
        kind: A key of `JOINT_KINDS`, or the kind of the relation.
        first: Reference frame of the joint, for example `ground.frame("bearing")`.
        second: Frame of another body.
        length: Length of a distance joint, m; by default the initial distance between the points.
        clearance: Clearance, `Clearance` or `GuideClearance`; by default the joint is ideal. With a
            clearance, a contact replaces some constraints. Its name is the name of the joint with
            the suffix ``contact``, and the forces of the joint include it.
        rate: Initial rate of the rotation of a revolute, cylindrical or planar joint, rad/s, or of
            the displacement of a prismatic or point-on-line joint, m/s. By default it follows from
            other initial velocities.
        relation: Constraints that are not among the six motions; None for the kinds of
            `JOINT_KINDS`.

    Raises:
        InputError: The kind is unknown, both frames belong to one body, a length is not positive,
            a joint that is not a distance joint has a length, a joint without a single rate has a
            rate, or a clearance does not fit.

    Example:
        >>> mbd.mechanism.Joint("pin", "spherical", ground.frame("bearing"), rod.frame("left")).rows
        (0, 1, 2)
    """

    run_quantities: ClassVar[Quantities] = JOINT
    name: str
    kind: str
    first: FrameRef
    second: FrameRef
    length: float | None = None
    clearance: JointClearance | None = None
    rate: float | None = None
    relation: JointRelation | None = None

    def __post_init__(self) -> None:
        label = f"joint {checked_name('name', self.name)!r}"
        instance(f"{label}: relation", self.relation, (JointRelation, type(None)))
        choice(f"{label}: kind", self.kind, [self.relation.kind] if self.relation else JOINT_KINDS)
        for end in ("first", "second"):
            assign(self, **{end: checked_frame(f"{label}: {end}", getattr(self, end))})
        if self.first.body == self.second.body:
            raise InputError(
                f"{label} connects body {self.first.body!r} with itself; specify frames of two "
                "bodies (or of the ground)"
            )
        if self.length is not None:
            if self.kind != "distance":
                reject(f"{label}: length", self.length, f"None for a {self.kind} joint")
            number(f"{label}: length", self.length, positive=True, unit="m")
        if self.rate is not None:
            if not self.motions:
                reject(f"{label}: rate", self.rate, f"None for a {self.kind} joint")
            number(f"{label}: rate", self.rate)
        if self.clearance is not None:
            hint = "for example Clearance(radial=5e-5, law=ContactLaw(1e9))"
            instance(f"{label}: clearance", self.clearance, JointClearance, hint)
            self.clearance.rows(self)

    @property
    def constraint(self) -> JointRelation | None:
        """Constraints that are not among the six relative motions."""
        return Distance(self.length) if self.kind == Distance.kind else self.relation

    @property
    def rows(self) -> tuple[int, ...]:
        """Relative motions that the joint constrains, see `JOINT_KINDS`, and numbers of others."""
        if self.constraint is not None:
            return tuple(sorted((*self.constraint.held, *self.constraint.rows)))
        return JOINT_KINDS[self.kind] if self.clearance is None else self.clearance.rows(self)

    @property
    def motions(self) -> tuple[AxisMotion, ...]:
        """Free motions about and along z that are single coordinates."""
        if self.constraint is not None:
            return self.constraint.motions
        kinds = zip(MOTIONS, (TURNING, SLIDING), strict=True)
        return tuple(motion for motion, names in kinds if self.kind in names)

    @property
    def reports_multipliers(self) -> bool:
        """Whether the negative multipliers are the force and the moment in the results."""
        related = self.constraint is None or self.constraint.reports_multipliers
        return related and self.clearance is None

    @property
    def mark(self) -> str:
        """Shape in pictures: pin, ball, rod, rail or block."""
        return self.constraint.mark if self.constraint else MARKS.get(self.kind, "block")

    def placed(self, pair: FramePair) -> Joint:
        """Return the joint with the quantities that follow from the initial poses of its frames."""
        if self.constraint is None:
            return self
        return replace(self, **self.constraint.placed(f"{self.kind} joint {self.name!r}", pair))

    @property
    def contact_name(self) -> str:
        """Name of the element that replaces constraints of a joint with clearance."""
        return f"{self.name} contact"

    def row_name(self, motion: int) -> str:
        """Return the name of a relative motion, 0 to 5, for messages."""
        motion = integer("motion", motion, low=0, high=5)
        if self.constraint is not None and motion in self.constraint.rows:
            return self.constraint.rows[motion]
        if self.kind == "universal" and motion == ABOUT_Z:
            return "angle between its pins"
        return (
            f"{'rotation about' if motion >= ABOUT_X else 'displacement along'} {'xyz'[motion % 3]}"
        )

    @property
    def default_motion(self) -> AxisMotion:
        """The only free motion about or along the axis; the rotation if both or none are free."""
        return self.motions[0] if self.motions else "rotation"

    def free_motion(self, motion: AxisMotion | None, what: str) -> AxisMotion:
        """Return a free motion about or along the axis, by default `default_motion`.

        If the joint does not have the motion, the message of the `InputError` begins with `what`.
        """
        checked_name("what", what)
        motion = choice(f"{what}: motion", motion, MOTIONS, none=True) or self.default_motion
        if motion not in self.motions:
            kinds = TURNING if motion == "rotation" else SLIDING
            raise InputError(
                f"{what}: {self.kind} joint {self.name!r} has no {motion} as one coordinate; its "
                f"kind must be one of {kinds}",
                argument="motion",
                value=motion,
            )
        return motion


def fixed(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """Return a joint that constrains all six relative motions; see `Joint` for the arguments.

    >>> joint = mbd.fixed("weld", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "fixed", first, second)


def revolute(
    name: str,
    first: FrameRef,
    second: FrameRef,
    clearance: JointClearance | None = None,
    *,
    rate: float | None = None,
) -> Joint:
    """Return a joint with a free rotation about z; see `Joint` for the arguments.

    >>> joint = mbd.revolute("hinge", ground.frame("bearing"), rod.frame("left"), rate=2.0)
    """
    return Joint(name, "revolute", first, second, clearance=clearance, rate=rate)


def spherical(
    name: str, first: FrameRef, second: FrameRef, clearance: JointClearance | None = None
) -> Joint:
    """Return a joint with three free rotations; see `Joint` for the arguments.

    >>> joint = mbd.spherical("ball", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "spherical", first, second, clearance=clearance)


def cylindrical(
    name: str,
    first: FrameRef,
    second: FrameRef,
    clearance: JointClearance | None = None,
    *,
    rate: float | None = None,
) -> Joint:
    """Return a joint with free rotation about z and displacement along z; see `Joint`.

    >>> joint = mbd.cylindrical("sleeve", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "cylindrical", first, second, clearance=clearance, rate=rate)


def prismatic(
    name: str,
    first: FrameRef,
    second: FrameRef,
    clearance: JointClearance | None = None,
    *,
    rate: float | None = None,
) -> Joint:
    """Return a joint with a free displacement along z; see `Joint` for the arguments.

    >>> joint = mbd.prismatic("guide", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "prismatic", first, second, clearance=clearance, rate=rate)


def universal(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """Return a joint with two perpendicular pins: along y of the first frame and x of the second.

    The shafts are along the z axes; the frames coincide if the shafts are aligned. See `Joint` for
    the arguments.

    >>> joint = mbd.universal("cross", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "universal", first, second)


def planar(name: str, first: FrameRef, second: FrameRef, *, rate: float | None = None) -> Joint:
    """Return a joint with free displacements along x and y and rotation about z; see `Joint`.

    >>> joint = mbd.planar("table", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "planar", first, second, rate=rate)


def point_on_line(
    name: str, first: FrameRef, second: FrameRef, *, rate: float | None = None
) -> Joint:
    """Return a joint that keeps the second point on the z axis of the first frame; see `Joint`.

    >>> joint = mbd.point_on_line("rail", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "point_on_line", first, second, rate=rate)


def point_on_plane(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """Return a joint that keeps the second point in the first frame's x-y plane; see `Joint`.

    >>> joint = mbd.point_on_plane("floor", ground.frame("bearing"), rod.frame("left"))
    """
    return Joint(name, "point_on_plane", first, second)


def distance(name: str, first: FrameRef, second: FrameRef, length: float | None = None) -> Joint:
    """Return a massless rod between the points of two frames; see `Joint` for the arguments.

    >>> joint = mbd.distance("tie", ground.frame("bearing"), rod.frame("right"), 1.0)
    """
    return Joint(name, "distance", first, second, length)


@dataclass(frozen=True)
class Driver:
    """A prescribed rotation about, or displacement along, the axis of a joint.

    Attributes:
        name: Name in the system and in the results.
        joint: Name of the joint.
        motion: Function of time t (s) that returns the angle (rad) or the displacement (m), its
            rate and its acceleration. `constant_speed`, `differentiated` and `integrated` create
            such functions; a simulation checks that the derivatives match the position. It may
            also be an expression of the position such as ``"0.3*sin(7*t)"``, whose derivatives are
            exact.
        along: `rotation` or `displacement`; by default the only free motion of the joint, or the
            rotation of a cylindrical joint.
        offset: Value added to the angle or displacement. By default it is the initial coordinate of
            the joint, so that a motion that begins at zero does not move the bodies at the start.
            With an offset of 0, `motion` returns the coordinate of the joint itself.

    Raises:
        InputError: An argument is invalid; `System` checks the joint.

    Example:
        >>> drive = mbd.Driver("drive", "hinge", mbd.constant_speed(10.0))
        >>> drive.at(0.5)
        (5.0, 10.0, 0.0)
    """

    run_quantities: ClassVar[Quantities] = JOINT
    name: str
    joint: str
    motion: str | Callable[[float], tuple[float, float, float]]
    along: AxisMotion | None = None
    offset: float | None = None

    def __post_init__(self) -> None:
        label = f"driver {checked_name('name', self.name)!r}"
        checked_name(f"{label}: joint", self.joint)
        if isinstance(self.motion, str):
            assign(self, motion=ExpressionMotion(Formula(self.motion)))
        function(f"{label}: motion", self.motion, "motion(t), for example constant_speed(10.0)")
        choice(f"{label}: along", self.along, MOTIONS, none=True)
        if self.offset is not None:
            number(f"{label}: offset", self.offset)

    def at(self, t: float) -> tuple[float, float, float]:
        """Check and return position (with offset), rate and acceleration at time t (s)."""
        value = self.motion(number("t", t))  # type: ignore[operator]
        try:
            angle, rate, acceleration = (float(x) for x in value)
        except (TypeError, ValueError):
            angle = rate = acceleration = math.nan
        if not math.isfinite(angle + rate + acceleration):
            raise InputError(
                f"driver {self.name!r}: motion({t:g}) must return angle (rad) or displacement (m), "
                f"rate and acceleration, three finite numbers; got {value!r}. differentiated(...) "
                "or integrated(...) create such a function from the position or the rate alone",
                argument="motion",
                value=value,
            )
        return angle + (self.offset or 0.0), rate, acceleration


@dataclass(frozen=True)
class ConstantSpeed:
    """The motion of a driver with a constant speed; `constant_speed` creates it.

    Attributes:
        speed: Speed, rad/s or m/s.
        angle: Angle or displacement at t = 0, rad or m.

    Example:
        >>> mbd.constant_speed(10.0).speed
        10.0
    """

    speed: float
    angle: float = 0.0

    def __call__(self, t: float) -> tuple[float, float, float]:
        """Return the position, rate and acceleration at time t (s)."""
        return self.angle + self.speed * t, self.speed, 0.0


def constant_speed(
    speed: float, angle: float = 0.0
) -> Callable[[float], tuple[float, float, float]]:
    """Return the motion of a driver with a constant speed.

    Args:
        speed: Speed, rad/s or m/s.
        angle: Angle or displacement at t = 0, rad or m.

    Returns:
        Function of time that returns position, rate and acceleration.

    Example:
        >>> mbd.constant_speed(10.0, angle=1.0)(0.5)
        (6.0, 10.0, 0.0)
    """
    return ConstantSpeed(number("speed", speed), number("angle", angle))
