"""Pressure and loads of an oil film on the grid of a journal bearing, with exact derivatives.

The module `reynolds` describes the grid, its arrays and the reduced pressure q. The loads are the
film loads g of the module `frames`.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.reynolds import Integers, film_pressure, reynolds_gradients
from dolfinx_mbd.kernels.films.thickness import asperity_pressure, boundary_drag, thickness
from dolfinx_mbd.kernels.small_vectors import Array


@kernel
def film_pressures(q: Array, h: Array, values: Array, p: Array, slopes: Array) -> None:
    """Write the pressures p of film and asperities (2, n, m+1), and the slopes ∂p/∂q and ∂p/∂h."""
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            p[0, i, j], slopes[0, i, j], _ = film_pressure(q[i, j], values[8])
            p[1, i, j], slopes[1, i, j] = asperity_pressure(h[i, j], values[4], values[5])


@inner_kernel
def _end_flow(q: Array, flow: Array, links: Integers, ends: Array, mu: float) -> float:
    """Return the flow out of both ends, with the sources of the half cells at the ends."""
    total, last = 0.0, q.shape[1] - 1
    for i in range(q.shape[0]):
        for j, inner, face in ((0, 1, 0), (last, last - 1, last - 1)):
            if q[i, inner] > 0.0:
                total += flow[1, i, face] * (q[i, inner] - q[i, j]) - 0.5 * flow[2, i, j]
    for t in range(len(links)):  # from the edge of a supply to the end
        i, j = links[t, 0], links[t, 1]
        if i == links[t, 2] and (j == 0 or j == last):
            total += ends[t, 2] * (ends[t, 1] - q[i, j])
    return total / (12.0 * mu)


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
    contact: bool,
) -> tuple[Array, Array]:
    """Return the film loads (5,) of a pressure, and (smallest gap, peak pressure, side flow).

    Z (2, m+1) are the axial positions and the areas of the nodes; `contact` states whether the
    loads contain the pressure of the asperities at the nodes.
    """
    n, columns = q.shape
    R = values[0]
    g, facts = np.zeros(5), np.array([h[0, 0], 0.0, 0.0])
    rub, _ = boundary_drag(R * speed, values[6], values[7])
    modulus = values[5] if contact else 0.0
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        P0, P1 = 0.0, 0.0
        for j in range(columns):
            weight = Z[1, j]
            p, slope, _ = film_pressure(q[i, j], values[8])
            solid, _ = asperity_pressure(h[i, j], values[4], modulus)
            P0 += weight * (p + solid)
            P1 += weight * Z[0, j] * (p + solid)
            shear = values[3] * slope * R * speed / flow[3, i, j]
            g[4] += weight * R * (shear + rub * solid)
            facts[0], facts[1] = min(facts[0], h[i, j]), max(facts[1], p)
        g[0] -= P0 * math.cos(theta)
        g[1] -= P0 * math.sin(theta)
        g[2] -= P1 * math.cos(theta)
        g[3] -= P1 * math.sin(theta)
    facts[2] = _end_flow(q, flow, links, ends, values[3])
    return g, facts


@inner_kernel
def _functionals(values: Array, Z: Array, q: Array, flow: Array, speed: float) -> Array:
    """Return the derivatives (5, n, m+1) of the film loads with respect to q."""
    n, columns = q.shape
    C = np.empty((5 if values[8] > 0.0 else 4, n, columns))
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        for j in range(columns):
            weight = Z[1, j]
            _, slope, bend = film_pressure(q[i, j], values[8])
            C[0, i, j] = -weight * slope * math.cos(theta)
            C[1, i, j] = -weight * slope * math.sin(theta)
            C[2, i, j] = C[0, i, j] * Z[0, j]
            C[3, i, j] = C[1, i, j] * Z[0, j]
            if values[8] > 0.0:
                drag = values[3] * values[0] ** 2 * speed / flow[3, i, j]
                C[4, i, j] = weight * drag * bend
    return C


@inner_kernel
def _add_direct(
    speed: float, values: Array, Z: Array, h: Array, q: Array, contact: bool, by_gap: Array
) -> float:
    """Add the direct derivatives ∂g/∂h of the loads to by_gap (5, n, m+1); return ∂T/∂Ω."""
    n, columns = q.shape
    R = values[0]
    rub, rub_by = boundary_drag(R * speed, values[6], values[7])
    by_speed, modulus = 0.0, values[5] if contact else 0.0
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        x, v = math.cos(theta), math.sin(theta)
        for j in range(columns):
            weight = Z[1, j]
            H, slope = thickness(h[i, j], values[4])
            _, share, _ = film_pressure(q[i, j], values[8])
            viscous = weight * R * R * values[3] * share / H
            by_gap[4, i, j] -= viscous * speed * slope / H
            solid, change = asperity_pressure(h[i, j], values[4], modulus)
            by_speed += viscous + weight * R * R * rub_by * solid
            if change != 0.0:
                by_gap[0, i, j] -= weight * change * x
                by_gap[1, i, j] -= weight * change * v
                by_gap[2, i, j] -= weight * change * x * Z[0, j]
                by_gap[3, i, j] -= weight * change * v * Z[0, j]
                by_gap[4, i, j] += weight * R * rub * change
    return by_speed


@kernel
def grid_load_gradients(
    rate: Array,
    speed: float,
    values: Array,
    Z: Array,
    h: Array,
    number: Integers,
    size: Integers,
    q: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    contact: bool,
) -> tuple[Array, Array, Array]:
    """Return ∂g/∂h and ∂g/∂ḣ at every node, and ∂g/∂Ω, of the film loads g.

    The shapes are (5, n, m+1), (5, n, m+1) and (5,). Call `reynolds_solve` before.
    """
    C = _functionals(values, Z, q, flow, speed)
    gap, rates, speeds = reynolds_gradients(
        h, rate, speed, values, number, size, q, flow, band, links, ends, C
    )
    by_gap, by_rate = np.zeros((5, *h.shape)), np.zeros((5, *h.shape))
    by_speed = np.zeros(5)
    by_gap[: len(C)], by_rate[: len(C)], by_speed[: len(C)] = gap, rates, speeds
    by_speed[4] += _add_direct(speed, values, Z, h, q, contact, by_gap)
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
            dg[k, 0] -= gap0 * x
            dg[k, 1] -= gap0 * v
            dg[k, 2] -= gap1 * x
            dg[k, 3] -= gap1 * v
            dg[k, 4] -= rate0 * x
            dg[k, 5] -= rate0 * v
            dg[k, 6] -= rate1 * x
            dg[k, 7] -= rate1 * v
        dg[k, 8] = by_speed[k]
    return dg
