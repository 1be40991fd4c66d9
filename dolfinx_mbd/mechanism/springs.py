"""Springs, dampers and friction between two frames and about or along the axes of joints.

Derivatives are exact, except that user-defined laws are differentiated by central differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import function, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.expressions.functions import expression
from dolfinx_mbd.mechanism.force_elements import FramePair, JointElement, PairElement
from dolfinx_mbd.mechanism.joints import AxisMotion, FrameRef
from dolfinx_mbd.mechanism.load_protocol import input_unit
from dolfinx_mbd.mechanism.loads import slopes
from dolfinx_mbd.mechanism.run_quantities import LOAD, Quantities, RunQuantity

__all__ = ["JointFriction", "JointSpring", "SpringDamper"]

Array = NDArray[np.float64]
Law = Callable[[float, float], float]
"""Function of a length or coordinate and its rate that returns a force or torque."""


@dataclass(frozen=True, eq=False)
class SpringDamper(PairElement):
    """A spring and a damper on the line between the points of two frames.

    Attributes:
        name: Name in the system.
        first: Frame at one end, for example `ground.frame("bearing")`.
        second: Frame at the other end.
        stiffness: Stiffness, N/m.
        damping: Damping coefficient, N s/m.
        length: Length without force, m; by default the initial distance between the points.
        law: Function `law(length, rate)` that returns the tension (N) for a length (m) and its rate
            (m/s), or an expression such as ``"2e3*(length - 0.1) + 5*rate"``; the law replaces
            stiffness and damping.

    Raises:
        InputError: An argument is invalid, or both a law and stiffness or damping are given.

    Example:
        >>> spring = mbd.SpringDamper(
        ...     "spring", ground.frame("bearing"), rod.frame("right"), 1e3, length=0.9
        ... )
        >>> round(spring.tension(1.0, 0.0))
        100
    """

    kind: ClassVar[str] = "spring-damper"
    run_quantities: ClassVar[Quantities] = {
        **LOAD,
        "length": RunQuantity("m"),
        "length_rate": RunQuantity("m/s"),
        "tension": RunQuantity("N"),
    }
    is_elastic: ClassVar[bool] = True
    name: str
    first: FrameRef
    second: FrameRef
    stiffness: float = 0.0
    damping: float = 0.0
    length: float | None = None
    law: Law | str | None = None

    def __post_init__(self) -> None:
        self._check_ends()
        _check_law(self)
        if self.length is not None:
            number(f"load {self.name!r}: length", self.length, low=0.0, unit="m")

    @property
    def mark(self) -> str:
        """`coil`, `damper` or `coil and damper`."""
        return _spring_mark(self)

    @property
    def exerts_moments(self) -> bool:
        """False."""
        return False

    @property
    def is_smooth(self) -> bool:
        """Whether the spring has no law."""
        return self.law is None

    def _input_unit(self, field: str) -> str:
        """Return the unit of an argument that can be an input."""
        return input_unit(field, "displacement")

    def placed(self, pair: FramePair) -> SpringDamper:
        """Return the spring, with its free length measured at `pair` if it is not given."""
        if self.length is not None:
            return self
        return replace(self, length=float(np.linalg.norm(pair.p2 - pair.p1)))

    def _line(self, pair: FramePair) -> tuple[float, Array, float]:
        """Return length, direction from the first point to the second, and rate of the length."""
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
        """Return the force that pulls the ends together, N, for a length (m) and its rate."""
        if self.law is not None:
            return number(f"load {self.name!r}: value of the law", self.law(length, rate))  # type: ignore[operator]
        return self.stiffness * (length - (self.length or 0.0)) + self.damping * rate

    def wrenches(self, pair: FramePair) -> Array:
        """Return forces and moments on both frames."""
        length, n, rate = self._line(pair)
        out = np.zeros(12)
        out[:3] = self.tension(length, rate) * n
        out[6:9] = -out[:3]
        return out

    def derivatives(self, pair: FramePair) -> tuple[Array, Array]:
        """Return the derivatives of the wrenches."""
        length, n, rate = self._line(pair)
        by_length, by_rate = self.stiffness, self.damping
        if self.law is not None:
            by_length, by_rate = slopes(self.tension, length, rate, 1e-6 * length)
        along = np.outer(n, n)
        across = (np.eye(3) - along) / length
        rate_by_d = across @ (pair.u2[:3] - pair.u1[:3])
        by_d = by_length * along + self.tension(length, rate) * across
        by_d += by_rate * np.outer(n, rate_by_d)
        D, E = np.zeros((12, 12)), np.zeros((12, 12))  # derivatives by poses and by velocities
        for matrix, block in ((D, by_d), (E, by_rate * along)):
            matrix[:3, :3] = matrix[6:9, 6:9] = -block
            matrix[:3, 6:9] = matrix[6:9, :3] = block
        return D, E

    def energy(self, pair: FramePair) -> float:
        """Return the energy of the spring, J."""
        (length, *_), free = self._line(pair), self.length or 0.0
        if self.law is None:
            return 0.5 * self.stiffness * (length - free) ** 2
        return _law_energy(self.tension, free, length)

    def motion(self, pair: FramePair) -> dict[str, ArrayLike]:
        """Return length (m), its rate and the tension (N)."""
        length, _, rate = self._line(pair)
        tension = self.tension(length, rate)
        return {"length": length, "length_rate": rate, "tension": tension}


@dataclass(frozen=True, eq=False)
class JointSpring(JointElement):
    """A spring and a damper about or along the z axis of a joint.

    Attributes:
        name: Name in the system.
        joint: Name of the joint.
        stiffness: Stiffness, N m/rad or N/m.
        damping: Damping coefficient, N m s/rad or N s/m.
        free: Unloaded rotation (rad) or displacement (m) of the joint; by default the initial
            value.
        law: Function `law(s, rate)` that returns the resisting torque (N m) or force (N) for a
            rotation or displacement s relative to `free` and its rate, or an expression such as
            ``"1e3*s**3"``; the law replaces stiffness and damping.
        motion: `rotation` or `displacement`; by default the only free motion of the joint, or
            the rotation of a cylindrical joint.

    Raises:
        InputError: An argument is invalid, or both a law and stiffness or damping are given.

    Example:
        >>> coil = mbd.JointSpring("coil", "hinge", stiffness=20.0, free=0.1)
        >>> stop = mbd.JointSpring("stop", "hinge", law=lambda s, rate: 1e4 * max(s - 1.0, 0.0))
    """

    kind: ClassVar[str] = "spring-damper"
    name: str
    joint: str
    stiffness: float = 0.0
    damping: float = 0.0
    free: float | None = None
    law: Law | str | None = None
    motion: AxisMotion | None = None

    def __post_init__(self) -> None:
        label = self._check_joint()
        _check_law(self)
        if self.free is not None:
            number(f"{label}: free", self.free)

    @property
    def mark(self) -> str:
        """`spiral` about the axis of the joint; `coil`, `damper` or both along it."""
        return _spring_mark(self) if self.motion == "displacement" else "spiral"

    @property
    def is_smooth(self) -> bool:
        """Whether the spring has no law."""
        return self.law is None

    def placed(self, motion: AxisMotion, s: float) -> JointSpring:
        """Return the element with its motion; `free` is the initial coordinate s if it is None."""
        return replace(self, motion=motion, free=s if self.free is None else self.free)

    def _resistance(self, s: float, rate: float) -> float:
        """Return the resisting torque or force at a coordinate s relative to `free`."""
        if self.law is not None:
            return number(f"load {self.name!r}: value of the law", self.law(s, rate))  # type: ignore[operator]
        return self.stiffness * s + self.damping * rate

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Return the torque (N m) or force (N) on the second body."""
        return -self._resistance(s - (self.free or 0.0), rate)

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the magnitude with respect to the coordinate and its rate."""
        if self.law is None:
            return -self.stiffness, -self.damping
        by_s, by_rate = slopes(self._resistance, s - (self.free or 0.0), rate)
        return -by_s, -by_rate

    def energy(self, s: float) -> float:
        """Return the energy of the spring, J."""
        s -= self.free or 0.0
        if self.law is None:
            return 0.5 * self.stiffness * s * s
        return _law_energy(self._resistance, 0.0, s)


@dataclass(frozen=True, eq=False)
class JointFriction(JointElement):
    """Regularized dry friction and viscous friction about or along the z axis of a joint.

    At the joint rate w, the load −(F_c + (F_s − F_c) exp(−(w/w_s)²)) tanh(w/w₀) − c w acts on the
    second body and the opposite load on the first. F_c does not depend on the forces in the joint.
    The joint does not stick: under a force F well below F_s, it slides at a rate of about
    w₀ F/F_s, which is small. Choose a time step that resolves changes of the rate by w₀.

    Attributes:
        name: Name in the system.
        joint: Name of the joint.
        limit: Sliding friction F_c, N m or N.
        rate: Rate w₀ at which tanh(1) = 76 % of the friction acts, rad/s or m/s; it should be small
            compared with the rates of the motion.
        static: Breakaway friction F_s, N m or N; by default F_c.
        stribeck: Rate w_s, rad/s or m/s; by default 10 w₀.
        viscous: Coefficient c, N m s/rad or N s/m.
        motion: `rotation` or `displacement`; by default the only free motion of the joint, or
            the rotation of a cylindrical joint.

    Raises:
        InputError: A value is negative, a rate is not positive, or the breakaway friction is below
            the sliding friction.

    Example:
        >>> friction = mbd.mechanism.JointFriction("friction", "hinge", limit=2.0, rate=0.01)
        >>> friction.magnitude(t=0.0, s=0.0, rate=1.0)
        -2.0
    """

    kind: ClassVar[str] = "friction"
    name: str
    joint: str
    limit: float
    rate: float
    static: float | None = None
    stribeck: float | None = None
    viscous: float = 0.0
    motion: AxisMotion | None = None

    def __post_init__(self) -> None:
        label = self._check_joint()
        limit = number(f"{label}: limit", self.limit, low=0.0)
        number(f"{label}: rate", self.rate, positive=True)
        number(f"{label}: viscous", self.viscous, low=0.0)
        if self.static is not None:
            number(f"{label}: static", self.static, low=limit)
        if self.stribeck is not None:
            number(f"{label}: stribeck", self.stribeck, positive=True)

    def placed(self, motion: AxisMotion, s: float) -> JointFriction:
        """Return the element with its motion; the initial coordinate s of the joint is not used."""
        return replace(self, motion=motion)

    def _size(self, rate: float) -> tuple[float, float]:
        """Return F_c + (F_s − F_c) exp(−(w/w_s)²) and its derivative with respect to w."""
        if self.static is None:
            return self.limit, 0.0
        width = self.stribeck if self.stribeck is not None else 10.0 * self.rate
        excess = (self.static - self.limit) * float(np.exp(-((rate / width) ** 2)))
        return self.limit + excess, -2.0 * rate / width**2 * excess

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Return the torque (N m) or force (N) on the second body."""
        size, _ = self._size(rate)
        return -size * float(np.tanh(rate / self.rate)) - self.viscous * rate

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the magnitude with respect to the coordinate and its rate."""
        size, slope = self._size(rate)
        sign = float(np.tanh(rate / self.rate))
        return 0.0, -size * (1.0 - sign * sign) / self.rate - slope * sign - self.viscous


def _spring_mark(element: SpringDamper | JointSpring) -> str:
    """Return the shape of a spring, a damper or both in pictures."""
    if not (element.stiffness > 0 or element.law is not None):
        return "damper"
    return "coil and damper" if element.damping > 0 else "coil"


def _check_law(element: SpringDamper | JointSpring) -> None:
    """Raise an error if a constant is negative or is given together with a law."""
    label = f"load {element.name!r}"
    for coefficient in ("stiffness", "damping"):
        number(f"{label}: {coefficient}", getattr(element, coefficient), low=0.0)
    if element.law is not None:
        names = ("s" if element.port == "joint" else "length", "rate")
        assign(element, law=expression(element.law, names))
        function(f"{label}: law", element.law, "law(value, rate)")
        if element.stiffness or element.damping:
            raise InputError(f"{label}: give either a law or stiffness and damping, not both")


def _law_energy(law: Law, start: float, end: float) -> float:
    """Return ∫ law(s, 0) ds by Gauss quadrature with 32 points."""
    values = scipy.integrate.fixed_quad(
        lambda x: np.array([law(s, 0.0) for s in x.tolist()]), start, end, n=32
    )
    return float(values[0])
