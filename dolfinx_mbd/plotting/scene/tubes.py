"""Shapes of marks, made of tubes: the only shape that a renderer needs to know beside surfaces.

A cylinder, a cone, a ball, a block, a coil and an arrow consist of tubes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.mechanism.shapes import Shape

__all__ = ["SHAPES", "Tube", "force_arrow", "mesh_of", "moment_arrow", "normal_vectors", "support"]

Array = NDArray[np.float64]

ORIGIN, Z = np.zeros(3), np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Tube:
    """A closed surface around a line.

    Attributes:
        points: Points of the line, shape (n, 3), m.
        radii: Radius at each point, shape (n,), m.
        sides: Number of sides of the cross-section.
    """

    points: Array
    radii: Array
    sides: int = 12

    def mesh(self) -> Shape:
        """Return the triangulated surface."""
        # The ends have a second ring with the radius 0, which closes them
        p = np.vstack([self.points[:1], self.points, self.points[-1:]])
        r = np.concatenate([[0.0], self.radii, [0.0]])
        x, y = _cross_sections(self.points)
        x, y = (np.vstack([v[:1], v, v[-1:]]) for v in (x, y))
        angle = np.pi * (2 * np.arange(self.sides) + 1) / self.sides
        rings = np.cos(angle)[:, None] * x[:, None] + np.sin(angle)[:, None] * y[:, None]
        n, m = len(p), self.sides
        corners = np.arange(n * m).reshape(n, m)
        a, b = corners[:-1], corners[1:]
        c, d = np.roll(b, -1, axis=1), np.roll(a, -1, axis=1)
        lower = np.stack([a, d, c], axis=2)[r[:-1] > 0]  # triangles at a tip have no area
        upper = np.stack([a, c, b], axis=2)[r[1:] > 0]
        triangles = np.vstack([lower.reshape(-1, 3), upper.reshape(-1, 3)])
        return Shape((p[:, None] + r[:, None, None] * rings).reshape(-1, 3), triangles)


def mesh_of(tubes: Iterable[Tube]) -> Shape:
    """Return tubes as one triangulated surface."""
    shapes = [tube.mesh() for tube in tubes]
    starts = np.cumsum([0, *(len(shape.points) for shape in shapes)])
    triangles = [s.triangles + start for s, start in zip(shapes, starts, strict=False)]
    return Shape(np.vstack([shape.points for shape in shapes]), np.vstack(triangles))


def _cross_sections(points: Array) -> tuple[Array, Array]:
    """Return two unit normals (n, 3) of a line at each point, which follow it without twist."""
    steps = np.diff(points, axis=0)
    steps = steps / np.maximum(np.linalg.norm(steps, axis=1, keepdims=True), 1e-300)
    tangents = np.vstack([steps[:1], steps[1:] + steps[:-1], steps[-1:]])
    tangents /= np.maximum(np.linalg.norm(tangents, axis=1, keepdims=True), 1e-300)
    x = np.empty_like(tangents)
    x[0] = normal_vectors(tangents[0])[0]
    if len(steps) == 1 or np.allclose(steps, steps[0]):
        x[:] = x[0]
    else:
        for k in range(1, len(tangents)):
            normal = x[k - 1] - (x[k - 1] @ tangents[k]) * tangents[k]
            x[k] = normal / (np.sqrt(normal @ normal) or 1.0)
    return x, np.cross(tangents, x)


def normal_vectors(z: Array) -> tuple[Array, Array]:
    """Return two unit vectors that form a right-handed triad with the unit vector z."""
    x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
    x = x / (np.linalg.norm(x) or 1.0)
    return x, np.asarray(np.cross(z, x), dtype=float)


# ---- shapes by name -----------------------------------------------------------------------------
def _straight(start: ArrayLike, end: ArrayLike, *radii: float, sides: int = 24) -> Tube:
    """Return a cylinder or a cone between two points, with one or two radii."""
    radii = radii if len(radii) > 1 else radii * 2
    return Tube(np.array([start, end], dtype=float), np.array(radii, dtype=float), sides)


def _along(low: float, high: float, radius: float, sides: int = 24) -> Tube:
    """Return a cylinder along z between two heights."""
    return _straight(low * Z, high * Z, radius, sides=sides)


def _ball(radius: float) -> Tube:
    """Return a sphere around the origin."""
    angle = np.linspace(0.0, np.pi, 13)
    line = -radius * np.cos(angle)[:, None] * Z
    return Tube(line, radius * np.sin(angle), 24)


def _helix(start: float, height: float, radii: Array, turns: float) -> Array:
    """Return the points of a helix about z with a radius for each point."""
    s = np.linspace(0.0, 1.0, len(radii))
    angle = 2 * np.pi * turns * s
    return np.stack([radii * np.cos(angle), radii * np.sin(angle), start + height * s], axis=1)


def _coil(r: float) -> Tube:
    """Return a coil from z = 0 to 1."""
    helix = _helix(0.15, 0.7, np.full(100, 1.4 * r), 8)
    points = np.vstack([ORIGIN, 0.12 * Z, helix, 0.88 * Z, Z])
    return Tube(points, np.full(len(points), 0.2 * r), 8)


def _damper(r: float) -> tuple[Tube, ...]:
    """Return a piston rod from z = 0 to 1 with a cylinder."""
    return _along(0.0, 1.0, 0.25 * r, 12), _along(0.275, 0.625, 0.75 * r)


def _spiral(r: float) -> tuple[Tube, ...]:
    """Return a flat spiral spring about z."""
    line = _helix(0.0, 0.0, r * np.linspace(0.8, 2.8, 80), 3.5)
    return (Tube(line, np.full(len(line), 0.2 * r), 8),)


def _block(r: float) -> tuple[Tube, ...]:
    """Return a cube around the origin."""
    return (_along(-r, r, np.sqrt(2.0) * r, 4),)


SHAPES: dict[str, Callable[[float], tuple[Tube, ...]]] = {
    "pin": lambda r: (_along(-2.5 * r, 2.5 * r, 0.6 * r),),
    "ball": lambda r: (_ball(r),),
    "block": _block,
    "sleeve": lambda r: (_along(-1.2 * r, 1.2 * r, 1.6 * r),),
    "spiral": _spiral,
    "rail": lambda r: (_along(-9 * r, 9 * r, 0.25 * r, 12),),
    "rod": lambda r: (_along(0.0, 1.0, 0.25 * r, 12),),
    "coil": lambda r: (_coil(r),),
    "damper": _damper,
    "coil and damper": lambda r: (_coil(r), *_damper(r)),
}
"""Shapes of marks by the name that a joint or a load declares as `mark`, for a size r (m).

The mark is at the second frame, with the z axis of the first frame. The last four shapes connect
both frames: they extend from z = 0 to 1, and the renderer stretches them.
"""

STRETCHED = ("rod", "coil", "damper", "coil and damper")
"""Shapes that connect both frames."""


def support(point: Array, up: Array, r: float) -> tuple[Tube, ...]:
    """Return a cone with its tip at a fixed point, on a plate."""
    plate, cone = point - np.outer([3.0, 2.6], r * up), np.array([point - 2.6 * r * up, point])
    return Tube(plate, np.full(2, 2.4 * r), 24), Tube(cone, np.array([1.5 * r, 0.0]), 24)


def force_arrow(start: Array, vector: Array, r: float) -> tuple[Tube, ...]:
    """Return an arrow along a vector (m)."""
    length = float(np.linalg.norm(vector))
    head = min(2.8 * r, 0.6 * length)
    neck = start + (1.0 - head / length) * vector
    return _straight(start, neck, 0.13 * head, sides=12), _straight(
        neck, start + vector, 0.38 * head, 0.0
    )


def moment_arrow(point: Array, vector: Array, r: float) -> tuple[Tube, ...]:
    """Return an arrow on a circle about a vector (m); the radius is the length of the vector."""
    radius = float(np.linalg.norm(vector))
    head = min(2.8 * r, radius)
    x, y = normal_vectors(np.asarray(vector / radius, dtype=float))
    angle = np.linspace(0.0, 1.5 * np.pi, 40)[:, None]
    arc = point + radius * (np.cos(angle) * x + np.sin(angle) * y)
    tip = arc[-1] + head * x  # the tangent at 3/4 of a circle
    line = Tube(arc, np.full(len(arc), 0.13 * head), 12)
    return line, _straight(arc[-1], tip, 0.38 * head, 0.0)
