"""Surfaces of bodies whose points move freely, such as mesh bodies.

At each instant, a rigid motion p, R is fitted to the positions x of the points, weighted by their
areas. The remaining displacement d = Rᵀ(x − p) − X and the stress in the axes of the fitted motion
are decomposed into their proper orthogonal modes, so that renderers draw the surface like that of a
reduced body.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dolfinx_mbd.body import Skin, StressModes
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT, Surface
from dolfinx_mbd.results.distributed_rows import DistributedRows
from dolfinx_mbd.results.solution import Solution

__all__ = ["mesh_surfaces", "moving_bodies", "shared_mesh"]

Array = NDArray[np.float64]

ACCURACY = 1e-4
"""Smallest mode relative to the largest for files with many instants, invisible in a picture."""

# Components xx, yy, zz, xy, yz, zx as a tensor, and the entries of a tensor in this order
_TENSOR = np.array([[0, 3, 5], [3, 1, 4], [5, 4, 2]])
_PAIRS = ([0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0])


def moving_bodies(system: System) -> list[tuple[Any, slice]]:
    """Return the bodies that declare `surface(q)`, with the slices of their coordinates."""
    pairs = zip(system.bodies, system.q_slices, strict=True)
    return [(body, part) for body, part in pairs if hasattr(body, "surface")]


def shared_mesh(run: Solution, quantity: str) -> Any:
    """Return the communicator of a drawing: ranks that share the mesh of a body.

    The result is None if one process has all that the drawing needs.
    """
    if quantity == DISPLACEMENT and not isinstance(run.q, DistributedRows):
        return None
    comms = [body.forces.comm for body in _mesh_bodies(run.system)]
    return next((comm for comm in comms if comm.size > 1), None)


def _mesh_bodies(system: System) -> list[Any]:
    """Return the bodies whose stress can be evaluated on a mesh."""
    return [body for body, _ in moving_bodies(system) if hasattr(body, "elastic_model")]


def mesh_surfaces(
    system: System,
    q: Array | DistributedRows,
    quantity: str = DISPLACEMENT,
    values: Any = None,
    accuracy: float = 0.0,
) -> list[Surface]:
    """Return the surfaces of all bodies that declare `surface(q)`.

    Args:
        system: The mechanism.
        q: Its coordinates, shape (nt, nq).
        quantity: Quantity that determines the colours. For a stress, the function is collective
            over the mesh of each body; so is that of distributed coordinates.
        values: Given values at the points, by name of the body.
        accuracy: Smallest mode relative to the largest; 0 represents all instants exactly.
    """
    stressed = [] if quantity == DISPLACEMENT else _mesh_bodies(system)
    surfaces = []
    for body, part in moving_bodies(system):
        stress = _stress(body, q[:, part]) if body in stressed else None
        colours = None if values is None else values.get(body.name)
        surfaces.append(_surface(body, body.surface(q[:, part]), stress, colours, accuracy))
    return surfaces


def _stress(body: Any, q: Array) -> Array:
    """Return the stress in global axes, shape (nt, 6, nodes), Pa (collective)."""
    from dolfinx_mbd.durability.recovery.skin_stress import mesh_skin_stress

    return mesh_skin_stress(body, q)


def _surface(
    body: Any, x: Array, stress: Array | None, values: Array | None, accuracy: float
) -> Surface:
    """Return the surface with points x (nt, nodes, 3) and stress (nt, 6, nodes)."""
    skin = body.drawing
    weights = _areas(skin)
    position, rotation = np.empty((len(x), 3)), np.empty((len(x), 3, 3))
    for k, points in enumerate(x):
        position[k], rotation[k] = _rigid_motion(skin.points, points, weights)
    d = np.einsum("tpi,tij->tpj", x - position[:, None], rotation) - skin.points
    snapshots = [d.reshape(len(d), -1)]
    if stress is not None:
        tensors = np.moveaxis(stress[:, _TENSOR], 3, 1)
        tensors = np.einsum("tai,tpab,tbj->tpij", rotation, tensors, rotation)
        snapshots.append(tensors[..., _PAIRS[0], _PAIRS[1]].reshape(len(d), -1))
    eta, modes = _orthogonal_modes(snapshots, accuracy)
    moving = Skin(skin.points, skin.triangles, modes[0].reshape(-1, *skin.points.shape))
    stress_modes = None
    if stress is not None:
        components = modes[1].reshape(len(moving.modes), -1, 6)
        stress_modes = StressModes(skin.points, np.moveaxis(components, (0, 2), (2, 0)))
    quaternions = Rotation.from_matrix(rotation).as_quat()[:, [3, 0, 1, 2]]
    return Surface(
        body.name, moving, position, quaternions, eta, stress=stress_modes, values=values
    )


def _areas(skin: Skin) -> Array:
    """Return a third of the area of the triangles around each point, relative to the total."""
    a, b, c = np.moveaxis(skin.points[skin.triangles], 1, 0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    weights = np.bincount(skin.triangles.ravel(), np.repeat(area, 3), len(skin.points))
    return np.asarray(weights / weights.sum())


def _rigid_motion(X: Array, x: Array, weights: Array) -> tuple[Array, Array]:
    """Return p and R of least Σ w |x − p − R X|² (Kabsch, 1976)."""
    centre, moved = weights @ X, weights @ x
    left, _, right = np.linalg.svd((weights[:, None] * (x - moved)).T @ (X - centre))
    sign = np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))])  # no reflection
    R = left @ sign @ right
    return moved - R @ centre, R


def _orthogonal_modes(snapshots: list[Array], accuracy: float) -> tuple[Array, list[Array]]:
    """Return common coordinates (nt, n) of fields (nt, size) and the modes (n, size) of each.

    The fields have equal weights. Modes below `accuracy`, relative to the largest, are omitted;
    with 0, all are kept. Sizes of modes are roots of eigenvalues: those below 1e-7 are round-off.
    """
    scales = [float(np.linalg.norm(field)) or 1.0 for field in snapshots]
    gram = sum(
        (field @ field.T / scale**2 for field, scale in zip(snapshots, scales, strict=True)),
        np.zeros((len(snapshots[0]),) * 2),
    )
    squares, vectors = np.linalg.eigh(gram)
    sizes = np.sqrt(squares[::-1].clip(0.0))
    count = max(1, int(np.sum(sizes > accuracy * sizes[0]))) if accuracy else len(sizes)
    eta = np.ascontiguousarray(vectors[:, ::-1][:, :count])
    return eta, [eta.T @ field for field in snapshots]
