"""Surfaces of rigid bodies for drawings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import array, integer, memory, number, reject, vector
from dolfinx_mbd.html import short_repr

__all__ = ["Shape", "box_shape", "cylinder_shape"]


@dataclass(frozen=True, eq=False)
class Shape:
    """A triangulated surface in the body frame; `+` joins two surfaces.

    Attributes:
        points: Points, shape (nodes, 3), m.
        triangles: Zero-based indices of the corner points of each triangle, shape (nt, 3).

    Raises:
        InputError: The points are not finite, or a triangle refers to an unknown point.

    Example:
        >>> pin = mbd.mechanism.cylinder_shape(0.2, 2.0)
        >>> (mbd.mechanism.box_shape((1, 1, 1)) + pin).points.shape
        (106, 3)
    """

    points: NDArray[np.float64]
    triangles: NDArray[np.int64]

    __repr__ = short_repr

    def __post_init__(self) -> None:
        points = array("points", self.points, (None, 3))
        corners = array("triangles", self.triangles, (None, 3))
        if ((corners < 0) | (corners >= len(points)) | (corners % 1 != 0)).any():
            reject("triangles", self.triangles, f"indices of points from 0 to {len(points) - 1}")
        assign(self, points=points, triangles=corners.astype(np.int64))

    def __add__(self, other: Shape) -> Shape:
        triangles = np.vstack([self.triangles, other.triangles + len(self.points)])
        return Shape(np.vstack([self.points, other.points]), triangles)


def box_shape(size: ArrayLike, centre: ArrayLike = (0.0, 0.0, 0.0)) -> Shape:
    """Return the surface of a box.

    Args:
        size: Lengths of the edges along the body axes, shape (3,), m.
        centre: Centre in the body frame, shape (3,), m.

    Raises:
        InputError: A length is not positive.

    Example:
        >>> mbd.mechanism.box_shape((0.2, 0.1, 0.1)).triangles.shape
        (12, 3)
    """
    sides = vector("size", size, unit="m")
    if sides.min() <= 0:
        reject("size", size, "three positive numbers in m")
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
    """Return the closed surface of a circular cylinder.

    Args:
        radius: Radius, m.
        length: Length, m.
        axis: Body axis along the cylinder: 0, 1 or 2.
        centre: Centre in the body frame, shape (3,), m.
        sides: Number of points around the axis.

    Raises:
        InputError: An argument is out of range.

    Example:
        >>> mbd.mechanism.cylinder_shape(0.1, 0.4, axis=0, sides=12).points.shape
        (26, 3)
    """
    radius = number("radius", radius, positive=True, unit="m")
    length = number("length", length, positive=True, unit="m")
    axis, sides = integer("axis", axis, low=0, high=2), integer("sides", sides, low=3)
    bytes_per_side = 144  # two points of three numbers, four triangles of three indices
    memory("sides", sides, bytes_per_side * sides)
    i = np.arange(sides)
    angle, end = 2 * np.pi * i / sides, np.full(sides, length / 2)
    circle = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), end])
    points = np.vstack([circle * (1, 1, -1), circle, [[0, 0, -length / 2], [0, 0, length / 2]]])
    j = (i + 1) % sides
    # Two triangles for each side, and one in each end about its centre
    low, high = np.full(sides, 2 * sides), np.full(sides, 2 * sides + 1)
    corners = [(i, j, i + sides), (j, j + sides, i + sides), (j, i, low)]
    corners.append((i + sides, j + sides, high))
    triangles = np.vstack([np.column_stack(columns) for columns in corners])
    points = np.roll(points, axis - 2, axis=1)  # rotate the cylinder from z to its axis
    return Shape(points + vector("centre", centre, unit="m"), triangles)
