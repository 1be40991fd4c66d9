"""Kernels of the frames of a body in a floating frame: where joints and forces meet it.

Frame k stands at r = R + A (x_k + d) with the orientation A exp(θ) A_k.  Displacement and rotation
are quadratic in the elastic coordinates, (d, θ) = D η − ½ ηᵀ B η with ``motion`` D (F, 6, n) and
``bend`` B (F, 6, n, n), the geometric stiffness of a unit wrench at the frame (none: shape (0, 6,
n, n)); so that a force at the frame does the work that makes the body stiffer in tension and softer
in compression.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import kernel
from dolfinx_mbd.kernels.rotations import (
    rotation_matrix,
    rotation_rows,
    skew,
    tangent,
    tangent_derivative,
    turning,
)
from dolfinx_mbd.kernels.small_vectors import dot, identity, mm, mm3, mv, mv3, row3

__all__ = [
    "frame_bias",
    "frame_jacobians",
    "frame_motion",
    "frame_poses",
    "frame_velocities",
    "frame_velocity_tangents",
]

Array = NDArray[np.float64]


@kernel
def frame_motion(points: Array, motion: Array, bend: Array, q: Array) -> tuple[Array, Array, Array]:
    """x_k + d (F, 3) and θ (F, 3), body components, and their derivatives to η, (F, 6, n)."""
    eta = q[7:]
    jacobian = motion.copy() if bend.shape[0] > 0 else motion
    lever, theta = points.copy(), np.zeros_like(points)
    for k in range(points.shape[0]):
        half = mv(motion[k], eta)
        if bend.shape[0] > 0:
            for i in range(6):
                row = mv(bend[k, i], eta)
                jacobian[k, i] -= row
                half[i] -= 0.5 * dot(row, eta)
        lever[k] += half[:3]
        theta[k] = half[3:]
    return lever, theta, jacobian


@kernel
def _second_rate(bend: Array, k: int, rate: Array) -> Array:
    """−η̇ᵀ B η̇: the rate of the jacobian times η̇, shape (6,)."""
    out = np.zeros(6)
    if bend.shape[0] > 0:
        for i in range(6):
            out[i] = -dot(mv(bend[k, i], rate), rate)
    return out


@kernel
def frame_poses(
    points: Array,
    axes: Array,
    motion: Array,
    bend: Array,
    q: Array,
    position: Array,
    rotation: Array,
) -> None:
    """Positions (F, 3) and orientations (F, 3, 3) of the frames."""
    A = rotation_rows(q[3], q[4], q[5], q[6])
    lever, theta, _ = frame_motion(points, motion, bend, q)
    for k in range(points.shape[0]):
        arm = mv3(A, row3(lever, k))
        w, x, y, z = turning(row3(theta, k))
        own = row3(axes[k], 0), row3(axes[k], 1), row3(axes[k], 2)
        Q = mm3(mm3(A, rotation_rows(w, x, y, z)), own)
        for i in range(3):
            position[k, i] = q[i] + arm[i]
            for j in range(3):
                rotation[k, i, j] = Q[i][j]


@kernel
def frame_jacobians(points: Array, motion: Array, bend: Array, q: Array) -> Array:
    """(F, 6, 6+n): velocity and angular velocity of the frames, global, per unit of v."""
    A = rotation_matrix(q[3:7])
    lever, theta, jacobian = frame_motion(points, motion, bend, q)
    F, n = points.shape[0], motion.shape[2]
    J = np.zeros((F, 6, 6 + n))
    for k in range(F):
        J[k, :3, :3] = identity(1.0)
        J[k, :3, 3:6] = -mm(A, skew(lever[k]))
        J[k, 3:, 3:6] = A
        if n > 0:
            J[k, :3, 6:] = mm(A, jacobian[k, :3])
            J[k, 3:, 6:] = mm(A, mm(tangent(-theta[k]), jacobian[k, 3:]))
    return J


@kernel
def frame_velocities(
    points: Array, motion: Array, bend: Array, q: Array, v: Array, out: Array
) -> None:
    """Velocities and angular velocities of the frames, global, into ``out`` (F, 6)."""
    A = rotation_matrix(q[3:7])
    lever, theta, jacobian = frame_motion(points, motion, bend, q)
    w = v[3:6]
    for k in range(points.shape[0]):
        rate = mv(jacobian[k], v[6:])
        out[k, :3] = v[:3] + mv(A, mv(skew(w), lever[k]) + rate[:3])
        out[k, 3:] = mv(A, w + mv(tangent(-theta[k]), rate[3:]))


@kernel
def frame_velocity_tangents(points: Array, motion: Array, bend: Array, q: Array, v: Array) -> Array:
    """(F, 6, 6+n): derivative of the frames' velocities to q (increments), v held."""
    A = rotation_matrix(q[3:7])
    lever, theta, jacobian = frame_motion(points, motion, bend, q)
    w = skew(v[3:6])
    F, n = points.shape[0], motion.shape[2]
    D = np.zeros((F, 6, 6 + n))
    for k in range(F):
        rate = mv(jacobian[k], v[6:])
        T = tangent(-theta[k])
        D[k, :3, 3:6] = -mm(A, skew(mv(w, lever[k]) + rate[:3]))
        D[k, 3:, 3:6] = -mm(A, skew(v[3:6] + mv(T, rate[3:])))
        if n > 0:
            turn = -mm(tangent_derivative(-theta[k], rate[3:]), jacobian[k, 3:])
            push = mm(w, jacobian[k, :3])
            if bend.shape[0] > 0:
                change = np.zeros((6, n))
                for i in range(6):
                    change[i] = mv(bend[k, i], v[6:])
                push = push - change[:3]
                turn = turn - mm(T, change[3:])
            D[k, :3, 6:] = mm(A, push)
            D[k, 3:, 6:] = mm(A, turn)
    return D


@kernel
def frame_bias(points: Array, motion: Array, bend: Array, q: Array, v: Array) -> Array:
    """(F, 6): accelerations of the frames at zero rates of v, that is J̇ v; global components."""
    A = rotation_matrix(q[3:7])
    lever, theta, jacobian = frame_motion(points, motion, bend, q)
    w = skew(v[3:6])
    bias = np.zeros((points.shape[0], 6))
    for k in range(points.shape[0]):
        rate, second = mv(jacobian[k], v[6:]), _second_rate(bend, k, v[6:])
        T = tangent(-theta[k])  # T(θ)ᵀ = T(−θ): its rate on a constant vector is −∂T(−θ) θ̇
        inner = mv(w, mv(w, lever[k])) + 2.0 * mv(w, rate[:3]) + second[:3]
        bias[k, :3] = mv(A, inner)
        turn = mv(T, second[3:]) - mv(tangent_derivative(-theta[k], rate[3:]), rate[3:])
        bias[k, 3:] = mv(A, mv(w, mv(T, rate[3:])) + turn)
    return bias
