"""Coefficients of small motions about a steady motion, in axes that may rotate with it.

The equations of motion are r(q, v, a) + Bᵀλ = 0. An increment δ of q moves a floating frame by δR
in global components and rotates it by δφ in body components. A is the rotation matrix of the body.
Let y be the increments in axes Q that rotate with a constant angular velocity W:

    δ = P y,   P = diag(Q, AᵀQ, I),   δv = P (ẏ + 𝒲 y),   δa = P (ÿ + (𝒲 + 𝒟) ẏ + 𝒟𝒲 y),

    𝒲 = diag(W̃, W̃, 0),   𝒟 = diag(W̃, W̃ − ω̃, 0)        (all resolved in Q),

because ω, the angular velocity of the body, changes by δω = δφ̇ + ω×δφ. If a round flexible body
rotates about its axis relative to the axes, with the speed ν and the angle θ, its elastic
coordinates rotate too: δη = E y with E = exp(−θG) and the generator G of
`dolfinx_mbd.body.axisymmetry`. Then E replaces I in P, and −νG replaces 0 in 𝒲 and 𝒟; a static
deflection in the axes has the rates η̇ = −νGη.

K, C and M are the derivatives of r + Bᵀλ with respect to q, v and a for constant λ; K therefore
includes the second derivatives of the constraints times the reactions. The small motions satisfy
M_y ÿ + C_y ẏ + K_y y + (BP)ᵀ δλ = 0 with

    M_y = PᵀMP,   C_y = PᵀCP + M_y (𝒲 + 𝒟),   K_y = PᵀKP + PᵀCP 𝒲 + M_y 𝒟𝒲.

The free motions are y = N z with B P N = 0; this choice eliminates the multipliers (Maggi). In a
steady motion M_y, C_y, K_y and N do not depend on time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dolfinx_mbd.body.axisymmetry import rotation_generator
from dolfinx_mbd.body.response.linearized import RANK_TOLERANCE, null_space
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.columns import ELASTIC, ETA, OMEGA, ORIGIN, QUATERNION
from dolfinx_mbd.kernels.rotations import (
    exp_rotation,
    rotation_between,
    rotation_matrix,
    rotation_vector,
    skew,
    tangent,
)
from dolfinx_mbd.mechanism.bodies import FlexibleBody
from dolfinx_mbd.mechanism.floating_body import FloatingBody
from dolfinx_mbd.mechanism.system import System

Array = NDArray[np.float64]

_ROUND = 1e-6  # largest deviation of a rotating flexible body from a body of revolution
_RELATIVE = 1e-12  # smallest speed relative to the axes, relative to the speed of the body


def _frames(system: System, q: Array) -> Iterator[tuple[int, slice, slice, Array]]:
    """Yield index, displacement slice, rotation slice and rotation matrix of each body frame."""
    for k, body in enumerate(system.bodies):
        if isinstance(body, FloatingBody):
            start = system.v_slices[k].start
            A = rotation_matrix(q[system.q_slices[k]][QUATERNION])
            yield k, slice(start, start + 3), slice(start + 3, start + 6), A


class ModeRotation(NamedTuple):
    """Rotation of the elastic coordinates of a round body relative to the axes; see the module.

    Attributes:
        transform: E = exp(−θG), (n, n), from increments in the axes to elastic coordinates.
        rate: νG, (n, n), rad/s: the speed relative to the axes times the generator of a rotation.
    """

    transform: Array
    rate: Array


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes in which the increments of each body are resolved.

    `turn` (bodies, 3, 3) is the rotation matrix Q from these axes to global axes. `spin` (bodies,
    3) is their angular velocity W in global components, rad/s. For round flexible bodies that
    rotate relative to the axes, `mode_rotations` has their `ModeRotation` by index of the body.
    `rotors` (bodies, 3) is the angular velocity of each body relative to the axes, in body
    components; None for the axes of the body frames, relative to which no body rotates.
    """

    turn: Array
    spin: Array
    rotors: Array | None = None
    mode_rotations: dict[int, ModeRotation] = field(default_factory=dict)

    @classmethod
    def of_bodies(cls, system: System, q: Array, v: Array) -> Axes:
        """Return the axes of the body frames."""
        axes = cls.common(system, np.zeros(3))
        for k, _, rotation, A in _frames(system, q):
            axes.turn[k], axes.spin[k] = A, A @ v[rotation]
        return axes

    @classmethod
    def common(cls, system: System, spin: Array) -> Axes:
        """Return common axes that rotate with `spin` and now coincide with the global axes."""
        count = len(system.bodies)
        return cls(np.tile(np.eye(3), (count, 1, 1)), np.tile(np.asarray(spin, float), (count, 1)))

    def with_rotors(self, system: System, q: Array, v: Array) -> Axes:
        """Return the axes with the rotations of the bodies that rotate relative to them.

        Args:
            system: The mechanism.
            q: Coordinates, shape (nq,).
            v: Velocities, shape (nv,).

        Raises:
            InputError: A flexible body that rotates is not round about its axis of rotation.
        """
        mode_rotations, rotors = {}, np.zeros((len(system.bodies), 3))
        for k, _, rotation, A in _frames(system, q):
            body, omega = system.bodies[k], v[rotation]
            relative = omega - A.T @ self.spin[k]
            speed = float(np.linalg.norm(relative))  # rad/s
            if speed <= _RELATIVE * np.linalg.norm(omega):
                continue
            rotors[k] = relative
            if isinstance(body, FlexibleBody) and body.num_elastic:
                generator = rotation_generator(body.reduced, relative / speed, _ROUND)
                mode_rotations[k] = ModeRotation(np.eye(body.num_elastic), speed * generator)
        return replace(self, mode_rotations=mode_rotations, rotors=rotors)


@dataclass(frozen=True, eq=False)
class SmallMotions:
    """Matrices M_y, C_y, K_y, P, 𝒲, 𝒟 (nv, nv) and BP (nc, nv) of the module at one state.

    `damping` is C_y with its gyroscopic part, `to_increments` is P (δ = P y), `carry` is 𝒲 and
    `twist` is 𝒟. `states` are the indices of the states of loads.
    """

    mass: Array
    damping: Array
    stiffness: Array
    constraints: Array
    to_increments: Array
    carry: Array
    twist: Array
    states: NDArray[np.int64]

    @property
    def statics(self) -> Array:
        """Derivatives of the forces at rest with respect to y, and to the states of loads (nv, nv).

        States of loads are velocities, so that their columns are those of C_y. In K_y, the columns
        of their integrals are zero.
        """
        statics = self.stiffness.copy()
        statics[:, self.states] = self.damping[:, self.states]
        return statics

    def reduced(self, basis: Array) -> tuple[Array, Array, Array]:
        """Return NᵀM_yN, NᵀC_yN and NᵀK_yN for a basis N (nv, m)."""
        M, C, K = (basis.T @ X @ basis for X in (self.mass, self.damping, self.stiffness))
        return 0.5 * (M + M.T), C, K

    def round_off(self, basis: Array) -> tuple[float, float, float]:
        """Return bounds of the round-off in the matrices of `reduced`.

        Their terms cancel if the origin of a body's frame is far from the body.
        """
        N, eps = np.abs(basis), float(np.finfo(float).eps)
        mass, rate, stiffness = (
            eps * float((N.T @ np.abs(X) @ N).max(initial=0.0))
            for X in (self.mass, self.damping, self.stiffness)
        )
        return mass, rate, stiffness


def small_motions(eqs: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Return the coefficients of the equations of small motions about the state of the assembler.

    For small motions y in the axes, the changes of velocities are P (ẏ + `carry` y), and those of
    accelerations P (ÿ + (`carry` + `twist`) ẏ + `twist` `carry` y).
    """
    eqs.residual(t)
    derivatives = eqs.tangent(t)
    n = eqs.system.num_velocities
    P, carry, twist = np.eye(n), np.zeros((n, n)), np.zeros((n, n))
    for k, translations, rotations, A in _frames(eqs.system, eqs.q):
        Q = axes.turn[k]
        w = Q.T @ axes.spin[k]
        P[translations, translations], P[rotations, rotations] = Q, A.T @ Q
        carry[translations, translations] = carry[rotations, rotations] = skew(w)
        twist[translations, translations] = skew(w)
        twist[rotations, rotations] = skew(w - Q.T @ (A @ eqs.v[rotations]))
        if k in axes.mode_rotations:
            elastic = slice(rotations.stop, eqs.system.v_slices[k].stop)
            P[elastic, elastic] = axes.mode_rotations[k].transform
            carry[elastic, elastic] = twist[elastic, elastic] = -axes.mode_rotations[k].rate
    M, C, K = (P.T @ X @ P for X in (derivatives.M, derivatives.C, derivatives.K))
    damping, stiffness = C + M @ (carry + twist), K + C @ carry + M @ (twist @ carry)
    return SmallMotions(
        M, damping, stiffness, derivatives.B @ P, P, carry, twist, eqs.system.states
    )


def balanced_motions(eqs: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Set the multipliers that minimize the residual, and return the linear equations there.

    The residual of each equation is divided by the square root of its mass.
    """
    eqs.lam[:] = 0.0
    motions = small_motions(eqs, t, axes)
    if not len(eqs.lam):
        return motions
    weights = 1 / np.sqrt(np.maximum(np.diag(motions.mass), 1e-300))
    right = -weights * (motions.to_increments.T @ eqs.rows)
    matrix = weights[:, None] * motions.constraints.T
    eqs.lam[:] = np.linalg.lstsq(matrix, right, rcond=RANK_TOLERANCE)[0]
    return small_motions(eqs, t, axes)


def free_directions(motions: SmallMotions) -> Array:
    """Return a basis N (nv, m) of the free motions with NᵀMN = I.

    Its last columns are the states of loads.
    """
    num_motions = len(motions.mass) - len(motions.states)
    mass = motions.mass[:num_motions, :num_motions]
    basis = null_space(motions.constraints[:, :num_motions], mass)
    if basis.shape[1]:
        basis = np.linalg.solve(np.linalg.cholesky(basis.T @ mass @ basis), basis.T).T
    return scipy.linalg.block_diag(basis, np.diag(np.diag(motions.mass)[num_motions:] ** -0.5))


def steady_rates(eqs: Assembler, axes: Axes) -> Array:
    """Return the accelerations (nv,) for which the velocities are constant in the axes."""
    rates = np.zeros(eqs.system.num_velocities)
    for k, translations, rotations, A in _frames(eqs.system, eqs.q):
        rates[translations] = np.cross(axes.spin[k], eqs.v[translations])
        rates[rotations] = np.cross(A.T @ axes.spin[k], eqs.v[rotations])
        if k in axes.mode_rotations:
            elastic = slice(rotations.stop, eqs.system.v_slices[k].stop)
            rates[elastic] = -axes.mode_rotations[k].rate @ eqs.v[elastic]
    return rates


def move_steadily(eqs: Assembler, axes: Axes, step: float) -> Axes:
    """Move the assembler along the steady motion by the time `step`, s; return the axes there."""
    s, later = eqs.system, Axes(axes.turn.copy(), axes.spin, axes.rotors)
    mode_turns = {  # factors of the elastic coordinates after the step, exp(−step νG)
        k: scipy.linalg.expm(-step * rate) for k, (_, rate) in axes.mode_rotations.items()
    }
    for k, translations, rotations, A in _frames(s, eqs.q):
        Q, W = axes.turn[k], axes.spin[k]
        rotation = exp_rotation(step * W)
        later.turn[k] = rotation @ Q
        relative_spin = Q.T @ (A @ eqs.v[rotations] - W)  # of the body in the axes, rad/s
        new_A = later.turn[k] @ exp_rotation(step * relative_spin) @ Q.T @ A
        delta = np.zeros(s.bodies[k].num_velocities)
        delta[ORIGIN] = step * (tangent(-step * W) @ eqs.v[translations])
        delta[OMEGA] = rotation_vector(A.T @ new_A)
        omega = new_A.T @ (rotation @ (A @ eqs.v[rotations]))
        q = eqs.q[s.q_slices[k]]
        if k in mode_turns:
            E, rate = axes.mode_rotations[k]
            later.mode_rotations[k] = ModeRotation(mode_turns[k] @ E, rate)
            delta[ELASTIC] = mode_turns[k] @ q[ETA] - q[ETA]
            elastic = slice(rotations.stop, s.v_slices[k].stop)
            eqs.v[elastic] = mode_turns[k] @ eqs.v[elastic]
        s.bodies[k].increment(q.copy(), delta, q)
        eqs.v[translations] = rotation @ eqs.v[translations]
        eqs.v[rotations] = omega
    return later


def set_steady_velocities(eqs: Assembler, axes: Axes) -> None:
    """Set the velocities of bodies that rotate about their axes while the axes rotate."""
    eqs.v[: len(eqs.v) - len(eqs.system.states)] = 0.0
    for k, translations, rotations, A in _frames(eqs.system, eqs.q):
        eqs.v[translations] = np.cross(axes.spin[k], eqs.q[eqs.system.q_slices[k]][ORIGIN])
        eqs.v[rotations] = A.T @ axes.spin[k]
        if axes.rotors is not None:
            eqs.v[rotations] += axes.rotors[k]
    eqs.v[eqs.system.elastic] = elastic_rates(eqs, axes)[eqs.system.elastic]


def elastic_rates(eqs: Assembler, axes: Axes) -> Array:
    """Return the elastic velocities (nv,) of deformations that are constant in the axes."""
    rates = np.zeros(eqs.system.num_velocities)
    for k, (_, rate) in axes.mode_rotations.items():
        elastic = slice(eqs.system.v_slices[k].start + 6, eqs.system.v_slices[k].stop)
        rates[elastic] = -rate @ eqs.q[eqs.system.q_slices[k]][ETA]
    return rates


def increment_between(system: System, q: Array, other: Array) -> Array:
    """Return the increment (nv,) that leads from coordinates q to other coordinates (nq,)."""
    parts = []
    for body, part in zip(system.bodies, system.q_slices, strict=True):
        change = other[part] - q[part]
        if body.num_coordinates > body.num_velocities:
            theta = rotation_between(q[part][QUATERNION], other[part][QUATERNION])
            change = np.concatenate([change[ORIGIN], theta, change[ETA]])
        parts.append(change)
    return np.concatenate(parts)
