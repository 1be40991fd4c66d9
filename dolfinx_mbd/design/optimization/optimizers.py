"""Optimizers of SciPy for a scaled problem."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.optimization.scaled_problem import ScaledProblem

CONSTRAINED = ("SLSQP", "trust-constr")
"""Methods that accept constraints."""

METHODS = (*CONSTRAINED, "L-BFGS-B")
"""Methods of SciPy."""

FORMER = {"ALMM": "SLSQP", "BLMVM": "L-BFGS-B", "BQNLS": "L-BFGS-B"}
"""Methods of PETSc TAO in former versions, and the methods that replace them."""

Record = Callable[[Array], None]


def solve(
    problem: ScaledProblem, method: str, tolerance: float, max_iterations: int, record: Record
) -> tuple[Array, str]:
    """Return the last point and the reason for the end of the iteration.

    `record` is called with the point of each iteration.
    """
    values, jacobian = problem.values, problem.jacobian
    constraints: Any = ()
    if len(problem.limits) and method == "SLSQP":
        constraints = list(_slsqp_constraints(problem))
    elif len(problem.limits):
        constraints = scipy.optimize.NonlinearConstraint(
            lambda x: values(x)[1:], *problem.limits.T, jac=lambda x: jacobian(x)[1:]
        )
    options: dict[str, Any] = {"maxiter": max_iterations}
    if method == "SLSQP":
        options["ftol"] = tolerance**2
    elif method == "L-BFGS-B":
        options |= {"gtol": tolerance, "ftol": tolerance**2, "maxfun": 10 * max_iterations}
    else:
        # SciPy's test of the gradient ignores the barrier term: it is also satisfied at a distance
        # from active limits. The size of the steps (`xtol`) is therefore the only criterion.
        gradient = 0.0 if _has_inequalities(problem) else tolerance**2
        options |= {"gtol": gradient, "xtol": 0.1 * tolerance, "barrier_tol": 0.1 * tolerance}
    with warnings.catch_warnings():
        for text in ("delta_grad == 0.0", "Singular Jacobian"):  # a linear or repeated constraint
            warnings.filterwarnings("ignore", message=text)
        result = scipy.optimize.minimize(
            lambda x: values(x)[0],
            np.zeros(len(problem.names)),
            jac=lambda x: jacobian(x)[0],
            method=method,
            bounds=scipy.optimize.Bounds(*problem.bounds.T),
            constraints=constraints,
            options=options,
            callback=lambda x, *_: record(x),
        )
    return np.asarray(result.x), str(result.message)


def _has_inequalities(problem: ScaledProblem) -> bool:
    """Return whether a parameter has a bound, or a constraint has different limits."""
    low, high = np.vstack([problem.bounds, problem.limits]).T
    return bool(((low < high) & (np.isfinite(low) | np.isfinite(high))).any())


def _slsqp_constraints(problem: ScaledProblem) -> Any:
    """Yield equalities, and inequalities as functions that are at least zero."""
    for j, (low, high) in enumerate(problem.limits, 1):
        if low == high:
            yield _one_sided(problem, "eq", j, 1.0, low)
            continue
        for sign, limit in ((1.0, low), (-1.0, high)):
            if np.isfinite(limit):
                yield _one_sided(problem, "ineq", j, sign, limit)


def _one_sided(problem: ScaledProblem, kind: str, j: int, sign: float, limit: float) -> Any:
    """Return a constraint of SciPy for the j-th value, with a sign and a limit."""
    return {
        "type": kind,
        "fun": lambda x: sign * (problem.values(x)[j] - limit),
        "jac": lambda x: sign * problem.jacobian(x)[j],
    }
