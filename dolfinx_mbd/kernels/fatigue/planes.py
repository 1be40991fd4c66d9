"""Kernels for the stress on the planes through a point, and for directions in a plane.

Stress has the components xx, yy, zz, xy, yz, zx, shape (6, nt). The path of the shear stress on a
plane consists of its two components along the tangents of the plane, shape (2, nt).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.compilation import inner_kernel

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

STRAIGHT = 1e-9
"""Width of a straight path, relative to its length."""


@inner_kernel
def dot(a: Array, b: Array) -> float:
    """Return the scalar product of two vectors."""
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


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
def nearby(start: Array, angle: float, k: int, frame: Array, n: Array) -> None:
    """Put the k-th of six directions at an angle from the unit vector `start` into `n`."""
    tangents(start, frame[0], frame[1])
    c, s = math.cos(k * math.pi / 3.0), math.sin(k * math.pi / 3.0)
    for i in range(3):
        across = c * frame[0, i] + s * frame[1, i]
        n[i] = math.cos(angle) * start[i] + math.sin(angle) * across


@inner_kernel
def stress_on_plane(
    stress: Array, n: Array, frame: Array, row: Array, normal: Array, path: Array
) -> None:
    """Put twice the normal stress and twice the path of the shear stress into arrays.

    The tangents of the plane are put into the first two rows of `frame`.
    """
    tangents(n, frame[0], frame[1])
    normal_row(n, row)
    project(stress, row, 2.0, normal)
    for i in range(2):
        shear_row(n, frame[i], row)
        project(stress, row, 2.0, path[i])


@inner_kernel
def along(path: Array, angle: float, history: Array) -> None:
    """Put the component of a path in the direction at an angle into a history."""
    c, s = math.cos(angle), math.sin(angle)
    for k in range(history.shape[0]):
        history[k] = c * path[0, k] + s * path[1, k]


#: Entries of `longest_chord`
CHORD, ANGLE, WIDTH = range(3)


@inner_kernel
def longest_chord(path: Array, offsets: Integers, chord: Array) -> None:
    """Put CHORD and ANGLE of a long chord of a path, and the WIDTH across it, into `chord`.

    A chord connects two points of the same run. The ends of a chord are the extreme points in the
    direction of the previous chord; the first directions are those of the axes. The chord of a
    straight path is exact.
    """
    chord[:] = 0.0
    for r in range(offsets.shape[0] - 1):
        for axis in range(2):
            angle = 0.5 * math.pi * axis
            for _ in range(3):
                c, s = math.cos(angle), math.sin(angle)
                low = high = offsets[r]
                least = most = c * path[0, low] + s * path[1, low]
                for k in range(offsets[r] + 1, offsets[r + 1]):
                    value = c * path[0, k] + s * path[1, k]
                    if value < least:
                        least, low = value, k
                    elif value > most:
                        most, high = value, k
                x, y = path[0, high] - path[0, low], path[1, high] - path[1, low]
                if x == 0.0 and y == 0.0:
                    break
                angle = math.atan2(y, x)
                if math.hypot(x, y) > chord[CHORD]:
                    chord[CHORD], chord[ANGLE] = math.hypot(x, y), angle
    c, s = math.cos(chord[ANGLE]), math.sin(chord[ANGLE])
    for r in range(offsets.shape[0] - 1):
        least = most = c * path[1, offsets[r]] - s * path[0, offsets[r]]
        for k in range(offsets[r] + 1, offsets[r + 1]):
            value = c * path[1, k] - s * path[0, k]
            least, most = min(least, value), max(most, value)
        chord[WIDTH] = max(chord[WIDTH], most - least)
