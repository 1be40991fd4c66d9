"""What is read from a resonance peak: its frequency, its half-power width, its height."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.body.parts import frozen
from dolfinx_mbd.checks import array, refuse
from dolfinx_mbd.errors import InputError

__all__ = ["HalfPower", "half_power"]


@dataclass(frozen=True)
class HalfPower:
    """A resonance peak: its frequency (Hz), its width where |H|² is half of it (Hz), its height.

    For a lightly damped mode ``width/frequency`` is 2ζ, or the loss factor η.
    """

    frequency: float
    width: float
    height: float


def half_power(frequencies: ArrayLike, values: ArrayLike) -> HalfPower:
    """Frequency and half-power width of the highest peak, interpolated between samples.

    Args:
        frequencies: Shape (nf,), Hz, ascending, with the peak and both its flanks.
        values: Response, complex or absolute, shape (nf,).

    Raises:
        ValueError: If the peak or a flank is outside the frequencies given, or fewer than three
            samples are above half its power, or it is no smooth peak.

    References:
        Ewins, Modal Testing, section on the peak-amplitude method.
    """
    f = array("frequencies", frequencies, (None,))
    if len(f) < 5 or (np.diff(f) <= 0).any():
        refuse("frequencies", frequencies, "five or more ascending numbers")
    power = np.abs(frozen("values", values, f.shape, complex)) ** 2
    k = int(np.argmax(power))
    below, above = (
        np.flatnonzero(power[:k] < power[k] / 2),
        np.flatnonzero(power[k:] < power[k] / 2),
    )
    if not len(below) or not len(above):
        raise InputError(
            f"the peak near {f[k]:g} Hz does not fall to half its power within {f[0]:g} ... "
            f"{f[-1]:g} Hz; widen the range"
        )
    low, high = int(below[-1]), k + int(above[0])
    if high - low < 4:
        raise InputError(
            f"the peak near {f[k]:g} Hz has {high - low - 1} samples above half its power; give "
            "more frequencies there"
        )
    # 1/|H|² is a smooth parabola about a resonance, |H|² is not
    local = slice(max(0, k - 2), k + 3)
    a, b, c = np.polyfit(f[local] - f[k], power[k] / power[local], 2)
    if not a > 0:
        raise InputError(f"the highest value, near {f[k]:g} Hz, is no smooth peak")
    offset = -b / (2 * a)
    half = 2 * (c - b**2 / (4 * a))
    inverse = power[k] / power
    edges = [
        f[i] + (half - inverse[i]) * (f[i + 1] - f[i]) / (inverse[i + 1] - inverse[i])
        for i in (low, high - 1)
    ]
    height = float(np.sqrt(power[k] * 2 / half))
    return HalfPower(float(f[k] + offset), float(edges[1] - edges[0]), height)
