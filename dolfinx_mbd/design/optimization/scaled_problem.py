"""Objective and constraints in scaled parameters, evaluated once per point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import number, reject
from dolfinx_mbd.errors import SolverError

AGREEMENT = 1e-6  # relative difference between ranks up to which rank 0 provides the number
FARTHEST = 1e30  # change of a parameter, in scales, at which an iteration ends
FLAT = 1e-3  # smallest scale of the objective, relative to its value at the start


class DivergedError(Exception):
    """The iteration moved a parameter so far that the functions might overflow."""


class ScaledProblem:
    """The functions f(x) and g(x) of scaled parameters x = (value − offset)/scale.

    The first row of values and derivatives belongs to the objective, the others to the constraints.

    Args:
        functions: The objective and the constraints, by name.
        model: Function that computes the argument of the functions from the values, or None.
        start: Values of the parameters at x = 0, by name.
        scale: Scales of the parameters, shape (n,).
        bounds: Bounds of the parameters, shape (n, 2).
        limits: Limits of the constraints, shape (m, 2).
        step: Relative step of differences, for functions without derivatives.
        comm: Communicator whose ranks must agree, or None.

    Attributes:
        functions: The objective and the constraints, by name.
        names: Names of the parameters.
        offset: Values of the parameters at x = 0.
        scale: Scales of the parameters.
        bounds: Bounds of x, shape (n, 2).
        limits: Scaled limits of the constraints, shape (m, 2).
        sizes: Scales of the objective and of the constraints, shape (1 + m,).
        evaluations: Number of points at which the functions were evaluated.
        farthest: Change of a parameter, in scales, beyond which `DivergedError` is raised.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[[Any], Any]],
        model: Callable[[Mapping[str, float]], Any] | None,
        start: Mapping[str, float],
        scale: Array,
        bounds: Array,
        limits: Array,
        *,
        step: float,
        comm: Any,
    ) -> None:
        self.names, self.scale = list(start), scale
        self.offset = np.array(list(start.values()), dtype=float)
        self.bounds = (bounds - self.offset[:, None]) / scale[:, None]
        self.functions, self._model, self._step, self._comm = functions, model, step, comm
        self.farthest = FARTHEST
        self._results: dict[bytes, tuple[Array, Array]] = {}
        self._jacobians: dict[bytes, Array] = {}
        self.sizes = np.ones(len(functions))
        self.limits = limits  # unscaled until `sizes` is known
        x = np.zeros(len(scale))
        value, slope = np.abs(self.values(x)), np.linalg.norm(self.jacobian(x), axis=1)
        self.sizes[0] = max(slope[0], FLAT * value[0]) or 1.0
        for j, pair in enumerate(limits, 1):
            size = np.abs(pair[np.isfinite(pair)]).max()
            self.sizes[j] = size or slope[j] or value[j] or 1.0
        self.limits = limits / self.sizes[1:, None]

    @property
    def evaluations(self) -> int:
        """The number of points at which the functions were evaluated."""
        return len(self._results)

    @property
    def last(self) -> Array:
        """The last x at which the functions were evaluated."""
        return np.frombuffer(list(self._results)[-1])

    def point(self, x: Array) -> dict[str, float]:
        """Return the values of the parameters by name, inside their bounds."""
        numbers = self.offset + np.clip(x, *self.bounds.T) * self.scale
        return {name: float(v) for name, v in zip(self.names, numbers, strict=True)}

    def values(self, x: Array) -> Array:
        """Return the scaled objective and constraints, shape (1 + m,)."""
        values, _ = self._evaluated(x)
        return np.asarray(values / self.sizes)

    def jacobian(self, x: Array) -> Array:
        """Return the derivatives of `values`, shape (1 + m, n)."""
        x = np.clip(x, *self.bounds.T)
        key = x.tobytes()
        if key not in self._jacobians:
            _, derivatives = self._evaluated(x)
            J = derivatives.copy()
            if missing := [j for j in range(len(J)) if np.isnan(J[j]).any()]:
                J[missing] = self._differences(x)[missing]
            self._jacobians[key] = J
        return np.asarray(self._jacobians[key] / self.sizes[:, None])

    def _evaluated(self, x: Array) -> tuple[Array, Array]:
        """Return unscaled values (1 + m,) and derivatives by x (1 + m, n), NaN if unknown."""
        x = np.clip(x, *self.bounds.T)
        key = x.tobytes()
        if key not in self._results:
            if np.abs(x).max() > self.farthest:
                raise DivergedError
            point = self.point(x)
            state = point if self._model is None else self._model(dict(point))
            rows = [self._row(name, f(state), point) for name, f in self.functions.items()]
            table = self._agreed(np.array(rows), point)
            self._results[key] = table[:, 0], table[:, 1:] * self.scale
        return self._results[key]

    def _row(self, name: str, result: Any, point: Mapping[str, float]) -> list[float]:
        """Return the value of a function and its derivatives."""
        if not isinstance(result, tuple):
            return [number(f"{name} at {point}", result)] + len(point) * [np.nan]
        if len(result) != 2 or not isinstance(result[1], Mapping) or set(point) - set(result[1]):
            expected = "a number, or a pair of a number and its derivatives by all parameters"
            reject(f"the result of {name}", result, expected)
        value = number(f"{name} at {point}", result[0])
        return [value] + [number(f"{name}: derivative by {k}", result[1][k]) for k in point]

    def _agreed(self, table: Array, point: Mapping[str, float]) -> Array:
        """Return the numbers of rank 0; raise an error if those of other ranks differ."""
        if self._comm is None:
            return table
        tables = self._comm.allgather(table)
        spread = np.ptp(np.nan_to_num(tables), axis=0)
        limit = AGREEMENT * np.linalg.norm(np.nan_to_num(tables[0]), axis=1, keepdims=True)
        if (spread > limit).any():
            wrong = [k for k, row in zip(self.functions, spread > limit, strict=True) if row.any()]
            raise SolverError(f"the ranks do not agree on {', '.join(wrong)} at {point}")
        return np.asarray(tables[0])

    def _differences(self, x: Array) -> Array:
        """Return differences of second order, which are central except near a bound.

        The step grows with a parameter that is far away, so that round-off does not hide it.
        """
        columns = []
        for k, (low, high) in enumerate(self.bounds):
            step = self._step * max(1.0, abs(x[k]))
            unit = step * np.eye(len(x))[k]
            below, above = x[k] - step >= low, x[k] + step <= high
            if below and above:
                change = self._evaluated(x + unit)[0] - self._evaluated(x - unit)[0]
                columns.append(change / (2 * step))
                continue
            sign = 1.0 if above else -1.0
            first, second = (self._evaluated(x + sign * s * unit)[0] for s in (1, 2))
            change = 4 * first - second - 3 * self._evaluated(x)[0]
            columns.append(sign * change / (2 * step))
        return np.column_stack(columns)
