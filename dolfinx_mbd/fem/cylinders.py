"""Cylinders fitted to the facets of an interface, such as a bore or a pin."""

from __future__ import annotations

import numpy as np
from dolfinx.mesh import Mesh, entities_to_geometry
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array

CORNER_TOLERANCE = 1e-6  # largest distance of a corner from the cylinder, relative to its radius
CENTROID_TOLERANCE = 0.05  # largest distance of the centroid from the axis, relative to the radius
MAX_ITERATIONS = 20
MIN_CORNERS = 6  # a cylinder has five unknowns: the radius, and two each of its point and axis


def facet_corners(mesh: Mesh, facets: NDArray[np.int32]) -> Array:
    """Return the distinct corners (three per facet), (n, 3), in the same order on all ranks."""
    dim = mesh.topology.dim
    mesh.topology.create_connectivity(dim - 1, dim)
    mesh.topology.create_connectivity(dim, dim - 1)
    local: Array = np.zeros((0, 3))
    if len(facets):
        nodes = entities_to_geometry(mesh, dim - 1, facets)[:, :3]
        local = np.asarray(mesh.geometry.x[np.unique(nodes)], dtype=np.float64)
    return np.unique(np.concatenate(mesh.comm.allgather(local)), axis=0)


def fit_axis(corners: Array, centroid: Array, z: Array) -> tuple[Array, Array] | None:
    """Return a point on the axis of a cylinder through the corners of facets, and its direction.

    The point is midway between the ends of the cylinder if the ends are plane. Otherwise it is the
    point of the axis that is closest to the centroid. The result is None if the corners are not on
    a cylinder, or only on one side of it. The corners of a bore lie on its cylinder up to
    round-off, whereas their centroid and mean normal depend on the mesh.

    Args:
        corners: Corners, shape (n, 3), m.
        centroid: Centroid of the facets, shape (3,), m.
        z: Approximate direction of the axis, unit length, shape (3,).
    """
    point, radius = centroid, 0.0
    if len(corners) < MIN_CORNERS:
        return None
    for _ in range(MAX_ITERATIONS):
        e = _normal_vectors(z)
        offset = (corners - point) @ e
        distance = np.linalg.norm(offset, axis=1)
        if not distance.min() > 0:
            return None
        direction = offset / distance[:, None]
        height = (corners - point) @ z
        # Gauss-Newton for distance − radius = 0; the unknowns are a shift of the point along the
        # two vectors e, a tilt of the axis along them, and the change of the radius, which is not
        # used because the mean distance replaces it
        derivative = np.hstack(
            [-direction, -height[:, None] * direction, -np.ones_like(distance)[:, None]]
        )
        per_length = 1.0 / max(np.ptp(height), 1e-300)
        scale = np.array([1.0, 1.0, per_length, per_length, 1.0])  # makes all columns comparable
        radius = float(distance.mean())
        step = scale * np.linalg.lstsq(derivative * scale, radius - distance, rcond=1e-10)[0]
        point = point + e @ step[:2]
        z = z + e @ step[2:4]
        z = z / np.linalg.norm(z)
        if np.abs(step[:2]).max() < 1e-15 * radius and np.abs(step[2:4]).max() < 1e-15:
            break
    distance = np.linalg.norm((corners - point) @ _normal_vectors(z), axis=1)
    radius = float(distance.mean())
    eccentricity = np.linalg.norm((centroid - point) @ _normal_vectors(z))
    if (
        np.abs(distance - radius).max() > CORNER_TOLERANCE * radius
        or eccentricity > CENTROID_TOLERANCE * radius
    ):
        return None
    height = (corners - point) @ z
    low, high = height.min(), height.max()
    tolerance = CORNER_TOLERANCE * radius
    corners_at_ends = np.sum(height < low + tolerance), np.sum(height > high - tolerance)
    has_plane_ends = min(corners_at_ends) >= 3
    return point + (0.5 * (low + high) if has_plane_ends else (centroid - point) @ z) * z, z


def cylinder_size(corners: Array, point: Array, axes: Array) -> tuple[float, float]:
    """Return radius and length (m) of the cylinder through the corners of facets.

    Its axis is the z axis of a frame, and the length is twice the distance from the origin of the
    frame to the nearer end. Both are zero if the corners are not on such a cylinder.

    Args:
        corners: Corners, shape (n, 3), m.
        point: Origin of the frame, shape (3,), m.
        axes: Axes of the frame as columns, shape (3, 3).
    """
    if len(corners) < MIN_CORNERS:
        return 0.0, 0.0
    x, y, z = axes.T @ (corners - point).T
    distance, angles = np.hypot(x, y), np.sort(np.arctan2(y, x))
    radius, length = float(distance.mean()), 2 * float(min(-z.min(), z.max()))
    gap = np.diff(angles, append=angles[0] + 2 * np.pi).max()
    is_cylinder = (
        np.abs(distance - radius).max() <= CORNER_TOLERANCE * radius
        and length > CORNER_TOLERANCE * radius
        and gap < np.pi
    )
    return (radius, length) if is_cylinder else (0.0, 0.0)


def _normal_vectors(z: Array) -> Array:
    """Return two unit vectors normal to z and to each other, as columns, shape (3, 2)."""
    x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x)])
