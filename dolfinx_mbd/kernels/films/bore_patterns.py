"""Gap, forces and derivatives of films whose bore deforms in patterns, and loads of these films.

The patterns are the products of functions of the angle, `around` (n, A), and of functions of the
position along the axis, `along` (m+1, L). Coefficient a L + l belongs to the functions a and l. The
module `reynolds` describes the grid.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.fields import (
    ASPERITIES,
    CLEARANCE,
    DRAG,
    E_X,
    E_X_RATE,
    E_Y,
    E_Y_RATE,
    FILM,
    LENGTH,
    SPIN,
    T_X,
    T_X_RATE,
    T_Y,
    T_Y_RATE,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.frames import film_wrenches
from dolfinx_mbd.kernels.films.grid_loads import grid_loads
from dolfinx_mbd.kernels.small_vectors import Array

SAME, NEW, UNUSABLE = range(3)  #: Results of `elastic_gap`


@inner_kernel
def add_pattern_row(row: Array, around: Array, along: Array, sums: Array, total: Array) -> None:
    """Add the derivatives by patterns due to those by the gap of one row of nodes.

    Args:
        row: Derivatives of k functionals by the gap at the nodes of the row, (m+1, k).
        around: Functions of the angle at the row, (A,).
        along: Functions of the position, (m+1, L).
        sums: Work space, (L, k).
        total: Receives the derivatives, (A, L, k).
    """
    columns, K = row.shape
    L = along.shape[1]
    sums[:] = 0.0
    for m in range(L):
        for j in range(columns):
            for k in range(K):
                sums[m, k] += along[j, m] * row[j, k]
    for a in range(len(around)):
        for m in range(L):
            for k in range(K):
                total[a, m, k] += around[a] * sums[m, k]


@inner_kernel
def pattern_rows(total: Array) -> Array:
    """Return the derivatives (k, A L) from the sums (A, L, k) of `add_pattern_row`."""
    A, L, K = total.shape
    return np.ascontiguousarray(total.reshape(A * L, K).T)


@kernel
def pattern_gradients(by_gap: Array, around: Array, along: Array) -> Array:
    """Return the derivatives (k, A L) with respect to the coefficients of patterns of the gap.

    by_gap (n, m+1, k) are derivatives with respect to the gap at the nodes. The patterns are the
    products of `around` (n, A) and `along` (m+1, L).
    """
    n, _, K = by_gap.shape
    A, L = around.shape[1], along.shape[1]
    total, part = np.zeros((A, L, K)), np.empty((L, K))
    for i in range(n):
        add_pattern_row(by_gap[i], around[i], along, part, total)
    return pattern_rows(total)


@kernel
def pattern_gap(
    y: Array, c: float, z: Array, around: Array, along: Array, s: Array, h: Array, rate: Array
) -> None:
    """Write the gap and its rate for a motion y, and patterns of the displacement of the bore.

    s (2, A L) are the coefficients of the patterns of `pattern_gradients`, and their rates.
    """
    A, L = around.shape[1], along.shape[1]
    part = np.empty((2, L))
    for i in range(h.shape[0]):
        theta = 2.0 * math.pi * i / h.shape[0]
        cos, sin = math.cos(theta), math.sin(theta)
        h0, h1 = c - y[E_X] * cos - y[E_Y] * sin, -y[T_X] * cos - y[T_Y] * sin
        r0, r1 = -y[E_X_RATE] * cos - y[E_Y_RATE] * sin, -y[T_X_RATE] * cos - y[T_Y_RATE] * sin
        part[:] = 0.0
        for a in range(A):
            factor = around[i, a]
            for m in range(L):
                part[0, m] += factor * s[0, a * L + m]
                part[1, m] += factor * s[1, a * L + m]
        for j in range(h.shape[1]):
            w, w_rate = 0.0, 0.0
            for m in range(L):
                w += part[0, m] * along[j, m]
                w_rate += part[1, m] * along[j, m]
            h[i, j] = h0 + h1 * z[j] + w
            rate[i, j] = r0 + r1 * z[j] + w_rate


@kernel
def pattern_forces(p: Array, Z: Array, around: Array, along: Array) -> Array:
    """Return the forces (A L,) of the pressures p (2, n, m+1) on the coefficients of patterns."""
    A, L = around.shape[1], along.shape[1]
    out, part = np.zeros(A * L), np.empty(L)
    for i in range(p.shape[1]):
        part[:] = 0.0
        for j in range(p.shape[2]):
            force = Z[WEIGHT, j] * (p[FILM, i, j] + p[ASPERITIES, i, j])
            for m in range(L):
                part[m] += force * along[j, m]
        for a in range(A):
            for m in range(L):
                out[a * L + m] += around[i, a] * part[m]
    return out


@kernel
def elastic_gap(
    y: Array,
    s: Array,
    point: Array,
    farthest: float,
    values: Array,
    z: Array,
    around: Array,
    along: Array,
    h: Array,
    rate: Array,
) -> int:
    """Write the gap and its rate, and return `SAME`, `NEW` or `UNUSABLE`.

    The gap is not written if y and s (2, A L) are those in `point`, or if they are not finite or an
    end of the journal is farther from the axis than the clearance plus `farthest` (m). If it is
    written, y and s are the new `point`.
    """
    total = 0.0  # not finite if any entry is not
    for k in range(len(y)):
        total += y[k]
    for k in range(s.shape[1]):
        total += s[0, k] + s[1, k]
    far, half = 0.0, 0.5 * values[LENGTH]
    for end in (-half, half):
        far = max(far, math.hypot(y[E_X] + end * y[T_X], y[E_Y] + end * y[T_Y]))
    if not (math.isfinite(total) and far < values[CLEARANCE] + farthest):
        return UNUSABLE
    same, n, m = True, len(y), s.shape[1]
    for k in range(n):
        same = same and point[k] == y[k]
    for k in range(m):
        same = same and point[n + k] == s[0, k] and point[n + m + k] == s[1, k]
    if same:
        return SAME
    pattern_gap(y, values[CLEARANCE], z, around, along, s, h, rate)
    for k in range(n):
        point[k] = y[k]
    for k in range(m):
        point[n + k], point[n + m + k] = s[0, k], s[1, k]
    return NEW


@kernel
def elastic_loads(
    s: Array,
    slope: Array,
    speed: float,
    values: Array,
    Z: Array,
    p: Array,
    slopes: Array,
    flow: Array,
    fraction: Array,
    around: Array,
    along: Array,
    g: Array,
) -> None:
    """Write the film loads (5,), then the forces (A L,) on the coefficients of patterns, to g.

    s (2, A L) are the coefficients and their rates. `slope` (A L, A L) maps the coefficients to
    those of the derivative of the displacement by the angle. The other arguments are those of
    `grid_loads`.
    """
    contact = True  # the loads contain the pressure of the asperities
    grid_loads(speed, values, Z, p, slopes, flow, fraction, contact, g[:5])
    forces = pattern_forces(p, Z, around, along)
    g[5:] = forces
    g[DRAG] -= 0.5 * _couple(forces, slope, s)  # ½ ∫ p ∂w/∂θ dA, see `elastic_bearing`


@kernel
def elastic_wrenches(
    Q1: Array,
    y: Array,
    s: Array,
    slope: Array,
    values: Array,
    Z: Array,
    p: Array,
    slopes: Array,
    flow: Array,
    fraction: Array,
    around: Array,
    along: Array,
    out: Array,
) -> None:
    """Write the wrenches (12,) on bore and journal, then the forces on s; see `elastic_loads`."""
    g = np.empty(5 + len(out) - 12)
    elastic_loads(s, slope, y[SPIN], values, Z, p, slopes, flow, fraction, around, along, g)
    out[:12] = film_wrenches(Q1, y, g)
    out[12:] = g[5:]


@inner_kernel
def _couple(forces: Array, slope: Array, s: Array) -> float:
    """Return the work of forces on the derivative of a displacement by the angle."""
    total = 0.0
    for i in range(len(forces)):
        row, part = slope[i], 0.0
        for k in range(len(row)):
            part += row[k] * s[0, k]
        total += forces[i] * part
    return total


@kernel
def elastic_slopes(
    by_gap: Array,
    by_rate: Array,
    by_speed: Array,
    g: Array,
    s: Array,
    slope: Array,
    L: int,
    half: float,
) -> Array:
    """Return the derivatives (5 + m, 9 + 2m) of `elastic_loads` by the motion, s and ds/dt.

    The rows belong to the 5 film loads and the forces on m coefficients, the columns to the motion
    up to `SPIN` (9), s and ds/dt. The rows of `by_gap` and `by_rate` (m + 1, m) and of `by_speed`
    (m + 1,) are derivatives of the forces on the coefficients, the last row of the drag: by the
    coefficients of the gap, by those of its rate, and by the speed. A motion of the journal changes
    the gap like the first harmonics with the opposite sign; its columns, and the rows of the forces
    on the journal, follow from theirs. `half` is half the length of the bearing.
    """
    m = len(by_speed) - 1
    dg = np.empty((5 + m, 9 + 2 * m))
    by_s, by_s_rate = dg[:, 9 : 9 + m], dg[:, 9 + m :]
    for i in range(m + 1):
        row = 5 + i if i < m else DRAG
        by_s[row], by_s_rate[row], dg[row, SPIN] = by_gap[i], by_rate[i], by_speed[i]
    for i in range(m):  # the drag contains the couple on the bore
        part = 0.0
        for k in range(m):
            part += slope[i, k] * s[0, k]
        for k in range(m):
            by_s[DRAG, k] -= 0.5 * part * by_gap[i, k]
            by_s_rate[DRAG, k] -= 0.5 * part * by_rate[i, k]
        dg[DRAG, SPIN] -= 0.5 * part * by_speed[i]
    # The functions 0, 1 and 2 of the angle are 1, cos θ and sin θ, and the functions 0 and 1 of the
    # position are 1 and z/half
    for k in range(4):  # for e_x, e_y, t_x and t_y
        pattern, factor = L * (1 + k % 2) + k // 2, -1.0 if k < 2 else -half
        for i in range(m + 1):
            row = 5 + i if i < m else DRAG
            dg[row, k] = factor * by_s[row, pattern]
            dg[row, 4 + k] = factor * by_s_rate[row, pattern]
    for k in range(4):
        pattern, factor = L * (1 + k % 2) + k // 2, -1.0 if k < 2 else -half
        for c in range(dg.shape[1]):
            dg[k, c] = factor * dg[5 + pattern, c]
    for i in range(m):  # derivative of the couple on the bore for constant forces
        force = 0.0
        for k in range(m):
            force += g[5 + k] * slope[k, i]
        by_s[DRAG, i] -= 0.5 * force
    return dg
