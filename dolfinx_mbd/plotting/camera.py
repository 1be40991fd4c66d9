"""Camera of a picture: a parallel projection of the whole scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, refuse

__all__ = ["VIEWS", "Camera", "camera_of"]

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
    """A parallel projection.

    Attributes:
        towards: Unit vector from the scene to the eye, shape (3,).
        up: Unit vector that points upwards in the picture, shape (3,).
        centre: Centre of the visible rectangle, shape (3,), m.
        half: Half width and half height of the visible rectangle, m.
        depth: Size of the scene, m.
    """

    towards: Array
    up: Array
    centre: Array
    half: tuple[float, float]
    depth: float

    def apply(
        self, plotter: Any, *, below: float = 0.0, above: float = 0.0, margin: float = 0.06
    ) -> None:
        """Set the camera of a plotter.

        Args:
            plotter: A pyvista plotter.
            below: Fraction of the height that is left free below the scene.
            above: Fraction of the height that is left free above the scene.
            margin: Fraction of the width and height that is left free on each side.
        """
        left, bottom, right, top = plotter.renderer.GetViewport()
        width, height = plotter.window_size
        aspect = width * (right - left) / (height * (top - bottom))
        free = 1.0 - below - above - 2 * margin
        scale = max(self.half[1] / free, self.half[0] / (aspect * (1.0 - 2 * margin)))
        focal = self.centre + scale * (above - below) * self.up
        plotter.enable_parallel_projection()
        plotter.camera.focal_point = focal
        plotter.camera.position = focal + 4 * self.depth * self.towards
        plotter.camera.up = self.up
        plotter.camera.parallel_scale = scale
        plotter.renderer.ResetCameraClippingRange()


def camera_of(
    points: Array,
    view: str | ArrayLike | None,
    *,
    normal: ArrayLike | None = None,
    up: ArrayLike | None = None,
) -> Camera:
    """Return a camera that sees all points.

    Args:
        points: Points in the picture, shape (np, 3), m.
        view: Key of `VIEWS`, or the direction from the scene to the eye, shape (3,); None:
            obliquely onto the plane normal to `normal`.
        normal: Normal of the plane of interest, shape (3,); None: the coordinate axis along which
            the points extend least.
        up: Upward direction, shape (3,); None: a coordinate axis.

    Raises:
        InputError: The view is unknown or the direction is zero.
    """
    if normal is None:
        normal = np.eye(3)[2 - np.argmin(np.ptp(points, axis=0)[::-1])]
    n: Array = np.asarray(normal, dtype=float)
    n = n / np.linalg.norm(n)
    if isinstance(view, str):
        if view not in VIEWS:
            refuse("view", view, f"one of {', '.join(VIEWS)} or a direction (3,)")
        towards, upright = (np.array(v) for v in VIEWS[view])
    else:
        upright = _upright(n, up)
        towards = n + 0.55 * np.cross(upright, n) + 0.45 * upright
        if view is not None:
            expected = f"a name ({', '.join(VIEWS)}) or three numbers that are not all zero"
            towards = array("view", view, (3,), expected=expected)
            if not np.linalg.norm(towards) > 0:
                refuse("view", view, expected)
            if np.linalg.norm(np.cross(towards, upright)) < 0.05 * np.linalg.norm(towards):
                upright = n
    towards = towards / np.linalg.norm(towards)
    right = np.cross(upright, towards)
    right /= np.linalg.norm(right)
    top = np.cross(towards, right)
    across, along = points @ right, points @ top
    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    shift = (
        0.5 * (across.max() + across.min()) - middle @ right,
        0.5 * (along.max() + along.min()) - middle @ top,
    )
    depth = float(np.linalg.norm(np.ptp(points, axis=0))) or 1.0
    half = (
        max(0.5 * float(np.ptp(across)), 0.01 * depth),
        max(0.5 * float(np.ptp(along)), 0.01 * depth),
    )
    return Camera(towards, top, middle + shift[0] * right + shift[1] * top, half, depth)


def _upright(normal: Array, up: ArrayLike | None) -> Array:
    """Return the unit vector in the plane normal to `normal` that is closest to `up`."""
    upright = np.eye(3)[1 if abs(normal[2]) > 0.7 else 2]
    preferred = upright if up is None else np.asarray(up, dtype=float)
    if np.linalg.norm(np.cross(preferred, normal)) > 0.1 * np.linalg.norm(preferred):
        upright = preferred
    upright = upright - (upright @ normal) * normal
    return upright / np.linalg.norm(upright)
