"""Bode plots of frequency responses, and amplitude spectra of signals, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dolfinx_mbd.body import FrequencyResponse
from dolfinx_mbd.checks import choice, instance, names, number, refuse
from dolfinx_mbd.multibody import Spectrum
from dolfinx_mbd.plotting.output import new_figure, save_figure

__all__ = ["plot_response", "plot_spectrum"]

_QUANTITIES = {"receptance": 0, "mobility": 1, "accelerance": 2}
_UNITS = {  # units of a translation and a rotation per N, N m, m and rad
    "f": ("m/N", "rad/N"),
    "m": ("m/(N m)", "rad/(N m)"),
    "u": ("1", "rad/m"),
    "r": ("m/rad", "1"),
}
_RATES = ("", "/s", "/s²")


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
        path: File to write; matplotlib determines the format from the suffix. None: no file.
        quantity: Displacement (`receptance`), velocity (`mobility`) or acceleration (`accelerance`)
            per input.
        frequency_axis: `log` or `linear`.

    Returns:
        A matplotlib figure with two axes.

    Raises:
        InputError: An output, input or option is unknown, or matplotlib does not know the suffix.

    Example:
        >>> response = mbd.frequency_response(body, [10.0, 20.0], held=["left"])
        >>> figure = mbd.plotting.plot_response(response, [("right uy", "right fy")])
        >>> figure.axes[0].get_ylabel()
        'receptance (m/N)'
    """
    responses, several = _by_name("response", response, FrequencyResponse)
    choice("quantity", quantity, _QUANTITIES)
    choice("frequency_axis", frequency_axis, ("log", "linear"))
    pairs = entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()
    if not pairs or not all(len(names("every entry of entries", pair)) == 2 for pair in pairs):
        refuse("entries", entries, "a list of at least one pair (output, input)")
    order = _QUANTITIES[quantity]
    curves = [
        (
            one.frequencies,
            one.between(output, input, order),
            _label(name if several else "", output, input),
        )
        for name, one in responses.items()
        for output, input in entries
    ]
    figure = new_figure(8, 6)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2, 1])
    for f, H, label in curves:
        shown = f > 0 if frequency_axis == "log" else np.ones(len(f), dtype=bool)
        upper.plot(f[shown], np.abs(H[shown]), lw=1.2, label=label)
        lower.plot(f[shown], np.degrees(np.angle(H[shown])), lw=1.2)
    units = {_unit(output, input, order) for output, input in entries}
    upper.set(yscale="log", ylabel=f"{quantity} ({', '.join(sorted(units))})")
    lower.set(xscale=frequency_axis, xlabel="frequency (Hz)", ylabel="phase (°)")
    lower.set(ylim=(-190, 190), yticks=range(-180, 181, 90))
    upper.legend(loc="best", frameon=False)
    return save_figure(figure, path)


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
        path: File to write; matplotlib determines the format from the suffix. None: no file.
        unit: Unit of the signal, for the label of the axis.
        up_to: Greatest frequency that is shown, Hz; None: all.
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
    spectra, several = _by_name("spectrum", spectrum, Spectrum)
    instance("unit", unit, str)
    choice("amplitude_axis", amplitude_axis, ("log", "linear"))
    if up_to is not None:
        number("up_to", up_to, positive=True)
    figure = new_figure(8, 4)
    axes = figure.subplots()
    for name, (f, amplitudes) in spectra.items():
        shown = f <= (np.inf if up_to is None else up_to)
        axes.plot(f[shown], amplitudes[shown], lw=1.2, label=name)
    axes.set(xlabel="frequency (Hz)", ylabel="amplitude" + (f" ({unit})" if unit else ""))
    axes.set(yscale=amplitude_axis)
    if several:
        axes.legend(loc="best", frameon=False)
    return save_figure(figure, path)


def _by_name(argument: str, value: Any, kind: type[Any]) -> tuple[Mapping[str, Any], bool]:
    """Return curves by name, and whether `value` is a dictionary."""
    instance(argument, value, (kind, Mapping))
    if not isinstance(value, Mapping):
        return {"": value}, False
    for name, entry in value.items():
        instance(f"{argument}[{name!r}]", entry, kind)
    return value, True


def _label(name: str, output: str, input: str) -> str:
    entry = f"{output} per {input}"
    return f"{name}: {entry}" if name else entry


def _unit(output: str, input: str, order: int) -> str:
    turn = output.rpartition(" ")[2].startswith("r")
    return _UNITS[input.rpartition(" ")[2][0]][int(turn)] + _RATES[order]
