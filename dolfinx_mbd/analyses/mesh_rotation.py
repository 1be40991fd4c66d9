"""Steady rotation of mechanisms with mesh bodies about an axis through the origin.

In a steady rotation Ω, every frame at p with the rotation R has the velocities (Ω × p, RᵀΩ) and the
accelerations (Ω × (Ω × p), 0); the nodes of mesh bodies move likewise. For increments y
that are constant in the rotating axes,

    δv = 𝒲 y,   δa = 𝒟 y,   𝒲 = diag(Ω̃, ω̃, 0),   𝒟 = diag(Ω̃², 0, 0),   ω = RᵀΩ,

and for increments that move in these axes δv = ẏ + 𝒲 y, δa = ÿ + diag(2 Ω̃, ω̃, 0) ẏ + 𝒟 y.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg

from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.dynamics.stepping.internal_unknowns import InternalUnknowns
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.rotations import (
    exp_quaternion,
    multiply_quaternions,
    rotation_matrix,
    skew,
)
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import State, System

__all__ = [
    "check_can_rotate",
    "check_rotation",
    "frame_slices",
    "phase",
    "rates_of_rotation",
    "set_rotation",
    "spin_of",
    "steady_stiffness",
]

_ANGLE = 0.3  # rotation after which the forces are compared, rad
_STEADY = 1e-6  # largest unbalanced force after this rotation, relative to the acting forces
_MOVING = 1e-9  # largest deviation from a steady rotation, relative to its velocities
_RANK = 1e-10  # singular values of constraints below this fraction of the largest are zero
_FREE = 1e-9  # largest motion of a constraint in a rotation that it permits, relative to its size


def check_can_rotate(system: System, spin: Array) -> None:
    """Raise an InputError if a body has no steady rotation."""
    body: Any
    for body in system.bodies:
        on_mesh = hasattr(body, "step_solver")
        problem = ""
        if not body.num_velocities:
            continue
        if on_mesh and not body.frame_names:
            problem = "has no interface; give it one, for example an averaged interface"
        elif on_mesh and body.mass_damping:
            problem = "has a mass_damping that resists the rotation; use its viscosity"
        elif not (on_mesh or isinstance(body, FloatingBody)):
            problem = "is not a rigid, flexible or mesh body"
        if problem:
            raise InputError(
                f"no steady rotation of body {body.name!r}, because it {problem}",
                argument="spin",
                value=spin,
            )


def spin_of(system: System, state: State, positions: Array, velocities: Array) -> Array:
    """Return the angular velocity (3,) of a state that is at rest or rotates as a whole.

    Args:
        system: The mechanism.
        state: The state.
        positions: Positions of the nodes of all meshes, shape (nodes, 3), m.
        velocities: Their velocities, shape (nodes, 3), m/s.

    Raises:
        InputError: The state moves otherwise, or a body has no steady rotation.
    """
    # The rotation whose velocities are nearest to those of the nodes, as if all masses were equal
    second_moments = positions.T @ positions
    inertia = np.trace(second_moments) * np.eye(3) - second_moments
    momentum = np.cross(positions, velocities).sum(axis=0)
    spin = np.asarray(np.linalg.lstsq(inertia, momentum, rcond=1e-12)[0], dtype=float)
    eqs = Assembler(system)
    eqs.q[:] = state.q
    set_rotation(eqs, spin)
    size = max(1.0, system.size, float(np.abs(positions).max()))
    differences = velocities - np.cross(spin, positions)
    error = max(np.abs(differences).max(), np.abs(state.v - eqs.v).max(initial=0.0))
    if error > _MOVING * size * np.abs(spin).max():
        raise InputError(
            "modes of mesh bodies need a state at rest or in a steady rotation of the "
            "whole mechanism, from mbd.equilibrium; this state moves otherwise",
            argument="state",
            value=state,
        )
    if spin.any():
        check_can_rotate(system, spin)
    return spin


def frame_slices(system: System) -> Iterator[tuple[slice, slice]]:
    """Yield the slices of the 7 coordinates and the 6 velocities of each frame."""
    body: Any
    for body, q, v in zip(system.bodies, system.q_slices, system.v_slices, strict=True):
        on_mesh = hasattr(body, "step_solver")
        count = body.num_frames if on_mesh else int(isinstance(body, FloatingBody))
        for k in range(count):
            first, start = q.start + 7 * k, v.start + 6 * k
            yield slice(first, first + 7), slice(start, start + 6)


def set_rotation(eqs: Assembler, spin: Array) -> None:
    """Set the velocities and accelerations of all frames in a steady rotation."""
    eqs.v[:], eqs.a[:] = 0.0, 0.0
    for q, v in frame_slices(eqs.system):
        position, R = eqs.q[q][:3], rotation_matrix(eqs.q[q][3:])
        speed = np.cross(spin, position)
        eqs.v[v] = np.concatenate([speed, R.T @ spin])
        eqs.a[v][:3] = np.cross(spin, speed)


def rates_of_rotation(eqs: Assembler, spin: Array) -> tuple[Array, Array, Array]:
    """Return 𝒲, diag(2 Ω̃, ω̃, 0) and 𝒟, shape (nv, nv) each."""
    n, W = eqs.system.num_velocities, skew(spin)
    velocity, rate, acceleration = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    for q, v in frame_slices(eqs.system):
        translation, rotation = slice(v.start, v.start + 3), slice(v.start + 3, v.stop)
        velocity[translation, translation] = W
        rate[translation, translation], acceleration[translation, translation] = 2 * W, W @ W
        local = skew(rotation_matrix(eqs.q[q][3:]).T @ spin)  # ω̃ in the axes of the frame
        velocity[rotation, rotation] = rate[rotation, rotation] = local
    return velocity, rate, acceleration


def steady_stiffness(
    eqs: Assembler, tangent: tuple[Array, Array, Array, Array], spin: Array
) -> Array:
    """Return K + C 𝒲 + M 𝒟, the derivative of the forces along steady rotations, (nv, nv)."""
    K, C, M, _ = tangent
    if not spin.any():
        return K
    velocity, _, acceleration = rates_of_rotation(eqs, spin)
    return np.asarray(K + C @ velocity + M @ acceleration)


def phase(eqs: Assembler, B: Array, spin: Array) -> Array:
    """Return the rotation of the whole mechanism about the axis, (1, nv), or no row, (0, nv).

    The forces of a steady rotation do not depend on it. There is no row at rest, or if the
    constraints do not permit it at a constant time, for example because of a driver.
    """
    z = np.zeros(eqs.system.num_velocities)
    if not spin.any():
        return z[None][:0]
    axis = spin / np.linalg.norm(spin)
    for q, v in frame_slices(eqs.system):
        z[v] = np.r_[np.cross(axis, eqs.q[q][:3]), rotation_matrix(eqs.q[q][3:]).T @ axis]
    is_free = np.abs(B @ z).max(initial=0.0) <= _FREE * (np.abs(B) @ np.abs(z)).max(initial=0.0)
    return z[None] if is_free else z[None][:0]


def check_rotation(eqs: Assembler, t: float, nodes: InternalUnknowns, spin: Array) -> None:
    """Raise an error if forces do not balance after a part of the rotation.

    Call it within a block `with nodes.statics(...)`. The state of the assembler does not change.
    """
    speed = float(np.linalg.norm(spin))
    if not speed:
        return
    before, step = eqs.state(t), _ANGLE / speed
    rotation_vector = np.asarray(_ANGLE * spin / speed, dtype=float)
    unknowns = nodes.static_unknowns()
    quaternion = exp_quaternion(rotation_vector)
    R = rotation_matrix(quaternion)
    for q, _ in frame_slices(eqs.system):
        eqs.q[q] = np.r_[R @ eqs.q[q][:3], multiply_quaternions(quaternion, eqs.q[q][3:])]
    nodes.rotate(R)
    set_rotation(eqs, spin)
    nodes.put(eqs)
    eqs.lam[:] = 0.0
    nodes.factorize(eqs)
    eqs.residual(t + step)
    B = eqs.tangent(t + step).B
    if len(eqs.lam):
        eqs.lam[:] = scipy.linalg.lstsq(B.T, -eqs.rows, cond=_RANK)[0]
        eqs.residual(t + step)
        eqs.scale += np.abs(B).T @ np.abs(eqs.lam)
    row, ratio = unbalanced(eqs, t + step)
    rest = f"{eqs.system.row_name(row)} is left with {abs(eqs.rows[row]):.3g} (N or N m) unbalanced"
    if not (node_ratio := _STEADY * nodes.error(_STEADY)) <= max(ratio, _STEADY):
        ratio = node_ratio
        rest = f"the nodes of a body are left with {ratio:.3g} of their forces unbalanced"
    eqs.put(before)
    nodes.return_to(unknowns)
    nodes.put(eqs)
    if not ratio <= _STEADY:
        raise EquilibriumError(
            f"no steady rotation at t = {t:g} s: the forces change while the mechanism rotates; "
            f"after {_ANGLE:g} rad, {rest}. Gravity "
            "across the axis, loads of constant direction or time-dependent loads have this effect"
        )
