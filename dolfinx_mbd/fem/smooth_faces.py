"""The smooth surfaces of a mesh without names, with numbers, from which a user can choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from dolfinx import la
from dolfinx.mesh import Mesh
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.cylinders import fit_axis
from dolfinx_mbd.fem.facet_selection import CORNERS, boundary, smooth_labels
from dolfinx_mbd.fem.meshing import TaggedMesh, plain_mesh
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.html import short_repr

FLAT = 1e-6  # largest difference of the unit normals of a plane
ROUNDING = 6  # decimal places of areas and centres, relative to the size, that determine the order


@dataclass(frozen=True, eq=False)
class SmoothFace:
    """A smooth part of a surface, bounded by edges at which the normal turns by 40° or more.

    Attributes:
        number: Number of the face, from 1.
        kind: ``plane``, ``cylinder`` (all around, such as a bore or a pin) or ``curved``.
        area: Area of the plane facets through the corners, m².
        centre: Centroid of this area, shape (3,), m; that of a bore lies on its axis.
        point: Point on the face, away from its edges, shape (3,), m: ``near`` of `pick` selects the
            face with it.
        direction: Outward normal of a plane or axis of a cylinder, shape (3,); None if curved.
        radius: Radius of a cylinder, m; None for other faces.
        facets: Local indices of the facets, including ghosts, as `pick` returns them.
        corners: Corners of the facets of all ranks, shape (nf, 3 or 4, 3), m.

    Example:
        >>> mesh = mbd.build_mesh(bar, MPI.COMM_WORLD)
        >>> face = mbd.fem.smooth_faces(mesh)[0]
        >>> bool((face.facets == mbd.fem.pick(mesh, near=face.point)).all())
        True
    """

    number: int
    kind: Literal["plane", "cylinder", "curved"]
    area: float
    centre: Array
    point: Array
    direction: Array | None
    radius: float | None
    facets: NDArray[np.int32]
    corners: Array

    __repr__ = short_repr


def smooth_faces(mesh: TaggedMesh | Mesh) -> list[SmoothFace]:
    """Return the smooth faces of the surface of a body, largest first.

    They are the faces that `pick` selects near a point. `mbd.plotting.plot_faces` draws them with
    their numbers; ``dolfinx-mbd faces`` does both for a mesh file.

    Args:
        mesh: A mesh of solids; names of groups are not used.

    Raises:
        InputError: The mesh has no solids.

    Note: Collective; the numbers do not depend on the number of ranks.

    Example:
        >>> faces = mbd.fem.smooth_faces(mbd.build_mesh(bar, MPI.COMM_WORLD))
        >>> [(face.number, face.kind, round(face.area, 3)) for face in faces[-2:]]
        [(5, 'plane', 0.01), (6, 'plane', 0.01)]
    """
    instance("mesh", mesh, (TaggedMesh, Mesh))
    domain = plain_mesh(mesh)
    cell, dim = domain.topology.cell_name(), domain.topology.dim
    if cell not in CORNERS or dim != 3:
        raise InputError(f"smooth_faces needs a mesh of solids; got {cell} cells", argument="mesh")
    comm, surface, size = domain.comm, boundary(domain), body_size(domain)
    labels = smooth_labels(comm, surface)
    corners = np.concatenate(comm.allgather(surface.x[:, : CORNERS[cell]]))
    normals = np.concatenate(comm.allgather(surface.normals))
    faces = [_face(corners[labels == k], normals[labels == k]) for k in range(labels.max() + 1)]
    order = sorted(range(len(faces)), key=lambda k: _order(faces[k], size))
    marks = la.vector(domain.topology.index_map(dim - 1))
    marks.array[:] = -1
    start = comm.exscan(len(surface.facets)) or 0
    marks.array[surface.facets] = labels[start : start + len(surface.facets)]
    marks.scatter_forward()
    return [
        SmoothFace(
            number,
            **_shape(faces[k]),
            facets=np.flatnonzero(marks.array == k).astype(np.int32),
            corners=faces[k].corners,
        )
        for number, k in enumerate(order, 1)
    ]


@dataclass(frozen=True, eq=False)
class _Facets:
    """The facets of a face: corners, unit normals, area and centroid of each and of all."""

    corners: Array
    normals: Array
    centres: Array
    area: float
    centre: Array


def _face(corners: Array, normals: Array) -> _Facets:
    """Return the facets of a face with their areas and centroids."""
    triangles = [corners[:, :3], corners[:, 1:]] if corners.shape[1] == 4 else [corners]
    areas, moments = np.zeros(len(corners)), np.zeros((len(corners), 3))
    for x in triangles:
        part = 0.5 * np.linalg.norm(np.cross(x[:, 1] - x[:, 0], x[:, 2] - x[:, 0]), axis=1)
        areas += part
        moments += part[:, None] * x.mean(axis=1)
    area = float(areas.sum())
    return _Facets(corners, normals, moments / areas[:, None], area, moments.sum(axis=0) / area)


def _order(face: _Facets, size: float) -> tuple[float, ...]:
    """Return a key that sorts faces by area, and equal ones by their centres."""
    area = round(-face.area / size**2, ROUNDING)
    return area, *(round(float(x), ROUNDING) for x in face.centre / size)


def _shape(face: _Facets) -> dict[str, Any]:
    """Return the geometry of a face by the names of the attributes."""
    nearest = np.linalg.norm(face.centres - face.centre, axis=1).argmin()
    result: dict[str, Any] = {
        "kind": "curved",
        "area": face.area,
        "centre": face.centre,
        "point": face.centres[nearest],
        "direction": None,
        "radius": None,
    }
    mean = face.normals.mean(axis=0)
    if np.abs(face.normals - mean).max() < FLAT:
        return {**result, "kind": "plane", "direction": mean / np.linalg.norm(mean)}
    # The normals of a cylinder are perpendicular to its axis: one eigenvalue is much smaller
    values, vectors = np.linalg.eigh(face.normals.T @ face.normals)
    corners = np.unique(face.corners.reshape(-1, 3), axis=0)
    cylinder = fit_axis(corners, face.centre, vectors[:, 0]) if values[1] > 2 * values[0] else None
    if cylinder is None:
        return result
    point, axis = cylinder
    offset = corners - point
    radius = np.linalg.norm(offset - np.outer(offset @ axis, axis), axis=1).mean()
    return {
        **result,
        "kind": "cylinder",
        "centre": point,
        "direction": axis * np.sign(axis[np.abs(axis).argmax()]),
        "radius": float(radius),
    }
