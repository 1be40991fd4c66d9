"""Kernels for the exact tangent of the equations of motion of a body in a floating frame.

See `dolfinx_mbd.kernels.floating_frame` for the equations and the notation.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.kernels.body_table import (
    BEND,
    DAMPING,
    FIRST_FRAME,
    FIRST_MOMENTS,
    FIRST_V,
    H_PAIRS,
    H_ROWS,
    MASS,
    MASS_MATRIX,
    NUM_BENDS,
    NUM_FRAMES,
    NUM_MODES,
    NUM_SPINS,
    SPIN,
    STIFFNESS,
    TANGENTS,
    matrix,
)
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.floating_frame import (
    elastic_weights,
    inertia_integrals,
    inertia_tensor,
    spin_matrix,
    spin_parts,
    spin_products,
    squares3,
    wrench_in,
)
from dolfinx_mbd.kernels.frames import clear, frame_motion, lever_and_rotation, orientation
from dolfinx_mbd.kernels.rotations import (
    axial3,
    axial_product3,
    skew3,
    tangent3,
    tangent_derivative3,
)
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Table,
    Vector3,
    add_column3,
    add_scaled33,
    cross3,
    mm3,
    mv3,
    put3,
    scaled3,
    sum3,
    sum33,
    tmv3,
    transposed3,
    vector3,
)
from dolfinx_mbd.kernels.vector_operations import product, weighted_sum


@kernel
def tangents(
    table: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
    flat: Array,
) -> None:
    """Compute the derivatives of all residuals with respect to increments of q, to v and to a.

    `flat` receives the three matrices (6+n, 6+n) of each body in sequence.
    """
    for b in range(table.shape[0]):
        row = table[b]
        size, start, j = 6 + row[NUM_MODES], row[TANGENTS], row[FIRST_V]
        Kt = matrix(flat, start, size, size)
        Ct = matrix(flat, start + size * size, size, size)
        Mt = matrix(flat, start + 2 * size * size, size, size)
        A = orientation(row, q)
        omega, alpha, a_origin = vector3(v, j + 3), vector3(a, j + 3), vector3(a, j)
        acceleration = tmv3(A, sum3(a_origin, scaled3(-1.0, vector3(gravity, 0))))
        X, P, s, Q = inertia_integrals(row, data, q, v, a)
        w = skew3(omega)
        W = sum33(skew3(alpha), mm3(w, w))
        _frame_tangent(data[row[MASS]], A, acceleration, omega, W, s, Q, Kt, Ct, Mt)
        if size > 6:
            _elastic_tangent(row, data, A, acceleration, omega, W, X, P, Kt, Ct, Mt)
        _add_wrenches(row, data, q, A, wrenches, Kt)
        if row[NUM_SPINS] > 0:
            _add_spins(row, data, q, v, alpha, Kt, Ct, Mt)


@inner_kernel
def _frame_tangent(
    m: float,
    A: Matrix3,
    acceleration: Vector3,
    omega: Vector3,
    W: Matrix3,
    s: Matrix3,
    Q: Array,
    Kt: Array,
    Ct: Array,
    Mt: Array,
) -> None:
    """Write the rows and columns of the body frame; set all other entries to zero."""
    s0, s1, s2 = s
    Q0, Q1, _ = squares3(Q)
    w, J, lever = skew3(omega), inertia_tensor(Q0), skew3(s0)
    clear(Kt)
    clear(Ct)
    clear(Mt)
    coupling = mm3(A, lever)
    Mt[0, 0] = Mt[1, 1] = Mt[2, 2] = m
    add_scaled33(Mt, 0, 3, -1.0, coupling)
    add_scaled33(Mt, 3, 0, -1.0, transposed3(coupling))
    add_scaled33(Mt, 3, 3, 1.0, J)
    inner = sum33(skew3(sum3(cross3(omega, s0), scaled3(2.0, s1))), mm3(w, lever))
    add_scaled33(Ct, 0, 3, -1.0, mm3(A, inner))
    add_scaled33(Ct, 3, 3, 1.0, sum33(mm3(w, J), skew3(scaled3(-1.0, mv3(J, omega)))))
    add_scaled33(Ct, 3, 3, 2.0, inertia_tensor(transposed3(Q1)))
    force = sum3(sum3(mv3(W, s0), scaled3(2.0, cross3(omega, s1))), s2)
    add_scaled33(Kt, 0, 3, -1.0, mm3(A, skew3(force)))
    add_scaled33(Kt, 3, 3, 1.0, mm3(lever, skew3(acceleration)))


@inner_kernel
def _elastic_tangent(
    row: Table,
    data: Array,
    A: Matrix3,
    acceleration: Vector3,
    omega: Vector3,
    W: Matrix3,
    X: Array,
    P: Array,
    Kt: Array,
    Ct: Array,
    Mt: Array,
) -> None:
    """Write the rows and columns of the elastic coordinates."""
    n, w = row[NUM_MODES], skew3(omega)
    weights = elastic_weights(W, w)
    H = matrix(data, row[H_PAIRS], 9, (n + 1) * (n + 1))
    by_values, by_rates = weighted_sum(weights[0], H), weighted_sum(weights[1], H)
    values, rates = P[0], P[1]
    flat = weighted_sum(X[2], matrix(data, row[H_ROWS], n + 1, 9 * n + 9))
    accelerations = matrix(flat, 0, 9, n + 1)
    # factors of ∫ρ ψ_k in the derivatives of the force by η̇_k and η_k
    by_rate, by_value = mm3(A, sum33(w, w)), mm3(A, W)
    for k in range(n):
        mass = data[row[MASS_MATRIX] + k * n : row[MASS_MATRIX] + k * n + n]
        damping = data[row[DAMPING] + k * n : row[DAMPING] + k * n + n]
        stiffness = data[row[STIFFNESS] + k * n : row[STIFFNESS] + k * n + n]
        first, last = (k + 1) * (n + 1) + 1, (k + 2) * (n + 1)  # columns (k + 1, 1 … n) of H
        pair, rate_pair = by_values[first:last], by_rates[first:last]
        M_row, C_row, K_row = Mt[6 + k, 6:], Ct[6 + k, 6:], Kt[6 + k, 6:]
        for i in range(n):
            M_row[i] = mass[i]
            C_row[i] = damping[i] + rate_pair[i]
            K_row[i] = stiffness[i] + pair[i]
        s = vector3(data, row[FIRST_MOMENTS] + 3 * k + 3)
        P0_transposed, P0 = square3(values, k + 1), transposed3(square3(values, k + 1))
        P1, P2 = transposed3(square3(rates, k + 1)), transposed3(square3(accelerations, k + 1))
        # Force and moment of the body frame per unit of η̈_k, then derivatives by η_k and η̇_k
        P0_sum, force, moment = sum33(P0, P0_transposed), mv3(A, s), axial3(P0_transposed)
        by_q = sum3(axial_product3(P0_sum, W), scaled3(2.0, axial_product3(P1, w)))
        by_q = sum3(by_q, sum3(axial3(P2), cross3(s, acceleration)))
        by_eta_rate = scaled3(-2.0 * (P0[0][0] + P0[1][1] + P0[2][2]), omega)
        by_eta_rate = sum3(
            by_eta_rate, sum3(mv3(P0_sum, omega), scaled3(2.0, axial3(transposed3(P1))))
        )
        add_column3(Mt, 0, k + 6, force)
        add_column3(Mt, 3, k + 6, moment)
        add_column3(Ct, 0, k + 6, mv3(by_rate, s))
        add_column3(Ct, 3, k + 6, scaled3(2.0, axial_product3(P0_transposed, w)))
        add_column3(Kt, 0, k + 6, mv3(by_value, s))
        add_column3(Kt, 3, k + 6, by_q)
        put3(Mt[k + 6], 0, force)
        put3(Mt[k + 6], 3, moment)
        put3(Ct[k + 6], 3, by_eta_rate)
        put3(Kt[k + 6], 3, cross3(s, acceleration))


@inner_kernel
def square3(x: Array, k: int) -> Matrix3:
    """Return column k of an array (9, ·), the nine entries of a matrix (3, 3) row by row."""
    return (x[0, k], x[1, k], x[2, k]), (x[3, k], x[4, k], x[5, k]), (x[6, k], x[7, k], x[8, k])


@inner_kernel
def _add_wrenches(
    row: Table, data: Array, q: Array, A: Matrix3, wrenches: Array, Kt: Array
) -> None:
    """Subtract the derivatives with respect to q of the generalized forces of the wrenches.

    The frames move by D η − ½ ηᵀBη with the matrices B (n, n) of `BEND`, one for each component of
    (d, θ). In the generalized forces on η, this gives the second derivative −B times the wrenches.
    """
    n = row[NUM_MODES]
    motion, jacobian = frame_motion(row, data, q)
    loads = np.zeros(6 * row[NUM_FRAMES])
    for k in range(row[NUM_FRAMES]):
        lever, theta = lever_and_rotation(row, data, motion, k)
        force, moment = wrench_in(A, wrenches[row[FIRST_FRAME] + k])
        add_scaled33(Kt, 3, 3, -1.0, sum33(mm3(skew3(lever), skew3(force)), skew3(moment)))
        put3(loads, 6 * k, force)
        put3(loads, 6 * k + 3, mv3(tangent3(theta), moment))
        if n > 0:
            _wrench_columns(jacobian, 6 * k, theta, force, moment, Kt)
    if row[NUM_BENDS] > 0:  # all frames then have matrices B, in the order of `loads`
        _add_weighted(loads, matrix(data, row[BEND], 6 * row[NUM_BENDS], n * n), n, Kt)


@inner_kernel
def _add_weighted(weights: Array, matrices: Array, n: int, Kt: Array) -> None:
    """Add a weighted sum of matrices (·, n²) to the rows and columns of the modes."""
    total = weighted_sum(weights, matrices)
    for i in range(n):
        target = Kt[6 + i]
        for j in range(n):
            target[6 + j] += total[i * n + j]


@inner_kernel
def _wrench_columns(
    jacobian: Array, line: int, theta: Vector3, force: Vector3, moment: Vector3, Kt: Array
) -> None:
    """Add the derivatives of a frame's wrench to the rows and columns of the modes."""
    n = jacobian.shape[1]
    moment_by_rotation = transposed3(mm3(tangent3(theta), skew3(moment)))
    by_theta = transposed3(tangent_derivative3(theta, moment))
    first, second, third = jacobian[line + 3], jacobian[line + 4], jacobian[line + 5]
    for i in range(n):
        move = jacobian[line, i], jacobian[line + 1, i], jacobian[line + 2, i]
        turn = jacobian[line + 3, i], jacobian[line + 4, i], jacobian[line + 5, i]
        moment_of_move, (x, y, z) = cross3(force, move), mv3(by_theta, turn)
        add_column3(Kt, 3, 6 + i, moment_of_move)
        modal = sum3(moment_of_move, scaled3(-1.0, mv3(moment_by_rotation, turn)))
        put3(Kt[6 + i], 3, sum3(vector3(Kt[6 + i], 3), modal))
        target = Kt[6 + i, 6:]
        for j in range(n):
            target[j] -= x * first[j] + y * second[j] + z * third[j]


@inner_kernel
def _add_spins(
    row: Table, data: Array, q: Array, v: Array, alpha: Vector3, Kt: Array, Ct: Array, Mt: Array
) -> None:
    """Add the derivatives of the stiffening moments and forces of the products ω_iω_j."""
    n, j = row[NUM_MODES], row[FIRST_V] + 6
    omega = vector3(v, j - 3)
    y, dJ = spin_parts(row, data, q)
    w, rates = skew3(omega), product(matrix(data, row[SPIN], 6 * n, n), v, j)
    add_scaled33(Mt, 3, 3, 1.0, dJ)
    add_scaled33(Ct, 3, 3, 1.0, sum33(mm3(w, dJ), skew3(scaled3(-1.0, mv3(dJ, omega)))))
    add_scaled33(Ct, 3, 3, 2.0, spin_matrix(product(y, v, j)))
    _add_weighted(spin_products(omega), matrix(data, row[SPIN], 6, n * n), n, Kt)
    unit = np.zeros(6)
    for c in range(row[NUM_SPINS]):
        unit[c] = 1.0
        E = spin_matrix(unit)  # ΔJ for ηᵀK_c η = 1; the derivative of ηᵀK_c η by η_k is 2 y_ck
        unit[c] = 0.0
        E_omega = mv3(E, omega)
        inner = sum3(mv3(E, alpha), cross3(omega, E_omega))
        for k in range(n):
            by_q = sum3(scaled3(y[c, k], inner), scaled3(rates[c * n + k], E_omega))
            by_v = scaled3(2.0 * y[c, k], E_omega)
            add_column3(Kt, 3, 6 + k, scaled3(2.0, by_q))
            add_column3(Ct, 3, 6 + k, by_v)
            put3(Ct[6 + k], 3, sum3(vector3(Ct[6 + k], 3), scaled3(-1.0, by_v)))
