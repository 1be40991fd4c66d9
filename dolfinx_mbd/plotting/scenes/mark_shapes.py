"""Shapes of the marks of joints, springs and loads in pictures of mechanisms."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.plotting.scenes import scene

Array = NDArray[np.float64]


def merged(*parts: Any) -> Any:
    """Return surfaces as one surface with smooth shading except at sharp edges."""
    whole = scene.pyvista().merge(list(parts)) if len(parts) > 1 else parts[0]
    options = {"cell_normals": False, "split_vertices": True, "feature_angle": 40.0}
    return whole.triangulate().compute_normals(**options)


def tube(points: Any, radius: float) -> Any:
    """Return a tube along points (n, 3)."""
    return scene.pyvista().MultipleLines(np.asarray(points)).tube(radius=radius, n_sides=12)


def cone(base: Array, axis: Array, height: float, radius: float) -> Any:
    """Return a cone with its tip at base + height · axis."""
    centre = base + 0.5 * height * axis
    return scene.pyvista().Cone(
        center=centre, direction=axis, height=height, radius=radius, resolution=24
    )


def spiral(start: Array, along: Array, axis: Array, radii: Array, turns: float) -> Array:
    """Return points on a spiral or helix about an axis, advancing by `along` in total."""
    x, y = _normal_vectors(axis)
    s = np.linspace(0.0, 1.0, len(radii))[:, None]
    angle = 2 * np.pi * turns * s
    directions = np.cos(angle) * x + np.sin(angle) * y
    return np.asarray(start + s * along + radii[:, None] * directions)


def _normal_vectors(z: Array) -> tuple[Array, Array]:
    """Return two unit vectors that form a right-handed triad with the unit vector z."""
    _, x = length_and_direction(np.cross(np.eye(3)[np.argmin(np.abs(z))], z))
    return x, np.asarray(np.cross(z, x), dtype=float)


def length_and_direction(vector: Array) -> tuple[float, Array]:
    """Return the length and the direction of a vector."""
    length = float(np.linalg.norm(vector))
    return length, np.asarray(vector / (length or 1.0), dtype=float)


def force_arrow(start: Array, vector: Array, r: float) -> Any:
    """Return an arrow along a vector (m)."""
    length, n = length_and_direction(vector)
    head = min(2.8 * r, 0.6 * length)
    neck = start + vector - head * n
    return merged(tube([start, neck], 0.13 * head), cone(neck, n, head, 0.38 * head))


def moment_arrow(point: Array, vector: Array, r: float) -> Any:
    """Return an arrow on a circle about a vector (m); the radius is the length of the vector."""
    radius, z = length_and_direction(vector)
    head = min(2.8 * r, radius)
    arc = spiral(point, np.zeros(3), z, np.full(60, radius), 0.75)
    tangent = np.cross(z, (arc[-1] - point) / radius)
    return merged(tube(arc, 0.13 * head), cone(arc[-1], tangent, head, 0.38 * head))


def spring_or_sleeve(shapes: Collection[str], start: Array, end: Array, z: Array, r: float) -> Any:
    """Return a coil, a damper or both; a sleeve about the axis z if the points are close."""
    pv, along = scene.pyvista(), end - start
    length, n = length_and_direction(along)
    if length < 2 * r:
        return merged(
            pv.Cylinder(center=0.5 * (start + end), direction=z, radius=1.6 * r, height=2.4 * r)
        )
    parts = []
    if "coil" in shapes:
        coil = spiral(start + 0.15 * along, 0.7 * along, n, np.full(240, 1.4 * r), 8)
        ends = start + 0.12 * along, end - 0.12 * along
        parts.append(tube(np.vstack([start, ends[0], coil, ends[1], end]), 0.2 * r))
    if "damper" in shapes:
        parts.append(tube([start, end], 0.25 * r))
        centre = start + 0.45 * along
        parts.append(pv.Cylinder(center=centre, direction=n, radius=0.75 * r, height=0.35 * length))
    return merged(*parts)
