"""End stops of joints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import instance, number, reject
from dolfinx_mbd.mechanism.contact.contact_laws import ContactLaw
from dolfinx_mbd.mechanism.force_elements import JointElement
from dolfinx_mbd.mechanism.joints import AxisMotion

__all__ = ["JointStop"]


@dataclass(frozen=True, eq=False)
class JointStop(JointElement):
    """End stops that limit the rotation about or the displacement along the axis of a joint.

    Attributes:
        name: Name in the system.
        joint: Name of the joint.
        law: Law of the force (N, for penetrations in m) or of the torque (N m, in rad). Its
            friction is not used and must be 0.
        lower: Coordinate of the joint at the lower stop, rad or m; by default no stop exists.
        upper: Coordinate of the joint at the upper stop, rad or m; by default no stop exists.
        motion: `rotation` or `displacement`; by default the only free motion of the joint, or
            the rotation of a cylindrical joint.

    Raises:
        InputError: An argument is invalid, there is no stop, or `lower` is not below `upper`.

    Example:
        >>> stop = mbd.mechanism.JointStop(
        ...     "stop", "hinge", mbd.ContactLaw(1e4, 1.0), lower=-0.5, upper=0.5
        ... )
        >>> round(stop.magnitude(t=0.0, s=0.6, rate=0.0), 6)
        -1000.0
    """

    kind: ClassVar[str] = "end stop"
    has_contacts: ClassVar[bool] = True
    name: str
    joint: str
    law: ContactLaw
    lower: float | None = None
    upper: float | None = None
    motion: AxisMotion | None = None

    def __post_init__(self) -> None:
        label = self._check_joint()
        instance(f"{label}: law", self.law, ContactLaw, "for example ContactLaw(1e4, 1.0)")
        if self.law.friction:
            reject(f"{label}: friction of the law", self.law.friction, "0; use JointFriction")
        ends = [
            number(f"{label}: {end}", getattr(self, end))
            for end in ("lower", "upper")
            if getattr(self, end) is not None
        ]
        if not ends or (len(ends) == 2 and ends[0] >= ends[1]):
            expected = "two limits with lower < upper, or one of them"
            reject(f"{label}: (lower, upper)", (self.lower, self.upper), expected)

    def placed(self, motion: AxisMotion, s: float) -> JointStop:
        """Return the stop with the motion (rotation or displacement) that it limits."""
        return replace(self, motion=motion)

    def gaps(self, s: float) -> tuple[tuple[float, float], ...]:
        """Return each gap (rad or m) and its derivative with respect to the coordinate."""
        lower = () if self.lower is None else ((s - self.lower, 1.0),)
        upper = () if self.upper is None else ((self.upper - s, -1.0),)
        return lower + upper

    def contact_states(self, *arguments: Any) -> Array:
        """Return gap and gap rate of each stop, and NaN for the normal force, (points, 3)."""
        s, rate, _ = arguments
        return np.array([(gap, sign * rate, np.nan) for gap, sign in self.gaps(float(s))])

    def magnitude(self, t: float, s: float, rate: float) -> float:
        """Return the torque (N m) or force (N) on the second body, with its sign."""
        return sum(sign * self.law.force(-gap, -sign * rate) for gap, sign in self.gaps(s))

    def derivatives(self, t: float, s: float, rate: float) -> tuple[float, float]:
        """Return the derivatives of the magnitude with respect to the coordinate and its rate."""
        slopes = [self.law.slopes(-gap, -sign * rate) for gap, sign in self.gaps(s)]
        return -sum(slope for slope, _ in slopes), -sum(slope for _, slope in slopes)

    def energy(self, s: float) -> float:
        """Return the stored energy, J."""
        return sum(self.law.energy(-gap) for gap, _ in self.gaps(s))
