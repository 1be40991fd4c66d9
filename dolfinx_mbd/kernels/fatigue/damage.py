"""Kernels for the damage of stress histories: of scalars, and of the planes through a point.

A law is an array of numbers; `LAW` lists its entries. The damage of a cycle is 1/N, where N is the
life at a fully reversed amplitude that does the same damage as the amplitude and the mean of the
cycle. The damage of a history is the sum over its cycles (Palmgren and Miner). Histories consist of
several runs, one after the other. `offsets` are the first instants of the runs. `weights` are their
shares of the time divided by their durations, so that sums are rates per second.

On a plane with the normal n, the normal stress is σ = n·Sn, and the shear stress in a direction t
of the plane is τ = t·Sn. The worst plane and the worst direction in it are searched. The cycles of
2τ are counted, and the mean of a cycle is taken from 2σ on the same plane. In uniaxial stress, 2τ
and 2σ on a plane at 45° are equal to the axial stress.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.fatigue.planes import (
    ANGLE,
    CHORD,
    STRAIGHT,
    WIDTH,
    along,
    dot,
    longest_chord,
    nearby,
    normal_row,
    project,
    stress_on_plane,
)
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
MEAN, STRENGTH, SENSITIVITY, KNEE, KNEE_CYCLES, SLOPE, SECOND_SLOPE, STRAIN = range(8)
YOUNG, HARDENING, HARDENING_EXPONENT = range(8, 11)
ELASTIC, ELASTIC_EXPONENT, PLASTIC, PLASTIC_EXPONENT = range(11, 15)
MEANS = ("none", "Goodman", "Gerber", "Smith-Watson-Topper", "FKM")
_, GOODMAN, GERBER, SMITH_WATSON_TOPPER, FKM = range(5)
SMALL = 0.1
"""Smallest range of a cycle that is included in the number of cycles, relative to the largest range
of the history. The damage of smaller cycles is included."""
DIRECTIONS = 8
"""Directions at equal angles that are tried on each plane of the first search for shear stress."""
DAMAGE, CYCLES, RANGE, RANGE_MEAN = range(4)
RESULT, NORMAL, DIRECTION = slice(0, 4), slice(4, 7), slice(7, 10)
COLUMNS = ("damage", "cycles", "range", "mean", "n_x", "n_y", "n_z", "t_x", "t_y", "t_z")
"""Results of a point: damage and number of cycles per second; range and mean of the most damaging
cycle; normal of the plane and direction in it. A damage of NaN stands for a cycle whose mean
reaches the tensile strength."""


@inner_kernel
def reversed_amplitude(amplitude: float, mean: float, law: Array) -> float:
    """Return the fully reversed amplitude that does the same damage; NaN beyond the strength."""
    if law[MEAN] == GOODMAN or law[MEAN] == GERBER:
        if mean <= 0.0:
            return amplitude
        if mean >= law[STRENGTH]:
            return math.nan
        ratio = mean / law[STRENGTH]
        return amplitude / (1.0 - ratio if law[MEAN] == GOODMAN else 1.0 - ratio * ratio)
    if law[MEAN] == SMITH_WATSON_TOPPER:
        top = amplitude + mean
        return math.sqrt(amplitude * top) if top > 0.0 else 0.0
    if law[MEAN] == FKM:
        m = law[SENSITIVITY]
        if mean <= -amplitude:
            return amplitude * (1.0 - m)
        if mean <= amplitude:
            return amplitude + m * mean
        return (1.0 + m) * (amplitude + m / 3.0 * mean) / (1.0 + m / 3.0)
    return amplitude


@inner_kernel
def neuber_stress(elastic: float, law: Array) -> float:
    """Return the stress σ ≥ 0 with σ (σ/E + (σ/K')^(1/n')) = elastic²/E."""
    target = elastic * elastic / law[YOUNG]
    stress, power = elastic, 1.0 / law[HARDENING_EXPONENT]
    for _ in range(100):
        plastic = (stress / law[HARDENING]) ** power
        error = stress * (stress / law[YOUNG] + plastic) - target
        step = error / (2.0 * stress / law[YOUNG] + (1.0 + power) * plastic)
        stress -= step
        if abs(step) <= 1e-13 * elastic:
            break
    return stress


@kernel
def neuber_stresses(elastic: Array, law: Array) -> Array:
    """Return the stresses of Neuber's rule for elastic stresses of at least zero, (m,)."""
    stresses = np.zeros(elastic.shape[0])
    for k in range(elastic.shape[0]):
        if elastic[k] > 0.0:
            stresses[k] = neuber_stress(elastic[k], law)
    return stresses


@inner_kernel
def strain_damage(amplitude: float, mean: float, law: Array) -> float:
    """Return the damage of a cycle of elastic stress by Neuber's rule and strain life."""
    if amplitude <= 0.0:
        return 0.0
    stress = neuber_stress(amplitude, law)
    value = amplitude * amplitude / (law[YOUNG] * stress)  # strain amplitude
    if law[MEAN] == SMITH_WATSON_TOPPER:
        if amplitude + mean <= 0.0:
            return 0.0
        value *= neuber_stress(amplitude + mean, law)
    # Newton's method for u = ln 2N, with Y = `value` in the logarithm of the law Y(2N); see `LAW`
    a, b = math.log(law[ELASTIC]), math.log(law[PLASTIC])
    target, u = math.log(value), 0.0
    for _ in range(200):  # the function is convex; `top` avoids overflow
        first, second = a + law[ELASTIC_EXPONENT] * u, b + law[PLASTIC_EXPONENT] * u
        top = max(first, second)
        x, y = math.exp(first - top), math.exp(second - top)
        slope = law[ELASTIC_EXPONENT] * x + law[PLASTIC_EXPONENT] * y
        step = (top + math.log(x + y) - target) * (x + y) / slope
        u -= step
        if abs(step) < 1e-13 * (1.0 + abs(u)):
            break
    return 2.0 * math.exp(-u)


@inner_kernel
def cycle_damage(amplitude: float, mean: float, law: Array) -> float:
    """Return the damage of one cycle; NaN if its mean reaches the tensile strength."""
    if law[STRAIN] == 1:
        return strain_damage(amplitude, mean, law)
    ratio = reversed_amplitude(amplitude, mean, law) / law[KNEE]
    if ratio >= 1.0:
        return float(ratio ** law[SLOPE] / law[KNEE_CYCLES])
    if ratio != ratio:
        return math.nan
    if law[SECOND_SLOPE] == math.inf or ratio <= 0.0:
        return 0.0
    return float(ratio ** law[SECOND_SLOPE] / law[KNEE_CYCLES])


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
        # the bound assumes the full range and the largest companion in all half cycles: turns + 1,
        # and two more if the history is closed
        bound += weights[r] * (0.5 * turns + 1.5) * cycle_damage(0.5 * (high - low), top, law)
    out[DAMAGE] = out[CYCLES] = out[RANGE] = out[RANGE_MEAN] = 0.0
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
            out[DAMAGE] += weights[r] * counts[k] * damage
            if ranges[k] >= SMALL * widest:
                out[CYCLES] += weights[r] * counts[k]
            if damage > worst or damage != damage:  # NaN: see `COLUMNS`
                worst = damage
                out[RANGE], out[RANGE_MEAN] = ranges[k], middles[k]
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
def keep_worst(
    result: Array, extent: float, n: Array, t: Array, widest: float, start: Array, out: Array
) -> float:
    """Keep the worst plane so far in `out`, and the plane of the next search in `start` (2, 3).

    Before any damage occurs, the next search is around the widest range. Return that range so far.
    """
    worse = result[DAMAGE] > out[DAMAGE] or result[DAMAGE] != result[DAMAGE]
    if worse:
        out[RESULT] = result
        out[NORMAL] = n
        out[DIRECTION] = t
    if worse or (out[DAMAGE] == 0.0 and extent > widest):
        start[0] = n
        start[1] = t
    return max(widest, extent)


@inner_kernel
def normal_search(
    stress: Array,
    normals: Array,
    spacing: Array,
    offsets: Integers,
    weights: Array,
    law: Array,
    closed: bool,
    buffers: Array,
    out: Array,
) -> None:
    """Put the damage by the normal stress on the worst plane of a point into `out` (10,)."""
    history, row, n, t = np.empty(stress.shape[1]), np.empty(6), np.empty(3), np.zeros(3)
    frame, start, result = np.empty((2, 3)), np.empty((2, 3)), np.empty(4)
    origin, widest = np.empty(3), -1.0
    for k in range(normals.shape[0] + 6 * spacing.shape[0]):
        if k < normals.shape[0]:
            n[:] = normals[k]
        else:
            step = k - normals.shape[0]
            if step % 6 == 0:
                origin[:] = start[0]
            nearby(origin, spacing[step // 6], step % 6, frame, n)
        normal_row(n, row)
        project(stress, row, 1.0, history)
        extent = history_damage(
            history, history, offsets, weights, law, closed, out[DAMAGE], buffers, result
        )
        widest = keep_worst(result, extent, n, t, widest, start, out)
        if out[DAMAGE] != out[DAMAGE]:
            return


@inner_kernel
def shear_search(
    stress: Array,
    normals: Array,
    spacing: Array,
    offsets: Integers,
    weights: Array,
    law: Array,
    closed: bool,
    buffers: Array,
    out: Array,
) -> None:
    """Put the damage by the shear stress on the worst plane of a point into `out` (10,).

    On each plane of the first search, the direction of the longest chord of the path is tried, and
    then directions at equal angles, unless the path is straight. The refinement tries the direction
    of the worst plane so far, directions on both sides of it, and the longest chord.
    """
    size = stress.shape[1]
    history, normal, path, row = np.empty(size), np.empty(size), np.empty((2, size)), np.empty(6)
    n, t, chord, result = np.empty(3), np.empty(3), np.empty(3), np.empty(4)
    frame, start, origin = np.empty((2, 3)), np.empty((2, 3)), np.empty((2, 3))
    # each refinement tries the worst plane so far, and six planes around it
    planes, widest = normals.shape[0], -1.0
    for k in range(planes + 7 * spacing.shape[0]):
        tries, step = DIRECTIONS, math.pi / DIRECTIONS
        if k < planes:
            n[:] = normals[k]
        else:
            side = (k - planes) % 7
            tries, step = 3, spacing[(k - planes) // 7]
            if side == 0:
                origin[:] = start
                n[:] = origin[0]
            else:
                nearby(origin[0], step, side, frame, n)
        stress_on_plane(stress, n, frame, row, normal, path)
        longest_chord(path, offsets, chord)
        base = 0.0
        if k >= planes:  # the direction of the worst plane, turned into this plane
            base = math.atan2(dot(frame[1], origin[1]), dot(frame[0], origin[1])) - step
        if chord[WIDTH] <= STRAIGHT * chord[CHORD]:
            tries = 0
        for j in range(-1, tries):
            angle = chord[ANGLE] if j < 0 else base + j * step
            along(path, angle, history)
            extent = history_damage(
                history, normal, offsets, weights, law, closed, out[DAMAGE], buffers, result
            )
            for i in range(3):
                t[i] = math.cos(angle) * frame[0, i] + math.sin(angle) * frame[1, i]
            widest = keep_worst(result, extent, n, t, widest, start, out)
            if out[DAMAGE] != out[DAMAGE]:  # NaN
                return


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
    """Put the damage on the worst plane of each point into `out` (points, 10); see `COLUMNS`.

    Args:
        stress: Components xx, yy, zz, xy, yz, zx, shape (points, 6, nt), Pa.
        normals: Normals of the planes of the first search, shape (planes, 3).
        spacing: Angles at which six more planes around the worst one are tried, rad.
        shear: Whether the shear stress is counted, not the normal stress.
        offsets: First instants of the runs, and the number of all instants.
        weights: Share over duration of each run, 1/s.
        law: See `LAW`.
        closed: Whether the residue is closed by repetition.
        out: Results.
    """
    buffers = np.empty((5, 2 * stress.shape[2] + 2))
    out[:] = 0.0
    for p in range(stress.shape[0]):
        if shear:
            shear_search(
                stress[p], normals, spacing, offsets, weights, law, closed, buffers, out[p]
            )
        else:
            normal_search(
                stress[p], normals, spacing, offsets, weights, law, closed, buffers, out[p]
            )
