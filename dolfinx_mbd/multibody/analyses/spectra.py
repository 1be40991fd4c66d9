"""Amplitude spectra of simulated signals."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, flag, increasing, refuse
from dolfinx_mbd.errors import InputError

Array = NDArray[np.float64]

_UNIFORM = 1e-6  # relative tolerance of equal steps: times are sums of steps with round-off


class Spectrum(NamedTuple):
    """A one-sided amplitude spectrum; see `spectrum`.

    Attributes:
        frequencies: Frequencies from 0 to half the sampling rate, 1/duration apart, (nf,), Hz.
        amplitudes: Shape (nf,) or (nf, ...) like the signal, in the unit of the signal.

    Example:
        >>> lines = mbd.multibody.Spectrum(np.array([0.0, 1.0]), np.array([0.1, 2.0]))
        >>> float(lines.frequencies[lines.amplitudes.argmax()])
        1.0
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
    """Return the one-sided amplitude spectrum of a signal.

    A sine of amplitude A has the height A if its frequency is a line of the spectrum. Half-way
    between two lines it is lower by the loss of the window: 15 % for `hann`, 0.1 % for `flattop`,
    whose peaks are wider. Frequencies above half the sampling rate appear at lower ones: save more
    steps of a simulation (`stride`) if it has such frequencies. Leave out a transient at its start.

    Args:
        time: Equally spaced times, shape (nt,), s.
        signal: Values at the times, shape (nt,) or (nt, ...), in any unit.
        window: A window of `scipy.signal.get_window`: "hann" has little leakage, "flattop" the best
            amplitudes, and "boxcar" is for signals of whole periods.
        trend: "keep" leaves the signal as it is; "mean" subtracts its mean and "line" its
            least-squares line, which would leak into the lowest frequencies.
        resample: Whether a signal at unequal steps is interpolated to as many equal steps, by cubic
            splines. By default it is an error.

    Returns:
        Frequencies and amplitudes.

    Raises:
        InputError: Times and signal do not fit together, are not finite or not equally spaced; or
            the window is unknown.

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
    t, x = increasing("time", time, least=4, unit="s"), array("signal", signal)
    if x.ndim == 0 or len(x) != len(t):
        refuse("signal", signal, f"{len(t)} values along its first axis, one for each time")
    t, x = _equally_spaced(t, x, flag("resample", resample))
    frequencies, power = scipy.signal.periodogram(
        x,
        fs=(len(t) - 1) / (t[-1] - t[0]),
        window=_weights(window, len(t)),
        detrend={"keep": False, "mean": "constant", "line": "linear"}[trend],
        scaling="spectrum",
        axis=0,
    )
    amplitudes = np.sqrt(2 * power)
    amplitudes[0] = np.sqrt(power[0])  # the mean, and half the sampling rate, have no line at −f
    if len(t) % 2 == 0:
        amplitudes[-1] = np.sqrt(power[-1])
    return Spectrum(frequencies, amplitudes)


def _weights(window: str | tuple[str, float], count: int) -> Array:
    try:
        weights = np.asarray(scipy.signal.get_window(window, count), dtype=float)
        valid = isinstance(window, (str, tuple)) and abs(weights.sum()) > 0
    except Exception:  # (SciPy raises what the window's own function raises)
        valid = False
    if not valid or not np.isfinite(weights).all():
        expected = "'hann', 'flattop', 'boxcar' or another window of scipy.signal.get_window"
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
