"""Where the drawn points are: deformed skins, rigid shapes, bars for bodies without either."""

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
    "needed_skin",
    "skin_displacement",
    "skin_points",
    "system_length",
    "turned_to",
]

Array = NDArray[np.float64]


def needed_skin(body: ReducedBody) -> Skin:
    """The body's skin.

    Raises:
        ValueError: If it has none; the message says how to get one.
    """
    instance("body", body, ReducedBody)
    if body.skin is None or len(body.skin.triangles) == 0:
        raise InputError(
            f"body {body.name!r} has no skin to draw; reduce it with reduce(..., skin=True), "
            "or give ReducedBody.from_arrays a Skin"
        )
    return body.skin


def skin_displacement(skin: Skin, eta: ArrayLike) -> Array:
    """Elastic displacement of the skin's nodes, body components, (ns, 3), m.

    Args:
        skin: A skin with n modes.
        eta: Elastic coordinates, (n,).

    Raises:
        ValueError: If the number of coordinates is not that of the modes.
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
    """Where the skin's nodes are: r + A (x + scale Σ ψ_k η_k), global components, (ns, 3), m.

    Args:
        skin: A skin with n modes.
        eta: Elastic coordinates, (n,).
        scale: Enlargement of the elastic part.
        position: Of the body frame's origin, (3,), m.
        rotation: Of the body frame, quaternion (w, x, y, z).
    """
    instance("skin", skin, Skin)
    scale, origin = number("scale", scale), vector("position", position, unit="m")
    moved = skin.points + scale * skin_displacement(skin, eta)
    turned = moved @ rotation_matrices(vector("rotation", rotation, 4)).T
    return np.asarray(origin + turned, dtype=float)


@dataclass(frozen=True, eq=False)
class Part:
    """What is drawn of one body: a surface in the body frame, its modes if it has any.

    Attributes:
        name: The body.
        skin: Points (ns, 3), triangles (nt, 3), modes (n, ns, 3); n = 0 for a rigid part.
        bars: Whether the surface stands for a body of unknown shape.
    """

    name: str
    skin: Skin
    bars: bool = False

    @property
    def flexible(self) -> bool:
        """Whether its elastic displacement is shown by colour."""
        return len(self.skin.modes) > 0

    def points(self, q: Array, scale: float) -> Array:
        """Global points (ns, 3), m, at the body's coordinates q = (position, quaternion, η)."""
        eta = q[7:] if self.flexible else np.zeros(0)
        return skin_points(self.skin, eta, scale=scale, position=q[:3], rotation=q[3:7])

    def displacement(self, q: Array) -> Array:
        """Magnitude of the elastic displacement, (ns,), m."""
        eta = q[7:] if self.flexible else np.zeros(0)
        return np.linalg.norm(skin_displacement(self.skin, eta), axis=1)


def drawn_part(body: Body, length: float) -> Part | None:
    """What to draw of a body: its skin or shape, else bars to its frames; None for the ground.

    Args:
        body: A body of a mechanism.
        length: Of the mechanism, m; bars are made in proportion.
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
    """A block at the centre of mass and a bar from it to each frame."""
    radius = 0.008 * length
    shape = box_shape(np.full(3, 4 * radius), centre)
    for point in points:
        along = point - centre
        size = float(np.linalg.norm(along))
        if size > radius:
            bar = cylinder_shape(radius, size, 2, (0.0, 0.0, size / 2), sides=16)
            shape += Shape(centre + bar.points @ turned_to(along).T, bar.triangles)
    return shape


def turned_to(axis: ArrayLike) -> Array:
    """A rotation (3, 3) whose third column is along an axis."""
    z = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])


def length_of(points: ArrayLike) -> float:
    """Diagonal of the box around points (np, 3), m; 1 where they coincide."""
    return float(np.linalg.norm(np.ptp(np.asarray(points), axis=0))) or 1.0


def frame_poses(system: SystemData, q: Array) -> tuple[Array, Array]:
    """Positions (F, 3) and orientations (F, 3, 3) of all frames at a system's coordinates (nq,)."""
    position, rotation = np.zeros((system.num_frames, 3)), np.zeros((system.num_frames, 3, 3))
    for body, qs, fs in zip(system.bodies, system.q_slices, system.frame_slices, strict=True):
        body.poses(q[qs], position[fs], rotation[fs])
    return position, rotation


def system_length(system: SystemData, q: Array) -> float:
    """Size of a mechanism by its frames and the origins of its bodies, m."""
    origins = [q[s][:3] for s in system.q_slices if s.stop > s.start]
    return length_of(np.vstack([frame_poses(system, q)[0], *origins]))
