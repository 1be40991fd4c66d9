"""Amplitude spectra of simulated signals."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, flag, increasing, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr

Array = NDArray[np.float64]

_UNIFORM = 1e-6  # largest relative difference of steps that are equal except for round-off
_ROUND_OFF = 1e-12  # largest difference of equal values, relative to the largest value
_CLOSED = 1e-4  # largest difference of start and end of a closed signal, relative to its range


class Spectrum(NamedTuple):
    """A one-sided amplitude spectrum; see `spectrum`.

    Attributes:
        frequencies: Frequencies from 0 to half the sampling rate in steps of 1/duration, (nf,), Hz.
        amplitudes: Amplitudes in the unit of the signal, shape (nf,) or (nf, ...).

    Example:
        >>> lines = mbd.analyses.Spectrum(np.array([0.0, 1.0]), np.array([0.1, 2.0]))
        >>> float(lines.frequencies[lines.amplitudes.argmax()])
        1.0
    """

    frequencies: Array
    amplitudes: Array

    def __repr__(self) -> str:
        return short_repr(self)


def spectrum(
    time: ArrayLike,
    signal: ArrayLike,
    *,
    window: str | tuple[str, float] = "hann",
    trend: Literal["keep", "mean", "line"] = "keep",
    resample: bool = False,
) -> Spectrum:
    """Return the one-sided amplitude spectrum of a signal.

    A sine of amplitude A has the height A if its frequency is a line of the spectrum. Half-way
    between two lines, its height is smaller by 15 % with the window `hann` and by 0.1 % with
    `flattop`; `flattop` has wider peaks. Frequencies above half the sampling rate appear at lower
    frequencies; if a signal contains them, save more steps of the simulation (`stride`). Remove
    initial transients.

    Args:
        time: Equally spaced times, shape (nt,), s.
        signal: Values at the times, shape (nt,) or (nt, ...), in any unit.
        window: A window of `scipy.signal.get_window`. "hann" has little leakage, "flattop" gives
            the best amplitudes, and "boxcar" suits signals with whole periods. "closed" is for the
            signal of a periodic motion, whose last value is the first one of the next period: the
            last value is omitted, and the lines are the exact Fourier coefficients.
        trend: "keep" leaves the signal unchanged, "mean" subtracts its mean, and "line" subtracts
            its least-squares line. A mean or a trend leaks into the lowest frequencies.
        resample: Whether a signal with unequal steps is interpolated by cubic splines to the same
            number of equal steps. By default unequal steps raise an error.

    Returns:
        Frequencies and amplitudes.

    Raises:
        InputError: Times and signal have different lengths, a value is not finite, the times are
            not equally spaced, or the window is unknown. Or the window is "closed", and the last
            value of the signal is not equal to the first one.

    Example:
        >>> t = np.arange(1000) / 1000.0
        >>> f, a = mbd.spectrum(t, 2.5 * np.sin(2 * np.pi * 50.0 * t))
        >>> float(f[a.argmax()]), round(float(a.max()), 6)
        (50.0, 2.5)

    References:
        Heinzel, Rüdiger, Schilling (2002), Spectrum and spectral density estimation by the discrete
        Fourier transform, section 9 (amplitude spectrum) and appendix (windows).
    """
    choice("trend", trend, ("keep", "mean", "line"))
    closed = isinstance(window, str) and window == "closed"
    t, x = increasing("time", time, least=4 + closed, unit="s"), array("signal", signal)
    if x.ndim == 0 or len(x) != len(t):
        reject("signal", signal, f"{len(t)} values along its first axis, one for each time")
    t, x = equally_spaced(t, x, flag("resample", resample))
    if closed:
        t, x, window = t[:-1], _one_period(x), "boxcar"
    frequencies, power = scipy.signal.periodogram(
        x,
        fs=(len(t) - 1) / (t[-1] - t[0]),
        window=window_weights(window, len(t)),
        detrend={"keep": False, "mean": "constant", "line": "linear"}[trend],
        scaling="spectrum",
        axis=0,
    )
    amplitudes = np.sqrt(2 * power)
    # The lines at 0 and at half the sampling rate have no counterpart at −f
    amplitudes[0] = np.sqrt(power[0])
    if len(t) % 2 == 0:
        amplitudes[-1] = np.sqrt(power[-1])
    return Spectrum(frequencies, amplitudes)


def _one_period(x: Array) -> Array:
    """Return the values of a closed signal without the last one, which must equal the first."""
    error, size = np.abs(x[-1] - x[0]).max(initial=0.0), np.ptp(x, axis=0).max(initial=0.0)
    if error > _CLOSED * size + _ROUND_OFF * np.abs(x).max(initial=0.0):
        raise InputError(
            f"signal: the last value differs from the first one by {error:g}, and the range of "
            f"the signal is {size:g}; window='closed' needs a whole period with both ends, such as "
            "the result of `periodic`, of a signal that repeats (no angle that counts full turns)",
            argument="signal",
        )
    return x[:-1]


def window_weights(window: str | tuple[str, float], count: int) -> Array:
    """Return the weights of a window of `scipy.signal.get_window`; raise an error if unknown."""
    try:
        weights = np.asarray(scipy.signal.get_window(window, count), dtype=float)
        valid = isinstance(window, (str, tuple)) and abs(weights.sum()) > 0
    except Exception:  # window functions of SciPy may raise any exception
        valid = False
    if not valid or not np.isfinite(weights).all():
        expected = "'hann', 'flattop', 'boxcar' or another window of scipy.signal.get_window"
        reject("window", window, expected)
    return weights


def equally_spaced(t: Array, x: Array, resample: bool) -> tuple[Array, Array]:
    """Return times and values at equal steps; unequal steps are interpolated on request."""
    steps = np.diff(t)
    mean = (t[-1] - t[0]) / len(steps)
    if np.abs(steps - mean).max() <= _UNIFORM * mean:
        return t, x
    if not resample:
        only_last = np.abs(steps[:-1] - steps[0]).max() <= _UNIFORM * steps[0]
        raise InputError(
            f"time: steps from {steps.min():g} to {steps.max():g} s are not equal; "
            + ("only the last step differs: omit the last time, or " if only_last else "")
            + "give resample=True to interpolate"
        )
    even = np.linspace(t[0], t[-1], len(t))
    return even, scipy.interpolate.CubicSpline(t, x, axis=0)(even)
