"""Reynolds' equation on the grid of a journal bearing, with cavitation and exact derivatives.

Nodes (i, j) are at the angles θ_i = 2πi/n and at equidistant z_j, j = 0 … m, which include both
ends. With the thickness H(h) of `rough_surfaces`, the gap rate ḣ and the speed Ω, the balance of
the cell of a node, times 12 μ₀, is

    r(q) = −∫div(H³ grad q) dA + 12 μ₀ ∫(½ Ω ∂H/∂θ + ∂H/∂t) dA,    q ≥ 0,  r ≥ 0,  q r = 0

(Reynolds' boundary condition; the ruptured film does not conserve mass). The journal entrains the
thickness ½ (H₁ + H₂) − H₁′ H₂′ (h₀ − h₁ − h₂ + h₃)/12 through the face between the second and the
third of four nodes around the bore, so that ∂H/∂θ is of fourth order where H′ = dH/dh is one. With
the mean ½ (H₁ + H₂) alone, this derivative has the largest error of all parts of the balance where
the bore is elastic. The thickness at a face is at least half of this mean. q is the reduced
pressure ∫ μ₀/μ dp; with q the equation is linear even if the viscosity depends on the pressure. By
Barus' law, μ = μ₀ e^{αp} and p = −ln(1 − αq)/α; above p = 9.2/α the tangent of p(q) is used.

A primal-dual active set finds the ruptured nodes, starting from the set of the last call. The
stiffness of the other nodes is factorized in a band. The numbers of the unknowns start at an angle
with a ruptured film; without one, both halves of the circle are interleaved, with twice the
bandwidth.

The arrays of a grid with n×(m+1) nodes are

    fixed   (n, m+1)     1 where q is prescribed (ends, grooves, holes), otherwise 0; integers
    free    (n, m+1)     1 where q > 0 is solved for; the state of the active set; integers
    number  (n, m+1)     index of the unknown, or −1; integers
    size    (2,)         number of UNKNOWNS and BANDWIDTH; integers
    q       (n, m+1)     reduced pressure; on entry the prescribed values where `fixed` is 1
    flow    (11, n, m+1) conductances to (i+1, j) and (i, j+1), cell source, Σ k and Σ k q of the
                         links of a node to the edges of supplies, and the thicknesses around,
                         along and entrained, the shear and the slope of the mean gap of
                         `rough_surfaces`, and the entrained thickness at the face to (i+1, j)
    links   (links, 4)   nodes (i, j) and their neighbours across the edge of a supply; integers
    ends    (links, 3)   distance of this edge from the node, relative to the interval; reduced
                         pressure of the supply; conductance k
    band    (n (m−1) (2m+7),)  factors, row by row, each with `PADDING` zeros at its end

A link replaces the conductance between both nodes: the edge of a groove or hole is at its true
position, not at a node (F. Gibou et al., A second-order-accurate symmetric discretization of the
Poisson equation on irregular domains, 2002).
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.band import (
    BANDWIDTH,
    PADDING,
    UNKNOWNS,
    Integers,
    band_rows,
    factorize,
    substitute,
)
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    ASPERITIES,
    BARUS,
    CONDUCTANCE,
    CONTENT_SLOPE,
    DISTANCE,
    E_X,
    E_X_RATE,
    E_Y,
    E_Y_RATE,
    ENTRAINED,
    FACE,
    FACTORS,
    FILM,
    LENGTH,
    LINK_INFLOW,
    LINKS,
    MODULUS,
    RADIUS,
    ROUGHNESS,
    SOURCE,
    STRESS,
    SUPPLY,
    T_X,
    T_X_RATE,
    T_Y,
    T_Y_RATE,
    THICKNESS_ALONG,
    THICKNESS_AROUND,
    VISCOSITY,
)
from dolfinx_mbd.kernels.films.rough_surfaces import film_at
from dolfinx_mbd.kernels.films.thickness import (
    ASPERITY_HEIGHT,
    asperity_pressure,
    thickness,
)
from dolfinx_mbd.kernels.small_vectors import Array

#: Largest α q for which Barus' law is used
BARUS_LIMIT = 1.0 - 1e-4
_ROUND_OFF = 1e-12  # negative balances below this fraction of the largest source count as zero


@inner_kernel
def next_index(i: int, n: int) -> int:
    """Return the next index around the bore; faster than a remainder."""
    return i + 1 if i + 1 < n else 0


@inner_kernel
def previous_index(i: int, n: int) -> int:
    """Return the previous index around the bore."""
    return i - 1 if i > 0 else n - 1


@inner_kernel
def film_pressure(q: float, alpha: float) -> tuple[float, float, float]:
    """Return the pressure p and its first two derivatives with respect to q."""
    if alpha == 0.0:
        return q, 1.0, 0.0
    rest = max(1.0 - alpha * q, 1.0 - BARUS_LIMIT)
    p, slope = -math.log(rest) / alpha, 1.0 / rest
    if alpha * q > BARUS_LIMIT:
        return p + slope * (q - BARUS_LIMIT / alpha), slope, 0.0
    return p, slope, alpha * slope * slope


@inner_kernel
def film_pressures(q: Array, h: Array, values: Array, p: Array, slopes: Array) -> float:
    """Write the pressures p of film and asperities (2, n, m+1), and the slopes ∂p/∂q and ∂p/∂h.

    The result is the sum of all pressures.
    """
    total, limit = 0.0, ASPERITY_HEIGHT * values[ROUGHNESS]
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            p[FILM, i, j], slopes[FILM, i, j], _ = film_pressure(q[i, j], values[BARUS])
            total += p[FILM, i, j]
        for j in range(q.shape[1]):
            p[ASPERITIES, i, j], slopes[ASPERITIES, i, j] = 0.0, 0.0
            if not h[i, j] > limit:
                p[ASPERITIES, i, j], slopes[ASPERITIES, i, j] = asperity_pressure(
                    h[i, j], values[ROUGHNESS], values[MODULUS]
                )
                total += p[ASPERITIES, i, j]
    return total


@kernel
def film_gap(y: Array, c: float, z: Array, w: Array, w_rate: Array, h: Array, rate: Array) -> None:
    """Write the gap and its rate for a motion y and a radial displacement w of the bore."""
    n = h.shape[0]
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        cos, sin = math.cos(theta), math.sin(theta)
        h0, h1 = c - y[E_X] * cos - y[E_Y] * sin, -y[T_X] * cos - y[T_Y] * sin
        r0, r1 = -y[E_X_RATE] * cos - y[E_Y_RATE] * sin, -y[T_X_RATE] * cos - y[T_Y_RATE] * sin
        for j in range(h.shape[1]):
            h[i, j] = h0 + h1 * z[j] + w[i, j]
            rate[i, j] = r0 + r1 * z[j] + w_rate[i, j]


@inner_kernel
def link_conductance(
    flow: Array, links: Integers, ends: Array, t: int, ratio: float
) -> tuple[float, float]:
    """Return H between a node and the edge of a supply, and the factor of H³ in k.

    `ratio` is the length of an interval around the bore relative to that along it.
    """
    i, j, i1, j1 = links[t, 0], links[t, 1], links[t, 2], links[t, 3]
    layer = THICKNESS_ALONG if i == i1 else THICKNESS_AROUND
    H = flow[layer, i, j]
    H += 0.5 * ends[t, DISTANCE] * (flow[layer, i1, j1] - H)
    return H, (ratio if i == i1 else 1.0 / ratio) / ends[t, DISTANCE]


@inner_kernel
def apply_links(flow: Array, links: Integers, ends: Array, ratio: float) -> None:
    """Replace the conductances across the edges of supplies by links."""
    flow[LINKS : LINK_INFLOW + 1] = 0.0
    n = flow.shape[1]
    for t in range(len(links)):
        i, j, i1, j1 = links[t, 0], links[t, 1], links[t, 2], links[t, 3]
        H, factor = link_conductance(flow, links, ends, t, ratio)
        ends[t, CONDUCTANCE] = factor * H * H * H
        flow[LINKS, i, j] += ends[t, CONDUCTANCE]
        flow[LINK_INFLOW, i, j] += ends[t, CONDUCTANCE] * ends[t, SUPPLY]
        if i == i1:
            flow[ALONG, i, min(j, j1)] = 0.0
        else:
            flow[AROUND, i if i1 == next_index(i, n) else i1, j] = 0.0


@inner_kernel
def film_coefficients(h: Array, rate: Array, speed: float, values: Array, flow: Array) -> float:
    """Compute conductances, sources and thickness; return the largest source."""
    n, columns = h.shape
    dx, dz = 2.0 * math.pi * values[RADIUS] / n, values[LENGTH] / (columns - 1)
    mu, largest = values[VISCOSITY], 0.0
    # Factors of ∂H/∂t, and of the difference of H between the faces of a cell
    squeeze, push = 12.0 * mu * dx * dz, 6.0 * mu * speed * values[RADIUS] * dz
    if values[FACTORS] == 0.0:
        _smooth_thicknesses(h, rate, values[ROUGHNESS], squeeze, flow)
    else:
        _rough_thicknesses(h, rate, values, squeeze, flow)
    # all nodes are in one row: long loops are fast
    around, along = flow[THICKNESS_AROUND].ravel(), flow[THICKNESS_ALONG].ravel()
    faces, sides = flow[AROUND].ravel(), flow[ALONG].ravel()  # conductances
    source, face, count = flow[SOURCE].ravel(), flow[FACE].ravel(), h.size
    last = count - columns  # first node of the last angle
    for k in range(last):
        H = 0.5 * (around[k] + around[k + columns])
        faces[k] = H * H * H * (dz / dx)
    for k in range(columns):
        H = 0.5 * (around[last + k] + around[k])
        faces[last + k] = H * H * H * (dz / dx)
    for k in range(count - 1):
        H = 0.5 * (along[k] + along[k + 1])
        sides[k] = H * H * H * (dx / dz)
    flow[ALONG, :, -1] = 0.0  # no neighbour; the loop above wrote across the rows
    _entrained_faces(h, flow)
    for k in range(columns):
        source[k] += push * (face[k] - face[last + k])
    for k in range(columns, count):
        source[k] += push * (face[k] - face[k - columns])
    for k in range(count):
        if not abs(source[k]) <= largest:  # also if it is not a number
            largest = abs(source[k])
    return largest


@inner_kernel
def _entrained_faces(h: Array, flow: Array) -> None:
    """Write the entrained thickness at the faces between nodes around the bore."""
    n, columns = h.shape
    gaps, H = h.ravel(), flow[ENTRAINED].ravel()
    slope, face = flow[CONTENT_SLOPE].ravel(), flow[FACE].ravel()
    # for each face, k and a are the nodes on both sides, b and k - columns the next ones
    for k in range(columns, h.size - 2 * columns):
        a, b = k + columns, k + 2 * columns
        mean, bend = 0.5 * (H[k] + H[a]), gaps[k - columns] - gaps[k] - gaps[a] + gaps[b]
        face[k] = max(mean - slope[k] * slope[a] / 12.0 * bend, 0.5 * mean)
    for i in (0, n - 2, n - 1):  # their four nodes extend across the end of the array
        for j in range(columns):
            k, a = i * columns + j, (i + 1) % n * columns + j
            mean = 0.5 * (H[k] + H[a])
            face[k] = max(mean - slope[k] * slope[a] * face_bend(h, i, j), 0.5 * mean)


@inner_kernel
def face_bend(h: Array, i: int, j: int) -> float:
    """Return (h₀ − h₁ − h₂ + h₃)/12 of the face between the nodes (i, j) and (i+1, j)."""
    n = len(h)
    i1 = next_index(i, n)
    i0, i2 = previous_index(i, n), next_index(i1, n)
    return (h[i0, j] - h[i, j] - h[i1, j] + h[i2, j]) / 12.0


@inner_kernel
def _smooth_thicknesses(h: Array, rate: Array, s: float, squeeze: float, flow: Array) -> None:
    """Write thickness, shear and squeeze source of a film without flow factors."""
    gaps, rates, source, stress = (
        h.ravel(),
        rate.ravel(),
        flow[SOURCE].ravel(),
        flow[STRESS].ravel(),
    )
    around, along = flow[THICKNESS_AROUND].ravel(), flow[THICKNESS_ALONG].ravel()
    entrained, slopes, thin = flow[ENTRAINED].ravel(), flow[CONTENT_SLOPE].ravel(), False
    for k in range(h.size):
        thin = thin or not gaps[k] >= s
    for k in range(h.size):
        H = gaps[k]
        around[k], along[k], entrained[k], stress[k] = H, H, H, 1.0 / H if not thin else 0.0
        source[k], slopes[k] = squeeze * rates[k], 1.0
    for k in range(h.size if thin else 0):
        H, slope = thickness(gaps[k], s)
        around[k], along[k], entrained[k], stress[k] = H, H, H, 1.0 / H
        source[k], slopes[k] = source[k] * slope, slope


@inner_kernel
def _rough_thicknesses(h: Array, rate: Array, values: Array, squeeze: float, flow: Array) -> None:
    """Write thicknesses, shear and squeeze source of a film with flow factors."""
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            film = film_at(h[i, j], values)
            flow[THICKNESS_AROUND, i, j], flow[THICKNESS_ALONG, i, j] = film.around, film.along
            flow[ENTRAINED, i, j], flow[STRESS, i, j] = film.entrained, film.shear
            flow[SOURCE, i, j] = squeeze * film.content_slope * rate[i, j]
            flow[CONTENT_SLOPE, i, j] = film.content_slope


@inner_kernel
def enumerate_nodes(free: Integers, number: Integers, size: Integers) -> int:
    """Assign numbers to the free nodes angle by angle, and find the bandwidth.

    The result is the number of unknowns before the first one whose number has changed.

    The order starts at an angle without free nodes (`cut`), so that neighbours have close numbers.
    Without such an angle, it alternates between both halves of the circle: 0, n − 1, 1, n − 2, ...
    """
    n, columns = free.shape
    cut = -1
    for i in range(n):
        has_free = False
        for j in range(columns):
            has_free = has_free or free[i, j] != 0
        if not has_free:
            cut = i
            break
    count, first_changed = 0, -1
    for k in range(n):
        i = (cut + k) % n if cut >= 0 else (k // 2 if k % 2 == 0 else n - 1 - k // 2)
        for j in range(columns):
            new = count if free[i, j] else -1
            if first_changed < 0 and number[i, j] != new:
                first_changed = count
            number[i, j] = new
            count += new >= 0
    width = 0
    for i in range(n):
        i1 = next_index(i, n)
        for j in range(columns - 1):
            if number[i, j] >= 0:
                if number[i1, j] >= 0:
                    width = max(width, abs(number[i, j] - number[i1, j]))
                if number[i, j + 1] >= 0:
                    width = max(width, abs(number[i, j] - number[i, j + 1]))
    size[UNKNOWNS], size[BANDWIDTH] = count, width
    return first_changed if first_changed >= 0 else count


@inner_kernel
def _assemble(number: Integers, flow: Array, rows: Array, start: int) -> None:
    """Write the upper half of the stiffness of the free nodes into the rows of a band.

    The rows before `start` are not written.
    """
    n, columns = number.shape
    rows[start:] = 0.0
    for i in range(n):
        i1, i0 = next_index(i, n), previous_index(i, n)
        numbers, next_numbers, links = number[i], number[i1], flow[LINKS, i]
        after, before, along = flow[AROUND, i], flow[AROUND, i0], flow[ALONG, i]
        for j in range(1, columns - 1):
            a = numbers[j]
            if a < start:
                continue
            rows[a, 0] = after[j] + before[j] + along[j] + along[j - 1] + links[j]
            b = next_numbers[j]
            if b >= start:
                rows[min(a, b), abs(a - b)] = -after[j]
            if numbers[j + 1] >= 0:
                rows[a, 1] = -along[j]


@inner_kernel
def inflow(q: Array, flow: Array, i: int, j: int) -> float:
    """Return the sum of conductance times pressure of neighbours and supplies of a node."""
    n = q.shape[0]
    i1, i0 = next_index(i, n), previous_index(i, n)
    return (
        flow[AROUND, i, j] * q[i1, j]
        + flow[AROUND, i0, j] * q[i0, j]
        + flow[ALONG, i, j] * q[i, j + 1]
        + flow[ALONG, i, j - 1] * q[i, j - 1]
        + flow[LINK_INFLOW, i, j]
    )


@inner_kernel
def sources(
    fixed: Integers, number: Integers, q: Array, flow: Array, x: Array, start: int = 0
) -> None:
    """Set q to zero where it is not prescribed, and write the right-hand side of the free nodes.

    The entries before `start` are not written.
    """
    n, columns = q.shape
    for i in range(n):
        for j in range(1, columns - 1):
            if not fixed[i, j]:
                q[i, j] = 0.0
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= start:
                x[number[i, j]] = inflow(q, flow, i, j) - flow[SOURCE, i, j]


@inner_kernel
def _update_set(
    fixed: Integers,
    free: Integers,
    number: Integers,
    q: Array,
    flow: Array,
    x: Array,
    least: float,
) -> int:
    """Take q from the solution, and return how many nodes enter or leave the active set.

    A ruptured node enters the set if its balance is below `least`.
    """
    n, columns = q.shape
    changes = 0
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0:
                q[i, j] = x[number[i, j]]
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0:
                if q[i, j] < 0.0:
                    free[i, j] = 0
                    changes += 1
            elif not fixed[i, j] and flow[SOURCE, i, j] - inflow(q, flow, i, j) < least:
                free[i, j] = 1
                changes += 1
    return changes


@kernel
def reynolds_solve(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    fixed: Integers,
    free: Integers,
    number: Integers,
    size: Integers,
    q: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    p: Array,
    slopes: Array,
) -> int:
    """Solve for the pressure; return the number of iterations, or −1 without convergence.

    `p` and `slopes` are those of `film_pressures`, `values` (20,) are described in `fields`, the
    others in the module.
    """
    n, columns = h.shape
    largest = film_coefficients(h, rate, speed, values, flow)
    if largest == 0.0:  # at rest: the film is full, whatever the last active set
        free[:] = 1 - fixed
    apply_links(
        flow, links, ends, 2.0 * math.pi * values[RADIUS] / n * (columns - 1) / values[LENGTH]
    )
    x, inverse = np.empty(h.size + 2 * columns + PADDING), np.empty(h.size)
    right = np.empty(h.size)  # L⁻¹ times the right-hand side
    for iteration in range(1, 101):
        width = size[BANDWIDTH]
        start = enumerate_nodes(free, number, size) - width
        if iteration == 1 or size[BANDWIDTH] != width or start < 0:
            start = 0  # otherwise the rows before `start` have not changed
        rows, count = band_rows(size, band), size[UNKNOWNS]
        _assemble(number, flow, rows, start)
        sources(fixed, number, q, flow, right, start)
        factorize(size, rows, inverse, right, start)
        x[:count], x[count:] = right[:count], 0.0
        substitute(size, rows, inverse, x)
        if _update_set(fixed, free, number, q, flow, x, -_ROUND_OFF * largest) == 0:
            total = film_pressures(q, h, values, p, slopes)
            return iteration if math.isfinite(total) else -1
    return -1
