"""Evaluation of resonance peaks by the half-power method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import frozen
from dolfinx_mbd.checks import array, reject


@dataclass(frozen=True)
class HalfPower:
    """Result of `half_power`.

    For a lightly damped mode, `width / frequency` is 2ζ, or the loss factor η.

    Attributes:
        frequency: Frequency of the peak, Hz.
        width: Width of the peak at half of its power |H|², Hz.
        height: Absolute value of the response at the peak, in the unit of the response.

    Example:
        >>> mbd.body.HalfPower(frequency=100.0, width=2.0, height=1e-6).width
        2.0
    """

    frequency: float
    width: float
    height: float


def half_power(frequencies: ArrayLike, values: ArrayLike) -> HalfPower:
    """Return frequency, half-power width and height of the highest peak of a response.

    The function interpolates between the samples.

    Args:
        frequencies: At least five ascending frequencies around the peak, shape (nf,), Hz.
        values: Response at these frequencies, complex or absolute, shape (nf,).

    Raises:
        InputError: A shape does not fit; the frequencies do not contain both half-power points;
            fewer than three samples are above half of the power; or the peak is not smooth.

    References:
        Ewins, Modal Testing, section on the peak-amplitude method.

    Example:
        >>> f = np.linspace(90.0, 110.0, 401)
        >>> peak = mbd.body.half_power(f, 1 / (1 - (f / 100) ** 2 + 0.02j * f / 100))
        >>> f"{peak.frequency:.1f} Hz, loss factor {peak.width / peak.frequency:.3f}"
        '100.0 Hz, loss factor 0.020'
    """
    f = array("frequencies", frequencies, (None,))
    if len(f) < 5 or (np.diff(f) <= 0).any():
        reject("frequencies", frequencies, "five or more ascending numbers")
    power = np.abs(frozen("values", values, f.shape, complex)) ** 2
    k = int(np.argmax(power))
    below = np.flatnonzero(power[:k] < power[k] / 2)
    above = np.flatnonzero(power[k:] < power[k] / 2)
    if not len(below) or not len(above):
        expected = f"a wider range, with both half-power points of the peak near {f[k]:g} Hz"
        reject("frequencies", frequencies, expected)
    low, high = int(below[-1]), k + int(above[0])
    if high - low < 4:
        expected = f"at least three numbers above half of the power of the peak near {f[k]:g} Hz"
        reject("frequencies", frequencies, expected)
    # Near a resonance 1/|H|² is a parabola, unlike |H|²
    local = slice(max(0, k - 2), k + 3)
    a, b, c = np.polyfit(f[local] - f[k], power[k] / power[local], 2)
    if not a > 0:
        reject("values", values, f"a response with a smooth peak near {f[k]:g} Hz")
    offset = -b / (2 * a)
    half = 2 * (c - b**2 / (4 * a))  # value of the inverse at half of the power
    inverse = power[k] / power
    left, right = (
        f[i] + (half - inverse[i]) * (f[i + 1] - f[i]) / (inverse[i + 1] - inverse[i])
        for i in (low, high - 1)
    )
    height = float(np.sqrt(power[k] * 2 / half))
    return HalfPower(float(f[k] + offset), float(right - left), height)
