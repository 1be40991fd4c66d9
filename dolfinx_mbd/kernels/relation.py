"""Relative motion of two frames, and the chain rule of laws that depend on it.

All vectors have components in the axes Q₁ of the first frame. The motion of the second frame
relative to the first is

    d = Q₁ᵀ(p₂ − p₁),   R = Q₁ᵀQ₂,   v = ḋ = Q₁ᵀ(ṗ₂ − ṗ₁) − ω₁×d,   ω = Q₁ᵀ(ω₂ − ω₁).

A law returns the force F and the moment M on the second frame at p₂, followed by the rates g of the
m states x of the load: (F, M, g) = f(d, R, v, ω, x). The first frame carries −F and −M − d×F. With
increments δφ of rotations about the axes of the first frame,

    δd = δp₂ − δp₁ + d×δφ₁,              δR = δθ×R with δθ = δφ₂ − δφ₁,
    δv = v×δφ₁ + ω₁×(δp₁ − δp₂) + δu,    δω = ω×δφ₁ + δω₂ − δω₁,

where δu = δṗ₂ − δṗ₁ + d×δω₁. A law gives the components of a wrench w in the axes of the first
frame. The rotation of these axes changes w by δφ₁×w in addition.

A constraint g(d, R) = 0 is a law too: with δg = g_d·δd + g_θ·δθ, its multiplier λ exerts the force
−λ g_d and the moment −λ g_θ on the second frame. The same chain rule thus gives the gradient of a
constraint and its derivative. A constraint on velocities has the form g_d·v + g_θ·ω = 0.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Vector3,
    cross3,
    mm3,
    mv3,
    put3,
    put33,
    scaled3,
    sum3,
    tmv3,
    transposed3,
    vector3,
)

Motion = tuple[Array, Array, Array, Array]  #: d, R, v and ω


@inner_kernel
def _rows(Q: Array) -> Matrix3:
    """Return the rows of a matrix (3, 3)."""
    return vector3(Q[0], 0), vector3(Q[1], 0), vector3(Q[2], 0)


@kernel
def relative_motion(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Motion:
    """Return d, R, v and ω for the poses and the velocities (6,) of two frames."""
    Q, d, R = _rows(Q1), np.empty(3), np.empty((3, 3))
    v, omega = np.empty(3), np.empty(3)
    w1, w2 = vector3(u1, 3), vector3(u2, 3)
    between = tmv3(Q, sum3(vector3(p2, 0), scaled3(-1.0, vector3(p1, 0))))
    speed = tmv3(Q, sum3(vector3(u2, 0), scaled3(-1.0, vector3(u1, 0))))
    put3(d, 0, between)
    put33(R, 0, 0, mm3(transposed3(Q), _rows(Q2)))
    put3(v, 0, sum3(speed, cross3(between, tmv3(Q, w1))))
    put3(omega, 0, tmv3(Q, sum3(w2, scaled3(-1.0, w1))))
    return d, R, v, omega


@kernel
def pair_wrenches(Q1: Array, d: Array, f: Array) -> Array:
    """Return the wrenches on both frames in global components, then the rates, shape (12 + m,).

    `f` (6 + m,) is the result of a law.
    """
    Q, out = _rows(Q1), np.empty(6 + f.shape[0])
    force, moment = mv3(Q, vector3(f, 0)), mv3(Q, vector3(f, 3))
    lever = cross3(mv3(Q, vector3(d, 0)), force)
    put3(out, 0, scaled3(-1.0, force))
    put3(out, 3, scaled3(-1.0, sum3(moment, lever)))
    put3(out, 6, force)
    put3(out, 9, moment)
    out[12:] = f[6:]
    return out


@inner_kernel
def _add_skew(out: Array, r: int, c: int, sign: float, a: Vector3) -> None:
    """Add ± the matrix of a× to a two-dimensional array, starting at row r and column c."""
    out[r, c + 1] -= sign * a[2]
    out[r, c + 2] += sign * a[1]
    out[r + 1, c] += sign * a[2]
    out[r + 1, c + 2] -= sign * a[0]
    out[r + 2, c] -= sign * a[1]
    out[r + 2, c + 1] += sign * a[0]


@inner_kernel
def _add_identity(out: Array, r: int, c: int, sign: float) -> None:
    """Add ± the 3×3 identity to a two-dimensional array, starting at row r and column c."""
    for k in range(3):
        out[r + k, c + k] += sign


@inner_kernel
def _motion_derivatives(d: Array, v: Array, omega: Array, w1: Array) -> tuple[Array, Array]:
    """Return the derivatives (12, 12) of d, θ, v and ω with respect to poses and velocities."""
    by_pose, by_velocity = np.zeros((12, 12)), np.zeros((12, 12))
    lever, spin = vector3(d, 0), vector3(w1, 0)
    _add_identity(by_pose, 0, 0, -1.0)
    _add_skew(by_pose, 0, 3, 1.0, lever)
    _add_identity(by_pose, 0, 6, 1.0)
    _add_identity(by_pose, 3, 3, -1.0)
    _add_identity(by_pose, 3, 9, 1.0)
    _add_skew(by_pose, 6, 0, 1.0, spin)
    _add_skew(by_pose, 6, 3, 1.0, vector3(v, 0))
    _add_skew(by_pose, 6, 6, -1.0, spin)
    _add_skew(by_pose, 9, 3, 1.0, vector3(omega, 0))
    for r in range(6):
        for c in range(12):
            by_velocity[6 + r, c] = by_pose[r, c]
    return by_pose, by_velocity


@inner_kernel
def _on_both_frames(d: Array, X: Array) -> Array:
    """Return the derivatives (12 + m, ·) of the wrenches for constant d, from those of the law."""
    out = np.zeros((6 + X.shape[0], X.shape[1]))
    for c in range(X.shape[1]):
        lever = cross3(vector3(d, 0), (X[0, c], X[1, c], X[2, c]))
        for k in range(3):
            out[k, c], out[3 + k, c] = -X[k, c], -X[3 + k, c] - lever[k]
        out[6:, c] = X[:, c]
    return out


@inner_kernel
def _rotate(Q1: Array, A: Array) -> None:
    """Transform rows and columns of wrenches and increments, (12 + m, ·), to global components."""
    Q = _rows(Q1)
    for k in range(0, 12, 3):
        for c in range(A.shape[1]):
            x = mv3(Q, (A[k, c], A[k + 1, c], A[k + 2, c]))
            A[k, c], A[k + 1, c], A[k + 2, c] = x
        for r in range(A.shape[0]):
            put3(A[r], k, mv3(Q, vector3(A[r], k)))


@kernel
def motion_tangents(Q1: Array, u1: Array, motion: Motion) -> tuple[Array, Array]:
    """Return the derivatives (12, 12) of d, θ, v and ω with respect to poses and to velocities.

    The increments of poses and velocities have global components.
    """
    d, _, v, omega = motion
    Q, by = _rows(Q1), _motion_derivatives(d, v, omega, np.ascontiguousarray(Q1.T) @ u1[3:])
    for A in by:
        for r in range(12):
            for k in range(0, 12, 3):
                put3(A[r], k, mv3(Q, vector3(A[r], k)))
    return by


@kernel
def pair_tangents(Q1: Array, u1: Array, motion: Motion, f: Array, G: Array) -> tuple[Array, Array]:
    """Return the derivatives of `pair_wrenches` with respect to poses and to velocities.

    Increments of poses are displacements and rotations in global components. The last m columns of
    the second matrix are the derivatives with respect to the states.

    Args:
        Q1: Rotation matrix of the first frame, shape (3, 3).
        u1: Velocity and angular velocity of the first frame, shape (6,).
        motion: Result of `relative_motion`.
        f: Result of the law, shape (6 + m,).
        G: Derivatives of the law with respect to d, θ, v, ω and x, shape (6 + m, 12 + m).

    Returns:
        Two matrices, shape (12 + m, 12 + m) each.
    """
    d, _, v, omega = motion
    w1 = np.ascontiguousarray(Q1.T) @ u1[3:]
    by_pose, by_velocity = _motion_derivatives(d, v, omega, w1)
    law, size = np.ascontiguousarray(G[:, :12]), 6 + f.shape[0]
    D, E = np.zeros((size, size)), np.zeros((size, size))
    D[:, :12] = _on_both_frames(d, law @ by_pose)
    E[:, :12] = _on_both_frames(d, law @ by_velocity)
    E[:, 12:] = _on_both_frames(d, G[:, 12:])
    force, moment = vector3(f, 0), vector3(f, 3)
    # The moment on the first frame contains −δd×F = F×δd
    _add_skew(D, 3, 0, -1.0, force)
    _add_skew(D, 3, 6, 1.0, force)
    lever = cross3(vector3(d, 0), force)
    for i in range(3):
        for j in range(3):  # F×(d×δφ₁) = d (F·δφ₁) − δφ₁ (F·d)
            D[3 + i, 3 + j] += d[i] * f[j]
        D[3 + i, 3 + i] -= d[0] * f[0] + d[1] * f[1] + d[2] * f[2]
    total = moment[0] + lever[0], moment[1] + lever[1], moment[2] + lever[2]
    _add_skew(D, 0, 3, 1.0, force)
    _add_skew(D, 3, 3, 1.0, total)
    _add_skew(D, 6, 3, -1.0, force)
    _add_skew(D, 9, 3, -1.0, moment)
    _rotate(Q1, D)
    _rotate(Q1, E)
    return D, E


@kernel
def relative_poses(
    position: Array, rotation: Array, first: NDArray[np.int64], second: NDArray[np.int64]
) -> tuple[Array, Array]:
    """Return d (pairs, 3) and R (pairs, 3, 3) of pairs of frames."""
    N = first.shape[0]
    d, R = np.zeros((N, 3)), np.zeros((N, 3, 3))
    for n in range(N):
        i, j = first[n], second[n]
        for a in range(3):
            for k in range(3):
                d[n, a] += rotation[i, k, a] * (position[j, k] - position[i, k])
                for b in range(3):
                    R[n, a, b] += rotation[i, k, a] * rotation[j, k, b]
    return d, R


@inner_kernel
def _force_and_moments(Q1: Array, d: Array, slope: Array) -> tuple[Vector3, Vector3, Vector3]:
    """Return the gradient of a constraint in global components: g_d, g_θ and −g_θ − d×g_d."""
    Q = _rows(Q1)
    force, moment = mv3(Q, vector3(slope, 0)), mv3(Q, vector3(slope, 3))
    lever = cross3(mv3(Q, vector3(d, 0)), force)
    return force, moment, scaled3(-1.0, sum3(moment, lever))


@kernel
def constraint_gradients(
    rotation: Array, first: NDArray[np.int64], pairs: NDArray[np.int64], d: Array, slopes: Array
) -> Array:
    """Return the gradients (n, 12) of constraints with respect to the poses of both frames.

    `pairs` (n,) are the pairs of frames of the constraints, `slopes` (n, 6) their derivatives with
    respect to d and θ.
    """
    out = np.zeros((pairs.shape[0], 12))
    for n in range(pairs.shape[0]):
        k = pairs[n]
        force, moment, opposite = _force_and_moments(rotation[first[k]], d[k], slopes[n])
        put3(out[n], 0, scaled3(-1.0, force))
        put3(out[n], 3, opposite)
        put3(out[n], 6, force)
        put3(out[n], 9, moment)
    return out


@kernel
def constraint_seconds(
    rotation: Array,
    first: NDArray[np.int64],
    pairs: NDArray[np.int64],
    d: Array,
    slopes: Array,
    second: Array,
) -> Array:
    """Return the derivatives (n, 12, 12) of `constraint_gradients` with respect to poses.

    `second` (n, 6, 6) contains the derivatives of the slopes with respect to d and θ.
    """
    out, zero = np.zeros((pairs.shape[0], 12, 12)), np.zeros(6)
    law, rest, axes = np.zeros((6, 12)), np.zeros(3), np.eye(3)
    for n in range(pairs.shape[0]):
        k = pairs[n]
        law[:, :6] = second[n]
        motion = d[k], axes, rest, rest  # R, v and ω do not matter here
        out[n] = pair_tangents(rotation[first[k]], zero, motion, slopes[n], law)[0]
    return out


@kernel
def apply_constraints(
    rotation: Array,
    frames: NDArray[np.int64],
    pairs: NDArray[np.int64],
    rows: NDArray[np.int64],
    d: Array,
    slopes: Array,
    lam: Array,
    wrenches: Array,
) -> None:
    """Subtract the gradients of constraints times their multipliers from the wrenches (frames, 6).

    `frames` (pairs, 2) are the frames of the pairs, `rows` (n,) the indices of the constraints in
    `lam` (nc,); see `constraint_gradients` for the other arguments.
    """
    for n in range(rows.shape[0]):
        pair, size = pairs[n], lam[rows[n]]
        i, j = frames[pair, 0], frames[pair, 1]
        force, moment, opposite = _force_and_moments(rotation[i], d[pair], slopes[n])
        for k in range(3):
            wrenches[i, k] += size * force[k]
            wrenches[i, 3 + k] -= size * opposite[k]
            wrenches[j, k] -= size * force[k]
            wrenches[j, 3 + k] -= size * moment[k]


@kernel
def distance_rows(lengths: Array, d: Array) -> tuple[Array, Array]:
    """Return |d| − L (pairs, 1) and its derivatives (pairs, 1, 6) for displacements d (·, 3)."""
    values, slopes = np.zeros((d.shape[0], 1)), np.zeros((d.shape[0], 1, 6))
    for n in range(d.shape[0]):
        size = math.sqrt(d[n, 0] * d[n, 0] + d[n, 1] * d[n, 1] + d[n, 2] * d[n, 2])
        values[n, 0] = size - lengths[n]
        for k in range(3):
            slopes[n, 0, k] = d[n, k] / max(size, 1e-300)
    return values, slopes
