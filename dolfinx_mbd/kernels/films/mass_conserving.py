"""Mass-conserving cavitation on the grid of a journal bearing (Jakobsson, Floberg and Olsson).

A part ρ of the gap is filled with oil. With the thickness H, the content of the ruptured film
obeys the same balance of mass as the full film:

    div(H³/12μ₀ grad q) = ½ Ω ∂(ρH)/∂θ + ρ ∂H/∂t,    q ≥ 0,  ρ ≤ 1,  q (1 − ρ) = 0

in a steady motion, where ∂ρ/∂t = 0. In a step of length Δt, the last two terms are the rate of the
content, ∂(ρH)/∂t. It is (ρH − m)/Δt with the content m before the step where the gap was not full,
and ∂H/∂t − (1 − ρ) H/Δt where it was, so that a film that remains full has the equations of the
module `reynolds`; there, m = 0 if Δt ∂H/∂t > H. These implicit steps keep ρ ≥ 0.

The flow through the face of a cell is ρ of the upstream node times H at the face. Every node has
one unknown x: q where the film is full, and otherwise minus the void u = (1 − ρ) H, with H at the
face downstream. In a step, the columns are those of an M-matrix, full or not. In a steady motion
they are as long as no gap closes faster than oil leaves it; such gaps are full, so that the loads
jump with ∂H/∂t there.

The active set is updated by the signs of the unknowns. Every 15 iterations, sweeps of a nonlinear
Gauss-Seidel method along the flow (Elrod's algorithm) correct it, because it may alternate while
the gap closes.

References:
    H. G. Elrod, A cavitation algorithm, J. Lubrication Technology 103 (1981).
    M. Giacopini et al., A mass-conserving complementarity formulation to study lubricant films in
    the presence of cavitation, J. Tribology 132 (2010).

In addition to the arrays of `reynolds` there are

    fraction (n, m+1)   ρ; the nodes at the ends have that of their neighbours
    face     (n, m+1)   entrained thickness at the face between a node and the next one downstream
    carry    (n, m+1)   0 where a supply between (i, j) and (i+1, j) fills the gap, otherwise 1
    squeeze  (n, m+1)   12 μ₀ times the area of a cell times the rate of its content if it is full
    hold     (n, m+1)   decrease of this term per void u: the content changes by squeeze − hold u
    old      (n, m+1)   content m before the step, m; −1 where the gap was full
    band     (unknowns, 2w+1+LANES)   factors L U, then zeros; w is the bandwidth
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.band import BANDWIDTH, UNKNOWNS, Integers
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    CLEARANCE,
    ENTRAINED,
    FACE,
    LENGTH,
    LINKS,
    RADIUS,
    SOURCE,
    VISCOSITY,
)
from dolfinx_mbd.kernels.films.reynolds import (
    apply_links,
    enumerate_nodes,
    film_coefficients,
    film_pressures,
    inflow,
    next_index,
    previous_index,
    sources,
)
from dolfinx_mbd.kernels.films.rough_surfaces import film_at
from dolfinx_mbd.kernels.small_vectors import Array
from dolfinx_mbd.kernels.vector_operations import subtract_multiple

_RING = 1e-6  # relative leak of a ring of ruptured nodes, whose content is not determined otherwise
_ROUND_OFF = 1e-13
_EMPTY = 1e-9  # a fraction ρ between minus this number and 0 counts as an empty gap
# Largest number of iterations, iteration at which all nodes are full again, and interval of sweeps
_ITERATIONS, _RESTART, _SWEEPS = 200, 75, 15


@kernel
def number_nodes(fixed: Integers, number: Integers, size: Integers) -> None:
    """Assign numbers to all nodes that are not fixed."""
    enumerate_nodes(1 - fixed, number, size)


@inner_kernel
def _next_downstream(i: int, n: int, speed: float) -> int:
    """Return the index of the next node in the direction of the flow."""
    return next_index(i, n) if speed >= 0.0 else previous_index(i, n)


@inner_kernel
def carried(carry: Array, i: int, j: int, speed: float) -> float:
    """Return the part of the void of a node that flows to the next node downstream."""
    return carry[i, j] if speed >= 0.0 else carry[previous_index(i, len(carry)), j]


@inner_kernel
def _storage_and_faces(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    area: float,
    old: Array,
    dt: float,
    flow: Array,
    squeeze: Array,
    hold: Array,
    face: Array,
) -> float:
    """Compute squeeze, hold and face, and return the largest source.

    `area` is 12 μ₀ times the area of a cell; `dt` is zero for a steady motion.
    """
    n, columns = h.shape
    largest = 0.0
    for i in range(n):
        down = _next_downstream(i, n, speed)
        for j in range(columns):
            H = flow[ENTRAINED, i, j]
            face[i, j] = flow[FACE, i if speed >= 0.0 else down, j]
            full = area * film_at(h[i, j], values).content_slope * rate[i, j]
            squeeze[i, j], hold[i, j] = full, full / face[i, j]
            if dt > 0.0:
                hold[i, j] = area * H / (dt * face[i, j])
                if old[i, j] >= 0.0 or full * dt > area * H:
                    squeeze[i, j] = area * (H - max(old[i, j], 0.0)) / dt
                    flow[SOURCE, i, j] += squeeze[i, j] - full
            largest = max(largest, abs(flow[SOURCE, i, j]))
    return largest


@inner_kernel
def _is_ring(number: Integers, free: Integers, carry: Array, j: int) -> bool:
    """Return whether the film is ruptured all around the bore, without a supply."""
    for i in range(len(number)):
        if number[i, j] < 0 or free[i, j] or carry[i, j] == 0.0:
            return False
    return True


@inner_kernel
def _assemble(
    free: Integers,
    number: Integers,
    size: Integers,
    flow: Array,
    carry: Array,
    hold: Array,
    c: float,
    speed: float,
    dt: float,
    band: Array,
) -> None:
    """Assemble the matrix column by column.

    `c` is 12 μ₀ times the flow that the speed entrains per thickness, and `dt` is zero for a steady
    motion.
    """
    n, columns = free.shape
    width = size[BANDWIDTH]
    band[: size[UNKNOWNS]] = 0.0
    for j in range(1, columns - 1):
        leak = _RING if dt == 0.0 and _is_ring(number, free, carry, j) else 0.0
        for i in range(n):
            b = number[i, j]  # index of this unknown; `a` is that of a neighbour
            if b < 0:
                continue
            i1, i0 = next_index(i, n), previous_index(i, n)
            if not free[i, j]:
                band[b, width] += c * (1.0 + leak) + hold[i, j]
                a = number[i1 if speed >= 0.0 else i0, j]
                if a >= 0:
                    band[a, width + b - a] -= c * carried(carry, i, j, speed)
                continue
            band[b, width] += flow[LINKS, i, j]
            for k, row, column in (
                (flow[AROUND, i, j], i1, j),
                (flow[AROUND, i0, j], i0, j),
                (flow[ALONG, i, j], i, j + 1),
                (flow[ALONG, i, j - 1], i, j - 1),
            ):
                band[b, width] += k
                a = number[row, column]
                if a >= 0:
                    band[a, width + b - a] -= k


@inner_kernel
def _factorize(size: Integers, band: Array) -> None:
    """Factorize the matrix in place, with L below the diagonal."""
    count, width, columns = size[UNKNOWNS], size[BANDWIDTH], band.shape[1]
    flat = band.reshape(band.size)
    for r in range(count):
        inverse, source = 1.0 / band[r, width], r * columns + width
        for k in range(1, min(width, count - 1 - r) + 1):
            factor, target = band[r + k, width - k] * inverse, (r + k) * columns + width - k
            if factor != 0.0:
                band[r + k, width - k] = factor
                subtract_multiple(flat, target + 1, factor, source + 1, width)


@inner_kernel
def _substitute(size: Integers, band: Array, x: Array) -> None:
    """Solve for a right-hand side x (unknowns,) in place; four terms at once."""
    count, width = size[UNKNOWNS], size[BANDWIDTH]
    for r in range(count):
        row, total, k = band[r], x[r], min(width, r)
        while k >= 4:  # the term with the neighbour r − 1 is the last one
            pair = row[width - k] * x[r - k] + row[width - k + 1] * x[r - k + 1]
            k -= 4
            total -= pair + (row[width - k - 2] * x[r - k - 2] + row[width - k - 1] * x[r - k - 1])
        while k > 0:
            total -= row[width - k] * x[r - k]
            k -= 1
        x[r] = total
    for r in range(count - 1, -1, -1):
        row, total, k = band[r], x[r], min(width, count - 1 - r)
        while k >= 4:
            pair = row[width + k] * x[r + k] + row[width + k - 1] * x[r + k - 1]
            k -= 4
            total -= pair + (row[width + k + 2] * x[r + k + 2] + row[width + k + 1] * x[r + k + 1])
        while k > 0:
            total -= row[width + k] * x[r + k]
            k -= 1
        x[r] = total / row[width]


@inner_kernel
def _update_set(
    free: Integers,
    number: Integers,
    q: Array,
    void: Array,
    face: Array,
    x: Array,
    clearance: float,
    steady: bool,
) -> int:
    """Take q and u from the solution, and return how many nodes enter or leave the active set."""
    n, columns = q.shape
    changes, top = 0, 0.0
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0 and free[i, j]:
                top = max(top, abs(x[number[i, j]]))
    for i in range(n):
        for j in range(1, columns - 1):
            a = number[i, j]
            if a < 0:
                continue
            if free[i, j]:
                q[i, j], void[i, j] = x[a], 0.0
                changes += x[a] < -_ROUND_OFF * top
                free[i, j] = 0 if x[a] < -_ROUND_OFF * top else 1
            else:
                q[i, j], void[i, j] = 0.0, -x[a]
                changes += x[a] > _ROUND_OFF * clearance
                free[i, j] = 1 if x[a] > _ROUND_OFF * clearance else 0
    if changes == 0 and steady:  # where a gap closes, a solution may have ρ < 0: it is full
        for i in range(n):
            for j in range(1, columns - 1):
                if number[i, j] >= 0 and void[i, j] > (1.0 + _EMPTY) * face[i, j]:
                    free[i, j] = 1
                    changes += 1
    return changes


@inner_kernel
def _sweep(
    free: Integers,
    number: Integers,
    q: Array,
    void: Array,
    flow: Array,
    carry: Array,
    hold: Array,
    face: Array,
    c: float,
    speed: float,
    count: int,
) -> None:
    """Correct q, u and the active set by sweeps of the Gauss-Seidel method along the flow.

    `count` is the number of sweeps, and `c` that of `_assemble`.
    """
    n, columns = q.shape
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0:
                q[i, j] = max(q[i, j], 0.0)
                void[i, j] = min(max(void[i, j], 0.0), face[i, j])
    for k in range(count * n):
        i = k % n if speed >= 0.0 else n - 1 - k % n
        i1, i0 = next_index(i, n), previous_index(i, n)
        up = i0 if speed >= 0.0 else i1
        for j in range(1, columns - 1):
            if number[i, j] < 0:
                continue
            total = flow[LINKS, i, j] + flow[AROUND, i, j] + flow[AROUND, i0, j]
            total += flow[ALONG, i, j] + flow[ALONG, i, j - 1]
            missing = c * void[up, j] * carried(carry, up, j, speed)
            excess = inflow(q, flow, i, j) - flow[SOURCE, i, j] - missing
            if excess >= 0.0:
                q[i, j], void[i, j], free[i, j] = excess / total, 0.0, 1
            else:
                u = -excess / (c + hold[i, j])
                q[i, j], void[i, j], free[i, j] = 0.0, min(u, face[i, j]), 0


@kernel
def mass_conserving_solve(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    fixed: Integers,
    free: Integers,
    number: Integers,
    size: Integers,
    q: Array,
    fraction: Array,
    face: Array,
    squeeze: Array,
    hold: Array,
    old: Array,
    dt: float,
    carry: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    p: Array,
    slopes: Array,
) -> int:
    """Solve for q and ρ; return the number of iterations, or −1 without convergence.

    The arguments are described in the modules `reynolds` and `mass_conserving`. `dt` is the length
    of the step (s), or zero for a steady motion.
    """
    n, columns = h.shape
    dx, dz, mu = (
        2.0 * math.pi * values[RADIUS] / n,
        values[LENGTH] / (columns - 1),
        values[VISCOSITY],
    )
    film_coefficients(h, rate, speed, values, flow)
    apply_links(flow, links, ends, dx / dz)
    c, area = 6.0 * mu * abs(speed) * values[RADIUS] * dz, 12.0 * mu * dx * dz
    largest = _storage_and_faces(h, rate, speed, values, area, old, dt, flow, squeeze, hold, face)
    x, void = np.empty(h.size), (1.0 - fraction) * face
    for iteration in range(1, _ITERATIONS + 1):
        if largest == 0.0 or iteration == _RESTART:
            free[:] = 1 - fixed
        elif iteration % _SWEEPS == 0:
            _sweep(free, number, q, void, flow, carry, hold, face, c, speed, 2 * _SWEEPS)
        for i in range(n):
            for j in range(1, columns - 1):
                # a gap that closes faster than oil leaves it is full
                if number[i, j] >= 0 and c + hold[i, j] <= 0.0:
                    free[i, j] = 1
        _assemble(free, number, size, flow, carry, hold, c, speed, dt, band)
        _factorize(size, band)
        sources(fixed, number, q, flow, x)
        _substitute(size, band, x)
        if _update_set(free, number, q, void, face, x, values[CLEARANCE], dt == 0.0) == 0:
            for i in range(n):
                for j in range(1, columns - 1):
                    fraction[i, j] = 1.0 if number[i, j] < 0 else 1.0 - void[i, j] / face[i, j]
                fraction[i, 0], fraction[i, -1] = fraction[i, 1], fraction[i, -2]
            total = film_pressures(q, h, values, p, slopes)
            return iteration if math.isfinite(total) else -1
    return -1
