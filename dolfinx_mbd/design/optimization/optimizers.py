"""Optimizers of SciPy and PETSc TAO for a scaled problem."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.optimization.scaled_problem import ScaledProblem

CONSTRAINED = ("SLSQP", "trust-constr", "ALMM")
"""Methods that accept constraints."""

METHODS = (*CONSTRAINED, "L-BFGS-B", "BLMVM", "BQNLS")
"""Methods of SciPy, and of PETSc TAO: ALMM, BLMVM and BQNLS."""

TAO_METHODS = ("ALMM", "BLMVM", "BQNLS")

Record = Callable[[Array], None]


def solve_with_scipy(
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
    return {
        "type": kind,
        "fun": lambda x: sign * (problem.values(x)[j] - limit),
        "jac": lambda x: sign * problem.jacobian(x)[j],
    }


def solve_with_tao(
    problem: ScaledProblem, method: str, tolerance: float, max_iterations: int, record: Record
) -> tuple[Array, str]:
    """Return the last point and the reason for the end of the iteration.

    With ALMM, each constraint has a slack s with g(x) − s = 0, and the limits are the bounds of s.
    ALMM needs constraints; without any, BQNLS is used. Each rank solves the same problem.
    """
    n, m = len(problem.names), len(problem.limits)
    errors: list[Exception] = []

    def evaluated(f: Callable[[Array], Array], X: PETSc.Vec) -> Array:
        """Return f(x), and save an error of a user's function, because PETSc hides it."""
        try:
            return f(X.array_r[:n].copy())
        except Exception as error:
            errors.append(error)
            raise

    def objective(tao: Any, X: PETSc.Vec, G: PETSc.Vec) -> float:
        gradient: Array = np.zeros(n + m)
        gradient[:n] = evaluated(lambda x: problem.jacobian(x)[0], X)
        G.setArray(gradient)
        return float(evaluated(problem.values, X)[0])

    def residual(tao: Any, X: PETSc.Vec, C: PETSc.Vec) -> None:
        C.setArray(evaluated(problem.values, X)[1:] - X.array_r[n:])

    def jacobian(tao: Any, X: PETSc.Vec, J: PETSc.Mat, P: PETSc.Mat) -> None:
        rows = np.hstack([evaluated(problem.jacobian, X)[1:], -np.eye(m)])
        J.setValues(range(m), range(n + m), rows)
        J.assemble()

    comm = PETSc.COMM_SELF
    edges = np.clip(np.vstack([problem.bounds, problem.limits]), PETSc.NINFINITY, PETSc.INFINITY)
    start = np.zeros(n + m)
    start[n:] = np.clip(problem.values(start[:n])[1:], *problem.limits.T)
    x, *box = (PETSc.Vec().createWithArray(a.copy(), comm=comm) for a in (start, *edges.T))
    gradient = x.duplicate()
    tao = PETSc.TAO().create(comm)
    tao.setType(method.lower() if m or method != "ALMM" else "bqnls")
    tao.setObjectiveGradient(objective, gradient)
    objects = [tao, x, gradient, *box]
    if m:
        C = PETSc.Vec().createSeq(m, comm=comm)
        J = PETSc.Mat().createDense([m, n + m], comm=comm)
        J.setUp()
        tao.setEqualityConstraints(residual, C)
        tao.setJacobianEquality(jacobian, J, J)
        tao.setConstraintTolerances(tolerance, 0.0)
        objects += [C, J]
    tao.setVariableBounds(tuple(box))
    tao.setSolution(x)
    tao.setTolerances(gatol=tolerance, grtol=0.0, gttol=0.0)
    tao.setMaximumIterations(max_iterations)
    points: list[Array] = []

    def monitor(tao: Any) -> None:
        points.append(tao.getSolution().array_r[:n].copy())
        record(points[-1])

    tao.setMonitor(monitor)
    tao.setFromOptions()
    names = {v: k for k, v in vars(PETSc.TAO.ConvergedReason).items() if isinstance(v, int)}
    try:
        tao.solve()
        reason = tao.getConvergedReason()
        point, message = x.array_r[:n].copy(), f"PETSc TAO: {names.get(reason, reason)}"
    except PETSc.Error as error:
        if errors or not points:
            raise (errors[0] if errors else error) from None
        point, message = points[-1], f"PETSc TAO: error {error.ierr}"
    for item in objects:
        item.destroy()
    return point, message
