"""Pressure of a short bearing along its axis at one angle, for any misalignment.

Along r = z/l with l = L/2, the gap h = h₀ + h₁ r and its rate of squeeze g = g₀ + g₁ r are linear,
with g = Ω ∂h/∂θ + 2 ∂h/∂t as in `short_bearing`. The thickness H(h) and its slope σ = dH/dh are
those of `thickness`. The pressure p = 6 μ l² φ follows from (H³ φ′)′ = σ g with φ = 0 at both ends.
It is exact up to the error of the quadrature:

    φ′ = (G − C)/H³,  G = ∫σ g dr,  C = ∫G/H³ dr / ∫1/H³ dr

φ changes its sign at most once between the ends, because G − C has at most two zeros. The loads of
the positive part, from a to b with φ = 0 at both, are −∫ (r − r₀) φ′ dr and −½ ∫ (r² − r₀²) φ′ dr.
r₀ is the sign change; with this choice, the derivative of r₀ does not enter those of the loads.

For g = 0, the positive part of φ has no derivative with respect to g. The derivatives are then
those of φ/2, the mean of the derivatives for g → 0 from both sides.

The axis is divided into cells. One edge is where h is equal to the roughness s, because the law of
the thickness changes there. The cells are so short that the distance from the pole of 1/H³ or of σ
at most doubles in each. The quadrature in each cell, with the points and weights `rule` (2, points)
on (−1, 1), has a relative error of about 1e-9. The moments of a cell are an array (5, 7). Row 0
contains ∫ rᵏ G/H³ (`GROWTH`) and ∫ rᵏ/H³ (`CUBE`) for k = 0, 1, 2, and ∫ 1/H (`SHEAR`), rows 1 to 4
their derivatives with respect to h₀, h₁, g₀, g₁.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.films.fields import (
    BY_G0,
    BY_G1,
    BY_H0,
    BY_H1,
    CUBE,
    CUBE_R,
    CUBE_RR,
    GROWTH,
    GROWTH_R,
    GROWTH_RR,
    INVERSE,
    INVERSE_BY_H0,
    INVERSE_BY_H1,
    POINT,
    SHEAR,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.thickness import thickness
from dolfinx_mbd.kernels.small_vectors import Array


class Line(NamedTuple):
    """Gap h₀ + h₁ r (m) and its rate of squeeze g₀ + g₁ r (m/s) along the axis at one angle."""

    h0: float
    h1: float
    g0: float
    g1: float


#: Entries of G and rows of moments: the value, and its derivatives by h₀, h₁, g₀ and g₁
VALUE, D_H0, D_H1, D_G0, D_G1 = range(5)
MAX_CELLS = 32  #: Largest number of cells along the axis
_ALIGNED = 1e-7  # largest change of the gap along the axis for a solution of first order
_ITERATIONS = 60  # largest number of iterations for the sign change of the pressure
_SIGN_CHANGE_ERROR = 1e-13  # relative to half of the length


@inner_kernel
def _divide(x: Line, s: float, edges: Array) -> int:
    """Write the edges of the cells, and return the number of cells."""
    at_start, at_end = x.h0 - x.h1, x.h0 + x.h1  # gaps at both ends
    parts, middle = 1, 1.0
    if (at_start - s) * (at_end - s) < 0.0:  # `middle` is where the gap is s
        parts, middle = 2, (s - x.h0) / x.h1
    edges[0] = -1.0
    count = 0
    for part in range(parts):
        a, b = (-1.0, middle) if part == 0 else (middle, 1.0)
        first, last = x.h0 + x.h1 * a, x.h0 + x.h1 * b
        if first + last < 2.0 * s:  # below s, cells as fine as for a gap as far above s
            first, last = 2.0 * s - first, 2.0 * s - last
        ratio = last / first
        n = max(1, min(MAX_CELLS // 2, math.ceil(abs(math.log(ratio)) / math.log(2.0))))
        for j in range(1, n):  # gaps in a geometric sequence
            edges[count + j] = a + (b - a) * (ratio ** (j / n) - 1.0) / (ratio - 1.0)
        count += n
        edges[count] = b
    return count


@inner_kernel
def _add_growth(x: Line, s: float, a: float, width: float, rule: Array, G: Array) -> None:
    """Add the integrals of σ g and of its derivatives from a to a + 2 width to G (5,)."""
    for k in range(rule.shape[1]):
        r = a + width * (1.0 + rule[POINT, k])
        H, slope = thickness(x.h0 + x.h1 * r, s)
        w, g = width * rule[WEIGHT, k], x.g0 + x.g1 * r
        bend = 2.0 * slope * H / (s * s)  # dσ/dh for h < s
        G[VALUE] += w * slope * g
        G[D_H0] += w * bend * g
        G[D_H1] += w * bend * g * r
        G[D_G0] += w * slope
        G[D_G1] += w * slope * r


@inner_kernel
def _add_cell(
    x: Line, s: float, a: float, b: float, G: Array, rule: Array, derivatives: bool, out: Array
) -> None:
    """Add the moments of a cell from a to b to `out` (5, 7).

    G (5,) contains G and its derivatives, on entry at a, on return at b.
    """
    width, touching = 0.5 * (b - a), x.h0 + 0.5 * x.h1 * (a + b) < s
    G_r = np.empty(5) if touching else G
    g, by0, by1, by2, by3 = G[VALUE], G[D_H0], G[D_H1], G[D_G0], G[D_G1]  # G(r), derivatives
    for k in range(rule.shape[1]):
        d = width * (1.0 + rule[POINT, k])
        r = a + d
        if touching:
            G_r[:] = G
            _add_growth(x, s, a, 0.5 * d, rule, G_r)
            g, by0, by1, by2, by3 = G_r[VALUE], G_r[D_H0], G_r[D_H1], G_r[D_G0], G_r[D_G1]
        else:  # σ = 1, so that G is the integral of g
            grow = 0.5 * d * (a + r)
            g, by2, by3 = G[VALUE] + x.g0 * d + x.g1 * grow, G[D_G0] + d, G[D_G1] + grow
        H, slope = thickness(x.h0 + x.h1 * r, s)
        inverse = 1.0 / H
        w = width * rule[WEIGHT, k] * inverse
        drop = -w * slope * inverse  # derivative of w with respect to the gap
        out[VALUE, SHEAR] += w
        out[D_H0, SHEAR] += drop
        out[D_H1, SHEAR] += drop * r
        w, drop = w * inverse * inverse, 3.0 * drop * inverse * inverse  # those of 1/H³
        for m in range(3):
            out[VALUE, m] += w * g
            out[VALUE, CUBE + m] += w
            if derivatives:
                out[D_H0, m] += w * by0 + drop * g
                out[D_H1, m] += w * by1 + drop * r * g
                out[D_G0, m] += w * by2
                out[D_G1, m] += w * by3
                out[D_H0, CUBE + m] += drop
                out[D_H1, CUBE + m] += drop * r
            w, drop = w * r, drop * r
    if touching:
        _add_growth(x, s, a, width, rule, G)
    else:
        grow = width * (a + b)
        G[VALUE] += x.g0 * 2.0 * width + x.g1 * grow
        G[D_G0] += 2.0 * width
        G[D_G1] += grow


@inner_kernel
def _partial(
    x: Line, s: float, a: float, b: float, C: float, start: Array, rule: Array, work: Array
) -> float:
    """Return φ(b) − φ(a) inside a cell; `start` (5,) is G at a, `work` (6, 7) is overwritten."""
    work[:] = 0.0
    G = work[5, :5]
    G[:] = start
    _add_cell(x, s, a, b, G, rule, False, work[:5])
    return float(work[VALUE, GROWTH] - C * work[VALUE, CUBE])


@inner_kernel
def _sign_change(
    x: Line,
    s: float,
    a: float,
    b: float,
    low: float,
    C: float,
    start: Array,
    end: Array,
    rule: Array,
    work: Array,
) -> float:
    """Return the position in a cell where φ changes its sign; `low` is φ(a).

    The Illinois algorithm (regula falsi) is applied to φ/(1 − r²). At the ends r = ±1 of the axis,
    this ratio is −r φ′/2, which is not zero.
    """
    left, right = a, b
    f = np.empty(2)
    for k, (r, G) in enumerate(((a, start[VALUE]), (b, end[VALUE]))):
        if abs(r) == 1.0:
            H, _ = thickness(x.h0 + x.h1 * r, s)
            f[k] = -0.5 * r * (G - C) / (H * H * H)
        elif k == 0:
            f[k] = low / (1.0 - r * r)
        else:
            f[k] = (low + _partial(x, s, a, r, C, start, rule, work)) / (1.0 - r * r)
    side, r = 0, 0.5 * (a + b)
    for _ in range(_ITERATIONS):
        if f[1] == f[0]:
            break
        r = right - f[1] * (right - left) / (f[1] - f[0])
        if not left < r < right or right - left < _SIGN_CHANGE_ERROR:
            break
        value = (low + _partial(x, s, a, r, C, start, rule, work)) / (1.0 - r * r)
        if value * f[0] > 0.0:
            if abs(r - left) < _SIGN_CHANGE_ERROR:
                break
            left, f[0] = r, value
            if side == -1:
                f[1] *= 0.5
            side = -1
        else:
            if abs(right - r) < _SIGN_CHANGE_ERROR:
                break
            right, f[1] = r, value
            if side == 1:
                f[0] *= 0.5
            side = 1
    return min(max(r, a), b)


@inner_kernel
def _largest(
    x: Line,
    s: float,
    edges: Array,
    count: int,
    C: float,
    moments: Array,
    starts: Array,
    rule: Array,
    work: Array,
) -> float:
    """Return the largest φ: where G − C changes from + to −, and at the edges of the cells."""
    peak, phi = 0.0, 0.0
    for j in range(count):
        a, d = edges[j], edges[j + 1] - edges[j]
        H, slope = thickness(x.h0 + x.h1 * a, s)
        value, rise = starts[j, VALUE] - C, slope * (x.g0 + x.g1 * a)
        # parabola value + rise d + bend d² through G − C, and its zero with a negative slope
        bend = (starts[j + 1, VALUE] - starts[j, VALUE] - rise * d) / (d * d)
        discriminant = rise * rise - 4.0 * value * bend
        if discriminant >= 0.0:
            denominator = math.sqrt(discriminant) - rise
            step = 2.0 * value / denominator if denominator != 0.0 else 0.0
            if 0.0 < step < d:
                top = phi + _partial(x, s, a, a + step, C, starts[j], rule, work)
                peak = max(peak, top)
        phi += moments[j, VALUE, GROWTH] - C * moments[j, VALUE, CUBE]
        peak = max(peak, phi)
    return peak


@inner_kernel
def _positive_part(
    x: Line,
    s: float,
    edges: Array,
    count: int,
    C: float,
    low: bool,
    moments: Array,
    starts: Array,
    rule: Array,
    derivatives: bool,
    part: Array,
    work: Array,
) -> float:
    """Write the moments of the part with φ > 0 to part (5, 7), and return the sign change.

    `low` states whether φ is positive at the lower end; it is negative at the other end.
    """
    phi, before, cell = 0.0, 0.0, count - 1
    for j in range(count):
        before = phi
        phi += moments[j, VALUE, GROWTH] - C * moments[j, VALUE, CUBE]
        # the sign changes in the first cell that ends with the other sign, or in the last one
        if j < count - 1 and (phi <= 0.0) == low:
            cell = j
            break
    middle = _sign_change(
        x, s, edges[cell], edges[cell + 1], before, C, starts[cell], starts[cell + 1], rule, work
    )
    work[:] = 0.0
    G = work[5, :5]
    G[:] = starts[cell]
    _add_cell(x, s, edges[cell], middle, G, rule, derivatives, work[:5])
    part[:] = work[:5]
    if not low:
        part[:] = moments[cell] - part
    for j in range(count):
        if j < cell if low else j > cell:
            part += moments[j]
    return middle


@inner_kernel
def _aligned_strip(
    x: Line, half: float, mu: float, s: float, loads: Array, slopes: Array, drag: Array
) -> tuple[float, float]:
    """Compute the results of `strip_loads` to first order in h₁, if φ has the same sign everywhere.

    φ is −½ (1 − r²) (g₀ + g₁ r/3) σ/H³ for h₁ = 0, which has the sign of −g₀ if |g₁| ≤ 3 |g₀|; `x`
    belongs to the coordinate r. The factors follow from integrals of polynomials in r.
    """
    H, slope = thickness(x.h0, s)
    drag[INVERSE], drag[INVERSE_BY_H0], drag[INVERSE_BY_H1] = (
        2.0 * half / H,
        -2.0 * half * slope / (H * H),
        0.0,
    )
    if x.g0 > 0.0:
        loads[:], slopes[:] = 0.0, 0.0
        return 0.0, 0.0
    bend = 2.0 * slope * H / (s * s) if x.h0 < s else 0.0
    cube, steep = slope / (H * H * H), slope * slope / H
    by_gap = (bend - 3.0 * steep) / (H * H * H)
    scale, lever = -4.0 * mu * half**3, -4.0 / 15.0 * mu * half**4
    if x.g0 == 0.0:  # at rest, see the module
        slopes[:] = 0.0
        slopes[0, BY_G0], slopes[1, BY_G1] = 0.5 * scale * cube, 0.5 * lever * half * cube
        loads[:] = 0.0
        return 0.0, 0.0
    slopes[0, BY_H0] = scale * by_gap * x.g0
    slopes[0, BY_G0], slopes[0, BY_G1] = scale * cube, 0.0
    slopes[0, BY_H1] = scale * half * (0.2 * bend - 0.4 * steep) / (H * H * H) * x.g1
    slopes[1, BY_H0], slopes[1, BY_G0], slopes[1, BY_G1] = (
        lever * by_gap * x.g1,
        0.0,
        lever * half * cube,
    )
    slopes[1, BY_H1] = lever * half * (bend - 6.0 * steep) / (H * H * H) * x.g0
    loads[0] = scale * cube * x.g0 + slopes[0, BY_H1] * x.h1 / half
    loads[1] = lever * cube * x.g1 + slopes[1, BY_H1] * x.h1 / half
    # φ is in proportion to (1 − r²) (even + odd r), which is largest at this r
    even, odd = -0.5 * x.g0, -x.g1 / 6.0
    r = odd / (even + math.sqrt(even * even + 3.0 * odd * odd))
    peak = 6.0 * mu * half * half * cube * (1.0 - r * r) * (even + odd * r)
    return peak, -slope * x.g0 * half


@inner_kernel
def strip_loads(
    x: Line,
    half: float,
    mu: float,
    s: float,
    rule: Array,
    derivatives: bool,
    edges: Array,
    moments: Array,
    starts: Array,
    parts: Array,
    loads: Array,
    slopes: Array,
    drag: Array,
) -> tuple[float, float]:
    """Compute ∫p dz, ∫z p dz (2,) and ∫1/H dz at one angle, with derivatives by (h₀, h₁, g₀, g₁).

    `half` is l, half the length of the bearing, `mu` the viscosity, `s` the roughness, and H the
    thickness. `x` is the line along z, not along r = z/l. `slopes` are (2, 4), and `drag` (3,) is
    ∫1/H dz with its derivatives by h₀ and h₁. `rule` is described in the module. The arrays `edges`
    (cells + 1), `moments` (cells, 5, 7), `starts` (cells + 1, 5) and `parts` (3, 6, 7) are
    overwritten.

    Returns the peak pressure, and the flow out of both ends per length of the circumference.
    """
    x = Line(x.h0, x.h1 * half, x.g0, x.g1 * half)
    if abs(x.h1) < _ALIGNED * max(abs(x.h0), s) and abs(x.g1) <= 3.0 * abs(x.g0):
        return _aligned_strip(x, half, mu, s, loads, slopes, drag)
    total, part, work = parts[0, :5], parts[1, :5], parts[2]
    count = _divide(x, s, edges)
    total[:], starts[0] = 0.0, 0.0
    G = parts[1, 5, :5]
    G[:] = 0.0
    for j in range(count):
        moments[j] = 0.0
        _add_cell(x, s, edges[j], edges[j + 1], G, rule, derivatives, moments[j])
        total += moments[j]
        starts[j + 1] = G
    drag[INVERSE], drag[INVERSE_BY_H0], drag[INVERSE_BY_H1] = (
        total[VALUE, SHEAR] * half,
        total[D_H0, SHEAR] * half,
        total[D_H1, SHEAR] * half * half,
    )
    loads[:], slopes[:] = 0.0, 0.0
    C = total[VALUE, GROWTH] / total[VALUE, CUBE]
    # whether φ, with the slope (G − C)/H³, is positive next to the lower and the upper end
    low, high = C < 0.0, starts[count, VALUE] < C
    resting = x.g0 == 0.0 and x.g1 == 0.0  # see the module for g = 0
    if not (low or high or resting):
        return 0.0, 0.0
    middle = 0.0
    if resting or (low and high):
        part[:] = total
    else:
        middle = _positive_part(
            x, s, edges, count, C, low, moments, starts, rule, derivatives, part, work
        )
    scale = -6.0 * mu * half**3 * (0.5 if resting else 1.0)
    square = middle * middle
    loads[0] = scale * (
        part[VALUE, GROWTH_R]
        - middle * part[VALUE, GROWTH]
        - C * (part[VALUE, CUBE_R] - middle * part[VALUE, CUBE])
    )
    lever = (
        part[VALUE, GROWTH_RR]
        - square * part[VALUE, GROWTH]
        - C * (part[VALUE, CUBE_RR] - square * part[VALUE, CUBE])
    )
    loads[1] = 0.5 * scale * half * lever
    if derivatives:
        for i in range(4):
            # derivatives by the entries of x along r; `unit` converts them to those along z
            p, unit = part[1 + i], half if i % 2 else 1.0
            by_C = (total[1 + i, GROWTH] - C * total[1 + i, CUBE]) / total[VALUE, CUBE]
            first = p[GROWTH_R] - middle * p[GROWTH] - C * (p[CUBE_R] - middle * p[CUBE])
            first -= by_C * (part[VALUE, CUBE_R] - middle * part[VALUE, CUBE])
            second = p[GROWTH_RR] - square * p[GROWTH] - C * (p[CUBE_RR] - square * p[CUBE])
            second -= by_C * (part[VALUE, CUBE_RR] - square * part[VALUE, CUBE])
            slopes[0, i] = scale * unit * first
            slopes[1, i] = 0.5 * scale * half * unit * second
    peak = 6.0 * mu * half * half
    peak *= _largest(x, s, edges, count, C, moments, starts, rule, work)
    flow = 0.5 * half * (max(-C, 0.0) + max(C - starts[count, VALUE], 0.0))
    return peak, flow
