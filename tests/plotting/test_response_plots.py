"""Bode plots and spectra show the numbers that they are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import Waterfall, spectrum, waterfall
from dolfinx_mbd.body.response import FrequencyResponse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.plotting import plot_response, plot_spectrum, plot_waterfall

pytest.importorskip("matplotlib", reason="charts need matplotlib")

ENTRY = [("tip uy", "tip fy")]


@pytest.fixture(autouse=True)
def _one_rank() -> None:
    """Skip the test on other ranks than the first."""
    if MPI.COMM_WORLD.rank > 0:
        pytest.skip("one rank draws")


def response() -> FrequencyResponse:
    """Return an oscillator of 10 Hz, 1 kg and 5 % damping, and its angle under a force."""
    f = np.linspace(0.0, 30.0, 61)
    w, natural = 2 * np.pi * f, 20 * np.pi
    H = 1 / (natural**2 - w**2 + 0.1j * natural * w)
    return FrequencyResponse(
        f, ("tip uy", "tip rz"), ("tip fy",), np.stack([H, 5 * H], axis=1)[..., None]
    )


@pytest.mark.parametrize("order", [0, 1, 2])
def test_bode_plot_shows_amplitude_and_phase(order: int) -> None:
    oscillator = response()
    name = ("receptance", "mobility", "accelerance")[order]
    figure = plot_response(oscillator, [("tip uy", "tip fy")], quantity=name)
    upper, lower = figure.axes
    x, y = upper.lines[0].get_data()
    assert np.array_equal(x, oscillator.frequencies[1:])  # 0 Hz has no place on a logarithmic axis
    w = 2 * np.pi * oscillator.frequencies[1:]
    assert np.allclose(y, np.abs(oscillator.values[1:, 0, 0]) * w**order, rtol=1e-12)
    phase = lower.lines[0].get_ydata()
    assert phase[19] == pytest.approx(-90.0 + 90.0 * order, abs=1e-9)  # at 10 Hz
    unit = ("m/N", "m/N/s", "m/N/s²")[order]
    assert upper.get_ylabel() == f"{name} ({unit})"


def test_several_curves_and_a_linear_axis(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bode.png"
    entries = [("tip uy", "tip fy"), ("tip rz", "tip fy")]
    figure = plot_response(
        {"a": response(), "b": response()}, entries, path, frequency_axis="linear"
    )
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels[0] == "a: tip uy per tip fy" and len(labels) == 4
    assert figure.axes[0].get_ylabel() == "receptance (m/N, rad/N)"
    assert len(figure.axes[0].lines[0].get_xdata()) == 61
    assert path.read_bytes()[:4] == b"\x89PNG"


def test_spectra() -> None:
    t = np.arange(1000) / 1000.0
    one = spectrum(t, 3.0 * np.sin(2 * np.pi * 40.0 * t))
    figure = plot_spectrum({"y": one, "twice": one}, unit="m/s²", up_to=100.0, amplitude_axis="log")
    (axes,) = figure.axes
    f, a = axes.lines[0].get_data()
    assert f[-1] == 100.0 and f[np.argmax(a)] == 40.0 and a.max() == pytest.approx(3.0)
    assert axes.get_ylabel() == "amplitude (m/s²)" and axes.get_yscale() == "log"
    assert plot_spectrum(one).axes[0].get_legend() is None


def run_up() -> Waterfall:
    """Return the second order of a run-up, with an amplitude of 3."""
    t = np.linspace(0.0, 2.0, 8001)
    angle = 2 * np.pi * (10 * t + 10 * t**2)
    return waterfall(t, 3 * np.sin(2 * angle), angle, axis="order", length=5)


def test_waterfall_shows_levels_and_cuts(tmp_path: Path) -> None:
    spectra = run_up()
    figure = plot_waterfall(spectra, tmp_path / "map.png", orders=[2, 3], unit="m/s²")
    assert (tmp_path / "map.png").exists()
    upper, lower, bar = figure.axes
    levels = upper.collections[0].get_array()
    rows = levels.reshape(len(spectra.lines), -1)
    assert spectra.lines[rows[:, 3].argmax()] == 2.0
    assert levels.max() == pytest.approx(0.0)
    assert bar.get_ylabel() == "level relative to the maximum (dB)"
    speed, cut = lower.lines[0].get_data()
    assert np.allclose(speed, np.sort(spectra.speed) * 30 / np.pi)
    assert np.allclose(cut, 3.0, rtol=0.01)
    assert lower.get_ylabel() == "amplitude (m/s²)" and upper.get_ylabel() == "order"
    # The mean square of an amplitude of 3 is 4.5: 0 dB.
    absolute = plot_waterfall(spectra, orders=[2], reference=4.5)
    assert np.allclose(absolute.axes[1].lines[0].get_ydata(), 0.0, atol=0.1)
    assert len(plot_waterfall(spectra).axes) == 2


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("reference", lambda: plot_waterfall(run_up(), reference=0.0)),
        ("dynamic_range", lambda: plot_waterfall(run_up(), dynamic_range=-1.0)),
        ("order", lambda: plot_waterfall(run_up(), orders=[1e6])),
        ("output", lambda: plot_response(response(), [("tip uq", "tip fy")])),
        ("quantity", lambda: plot_response(response(), ENTRY, quantity="speed")),
        ("frequency_axis", lambda: plot_response(response(), ENTRY, frequency_axis="octave")),
        ("entries", lambda: plot_response(response(), [])),
        (
            "amplitude_axis",
            lambda: plot_spectrum(spectrum(np.arange(8.0), np.ones(8)), amplitude_axis="dB"),
        ),
    ],
)
def test_bad_input(argument: str, call: Callable[[], Any]) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert error.value.argument == argument
