"""Amplitude spectra of simulated signals, as accelerations are read in the literature.

    f, a = spectrum(run.time, run.sensor("rod", "middle", "acceleration")[:, 1], window="flattop")

A sine of amplitude A appears with the height A: exactly on a line of the spectrum; between two
lines within what the window lets through (1.4 dB, 15 %, with ``hann``; 0.01 dB, 0.1 %, with
``flattop``, whose peaks are wider).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, flag, increasing, refuse
from dolfinx_mbd.errors import InputError

__all__ = ["Spectrum", "spectrum"]

Array = NDArray[np.float64]

_UNIFORM = 1e-6  # of steps, relative; times are sums of steps and carry their round-off


class Spectrum(NamedTuple):
    """A one-sided amplitude spectrum.

    Attributes:
        frequencies: Shape (nf,), Hz, from 0 to half the sampling rate, 1/duration apart.
        amplitudes: Of the signal's unit, shape (nf,) or (nf, ...) as the signal's columns.
    """

    frequencies: Array
    amplitudes: Array


def spectrum(
    time: ArrayLike,
    signal: ArrayLike,
    *,
    window: str | tuple[str, float] = "hann",
    trend: Literal["keep", "mean", "line"] = "keep",
    resample: bool = False,
) -> Spectrum:
    """The one-sided amplitude spectrum of a signal.

    What is above half the sampling rate folds back into the spectrum; save more often
    (``save_every``) if there is such a part.  A start-up transient is best left out before.

    Args:
        time: Shape (nt,), s, equally spaced.
        signal: Shape (nt,) or (nt, ...).
        window: A window of :func:`scipy.signal.get_window`: ``hann`` against leakage, ``flattop``
            to read amplitudes, ``boxcar`` for signals of whole periods.
        trend: ``keep`` all; remove the ``mean``, or the straight ``line`` of least squares, which
            else leak into the lowest lines.
        resample: Interpolate by cubic splines to equal steps, as many as there are, where the times
            are not equally spaced.

    Raises:
        ValueError: If times or signal do not fit, are not finite, or the steps are not equal and
            `resample` is not asked for; or the window is unknown.

    References:
        Heinzel, Rüdiger, Schilling (2002), Spectrum and spectral density estimation by the discrete
        Fourier transform, section 9 (amplitude spectrum) and appendix (windows).
    """
    choice("trend", trend, ("keep", "mean", "line"))
    t, x = increasing("time", time, least=4, unit="s"), array("signal", signal)
    if x.ndim == 0 or len(x) != len(t):
        refuse("signal", signal, f"{len(t)} values along its first axis, one for each time")
    t, x = _equally_spaced(t, x, flag("resample", resample))
    if trend != "keep":
        x = scipy.signal.detrend(x, axis=0, type="constant" if trend == "mean" else "linear")
    count = len(t)
    weights = _weights(window, count)
    lines = scipy.fft.rfft(x * weights.reshape(-1, *(1,) * (x.ndim - 1)), axis=0)
    amplitudes = 2 * np.abs(lines) / weights.sum()
    amplitudes[0] /= 2  # the mean, and at half the sampling rate, have no partner at −f
    if count % 2 == 0:
        amplitudes[-1] /= 2
    return Spectrum(scipy.fft.rfftfreq(count, (t[-1] - t[0]) / (count - 1)), amplitudes)


def _weights(window: str | tuple[str, float], count: int) -> Array:
    expected = "'hann', 'flattop', 'boxcar' or another window of scipy.signal.get_window"
    if not isinstance(window, (str, tuple)):
        refuse("window", window, expected)
    try:
        weights = np.asarray(scipy.signal.get_window(window, count), dtype=float)
    except Exception:  # (SciPy raises what the window's own function raises)
        refuse("window", window, expected)
    if not abs(weights.sum()) > 0 or not np.isfinite(weights).all():
        refuse("window", window, expected)
    return weights


def _equally_spaced(t: Array, x: Array, resample: bool) -> tuple[Array, Array]:
    steps = np.diff(t)
    mean = (t[-1] - t[0]) / len(steps)
    if np.abs(steps - mean).max() <= _UNIFORM * mean:
        return t, x
    if not resample:
        last = np.abs(steps[:-1] - steps[0]).max() <= _UNIFORM * steps[0]
        raise InputError(
            f"time: steps from {steps.min():g} to {steps.max():g} s are not equal; "
            + ("the last is another: leave it out, or " if last else "")
            + "give resample=True to interpolate"
        )
    even = np.linspace(t[0], t[-1], len(t))
    return even, scipy.interpolate.CubicSpline(t, x, axis=0)(even)
