"""Placement of bodies by their frames."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import instance, metres, reject, rotation_matrix, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels import rotations
from dolfinx_mbd.mechanism.bodies import FlexibleBody, Ground, RigidBody
from dolfinx_mbd.mechanism.floating_body import checked_rotation

__all__ = ["place"]

Array = NDArray[np.float64]
B = TypeVar("B", RigidBody, FlexibleBody)
Target: TypeAlias = "ArrayLike | tuple[RigidBody | FlexibleBody | Ground, str]"
"""Global position (3,), m, or a placed body and the name of its frame."""


def place(
    body: B,
    *,
    by: str,
    at: Target,
    axes: ArrayLike | None = None,
    rotation: ArrayLike | None = None,
    towards: tuple[str, Target] | None = None,
) -> B:
    """Return a body with one of its frames at a given position.

    Args:
        body: The body. It keeps its present orientation if you specify no other one.
        by: Name of the frame, the interface or the named point that is placed at `at`.
        at: Position in global coordinates, (3,), m or with units; or another body that is already
            placed and the name of its frame, such as ``(crank, "pin")``.
        axes: Axes of the frame `by` in global components as columns, shape (3, 3).
        rotation: Orientation of the body frame, instead of `axes`: rotation vector (3,), rad,
            quaternion (w, x, y, z) or rotation matrix.
        towards: Name of a second frame of the body, and a position or a frame as in `at`. The body
            is turned about `by` through the smallest angle, so that the second frame is in the
            direction of this position.

    Raises:
        InputError: A frame does not exist, `axes` and `rotation` are both given, or the direction
            of `towards` is not defined.

    Example:
        >>> arm = mbd.place(rod, by="left", at=(2, 0, 0), rotation=(0, 0, np.pi / 2))
        >>> print(np.round(arm.position, 12))
        [2.  0.5 0. ]
        >>> link = mbd.place(rod, by="left", at=(arm, "right"), towards=("right", (9, 1, 0)))
        >>> print(np.round(link.position, 12))
        [2.5 1.  0. ]
    """
    hint = "mbd.RigidBody or mbd.FlexibleBody"
    instance("body", body, (RigidBody, FlexibleBody), hint)
    origin = _target("at", at)
    R = rotations.rotation_matrix(checked_rotation(f"body {body.name!r}: rotation", body.rotation))
    if axes is not None and rotation is not None:
        raise InputError("give axes (of the frame) or rotation (of the body), not both")
    if axes is not None:
        _, frame_axes = _pose(body, by)
        axes_in_body = R.T @ frame_axes
        R = rotation_matrix("axes", axes) @ axes_in_body.T
    elif rotation is not None:
        R = rotations.rotation_matrix(checked_rotation("rotation", rotation))
    result: B = replace(body, rotation=R)
    if towards is not None:
        R = _rotation_towards(result, by, towards, origin) @ R
        result = replace(body, rotation=R)
    point, _ = _pose(result, by)
    arm = point - np.asarray(result.position, dtype=float)
    return replace(result, position=origin - arm)


def _pose(body: Any, name: str) -> tuple[Array, Array]:
    """Return the position and the axes of a frame of a body as placed."""
    body.frame(name)  # raises an error for an unknown name
    if isinstance(body, FlexibleBody) and name in body.point_names:
        body = body.with_points([name])
    count = len(body.frame_names)
    position, rotation = np.zeros((count, 3)), np.zeros((count, 3, 3))
    body.poses(body.initial_coordinates(), position, rotation)
    k = body.frame_names.index(name)
    return position[k], rotation[k]


def _target(argument: str, target: Any) -> Array:
    """Return the global position of a target, shape (3,), m."""
    if isinstance(target, tuple) and len(target) == 2 and isinstance(target[1], str):
        body, frame = target
        kinds = (RigidBody, FlexibleBody, Ground)
        position, _ = _pose(instance(argument, body, kinds, "a placed body"), frame)
        return position
    return np.asarray(
        vector(argument, metres(target), unit="m, or a placed body and a name of its frame")
    )


def _rotation_towards(body: Any, by: str, towards: Any, origin: Array) -> Array:
    """Return the rotation from the direction of a second frame to the direction of a position."""
    if not isinstance(towards, tuple) or len(towards) != 2 or not isinstance(towards[0], str):
        reject("towards", towards, "the name of a frame of the body, and a position or a frame")
    frame, target = towards
    first, axes = _pose(body, by)
    second, _ = _pose(body, frame)
    directions = []
    for d in (second - first, _target("towards", target) - origin):
        if not d.any():
            text = f"towards: its position or the frame {frame!r} coincides with {by!r}"
            raise InputError(text, argument="towards", value=towards)
        directions.append(d / np.linalg.norm(d))
    old, new = directions
    normal = np.cross(old, new)
    angle = np.arctan2(np.linalg.norm(normal), old @ new)
    if np.linalg.norm(normal) < 1e-9:
        # The directions are parallel or opposite, and every normal of `old` can be the axis: take
        # the axis of the frame that is closest to a normal, preferably z
        normal = axes[:, np.argmin(np.abs(axes.T @ old) - [0.0, 0.0, 1e-9])]
        normal = normal - (normal @ old) * old
    return rotations.exp_rotation(angle * normal / np.linalg.norm(normal))
