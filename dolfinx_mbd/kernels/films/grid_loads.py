"""Pressure and loads of an oil film on the grid of a journal bearing, with exact derivatives.

The module `reynolds` describes the grid, its arrays and the reduced pressure q. The loads are the
film loads g of the module `frames`.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    ASPERITIES,
    BARUS,
    CONDUCTANCE,
    DRAG,
    E_X,
    E_X_RATE,
    E_Y,
    E_Y_RATE,
    F_X,
    F_Y,
    FILM,
    FRICTION,
    FRICTION_POWER,
    FRICTION_SPEED,
    G_X,
    G_Y,
    MODULUS,
    PEAK_PRESSURE,
    POINT,
    RADIUS,
    ROUGHNESS,
    SIDE_FLOW,
    SMALLEST_GAP,
    SOURCE,
    SPIN,
    STRESS,
    SUPPLY,
    T_X,
    T_X_RATE,
    T_Y,
    T_Y_RATE,
    VISCOSITY,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.reynolds import Integers, film_pressure
from dolfinx_mbd.kernels.films.rough_surfaces import film_at
from dolfinx_mbd.kernels.films.thickness import asperity_pressure, boundary_drag
from dolfinx_mbd.kernels.small_vectors import Array


@kernel
def film_pressures(q: Array, h: Array, values: Array, p: Array, slopes: Array) -> float:
    """Write the pressures p of film and asperities (2, n, m+1), and the slopes ∂p/∂q and ∂p/∂h.

    The result is the sum of all pressures.
    """
    total = 0.0
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            p[FILM, i, j], slopes[FILM, i, j], _ = film_pressure(q[i, j], values[BARUS])
            p[ASPERITIES, i, j], slopes[ASPERITIES, i, j] = asperity_pressure(
                h[i, j], values[ROUGHNESS], values[MODULUS]
            )
            total += p[FILM, i, j] + p[ASPERITIES, i, j]
    return total


@inner_kernel
def _end_flow(q: Array, flow: Array, links: Integers, ends: Array, mu: float) -> float:
    """Return the volume flow out of both ends of the bearing.

    The sources are those of the half cells at the ends.
    """
    total, last = 0.0, q.shape[1] - 1
    for i in range(q.shape[0]):
        for j, inner, face in ((0, 1, 0), (last, last - 1, last - 1)):
            if q[i, inner] > 0.0:
                total += flow[ALONG, i, face] * (q[i, inner] - q[i, j]) - 0.5 * flow[SOURCE, i, j]
    for t in range(len(links)):  # from the edge of a supply to the end
        i, j = links[t, 0], links[t, 1]
        if i == links[t, 2] and (j == 0 or j == last):
            total += ends[t, CONDUCTANCE] * (ends[t, SUPPLY] - q[i, j])
    return total / (12.0 * mu)


@inner_kernel
def _flow_power(q: Array, flow: Array, links: Integers, ends: Array, values: Array) -> float:
    """Return the power that the flow by pressure gradients dissipates, ∫ h³/12μ |∇p|² dA."""
    n, columns = q.shape
    total = 0.0
    for i in range(n):
        i1 = i + 1 if i + 1 < n else 0
        for j in range(columns):
            p, _, _ = film_pressure(q[i, j], values[BARUS])
            after, _, _ = film_pressure(q[i1, j], values[BARUS])
            total += flow[AROUND, i, j] * (q[i1, j] - q[i, j]) * (after - p)
            if j + 1 < columns:
                right, _, _ = film_pressure(q[i, j + 1], values[BARUS])
                total += flow[ALONG, i, j] * (q[i, j + 1] - q[i, j]) * (right - p)
    for t in range(len(links)):
        i, j = links[t, 0], links[t, 1]
        if i == links[t, 2] or 0 < j < columns - 1:  # none around the bore at its ends
            p, _, _ = film_pressure(q[i, j], values[BARUS])
            supply, _, _ = film_pressure(ends[t, SUPPLY], values[BARUS])
            total += ends[t, CONDUCTANCE] * (ends[t, SUPPLY] - q[i, j]) * (supply - p)
    return total / (12.0 * values[VISCOSITY])


@kernel
def grid_loads(
    speed: float,
    values: Array,
    Z: Array,
    h: Array,
    q: Array,
    flow: Array,
    links: Integers,
    ends: Array,
    fraction: Array,
    contact: bool,
) -> tuple[Array, Array]:
    """Return the film loads (5,) of a pressure, and the state (4,) of the film, see `fields`.

    Z (2, m+1) are the axial positions and the areas of the nodes, `fraction` (n, m+1) is the part
    of the gap that is filled with oil, and `contact` states whether the loads contain the pressure
    of the asperities at the nodes.
    """
    n, columns = q.shape
    R = values[RADIUS]
    g, facts = np.zeros(5), np.array([h[0, 0], 0.0, 0.0, 0.0])
    rub, _ = boundary_drag(R * speed, values[FRICTION], values[FRICTION_SPEED])
    modulus = values[MODULUS] if contact else 0.0
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        P0, P1 = (
            0.0,
            0.0,
        )  # integrals over the node's strip: pressure, axial position times pressure
        for j in range(columns):
            weight = Z[WEIGHT, j]
            p, slope, _ = film_pressure(q[i, j], values[BARUS])
            solid, _ = asperity_pressure(h[i, j], values[ROUGHNESS], modulus)
            P0 += weight * (p + solid)
            P1 += weight * Z[POINT, j] * (p + solid)
            shear = fraction[i, j] * values[VISCOSITY] * slope * R * speed * flow[STRESS, i, j]
            g[DRAG] += weight * R * (shear + rub * solid)
            facts[SMALLEST_GAP], facts[PEAK_PRESSURE] = (
                min(facts[SMALLEST_GAP], h[i, j]),
                max(facts[PEAK_PRESSURE], p),
            )
        g[F_X] -= P0 * math.cos(theta)
        g[F_Y] -= P0 * math.sin(theta)
        g[G_X] -= P1 * math.cos(theta)
        g[G_Y] -= P1 * math.sin(theta)
    facts[SIDE_FLOW] = _end_flow(q, flow, links, ends, values[VISCOSITY])
    facts[FRICTION_POWER] = _flow_power(q, flow, links, ends, values) + g[DRAG] * speed
    return g, facts


@kernel
def load_functionals(values: Array, Z: Array, q: Array, flow: Array, speed: float) -> Array:
    """Return the derivatives (n, m+1, 4) of the film loads with respect to q.

    If the viscosity depends on the pressure, the drag also depends on q, and there are 5 columns.
    """
    n, columns = q.shape
    C = np.empty((n, columns, 5 if values[BARUS] > 0.0 else 4))
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        for j in range(columns):
            weight = Z[WEIGHT, j]
            _, slope, bend = film_pressure(q[i, j], values[BARUS])
            C[i, j, F_X] = -weight * slope * math.cos(theta)
            C[i, j, F_Y] = -weight * slope * math.sin(theta)
            C[i, j, G_X] = C[i, j, F_X] * Z[POINT, j]
            C[i, j, G_Y] = C[i, j, F_Y] * Z[POINT, j]
            if values[BARUS] > 0.0:
                drag = values[VISCOSITY] * values[RADIUS] ** 2 * speed * flow[STRESS, i, j]
                C[i, j, DRAG] = weight * drag * bend
    return C


@inner_kernel
def _direct_slopes(
    speed: float, values: Array, weight: float, h: float, q: float, fraction: float, modulus: float
) -> tuple[float, float, float]:
    """Return the direct slopes at a node: ∂T/∂h, ∂T/∂Ω, and of the force of asperities by h."""
    R = values[RADIUS]
    rub, rub_by = boundary_drag(R * speed, values[FRICTION], values[FRICTION_SPEED])
    film = film_at(h, values)
    _, share, _ = film_pressure(q, values[BARUS])
    viscous = fraction * weight * R * R * values[VISCOSITY] * share
    solid, change = asperity_pressure(h, values[ROUGHNESS], modulus)
    by_gap = viscous * speed * film.shear_slope + weight * R * rub * change
    return by_gap, viscous * film.shear + weight * R * R * rub_by * solid, weight * change


@inner_kernel
def _add_direct(
    speed: float,
    values: Array,
    Z: Array,
    h: Array,
    q: Array,
    fraction: Array,
    contact: bool,
    by_gap: Array,
) -> float:
    """Add the direct derivatives ∂g/∂h of the loads to by_gap (5, n, m+1); return ∂T/∂Ω."""
    n, columns = q.shape
    by_speed, modulus = 0.0, values[MODULUS] if contact else 0.0
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        x, v = math.cos(theta), math.sin(theta)
        for j in range(columns):
            drag, turn, change = _direct_slopes(
                speed, values, Z[WEIGHT, j], h[i, j], q[i, j], fraction[i, j], modulus
            )
            by_gap[DRAG, i, j] += drag
            by_speed += turn
            if change != 0.0:
                by_gap[F_X, i, j] -= change * x
                by_gap[F_Y, i, j] -= change * v
                by_gap[G_X, i, j] -= change * x * Z[POINT, j]
                by_gap[G_Y, i, j] -= change * v * Z[POINT, j]
    return by_speed


@kernel
def add_drag_gradients(
    speed: float, values: Array, Z: Array, h: Array, q: Array, fraction: Array, by_gap: Array
) -> float:
    """Add ∂T/∂h of the drag torque T for constant q to the last column of by_gap (n, m+1, k).

    The result is ∂T/∂Ω for constant q. The torque contains that of the asperities at the nodes.
    """
    by_speed, last = 0.0, by_gap.shape[2] - 1
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            drag, turn, _ = _direct_slopes(
                speed, values, Z[WEIGHT, j], h[i, j], q[i, j], fraction[i, j], values[MODULUS]
            )
            by_gap[i, j, last] += drag
            by_speed += turn
    return by_speed


@kernel
def add_direct_gradients(
    speed: float,
    values: Array,
    Z: Array,
    h: Array,
    q: Array,
    fraction: Array,
    contact: bool,
    gap: Array,
    rates: Array,
    speeds: Array,
) -> tuple[Array, Array, Array]:
    """Return ∂g/∂h and ∂g/∂ḣ at every node, and ∂g/∂Ω, of the film loads g.

    The shapes are (5, n, m+1), (5, n, m+1) and (5,). `gap`, `rates` (n, m+1, k) and `speeds` (k,)
    are the parts of these derivatives by the functionals of `load_functionals`.
    """
    by_gap, by_rate = np.zeros((5, *h.shape)), np.zeros((5, *h.shape))
    by_speed = np.zeros(5)
    by_speed[: len(speeds)] = speeds
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            source, other = gap[i, j], rates[i, j]
            for k in range(len(speeds)):
                by_gap[k, i, j], by_rate[k, i, j] = source[k], other[k]
    by_speed[DRAG] += _add_direct(speed, values, Z, h, q, fraction, contact, by_gap)
    return by_gap, by_rate, by_speed


@kernel
def rigid_derivatives(by_gap: Array, by_rate: Array, by_speed: Array, z: Array) -> Array:
    """Return the derivatives (5, 9) of the film loads with respect to the journal's motion y."""
    n = by_gap.shape[1]
    dg = np.zeros((5, 9))
    for k in range(5):
        for i in range(n):
            theta = 2.0 * math.pi * i / n
            gap0, gap1, rate0, rate1 = 0.0, 0.0, 0.0, 0.0
            for j in range(by_gap.shape[2]):
                gap0 += by_gap[k, i, j]
                gap1 += by_gap[k, i, j] * z[j]
                rate0 += by_rate[k, i, j]
                rate1 += by_rate[k, i, j] * z[j]
            x, v = math.cos(theta), math.sin(theta)
            dg[k, E_X] -= gap0 * x
            dg[k, E_Y] -= gap0 * v
            dg[k, T_X] -= gap1 * x
            dg[k, T_Y] -= gap1 * v
            dg[k, E_X_RATE] -= rate0 * x
            dg[k, E_Y_RATE] -= rate0 * v
            dg[k, T_X_RATE] -= rate1 * x
            dg[k, T_Y_RATE] -= rate1 * v
        dg[k, SPIN] = by_speed[k]
    return dg


@inner_kernel
def _add_line(part: Array, x: float, v: float, first: int, dg: Array) -> None:
    """Add the derivatives by the motion from sums (2, k) over a line: of slopes, and of z slopes.

    The columns of dg from `first` on belong to displacements (`E_X`) or velocities (`E_X_RATE`).
    """
    for k in range(part.shape[1]):
        dg[k, first] -= part[0, k] * x
        dg[k, first + 1] -= part[0, k] * v
        dg[k, first + 2] -= part[1, k] * x
        dg[k, first + 3] -= part[1, k] * v


@kernel
def rigid_load_derivatives(
    speed: float,
    values: Array,
    Z: Array,
    h: Array,
    q: Array,
    fraction: Array,
    contact: bool,
    gap: Array,
    rates: Array,
    speeds: Array,
) -> Array:
    """Return the derivatives (5, 9) of the film loads with respect to the journal's motion y.

    The arguments are those of `add_direct_gradients`.
    """
    n, columns, K = gap.shape
    dg, modulus = np.zeros((5, 9)), values[MODULUS] if contact else 0.0
    by_gap, by_rate = np.empty((2, 5)), np.empty((2, 5))
    dg[:K, SPIN] = speeds
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        x, v = math.cos(theta), math.sin(theta)
        by_gap[:], by_rate[:] = 0.0, 0.0
        for j in range(columns):
            z, one, other = Z[POINT, j], gap[i, j], rates[i, j]
            for k in range(K):
                by_gap[0, k] += one[k]
                by_gap[1, k] += z * one[k]
                by_rate[0, k] += other[k]
                by_rate[1, k] += z * other[k]
            drag, turn, change = _direct_slopes(
                speed, values, Z[WEIGHT, j], h[i, j], q[i, j], fraction[i, j], modulus
            )
            by_gap[0, DRAG] += drag
            by_gap[1, DRAG] += z * drag
            dg[DRAG, SPIN] += turn
            if change != 0.0:
                for force, moment, part in ((F_X, G_X, change * x), (F_Y, G_Y, change * v)):
                    by_gap[0, force] -= part
                    by_gap[1, force] -= z * part
                    by_gap[0, moment] -= z * part
                    by_gap[1, moment] -= z * z * part
        _add_line(by_gap, x, v, E_X, dg)
        _add_line(by_rate, x, v, E_X_RATE, dg)
    return dg
