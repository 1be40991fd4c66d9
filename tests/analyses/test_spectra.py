"""Spectra of sines whose amplitudes are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dolfinx_mbd.analyses import spectrum
from dolfinx_mbd.errors import InputError

COUNT, STEP = 1000, 1e-3  # 1 s: lines are 1 Hz apart
TIME = STEP * np.arange(COUNT)


def tone(frequency: float, amplitude: float = 2.5, phase: float = 0.4) -> np.ndarray:
    """Return a sine over the times of the tests."""
    return amplitude * np.sin(2 * np.pi * frequency * TIME + phase)


@pytest.mark.parametrize("window", ["boxcar", "hann", "flattop", "blackmanharris"])
def test_amplitude_on_a_line_is_exact(window: str) -> None:
    f, a = spectrum(TIME, tone(50.0) + 0.7, window=window)
    assert np.allclose(f, np.arange(501))
    assert a[50] == pytest.approx(2.5, rel=1e-12)
    assert a[0] == pytest.approx(0.7, rel=1e-12)
    clean = np.ones(501, dtype=bool)
    clean[:6] = clean[45:56] = False  # the widest main lobe reaches five lines to either side
    assert a[clean].max() < 1e-12


@pytest.mark.parametrize(
    ("window", "loss"), [("boxcar", 2 / np.pi), ("hann", 8 / (3 * np.pi)), ("flattop", 0.9988)]
)
def test_amplitude_between_lines_is_that_of_the_window(window: str, loss: float) -> None:
    """Between two lines, the amplitude is multiplied by 2/π, 8/(3π) or 0.9988 (flattop, Heinzel).

    Without a window the line at −f, 101 lines away, leaks 1/(101 π) / (2/π) = 0.5 % in; with hann
    this is smaller by the factor 101², 5e-7. The tolerance 2e-4 allows for four digits.

    """
    _, a = spectrum(TIME, tone(50.5), window=window)
    assert a.max() / 2.5 == pytest.approx(loss, rel=6e-3 if window == "boxcar" else 2e-4)


def test_leakage_of_the_default_window_falls_off() -> None:
    for window, bound in (("boxcar", 1e-2), ("hann", 1e-5)):
        _, a = spectrum(TIME, tone(50.5), window=window)
        far = a[150:250].max() / 2.5
        assert far < bound
        assert window != "boxcar" or far > 1e-3


def test_columns_mean_line_and_the_highest_frequency() -> None:
    x = np.column_stack([tone(20.0), 3.0 + 4.0 * TIME, (-1.0) ** np.arange(COUNT)])
    a = spectrum(TIME, x, window="boxcar").amplitudes
    assert a.shape == (501, 3)
    assert a[20, 0] == pytest.approx(2.5) and a[500, 2] == pytest.approx(1.0)
    assert a[0, 1] == pytest.approx(x[:, 1].mean())
    assert spectrum(TIME, x, trend="mean").amplitudes[0].max() < 1e-2
    assert spectrum(TIME, x, trend="line").amplitudes[:, 1].max() < 1e-10
    odd = spectrum(TIME[:-1], tone(0.0)[:-1], window="boxcar")
    assert len(odd.frequencies) == 500 and odd.frequencies[-1] < 500.0


def test_parseval() -> None:
    x = np.random.default_rng(0).normal(size=COUNT)
    a = spectrum(TIME, x, window="boxcar").amplitudes
    power = a[0] ** 2 + 0.5 * np.sum(a[1:-1] ** 2) + a[-1] ** 2
    assert power == pytest.approx(np.mean(x**2), rel=1e-12)


def test_unequal_steps_are_refused_or_resampled() -> None:
    t = TIME + 0.2 * STEP * np.sin(np.arange(COUNT))
    x = 2.5 * np.sin(2 * np.pi * 50.0 * t)
    with pytest.raises(ValueError, match=r"not equal.*resample=True"):
        spectrum(t, x)
    # a cubic spline is off by (2π·50 Hz·1 ms)⁴/384 = 2.5e-5 of the amplitude, a little more at
    # unequal steps; the record is a fraction of a step longer than 50 periods (hann: 1e-7)
    f, a = spectrum(t, x, resample=True)
    assert a.max() == pytest.approx(2.5, rel=1e-4)
    assert f[np.argmax(a)] == pytest.approx(50.0, abs=0.05)
    longer = np.append(TIME, TIME[-1] + 0.4 * STEP)
    with pytest.raises(ValueError, match="only the last step differs"):
        spectrum(longer, np.zeros(COUNT + 1))
    round_off = TIME * (1 + 1e-13) + 1e-14
    assert spectrum(round_off, tone(50.0)).amplitudes[50] == pytest.approx(2.5, rel=1e-9)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("signal", np.zeros(3)),
        ("time", np.zeros(COUNT)),
        ("time", np.zeros((2, 2))),
        ("time", TIME[:3]),
        ("signal", np.full(COUNT, np.nan)),
        ("window", "house"),
        ("window", math.nan),
        ("trend", "none"),
        ("resample", 1),
    ],
)
def test_bad_input(argument: str, value: Any) -> None:
    arguments = {"time": TIME, "signal": tone(50.0)} | {argument: value}
    with pytest.raises(InputError) as error:
        spectrum(**arguments)
    assert error.value.argument == argument
