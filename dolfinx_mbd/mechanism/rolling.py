"""Rolling without slip on a plane, and blades: constraints on velocities.

The plane is x-y of the first frame, with the normal n = e_z. A body that touches it at the position
ρ relative to the origin of its frame does not slip if v + ω×ρ vanishes along x and y. These
conditions cannot be integrated: the body can reach every position and orientation. The axes e and f
are those of `joint_relations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import number
from dolfinx_mbd.kernels.columns import ABOUT_X, ABOUT_Y, ALONG_X, ALONG_Y, ALONG_Z
from dolfinx_mbd.kernels.rotations import skew
from dolfinx_mbd.mechanism.joint_relations import JointRelation
from dolfinx_mbd.mechanism.joints import FrameRef, Joint

__all__ = ["KnifeEdge", "RollingBall", "RollingDisc", "knife_edge", "rolling_ball", "rolling_disc"]

Array = NDArray[np.float64]

_MIN_SINE = 1e-3  # smallest sine of the angle between a rolling disc and the plane
_ROWS = {ALONG_X: "slip along x", ALONG_Y: "slip along y", ALONG_Z: "height above the plane"}


@dataclass(frozen=True)
class RollingBall(JointRelation):
    """Ball of radius r that rolls on a plane: z = r and ρ = −r n."""

    kind: ClassVar[str] = "rolling_ball"
    rows: ClassVar[dict[int, str]] = _ROWS
    on_velocities: ClassVar[tuple[int, ...]] = (ALONG_X, ALONG_Y)
    mark: ClassVar[Literal["pin", "ball", "rod", "rail", "block"]] = "ball"
    radius: float

    def values(self, d: Array, R: Array) -> Array:
        """Return 0, 0 and z − r."""
        return np.array([0.0, 0.0, d[2] - self.radius])

    def slopes(self, d: Array, R: Array) -> Array:
        """Return e_i and ρ×e_i for i = x, y, then e_z."""
        by_rotation = np.cross([0.0, 0.0, -self.radius], np.eye(3))
        return np.hstack([np.eye(3), by_rotation])

    def second(self, d: Array, R: Array) -> Array:
        """Return zero."""
        return np.zeros((3, 6, 6))


@dataclass(frozen=True)
class RollingDisc(JointRelation):
    """Thin disc of radius r that rolls on a plane on its edge.

    With the axis f_z of the disc, c = n·f_z and s = √(1 − c²), the lowest point of the edge is at
    ρ = −r (n − c f_z)/s, and the height of the centre is r s.
    """

    kind: ClassVar[str] = "rolling_disc"
    rows: ClassVar[dict[int, str]] = _ROWS
    on_velocities: ClassVar[tuple[int, ...]] = (ALONG_X, ALONG_Y)
    radius: float

    def values(self, d: Array, R: Array) -> Array:
        """Return 0, 0 and z − r s."""
        _, s = self._tilt(R)
        return np.array([0.0, 0.0, d[2] - self.radius * s])

    def slopes(self, d: Array, R: Array) -> Array:
        """Return e_i and ρ×e_i for i = x, y, then e_z and r (c/s) f_z×n."""
        (c, s), (f, n) = self._tilt(R), (R[:, 2], np.eye(3)[2])
        by_rotation = np.cross(-self.radius / s * (n - c * f), np.eye(3))
        by_rotation[ALONG_Z] = self.radius * c / s * np.cross(f, n)
        return np.hstack([np.eye(3), by_rotation])

    def second(self, d: Array, R: Array) -> Array:
        """Return the derivatives of ρ×e_i, and of r (c/s) f_z×n."""
        (c, s), (f, n), r = self._tilt(R), (R[:, 2], np.eye(3)[2]), self.radius
        c_slope = np.cross(f, n)  # derivative of c with respect to θ
        contact_slope = np.outer(f, c_slope) / s - c * skew(f) / s  # derivative of −(n − c f)/s
        contact_slope -= c / s**3 * np.outer(n - c * f, c_slope)
        out = np.zeros((3, 6, 6))
        for i in range(2):
            out[i, 3:, 3:] = -r * skew(np.eye(3)[i]) @ contact_slope
        out[2, 3:, 3:] = r * np.outer(c_slope, c_slope) / s**3
        out[2, 3:, 3:] += r * c / s * (np.outer(f, n) - c * np.eye(3))
        return out

    def problem(self, d: Array, R: Array) -> str:
        """Return a text if the disc lies on the plane."""
        _, s = self._tilt(R)
        return "the disc lies flat on the plane" if s < _MIN_SINE else ""

    @staticmethod
    def _tilt(R: Array) -> tuple[float, float]:
        """Return cosine and sine of the angle between the axis of the disc and the normal."""
        c = float(R[2, 2])
        return c, max(float(np.hypot(R[0, 2], R[1, 2])), 1e-12)


@dataclass(frozen=True)
class KnifeEdge(JointRelation):
    """Blade along x of the second frame that does not move sideways, v·f_y = 0."""

    kind: ClassVar[str] = "knife_edge"
    rows: ClassVar[dict[int, str]] = {ALONG_Y: "sideways motion of the blade"}
    held: ClassVar[tuple[int, ...]] = (ALONG_Z, ABOUT_X, ABOUT_Y)
    on_velocities: ClassVar[tuple[int, ...]] = (ALONG_Y,)
    motions: ClassVar[tuple[Literal["rotation", "displacement"], ...]] = ("rotation",)

    def values(self, d: Array, R: Array) -> Array:
        """Return zero."""
        return np.zeros(1)

    def slopes(self, d: Array, R: Array) -> Array:
        """Return f_y."""
        return np.append(R[:, 1], np.zeros(3))[None]

    def second(self, d: Array, R: Array) -> Array:
        """Return the derivative of f_y."""
        out = np.zeros((1, 6, 6))
        out[0, :3, 3:] = -skew(R[:, 1])
        return out


def rolling_ball(name: str, plane: FrameRef, ball: FrameRef, radius: float) -> Joint:
    """Return a ball that rolls on a plane without slip.

    Args:
        name: Name in the system and in the results.
        plane: Frame with z normal to the plane; the ball is on the side +z.
        ball: Frame at the centre of the ball.
        radius: Radius of the ball, m.

    Returns:
        The joint, which may spin about the normal.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> joint = mbd.rolling_ball("contact", ground.frame("bearing"), rod.frame("left"), 0.1)
        >>> joint.rows
        (0, 1, 2)
    """
    number(f"joint {name!r}: radius", radius, positive=True, unit="m")
    return Joint(name, RollingBall.kind, plane, ball, relation=RollingBall(radius))


def rolling_disc(name: str, plane: FrameRef, disc: FrameRef, radius: float) -> Joint:
    """Return a thin disc, a hoop or a wheel that rolls on a plane on its edge without slip.

    Args:
        name: Name in the system and in the results.
        plane: Frame with z normal to the plane; the disc is on the side +z.
        disc: Frame at the centre of the disc, with z along its axis.
        radius: Radius of the disc, m.

    Returns:
        The joint. The disc may lean, steer and spin; a run ends with an error if it falls flat.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> joint = mbd.rolling_disc("contact", ground.frame("bearing"), rod.frame("left"), 0.3)
        >>> joint.rows
        (0, 1, 2)
    """
    number(f"joint {name!r}: radius", radius, positive=True, unit="m")
    return Joint(name, RollingDisc.kind, plane, disc, relation=RollingDisc(radius))


def knife_edge(name: str, plane: FrameRef, blade: FrameRef, *, rate: float | None = None) -> Joint:
    """Return a blade that stands on a plane and moves along its edge only, such as a skate.

    Args:
        name: Name in the system and in the results.
        plane: Frame with z normal to the plane.
        blade: Frame of another body with x along the edge and z normal to the plane.
        rate: Initial rate of the rotation about z, rad/s; by default it follows from other
            velocities.

    Returns:
        The joint.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> joint = mbd.knife_edge("skate", ground.frame("bearing"), rod.frame("left"))
        >>> joint.rows
        (1, 2, 3, 4)
    """
    return Joint(name, KnifeEdge.kind, plane, blade, rate=rate, relation=KnifeEdge())
