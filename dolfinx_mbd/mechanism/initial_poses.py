"""Poses of all frames of a system at the initial positions of the bodies."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from dolfinx_mbd.mechanism.force_elements import FramePair
from dolfinx_mbd.mechanism.joints import TURNING, AxisMotion, Joint
from dolfinx_mbd.mechanism.load_protocol import Pair

if TYPE_CHECKING:
    from dolfinx_mbd.mechanism.system import System

__all__ = ["InitialPoses"]

_REST = np.zeros(6)  # velocities of a frame at rest


class InitialPoses:
    """Poses of all frames at the initial positions of the bodies."""

    def __init__(self, system: System) -> None:
        self.system = system
        self._index, count = system.frame_index, system.num_frames
        self.position, self.rotation = np.zeros((count, 3)), np.zeros((count, 3, 3))
        points = [self.position]
        for body, part in zip(system.bodies, system.frame_slices, strict=True):
            q = body.initial_coordinates()
            body.poses(q, self.position[part], self.rotation[part])
            has_origin = body.num_velocities - body.num_elastic == 6
            if has_origin:
                points.append(q[None, :3])
        # Size: longest side of the bounding box of all frames and bodies, m; 1 m if the box is a
        # point
        all_points = np.vstack(points)
        size = float(np.ptp(all_points, axis=0).max()) if len(all_points) else 0.0
        self.size = size if size > 1e-9 else 1.0

    def pair(self, item: Pair) -> FramePair:
        """Return the poses of the frames of a joint or an element, at rest."""
        first, second = self._index(item.first), self._index(item.second)
        p, Q = self.position, self.rotation
        return FramePair(p[first], Q[first], _REST, p[second], Q[second], _REST)

    def along(self, joint: Joint, motion: AxisMotion) -> float:
        """Return the rotation (within half a turn) about or the displacement along the axis."""
        p1, Q1, _, p2, Q2, _ = self.pair(joint)
        if motion == "displacement":
            return float(Q1[:, 2] @ (p2 - p1))
        return math.atan2(float(Q1[:, 1] @ Q2[:, 0]), float(Q1[:, 0] @ Q2[:, 0]))

    def axes_sign(self, joint: Joint) -> float:
        """Return −1 for joints that rotate about z and have opposite z axes, otherwise 1."""
        _, Q1, _, _, Q2, _ = self.pair(joint)
        return -1.0 if joint.kind in TURNING and Q1[:, 2] @ Q2[:, 2] < 0 else 1.0
