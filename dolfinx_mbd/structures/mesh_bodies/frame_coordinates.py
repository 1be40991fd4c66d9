"""Coordinates of a mesh body: frames of its interfaces, and motion of its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Skin
from dolfinx_mbd.fem.elastic_model import ElasticModel
from dolfinx_mbd.kernels.rotations import (
    exp_quaternion,
    multiply_quaternions,
    rotation_matrix,
    skew,
    tangent,
)
from dolfinx_mbd.results.distributed_rows import DistributedRows, Part
from dolfinx_mbd.structures.mesh_bodies.averaged_interfaces import AveragedInterface
from dolfinx_mbd.structures.mesh_bodies.embedding import Embedding
from dolfinx_mbd.structures.mesh_bodies.mesh_inertia import CondensedInertia
from dolfinx_mbd.structures.mesh_bodies.multipliers import Constraints, Motion
from dolfinx_mbd.structures.mesh_bodies.nodal_forces import NodalForces
from dolfinx_mbd.structures.mesh_bodies.rigid_interfaces import RigidInterface

__all__ = ["FrameCoordinates", "rotation_matrices"]


class FrameCoordinates:
    """Coordinates q of a body: position and quaternion of each frame, then u, u̇ and ü of all nodes.

    The velocities v are those of the frames: ṗ in global components, ω in components of the frame.
    """

    embedding: Embedding
    forces: NodalForces
    elastic_model: ElasticModel
    energy_density: Callable[[Any], Any]  # J/m³, of the displacement
    nodes: Array  # reference positions of all nodes, (nodes, 3), m
    drawing: Skin  # surface of the undeformed body, without modes
    _drawn: NDArray[np.int64]  # numbers of the nodes at its points
    held: NDArray[np.int64]  # numbers of the nodes of the rigid interfaces
    held_blocks: NDArray[np.int32]  # local indices of the owned ones among them
    frame_names: tuple[str, ...]
    num_frames: int
    num_coordinates: int
    num_velocities: int
    num_elastic: int  # velocities beside the first frame, which takes the rigid motion
    typical_mass: float
    _size: float  # largest extent of the mesh, m
    _stiffness: float  # largest stiffness of a node at rest, N/m
    _inertia: CondensedInertia
    _solver: Any  # `StepUnknowns` in a step, otherwise None
    constraints: Constraints  # constraints of the averaged interfaces
    _rigid: tuple[RigidInterface, ...]
    _interfaces: tuple[RigidInterface | AveragedInterface, ...]  # the rigid ones first
    _moments: tuple[Array, Array]  # centre of mass, and inertia tensor about it
    _q0: Array  # initial coordinates
    _relative: Array  # initial velocities relative to the rigid motion, body components, (nodes, 3)

    def frames_of(self, q: Array) -> Array:
        """Return positions and quaternions of the interfaces in coordinates q, (frames, 7)."""
        return q[: 7 * self.num_frames].reshape(-1, 7)

    def nodal_of(self, q: Array) -> Array:
        """Return displacements, velocities and accelerations of all nodes, shape (3, nodes, 3).

        The result is a view of q.
        """
        return q[7 * self.num_frames :].reshape(3, len(self.nodes), 3)

    @property
    def distribution(self) -> tuple[Part, ...]:
        """The columns of q that each rank stores in results; empty on one rank."""
        comm, count = self.forces.comm, self.nodes.size
        if comm.size == 1:
            return ()
        nodes = self.forces.nodes.stored_of_ranks
        columns = (3 * np.concatenate(nodes)[:, None] + np.arange(3)).ravel()
        counts = tuple(3 * len(numbers) for numbers in nodes)
        starts = (7 * self.num_frames + kind * count for kind in range(3))
        return tuple(Part(comm, start, columns, counts) for start in starts)

    def nodal_history(self, q: Array | DistributedRows, kind: int) -> Any:
        """Return displacements, velocities or accelerations (nt, nodes, 3) in q (nt, nq).

        They are a view of an array, or distributed.

        Args:
            q: Coordinates.
            kind: 0 for displacements, 1 for velocities and 2 for accelerations.
        """
        shape = self.nodes.shape
        start = 7 * self.num_frames + kind * self.nodes.size
        if isinstance(q, DistributedRows):
            return q.columns(start, start + self.nodes.size, shape)
        return q[:, start : start + self.nodes.size].reshape(len(q), *shape)

    def surface(self, q: Array | DistributedRows) -> Array:
        """Return the positions of the points of `drawing`, (nt, nodes, 3), m, for q (nt, nq).

        Collective if q is distributed.
        """
        points = np.empty((len(q), len(self._drawn), 3))
        for out, u in zip(points, self.nodal_history(q, 0), strict=True):
            out[:] = self.drawing.points + u[self._drawn]
        return points

    def reference_state(self) -> tuple[Array, Array, Array]:
        """Return displacements, velocities and frames of the undeformed body.

        The body is at the origin; a plane body is at its initial position.
        """
        frames, X, embedding = np.zeros((self.num_frames, 7)), self.nodes, self.embedding
        frames[:, 3:] = embedding.quaternion
        for row, interface in zip(frames, self._interfaces, strict=False):
            row[:3] = embedding.origin + embedding.axes @ interface.point
        u = embedding.displacements(X, np.zeros((len(X), embedding.dim)))
        return u, np.zeros_like(X), frames

    def rotations_of(self, frames: Array) -> Array:
        """Return the rotation matrices (frames, 3, 3) of the interfaces in frames (frames, 7)."""
        return rotation_matrices(frames)[: len(self._interfaces)].reshape(-1, 3, 3)

    def motion_at(self, frames: Array, u: Array) -> Motion:
        """Return the motion of the body with frames (frames, 7) and displacements u (nodes, 3)."""
        return Motion(frames, self.rotations_of(frames), self.nodes + u)

    def frame_matrices(self, frames: Array) -> Array:
        """Return the derivatives T of nodal velocities by those of the frames; 0 at free nodes.

        The shape is (nodes, 3, 6 frames).
        """
        T = np.zeros((len(self.nodes), 3, 6 * len(self._interfaces)))
        for k, (i, R) in enumerate(zip(self._rigid, rotation_matrices(frames), strict=False)):
            T[i.nodes, :, 6 * k : 6 * k + 6] = self.embedding.flat(i.matrix(R))
        return T

    def hold(self, nodal: Array, frames: Array, v: Array, a: Array) -> None:
        """Set the motion of the nodes of rigid interfaces, from that of the frames, in `nodal`.

        `nodal` (3, nodes, 3) is the result of `nodal_of`; v and a are velocities and accelerations.
        """
        vs, accelerations = v.reshape(-1, 6), a.reshape(-1, 6)
        for i, frame, R, velocity, acceleration in zip(
            self._rigid, frames, rotation_matrices(frames), vs, accelerations, strict=False
        ):
            nodal[0, i.nodes] = i.positions(frame[:3], R) - self.nodes[i.nodes]
            nodal[1, i.nodes] = i.velocities(R, velocity)
            nodal[2, i.nodes] = i.accelerations(R, velocity, acceleration)

    def initial_coordinates(self) -> Array:
        """Return the coordinates of the undeformed body at its initial position."""
        return self._q0.copy()

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """Set `out` to q with frames moved by `delta` (nv,); the free nodes do not move."""
        out[:] = q
        old, new = self.frames_of(q), self.frames_of(out)
        for row, start, change in zip(new, old, delta.reshape(-1, 6), strict=True):
            row[:3] = start[:3] + change[:3]
            p = multiply_quaternions(start[3:], exp_quaternion(change[3:]))
            row[3:] = p / np.linalg.norm(p)

    def increment_tangent(self, delta: Array) -> Array:
        """Return the tangent operators of the rotations of all frames, shape (frames, 3, 3)."""
        return np.array([tangent(change[3:]) for change in delta.reshape(-1, 6)])

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Set positions (frames, 3) and orientations (frames, 3, 3) of the interfaces."""
        frames = self.frames_of(q)
        for k, (interface, R) in enumerate(
            zip(self._interfaces, rotation_matrices(frames), strict=False)
        ):
            position[k], rotation[k] = frames[k, :3], R @ interface.axes

    def frame_jacobians(self, q: Array) -> Array:
        """Return the derivatives of the velocities of the interfaces, shape (frames, 6, nv)."""
        out: Array = np.zeros((len(self._interfaces), 6, self.num_velocities))
        for k, R in enumerate(rotation_matrices(self.frames_of(q))[: len(out)]):
            out[k, :3, 6 * k : 6 * k + 3] = np.eye(3)
            out[k, 3:, 6 * k + 3 : 6 * k + 6] = R
        return out

    def frame_velocities(self, q: Array, v: Array, out: Array) -> None:
        """Set velocities and angular velocities (frames, 6) of the interfaces, global axes."""
        rates = v.reshape(-1, 6)
        for k, R in enumerate(rotation_matrices(self.frames_of(q))[: len(self._interfaces)]):
            out[k, :3], out[k, 3:] = rates[k, :3], R @ rates[k, 3:]

    def frame_velocity_tangents(self, q: Array, v: Array) -> Array:
        """Return the derivatives of `frame_velocities` with respect to q, shape (frames, 6, nv)."""
        out: Array = np.zeros((len(self._interfaces), 6, self.num_velocities))
        rates = v.reshape(-1, 6)
        for k, R in enumerate(rotation_matrices(self.frames_of(q))[: len(out)]):
            out[k, 3:, 6 * k + 3 : 6 * k + 6] = -R @ skew(rates[k, 3:])
        return out

    def frame_bias(self, q: Array, v: Array) -> Array:
        """Return the accelerations of the interfaces for v̇ = 0, which are zero, (frames, 6)."""
        return np.zeros((len(self._interfaces), 6))

    def placed(self, pose: Array, velocity: Array) -> tuple[Array, Array]:
        """Return coordinates and velocities of the undeformed body with the motion of a rigid body.

        The initial relative velocities of the nodes are added.

        Args:
            pose: Position and quaternion of the body frame, shape (7,).
            velocity: Velocity of its origin in global, angular velocity in body components, (6,).
        """
        R = rotation_matrix(pose[3:])
        self.embedding.check_pose(pose[:3], R, velocity, self._size)
        q, v = self.initial_coordinates(), np.zeros((self.num_frames, 6))
        frames, nodal = self.frames_of(q), self.nodal_of(q)
        spin = velocity[3:]
        frames[:, 3:] = pose[3:]
        v[:, 3:] = spin if self._interfaces else 0.0
        centre, _ = self._moments
        points = [i.point for i in self._interfaces] or [centre]
        for frame, rate, point in zip(frames, v, points, strict=True):
            frame[:3] = pose[:3] + R @ point
            rate[:3] = velocity[:3] + R @ np.cross(spin, point)
        u, w, a = nodal
        u[:] = pose[:3] + self.nodes @ R.T - self.nodes
        w[:] = velocity[:3] + (np.cross(spin, self.nodes) + self._relative) @ R.T
        if not self._interfaces:
            v[:, :3] += R @ (self.forces.lumped @ self._relative) / self.forces.lumped.sum()
        a[:] = 0.0
        return q, v.ravel()


def rotation_matrices(frames: Array) -> Array:
    """Return the rotation matrices (frames, 3, 3) of frames (frames, 7)."""
    return np.array([rotation_matrix(frame[3:]) for frame in frames])
