"""Motions of drivers from a position or a speed alone: what is missing is differentiated or
integrated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Motion", "differentiated", "integrated"]

Array = NDArray[np.float64]

#: Value (rad or m), rate and acceleration at a time.
Motion = Callable[[float], tuple[float, float, float]]

# central differences of sixth order at −3 ... 3 steps
_FIRST = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0
_SECOND = np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


def differentiated(position: Callable[[float], float], *, step: float = 1e-4) -> Motion:
    """Motion whose rate and acceleration are differences of an angle (rad) or a displacement (m).

    Central differences of sixth order; the function is evaluated up to three steps before and after
    the time.  A motion of circular frequency Ω has an acceleration off by (Ω step)⁶/560 of it and
    by round-off of about 1e-15 of the position over step²: with the default below 1e-8 of the
    greatest acceleration for Ω from 20 to 1,000 rad/s.  Both are used for the start and for
    projected results; the steps of a simulation use the position alone.

    Args:
        position: The prescribed angle or displacement over time; three times differentiable.
        step: Of the differences, s.

    Raises:
        ValueError: If the step is not positive.
    """
    _positive("step", step)

    def motion(t: float) -> tuple[float, float, float]:
        values = np.array([float(position(t + k * step)) for k in range(-3, 4)])
        rate = float(_FIRST @ values) / step
        return float(values[3]), rate, float(_SECOND @ values) / step**2

    return motion


def integrated(
    rate: Callable[[float], float], *, start: float = 0.0, panel: float = 1e-2, step: float = 1e-4
) -> Motion:
    """Motion with a prescribed rate (rad/s or m/s): the integral from t = 0, and the differences.

    Gauss quadrature with ten points on panels [k panel, (k+1) panel], exact to round-off where the
    rate is smooth over a panel; give a shorter one for a rate that changes faster.  The value at a
    time does not depend on what was asked before.  What a driver holds is this position, so that
    nothing drifts.

    Args:
        rate: The prescribed rate over time.
        start: Angle (rad) or displacement (m) at t = 0.
        panel: Length of the panels, s.
        step: Of the differences that give the acceleration, s (:func:`differentiated`).

    Raises:
        ValueError: If panel or step are not positive.
    """
    _positive("panel", panel)
    _positive("step", step)
    _sums = {1: [0.0], -1: [0.0]}  # over whole panels, found as they are asked for

    def integral(low: float, high: float) -> float:
        half, middle = 0.5 * (high - low), 0.5 * (high + low)
        values = [float(rate(middle + half * x)) for x in _NODES]
        return half * float(_WEIGHTS @ np.array(values))

    def whole(k: int) -> float:
        """The integral over the first k panels after (or, k < 0, before) t = 0."""
        sign = 1 if k >= 0 else -1
        known = _sums[sign]
        while len(known) <= abs(k):
            n = len(known)
            known.append(known[-1] + integral(sign * (n - 1) * panel, sign * n * panel))
        return known[abs(k)]

    def motion(t: float) -> tuple[float, float, float]:
        k = int(t / panel)
        value = start + whole(k) + integral(k * panel, t)
        near = np.array([float(rate(t + i * step)) for i in range(-3, 4)])
        return value, float(near[3]), float(_FIRST @ near) / step

    return motion


def _positive(what: str, value: float) -> None:
    if not (isinstance(value, (int, float, np.number)) and 0 < value < np.inf):
        raise ValueError(f"{what} must be a positive number of seconds, got {value!r}")
