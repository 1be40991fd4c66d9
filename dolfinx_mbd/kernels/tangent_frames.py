"""Kernels for frames on a centre line that defines a tangent but no rotation about it.

Frame k has the position r = P z + r₀ for the coordinates z, and its orientation follows from the
slope p = S z + p₀: its reference axes, with the reference tangent t₀ as z axis, are rotated by the
smallest rotation that maps t₀ to t = p/|p|,

    Q = I + [t₀×t] + [t₀×t]²/(1 + t₀·t),      ω = W(p) ṗ,   W = ([t] + t cᵀ)/|p|,
    c = −(t₀×t)/(1 + t₀·t)

Here ω is the angular velocity, and [a] is the matrix of the product a×. Only the z axis follows the
line. The rotation of the x and y axes about the z axis is a convention, and no joint or load may
depend on it. The smallest rotation is not defined at t = −t₀. If t is close to −t₀, it is measured
from −t₀, and the reference axes are first rotated by half a turn about x. The x and y axes jump at
this change.

Arrays of the frames are P and S (frames, 3, n), r₀ and p₀ (frames, 3) and the reference axes
(frames, 3, 3).
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import skew3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Vector3,
    add_column3,
    cross3,
    dot3,
    mm3,
    mv3,
    outer3,
    put3,
    put33,
    scaled3,
    scaled33,
    sum3,
    sum33,
    tmv3,
    vector3,
)

_REVERSAL_COSINE = -0.9  # t is measured from −t₀ if the cosine of its angle with t₀ is smaller
_IDENTITY = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@inner_kernel
def _tangent(
    S: Array, p0: Array, axes: Array, z: Array, k: int
) -> tuple[Vector3, float, Vector3, float]:
    """Return t, |p|, the reference (t₀ or −t₀) and the sign of the reference."""
    p = sum3(vector3(S[k] @ z, 0), vector3(p0[k], 0))
    size = math.sqrt(dot3(p, p))
    t, reference, sign = scaled3(1.0 / size, p), _column(axes, k, 2), 1.0
    if dot3(t, reference) < _REVERSAL_COSINE:
        sign = -1.0
    return t, size, scaled3(sign, reference), sign


@inner_kernel
def _column(A: Array, k: int, j: int) -> Vector3:
    """Return column j of the matrix of frame k."""
    return A[k, 0, j], A[k, 1, j], A[k, 2, j]


@inner_kernel
def _spin(t: Vector3, reference: Vector3) -> tuple[Vector3, Matrix3]:
    """Return the vector c of the module and its derivative with respect to t."""
    v, d = cross3(reference, t), 1.0 + dot3(reference, t)
    derivative = sum33(outer3(1.0 / (d * d), v, reference), scaled33(-1.0 / d, skew3(reference)))
    return scaled3(-1.0 / d, v), derivative


@inner_kernel
def _angular_velocity_map(t: Vector3, size: float, reference: Vector3) -> Matrix3:
    """Return the matrix W, which maps ṗ to ω."""
    c, _ = _spin(t, reference)
    return scaled33(1.0 / size, sum33(skew3(t), outer3(1.0, t, c)))


@inner_kernel
def _slope_derivative(D: Matrix3, f: Vector3, t: Vector3, size: float) -> Matrix3:
    """Return the derivative (D (I − t⊗t) − f⊗t)/|p|² of f(t)/|p| with respect to p; D = ∂f/∂t."""
    change = outer3(-1.0, sum3(mv3(D, t), f), t)
    return scaled33(1.0 / (size * size), sum33(D, change))


@inner_kernel
def _angular_velocity_tangent(
    t: Vector3, size: float, reference: Vector3, rate: Vector3
) -> Matrix3:
    """Return the derivative of W(p) ṗ with respect to p for constant ṗ."""
    c, dc = _spin(t, reference)
    axial_rate = dot3(c, rate)
    D = sum33(skew3(scaled3(-1.0, rate)), scaled33(axial_rate, _IDENTITY))
    D = sum33(D, outer3(1.0, t, tmv3(dc, rate)))
    return _slope_derivative(D, sum3(cross3(t, rate), scaled3(axial_rate, t)), t, size)


@kernel
def poses(
    P: Array,
    S: Array,
    p0: Array,
    axes: Array,
    r0: Array,
    z: Array,
    position: Array,
    rotation: Array,
) -> None:
    """Compute positions (frames, 3) and orientations (frames, 3, 3) of the frames."""
    for k in range(P.shape[0]):
        put3(position[k], 0, sum3(vector3(P[k] @ z, 0), vector3(r0[k], 0)))
        t, _, reference, sign = _tangent(S, p0, axes, z, k)
        v = skew3(cross3(reference, t))
        Q = sum33(_IDENTITY, sum33(v, scaled33(1.0 / (1.0 + dot3(reference, t)), mm3(v, v))))
        for i in range(3):
            a, b, c = vector3(axes[k, i], 0)
            put3(rotation[k, i], 0, (a, sign * b, sign * c))
        base = vector3(rotation[k, 0], 0), vector3(rotation[k, 1], 0), vector3(rotation[k, 2], 0)
        put33(rotation[k], 0, 0, mm3(Q, base))


@kernel
def jacobians(P: Array, S: Array, p0: Array, axes: Array, z: Array) -> Array:
    """Return the derivatives (frames, 6, n) of `velocities` with respect to ż."""
    J = np.zeros((P.shape[0], 6, P.shape[2]))
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S, p0, axes, z, k)
        W = _angular_velocity_map(t, size, reference)
        for j in range(P.shape[2]):
            add_column3(J[k], 0, j, _column(P, k, j))
            add_column3(J[k], 3, j, mv3(W, _column(S, k, j)))
    return J


@kernel
def apply_wrenches(
    P: Array,
    S: Array,
    p0: Array,
    axes: Array,
    z: Array,
    wrenches: Array,
    rows: Array,
    scale: Array,
) -> None:
    """Subtract Jᵀw of the wrenches w (frames, 6) from the residual, and add |Jᵀw| to the scale."""
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S, p0, axes, z, k)
        force = vector3(wrenches[k], 0)
        moment = tmv3(_angular_velocity_map(t, size, reference), vector3(wrenches[k], 3))
        for i in range(P.shape[2]):
            load = dot3(_column(P, k, i), force) + dot3(_column(S, k, i), moment)
            rows[i] -= load
            scale[i] += abs(load)


@kernel
def velocities(
    P: Array, S: Array, p0: Array, axes: Array, z: Array, rate: Array, out: Array
) -> None:
    """Compute velocities and angular velocities (frames, 6) of the frames in global components."""
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S, p0, axes, z, k)
        put3(out[k], 0, vector3(P[k] @ rate, 0))
        put3(out[k], 3, mv3(_angular_velocity_map(t, size, reference), vector3(S[k] @ rate, 0)))


@kernel
def velocity_tangents(P: Array, S: Array, p0: Array, axes: Array, z: Array, rate: Array) -> Array:
    """Return the derivatives (frames, 6, n) of `velocities` with respect to z for constant ż."""
    D = np.zeros((P.shape[0], 6, P.shape[2]))
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S, p0, axes, z, k)
        T = _angular_velocity_tangent(t, size, reference, vector3(S[k] @ rate, 0))
        for j in range(P.shape[2]):
            add_column3(D[k], 3, j, mv3(T, _column(S, k, j)))
    return D


@kernel
def bias(P: Array, S: Array, p0: Array, axes: Array, z: Array, rate: Array) -> Array:
    """Return the accelerations (frames, 6) of the frames for z̈ = 0."""
    out = np.zeros((P.shape[0], 6))
    for k in range(P.shape[0]):
        t, size, reference, _ = _tangent(S, p0, axes, z, k)
        slope_rate = vector3(S[k] @ rate, 0)
        put3(out[k], 3, mv3(_angular_velocity_tangent(t, size, reference, slope_rate), slope_rate))
    return out


@kernel
def wrench_tangent(P: Array, S: Array, p0: Array, axes: Array, z: Array, wrenches: Array) -> Array:
    """Return the derivative (n, n) of Σ Jᵀw with respect to z for constant wrenches (frames, 6)."""
    n = P.shape[2]
    out = np.zeros((n, n))
    for k in range(S.shape[0]):
        m = vector3(wrenches[k], 3)
        if dot3(m, m) == 0.0:
            continue
        t, size, reference, _ = _tangent(S, p0, axes, z, k)
        c, dc = _spin(t, reference)
        axial_moment = dot3(m, t)
        D = sum33(skew3(m), sum33(scaled33(axial_moment, dc), outer3(1.0, c, m)))
        D = _slope_derivative(D, sum3(cross3(m, t), scaled3(axial_moment, c)), t, size)
        for j in range(n):
            turn = mv3(D, _column(S, k, j))
            for i in range(n):
                out[i, j] += dot3(_column(S, k, i), turn)
    return out
