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

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import skew3
from dolfinx_mbd.kernels.small_vectors import (
    Matrix3,
    Vector3,
    add,
    add3,
    cross3,
    dot3,
    mm3,
    mv3,
    plus3,
    rows3,
    scaled3,
    vector3,
)

__all__ = [
    "DISTANCE",
    "OPPOSITE",
    "axis_coordinates",
    "constraint_rows",
    "distance_bias",
    "distance_second",
    "joint_angles",
    "joint_bias",
    "joint_frames",
    "joint_gradients",
    "joint_products",
    "joint_second",
    "joint_values",
    "rotation_gradient",
    "rotation_second",
]

Array = NDArray[np.float64]

#: The rotation rows: number, sign, and the columns of the first and the second frame.
_ROTATIONS = ((3, -1.0, 1, 2), (4, 1.0, 0, 2), (5, 1.0, 1, 0))

#: Forms of joints beside the ordinary one, 0.
DISTANCE, OPPOSITE = 1, 2


@kernel
def joint_values(p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
    """The six relative motions of J pairs of frames (positions, orientations), shape (J, 6)."""
    J = p1.shape[0]
    g = np.zeros((J, 6))
    for j in range(J):
        d = _between(p1[j], p2[j])
        for i in range(3):
            g[j, i] = dot3(_column(Q1[j], i), d)
        for row, sign, a, b in _ROTATIONS:
            g[j, row] = sign * dot3(_column(Q1[j], a), _column(Q2[j], b))
    return g


@inner_kernel
def _column(Q: Array, i: int) -> Vector3:
    return Q[0, i], Q[1, i], Q[2, i]


@inner_kernel
def _between(p: Array, q: Array) -> Vector3:
    return q[0] - p[0], q[1] - p[1], q[2] - p[2]


@kernel
def joint_gradients(p1: Array, Q1: Array, p2: Array, Q2: Array) -> Array:
    """Gradients of the six motions to (p₁, rotation 1, p₂, rotation 2), global; shape (J, 6, 12).

    Row i times λ_i is the wrench (force and moment on either frame) that λ_i stands for.
    """
    J = p1.shape[0]
    G = np.zeros((J, 6, 12))
    for j in range(J):
        d = _between(p1[j], p2[j])
        for i in range(3):
            e = _column(Q1[j], i)
            arm = cross3(e, d)
            for k in range(3):
                G[j, i, k] = -e[k]
                G[j, i, 3 + k] = arm[k]
                G[j, i, 6 + k] = e[k]
        for row, sign, a, b in _ROTATIONS:
            turn = cross3(_column(Q1[j], a), _column(Q2[j], b))
            for k in range(3):
                G[j, row, 3 + k] = sign * turn[k]
                G[j, row, 9 + k] = -sign * turn[k]
    return G


@kernel
def joint_second(p1: Array, Q1: Array, p2: Array, Q2: Array, lam: Array) -> Array:
    """Derivative of Gᵀλ to (p₁, rotation 1, p₂, rotation 2), λ (J, 6) held; shape (J, 12, 12)."""
    J = p1.shape[0]
    D = np.zeros((J, 12, 12))
    for j in range(J):
        d, force = _between(p1[j], p2[j]), mv3(rows3(Q1[j]), (lam[j, 0], lam[j, 1], lam[j, 2]))
        L = skew3(force)
        _add_block(D[j, :3, 3:6], L, 1.0)
        _add_block(D[j, 6:9, 3:6], L, -1.0)
        _add_block(D[j, 3:6, 3:6], mm3(skew3(d), L), 1.0)
        _add_block(D[j, 3:6, :3], L, -1.0)
        _add_block(D[j, 3:6, 6:9], L, 1.0)
        for row, sign, a, b in _ROTATIONS:
            factor = sign * lam[j, row]
            if factor != 0.0:
                e, f = skew3(_column(Q1[j], a)), skew3(_column(Q2[j], b))
                fe, ef = mm3(f, e), mm3(e, f)
                _add_block(D[j, 3:6, 3:6], fe, factor)
                _add_block(D[j, 3:6, 9:], ef, -factor)
                _add_block(D[j, 9:, 3:6], fe, -factor)
                _add_block(D[j, 9:, 9:], ef, factor)
    return D


@inner_kernel
def _add_block(out: Array, A: Matrix3, factor: float) -> None:
    """Add a multiple of a matrix to a 3×3 array."""
    add(out, np.array(A), factor)


@kernel
def joint_products(
    D: Array,
    G: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    jacobians: Array,
    widths: NDArray[np.int64],
) -> tuple[Array, Array]:
    """D and G of every joint over the velocities of its bodies: JᵀDJ (J, 2, 2, w, w) between the
    first and the second, and GJ (J, 2, 6, w).

    ``jacobians`` (NF, 6, w) are those of all frames, of which the first ``widths`` (NF,) columns
    count.
    """
    J, w = first.shape[0], jacobians.shape[2]
    second_order, gradients = np.zeros((J, 2, 2, w, w)), np.zeros((J, 2, 6, w))
    for j in range(J):
        frames = first[j], second[j]
        for k in range(2):
            right, columns = jacobians[frames[k]], widths[frames[k]]
            _add_product(G[j, :, 6 * k : 6 * k + 6], right, columns, gradients[j, k])
            for i in range(2):
                half = np.zeros((6, w))
                _add_product(D[j, 6 * i : 6 * i + 6, 6 * k : 6 * k + 6], right, columns, half)
                left, rows = jacobians[frames[i]].T, widths[frames[i]]
                _add_product(left[:rows], half, columns, second_order[j, i, k])
    return second_order, gradients


@inner_kernel
def _add_product(A: Array, B: Array, columns: int, out: Array) -> None:
    """Add A times the first columns of B to those of ``out``."""
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            factor = A[i, k]
            for j in range(columns):
                out[i, j] += factor * B[k, j]


@kernel
def joint_bias(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Array:
    """Second time derivative of the six motions at zero accelerations, Ġ u; shape (J, 6).

    ``u1``, ``u2`` (J, 6) are velocities and angular velocities of the frames, global.
    """
    J = p1.shape[0]
    bias = np.zeros((J, 6))
    for j in range(J):
        d, rate = _between(p1[j], p2[j]), _between(u1[j], u2[j])
        w1, w2 = vector3(u1[j], 3), vector3(u2[j], 3)
        for i in range(3):
            de = cross3(w1, _column(Q1[j], i))
            bias[j, i] = dot3(cross3(w1, de), d) + 2.0 * dot3(de, rate)
        for row, sign, a, b in _ROTATIONS:
            e, f = _column(Q1[j], a), _column(Q2[j], b)
            de, df = cross3(w1, e), cross3(w2, f)
            bias[j, row] = sign * (
                dot3(cross3(w1, de), f) + dot3(cross3(w2, df), e) + 2.0 * dot3(de, df)
            )
    return bias


@inner_kernel
def _angle_terms(Q1: Array, Q2: Array):  # type: ignore[no-untyped-def]
    """x, y of the angle atan2(y, x) = atan2(e_y·f_x, e_x·f_x), and w = x e_y − y e_x."""
    ex, ey, fx = _column(Q1, 0), _column(Q1, 1), _column(Q2, 0)
    x, y = dot3(ex, fx), dot3(ey, fx)
    return x, y, add3(scaled3(x, ey), scaled3(-y, ex))


@kernel
def rotation_gradient(Q1: Array, Q2: Array) -> Array:
    """Gradient of the angle about z to (p₁, rotation 1, p₂, rotation 2), shape (12,).

    Its direction is e_z where the axes z are parallel, and exact where they are not.
    """
    x, y, w = _angle_terms(Q1, Q2)
    h = np.zeros(12)
    turn = scaled3(1.0 / (x * x + y * y), cross3(w, _column(Q2, 0)))
    for k in range(3):
        h[3 + k], h[9 + k] = turn[k], -turn[k]
    return h


@kernel
def rotation_second(Q1: Array, Q2: Array) -> Array:
    """Derivative of :func:`rotation_gradient` to the same increments, shape (12, 12)."""
    x, y, w = _angle_terms(Q1, Q2)
    ex, ey, fx = _column(Q1, 0), _column(Q1, 1), _column(Q2, 0)
    gx, gy, square = cross3(ex, fx), cross3(ey, fx), x * x + y * y
    F, W = skew3(fx), skew3(w)
    # common = −F (e_y⊗g_x − e_x⊗g_y)/|.|² − (w×f_x)⊗(2x g_x + 2y g_y)/|.|⁴
    by_y, by_x = cross3(fx, ey), cross3(fx, ex)
    turn, change = cross3(w, fx), add3(scaled3(2.0 * x, gx), scaled3(2.0 * y, gy))
    common = plus3(
        plus3(_dyad(-1.0 / square, by_y, gx), _dyad(1.0 / square, by_x, gy)),
        _dyad(-1.0 / (square * square), turn, change),
    )
    D = np.zeros((12, 12))
    first, second, factor = mm3(F, W), mm3(W, F), 1.0 / square
    _add_block(D[3:6, 3:6], common, 1.0)
    _add_block(D[3:6, 3:6], first, factor)
    _add_block(D[3:6, 9:], common, -1.0)
    _add_block(D[3:6, 9:], second, -factor)
    _add_block(D[9:, 3:6], common, -1.0)
    _add_block(D[9:, 3:6], first, -factor)
    _add_block(D[9:, 9:], common, 1.0)
    _add_block(D[9:, 9:], second, factor)
    return D


@inner_kernel
def _dyad(factor: float, a: Vector3, b: Vector3) -> Matrix3:
    """A multiple of a⊗b, by rows."""
    return scaled3(factor * a[0], b), scaled3(factor * a[1], b), scaled3(factor * a[2], b)


@kernel
def joint_angles(
    rotation: Array, first: NDArray[np.int64], second: NDArray[np.int64], before: Array
) -> Array:
    """Rotation of each joint about z (J,), counted over turns: the nearest to ``before``."""
    angles = np.empty(before.shape[0])
    for j in range(before.shape[0]):
        x, y, _ = _angle_terms(rotation[first[j]], rotation[second[j]])
        change = math.atan2(y, x) - before[j]
        angles[j] = before[j] + change - 2 * math.pi * np.rint(change / (2 * math.pi))
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
    angles = joint_angles(rotation, first, second, before)
    for j in range(J):
        one, two = first[j], second[j]
        e, d = _column(rotation[one], 2), _between(position[one], position[two])
        arm = cross3(e, d)
        values[j, 0], values[j, 1] = angles[j], dot3(e, d)
        about = rotation_gradient(rotation[one], rotation[two])
        for k in range(12):
            gradients[j, 0, k] = about[k]
        for k in range(3):
            gradients[j, 1, k] = -e[k]
            gradients[j, 1, 3 + k] = arm[k]
            gradients[j, 1, 6 + k] = e[k]
        for i in range(2):
            for k in range(6):
                rates[j, i] += gradients[j, i, k] * velocities[one, k]
                rates[j, i] += gradients[j, i, 6 + k] * velocities[two, k]
    return values, rates, gradients


@kernel
def constraint_rows(
    position: Array,
    rotation: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    form: NDArray[np.int64],
    row_entry: NDArray[np.int64],
    row_motion: NDArray[np.int64],
    offsets: Array,
    lam: Array,
    spread: Array,
    wrenches: Array,
    values: Array,
) -> None:
    """Values of the constraints less their offsets (nc,); takes Gᵀλ off the wrenches (nf, 6).

    ``turns`` (J,) is the angle by which a driver turns the first frame about z, 0 for a joint;
    ``form`` (J,) is DISTANCE, OPPOSITE or 0.  λ (nc,) is spread over all motions of the joints,
    into ``spread`` (J, 6).
    """
    p1, Q1, p2, Q2 = joint_frames(position, rotation, first, second, turns, form)
    g, G = joint_values(p1, Q1, p2, Q2), joint_gradients(p1, Q1, p2, Q2)
    for c in range(lam.shape[0]):
        j, motion = row_entry[c], row_motion[c]
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
        for i in range(3):
            p1[j, i], p2[j, i] = position[first[j], i], position[second[j], i]
            for k in range(3):
                Q1[j, i, k], Q2[j, i, k] = rotation[first[j], i, k], rotation[second[j], i, k]
        if turns[j] != 0.0:
            c, s = math.cos(turns[j]), math.sin(turns[j])
            for k in range(3):
                x, y = Q1[j, k, 0], Q1[j, k, 1]
                Q1[j, k, 0] = c * x + s * y
                Q1[j, k, 1] = c * y - s * x
        if form[j] == DISTANCE:
            _align(Q1[j], _between(p1[j], p2[j]))
        elif form[j] == OPPOSITE:
            for k in range(3):
                Q2[j, k, 1], Q2[j, k, 2] = -Q2[j, k, 1], -Q2[j, k, 2]
    return p1, Q1, p2, Q2


@inner_kernel
def _align(Q: Array, d: Vector3) -> None:
    """Axes with x along d, into Q; it stays as it is where d is zero."""
    length = math.sqrt(dot3(d, d))
    if length == 0.0:
        return
    x = scaled3(1.0 / length, d)
    least = min(abs(x[0]), abs(x[1]), abs(x[2]))
    if abs(x[0]) == least:
        y = cross3(x, (1.0, 0.0, 0.0))
    elif abs(x[1]) == least:
        y = cross3(x, (0.0, 1.0, 0.0))
    else:
        y = cross3(x, (0.0, 0.0, 1.0))
    y = scaled3(1.0 / math.sqrt(dot3(y, y)), y)
    z = cross3(x, y)
    for k in range(3):
        Q[k, 0], Q[k, 1], Q[k, 2] = x[k], y[k], z[k]


@kernel
def distance_second(
    p1: Array, Q1: Array, p2: Array, lam: Array, form: NDArray[np.int64], D: Array
) -> None:
    """Derivative of Gᵀλ of the distances, λ/|d| (I − nnᵀ) on the points, into D (J, 12, 12)."""
    for j in range(form.shape[0]):
        if form[j] == DISTANCE:
            d, n = _between(p1[j], p2[j]), _column(Q1[j], 0)
            size = lam[j, 0] / max(math.sqrt(dot3(d, d)), 1e-300)
            for i in range(12):
                for k in range(12):
                    D[j, i, k] = 0.0
            along = _dyad(-size, n, n)
            P = plus3(((size, 0.0, 0.0), (0.0, size, 0.0), (0.0, 0.0, size)), along)
            _add_block(D[j, :3, :3], P, 1.0)
            _add_block(D[j, 6:9, 6:9], P, 1.0)
            _add_block(D[j, :3, 6:9], P, -1.0)
            _add_block(D[j, 6:9, :3], P, -1.0)


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
            d, u = _between(p1[j], p2[j]), _between(u1[j], u2[j])
            along = dot3(_column(Q1[j], 0), u)
            for k in range(1, 6):
                bias[j, k] = 0.0
            bias[j, 0] = (dot3(u, u) - along * along) / max(math.sqrt(dot3(d, d)), 1e-300)
