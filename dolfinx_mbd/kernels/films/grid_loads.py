"""Pressure and loads of an oil film on the grid of a journal bearing, with exact derivatives.

The module `reynolds` describes the grid, its arrays and the reduced pressure q. The loads are the
film loads g of the module `frames`.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.band import Integers
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    ASPERITIES,
    BARUS,
    CONDUCTANCE,
    DRAG,
    F_X,
    F_Y,
    FILM,
    FRICTION,
    FRICTION_POWER,
    FRICTION_SPEED,
    G_X,
    G_Y,
    PEAK_PRESSURE,
    POINT,
    RADIUS,
    SIDE_FLOW,
    SOURCE,
    STRESS,
    SUPPLY,
    VISCOSITY,
    WEIGHT,
)
from dolfinx_mbd.kernels.films.reynolds import film_pressure
from dolfinx_mbd.kernels.films.rough_surfaces import film_at
from dolfinx_mbd.kernels.films.thickness import boundary_drag
from dolfinx_mbd.kernels.small_vectors import Array


@inner_kernel
def _end_flow(q: Array, flow: Array, links: Integers, ends: Array, mu: float) -> float:
    """Return the volume flow out of both ends of the bearing.

    A node at an end has half a cell, and therefore half the source.
    """
    total, last = 0.0, q.shape[1] - 1
    for i in range(q.shape[0]):
        for j, inner, face in ((0, 1, 0), (last, last - 1, last - 1)):
            if q[i, inner] > 0.0:
                total += flow[ALONG, i, face] * (q[i, inner] - q[i, j]) - 0.5 * flow[SOURCE, i, j]
    for t in range(len(links)):  # from the edge of a supply to the end
        i, j, neighbour_i = links[t, 0], links[t, 1], links[t, 2]
        if i == neighbour_i and (j == 0 or j == last):
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
        i, j, neighbour_i = links[t, 0], links[t, 1], links[t, 2]
        if i == neighbour_i or 0 < j < columns - 1:  # none around the bore at its ends
            p, _, _ = film_pressure(q[i, j], values[BARUS])
            supply, _, _ = film_pressure(ends[t, SUPPLY], values[BARUS])
            total += ends[t, CONDUCTANCE] * (ends[t, SUPPLY] - q[i, j]) * (supply - p)
    return total / (12.0 * values[VISCOSITY])


@kernel
def grid_loads(
    speed: float,
    values: Array,
    Z: Array,
    p: Array,
    slopes: Array,
    flow: Array,
    fraction: Array,
    contact: bool,
    g: Array,
) -> None:
    """Write the film loads g (5,) of the pressures.

    Z (2, m+1) are the axial positions and the areas of the nodes, `p` and `slopes` (2, n, m+1) the
    pressures and their slopes: ∂p/∂q is the viscosity relative to that at zero pressure. `fraction`
    (n, m+1) is the part of the gap that is filled with oil, and `contact` states whether the loads
    contain the pressure of the asperities at the nodes.
    """
    n, columns = fraction.shape
    R, total = values[RADIUS], 0.0
    friction, _ = boundary_drag(R * speed, values[FRICTION], values[FRICTION_SPEED])
    viscous = values[VISCOSITY] * R * speed
    g[:] = 0.0
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        # integrals over the node's strip: pressure, and axial position times pressure
        P0, P1 = 0.0, 0.0
        film, share, stress, filled = p[FILM, i], slopes[FILM, i], flow[STRESS, i], fraction[i]
        for j in range(columns):
            force = Z[WEIGHT, j] * film[j]
            P0 += force
            P1 += Z[POINT, j] * force
            total += Z[WEIGHT, j] * filled[j] * share[j] * viscous * stress[j]
        for j in range(columns if contact else 0):
            force = Z[WEIGHT, j] * p[ASPERITIES, i, j]
            P0 += force
            P1 += Z[POINT, j] * force
            total += friction * force
        cosine, sine = math.cos(theta), math.sin(theta)
        g[F_X] -= P0 * cosine
        g[F_Y] -= P0 * sine
        g[G_X] -= P1 * cosine
        g[G_Y] -= P1 * sine
    g[DRAG] = R * total


@inner_kernel
def smallest_gap(h: Array) -> float:
    """Return the smallest gap, from the parabola around the bore through the smallest nodes.

    The smallest gap at a node is too large by up to c ε (π/n)²/2 with n nodes around the bore, the
    clearance c and the eccentricity ratio ε.
    """
    n, columns = h.shape
    row, column = 0, 0
    for i in range(n):
        for j in range(columns):
            if h[i, j] < h[row, column]:
                row, column = i, j
    least, before, after = h[row, column], h[row - 1, column], h[(row + 1) % n, column]
    curvature = before - 2.0 * least + after
    if curvature > 0.0:
        least -= 0.125 * (after - before) ** 2 / curvature
    return least


@kernel
def film_state(
    values: Array, h: Array, q: Array, p: Array, flow: Array, links: Integers, ends: Array
) -> Array:
    """Return the state (4,) of the film, see `fields`, with the power of the pressure gradients."""
    state = np.array([smallest_gap(h), 0.0, 0.0, 0.0])
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            state[PEAK_PRESSURE] = max(state[PEAK_PRESSURE], p[FILM, i, j])
    state[SIDE_FLOW] = _end_flow(q, flow, links, ends, values[VISCOSITY])
    state[FRICTION_POWER] = _flow_power(q, flow, links, ends, values)
    return state


@kernel
def drag_functional(speed: float, values: Array, Z: Array, q: Array, flow: Array) -> Array:
    """Return the derivative (n, m+1) of the drag with respect to q."""
    n, columns = q.shape
    out, factor = np.empty((n, columns)), values[VISCOSITY] * values[RADIUS] ** 2 * speed
    for i in range(n):
        for j in range(columns):
            _, _, bend = film_pressure(q[i, j], values[BARUS])
            out[i, j] = Z[WEIGHT, j] * factor * flow[STRESS, i, j] * bend
    return out


@kernel
def drag_gradients(
    speed: float,
    values: Array,
    Z: Array,
    h: Array,
    p: Array,
    slopes: Array,
    fraction: Array,
    contact: bool,
    by_gap: Array,
) -> float:
    """Write ∂T/∂h of the drag torque T for constant q to by_gap (n, m+1); return ∂T/∂Ω.

    `contact` states whether the torque contains that of the asperities at the nodes.
    """
    R, by_speed = values[RADIUS], 0.0
    friction, friction_by = boundary_drag(R * speed, values[FRICTION], values[FRICTION_SPEED])
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            film, area = film_at(h[i, j], values), Z[WEIGHT, j]
            share = slopes[FILM, i, j] * fraction[i, j]
            viscous = area * R * R * values[VISCOSITY] * share
            by_gap[i, j] = viscous * speed * film.shear_slope
            by_speed += viscous * film.shear
            if contact:
                by_gap[i, j] += area * R * friction * slopes[ASPERITIES, i, j]
                by_speed += area * R * R * friction_by * p[ASPERITIES, i, j]
    return by_speed
