"""Histories of bodies, joints, energies and material points over the saved times of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, refuse, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.multibody.model.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.multibody.model.protocol import Body

Array = NDArray[np.float64]

_rows = getattr(rotation_rows, "py_func", rotation_rows)  # not compiled, for arrays


def rotation_matrices(quaternions: ArrayLike) -> Array:
    """Return the rotation matrices (nt, 3, 3) of unit quaternions (nt, 4)."""
    components = np.moveaxis(np.asarray(quaternions, dtype=float), -1, 0)
    return np.moveaxis(np.array(_rows(*components)), (0, 1), (-2, -1))


@dataclass(frozen=True, eq=False)
class BodyHistory:
    """Motion of a body's frame and its elastic coordinates over nt saved times.

    Attributes:
        name: Name of the body.
        time: Saved times, (nt,), s.
        position: Position of the body frame's origin in global components, (nt, 3), m.
        rotation: Quaternions (w, x, y, z) from body to global axes, (nt, 4).
        velocity: Velocity of the origin in global components, (nt, 3), m/s.
        omega: Angular velocity of the body frame in body components, (nt, 3), rad/s.
        acceleration: Acceleration of the origin in global components, (nt, 3), m/s².
        alpha: Angular acceleration of the body frame in body components, (nt, 3), rad/s².
        eta: Elastic coordinates, (nt, n); n = 0 for a rigid body.
        eta_rate: Rates of the elastic coordinates, (nt, n), 1/s.
        eta_acceleration: Accelerations of the elastic coordinates, (nt, n), 1/s².

    Example:
        >>> print(run.body("bob").omega[-1].round(3))
        [ 0.     0.    -4.234]
    """

    name: str
    time: Array
    position: Array
    rotation: Array
    velocity: Array
    omega: Array
    acceleration: Array
    alpha: Array
    eta: Array
    eta_rate: Array
    eta_acceleration: Array
    _wrenches: Callable[[], dict[str, Array]] = field(default=dict, repr=False)

    __repr__ = short_repr

    @cached_property
    def wrenches(self) -> dict[str, Array]:
        """Forces and moments on the body at each interface, by name, (nt, 6), N and N m.

        Joints, drivers and loads cause these forces at the interfaces (frames of a rigid body). The
        components are in the body frame; moments are about the current point of the interface.
        Distributed loads and the forces of dropped redundant constraints are not included; with
        ``redundant="keep"`` the forces have minimum norm.
        """
        return self._wrenches()


@dataclass(frozen=True, eq=False)
class JointHistory:
    """Forces and rotation of a joint or a driver over nt saved times.

    Attributes:
        name: Name of the joint or driver.
        time: Saved times, (nt,), s.
        force: Force on the second body in the axes of the first frame, (nt, 3), N. The force of a
            distance joint acts along x, from the first point to the second (negative in tension).
        moment: Moment on the second body about the point of its frame in the axes of the first
            frame, (nt, 3), N m. The moment of a universal joint acts along z, normal to both pins.
        rotation: Rotation about the axis, including full turns, (nt,), rad.

    Example:
        >>> history = run.joint("pin")
        >>> print(f"{history.rotation[-1]:.4f} rad, {history.force[-1, 1]:.3f} N")
        -1.1637 rad, 49.485 N
    """

    name: str
    time: Array
    force: Array
    moment: Array
    rotation: Array

    __repr__ = short_repr


@dataclass(frozen=True, eq=False)
class Energies:
    """Energies of all bodies, springs and bushings over nt saved times.

    Attributes:
        time: Saved times, (nt,), s.
        kinetic: Kinetic energy, (nt,), J.
        elastic: Elastic energy, (nt,), J.
        gravity: Gravitational energy, (nt,), J.

    Example:
        >>> total = run.energies().total
        >>> bool(np.ptp(total) < 1e-4)
        True
    """

    time: Array
    kinetic: Array
    elastic: Array
    gravity: Array

    __repr__ = short_repr

    @property
    def total(self) -> Array:
        """Sum of the energies, (nt,), J."""
        return self.kinetic + self.elastic + self.gravity


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
        station = reduced.point(point)
        return station.position, station.modes
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
    du, ddu = history.eta_rate @ modes, history.eta_acceleration @ modes
    w, alpha = history.omega, history.alpha
    if quantity == "position":
        origin, relative = history.position, c
    elif quantity == "velocity":
        origin, relative = history.velocity, np.cross(w, c) + du
    else:
        spin = np.cross(w, np.cross(w, c) + 2 * du)
        origin, relative = history.acceleration, np.cross(alpha, c) + spin + ddu
    return origin + np.einsum("tij,tj->ti", rotation_matrices(history.rotation), relative)


def fixed_axes(axes: ArrayLike) -> Array:
    """Return the axes of a sensor as an orthonormal matrix (3, 3)."""
    expected = "'global', 'body', the name of a body or an orthonormal matrix (3, 3)"
    triad: Array = array("axes", axes, (3, 3), expected=expected)
    with np.errstate(over="ignore"):
        if not np.allclose(triad.T @ triad, np.eye(3), atol=1e-9):
            refuse("axes", axes, expected)
    return triad
