"""Positions of drawn points: deformed skins, rigid shapes, and bars for other bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import array, instance, number, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.multibody.model.protocol import Body, Frame
from dolfinx_mbd.multibody.model.shapes import Shape, box_shape, cylinder_shape
from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.results.histories import rotation_matrices

__all__ = [
    "Part",
    "drawn_part",
    "frame_poses",
    "length_of",
    "required_skin",
    "rotation_to",
    "skin_displacement",
    "skin_points",
    "system_length",
]

Array = NDArray[np.float64]


def required_skin(body: ReducedBody) -> Skin:
    """Return the skin of a body.

    Args:
        body: A reduced body.

    Raises:
        InputTypeError: `body` is not a reduced body.
        InputError: The body has no skin; the message describes how to create one.
    """
    instance("body", body, ReducedBody)
    if body.skin is None or len(body.skin.triangles) == 0:
        raise InputError(
            f"body {body.name!r} has no skin to draw; reduce it with reduce(..., skin=True), "
            "or give ReducedBody.from_arrays a Skin",
            argument="body",
            value=body,
            expected="a body with a skin",
        )
    return body.skin


def skin_displacement(skin: Skin, eta: ArrayLike) -> Array:
    """Return the elastic displacement of the skin's nodes in body axes, shape (ns, 3), m.

    Args:
        skin: A skin with n modes.
        eta: Elastic coordinates, shape (n,).

    Raises:
        InputError: The number of elastic coordinates differs from the number of modes.

    Example:
        >>> mbd.plotting.skin_displacement(body.skin, [1e-3, 0.0]).shape
        (4, 3)
    """
    count = len(instance("skin", skin, Skin).modes)
    values: Array = array("eta", eta, (count,), expected=f"{count} elastic coordinates")
    return np.asarray(np.tensordot(values, skin.modes, axes=1), dtype=np.float64)


def skin_points(
    skin: Skin,
    eta: ArrayLike,
    *,
    scale: float = 1.0,
    position: ArrayLike = (0.0, 0.0, 0.0),
    rotation: ArrayLike = (1.0, 0.0, 0.0, 0.0),
) -> Array:
    """Return the positions r + A (x + scale Σ ψ_k η_k) of the skin's nodes, shape (ns, 3), m.

    Args:
        skin: A skin with n modes.
        eta: Elastic coordinates, shape (n,).
        scale: Scale factor of the elastic displacement.
        position: Position r of the origin of the body frame, shape (3,), m.
        rotation: Quaternion (w, x, y, z) of the body frame.

    Raises:
        InputError: A shape does not fit.

    Example:
        >>> mbd.plotting.skin_points(body.skin, [0.0, 0.0], position=(1.0, 0.0, 0.0))[0]
        array([ 0.5 , -0.02,  0.  ])
    """
    instance("skin", skin, Skin)
    scale, origin = number("scale", scale), vector("position", position, unit="m")
    moved = skin.points + scale * skin_displacement(skin, eta)
    turned = moved @ rotation_matrices(vector("rotation", rotation, 4)).T
    return np.asarray(origin + turned, dtype=float)


@dataclass(frozen=True, eq=False)
class Part:
    """The drawn surface of one body.

    Attributes:
        name: Name of the body.
        skin: Surface in the body frame; a rigid part has no modes.
        bars: Whether the surface consists of bars, because the shape of the body is unknown.
    """

    name: str
    skin: Skin
    bars: bool = False

    @property
    def flexible(self) -> bool:
        """Whether the part is coloured by its elastic displacement."""
        return len(self.skin.modes) > 0

    def points(self, q: Array, scale: float) -> Array:
        """Return the points for the coordinates q = (position, quaternion, η), shape (ns, 3), m."""
        eta = q[7:] if self.flexible else np.zeros(0)
        return skin_points(self.skin, eta, scale=scale, position=q[:3], rotation=q[3:7])

    def displacement(self, q: Array) -> Array:
        """Return the magnitude of the elastic displacement, shape (ns,), m."""
        eta = q[7:] if self.flexible else np.zeros(0)
        return np.linalg.norm(skin_displacement(self.skin, eta), axis=1)


def drawn_part(body: Body, length: float) -> Part | None:
    """Return the part that is drawn for a body, or None for the ground.

    It is the skin or shape of the body, or bars from its centre of mass to its frames.

    Args:
        body: A body of a mechanism.
        length: Size of the mechanism, m; the thickness of bars is proportional to it.
    """
    if isinstance(body, FlexibleBody):
        reduced = body.reduced
        if reduced.skin is not None and len(reduced.skin.triangles):
            return Part(body.name, reduced.skin)
        shape, points = None, [i.point for i in reduced.interfaces]
        centre = reduced.centre
    elif isinstance(body, RigidBody):
        points = [np.asarray(Frame(*frame).point, dtype=float) for frame in body.frames.values()]
        shape, centre = body.shape, np.asarray(body.centre, dtype=float)
    else:
        return None
    surface = shape if shape is not None else _bars(centre, points, length)
    skin = Skin(surface.points, surface.triangles, np.zeros((0, len(surface.points), 3)))
    return Part(body.name, skin, bars=shape is None)


def _bars(centre: Array, points: list[Array], length: float) -> Shape:
    """Return a block at the centre of mass and bars from it to the frames."""
    radius = 0.008 * length
    shape = box_shape(np.full(3, 4 * radius), centre)
    for point in points:
        along = point - centre
        size = float(np.linalg.norm(along))
        if size > radius:
            bar = cylinder_shape(radius, size, 2, (0.0, 0.0, size / 2), sides=16)
            shape += Shape(centre + bar.points @ rotation_to(along).T, bar.triangles)
    return shape


def rotation_to(axis: ArrayLike) -> Array:
    """Return a rotation matrix (3, 3) whose third column is parallel to an axis."""
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def length_of(points: ArrayLike) -> float:
    """Return the diagonal of the bounding box of points (np, 3), m; 1 if they coincide."""
    return float(np.linalg.norm(np.ptp(np.asarray(points), axis=0))) or 1.0


def frame_poses(system: SystemData, q: Array) -> tuple[Array, Array]:
    """Return positions (F, 3) and rotation matrices (F, 3, 3) of all frames for coordinates q."""
    position, rotation = np.zeros((system.num_frames, 3)), np.zeros((system.num_frames, 3, 3))
    for body, qs, fs in zip(system.bodies, system.q_slices, system.frame_slices, strict=True):
        body.poses(q[qs], position[fs], rotation[fs])
    return position, rotation


def system_length(system: SystemData, q: Array) -> float:
    """Return the size of a mechanism from its frames and the origins of its bodies, m."""
    origins = [q[s][:3] for s in system.q_slices if s.stop > s.start]
    return length_of(np.vstack([frame_poses(system, q)[0], *origins]))
