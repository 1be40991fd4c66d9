"""Orders of closed cycles at several speeds, without a window and without leakage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.analyses.closed_run import ClosedRun
from dolfinx_mbd.analyses.run_up import Waterfall
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, function, items, number, reject

__all__ = ["orders_of_cycles"]

_CLOSED = 1e-4  # largest change of a signal over a period, relative to its range
_WHOLE = 1e-6  # largest difference of the revolutions in a period from a whole number
_FEWEST = 4  # smallest number of steps in a period


def orders_of_cycles(
    cycles: Sequence[ClosedRun],
    signal: Callable[[ClosedRun], ArrayLike],
    angle: Callable[[ClosedRun], ArrayLike],
    *,
    up_to: float | None = None,
) -> Waterfall:
    """Return the orders of closed cycles at several speeds of a shaft.

    The lines are the exact orders 0, 1/n, 2/n, ... of a cycle of n revolutions. A periodic cubic
    spline interpolates the signal at equal angles.

    Args:
        cycles: Periodic motions, for example by `periodic`, with equal numbers of revolutions.
        signal: Function that returns the signal of a cycle at its times, shape (nt,) or (nt, m).
            The mean squares of the m columns are added.
        angle: Function that returns the angle of the shaft at the times, shape (nt,), rad,
            including full turns, such as ``run.joint("main").rotation``. It must increase.
        up_to: Largest order of the result. By default the largest one that the steps resolve at
            every speed.

    Returns:
        Spectra with the axis ``order``; the row of a cycle contains its mean speed. `time` is zero.

    Raises:
        InputError: The shapes do not fit, a signal is not closed, or the angle does not increase by
            the same whole number of revolutions in each cycle.

    Example:
        >>> def shaken(speed):
        ...     law = lambda t, x, v: 5 * np.cos(speed * t) - 40 * x - 4 * v
        ...     push = mbd.JointLoad("push", "pin", "rotation", law)
        ...     system = mbd.System([ground, bob], [pin], loads=[push])
        ...     return mbd.analyses.periodic(system, 2 * np.pi / speed, dt=5e-3)
        >>> spectra = mbd.analyses.orders_of_cycles(
        ...     [shaken(8.0), shaken(9.0)],
        ...     lambda run: run.joint("pin").rotation,
        ...     lambda run: 2 * np.pi * run.time / run.period,
        ... )
        >>> spectra.amplitude[:, 1].round(3)  # 5/|40 - 2.01 w² + 4iw|
        array([0.053, 0.039])
    """
    runs = items("cycles", cycles, ClosedRun, "for example of periodic(...)")
    if not runs:
        reject("cycles", cycles, "one or more periodic motions")
    function("signal", signal, "signal(run)")
    function("angle", angle, "angle(run)")
    highest = None if up_to is None else number("up_to", up_to, positive=True)
    counts, rows, speeds = [], [], []
    for run in runs:
        theta = array("angle", angle(run), (len(run.time),))
        revolutions = (theta - theta[0]) / (2 * np.pi)
        count = round(float(revolutions[-1]))
        if (np.diff(revolutions) <= 0).any() or abs(revolutions[-1] - count) > _WHOLE or count < 1:
            expected = "an angle that increases by whole revolutions in a cycle"
            reject("angle", float(theta[-1] - theta[0]), expected)
        counts.append(count)
        rows.append(_mean_squares(revolutions, count, array("signal", signal(run))))
        speeds.append(2 * np.pi * count / run.period)
    if len(set(counts)) > 1:
        reject("cycles", counts, "cycles with equal numbers of revolutions")
    number_of_lines = min(map(len, rows))
    lines = np.arange(number_of_lines) / counts[0]
    visible = lines <= (lines[-1] if highest is None else highest) * (1 + 1e-9)
    squares = np.array([row[:number_of_lines] for row in rows])[:, visible]
    return Waterfall(
        "order", np.zeros(len(runs)), np.array(speeds), lines[visible], squares, 1.0, lobe=0
    )


def _mean_squares(revolutions: Array, count: int, signal: Array) -> Array:
    """Return the mean squares of the harmonics of a signal over the angle of `count` turns."""
    steps = len(revolutions) - 1
    if signal.ndim not in (1, 2) or len(signal) != steps + 1 or steps < _FEWEST:
        reject("signal", signal.shape, f"an array of shape ({steps + 1},) or ({steps + 1}, m)")
    x = signal.reshape(steps + 1, -1).copy()
    if (np.abs(x[-1] - x[0]) > _CLOSED * np.ptp(x, axis=0).clip(1e-300)).any():
        expected = "a signal that is equal at both ends of a cycle, such as a force"
        reject("signal", float(np.abs(x[-1] - x[0]).max()), expected)
    x[-1] = x[0]
    spline = scipy.interpolate.CubicSpline(revolutions, x, axis=0, bc_type="periodic")
    harmonics = np.fft.rfft(spline(count * np.arange(steps) / steps), axis=0) / steps
    squares: Array = 2 * (np.abs(harmonics) ** 2).sum(axis=1)
    squares[0] /= 2  # the mean
    return squares[: (steps + 1) // 2]  # without the highest line of an even number of steps
