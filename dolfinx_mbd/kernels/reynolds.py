"""Reynolds' equation on the grid of a journal bearing, with cavitation and exact derivatives.

Nodes (i, j) are at the angles θ_i = 2πi/n and at equidistant z_j, j = 0 … m, which include both
ends. With the thickness H(h) of `film_thickness`, the gap rate ḣ and the speed Ω, the balance of
the cell of a node, times 12 μ₀, is

    r(q) = −∫div(H³ grad q) dA + 12 μ₀ ∫(½ Ω ∂H/∂θ + ∂H/∂t) dA,    q ≥ 0,  r ≥ 0,  q r = 0

(Reynolds' boundary condition; the ruptured film does not conserve mass). q is the reduced pressure
∫ μ₀/μ dp; with q the equation is linear even if the viscosity depends on the pressure. By Barus'
law, μ = μ₀ e^{αp} and p = −ln(1 − αq)/α; above p = 9.2/α the tangent of p(q) is used.

A primal-dual active set finds the ruptured nodes, starting from the set of the last call. The
stiffness of the other nodes is factorized in a band. The order of the columns starts at a ruptured
column; without such a column both halves of the circle are interleaved, with twice the bandwidth.

The arrays of a grid with n×(m+1) nodes are

    fixed   (n, m+1)     1 where q is prescribed (ends, grooves, holes), otherwise 0; integers
    free    (n, m+1)     1 where q > 0 is solved for; the state of the active set; integers
    number  (n, m+1)     index of the unknown, or −1; integers
    size    (2,)         number of unknowns and bandwidth; integers
    q       (n, m+1)     reduced pressure; on entry the prescribed values where `fixed` is 1
    flow    (4, n, m+1)  conductances to (i+1, j) and (i, j+1), cell source, thickness H
    band    (N, 2m+1)    factors
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.film_thickness import asperity_pressure, boundary_drag, thickness
from dolfinx_mbd.kernels.small_vectors import Array

Integers = NDArray[np.int64]

#: Largest α q for which Barus' law is used
BARUS_LIMIT = 1.0 - 1e-4
_ROUND_OFF = 1e-12  # negative balances below this fraction of the largest source count as zero


@inner_kernel
def _next_index(i: int, n: int) -> int:
    """Return the next index around the bore; faster than a remainder."""
    return i + 1 if i + 1 < n else 0


@inner_kernel
def _previous_index(i: int, n: int) -> int:
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


@kernel
def film_gap(y: Array, c: float, z: Array, w: Array, w_rate: Array, h: Array, rate: Array) -> None:
    """Write the gap and its rate for a motion y and a radial displacement w of the bore."""
    n = h.shape[0]
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        x, v = math.cos(theta), math.sin(theta)
        h0, h1 = c - y[0] * x - y[1] * v, -y[2] * x - y[3] * v
        r0, r1 = -y[4] * x - y[5] * v, -y[6] * x - y[7] * v
        for j in range(h.shape[1]):
            h[i, j] = h0 + h1 * z[j] + w[i, j]
            rate[i, j] = r0 + r1 * z[j] + w_rate[i, j]


@inner_kernel
def _coefficients(h: Array, rate: Array, speed: float, values: Array, flow: Array) -> float:
    """Compute conductances, sources and thickness; return the largest source."""
    n, columns = h.shape
    dx, dz = 2.0 * math.pi * values[0] / n, values[1] / (columns - 1)
    mu, s, largest = values[3], values[4], 0.0
    for i in range(n):
        for j in range(columns):
            H, slope = thickness(h[i, j], s)
            flow[3, i, j] = H
            flow[2, i, j] = 12.0 * mu * dx * dz * slope * rate[i, j]
    for i in range(n):
        i1, i0 = _next_index(i, n), _previous_index(i, n)
        for j in range(columns):
            H = 0.5 * (flow[3, i, j] + flow[3, i1, j])
            flow[0, i, j] = H * H * H * dz / dx
            push = 3.0 * mu * speed * values[0] * dz
            flow[2, i, j] += push * (flow[3, i1, j] - flow[3, i0, j])
            largest = max(largest, abs(flow[2, i, j]))
            if j + 1 < columns:
                H = 0.5 * (flow[3, i, j] + flow[3, i, j + 1])
                flow[1, i, j] = H * H * H * dx / dz
    return largest


@inner_kernel
def _enumerate(free: Integers, number: Integers, size: Integers) -> None:
    """Number the free nodes column by column, and find the bandwidth."""
    n, columns = free.shape
    cut = -1
    for i in range(n):
        some = False
        for j in range(columns):
            some = some or free[i, j] != 0
        if not some:
            cut = i
            break
    count = 0
    for k in range(n):
        i = (cut + k) % n if cut >= 0 else (k // 2 if k % 2 == 0 else n - 1 - k // 2)
        for j in range(columns):
            number[i, j] = -1
            if free[i, j]:
                number[i, j] = count
                count += 1
    width = 0
    for i in range(n):
        i1 = _next_index(i, n)
        for j in range(columns - 1):
            if number[i, j] >= 0:
                if number[i1, j] >= 0:
                    width = max(width, abs(number[i, j] - number[i1, j]))
                if number[i, j + 1] >= 0:
                    width = max(width, abs(number[i, j] - number[i, j + 1]))
    size[0], size[1] = count, width


@inner_kernel
def _factorize(number: Integers, size: Integers, flow: Array, band: Array) -> None:
    """Assemble the stiffness of the free nodes and factorize it as L D Lᵀ, with D Lᵀ in `band`."""
    n, columns = number.shape
    count, width = size[0], size[1]
    band[:count, : width + 1] = 0.0
    for i in range(n):
        i1, i0 = _next_index(i, n), _previous_index(i, n)
        for j in range(1, columns - 1):
            a = number[i, j]
            if a < 0:
                continue
            band[a, 0] += flow[0, i, j] + flow[0, i0, j] + flow[1, i, j] + flow[1, i, j - 1]
            b = number[i1, j]
            if b >= 0:
                band[min(a, b), abs(a - b)] -= flow[0, i, j]
            b = number[i, j + 1]
            if b >= 0:
                band[min(a, b), abs(a - b)] -= flow[1, i, j]
    for r in range(count):
        for k in range(1, min(width, count - 1 - r) + 1):
            factor = band[r, k] / band[r, 0]
            if factor != 0.0:
                for d in range(width + 1 - k):
                    band[r + k, d] -= factor * band[r, k + d]


@inner_kernel
def _substitute(size: Integers, band: Array, X: Array) -> None:
    """Solve for the right-hand sides X (N, k) in place."""
    count, width = size[0], size[1]
    for r in range(count):
        for k in range(1, min(width, count - 1 - r) + 1):
            factor = band[r, k] / band[r, 0]
            if factor != 0.0:
                for c in range(X.shape[1]):
                    X[r + k, c] -= factor * X[r, c]
    for r in range(count - 1, -1, -1):
        for k in range(1, min(width, count - 1 - r) + 1):
            for c in range(X.shape[1]):
                X[r, c] -= band[r, k] * X[r + k, c]
        for c in range(X.shape[1]):
            X[r, c] /= band[r, 0]


@inner_kernel
def _inflow(q: Array, flow: Array, i: int, j: int) -> float:
    """Return the sum of conductance times pressure of the four neighbours of a node."""
    n = q.shape[0]
    i1, i0 = _next_index(i, n), _previous_index(i, n)
    return (
        flow[0, i, j] * q[i1, j]
        + flow[0, i0, j] * q[i0, j]
        + flow[1, i, j] * q[i, j + 1]
        + flow[1, i, j - 1] * q[i, j - 1]
    )


@inner_kernel
def _sources(fixed: Integers, number: Integers, q: Array, flow: Array, X: Array) -> None:
    """Set q to zero where it is not prescribed, and write the right-hand side of the free nodes."""
    n, columns = q.shape
    for i in range(n):
        for j in range(1, columns - 1):
            if not fixed[i, j]:
                q[i, j] = 0.0
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0:
                X[number[i, j], 0] = _inflow(q, flow, i, j) - flow[2, i, j]


@inner_kernel
def _update_set(
    fixed: Integers,
    free: Integers,
    number: Integers,
    q: Array,
    flow: Array,
    X: Array,
    least: float,
) -> int:
    """Take q from the solution, and return how many nodes enter or leave the active set."""
    n, columns = q.shape
    changes = 0
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0:
                q[i, j] = X[number[i, j], 0]
    for i in range(n):
        for j in range(1, columns - 1):
            if number[i, j] >= 0:
                if q[i, j] < 0.0:
                    free[i, j] = 0
                    changes += 1
            elif not fixed[i, j] and flow[2, i, j] - _inflow(q, flow, i, j) < least:
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
) -> int:
    """Solve for the reduced pressure; return the number of active sets, or −1 without convergence.

    `values` are the `values` of `short_bearing_loads`, followed by Barus' coefficient α. The other
    arguments are described in the module.
    """
    n, columns = h.shape
    largest = _coefficients(h, rate, speed, values, flow)
    X = np.empty((h.size, 1))
    for iteration in range(1, 101):
        _enumerate(free, number, size)
        _factorize(number, size, flow, band)
        _sources(fixed, number, q, flow, X)
        _substitute(size, band, X[: size[0]])
        if _update_set(fixed, free, number, q, flow, X, -_ROUND_OFF * largest) == 0:
            return iteration
    return -1


@inner_kernel
def _node_gradient(
    lam: Array, q: Array, flow: Array, i: int, j: int, push: float, ratio: float
) -> float:
    """Return the derivative of λᵀr with respect to the thickness H of a node; λ (n, m+1)."""
    n, columns = q.shape
    i1, i0 = _next_index(i, n), _previous_index(i, n)
    total = push * (lam[i0, j] - lam[i1, j])
    for a, b in ((i, i1), (i0, i)):
        H = 0.5 * (flow[3, a, j] + flow[3, b, j])
        total += 1.5 * H * H / ratio * (q[a, j] - q[b, j]) * (lam[a, j] - lam[b, j])
    for k in (j, j - 1):
        if 0 <= k and k + 1 < columns:
            H = 0.5 * (flow[3, i, k] + flow[3, i, k + 1])
            total += 1.5 * H * H * ratio * (q[i, k] - q[i, k + 1]) * (lam[i, k] - lam[i, k + 1])
    return total


@kernel
def reynolds_gradients(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    number: Integers,
    size: Integers,
    q: Array,
    flow: Array,
    band: Array,
    C: Array,
) -> tuple[Array, Array, Array]:
    """Return ∂f_k/∂h and ∂f_k/∂ḣ at every node, and ∂f_k/∂Ω, of f_k = Σ C_kij q_ij.

    Call it after `reynolds_solve` with the same arrays. C and the first two results have the shape
    (k, n, m+1); the third result has the shape (k,).
    """
    n, columns = h.shape
    K = C.shape[0]
    dx, dz = 2.0 * math.pi * values[0] / n, values[1] / (columns - 1)
    mu, s = values[3], values[4]
    by_gap, by_rate, by_speed = np.zeros(C.shape), np.zeros(C.shape), np.zeros(K)
    X, lam = np.empty((size[0], K)), np.zeros((n, columns))
    for i in range(n):
        for j in range(columns):
            if number[i, j] >= 0:
                for k in range(K):
                    X[number[i, j], k] = C[k, i, j]
    _substitute(size, band, X)
    push, squeeze = 3.0 * mu * values[0] * dz, 12.0 * mu * dx * dz
    for k in range(K):
        for i in range(n):
            for j in range(columns):
                lam[i, j] = X[number[i, j], k] if number[i, j] >= 0 else 0.0
        for i in range(n):
            for j in range(columns):
                H, slope = thickness(h[i, j], s)
                gradient = slope * _node_gradient(lam, q, flow, i, j, push * speed, dx / dz)
                if h[i, j] < s:
                    bend = 2.0 * slope * H / (s * s)
                    gradient += squeeze * lam[i, j] * bend * rate[i, j]
                by_gap[k, i, j] = -gradient
                by_rate[k, i, j] = -squeeze * slope * lam[i, j]
                turn = flow[3, _next_index(i, n), j] - flow[3, _previous_index(i, n), j]
                by_speed[k] -= push * lam[i, j] * turn
    return by_gap, by_rate, by_speed


@kernel
def film_pressures(q: Array, h: Array, values: Array, p: Array, slopes: Array) -> None:
    """Write the pressures p of film and asperities (2, n, m+1), and the slopes ∂p/∂q and ∂p/∂h."""
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            p[0, i, j], slopes[0, i, j], _ = film_pressure(q[i, j], values[8])
            p[1, i, j], slopes[1, i, j] = asperity_pressure(h[i, j], values[4], values[5])


@inner_kernel
def _end_flow(q: Array, flow: Array, mu: float) -> float:
    """Return the flow out of both ends, with the sources of the half cells at the ends."""
    total, last = 0.0, q.shape[1] - 1
    for i in range(q.shape[0]):
        for j, inner, face in ((0, 1, 0), (last, last - 1, last - 1)):
            if q[i, inner] > 0.0:
                total += flow[1, i, face] * (q[i, inner] - q[i, j]) - 0.5 * flow[2, i, j]
    return total / (12.0 * mu)


@kernel
def grid_loads(
    speed: float, values: Array, Z: Array, h: Array, q: Array, flow: Array
) -> tuple[Array, Array]:
    """Return the film loads (5,) of a pressure, and (smallest gap, peak pressure, side flow).

    Z (2, m+1) are the axial positions and the areas of the nodes.
    """
    n, columns = q.shape
    R = values[0]
    g, facts = np.zeros(5), np.array([h[0, 0], 0.0, 0.0])
    rub, _ = boundary_drag(R * speed, values[6], values[7])
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        P0, P1 = 0.0, 0.0
        for j in range(columns):
            weight = Z[1, j]
            p, slope, _ = film_pressure(q[i, j], values[8])
            solid, _ = asperity_pressure(h[i, j], values[4], values[5])
            P0 += weight * (p + solid)
            P1 += weight * Z[0, j] * (p + solid)
            shear = values[3] * slope * R * speed / flow[3, i, j]
            g[4] += weight * R * (shear + rub * solid)
            facts[0], facts[1] = min(facts[0], h[i, j]), max(facts[1], p)
        g[0] -= P0 * math.cos(theta)
        g[1] -= P0 * math.sin(theta)
        g[2] -= P1 * math.cos(theta)
        g[3] -= P1 * math.sin(theta)
    facts[2] = _end_flow(q, flow, values[3])
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
    speed: float, values: Array, Z: Array, h: Array, q: Array, flow: Array, by_gap: Array
) -> float:
    """Add the direct derivatives ∂g/∂h of the loads to by_gap (5, n, m+1); return ∂T/∂Ω."""
    n, columns = q.shape
    R = values[0]
    rub, rub_by = boundary_drag(R * speed, values[6], values[7])
    by_speed = 0.0
    for i in range(n):
        theta = 2.0 * math.pi * i / n
        x, v = math.cos(theta), math.sin(theta)
        for j in range(columns):
            weight = Z[1, j]
            H, slope = thickness(h[i, j], values[4])
            _, share, _ = film_pressure(q[i, j], values[8])
            viscous = weight * R * R * values[3] * share / H
            by_gap[4, i, j] -= viscous * speed * slope / H
            solid, change = asperity_pressure(h[i, j], values[4], values[5])
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
) -> tuple[Array, Array, Array]:
    """Return ∂g/∂h and ∂g/∂ḣ at every node, and ∂g/∂Ω, of the film loads g.

    The shapes are (5, n, m+1), (5, n, m+1) and (5,). Call `reynolds_solve` before.
    """
    C = _functionals(values, Z, q, flow, speed)
    gap, rates, speeds = reynolds_gradients(h, rate, speed, values, number, size, q, flow, band, C)
    by_gap, by_rate = np.zeros((5, *h.shape)), np.zeros((5, *h.shape))
    by_speed = np.zeros(5)
    by_gap[: len(C)], by_rate[: len(C)], by_speed[: len(C)] = gap, rates, speeds
    by_speed[4] += _add_direct(speed, values, Z, h, q, flow, by_gap)
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
