"""Screw joints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import number, reject
from dolfinx_mbd.kernels.columns import ABOUT_X, ABOUT_Y, ALONG_X, ALONG_Y, ALONG_Z
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

__all__ = ["Screw", "screw"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Screw(JointRelation):
    """Displacement z = z₀ + p φ/2π along the axis for a rotation φ about it, with the pitch p."""

    kind: ClassVar[str] = "screw"
    rows: ClassVar[dict[int, str]] = {ALONG_Z: "advance along its axis"}
    held: ClassVar[tuple[int, ...]] = (ALONG_X, ALONG_Y, ABOUT_X, ABOUT_Y)
    motions: ClassVar[tuple[Literal["rotation", "displacement"], ...]] = (
        "rotation",
        "displacement",
    )
    mark: ClassVar[Literal["pin", "ball", "rod", "rail", "block"]] = "pin"
    pitch: float
    offset: float | None = None

    def values(self, d: Array, R: Array) -> Array:
        """Return z − z₀ − p φ/2π; full turns of φ are those for which it is smallest."""
        per_radian = self.pitch / (2 * np.pi)
        angle = (d[2] - (self.offset or 0.0)) / per_radian
        return np.array([per_radian * nearest_turn(angle - angle_about_z(R))])

    def slopes(self, d: Array, R: Array) -> Array:
        """Return the derivatives of z − p φ/2π."""
        return np.array([[0.0, 0.0, 1.0, *(-self.pitch / (2 * np.pi) * angle_slope(R))]])

    def second(self, d: Array, R: Array) -> Array:
        """Return the second derivatives of −p φ/2π."""
        out = np.zeros((1, 6, 6))
        out[0, 3:, 3:] = -self.pitch / (2 * np.pi) * angle_second(R)
        return out

    def placed(self, label: str, pair: FramePair) -> dict[str, Any]:
        """Return the relation with z₀."""
        if self.offset is not None:
            return {}
        d, R = pair.Q1.T @ (pair.p2 - pair.p1), pair.Q1.T @ pair.Q2
        offset = float(d[2]) - self.pitch / (2 * np.pi) * angle_about_z(R)
        return {"relation": replace(self, offset=offset)}


def screw(
    name: str,
    first: FrameRef,
    second: FrameRef,
    pitch: float,
    *,
    offset: float | None = None,
    rate: float | None = None,
) -> Joint:
    """Return a screw and its nut: a rotation about z displaces the second frame along z.

    The displacement is z = z₀ + p φ/2π. Drivers and loads may act on the rotation φ or on the
    displacement z.

    Args:
        name: Name in the system and in the results.
        first: Reference frame of the joint; its z axis is the axis of the screw.
        second: Frame of another body, with a parallel z axis.
        pitch: Displacement p along z per turn, m; negative for a left-hand thread.
        offset: Displacement z₀ at the angle φ = 0, m; by default it follows from the initial
            positions of the bodies.
        rate: Initial rate of the rotation, rad/s; by default it follows from other velocities.

    Returns:
        The joint.

    Raises:
        InputError: The pitch is zero, or another argument is invalid.

    Example:
        >>> joint = mbd.screw("spindle", ground.frame("bearing"), rod.frame("left"), pitch=2e-3)
        >>> joint.rows
        (0, 1, 2, 3, 4)
    """
    label = f"joint {name!r}"
    if number(f"{label}: pitch", pitch, unit="m") == 0.0:
        reject(f"{label}: pitch", pitch, "a number other than zero, m")
    if offset is not None:
        number(f"{label}: offset", offset, unit="m")
    return Joint(name, Screw.kind, first, second, rate=rate, relation=Screw(pitch, offset))
