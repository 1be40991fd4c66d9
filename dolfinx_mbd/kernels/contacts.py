"""Laws of contacts: points of a body against a plane, cylinder or sphere of another body.

All vectors have components in the axes of the first frame; `relation` describes the relative motion
d, R, v, ω. A point a = R ã of the second body is at x = d + a and has the gap g(x) to the surface,
the normal n = ∇g and the curvature H = ∇n. The contact lies at x − r n, where r is the distance
from the point to the surface of the second body. The velocity of the second body at the contact
relative to the first body is u = ẋ − r ω×n with ẋ = v + ω×a, and its tangential part is
w = u − (n·u) n. With the penetration δ = −g and an exponent e, the normal force is
F = K δᵉ (1 − χ ġ), but never negative. The force on the second body is
f = F n − μ F tanh(|w|/w₀) w/|w|, and its moment is (a − r n)×f.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.relation import (
    Motion,
    pair_tangents,
    pair_wrenches,
    relative_motion,
)
from dolfinx_mbd.kernels.rotations import skew3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Vector3,
    add_scaled33,
    cross3,
    dot3,
    mm3,
    mv3,
    outer3,
    put3,
    scaled3,
    scaled33,
    sum3,
    sum33,
    vector3,
)

#: Codes of surfaces of the first body: a plane, a cylinder about z, a sphere about the origin.
PLANE, CYLINDER, SPHERE = 0, 1, 2

#: Columns of an array of surfaces: code, normal (3) of a plane, distance of a plane from the origin
#: or radius, +1 for a convex and −1 for a concave surface, and r
CODE, NORMAL, SIZE, SIGN, RADIUS = 0, 1, 4, 5, 6

#: Constants of a law: K, the exponent e, χ, μ and w₀
STIFFNESS, EXPONENT, DAMPING, FRICTION, SLIDING_SPEED = range(5)

#: Columns of the states of points
GAP, GAP_RATE, NORMAL_FORCE = range(3)

_SMALL = 1e-4  # tanh(z)/z is replaced by its series below this z

Point = tuple[Vector3, Vector3, Vector3]  #: x, ẋ and the arm a
Place = tuple[float, Vector3, Matrix3]  #: gap g, normal n and curvature H


@inner_kernel
def _rows(Q: Array) -> Matrix3:
    """Return an array (3, 3) as a tuple of rows."""
    return vector3(Q[0], 0), vector3(Q[1], 0), vector3(Q[2], 0)


@inner_kernel
def _point(motion: Motion, point: Array) -> Point:
    """Return the motion of a point of the second body."""
    d, R, v, omega = motion
    arm = mv3(_rows(R), vector3(point, 0))
    speed = sum3(vector3(v, 0), cross3(vector3(omega, 0), arm))
    return sum3(vector3(d, 0), arm), speed, arm


@inner_kernel
def _surface_geometry(x: Vector3, surface: Array) -> Place:
    """Return gap, normal and curvature of a surface at x; the normal is 0 at the centre."""
    zero = (0.0, 0.0, 0.0)
    code, size, sign = int(surface[CODE]), surface[SIZE], surface[SIGN]
    if code == PLANE:
        normal = vector3(surface, NORMAL)
        return dot3(normal, x) - size, normal, (zero, zero, zero)
    e = x if code == SPHERE else (x[0], x[1], 0.0)
    distance = math.sqrt(dot3(e, e))
    gap = sign * (distance - size)
    if distance == 0.0:
        return gap, zero, (zero, zero, zero)
    e = scaled3(1.0 / distance, e)
    z = 1.0 if code == SPHERE else 0.0
    H = sum33(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, z)), outer3(-1.0, e, e))
    return gap, scaled3(sign, e), scaled33(sign / distance, H)


@inner_kernel
def _normal_force(gap: float, rate: float, law: Array) -> Vector3:
    """Return the normal force and its derivatives with respect to the gap and its rate."""
    if gap >= 0.0:
        return 0.0, 0.0, 0.0
    elastic = law[STIFFNESS] * (-gap) ** law[EXPONENT]
    factor = 1.0 - law[DAMPING] * rate
    if factor <= 0.0:
        return 0.0, 0.0, 0.0
    by_gap = law[EXPONENT] * elastic / gap * factor
    return elastic * factor, by_gap, -law[DAMPING] * elastic


@inner_kernel
def _friction(w: Vector3, law: Array) -> tuple[float, float]:
    """Return φ = tanh(s/w₀)/s for s = |w|, and (dφ/ds)/s."""
    s, w0 = math.sqrt(dot3(w, w)), law[SLIDING_SPEED]
    z = s / w0
    if z < _SMALL:
        return (1.0 - z * z / 3.0) / w0, -2.0 / (3.0 * w0**3)
    tanh_z = math.tanh(z)
    return tanh_z / s, ((1.0 - tanh_z * tanh_z) / w0 - tanh_z / s) / (s * s)


@inner_kernel
def contact_law(motion: Motion, points: Array, surfaces: Array, law: Array) -> tuple[Array, Array]:
    """Return the wrench on the second frame (6,), and gaps, gap rates, normal forces (points, 3).

    Args:
        motion: Relative motion, see `relation`.
        points: Points ã of the second body in the axes of its frame, shape (points, 3).
        surfaces: Their surfaces, shape (points, 7), with the columns `CODE` to `RADIUS`.
        law: Constants `STIFFNESS` to `SLIDING_SPEED`, shape (5,).
    """
    total, states, spin = np.zeros(6), np.zeros((len(points), 3)), vector3(motion[3], 0)
    for k in range(len(points)):
        x, speed, arm = _point(motion, points[k])
        gap, n, _ = _surface_geometry(x, surfaces[k])
        rate = dot3(n, speed)
        F, _, _ = _normal_force(gap, rate, law)
        states[k, GAP], states[k, GAP_RATE], states[k, NORMAL_FORCE] = gap, rate, F
        if F == 0.0:
            continue
        offset = scaled3(-surfaces[k, RADIUS], n)
        w = sum3(sum3(speed, cross3(spin, offset)), scaled3(-rate, n))
        slip, _ = _friction(w, law)
        f = sum3(scaled3(F, n), scaled3(-law[FRICTION] * F * slip, w))
        put3(total, 0, sum3(vector3(total, 0), f))
        put3(total, 3, sum3(vector3(total, 3), cross3(sum3(arm, offset), f)))
    return total, states


@inner_kernel
def contact_slopes(motion: Motion, points: Array, surfaces: Array, law: Array) -> Array:
    """Return the derivatives (6, 12) of `contact_law` with respect to d, θ, v and ω."""
    out = np.zeros((6, 12))
    for k in range(len(points)):
        point = _point(motion, points[k])
        place = _surface_geometry(point[0], surfaces[k])
        gap, n, _ = place
        force = _normal_force(gap, dot3(n, point[1]), law)
        if force[0] > 0.0:
            _add_slopes(out, point, place, force, vector3(motion[3], 0), law, surfaces[k, RADIUS])
    return out


@inner_kernel
def _add_slopes(
    out: Array,
    point: Point,
    place: Place,
    force: Vector3,
    spin: Vector3,
    law: Array,
    radius: float,
) -> None:
    """Add the derivatives of force and moment of one point in contact."""
    _, v, arm = point
    _, n, H = place
    F, by_gap, by_rate = force
    unit = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    offset = scaled3(-radius, n)
    rate, n_rate = dot3(n, v), mv3(H, v)
    w = sum3(sum3(v, cross3(spin, offset)), scaled3(-rate, n))
    slip, slope = _friction(w, law)
    friction = -law[FRICTION] * F
    # S and `direction` are the derivatives of the force f with respect to w and F
    S = sum33(scaled33(friction * slip, unit), outer3(friction * slope, w, w))
    direction = sum3(n, scaled3(-law[FRICTION] * slip, w))
    f = sum3(scaled3(F, n), scaled3(friction * slip, w))
    # Derivatives of w and of the force f with respect to x, ẋ and ω
    w_x = sum33(scaled33(-radius, mm3(skew3(spin), H)), outer3(-1.0, n, n_rate))
    w_x = sum33(w_x, scaled33(-rate, H))
    f_x = sum33(outer3(by_gap, direction, n), outer3(by_rate, direction, n_rate))
    f_x = sum33(sum33(f_x, scaled33(F, H)), mm3(S, w_x))
    f_v = outer3(by_rate, direction, n)
    f_v = sum33(f_v, mm3(S, sum33(unit, outer3(-1.0, n, n))))
    f_spin = scaled33(radius, mm3(S, skew3(n)))
    # δx = δd − a×δθ, δẋ = δv − a×δω − ω×(a×δθ), and δ(a − r n) = −a×δθ − r H δx
    A, lever, f_skew = skew3(arm), skew3(sum3(arm, offset)), skew3(f)
    f_theta = sum33(mm3(f_x, A), mm3(f_v, mm3(skew3(spin), A)))
    f_omega = sum33(f_spin, scaled33(-1.0, mm3(f_v, A)))
    tilt = scaled33(-radius, H)
    for column, block in ((0, f_x), (3, scaled33(-1.0, f_theta)), (6, f_v), (9, f_omega)):
        add_scaled33(out, 0, column, 1.0, block)
        add_scaled33(out, 3, column, 1.0, mm3(lever, block))
    add_scaled33(out, 3, 0, -1.0, mm3(f_skew, tilt))
    add_scaled33(out, 3, 3, 1.0, mm3(f_skew, mm3(sum33(unit, tilt), A)))


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
    """Return the wrenches on both frames in global components (12,), and the states (points, 3)."""
    motion = relative_motion(p1, Q1, u1, p2, Q2, u2)
    f, states = contact_law(motion, points, surfaces, law)
    return pair_wrenches(Q1, motion[0], f), states


@kernel
def contact_elastic_power(
    p1: Array,
    Q1: Array,
    u1: Array,
    p2: Array,
    Q2: Array,
    u2: Array,
    points: Array,
    surfaces: Array,
    law: Array,
) -> float:
    """Return the power Σ K δᵉ ġ of the elastic forces on both frames, W."""
    motion, power = relative_motion(p1, Q1, u1, p2, Q2, u2), 0.0
    for k in range(len(points)):
        x, speed, _ = _point(motion, points[k])
        gap, n, _ = _surface_geometry(x, surfaces[k])
        if gap < 0.0:
            power += law[STIFFNESS] * (-gap) ** law[EXPONENT] * dot3(n, speed)
    return power


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
    """Return the derivatives of the wrenches by poses and by velocities, (12, 12) each."""
    motion = relative_motion(p1, Q1, u1, p2, Q2, u2)
    f, states = contact_law(motion, points, surfaces, law)
    if states[:, NORMAL_FORCE].max() == 0.0:
        return np.zeros((12, 12)), np.zeros((12, 12))
    return pair_tangents(Q1, u1, motion, f, contact_slopes(motion, points, surfaces, law))
