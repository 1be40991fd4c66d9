"""Kernels for the damage of stress histories: of scalars, and of the planes through a point.

A law is an array of numbers; `LAW` lists its entries. The damage of a cycle is 1/N, where N is the
life at a fully reversed amplitude that does the same damage as the amplitude and the mean of the
cycle. The damage of a history is the sum over its cycles (Palmgren and Miner). Histories consist of
several runs, one after the other. `offsets` are the first instants of the runs. `weights` are their
shares of the time divided by their durations, so that sums are rates per second.

On a plane with the normal n, the normal stress is σ = n·Sn. The shear stress is taken along the
direction t in which its variance over time is greatest, τ = t·Sn. The cycles of 2τ are counted, and
the mean of a cycle is taken from 2σ on the same plane. In uniaxial stress, 2τ and 2σ on a plane at
45° are equal to the axial stress.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.fatigue.rainflow import close, rainflow, turning_points

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LAW = (
    "mean", "strength", "sensitivity", "knee", "knee_cycles", "slope", "second_slope", "strain",
    "young", "hardening", "hardening_exponent", "strain_elastic", "strain_elastic_exponent",
    "strain_plastic", "strain_plastic_exponent",
)  # fmt: skip
"""Entries of a law: correction of the mean (see `MEANS`), tensile strength, FKM sensitivity, knee
of the S-N line and its slopes, then whether strain life is used and its constants: E, K', n' and A,
α, B, β of the life N in Y = A (2N)^α + B (2N)^β."""
MEANS = ("none", "Goodman", "Gerber", "Smith-Watson-Topper", "FKM")
SMALL = 0.1
"""Smallest range of a cycle that is included in the number of cycles, relative to the largest range
of the history. The damage of smaller cycles is included."""
COLUMNS = ("damage", "cycles", "range", "mean", "n_x", "n_y", "n_z", "t_x", "t_y", "t_z")
"""Results of a point: damage and number of cycles per second; range and mean of the most damaging
cycle; normal of the plane and direction in it. A damage of NaN stands for a cycle whose mean
reaches the tensile strength."""


@inner_kernel
def reversed_amplitude(amplitude: float, mean: float, law: Array) -> float:
    """Return the fully reversed amplitude that does the same damage; NaN beyond the strength."""
    if law[0] == 1.0 or law[0] == 2.0:
        if mean <= 0.0:
            return amplitude
        if mean >= law[1]:
            return math.nan
        ratio = mean / law[1]
        return amplitude / (1.0 - ratio if law[0] == 1.0 else 1.0 - ratio * ratio)
    if law[0] == 3.0:
        top = amplitude + mean
        return math.sqrt(amplitude * top) if top > 0.0 else 0.0
    if law[0] == 4.0:
        m = law[2]
        if mean <= -amplitude:
            return amplitude * (1.0 - m)
        if mean <= amplitude:
            return amplitude + m * mean
        return (1.0 + m) * (amplitude + m / 3.0 * mean) / (1.0 + m / 3.0)
    return amplitude


@inner_kernel
def neuber_stress(elastic: float, law: Array) -> float:
    """Return the stress σ ≥ 0 with σ (σ/E + (σ/K')^(1/n')) = elastic²/E."""
    target = elastic * elastic / law[8]
    stress, power = elastic, 1.0 / law[10]
    for _ in range(100):
        plastic = (stress / law[9]) ** power
        error = stress * (stress / law[8] + plastic) - target
        step = error / (2.0 * stress / law[8] + (1.0 + power) * plastic)
        stress -= step
        if abs(step) <= 1e-13 * elastic:
            break
    return stress


@inner_kernel
def strain_damage(amplitude: float, mean: float, law: Array) -> float:
    """Return the damage of a cycle of elastic stress by Neuber's rule and strain life."""
    if amplitude <= 0.0:
        return 0.0
    stress = neuber_stress(amplitude, law)
    value = amplitude * amplitude / (law[8] * stress)  # strain amplitude
    if law[0] == 3.0:
        if amplitude + mean <= 0.0:
            return 0.0
        value *= neuber_stress(amplitude + mean, law)
    a, b = math.log(law[11]), math.log(law[13])
    target, u = math.log(value), 0.0
    for _ in range(200):  # Newton's method for u = ln 2N; the function is convex
        first, second = a + law[12] * u, b + law[14] * u
        top = max(first, second)
        x, y = math.exp(first - top), math.exp(second - top)
        step = (top + math.log(x + y) - target) * (x + y) / (law[12] * x + law[14] * y)
        u -= step
        if abs(step) < 1e-13 * (1.0 + abs(u)):
            break
    return 2.0 * math.exp(-u)


@inner_kernel
def cycle_damage(amplitude: float, mean: float, law: Array) -> float:
    """Return the damage of one cycle; NaN if its mean reaches the tensile strength."""
    if law[7] == 1.0:
        return strain_damage(amplitude, mean, law)
    ratio = reversed_amplitude(amplitude, mean, law) / law[3]
    if ratio >= 1.0:
        return float(ratio ** law[5] / law[4])
    if ratio != ratio:
        return math.nan
    if law[6] == math.inf or ratio <= 0.0:
        return 0.0
    return float(ratio ** law[6] / law[4])


@kernel
def cycle_damages(amplitudes: Array, means: Array, law: Array) -> Array:
    """Return the damage of each of several cycles, shape (cycles,)."""
    damages = np.empty(amplitudes.shape[0])
    for k in range(amplitudes.shape[0]):
        damages[k] = cycle_damage(amplitudes[k], means[k], law)
    return damages


@inner_kernel
def history_damage(
    history: Array,
    companion: Array,
    offsets: Integers,
    weights: Array,
    law: Array,
    closed: bool,
    best: float,
    buffers: Array,
    out: Array,
) -> float:
    """Put damage, cycles, range and mean of a history into `out`, and return its largest range.

    A history is not counted if an upper bound of its damage does not exceed `best`; its damage is
    then 0. `buffers` has 5 rows.
    """
    points, means, ranges, middles, counts = (
        buffers[0], buffers[1], buffers[2], buffers[3], buffers[4],
    )  # fmt: skip
    widest, bound = 0.0, 0.0
    for r in range(weights.shape[0]):
        low = high = history[offsets[r]]
        top, turns = companion[offsets[r]], 0
        for k in range(offsets[r] + 1, offsets[r + 1]):
            low, high = min(low, history[k]), max(high, history[k])
            top = max(top, companion[k])
            if k + 1 < offsets[r + 1]:
                up = history[k] > history[k - 1]
                turns += up != (history[k + 1] > history[k])
        widest = max(widest, high - low)
        bound += weights[r] * (0.5 * turns + 1.5) * cycle_damage(0.5 * (high - low), top, law)
    out[0] = out[1] = out[2] = out[3] = 0.0
    if bound <= best:
        return float(widest)
    worst = -1.0
    for r in range(weights.shape[0]):
        count = turning_points(history, companion, offsets[r], offsets[r + 1], points, means)
        if closed:
            count = close(points, means, count)
        total = rainflow(points, means, count, ranges, middles, counts)
        for k in range(total):
            damage = cycle_damage(0.5 * ranges[k], middles[k], law)
            out[0] += weights[r] * counts[k] * damage
            if ranges[k] >= SMALL * widest:
                out[1] += weights[r] * counts[k]
            if damage > worst or damage != damage:
                worst = damage
                out[2], out[3] = ranges[k], middles[k]
            if damage != damage:
                return float(widest)
    return float(widest)


@kernel
def scalar_damage(
    values: Array, offsets: Integers, weights: Array, law: Array, closed: bool, out: Array
) -> None:
    """Put the damage of histories (m, nt) into `out` (m, 10); see `COLUMNS`."""
    buffers = np.empty((5, 2 * values.shape[1] + 2))
    for p in range(values.shape[0]):
        row = out[p]
        history_damage(values[p], values[p], offsets, weights, law, closed, 0.0, buffers, row)


@inner_kernel
def normal_row(n: Array, row: Array) -> None:
    """Put the factors of the six components of stress in n·Sn into `row`."""
    row[0], row[1], row[2] = n[0] * n[0], n[1] * n[1], n[2] * n[2]
    row[3], row[4], row[5] = 2.0 * n[0] * n[1], 2.0 * n[1] * n[2], 2.0 * n[2] * n[0]


@inner_kernel
def shear_row(n: Array, t: Array, row: Array) -> None:
    """Put the factors of the six components of stress in t·Sn into `row`."""
    row[0], row[1], row[2] = n[0] * t[0], n[1] * t[1], n[2] * t[2]
    row[3] = n[0] * t[1] + n[1] * t[0]
    row[4] = n[1] * t[2] + n[2] * t[1]
    row[5] = n[2] * t[0] + n[0] * t[2]


@inner_kernel
def tangents(n: Array, first: Array, second: Array) -> None:
    """Put two unit vectors normal to n and to each other into `first` and `second`."""
    k = 0
    for i in range(1, 3):
        if abs(n[i]) < abs(n[k]):
            k = i
    i, j = (k + 1) % 3, (k + 2) % 3
    size = math.sqrt(n[i] * n[i] + n[j] * n[j])
    first[k], first[i], first[j] = 0.0, -n[j] / size, n[i] / size
    second[0] = n[1] * first[2] - n[2] * first[1]
    second[1] = n[2] * first[0] - n[0] * first[2]
    second[2] = n[0] * first[1] - n[1] * first[0]


@inner_kernel
def shear_direction(n: Array, covariance: Array, frame: Array, rows: Array) -> None:
    """Put the direction of the greatest variance of the shear stress into `frame[2]`."""
    tangents(n, frame[0], frame[1])
    shear_row(n, frame[0], rows[0])
    shear_row(n, frame[1], rows[1])
    c00 = c01 = c11 = 0.0
    for i in range(6):
        for j in range(6):
            c00 += rows[0, i] * covariance[i, j] * rows[0, j]
            c01 += rows[0, i] * covariance[i, j] * rows[1, j]
            c11 += rows[1, i] * covariance[i, j] * rows[1, j]
    angle = 0.5 * math.atan2(2.0 * c01, c00 - c11)
    for i in range(3):
        frame[2, i] = math.cos(angle) * frame[0, i] + math.sin(angle) * frame[1, i]


@inner_kernel
def project(stress: Array, row: Array, factor: float, history: Array) -> None:
    """Put factor · row·stress into a history; stress has the shape (6, nt)."""
    a, b, c = factor * row[0], factor * row[1], factor * row[2]
    d, e, f = factor * row[3], factor * row[4], factor * row[5]
    for k in range(history.shape[0]):
        history[k] = (
            a * stress[0, k] + b * stress[1, k] + c * stress[2, k]
            + d * stress[3, k] + e * stress[4, k] + f * stress[5, k]
        )  # fmt: skip


@inner_kernel
def variances(stress: Array, offsets: Integers, weights: Array, covariance: Array) -> None:
    """Put the covariance of the six components of stress over all runs into `covariance`.

    The weight of a run is multiplied by its duration, up to a factor that all runs share.
    """
    covariance[:] = 0.0
    total = 0.0
    for r in range(weights.shape[0]):
        total += weights[r] * (offsets[r + 1] - offsets[r])
    for i in range(6):
        for j in range(i + 1):
            product = first = second = 0.0
            for r in range(weights.shape[0]):
                for k in range(offsets[r], offsets[r + 1]):
                    product += weights[r] * stress[i, k] * stress[j, k]
                    first += weights[r] * stress[i, k]
                    second += weights[r] * stress[j, k]
            covariance[i, j] = covariance[j, i] = product / total - first / total * second / total


@inner_kernel
def nearby(start: Array, angle: float, k: int, frame: Array, n: Array) -> None:
    """Put the k-th of six directions at an angle from the unit vector `start` into `n`."""
    tangents(start, frame[0], frame[1])
    c, s = math.cos(k * math.pi / 3.0), math.sin(k * math.pi / 3.0)
    for i in range(3):
        across = c * frame[0, i] + s * frame[1, i]
        n[i] = math.cos(angle) * start[i] + math.sin(angle) * across


@kernel
def plane_damage(
    stress: Array,
    normals: Array,
    spacing: Array,
    shear: bool,
    offsets: Integers,
    weights: Array,
    law: Array,
    closed: bool,
    out: Array,
) -> None:
    """Put the damage on the worst plane of each point into `out` (np, 10); see `COLUMNS`.

    Args:
        stress: Components xx, yy, zz, xy, yz, zx, shape (np, 6, nt), Pa.
        normals: Normals of the planes of the first search, shape (planes, 3).
        spacing: Angles at which six more planes around the worst one are tried, rad.
        shear: Whether the shear stress is counted, not the normal stress.
        offsets: First instants of the runs, and the number of all instants.
        weights: Share over duration of each run, 1/s.
        law: See `LAW`.
        closed: Whether the residue is closed by repetition.
        out: Results.
    """
    size = stress.shape[2]
    history, normal = np.empty(size), np.empty(size)
    buffers, row, frame = np.empty((5, 2 * size + 2)), np.empty(6), np.empty((3, 3))
    rows, covariance, n, start = np.empty((2, 6)), np.zeros((6, 6)), np.empty(3), np.empty(3)
    result, origin = np.empty(4), np.empty(3)
    searches = normals.shape[0] + 6 * spacing.shape[0]
    for p in range(stress.shape[0]):
        if shear:
            variances(stress[p], offsets, weights, covariance)
        out[p] = 0.0
        best, widest = 0.0, -1.0
        start[:] = normals[0]
        for k in range(searches):
            if k < normals.shape[0]:
                n[:] = normals[k]
            else:
                step = k - normals.shape[0]
                if step % 6 == 0:
                    origin[:] = start
                nearby(origin, spacing[step // 6], step % 6, frame, n)
            normal_row(n, row)
            if shear:
                shear_direction(n, covariance, frame, rows)
                project(stress[p], row, 2.0, normal)
                shear_row(n, frame[2], row)
                project(stress[p], row, 2.0, history)
                extent = history_damage(
                    history, normal, offsets, weights, law, closed, best, buffers, result
                )
            else:
                project(stress[p], row, 1.0, history)
                extent = history_damage(
                    history, history, offsets, weights, law, closed, best, buffers, result
                )
            if result[0] > best or result[0] != result[0]:
                best = result[0]
                start[:] = n
                out[p, :4] = result
                out[p, 4:7] = n
                if shear:
                    out[p, 7:10] = frame[2]
            elif best == 0.0 and extent > widest:  # no damage yet: search around the widest range
                start[:] = n
            widest = max(widest, extent)
            if best != best:
                break
