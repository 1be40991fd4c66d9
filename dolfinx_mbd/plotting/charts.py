"""Charts of energies over time and of frequencies over speed, with matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, instance, refuse
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.plotting.output import new_figure, save_figure

__all__ = ["campbell_diagram", "plot_energies"]

BACKWARD = 0.1
"""Magnitude of a negative whirl above which a mode is drawn as a backward mode."""


def plot_energies(solution: Solution, path: str | Path | None = None) -> Any:
    """Plot kinetic, elastic and gravitational energy and their sum over time.

    Args:
        solution: Result of a simulation.
        path: File to write; matplotlib determines the format from the suffix. None: no file.

    Returns:
        A matplotlib figure with two axes: all energies, and the elastic energy, which is usually
        much smaller.

    Raises:
        InputError: matplotlib does not know the suffix.

    Example:
        >>> figure = mbd.plotting.plot_energies(run, "energies.png")
        >>> len(figure.axes)
        2
    """
    instance("solution", solution, Solution)
    figure = new_figure(8, 5)
    energies = solution.energies()
    milliseconds = 1e3 * energies.time
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    names = ("kinetic", "gravity", "total") if energies.gravity.any() else ("kinetic", "total")
    for name in names:
        upper.plot(
            milliseconds,
            getattr(energies, name),
            "k--" if name == "total" else "-",
            lw=1.2,
            label=name,
        )
    lower.plot(milliseconds, energies.elastic, "C2", lw=1.2, label="elastic")
    for axes in (upper, lower):
        axes.set(ylabel="energy (J)")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
    lower.set(xlabel="time (ms)")
    return save_figure(figure, path)


def campbell_diagram(
    speeds: ArrayLike,
    frequencies: ArrayLike,
    path: str | Path | None = None,
    *,
    whirl: ArrayLike | None = None,
    growing: ArrayLike | None = None,
    orders: ArrayLike = (1, 2, 3, 4),
    title: str = "",
) -> Any:
    """Plot the frequencies of a rotating body over its speed, with lines of engine orders.

    Args:
        speeds: Speeds Ω, shape (m,), rad/s; the axis shows revolutions per minute.
        frequencies: Frequency of each mode, shape (m, n), Hz; NaN for a missing value.
        path: File to write; matplotlib determines the format from the suffix. None: no file.
        whirl: Whirl of each mode from -1 (backward, drawn dashed) to 1 (forward), shape (m, n);
            None: all lines are solid.
        growing: Whether each mode is unstable, shape (m, n); crosses mark unstable modes. None: no
            marks.
        orders: Multiples of the speed that are drawn as lines; () for none.
        title: Title of the figure.

    Returns:
        A matplotlib figure.

    Raises:
        InputError: A shape does not fit, or matplotlib does not know the suffix.

    Example:
        >>> speeds = np.linspace(0.0, 100.0, 3)
        >>> figure = mbd.plotting.campbell_diagram(speeds, [[10.0], [11.0], [12.0]], orders=[1])
        >>> figure.axes[0].get_ylabel()
        'frequency (Hz)'
    """
    instance("title", title, str)
    omega, orders = array("speeds", speeds, (None,)), array("orders", orders)
    f = array("frequencies", frequencies, (len(omega), None), finite=False)
    sense = np.zeros(f.shape) if whirl is None else array("whirl", whirl, f.shape, finite=False)
    unstable = np.zeros(f.shape, dtype=bool) if growing is None else _flags(growing, f.shape)
    figure = new_figure(8, 5)
    axes = figure.subplots()
    rpm = omega * 30 / np.pi
    top = 1.05 * np.nanmax(f, initial=1e-300)
    for order in np.ravel(orders):
        axes.plot(rpm, order * rpm / 60, color="0.75", lw=0.8, zorder=1)
        end = min(rpm[-1], 60 * top / max(order, 1e-12))  # end of the visible line
        place = {"xytext": (-2, -2), "textcoords": "offset points", "ha": "right", "va": "top"}
        axes.annotate(f"{order:g}×", (end, order * end / 60), color="0.5", fontsize=8, **place)
    for k in range(f.shape[1]):
        color = f"C{k % 10}"
        backward = sense[:, k] < -BACKWARD
        for part, style in ((backward, "--"), (~backward, "-")):
            # the sense of the first point determines the style of a line between two points
            shown = part | np.concatenate([[False], part[:-1]])
            axes.plot(rpm, np.where(shown, f[:, k], np.nan), style, color=color, lw=1.4)
        axes.plot(rpm[unstable[:, k]], f[unstable[:, k], k], "x", color=color, ms=6)
    axes.set(xlabel="speed (1/min)", ylabel="frequency (Hz)", title=title)
    axes.set_ylim(0, top)
    return save_figure(figure, path)


def _flags(growing: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    flags = growing if isinstance(growing, np.ndarray) else array("growing", growing, shape)
    if flags.shape != shape or flags.dtype.kind not in "biuf":
        refuse("growing", growing, f"an array of shape {shape} of True and False")
    return flags.astype(bool)
