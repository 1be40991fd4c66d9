"""Rotations: unit quaternions (w, x, y, z) and the tangent operator of Newton's method.

A rotation maps body to global components. Increments are rotation vectors in body
components, applied from the right: `A <- A exp(θ)`.

References:
    M. Arnold, O. Brüls, A. Cardona, Convergence analysis of generalized-α Lie group time
    integrators for constrained systems, Multibody Dynamics 2011 (tangent operator T).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.checks import array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Vector3,
    cross3,
    dot3,
    outer3,
    scaled3,
    sum3,
    sum33,
    vector3,
)

Quaternion = tuple[float, float, float, float]

_CONJUGATE = np.array([1.0, -1.0, -1.0, -1.0])  # factors of the conjugate quaternion
_SMALL = 1e-2  # the series are accurate to 1e-15 below this squared angle (rad²)


def skew(w: Array) -> Array:
    """Return the matrix of the cross product, `skew(w) @ u == cross(w, u)`; shape (3, 3)."""
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])


def axial(X: Array) -> Array:
    """Return the vector with components ε_ijk X_jk; shape (3,).

    Hence axial(a⊗b) = a×b, and axial(w̃) = −2w for the matrix w̃ of the cross product with w.
    """
    return np.array([X[1, 2] - X[2, 1], X[2, 0] - X[0, 2], X[0, 1] - X[1, 0]])


@inner_kernel
def skew3(w: Vector3) -> Matrix3:
    """Return the matrix w̃ of the cross product, w̃ u = w×u."""
    return (0.0, -w[2], w[1]), (w[2], 0.0, -w[0]), (-w[1], w[0], 0.0)


@inner_kernel
def axial3(A: Matrix3) -> Vector3:
    """Return the vector with components ε_ijk A_jk; see `axial`."""
    return A[1][2] - A[2][1], A[2][0] - A[0][2], A[0][1] - A[1][0]


@inner_kernel
def axial_product3(A: Matrix3, B: Matrix3) -> Vector3:
    """Return axial(A Bᵀ), the sum of a_k×b_k over the columns of A and B; see `axial`."""
    return (
        dot3(A[1], B[2]) - dot3(A[2], B[1]),
        dot3(A[2], B[0]) - dot3(A[0], B[2]),
        dot3(A[0], B[1]) - dot3(A[1], B[0]),
    )


@inner_kernel
def rotation_rows(w: float, x: float, y: float, z: float) -> Matrix3:
    """Return the rotation matrix (body to global) of a unit quaternion."""
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


@kernel
def rotation_matrix(p: Array) -> Array:
    """Return the rotation matrix (body to global) of a unit quaternion; shape (3, 3)."""
    return np.array(rotation_rows(p[0], p[1], p[2], p[3]))


@inner_kernel
def quaternion_product(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the product of two quaternions, scaled to unit length."""
    w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3]
    x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2]
    y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1]
    z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]
    length = math.sqrt(w * w + x * x + y * y + z * z)
    return w / length, x / length, y / length, z / length


@kernel
def multiply_quaternions(a: Array, b: Array) -> Array:
    """Return the product of two quaternions, scaled to unit length; shape (4,)."""
    return np.array(quaternion_product((a[0], a[1], a[2], a[3]), (b[0], b[1], b[2], b[3])))


@inner_kernel
def quaternion_exp(theta: Vector3) -> Quaternion:
    """Return the unit quaternion of a rotation vector (rad)."""
    angle = math.sqrt(dot3(theta, theta))
    half = 0.5 * angle
    s = math.sin(half) / angle if angle > 1e-8 else 0.5
    return math.cos(half), s * theta[0], s * theta[1], s * theta[2]


@kernel
def exp_quaternion(theta: Array) -> Array:
    """Return the unit quaternion of a rotation vector (rad); shape (4,)."""
    return np.array(quaternion_exp(vector3(theta, 0)))


@kernel
def exp_rotation(theta: Array) -> Array:
    """Return the rotation matrix of a rotation vector (rad); shape (3, 3)."""
    return rotation_matrix(exp_quaternion(theta))


@inner_kernel
def quaternion_of(A: Matrix3) -> Quaternion:
    """Return the unit quaternion (w ≥ 0) of a rotation matrix, which is not checked.

    The largest of the four components is computed first, so that no accuracy is lost at any angle
    (S. W. Shepperd, Quaternion from rotation matrix, 1978).
    """
    x, y, z = A[0][0], A[1][1], A[2][2]
    u, v, w = A[2][1] - A[1][2], A[0][2] - A[2][0], A[1][0] - A[0][1]
    xy, xz, yz = A[0][1] + A[1][0], A[0][2] + A[2][0], A[1][2] + A[2][1]
    if x + y + z >= max(x, y, z):
        p = 1.0 + x + y + z, u, v, w
    elif x >= max(y, z):
        p = u, 1.0 + x - y - z, xy, xz
    elif y >= z:
        p = v, xy, 1.0 - x + y - z, yz
    else:
        p = w, xz, yz, 1.0 - x - y + z
    factor = 1.0 / math.sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    if p[0] < 0.0:
        factor = -factor
    return factor * p[0], factor * p[1], factor * p[2], factor * p[3]


@inner_kernel
def rotation_vector3(A: Matrix3) -> Vector3:
    """Return the rotation vector (rad, angle at most π) of a rotation matrix, not checked."""
    p, x, y, z = quaternion_of(A)
    s = math.sqrt(x * x + y * y + z * z)
    factor = 2.0 if s < 1e-12 else 2.0 * math.atan2(s, p) / s
    return factor * x, factor * y, factor * z


@inner_kernel
def inverse_tangent3(theta: Vector3) -> Matrix3:
    """Return the inverse of `tangent3`, I + θ̃/2 + d θ̃², for angles below 2π.

    The coefficient is d = (1 − h cot h)/|θ|² with h = |θ|/2.
    """
    x, y, z = theta
    square = dot3(theta, theta)
    if square < _SMALL:
        d = 1.0 / 12.0 + square / 720.0 * (1.0 + square / 42.0 * (1.0 + square / 40.0))
    else:
        half = 0.5 * math.sqrt(square)
        d = (1.0 - half / math.tan(half)) / square
    return (
        (1.0 - d * (square - x * x), d * x * y - 0.5 * z, d * x * z + 0.5 * y),
        (d * x * y + 0.5 * z, 1.0 - d * (square - y * y), d * y * z - 0.5 * x),
        (d * x * z - 0.5 * y, d * y * z + 0.5 * x, 1.0 - d * (square - z * z)),
    )


@inner_kernel
def _coefficients(x: float) -> tuple[float, float, float, float]:
    """Return b, c of T = I − b θ̃ + c θ̃², and b'/|θ|, c'/|θ|, for x = |θ|²."""
    if x < _SMALL:
        b = 0.5 - x / 24.0 * (1.0 - x / 30.0 * (1.0 - x / 56.0 * (1.0 - x / 90.0)))
        c = 1.0 / 6.0 - x / 120.0 * (1.0 - x / 42.0 * (1.0 - x / 72.0 * (1.0 - x / 110.0)))
        db = -1.0 / 12.0 + x / 180.0 - x * x / 6720.0 + x * x * x / 453600.0
        dc = -1.0 / 60.0 + x / 1260.0 - x * x / 60480.0 + x * x * x / 4989600.0
        return b, c, db, dc
    angle = math.sqrt(x)
    b = (1.0 - math.cos(angle)) / x
    c = (angle - math.sin(angle)) / (x * angle)
    return b, c, (math.sin(angle) / angle - 2.0 * b) / x, (b - 3.0 * c) / x


@inner_kernel
def tangent3(theta: Vector3) -> Matrix3:
    """Return the tangent operator T = I − b θ̃ + c θ̃², see `tangent`."""
    x, y, z = theta
    square = dot3(theta, theta)
    b, c, _, _ = _coefficients(square)
    return (
        (1.0 - c * (square - x * x), c * x * y + b * z, c * x * z - b * y),
        (c * x * y - b * z, 1.0 - c * (square - y * y), c * y * z + b * x),
        (c * x * z + b * y, c * y * z - b * x, 1.0 - c * (square - z * z)),
    )


@kernel
def tangent(theta: Array) -> Array:
    """Return T with `exp(θ + δ) = exp(θ) exp(T(θ) δ)` to first order in δ; shape (3, 3).

    The transpose of T(θ) is `T(−θ)`, and `exp(θ + δ) = exp(T(−θ) δ) exp(θ)`.
    """
    return np.array(tangent3(vector3(theta, 0)))


@inner_kernel
def tangent_times(theta: Vector3, w: Vector3) -> Vector3:
    """Return T(θ) w."""
    b, c, _, _ = _coefficients(dot3(theta, theta))
    first = cross3(theta, w)
    return sum3(w, sum3(scaled3(-b, first), scaled3(c, cross3(theta, first))))


@inner_kernel
def tangent_derivative3(theta: Vector3, w: Vector3) -> Matrix3:
    """Return the derivative of `T(θ) w` with respect to θ for constant w."""
    b, c, db, dc = _coefficients(dot3(theta, theta))
    first = cross3(theta, w)
    radial = sum3(scaled3(dc, cross3(theta, first)), scaled3(-db, first))
    diagonal = c * dot3(theta, w)  # θ̃w̃ = w⊗θ − (θ·w) I
    derivative = skew3(sum3(scaled3(b, w), scaled3(-c, first)))
    derivative = sum33(derivative, outer3(1.0, sum3(radial, scaled3(-c, w)), theta))
    return sum33(derivative, ((diagonal, 0.0, 0.0), (0.0, diagonal, 0.0), (0.0, 0.0, diagonal)))


@kernel
def tangent_derivative(theta: Array, w: Array) -> Array:
    """Return the derivative of `T(θ) w` with respect to θ for constant w; shape (3, 3)."""
    return np.array(tangent_derivative3(vector3(theta, 0), vector3(w, 0)))


def quaternion_from_matrix(A: ArrayLike) -> Array:
    """Return the unit quaternion (w ≥ 0) of a rotation matrix.

    Raises an error if the matrix is not a rotation (orthogonal, determinant +1).
    """
    R: Array = array("rotation", A, (3, 3))
    if not np.allclose(R.T @ R, np.eye(3), atol=1e-8):
        raise InputError("expected a 3×3 orthogonal matrix as rotation", argument="rotation")
    if np.linalg.det(R) < 0:
        raise InputError(
            "expected a rotation, got a reflection (determinant −1)", argument="rotation"
        )
    K = np.array(  # eigenvector of the largest eigenvalue (Bar-Itzhack 2000), for every angle
        [
            [R[0, 0] + R[1, 1] + R[2, 2], 0, 0, 0],
            [R[2, 1] - R[1, 2], R[0, 0] - R[1, 1] - R[2, 2], 0, 0],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], R[1, 1] - R[0, 0] - R[2, 2], 0],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], R[2, 2] - R[0, 0] - R[1, 1]],
        ]
    )
    p = np.linalg.eigh(K)[1][:, -1]
    return p * (1.0 if p[np.argmax(np.abs(p) > 1e-12)] > 0 else -1.0)


def rotation_vector(A: ArrayLike) -> Array:
    """Return the rotation vector (rad, angle at most π) of a rotation matrix; shape (3,)."""
    return _vector_of(quaternion_from_matrix(A))


def rotation_between(a: Array, b: Array) -> Array:
    """Return the rotation vector θ (3,) with b = a exp(θ) for unit quaternions (rad, at most π)."""
    p = multiply_quaternions(a * _CONJUGATE, b)
    return _vector_of(-p if p[0] < 0.0 else p)


def _vector_of(p: Array) -> Array:
    """Return the rotation vector (3,) of a unit quaternion (w ≥ 0)."""
    s = math.sqrt(p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
    return (2.0 if s < 1e-12 else 2.0 * math.atan2(s, p[0]) / s) * p[1:]
