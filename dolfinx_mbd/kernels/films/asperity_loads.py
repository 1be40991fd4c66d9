"""Loads and energy of touching asperities in a bore that is not deformed.

The gap is least at the ends of the bearing. Asperities touch at each end at the angles where the
gap is below four times the roughness; both ranges of angles are merged if they overlap. Gauss
quadrature is used over the angles, and along the part of the axis where asperities touch. The same
points integrate force and energy, so that the force is the gradient of the energy.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.fields import (
    CLEARANCE,
    CONTACT,
    CONTACT_Z,
    DRAG,
    E_X,
    E_Y,
    ENERGY,
    FRICTION,
    FRICTION_SPEED,
    HALF_WIDTH,
    LENGTH,
    MIDDLE,
    MODULUS,
    POINT,
    RADIUS,
    ROUGHNESS,
    SLOPE,
    SLOPE_Z,
    SLOPE_ZZ,
    SPIN,
    T_X,
    T_Y,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.thickness import (
    ASPERITY_HEIGHT,
    ASPERITY_POWER,
    asperity_pressure,
    boundary_drag,
)
from dolfinx_mbd.kernels.small_vectors import Array


@inner_kernel
def _contact_angles(y: Array, half: float, limit: float, ranges: Array) -> int:
    """Write the ranges of angles where an end moves by more than a limit, and return their number.

    `y` is the motion of the journal, see `frames`; `half` is half the length of the bearing, and
    `limit` is in m. A row of `ranges` (2, 2) has the middle of a range and half its width, rad.
    """
    count = 0
    middle, reach = np.empty(2), np.empty(2)
    for k in range(2):
        z = half if k else -half
        ex, ey = y[E_X] + z * y[T_X], y[E_Y] + z * y[T_Y]
        size = math.hypot(ex, ey)
        if size > limit:
            middle[count], reach[count] = math.atan2(ey, ex), math.acos(limit / size)
            count += 1
    if count == 2:
        between = (middle[1] - middle[0] + math.pi) % (2.0 * math.pi) - math.pi
        if abs(between) < reach[0] + reach[1]:
            low = min(-reach[0], between - reach[1])
            high = max(reach[0], between + reach[1])
            middle[0] += 0.5 * (low + high)
            reach[0], count = 0.5 * (high - low), 1
    for k in range(count):
        ranges[k, MIDDLE], ranges[k, HALF_WIDTH] = middle[k], reach[k]
    return count


@inner_kernel
def _along_axis(
    h0: float, h1: float, half: float, s: float, modulus: float, Z: Array, integrals: Array
) -> None:
    """Compute ∫p, ∫zp, ∫p′, ∫zp′, ∫z²p′ and the energy along the axis, (6,), at one angle.

    The gap is h0 + z h1 for −half < z < half; a prime is the derivative with respect to the gap.
    `s` is the roughness, m, `modulus` the factor of the contact pressure, Pa, and `Z` the Gauss
    points and weights along the axis. Asperities touch for a < z < b.
    """
    integrals[:] = 0.0
    a, b, limit = -half, half, ASPERITY_HEIGHT * s
    if h1 != 0.0:
        touch = (limit - h0) / h1
        if h1 > 0.0:
            b = min(b, touch)
        else:
            a = max(a, touch)
    for k in range(Z.shape[1]):
        z, w = 0.5 * (a + b + (b - a) * Z[POINT, k]), 0.5 * (b - a) * Z[WEIGHT, k]
        h = h0 + z * h1
        if w > 0.0 and h < limit:
            p, slope = asperity_pressure(h, s, modulus)
            integrals[CONTACT] += w * p
            integrals[CONTACT_Z] += w * z * p
            integrals[SLOPE] += w * slope
            integrals[SLOPE_Z] += w * z * slope
            integrals[SLOPE_ZZ] += w * z * z * slope
            # ∫p dh from h to the limit, for p in proportion to (limit − h)^ASPERITY_POWER
            integrals[ENERGY] += w * p * (limit - h) / (ASPERITY_POWER + 1.0)


@kernel
def asperity_loads(
    y: Array, values: Array, T: Array, Z: Array, derivatives: bool, g: Array, dg: Array
) -> float:
    """Add the loads of asperities to g (5,) and dg (5, 9), and return their energy, J.

    Args:
        y: Motion of the journal, see `frames`.
        values: Constants as in `short_bearing_loads`.
        T: Gauss points and weights on (−1, 1) for each range of angles, (2, nθ).
        Z: Gauss points and weights on (−1, 1) along the axis, (2, nz).
        derivatives: Whether the derivatives are computed.
        g: Film loads.
        dg: Their derivatives.
    """
    R, half, s = values[RADIUS], 0.5 * values[LENGTH], values[ROUGHNESS]
    ranges, integrals = np.empty((2, 2)), np.empty(6)
    drag, drag_by_speed = boundary_drag(R * y[SPIN], values[FRICTION], values[FRICTION_SPEED])
    energy = 0.0
    for k in range(_contact_angles(y, half, values[CLEARANCE] - ASPERITY_HEIGHT * s, ranges)):
        for j in range(T.shape[1]):
            theta = ranges[k, MIDDLE] + ranges[k, HALF_WIDTH] * T[POINT, j]
            dA = R * ranges[k, HALF_WIDTH] * T[WEIGHT, j]
            n = math.cos(theta), math.sin(theta)
            h0, h1 = (
                values[CLEARANCE] - y[E_X] * n[0] - y[E_Y] * n[1],
                -y[T_X] * n[0] - y[T_Y] * n[1],
            )
            _along_axis(h0, h1, half, s, values[MODULUS], Z, integrals)
            energy += dA * integrals[ENERGY]
            # Load or motion i is along the axis i % 2: a force or displacement for i < 2, a moment
            # or tilt otherwise, which has one more factor z. So i // 2 is the power of z.
            for i in range(4):
                g[i] -= dA * n[i % 2] * integrals[CONTACT + i // 2]
            g[DRAG] += dA * R * drag * integrals[CONTACT]
            if derivatives:
                for c in range(4):
                    for i in range(4):
                        dg[i, c] += dA * n[i % 2] * n[c % 2] * integrals[SLOPE + i // 2 + c // 2]
                    dg[DRAG, c] -= dA * R * drag * n[c % 2] * integrals[SLOPE + c // 2]
                dg[DRAG, SPIN] += dA * R * R * drag_by_speed * integrals[CONTACT]
    return energy
