"""Constraints of the joints and drivers of a system: values, gradients, rates and derivatives."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Blocks, DenseBlocks, FrameTerms
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.relation_rows import RelationRows
from dolfinx_mbd.kernels import joints as kernels
from dolfinx_mbd.kernels.columns import ALONG_Z, OMEGA, ON_FIRST, ON_SECOND
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_vector, skew


class JointConstraints:
    """Constraints of all joints and drivers at the present poses of their frames.

    The *entries* of a system are its joints, then its drivers; an entry constrains some of the six
    relative motions of two frames.

    Args:
        frames: Motion of the frames; the poses must be up to date when a method is called.

    Attributes:
        lam: Multipliers λ, shape (nc,).
        values: Values of the last `add_forces`, shape (nc,).
        relations: Constraints of joints with a relation.
        entry_multipliers: Multipliers by entry and motion, shape (entries, 6).
        motion_rows: Entry and motion of each constraint, shape (nc, 2); the motion of a relation
            is −1.
    """

    def __init__(self, frames: Frames) -> None:
        self._frames, system = frames, frames.system
        self.system, self._entries = system, len(system.first)
        self.lam = np.zeros(system.num_constraints)
        self.values = np.zeros(system.num_constraints)
        self.entry_multipliers = np.zeros((self._entries, 6))
        self._driver_angles = np.zeros(self._entries)
        self._offsets = system.misfit.copy()
        self.relations = RelationRows(system)
        self._row_indices = np.column_stack([system.row_entry, system.row_motion])
        self.motion_rows = self._row_indices.copy()
        self.motion_rows[self.relations.rows, 1] = -1
        self._corrections: dict[int, Array] = {}
        self._driver_motions: tuple[float, list[tuple[float, float, float]]] = (np.nan, [])
        fixed = [k for k, joint in enumerate(system.joints) if set(joint.rows) >= {3, 4, 5}]
        driven = [
            len(system.joints) + k
            for k, driver in enumerate(system.drivers)
            if driver.along == "rotation"
        ]
        self._rotation_entries = np.array(fixed + driven, dtype=np.int64)

    def clear_driver_motions(self) -> None:
        """Evaluate the drivers again at the next call, because an input may have changed."""
        self._driver_motions = np.nan, []

    def clear_corrections(self) -> None:
        """Do not reduce large orientation errors; see `position_values`."""
        if self._corrections:
            self._corrections = {}

    def driver_positions(self, t: float) -> tuple[Array, Array]:
        """Set and return the angles (entries,) and the offsets (nc,) of the drivers at t."""
        s, motions = self.system, self.driver_motions(t)
        for k, (driver, (value, *_)) in enumerate(zip(s.drivers, motions, strict=True)):
            entry = len(s.joints) + k
            if driver.along == "rotation":
                self._driver_angles[entry] = self._frames.angles[s.driven_joints[k]] = value
            else:
                rows = s.row_entry == entry
                self._offsets[rows] = value + s.misfit[rows]
        return self._driver_angles, self._offsets

    def driver_motions(self, t: float) -> list[tuple[float, float, float]]:
        """Return value, rate and acceleration of each driver at t, evaluated once for each t."""
        if self._driver_motions[0] != t:
            self._driver_motions = t, [driver.at(t) for driver in self.system.drivers]
        return self._driver_motions[1]

    def _joint_frames(self) -> tuple[Array, Array, Array, Array]:
        """Return positions and axes of both frames of each joint and driver, with corrections."""
        s, frames = self.system, self._frames
        p1, Q1, p2, Q2 = kernels.joint_frames(
            frames.position, frames.rotation, s.first, s.second, self._driver_angles, s.axes_signs
        )
        for entry, correction in self._corrections.items():
            Q1[entry] = correction @ Q1[entry]
        return p1, Q1, p2, Q2

    def position_values(self) -> Array:
        """Return the values of the constraints, shape (nc,).

        The value of a rotation constraint is the sine of its error and also vanishes at half a
        turn. An error above 1 rad is therefore replaced by an error of 1 rad about the same axis;
        about an oblique axis, errors up to 1.26 rad may remain. Later calls of `matrix` use the
        same replacement. The values of constraints on velocities are zero.
        """
        p1, Q1, p2, Q2 = self._joint_frames()
        if self._rotation_entries.size:
            self._corrections = self._find_corrections(Q1, Q2)
            for entry, correction in self._corrections.items():
                Q1[entry] = correction @ Q1[entry]
        values = kernels.joint_values(p1, Q1, p2, Q2)
        if self.relations:
            self.relations.update(self._frames.position, self._frames.rotation)
            values[self.relations.entries, self.relations.motions] = self.relations.values
        return values[self.system.row_entry, self.system.row_motion] - self._offsets

    def _find_corrections(self, Q1: Array, Q2: Array) -> dict[int, Array]:
        """Return the rotations of first frames that reduce larger orientation errors to 1 rad.

        The keys are the indices of joints and drivers.
        """
        first, second = Q1[self._rotation_entries], Q2[self._rotation_entries]
        # An angle above 1 rad between equal axes of both frames shows a rotation above 1 rad. The
        # rotations that this misses are at most 1.26 rad, and need not be reduced
        near = np.einsum("jka,jka->ja", first, second).min(axis=1) > np.cos(1.0)
        corrections = {}
        for entry in self._rotation_entries[~near].tolist():
            if entry < len(self.system.joints):
                theta = Q1[entry] @ rotation_vector(Q1[entry].T @ Q2[entry])
            else:
                x, y = Q1[entry].T[:2] @ Q2[entry][:, 0]
                theta = np.arctan2(y, x) * Q1[entry][:, 2]
            size = float(np.linalg.norm(theta))
            if size > 1.0:
                corrections[entry] = exp_rotation((1.0 - 1.0 / size) * theta)
        return corrections

    def wrenches(self) -> Array:
        """Return forces and moments of each joint and driver on its two frames, (entries, 12)."""
        s, lam = self.system, np.zeros((self._entries, 6))
        lam[s.row_entry, s.row_motion] = self.lam
        return -np.einsum("jm,jmk->jk", lam, self._gradients(*self._joint_frames()))

    def matrix(self) -> Array:
        """Return B, shape (nc, nv), at the current poses."""
        B = DenseBlocks(self.system.entry_slices, self.system.v_slices)
        self._frames.update_jacobians()
        self._add_gradients(self._gradients(*self._joint_frames()), B)
        return B.array

    def gradients(self) -> Array:
        """Return the gradients (entries, 6, 12) of all motions at the current poses."""
        return self._gradients(*self._joint_frames())

    def _gradients(self, p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
        """Return the gradients (entries, 6, 12) of all constraints by entry and motion."""
        G = kernels.joint_gradients(p1, Q1, p2, Q2)
        if self.relations:
            self.relations.update(self._frames.position, self._frames.rotation)
            G[self.relations.entries, self.relations.motions] = self.relations.gradients()
        return G

    def _add_gradients(self, gradients: Array, B: Blocks) -> None:
        """Add gradients (entries, 6, 12) to B, using the last Jacobians."""
        frames = self._frames
        B.add_gradients(
            gradients, self._row_indices, frames.entry_frames, frames.jacobian_table, frames.columns
        )

    def rates(self, t: float) -> tuple[Array, Array]:
        """Return ∂Φ/∂t and the value of Φ̈ for zero accelerations, (nc,) each."""
        s = self.system
        p1, Q1, p2, Q2 = self._joint_frames()
        velocities = self._frames.update_velocities()
        bias = self._frames.frame_biases()
        G = self._gradients(p1, Q1, p2, Q2)
        # Velocities u and accelerations b for v̇ = 0 of both frames of each entry. The first frame
        # of a driver of a rotation also rotates by the angle of the driver
        u1, u2 = velocities[s.first].copy(), velocities[s.second]
        b1, b2 = bias[s.first].copy(), bias[s.second]
        rate, acceleration_terms = np.zeros((self._entries, 6)), np.zeros((self._entries, 6))
        motions = enumerate(zip(s.drivers, self.driver_motions(t), strict=True), len(s.joints))
        for k, (driver, (_, speed, acceleration)) in motions:
            if driver.along == "displacement":
                rate[k, ALONG_Z], acceleration_terms[k, ALONG_Z] = -speed, -acceleration
                continue
            spin = speed * Q1[k, :, 2]
            rate[k] = G[k, :, OMEGA] @ spin
            b1[k, 3:] += acceleration * Q1[k, :, 2] + skew(u1[k, 3:]) @ spin
            u1[k, 3:] += spin
        second = kernels.joint_bias(p1, Q1, u1, p2, Q2, u2)
        if self.relations:
            entries, numbers = self.relations.entries, self.relations.motions
            u = np.hstack([u1, u2])[entries]
            second[entries, numbers] = np.einsum("ni,nij,nj->n", u, self.relations.seconds(), u)
        second += (G @ np.hstack([b1, b2])[:, :, None])[:, :, 0] + acceleration_terms
        return rate[s.row_entry, s.row_motion], second[s.row_entry, s.row_motion]

    def derivatives(self, w: Array, t: float | None = None) -> Array:
        """Return the derivative (nc, nv) of B w with respect to q for constant w (nv,).

        If `t` is given, ∂Φ/∂t is added to B w.
        """
        s = self.system
        p1, Q1, p2, Q2 = self._joint_frames()
        G = self._gradients(p1, Q1, p2, Q2)
        hessians = np.zeros((6, self._entries, 12, 12))
        for motion in range(6):
            unit = np.tile(np.eye(6)[motion], (self._entries, 1))
            hessians[motion] = kernels.joint_second_derivatives(p1, Q1, p2, Q2, unit)
        if self.relations:
            related = self.relations.motions, self.relations.entries
            hessians[related] = self.relations.seconds()
        jacobians = self._frames.jacobians()
        speeds = np.concatenate(
            [J @ w[part] for J, part in zip(jacobians, s.v_slices, strict=True)]
        )
        tangents = [
            view.body.frame_velocity_tangents(view.q, w[part])
            for view, part in zip(self._frames.views, s.v_slices, strict=True)
        ]
        derivatives = DenseBlocks(s.entry_slices, s.v_slices)
        for entry, rows in enumerate(s.entry_slices):
            motions = s.row_motion[rows]
            ends = first, second = int(s.first[entry]), int(s.second[entry])
            speed = np.concatenate([speeds[first], speeds[second]])
            derivative = np.zeros((len(motions), 12))
            driver = entry - len(s.joints)
            if t is not None and driver >= 0 and s.drivers[driver].along == "rotation":
                _, rate, _ = self.driver_motions(t)[driver]
                spin = rate * Q1[entry, :, 2]
                speed[OMEGA] += spin
                derivative[:, OMEGA] = -G[entry, motions, OMEGA] @ skew(spin)
            derivative += np.einsum("a,rab->rb", speed, hessians[motions, entry])
            for end, part in zip(ends, (ON_FIRST, ON_SECOND), strict=True):
                k, J = self._frames.frame_jacobian(end, jacobians)
                _, T = self._frames.frame_jacobian(end, tangents)
                derivatives.add(entry, k, derivative[:, part] @ J + G[entry, motions, part] @ T)
        return derivatives.array

    def add_forces(self, rate_scale: float) -> None:
        """Subtract the forces of the constraints from the wrenches, and compute `values`.

        The value of a constraint on velocities is its rate times `rate_scale` (s).
        """
        s, frames = self.system, self._frames
        kernels.constraint_rows(
            frames.position,
            frames.rotation,
            s.first,
            s.second,
            self._driver_angles,
            s.axes_signs,
            self.motion_rows,
            self._offsets,
            self.lam,
            self.entry_multipliers,
            frames.wrenches,
            self.values,
        )
        if self.relations:
            self.add_relations(frames.wrenches, self.values, rate_scale)

    def add_relations(self, wrenches: Array, values: Array, rate_scale: float = 1.0) -> None:
        """Add the forces of relations to wrenches (frames, 6), and set their values in (nc,)."""
        relations = self.relations
        relations.update(self._frames.position, self._frames.rotation)
        relations.subtract_forces(self.lam, wrenches)
        values[relations.rows] = relations.values - self._offsets[relations.rows]
        speeds = relations.rows[relations.on_velocities]
        if len(speeds):
            values[speeds] = rate_scale * relations.rates(self._frames.update_velocities())

    def problem(self, initial: bool) -> str:
        """Return why a joint cannot be in its present position, or an empty text."""
        poses = self._frames.position, self._frames.rotation
        if not self.relations or not (problem := self.relations.problem(*poses, initial)):
            return ""
        joint = self.system.joints[problem[0]]
        return f"{joint.kind.replace('_', '-')} joint {joint.name!r}: {problem[1]}"

    def add_tangent(self, multipliers: Array, second: FrameTerms, B: Blocks) -> None:
        """Add derivatives of the constraints and of their wrenches for multipliers (entries, 6).

        The multipliers of relations are those of the last `add_forces`.
        """
        if not self._entries:
            return
        p1, Q1, p2, Q2 = self._joint_frames()
        D = kernels.joint_second_derivatives(p1, Q1, p2, Q2, multipliers)
        G = self._gradients(p1, Q1, p2, Q2)
        if self.relations:
            lam = self.lam[self.relations.rows, None, None]
            np.add.at(D, self.relations.entries, lam * self.relations.seconds())
        second.add(D, self._frames.entry_frames, self._frames.entry_frames)
        self._add_gradients(G, B)
