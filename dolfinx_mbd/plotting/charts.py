"""Charts with matplotlib: energies, Campbell diagrams, frequency responses, spectra and run-ups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.analyses import Spectrum, Waterfall
from dolfinx_mbd.body.response import FrequencyResponse
from dolfinx_mbd.checks import array, choice, instance, names, number, reject
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.optional import optional_module
from dolfinx_mbd.plotting.pictures.output import checked_path
from dolfinx_mbd.results.solution import Solution

BACKWARD = 0.1
"""Whirl below the negative of this number is drawn as backward."""

# Factor of the unit of each quantity, in the order of the derivatives with respect to time
_QUANTITIES = {"receptance": "", "mobility": "/s", "accelerance": "/s²"}
# Units of a translation and a rotation per input: f force, m moment, u displacement, r rotation
_UNITS = {
    "f": ("m/N", "rad/N"),
    "m": ("m/(N m)", "rad/(N m)"),
    "u": ("1", "rad/m"),
    "r": ("m/rad", "1"),
}


def plot_energies(solution: Solution, path: str | Path | None = None) -> Any:
    """Plot kinetic, elastic and gravitational energy and their sum over time.

    Args:
        solution: Result of a simulation.
        path: File to write, in the format of its suffix; by default no file is written.

    Returns:
        A matplotlib figure with two axes: one with all energies, and one with the elastic energy
        alone (usually much smaller).

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
    for name in ["kinetic", *["gravity"] * bool(energies.gravity.any()), "total"]:
        style = "k--" if name == "total" else "-"
        upper.plot(milliseconds, getattr(energies, name), style, lw=1.2, label=name)
    lower.plot(milliseconds, energies.elastic, "C2", lw=1.2, label="elastic")
    for axes in (upper, lower):
        axes.set(ylabel="energy (J)")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
    lower.set(xlabel="time (ms)")
    return saved(figure, path)


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
        path: File to write, in the format of its suffix; by default no file is written.
        whirl: Whirl of each mode from -1 (backward, drawn dashed) to 1 (forward), shape (m, n); by
            default all lines are solid.
        growing: Whether each mode is unstable, shape (m, n); unstable modes are marked by crosses.
            By default no mode is marked.
        orders: Multiples of the speed that are drawn as lines; () for none.
        title: Title of the figure.

    Returns:
        A matplotlib figure.

    Raises:
        InputError: An array has the wrong shape, or matplotlib does not know the suffix.

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
    if isinstance(growing, np.ndarray) and growing.dtype == bool:
        growing = growing.astype(float)
    unstable = array("growing", np.zeros(f.shape) if growing is None else growing, f.shape) != 0
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
            # The whirl at the first of two points determines the style of the line between them
            visible = part | np.concatenate([[False], part[:-1]])
            axes.plot(rpm, np.where(visible, f[:, k], np.nan), style, color=color, lw=1.4)
        axes.plot(rpm[unstable[:, k]], f[unstable[:, k], k], "x", color=color, ms=6)
    axes.set(xlabel="speed (1/min)", ylabel="frequency (Hz)", title=title, ylim=(0, top))
    return saved(figure, path)


def plot_response(
    response: FrequencyResponse | Mapping[str, FrequencyResponse],
    entries: Sequence[tuple[str, str]],
    path: str | Path | None = None,
    *,
    quantity: Literal["receptance", "mobility", "accelerance"] = "receptance",
    frequency_axis: Literal["log", "linear"] = "log",
) -> Any:
    """Plot amplitude (on a logarithmic scale) and phase of a frequency response (Bode plot).

    Args:
        response: A response, or a dictionary of responses by name for the legend.
        entries: Pairs of output and input, for example `[("small_end uz", "small_end fz")]`.
        path: File to write, in the format of its suffix; by default no file is written.
        quantity: Displacement (`receptance`), velocity (`mobility`) or acceleration (`accelerance`)
            per input.
        frequency_axis: `log` or `linear`.

    Returns:
        A matplotlib figure with two axes.

    Raises:
        InputError: An output, input or option is unknown, or matplotlib does not know the suffix.

    Example:
        >>> response = mbd.body.frequency_response(body, [10.0, 20.0], held=["left"])
        >>> figure = mbd.plotting.plot_response(response, [("right uy", "right fy")])
        >>> figure.axes[0].get_ylabel()
        'receptance (m/N)'
    """
    responses = _named_curves("response", response, FrequencyResponse)
    choice("quantity", quantity, _QUANTITIES)
    choice("frequency_axis", frequency_axis, ("log", "linear"))
    pairs = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
    if not pairs or not all(len(names("every entry of entries", pair)) == 2 for pair in pairs):
        reject("entries", entries, "a list of at least one pair (output, input)")
    order = list(_QUANTITIES).index(quantity)
    figure = new_figure(8, 6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    units = set()
    for name, curves in responses.items():
        visible = curves.frequencies > 0 if frequency_axis == "log" else slice(None)
        for output, input in entries:
            H = curves.between(output, input, order)[visible]
            label = f"{name}: {output} per {input}" if name else f"{output} per {input}"
            upper.plot(curves.frequencies[visible], np.abs(H), lw=1.2, label=label)
            lower.plot(curves.frequencies[visible], np.degrees(np.angle(H)), lw=1.2)
            rotates = output.rpartition(" ")[2].startswith("r")  # such as "tip rx"
            per_unit = _UNITS[input.rpartition(" ")[2][0]]
            units.add(per_unit[int(rotates)] + _QUANTITIES[quantity])
    upper.set(yscale="log", ylabel=f"{quantity} ({', '.join(sorted(units))})")
    lower.set(xscale=frequency_axis, xlabel="frequency (Hz)", ylabel="phase (°)")
    lower.set(ylim=(-190, 190), yticks=range(-180, 181, 90))
    upper.legend(loc="best", frameon=False)
    return saved(figure, path)


def plot_spectrum(
    spectrum: Spectrum | Mapping[str, Spectrum],
    path: str | Path | None = None,
    *,
    unit: str = "",
    up_to: float | None = None,
    amplitude_axis: Literal["log", "linear"] = "linear",
) -> Any:
    """Plot amplitude spectra over the frequency.

    Args:
        spectrum: A spectrum, or a dictionary of spectra by name for the legend.
        path: File to write, in the format of its suffix; by default no file is written.
        unit: Unit of the signal, for the label of the axis.
        up_to: Largest frequency that is shown, Hz; by default all frequencies are shown.
        amplitude_axis: `linear` or `log`.

    Returns:
        A matplotlib figure with one axes.

    Raises:
        InputError: An option is unknown, or matplotlib does not know the suffix.

    Example:
        >>> spectrum = mbd.spectrum(run.time, np.sin(2000 * run.time))
        >>> mbd.plotting.plot_spectrum(spectrum, unit="m").axes[0].get_ylabel()
        'amplitude (m)'
    """
    spectra = _named_curves("spectrum", spectrum, Spectrum)
    instance("unit", unit, str)
    choice("amplitude_axis", amplitude_axis, ("log", "linear"))
    limit = np.inf if up_to is None else number("up_to", up_to, positive=True)
    figure = new_figure(8, 4)
    axes = figure.subplots()
    for name, (f, amplitudes) in spectra.items():
        axes.plot(f[f <= limit], amplitudes[f <= limit], lw=1.2, label=name)
    axes.set(xlabel="frequency (Hz)", ylabel="amplitude" + (f" ({unit})" if unit else ""))
    axes.set(yscale=amplitude_axis)
    if spectra is spectrum:  # a dictionary, with names
        axes.legend(loc="best", frameon=False)
    return saved(figure, path)


def plot_waterfall(
    spectra: Waterfall,
    path: str | Path | None = None,
    *,
    orders: ArrayLike = (),
    unit: str = "",
    reference: float | None = None,
    dynamic_range: float = 60.0,
    title: str = "",
) -> Any:
    """Plot the spectra of a run-up over speed and frequency or order, and cuts along orders.

    Args:
        spectra: Result of `waterfall`.
        path: File to write, in the format of its suffix; by default no file is written.
        orders: Orders that are drawn as lines, and whose amplitudes are drawn over the speed.
        unit: Unit of the signal, for the labels of the axes.
        reference: Mean square at 0 dB, for example 1e-12 for a power in W. By default the largest
            mean square.
        dynamic_range: Range of the colours below the largest level, dB.
        title: Title of the figure.

    Returns:
        A matplotlib figure: the map, its colour bar and, with `orders`, the cuts. The cuts are
        levels if a reference is given, and otherwise amplitudes.

    Raises:
        InputError: An option is invalid, or matplotlib does not know the suffix.

    Example:
        >>> t = np.linspace(0, 2, 4001)
        >>> angle = 2 * np.pi * (10 * t + 10 * t**2)
        >>> spectra = mbd.analyses.waterfall(t, np.sin(2 * angle), angle)
        >>> figure = mbd.plotting.plot_waterfall(spectra, orders=[2], unit="m/s²")
        >>> figure.axes[0].get_ylabel()
        'frequency (Hz)'
    """
    instance("spectra", spectra, Waterfall)
    for name, text in (("unit", unit), ("title", title)):
        instance(name, text, str)
    multiples = np.ravel(array("orders", orders))
    span = number("dynamic_range", dynamic_range, positive=True)
    largest = float(spectra.mean_square.max(initial=0.0)) or 1.0
    zero_level = largest if reference is None else number("reference", reference, positive=True)
    level = 10 * np.log10(np.maximum(spectra.mean_square / zero_level, 1e-30))
    rows = np.argsort(spectra.speed, kind="stable")
    rpm = spectra.speed[rows] * 30 / np.pi
    figure = new_figure(8, 7 if len(multiples) else 5)
    axes = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1]) if len(multiples) else None
    upper = figure.subplots() if axes is None else axes[0]
    top = 10 * np.log10(largest / zero_level)
    image = upper.pcolormesh(
        rpm, spectra.lines, level[rows].T, vmin=top - span, vmax=top, shading="nearest"
    )
    text = "level (dB)" if reference else "level relative to the maximum (dB)"
    figure.colorbar(image, ax=upper, label=text)
    label = "order" if spectra.axis == "order" else "frequency (Hz)"
    upper.set(ylabel=label, title=title, ylim=(spectra.lines[0], spectra.lines[-1]))
    upper.set_axisbelow(True)  # the map hides the grid
    for order in multiples:
        line = np.full_like(rpm, order) if spectra.axis == "order" else order * rpm / 60
        upper.plot(rpm, line, "w--", lw=0.7)
        if axes is not None:
            cut = spectra.cut(order)[rows]
            # The mean square of a sine is half the square of its amplitude
            visible = (
                10 * np.log10(np.maximum(0.5 * cut**2 / zero_level, 1e-30)) if reference else cut
            )
            axes[1].plot(rpm, visible, lw=1.2, label=f"order {order:g}")
    last = upper if axes is None else axes[1]
    last.set(xlabel="speed (1/min)")
    if axes is not None:
        of_unit = f" ({unit})" if unit else ""
        last.set(ylabel="level (dB)" if reference else f"amplitude{of_unit}")
        last.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=6, frameon=False)
    return saved(figure, path)


def _named_curves(argument: str, value: Any, kind: type[Any]) -> Mapping[str, Any]:
    """Return curves by name; the name of a single curve is empty."""
    instance(argument, value, (kind, Mapping))
    if not isinstance(value, Mapping):
        return {"": value}
    for name, entry in value.items():
        instance(f"{argument}[{name!r}]", entry, kind)
    return value


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure with the given width and height in inches."""
    optional_module("matplotlib", "charts")
    from dolfinx_mbd.plotting.figures import Chart

    return Chart(figsize=(width, height), layout="constrained")


def saved(figure: Any, path: str | Path | None) -> Any:
    """Add grid lines to a matplotlib figure, write it unless `path` is None, and return it."""
    for axes in figure.axes:
        axes.margins(x=0)
        axes.grid(alpha=0.3, which="both")
    if path is not None:
        suffixes = [f".{kind}" for kind in figure.canvas.get_supported_filetypes()]
        path = checked_path(path, suffixes)
        kind = path.suffix[1:].lower()
        write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=110), "figure")
    return figure
