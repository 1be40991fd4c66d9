"""Operators of small vibrations of a mechanism with mesh bodies.

The state is at rest in axes that may rotate with a constant Ω. In these axes, the nodes have the
additional forces 2 M Ω × ẏ + M Ω × (Ω × y).

Vectors are blocks of shape (owned rows, k): the free nodes of the owned part of each mesh, and on
the first rank the increments of frames and other bodies. Their constraints are eliminated by a
basis N of the null space of the gradients B; those of averaged interfaces by multipliers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.linalg
from mpi4py import MPI

from dolfinx_mbd.analyses.linearization import SteadyError
from dolfinx_mbd.analyses.mesh_rotation import (
    rates_of_rotation,
    set_rotation,
    spin_of,
    steady_stiffness,
)
from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.structures.mesh_bodies.mesh_solver import FactorState
from dolfinx_mbd.structures.mesh_bodies.step_unknowns import StepUnknowns

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["SmallVibrations"]

_SHIFT = 1e-8  # shift, relative to the largest squared frequency of the mesh
_BALANCE = 1e-6  # largest unbalanced force, or gap of joints, relative to the forces or the size
_RANK = 1e-10  # singular values of B below this fraction of the largest are zero
_SYMMETRY = 1e-9  # antisymmetric part of the stiffness that counts as round-off
_DAMPING = 1e3  # factor of the damping in a sum with K, from which K is then subtracted


class _Part:
    """A mesh body: matrices at the state.

    Args:
        body: The body.
        q: Slice of its coordinates.
        v: Slice of its velocities.
    """

    def __init__(self, body: MeshBody, q: slice, v: slice) -> None:
        self.body, self.q, self.v = body, q, v
        self.unknowns = StepUnknowns(body)
        self.nodes = body.forces.nodes
        self.is_damped = bool(body.viscosity or body.mass_damping)
        self._damping: Any = None

    def start(self, eqs: Assembler, spin: Array) -> None:
        """Condense the free nodes at the coordinates of the assembler and a spin (3,)."""
        self.unknowns.start_at_rest(eqs.q[self.q].copy())
        self.spin = self.unknowns.spin = spin
        self.unknowns.start_condensation()
        self.unknowns.put(eqs.q[self.q], eqs.v[self.v], eqs.a[self.v])
        self.T = self.body.frame_matrices(self.body.frames_of(eqs.q[self.q]))

    def largest_square(self, eqs: Assembler) -> float:
        """Return an estimate of the largest squared angular frequency of the mesh, 1/s²."""
        body = self.body
        body.forces.set_state(*body.nodal_of(eqs.q[self.q])[:2])
        K = body.forces.matrix(0.0, 0.0)
        diagonal = K.getDiagonal()
        stiffness = float(diagonal.max()[1])
        diagonal.destroy()
        K.destroy()
        return stiffness * len(body.nodes) / body.typical_mass

    def factorize(self, eqs: Assembler, shift: float) -> None:
        """Factorize K + b M."""
        body = self.body
        u, _, _ = body.nodal_of(eqs.q[self.q])
        frames, pressures = body.frames_of(eqs.q[self.q]), body.forces.loads.pressures
        state = FactorState(
            u.copy(), np.zeros_like(u), frames.copy(), pressures, self.unknowns.multipliers.copy()
        )
        try:
            self.unknowns.solver.factorize((shift, 0.0, 1.0), state, self.spin)
        except FactorizationError as error:
            raise SolverError(
                f"body {body.name!r} is unstable at this state even with fixed interfaces; its "
                "modes cannot be computed"
            ) from error

    def full(self, free: Array, s: Array) -> Array:
        """Return the motion of all nodes (nodes, 3, k) for free nodes and frame increments."""
        if not self.T.shape[2]:
            return free
        return np.asarray(free + np.einsum("nis,sk->nik", self.T, s[self.v]))

    def split(self, forces: Array) -> tuple[Array, Array]:
        """Return the forces at free nodes (nodes, 3, k) and at the frames (6 frames, k)."""
        at_frames = np.einsum("nis,nik->sk", self.T, forces)
        free = forces.copy()
        free[self.body.held] = 0.0
        return free, at_frames

    def mass(self, motion: Array) -> Array:
        """Return the mass matrix times a motion (nodes, 3, k)."""
        product = self.body.forces.apply_mass(motion.reshape(len(motion), -1))
        return product.reshape(motion.shape)

    def damping(self, motion: Array) -> Array:
        """Return the damping and gyroscopic matrices times a motion (nodes, 3, k)."""
        forces = np.zeros_like(motion)
        if self.spin.any():
            spin_cross = np.cross(self.spin, motion, axisb=1, axisc=1)
            forces = 2 * self.mass(np.asarray(spin_cross, dtype=float))
        if not self.is_damped:
            return forces
        forces_of_body = self.body.forces
        if self._damping is None:
            forces_of_body.set_state(self.unknowns.solver.state.u, np.zeros_like(self.body.nodes))
            # So large that the round-off of K in the difference does not matter
            rate = _DAMPING / (self.body.viscosity or 1.0)
            self._damping = forces_of_body.matrix(0.0, rate)
            K = forces_of_body.matrix(0.0, 0.0)
            self._damping.axpy(-1.0, K)
            self._damping.scale(1 / rate)
            K.destroy()
        owned = self.nodes.owned_rows(motion)
        damping = self.nodes.gathered_block(multiply(self._damping, owned))
        return np.asarray(forces + damping)

    def leave(self) -> None:
        """Free the matrices."""
        self.unknowns.end_condensation()
        self.unknowns.solver.destroy()
        if self._damping is not None:
            self._damping.destroy()


class SmallVibrations:
    """Mass, damping and shifted stiffness of small vibrations at rest or in steady rotation.

    Use it as a context: within, the bodies condense their free nodes.

    Args:
        system: The mechanism.
        state: The state.

    Attributes:
        comm: Communicator of the meshes.
        names: Names of the mesh bodies.
        shift: Shift b of the matrix K + b M, 1/s².
        spin: Angular velocity Ω of the axes, shape (3,), rad/s.
        state: The state in balance, within the context.
        is_damped: Whether there is damping, a spin, or a stiffness that is not symmetric.

    Raises:
        InputError: The mechanism has no mesh body, or does not rotate steadily as a whole.
        SteadyError: The forces are not in balance.
    """

    def __init__(self, system: System, state: State) -> None:
        system.check_no_states("vibration_modes")
        self._system, self._state, self.state = system, state, state
        slices = zip(system.bodies, system.q_slices, system.v_slices, strict=True)
        bodies: Any = [part for part in slices if hasattr(part[0], "step_solver")]
        self._parts = [_Part(*part) for part in bodies]
        if not self._parts:
            raise InputError(
                "the mechanism has no mesh body; use mbd.linearize",
                argument="system",
                value=system,
            )
        self.names = tuple(part.body.name for part in self._parts)
        self.comm: MPI.Comm = self._parts[0].body.forces.comm
        if any(part.body.forces.comm.size != self.comm.size for part in self._parts):
            raise InputError(
                "the meshes of the bodies have different communicators",
                argument="system",
                value=system,
            )
        moves = [(part.body.nodes, *part.body.nodal_of(state.q[part.q])) for part in self._parts]
        positions = np.concatenate([X + u for X, u, *_ in moves])
        self.spin = spin_of(system, state, positions, np.concatenate([w for *_, w, _ in moves]))
        bodies = [part.body for part in self._parts]
        self.num_unknowns = sum(
            body.embedding.dim * (len(body.nodes) - len(body.held)) for body in bodies
        )
        self.shift = 0.0

    def __enter__(self) -> Self:
        eqs, t = Assembler(self._system), self._state.time
        eqs.q[:], eqs.angles[:] = self._state.q, self._state.angles
        eqs.lam[:] = 0.0
        set_rotation(eqs, self.spin)
        try:
            for part in self._parts:
                part.start(eqs, self.spin)
            shift = _SHIFT * max(part.largest_square(eqs) for part in self._parts)
            # Above Ω², so that K + b M remains positive in spite of the softening by the spin
            self.shift = max(shift, 2 * float(self.spin @ self.spin))
            self._set_reactions(eqs, t)
            self._set_matrices(eqs, t)
            self.state = eqs.state(t)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.leave()

    def _set_reactions(self, eqs: Assembler, t: float) -> None:
        """Set the multipliers of joints and averaged interfaces; check the balance."""
        for part in self._parts:
            part.factorize(eqs, self.shift)
        eqs.residual(t)
        if np.abs(eqs.values).max(initial=0.0) > _BALANCE * self._system.size:
            row = int(np.argmax(np.abs(eqs.values)))
            name, gap = self._system.constraint_name(row), abs(eqs.values[row])
            raise SteadyError(f"{name} is off by {gap:.3g}; start from mbd.equilibrium")
        tangent = eqs.tangent(t)
        S = steady_stiffness(eqs, tangent, self.spin) + self.shift * tangent.M
        N = self._free_directions(tangent.B)
        step = -N @ np.linalg.solve(N.T @ S @ N, N.T @ eqs.rows)
        if len(eqs.lam):
            right = -(eqs.rows + S @ step)
            eqs.lam[:] = np.linalg.lstsq(tangent.B.T, right, rcond=_RANK)[0]
        for part in self._parts:
            part.unknowns.correct(step[part.v])
            # The correction determines the multipliers; the displacements remain those of the state
            part.unknowns.static_unknowns = (
                np.zeros_like(part.body.nodes), part.unknowns.multipliers
            )  # fmt: skip
            part.factorize(eqs, self.shift)
        eqs.residual(t)
        eqs.scale += np.abs(tangent.B).T @ np.abs(eqs.lam)
        eqs.scale += max(part.unknowns.round_off() for part in self._parts) / _BALANCE
        row, error = unbalanced(eqs, t)
        name = self._system.row_name(row)
        for part in self._parts:
            node_error = _BALANCE * part.unknowns.error(_BALANCE)
            if not node_error <= max(error, _BALANCE):
                name, error = f"body {part.body.name!r}", node_error
        if not error <= _BALANCE:
            raise SteadyError(
                f"{name} is not in balance at t = {t:g} s: the residual is {error:.3g} of the "
                "forces; start from mbd.equilibrium"
            )

    def _set_matrices(self, eqs: Assembler, t: float) -> None:
        """Set M, C, the constraints, and K + shift M on the motions that they permit."""
        tangent = eqs.tangent(t)
        _, rate, _ = rates_of_rotation(eqs, self.spin)
        self._mass, self._damping = tangent.M, tangent.C + tangent.M @ rate
        self._constraints = tangent.B
        self._condensed = S = steady_stiffness(eqs, tangent, self.spin) + self.shift * tangent.M
        self._N = self._free_directions(tangent.B)
        reduced = self._N.T @ S @ self._N
        self._stiffness = 0.5 * (reduced + reduced.T)
        skew = 0.5 * (reduced - reduced.T)
        if np.abs(skew).max(initial=0.0) <= _SYMMETRY * np.abs(reduced).max(initial=0.0):
            skew = np.zeros_like(skew)
        self._skew = self._N @ skew @ self._N.T
        is_damped = any(part.is_damped for part in self._parts)
        is_damped = is_damped or bool(self._damping.any() or skew.any())
        self.is_damped = is_damped or bool(self.spin.any())
        self.num_unknowns += self._N.shape[1]

    def _free_directions(self, B: Array) -> Array:
        """Return a basis of the increments that satisfy constraints with the gradients B.

        The frame of a body without interfaces is not an unknown.
        """
        fixed = [part.v for part in self._parts if not part.T.shape[2]]
        rows = [B, *(np.eye(B.shape[1])[part] for part in fixed)]
        gradients = np.concatenate(rows)
        if not len(gradients):
            return np.eye(B.shape[1])
        return scipy.linalg.null_space(gradients, rcond=_RANK)

    # ---- blocks of vectors ----------------------------------------------------------------------
    def packed(self, nodal: list[Array], s: Array) -> Array:
        """Return a block from motions (nodes, 3, k) of each body and increments (nv, k)."""
        parts: list[Array] = [
            part.nodes.owned_rows(X) for part, X in zip(self._parts, nodal, strict=True)
        ]
        parts.append(s if self.comm.rank == 0 else s[:0])
        return np.asfortranarray(np.concatenate(parts))

    def _free(self, X: Array) -> tuple[list[Array], Array]:
        """Return free nodes (nodes, 3, k) of each body and increments (nv, k) (collective)."""
        nodal: list[Array] = []
        first = 0
        for part in self._parts:
            last = first + part.body.embedding.dim * len(part.nodes.owned)
            nodal.append(part.nodes.gathered_block(X[first:last]))
            first = last
        return nodal, np.asarray(self.comm.bcast(X[first:] if self.comm.rank == 0 else None))

    def unpacked(self, X: Array) -> tuple[list[Array], Array]:
        """Return the motions of all nodes (nodes, 3, k) of each body and the increments (nv, k)."""
        nodal, s = self._free(X)
        return [p.full(free, s) for p, free in zip(self._parts, nodal, strict=True)], s

    def dominant_bodies(self, nodal: list[Any], s: Any) -> tuple[str, ...]:
        """Return the body with most of the kinetic energy of each motion.

        Args:
            nodal: Complex motions of the nodes of each mesh body, (nodes, 3, k) each.
            s: Complex increments, shape (nv, k).
        """
        energies = np.zeros((len(self._system.bodies), s.shape[1]))
        for n, v in enumerate(self._system.v_slices):
            energies[n] = np.einsum("ik,ij,jk->k", s[v].conj(), self._mass[v, v], s[v]).real
        for part, motion in zip(self._parts, nodal, strict=True):
            parts = np.concatenate([motion.real, motion.imag], axis=2)
            products = np.einsum("nik,nik->k", parts, part.mass(parts))
            energies[self._system.body_index(part.body.name)] = products.reshape(2, -1).sum(axis=0)
        return tuple(self._system.bodies[n].name for n in np.argmax(energies, axis=0))

    def random_block(self, count: int) -> Array:
        """Return random forces, equal for all numbers of ranks."""
        rng = np.random.default_rng(0)
        nodal = [rng.normal(size=(*part.body.nodes.shape, count)) for part in self._parts]
        for part, values in zip(self._parts, nodal, strict=True):
            values[part.body.held] = 0.0
        return self.packed(nodal, rng.normal(size=(len(self._mass), count)))

    # ---- operators ------------------------------------------------------------------------------
    def mass(self, X: Array) -> Array:
        """Return M X."""
        nodal, s = self.unpacked(X)
        products = [p.mass(motion) for p, motion in zip(self._parts, nodal, strict=True)]
        return self._assembled(products, self._mass @ s)

    def damping(self, X: Array) -> Array:
        """Return C X."""
        nodal, s = self.unpacked(X)
        products = [p.damping(motion) for p, motion in zip(self._parts, nodal, strict=True)]
        return self._assembled(products, self._damping @ s)

    def circulatory(self, X: Array) -> Array:
        """Return the antisymmetric part of the stiffness times X."""
        nodal, s = self._free(X)
        return self.packed([np.zeros_like(part) for part in nodal], self._skew @ s)

    def loads(self, nodal: list[Array], forces: Array) -> Array:
        """Return a block of forces (nodes, 3, k) at the nodes of each body, (nv, k) at frames."""
        return self._assembled(nodal, forces)

    def reactions(self, inertia: Array, s: Array) -> Array:
        """Return the multipliers (nc, k) of the constraints of motions.

        Args:
            inertia: M ÿ + C ẏ − b M y − F u with the forces of inputs u, a block.
            s: Increments of frames and other bodies, (nv, k).
        """
        nodal, at_frames = self._free(inertia)
        rest = -self._condensed @ s - at_frames
        for part, values in zip(self._parts, nodal, strict=True):
            if part.T.shape[2]:
                gaps, solver = np.zeros(part.body.constraints.size), part.unknowns.solver
                columns = np.moveaxis(values, 2, 0)
                rest[part.v] += np.array([solver.frame_forces(f, gaps) for f in columns]).T
        multipliers = np.linalg.lstsq(self._constraints.T, rest, rcond=_RANK)[0]
        return np.asarray(multipliers, dtype=float)

    def _assembled(self, products: list[Array], at_frames: Array) -> Array:
        """Return a block from forces at all nodes of each body and at the frames."""
        free, total = [], at_frames.copy()
        for part, product in zip(self._parts, products, strict=True):
            values, forces = part.split(product)
            free.append(values)
            total[part.v.start : part.v.start + len(forces)] += forces
        return self.packed(free, total)

    def solve(self, F: Array) -> Array:
        """Return (K + b M)⁻¹F for motions that satisfy the constraints, K's symmetric part only."""
        nodal, s = self._free(F)
        out = [np.zeros_like(part) for part in nodal]
        steps = np.zeros_like(s)
        for k in range(F.shape[1]):
            forces = s[:, k].copy()
            for part, values in zip(self._parts, nodal, strict=True):
                solver = part.unknowns.solver
                if part.T.shape[2]:
                    gaps = np.zeros(part.body.constraints.size)
                    forces[part.v] -= solver.frame_forces(values[:, :, k], gaps)
            step = self._N @ np.linalg.solve(self._stiffness, self._N.T @ forces)
            steps[:, k] = step
            for part, values, result in zip(self._parts, nodal, out, strict=True):
                solver = part.unknowns.solver
                gaps = np.zeros(part.body.constraints.size)
                result[:, :, k] = solver.solution(values[:, :, k], gaps)[0]
                if part.T.shape[2]:
                    result[:, :, k] -= solver.motion(step[part.v])[0]
        return self.packed(out, steps)
