"""Thinning of time histories to visible accuracy, and encoding of arrays as text."""

from __future__ import annotations

import base64
import heapq
import itertools
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["block", "continuous", "integers", "outline", "sampled_rows"]

Array = NDArray[np.float64]

KINDS = {"f4": "<f4", "f8": "<f8", "i2": "<i2", "u2": "<u2", "u4": "<u4"}
"""Types of numbers in a page, with their types in NumPy."""

SMALL = 1000
"""Arrays with fewer bytes are not compressed."""

LARGEST = 32767
"""Largest 16-bit integer."""


def block(values: Any, kind: str = "f4") -> dict[str, str]:
    """Return an array as a JSON object with base64 text; the page knows its shape.

    Large arrays are compressed (zlib): first the lowest byte of each number, then the next ones,
    because high bytes of neighbours are similar.
    """
    numbers = np.ascontiguousarray(values, KINDS[kind]).ravel()
    if numbers.nbytes < SMALL:
        return {"type": kind, "data": base64.b64encode(numbers.tobytes()).decode()}
    planes = numbers.view(np.uint8).reshape(len(numbers), -1).T
    packed = zlib.compress(np.ascontiguousarray(planes).tobytes(), 6)
    return {"type": kind, "packed": base64.b64encode(packed).decode()}


def integers(values: Array) -> dict[str, Any]:
    """Return values as 16-bit integers with one scale factor."""
    scale = float(np.abs(values).max(initial=0.0)) / LARGEST or 1.0
    return {"scale": scale, "values": block(np.rint(values / scale), "i2")}


def sampled_rows(time: Array, curves: Array, *, limit: int) -> NDArray[np.int64]:
    """Return indices of times between which linear interpolation represents all curves.

    The interval with the largest error is divided at the time of this error. This step is repeated
    until all errors are below 1.

    Args:
        time: Times, shape (nt,), s.
        curves: Curves in units of their permitted error, shape (nt, n).
        limit: Largest number of times.
    """
    last = len(time) - 1
    rows = {0, last}
    heap: list[tuple[float, int, int, int]] = []

    def add(start: int, end: int) -> None:
        """Add an interval to the heap if its largest error is not permitted."""
        if end - start < 2:
            return
        weight = (time[start : end + 1] - time[start]) / (time[end] - time[start])
        chord = curves[start] + weight[:, None] * (curves[end] - curves[start])
        errors = np.abs(curves[start : end + 1] - chord).max(axis=1, initial=0.0)
        worst = int(np.argmax(errors))
        if errors[worst] > 1.0:
            heapq.heappush(heap, (-float(errors[worst]), start, start + worst, end))

    add(0, last)
    while heap and len(rows) < limit:
        _, start, middle, end = heapq.heappop(heap)
        rows.add(middle)
        add(start, middle)
        add(middle, end)
    return np.array(sorted(rows), dtype=np.int64)


def outline(time: Array, values: Array, *, limit: int = 1200) -> tuple[Array, Array]:
    """Return a curve with at most about `limit` points that retain its minima and maxima."""
    if len(time) <= limit:
        return time, values
    edges = np.linspace(0, len(time), limit // 2 + 1).astype(int)
    pairs = [
        (a + int(np.argmin(values[a:b])), a + int(np.argmax(values[a:b])))
        for a, b in itertools.pairwise(edges)
    ]
    rows = np.unique([0, len(time) - 1, *np.ravel(pairs)])
    return time[rows], values[rows]


def continuous(quaternions: Array) -> Array:
    """Return unit quaternions (nt, 4) with signs such that successive ones are close."""
    products = np.einsum("tk,tk->t", quaternions[1:], quaternions[:-1])
    signs = np.concatenate([[1.0], np.cumprod(np.where(products < 0, -1.0, 1.0))])
    return np.asarray(signs[:, None] * quaternions)
