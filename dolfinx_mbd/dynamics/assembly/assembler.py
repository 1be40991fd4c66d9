"""Equations of a system at one time and state: residual, constraints and their derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Blocks, DenseBlocks, FrameTerms, SparseBlocks
from dolfinx_mbd.dynamics.assembly.floating_bodies import FloatingBodies
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.loads import Loads
from dolfinx_mbd.dynamics.assembly.relation_rows import RelationRows
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.kernels import joints as kernels
from dolfinx_mbd.kernels.columns import OMEGA, ON_FIRST, ON_SECOND
from dolfinx_mbd.kernels.rotations import exp_rotation, rotation_vector, skew
from dolfinx_mbd.mechanism.system import State, System


class AssemblyError(SolverError, ValueError):
    """A mechanism cannot be assembled: its constraints contradict or repeat each other.

    `joint` is the name of the joint or driver with the largest violation (None if no constraint is
    violated) and `misfit` is the violation, m or rad.
    """

    def __init__(self, message: str, *, joint: str | None = None, misfit: float = 0.0) -> None:
        super().__init__(message)
        self.joint, self.misfit = joint, misfit


class Tangent(NamedTuple):
    """Derivatives of the residual with respect to q, v and a, and the constraint matrix B."""

    K: Array
    C: Array
    M: Array
    B: Array  # gradient of the constraints (nc, nv); Bᵀλ is part of the residual


class TangentBlocks(NamedTuple):
    """Nonzero blocks of the matrices of a `Tangent`.

    The keys of K, C and M are pairs of bodies. The keys of B are pairs of a joint or driver and a
    body.
    """

    K: SparseBlocks
    C: SparseBlocks
    M: SparseBlocks
    B: SparseBlocks


class Assembler:
    """Evaluation of a system at q, v, a and λ (`lam`): set these arrays, then call a method.

    `angles` are the joint rotations at the last accepted time; `update_poses` sets the rotations of
    driven joints to the driver angles. `residual` computes the residual `rows`, its `scale` and the
    constraint `values` (nc,). The value of a constraint on velocities is its rate times
    `rate_scale` (s).

    Args:
        system: Mechanism.

    Attributes:
        frames: Motion of the frames and of the joint coordinates; it owns the arrays of the state.
        loads: Loads at the same state.
    """

    def __init__(self, system: System) -> None:
        self.system, self.frames = system, Frames(system)
        self.loads, at = Loads(self.frames), self.frames
        self.q, self.v, self.a, self.angles = at.q, at.v, at.a, at.angles
        self.rows, self.scale = at.rows, at.scale
        self.position, self.rotation = at.position, at.rotation
        self.velocities, self.wrenches = at.velocities, at.wrenches
        self.lam = np.zeros(system.num_constraints)
        self.values = np.zeros(system.num_constraints)
        self._entries = len(system.first)
        self._entry_multipliers = np.zeros((self._entries, 6))
        self._driver_angles = np.zeros(self._entries)
        self._offsets = system.misfit.copy()
        self.relations, self.rate_scale = RelationRows(system), 1.0
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

    # ---- states ---------------------------------------------------------------------------------
    def put(self, state: State) -> None:
        """Set the point of evaluation to a state, and clear the stored motions of the drivers.

        The contents of oil films are those of the step in the memory of the state.
        """
        self.loads.put_content(state.memory)
        self._driver_motions = np.nan, []
        self.q[:], self.v[:], self.a[:], self.lam[:] = state.q, state.v, state.a, state.lam
        self.angles[:] = state.angles

    def content(self, state: State) -> Array:
        """Return the contents of oil films at a state, (N,), m."""
        if "content" in state.memory:
            return np.asarray(state.memory["content"])
        self.put(state)
        self.update_loaded_frames(state.time)
        for _ in self.loads.wrenches(state.time):
            pass  # the films store their contents when they are evaluated
        return self.loads.content_memory(np.zeros(0), 0.0)["content"]

    def state(self, t: float, memory: dict[str, Any] | None = None) -> State:
        """Return the point of evaluation as a state, with the memory of an integrator."""
        q, v, a, lam = self.q.copy(), self.v.copy(), self.a.copy(), self.lam.copy()
        return State(t, q, v, a, lam, self.frames.joint_rotations(), memory or {})

    # ---- poses and constraints ------------------------------------------------------------------
    def move(self, q: Array, delta: Array) -> None:
        """Set the coordinates to `q` after an increment (nv,)."""
        self.frames.bodies.increment(q, delta, self.q)
        s = self.system
        for k in self.frames.others:
            part = s.q_slices[k]
            s.bodies[k].increment(q[part], delta[s.v_slices[k]], self.q[part])

    def update_poses(self, t: float) -> None:
        """Compute the poses of all frames at q and the driver angles at t."""
        self._update_poses(self.frames.bodies, t)

    def update_loaded_frames(self, t: float) -> None:
        """Compute poses and velocities of the frames of bodies on which loads act or depend."""
        self._update_poses(self.loads.bodies, t)
        self.frames.update_velocities_of(self.loads.bodies)

    def _update_poses(self, floating: FloatingBodies, t: float) -> None:
        self.frames.time = t
        floating.poses(self.q, self.position, self.rotation)
        for k in self.frames.others:
            view = self.frames.views[k]
            view.body.poses(view.q, view.position, view.rotation)
        if self._corrections:
            self._corrections = {}
        self.driver_positions(t)

    def driver_positions(self, t: float) -> tuple[Array, Array]:
        """Set and return the angles (entries,) and the offsets (nc,) of the drivers at t."""
        s, motions = self.system, self.driver_motions(t)
        for k, (driver, (value, *_)) in enumerate(zip(s.drivers, motions, strict=True)):
            entry = len(s.joints) + k
            if driver.along == "rotation":
                self._driver_angles[entry] = self.angles[s.driven_joints[k]] = value
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
        s = self.system
        p1, Q1, p2, Q2 = kernels.joint_frames(
            self.position, self.rotation, s.first, s.second, self._driver_angles, s.axes_signs
        )
        for entry, correction in self._corrections.items():
            Q1[entry] = correction @ Q1[entry]
        return p1, Q1, p2, Q2

    def constraints(self, t: float) -> Array:
        """Return the values of the constraints, shape (nc,).

        The value of a rotation constraint is the sine of its error and also vanishes at half a
        turn. An error above 1 rad is therefore replaced by an error of 1 rad about the same axis.
        Later calls of `constraint_matrix` use the same replacement. The values of constraints on
        velocities are zero.
        """
        self.update_poses(t)
        p1, Q1, p2, Q2 = self._joint_frames()
        if self._rotation_entries.size:
            self._corrections = self._find_corrections(Q1, Q2)
            for entry, correction in self._corrections.items():
                Q1[entry] = correction @ Q1[entry]
        values = kernels.joint_values(p1, Q1, p2, Q2)
        if self.relations:
            self.relations.update(self.position, self.rotation)
            values[self.relations.entries, self.relations.motions] = self.relations.values
        return values[self.system.row_entry, self.system.row_motion] - self._offsets

    def _find_corrections(self, Q1: Array, Q2: Array) -> dict[int, Array]:
        """Return the rotations of first frames that reduce larger orientation errors to 1 rad.

        The keys are the indices of joints and drivers.
        """
        first, second = Q1[self._rotation_entries], Q2[self._rotation_entries]
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

    def joint_wrenches(self) -> Array:
        """Return forces and moments of each joint and driver on its two frames, (entries, 12).

        Call `update_poses` first.
        """
        s, lam = self.system, np.zeros((self._entries, 6))
        lam[s.row_entry, s.row_motion] = self.lam
        return -np.einsum("jm,jmk->jk", lam, self._gradients(*self._joint_frames()))

    def constraint_matrix(self) -> Array:
        """Return B, shape (nc, nv), at the current poses."""
        B = DenseBlocks(self.system.entry_slices, self.system.v_slices)
        self.frames.update_jacobians()
        self._add_gradients(self._gradients(*self._joint_frames()), B)
        return B.array

    def _gradients(self, p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
        """Return the gradients (entries, 6, 12) of all constraints by joint and number."""
        G = kernels.joint_gradients(p1, Q1, p2, Q2)
        if self.relations:
            self.relations.update(self.position, self.rotation)
            G[self.relations.entries, self.relations.motions] = self.relations.gradients()
        return G

    def _add_gradients(self, gradients: Array, B: Blocks) -> None:
        """Add gradients (entries, 6, 12) to B, using the last Jacobians."""
        at = self.frames
        B.add_gradients(
            gradients, self._row_indices, at.entry_frames, at.jacobian_table, at.columns
        )

    def constraint_rates(self, t: float) -> tuple[Array, Array]:
        """Return ∂Φ/∂t and the value of Φ̈ for zero accelerations, (nc,) each."""
        s = self.system
        p1, Q1, p2, Q2 = self._joint_frames()
        velocities = self.frames.update_velocities()
        bias = self.frames.frame_biases()
        G = self._gradients(p1, Q1, p2, Q2)
        u1, u2 = velocities[s.first].copy(), velocities[s.second]
        b1, b2 = bias[s.first].copy(), bias[s.second]
        rate, acceleration_terms = np.zeros((self._entries, 6)), np.zeros((self._entries, 6))
        motions = enumerate(zip(s.drivers, self.driver_motions(t), strict=True), len(s.joints))
        for k, (driver, (_, speed, acceleration)) in motions:
            if driver.along == "displacement":
                rate[k, 2], acceleration_terms[k, 2] = -speed, -acceleration
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

    def constraint_derivatives(self, w: Array, t: float | None = None) -> Array:
        """Return the derivative (nc, nv) of B w with respect to q for constant w (nv,).

        Call `update_poses` first. If `t` is given, ∂Φ/∂t is added to B w.
        """
        s = self.system
        p1, Q1, p2, Q2 = self._joint_frames()
        G = self._gradients(p1, Q1, p2, Q2)
        hessians = np.zeros((6, self._entries, 12, 12))
        for motion in range(6):
            unit = np.tile(np.eye(6)[motion], (self._entries, 1))
            hessians[motion] = kernels.joint_second(p1, Q1, p2, Q2, unit)
        if self.relations:
            related = self.relations.motions, self.relations.entries
            hessians[related] = self.relations.seconds()
        jacobians = self.frames.jacobians()
        speeds = np.concatenate(
            [J @ w[part] for J, part in zip(jacobians, s.v_slices, strict=True)]
        )
        tangents = [
            view.body.frame_velocity_tangents(view.q, w[part])
            for view, part in zip(self.frames.views, s.v_slices, strict=True)
        ]
        derivatives = DenseBlocks(s.entry_slices, s.v_slices)
        for entry, rows in enumerate(s.entry_slices):
            motions = s.row_motion[rows]
            ends = int(s.first[entry]), int(s.second[entry])
            speed = np.concatenate([speeds[ends[0]], speeds[ends[1]]])
            derivative = np.zeros((len(motions), 12))
            driver = entry - len(s.joints)
            if t is not None and driver >= 0 and s.drivers[driver].along == "rotation":
                spin = self.driver_motions(t)[driver][1] * Q1[entry, :, 2]
                speed[OMEGA] += spin
                derivative[:, OMEGA] = -G[entry, motions, OMEGA] @ skew(spin)
            derivative += np.einsum("a,rab->rb", speed, hessians[motions, entry])
            for end, part in zip(ends, (ON_FIRST, ON_SECOND), strict=True):
                k, J = self.frames.frame_jacobian(end, jacobians)
                _, T = self.frames.frame_jacobian(end, tangents)
                derivatives.add(entry, k, derivative[:, part] @ J + G[entry, motions, part] @ T)
        return derivatives.array

    # ---- residual and its derivatives -----------------------------------------------------------
    def update_wrenches(self, t: float) -> None:
        """Compute the wrenches on all frames and the values of the constraints."""
        s = self.system
        self.update_poses(t)
        self.wrenches[:] = 0.0
        if s.loads:
            self.loads.apply(t)
        kernels.constraint_rows(
            self.position,
            self.rotation,
            s.first,
            s.second,
            self._driver_angles,
            s.axes_signs,
            self.motion_rows,
            self._offsets,
            self.lam,
            self._entry_multipliers,
            self.wrenches,
            self.values,
        )
        if self.relations:
            self.add_relations(self.wrenches, self.values)

    def add_relations(self, wrenches: Array, values: Array) -> None:
        """Add the forces of relations to wrenches (nf, 6), and set their values in (nc,)."""
        relations = self.relations
        relations.update(self.position, self.rotation)
        relations.subtract_forces(self.lam, wrenches)
        values[relations.rows] = relations.values - self._offsets[relations.rows]
        speeds = relations.rows[relations.on_velocities]
        if len(speeds):
            values[speeds] = self.rate_scale * relations.rates(self.frames.update_velocities())

    def problem(self) -> str:
        """Return why a joint cannot be in its present position, or an empty text."""
        if not self.relations or not (
            problem := self.relations.problem(self.position, self.rotation)
        ):
            return ""
        joint = self.system.joints[problem[0]]
        return f"{joint.kind.replace('_', '-')} joint {joint.name!r}: {problem[1]}"

    def residual(self, t: float) -> None:
        """Evaluate `rows`, `scale` and `values` at (t, q, v, a, λ).

        These are the residuals of the equations of motion, the magnitudes of their terms, and the
        values of the constraints.
        """
        s = self.system
        self.update_wrenches(t)
        self.frames.bodies.residual(
            self.q, self.v, self.a, s.gravity, self.wrenches, self.rows, self.scale
        )
        for k in self.frames.others:
            view = self.frames.views[k]
            view.body.residual(view.state(t, s.gravity), view.rows, view.scale)
        if s.loads:
            self.loads.subtract_forces(t)

    def power(self, t: float) -> float:
        """Return the power of loads and drivers, W; call after `residual`.

        Joints do no work. The power of all wrenches is therefore the power of loads and drivers.
        Without loads, it is the power of drivers alone; λ is the negative force on the second
        frame.
        """
        s = self.system
        if not s.loads:
            rows = s.entry_slices[len(s.joints) :]
            return -sum(
                float(self.lam[row]) * rate
                for part, (_, rate, _) in zip(rows, self.driver_motions(t), strict=True)
                for row in range(part.start, part.stop)
            )
        power = float(np.vdot(self.wrenches, self.frames.update_velocities()))
        return power + self.loads.power_on_modes(t)

    def tangent(self, t: float, out: Tangent | None = None) -> Tangent:
        """Return the derivatives at (t, q, v, a, λ); call after `residual` at the same point.

        They are written to `out` if it is given.
        """
        if out is None:
            out = self.zero_tangent()
        else:
            for array in out:
                array.fill(0.0)
        vs = self.system.v_slices
        K, C, M = (DenseBlocks(vs, vs, array) for array in (out.K, out.C, out.M))
        self._add_tangent(t, K, C, M, DenseBlocks(self.system.entry_slices, vs, out.B))
        return out

    def zero_tangent(self) -> Tangent:
        """Return matrices of the shapes of `tangent` with zeros."""
        n, c = self.system.num_velocities, self.system.num_constraints
        return Tangent(*(np.zeros((rows, n)) for rows in (n, n, n, c)))

    def tangent_blocks(self, t: float) -> TangentBlocks:
        """Return the nonzero blocks of the matrices of `tangent`, for long chains."""
        K, C, M, B = (SparseBlocks(self.system.v_slices) for _ in range(4))
        self._add_tangent(t, K, C, M, B)
        return TangentBlocks(K, C, M, B)

    def inertia(self, t: float) -> tuple[Array, Array]:
        """Return the matrices M and B of `tangent` at (t, q, v, a); call after `update_poses`."""
        K, C, M = (DenseBlocks(self.system.v_slices, self.system.v_slices) for _ in range(3))
        self._add_bodies(t, K, C, M)
        return M.array, self.constraint_matrix()

    def _add_bodies(self, t: float, K: Blocks, C: Blocks, M: Blocks) -> None:
        s = self.system
        members = self.frames.bodies.members
        point = self.q, self.v, self.a, s.gravity, self.wrenches
        if isinstance(K, DenseBlocks) and isinstance(C, DenseBlocks) and isinstance(M, DenseBlocks):
            self.frames.bodies.add_tangents(point, K.array, C.array, M.array)
        else:
            for k, parts in zip(members, self.frames.bodies.tangents(*point), strict=True):
                for target, block in zip((K, C, M), parts, strict=True):
                    target.add(k, k, block)
        for k in self.frames.others:
            view = self.frames.views[k]
            parts = view.body.tangent(view.state(t, s.gravity))
            for target, block in zip((K, C, M), parts, strict=True):
                target.add(k, k, block)

    def settle(self, t: float) -> None:
        """Set the accelerations of unknowns that bodies condense, at the accelerations `a`."""
        for k in self.frames.others:
            view = self.frames.views[k]
            if hasattr(view.body, "settle"):
                view.body.settle(view.state(t, self.system.gravity), view.q)

    def _add_tangent(self, t: float, K: Blocks, C: Blocks, M: Blocks, B: Blocks) -> None:
        for k in self.frames.others:
            if hasattr(body := self.system.bodies[k], "check_tangent"):
                body.check_tangent()
        self._add_bodies(t, K, C, M)
        self.frames.update_jacobians()
        second, multipliers = FrameTerms(), self._entry_multipliers.copy()
        if self.system.loads:
            self.loads.add_derivatives(t, second, multipliers, K, C)
        if self._entries:
            self._add_joints(multipliers, second, B)
        at = self.frames
        second.add_to(K, at.jacobian_table, at.jacobian_table, at.columns)

    def _add_joints(self, multipliers: Array, second: FrameTerms, B: Blocks) -> None:
        """Add derivatives of the constraints and of their wrenches for multipliers (entries, 6).

        The multipliers of relations are those of the last call of `residual`.
        """
        p1, Q1, p2, Q2 = self._joint_frames()
        D = kernels.joint_second(p1, Q1, p2, Q2, multipliers)
        G = self._gradients(p1, Q1, p2, Q2)
        if self.relations:
            lam = self.lam[self.relations.rows, None, None]
            np.add.at(D, self.relations.entries, lam * self.relations.seconds())
        second.add(D, self.frames.entry_frames, self.frames.entry_frames)
        self._add_gradients(G, B)


def extent(eqs: Assembler) -> float:
    """Return the size of the mechanism at the current poses, m, at least 1 mm."""
    if not len(eqs.position):
        return 1e-3
    return max(1e-3, float(np.ptp(eqs.position, axis=0).max()))
