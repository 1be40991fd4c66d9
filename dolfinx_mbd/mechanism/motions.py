"""Motions of drivers that are created from a position or a rate, and checks of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import scipy
from numpy.typing import NDArray

from dolfinx_mbd.checks import function, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.system import System

__all__ = ["Motion", "check_derivatives", "check_drivers", "differentiated", "integrated"]

Array = NDArray[np.float64]

Motion = Callable[[float], tuple[float, float, float]]
"""Function of time that returns value (rad or m), rate and acceleration."""

# Coefficients of central differences of sixth order at steps from −3 to 3
_FIRST_DERIVATIVE = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0
_SECOND_DERIVATIVE = np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0

_SAMPLES = 20  # times at which a motion is checked
_GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo 1 fill [0, 1] evenly without a period
# Lengths of the intervals relative to the duration of the run
_SPANS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7, 1e-2)
_TOLERANCE = 1e-2  # largest relative difference of a correct derivative
# Largest ignored changes of position and rate, relative to their largest values
_NOISE = np.array([1e-9, 1e-6])


def check_drivers(system: System, start: float, end: float) -> None:
    """Check the derivatives of all drivers over a run; see `check_derivatives`."""
    for driver in system.drivers:
        check_derivatives(f"driver {driver.name!r}", driver.at, start, end)


def check_derivatives(name: str, motion: Motion, start: float, end: float) -> None:
    """Raise an `InputError` if the rate or the acceleration of a motion contradicts its position.

    The check takes several times of the run and, at each time, intervals of several lengths that
    end or start there. Over each interval, it compares the change of the position with the integral
    of the rate, and the change of the rate with the integral of the acceleration. It raises an
    error only if at one of the times no interval agrees within 1 %. Rates and accelerations may
    therefore jump: the intervals without a jump agree. The motion is not evaluated outside the run.
    """
    times = start + (end - start) * np.mod(np.arange(_SAMPLES) * _GOLDEN_RATIO, 1.0)
    scales = np.abs([motion(float(t)) for t in times]).max(axis=0)
    for t in times.tolist():
        intervals = np.array(list(_intervals(motion, t, (start, end), scales)))
        for order, (value, base) in enumerate((("rate", "position"), ("acceleration", "rate"))):
            width, integral, change, _ = columns = intervals[:, :, order].T
            contradictions = _contradictions(columns, scales[order + 1])
            if len(contradictions):
                k = contradictions[0]
                claimed, actual = integral[k] / width[k], change[k] / width[k]
                raise InputError(
                    f"{name}: the {value} at t = {t:g} s is {claimed:.6g}, but the {base} changes "
                    f"by {actual:.6g} per second; correct the derivatives, or create them with "
                    "differentiated(position) or integrated(rate)",
                    argument=name,
                    value=claimed,
                    expected=f"{actual:g}",
                )


def _intervals(
    motion: Motion, t: float, run: tuple[float, float], scales: Array
) -> Iterator[Array]:
    """Yield length, integral, change and noise (rows) of rate and acceleration (columns)."""
    for side, span in product((1, -1), _SPANS):
        low, high = sorted((t, t + side * span * (run[1] - run[0])))
        if run[0] <= low and high <= run[1]:
            width = high - low
            first, middle, last = np.array([motion(s) for s in (low, 0.5 * (low + high), high)])
            integrals = width / 6 * (first + 4 * middle + last)[1:]  # Simpson's rule
            # Rates may be differences of positions, which have round-off errors
            round_off = np.array([0.0, 1e-14 * scales[0] / width])
            noise = _NOISE * scales[:2] + round_off
            yield np.array([[width, width], integrals, (last - first)[:2], noise])


def _contradictions(intervals: Array, scale: float) -> NDArray[np.int64]:
    """Return the indices of contradictory intervals, from the rows of `_intervals`, (4, n).

    The error of an interval counts only if no other interval agrees within a tenth of this error.
    `scale` is the largest derivative in the run; errors below 1e-3 of it do not count.
    """
    width, integral, change, noise = intervals
    error, size = np.abs(integral - change), np.maximum(np.abs(integral), np.abs(change))
    wrong = (error > _TOLERANCE * size + 10 * noise) & (error >= 1e-3 * scale * width)
    # A tenth of each error, scaled to the widths of the others
    slack = np.outer(0.1 * error / width, width)
    agrees = error <= np.maximum(_TOLERANCE * size, slack)
    agrees &= np.maximum(size, 10 * slack) > 10 * noise
    return np.flatnonzero(wrong & ~agrees.any(axis=1))


def differentiated(position: Callable[[float], float], *, step: float = 1e-4) -> Motion:
    """Return the motion of a driver from its position, with derivatives by finite differences.

    The differences are central and of sixth order. At the circular frequency Ω, the relative error
    of the acceleration is (Ω step)⁶/560. Round-off adds an error of about 1e-15 of the position
    divided by step². With the default step, the relative error is below 1e-8 for Ω from 20 to 1,000
    rad/s. Simulations use rates and accelerations only at the start and in projected results.

    Args:
        position: Angle (rad) or displacement (m) as a function of time (s); the function is
            evaluated up to three steps before and after each time and must be three times
            differentiable.
        step: Step of the differences, s.

    Returns:
        Function of time that returns position, rate and acceleration.

    Raises:
        InputError: The step is not positive.

    Example:
        >>> angle, rate, acceleration = mbd.mechanism.differentiated(np.sin)(0.0)
        >>> round(rate, 9)
        1.0
    """
    function("position", position, "position(t)")
    number("step", step, positive=True, unit="s")

    def motion(t: float) -> tuple[float, float, float]:
        values = np.array([float(position(t + k * step)) for k in range(-3, 4)])
        rate = float(_FIRST_DERIVATIVE @ values) / step
        return float(values[3]), rate, float(_SECOND_DERIVATIVE @ values) / step**2

    return motion


def integrated(
    rate: Callable[[float], float], *, start: float = 0.0, panel: float = 1e-2, step: float = 1e-4
) -> Motion:
    """Return the motion of a driver from its rate; the position is the integral from t = 0.

    The integral uses Gauss quadrature with ten points on panels [k panel, (k+1) panel]; the
    integral is exact up to round-off if the rate is smooth over a panel. The driver prescribes this
    position, so that the joint does not drift.

    Args:
        rate: Rate (rad/s or m/s) as a function of time (s).
        start: Angle (rad) or displacement (m) at t = 0.
        panel: Length of the panels, s; choose shorter panels for rates that change faster.
        step: Step of the differences for the acceleration, s; see `differentiated`.

    Returns:
        Function of time that returns position, rate and acceleration.

    Raises:
        InputError: The panel or the step is not positive.

    Example:
        >>> angle, rate, acceleration = mbd.mechanism.integrated(lambda t: 100.0 * t)(0.5)
        >>> round(angle, 9), rate
        (12.5, 50.0)
    """
    function("rate", rate, "rate(t)")
    start = number("start", start)
    number("panel", panel, positive=True, unit="s")
    number("step", step, positive=True, unit="s")
    # Integrals from t = 0 to the ends of the panels, for positive (1) and negative (-1) times
    integrals = {1: [0.0], -1: [0.0]}

    def integral(low: float, high: float) -> float:
        values = scipy.integrate.fixed_quad(
            lambda x: np.array([float(rate(t)) for t in x.tolist()]), low, high, n=10
        )
        return float(values[0])

    def motion(t: float) -> tuple[float, float, float]:
        k = int(t / panel)
        sign = 1 if k >= 0 else -1
        sums = integrals[sign]
        for n in range(len(sums), abs(k) + 1):
            sums.append(sums[-1] + integral(sign * (n - 1) * panel, sign * n * panel))
        value = start + sums[abs(k)] + integral(k * panel, t)
        rates = np.array([float(rate(t + i * step)) for i in range(-3, 4)])
        return value, float(rates[3]), float(_FIRST_DERIVATIVE @ rates) / step

    return motion
