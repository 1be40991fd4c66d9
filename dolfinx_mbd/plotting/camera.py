"""Where the picture is taken from: a parallel projection that sees all of the scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, refuse

__all__ = ["VIEWS", "Camera", "camera_of"]

Array = NDArray[np.float64]

#: Directions from the scene to the eye, and what is up, by name.
VIEWS = {
    "xy": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0)),
    "xz": ((0.0, -1.0, 0.0), (0.0, 0.0, 1.0)),
    "yz": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "iso": ((1.0, -1.0, 0.8), (0.0, 0.0, 1.0)),
}


@dataclass(frozen=True, eq=False)
class Camera:
    """A parallel projection.

    Attributes:
        towards: Unit vector from the scene to the eye, (3,).
        up: Unit vector that is up in the picture, (3,).
        centre: Point in the middle of what is drawn, (3,), m.
        half: Half width and half height of what is drawn, m.
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
        """Aim the plotter's camera; fractions of the height below and above are left free."""
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
    """A camera that sees all points (np, 3).

    Args:
        points: What must be in the picture, m.
        view: A key of :data:`VIEWS` or the direction from the scene to the eye, (3,); None:
            obliquely onto the plane across ``normal``.
        normal: Of the plane of interest; None: the direction in which the points extend least.
        up: What is up; None: an axis that suits.

    Raises:
        ValueError: If the view is unknown.
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
        upright = np.eye(3)[1 if abs(n[2]) > 0.7 else 2]
        wanted = upright if up is None else np.asarray(up, dtype=float)
        if np.linalg.norm(np.cross(wanted, n)) > 0.1 * np.linalg.norm(wanted):
            upright = wanted
        upright = upright - (upright @ n) * n
        upright /= np.linalg.norm(upright)
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
