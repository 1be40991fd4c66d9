"""Identification by least squares, and uncertainty to first order."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import dolfinx_mbd as mbd
from dolfinx_mbd.errors import AccuracyWarning, InputError, SolverError

X = np.linspace(1.0, 2.0, 40)


def power_law(p: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return a xⁿ and its derivatives."""
    value = p["a"] * X ** p["n"]
    return value, {"a": X ** p["n"], "n": value * np.log(X)}


def test_exact_data() -> None:
    data = power_law({"a": 3.0, "n": 1.7})[0]
    result = mbd.design.identify(power_law, data, start={"a": 1.0, "n": 1.0})
    assert result.values["a"] == pytest.approx(3.0, rel=1e-8)
    assert result.values["n"] == pytest.approx(1.7, rel=1e-8)


def test_confidence_intervals() -> None:
    """About 95 % of the intervals contain the true values."""
    random, true = np.random.default_rng(5), {"a": 3.0, "n": 1.7}
    data, inside = power_law(true)[0], 0
    for _ in range(200):
        noisy = data * (1 + 0.01 * random.standard_normal(len(X)))
        result = mbd.design.identify(power_law, noisy, start={"a": 2.0, "n": 1.5})
        inside += sum(low < true[k] < high for k, (low, high) in result.intervals.items())
    # 0.03 is 2.8 standard deviations of the share of 400 independent intervals, √(0.95·0.05/400)
    assert 0.92 < inside / 400 < 0.98


def test_undetermined_parameter() -> None:
    def product(p: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return p["a"] * p["b"] * X, {"a": p["b"] * X, "b": p["a"] * X}

    with pytest.raises(SolverError, match="do not determine"):
        mbd.design.identify(product, 2 * X, start={"a": 1.0, "b": 1.0})
    with pytest.raises(InputError, match="1 measurements"):
        mbd.design.identify(product, [2.0], start={"a": 1.0, "b": 1.0})


def test_bounds() -> None:
    data = power_law({"a": 3.0, "n": 1.7})[0]
    with pytest.warns(AccuracyWarning, match="'a' is at its bound"):
        result = mbd.design.identify(
            power_law, data, start={"a": 1.0, "n": 1.0}, bounds={"a": (0.5, 2.5)}
        )
    assert result.values["a"] == pytest.approx(2.5, abs=1e-6)


@pytest.mark.parametrize("high", [2.0, 2.9, 2.999, 3.0, 3.000001, 3.1])
@pytest.mark.parametrize("start", [1.0, 1.9])
def test_a_value_at_its_bound_is_exact_and_gives_a_warning(high: float, start: float) -> None:
    """A bound close to the free minimum also gives a warning, a bound beyond it none."""
    data = power_law({"a": 3.0, "n": 1.7})[0]
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        result = mbd.design.identify(
            power_law, data, start={"a": start, "n": 1.0}, bounds={"a": (0.5, high)}
        )
    assert result.values["a"] == pytest.approx(min(high, 3.0), rel=1e-9)
    assert [w.message.quantity for w in records] == (["a"] if high <= 3.0 else [])


def test_a_negative_parameter_at_its_lower_bound() -> None:
    def line(p: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return p["a"] * X + p["b"], {"a": X, "b": np.ones_like(X)}

    with pytest.warns(AccuracyWarning, match="'b' is at its bound -2") as records:
        result = mbd.design.identify(
            line, X - 3, start={"a": 2.0, "b": -1.0}, bounds={"b": (-2.0, 5.0)}
        )
    assert len(records) == 1 and result.values["b"] == pytest.approx(-2.0, rel=1e-12)
    rest = X - 3 + 2.0  # a X fits this for b = -2; the errors are relative to the data X - 3
    weight = 1 / (X - 3) ** 2
    expected = np.sum(weight * X * rest) / np.sum(weight * X**2)
    assert result.values["a"] == pytest.approx(expected, rel=1e-9)


def test_wrong_derivatives() -> None:
    """With the wrong sign of one derivative, the iteration ends far from the solution."""

    def wrong(p: dict[str, float]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        return p["a"] * X + p["b"] * X**2, {"a": X, "b": -(X**2)}

    with pytest.raises(SolverError, match="derivatives of the model contradict its values"):
        mbd.design.identify(wrong, 2 * X + X**2, start={"a": 1.0, "b": 0.5})


def test_invalid_covariance() -> None:
    pair = {"a": [1.0], "b": [1.0]}
    correlated = mbd.design.first_order_deviation(pair, [[1.0, 1.0], [1.0, 1.0]])
    assert correlated == pytest.approx(2.0)
    opposite = mbd.design.first_order_deviation(
        {"a": [1.0], "b": [-1e6]}, [[1.0, 1e-6], [1e-6, 1e-12]]
    )
    assert opposite == pytest.approx(0.0, abs=1e-6)
    for covariance in ([[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.9], [0.1, 1.0]], [[-1.0, 0], [0, 1.0]]):
        with pytest.raises(InputError, match="symmetric and not negative"):
            mbd.design.first_order_deviation(pair, covariance)
    with pytest.raises(InputError, match="derivatives: b must be"):
        mbd.design.first_order_deviation({"a": [1.0], "b": [1.0, 2.0]}, {"a": 1.0, "b": 1.0})


def test_deviation_agrees_with_a_sample() -> None:
    random, true = np.random.default_rng(3), {"a": 3.0, "n": 1.7}
    sigma = {"a": 0.02, "n": 0.01}
    first = mbd.design.first_order_deviation(power_law(true)[1], sigma)
    sample = [
        power_law({k: true[k] + sigma[k] * random.standard_normal() for k in true})[0]
        for _ in range(20_000)
    ]
    assert np.std(sample, axis=0) == pytest.approx(first, rel=0.03)


def test_outlier_is_a_warning() -> None:
    """Residuals must agree with given deviations; measurement 4 is ten times too large."""
    parameters, random = {"a": 2.0, "n": 1.5}, np.random.default_rng(2)
    exact = power_law(parameters)[0]
    sigma = 0.01 * np.abs(exact)
    measured = exact + sigma * random.standard_normal(len(exact))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mbd.design.identify(power_law, measured, start=parameters, deviations=sigma)
    measured[3] *= 10
    with pytest.warns(AccuracyWarning, match="that of measurement 4 is the largest"):
        mbd.design.identify(power_law, measured, start=parameters, deviations=sigma)
