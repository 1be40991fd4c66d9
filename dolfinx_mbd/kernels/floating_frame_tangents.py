"""Kernels of a body in a floating frame: the exact tangent of its equations of motion.

The equations and the names are those of `dolfinx_mbd.kernels.floating_frame`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import (
    BEND,
    BENDS,
    DAMPING,
    FIRST_FRAME,
    FIRST_MOMENTS,
    FIRST_Q,
    FIRST_V,
    FRAMES,
    H_PAIRS,
    MASS,
    MASS_MATRIX,
    MODES,
    SPIN,
    SPINS,
    STIFFNESS,
    TANGENTS,
    matrix,
)
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.floating_frame import (
    elastic_weights,
    inertia_integrals,
    inertia_tensor,
    product,
    spin_matrix,
    spin_parts,
    spin_products,
    spin_rows_of,
    squares3,
    wrench_in,
)
from dolfinx_mbd.kernels.frames import clear, frame_motion, lever_and_turn, orientation
from dolfinx_mbd.kernels.rotations import (
    axial3,
    axial_product3,
    skew3,
    tangent3,
    tangent_derivative3,
)
from dolfinx_mbd.kernels.small_vectors import (
    Matrix3,
    Vector3,
    add3,
    cross3,
    mm3,
    mv,
    mv3,
    plus3,
    put3,
    scaled3,
    tmv,
    tmv3,
    transposed3,
    vector3,
)

__all__ = ["spin_tangents", "tangents", "wrench_tangents"]

Array = NDArray[np.float64]
Table = NDArray[np.int64]


@kernel
def tangents(
    table: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    flat: Array,
) -> None:
    """Derivatives of the rows of all bodies to q (increments), v and a, in ``flat``.

    For each body the three matrices (6+n, 6+n), one after the other; without the terms of
    `spin_tangents` and `wrench_tangents`.
    """
    for b in range(table.shape[0]):
        row = table[b]
        size, j = 6 + row[MODES], row[FIRST_V]
        Kt, Ct, Mt = _matrices(row, flat)
        A, m = orientation(row, q), data[row[MASS]]
        omega, alpha, total = vector3(v, j + 3), vector3(a, j + 3), vector3(a, j)
        acceleration = tmv3(A, add3(total, (-gravity[0], -gravity[1], -gravity[2])))
        X, P, s, Q = inertia_integrals(row, data, q, v, a)
        _frame_tangent(m, A, acceleration, omega, alpha, s, Q, Kt, Ct, Mt)
        if size > 6:
            _elastic_tangent(row, data, A, acceleration, omega, alpha, P, Kt, Ct, Mt)


@inner_kernel
def _matrices(row: Table, flat: Array) -> tuple[Array, Array, Array]:
    """The three matrices of a body, as views."""
    size, start = 6 + row[MODES], row[TANGENTS]
    square = size * size
    return (
        matrix(flat, start, size, size),
        matrix(flat, start + square, size, size),
        matrix(flat, start + 2 * square, size, size),
    )


@inner_kernel
def _frame_tangent(
    m: float,
    A: Matrix3,
    acceleration: Vector3,
    omega: Vector3,
    alpha: Vector3,
    s: Matrix3,
    Q: Array,
    Kt: Array,
    Ct: Array,
    Mt: Array,
) -> None:
    """Write the rows and columns of the frame."""
    s0, s1, s2 = s
    Q0, Q1, _ = squares3(Q)
    w, J = skew3(omega), inertia_tensor(Q0)
    lever = skew3(s0)
    # by a
    coupling = np.array(mm3(A, lever))
    inertia = np.array(J)
    # by v
    inner = plus3(skew3(add3(cross3(omega, s0), scaled3(2.0, s1))), mm3(w, lever))
    force_rate = np.array(mm3(A, inner))
    J_rate = inertia_tensor(transposed3(Q1))
    moment_rate = plus3(mm3(w, J), skew3(scaled3(-1.0, mv3(J, omega))))
    turn_rate = np.array(plus3(moment_rate, plus3(J_rate, J_rate)))
    # by q
    inner_force = add3(mv3(spin_rows_of(omega, alpha), s0), scaled3(2.0, cross3(omega, s1)))
    force = np.array(mm3(A, skew3(add3(inner_force, s2))))
    turn = np.array(mm3(lever, skew3(acceleration)))
    clear(Kt)
    clear(Ct)
    clear(Mt)
    for i in range(3):
        Mt[i, i] = m
        for j in range(3):
            Mt[i, 3 + j] = Mt[3 + j, i] = -coupling[i, j]
            Mt[3 + i, 3 + j] = inertia[i, j]
            Ct[i, 3 + j], Ct[3 + i, 3 + j] = -force_rate[i, j], turn_rate[i, j]
            Kt[i, 3 + j], Kt[3 + i, 3 + j] = -force[i, j], turn[i, j]


@inner_kernel
def _elastic_tangent(
    row: Table,
    data: Array,
    A: Matrix3,
    acceleration: Vector3,
    omega: Vector3,
    alpha: Vector3,
    P: Array,
    Kt: Array,
    Ct: Array,
    Mt: Array,
) -> None:
    """Write the rows and columns of the elastic coordinates."""
    n = row[MODES]
    W, w = spin_rows_of(omega, alpha), skew3(omega)
    first, count = row[H_PAIRS], (n + 1) * (n + 1)
    pairs = product(data[first : first + 9 * count].reshape((count, 9)), elastic_weights(W, w))
    by_rate, by_spin = mm3(A, plus3(w, w)), mm3(A, W)
    for k in range(n):
        for i in range(n):
            pair, entry = (k + 1) * (n + 1) + i + 1, k * n + i
            Mt[6 + k, 6 + i] = data[row[MASS_MATRIX] + entry]
            Ct[6 + k, 6 + i] = data[row[DAMPING] + entry] + pairs[pair, 1]
            Kt[6 + k, 6 + i] = data[row[STIFFNESS] + entry] + pairs[pair, 0]
        s = vector3(data, row[FIRST_MOMENTS] + 3 * k + 3)
        P0, P1, P2 = squares3(P[k + 1])
        other = transposed3(P0)
        both = plus3(P0, other)
        by_q = add3(axial_product3(both, W), scaled3(2.0, axial_product3(P1, w)))
        by_q = add3(by_q, add3(axial3(P2), cross3(s, acceleration)))
        push = scaled3(-2.0 * (P0[0][0] + P0[1][1] + P0[2][2]), omega)
        push = add3(push, add3(mv3(both, omega), scaled3(2.0, axial3(transposed3(P1)))))
        _write_mode(Mt, k + 6, mv3(A, s), axial3(other))
        _write_mode(Ct, k + 6, mv3(by_rate, s), scaled3(2.0, axial_product3(other, w)))
        _write_mode(Kt, k + 6, mv3(by_spin, s), by_q)
        put3(Mt[k + 6, :3], mv3(A, s))
        put3(Mt[k + 6, 3:6], axial3(other))
        put3(Ct[k + 6, 3:6], push)
        put3(Kt[k + 6, 3:6], cross3(s, acceleration))


@inner_kernel
def _write_mode(out: Array, column: int, force: Vector3, moment: Vector3) -> None:
    """Write a column of the rows of the frame."""
    out[0, column], out[1, column], out[2, column] = force
    out[3, column], out[4, column], out[5, column] = moment


@kernel
def wrench_tangents(table: Table, data: Array, q: Array, wrenches: Array, flat: Array) -> None:
    """Add the derivatives of the wrenches at the frames to those of `tangents`."""
    for b in range(table.shape[0]):
        row = table[b]
        n, A = row[MODES], orientation(row, q)
        Kt, _, _ = _matrices(row, flat)
        motion, jacobian = frame_motion(row, data, q)
        loads = np.zeros(6 * row[FRAMES])
        for k in range(row[FRAMES]):
            lever, theta = lever_and_turn(row, data, motion, k)
            force, moment = wrench_in(A, wrenches[row[FIRST_FRAME] + k])
            turn = np.array(plus3(mm3(skew3(lever), skew3(force)), skew3(moment)))
            for i in range(3):
                for j in range(3):
                    Kt[3 + i, 3 + j] -= turn[i, j]
            put3(loads[6 * k : 6 * k + 3], force)
            put3(loads[6 * k + 3 : 6 * k + 6], mv3(tangent3(theta), moment))
            if n > 0:
                _wrench_columns(jacobian[6 * k : 6 * k + 6], theta, force, moment, Kt)
        if row[BENDS] > 0:
            bend = tmv(matrix(data, row[BEND], 6 * row[BENDS], n * n), loads)
            for i in range(n):
                for j in range(n):
                    Kt[6 + i, 6 + j] += bend[i * n + j]


@inner_kernel
def _wrench_columns(
    jacobian: Array, theta: Vector3, force: Vector3, moment: Vector3, Kt: Array
) -> None:
    """Add the derivatives of a wrench at a frame that the modes have a part in."""
    by_turn = transposed3(mm3(tangent3(theta), skew3(moment)))
    slope = transposed3(tangent_derivative3(theta, moment))
    for i in range(jacobian.shape[1]):
        move = jacobian[0, i], jacobian[1, i], jacobian[2, i]
        turn = jacobian[3, i], jacobian[4, i], jacobian[5, i]
        arm, (x, y, z) = cross3(force, move), mv3(slope, turn)
        other = mv3(by_turn, turn)
        Kt[3, 6 + i] += arm[0]
        Kt[4, 6 + i] += arm[1]
        Kt[5, 6 + i] += arm[2]
        Kt[6 + i, 3] += arm[0] - other[0]
        Kt[6 + i, 4] += arm[1] - other[1]
        Kt[6 + i, 5] += arm[2] - other[2]
        for j in range(jacobian.shape[1]):
            Kt[6 + i, 6 + j] -= x * jacobian[3, j] + y * jacobian[4, j] + z * jacobian[5, j]


@kernel
def spin_tangents(table: Table, data: Array, q: Array, v: Array, a: Array, flat: Array) -> None:
    """Add the derivatives of the rows of the unit spins to those of `tangents`."""
    for b in range(table.shape[0]):
        row = table[b]
        n, i, j = row[MODES], row[FIRST_Q] + 7, row[FIRST_V] + 6
        Kt, Ct, Mt = _matrices(row, flat)
        if row[SPINS] == 0:
            continue
        omega, alpha = vector3(v, j - 3), vector3(a, j - 3)
        y, dJ = spin_parts(row, data, q[i : i + n])
        rate = v[j : j + n]
        w, rates = skew3(omega), mv(matrix(data, row[SPIN], 6 * n, n), rate)
        dJ_rate = spin_matrix(mv(y, rate))
        change = plus3(mm3(w, dJ), skew3(scaled3(-1.0, mv3(dJ, omega))))
        inertia, turn_rate = np.array(dJ), np.array(plus3(change, plus3(dJ_rate, dJ_rate)))
        for r in range(3):
            for c in range(3):
                Mt[3 + r, 3 + c] += inertia[r, c]
                Ct[3 + r, 3 + c] += turn_rate[r, c]
        products, unit = spin_products(omega), np.zeros(6)
        stiffness = tmv(matrix(data, row[SPIN], row[SPINS], n * n), products)
        for c in range(6):
            unit[c] = 1.0
            E = spin_matrix(unit)
            unit[c] = 0.0
            along = mv3(E, omega)
            inner = add3(mv3(E, alpha), cross3(omega, along))
            _spin_columns(y[c], rates[c * n : c * n + n], inner, along, Kt, Ct)
        for k in range(n):
            for i in range(n):
                Kt[6 + k, 6 + i] += stiffness[k * n + i]


@inner_kernel
def _spin_columns(
    y: Array, rate: Array, inner: Vector3, along: Vector3, Kt: Array, Ct: Array
) -> None:
    """Add the derivatives of one of the unit spins that the modes have a part in."""
    for k in range(y.shape[0]):
        by_q = scaled3(2.0, add3(scaled3(y[k], inner), scaled3(rate[k], along)))
        by_v = scaled3(2.0 * y[k], along)
        Kt[3, 6 + k] += by_q[0]
        Kt[4, 6 + k] += by_q[1]
        Kt[5, 6 + k] += by_q[2]
        Ct[3, 6 + k] += by_v[0]
        Ct[4, 6 + k] += by_v[1]
        Ct[5, 6 + k] += by_v[2]
        Ct[6 + k, 3] -= by_v[0]
        Ct[6 + k, 4] -= by_v[1]
        Ct[6 + k, 5] -= by_v[2]
