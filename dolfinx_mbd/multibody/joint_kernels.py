"""Kernels of joints: six relative motions of two frames, their derivatives, angles and wrenches.

With the frames' origins p₁, p₂, d = p₂ − p₁ and axes e_i (first), f_j (second) the six are

    e_x·d,  e_y·d,  e_z·d,  −e_y·f_z,  e_x·f_z,  e_y·f_x

for small angles the three displacements and three rotations of the second frame in the first.
The rotation rows stay regular at every angle about z where z is free; −e_y·f_z and e_x·f_z hold
the axes z together, e_y·f_x alone holds the pins of a universal joint at right angles.

A distance |d| is the first row with axes whose x is along d; they follow d and not the first body,
which only the second derivatives see (:func:`distance_second`, :func:`distance_bias`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.jit import kernel
from dolfinx_mbd.body.rotations import skew
from dolfinx_mbd.body.small import dot, identity, mm, mv, outer

__all__ = [
    "DISTANCE",
    "OPPOSITE",
    "axis_coordinates",
    "distance_bias",
    "distance_second",
    "joint_angles",
    "joint_bias",
    "joint_frames",
    "joint_gradients",
    "joint_second",
    "joint_values",
    "joint_wrenches",
    "rotation_gradient",
    "rotation_second",
]

Array = NDArray[np.float64]

#: Forms of joints beside the ordinary one, 0.
DISTANCE, OPPOSITE = 1, 2


@kernel
def joint_values(p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
    """The six relative motions of J pairs of frames (positions, orientations), shape (J, 6)."""
    J = p1.shape[0]
    g = np.zeros((J, 6))
    for j in range(J):
        d = p2[j] - p1[j]
        for i in range(3):
            for k in range(3):
                g[j, i] += Q1[j, k, i] * d[k]
        for k in range(3):
            g[j, 3] -= Q1[j, k, 1] * Q2[j, k, 2]
            g[j, 4] += Q1[j, k, 0] * Q2[j, k, 2]
            g[j, 5] += Q1[j, k, 1] * Q2[j, k, 0]
    return g


@kernel
def _column(Q: Array, i: int) -> Array:
    return np.array([Q[0, i], Q[1, i], Q[2, i]])


@kernel
def _cross(a: Array, b: Array) -> Array:
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    )


@kernel
def joint_gradients(p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
    """Gradients of the six motions to (p₁, rotation 1, p₂, rotation 2), global; shape (J, 6, 12).

    Row i times λ_i is the wrench (force and moment on either frame) that λ_i stands for.
    """
    J = p1.shape[0]
    G = np.zeros((J, 6, 12))
    for j in range(J):
        d = p2[j] - p1[j]
        for i in range(3):
            e = _column(Q1[j], i)
            G[j, i, :3] = -e
            G[j, i, 3:6] = _cross(e, d)
            G[j, i, 6:9] = e
        ex, ey = _column(Q1[j], 0), _column(Q1[j], 1)
        fx, fz = _column(Q2[j], 0), _column(Q2[j], 2)
        G[j, 3, 3:6] = -_cross(ey, fz)
        G[j, 4, 3:6] = _cross(ex, fz)
        G[j, 5, 3:6] = _cross(ey, fx)
        G[j, 3:, 9:] = -G[j, 3:, 3:6]
    return G


@kernel
def joint_second(p1: Array, Q1: Array, p2: Array, Q2: Array, lam: Array) -> Array:
    """Derivative of Gᵀλ to (p₁, rotation 1, p₂, rotation 2), λ (J, 6) held; shape (J, 12, 12)."""
    J = p1.shape[0]
    D = np.zeros((J, 12, 12))
    for j in range(J):
        d = skew(p2[j] - p1[j])
        L = skew(mv(Q1[j], lam[j, :3]))
        D[j, :3, 3:6] = L
        D[j, 6:9, 3:6] = -L
        D[j, 3:6, 3:6] = mm(d, L)
        D[j, 3:6, :3] = -L
        D[j, 3:6, 6:9] = L
        for row, sign, a, b in ((3, -1.0, 1, 2), (4, 1.0, 0, 2), (5, 1.0, 1, 0)):
            e, f = skew(_column(Q1[j], a)), skew(_column(Q2[j], b))
            D[j, 3:6, 3:6] += sign * lam[j, row] * mm(f, e)
            D[j, 3:6, 9:] -= sign * lam[j, row] * mm(e, f)
            D[j, 9:, 3:6] -= sign * lam[j, row] * mm(f, e)
            D[j, 9:, 9:] += sign * lam[j, row] * mm(e, f)
    return D


@kernel
def joint_bias(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Array:
    """Second time derivative of the six motions at zero accelerations, Ġ u; shape (J, 6).

    ``u1``, ``u2`` (J, 6) are velocities and angular velocities of the frames, global.
    """
    J = p1.shape[0]
    bias = np.zeros((J, 6))
    for j in range(J):
        d, rate = p2[j] - p1[j], u2[j, :3] - u1[j, :3]
        w1, w2 = u1[j, 3:], u2[j, 3:]
        for i in range(3):
            e = _column(Q1[j], i)
            de = _cross(w1, e)
            bias[j, i] = dot(_cross(w1, de), d) + 2.0 * dot(de, rate)
        for row, sign, a, b in ((3, -1.0, 1, 2), (4, 1.0, 0, 2), (5, 1.0, 1, 0)):
            e, f = _column(Q1[j], a), _column(Q2[j], b)
            de, df = _cross(w1, e), _cross(w2, f)
            bias[j, row] = sign * (
                dot(_cross(w1, de), f) + dot(_cross(w2, df), e) + 2.0 * dot(de, df)
            )
    return bias


@kernel
def _angle_terms(Q1: Array, Q2: Array):  # type: ignore[no-untyped-def]
    """x, y of the angle atan2(y, x) = atan2(e_y·f_x, e_x·f_x), and w = x e_y − y e_x."""
    ex, ey, fx = _column(Q1, 0), _column(Q1, 1), _column(Q2, 0)
    x, y = dot(ex, fx), dot(ey, fx)
    return x, y, x * ey - y * ex


@kernel
def rotation_gradient(Q1: Array, Q2: Array) -> Array:
    """Gradient of the angle about z to (p₁, rotation 1, p₂, rotation 2), shape (12,).

    Its direction is e_z where the axes z are parallel, and exact where they are not.
    """
    x, y, w = _angle_terms(Q1, Q2)
    h = np.zeros(12)
    h[3:6] = _cross(w, _column(Q2, 0)) / (x * x + y * y)
    h[9:] = -h[3:6]
    return h


@kernel
def rotation_second(Q1: Array, Q2: Array) -> Array:
    """Derivative of :func:`rotation_gradient` to the same increments, shape (12, 12)."""
    x, y, w = _angle_terms(Q1, Q2)
    ex, ey, fx = _column(Q1, 0), _column(Q1, 1), _column(Q2, 0)
    gx, gy, square = _cross(ex, fx), _cross(ey, fx), x * x + y * y
    F, W = skew(fx), skew(w)
    common = -mm(F, outer(ey, gx) - outer(ex, gy)) / square
    common -= outer(_cross(w, fx), 2.0 * (x * gx + y * gy)) / (square * square)
    D = np.zeros((12, 12))
    D[3:6, 3:6] = common + mm(F, W) / square
    D[3:6, 9:] = -common - mm(W, F) / square
    D[9:, 3:6] = -D[3:6, 3:6]
    D[9:, 9:] = -D[3:6, 9:]
    return D


@kernel
def joint_angles(
    rotation: Array, first: NDArray[np.int64], second: NDArray[np.int64], before: Array
) -> Array:
    """Rotation of each joint about z (J,), counted over turns: the nearest to ``before``."""
    angles = before.copy()
    for j in range(before.shape[0]):
        x, y, _ = _angle_terms(rotation[first[j]], rotation[second[j]])
        change = np.arctan2(y, x) - before[j]
        angles[j] += change - 2 * np.pi * np.rint(change / (2 * np.pi))
    return angles


@kernel
def axis_coordinates(
    position: Array,
    rotation: Array,
    velocities: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    before: Array,
) -> tuple[Array, Array, Array]:
    """Rotation about and displacement along z of the joints, rates (J, 2), gradients (J, 2, 12)."""
    J = before.shape[0]
    values, rates, gradients = np.zeros((J, 2)), np.zeros((J, 2)), np.zeros((J, 2, 12))
    values[:, 0] = joint_angles(rotation, first, second, before)
    for j in range(J):
        one, two = first[j], second[j]
        e, d = _column(rotation[one], 2), position[two] - position[one]
        values[j, 1] = dot(e, d)
        gradients[j, 0] = rotation_gradient(rotation[one], rotation[two])
        gradients[j, 1, :3] = -e
        gradients[j, 1, 3:6] = _cross(e, d)
        gradients[j, 1, 6:9] = e
        for i in range(2):
            rates[j, i] = dot(gradients[j, i, :6], velocities[one])
            rates[j, i] += dot(gradients[j, i, 6:], velocities[two])
    return values, rates, gradients


@kernel
def joint_wrenches(
    position: Array,
    rotation: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    form: NDArray[np.int64],
    lam: Array,
    wrenches: Array,
) -> Array:
    """Values of the six motions of every joint (J, 6); takes Gᵀλ off the wrenches (NF, 6) of the
    frames.

    ``turns`` (J,) is the angle by which a driver turns the first frame about z, 0 for a joint;
    ``form`` (J,) is DISTANCE, OPPOSITE or 0.
    """
    p1, Q1, p2, Q2 = joint_frames(position, rotation, first, second, turns, form)
    G = joint_gradients(p1, Q1, p2, Q2)
    for j in range(first.shape[0]):
        for i in range(6):
            if lam[j, i] != 0.0:
                for k in range(6):
                    wrenches[first[j], k] -= lam[j, i] * G[j, i, k]
                    wrenches[second[j], k] -= lam[j, i] * G[j, i, k + 6]
    return joint_values(p1, Q1, p2, Q2)


@kernel
def joint_frames(
    position: Array,
    rotation: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    form: NDArray[np.int64],
) -> tuple[Array, Array, Array, Array]:
    """Poses of both frames of every joint, (J, 3) and (J, 3, 3) each, drivers' turns applied.

    The first axes of a distance (``form`` DISTANCE) are along its line instead; second axes
    marked OPPOSITE are turned by half a turn about x, so that z agrees with the first.
    """
    J = first.shape[0]
    p1, p2 = np.zeros((J, 3)), np.zeros((J, 3))
    Q1, Q2 = np.zeros((J, 3, 3)), np.zeros((J, 3, 3))
    for j in range(J):
        p1[j], p2[j] = position[first[j]], position[second[j]]
        Q1[j], Q2[j] = rotation[first[j]], rotation[second[j]]
        if turns[j] != 0.0:
            c, s = np.cos(turns[j]), np.sin(turns[j])
            for k in range(3):
                x, y = Q1[j, k, 0], Q1[j, k, 1]
                Q1[j, k, 0] = c * x + s * y
                Q1[j, k, 1] = c * y - s * x
        if form[j] == DISTANCE:
            _align(Q1[j], p2[j] - p1[j])
        elif form[j] == OPPOSITE:
            for k in range(3):
                Q2[j, k, 1], Q2[j, k, 2] = -Q2[j, k, 1], -Q2[j, k, 2]
    return p1, Q1, p2, Q2


@kernel
def _align(Q: Array, d: Array) -> None:
    """Axes with x along d, into Q; it stays as it is where d is zero."""
    length = np.sqrt(dot(d, d))
    if length == 0.0:
        return
    x = d / length
    a = np.zeros(3)
    a[np.argmin(np.abs(x))] = 1.0
    y = _cross(x, a)
    y /= np.sqrt(dot(y, y))
    Q[:, 0], Q[:, 1], Q[:, 2] = x, y, _cross(x, y)


@kernel
def distance_second(
    p1: Array, Q1: Array, p2: Array, lam: Array, form: NDArray[np.int64], D: Array
) -> None:
    """Derivative of Gᵀλ of the distances, λ/|d| (I − nnᵀ) on the points, into D (J, 12, 12)."""
    for j in range(form.shape[0]):
        if form[j] == DISTANCE:
            d = p2[j] - p1[j]
            n = _column(Q1[j], 0)
            P = (identity(1.0) - outer(n, n)) * (lam[j, 0] / max(np.sqrt(dot(d, d)), 1e-300))
            D[j] = 0.0
            D[j, :3, :3] = P
            D[j, 6:9, 6:9] = P
            D[j, :3, 6:9] = -P
            D[j, 6:9, :3] = -P


@kernel
def distance_bias(
    p1: Array,
    Q1: Array,
    u1: Array,
    p2: Array,
    u2: Array,
    form: NDArray[np.int64],
    bias: Array,
) -> None:
    """Second time derivative of the distances at zero accelerations, into bias (J, 6)."""
    for j in range(form.shape[0]):
        if form[j] == DISTANCE:
            d, u = p2[j] - p1[j], u2[j, :3] - u1[j, :3]
            along = dot(_column(Q1[j], 0), u)
            bias[j] = 0.0
            bias[j, 0] = (dot(u, u) - along * along) / max(np.sqrt(dot(d, d)), 1e-300)
