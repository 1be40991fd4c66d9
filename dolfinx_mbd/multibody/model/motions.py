"""Motions of drivers from a position or a speed alone: what is missing is differentiated or
integrated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import function, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.model.system import SystemData

__all__ = ["Motion", "check_derivatives", "check_drivers", "differentiated", "integrated"]

Array = NDArray[np.float64]

#: Value (rad or m), rate and acceleration at a time.
Motion = Callable[[float], tuple[float, float, float]]

# central differences of sixth order at −3 ... 3 steps
_FIRST = np.array([-1.0, 9.0, -45.0, 0.0, 45.0, -9.0, 1.0]) / 60.0
_SECOND = np.array([2.0, -27.0, 270.0, -490.0, 270.0, -27.0, 2.0]) / 180.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(10)


_SAMPLES = 20  # times at which a motion is checked
_SPANS = (1e-5, 1e-4, 1e-6, 1e-3, 1e-7, 1e-2)  # of the differences, over the length of the run
_TOLERANCE = 1e-2  # relative difference of a derivative that is an error
_NOISE = np.array([1e-9, 1e-6])  # of the greatest position and rate: not judged


def check_derivatives(name: str, motion: Motion, start: float, end: float) -> None:
    """Raise an error if the rate or the acceleration of a motion contradicts its position.

    At some times over the run, the change of the position is compared with the integral of the
    rate (and the change of the rate with that of the acceleration) over intervals of several
    lengths on either side. The two differ on all of them only if the functions contradict each
    other. Rates and accelerations may jump, as those of tables and ramps do: intervals without the
    jump agree. The motion is not evaluated outside the run.

    Args:
        name: What the motion belongs to, for the message.
        motion: The motion.
        start: Start of the run, s.
        end: End of the run, s.

    Raises:
        InputError: A derivative is wrong by more than 1 %; the message gives the time, the value
            of the function and that of the difference.
    """
    length = end - start
    times = start + length * np.mod(np.arange(_SAMPLES) * 0.6180339887498949, 1.0)
    scales = np.abs([motion(float(t)) for t in times]).max(axis=0)
    for t in times:
        sides = [(t, t + span * length) for span in _SPANS]
        sides += [(t - span * length, t) for span in _SPANS]
        intervals = [_compare(motion, *side, scales) for side in sides if _inside(side, start, end)]
        for order in range(2):
            worst = _contradiction(
                [interval[:, order] for interval in intervals], scales[order + 1]
            )
            if worst is not None:
                _refuse(name, float(t), order, worst[1] / worst[0], worst[2] / worst[0])


def _inside(side: tuple[float, float], start: float, end: float) -> bool:
    return start <= side[0] and side[1] <= end


def _compare(motion: Motion, low: float, high: float, scales: Array) -> Array:
    """Return length, integrals of rate and acceleration, what they should be, and noise, (4, 2)."""
    at = np.array([motion(float(s)) for s in (low, 0.5 * (low + high), high)])
    width = high - low
    integrals = width / 6 * (at[0] + 4 * at[1] + at[2])[1:]
    noise = _NOISE * scales[:2] + np.array([0.0, 1e-14]) * scales[0] / width
    return np.array([[width, width], integrals, at[2, :2] - at[0, :2], noise])


def _contradiction(intervals: list[Array], scale: float) -> Array | None:
    """Return the first interval with a contradiction that no other interval disproves."""
    for interval in intervals:
        width, integral, change, noise = interval
        error, size = abs(integral - change), max(abs(integral), abs(change))
        if error <= _TOLERANCE * size + 10 * noise or error < 1e-3 * scale * width:
            continue
        share = 0.1 * error / width  # a tenth of this error in other intervals
        for other_width, other_integral, other_change, other_noise in intervals:
            other = abs(other_integral - other_change)
            size = max(abs(other_integral), abs(other_change))
            resolved = max(size, 10 * share * other_width) > 10 * other_noise
            if resolved and other <= max(_TOLERANCE * size, share * other_width):
                break
        else:
            return interval
    return None


def check_drivers(system: SystemData, start: float, end: float) -> None:
    """Check the derivatives of all drivers over a run; see `check_derivatives`."""
    for driver in system.drivers:
        check_derivatives(f"driver {driver.name!r}", driver.at, start, end)


def _refuse(name: str, t: float, order: int, claimed: float, actual: float) -> None:
    what, of = (("rate", "position"), ("acceleration", "rate"))[order]
    raise InputError(
        f"{name}: the {what} at t = {t:g} s is {claimed:.6g}, but the {of} changes by {actual:.6g} "
        "per second; give derivatives that fit, or let differentiated(...) of the position or "
        "integrated(...) of the rate make them",
        argument=name,
        value=claimed,
        expected=f"{actual:g}",
    )


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
    function("position", position, "position(t)")
    number("step", step, positive=True, unit="s")

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
    function("rate", rate, "rate(t)")
    start = number("start", start)
    number("panel", panel, positive=True, unit="s")
    number("step", step, positive=True, unit="s")
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
