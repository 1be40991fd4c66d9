"""Order analysis: orders, fixed frequencies and resonances of synthetic run-ups, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd import errors

TIME = np.linspace(0.0, 4.0, 16001)
ANGLE = 2 * np.pi * (10 * TIME + 5 * TIME**2)  # 10 to 50 revolutions per second


def test_orders_of_a_run_up() -> None:
    """Each order has its amplitude at every speed, also one that depends on the speed."""
    speed = np.gradient(ANGLE, TIME)
    growing = 1e-5 * speed**2 * np.cos(6 * ANGLE)
    signal = 2 * np.cos(ANGLE) + 0.5 * np.sin(2.5 * ANGLE + 1) + growing
    spectra = mbd.analyses.waterfall(TIME, signal, ANGLE, axis="order")
    assert np.allclose(np.diff(spectra.lines), 0.1)
    assert np.allclose(spectra.cut(1), 2, rtol=2e-3)
    assert np.allclose(spectra.cut(2.5), 0.5, rtol=5e-3)
    short = mbd.analyses.waterfall(TIME, signal, ANGLE, axis="order", length=4)
    assert np.allclose(short.cut(6), 1e-5 * short.speed**2, rtol=0.01)
    assert spectra.cut(4).max() < 0.01
    assert np.allclose(spectra.amplitude[:, 10], 2, rtol=2e-3)
    assert np.allclose(spectra.speed, np.interp(spectra.time, TIME, speed), rtol=0.01)


def test_frequencies_of_a_run_up() -> None:
    """A tone stays at its frequency, and an order moves along its line."""
    signal = 1.5 * np.sin(2 * np.pi * 300 * TIME) + np.cos(7 * ANGLE)
    spectra = mbd.analyses.waterfall(TIME, signal, ANGLE, length=0.2, up_to=600)
    seventh = spectra.speed * 7 / (2 * np.pi)
    apart = np.abs(seventh - 300) > 50
    assert 0 < apart.sum() < len(apart)
    tone = np.abs(spectra.lines - 300) < 1e-6
    assert np.allclose(spectra.amplitude[apart][:, tone], 1.5, rtol=0.02)
    below = seventh < 250
    loudest = spectra.lines[np.where(spectra.lines < 270, spectra.mean_square, 0).argmax(axis=1)]
    assert np.allclose(loudest[below], seventh[below], atol=10)
    cut = spectra.cut(7)
    long = spectra.speed * 0.2 / (2 * np.pi) > 4  # revolutions of a block
    assert np.array_equal(np.isfinite(cut), long)
    assert np.allclose(cut[below & long], 1, rtol=0.02)
    assert spectra.lines[-1] <= 600


def test_a_resonance_is_found_where_an_order_meets_it() -> None:
    """The response of an oscillator to order 3 peaks at a third of its natural frequency."""
    from scipy.signal import StateSpace, lsim

    natural, damping = 2 * np.pi * 90.0, 0.03
    matrix = [[0.0, 1.0], [-(natural**2), -2 * damping * natural]]
    oscillator = StateSpace(matrix, [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    _, response, _ = lsim(oscillator, np.cos(3 * ANGLE), TIME)
    spectra = mbd.analyses.waterfall(TIME, response, ANGLE, axis="order", length=5)
    peak = spectra.speed[np.nanargmax(spectra.cut(3))] / (2 * np.pi)
    assert peak == pytest.approx(30.0, rel=0.03)  # a little late: the run-up is fast


def test_columns_are_added_by_their_squares() -> None:
    columns = np.stack([3 * np.cos(2 * ANGLE), 4 * np.sin(2 * ANGLE)], axis=1)
    spectra = mbd.analyses.waterfall(TIME, columns, ANGLE, axis="order")
    assert np.allclose(spectra.cut(2), 5, rtol=2e-3)


def test_errors() -> None:
    x = np.cos(ANGLE)
    calls: list[tuple[Callable[[], Any], str | None]] = [
        (lambda: mbd.analyses.waterfall(TIME, x, -ANGLE), "angle"),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE % (2 * np.pi)), "angle"),
        (lambda: mbd.analyses.waterfall(TIME, x[1:], ANGLE), "signal"),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE, axis="time"), "axis"),  # type: ignore[arg-type]
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE, length=9.0), "length"),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE, axis="order", length=1e-3), "length"),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE, overlap=1.0), "overlap"),
        (lambda: mbd.analyses.waterfall(TIME**1.1, x, ANGLE), None),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE, window="oak"), "window"),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE, axis="order", up_to=5).cut(9), "order"),
        (lambda: mbd.analyses.waterfall(TIME, x, ANGLE).cut(0), "order"),
    ]
    for call, argument in calls:
        with pytest.raises(errors.InputError) as error:
            call()
        assert error.value.argument == argument, str(error.value)
