"""Constant-velocity joints."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.columns import ABOUT_Z, ALONG_X, ALONG_Y, ALONG_Z
from dolfinx_mbd.mechanism.joint_relations import JointRelation
from dolfinx_mbd.mechanism.joints import FrameRef, Joint

__all__ = ["ConstantVelocity", "constant_velocity"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ConstantVelocity(JointRelation):
    """Spherical joint that transmits the rotation about z without change.

    The relative rotation R is a bend about an axis in the x-y plane: its axis has no component
    along z, e_y·f_x = e_x·f_y, with the axes e of the first and f of the second frame. With a
    constant bend B of the shafts, their angles φ₁ and φ₂, and the rotation Z(φ) about z, R = Z(−φ₁)
    B Z(φ₂) is such a bend if φ₁ = φ₂. For other angles, the difference ½(e_y·f_x − e_x·f_y) is
    ½(1 + cos β) sin(φ₂ − φ₁), so that the constraint is regular for bend angles β below 180°.
    """

    kind: ClassVar[str] = "constant_velocity"
    rows: ClassVar[dict[int, str]] = {ABOUT_Z: "difference of the angles of its shafts"}
    held: ClassVar[tuple[int, ...]] = (ALONG_X, ALONG_Y, ALONG_Z)
    mark: ClassVar[Literal["pin", "ball", "rod", "rail", "block"]] = "ball"

    def values(self, d: Array, R: Array) -> Array:
        """Return ½(e_y·f_x − e_x·f_y)."""
        return np.array([0.5 * (R[1, 0] - R[0, 1])])

    def slopes(self, d: Array, R: Array) -> Array:
        """Return ½(f_x×e_y − f_y×e_x)."""
        x, y = np.eye(3)[:2]
        gradient = 0.5 * (np.cross(R[:, 0], y) - np.cross(R[:, 1], x))
        return np.array([[0.0, 0.0, 0.0, *gradient]])

    def second(self, d: Array, R: Array) -> Array:
        """Return ½[(e_x·f_y − e_y·f_x) I + f_x⊗e_y − f_y⊗e_x]."""
        x, y = np.eye(3)[:2]
        out = np.zeros((1, 6, 6))
        out[0, 3:, 3:] = 0.5 * (np.outer(R[:, 0], y) - np.outer(R[:, 1], x))
        out[0, 3:, 3:] += 0.5 * (R[0, 1] - R[1, 0]) * np.eye(3)
        return out


def constant_velocity(name: str, first: FrameRef, second: FrameRef) -> Joint:
    """Return a constant-velocity joint between two shafts along the z axes of the frames.

    The shafts meet in one point and rotate by the same angle at every bend below 180°, in contrast
    to those of a `universal` joint. The bend may change during the motion.

    Args:
        name: Name in the system and in the results.
        first: Frame of the first shaft at the centre of the joint, with z along the shaft.
        second: Frame of the second shaft; it coincides with the first if the shafts are aligned.

    Returns:
        The joint.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> joint = mbd.constant_velocity("joint", ground.frame("bearing"), rod.frame("left"))
        >>> joint.rows
        (0, 1, 2, 5)
    """
    return Joint(name, ConstantVelocity.kind, first, second, relation=ConstantVelocity())
