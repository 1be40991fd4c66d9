"""Inputs and outputs of the small motions of mechanisms with mesh bodies.

In a basis V of motions y = V z of all nodes, frames and other bodies, with inputs u,

    M z̈ + C ż + K z = Vᵀ F u,
    Bᵀ δλ = Yᵀ g_u − S s − g_s,    g = M V z̈ + C V ż − b M V z − F u,

where −F is the derivative of the residual with respect to u: at frames and, for loads of the
bodies, at all nodes. The second line is the condensed balance of the frames with the increments s,
the shift b and the gradients B of `small_vibrations`, and Y and S of `mesh_solver`: g_u are forces
at free nodes, g_s those at the frames, and δλ the changes of the multipliers. V contains the
static responses to the inputs, so that the truncated modes do not change the response at low
frequencies.

Outputs depend on the motion and on λ. Their derivatives along each column of V are central
differences of sixth order, as in `state_space`. In axes that rotate with Ω, a motion y changes the
velocities by ẏ + 𝒲 y and the accelerations by ÿ + 2 Ω × ẏ + 𝒟 y; see `mesh_rotation`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dolfinx_mbd.analyses.linearization import SteadyError
from dolfinx_mbd.analyses.mesh_rotation import frame_slices, rates_of_rotation
from dolfinx_mbd.analyses.signals import Inputs
from dolfinx_mbd.analyses.state_space import OFFSETS, StateSpace, derivative, input_slopes
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.fem.linalg.blocks import gram
from dolfinx_mbd.kernels.rotations import exp_quaternion, multiply_quaternions, rotation_matrix
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.outputs import Outputs
from dolfinx_mbd.results.solution import Solution
from dolfinx_mbd.structures.mesh_bodies.small_vibrations import SmallVibrations

__all__ = ["ModalMotions", "input_forces", "mesh_state_space"]

_STEP = 1e-3  # displacement or rotation in a difference, relative to the size or in rad
_ANGLE = 0.3  # rotation after which the matrices are compared, rad
_CONSTANT = 1e-6  # largest change by this rotation, relative to the largest coefficient


@dataclass(frozen=True, eq=False)
class ModalMotions:
    """Small motions V z of a mechanism in the n coordinates z of a basis V.

    nu is the number of the inputs u, and nc that of the constraints.

    Attributes:
        nodal: Displacements of each mesh body for unit vectors of z, (nodes, 3, n) each.
        increments: Increments s of the frames and other bodies for the same vectors, (nv, n).
        accelerations: z̈ for unit vectors of (z, ż, u), (n, 2n + nu).
        multipliers: Changes δλ of the multipliers for unit vectors of (z, ż, u), (nc, 2n + nu).
    """

    nodal: list[Array]
    increments: Array
    accelerations: Array
    multipliers: Array

    @classmethod
    def of(
        cls,
        small: SmallVibrations,
        products: tuple[Array, Array, Array],
        matrices: Any,
        load: Array,
    ) -> ModalMotions:
        """Return the motions in a basis V; `small` must condense the free nodes.

        Args:
            small: Operators.
            products: V, M V and C V.
            matrices: M, C and K in the basis.
            load: Forces for unit inputs, a block with nu columns.
        """
        V, MV, CV = products
        m, c, k = matrices
        nodal, s = small.unpacked(V)
        count = len(m)
        z, dz, u = np.split(np.eye(2 * count + load.shape[1]), [count, 2 * count])
        ddz = np.linalg.solve(m, gram(small.comm, V, load) @ u - c @ dz - k @ z)
        inertia = MV @ ddz + CV @ dz - small.shift * (MV @ z) - load @ u
        return cls(nodal, s, ddz, small.reactions(inertia, s @ z))


def input_forces(
    eqs: Assembler, state: State, inputs: Inputs, outputs: Outputs
) -> tuple[list[Array], Array, Array]:
    """Return the derivatives of forces and outputs with respect to inputs (collective).

    Args:
        eqs: Equations of `inputs.system`.
        state: State.
        inputs: Inputs.
        outputs: Outputs.

    Returns:
        Forces at the nodes of each mesh body, (nodes, 3, nu) each; forces at frames and other
        bodies, (nv, nu); outputs, (ny, nu).
    """
    force, feedthrough = input_slopes(eqs, state, inputs, outputs)
    values: Array = np.array(inputs.values)
    nodal = []
    for body, q in _mesh_bodies(eqs.system):
        loads, columns = body.forces.loads, np.zeros((*body.nodes.shape, len(values)))
        body.forces.set_state(*body.nodal_of(state.q[q])[:2])
        base = loads.forces(state.time)
        for k, value in enumerate(values):  # the forces are linear in the values of loads
            step = abs(value) or 1.0
            inputs.put([*map(float, values + step * np.eye(len(values))[k])])
            columns[:, :, k] = body.embedding.flat(loads.forces(state.time) - base) / step
        inputs.put([*map(float, values)])
        force[:, columns.any(axis=(0, 1))] = 0.0  # these loads act at the nodes alone
        nodal.append(columns)
    return nodal, force, feedthrough


def mesh_state_space(
    system: System,
    state: State,
    spin: Array,
    motions: ModalMotions,
    inputs: Inputs,
    outputs: Outputs,
) -> StateSpace:
    """Return the matrices A, B, C and D of the states (z, ż), inputs and outputs (collective).

    Args:
        system: The mechanism, `inputs.system`.
        state: Balanced state of `SmallVibrations`.
        spin: Angular velocity of a steady rotation, shape (3,), rad/s.
        motions: Small motions in the coordinates z of the basis.
        inputs: Inputs.
        outputs: Outputs.

    Raises:
        SteadyError: Forces per input, or derivatives of outputs, change while the mechanism
            rotates.
    """
    count = len(motions.accelerations)
    first = _slopes(system, state, spin, motions, inputs, outputs)
    if spin.any() and (inputs.names or outputs.names):
        rotated = _rotated(system, state, motions, spin)
        second = _slopes(system, *rotated, inputs, outputs)
        for name, before, after in zip("BC", first, second, strict=True):
            size = np.abs(before).max(initial=0.0)
            if np.abs(before - after).max(initial=0.0) > _CONSTANT * size:
                raise SteadyError(
                    f"matrix {name} of inputs and outputs changes along the motion; choose inputs "
                    "and outputs in axes that rotate with the mechanism"
                )
    _, C = first
    X = np.concatenate([np.eye(count, 2 * count + len(inputs.names), count), motions.accelerations])
    states = 2 * count
    return X[:, :states], X[:, states:], C[:, :states], C[:, states:]


def _slopes(
    system: System, state: State, spin: Array, motions: ModalMotions, inputs: Inputs, outputs: Any
) -> tuple[Array, Array]:
    """Return the forces VᵀF on the coordinates z for unit inputs, and the derivatives of outputs.

    F are the forces of `input_forces`. The shapes are (n, nu) and (ny, 2n + nu); the columns of the
    derivatives belong to z, ż and u.
    """
    eqs = Assembler(system)
    eqs.put(state)
    nodal, force, feedthrough = input_forces(eqs, state, inputs, outputs)
    s, count = motions.increments, motions.increments.shape[1]
    forces = s.T @ force
    for motion, columns in zip(motions.nodal, nodal, strict=True):
        forces = forces + np.einsum("nik,nij->kj", motion, columns)
    z, dz, u = np.split(np.eye(2 * count + len(inputs.names)), [count, 2 * count])
    slopes = _output_slopes(eqs, state, spin, motions, outputs)
    values = z, dz, motions.accelerations, motions.multipliers
    products = (slope @ value for slope, value in zip(slopes, values, strict=True))
    C = sum(products, feedthrough @ u)
    return forces, C


def _output_slopes(
    eqs: Assembler, state: State, spin: Array, motions: ModalMotions, outputs: Outputs
) -> list[Array]:
    """Return the derivatives of the outputs with respect to z, ż, z̈ and λ, (ny, n) each."""
    s, count = motions.increments, motions.increments.shape[1]
    if not outputs.names:
        return [np.zeros((0, n)) for n in (count, count, count, len(state.lam))]
    eqs.put(state)
    by_position, by_rate, acceleration_by_position = rates_of_rotation(eqs, spin)
    zero = np.zeros(len(s))
    slopes: list[list[Array]] = [[], [], [], []]
    for k in range(count):
        d, Y = s[:, k], [part[:, :, k] for part in motions.nodal]
        zeros = [0.0 * part for part in Y]
        spin_Y = [np.asarray(np.cross(spin, part), dtype=float) for part in Y]
        centripetal = [np.asarray(np.cross(spin, part), dtype=float) for part in spin_Y]
        size = max(float(np.abs(part).max(initial=0.0)) for part in (d, *Y))
        small, unit = _STEP * min(1.0, eqs.system.size) / size, eqs.system.size / size
        # Steps, and changes of displacements, velocities and accelerations with z, ż and z̈
        moves: list[tuple[float, tuple[Array, Array, Array], list[list[Array]]]] = [
            (small, (d, by_position @ d, acceleration_by_position @ d), [Y, spin_Y, centripetal]),
            (small, (zero, d, by_rate @ d), [zeros, Y, [2 * part for part in spin_Y]]),
            (unit, (zero, zero, d), [zeros, zeros, Y]),
        ]
        for column, (h, change, nodal) in zip(slopes, moves, strict=False):
            column.append(_slope(outputs, eqs, state, h, _mover(eqs, state, change, nodal)))
    largest = max(1.0, float(np.abs(state.lam).max(initial=0.0)))
    for unit_vector in np.eye(len(state.lam)):
        slopes[3].append(
            _slope(
                outputs, eqs, state, largest,
                lambda h, e=unit_vector: replace(state, lam=state.lam + h * e),  # type: ignore[misc]
            )
        )  # fmt: skip
    empty = np.zeros((len(outputs.names), 0))
    return [np.array(column).T if column else empty for column in slopes]


def _slope(
    outputs: Outputs, eqs: Assembler, state: State, step: float, moved: Callable[[float], State]
) -> Array:
    """Return the derivative of the outputs (ny,) with respect to a parameter of the state."""
    states = [state, *(moved(offset * step) for offset in OFFSETS)]
    values = outputs.of(Solution(eqs.system, states))[1:]
    return np.asarray(derivative(values) / step, dtype=float)


def _mover(
    eqs: Assembler, state: State, change: tuple[Array, Array, Array], nodal: list[list[Array]]
) -> Callable[[float], State]:
    """Return the function that moves a state along changes of q, v, a and of the nodes."""

    def moved(h: float) -> State:
        """Return the state after a move by h times the changes."""
        eqs.put(state)
        eqs.move(state.q, h * change[0])
        eqs.update_poses(state.time)
        result = eqs.state(state.time)
        for k, (body, q) in enumerate(_mesh_bodies(eqs.system)):
            values = body.nodal_of(result.q[q])
            for row, parts in zip(values, nodal, strict=True):
                row += h * parts[k]
        return replace(result, v=state.v + h * change[1], a=state.a + h * change[2])

    return moved


def _mesh_bodies(system: System) -> list[tuple[Any, slice]]:
    """Return the mesh bodies with the slices of their coordinates."""
    pairs = zip(system.bodies, system.q_slices, strict=True)
    return [(body, q) for body, q in pairs if hasattr(body, "step_solver")]


def _rotated(
    system: System, state: State, motions: ModalMotions, spin: Array
) -> tuple[State, Array, ModalMotions]:
    """Return state, spin and motions after a rotation by `_ANGLE` about the axis of the spin."""
    speed = float(np.linalg.norm(spin))
    quaternion = exp_quaternion(np.asarray(_ANGLE * spin / speed, dtype=float))
    R = rotation_matrix(quaternion)
    q, v, a, s = state.q.copy(), state.v.copy(), state.a.copy(), motions.increments.copy()
    for frame, part in frame_slices(system):
        q[frame] = np.r_[R @ q[frame][:3], multiply_quaternions(quaternion, q[frame][3:])]
        for rows in (v, a, s):
            rows[part.start : part.start + 3] = R @ rows[part.start : part.start + 3]
    for body, coordinates in _mesh_bodies(system):
        u, w, accelerations = body.nodal_of(q[coordinates])  # views of q
        u[:] = (body.nodes + u) @ R.T - body.nodes
        w[:], accelerations[:] = w @ R.T, accelerations @ R.T
    nodes = [np.einsum("ij,njk->nik", R, part) for part in motions.nodal]
    later = replace(state, time=state.time + _ANGLE / speed, q=q, v=v, a=a)
    return later, spin, replace(motions, nodal=nodes, increments=s)
