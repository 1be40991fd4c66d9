"""A body in a floating frame: its arrays, made once, and the protocol on the kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, refuse
from dolfinx_mbd.kernels import floating_frame as kernels
from dolfinx_mbd.kernels import frames as frame_kernels
from dolfinx_mbd.kernels.body_table import MODES, table_of_one
from dolfinx_mbd.kernels.floating_frame_tangents import tangents
from dolfinx_mbd.kernels.rotations import quaternion_from_matrix, tangent
from dolfinx_mbd.multibody.model.joints import FrameRef
from dolfinx_mbd.multibody.model.protocol import BodyState

__all__ = ["FloatingBody", "body_tangents", "checked_rotation"]

Array = NDArray[np.float64]


def checked_rotation(argument: str, rotation: ArrayLike) -> Array:
    """Return the unit quaternion (4,) of a quaternion or a rotation matrix."""
    expected = "a quaternion (w, x, y, z), not zero, or a 3×3 rotation matrix"
    numbers: Array = array(argument, rotation, expected=expected)
    if numbers.shape == (3, 3):
        return quaternion_from_matrix(numbers)
    if numbers.shape != (4,) or not 0 < np.linalg.norm(numbers) < np.inf:
        refuse(argument, rotation, expected)
    return numbers / np.linalg.norm(numbers)


class FloatingBody:
    """A body in a floating frame: arrays for the kernels, made once."""

    name: str
    frame_names: tuple[str, ...]
    num_coordinates: int
    num_velocities: int
    num_elastic: int
    typical_mass: float
    #: Row of the kernels' table and the arrays that it points to (`body_table`).
    _table: NDArray[np.int64]
    _data: Array
    _q0: Array

    def _prepare(
        self,
        total_mass: float,
        S: Array,
        H: Array,
        matrices: tuple[Array, Array, Array],
        frames: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
        position: Array,
        rotation: Array,
        spin: Array | None = None,
        bend: Array | None = None,
    ) -> None:
        n = len(S) - 1
        rows = np.array(H.transpose(0, 2, 3, 1), order="C").reshape(9 * (n + 1), n + 1)
        pairs = np.array(H, order="C").reshape((n + 1) ** 2, 9)
        count = len(frames)
        points, axes, motion = (
            np.zeros((count, 3)),
            np.zeros((count, 3, 3)),
            np.zeros((count, 6, n)),
        )
        for k, (point, triad, move) in enumerate(frames.values()):
            points[k], axes[k], motion[k] = np.asarray(point), np.asarray(triad), np.asarray(move)
        none, still = np.zeros((0, n, n)), np.zeros((0, 6, n, n))
        spin, bend = none if spin is None else spin, still if bend is None else bend
        inertia = np.array([total_mass]), S, rows, *matrices
        table, data = table_of_one(
            (n, count, len(spin), len(bend)),
            [np.asarray(a) for a in (*inertia, spin, points, axes, motion, bend, pairs)],
        )
        values = {
            "frame_names": tuple(frames),
            "num_elastic": n,
            "num_coordinates": 7 + n,
            "num_velocities": 6 + n,
            "typical_mass": float(total_mass),
            "_table": table,
            "_data": data,
            "_q0": np.concatenate([position, rotation, np.zeros(n)]),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def frame(self, name: str) -> FrameRef:
        """Reference to a frame of this body, for joints and forces.

        Raises:
            InputError: The body has no such frame; the message lists those it has.
        """
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, self.frame_names))

    def initial_coordinates(self) -> Array:
        return self._q0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        kernels.increment(self._table, q, delta, out)

    def increment_tangent(self, delta: Array) -> Array:
        return tangent(delta[3:6])

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        frame_kernels.frame_poses(self._table, self._data, q, position, rotation)

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        q, v, a, gravity, wrenches = state[1:]
        kernels.residual(self._table, self._data, q, v, a, gravity, wrenches, out, scale)

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        flat = body_tangents(self._table, self._data, *state[1:])
        K, C, M = flat.reshape(3, self.num_velocities, self.num_velocities)
        return K, C, M

    def frame_jacobians(self, q: Array) -> Array:
        out = np.zeros((len(self.frame_names), 6, self.num_velocities))
        frame_kernels.frame_jacobians(self._table, self._data, q, out)
        return out

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        frame_kernels.frame_velocities(self._table, self._data, q, v, out)

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        out = np.zeros((len(self.frame_names), 6, self.num_velocities))
        frame_kernels.frame_velocity_tangents(self._table, self._data, q, v, out)
        return out

    def frame_bias(self, q: Array, v: Array) -> Array:
        return self.frame_velocity_tangents(q, v) @ v  # J̇ v, as q changes at the rate v

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        return kernels.integrals(self._table, self._data, q, v, gravity)[:3]

    def momenta(self, q: Array, v: Array) -> Array:
        return kernels.integrals(self._table, self._data, q, v, np.zeros(3))[3:]


def body_tangents(
    table: NDArray[np.int64],
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
) -> Array:
    """Return the derivatives of the rows of all bodies of a table to q (increments), v and a.

    For each body the three matrices (6+n, 6+n), one after the other, in one array.
    """
    flat = np.empty(3 * int(((table[:, MODES] + 6) ** 2).sum()))
    tangents(table, data, q, v, a, gravity, wrenches, flat)
    return flat
