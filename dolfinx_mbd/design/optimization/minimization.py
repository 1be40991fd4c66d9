"""Minimization of an objective under constraints, with SciPy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import (
    choice,
    function,
    instance,
    integer,
    number,
    parameter_limits,
    reject,
    unknown,
)
from dolfinx_mbd.design.optimization.optimizers import CONSTRAINED, FORMER, METHODS, solve
from dolfinx_mbd.design.optimization.optimum import Optimum, optimum
from dolfinx_mbd.design.optimization.scaled_problem import DivergedError, ScaledProblem
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.html import short_repr

Method = Literal["SLSQP", "trust-constr", "L-BFGS-B"]

Function = Callable[[Any], Any]
"""A function that returns a number, or a number and a mapping from parameters to derivatives."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of a quantity that depends on the parameters.

    Attributes:
        quantity: Function that returns a number, or a pair of a number and its derivatives by the
            names of the parameters; see `minimize`.
        low: Lower limit, by default none.
        high: Upper limit, by default none. Equal limits prescribe the quantity.

    Raises:
        InputError: There is no limit, or the lower limit is above the upper limit.

    Example:
        >>> mbd.design.Limits(lambda p: p["height"] / p["width"], high=3.0).high
        3.0
    """

    quantity: Function
    low: float | None = None
    high: float | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        function("quantity", self.quantity, "quantity(values)")
        if self.low is None and self.high is None:
            raise InputError("limits need low, high or both", argument="low")
        for key in ("low", "high"):
            if (limit := getattr(self, key)) is not None:
                assign(self, **{key: number(key, limit)})
        if self.low is not None and self.high is not None and self.low > self.high:
            reject("low", self.low, f"at most high, {self.high:g}")


def minimize(
    objective: Function,
    start: Mapping[str, float],
    constraints: Mapping[str, Limits] | None = None,
    *,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    model: Callable[[Mapping[str, float]], Any] | None = None,
    method: Method = "SLSQP",
    scale: Mapping[str, float] | None = None,
    step: float = 1e-3,
    tolerance: float = 1e-4,
    max_iterations: int = 200,
    comm: Any = None,
) -> Optimum:
    """Minimize a function of parameters under constraints.

    All functions are evaluated once per point. Parameters, objective and constraints are scaled, so
    that their units do not matter. Each rank runs the same iteration. The functions may be
    collective, and must return equal numbers on all ranks; data of reduced bodies are equal.

    Args:
        objective: Function that returns, for values by name, a number, or a pair of a number and
            its derivatives by the names of the parameters. Without derivatives, differences of
            second order are computed.
        start: Initial values of the parameters by name.
        constraints: Limits of other quantities, by name; by default none.
        bounds: Lower and upper bounds of some parameters by name. The functions are evaluated only
            within the bounds.
        model: Function that returns an object for values by name, for example
            `ParametricBody.at`. `objective` and `constraints` then receive this object instead of
            the values. It is called once per point. By default they receive the values.
        method: ``SLSQP``, ``trust-constr`` or ``L-BFGS-B`` (without constraints) of SciPy.
        scale: Typical changes of some parameters by name. The default is the distance between the
            bounds, or else the value at the start.
        step: Step of differences, relative to the scale of the parameter.
        tolerance: Tolerance of the constraints, relative to their limits, and of the gradient with
            respect to scaled parameters, relative to the gradient at the start.
        max_iterations: Largest number of iterations.
        comm: MPI communicator over which the numbers are compared; those of rank 0 are used. By
            default they are not compared.

    Raises:
        InputError: An argument or a result of a function is invalid, or the method does not accept
            constraints.
        SolverError: The last point violates a constraint, the objective decreases without a limit,
            or the ranks do not agree.

    Warns:
        AccuracyWarning: The part of the gradient that active limits do not balance exceeds ten
            times the tolerance.

    Example:
        >>> area = lambda p: (p["a"] * p["b"], {"a": p["b"], "b": p["a"]})
        >>> edge = lambda p: (2 * (p["a"] + p["b"]), {"a": 2.0, "b": 2.0})
        >>> result = mbd.minimize(
        ...     edge, {"a": 1.0, "b": 9.0}, {"area": mbd.design.Limits(area, low=4)}
        ... )
        >>> round(result.values["a"], 3), round(result.multipliers["area"], 3)
        (2.0, 1.0)
    """
    if isinstance(method, str) and method in FORMER:
        text = f"method {method!r} no longer exists: write {FORMER[method]!r}, which is used now"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        method = FORMER[method]  # type: ignore[assignment]
    choice("method", method, METHODS)
    values, box = _checked_start(start, bounds)  # `box` has the two bounds of each parameter
    limits = _limits(constraints, start, method)
    functions = {"objective": function("objective", objective, "objective(values)")}
    functions |= {name: c.quantity for name, c in (constraints or {}).items()}
    if model is not None:
        function("model", model, "model(values)")
    if comm is not None and not hasattr(comm, "allgather"):
        reject("comm", comm, "an MPI communicator of mpi4py or None", InputTypeError)
    accuracy = number("tolerance", tolerance, positive=True, high=0.1)
    iterations = integer("max_iterations", max_iterations, low=1, high=10**9)
    problem = ScaledProblem(
        functions,
        model,
        values,
        _scales(values, box, scale),
        box,
        limits,
        step=number("step", step, positive=True, high=0.1),
        comm=comm,
    )
    points: list[Array] = [np.zeros(len(values))]
    try:
        x, message = solve(
            problem, method, accuracy, iterations, lambda x: points.append(np.array(x, dtype=float))
        )
    except DivergedError:
        x, message = problem.last, "the iteration diverged"
        problem.farthest = np.inf  # the check of the result evaluates this point again
    return optimum(problem, [*points, x], message, accuracy)


def _checked_start(start: Any, bounds: Any) -> tuple[dict[str, float], Array]:
    """Return the initial values, and the bounds of all parameters, shape (n, 2)."""
    names = list(instance("start", start, Mapping))
    values = {name: number(f"start: {name}", start[name]) for name in names}
    box = np.array(parameter_limits(names, bounds))
    numbers = np.array(list(values.values()))
    if not names or (numbers < box[:, 0]).any() or (numbers > box[:, 1]).any():
        reject("start", start, "a mapping from parameters to values within their bounds")
    return values, box


def _limits(constraints: Any, start: Mapping[str, float], method: str) -> Array:
    """Return the limits of the constraints, shape (m, 2); infinite without a limit."""
    table = instance("constraints", {} if constraints is None else constraints, Mapping)
    if table and method not in CONSTRAINED:
        text = f"{method} does not accept constraints; use {', '.join(CONSTRAINED)}"
        raise InputError(text, argument="method", value=method)
    rows = []
    for name, constraint in table.items():
        instance(f"constraints: {name}", constraint, Limits)
        if name in start or name == "objective":
            text = f"{name!r} is already the name of a parameter or of the objective; rename it"
            raise InputError(text, argument="constraints", value=name)
        low = -np.inf if constraint.low is None else constraint.low
        rows.append((low, np.inf if constraint.high is None else constraint.high))
    return np.array(rows, dtype=float).reshape(-1, 2)


def _scales(values: Mapping[str, float], box: Array, scale: Any) -> Array:
    """Return the scales of the parameters."""
    sizes = instance("scale", {} if scale is None else scale, Mapping)
    for name in sizes:
        if name not in values:
            unknown("parameter", name, values, "start has")
    result = []
    for (name, value), (low, high) in zip(values.items(), box, strict=True):
        size = high - low if np.isfinite(high - low) else abs(value)
        size = sizes.get(name, size)
        if size == 0.0:
            text = f"{name} starts at zero and has no bounds; give bounds or a scale"
            raise InputError(text, argument="scale", value=scale)
        result.append(number(f"scale: {name}", size, low=1e-100, high=1e100))
    return np.array(result)
