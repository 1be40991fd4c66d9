"""Curves of periodic motions over a parameter by harmonic balance, with folds.

A point of the curve is predicted along the tangent and corrected at right angles to it
(pseudo-arclength; see `continuation`). Its unknowns are the free increments z of
`harmonic_equations` and the parameter. Lengths are measured by z relative to the largest motion so
far, and by the parameter relative to its range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.continuation import warn_of_early_end
from dolfinx_mbd.analyses.harmonic_balance import (
    HarmonicMotion,
    check_motions,
    first_equations,
    is_solved,
    motion_of,
    solve,
)
from dolfinx_mbd.analyses.harmonic_equations import HarmonicEquations, SingularEquations
from dolfinx_mbd.analyses.periodic_motion import PeriodicError
from dolfinx_mbd.analyses.simulator import one_blas_thread
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import function, instance, integer, number, reject, vector
from dolfinx_mbd.dynamics.assembly.assembler import AssemblyError
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.results.solution import Solution

__all__ = ["HarmonicCurve", "harmonic_curve"]

_CORRECTIONS = 12  # largest number of corrections of a point
_REUSES = 4  # corrections of a point with the derivative at the point before
_SHARPEST = 0.3  # largest angle between the tangents of two points, rad
_SMOOTH = 0.1  # angle below which the next step is longer, rad
_SMALLEST = 1e-7  # smallest step, relative to the range of the parameter
_DIFFERENCE = 1e-6  # step of differences, relative to the range of the parameter
_FOLD = 1e-9  # derivative of the parameter at a fold, relative to its range
_SECANTS = 40  # largest number of steps of the search for a fold
_GROWTH = 10  # largest correction relative to the step; a longer one does not converge
_LEAST_STEP = 1e-6  # shorter steps count as this one: their corrections are round-off


class Tangent(NamedTuple):
    """Direction of a curve at a point."""

    motion: Array  # change of the Fourier coefficients x of the motion
    parameter: float  # change of the parameter


@dataclass(frozen=True, eq=False)
class HarmonicCurve:
    """Periodic motions over a parameter, in the order of the curve; see `harmonic_curve`.

    Attributes:
        parameter: Values of the parameter, shape (points,).
        motions: The motions.
        folds: Indices of the points at which the curve turns back in the parameter.

    Example:
        >>> def rocker(speed):
        ...     spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -90 * x - 4 * v)
        ...     push = mbd.JointLoad(
        ...         "push", "pin", "rotation", lambda t, x, v: 5 * np.cos(speed * t)
        ...     )
        ...     return mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> curve = mbd.analyses.harmonic_curve(
        ...     rocker, (6.0, 8.0), period=lambda speed: 2 * np.pi / speed, num_harmonics=3
        ... )
        >>> swing = curve.values(lambda motion: np.ptp(motion.joint("pin").rotation) / 2)
        >>> print(f"{swing.max():.3f} rad")  # near resonance
        0.189 rad
    """

    parameter: Array
    motions: tuple[HarmonicMotion, ...] = field(repr=False)
    folds: NDArray[np.int64]

    __repr__ = short_repr

    @cached_property
    def stable(self) -> NDArray[np.bool_]:
        """Whether small disturbances of each motion decay, shape (points,); computed at first use.

        A motion with a multiplier of the absolute value 1 is not stable.
        """
        return np.array([motion.stability == "stable" for motion in self.motions])

    def values(self, output: Callable[[HarmonicMotion], ArrayLike]) -> Array:
        """Return a quantity along the curve, shape (points, ...).

        Args:
            output: Function of a motion, for example
                ``lambda motion: np.ptp(motion.joint("pin").rotation)``.
        """
        function("output", output, "output(motion)")
        return np.array([np.asarray(output(motion)) for motion in self.motions])


@one_blas_thread()
def harmonic_curve(
    build: Callable[[float], System],
    span: tuple[float, float],
    *,
    period: Callable[[float], float],
    num_harmonics: int,
    start: Solution | None = None,
    step: float = 0.02,
    longest: float = 0.05,
    max_points: int = 500,
    tolerance: float = 1e-9,
) -> HarmonicCurve:
    """Follow periodic motions over a parameter by harmonic balance, around folds.

    The curve starts at the first value of the span. It ends where the parameter leaves the span, or
    after `max_points` points with a warning. Motions between two folds are usually unstable; see
    `stable`.

    Args:
        build: Function that returns the mechanism for a value of the parameter. All mechanisms must
            have the same bodies, joints and loads.
        span: First and last value of the parameter. The last one may be smaller.
        period: Function that returns the period, s, for a value of the parameter.
        num_harmonics: Number of harmonics of the coordinates.
        start: Run that ends near the first motion; see `harmonic_balance`.
        step: First step, relative to the length of the span.
        longest: Longest step, relative to the length of the span.
        max_points: Maximum number of points.
        tolerance: Largest unbalanced force, see `harmonic_balance`.

    Returns:
        The points of the curve and its folds.

    Raises:
        PeriodicError: There is no first motion, or the curve cannot be followed; the message
            contains the last value of the parameter.
        InputError: An argument is invalid; see `harmonic_balance`.

    Warns:
        AccuracyWarning: The harmonics do not suffice for a point; see `harmonic_balance`.
        MbdWarning: The curve has `max_points` points before the parameter leaves the span.

    Example:
        >>> def rocker(speed):
        ...     spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -90 * x - 4 * v)
        ...     push = mbd.JointLoad(
        ...         "push", "pin", "rotation", lambda t, x, v: 5 * np.cos(speed * t)
        ...     )
        ...     return mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> curve = mbd.analyses.harmonic_curve(
        ...     rocker, (2.0, 5.0), period=lambda speed: 2 * np.pi / speed, num_harmonics=3
        ... )
        >>> len(curve.folds)
        0
    """
    low, high = (number("span", value) for value in vector("span", span, 2))
    if low == high:
        reject("span", span, "two different values")
    number("step", step, positive=True, high=1.0)
    number("longest", longest, positive=True, high=1.0)
    integer("max_points", max_points, low=2)
    number("tolerance", tolerance, positive=True, high=1.0)
    function("build", build, "build(p)")
    function("period", period, "period(p)")
    curve = _Curve(build, period, (low, high), tolerance)
    curve.start(num_harmonics, start)
    curve.follow(min(step, longest), longest, max_points)
    motions = tuple(map(motion_of, curve.points))
    check_motions(motions)
    return HarmonicCurve(np.array(curve.parameters), motions, np.array(curve.folds, dtype=np.int64))


class _Curve:
    """The points of a curve so far."""

    def __init__(
        self,
        build: Callable[[float], System],
        period: Callable[[float], float],
        span: tuple[float, float],
        tolerance: float,
    ) -> None:
        self.build, self.period, self.span, self.tolerance = build, period, span, tolerance
        self.range = abs(span[1] - span[0])
        self.parameters: list[float] = []
        self.points: list[HarmonicEquations] = []
        self.folds: list[int] = []
        self._unit = 1e-300  # unit of z: the largest motion so far
        # Last derivative of the unbalanced forces with respect to the parameter, (instants, nv)
        self._slope: Array = np.zeros(0)

    def start(self, num_harmonics: int, start: Solution | None) -> None:
        """Find the first point."""
        p = self.span[0]
        point = first_equations(self._system(p), self._period(p), num_harmonics, start)
        solve(point, _CORRECTIONS, self.tolerance)
        self._add(p, point)

    def _system(self, p: float) -> System:
        """Return the mechanism for a value of the parameter."""
        return instance("build(p)", self.build(p), System)  # type: ignore[no-any-return]

    def _period(self, p: float) -> float:
        """Return the period for a value of the parameter, s."""
        return number("period(p)", self.period(p), positive=True, unit="s")

    def _add(self, p: float, point: HarmonicEquations) -> None:
        """Add a point; the unit of z grows with the motion."""
        self.parameters.append(p)
        self.points.append(point)
        self._unit = max(self._unit, float(np.linalg.norm(point.coordinates(point.x))))

    def _equations_at(self, p: float, point: HarmonicEquations) -> HarmonicEquations:
        """Return the equations for a value of the parameter at the motion of a point."""
        system = self._system(p)
        if system.num_velocities != point.system.num_velocities:
            raise InputError(
                f"build({p:g}) returns a mechanism with {system.num_velocities} velocities, and "
                f"another one with {point.system.num_velocities}; all mechanisms must have the "
                "same parts"
            )
        return point.at_parameter(system, self._period(p))

    def follow(self, step: float, longest: float, max_points: int) -> None:
        """Add points until the parameter leaves the span.

        Args:
            step: First distance between two points along the curve, in the units of the tangents:
                the increments relative to the largest motion, the parameter relative to the span.
            longest: Largest distance in these units.
            max_points: Maximum number of points.
        """
        p, point = self.parameters[-1], self.points[-1]
        begin, end = self.span
        tangent = self._tangent(p, point, Tangent(np.zeros_like(point.x), end - begin))
        while len(self.points) < max_points:
            new = self._correct(p, point, tangent, step)
            next_tangent = None if new is None else self._tangent(*new, tangent)
            angle = np.pi if next_tangent is None else self._angle(point, tangent, next_tangent)
            if new is None or next_tangent is None or angle > _SHARPEST:
                step *= 0.5
                if step < _SMALLEST:
                    raise PeriodicError(
                        "the curve of periodic motions cannot be followed beyond the value "
                        f"{p:.10g} of the parameter: it ends or branches there, or the mechanism "
                        "is not a smooth function of the parameter"
                    )
                continue
            value, corrected = new
            outside = not min(self.span) <= value <= max(self.span)
            if tangent.parameter * next_tangent.parameter < 0:
                self._add_fold(p, point, tangent, step)
            if outside:
                end = min(max(value, min(self.span)), max(self.span))
                fraction = (end - p) / (value - p)
                last = self._equations_at(end, point)
                last.x = point.x + fraction * (corrected.x - point.x)
                solve(last, _CORRECTIONS, self.tolerance)
                self._add(end, last)
                return
            self._add(*new)
            (p, point), tangent = new, next_tangent
            if angle < _SMOOTH:
                step = min(1.5 * step, longest)
        warn_of_early_end(p, self.span, max_points)

    def _add_fold(self, p: float, point: HarmonicEquations, tangent: Tangent, step: float) -> None:
        """Add the point within a step at which the parameter turns back, found by secants."""
        # Distances along the tangent, and the rates of the parameter there
        (low, low_rate), (high, high_rate) = (0.0, tangent.parameter), (step, 0.0)
        last: tuple[float, HarmonicEquations] | None = None
        for k in range(_SECANTS):
            middle = 0.5 * (low + high)
            # `high` has a rate only after bisections: that at the end of the step is not computed
            if k > 1 and high_rate * low_rate < 0:
                middle = (low * high_rate - high * low_rate) / (high_rate - low_rate)
            new = self._correct(p, point, tangent, middle)
            if new is None:
                break
            rate, last = self._tangent(*new, tangent).parameter, new
            if rate * low_rate > 0:
                low, low_rate = middle, rate
            else:
                high, high_rate = middle, rate
            if abs(rate) <= _FOLD * self.range:
                break
        if last is not None and min(self.span) <= last[0] <= max(self.span):
            self.folds.append(len(self.points))
            self._add(*last)

    def _derivative(self, p: float, point: HarmonicEquations) -> Array:
        """Return the derivative of the projected unbalanced forces with respect to the parameter p.

        Its shape is (instants · m,), where m is the number of increments that the constraints
        permit. That of all forces is kept for the next corrections (`_slope`).
        """
        h = _DIFFERENCE * self.range
        centre = min(max(p, min(self.span) + h), max(self.span) - h)  # stay within the span
        after, before = (
            self._equations_at(value, point).forces() for value in (centre + h, centre - h)
        )
        self._slope = np.asarray((after - before) / (2 * h))
        return point.projected(self._slope)

    def _tangent_row(self, point: HarmonicEquations, tangent: Tangent) -> Array:
        """Return the row whose product with (z, p) is the inner product with a tangent.

        z and p are divided by their units.
        """
        z = point.coordinates(tangent.motion)
        return np.append(z / self._unit**2, tangent.parameter / self.range**2)

    def _tangent(self, p: float, point: HarmonicEquations, along: Tangent) -> Tangent:
        """Return the tangent with unit length, in the sense of another one."""
        slope, (matrix, _) = self._derivative(p, point), point.linear_system()
        row = self._tangent_row(point, along)
        bordered = np.block([[matrix, slope[:, None]], [row[:-1], row[-1:]]])
        right = np.zeros(len(bordered))
        right[-1] = 1.0
        solution = _solution(bordered, right)
        length = np.sqrt(
            float(solution[:-1] @ solution[:-1]) / self._unit**2 + solution[-1] ** 2 / self.range**2
        )
        # a direction: only a finite change needs the curvature of the constraints (`fitted`)
        return Tangent(
            point.change(solution[:-1] / length, fitted=False), float(solution[-1] / length)
        )

    def _angle(self, point: HarmonicEquations, first: Tangent, second: Tangent) -> float:
        """Return the angle between two tangents, rad."""
        a, b = (
            np.append(point.coordinates(x) / self._unit, dp / self.range)
            for x, dp in (first, second)
        )
        return float(np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1)))

    def _correct(
        self, p: float, point: HarmonicEquations, tangent: Tangent, step: float
    ) -> tuple[float, HarmonicEquations] | None:
        """Return the point at a distance along the tangent; None if there is no convergence."""
        value, slope = p + step * tangent.parameter, self._slope
        try:
            new = self._equations_at(value, point)
            new.x += step * tangent.motion
            for k in range(_CORRECTIONS):
                new.evaluate()
                if is_solved(new, self.tolerance):
                    return value, new
                by_p = new.projected(slope) if k < _REUSES else self._derivative(value, new)
                matrix, right = new.linear_system()
                row = self._tangent_row(new, tangent)
                bordered = np.block([[matrix, by_p[:, None]], [row[:-1], row[-1:]]])
                solution = _solution(bordered, np.append(right, 0.0))
                if (
                    not np.linalg.norm(solution[:-1])
                    <= _GROWTH * max(step, _LEAST_STEP) * self._unit
                ):
                    return None  # it diverges, or is NaN
                change = new.change(solution[:-1])
                value += float(solution[-1])
                new = self._equations_at(value, new)
                new.x += change
        except (AssemblyError, SingularEquations, np.linalg.LinAlgError):
            return None
        return None


def _solution(matrix: Array, right: Array) -> Any:
    """Return the solution of equations with different units: rows and columns are scaled."""
    row_sizes = np.abs(matrix).max(axis=1)
    scaled = matrix / row_sizes[:, None]
    column_sizes = np.abs(scaled).max(axis=0)
    return np.linalg.solve(scaled / column_sizes, right / row_sizes) / column_sizes
