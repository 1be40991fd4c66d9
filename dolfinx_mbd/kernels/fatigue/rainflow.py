"""Kernels that count the cycles of a history by the rainflow rules of ASTM E1049-85, 5.4.4.

A history is reduced to its turning points. A companion signal has a value at each instant of the
history; the mean of a cycle is the mean of the companion at its two turning points. The companion
of a normal stress is the stress itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel

Array = NDArray[np.float64]


ROUND_OFF = 1e-12
"""Difference of equal values, relative to the largest value of the history and its companion."""


@inner_kernel
def append_point(
    points: Array, means: Array, count: int, value: float, mean: float, limit: float
) -> int:
    """Append a value to the turning points, or move the last one to it; return their number.

    A value that differs from the last one by at most `limit` is not appended.
    """
    if count == 0:
        points[0], means[0] = value, mean
        return 1
    last = points[count - 1]
    if abs(value - last) <= limit:
        return count
    if count > 1:
        before = points[count - 2]
        if (value > last and last > before) or (value < last and last < before):
            points[count - 1], means[count - 1] = value, mean
            return count
    points[count], means[count] = value, mean
    return count + 1


@inner_kernel
def turning_points(
    history: Array, companion: Array, start: int, stop: int, points: Array, means: Array
) -> int:
    """Store the turning points of a part of a history with its ends, and return their number."""
    count, largest = 0, 0.0
    for k in range(start, stop):
        largest = max(largest, abs(history[k]), abs(companion[k]))
    for k in range(start, stop):
        count = append_point(points, means, count, history[k], companion[k], ROUND_OFF * largest)
    return count


@inner_kernel
def close(points: Array, means: Array, count: int) -> int:
    """Repeat a history: start and end its turning points at the largest absolute value.

    `points` and `means` need room for twice the number of points and one more.
    """
    if count < 2:
        return count
    top, largest = 0, 0.0
    for k in range(count):
        largest = max(largest, abs(points[k]), abs(means[k]))
        if abs(points[k]) > abs(points[top]):
            top = k
        points[count + k], means[count + k] = points[k], means[k]
    total = 0
    for k in range(count + 1):  # overwrites only points that have been read
        source = count + (top + k) % count
        total = append_point(
            points, means, total, points[source], means[source], ROUND_OFF * largest
        )
    return total


@inner_kernel
def rainflow(
    points: Array, means: Array, count: int, ranges: Array, middles: Array, counts: Array
) -> int:
    """Store ranges, means and counts (0.5 or 1) of all cycles, and return their number.

    The turning points are overwritten. The remaining turning points count as half cycles.
    """
    total, size = 0, 0
    for k in range(count):
        points[size], means[size] = points[k], means[k]
        size += 1
        while size >= 3:
            older = abs(points[size - 2] - points[size - 3])
            if abs(points[size - 1] - points[size - 2]) < older:
                break
            ranges[total] = older
            middles[total] = 0.5 * (means[size - 2] + means[size - 3])
            counts[total] = 0.5 if size == 3 else 1.0  # half a cycle at the start of the history
            total += 1
            if size == 3:
                points[0], means[0], points[1], means[1] = points[1], means[1], points[2], means[2]
                size = 2
            else:
                points[size - 3], means[size - 3] = points[size - 1], means[size - 1]
                size -= 2
    for k in range(size - 1):
        ranges[total] = abs(points[k + 1] - points[k])
        middles[total] = 0.5 * (means[k + 1] + means[k])
        counts[total] = 0.5
        total += 1
    return total


@kernel
def count_history(history: Array, closed: bool) -> Array:
    """Return the cycles of a history, shape (cycles, 3): range, mean and count."""
    size = 2 * history.shape[0] + 2
    points, means = np.empty(size), np.empty(size)
    count = turning_points(history, history, 0, history.shape[0], points, means)
    if closed:
        count = close(points, means, count)
    ranges, middles, counts = np.empty(size), np.empty(size), np.empty(size)
    total = rainflow(points, means, count, ranges, middles, counts)
    cycles = np.empty((total, 3))
    for k in range(total):
        cycles[k, 0], cycles[k, 1], cycles[k, 2] = ranges[k], middles[k], counts[k]
    return cycles
