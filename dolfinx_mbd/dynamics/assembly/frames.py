"""Frames and joint coordinates of a system at one time and state, with their derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import FrameColumns, Index
from dolfinx_mbd.dynamics.assembly.floating_bodies import FloatingBodies
from dolfinx_mbd.kernels import joints as kernels
from dolfinx_mbd.kernels.columns import ALONG_Z, ON_FIRST, ON_SECOND
from dolfinx_mbd.mechanism.force_elements import FramePair
from dolfinx_mbd.mechanism.loads import FrameMotion, JointCoordinate
from dolfinx_mbd.mechanism.protocol import Body, BodyState
from dolfinx_mbd.mechanism.system import System

Axis = tuple[int, int]
"""Index of a joint, and 0 for its rotation or 1 for its displacement."""


class BodyView(NamedTuple):
    """A body with views of its parts of the arrays of a `Frames`."""

    body: Body
    q: Array  # coordinates
    v: Array  # velocities
    a: Array  # rates of the velocities
    wrenches: Array  # on its frames, (F, 6)
    rows: Array  # residual
    scale: Array  # magnitudes of the terms of the residual
    position: Array  # positions of its frames, (F, 3)
    rotation: Array  # axes of its frames, (F, 3, 3)

    def state(self, t: float, gravity: Array) -> BodyState:
        """Return the state of the body with the forces that act on it."""
        return BodyState(t, self.q, self.v, self.a, gravity, self.wrenches)


class Frames:
    """Buffers for frames and joint coordinates of a system.

    `bodies` is the table of the bodies that are evaluated by the kernels for floating frames,
    `moving` the indices of the bodies with velocities, and `others` those outside the table.
    `time`, `q`, `v` and `a` are the point of evaluation. `angles` are earlier rotations of the
    joints, or those that drivers prescribe. The poses determine a rotation up to full turns only;
    the value closest to its entry of `angles` is used. `entry_frames` (entries, 2) are the first
    and second frames of the joints, then of the drivers. `rows` and `scale` (nv,) are the residual
    and the magnitudes of its terms. `position` (frames, 3), `rotation` (frames, 3, 3), `velocities`
    and `wrenches` (frames, 6) belong to the frames. `views` has the parts of these arrays for each
    body.
    """

    def __init__(self, system: System) -> None:
        self.system = system
        nq, nv, nf = system.num_coordinates, system.num_velocities, system.num_frames
        self.q, self.v, self.a = np.zeros(nq), np.zeros(nv), np.zeros(nv)
        self.angles = np.zeros(len(system.joints))
        self.time = 0.0
        self.rows, self.scale = np.zeros(nv), np.zeros(nv)
        self.position, self.rotation = np.zeros((nf, 3)), np.zeros((nf, 3, 3))
        self.velocities, self.wrenches = np.zeros((nf, 6)), np.zeros((nf, 6))
        sizes = np.array([body.num_velocities for body in system.bodies])
        starts = np.array([part.start for part in system.v_slices])
        bodies = system.frame_body
        self.columns = FrameColumns(bodies, starts[bodies], sizes[bodies])
        self.jacobian_table = np.zeros((nf, 6, int(sizes.max())))
        # Index in v of each column of `jacobian_table` and `tangent_table`; columns beyond the
        # velocities of a body are zero, so that any index will do
        last = max(nv - 1, 0)
        index = self.columns.start[:, None] + np.arange(self.jacobian_table.shape[2])
        self._velocity_index = np.minimum(index, last)
        self.moving = [k for k, body in enumerate(system.bodies) if body.num_velocities]
        # Derivatives of the velocities of the frames with respect to increments of q
        self.tangent_table = np.zeros_like(self.jacobian_table)
        self.bodies = FloatingBodies(system)
        self.others = [k for k in self.moving if k not in self.bodies.members]
        parts = zip(
            system.bodies, system.q_slices, system.v_slices, system.frame_slices, strict=True
        )
        by_velocity, by_frame = (self.rows, self.scale), (self.position, self.rotation)
        self.views = [
            BodyView(
                body, self.q[q], self.v[v], self.a[v], self.wrenches[frames],
                *(x[v] for x in by_velocity), *(x[frames] for x in by_frame),
            )
            for body, q, v, frames in parts
        ]  # fmt: skip
        for view in self.views:
            if not view.body.num_velocities:
                view.body.poses(view.q, view.position, view.rotation)
        joints = len(system.joints)
        self.joint_ends = system.first[:joints], system.second[:joints]
        self.entry_frames = np.column_stack([system.first, system.second])

    @property
    def has_others(self) -> bool:
        """Whether some moving bodies are not evaluated by the kernels for floating frames."""
        return bool(self.others)

    def update_velocities(self) -> Array:
        """Compute and return velocities (frames, 6) of all frames in global components."""
        self.update_velocities_of(self.bodies)
        return self.velocities

    def update_velocities_of(self, floating: FloatingBodies) -> None:
        """Compute the velocities of the frames of `floating`, and of all bodies in `others`."""
        floating.velocities(self.q, self.v, self.velocities)
        for k in self.others:
            view = self.views[k]
            velocities = self.velocities[self.system.frame_slices[k]]
            view.body.frame_velocities(view.q, view.v, velocities)

    def update_jacobians(self) -> None:
        """Compute the Jacobians of all frames at the current poses."""
        self.bodies.jacobians(self.q, self.jacobian_table)
        for k in self.others:
            body, frames = self.views[k].body, self.system.frame_slices[k]
            jacobians = body.frame_jacobians(self.views[k].q)
            self.jacobian_table[frames, :, : body.num_velocities] = jacobians

    def jacobians(self) -> list[Array]:
        """Return the Jacobians (F, 6, nv) of the frames of every body at the current poses."""
        self.update_jacobians()
        return [jacobian.copy() for jacobian in self.parts(self.jacobian_table)]

    def length(self) -> float:
        """Return the largest coordinate of a frame, at least 1 mm, for steps of differences, m."""
        return max(1e-3, float(np.abs(self.position).max(initial=0.0)))

    def last_derivatives(self) -> tuple[list[Array], list[Array]]:
        """Return the last Jacobians of the frames of every body, and new `velocity_tangents`."""
        return self.parts(self.jacobian_table), self.velocity_tangents()

    def parts(self, matrices: Array) -> list[Array]:
        """Return the views (F, 6, nv) of matrices (frames, 6, ·) for the frames of every body."""
        return [
            matrices[frames, :, : body.num_velocities]
            for body, frames in zip(self.system.bodies, self.system.frame_slices, strict=True)
        ]

    def frame_jacobian(self, frame: int, jacobians: list[Array]) -> tuple[int, Array]:
        """Return the index of the body of a frame and the frame's Jacobian (6, nv of the body)."""
        k = int(self.system.frame_body[frame])
        return k, jacobians[k][frame - self.system.frame_slices[k].start]

    def motion(self, frame: int) -> FrameMotion:
        """Return the pose and velocities of a frame."""
        velocity = self.velocities[frame]
        return FrameMotion(self.position[frame], self.rotation[frame], velocity[:3], velocity[3:])

    def pair(self, first: int, second: int) -> FramePair:
        """Return views of the poses and velocities of two frames, which change with the frames."""
        p, Q, u = self.position, self.rotation, self.velocities
        return FramePair(p[first], Q[first], u[first], p[second], Q[second], u[second])

    def bodies_of(self, frames: tuple[int, int]) -> tuple[int, int]:
        """Return the bodies of two frames."""
        return int(self.system.frame_body[frames[0]]), int(self.system.frame_body[frames[1]])

    def transform(self, row: Array, frames: tuple[int, int], jacobians: list[Array]) -> Array:
        """Transform a row (12,) for the velocities of two frames to a row (nv,) for v."""
        out = np.zeros(self.system.num_velocities)
        for frame, part in zip(frames, (row[ON_FIRST], row[ON_SECOND]), strict=True):
            k, J = self.frame_jacobian(frame, jacobians)
            if J.size:
                out[self.system.v_slices[k]] += part @ J
        return out

    def frame_biases(self) -> Array:
        """Return the accelerations (frames, 6) of all frames for v̇ = 0."""
        self.bodies.velocity_tangents(self.q, self.v, self.tangent_table)
        bias: Array = np.einsum("fij,fj->fi", self.tangent_table, self.v[self._velocity_index])
        for k in self.others:
            view = self.views[k]
            bias[self.system.frame_slices[k]] = view.body.frame_bias(view.q, view.v)
        return bias

    # ---- coordinates of joints ------------------------------------------------------------------
    def joint_rotations(self) -> Array:
        """Return the rotations of all joints about their axes (nj,), rad, including full turns."""
        return kernels.joint_angles(self.rotation, *self.joint_ends, self.angles)

    def axis(self, coordinate: JointCoordinate) -> Axis:
        """Return the index of the joint, and 0 for its rotation or 1 for its displacement."""
        return self.system.joint_index(coordinate.joint), int(coordinate.motion == "displacement")

    def axis_coordinates(self) -> tuple[Array, Array, Array]:
        """Return values, rates and gradients of the joint motions about and along z.

        Their shapes are (nj, 2), (nj, 2) and (nj, 2, 12). Call `update_velocities` first.
        """
        return kernels.axis_coordinates(
            self.position, self.rotation, self.velocities, *self.joint_ends, self.angles
        )

    def joint_displacements(self) -> tuple[Array, Array]:
        """Return displacements of all joints along the axes of the first frame, and their rates.

        Their shapes are (nj, 3). Call `update_velocities` first.
        """
        first, second = self.joint_ends
        frames = self.position[first], self.rotation[first], self.position[second]
        poses = *frames, self.rotation[second]
        u = np.hstack([self.velocities[first], self.velocities[second]])
        rates = np.einsum("jik,jk->ji", kernels.joint_gradients(*poses)[:, :3], u)
        return kernels.joint_values(*poses)[:, :3], rates

    def ends_of(self, axis: Axis) -> tuple[int, int]:
        """Return the indices of the two frames of the joint of a coordinate."""
        return int(self.joint_ends[0][axis[0]]), int(self.joint_ends[1][axis[0]])

    def axis_gradient(self, joint: str, motion: str) -> Array:
        """Return the derivative (nv,) of the rate of a joint coordinate with respect to v."""
        axis = self.axis(JointCoordinate(joint, motion))  # type: ignore[arg-type]
        _, _, gradients = self.axis_coordinates()
        gradient = gradients[axis]
        return self.transform(gradient, self.ends_of(axis), self.jacobians())

    def axis_rate_derivative(self, joint: str, motion: str) -> Array:
        """Return the derivative (nv,) of the rate of a joint coordinate with respect to q.

        Call `update_velocities` first.
        """
        axis = self.axis(JointCoordinate(joint, motion))  # type: ignore[arg-type]
        derivatives = self.jacobians(), self.velocity_tangents()
        _, of_rate = self.coordinate_derivatives(axis, *derivatives)
        return of_rate

    def velocity_tangents(self) -> list[Array]:
        """Return the derivatives (F, 6, nv) of the frame velocities with respect to q."""
        self.update_velocity_tangents()
        return self.parts(self.tangent_table)

    def update_velocity_tangents(self) -> None:
        """Compute the derivatives of all frame velocities with respect to q."""
        self.bodies.velocity_tangents(self.q, self.v, self.tangent_table)
        for k in self.others:
            view, frames = self.views[k], self.system.frame_slices[k]
            tangents = view.body.frame_velocity_tangents(view.q, view.v)
            self.tangent_table[frames, :, : view.body.num_velocities] = tangents

    def axis_seconds(self, axes: Index) -> Array:
        """Return second derivatives (N, 12, 12) of joint coordinates with respect to poses.

        `axes` (N, 2) contains the `Axis` of each coordinate.
        """
        (joints, motions), D = axes.T, np.empty((len(axes), 12, 12))
        along = motions == kernels.ALONG
        for selection, displacement in ((along, True), (~along, False)):
            if selection.any():
                first, second = (ends[joints[selection]] for ends in self.joint_ends)
                one, two = self.rotation[first], self.rotation[second]
                if displacement:
                    motion = np.zeros((len(first), 6))
                    motion[:, ALONG_Z] = 1.0
                    p1, p2 = self.position[first], self.position[second]
                    D[selection] = kernels.joint_second_derivatives(p1, one, p2, two, motion)
                else:
                    D[selection] = kernels.rotation_second_derivatives(one, two)
        return D

    def coordinate_derivatives(
        self, axis: Axis, jacobians: list[Array], tangents: list[Array] | None
    ) -> tuple[Array, Array]:
        """Return the derivatives (nv,) of a joint coordinate and its rate with respect to q.

        Without `tangents`, the derivative of the rate is not computed and zero.
        """
        ends = self.ends_of(axis)
        _, _, gradients = self.axis_coordinates()
        gradient = gradients[axis]
        derivative = self.transform(gradient, ends, jacobians)
        if tangents is None:
            return derivative, np.zeros_like(derivative)
        u = np.concatenate([self.velocities[ends[0]], self.velocities[ends[1]]])
        rate_derivative = self.transform(
            u @ self.axis_seconds(np.array([axis]))[0], ends, jacobians
        )
        return derivative, rate_derivative + self.transform(gradient, ends, tangents)
