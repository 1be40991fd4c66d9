"""Kernels of joints: six relative motions of two frames, their derivatives, angles and wrenches.

The first frame has the origin p₁ and the axes e_i, the second frame has the origin p₂ and the axes
f_j. With d = p₂ − p₁, the motions are

    e_x·d,  e_y·d,  e_z·d,  −e_y·f_z,  e_x·f_z,  e_y·f_x

For small angles these are displacements and rotations of the second frame relative to the first.
The last three are regular at every angle about z if this rotation is free: −e_y·f_z and e_x·f_z
keep the z axes parallel, e_y·f_x alone keeps the pins of a universal joint perpendicular.

Joints that constrain other functions of the relative motion are relations (see `relation`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import skew3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Vector3,
    add_scaled33,
    cross3,
    dot3,
    mm3,
    outer3,
    put3,
    scaled3,
    scaled33,
    sum3,
    sum33,
    vector3,
)

#: Indices of the motions of a joint about and along its z axis
ABOUT, ALONG = range(2)
#: Relative rotations: index of the motion, sign, and axes of the first and the second frame.
_ROTATIONS = ((3, -1.0, 1, 2), (4, 1.0, 0, 2), (5, 1.0, 1, 0))


@kernel
def joint_values(p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
    """Return the six relative motions (J, 6) of J pairs of frames with the given poses."""
    J = p1.shape[0]
    g = np.zeros((J, 6))
    for j in range(J):
        d = _difference(p1, p2, j)
        for i in range(3):
            g[j, i] = dot3(_axis(Q1, j, i), d)
        for row, sign, a, b in _ROTATIONS:
            g[j, row] = sign * dot3(_axis(Q1, j, a), _axis(Q2, j, b))
    return g


@inner_kernel
def _axis(Q: Array, j: int, i: int) -> Vector3:
    """Return axis i of frame j."""
    return Q[j, 0, i], Q[j, 1, i], Q[j, 2, i]


@inner_kernel
def _difference(first: Array, second: Array, j: int) -> Vector3:
    """Return the position or the velocity of the second frame of joint j minus that of the first.

    These vectors are the first three columns of the arrays.
    """
    return second[j, 0] - first[j, 0], second[j, 1] - first[j, 1], second[j, 2] - first[j, 2]


@kernel
def joint_gradients(p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
    """Return the gradients G (J, 6, 12) of the six relative motions of each joint.

    The columns belong to p₁, small rotations of the first frame, p₂ and small rotations of the
    second frame, in global components. Row i times −λ_i contains the forces and moments that the
    multiplier λ_i of motion i exerts on both frames.
    """
    J = p1.shape[0]
    G = np.zeros((J, 6, 12))
    for j in range(J):
        d = _difference(p1, p2, j)
        for i in range(3):
            e, row = _axis(Q1, j, i), G[j, i]
            put3(row, 0, scaled3(-1.0, e))
            put3(row, 3, cross3(e, d))
            put3(row, 6, e)
        for k, sign, a, b in _ROTATIONS:
            gradient, row = scaled3(sign, cross3(_axis(Q1, j, a), _axis(Q2, j, b))), G[j, k]
            put3(row, 3, gradient)
            put3(row, 9, scaled3(-1.0, gradient))
    return G


@kernel
def joint_second_derivatives(p1: Array, Q1: Array, p2: Array, Q2: Array, lam: Array) -> Array:
    """Return the derivative (J, 12, 12) of Gᵀλ with respect to both poses for constant λ (J, 6).

    G is the result of `joint_gradients`.
    """
    J = p1.shape[0]
    D = np.zeros((J, 12, 12))
    for j in range(J):
        force = scaled3(lam[j, 0], _axis(Q1, j, 0))
        force = sum3(force, scaled3(lam[j, 1], _axis(Q1, j, 1)))
        force = sum3(force, scaled3(lam[j, 2], _axis(Q1, j, 2)))
        L = skew3(force)
        add_scaled33(D[j], 0, 3, 1.0, L)
        add_scaled33(D[j], 6, 3, -1.0, L)
        add_scaled33(D[j], 3, 3, 1.0, mm3(skew3(_difference(p1, p2, j)), L))
        add_scaled33(D[j], 3, 0, -1.0, L)
        add_scaled33(D[j], 3, 6, 1.0, L)
        for row, sign, a, b in _ROTATIONS:
            if lam[j, row] != 0.0:
                e, f = skew3(_axis(Q1, j, a)), skew3(_axis(Q2, j, b))
                factor = sign * lam[j, row]
                _add_rotation_blocks(D[j], scaled33(factor, mm3(f, e)), scaled33(factor, mm3(e, f)))
    return D


@inner_kernel
def _add_rotation_blocks(D: Array, first: Matrix3, second: Matrix3) -> None:
    """Add derivatives with respect to rotation 1 (`first`) and rotation 2 (`second`)."""
    add_scaled33(D, 3, 3, 1.0, first)
    add_scaled33(D, 3, 9, -1.0, second)
    add_scaled33(D, 9, 3, -1.0, first)
    add_scaled33(D, 9, 9, 1.0, second)


@kernel
def joint_bias(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Array:
    """Return the second time derivatives Ġ u (J, 6) of the motions for zero accelerations.

    G is the result of `joint_gradients`.
    `u1`, `u2` (J, 6) are velocities and angular velocities of the frames in global components.
    """
    J = p1.shape[0]
    bias = np.zeros((J, 6))
    for j in range(J):
        d, rate = _difference(p1, p2, j), _difference(u1, u2, j)
        w1, w2 = vector3(u1[j], 3), vector3(u2[j], 3)
        for i in range(3):
            de = cross3(w1, _axis(Q1, j, i))
            bias[j, i] = dot3(cross3(w1, de), d) + 2.0 * dot3(de, rate)
        for row, sign, a, b in _ROTATIONS:
            e, f = _axis(Q1, j, a), _axis(Q2, j, b)
            de, df = cross3(w1, e), cross3(w2, f)
            bias[j, row] = sign * (
                dot3(cross3(w1, de), f) + dot3(cross3(w2, df), e) + 2.0 * dot3(de, df)
            )
    return bias


@inner_kernel
def _angle_terms(Q1: Array, Q2: Array, i: int, j: int) -> tuple[float, float, Vector3]:
    """Return x, y of the angle atan2(y, x) = atan2(e_y·f_x, e_x·f_x), and w = x e_y − y e_x."""
    ex, ey, fx = _axis(Q1, i, 0), _axis(Q1, i, 1), _axis(Q2, j, 0)
    x, y = dot3(ex, fx), dot3(ey, fx)
    return x, y, sum3(scaled3(x, ey), scaled3(-y, ex))


@inner_kernel
def _angle_gradient(Q1: Array, Q2: Array, i: int, j: int) -> Vector3:
    """Return the gradient of the angle about z with respect to rotation 1.

    The gradient with respect to rotation 2 is the negative of this vector. The vector is parallel
    to e_z only if the z axes are parallel. It is NaN if f_x is along e_z, because the angle is then
    not defined.
    """
    x, y, w = _angle_terms(Q1, Q2, i, j)
    size = x * x + y * y
    return scaled3(1.0 / size if size > 0.0 else math.nan, cross3(w, _axis(Q2, j, 0)))


@kernel
def rotation_second_derivatives(Q1: Array, Q2: Array) -> Array:
    """Return the second derivatives (J, 12, 12) of the angles about z with respect to poses."""
    D = np.zeros((Q1.shape[0], 12, 12))
    for j in range(Q1.shape[0]):
        x, y, w = _angle_terms(Q1, Q2, j, j)
        ex, ey, fx = _axis(Q1, j, 0), _axis(Q1, j, 1), _axis(Q2, j, 0)
        gx, gy, factor = cross3(ex, fx), cross3(ey, fx), 1.0 / (x * x + y * y)
        # common = −F (e_y⊗g_x − e_x⊗g_y)/|.|² − (w×f_x)⊗(2x g_x + 2y g_y)/|.|⁴, |.|² = x² + y²,
        # where F and W are the matrices of the products f_x× and w×
        change = sum3(scaled3(2.0 * x, gx), scaled3(2.0 * y, gy))
        common = sum33(outer3(-factor, cross3(fx, ey), gx), outer3(factor, cross3(fx, ex), gy))
        common = sum33(common, outer3(-factor * factor, cross3(w, fx), change))
        F, W = skew3(fx), skew3(w)
        first, second = scaled33(factor, mm3(F, W)), scaled33(factor, mm3(W, F))
        _add_rotation_blocks(D[j], sum33(common, first), sum33(common, second))
    return D


@kernel
def joint_angles(
    rotation: Array, first: NDArray[np.int64], second: NDArray[np.int64], before: Array
) -> Array:
    """Return the angles (J,) of the joints about z, with the full turns closest to `before`."""
    angles = np.zeros(before.shape[0])
    for j in range(before.shape[0]):
        angles[j] = _angle(rotation, first[j], second[j], before[j])
    return angles


@inner_kernel
def _angle(rotation: Array, first: int, second: int, before: float) -> float:
    """Return the angle between two axes of the joint, continuous with the angle before."""
    x, y, _ = _angle_terms(rotation, rotation, first, second)
    angle = math.atan2(y, x)
    return angle + 2 * math.pi * math.floor((before - angle) / (2 * math.pi) + 0.5)


@kernel
def axis_coordinates(
    position: Array,
    rotation: Array,
    velocities: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    before: Array,
) -> tuple[Array, Array, Array]:
    """Return values, rates and gradients of the joint motions about and along z.

    Their shapes are (J, 2), (J, 2) and (J, 2, 12).
    """
    J = before.shape[0]
    values, rates, gradients = np.zeros((J, 2)), np.zeros((J, 2)), np.zeros((J, 2, 12))
    for j in range(J):
        i, k = first[j], second[j]
        e, d = _axis(rotation, i, 2), vector3(position[k], 0)
        d = sum3(d, scaled3(-1.0, vector3(position[i], 0)))
        values[j, ABOUT], values[j, ALONG] = _angle(rotation, i, k, before[j]), dot3(e, d)
        slope = _angle_gradient(rotation, rotation, i, k)
        about, along = gradients[j, ABOUT], gradients[j, ALONG]
        put3(about, 3, slope)
        put3(about, 9, scaled3(-1.0, slope))
        put3(along, 0, scaled3(-1.0, e))
        put3(along, 3, cross3(e, d))
        put3(along, 6, e)
        for c in range(6):
            rates[j, ABOUT] += about[c] * velocities[i, c] + about[6 + c] * velocities[k, c]
            rates[j, ALONG] += along[c] * velocities[i, c] + along[6 + c] * velocities[k, c]
    return values, rates, gradients


@kernel
def add_axis_forces(
    sizes: Array,
    gradients: Array,
    axes: NDArray[np.int64],
    frames: NDArray[np.int64],
    wrenches: Array,
) -> None:
    """Add forces along joint axes and torques about them, (loads,), to the wrenches (frames, 6).

    `axes` (loads, 2) contains joint and motion, ABOUT or ALONG the axis, `frames` (loads, 2) the
    frames of the joint, and `gradients` (joints, 2, 12) those of `axis_coordinates`.
    """
    for n in range(sizes.shape[0]):
        joint, motion, first, second = axes[n, 0], axes[n, 1], frames[n, 0], frames[n, 1]
        gradient = gradients[joint, motion]
        for k in range(6):
            wrenches[first, k] += sizes[n] * gradient[k]
            wrenches[second, k] += sizes[n] * gradient[k + 6]


@kernel
def constraint_rows(
    position: Array,
    rotation: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    signs: Array,
    rows: NDArray[np.int64],
    offsets: Array,
    lam: Array,
    spread: Array,
    wrenches: Array,
    values: Array,
) -> None:
    """Compute the constraints minus offsets (nc,); subtract Gᵀλ from the wrenches (frames, 6).

    G is the result of `joint_gradients`.
    `rows` (nc, 2) contains joint and motion of each constraint. Rows with a negative motion belong
    to relations and are left out. See `joint_frames` for `turns` and `signs`. `spread` (J, 6)
    receives λ (nc,) by joint and motion.
    """
    p1, Q1, p2, Q2 = joint_frames(position, rotation, first, second, turns, signs)
    g, G = joint_values(p1, Q1, p2, Q2), joint_gradients(p1, Q1, p2, Q2)
    for c in range(lam.shape[0]):
        j, motion = rows[c, 0], rows[c, 1]
        if motion < 0:
            continue
        spread[j, motion] = lam[c]
        values[c] = g[j, motion] - offsets[c]
        for k in range(6):
            wrenches[first[j], k] -= lam[c] * G[j, motion, k]
            wrenches[second[j], k] -= lam[c] * G[j, motion, k + 6]


@kernel
def joint_frames(
    position: Array,
    rotation: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    signs: Array,
) -> tuple[Array, Array, Array, Array]:
    """Return the poses of both frames of every joint, (J, 3) and (J, 3, 3) each.

    First frames are rotated about z by `turns` (J,): driver angles, 0 for joints. The y and z axes
    of second frames are multiplied by `signs` (J,): −1 is half a turn about x, so that opposite z
    axes agree.
    """
    J = first.shape[0]
    p1, p2 = np.zeros((J, 3)), np.zeros((J, 3))
    Q1, Q2 = np.zeros((J, 3, 3)), np.zeros((J, 3, 3))
    for j in range(J):
        c, s = math.cos(turns[j]), math.sin(turns[j])
        for k in range(3):
            p1[j, k], p2[j, k] = position[first[j], k], position[second[j], k]
            x, y, z = vector3(rotation[first[j], k], 0)
            put3(Q1[j, k], 0, (c * x + s * y, c * y - s * x, z))
            x, y, z = vector3(rotation[second[j], k], 0)
            put3(Q2[j, k], 0, (x, signs[j] * y, signs[j] * z))
    return p1, Q1, p2, Q2
