"""Motion of material points of bodies, for sensors."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import choice, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.multibody.model.protocol import Body
from dolfinx_mbd.multibody.results.histories import BodyHistory, rotation_matrices

Array = NDArray[np.float64]


def material_point(body: Body, point: str | ArrayLike) -> tuple[Array, Array]:
    """Return the reference position (3,) and modes (n, 3) of a point; see `Solution.sensor`."""
    if isinstance(body, RigidBody):
        if isinstance(point, str):
            frame = choice(f"frame of body {body.name!r}", point, body.frame_names)
            point = body.frames[frame].point
        return vector("point", point, unit="m"), np.zeros((0, 3))
    if not isinstance(body, FlexibleBody):
        raise InputError(f"sensors need a rigid or a flexible body; {body.name!r} is neither")
    reduced = body.reduced
    if isinstance(point, str):
        for interface in reduced.interfaces:
            if interface.name == point:
                return interface.point, interface.motion[:3].T
        named = reduced.point(point)
        return named.position, named.modes
    x = vector("point", point, unit="m")
    if reduced.num_modes == 0:
        return x, np.zeros((0, 3))
    if reduced.skin is None:
        text = f"body {body.name!r} has no skin; measure at a named point or an interface"
        raise InputError(text)
    distance = np.linalg.norm(reduced.skin.points - x, axis=1)
    node = int(np.argmin(distance))
    if distance[node] > 1e-6 * np.ptp(reduced.skin.points, axis=0).max():
        raise InputError(
            f"{x} m is not a node of the skin of body {body.name!r} (the nearest node is "
            f"{reduced.skin.points[node]} m); name the point in the reduction: points=..."
        )
    return reduced.skin.points[node], reduced.skin.modes[:, node]


def material_point_motion(history: BodyHistory, x: Array, modes: Array, quantity: str) -> Array:
    """Return the absolute motion of a material point in global components, shape (nt, 3)."""
    c = x + history.eta @ modes
    if quantity == "position":
        origin, relative = history.position, c
    elif quantity == "velocity":
        du = history.eta_rate @ modes
        origin, relative = history.velocity, np.cross(history.omega, c) + du
    else:
        w, du, ddu = history.omega, history.eta_rate @ modes, history.eta_acceleration @ modes
        spin = np.cross(w, np.cross(w, c) + 2 * du)
        origin, relative = history.acceleration, np.cross(history.alpha, c) + spin + ddu
    return origin + np.einsum("tij,tj->ti", rotation_matrices(history.rotation), relative)
