"""What is measured where the bodies are placed: lengths, displacements and angles nobody typed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.joints import DISTANCE, OPPOSITE
from dolfinx_mbd.multibody.model.force_elements import FramePair
from dolfinx_mbd.multibody.model.joints import TURNING, Axis, Driver, Joint
from dolfinx_mbd.multibody.model.protocol import Body

__all__ = ["Placement"]

Array = NDArray[np.float64]

_REST = np.zeros(6)
_POINT = 1e-9  # size of a mechanism below which its frames are one point, m


class Placement:
    """Poses of all frames where the bodies are placed, before anything is put together.

    Args:
        bodies: The bodies of a system.
        frames: Which of all frames are whose.
    """

    def __init__(self, bodies: Sequence[Body], frames: Sequence[slice]) -> None:
        count = frames[-1].stop
        self.position, self.rotation = np.zeros((count, 3)), np.zeros((count, 3, 3))
        for body, part in zip(bodies, frames, strict=True):
            body.poses(body.initial_coordinates(), self.position[part], self.rotation[part])
        self.origins = [
            body.initial_coordinates()[:3]
            for body in bodies
            if body.num_velocities - body.num_elastic == 6
        ]

    @property
    def size(self) -> float:
        """Largest side of the box around all frames and bodies, m; 1 m if that is a point."""
        points = np.vstack([self.position, *self.origins])
        size = float(np.ptp(points, axis=0).max(initial=0.0)) if len(points) else 0.0
        return size if size > _POINT else 1.0

    def pair(self, first: int, second: int) -> FramePair:
        """Two frames at rest."""
        p, Q = self.position, self.rotation
        return FramePair(p[first], Q[first], _REST, p[second], Q[second], _REST)

    def along(self, first: int, second: int, motion: Axis) -> float:
        """Rotation about (within half a turn) or displacement along the first frame's z."""
        p1, Q1, _, p2, Q2, _ = self.pair(first, second)
        if motion == "displacement":
            return float(Q1[:, 2] @ (p2 - p1))
        return math.atan2(float(Q1[:, 1] @ Q2[:, 0]), float(Q1[:, 0] @ Q2[:, 0]))

    def joint(self, joint: Joint, first: int, second: int) -> Joint:
        """A distance with its length.

        Raises:
            ValueError: If its points coincide.
        """
        if joint.kind != "distance" or joint.length is not None:
            return joint
        length = float(np.linalg.norm(self.position[second] - self.position[first]))
        if length == 0.0:
            raise InputError(
                f"distance joint {joint.name!r}: its points coincide where the bodies are placed; "
                "give its length, or use a spherical joint"
            )
        return replace(joint, length=length)

    def form(self, joint: Joint, first: int, second: int) -> int:
        """What the joint's kernel has to know: a distance, or axes z placed in opposite directions.

        Bodies may meet in a hinge with opposite axes; its z is that of the first frame.
        """
        if joint.kind == "distance":
            return DISTANCE
        z = self.rotation[first][:, 2] @ self.rotation[second][:, 2]
        return OPPOSITE if joint.kind in TURNING and z < 0 else 0

    def driver(self, driver: Driver, motion: Axis, first: int, second: int) -> Driver:
        """A driver with its motion named and its offset."""
        offset = driver.offset
        if offset is None:
            offset = self.along(first, second, motion)
        return replace(driver, along=motion, offset=offset)
