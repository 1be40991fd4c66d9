"""Loads of a short journal bearing (Ocvirk) with half-Sommerfeld cavitation, and derivatives.

The gap h = h₀ + z h₁ and its rate of squeeze g = Ω ∂h/∂θ + 2 ∂h/∂t = g₀ + z g₁ are linear along the
axis. Without circumferential pressure flow, (h³ p′)′ = 6 μ g with p = 0 at z = ±L/2. The module
`axial_strips` solves this equation. The pressure is max(p, 0).

The circle is divided at two opposite angles, and each half is integrated by Gauss quadrature.
Without misalignment they are the angles where g₀ changes its sign, so that the integrand is smooth
on both halves. With misalignment, its second derivative is continuous everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.asperity_loads import asperity_loads
from dolfinx_mbd.kernels.films.axial_strips import MAX_CELLS, Line, strip_loads
from dolfinx_mbd.kernels.films.fields import (
    BY_G0,
    BY_G1,
    BY_H0,
    BY_H1,
    CLEARANCE,
    DRAG,
    E_X,
    E_X_RATE,
    E_Y,
    E_Y_RATE,
    F_X,
    F_Y,
    FRICTION_POWER,
    G0,
    G0_SLOPE,
    G1,
    G1_SLOPE,
    G_X,
    G_Y,
    H0,
    H0_SLOPE,
    H1,
    H1_SLOPE,
    INVERSE,
    INVERSE_BY_H0,
    INVERSE_BY_H1,
    LENGTH,
    N_X,
    N_Y,
    PEAK_PRESSURE,
    POINT,
    RADIUS,
    ROUGHNESS,
    SIDE_FLOW,
    SMALLEST_GAP,
    SPIN,
    T_X,
    T_X_RATE,
    T_Y,
    T_Y_RATE,
    VISCOSITY,
    WEIGHT,
)
from dolfinx_mbd.kernels.small_vectors import Array


@inner_kernel
def smallest_gap(y: Array, c: float, half: float) -> float:
    """Return the smallest gap, which is at one of the ends of the bearing."""
    low = math.hypot(y[E_X] - half * y[T_X], y[E_Y] - half * y[T_Y])
    return c - max(low, math.hypot(y[E_X] + half * y[T_X], y[E_Y] + half * y[T_Y]))


@inner_kernel
def _division(y: Array, half: float) -> tuple[float, Array]:
    """Return the angle that divides the circle, and its derivatives (9,) with respect to y.

    The rates g₀ and g₁ change their signs at the arguments of the complex numbers X₀ and X₁, and
    opposite to them. The angle is half of the argument of X₀² + (l/3)² X₁², l = L/2: that of
    the pressure without misalignment, and that of the pressure of a journal that only tilts.
    """
    X0 = complex(2.0 * y[E_Y_RATE] - y[SPIN] * y[E_X], -2.0 * y[E_X_RATE] - y[SPIN] * y[E_Y])
    X1 = complex(2.0 * y[T_Y_RATE] - y[SPIN] * y[T_X], -2.0 * y[T_X_RATE] - y[SPIN] * y[T_Y])
    weight = half * half / 9.0
    W = X0 * X0 + weight * X1 * X1
    by = np.zeros(9)
    if abs(W) == 0.0:
        return 0.0, by
    for k in range(2):
        factor = weight * X1 / W if k else X0 / W
        by[2 * k], by[2 * k + 1] = -y[SPIN] * factor.imag, -y[SPIN] * factor.real
        by[E_X_RATE + 2 * k], by[E_Y_RATE + 2 * k] = -2.0 * factor.real, 2.0 * factor.imag
        by[SPIN] -= y[2 * k] * factor.imag + y[2 * k + 1] * factor.real
    return 0.5 * math.atan2(W.imag, W.real), by


@inner_kernel
def _gap(y: Array, c: float, theta: float, x: Array) -> None:
    """Write n (2,), h₀, h₁, g₀, g₁ and the derivatives ∂/∂θ of the last four to x (10,)."""
    n, m = (math.cos(theta), math.sin(theta)), (-math.sin(theta), math.cos(theta))
    x[N_X], x[N_Y] = n
    for i in range(2):
        k = 2 * i  # first entry of e or t
        radial = y[k] * n[0] + y[k + 1] * n[1]
        slope = -y[k] * m[0] - y[k + 1] * m[1]
        x[H0 + i] = -radial
        x[G0 + i] = y[SPIN] * slope - 2.0 * (y[E_X_RATE + k] * n[0] + y[E_Y_RATE + k] * n[1])
        x[H0_SLOPE + i] = slope
        x[G0_SLOPE + i] = y[SPIN] * radial - 2.0 * (y[E_X_RATE + k] * m[0] + y[E_Y_RATE + k] * m[1])
    x[H0] += c


@inner_kernel
def _gap_change(y: Array, x: Array, k: int, slope: float) -> tuple[float, float, float, float]:
    """Return the derivatives ∂/∂y_k of (h₀, h₁, g₀, g₁); `slope` is ∂θ/∂y_k."""
    d0, d1, d2, d3 = (
        slope * x[H0_SLOPE],
        slope * x[H1_SLOPE],
        slope * x[G0_SLOPE],
        slope * x[G1_SLOPE],
    )
    n = x[k % 2]
    spin = y[SPIN] * (-x[N_Y] if k % 2 == 0 else x[N_X])
    if k < 2:  # e
        d0 -= n
        d2 -= spin
    elif k < 4:  # t
        d1 -= n
        d3 -= spin
    elif k < 6:  # ė
        d2 -= 2.0 * n
    elif k < 8:  # ṫ
        d3 -= 2.0 * n
    else:  # Ω
        d2 += x[H0_SLOPE]
        d3 += x[H1_SLOPE]
    return d0, d1, d2, d3


@inner_kernel
def _add_derivatives(
    y: Array,
    x: Array,
    start_by: Array,
    P: Array,
    slopes: Array,
    shear: tuple[float, float],
    drag: Array,
    dA: float,
    dg: Array,
) -> None:
    """Add the derivatives of the loads of one angle to dg (5, 9).

    `start_by` (9,) is ∂θ/∂y of the angle, P and `slopes` are the loads and slopes of `strip_loads`,
    and `shear` is the factor of the drag ∫1/H, and its derivative with respect to Ω.
    """
    for k in range(9):
        slope = start_by[k]
        d0, d1, d2, d3 = _gap_change(y, x, k, slope)
        dP0 = (
            slopes[0, BY_H0] * d0
            + slopes[0, BY_H1] * d1
            + slopes[0, BY_G0] * d2
            + slopes[0, BY_G1] * d3
        )
        dP1 = (
            slopes[1, BY_H0] * d0
            + slopes[1, BY_H1] * d1
            + slopes[1, BY_G0] * d2
            + slopes[1, BY_G1] * d3
        )
        dg[F_X, k] -= dA * (dP0 * x[N_X] - P[0] * x[N_Y] * slope)
        dg[F_Y, k] -= dA * (dP0 * x[N_Y] + P[0] * x[N_X] * slope)
        dg[G_X, k] -= dA * (dP1 * x[N_X] - P[1] * x[N_Y] * slope)
        dg[G_Y, k] -= dA * (dP1 * x[N_Y] + P[1] * x[N_X] * slope)
        dg[DRAG, k] += dA * shear[0] * (drag[INVERSE_BY_H0] * d0 + drag[INVERSE_BY_H1] * d1)
    dg[DRAG, SPIN] += dA * shear[1] * drag[INVERSE]


@kernel
def short_bearing_loads(
    y: Array, values: Array, T: Array, Z: Array, A: Array, B: Array, derivatives: bool
) -> tuple[Array, Array, Array]:
    """Return the film loads g (5,), ∂g/∂y (5, 9) for the motion y, and the film's state (4,).

    Args:
        y: Motion of the journal, see `frames`.
        values: Radius, length, clearance, viscosity, roughness, modulus and friction coefficient
            of the asperities, and the speed below which this friction is regularized.
        T: Gauss points and weights on (0, 1) for half a turn, (2, nθ).
        Z: Gauss points and weights on (−1, 1) for each cell of `axial_strips`, (2, nz).
        A: Gauss points and weights on (−1, 1) for each range of angles where asperities touch.
        B: Gauss points and weights on (−1, 1) along the axis for asperities.
        derivatives: Whether the derivatives are computed.

    Returns:
        Loads, derivatives, and the state (4,) of the film, see `fields`.
    """
    R, half, mu = values[RADIUS], 0.5 * values[LENGTH], values[VISCOSITY]
    g, dg, state = np.zeros(5), np.zeros((5, 9)), np.zeros(4)
    loads, slopes, drag, x = np.empty(2), np.empty((2, 4)), np.empty(3), np.empty(10)
    edges, moments = np.empty(MAX_CELLS + 1), np.empty((MAX_CELLS, 5, 7))
    starts, parts = np.empty((MAX_CELLS + 1, 5)), np.empty((3, 6, 7))
    start, start_by = _division(y, half)
    shear = mu * R * R * y[SPIN], mu * R * R
    for i in range(2 * T.shape[1]):
        arc, j = divmod(i, T.shape[1])
        dA = R * math.pi * T[WEIGHT, j]
        _gap(y, values[CLEARANCE], start + math.pi * (arc + T[POINT, j]), x)
        gap = Line(x[H0], x[H1], x[G0], x[G1])
        peak, flow = strip_loads(
            gap, half, mu, values[ROUGHNESS], Z, derivatives, edges, moments, starts, parts, loads,
            slopes, drag,
        )  # fmt: skip
        state[PEAK_PRESSURE], state[SIDE_FLOW] = (
            max(state[PEAK_PRESSURE], peak),
            state[SIDE_FLOW] + dA * flow,
        )
        # The power of the flow along z is ∫ h³/12μ p'² dz = −½ ∫ p f dz with the source f of
        # Reynolds' equation, because p is zero at both ends of its positive part
        state[FRICTION_POWER] -= 0.5 * dA * (x[G0] * loads[0] + x[G1] * loads[1])
        for k in range(4):
            g[k] -= dA * loads[k // 2] * x[k % 2]
        g[DRAG] += dA * shear[0] * drag[INVERSE]
        if derivatives:
            _add_derivatives(y, x, start_by, loads, slopes, shear, drag, dA, dg)
    asperity_loads(y, values, A, B, derivatives, g, dg)
    state[FRICTION_POWER] += g[DRAG] * y[SPIN]
    state[SMALLEST_GAP] = smallest_gap(y, values[CLEARANCE], half)
    return g, dg, state
