"""Derivatives of functionals of the pressure on the grid of a bearing, by adjoint solutions.

If the functionals are the generalized forces of the film on the patterns of the gap, there are as
many coefficients of patterns as functionals; `reynolds_pattern_stiffness` then computes the
derivatives faster, from the changes of the balances instead of adjoint solutions.

The module `reynolds` describes the grid, its arrays and the balance r(q) of its cells. For each
functional f_k, λ solves (∂r/∂q)ᵀλ = ∂f_k/∂q, and df_k = −λᵀ dr for changes of gap, rate and speed.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.band import (
    UNKNOWNS,
    Integers,
    gather_nodes,
    scatter_nodes,
    substitute_columns,
)
from dolfinx_mbd.kernels.films.bore_patterns import add_pattern_row, pattern_rows
from dolfinx_mbd.kernels.films.fields import (
    ALONG,
    AROUND,
    CONTENT_SLOPE,
    DISTANCE,
    ENTRAINED,
    FACE,
    FILM,
    LENGTH,
    RADIUS,
    SOURCE,
    SUPPLY,
    THICKNESS_ALONG,
    THICKNESS_AROUND,
    VISCOSITY,
)
from dolfinx_mbd.kernels.films.reynolds import (
    face_bend,
    link_conductance,
    next_index,
    previous_index,
)
from dolfinx_mbd.kernels.films.rough_surfaces import Film, film_at
from dolfinx_mbd.kernels.small_vectors import Array
from dolfinx_mbd.kernels.vector_operations import LANES, subtract_sum

#: First indices of the result of `_thickness_slopes`
BY_AROUND, BY_ALONG, BY_ENTRAINED, BY_CONTENT = range(4)


@inner_kernel
def _flow_by_thickness(H: float, difference: float, ratio: float) -> float:
    """Return the derivative of the flow H³ · ratio · difference between two nodes.

    H is the mean of the thicknesses at both nodes; the derivative is that with respect to one of
    them. `difference` is that of q, and `ratio` that of width and length of the face.
    """
    return 1.5 * H * H * ratio * difference


@inner_kernel
def node_weights(
    film: Film, q: Array, flow: Array, i: int, j: int, ratio: float
) -> tuple[float, float, float, float, float]:
    """Return the weights of λ in the derivative of λᵀr by the gap of a node, for constant sources.

    The weights are those of the node and of its neighbours (i+1, j), (i−1, j), (i, j+1), (i, j−1).

    Args:
        film: Thicknesses at the node, with their derivatives.
        q: Reduced pressure, (n, m+1).
        flow: Conductances and thicknesses, see `reynolds`.
        i: Index of the node around the bore.
        j: Index of the node along the axis.
        ratio: Length of an interval around the bore relative to that along it.
    """
    n, columns = q.shape
    i1, i0 = next_index(i, n), previous_index(i, n)
    H, after, before, right, left = flow[THICKNESS_AROUND, i, j], 0.0, 0.0, 0.0, 0.0
    if flow[AROUND, i, j] != 0.0:
        mean = 0.5 * (H + flow[THICKNESS_AROUND, i1, j])
        after = _flow_by_thickness(mean, q[i, j] - q[i1, j], 1.0 / ratio)
    if flow[AROUND, i0, j] != 0.0:
        mean = 0.5 * (H + flow[THICKNESS_AROUND, i0, j])
        before = _flow_by_thickness(mean, q[i, j] - q[i0, j], 1.0 / ratio)
    H = flow[THICKNESS_ALONG, i, j]
    if j + 1 < columns and flow[ALONG, i, j] != 0.0:
        mean = 0.5 * (H + flow[THICKNESS_ALONG, i, j + 1])
        right = _flow_by_thickness(mean, q[i, j] - q[i, j + 1], ratio)
    if j > 0 and flow[ALONG, i, j - 1] != 0.0:
        mean = 0.5 * (H + flow[THICKNESS_ALONG, i, j - 1])
        left = _flow_by_thickness(mean, q[i, j] - q[i, j - 1], ratio)
    after, before = after * film.around_slope, before * film.around_slope
    right, left = right * film.along_slope, left * film.along_slope
    return after + before + right + left, -after, -before, -right, -left


@inner_kernel
def face_slopes(h: Array, flow: Array, i: int, j: int) -> tuple[float, float, float]:
    """Return the parts of the derivatives of the entrained thickness at the face after a node.

    The first two belong to `by_face_node`; the third one is the derivative by the gaps of the
    second neighbours of the face.
    """
    i1 = next_index(i, len(h))
    if flow[FACE, i, j] > 0.25 * (flow[ENTRAINED, i, j] + flow[ENTRAINED, i1, j]):
        far = -flow[CONTENT_SLOPE, i, j] * flow[CONTENT_SLOPE, i1, j] / 12.0
        return 0.5, face_bend(h, i, j), far
    return 0.25, 0.0, 0.0


@inner_kernel
def by_face_node(film: Film, slope: float, parts: tuple[float, float, float]) -> float:
    """Return the derivative of the thickness at a face by the gap of a node beside it.

    Args:
        film: Thicknesses at the node, with their derivatives.
        slope: Slope of the mean gap at the node on the other side of the face.
        parts: Result of `face_slopes`.
    """
    share, bend, far = parts
    return share * film.entrained_slope - bend * slope * film.content_second - far


@inner_kernel
def link_slopes(
    h: Array,
    values: Array,
    q: Array,
    flow: Array,
    links: Integers,
    ends: Array,
    t: int,
    ratio: float,
) -> tuple[float, float]:
    """Return the derivatives of the flow from a node to a supply by the gaps of both nodes.

    `ratio` is that of `link_conductance`.
    """
    i, j, i1, j1 = links[t, 0], links[t, 1], links[t, 2], links[t, 3]
    H, factor = link_conductance(flow, links, ends, t, ratio)
    gradient, part = 3.0 * H * H * factor * (q[i, j] - ends[t, SUPPLY]), 0.5 * ends[t, DISTANCE]
    film, other_film = film_at(h[i, j], values), film_at(h[i1, j1], values)
    near = gradient * (1.0 - part) * (film.along_slope if i == i1 else film.around_slope)
    return near, gradient * part * (other_film.along_slope if i == i1 else other_film.around_slope)


@inner_kernel
def add_link_gradients(
    h: Array,
    values: Array,
    lam: Array,
    q: Array,
    flow: Array,
    links: Integers,
    ends: Array,
    by_gap: Array,
) -> None:
    """Subtract the derivatives of λᵀr with respect to the gap, as far as links cause them.

    `by_gap` (n, m+1, k) contains the derivatives of k functionals, and `lam` (n, m+1, k) their λ.
    """
    n, columns = q.shape
    ratio = 2.0 * math.pi * values[RADIUS] / n / (values[LENGTH] / (columns - 1))
    for t in range(len(links)):
        i, j, i1, j1 = links[t, 0], links[t, 1], links[t, 2], links[t, 3]
        near, far = link_slopes(h, values, q, flow, links, ends, t, ratio)
        for k in range(lam.shape[2]):
            by_gap[i, j, k] -= near * lam[i, j, k]
            by_gap[i1, j1, k] -= far * lam[i, j, k]


@inner_kernel
def is_resting(q: Array, flow: Array) -> bool:
    """Return whether neither pressures nor sources act."""
    for i in range(q.shape[0]):
        for j in range(q.shape[1]):
            if q[i, j] != 0.0 or flow[SOURCE, i, j] != 0.0:
                return False
    return True


@inner_kernel
def _adjoint(
    number: Integers, size: Integers, q: Array, flow: Array, band: Array, C: Array
) -> Array:
    """Return λ (n, m+1, k) of functionals with the derivatives C (n, m+1, k) by q."""
    part = 0.5 if is_resting(q, flow) else 1.0  # see `reynolds_gradients`
    X = gather_nodes(number, C, part, size[UNKNOWNS])
    substitute_columns(size, band, X)
    return scatter_nodes(number, X, C.shape[2])


@inner_kernel
def _add_row_gradients(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    number: Integers,
    q: Array,
    flow: Array,
    lam: Array,
    i: int,
    by_gap: Array,
    by_rate: Array,
    by_speed: Array,
) -> None:
    """Write ∂f_k/∂h and ∂f_k/∂ḣ at the nodes of a row (m+1, k), and add its part of ∂f_k/∂Ω.

    The results at nodes where all λ around are zero are not written.
    """
    n, columns, K = lam.shape
    dx, dz = 2.0 * math.pi * values[RADIUS] / n, values[LENGTH] / (columns - 1)
    mu = values[VISCOSITY]
    entrainment, squeeze = 6.0 * mu * values[RADIUS] * dz, 12.0 * mu * dx * dz
    push, i1, i0 = entrainment * speed, next_index(i, n), previous_index(i, n)
    i2, i3 = next_index(i1, n), previous_index(i0, n)
    for j in range(columns):
        right, left = min(j + 1, columns - 1), max(j - 1, 0)
        free = max(number[i, left], number[i, j], number[i, right])
        if max(free, number[i1, j], number[i0, j], number[i2, j], number[i3, j]) < 0:
            continue  # λ is zero here and at all neighbours
        film = film_at(h[i, j], values)
        a, b, c, d, e = node_weights(film, q, flow, i, j, dx / dz)
        # Derivatives by the gap at the node of the entrained flows through four faces around the
        # bore: those next to the node, after and before it, and one face further
        after = by_face_node(film, flow[CONTENT_SLOPE, i1, j], face_slopes(h, flow, i, j)) * push
        before = by_face_node(film, flow[CONTENT_SLOPE, i0, j], face_slopes(h, flow, i0, j)) * push
        far_after, far_before = face_slopes(h, flow, i1, j)[2], face_slopes(h, flow, i3, j)[2]
        far_after, far_before = far_after * push, far_before * push
        a, b, c = a + after - before, b - after + far_after, c + before - far_before
        content = squeeze * film.content_slope
        a += squeeze * film.content_second * rate[i, j]
        # single entries, because numba counts references to views of rows, which takes time
        for k in range(K):
            total = a * lam[i, j, k] + b * lam[i1, j, k] + c * lam[i0, j, k]
            total += far_before * lam[i3, j, k] - far_after * lam[i2, j, k]
            by_gap[j, k] = -(total + d * lam[i, right, k] + e * lam[i, left, k])
        if number[i, j] < 0:
            continue
        source_by_speed = entrainment * (flow[FACE, i, j] - flow[FACE, i0, j])
        for k in range(K):
            by_rate[j, k] = -content * lam[i, j, k]
        for k in range(K):
            by_speed[k] -= source_by_speed * lam[i, j, k]


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
    links: Integers,
    ends: Array,
    C: Array,
) -> tuple[Array, Array, Array]:
    """Return ∂f_k/∂h and ∂f_k/∂ḣ at every node, and ∂f_k/∂Ω, of f_k = Σ C_ijk q_ij.

    Call it after `reynolds_solve` with the same arrays. C and the first two results have the shape
    (n, m+1, k); the third result has the shape (k,). A film at rest without pressure has no
    derivatives with respect to ḣ and Ω, because it ruptures where it is not squeezed. They are
    replaced by half of those of a full film, as in `axial_strips`.
    """
    n, _, K = C.shape
    by_gap, by_rate, by_speed = np.zeros(C.shape), np.zeros(C.shape), np.zeros(K)
    lam = _adjoint(number, size, q, flow, band, C)
    for i in range(n):
        _add_row_gradients(
            h, rate, speed, values, number, q, flow, lam, i, by_gap[i], by_rate[i], by_speed
        )
    add_link_gradients(h, values, lam, q, flow, links, ends, by_gap)
    return by_gap, by_rate, by_speed


@kernel
def reynolds_pattern_gradients(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    number: Integers,
    size: Integers,
    q: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    C: Array,
    direct: Array,
    around: Array,
    along: Array,
) -> tuple[Array, Array, Array]:
    """Return the derivatives of the functionals f_k for a gap that changes in patterns.

    The patterns are the products of `around` and `along`, see `pattern_gradients`. The results are
    the derivatives of f_k with respect to the coefficients of the patterns in the gap h, (k, A L),
    with respect to their coefficients in the rate ḣ, (k, A L), and with respect to the speed Ω,
    (k,). They follow from the results of `reynolds_gradients` by the chain rule.

    `direct` (n, m+1, d) contains derivatives of the first d functionals with respect to h at
    constant q, which are added to ∂f_k/∂h; it may be empty.
    """
    n, columns, K = C.shape
    A, L = around.shape[1], along.shape[1]
    lam, by_speed = _adjoint(number, size, q, flow, band, C), np.zeros(K)
    by_links = np.zeros(C.shape if len(links) else (0, 0, 0))
    add_link_gradients(h, values, lam, q, flow, links, ends, by_links)
    by_gap, by_rate = np.empty((columns, K)), np.empty((columns, K))
    gap, rates, sums = np.zeros((A, L, K)), np.zeros((A, L, K)), np.empty((L, K))
    for i in range(n):
        by_gap[:], by_rate[:] = 0.0, 0.0
        _add_row_gradients(
            h, rate, speed, values, number, q, flow, lam, i, by_gap, by_rate, by_speed
        )
        if len(direct):
            by_gap[:, : direct.shape[2]] += direct[i]
        if len(links):
            by_gap += by_links[i]
        add_pattern_row(by_rate, around[i], along, sums, rates)
        add_pattern_row(by_gap, around[i], along, sums, gap)
    return pattern_rows(gap), pattern_rows(rates), by_speed


@inner_kernel
def _thickness_slopes(h: Array, values: Array) -> Array:
    """Return derivatives with respect to the gap h at each node, (4, n, m+1).

    They are the first derivatives of the thicknesses of the flows around the bore, along it, and
    entrained by the journal, and the second derivative of the mean gap; see `Film`.
    """
    slopes = np.empty((4, *h.shape))
    for i in range(h.shape[0]):
        for j in range(h.shape[1]):
            film = film_at(h[i, j], values)
            slopes[BY_AROUND, i, j], slopes[BY_ALONG, i, j] = film.around_slope, film.along_slope
            slopes[BY_ENTRAINED, i, j] = film.entrained_slope
            slopes[BY_CONTENT, i, j] = film.content_second
    return slopes


@inner_kernel
def _face_changes(
    h: Array,
    number: Integers,
    q: Array,
    flow: Array,
    slopes: Array,
    around: Array,
    i: int,
    ratio: float,
    push: float,
    faces: Array,
) -> None:
    """Write the derivatives of the flows between the angles i and i + 1 to `faces` (m+1, A).

    Entry (j, a) is the derivative of the flow from node (i, j) to node (i+1, j) if the gap changes
    in proportion to function a of the angle, equally at all j. The entry is not written if q is
    unknown at neither of these nodes.
    """
    n, columns = h.shape
    i1, i0 = next_index(i, n), previous_index(i, n)
    i2, A = next_index(i1, n), around.shape[1]
    for j in range(1, columns - 1):
        if number[i, j] < 0 and number[i1, j] < 0:
            continue
        after = 0.0
        if flow[AROUND, i, j] != 0.0:
            mean = 0.5 * (flow[THICKNESS_AROUND, i, j] + flow[THICKNESS_AROUND, i1, j])
            after = _flow_by_thickness(mean, q[i, j] - q[i1, j], 1.0 / ratio)
        share, bend, far = face_slopes(h, flow, i, j)
        near = share * slopes[BY_ENTRAINED, i, j] - far
        near -= bend * flow[CONTENT_SLOPE, i1, j] * slopes[BY_CONTENT, i, j]
        next_ = share * slopes[BY_ENTRAINED, i1, j] - far
        next_ -= bend * flow[CONTENT_SLOPE, i, j] * slopes[BY_CONTENT, i1, j]
        near = after * slopes[BY_AROUND, i, j] + push * near
        next_ = after * slopes[BY_AROUND, i1, j] + push * next_
        far *= push
        for a in range(A):
            part = near * around[i, a] + next_ * around[i1, a]
            faces[j, a] = part + far * (around[i0, a] + around[i2, a])


@inner_kernel
def _balance_changes(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    number: Integers,
    q: Array,
    flow: Array,
    around: Array,
    along: Array,
    rate_factor: float,
    X: Array,
) -> None:
    """Write −∂r/∂s for the coefficients s of patterns to X (unknowns, ·).

    Column m A + a belongs to the functions a and m.
    """
    n, columns = h.shape
    A, L = around.shape[1], along.shape[1]
    dx, dz = 2.0 * math.pi * values[RADIUS] / n, values[LENGTH] / (columns - 1)
    mu, ratio = values[VISCOSITY], dx / dz
    push, squeeze = 6.0 * mu * values[RADIUS] * dz * speed, 12.0 * mu * dx * dz
    slopes, flat = _thickness_slopes(h, values), X.reshape(X.size)
    faces, sides = np.empty((2, columns, A)), np.empty((columns, L))
    flux, change = np.empty(A), np.empty(L)
    _face_changes(h, number, q, flow, slopes, around, n - 1, ratio, push, faces[1])
    for i in range(n):
        new, old = i % 2, (i + 1) % 2
        _face_changes(h, number, q, flow, slopes, around, i, ratio, push, faces[new])
        for j in range(columns - 1):
            if number[i, j] < 0 and number[i, j + 1] < 0:
                continue
            side = 0.0
            if flow[ALONG, i, j] != 0.0:
                mean = 0.5 * (flow[THICKNESS_ALONG, i, j] + flow[THICKNESS_ALONG, i, j + 1])
                side = _flow_by_thickness(mean, q[i, j] - q[i, j + 1], ratio)
            by_node, by_next = side * slopes[BY_ALONG, i, j], side * slopes[BY_ALONG, i, j + 1]
            for m in range(L):
                sides[j, m] = by_node * along[j, m] + by_next * along[j + 1, m]
        for j in range(1, columns - 1):
            unknown = number[i, j]
            if unknown < 0:
                continue
            by_source = slopes[BY_CONTENT, i, j] * rate[i, j]
            by_source = squeeze * (by_source + rate_factor * flow[CONTENT_SLOPE, i, j])
            for m in range(L):
                change[m] = sides[j, m] - sides[j - 1, m] + by_source * along[j, m]
            k = unknown * X.shape[1]
            for a in range(A):
                flux[a] = faces[old, j, a] - faces[new, j, a]
            for m in range(L):
                share, factor = along[j, m], change[m]
                for a in range(A):
                    flat[k + a] = share * flux[a] - factor * around[i, a]
                k += A


@inner_kernel
def _add_link_changes(
    h: Array,
    values: Array,
    number: Integers,
    q: Array,
    flow: Array,
    links: Integers,
    ends: Array,
    around: Array,
    along: Array,
    X: Array,
) -> None:
    """Add the part of `_balance_changes` that links cause."""
    n, columns = q.shape
    A, L = around.shape[1], along.shape[1]
    ratio = 2.0 * math.pi * values[RADIUS] / n * (columns - 1) / values[LENGTH]
    for t in range(len(links)):
        i, j, i1, j1 = links[t, 0], links[t, 1], links[t, 2], links[t, 3]
        if number[i, j] < 0:
            continue
        near, far = link_slopes(h, values, q, flow, links, ends, t, ratio)
        for m in range(L):
            for a in range(A):
                change = near * around[i, a] * along[j, m] + far * around[i1, a] * along[j1, m]
                X[number[i, j], m * A + a] -= change


@inner_kernel
def _pattern_sums(
    number: Integers, weights: Array, areas: Array, around: Array, along: Array, X: Array
) -> Array:
    """Return the sums Σ w φ X over the unknown nodes for all patterns φ, (A L, columns of X).

    `areas` (m+1,) times `weights` (n, m+1) are the factors w.
    """
    n, columns = number.shape
    A, L, width = around.shape[1], along.shape[1], X.shape[1]
    sums, out, f = np.zeros(n * L * width), np.zeros(A * L * width), np.empty(max(n, columns))
    # `subtract_sum` subtracts from zero: its factors f are negative
    flat = X.reshape(X.size)
    for i in range(n):
        first, count = -1, 0
        for j in range(1, columns - 1):  # the unknowns of an angle have successive numbers
            if number[i, j] >= 0:
                first, count = (number[i, j] if first < 0 else first), count + 1
        for m in range(L if count else 0):
            k = 0
            for j in range(1, columns - 1):
                if number[i, j] >= 0:
                    f[k] = -areas[j] * weights[i, j] * along[j, m]
                    k += 1
            target = (i * L + m) * width
            subtract_sum(sums, target, f, flat, first * width, width, count, 1.0, width)
    for a in range(A):
        for i in range(n):
            f[i] = -around[i, a]
        for m in range(L):
            target = (a * L + m) * width
            subtract_sum(out, target, f, sums, m * width, L * width, n, 1.0, width)
    return out.reshape(A * L, width)


@kernel
def reynolds_pattern_stiffness(
    h: Array,
    rate: Array,
    speed: float,
    values: Array,
    areas: Array,
    number: Integers,
    size: Integers,
    q: Array,
    slopes: Array,
    flow: Array,
    band: Array,
    links: Integers,
    ends: Array,
    around: Array,
    along: Array,
    rate_factor: float,
) -> Array:
    """Return the derivatives of the generalized forces of the film on patterns, (A L, A L).

    The generalized force on a pattern φ is the sum of φ p over the nodes, weighted with `areas`
    (m+1,). Row k of the result contains the derivatives of the force on pattern k with respect to
    the coefficients of all patterns in the gap, plus `rate_factor` times the derivatives with
    respect to their coefficients in the rate of the gap.

    `reynolds_pattern_gradients` gives the same derivatives, from adjoint solutions. This function
    solves for the changes of q instead; their right-hand sides are cheap, because the patterns are
    products of few functions. `slopes` (2, n, m+1) are those of `film_pressures`.
    """
    A, L = around.shape[1], along.shape[1]
    patterns = A * L
    X = np.zeros((size[UNKNOWNS], LANES * ((patterns + LANES - 1) // LANES)))
    _balance_changes(h, rate, speed, values, number, q, flow, around, along, rate_factor, X)
    _add_link_changes(h, values, number, q, flow, links, ends, around, along, X)
    substitute_columns(size, band, X)
    if is_resting(q, flow):
        X *= 0.5
    sums = _pattern_sums(number, slopes[FILM], areas, around, along, X)
    out = np.empty((patterns, patterns))
    for k in range(patterns):
        for a in range(A):
            for m in range(L):
                out[k, a * L + m] = sums[k, m * A + a]
    return out
