"""The result of a minimization, and its check by the conditions of first order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.optimize

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.optimization.scaled_problem import ScaledProblem
from dolfinx_mbd.errors import AccuracyWarning, SolverError, warn
from dolfinx_mbd.html import short_repr

FEASIBLE = 10  # largest violation of a constraint, in tolerances
FAR = 1e6  # change of a parameter, in scales, that means that there is no minimum
BALANCED = 10  # largest gradient that active limits do not balance, in tolerances


class Iterate(NamedTuple):
    """One iteration of `minimize`: parameters, objective, and constraints by name."""

    values: Mapping[str, float]
    objective: float
    constraints: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Optimum:
    """Result of `minimize`.

    Attributes:
        values: Values of the parameters by name.
        objective: Objective at these values.
        constraints: Constrained quantities at these values, by name.
        active: Constraints and bounds that are reached, by the name of the constraint or parameter:
            ``low``, ``high`` or ``equal``.
        multipliers: Derivatives of the minimum with respect to the active limits, by the same
            names. A limit with a large multiplier is expensive.
        residual: Error of the optimum, zero at an optimum: the part of the gradient of the
            objective that active limits do not balance, with scaled parameters, relative to the
            gradient at the start; or the decrease of the objective up to the active limits, which
            are reached within a tolerance, in the same unit, if it is larger.
        history: Start and iterations.
        evaluations: Number of points at which the functions were evaluated.
        message: Reason for the end of the iteration: the message of SciPy.

    Example:
        >>> parabola = lambda p: ((p["x"] - 2)**2, {"x": 2 * (p["x"] - 2)})
        >>> result = mbd.minimize(parabola, {"x": 0.5}, bounds={"x": (0.0, 1.0)})
        >>> result.values, result.active, round(result.multipliers["x"], 6)
        ({'x': 1.0}, {'x': 'high'}, -2.0)
    """

    values: Mapping[str, float]
    objective: float
    constraints: Mapping[str, float]
    active: Mapping[str, str]
    multipliers: Mapping[str, float]
    residual: float
    history: tuple[Iterate, ...]
    evaluations: int
    message: str

    __repr__ = short_repr


def optimum(problem: ScaledProblem, points: list[Array], message: str, tolerance: float) -> Optimum:
    """Return the last point with its active limits; see `minimize` for errors and warnings."""
    points = [np.clip(x, *problem.bounds.T) for x in points]
    x = points[-1]
    constraints = list(problem.functions)[1:]
    values, J = problem.values(x), problem.jacobian(x)
    low, high = (problem.limits - values[1:, None]).T
    violations = np.maximum(low, -high)
    if (violations > FEASIBLE * tolerance).any():
        broken = [
            f"{name} = {values[j] * problem.sizes[j]:.6g} (limits {_interval(problem, j)})"
            for j, name in enumerate(constraints, 1)
            if violations[j - 1] > FEASIBLE * tolerance
        ]
        raise SolverError(
            f"the last point violates {'; '.join(broken)} at {problem.point(x)}; the constraints "
            "may contradict each other or the bounds, or the iteration needs another start "
            f"({message})"
        )
    names = [*constraints, *problem.names]
    quantities, rows = np.concatenate([values[1:], x]), np.vstack([J[1:], np.eye(len(x))])
    edges = np.vstack([problem.limits, problem.bounds])
    sizes = np.concatenate([problem.sizes[1:], problem.scale])
    normals: list[tuple[int, str, float]] = []  # row of an active limit, its side, outward sign
    distances: list[float] = []
    for k, (q, (lower, upper)) in enumerate(zip(quantities, edges, strict=True)):
        side = "equal" if lower == upper else "low"
        if q - lower <= FEASIBLE * tolerance:
            normals.append((k, side, -1.0))
            distances.append(q - lower)
        if upper - q <= FEASIBLE * tolerance:
            normals.append((k, "equal" if lower == upper else "high", 1.0))
            distances.append(upper - q)
    factors, residual = np.zeros(0), float(np.linalg.norm(J[0]))
    if normals:
        A = np.column_stack([sign * rows[k] for k, _, sign in normals])
        factors, residual = scipy.optimize.nnls(A, -J[0])
        residual = max(residual, float(factors @ np.maximum(distances, 0.0)))
    multipliers: dict[str, float] = {}
    for (k, _, sign), factor in zip(normals, factors, strict=True):
        price = -sign * factor * problem.sizes[0] / sizes[k]
        multipliers[names[k]] = multipliers.get(names[k], 0.0) + float(price)
    if residual > BALANCED * tolerance:
        _check_distance(problem, points, message)
        text = (
            f"the result may not be a minimum: {100 * residual:.3g} % of the initial gradient is "
            f"not balanced by active limits, at {problem.point(x)} ({message})"
        )
        warn(AccuracyWarning(text, quantity="gradient", value=residual, limit=BALANCED * tolerance))
    pairs = zip(points[1:], points[:-1], strict=True)
    distinct = [points[0]] + [p for p, q in pairs if not np.array_equal(p, q)]
    history = tuple(_iterate(problem, p) for p in distinct)
    return Optimum(
        **history[-1]._asdict(),
        active={names[k]: side for k, side, _ in normals},
        multipliers=multipliers,
        residual=float(residual),
        history=history,
        evaluations=problem.evaluations,
        message=message,
    )


def _check_distance(problem: ScaledProblem, points: list[Array], message: str) -> None:
    """Raise an error if the last point is so far away that there is no minimum."""
    x = points[-1]
    far = [name for name, v in zip(problem.names, x, strict=True) if abs(v) > FAR]
    if not far:
        return
    if problem.values(x)[0] > problem.values(points[0])[0]:
        raise SolverError(
            f"the derivatives contradict the values: the objective grew while {far[0]} moved to "
            f"{problem.point(x)}; correct the derivatives of the objective or of a constraint "
            f"({message})"
        )
    raise SolverError(
        f"the objective decreases without a limit: {', '.join(far)} moved by more than {FAR:.0e} "
        f"times the scale, to {problem.point(x)}; give bounds or constraints ({message})"
    )


def _iterate(problem: ScaledProblem, x: Array) -> Iterate:
    """Return the point and its values in the units of the user."""
    numbers = problem.values(x) * problem.sizes
    table = {name: float(v) for name, v in zip(problem.functions, numbers, strict=True)}
    return Iterate(problem.point(x), table.pop("objective"), table)


def _interval(problem: ScaledProblem, j: int) -> str:
    """Return the limits of function j as text; function 0 is the objective and has no limits."""
    low, high = problem.limits[j - 1] * problem.sizes[j]
    return f"{low:.6g} to {high:.6g}"
