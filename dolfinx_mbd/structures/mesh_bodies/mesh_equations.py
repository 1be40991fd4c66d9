"""Equations of a mesh body: residual, tangent, energies and momenta with condensed free nodes."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import skew
from dolfinx_mbd.mechanism.protocol import BodyState
from dolfinx_mbd.structures.mesh_bodies.frame_coordinates import FrameCoordinates
from dolfinx_mbd.structures.mesh_bodies.multipliers import Motion
from dolfinx_mbd.structures.mesh_bodies.rigid_interfaces import magnitude

__all__ = ["MeshEquations"]

_MIN_SCALE = 1e-12  # smallest scale of forces, relative to the largest stiffness times the size
_ROUND_OFF = 4e-16  # round-off of positions, relative to displacement plus size of the body


class MeshEquations(FrameCoordinates):
    """The forces on the frames of a mesh body, whose free nodes are condensed."""

    name: str

    def residual(self, state: BodyState, out: Array, scale: Array) -> None:
        """Set the residual of the frames with condensed free nodes, and its scale, (nv,) each.

        In a step, the free nodes are condensed with the matrix of the step; at an instant, with the
        mass matrix.
        """
        frames = self.frames_of(state.q)
        terms = self._nodal_forces(state)
        total = np.sum(terms, axis=0)
        if self._solver is not None:
            total -= self._solver.offset()
        u, _, _ = self.nodal_of(state.q)
        at = self.motion_at(frames, u)
        out[:], scale[:] = 0.0, _MIN_SCALE * self._stiffness * self._size
        normal_spring = self._normal_spring()
        if self._solver is not None and self.constraints.size:
            terms.append(self.constraints.forces(at, self._solver.multipliers))
            total += terms[-1]
            out[:] = self._solver.multipliers @ self.constraints.frame_matrix(at)
        free = total.copy()
        free[self.held] = 0.0
        for k, (i, R, wrench) in enumerate(
            zip(self._interfaces, at.rotations, state.wrenches, strict=False)
        ):
            part = slice(6 * k, 6 * k + 6)
            load = np.concatenate([wrench[:3], R.T @ wrench[3:]])
            out[part] -= load
            scale[part] += np.abs(load)
            if self.embedding.is_plane:
                position = at.frames[k, :3]
                motion = self.embedding.departure(position, R) if self._solver else state.a[part]
                out[part] += normal_spring @ motion
            if k < len(self._rigid):
                out[part] += self._rigid[k].resultant(R, total[i.nodes])
            for term in terms:
                scale[part] += magnitude(i.levers, term[i.nodes])
        if not self._interfaces:
            self._follow_centre(state, terms, out, scale)
        if self._solver is None:
            if self._interfaces:
                out -= self._inertia.frame_forces(at, free, self._gap_rates(at, state))
            return
        gaps, noise = self.constraints.gaps(at), self._round_off(state.q)
        self._solver.evaluated(total, terms, gaps, (self._stiffness * noise, noise))
        if self._interfaces:
            out -= self._solver.frame_forces(free)

    def _normal_spring(self) -> Array:
        """Return the stiffness, outside of a step the mass (6, 6), of a frame off the plane."""
        factor = self._stiffness if self._solver else self.typical_mass
        return factor * self.embedding.stiffness(self._size)

    def _gap_rates(self, at: Motion, state: BodyState) -> Array:
        """Return the second time derivatives of the constraints of averaged interfaces, (m,)."""
        nodal = self.nodal_of(state.q).copy()
        self.hold(nodal, at.frames, state.v, state.a)
        _, velocities, accelerations = nodal
        return self.constraints.rates(at, state.v, state.a, velocities, accelerations)

    def _nodal_forces(self, state: BodyState) -> list[Array]:
        """Return the forces of inertia, elasticity, loads and damping, (nodes, 3) each.

        Their sum is the residual of the nodes.
        """
        nodal = self.nodal_of(state.q).copy()
        self.hold(nodal, self.frames_of(state.q), state.v, state.a)
        u, w, a = nodal
        forces, t, start = self.forces, state.t, None
        if self._solver is not None and self._solver.conserves:  # forces at the middle of the step
            (start, w0, _), after = self.nodal_of(self._solver.start), u
            u, w = 0.5 * (start + u), 0.5 * (w0 + w)
            t -= 0.5 * self._solver.dt
        self.embedding.check_vector("gravity", state.gravity)
        forces.set_state(u, w)
        elastic = forces.elastic_rows() if start is None else forces.elastic_between(start, after)
        rows, damping = [forces.inertia(a), elastic], forces.damping(w)
        if damping is not None:
            rows.append(damping)
        columns = forces.nodes.gathered_block(np.hstack(rows))
        terms = [columns[:, 3 * k : 3 * k + 3] for k in range(len(rows))]
        terms.append(-forces.lumped[:, None] * state.gravity)
        if forces.loads:
            terms.append(-forces.loads.forces(t))
        return [self.embedding.flat(term) for term in terms]

    def _round_off(self, q: Array) -> float:
        """Return the round-off of positions, m."""
        u, _, _ = self.nodal_of(q)
        return _ROUND_OFF * float(np.abs(u).max() + self._size)

    def _follow_centre(
        self, state: BodyState, terms: list[Array], out: Array, scale: Array
    ) -> None:
        """Let the frame of a body without interfaces follow its centre of mass and not rotate."""
        inertia, *others = terms
        # M ü; at an instant, where the accelerations of the nodes are unknown, all other forces
        resultant = inertia if self._solver is not None else -np.sum(others, axis=0)
        mass = self.typical_mass * np.array([1.0] * 3 + [self._size**2] * 3)
        out[:] = mass * state.a
        out[:3] -= resultant.sum(axis=0)
        scale += np.abs(mass * state.a)
        for term in terms:
            scale[:3] += np.linalg.norm(term, axis=1).sum()

    def tangent(self, state: BodyState) -> tuple[Array, Array, Array]:
        """Return the matrices of the frames with condensed free nodes, (nv, nv) each.

        In a step, the first matrix contains all derivatives of the step, and the others are zero.
        At an instant, only the mass matrix is meaningful.
        """
        zero: Array = np.zeros((self.num_velocities,) * 2)
        if not self._interfaces:
            mass = np.diag(self.typical_mass * np.array([1.0] * 3 + [self._size**2] * 3))
            return zero, zero, mass
        u, _, _ = self.nodal_of(state.q)
        at = self.motion_at(self.frames_of(state.q), u)
        springs = np.kron(np.eye(len(self._interfaces)), self._normal_spring())
        if self._solver is None:
            return zero, zero, self._flat_frames(self._inertia.mass(at)) + springs
        matrix = self._flat_frames(self._solver.condensed()) + springs
        flat = self.embedding.frame_motions[3:, 3:]
        for k, (R, wrench) in enumerate(zip(at.rotations, state.wrenches, strict=False)):
            part = slice(6 * k + 3, 6 * k + 6)
            by_rotation = -skew(R.T @ wrench[3:])  # for a moment that is constant in global axes
            if k < len(self._rigid):
                i = self._rigid[k]
                by_rotation += i.lever_stiffness(R, self._solver.forces[i.nodes])
            matrix[part, part] += flat @ by_rotation @ flat
        return matrix, zero, zero

    def _flat_frames(self, matrix: Array) -> Array:
        """Return a matrix (6 frames, 6 frames) of the frames without motions out of the plane."""
        P = np.kron(np.eye(len(self._interfaces)), self.embedding.frame_motions)
        return np.asarray(P @ matrix @ P) if self.embedding.is_plane else matrix

    def check_tangent(self) -> None:
        """Raise an error outside of a time step, where the stiffness is not available."""
        if self._solver is None:
            raise InputError(
                f"this analysis does not support mesh body {self.name!r}: use simulate or "
                "Simulator, linearize for natural frequencies, or reduce the body and use "
                "FlexibleBody",
                argument="system",
                value=self.name,
            )

    def settle(self, state: BodyState, q: Array) -> None:
        """Set the accelerations of the nodes in q so that their forces are in equilibrium."""
        terms = self._nodal_forces(state)
        free = np.sum(terms, axis=0)
        u, _, accelerations = nodal = self.nodal_of(q)
        at = self.motion_at(self.frames_of(q), u)
        accelerations -= self._inertia.settled(at, free, self._gap_rates(at, state))
        self.hold(nodal, self.frames_of(q), state.v, state.a)

    def energies(self, q: Array, v: Array, gravity: Array) -> Array:
        """Return kinetic, elastic and gravitational energy, shape (3,), J (collective)."""
        u, w, _ = self.nodal_of(q)
        self.forces.set_state(u, w)
        kinetic = 0.5 * float(np.vdot(w, self.forces.apply_mass(w)))
        first_moment = self.forces.lumped @ (self.nodes + u)
        return np.array([kinetic, self.forces.energy(), -float(gravity @ first_moment)])

    def momenta(self, q: Array, v: Array) -> Array:
        """Return linear and angular momentum about the global origin, (6,) (collective)."""
        u, w, _ = self.nodal_of(q)
        momentum = self.forces.apply_mass(w)
        moment = np.cross(self.nodes + u, momentum).sum(axis=0)
        return np.concatenate([momentum.sum(axis=0), moment])
