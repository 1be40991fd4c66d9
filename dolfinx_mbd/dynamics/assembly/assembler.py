"""Equations of a system at one time and state: residual, constraints and their derivatives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Blocks, DenseBlocks, FrameTerms, SparseBlocks
from dolfinx_mbd.dynamics.assembly.floating_bodies import FloatingBodies
from dolfinx_mbd.dynamics.assembly.frames import Frames
from dolfinx_mbd.dynamics.assembly.joint_constraints import JointConstraints
from dolfinx_mbd.dynamics.assembly.loads import Loads
from dolfinx_mbd.errors import SolverError
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

    K: Array  # with respect to increments of q, (nv, nv)
    C: Array  # with respect to v, (nv, nv)
    M: Array  # with respect to a, (nv, nv)
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
        joints: Constraints of the joints and drivers at the same state.
    """

    def __init__(self, system: System) -> None:
        self.system, self.frames = system, Frames(system)
        self.loads, at = Loads(self.frames), self.frames
        self.q, self.v, self.a, self.angles = at.q, at.v, at.a, at.angles
        self.rows, self.scale = at.rows, at.scale
        self.position, self.rotation = at.position, at.rotation
        self.velocities, self.wrenches = at.velocities, at.wrenches
        self.joints, self.rate_scale = JointConstraints(self.frames), 1.0
        self.lam, self.values = self.joints.lam, self.joints.values

    # ---- states ---------------------------------------------------------------------------------
    def put(self, state: State) -> None:
        """Set the point of evaluation to a state, and clear the stored motions of the drivers.

        The contents of oil films are those of the step in the memory of the state.
        """
        self.loads.put_content(state.memory)
        self.joints.clear_driver_motions()
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
        """Compute the poses of the frames of `floating` and other bodies, and the driver angles."""
        self.frames.time = t
        floating.poses(self.q, self.position, self.rotation)
        for k in self.frames.others:
            view = self.frames.views[k]
            view.body.poses(view.q, view.position, view.rotation)
        self.joints.clear_corrections()
        self.joints.driver_positions(t)

    def driver_motions(self, t: float) -> list[tuple[float, float, float]]:
        """Return value, rate and acceleration of each driver at t, evaluated once for each t."""
        return self.joints.driver_motions(t)

    def constraints(self, t: float) -> Array:
        """Return the values of the constraints, (nc,); see `JointConstraints.position_values`."""
        self.update_poses(t)
        return self.joints.position_values()

    def joint_wrenches(self) -> Array:
        """Return forces and moments of each joint and driver on its two frames, (entries, 12).

        Call `update_poses` first.
        """
        return self.joints.wrenches()

    def constraint_matrix(self) -> Array:
        """Return B, shape (nc, nv), at the current poses."""
        return self.joints.matrix()

    def constraint_rates(self, t: float) -> tuple[Array, Array]:
        """Return ∂Φ/∂t and the value of Φ̈ for zero accelerations, (nc,) each."""
        return self.joints.rates(t)

    def constraint_derivatives(self, w: Array, t: float | None = None) -> Array:
        """Return the derivative (nc, nv) of B w with respect to q for constant w (nv,).

        Call `update_poses` first. If `t` is given, ∂Φ/∂t is added to B w.
        """
        return self.joints.derivatives(w, t)

    def problem(self, *, initial: bool = False) -> str:
        """Return why a joint cannot be in its present position, or an empty text.

        `initial` denotes the position into which the initial positions were assembled.
        """
        return self.joints.problem(initial)

    # ---- residual and its derivatives -----------------------------------------------------------
    def update_loads(self, t: float) -> None:
        """Compute the poses of all frames and the wrenches of the loads on them."""
        self.update_poses(t)
        self.wrenches[:] = 0.0
        if self.system.loads:
            self.loads.apply(t)

    def update_wrenches(self, t: float) -> None:
        """Compute the wrenches on all frames and the values of the constraints."""
        self.update_loads(t)
        self.joints.add_forces(self.rate_scale)

    def residual(self, t: float) -> None:
        """Evaluate `rows`, `scale` and `values` at (t, q, v, a, λ).

        These are the residuals of the equations of motion, the magnitudes of their terms, and the
        values of the constraints.
        """
        self.update_wrenches(t)
        self._update_rows(t)

    def residual_of_accelerations(self, t: float, loads: Array) -> None:
        """Evaluate `residual` again if only a and λ have changed, with the wrenches of the loads.

        The wrenches (frames, 6) are those of `update_loads`; no load depends on a or λ.
        """
        self.wrenches[:] = loads
        self.joints.add_forces(self.rate_scale)
        self._update_rows(t)

    def _update_rows(self, t: float) -> None:
        """Evaluate `rows` and `scale` with the present wrenches."""
        s = self.system
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
        """Return zero matrices of the same shapes as those of `tangent`."""
        n, c = self.system.num_velocities, self.system.num_constraints
        return Tangent(*(np.zeros((rows, n)) for rows in (n, n, n, c)))

    def tangent_blocks(self, t: float) -> TangentBlocks:
        """Return the matrices of `tangent` as nonzero blocks, for systems with many bodies."""
        K, C, M, B = (SparseBlocks(self.system.v_slices) for _ in range(4))
        self._add_tangent(t, K, C, M, B)
        return TangentBlocks(K, C, M, B)

    def inertia(self, t: float) -> tuple[Array, Array]:
        """Return the matrices M and B of `tangent` at (t, q, v, a); call after `update_poses`."""
        K, C, M = (DenseBlocks(self.system.v_slices, self.system.v_slices) for _ in range(3))
        self._add_bodies(t, K, C, M)  # loads and constraints do not depend on a
        return M.array, self.constraint_matrix()

    def _add_bodies(self, t: float, K: Blocks, C: Blocks, M: Blocks) -> None:
        """Add the derivatives of the residuals of bodies by q, v and a to K, C and M."""
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
        """Compute accelerations of unknowns that bodies eliminate, such as nodes of mesh bodies.

        They balance the forces on these unknowns while the system has the accelerations `a`.
        """
        for k in self.frames.others:
            view = self.frames.views[k]
            if hasattr(view.body, "settle"):
                view.body.settle(view.state(t, self.system.gravity), view.q)

    def _add_tangent(self, t: float, K: Blocks, C: Blocks, M: Blocks, B: Blocks) -> None:
        """Add all derivatives of the residual to K, C and M, and the constraint matrix to B."""
        for k in self.frames.others:
            if hasattr(body := self.system.bodies[k], "check_tangent"):
                body.check_tangent()
        self._add_bodies(t, K, C, M)
        self.frames.update_jacobians()
        terms, multipliers = FrameTerms(), self.joints.entry_multipliers.copy()
        if self.system.loads:
            self.loads.add_derivatives(t, terms, multipliers, K, C)
        self.joints.add_tangent(multipliers, terms, B)
        frames = self.frames
        terms.add_to(K, frames.jacobian_table, frames.jacobian_table, frames.columns)


def extent(eqs: Assembler) -> float:
    """Return the size of the mechanism at the current poses, m, at least 1 mm."""
    if not len(eqs.position):
        return 1e-3
    return max(1e-3, float(np.ptp(eqs.position, axis=0).max()))
