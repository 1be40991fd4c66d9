"""A body in a floating frame: its arrays, made once, and the protocol on the kernels."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, refuse
from dolfinx_mbd.kernels import floating_frame as kernels
from dolfinx_mbd.kernels import frames as frame_kernels
from dolfinx_mbd.kernels.rotations import quaternion_from_matrix
from dolfinx_mbd.multibody.model.joints import FrameRef
from dolfinx_mbd.multibody.model.protocol import BodyState

__all__ = ["FloatingBody", "checked_rotation"]

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
        # copies, which can be written to: a read-only array would be another type to compile for
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
        M, C, K = (np.array(m, dtype=float, order="C") for m in matrices)
        values = {
            "frame_names": tuple(frames),
            "num_elastic": n,
            "num_coordinates": 7 + n,
            "num_velocities": 6 + n,
            "typical_mass": float(total_mass),
            "_q0": np.concatenate([position, rotation, np.zeros(n)]),
            "_points": points,
            "_axes": axes,
            "_motion": (
                motion,
                np.zeros((0, 6, n, n)) if bend is None else np.array(bend, order="C"),
            ),
            "_spin": np.zeros((0, n, n)) if spin is None else np.array(spin, order="C"),
            "_inertia": (float(total_mass), np.array(S, dtype=float, order="C"), rows),
            "_pairs": pairs,
            "_matrices": (M, C, K),
        }
        for key, value in values.items():
            object.__setattr__(self, key, value)

    _points: Array
    _axes: Array
    _motion: tuple[Array, Array]  # motion and bend
    _spin: Array
    _inertia: tuple[float, Array, Array]
    _pairs: Array
    _matrices: tuple[Array, Array, Array]

    def frame(self, name: str) -> FrameRef:
        """Reference to a frame of this body, for joints and forces.

        Raises:
            InputError: The body has no such frame; the message lists those it has.
        """
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, self.frame_names))

    def initial_coordinates(self) -> Array:
        return self._q0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        kernels.increment(q, delta, out)

    def increment_tangent(self, delta: Array) -> Array:
        return kernels.tangent(delta[3:6])

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        frame_kernels.frame_poses(self._points, self._axes, *self._motion, q, position, rotation)

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        kernels.body_residual(
            *self._inertia,
            *self._matrices,
            self._spin,
            self._points,
            *self._motion,
            *state[1:],
            out,
            scale,
        )

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        return kernels.body_tangent(
            *self._inertia,
            self._pairs,
            *self._matrices,
            self._spin,
            self._points,
            *self._motion,
            *state[1:],
        )

    def frame_jacobians(self, q: Array) -> Array:
        return frame_kernels.frame_jacobians(self._points, *self._motion, q)

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        frame_kernels.frame_velocities(self._points, *self._motion, q, v, out)

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        return frame_kernels.frame_velocity_tangents(self._points, *self._motion, q, v)

    def frame_bias(self, q: Array, v: Array) -> Array:
        return frame_kernels.frame_bias(self._points, *self._motion, q, v)

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        M, _, K = self._matrices
        return kernels.body_energies(*self._inertia, M, K, self._spin, q, v, gravity)

    def momenta(self, q: Array, v: Array) -> Array:
        return kernels.body_momenta(*self._inertia, self._spin, q, v)
