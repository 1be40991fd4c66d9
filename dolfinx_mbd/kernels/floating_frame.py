"""Kernels of a body in a floating frame: its equations of motion and their exact tangent.

Coordinates are q = (R, quaternion, η), velocities v = (Ṙ global, ω body, η̇), increments and rows
the same (δR global, δφ body, δη).  A rigid body has no η.  All inertia is contracted from S and H
of :class:`~dolfinx_mbd.body.ReducedBody`: with c = x + Ψη and the three products

    P = ∫ρ ψ_k⊗c,   Ṗ = ∫ρ ψ_k⊗u̇,   P̈ = ∫ρ ψ_k⊗ü     (one matrix product of H with (1, η), η̇, η̈)

and W = α̃ + ω̃ω̃ the rows are

    force     m a + W s + 2ω̃ ṡ + s̈
    moment    s×a + axial(Q Wᵀ + 2 Q̇ ω̃ᵀ + Q̈),     Q = ∫ρ c⊗c, ...
    elastic   S·a + W:P + 2ω̃:Ṗ + M η̈ + C η̇ + K η

with a = Aᵀ(R̈ − g), so that gravity needs no term of its own.  ``H_rows`` holds H with rows (k, a,
b) and columns l, ``H_pairs`` with rows (k, l) and columns (a, b).

Geometric stiffening enters as quadratic kinematics (:class:`~dolfinx_mbd.body.Stiffening`).  The
matrices ``spin`` K_ij of the unit spins ω_iω_j (none: shape (0, n, n)) change the inertia tensor,

    ΔJ_ii = −ηᵀK_ii η,  ΔJ_ij = −½ ηᵀK_ij η,   moment ΔJ α + ω×ΔJ ω + ΔJ̇ ω,   elastic Σ ω_iω_j K_ij
    η

(the elastic row is −∂/∂η of ½ ω·ΔJ ω), and ``bend`` those of the unit wrenches at the frames.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import kernel
from dolfinx_mbd.kernels.frames import frame_motion
from dolfinx_mbd.kernels.rotations import (
    axial,
    axial3,
    axial_product3,
    rotation_matrix,
    rotation_rows,
    skew,
    skew3,
    tangent,
    tangent_derivative,
    tangent_times,
    turned,
    turning,
)
from dolfinx_mbd.kernels.small_vectors import (
    Matrix3,
    Vector3,
    add3,
    cross3,
    dot,
    dot3,
    identity,
    mm,
    mv,
    mv3,
    outer,
    row3,
    rows3,
    scaled3,
    tmv,
    tmv3,
    transposed3,
    vector3,
)

__all__ = [
    "body_energies",
    "body_momenta",
    "body_residual",
    "body_tangent",
    "increment",
]

Array = NDArray[np.float64]


@kernel
def increment(q: Array, delta: Array, out: Array) -> None:
    """q ∘ exp(δ): translations and η add, the rotation turns by δφ in body components."""
    p = turned((q[3], q[4], q[5], q[6]), turning(vector3(delta, 3)))
    for i in range(3):
        out[i] = q[i] + delta[i]
    for i in range(4):
        out[3 + i] = p[i]
    out[7:] = q[7:] + delta[6:]


@kernel
def _products(
    H_rows: Array, S: Array, q: Array, v: Array, a: Array
) -> tuple[Array, Array, Array, Array]:
    """X = ((1, η), (0, η̇), (0, η̈)), s = ∫ρ(c, u̇, ü), P (n+1, 9·3) and Q (9, 3), as above."""
    n1 = S.shape[0]
    X = np.zeros((n1, 3))
    X[0, 0] = 1.0
    X[1:, 0] = q[7:]
    X[1:, 1] = v[6:]
    X[1:, 2] = a[6:]
    P = (H_rows @ X).reshape(n1, 27)  # the one product that is worth a call of BLAS
    Q = tmv(P, X[:, 0]).reshape(9, 3)
    s = mm(X.T, S)
    return X, s, P, Q


@kernel
def _square(Q: Array, j: int) -> Array:
    """Column j of a (9, 3) array as a 3×3 matrix."""
    A = np.empty((3, 3))
    for i in range(3):
        for k in range(3):
            A[i, k] = Q[3 * i + k, j]
    return A


@kernel
def _inertia_tensor(Q: Array) -> Array:
    """J = tr(Q) I − Q of a second moment Q = ∫ρ c⊗c."""
    return identity(Q[0, 0] + Q[1, 1] + Q[2, 2]) - Q


@kernel
def _spin_rows_of(omega: Vector3, alpha: Vector3) -> Matrix3:
    """W = α̃ + ω̃ω̃ by rows; ω̃ω̃ = ω⊗ω − |ω|² I."""
    x, y, z = omega
    return (
        (-(y * y + z * z), x * y - alpha[2], x * z + alpha[1]),
        (x * y + alpha[2], -(x * x + z * z), y * z - alpha[0]),
        (x * z - alpha[1], y * z + alpha[0], -(x * x + y * y)),
    )


@kernel
def _weights(W: Matrix3, w: Matrix3) -> Array:
    """Weights (9·3) that contract P and Ṗ to the elastic rows: W and 2ω̃ (Mη̈ stands for P̈)."""
    weights = np.zeros(27)
    for i in range(3):
        for j in range(3):
            weights[9 * i + 3 * j] = W[i][j]
            weights[9 * i + 3 * j + 1] = 2.0 * w[i][j]
    return weights


@kernel
def _square3(Q: Array, j: int) -> Matrix3:
    """Column j of a (9, 3) array as a 3×3 matrix by rows."""
    return (
        (Q[0, j], Q[1, j], Q[2, j]),
        (Q[3, j], Q[4, j], Q[5, j]),
        (Q[6, j], Q[7, j], Q[8, j]),
    )


@kernel
def body_residual(
    m: float,
    S: Array,
    H_rows: Array,
    M: Array,
    C: Array,
    K: Array,
    spin: Array,
    points: Array,
    motion: Array,
    bend: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
    out: Array,
    scale: Array,
) -> None:
    """Inertia, gravity and elastic forces, less the wrenches at the frames; shape (6+n,).

    ``wrenches`` (F, 6) holds force and moment about each frame's point, in global components.
    ``scale`` (6+n,) receives the sum of the magnitudes of the terms, for relative tolerances. It
    counts the forces of the material points and at the frames even where their sum vanishes.
    """
    A = rotation_rows(q[3], q[4], q[5], q[6])
    omega, alpha = vector3(v, 3), vector3(a, 3)
    pull = vector3(gravity, 0)
    acceleration = tmv3(A, (a[0] - pull[0], a[1] - pull[1], a[2] - pull[2]))
    X, s, P, Q = _products(H_rows, S, q, v, a)
    W, w = _spin_rows_of(omega, alpha), skew3(omega)
    s0 = row3(s, 0)

    force = add3(scaled3(m, acceleration), add3(mv3(W, s0), row3(s, 2)))
    force = mv3(A, add3(force, scaled3(2.0, cross3(omega, row3(s, 1)))))
    turn = add3(cross3(s0, acceleration), axial_product3(_square3(Q, 0), W))
    turn = add3(turn, scaled3(2.0, axial_product3(_square3(Q, 1), w)))
    turn = add3(turn, axial3(_square3(Q, 2)))
    # magnitude of the inertia forces of all material points, also where their sum vanishes
    radius = math.sqrt((Q[0, 0] + Q[4, 0] + Q[8, 0]) / m)
    spread = math.sqrt(dot3(alpha, alpha)) + dot3(omega, omega)
    total = vector3(a, 0)
    size = m * (math.sqrt(dot3(total, total)) + math.sqrt(dot3(pull, pull)) + radius * spread)
    n = S.shape[0] - 1
    if n > 0:
        own = mv(M, a[6:])
        size += math.sqrt(m * abs(dot(a[6:], own)))
        inertia = (mv(P, _weights(W, w)) + mv(S, np.array(acceleration)))[1:] + own
        elastic = mv(K, q[7:])
        damping = mv(C, v[6:])
        out[6:] = inertia + elastic + damping
        scale[6:] = np.abs(inertia) + np.abs(elastic) + np.abs(damping)
        for k in range(n):  # (the inertia forces of all points cannot do more work on a mode)
            scale[6 + k] += size * math.sqrt(M[k, k] / m)
    if spin.shape[0] > 0:
        more, push = _spin_rows(spin, q[7:], v[6:], np.array(omega), np.array(alpha))
        turn = add3(turn, vector3(more, 0))
        out[6:] += push
        scale[6:] += np.abs(push)
    for i in range(3):
        out[i], out[3 + i] = force[i], turn[i]
        scale[i], scale[3 + i] = size, radius * size
    lever, theta, jacobian = frame_motion(points, motion, bend, q)
    for k in range(points.shape[0]):
        f, moment = tmv3(A, row3(wrenches, k)), tmv3(A, vector3(wrenches[k], 3))
        arm = row3(lever, k)
        turn = add3(cross3(arm, f), moment)
        turn_size = math.sqrt(dot3(arm, arm) * dot3(f, f)) + math.sqrt(dot3(moment, moment))
        for i in range(3):
            out[i] -= wrenches[k, i]
            out[3 + i] -= turn[i]
            scale[i] += abs(wrenches[k, i])
            scale[3 + i] += turn_size
        if n > 0:
            twist = tangent_times(row3(theta, k), moment)
            load = np.array((f[0], f[1], f[2], twist[0], twist[1], twist[2]))
            out[6:] -= tmv(jacobian[k], load)
            scale[6:] += tmv(np.abs(jacobian[k]), np.abs(load))


@kernel
def _spin_parts(spin: Array, eta: Array) -> tuple[Array, Array]:
    """Kη (6, n) of the unit spins, and ΔJ (3, 3) with ΔJ_ii = −ηᵀK_ii η, ΔJ_ij = −½ ηᵀK_ij η."""
    y = np.zeros((6, eta.shape[0]))
    e = np.zeros(6)
    for c in range(6):
        y[c] = mv(spin[c], eta)
        e[c] = dot(y[c], eta)
    return y, _spin_matrix(e)


@kernel
def _spin_matrix(e: Array) -> Array:
    """−(e₀ e₃/2 e₅/2; e₃/2 e₁ e₄/2; e₅/2 e₄/2 e₂): the six products xx yy zz xy yz zx as a
    matrix.
    """
    return -np.array(
        [
            [e[0], 0.5 * e[3], 0.5 * e[5]],
            [0.5 * e[3], e[1], 0.5 * e[4]],
            [0.5 * e[5], 0.5 * e[4], e[2]],
        ]
    )


@kernel
def _spin_products(omega: Array) -> Array:
    """ω_iω_j in the order xx, yy, zz, xy, yz, zx; shape (6,)."""
    x, y, z = omega[0], omega[1], omega[2]
    return np.array([x * x, y * y, z * z, x * y, y * z, z * x])


@kernel
def _spin_rows(
    spin: Array, eta: Array, rate: Array, omega: Array, alpha: Array
) -> tuple[Array, Array]:
    """Moment ΔJα + ω×ΔJω + ΔJ̇ω (3,) and elastic row Σ ω_iω_j K_ij η (n,)."""
    y, dJ = _spin_parts(spin, eta)
    dJ_rate = _spin_matrix(2.0 * mv(y, rate))
    turn = mv(dJ, alpha) + mv(skew(omega), mv(dJ, omega)) + mv(dJ_rate, omega)
    return turn, mv(y.T, _spin_products(omega))


@kernel
def body_tangent(
    m: float,
    S: Array,
    H_rows: Array,
    H_pairs: Array,
    M: Array,
    C: Array,
    K: Array,
    spin: Array,
    points: Array,
    motion: Array,
    bend: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
) -> tuple[Array, Array, Array]:
    """Derivatives of :func:`body_residual` to q (increments), v and a; (6+n, 6+n) each."""
    n = S.shape[0] - 1
    nv = 6 + n
    Kt, Ct, Mt = np.zeros((nv, nv)), np.zeros((nv, nv)), np.zeros((nv, nv))
    A = rotation_matrix(q[3:7])
    omega, alpha = v[3:6], a[3:6]
    acceleration = mv(A.T, a[:3] - gravity)
    X, s, P, Q = _products(H_rows, S, q, v, a)
    W = np.array(_spin_rows_of(vector3(v, 3), vector3(a, 3)))
    w = skew(omega)
    s0, s1 = skew(s[0]), skew(s[1])
    turn_a = skew(acceleration)
    Q0, Q1 = _square(Q, 0), _square(Q, 1)
    J = _inertia_tensor(Q0)

    # frame against frame
    Mt[:3, :3] = identity(m)
    Mt[:3, 3:6] = -mm(A, s0)
    Mt[3:6, :3] = mm(s0, A.T)
    Mt[3:6, 3:6] = J
    Ct[:3, 3:6] = -mm(A, skew(mv(w, s[0])) + mm(w, s0) + 2.0 * s1)
    Ct[3:6, 3:6] = mm(w, J) - skew(mv(J, omega)) + 2.0 * _inertia_tensor(Q1.T)
    Kt[:3, 3:6] = -mm(A, skew(mv(W, s[0]) + 2.0 * mv(w, s[1]) + s[2]))
    Kt[3:6, 3:6] = mm(s0, turn_a)

    if n > 0:
        _elastic_tangent(S, H_pairs, M, C, K, A, acceleration, omega, W, w, P, Kt, Ct, Mt)
    if spin.shape[0] > 0:
        _spin_tangent(spin, q[7:], v[6:], omega, alpha, Kt, Ct, Mt)
    lever, theta, jacobian = frame_motion(points, motion, bend, q)
    for k in range(points.shape[0]):
        force, moment = mv(A.T, wrenches[k, :3]), mv(A.T, wrenches[k, 3:])
        f = skew(force)
        Kt[3:6, 3:6] -= mm(skew(lever[k]), f) + skew(moment)
        if n > 0:
            D, turn = jacobian[k, :3], jacobian[k, 3:]
            T = tangent(theta[k])
            Kt[3:6, 6:] += mm(f, D)
            Kt[6:, 3:6] -= mm(D.T, f) + mm(turn.T, mm(T, skew(moment)))
            Kt[6:, 6:] -= mm(turn.T, mm(tangent_derivative(theta[k], moment), turn))
            if bend.shape[0] > 0:
                twist = mv(T, moment)
                for i in range(3):
                    Kt[6:, 6:] += force[i] * bend[k, i] + twist[i] * bend[k, i + 3]
    return Kt, Ct, Mt


@kernel
def _spin_tangent(
    spin: Array,
    eta: Array,
    rate: Array,
    omega: Array,
    alpha: Array,
    Kt: Array,
    Ct: Array,
    Mt: Array,
) -> None:
    """Add the derivatives of :func:`_spin_rows`."""
    y, dJ = _spin_parts(spin, eta)
    y_rate = np.zeros_like(y)
    for c in range(6):
        y_rate[c] = mv(spin[c], rate)
    w = skew(omega)
    Mt[3:6, 3:6] += dJ
    Ct[3:6, 3:6] += mm(w, dJ) - skew(mv(dJ, omega)) + _spin_matrix(2.0 * mv(y, rate))
    products, unit = _spin_products(omega), np.zeros(6)
    for c in range(6):
        unit[:] = 0.0
        unit[c] = 1.0
        E = _spin_matrix(unit)
        along = mv(E, omega)
        inner = mv(E, alpha) + mv(w, along)
        Kt[6:, 6:] += products[c] * spin[c]
        Kt[3:6, 6:] += 2.0 * (outer(inner, y[c]) + outer(along, y_rate[c]))
        Ct[3:6, 6:] += 2.0 * outer(along, y[c])
        Ct[6:, 3:6] -= 2.0 * outer(y[c], along)


@kernel
def _elastic_tangent(
    S: Array,
    H_pairs: Array,
    M: Array,
    C: Array,
    K: Array,
    A: Array,
    acceleration: Array,
    omega: Array,
    W: Array,
    w: Array,
    P: Array,
    Kt: Array,
    Ct: Array,
    Mt: Array,
) -> None:
    """Fill in the rows and columns of the elastic coordinates."""
    n = S.shape[0] - 1
    weights = np.zeros((9, 2))
    for i in range(3):
        weights[3 * i : 3 * i + 3, 0] = W[i]
        weights[3 * i : 3 * i + 3, 1] = 2.0 * w[i]
    pairs = (H_pairs @ weights).reshape(n + 1, n + 1, 2)
    Mt[6:, 6:] = M
    Ct[6:, 6:] = C + pairs[1:, 1:, 1]
    Kt[6:, 6:] = K + pairs[1:, 1:, 0]

    force = S[1:].T
    Mt[:3, 6:] = mm(A, force)
    Ct[:3, 6:] = 2.0 * mm(A, mm(w, force))
    Kt[:3, 6:] = mm(A, mm(W, force))
    Mt[6:, :3] = mm(S[1:], A.T)
    Kt[6:, 3:6] = mm(S[1:], skew(acceleration))
    spin, skewed = rows3(W), rows3(w)
    turn, lever = vector3(omega, 0), vector3(acceleration, 0)
    for k in range(n):
        column = P[k + 1].reshape(9, 3)
        P0, P1 = _square3(column, 0), _square3(column, 1)
        other = transposed3(P0)
        both = add3(P0[0], other[0]), add3(P0[1], other[1]), add3(P0[2], other[2])
        by_q = add3(axial_product3(both, spin), scaled3(2.0, axial_product3(P1, skewed)))
        by_q = add3(by_q, axial3(_square3(column, 2)))
        by_q = add3(by_q, cross3(row3(S, k + 1), lever))
        by_v = scaled3(2.0, axial_product3(other, skewed))
        by_a = axial3(other)
        trace = P0[0][0] + P0[1][1] + P0[2][2]
        push = add3(mv3(both, turn), scaled3(-2.0 * trace, turn))
        push = add3(push, scaled3(2.0, axial3(transposed3(P1))))
        for i in range(3):
            Kt[3 + i, 6 + k] = by_q[i]
            Ct[3 + i, 6 + k] = by_v[i]
            Mt[3 + i, 6 + k] = by_a[i]
            Mt[6 + k, 3 + i] = by_a[i]
            Ct[6 + k, 3 + i] = push[i]


@kernel
def body_energies(
    m: float,
    S: Array,
    H_rows: Array,
    M: Array,
    K: Array,
    spin: Array,
    q: Array,
    v: Array,
    gravity: Array,
) -> Array:
    """Kinetic energy, elastic energy and potential of gravity, shape (3,), J."""
    A = rotation_matrix(q[3:7])
    V, omega = mv(A.T, v[:3]), v[3:6]
    X, s, P, Q = _products(H_rows, S, q, v, v)
    J = _inertia_tensor(_square(Q, 0))
    if spin.shape[0] > 0:
        J = J + _spin_parts(spin, q[7:])[1]
    kinetic = 0.5 * m * dot(V, V) + dot(V, mv(skew(omega), s[0]) + s[1])
    kinetic += 0.5 * dot(omega, mv(J, omega)) + dot(omega, axial(_square(Q, 1)))
    kinetic += 0.5 * dot(v[6:], mv(M, v[6:]))
    return np.array(
        [kinetic, 0.5 * dot(q[7:], mv(K, q[7:])), -dot(m * q[:3] + mv(A, s[0]), gravity)]
    )


@kernel
def body_momenta(m: float, S: Array, H_rows: Array, spin: Array, q: Array, v: Array) -> Array:
    """Linear momentum, angular momentum about the global origin; global components, (6,)."""
    A = rotation_matrix(q[3:7])
    V, omega = mv(A.T, v[:3]), v[3:6]
    X, s, P, Q = _products(H_rows, S, q, v, v)
    J = _inertia_tensor(_square(Q, 0))
    if spin.shape[0] > 0:
        J = J + _spin_parts(spin, q[7:])[1]
    momenta = np.zeros(6)
    momenta[:3] = mv(A, m * V + mv(skew(omega), s[0]) + s[1])
    about_frame = mv(A, mv(skew(s[0]), V) + mv(J, omega) + axial(_square(Q, 1)))
    momenta[3:] = mv(skew(q[:3]), momenta[:3]) + about_frame
    return momenta
