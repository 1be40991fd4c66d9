"""Order analysis of a run-up: spectra of short blocks over the speed of a shaft.

Forces of machines repeat with the revolutions of a shaft. The order of a component is its number of
periods per revolution. In blocks of equal revolutions, sampled at equal angles, the forces of the
shaft have the same orders at every speed. In blocks of equal times, resonances have the same
frequencies at every speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.spectra import equally_spaced, window_weights
from dolfinx_mbd.checks import array, choice, increasing, memory, number, reject
from dolfinx_mbd.html import short_repr

__all__ = ["Waterfall", "waterfall"]

Array = NDArray[np.float64]

REVOLUTIONS = 10.0
"""Default length of a block for orders, if the run has twice as many."""

BLOCKS = 20
"""Default number of blocks for frequencies, if they did not overlap."""

FEWEST = 8
"""Smallest number of values in a block."""

LOBE = 2
"""Half width of the main lobe of the window `hann`, in lines."""


@dataclass(frozen=True, eq=False)
class Waterfall:
    """Spectra of a signal over the speed of a shaft; see `waterfall`.

    Attributes:
        axis: ``frequency`` or ``order``.
        time: Centres of the blocks, shape (nb,), s.
        speed: Mean speed of the shaft in the middle half of each block, shape (nb,), rad/s.
        lines: Frequencies (Hz) or orders, shape (nl,).
        mean_square: Mean square of the signal in each line, summed over the columns of the signal,
            shape (nb, nl).
        bandwidth: Effective width of a line due to the window, in units of the distance between two
            lines.
        lobe: Half width of the main lobe of the window, in lines; 0 for closed cycles.

    Example:
        >>> t = np.linspace(0, 2, 8001)
        >>> angle = 2 * np.pi * (10 * t + 10 * t**2)
        >>> spectra = mbd.analyses.waterfall(t, 3.0 * np.sin(2 * angle), angle, axis="order")
        >>> print(spectra.cut(2).round(2)[::6])
        [3. 3. 3. 3.]
    """

    axis: str
    time: Array
    speed: Array
    lines: Array
    mean_square: Array
    bandwidth: float
    lobe: int = LOBE

    __repr__ = short_repr

    @property
    def amplitude(self) -> Array:
        """Amplitude of a sine with the mean square of each line, shape (nb, nl)."""
        return np.sqrt(2 * self.mean_square)

    def cut(self, order: float, width: float = 0.5) -> Array:
        """Return the amplitude of an order over the speed, shape (nb,).

        The amplitude follows from the sum of the mean squares in a band around the order. The band
        has at least the width of the main lobe of the window. The result is NaN in two
        cases: the block is shorter than four revolutions, so that this lobe is wider than the
        distance between two whole orders; or the band extends above the highest line.

        Args:
            order: The order, positive.
            width: Width of the band, in orders.

        Raises:
            InputError: A value is not positive, or the band is outside the lines at every speed.
        """
        order = number("order", order, positive=True)
        width = number("width", width, positive=True)
        scale = np.ones(len(self.time)) if self.axis == "order" else self.speed / (2 * np.pi)
        spacing = self.lines[1] - self.lines[0]
        centre = order * scale
        if centre.min() > self.lines[-1]:
            reject("order", order, f"an order below the largest {self.axis}, {self.lines[-1]:g}")
        half = np.maximum(0.5 * width * scale, self.lobe * spacing)
        inside = np.abs(self.lines - centre[:, None]) <= half[:, None] * (1 + 1e-9)
        square = np.sum(np.where(inside, self.mean_square, 0.0), axis=1) / self.bandwidth
        valid = (centre + half <= self.lines[-1] + spacing) & (2 * self.lobe * spacing <= scale)
        if not valid.any():
            reject("width", width, "a band within the lines, in blocks of four revolutions or more")
        return np.where(valid, np.sqrt(2 * square), np.nan)


def waterfall(
    time: ArrayLike,
    signal: ArrayLike,
    angle: ArrayLike,
    *,
    axis: Literal["frequency", "order"] = "frequency",
    length: float | None = None,
    overlap: float = 0.75,
    up_to: float | None = None,
    window: str | tuple[str, float] = "hann",
) -> Waterfall:
    """Return spectra of a signal in overlapping blocks of a run-up, over the speed of a shaft.

    Args:
        time: Equally spaced times, shape (nt,), s.
        signal: Values at the times, shape (nt,) or (nt, m); the mean squares of the m columns are
            added.
        angle: Angle of the shaft at the times, shape (nt,), rad, including full turns, such as
            ``run.joint("crank").rotation``. It must increase; use its negative for a shaft that
            turns backward.
        axis: ``frequency``: blocks of equal times. ``order``: blocks of equal revolutions, for
            which the signal is interpolated at equal angles by cubic splines.
        length: Length of a block, in s or in revolutions. The distance between two lines is its
            inverse. By default a twentieth of the time, or ten revolutions, but at most half of all
            revolutions.
        overlap: Share of a block that overlaps with the next one, from 0 to 0.99.
        up_to: Largest frequency (Hz) or order of the result. By default the largest one that the
            steps resolve at every speed.
        window: A window of `scipy.signal.get_window`.

    Returns:
        The spectra.

    Raises:
        InputError: The shapes do not fit, a value is not finite, the times are not equally spaced,
            the angle does not increase, or a block is too long or too short.

    Example:
        >>> t = np.linspace(0, 2, 8001)
        >>> angle = 2 * np.pi * (10 * t + 10 * t**2)
        >>> hum = mbd.analyses.waterfall(t, np.sin(2 * np.pi * 200 * t), angle, length=0.1)
        >>> print(hum.lines[hum.mean_square.argmax(axis=1)][:3].round(6))
        [200. 200. 200.]
    """
    choice("axis", axis, ("frequency", "order"))
    fraction = number("overlap", overlap, low=0.0, high=0.99)
    t = increasing("time", time, least=8, unit="s")
    x = array("signal", signal)
    if x.ndim not in (1, 2) or len(x) != len(t):
        reject("signal", signal, f"an array of shape ({len(t)},) or ({len(t)}, m)")
    theta = array("angle", angle, (len(t),))
    if (np.diff(theta) <= 0).any():
        reject("angle", angle, "an angle that increases at each time (full turns included)")
    t, x = equally_spaced(t, x.reshape(len(t), -1), resample=False)
    revolutions = (theta - theta[0]) / (2 * np.pi)
    if axis == "frequency":
        position, rate = t - t[0], (len(t) - 1) / (t[-1] - t[0])
        highest = 0.5 * rate
        default = position[-1] / BLOCKS
    else:
        steps = np.diff(revolutions)
        rate, highest = float(np.ceil(1 / steps.min())), 0.5 / float(steps.max())
        memory("angle", angle, 8.0 * rate * revolutions[-1] * x.shape[1])
        position = np.arange(int(revolutions[-1] * rate * (1 + 1e-12)) + 1) / rate
        x = scipy.interpolate.CubicSpline(revolutions, x, axis=0)(position)
        default = min(REVOLUTIONS, 0.5 * revolutions[-1])
    span = number("length", default if length is None else length, positive=True)
    count = round(span * rate)
    if not FEWEST <= count <= len(position):
        unit = "s" if axis == "frequency" else "revolutions"
        expected = f"from {FEWEST / rate:g} to {position[-1]:g} {unit}, the length of the signal"
        reject("length", span, expected)
    weights = window_weights(window, count)
    lines, centres, squares = scipy.signal.spectrogram(
        x,
        fs=rate,
        window=weights,
        nperseg=count,
        noverlap=min(int(fraction * count), count - 1),
        detrend=False,
        scaling="spectrum",
        axis=0,
    )
    limit = highest if up_to is None else number("up_to", up_to, positive=True)
    visible = lines <= min(limit, highest) * (1 + 1e-9)
    quarter = 0.25 * count / rate
    abscissa, ordinate = (t - t[0], theta) if axis == "frequency" else (revolutions, t - t[0])
    # Angles (or times) at the centre of each block, and a quarter of its length before and after
    first, middle, last = (np.interp(centres + k * quarter, abscissa, ordinate) for k in (-1, 0, 1))
    if axis == "frequency":
        middle, speed = centres, (last - first) / (2 * quarter)
    else:
        speed = 4 * np.pi * quarter / (last - first)
    return Waterfall(
        axis,
        t[0] + middle,
        speed,
        lines[visible],
        squares.sum(axis=1)[visible].T,
        float(count * np.sum(weights**2) / np.sum(weights) ** 2),
    )
