"""Springs, dampers and friction: force elements between two frames and along the axes of joints.

An element between two frames gives the wrenches on both and their derivatives to poses and
velocities; one along a joint is a number over the joint's coordinate and rate, as a
`JointLoad` is.  Derivatives are exact; those of a law that the user gives are central differences
of that law alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice, function, number
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.joints import MOTIONS, Axis, FrameRef, checked_frame
from dolfinx_mbd.multibody.model.loads import JointCoordinate

__all__ = [
    "FramePair",
    "JointFriction",
    "JointSpring",
    "PairElement",
    "SpringDamper",
    "checked_ends",
]

Array = NDArray[np.float64]
Law = Callable[[float, float], float]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


class FramePair(NamedTuple):
    """Poses and velocities (velocity, angular velocity) of two frames; global components."""

    p1: Array
    Q1: Array
    u1: Array
    p2: Array
    Q2: Array
    u2: Array


class PairElement(ABC):
    """What the equations need of an element between two frames."""

    name: str
    first: FrameRef
    second: FrameRef

    @abstractmethod
    def placed(self, pair: FramePair) -> PairElement:
        """The element with what was left to be measured taken from the bodies as placed."""

    @abstractmethod
    def wrenches(self, pair: FramePair) -> Array:
        """Forces and moments on both frames at their points, global components, shape (12,)."""

    @abstractmethod
    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Derivatives of the wrenches to both poses (increments) and velocities, (12, 12) each."""

    @abstractmethod
    def energy(self, pair: FramePair) -> float:
        """What the element stores, J; dampers store nothing."""


@dataclass(frozen=True, eq=False)
class SpringDamper(PairElement):
    """A spring and a damper on the line between two points.

    Attributes:
        name: Its name in the system.
        first: Frame at one end.
        second: Frame at the other.
        stiffness: N/m.
        damping: N s/m.
        free_length: Length without force, m; None: as the bodies are placed.
        law: Instead of stiffness and damping: ``law(length, rate)``, the tension in N (positive
            where it pulls the points together) over the length (m) and its rate (m/s).

    Raises:
        InputError: An argument is unusable, or law and stiffness or damping are given.
    """

    name: str
    first: FrameRef
    second: FrameRef
    stiffness: float = 0.0
    damping: float = 0.0
    free_length: float | None = None
    law: Law | None = None

    def __post_init__(self) -> None:
        checked_ends(self)
        checked_law(self)
        if self.free_length is not None:
            number(f"load {self.name!r}: free_length", self.free_length, low=0.0, unit="m")

    def placed(self, pair: FramePair) -> SpringDamper:
        if self.free_length is not None:
            return self
        return replace(self, free_length=float(np.linalg.norm(pair.p2 - pair.p1)))

    def _line(self, pair: FramePair) -> tuple[float, Array, float]:
        """Length, direction from the first point to the second, rate of the length."""
        d = pair.p2 - pair.p1
        length = float(np.linalg.norm(d))
        if length == 0.0:
            raise InputError(
                f"spring {self.name!r}: its ends meet, so that its force has no direction; attach "
                "it elsewhere or use a bushing"
            )
        n = np.asarray(d / length, dtype=float)
        return length, n, float(n @ (pair.u2[:3] - pair.u1[:3]))

    def tension(self, length: float, rate: float) -> float:
        """Force with which the element pulls its ends together, N."""
        if self.law is not None:
            return number(f"load {self.name!r}: value of the law", self.law(length, rate))
        return self.stiffness * (length - (self.free_length or 0.0)) + self.damping * rate

    def _slopes(self, length: float, rate: float) -> tuple[float, float]:
        if self.law is None:
            return self.stiffness, self.damping
        return law_slopes(self.tension, length, rate, 1e-6 * length)

    def wrenches(self, pair: FramePair) -> Array:
        length, n, rate = self._line(pair)
        out = np.zeros(12)
        out[:3] = self.tension(length, rate) * n
        out[6:9] = -out[:3]
        return out

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        length, n, rate = self._line(pair)
        by_length, by_rate = self._slopes(length, rate)
        along = np.outer(n, n)
        across = (np.eye(3) - along) / length
        turn = across @ (pair.u2[:3] - pair.u1[:3])  # derivative of the rate to the ends
        by_d = by_length * along + self.tension(length, rate) * across
        by_d += by_rate * np.outer(n, turn)
        D, E = np.zeros((12, 12)), np.zeros((12, 12))
        for matrix, block in ((D, by_d), (E, by_rate * along)):
            matrix[:3, :3] = matrix[6:9, 6:9] = -block
            matrix[:3, 6:9] = matrix[6:9, :3] = block
        return D, E

    def energy(self, pair: FramePair) -> float:
        length, free = self._line(pair)[0], self.free_length or 0.0
        if self.law is None:
            return 0.5 * self.stiffness * (length - free) ** 2
        return law_energy(self.tension, free, length)


@dataclass(frozen=True, eq=False)
class JointSpring:
    """A spring and a damper about or along the axis (z) of a joint.

    Attributes:
        name: Its name in the system.
        joint: Name of the joint.
        stiffness: N m/rad or N/m.
        damping: N m s/rad or N s/m.
        free: Rotation (rad) or displacement (m) of the joint without force; None: as the bodies are
            placed.
        law: Instead of stiffness and damping: ``law(s, rate)``, the torque (N m) or force (N)
            against the motion, over s, the rotation or displacement from the free one, and its
            rate.
        motion: ``rotation`` or ``displacement``; None: the joint's only one, and the rotation of a
            cylindrical joint.

    Raises:
        InputError: An argument is unusable, or law and stiffness or damping are given.
    """

    name: str
    joint: str
    stiffness: float = 0.0
    damping: float = 0.0
    free: float | None = None
    law: Law | None = None
    motion: Axis | None = None

    def __post_init__(self) -> None:
        label = checked_along(self)
        checked_law(self)
        if self.free is not None:
            number(f"{label}: free", self.free)

    @property
    def coordinate(self) -> JointCoordinate:
        """The coordinate that it acts on."""
        return JointCoordinate(self.joint, self.motion or "rotation")

    def placed(self, motion: Axis, s: float) -> JointSpring:
        """The element with what was left to be measured taken from the joint as placed."""
        return replace(self, motion=motion, free=s if self.free is None else self.free)

    def _against(self, s: float, rate: float) -> float:
        if self.law is not None:
            return number(f"load {self.name!r}: value of the law", self.law(s, rate))
        return self.stiffness * s + self.damping * rate

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Torque (N m) or force (N) on the second body."""
        return -self._against(s - (self.free or 0.0), rate)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Derivatives of the magnitude to the coordinate and to its rate."""
        if self.law is None:
            return -self.stiffness, -self.damping
        s -= self.free or 0.0
        by_s, by_rate = law_slopes(self._against, s, rate, 1e-6 * max(1e-2, abs(s)))
        return -by_s, -by_rate

    def energy(self, s: float) -> float:
        """What the spring stores, J."""
        s -= self.free or 0.0
        return 0.5 * self.stiffness * s * s if self.law is None else law_energy(self._against, 0, s)


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Dry friction about or along the axis (z) of a joint, regularized, with viscous friction.

    On the second body acts −(F_c + (F_s − F_c) exp(−(w/w_s)²)) tanh(w/w₀) − c w of the rate w, on
    the first the opposite.  F_c is given: it does not follow the joint's reactions, which an
    index-3 integrator has only together with the step.  Nothing sticks: below F_c the joint creeps
    at about w₀ times force over F_c.  The step should resolve the time in which the rate changes
    by w₀.

    Attributes:
        name: Its name in the system.
        joint: Name of the joint.
        limit: Sliding friction F_c, N m or N.
        rate: w₀, at which tanh(1) = 76 % of it act, rad/s or m/s; small against working rates.
        static: Breakaway friction F_s, N m or N; None: the sliding one.
        stribeck: w_s, rad/s or m/s; None: 10 w₀.
        viscous: c, N m s/rad or N s/m.
        motion: ``rotation`` or ``displacement``; None: the joint's only one, and the rotation of a
            cylindrical joint.

    Raises:
        InputError: An argument is unusable: a value is negative, a rate is not positive, or the
            static friction is less than the sliding one.
    """

    name: str
    joint: str
    limit: float
    rate: float
    static: float | None = None
    stribeck: float | None = None
    viscous: float = 0.0
    motion: Axis | None = None

    def __post_init__(self) -> None:
        label = checked_along(self)
        limit = number(f"{label}: limit", self.limit, low=0.0)
        number(f"{label}: rate", self.rate, positive=True)
        number(f"{label}: viscous", self.viscous, low=0.0)
        if self.static is not None:
            number(f"{label}: static", self.static, low=limit)
        if self.stribeck is not None:
            number(f"{label}: stribeck", self.stribeck, positive=True)

    @property
    def coordinate(self) -> JointCoordinate:
        """The coordinate that it acts on."""
        return JointCoordinate(self.joint, self.motion or "rotation")

    def placed(self, motion: Axis, s: float) -> JointFriction:
        """The element with its motion named."""
        return replace(self, motion=motion)

    def _excess(self, rate: float) -> tuple[float, float]:
        """(F_s − F_c) exp(−(w/w_s)²) and its derivative."""
        if self.static is None:
            return 0.0, 0.0
        width = self.stribeck if self.stribeck is not None else 10.0 * self.rate
        excess = (self.static - self.limit) * float(np.exp(-((rate / width) ** 2)))
        return excess, -2.0 * rate / width**2 * excess

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Torque (N m) or force (N) on the second body."""
        size = self.limit + self._excess(rate)[0]
        return -size * float(np.tanh(rate / self.rate)) - self.viscous * rate

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Derivatives of the magnitude to the coordinate and to its rate."""
        excess, slope = self._excess(rate)
        sign = float(np.tanh(rate / self.rate))
        steep = (self.limit + excess) * (1.0 - sign * sign) / self.rate
        return 0.0, -steep - slope * sign - self.viscous

    def energy(self, s: float) -> float:
        """Friction stores nothing."""
        return 0.0


# ---- checks and laws ----------------------------------------------------------------------------
def checked_along(element: JointSpring | JointFriction) -> str:
    """Check name, joint and motion of an element along a joint; return its label in messages."""
    label = f"load {checked_name('name', element.name)!r}"
    checked_name(f"{label}: joint", element.joint)
    choice(f"{label}: motion", element.motion, MOTIONS, none=True)
    return label


def checked_ends(element: PairElement) -> None:
    """Check the name of an element and that its ends are two frames."""
    label = f"load {checked_name('name', element.name)!r}"
    for which in ("first", "second"):
        frame = checked_frame(f"{label}: {which}", getattr(element, which))
        object.__setattr__(element, which, frame)
    if element.first == element.second:
        raise InputError(
            f"{label} connects frame {element.first.frame!r} of body "
            f"{element.first.body!r} with itself; give two frames"
        )


def checked_law(element: SpringDamper | JointSpring) -> None:
    """Raise an error if a constant is negative, or given together with a law."""
    label = f"load {element.name!r}"
    for what in ("stiffness", "damping"):
        number(f"{label}: {what}", getattr(element, what), low=0.0)
    if element.law is None:
        return
    function(f"{label}: law", element.law, "law(value, rate)")
    if element.stiffness or element.damping:
        raise InputError(f"{label}: give either a law or stiffness and damping, not both")


def law_slopes(law: Law, s: float, rate: float, step: float) -> tuple[float, float]:
    """Derivatives of a law to its two arguments, by central differences."""
    k = 1e-6 * max(1.0, abs(rate))
    by_s = (law(s + step, rate) - law(s - step, rate)) / (2 * step)
    return by_s, (law(s, rate + k) - law(s, rate - k)) / (2 * k)


def law_energy(law: Law, start: float, end: float) -> float:
    """∫ law(s, 0) ds by Gauss quadrature with 32 points, exact to round-off for a smooth law."""
    half, middle = 0.5 * (end - start), 0.5 * (end + start)
    values = np.array([law(middle + half * x, 0.0) for x in _NODES])
    return half * float(_WEIGHTS @ values)
