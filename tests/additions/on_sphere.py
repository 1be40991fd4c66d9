"""A joint: a point on a sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.mechanism.joint_relations import JointRelation
from dolfinx_mbd.mechanism.joints import FrameRef, Joint

__all__ = ["Sphere", "on_sphere"]


@dataclass(frozen=True)
class Sphere(JointRelation):
    """The relation (d·d − r²)/2 = 0 for the vector d from the centre to the point; R is unused."""

    kind: ClassVar[str] = "sphere"
    rows: ClassVar[dict[int, str]] = {0: "distance from the sphere"}
    point_ends: ClassVar[tuple[str, ...]] = ("second",)
    radius: float

    def values(self, d: Array, R: Array) -> Array:
        return np.array([0.5 * (d @ d - self.radius**2)])

    def slopes(self, d: Array, R: Array) -> Array:
        return np.append(d, np.zeros(3))[None]

    def second(self, d: Array, R: Array) -> Array:
        return np.diag([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])[None]


def on_sphere(name: str, centre: FrameRef, point: FrameRef, radius: float) -> Joint:
    """Return a joint that keeps a point on a sphere."""
    return Joint(name, Sphere.kind, centre, point, relation=Sphere(radius))
