"""Parameters from measurements, and the uncertainty of results, to first order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.stats
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, function, instance, number, parameter_limits, reject
from dolfinx_mbd.errors import AccuracyWarning, InputError, SolverError, warn
from dolfinx_mbd.html import short_repr

Model = Callable[[Mapping[str, float]], tuple[ArrayLike, Mapping[str, ArrayLike]]]
"""A function that returns predicted values (m,) and their derivatives (m,) by parameter."""

RANK_TOLERANCE = 1e-8  # relative singular value below which the data do not determine a parameter

_ROUND_OFF = 1e-8  # negative eigenvalues and asymmetry of a covariance, relative to the variances
_SMALL_STEP = 1e-5  # relative steps of the parameters below which derivatives are not checked
_CHANCE = 1e-6  # probability of larger residuals below which a fit gives a warning
_AT_BOUND = 1e-9  # distance from a bound that is round-off, relative to the start or the bound
_INVOLVED = 0.1  # component of an undetermined unit vector from which its parameter is named
_MISFIT = 0.1  # largest error of the derivatives over a step, relative to the change


@dataclass(frozen=True, eq=False)
class Identification:
    """Parameters that were identified from measurements.

    Attributes:
        values: Identified values by name.
        deviations: Standard deviations of the values, by name.
        intervals: Confidence intervals at 95 %, by name.
        covariance: Covariance matrix in the order of `values`, shape (n, n).
        predicted: Predicted measurements, shape (m,).
        iterations: Number of evaluations of the model.

    Example:
        >>> x = np.array([1.0, 2.0, 3.0])
        >>> result = mbd.design.identify(
        ...     lambda p: (p["a"] * x, {"a": x}), [2.1, 3.9, 6.0], start={"a": 1}
        ... )
        >>> round(result.values["a"], 3), round(result.deviations["a"], 3)
        (2.013, 0.044)
    """

    values: Mapping[str, float]
    deviations: Mapping[str, float]
    intervals: Mapping[str, tuple[float, float]]
    covariance: Array
    predicted: Array
    iterations: int

    __repr__ = short_repr


def identify(
    model: Model,
    measured: ArrayLike,
    *,
    start: Mapping[str, float],
    bounds: Mapping[str, tuple[float, float]] | None = None,
    deviations: ArrayLike | None = None,
) -> Identification:
    """Identify parameters from measurements by least squares.

    Args:
        model: Function that returns, for values by name, predicted measurements (m,) and their
            derivatives (m,) by the names of the parameters. `sensitivities` computes such a pair,
            for example the frequencies of a body and their derivatives.
        measured: Measured values, shape (m,).
        start: Initial values of the parameters, by name, not zero.
        bounds: Lower and upper bounds of some parameters, by name.
        deviations: Standard deviations of the measurements, shape (m,). By default all relative
            errors are equal, and the residuals determine their size; with as many measurements as
            parameters, the uncertainty is then NaN.

    Returns:
        Values with standard deviations and confidence intervals.

    Raises:
        InputError: An argument is invalid, or there are fewer measurements than parameters.
        SolverError: The measurements do not determine a parameter, which the message names, the
            derivatives of the model contradict its values, or the iteration does not converge.

    Warns:
        AccuracyWarning: A value is at its bound, or the residuals are larger than `deviations`
            explain. The confidence intervals do not hold.

    Example:
        >>> def frequencies(p):
        ...     steel = mbd.Material(p["E"], 0.3, 7850.0)
        ...     bar = mbd.reduce(mesh, steel, interfaces=["left", "right"], num_modes=2)
        ...     table = mbd.sensitivities(bar, [mbd.Parameter("E", "young")])
        ...     return bar.body.frequencies, {"E": table["E"].frequencies}
        >>> measured = frequencies({"E": 205e9})[0]
        >>> result = mbd.design.identify(frequencies, measured, start={"E": 190e9})
        >>> print(f"{result.values['E']:.4g}")
        2.05e+11
    """
    function("model", model, "model(values)")
    data = array("measured", measured, (None,))
    names = list(instance("start", start, Mapping))
    scale = np.array([number(f"start: {name}", start[name]) for name in names], dtype=float)
    if not len(scale) or not scale.all():
        expected = "a mapping from at least one parameter to a value that is not zero"
        reject("start", start, expected)
    if len(data) < max(len(names), 1):
        text = f"{len(data)} measurements do not determine {len(names)} parameters"
        raise InputError(text, argument="measured", value=measured)
    sigma = np.abs(data) if deviations is None else array("deviations", deviations, (len(data),))
    if not (sigma > 0).all():
        text = "zero measurements need deviations, and deviations must be positive"
        raise InputError(text, argument="deviations", value=deviations)
    weights = 1.0 / sigma

    def evaluate(x: Array) -> tuple[Array, Array]:
        result = model(dict(zip(names, (x * scale).tolist(), strict=True)))
        expected = "a pair of predictions and of their derivatives by parameter"
        if not isinstance(result, tuple) or len(result) != 2 or set(names) - set(result[1]):
            reject("the result of the model", result, expected)
        values = array("predictions of the model", result[0], data.shape)
        parts = [array(f"derivatives of the model: {n}", result[1][n], data.shape) for n in names]
        return weights * (values - data), weights[:, None] * np.column_stack(parts) * scale

    cache: dict[bytes, tuple[Array, Array]] = {}

    def cached(x: Array) -> tuple[Array, Array]:
        key = x.tobytes()
        if key not in cache:
            cache[key] = evaluate(x)
        return cache[key]

    _check_rank(names, cached(np.ones(len(names)))[1])
    limits = np.array(parameter_limits(names, bounds))
    if not ((limits[:, 0] <= scale) & (scale <= limits[:, 1])).all():
        reject("start", start, "values within their bounds")
    edges = np.sort(limits / scale[:, None], axis=1).T
    result = scipy.optimize.least_squares(
        lambda x: cached(x)[0],
        np.ones(len(names)),
        lambda x: cached(x)[1],
        edges,
        method="dogbox",  # it reaches bounds exactly; "trf" stops at a distance from them
        xtol=1e-12,
    )
    _check_derivatives([(np.frombuffer(key), *parts) for key, parts in cache.items()])
    if not result.success:
        raise SolverError(f"the identification does not converge: {result.message}")
    _warn_of_bounds(names, scale, result.x, edges)
    return _identified(names, scale, result, data, weights, deviations is None, len(cache))


def _warn_of_bounds(names: list[str], scale: Array, x: Array, edges: Array) -> None:
    """Warn of scaled parameters (n,) that are at one of their bounds (2, n)."""
    for k, name in enumerate(names):
        for edge in edges[:, k]:
            if np.isfinite(edge) and abs(x[k] - edge) <= _AT_BOUND * max(1.0, abs(edge)):
                text = (
                    f"{name!r} is at its bound {edge * scale[k]:.6g}; the deviations and "
                    "confidence intervals do not take bounds into account"
                )
                value, limit = float(x[k] * scale[k]), float(edge * scale[k])
                warn(AccuracyWarning(text, quantity=name, value=value, limit=limit))


def _identified(
    names: list[str],
    scale: Array,
    result: Any,
    data: Array,
    weights: Array,
    estimated: bool,
    iterations: int,
) -> Identification:
    """Return values and confidence intervals from the solution of SciPy."""
    singular, right = _check_rank(names, result.jac)
    freedom = len(data) - len(names)
    variance = 1.0
    if estimated:
        variance = 2 * result.cost / freedom if freedom else np.nan
    else:
        _check_fit(result.fun, freedom)
    covariance = variance * (right.T / singular**2) @ right * np.outer(scale, scale)
    values, sigma = result.x * scale, np.sqrt(np.diag(covariance))
    factor = scipy.stats.norm.ppf(0.975)
    if estimated and freedom:
        factor = scipy.stats.t.ppf(0.975, freedom)
    return Identification(
        values=dict(zip(names, values.tolist(), strict=True)),
        deviations=dict(zip(names, sigma.tolist(), strict=True)),
        intervals={
            name: (float(v - factor * s), float(v + factor * s))
            for name, v, s in zip(names, values, sigma, strict=True)
        },
        covariance=covariance,
        predicted=result.fun / weights + data,
        iterations=iterations,
    )


def _check_fit(residuals: Array, freedom: int) -> None:
    """Warn if residuals relative to their deviations are larger than chance explains."""
    if not freedom or residuals @ residuals <= scipy.stats.chi2.isf(_CHANCE, freedom):
        return
    size, worst = float(np.sqrt(residuals @ residuals / freedom)), int(np.abs(residuals).argmax())
    text = (
        f"the residuals are {size:.2g} times the deviations; that of measurement {worst + 1} is "
        f"the largest, {abs(residuals[worst]):.2g} deviations. The model, a measurement or the "
        "deviations are wrong, and the confidence intervals do not hold"
    )
    warn(AccuracyWarning(text, quantity="residuals relative to deviations", value=size, limit=1.0))


def _check_derivatives(points: list[tuple[Array, Array, Array]]) -> None:
    """Raise an error if no step of the iteration agrees with the derivatives at its ends.

    Args:
        points: Parameters, residuals and derivatives of all evaluations.
    """
    errors: list[float] = []
    for (x, r, J), (x_new, r_new, J_new) in itertools.pairwise(points):
        if np.abs(x_new - x).max() > _SMALL_STEP:
            predicted = 0.5 * (J + J_new) @ (x_new - x)
            size = float(max(np.linalg.norm(predicted), np.linalg.norm(r_new - r)))
            errors.append(float(np.linalg.norm(r_new - r - predicted) / max(size, 1e-300)))
    if errors and min(errors) > _MISFIT:
        raise SolverError(
            f"the derivatives of the model contradict its values by {100 * min(errors):.0f} % of "
            "the change over a step, or more; correct the derivatives, or start closer"
        )


def _check_rank(names: list[str], J: Array) -> tuple[Array, Array]:
    """Return singular values and right vectors; raise an error if a parameter is not determined."""
    _, singular, right = np.linalg.svd(J, full_matrices=False)
    if singular[-1] <= RANK_TOLERANCE * singular[0]:
        # The last right vector is the change of the parameters that hardly changes the predictions
        weak = [name for name, part in zip(names, right[-1], strict=True) if abs(part) > _INVOLVED]
        text = (
            f"the measurements do not determine {', '.join(weak)} separately; measure more, or fix "
            "one of them"
        )
        raise SolverError(text)
    return singular, right


def first_order_deviation(
    derivatives: Mapping[str, ArrayLike], covariance: Mapping[str, float] | ArrayLike
) -> Array:
    """Return the standard deviation of results that depend on uncertain parameters.

    The variance of first order is J Σ Jᵀ with the derivatives J of the results and the covariance Σ
    of the parameters.

    Args:
        derivatives: Derivatives of the results by the names of the parameters, each of shape (m,).
        covariance: Standard deviations of independent parameters by name; or the covariance matrix
            in the order of `derivatives`, shape (n, n).

    Returns:
        Standard deviations of the results, shape (m,).

    Raises:
        InputError: A parameter has no deviation, or a shape does not fit.

    Example:
        >>> mbd.design.first_order_deviation({"a": [3.0], "b": [4.0]}, {"a": 1.0, "b": 1.0})
        array([5.])
    """
    if not instance("derivatives", derivatives, Mapping):
        reject("derivatives", derivatives, "a mapping from at least one parameter")
    size = len(array("derivatives", next(iter(derivatives.values())), (None,)))
    J = np.column_stack([array(f"derivatives: {k}", v, (size,)) for k, v in derivatives.items()])
    if isinstance(covariance, Mapping):
        if set(covariance) != set(derivatives):
            text = f"expected the deviations of {', '.join(map(repr, derivatives))}"
            raise InputError(text, argument="covariance", value=covariance)
        parts = [number(f"covariance: {k}", covariance[k], low=0.0) for k in derivatives]
        root = np.diag(np.array(parts, dtype=float))
        deviations: Array = np.hypot.reduce(J @ root, axis=1)
        if not np.isfinite(deviations).all():
            reject("covariance", covariance, "such that the deviations are finite")
        return deviations
    sigma = array("covariance", covariance, (J.shape[1], J.shape[1]))
    # relative to the deviations, because the units of the parameters differ
    scale = np.sqrt(np.maximum(np.diag(sigma), 0.0))
    unit = sigma / np.where(scale > 0, scale, 1.0) / np.where(scale > 0, scale, 1.0)[:, None]
    symmetric = np.abs(unit - unit.T).max() <= _ROUND_OFF
    if not symmetric or np.linalg.eigvalsh(unit)[0] < -_ROUND_OFF or np.diag(sigma).min() < 0:
        reject("covariance", covariance, "a covariance matrix: symmetric and not negative")
    variances = np.einsum("ki,ij,kj->k", J, sigma, J)
    if not np.isfinite(variances).all():
        reject("covariance", covariance, "such that the deviations are finite")
    return np.sqrt(np.maximum(variances, 0.0))
