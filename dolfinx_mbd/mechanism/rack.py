"""Racks and pinions."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import number, reject
from dolfinx_mbd.kernels.columns import ALONG_X
from dolfinx_mbd.mechanism.joint_relations import (
    JointRelation,
    angle_about_z,
    angle_second,
    angle_slope,
    nearest_turn,
)
from dolfinx_mbd.mechanism.joints import FrameRef, Joint

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.force_elements import FramePair

__all__ = ["RackAndPinion", "rack_and_pinion"]

Array = NDArray[np.float64]

_MAX_TILT = 0.05  # largest initial angle between the z axes of rack and pinion, rad


@dataclass(frozen=True)
class RackAndPinion(JointRelation):
    """Displacement x = x₀ − r φ of the centre of a pinion of radius r along a rack."""

    kind: ClassVar[str] = "rack_and_pinion"
    rows: ClassVar[dict[int, str]] = {ALONG_X: "rolling along the rack"}
    radius: float
    offset: float | None = None

    def values(self, d: Array, R: Array) -> Array:
        """Return x − x₀ + r φ; full turns of φ are those for which it is smallest."""
        angle = (d[0] - (self.offset or 0.0)) / self.radius
        return np.array([self.radius * nearest_turn(angle + angle_about_z(R))])

    def slopes(self, d: Array, R: Array) -> Array:
        """Return the derivatives of x + r φ."""
        return np.array([[1.0, 0.0, 0.0, *(self.radius * angle_slope(R))]])

    def second(self, d: Array, R: Array) -> Array:
        """Return the second derivatives of r φ."""
        out = np.zeros((1, 6, 6))
        out[0, 3:, 3:] = self.radius * angle_second(R)
        return out

    def initial_problem(self, d: Array, R: Array) -> str:
        """Return a text if the axis of the pinion is not parallel to the z axis of the rack.

        Later the axis may tilt, if other joints permit it.
        """
        tilt = math.atan2(float(np.hypot(R[0, 2], R[1, 2])), abs(float(R[2, 2])))
        if tilt <= _MAX_TILT:
            return ""
        return (
            f"the z axis of the pinion is tilted by {math.degrees(tilt):.3g}° ({tilt:.3g} rad) "
            "relative to the z axis of the rack. Give both frames a rotation with z along the axis "
            "of the pinion, and x of the rack along its teeth"
        )

    def placed(self, label: str, pair: FramePair) -> dict[str, Any]:
        """Return the relation with x₀."""
        if self.offset is not None:
            return {}
        d, R = pair.Q1.T @ (pair.p2 - pair.p1), pair.Q1.T @ pair.Q2
        return {"relation": replace(self, offset=float(d[0]) + self.radius * angle_about_z(R))}


def rack_and_pinion(
    name: str, rack: FrameRef, pinion: FrameRef, radius: float, *, offset: float | None = None
) -> Joint:
    """Return a pinion that rolls on the pitch line of a rack.

    The joint constrains one motion only, x = x₀ − r φ, where x is the position of the centre of the
    pinion along the rack and φ its rotation about z relative to the rack. Other joints must guide
    both bodies, for example `revolute` and `prismatic`. The teeth touch at the distance r from the
    centre, in the direction −y of the rack for a positive radius.

    Args:
        name: Name in the system and in the results.
        rack: Frame of the rack with x along the rack and z parallel to the axis of the pinion.
        pinion: Frame at the centre of the pinion, with z along its axis.
        radius: Radius r of the pitch circle, m; negative if the rack is on the side +y.
        offset: Position x₀ at the angle φ = 0, m; by default it follows from the initial positions.

    Returns:
        The joint.

    Raises:
        InputError: The radius is zero, or another argument is invalid. The start of a run raises
            an `AssemblyError` if the z axes of the frames are not parallel.

    Example:
        >>> rack, pinion = ground.frame("bearing"), rod.frame("left")
        >>> joint = mbd.rack_and_pinion("teeth", rack, pinion, radius=0.05)
        >>> joint.rows
        (0,)
    """
    label = f"joint {name!r}"
    if number(f"{label}: radius", radius, unit="m") == 0.0:
        reject(f"{label}: radius", radius, "a number other than zero, m")
    if offset is not None:
        number(f"{label}: offset", offset, unit="m")
    return Joint(name, RackAndPinion.kind, rack, pinion, relation=RackAndPinion(radius, offset))
