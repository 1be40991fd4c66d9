"""Coefficients of small motions about a steady motion, in axes that may turn with it.

The rows of a system are r(q, v, a) + Bᵀλ = 0 with increments δ of q, in which a floating frame
moves by δR in global and turns by δφ in body components.  Resolved in axes Q that turn with a
constant angular velocity W, the increments are

    δ = P y,   P = diag(Q, AᵀQ, I),   δv = P (ẏ + 𝒲 y),   δa = P (ÿ + (𝒲 + 𝒟) ẏ + 𝒟𝒲 y),

    𝒲 = diag(W̃, W̃, 0),   𝒟 = diag(W̃, W̃ − ω̃, 0)        (all in components of Q),

since ω, the body's own angular velocity, changes by δω = δφ̇ + ω×δφ.  With the derivatives K, C, M
of the rows (multipliers held, so that K has the second derivatives of the constraints times the
reactions) the small motions obey M_y ÿ + C_y ẏ + K_y y + (BP)ᵀ δλ = 0,

    M_y = PᵀMP,   C_y = PᵀCP + M_y (𝒲 + 𝒟),   K_y = PᵀKP + PᵀCP 𝒲 + M_y 𝒟𝒲.

The motions that the constraints leave are y = N z with B P N = 0, which takes the multipliers out
(Maggi).  In a steady motion M_y, C_y, K_y and N do not depend on time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.linearized import RANK_TOLERANCE
from dolfinx_mbd.kernels.rotations import (
    exp_rotation,
    rotation_matrix,
    rotation_vector,
    skew,
    tangent,
)
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.floating_body import FloatingBody
from dolfinx_mbd.multibody.model.system import SystemData

__all__ = [
    "Axes",
    "SmallMotions",
    "free_directions",
    "move_steadily",
    "multipliers",
    "small_motions",
    "steady_rates",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes in which the increments of each body are resolved.

    Attributes:
        turn: Q of each body, axes → global, shape (bodies, 3, 3).
        spin: W of each body, global components, shape (bodies, 3), rad/s.
    """

    turn: Array
    spin: Array

    @classmethod
    def of_bodies(cls, system: SystemData, q: Array, v: Array) -> Axes:
        """The frames of the bodies themselves."""
        turn = np.tile(np.eye(3), (len(system.bodies), 1, 1))
        spin = np.zeros((len(system.bodies), 3))
        for k, body in enumerate(system.bodies):
            if isinstance(body, FloatingBody):
                turn[k] = rotation_matrix(q[system.q_slices[k]][3:7])
                spin[k] = turn[k] @ v[system.v_slices[k]][3:6]
        return cls(turn, spin)

    @classmethod
    def common(cls, system: SystemData, spin: Array) -> Axes:
        """Axes that turn about the global origin's directions with one angular velocity."""
        count = len(system.bodies)
        return cls(np.tile(np.eye(3), (count, 1, 1)), np.tile(np.asarray(spin, float), (count, 1)))

    def turned(self, step: float) -> Axes:
        """The axes a time later."""
        turn = [exp_rotation(step * W) @ Q for Q, W in zip(self.turn, self.spin, strict=True)]
        return Axes(np.array(turn), self.spin)


@dataclass(frozen=True, eq=False)
class SmallMotions:
    """M_y, C_y, K_y (nv, nv), the constraints BP (nc, nv) and P (nv, nv) at one state."""

    mass: Array
    rate: Array
    stiffness: Array
    constraints: Array
    resolve: Array

    def reduced(self, basis: Array) -> tuple[Array, Array, Array]:
        """NᵀM_yN, NᵀC_yN and NᵀK_yN of a basis N (nv, m)."""
        M, C, K = (basis.T @ X @ basis for X in (self.mass, self.rate, self.stiffness))
        return 0.5 * (M + M.T), C, K


def small_motions(at: Assembler, t: float, axes: Axes) -> SmallMotions:
    """The coefficients at the assembler's point; its rows are evaluated here."""
    s = at.system
    at.residual(t)
    derivatives = at.tangent(t)
    n = s.num_velocities
    P, W, D = np.eye(n), np.zeros((n, n)), np.zeros((n, n))
    for k, body in enumerate(s.bodies):
        if not isinstance(body, FloatingBody):
            continue
        start = s.v_slices[k].start
        move, turn = slice(start, start + 3), slice(start + 3, start + 6)
        A = rotation_matrix(at.q[s.q_slices[k]][3:7])
        Q = axes.turn[k]
        w = Q.T @ axes.spin[k]
        P[move, move], P[turn, turn] = Q, A.T @ Q
        W[move, move] = W[turn, turn] = D[move, move] = skew(w)
        D[turn, turn] = skew(w - Q.T @ (A @ at.v[s.v_slices[k]][3:6]))
    M, C, K = (P.T @ X @ P for X in (derivatives.M, derivatives.C, derivatives.K))
    return SmallMotions(M, C + M @ (W + D), K + C @ W + M @ (D @ W), derivatives.B @ P, P)


def free_directions(motions: SmallMotions) -> Array:
    """A basis N (nv, m) of the motions that the constraints leave, with NᵀMN = I."""
    scale = 1 / np.sqrt(np.maximum(np.diag(motions.mass), 1e-300))
    rows = motions.constraints * scale
    if len(rows):
        size = np.linalg.norm(rows, axis=1, keepdims=True)
        _, values, vectors = np.linalg.svd(rows / np.where(size > 0, size, 1.0))
        rank = int(np.sum(values > RANK_TOLERANCE * values.max(initial=0.0)))
        basis = scale[:, None] * vectors[rank:].T
    else:
        basis = np.diag(scale)
    if not basis.shape[1]:
        return basis
    lower = np.linalg.cholesky(basis.T @ motions.mass @ basis)
    return np.linalg.solve(lower, basis.T).T


def multipliers(at: Assembler, t: float, motions: SmallMotions) -> Array:
    """Multipliers (nc,) that balance the rows best, each row in the measure of its mass."""
    at.lam[:] = 0.0
    at.residual(t)
    B = motions.constraints
    if not len(B):
        return np.zeros(0)
    weight = 1 / np.sqrt(np.maximum(np.diag(motions.mass), 1e-300))
    right = -weight * (motions.resolve.T @ at.rows)
    return np.linalg.lstsq(weight[:, None] * B.T, right, rcond=RANK_TOLERANCE)[0]


def steady_rates(at: Assembler, axes: Axes) -> Array:
    """Accelerations (nv,) at which the velocities stand still in the axes."""
    s = at.system
    rates = np.zeros(s.num_velocities)
    for k, body in enumerate(s.bodies):
        if isinstance(body, FloatingBody):
            start, W = s.v_slices[k].start, axes.spin[k]
            v, A = at.v[s.v_slices[k]], rotation_matrix(at.q[s.q_slices[k]][3:7])
            rates[start : start + 3] = np.cross(W, v[:3])
            rates[start + 3 : start + 6] = np.cross(A.T @ W, v[3:6])
    return rates


def move_steadily(at: Assembler, axes: Axes, step: float) -> Axes:
    """Move the assembler's point along the steady motion for a time; the axes there."""
    s, later = at.system, axes.turned(step)
    for k, body in enumerate(s.bodies):
        if not isinstance(body, FloatingBody):
            continue
        q, v = at.q[s.q_slices[k]], at.v[s.v_slices[k]]
        A, Q, W = rotation_matrix(q[3:7]), axes.turn[k], axes.spin[k]
        relative = Q.T @ (A @ v[3:6] - W)
        after = later.turn[k] @ exp_rotation(step * relative) @ Q.T @ A
        delta = np.zeros(body.num_velocities)
        delta[:3] = step * (tangent(-step * W) @ v[:3])
        delta[3:6] = rotation_vector(A.T @ after)
        turned = exp_rotation(step * W)
        speed = after.T @ (turned @ (A @ v[3:6]))
        body.increment(q.copy(), delta, q)
        v[:3] = turned @ v[:3]
        v[3:6] = speed
    return later
