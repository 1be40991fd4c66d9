"""Kernels for the equations of motion of a body in a floating frame.

Coordinates are q = (R, quaternion, η) and velocities v = (Ṙ, ω, η̇) with Ṙ in global and ω in body
components; increments (δR, δφ, δη) and residuals correspond to v. A rigid body has no η. A material
point has the position c = x + Ψη and the elastic displacement u = Ψη; ψ_k are the modes, ψ_0 = x.
The inertia forces follow from S_k = ∫ρ ψ_k and H of `dolfinx_mbd.body.ReducedBody` and from three
products:

    P = ∫ρ ψ_k⊗c,   Ṗ = ∫ρ ψ_k⊗u̇,   P̈ = ∫ρ ψ_k⊗ü     (products of H with (1, η), η̇, η̈)

With the mass m, s = ∫ρ c and W = α̃ + ω̃ω̃, the residual without wrenches is

    force     m a + W s + 2ω̃ ṡ + s̈
    moment    s×a + axial(Q Wᵀ + 2 Q̇ ω̃ᵀ + Q̈)
    elastic   S·a + W:P + 2ω̃:Ṗ + M η̈ + C η̇ + K η

with Q = ∫ρ c⊗c, Q̇ = ∫ρ c⊗u̇ and Q̈ = ∫ρ c⊗ü, where the dots are not derivatives of Q, and with
a = Aᵀ(R̈ − g), so that gravity needs no separate term. M, C and K are the mass, damping and
stiffness matrices of the modes. `H_ROWS` is H with rows (k, a, b) and columns l, `H_PAIRS` is H
with rows (a, b) and columns (k, l).

Geometric stiffening enters as quadratic kinematics (`dolfinx_mbd.body.Stiffening`). A body may have
the matrices K_ij of unit products ω_iω_j with i ≤ j, stored as `SPIN`. They change the inertia
tensor and add forces,

    ΔJ_ii = −ηᵀK_ii η,  ΔJ_ij = −½ ηᵀK_ij η
    moment ΔJ α + ω×ΔJ ω + ΔJ̇ ω,   elastic Σ_{i≤j} ω_iω_j K_ij η

The elastic term is −∂/∂η of ½ ω·ΔJ ω. `BEND` contains the matrices for unit wrenches at the
frames.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels import array_versions
from dolfinx_mbd.kernels.body_table import (
    DAMPING,
    FIRST_FRAME,
    FIRST_MOMENTS,
    FIRST_Q,
    FIRST_V,
    H_ROWS,
    MASS,
    MASS_MATRIX,
    NUM_FRAMES,
    NUM_MODES,
    NUM_SPINS,
    SPIN,
    STIFFNESS,
    matrix,
)
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel, without_numba
from dolfinx_mbd.kernels.frames import frame_motion, lever_and_rotation, orientation
from dolfinx_mbd.kernels.rotations import (
    axial3,
    axial_product3,
    quaternion_exp,
    quaternion_product,
    skew3,
    tangent_times,
)
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Table,
    Vector3,
    cross3,
    dot3,
    mm3,
    mv3,
    put3,
    scaled3,
    sum3,
    sum33,
    tmv3,
    vector3,
)
from dolfinx_mbd.kernels.vector_operations import product, weighted_sum


@kernel
def increment(table: Table, q: Array, delta: Array, out: Array) -> None:
    """Compute q ∘ exp(δ): add δR and δη, rotate by δφ in body components."""
    for b in range(table.shape[0]):
        i, j = table[b, FIRST_Q], table[b, FIRST_V]
        put3(out, i, sum3(vector3(q, i), vector3(delta, j)))
        p = quaternion_product(
            (q[i + 3], q[i + 4], q[i + 5], q[i + 6]), quaternion_exp(vector3(delta, j + 3))
        )
        out[i + 3], out[i + 4], out[i + 5], out[i + 6] = p
        for k in range(table[b, NUM_MODES]):
            out[i + 7 + k] = q[i + 7 + k] + delta[j + 6 + k]


@without_numba(array_versions.inertia_integrals)
@inner_kernel
def inertia_integrals(
    row: Table, data: Array, q: Array, v: Array, a: Array
) -> tuple[Array, Array, Matrix3, Array]:
    """Return X, P, the integrals of ρ(c, u̇, ü), and Q, Q̇ and Q̈ in 9·3 numbers.

    X = ((1, η), (0, η̇), (0, η̈)) has the shape (3, n+1). P (2, 9, n+1) contains ∫ρ c⊗ψ_l and
    ∫ρ u̇⊗ψ_l.
    """
    n, i, j = row[NUM_MODES], row[FIRST_Q] + 7, row[FIRST_V] + 6
    X = np.zeros((3, n + 1))
    X[0, 0] = 1.0
    s0, s1, s2 = vector3(data, row[FIRST_MOMENTS]), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
    for k in range(n):
        x, y, z = q[i + k], v[j + k], a[j + k]
        X[0, k + 1], X[1, k + 1], X[2, k + 1] = x, y, z
        S = vector3(data, row[FIRST_MOMENTS] + 3 * k + 3)
        s0, s1, s2 = sum3(s0, scaled3(x, S)), sum3(s1, scaled3(y, S)), sum3(s2, scaled3(z, S))
    H, P = matrix(data, row[H_ROWS], n + 1, 9 * n + 9), np.zeros((2, 9 * n + 9))
    values, rates = P[0], P[1]
    for k in range(n + 1):  # faster than BLAS, because H is read once
        x, y, line = X[0, k], X[1, k], H[k]
        for c in range(9 * n + 9):
            values[c] += x * line[c]
            rates[c] += y * line[c]
    Q = np.empty(27)
    for c in range(9):
        q0, q1, q2, first = 0.0, 0.0, 0.0, c * (n + 1)
        for k in range(n + 1):
            value = values[first + k]
            q0, q1, q2 = q0 + value * X[0, k], q1 + value * X[1, k], q2 + value * X[2, k]
        Q[3 * c], Q[3 * c + 1], Q[3 * c + 2] = q0, q1, q2
    return X, P.reshape((2, 9, n + 1)), (s0, s1, s2), Q


@inner_kernel
def squares3(Q: Array) -> tuple[Matrix3, Matrix3, Matrix3]:
    """Return the three columns of an array (9·3,) as square matrices."""
    return (
        ((Q[0], Q[3], Q[6]), (Q[9], Q[12], Q[15]), (Q[18], Q[21], Q[24])),
        ((Q[1], Q[4], Q[7]), (Q[10], Q[13], Q[16]), (Q[19], Q[22], Q[25])),
        ((Q[2], Q[5], Q[8]), (Q[11], Q[14], Q[17]), (Q[20], Q[23], Q[26])),
    )


@inner_kernel
def inertia_tensor(Q: Matrix3) -> Matrix3:
    """Return J = tr(Q) I − Q of a second moment Q = ∫ρ c⊗c."""
    return (
        (Q[1][1] + Q[2][2], -Q[0][1], -Q[0][2]),
        (-Q[1][0], Q[0][0] + Q[2][2], -Q[1][2]),
        (-Q[2][0], -Q[2][1], Q[0][0] + Q[1][1]),
    )


@inner_kernel
def elastic_weights(W: Matrix3, w: Matrix3) -> Array:
    """Return W, the weights of P, and 2ω̃, those of Ṗ, in the elastic residual; shape (2, 9).

    `w` is ω̃. The term with P̈ needs no weights, because it is M η̈.
    """
    out = np.zeros((2, 9))
    for k in range(2):
        A = sum33(w, w) if k else W
        put3(out[k], 0, A[0])
        put3(out[k], 3, A[1])
        put3(out[k], 6, A[2])
    return out


@kernel
def residual(
    table: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
    out: Array,
    scale: Array,
) -> None:
    """Compute the residual (nv,): inertia, gravity and elastic forces minus wrenches.

    `wrenches` (frames, 6) contains force and moment at each frame's point in global components.
    `scale` (nv,) receives the sum of the magnitudes of the terms, for relative tolerances. These
    are the magnitudes of the forces on points and frames, which may cancel in the residual.
    """
    for b in range(table.shape[0]):
        row = table[b]
        j, m, A = row[FIRST_V], data[row[MASS]], orientation(row, q)
        omega, alpha, a_origin = vector3(v, j + 3), vector3(a, j + 3), vector3(a, j)
        g = vector3(gravity, 0)
        acceleration = tmv3(A, sum3(a_origin, scaled3(-1.0, g)))
        _, P, s, Q = inertia_integrals(row, data, q, v, a)
        w = skew3(omega)
        W = sum33(skew3(alpha), mm3(w, w))
        force, moment = frame_forces(m, A, acceleration, omega, W, s, Q)
        Q0, _, _ = squares3(Q)
        # bound of the inertia forces of all material points, even if they cancel; `radius` is their
        # radius of gyration about the origin of the frame
        radius = math.sqrt((Q0[0][0] + Q0[1][1] + Q0[2][2]) / m)
        spread = math.sqrt(dot3(alpha, alpha)) + dot3(omega, omega)
        size = m * (math.sqrt(dot3(a_origin, a_origin)) + math.sqrt(dot3(g, g)) + radius * spread)
        if row[NUM_MODES] > 0:
            weights = elastic_weights(W, w)
            size = _elastic_rows(row, data, q, v, a, P, weights, acceleration, size, out, scale)
        put3(out, j, force)
        put3(out, j + 3, moment)
        put3(scale, j, (size, size, size))
        put3(scale, j + 3, (radius * size, radius * size, radius * size))
        add_wrench_rows(row, data, q, A, wrenches, out, scale)
        if row[NUM_SPINS] > 0:
            add_spin_rows(row, data, q, v, a, out, scale)


@inner_kernel
def frame_forces(
    m: float,
    A: Matrix3,
    acceleration: Vector3,
    omega: Vector3,
    W: Matrix3,
    s: Matrix3,
    Q: Array,
) -> tuple[Vector3, Vector3]:
    """Return inertia and gravity forces on the body frame: global force, moment in the body."""
    s0, s1, s2 = s
    Q0, Q1, Q2 = squares3(Q)
    force = sum3(scaled3(m, acceleration), sum3(mv3(W, s0), s2))
    force = mv3(A, sum3(force, scaled3(2.0, cross3(omega, s1))))
    moment = sum3(cross3(s0, acceleration), axial_product3(Q0, W))
    moment = sum3(moment, scaled3(2.0, axial_product3(Q1, skew3(omega))))
    return force, sum3(moment, axial3(Q2))


@without_numba(array_versions.elastic_forces)
@inner_kernel
def elastic_forces(
    row: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    P: Array,
    weights: Array,
    acceleration: Vector3,
) -> tuple[Array, Array, Array, Array]:
    """Return inertia, elastic and damping forces on the modes, and the inertia forces M η̈."""
    n, i, j, S = row[NUM_MODES], row[FIRST_Q] + 7, row[FIRST_V] + 6, row[FIRST_MOMENTS]
    moving = np.zeros(n)  # W:P + 2ω̃:Ṗ of each mode, from the transposes in `P`
    for c in range(3):
        for d in range(3):
            x, y = weights[0, 3 * c + d], weights[1, 3 * c + d]
            values, rates = P[0, 3 * d + c], P[1, 3 * d + c]
            for k in range(n):
                moving[k] += x * values[k + 1] + y * rates[k + 1]
    eta_inertia = product(matrix(data, row[MASS_MATRIX], n, n), a, j)
    elastic = product(matrix(data, row[STIFFNESS], n, n), q, i)
    damping = product(matrix(data, row[DAMPING], n, n), v, j)
    for k in range(n):
        moving[k] += dot3(vector3(data, S + 3 * k + 3), acceleration) + eta_inertia[k]
    return moving, elastic, damping, eta_inertia


@without_numba(array_versions.elastic_rows)
@inner_kernel
def _elastic_rows(
    row: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    P: Array,
    weights: Array,
    acceleration: Vector3,
    size: float,
    out: Array,
    scale: Array,
) -> float:
    """Write the elastic residual; return `size` plus the contribution of η̈."""
    n, j, m, M = row[NUM_MODES], row[FIRST_V] + 6, data[row[MASS]], row[MASS_MATRIX]
    inertia, elastic, damping, eta_inertia = elastic_forces(
        row, data, q, v, a, P, weights, acceleration
    )
    squared = 0.0
    for k in range(n):
        squared += a[j + k] * eta_inertia[k]
    size += math.sqrt(m * abs(squared))  # mass times the root mean square of the acceleration by η̈
    for k in range(n):  # the last term bounds the work of all inertia forces on a mode
        out[j + k] = inertia[k] + elastic[k] + damping[k]
        terms = abs(inertia[k]) + abs(elastic[k]) + abs(damping[k])
        scale[j + k] = terms + size * math.sqrt(data[M + k * (n + 1)] / m)
    return size


@inner_kernel
def add_wrench_rows(
    row: Table, data: Array, q: Array, A: Matrix3, wrenches: Array, out: Array, scale: Array
) -> None:
    """Subtract the wrenches at the frames of a body from its residual."""
    j = row[FIRST_V]
    motion, jacobian = frame_motion(row, data, q)
    loads = np.zeros(6 * row[NUM_FRAMES])
    for k in range(row[NUM_FRAMES]):
        lever, theta = lever_and_rotation(row, data, motion, k)
        wrench = wrenches[row[FIRST_FRAME] + k]
        f, moment = wrench_in(A, wrench)
        torque = sum3(cross3(lever, f), moment)
        size = math.sqrt(dot3(lever, lever) * dot3(f, f)) + math.sqrt(dot3(moment, moment))
        put3(out, j + 3, sum3(vector3(out, j + 3), scaled3(-1.0, torque)))
        if row[NUM_MODES] > 0:
            put3(loads, 6 * k, f)
            put3(loads, 6 * k + 3, tangent_times(theta, moment))
        for c in range(3):
            out[j + c] -= wrench[c]
            scale[j + c] += abs(wrench[c])
            scale[j + 3 + c] += size
    _subtract_loads(loads, jacobian, j + 6, out, scale)


@without_numba(array_versions.subtract_loads)
@inner_kernel
def _subtract_loads(loads: Array, jacobian: Array, first: int, out: Array, scale: Array) -> None:
    """Subtract the forces of loads on the modes from the residual from the row `first` on."""
    for c in range(jacobian.shape[0]):
        for i in range(jacobian.shape[1]):
            force = loads[c] * jacobian[c, i]
            out[first + i] -= force
            scale[first + i] += abs(force)


@inner_kernel
def wrench_in(A: Matrix3, wrench: Array) -> tuple[Vector3, Vector3]:
    """Return force and moment in body components."""
    return tmv3(A, vector3(wrench, 0)), tmv3(A, vector3(wrench, 3))


@inner_kernel
def spin_parts(row: Table, data: Array, q: Array) -> tuple[Array, Matrix3]:
    """Return K_ij η (6, n) for unit ω_iω_j, and ΔJ with ΔJ_ii = −ηᵀK_ii η, ΔJ_ij = −½ ηᵀK_ij η."""
    n, i = row[NUM_MODES], row[FIRST_Q] + 7
    y = matrix(product(matrix(data, row[SPIN], 6 * n, n), q, i), 0, 6, n)
    return y, spin_matrix(product(y, q, i))


@inner_kernel
def spin_matrix(e: Array) -> Matrix3:
    """Return −A with ωᵀA ω = Σ e_k p_k for the products p of `spin_products`."""
    xy, yz, zx = -0.5 * e[3], -0.5 * e[4], -0.5 * e[5]
    return (-e[0], xy, zx), (xy, -e[1], yz), (zx, yz, -e[2])


@inner_kernel
def spin_products(omega: Vector3) -> Array:
    """Return ω_iω_j in the order xx, yy, zz, xy, yz, zx; shape (6,)."""
    (x, y, z), out = omega, np.zeros(6)
    put3(out, 0, (x * x, y * y, z * z))
    put3(out, 3, (x * y, y * z, z * x))
    return out


@inner_kernel
def add_spin_rows(
    row: Table, data: Array, q: Array, v: Array, a: Array, out: Array, scale: Array
) -> None:
    """Add the stiffening moments ΔJα + ω×ΔJω + ΔJ̇ω and elastic forces Σ ω_iω_j K_ij η."""
    n, j = row[NUM_MODES], row[FIRST_V] + 6
    omega, alpha = vector3(v, j - 3), vector3(a, j - 3)
    y, dJ = spin_parts(row, data, q)
    force = weighted_sum(spin_products(omega), y)
    for k in range(n):
        out[j + k] += force[k]
        scale[j + k] += abs(force[k])
    # the rate of ηᵀKη is 2 η̇ᵀKη: `rate` is half of ΔJ̇ ω
    rate = mv3(spin_matrix(product(y, v, j)), omega)
    moment = sum3(mv3(dJ, alpha), cross3(omega, mv3(dJ, omega)))
    put3(out, j - 3, sum3(vector3(out, j - 3), sum3(moment, scaled3(2.0, rate))))


@kernel
def integrals(table: Table, data: Array, q: Array, v: Array, gravity: Array) -> Array:
    """Return kinetic, elastic and gravitational energy and momenta of a body, shape (9,).

    The momenta are linear and angular momentum about the global origin in global components.
    """
    row = table[0]
    n, m, A, origin = row[NUM_MODES], data[row[MASS]], orientation(row, q), vector3(q, row[FIRST_Q])
    V, omega = tmv3(A, vector3(v, row[FIRST_V])), vector3(v, row[FIRST_V] + 3)
    _, _, (s0, s1, _), Q = inertia_integrals(row, data, q, v, v)
    Q0, Q1, _ = squares3(Q)
    J, i, j = inertia_tensor(Q0), row[FIRST_Q] + 7, row[FIRST_V] + 6
    if row[NUM_SPINS] > 0:
        J = sum33(J, spin_parts(row, data, q)[1])
    # `inner` is ∫ρ (ω×c + u̇), and `swing` is ∫ρ c×u̇
    spin, swing, inner = mv3(J, omega), axial3(Q1), sum3(cross3(omega, s0), s1)
    kinetic = 0.5 * m * dot3(V, V) + dot3(V, inner) + 0.5 * dot3(omega, spin) + dot3(omega, swing)
    inertia = product(matrix(data, row[MASS_MATRIX], n, n), v, j)
    spring_force, elastic = product(matrix(data, row[STIFFNESS], n, n), q, i), 0.0
    for k in range(n):
        kinetic += 0.5 * v[j + k] * inertia[k]
        elastic += 0.5 * q[i + k] * spring_force[k]
    lever = sum3(scaled3(m, origin), mv3(A, s0))
    linear = mv3(A, sum3(scaled3(m, V), inner))
    about_frame = mv3(A, sum3(cross3(s0, V), sum3(spin, swing)))
    out = np.zeros(9)
    put3(out, 0, (kinetic, elastic, -dot3(lever, vector3(gravity, 0))))
    put3(out, 3, linear)
    put3(out, 6, sum3(cross3(origin, linear), about_frame))
    return out
