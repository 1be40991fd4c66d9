"""Loads of a short journal bearing (Ocvirk) with half-Sommerfeld cavitation, and derivatives.

The gap h = h₀ + z h₁ and its rate of squeeze g = Ω ∂h/∂θ + 2 ∂h/∂t = g₀ + z g₁ are linear along the
axis. Without circumferential pressure flow, (h³ p′)′ = 6 μ g with p = 0 at z = ±l, l = L/2.
Galerkin's method with p = (l² − z²)(a + b z) is exact without misalignment and to first order in
it. The pressure is max(p, 0).

The circle is divided at the two angles where g₀ changes its sign, and each half is integrated by
Gauss quadrature. The integrand is smooth on both halves, wherever the cavitation boundary is.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.thickness import (
    ASPERITY_HEIGHT,
    asperity_pressure,
    boundary_drag,
    thickness,
)
from dolfinx_mbd.kernels.small_vectors import Array


@inner_kernel
def _axial_system(
    x: tuple[float, float, float, float], half: float, mu: float, s: float, Z: Array
) -> tuple[float, float, float, float, float]:
    """Return the Galerkin matrix (A11, A12, A22) and right-hand side (b1, b2) of one angle.

    `x` = (h₀, h₁, g₀, g₁); `Z` (2, nz) are Gauss points and weights on (−1, 1). The unknowns are
    a l² and b l³, so that all entries of the matrix have the same unit.
    """
    A11, A12, A22, b1, b2 = 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(Z.shape[1]):
        r = Z[0, k]
        H, slope = thickness(x[0] + half * r * x[1], s)
        cube = Z[1, k] * H * H * H
        A11 += cube * 4.0 * r * r
        A12 -= cube * 2.0 * r * (1.0 - 3.0 * r * r)
        A22 += cube * (1.0 - 3.0 * r * r) ** 2
        push = -6.0 * mu * half * half * Z[1, k] * slope * (x[2] + half * r * x[3])
        b1 += push * (1.0 - r * r)
        b2 += push * r * (1.0 - r * r)
    return A11, A12, A22, b1, b2


@inner_kernel
def _axial_change(
    x: tuple[float, float, float, float],
    a: float,
    b: float,
    half: float,
    mu: float,
    s: float,
    Z: Array,
    out: Array,
) -> None:
    """Write the derivatives (2, 4) of right-hand side − matrix · (a, b) for constant (a, b)."""
    for i in range(2):
        for j in range(4):
            out[i, j] = 0.0
    for k in range(Z.shape[1]):
        r = Z[0, k]
        z = half * r
        h = x[0] + z * x[1]
        H, slope = thickness(h, s)
        bend = 2.0 * slope * H / (s * s) if h < s else 0.0
        flow = 3.0 * Z[1, k] * H * H * slope
        p1, p2 = -2.0 * r, 1.0 - 3.0 * r * r
        gradient = a * p1 + b * p2
        weight = -6.0 * mu * half * half * Z[1, k] * (1.0 - r * r)
        g = x[2] + z * x[3]
        change1 = weight * bend * g - flow * gradient * p1
        change2 = weight * r * bend * g - flow * gradient * p2
        out[0, 0] += change1
        out[0, 1] += z * change1
        out[1, 0] += change2
        out[1, 1] += z * change2
        out[0, 2] += weight * slope
        out[0, 3] += z * weight * slope
        out[1, 2] += r * weight * slope
        out[1, 3] += r * z * weight * slope


@inner_kernel
def _strip(
    x: tuple[float, float, float, float],
    half: float,
    mu: float,
    s: float,
    Z: Array,
    derivatives: bool,
    change: Array,
    loads: Array,
    slopes: Array,
) -> tuple[float, float]:
    """Compute ∫p dz and ∫z p dz (2,) of one angle, and their derivatives (2, 4) with respect to x.

    Returns the peak pressure at the Gauss points and in the middle, and the flow out of both ends
    per length of the circumference.
    """
    A11, A12, A22, b1, b2 = _axial_system(x, half, mu, s, Z)
    det = A11 * A22 - A12 * A12
    a, b = (A22 * b1 - A12 * b2) / det, (A11 * b2 - A12 * b1) / det
    for i in range(2):
        loads[i] = 0.0
        for j in range(4):
            slopes[i, j] = 0.0
    peak = max(a, 0.0)
    if a + abs(b) <= 0.0:
        return 0.0, 0.0
    m0a, m0b, m1b = 0.0, 0.0, 0.0  # ∂∫p/∂a, ∂∫p/∂b = ∂∫zp/∂a, ∂∫zp/∂b
    for k in range(Z.shape[1]):
        r = Z[0, k]
        p = (1.0 - r * r) * (a + b * r)
        if p > 0.0:
            weight = half * Z[1, k] * (1.0 - r * r)
            m0a += weight
            m0b += weight * r
            m1b += weight * r * r
            peak = max(peak, p)
    loads[0] = m0a * a + m0b * b
    loads[1] = half * (m0b * a + m1b * b)
    if derivatives:
        _axial_change(x, a, b, half, mu, s, Z, change)
        for j in range(4):
            da = (A22 * change[0, j] - A12 * change[1, j]) / det
            db = (A11 * change[1, j] - A12 * change[0, j]) / det
            slopes[0, j] = m0a * da + m0b * db
            slopes[1, j] = half * (m0b * da + m1b * db)
    flow = 0.0
    for sign in (-1.0, 1.0):
        H, _ = thickness(x[0] + sign * half * x[1], s)
        flow += H * H * H * max(a + sign * b, 0.0) / (6.0 * mu * half)
    return peak, flow


@inner_kernel
def _asperity_integrals(
    h0: float, h1: float, half: float, values: Array, Z: Array, solid: Array, drag: Array
) -> None:
    """Compute loads of asperities and the integrals of the drag at one angle.

    `values` = (roughness, asperity modulus). `solid` (5,) are ∫p, ∫zp and the derivatives ∫p′,
    ∫zp′, ∫z²p′; `drag` (3,) are ∫1/H and its derivatives with respect to h₀ and h₁.
    """
    for i in range(5):
        solid[i] = 0.0
    for i in range(3):
        drag[i] = 0.0
    for k in range(Z.shape[1]):
        z, w = half * Z[0, k], half * Z[1, k]
        h = h0 + z * h1
        H, slope = thickness(h, values[0])
        drag[0] += w / H
        drag[1] -= w * slope / (H * H)
        drag[2] -= w * z * slope / (H * H)
        if h < ASPERITY_HEIGHT * values[0]:
            p, dp = asperity_pressure(h, values[0], values[1])
            solid[0] += w * p
            solid[1] += w * z * p
            solid[2] += w * dp
            solid[3] += w * z * dp
            solid[4] += w * z * z * dp


@inner_kernel
def _sign_change(y: Array) -> tuple[float, Array]:
    """Return the angle where g₀ changes its sign, and its derivatives (9,) with respect to y.

    g₀ = A cos θ + B sin θ with A = −Ω e_y − 2 ė_x and B = Ω e_x − 2 ė_y.
    """
    A, B = -y[8] * y[1] - 2.0 * y[4], y[8] * y[0] - 2.0 * y[5]
    size = A * A + B * B
    by = np.zeros(9)
    if size == 0.0:
        return 0.0, by
    # θ = atan2(A, −B), dθ = (A dB − B dA) / size
    by[0], by[1] = A * y[8] / size, B * y[8] / size
    by[4], by[5] = 2.0 * B / size, -2.0 * A / size
    by[8] = (A * y[0] + B * y[1]) / size
    return math.atan2(A, -B), by


@inner_kernel
def _gap(y: Array, c: float, theta: float, x: Array) -> None:
    """Write n (2,), h₀, h₁, g₀, g₁ and the derivatives ∂/∂θ of the last four to x (10,)."""
    n, m = (math.cos(theta), math.sin(theta)), (-math.sin(theta), math.cos(theta))
    x[0], x[1] = n
    for i in range(2):
        k = 2 * i
        along = y[k] * n[0] + y[k + 1] * n[1]
        by = -y[k] * m[0] - y[k + 1] * m[1]
        x[2 + i] = -along
        x[4 + i] = y[8] * by - 2.0 * (y[4 + k] * n[0] + y[5 + k] * n[1])
        x[6 + i] = by
        x[8 + i] = y[8] * along - 2.0 * (y[4 + k] * m[0] + y[5 + k] * m[1])
    x[2] += c


@inner_kernel
def _gap_change(y: Array, x: Array, k: int, slope: float) -> tuple[float, float, float, float]:
    """Return the derivatives ∂/∂y_k of (h₀, h₁, g₀, g₁); `slope` is ∂θ/∂y_k."""
    d0, d1, d2, d3 = slope * x[6], slope * x[7], slope * x[8], slope * x[9]
    n = x[k % 2]
    spin = y[8] * (-x[1] if k % 2 == 0 else x[0])
    if k < 2:
        d0 -= n
        d2 -= spin
    elif k < 4:
        d1 -= n
        d3 -= spin
    elif k < 6:
        d2 -= 2.0 * n
    elif k < 8:
        d3 -= 2.0 * n
    else:
        d2 += x[6]
        d3 += x[7]
    return d0, d1, d2, d3


@inner_kernel
def _add_derivatives(
    y: Array,
    x: Array,
    start_by: Array,
    P: tuple[float, float],
    slopes: Array,
    solid: Array,
    shear: tuple[float, float, float, float],
    drag: Array,
    dA: float,
    dg: Array,
) -> None:
    """Add the derivatives of the loads of one angle to dg (5, 9).

    `shear` are the factors of the drags ∫1/H and ∫p of the asperities, and the derivatives of these
    factors with respect to Ω.
    """
    for k in range(9):
        slope = start_by[k]
        d0, d1, d2, d3 = _gap_change(y, x, k, slope)
        touch = solid[2] * d0 + solid[3] * d1
        dP0 = slopes[0, 0] * d0 + slopes[0, 1] * d1 + slopes[0, 2] * d2 + slopes[0, 3] * d3 + touch
        dP1 = slopes[1, 0] * d0 + slopes[1, 1] * d1 + slopes[1, 2] * d2 + slopes[1, 3] * d3
        dP1 += solid[3] * d0 + solid[4] * d1
        dg[0, k] -= dA * (dP0 * x[0] - P[0] * x[1] * slope)
        dg[1, k] -= dA * (dP0 * x[1] + P[0] * x[0] * slope)
        dg[2, k] -= dA * (dP1 * x[0] - P[1] * x[1] * slope)
        dg[3, k] -= dA * (dP1 * x[1] + P[1] * x[0] * slope)
        dg[4, k] += dA * (shear[0] * (drag[1] * d0 + drag[2] * d1) + shear[1] * touch)
    dg[4, 8] += dA * (shear[2] * drag[0] + shear[3] * solid[0])


@kernel
def short_bearing_loads(
    y: Array, values: Array, T: Array, Z: Array, derivatives: bool
) -> tuple[Array, Array, Array]:
    """Return the film loads g (5,), ∂g/∂y (5, 9) for the motion y, and the film's state (3,).

    Args:
        y: Motion of the journal, see `frames`.
        values: Radius, length, clearance, viscosity, roughness, modulus and friction coefficient
            of the asperities, and the speed below which this friction is regularized.
        T: Gauss points and weights on (0, 1) for half a turn, (2, nθ).
        Z: Gauss points and weights on (−1, 1) along the axis, (2, nz).
        derivatives: Whether the derivatives are computed.

    Returns:
        Loads, derivatives, and the state (smallest gap, peak pressure, side flow).
    """
    R, half, mu, rough = values[0], 0.5 * values[1], values[3], values[4:6]
    g, dg, facts = np.zeros(5), np.zeros((5, 9)), np.array([values[2], 0.0, 0.0])
    loads, slopes, change = np.empty(2), np.empty((2, 4)), np.empty((2, 4))
    solid, drag, x = np.empty(5), np.empty(3), np.empty(10)
    start, start_by = _sign_change(y)
    rub, rub_by = boundary_drag(R * y[8], values[6], values[7])
    shear = mu * R * R * y[8], R * rub, mu * R * R, R * R * rub_by
    for i in range(2 * T.shape[1]):
        arc, j = divmod(i, T.shape[1])
        dA = R * math.pi * T[1, j]
        _gap(y, values[2], start + math.pi * (arc + T[0, j]), x)
        gap = x[2], x[3], x[4], x[5]
        facts[0] = min(facts[0], x[2] - half * abs(x[3]))
        peak, flow = _strip(gap, half, mu, rough[0], Z, derivatives, change, loads, slopes)
        facts[1], facts[2] = max(facts[1], peak), facts[2] + dA * flow
        _asperity_integrals(x[2], x[3], half, rough, Z, solid, drag)
        P = loads[0] + solid[0], loads[1] + solid[1]
        for k in range(4):
            g[k] -= dA * P[k // 2] * x[k % 2]
        g[4] += dA * (shear[0] * drag[0] + shear[1] * solid[0])
        if derivatives:
            _add_derivatives(y, x, start_by, P, slopes, solid, shear, drag, dA, dg)
    return g, dg, facts
