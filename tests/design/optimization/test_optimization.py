"""Minimization: closed forms, all methods, scales, activity, and errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import dolfinx_mbd as mbd
from dolfinx_mbd.design.optimization.optimizers import FORMER
from dolfinx_mbd.design.optimization.optimum import optimum
from dolfinx_mbd.design.optimization.scaled_problem import ScaledProblem
from dolfinx_mbd.errors import AccuracyWarning, InputError, SolverError

METHODS = ["SLSQP", "trust-constr"]
UNCONSTRAINED = ["L-BFGS-B"]


def rosenbrock(p: Any) -> tuple[float, dict[str, float]]:
    """Return 1e-9 times Rosenbrock's function of x and 1e6 y, with derivatives by x and y."""
    x, y = p["x"], 1e6 * p["y"]
    value = 100 * (y - x * x) ** 2 + (1 - x) ** 2
    slope = {"x": -400 * x * (y - x * x) - 2 * (1 - x), "y": 1e6 * 200 * (y - x * x)}
    return 1e-9 * value, {k: 1e-9 * v for k, v in slope.items()}


@pytest.mark.parametrize("method", [*METHODS, *UNCONSTRAINED])
@pytest.mark.parametrize("exact", [True, False])
def test_rosenbrock(method: Any, exact: bool) -> None:
    """The minimum is at (1, 1), whatever the units; without derivatives, too."""
    objective = rosenbrock if exact else lambda p: rosenbrock(p)[0]
    result = mbd.minimize(
        objective,
        {"x": -1.2, "y": 1e-6},
        method=method,
        scale={"x": 1.0},
        tolerance=1e-6,
        max_iterations=500,
    )
    assert result.values["x"] == pytest.approx(1.0, abs=1e-3)
    assert result.values["y"] == pytest.approx(1e-6, rel=2e-3)
    assert not result.active and result.history[0].values == {"x": -1.2, "y": 1e-6}


@pytest.mark.parametrize("method", [*METHODS, *UNCONSTRAINED])
def test_bound(method: Any) -> None:
    """Rosenbrock's function f with x at most 0.5: y = x² = 0.25, df/dx = -2 (1 - x) = -1."""
    result = mbd.minimize(
        rosenbrock,
        {"x": -1.2, "y": 1e-6},
        bounds={"x": (-2.0, 0.5), "y": (-2e-6, 2e-6)},
        method=method,
        tolerance=1e-7,
        max_iterations=500,
    )
    assert result.values["x"] == pytest.approx(0.5, abs=1e-4)
    assert result.values["y"] == pytest.approx(0.25e-6, rel=1e-3)
    assert result.active == {"x": "high"}
    assert result.multipliers["x"] == pytest.approx(-1e-9, rel=1e-3)


def volume(p: Any) -> tuple[float, dict[str, float]]:
    """Return the volume of a box with its derivatives."""
    value = p["a"] * p["b"] * p["c"]
    return value, {k: value / p[k] for k in "abc"}


def surface(p: Any) -> tuple[float, dict[str, float]]:
    """Return the surface of a box with its derivatives."""
    a, b, c = p["a"], p["b"], p["c"]
    return 2 * (a * b + b * c + c * a), {"a": 2 * (b + c), "b": 2 * (a + c), "c": 2 * (a + b)}


@pytest.mark.parametrize("method", METHODS)
def test_box(method: Any) -> None:
    """The box of volume 8 with least surface is a cube of edge 2; dA/dV = 4 V^(-1/3) = 2.

    If the edge a is at most 1, then b = c = √8, and at constant volume the surface changes by
    dA/da = 4 √2 - 16 = -10.3.
    """
    limits = {"volume": mbd.design.Limits(volume, low=8.0)}
    start = {"a": 1.0, "b": 3.0, "c": 5.0}
    cube = mbd.minimize(surface, start, limits, method=method, tolerance=1e-7, max_iterations=500)
    assert list(cube.values.values()) == pytest.approx([2.0, 2.0, 2.0], rel=1e-4)
    assert cube.objective == pytest.approx(24.0, rel=1e-6)
    assert cube.active == {"volume": "low"} and cube.constraints["volume"] == pytest.approx(8.0)
    assert cube.multipliers["volume"] == pytest.approx(2.0, rel=1e-4)
    bounds = {"a": (0.1, 1.0)}
    bounded = mbd.minimize(
        surface, start, limits, method=method, tolerance=1e-7, max_iterations=500, bounds=bounds
    )
    assert bounded.values["b"] == pytest.approx(8**0.5, rel=1e-4)
    assert bounded.active == {"volume": "low", "a": "high"}
    b = 8**0.5
    slope = 4 * b - (2 * 1.0 + 2 * b) / b * 8  # dA/da − (dA/db)/(dV/db) dV/da
    assert bounded.multipliers["a"] == pytest.approx(slope, rel=1e-3)


def strip(low: float, high: float) -> tuple[dict[str, mbd.design.Limits], float]:
    """Return limits of the frequency and the stiffness of a strip, and its least area h w.

    The width is w and the height h. The frequency, 800 w, is at least `low`, and the stiffness,
    w h³, at least `high`.
    """

    def frequency(p: Any) -> tuple[float, dict[str, float]]:
        return 800 * p["w"], {"h": 0.0, "w": 800.0}

    def stiffness(p: Any) -> tuple[float, dict[str, float]]:
        w, h = p["w"], p["h"]
        return w * h**3, {"h": 3 * w * h**2, "w": h**3}

    w = low / 800
    return {"f": mbd.design.Limits(frequency, low), "k": mbd.design.Limits(stiffness, high)}, w * (
        high / w
    ) ** (1 / 3)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6])
@pytest.mark.parametrize(("low", "high"), [(15.0, 6e-7), (20.0, 1e-6)])
def test_two_active_limits(method: Any, tolerance: float, low: float, high: float) -> None:
    """The minimum is where both limits are active; the result is at both within the tolerance."""
    limits, least = strip(low, high)

    def area(p: Any) -> tuple[float, dict[str, float]]:
        return p["h"] * p["w"], {"h": p["w"], "w": p["h"]}

    bounds = {"h": (0.01, 0.08), "w": (0.005, 0.06)}
    start = {"h": 0.04, "w": 0.03}
    result = mbd.minimize(
        area, start, limits, bounds=bounds, method=method, tolerance=tolerance, max_iterations=500
    )
    assert result.objective == pytest.approx(least, rel=tolerance)
    assert result.active == {"f": "low", "k": "low"}
    assert result.multipliers["k"] == pytest.approx(least / 3 / high, rel=10 * tolerance)


def test_the_residual_includes_the_distance_from_active_limits() -> None:
    """A point that ends at 1.0005 instead of 1 can still decrease by 0.0005."""
    problem = ScaledProblem(
        {"objective": lambda p: (p["x"], {"x": 1.0})},
        None,
        {"x": 3.0},
        np.ones(1),
        np.array([[1.0, 5.0]]),
        np.zeros((0, 2)),
        step=1e-3,
        comm=None,
    )
    # The points of the iteration contain x - 3; the last one, x = 1.0005, is close to the bound 1
    result = optimum(problem, [np.zeros(1), np.array([-1.9995])], "ended", 1e-4)
    assert result.active == {"x": "low"}
    assert result.residual == pytest.approx(5e-4, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_equality_constraint_with_numerical_gradients(method: Any) -> None:
    """The point of the line x + 2y = 3 that is closest to the origin is (0.6, 1.2)."""
    limits = {"line": mbd.design.Limits(lambda p: p["x"] + 2 * p["y"], 3.0, 3.0)}
    result = mbd.minimize(
        lambda p: p["x"] ** 2 + p["y"] ** 2,
        {"x": 2.0, "y": -1.0},
        limits,
        method=method,
        tolerance=1e-7,
    )
    assert list(result.values.values()) == pytest.approx([0.6, 1.2], rel=1e-4)
    assert result.active == {"line": "equal"}
    assert result.multipliers["line"] == pytest.approx(2 * 3 / 5, rel=1e-3)  # d(c²/5)/dc, c = 3


def test_one_evaluation_per_point() -> None:
    """Objective and constraints receive one result of the model, computed once per point."""
    calls = []

    def model(p: Any) -> Any:
        calls.append(p)
        return volume(p), surface(p)

    limits = {"volume": mbd.design.Limits(lambda state: state[0], low=8.0)}
    start = {"a": 1.0, "b": 3.0, "c": 5.0}
    result = mbd.minimize(lambda state: state[1], start, limits, model=model)
    assert result.evaluations == len(calls) == len({tuple(p.values()) for p in calls})
    assert len(result.history) <= len(calls) < 30
    direct = mbd.minimize(surface, start, {"volume": mbd.design.Limits(volume, low=8.0)})
    assert direct.values == result.values


def test_differences_stay_within_bounds() -> None:
    seen: list[float] = []

    def root(p: Any) -> float:
        seen.append(p["x"])
        return float(np.sqrt(p["x"]) - p["x"])

    result = mbd.minimize(root, {"x": 1.0}, bounds={"x": (0.0, 1.0)})
    assert min(seen) >= 0.0 and max(seen) <= 1.0 and result.active == {"x": "high"}
    assert result.multipliers["x"] == pytest.approx(-0.5, abs=1e-4)  # d(√x - x)/dx at x = 1


@pytest.mark.parametrize("method", METHODS)
def test_contradicting_constraints(method: Any) -> None:
    limits = {
        "large": mbd.design.Limits(lambda p: (p["x"], {"x": 1.0}), low=2.0),
        "small": mbd.design.Limits(lambda p: (p["x"], {"x": 1.0}), high=1.0),
    }
    with pytest.raises(SolverError, match=r"violates.*(large|small).*may contradict"):
        mbd.minimize(lambda p: (p["x"] ** 2, {"x": 2 * p["x"]}), {"x": 3.0}, limits, method=method)


def test_early_end_is_a_warning() -> None:
    with pytest.warns(AccuracyWarning, match="may not be a minimum"):
        mbd.minimize(rosenbrock, {"x": -1.2, "y": 1e-6}, scale={"x": 1.0}, max_iterations=2)


@pytest.mark.parametrize("method", ["SLSQP", "L-BFGS-B"])
def test_objective_without_a_minimum(method: Any) -> None:
    def line(p: Any) -> tuple[float, dict[str, float]]:
        return p["x"] + p["y"] ** 2, {"x": 1.0, "y": 2 * p["y"]}

    with pytest.raises(SolverError, match=r"without a limit: x.*give bounds"):
        mbd.minimize(line, {"x": 1.0, "y": 1.0}, method=method)
    with pytest.raises(SolverError, match=r"without a limit: x.*give bounds"):
        mbd.minimize(lambda p: p["x"], {"x": 1.0}, method=method)  # derivatives by differences
    with pytest.raises(SolverError, match=r"without a limit: x.*the iteration diverged"):
        mbd.minimize(lambda p: (-(p["x"] ** 4), {"x": -4 * p["x"] ** 3}), {"x": 1.0}, method=method)
    bounded = mbd.minimize(line, {"x": 1.0, "y": 1.0}, method=method, bounds={"x": (-1e9, 2.0)})
    assert bounded.active == {"x": "low"}


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_errors_of_functions(method: Any) -> None:
    """Errors of the user's functions arrive unchanged, through SciPy."""

    def broken(p: Any) -> tuple[float, dict[str, float]]:
        if p["x"] != 1.0:
            raise ZeroDivisionError("hello")
        return 1.0, {"x": 1.0}

    with pytest.raises(ZeroDivisionError, match="hello"):
        mbd.minimize(broken, {"x": 1.0}, method=method)
    with pytest.raises(InputError, match=r"objective at .*finite number"):
        mbd.minimize(lambda p: np.nan, {"x": 1.0}, method=method)


@pytest.mark.parametrize(("former", "method"), FORMER.items())
def test_former_methods(former: Any, method: Any) -> None:
    """A warning names the method that replaces one of PETSc TAO."""
    bounds = {"x": (-2.0, 0.5), "y": (-2e-6, 2e-6)}
    start = {"x": -1.2, "y": 1e-6}
    with pytest.warns(DeprecationWarning, match=f"write '{method}'"):
        result = mbd.minimize(rosenbrock, start, bounds=bounds, method=former)
    assert result.values == mbd.minimize(rosenbrock, start, bounds=bounds, method=method).values


def test_bad_input() -> None:
    arguments = {"objective": lambda p: (p["x"] ** 2, {"x": 2 * p["x"]}), "start": {"x": 1.0}}
    limit = mbd.design.Limits(lambda p: p["x"], high=1.0)
    for text, changes in {
        "does not accept constraints": {"constraints": {"g": limit}, "method": "L-BFGS-B"},
        "already the name of a parameter": {"constraints": {"x": limit}},
        "starts at zero": {"start": {"x": 0.0}},
        "within their bounds": {"bounds": {"x": (2.0, 3.0)}},
        "unknown parameter": {"bounds": {"y": (2.0, 3.0)}},
        "derivatives by all parameters": {"start": {"x": 1.0, "y": 2.0}},
        "must be one of": {"method": "Newton"},
        "scale: x": {"scale": {"x": -1.0}},
    }.items():
        with pytest.raises(InputError, match=text):
            mbd.minimize(**arguments | changes)
    with pytest.raises(InputError, match="need low, high"):
        mbd.design.Limits(lambda p: 1.0)
    with pytest.raises(InputError, match="at most high"):
        mbd.design.Limits(lambda p: 1.0, low=2.0, high=1.0)


def test_ranks_agree(comm: MPI.Intracomm) -> None:
    """Numbers that differ between ranks raise an error on all ranks, without a deadlock."""

    def sums(p: Any) -> float:
        return float((p["x"] - 0.3) ** 2 * (1 + comm.rank))

    if comm.size == 1:
        assert mbd.minimize(sums, {"x": 1.0}, comm=comm).values["x"] == pytest.approx(0.3)
        return
    with pytest.raises(SolverError, match="ranks do not agree on objective"):
        mbd.minimize(sums, {"x": 1.0}, comm=comm)


def test_wrong_derivatives_are_not_an_objective_without_a_limit() -> None:
    with pytest.raises(SolverError, match="the derivatives contradict the values"):
        mbd.minimize(lambda p: ((p["x"] - 1) ** 2, {"x": -2 * (p["x"] - 1)}), {"x": 3.0})
