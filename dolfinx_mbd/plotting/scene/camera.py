"""Directions of views, and cameras that show all points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, reject

_OBLIQUE = 0.55, 0.45  # weights of the right and upward directions in the default view
_PARALLEL = 0.05  # sine of the angle of view and upward direction below which the latter changes
_STEEP = 0.1  # sine of the angle of `up` and the normal below which `up` is ignored
_LEAST_SIZE = 0.01  # least half width and height of the picture, relative to the scene

__all__ = ["VIEWS", "Camera", "camera_of", "length_of", "outermost"]

Array = NDArray[np.float64]

VIEWS = {
    "xy": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
    "xz": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "yz": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "iso": ((1.0, -1.0, 0.8), (0.0, 0.0, 1.0)),
}
"""Direction from the scene to the eye, and upward direction, by name of the view."""


@dataclass(frozen=True, eq=False)
class Camera:
    """A parallel projection of a scene."""

    towards: Array  # unit vector from the scene to the eye
    up: Array  # unit vector that points upwards in the picture
    centre: Array  # centre of the visible rectangle, m
    half: tuple[float, float]  # half width and half height of the rectangle, m
    depth: float  # diagonal of the bounding box of the scene, m

    @property
    def right(self) -> Array:
        """Unit vector that points to the right in the picture."""
        return np.asarray(np.cross(self.up, self.towards), dtype=float)

    def around(self, points: Array) -> Camera:
        """Return a camera with the same direction that shows points (points, 3)."""
        return _fitted(points, self.towards, self.up)


def camera_of(
    points: Array,
    view: str | ArrayLike | None,
    *,
    normal: ArrayLike | None = None,
    up: ArrayLike | None = None,
) -> Camera:
    """Return a camera that shows points (points, 3) in the direction of a view; see `plot_system`.

    Without a view, the camera looks obliquely onto the plane with the normal `normal`. By default
    the normal is the axis along which the points extend least. `up` is the preferred upward
    direction.
    """
    if normal is None:
        normal = np.eye(3)[2 - np.argmin(np.ptp(points, axis=0)[::-1])]  # the last axis if equal
    n: Array = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    if isinstance(view, str):
        if view not in VIEWS:
            reject("view", view, f"one of {', '.join(VIEWS)} or a direction (3,)")
        towards, upright = (np.array(v) for v in VIEWS[view])
    else:
        upright = _upward_direction(n, up)
        sideways, upwards = _OBLIQUE
        towards = n + sideways * np.cross(upright, n) + upwards * upright
        if view is not None:
            expected = f"a name ({', '.join(VIEWS)}) or three numbers that are not all zero"
            towards = array("view", view, (3,), expected=expected)
            if not np.linalg.norm(towards) > 0:
                reject("view", view, expected)
            if np.linalg.norm(np.cross(towards, upright)) < _PARALLEL * np.linalg.norm(towards):
                upright = n
    return _fitted(points, towards / np.linalg.norm(towards), upright)


def _fitted(points: Array, towards: Array, upright: Array) -> Camera:
    """Return a camera that shows points (points, 3).

    `towards` is the unit vector to the eye, and `upright` any vector that appears upright.
    """
    right = np.cross(upright, towards)
    right /= np.linalg.norm(right)
    top = np.cross(towards, right)
    projected = points @ np.column_stack([right, top])
    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    shift = 0.5 * (projected.max(axis=0) + projected.min(axis=0)) - (middle @ right, middle @ top)
    depth = length_of(points)
    width, height = np.maximum(0.5 * np.ptp(projected, axis=0), _LEAST_SIZE * depth)
    centre = middle + shift[0] * right + shift[1] * top
    return Camera(towards, top, centre, (float(width), float(height)), depth)


def _upward_direction(normal: Array, up: ArrayLike | None) -> Array:
    """Return the unit vector in the plane normal to `normal` that is closest to `up`."""
    upright = np.eye(3)[1 if abs(normal[2]) > 0.7 else 2]  # y if the normal is nearly z
    preferred = upright if up is None else np.asarray(up, dtype=float)
    if np.linalg.norm(np.cross(preferred, normal)) > _STEEP * np.linalg.norm(preferred):
        upright = preferred
    upright = upright - (upright @ normal) * normal
    return upright / np.linalg.norm(upright)


def length_of(points: ArrayLike) -> float:
    """Return the diagonal of the bounding box of points (points, 3), m; 1 if they coincide."""
    return float(np.linalg.norm(np.ptp(np.asarray(points), axis=0))) or 1.0


def outermost(points: Array, count: int) -> NDArray[np.int64]:
    """Return the indices of the outermost points in `count` evenly distributed directions."""
    k = np.arange(count)
    z, angle = 1 - (2 * k + 1) / count, np.pi * (1 + 5**0.5) * k  # spiral of Fibonacci
    ring = np.sqrt(1 - z**2)
    directions = np.column_stack([ring * np.cos(angle), ring * np.sin(angle), z])
    return np.unique([np.argmax(points @ direction) for direction in directions])
