"""Kernels of contacts: points of a body against a plane, cylinder or sphere of another body.

All vectors have components in the axes of the first frame. A point at x has the gap g(x) to the
surface, the normal n = ∇g and the curvature H = ∇n. The contact lies at x − R n, where R is the
distance from the point to the surface of the second body. With the relative angular velocity Ω, the
velocity of the second body at the contact relative to the first body is u = ẋ − R Ω×n, and its
tangential part is w = u − (n·u) n. The force on the second body is f = F n − μ F tanh(|w|/w₀)
w/|w|.

A row of `surfaces` consists of the code of the surface, its normal (3) if it is a plane, its
distance from the origin or its radius, the sign +1 for a convex and −1 for a concave surface, and
R. `law` consists of K, n, χ, μ and w₀.
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
    add3,
    add33,
    cross3,
    dot3,
    mm3,
    mv3,
    outer3,
    plus3,
    put3,
    scaled3,
    scaled33,
    tmv3,
    transposed3,
    vector3,
)

#: Codes of surfaces of the first body: a plane, a cylinder about z, a sphere about the origin.
PLANE, CYLINDER, SPHERE = 0, 1, 2

_SMALL = 1e-4  # tanh(z)/z is replaced by its series below this z

Motion = tuple[Vector3, Vector3, Vector3, Vector3]  #: x, ẋ, Ω and the arm from p₂ to the point
Place = tuple[float, Vector3, Matrix3]  #: gap, normal and curvature


@inner_kernel
def _rows(Q: Array) -> Matrix3:
    return vector3(Q[0], 0), vector3(Q[1], 0), vector3(Q[2], 0)


@inner_kernel
def _motion(
    p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array, point: Array
) -> Motion:
    """Return the motion of a point of the second body relative to the first frame."""
    Q = _rows(Q1)
    arm = tmv3(Q, mv3(_rows(Q2), vector3(point, 0)))
    between = add3(vector3(p2, 0), scaled3(-1.0, vector3(p1, 0)))
    x = add3(tmv3(Q, between), arm)
    w1, w2 = tmv3(Q, vector3(u1, 3)), tmv3(Q, vector3(u2, 3))
    v = tmv3(Q, add3(vector3(u2, 0), scaled3(-1.0, vector3(u1, 0))))
    v = add3(v, add3(cross3(w2, arm), cross3(x, w1)))
    return x, v, add3(w2, scaled3(-1.0, w1)), arm


@inner_kernel
def _surface_geometry(x: Vector3, surface: Array) -> Place:
    """Return gap, normal and curvature of a surface at x; the normal is 0 at the centre."""
    zero = (0.0, 0.0, 0.0)
    code, size, sign = int(surface[0]), surface[4], surface[5]
    if code == PLANE:
        normal = vector3(surface, 1)
        return dot3(normal, x) - size, normal, (zero, zero, zero)
    e = x if code == SPHERE else (x[0], x[1], 0.0)
    distance = math.sqrt(dot3(e, e))
    gap = sign * (distance - size)
    if distance == 0.0:
        return gap, zero, (zero, zero, zero)
    e = scaled3(1.0 / distance, e)
    z = 1.0 if code == SPHERE else 0.0
    H = plus3(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, z)), outer3(-1.0, e, e))
    return gap, scaled3(sign, e), scaled33(sign / distance, H)


@inner_kernel
def _normal_force(gap: float, rate: float, law: Array) -> Vector3:
    """Return the normal force and its derivatives with respect to the gap and its rate."""
    if gap >= 0.0:
        return 0.0, 0.0, 0.0
    elastic, factor = law[0] * (-gap) ** law[1], 1.0 - law[2] * rate
    if factor <= 0.0:
        return 0.0, 0.0, 0.0
    return elastic * factor, law[1] * elastic / gap * factor, -law[2] * elastic


@inner_kernel
def _friction(w: Vector3, law: Array) -> tuple[float, float]:
    """Return φ = tanh(s/w₀)/s for s = |w|, and φ'/s."""
    s, w0 = math.sqrt(dot3(w, w)), law[4]
    z = s / w0
    if z < _SMALL:
        return (1.0 - z * z / 3.0) / w0, -2.0 / (3.0 * w0**3)
    sign = math.tanh(z)
    return sign / s, ((1.0 - sign * sign) / w0 - sign / s) / (s * s)


@kernel
def contact_wrenches(
    p1: Array,
    Q1: Array,
    u1: Array,
    p2: Array,
    Q2: Array,
    u2: Array,
    points: Array,
    surfaces: Array,
    law: Array,
) -> tuple[Array, Array]:
    """Return the wrenches (12,), and gap, gap rate and normal force of each point (P, 3).

    The wrenches on both frames have global components.
    """
    states, wrenches = np.zeros((len(points), 3)), np.zeros(12)
    Q = _rows(Q1)
    for k in range(len(points)):
        x, v, spin, arm = _motion(p1, Q1, u1, p2, Q2, u2, points[k])
        gap, n, _ = _surface_geometry(x, surfaces[k])
        rate = dot3(n, v)
        F, _, _ = _normal_force(gap, rate, law)
        states[k, 0], states[k, 1], states[k, 2] = gap, rate, F
        if F == 0.0:
            continue
        offset = scaled3(-surfaces[k, 6], n)
        w = add3(add3(v, cross3(spin, offset)), scaled3(-rate, n))
        slip, _ = _friction(w, law)
        f = add3(scaled3(F, n), scaled3(-law[3] * F * slip, w))
        m1 = cross3(f, add3(x, offset))
        m2 = cross3(add3(arm, offset), f)
        for start, part in ((0, scaled3(-1.0, f)), (3, m1), (6, f), (9, m2)):
            total = add3(vector3(wrenches, start), mv3(Q, part))
            put3(wrenches, start, total)
    return wrenches, states


@kernel
def contact_derivatives(
    p1: Array,
    Q1: Array,
    u1: Array,
    p2: Array,
    Q2: Array,
    u2: Array,
    points: Array,
    surfaces: Array,
    law: Array,
) -> tuple[Array, Array]:
    """Return the derivatives of the wrenches with respect to both poses and velocities.

    Their shapes are (12, 12).
    """
    D, E = np.zeros((12, 12)), np.zeros((12, 12))
    w1 = tmv3(_rows(Q1), vector3(u1, 3))
    for k in range(len(points)):
        motion = _motion(p1, Q1, u1, p2, Q2, u2, points[k])
        place = _surface_geometry(motion[0], surfaces[k])
        force = _normal_force(place[0], dot3(place[1], motion[1]), law)
        if force[0] > 0.0:
            _add_point(D, E, motion, place, force, w1, law, surfaces[k, 6])
    return _rotated(D, Q1), _rotated(E, Q1)


@inner_kernel
def _add_point(
    D: Array,
    E: Array,
    motion: Motion,
    place: Place,
    force: Vector3,
    w1: Vector3,
    law: Array,
    radius: float,
) -> None:
    """Add the derivatives of one point in contact, in the axes of the first frame."""
    x, v, spin, arm = motion
    _, n, H = place
    F, by_gap, by_rate = force
    unit = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    offset = scaled3(-radius, n)
    rate, turn = dot3(n, v), mv3(H, v)
    w = add3(add3(v, cross3(spin, offset)), scaled3(-rate, n))
    slip, slope = _friction(w, law)
    friction = -law[3] * F
    S = plus3(scaled33(friction * slip, unit), outer3(friction * slope, w, w))
    direction = add3(n, scaled3(-law[3] * slip, w))
    f = add3(scaled3(F, n), scaled3(friction * slip, w))
    # Derivatives of w and of the force f with respect to x, ẋ and Ω
    w_x = plus3(scaled33(-radius, mm3(skew3(spin), H)), outer3(-1.0, n, turn))
    w_x = plus3(w_x, scaled33(-rate, H))
    f_x = plus3(outer3(by_gap, direction, n), outer3(by_rate, direction, turn))
    f_x = plus3(plus3(f_x, scaled33(F, H)), mm3(S, w_x))
    f_v = outer3(by_rate, direction, n)
    f_v = plus3(f_v, mm3(S, plus3(unit, outer3(-1.0, n, n))))
    f_spin = scaled33(radius, mm3(S, skew3(n)))
    # Columns: the blocks of x, ẋ and Ω with respect to p₁, rotation 1, p₂, rotation 2, and of the
    # arms from the frames to the contact
    X, A, W, turning = skew3(x), skew3(arm), skew3(w1), skew3(spin)
    pose_x = (scaled33(-1.0, unit), X, unit, scaled33(-1.0, A))
    pose_v = (W, skew3(v), scaled33(-1.0, W), scaled33(-1.0, mm3(turning, A)))
    lever = skew3(add3(x, offset)), skew3(add3(arm, offset))
    f_skew = skew3(f)
    tilt = scaled33(-radius, H)  # derivative of the offset with respect to x
    zero = scaled33(0.0, unit)
    arms = (zero, A, zero, scaled33(-1.0, A))
    spins = (zero, turning, zero, zero)
    rates = (zero, scaled33(-1.0, unit), zero, unit)
    wrench = (scaled3(-1.0, f), cross3(f, add3(x, offset)), f, cross3(add3(arm, offset), f))
    for block in range(4):
        c = 3 * block
        change = plus3(mm3(f_x, pose_x[block]), mm3(f_v, pose_v[block]))
        change = plus3(change, mm3(f_spin, spins[block]))
        shift = mm3(tilt, pose_x[block])
        first = mm3(f_skew, plus3(pose_x[block], shift))
        second = scaled33(-1.0, mm3(f_skew, plus3(arms[block], shift)))
        add33(D, 0, c, -1.0, change)
        add33(D, 3, c, 1.0, plus3(first, scaled33(-1.0, mm3(lever[0], change))))
        add33(D, 6, c, 1.0, change)
        add33(D, 9, c, 1.0, plus3(second, mm3(lever[1], change)))
        change = plus3(mm3(f_v, pose_x[block]), mm3(f_spin, rates[block]))
        add33(E, 0, c, -1.0, change)
        add33(E, 3, c, -1.0, mm3(lever[0], change))
        add33(E, 6, c, 1.0, change)
        add33(E, 9, c, 1.0, mm3(lever[1], change))
        # The axes of the first frame rotate with the wrench
        add33(D, c, 3, -1.0, skew3(wrench[block]))


@inner_kernel
def _rotated(D: Array, Q1: Array) -> Array:
    """Return a matrix (12, 12) in global components instead of the axes of the first frame."""
    Q = _rows(Q1)
    transposed, out = transposed3(Q), np.zeros((12, 12))
    for i in range(0, 12, 3):
        for j in range(0, 12, 3):
            block = (vector3(D[i], j), vector3(D[i + 1], j), vector3(D[i + 2], j))
            add33(out, i, j, 1.0, mm3(Q, mm3(block, transposed)))
    return out
