"""Surfaces to draw for rigid bodies: triangles in the body frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, integer, memory, number, refuse, vector

__all__ = ["Shape", "box_shape", "cylinder_shape"]


@dataclass(frozen=True, eq=False)
class Shape:
    """A triangulated surface: points (ns, 3) in m, body frame, and triangles (nt, 3).

    Raises:
        InputError: The points are not finite, or a triangle refers to a point that is not there.
    """

    points: NDArray[np.float64]
    triangles: NDArray[np.int64]

    def __post_init__(self) -> None:
        points = array("points", self.points, (None, 3))
        corners = array("triangles", self.triangles, (None, 3))
        if ((corners < 0) | (corners >= len(points)) | (corners % 1 != 0)).any():
            refuse("triangles", self.triangles, f"numbers of points from 0 to {len(points) - 1}")
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "triangles", corners.astype(np.int64))

    def __add__(self, other: Shape) -> Shape:
        """Both surfaces as one."""
        return Shape(
            np.vstack([self.points, other.points]),
            np.vstack([self.triangles, other.triangles + len(self.points)]),
        )


def box_shape(size: ArrayLike, centre: ArrayLike = (0.0, 0.0, 0.0)) -> Shape:
    """Return a box with edges ``size`` (3,) in m along the body axes."""
    sides = vector("size", size, unit="m")
    if sides.min() <= 0:
        refuse("size", size, "three positive numbers in m")
    corners = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    faces = np.array(
        [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    )
    triangles = np.vstack([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    return Shape(vector("centre", centre, unit="m") + 0.5 * corners * sides, triangles)


def cylinder_shape(
    radius: float,
    length: float,
    axis: int = 2,
    centre: ArrayLike = (0.0, 0.0, 0.0),
    sides: int = 48,
) -> Shape:
    """Return a closed cylinder along body axis 0, 1 or 2; radius and length in m."""
    radius = number("radius", radius, positive=True, unit="m")
    length = number("length", length, positive=True, unit="m")
    axis, sides = integer("axis", axis, low=0, high=2), integer("sides", sides, low=3)
    memory("sides", sides, 144 * sides)
    angle = 2 * np.pi * np.arange(sides) / sides
    circle = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    low = np.column_stack([circle, np.full(sides, -length / 2)])
    points = np.vstack([low, low * (1, 1, -1), [[0, 0, -length / 2], [0, 0, length / 2]]])
    i = np.arange(sides)
    j = (i + 1) % sides
    triangles = np.vstack(
        [
            np.column_stack([i, j, i + sides]),
            np.column_stack([j, j + sides, i + sides]),
            np.column_stack([j, i, np.full(sides, 2 * sides)]),
            np.column_stack([i + sides, j + sides, np.full(sides, 2 * sides + 1)]),
        ]
    )
    order = [(axis + 1) % 3, (axis + 2) % 3, axis]
    placed = np.empty_like(points)
    placed[:, order] = points
    return Shape(placed + vector("centre", centre, unit="m"), triangles)
