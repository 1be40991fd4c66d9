"""Surfaces to draw for rigid bodies: triangles in the body frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Shape", "box_shape", "cylinder_shape"]


@dataclass(frozen=True, eq=False)
class Shape:
    """A triangulated surface: points (ns, 3) in m, body frame, and triangles (nt, 3)."""

    points: NDArray[np.float64]
    triangles: NDArray[np.int64]

    def __add__(self, other: Shape) -> Shape:
        """Both surfaces as one."""
        return Shape(
            np.vstack([self.points, other.points]),
            np.vstack([self.triangles, other.triangles + len(self.points)]),
        )


def box_shape(size: ArrayLike, centre: ArrayLike = (0.0, 0.0, 0.0)) -> Shape:
    """A box with edges ``size`` (3,) in m along the body axes."""
    corners = np.array([[i, j, k] for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)])
    faces = np.array(
        [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    )
    triangles = np.vstack([faces[:, [0, 1, 2]], faces[:, [0, 2, 3]]])
    return Shape(np.asarray(centre) + 0.5 * corners * np.asarray(size), triangles)


def cylinder_shape(
    radius: float,
    length: float,
    axis: int = 2,
    centre: ArrayLike = (0.0, 0.0, 0.0),
    sides: int = 48,
) -> Shape:
    """A closed cylinder along body axis 0, 1 or 2; radius and length in m."""
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
    return Shape(placed + np.asarray(centre), triangles)
