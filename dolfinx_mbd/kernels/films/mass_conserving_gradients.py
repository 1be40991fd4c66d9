"""Derivatives of functionals of pressure and film fraction of a mass-conserving film."""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.band import (
    BANDWIDTH,
    UNKNOWNS,
    Integers,
    gather_nodes,
    scatter_nodes,
)
from dolfinx_mbd.kernels.films.fields import (
    CONTENT_SLOPE,
    LENGTH,
    RADIUS,
    VISCOSITY,
)
from dolfinx_mbd.kernels.films.mass_conserving import carried
from dolfinx_mbd.kernels.films.reynolds import next_index, previous_index
from dolfinx_mbd.kernels.films.reynolds_gradients import (
    add_link_gradients,
    by_face_node,
    face_slopes,
    is_resting,
    node_weights,
)
from dolfinx_mbd.kernels.films.rough_surfaces import Film, film_at
from dolfinx_mbd.kernels.small_vectors import Array
from dolfinx_mbd.kernels.vector_operations import subtract_multiple


@inner_kernel
def _substitute_transposed(size: Integers, band: Array, X: Array) -> None:
    """Solve with the transposed matrix for the right-hand sides X (unknowns, k) in place.

    k is a multiple of `LANES`.
    """
    count, width, columns = size[UNKNOWNS], size[BANDWIDTH], X.shape[1]
    flat = X.reshape(X.size)
    for r in range(count):
        inverse = 1.0 / band[r, width]
        for c in range(columns):
            X[r, c] *= inverse
        for k in range(1, min(width, count - 1 - r) + 1):
            factor = band[r, width + k]
            if factor != 0.0:
                subtract_multiple(flat, (r + k) * columns, factor, r * columns, columns)
    for r in range(count - 1, -1, -1):
        for k in range(1, min(width, r) + 1):
            factor = band[r, width - k]
            if factor != 0.0:
                subtract_multiple(flat, (r - k) * columns, factor, r * columns, columns)


@inner_kernel
def _storage_slopes(
    film: Film, rate: float, fraction: float, area: float, old: float, dt: float
) -> tuple[float, float]:
    """Return ∂s/∂h and ∂s/∂ḣ of the rate s at which a cell stores oil, see `mass_conserving`.

    Args:
        film: Thicknesses at the gap h, with their derivatives with respect to h.
        rate: Rate ḣ of the gap, m/s.
        fraction: Film fraction ρ.
        area: 12 μ₀ times the area of the cell.
        old: Content m before the step, m; −1 where the gap was full.
        dt: Length of the step, s; 0 for a steady motion.
    """
    if dt == 0.0:
        return fraction * area * film.content_second * rate, fraction * area * film.content_slope
    if old >= 0.0 or film.content_slope * rate * dt > film.entrained:
        return fraction * area * film.entrained_slope / dt, 0.0
    void = (1.0 - fraction) * film.entrained_slope / dt
    return area * (film.content_second * rate - void), area * film.content_slope


@kernel
def mass_conserving_gradients(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    free: Integers,
    number: Integers,
    size: Integers,
    q: Array,
    fraction: Array,
    face: Array,
    old: Array,
    dt: float,
    carry: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    C: Array,
) -> tuple[Array, Array, Array]:
    """Return ∂f_k/∂h and ∂f_k/∂ḣ at every node, and ∂f_k/∂Ω, of functionals f_k of q and ρ.

    C (n, m+1, k) are the derivatives of f_k with respect to q where the film is full, and to ρ
    elsewhere. Call `mass_conserving_solve` before with the same arrays, which the modules
    `reynolds` and `mass_conserving` describe. The results are those of `reynolds_gradients`.
    """
    n, columns, K = C.shape
    part = 0.5 if is_resting(q, flow) else 1.0  # see `reynolds_gradients`
    dx, dz = 2.0 * math.pi * values[RADIUS] / n, values[LENGTH] / (columns - 1)
    mu = values[VISCOSITY]
    by_gap, by_rate, by_speed = np.zeros(C.shape), np.zeros(C.shape), np.zeros(K)
    X = gather_nodes(number, C, part, size[UNKNOWNS])
    for i in range(n):  # where the film is ruptured, C is by ρ, and the unknown is −(1 − ρ) `face`
        for j in range(columns):
            if number[i, j] >= 0 and not free[i, j]:
                X[number[i, j]] /= face[i, j]
    _substitute_transposed(size, band, X)
    lam = scatter_nodes(number, X, K)
    entrained, squeeze = 6.0 * mu * values[RADIUS] * dz, 12.0 * mu * dx * dz
    sign = 1.0 if speed >= 0.0 else -1.0
    for i in range(n):
        i1, i0 = next_index(i, n), previous_index(i, n)
        down, up = (i1, i0) if speed >= 0.0 else (i0, i1)
        second = next_index(i1, n) if speed >= 0.0 else previous_index(i0, n)
        for j in range(columns):
            film = film_at(h[i, j], values)
            a, b, c, d, e = node_weights(film, q, flow, i, j, dx / dz)
            stored, stored_rate = _storage_slopes(
                film, rate[i, j], fraction[i, j], squeeze, old[i, j], dt
            )
            a += stored
            centre, after, before = lam[i, j], lam[i1, j], lam[i0, j]
            right, left = lam[i, min(j + 1, columns - 1)], lam[i, max(j - 1, 0)]
            arriving = 1.0 - carried(carry, i, j, speed) * (1.0 - fraction[i, j])
            # the nodes upstream and downstream of the face, and the second ones
            film_down = film_at(h[down, j], values)
            parts = face_slopes(h, flow, i if speed >= 0.0 else down, j)
            near = abs(speed) * by_face_node(film, flow[CONTENT_SLOPE, down, j], parts)
            near_down = abs(speed) * by_face_node(film_down, flow[CONTENT_SLOPE, i, j], parts)
            far = abs(speed) * parts[2]
            for k in range(K):
                total = a * centre[k] + b * after[k] + c * before[k] + d * right[k] + e * left[k]
                by_gap[i, j, k] -= total
                by_rate[i, j, k] = -stored_rate * centre[k]
                leaving = entrained * (fraction[i, j] * centre[k] - arriving * lam[down, j, k])
                by_gap[i, j, k] -= near * leaving
                by_gap[down, j, k] -= near_down * leaving
                by_gap[up, j, k] -= far * leaving
                by_gap[second, j, k] -= far * leaving
                by_speed[k] -= sign * face[i, j] * leaving
    add_link_gradients(h, values, lam, q, flow, links, ends, by_gap)
    return by_gap, by_rate, by_speed
