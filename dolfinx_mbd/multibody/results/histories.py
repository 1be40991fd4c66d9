"""Histories of bodies, joints and energies over the saved times of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.kernels.rotations import rotation_rows

__all__ = ["BodyHistory", "Energies", "JointHistory", "rotation_matrices"]

Array = NDArray[np.float64]

_rows = getattr(rotation_rows, "py_func", rotation_rows)  # not compiled: it takes arrays


def rotation_matrices(quaternions: ArrayLike) -> Array:
    """Return the rotation matrices (nt, 3, 3) of unit quaternions (nt, 4)."""
    components = np.moveaxis(np.asarray(quaternions, dtype=float), -1, 0)
    return np.moveaxis(np.array(_rows(*components)), (0, 1), (-2, -1))


@dataclass(frozen=True, eq=False)
class BodyHistory:
    """Motion of a body's frame and its elastic coordinates over nt saved times.

    Attributes:
        name: The body.
        time: (nt,), s.
        position, velocity, acceleration: Of the frame's origin, global, (nt, 3).
        rotation: Quaternions (w, x, y, z), body → global, (nt, 4).
        omega, alpha: Angular velocity and acceleration of the frame, body components, (nt, 3).
        eta, eta_rate, eta_acceleration: Elastic coordinates, (nt, n); n = 0 for a rigid body.
        wrenches: Force and moment that joints, drivers and loads exert on the body at each
            interface (of a rigid body: frame), by name, about the interface's current point, body
            components, (nt, 6), N and N m. Distributed loads are not among them. Without redundant
            constraints that were left out; with ``redundant="keep"`` those of the least norm.
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

    @cached_property
    def wrenches(self) -> dict[str, Array]:
        """Forces and moments at the interfaces; see the attributes of the class."""
        return self._wrenches()


@dataclass(frozen=True, eq=False)
class JointHistory:
    """What a joint or a driver does over nt saved times.

    Attributes:
        name: The joint or driver.
        time: (nt,), s.
        force: On the second body, axes of the first frame, (nt, 3), N; of a distance along x, which
            is the direction from the first point to the second (negative in tension).
        moment: On the second body about its frame's point, axes of the first frame, (nt, 3), N m;
            of a universal joint along z, which is the normal of the plane of its two pins.
        rotation: About the axis, counted over turns, (nt,), rad.
    """

    name: str
    time: Array
    force: Array
    moment: Array
    rotation: Array


@dataclass(frozen=True, eq=False)
class Energies:
    """Energies of all bodies, springs and bushings together, (nt,), J."""

    time: Array
    kinetic: Array
    elastic: Array
    gravity: Array

    @property
    def total(self) -> Array:
        """Their sum, (nt,), J."""
        return self.kinetic + self.elastic + self.gravity
