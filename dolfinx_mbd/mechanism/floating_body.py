"""Bodies described in a floating frame of reference."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.body import Stiffening
from dolfinx_mbd.checks import array, choice, metres, reject, vector
from dolfinx_mbd.kernels import floating_frame as kernels
from dolfinx_mbd.kernels import frames as frame_kernels
from dolfinx_mbd.kernels.body_table import FIRST_MOMENTS, H_ROWS, NUM_MODES, table_of_one
from dolfinx_mbd.kernels.columns import OMEGA
from dolfinx_mbd.kernels.floating_frame_tangents import tangents
from dolfinx_mbd.kernels.rotations import exp_quaternion, quaternion_from_matrix, tangent
from dolfinx_mbd.mechanism.joints import FrameRef
from dolfinx_mbd.mechanism.protocol import BodyState
from dolfinx_mbd.mechanism.run_quantities import BODY, FORCES, Quantities

__all__ = ["FloatingBody", "body_tangents", "checked_rotation"]

Array = NDArray[np.float64]
Table = NDArray[np.int64]


def checked_rotation(argument: str, rotation: ArrayLike) -> Array:
    """Return the unit quaternion (4,) for a quaternion, a rotation vector or a rotation matrix."""
    expected = (
        "a rotation vector (3 numbers, rad), a quaternion (w, x, y, z), not zero, or a 3×3 "
        "rotation matrix"
    )
    numbers: Array = array(argument, rotation, expected=expected)
    if numbers.shape == (3, 3):
        return quaternion_from_matrix(numbers)
    if numbers.shape == (3,):
        return exp_quaternion(np.array(numbers))
    if numbers.shape != (4,) or not 0 < np.linalg.norm(numbers) < np.inf:
        reject(argument, rotation, expected)
    return numbers / np.linalg.norm(numbers)


class FloatingBody:
    """A body in a floating frame, stored in the arrays of the kernels."""

    name: str
    frame_names: tuple[str, ...]
    num_coordinates: int
    num_velocities: int
    num_elastic: int
    typical_mass: float
    _table: Table  # table of the kernels with one row, for this body; see `body_table`
    _data: Array  # buffer with the arrays; the table contains their positions
    _q0: Array
    _v0: Array

    def _prepare(
        self,
        total_mass: float,
        S: Array,
        H: Array,
        matrices: tuple[Array, Array, Array],
        frames: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]],
        start: tuple[ArrayLike, ArrayLike, ArrayLike | None, ArrayLike | None],
        stiffening: Stiffening | None = None,
    ) -> None:
        """Set the attributes from moments, elastic matrices, frames, pose and velocities.

        S, (1 + n, 3), and H, (1 + n, 1 + n, 3, 3), are the first and second moments of x and the n
        modes, `matrices` the elastic mass, damping and stiffness, `frames` points, axes and motions
        per mode of the frames, and `start` position, rotation, velocity and omega.
        """
        label, n, count = f"body {self.name!r}", len(S) - 1, len(frames)
        rows = H.transpose(0, 2, 3, 1).reshape(9 * (n + 1), n + 1)
        shapes = (count, 3), (count, 3, 3), (count, 6, n)
        points, axes, motions = (
            np.array([frame[k] for frame in frames.values()], dtype=float).reshape(shape)
            for k, shape in enumerate(shapes)
        )
        spin: Array = np.zeros((0, n, n)) if stiffening is None else stiffening.spin
        by_forces: Array = np.zeros((0, 6, n, n))  # geometric stiffness due to forces at frames
        # Forces at named points (the last frames) do not stiffen the body
        if stiffening is not None:
            by_forces = np.zeros((count, 6, n, n))
            by_forces[: len(stiffening.interfaces)] = stiffening.interfaces
        inertia = np.array([total_mass]), S, rows, *matrices
        table, data = table_of_one(
            (n, count, len(spin), len(by_forces)),
            [*inertia, spin, points, axes, motions, by_forces, H.transpose(2, 3, 0, 1)],
        )
        initial_position, initial_rotation, velocity, omega = start
        place = metres(initial_position)
        position = vector(f"{label}: position", place, unit="m")
        rotation = checked_rotation(f"{label}: rotation", initial_rotation)
        velocities = np.full(6 + n, np.nan)  # NaN: follows from the constraints
        if velocity is not None:
            velocities[:3] = vector(f"{label}: velocity", velocity, unit="m/s")
        if omega is not None:
            velocities[3:6] = vector(f"{label}: omega", omega, unit="rad/s")
        assign(
            self,
            frame_names=tuple(frames),
            num_elastic=n,
            num_coordinates=7 + n,
            num_velocities=6 + n,
            typical_mass=float(total_mass),
            position=place,
            _table=table,
            _data=data,
            _q0=np.concatenate([position, rotation, np.zeros(n)]),
            _v0=velocities,
        )

    def frame(self, name: str) -> FrameRef:
        """Return a reference to a frame, for joints and loads.

        Args:
            name: Name of the frame.

        Raises:
            InputError: The body has no such frame; the message lists the names.
        """
        return FrameRef(self.name, choice(f"frame of body {self.name!r}", name, self.frame_names))

    @property
    def run_quantities(self) -> Quantities:
        """Quantities of the body over a run, with the forces at its frames."""
        ends = {f"{name}.{key}": q for name in self.frame_names for key, q in FORCES.items()}
        return {**BODY, **ends}

    def origin_distance(self) -> tuple[float, float]:
        """Return the distance from the origin to the centre of mass, and the gyration radius, m."""
        row, data, m = self._table[0], self._data, self.typical_mass
        centre = data[row[FIRST_MOMENTS] :][:3] / m
        num_fields = row[NUM_MODES] + 1  # x and the modes; entries of x⊗x are the first ones
        second = data[row[H_ROWS] :][: 9 * num_fields : num_fields].reshape(3, 3)  # ∫ρ x⊗x
        distance = float(np.linalg.norm(centre))
        radius_squared = np.trace(second) / m - distance**2
        return distance, float(np.sqrt(max(radius_squared, 1e-12 * distance**2)))

    def initial_coordinates(self) -> Array:
        """Return the position, quaternion and zero elastic coordinates."""
        return self._q0.copy()

    def initial_velocities(self) -> Array:
        """Return the initial velocities, with NaN for velocities that follow from other bodies."""
        return self._v0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """Set `out` to the coordinates after an increment."""
        kernels.increment(self._table, q, delta, out)

    def increment_tangent(self, delta: Array) -> Array:
        """Return the tangent operator of the rotation."""
        return tangent(delta[OMEGA])

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Set positions and orientations of the frames."""
        frame_kernels.frame_poses(self._table, self._data, q, position, rotation)

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        """Set the residual and the magnitudes of its terms."""
        q, v, a, gravity, wrenches = state[1:]
        kernels.residual(self._table, self._data, q, v, a, gravity, wrenches, out, scale)

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return the derivatives K, C and M of the residual."""
        flat = body_tangents(self._table, self._data, *state[1:])
        K, C, M = flat.reshape(3, self.num_velocities, self.num_velocities)
        return K, C, M

    def frame_jacobians(self, q: Array) -> Array:
        """Return the derivatives of the velocities of the frames with respect to v."""
        out = np.zeros((len(self.frame_names), 6, self.num_velocities))
        frame_kernels.frame_jacobians(self._table, self._data, q, out)
        return out

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        """Set the velocities of the frames."""
        frame_kernels.frame_velocities(self._table, self._data, q, v, out)

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        """Return the derivatives of the velocities of the frames with respect to q."""
        out = np.zeros((len(self.frame_names), 6, self.num_velocities))
        frame_kernels.frame_velocity_tangents(self._table, self._data, q, v, out)
        return out

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return the accelerations J̇ v of the frames for v̇ = 0."""
        return self.frame_velocity_tangents(q, v) @ v

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return kinetic, elastic and gravitational energy."""
        return kernels.integrals(self._table, self._data, q, v, gravity)[:3]

    def momenta(self, q: Array, v: Array) -> Array:
        """Return linear and angular momentum."""
        return kernels.integrals(self._table, self._data, q, v, np.zeros(3))[3:]


def body_tangents(
    table: Table, data: Array, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
) -> Array:
    """Return the derivatives of all residuals with respect to increments of q, to v and to a.

    The array contains the three matrices (6+n, 6+n) of each body of the table in sequence.
    """
    flat = np.empty(3 * int(((table[:, NUM_MODES] + 6) ** 2).sum()))
    tangents(table, data, q, v, a, gravity, wrenches, flat)
    return flat
