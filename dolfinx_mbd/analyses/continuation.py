"""Curves of equilibria and steady rotations over a parameter, with folds.

The unknowns are the free motions z of `small_motions` and the parameter p. A point of the curve is
predicted along the tangent and corrected at right angles to it (pseudo-arclength), so that the
curve passes folds, where it turns back in p:

    [N'KN  f_p] (dz)     (f)
    [ t_z  t_p] (dp) = - (0)

f are the unbalanced forces of the free motions and f_p is their derivative with respect to p, a
central difference. Lengths along the curve are measured by z relative to the length of the curve in
z so far, and by p relative to its range.

References:
    H. B. Keller, Numerical solution of bifurcation and nonlinear eigenvalue problems, in
    Applications of Bifurcation Theory, Academic Press 1977.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analyses.balance import (
    check_steady,
    is_unstable,
    restore_constraints,
    set_and_linearize,
)
from dolfinx_mbd.analyses.equilibrium import equilibrium
from dolfinx_mbd.analyses.small_motions import Axes, free_directions
from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import function, instance, integer, number, reject, vector
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.errors import InputError, MbdWarning, warn
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.deformation_checks import check_deformation

__all__ = ["EquilibriumCurve", "continuation"]

_CORRECTIONS = 12  # largest number of corrections of a point
_REUSES = 4  # corrections of a point with the derivative at the point before
_SHARPEST = 0.3  # largest angle between the tangents of two points, rad
_SMOOTH = 0.1  # angle below which the next step is longer, rad
_SMALLEST = 1e-7  # smallest step, relative to the range of the parameter
_DIFFERENCE = 1e-6  # step of differences, relative to the range of the parameter
_RANK = 1e-13  # singular values below this fraction of the largest are ignored
_FOLD = 1e-10  # error of a fold or of the end, relative to the range of the parameter
_SECANTS = 40  # largest number of steps of the search for a fold
_BISECTIONS = 60  # largest number of steps of the search for the end of the span
_FIRST_UNIT = 0.1  # unit of z, relative to its linear change over the range of the parameter
_GROWTH = 10.0  # largest correction relative to the step; a longer one does not converge
_LEAST_LIMIT = 1e-6  # corrections up to this size are permitted at any step, because of round-off


@dataclass(frozen=True, eq=False)
class EquilibriumCurve:
    """Equilibria over a parameter, in the order of the curve; see `continuation`.

    Attributes:
        parameter: Values of the parameter, shape (points,).
        states: The equilibria.
        stable: Whether small disturbances remain small, shape (points,).
        folds: Indices of the points at which the curve turns back in the parameter.
        system: Function that returns the mechanism for a value of the parameter.

    Example:
        >>> def loaded(tip_force):
        ...     spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -40.0 * x)
        ...     push = mbd.force("push", bob.frame("pin"), (0.0, -tip_force, 0.0))
        ...     return mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> curve = mbd.analyses.continuation(loaded, (0.0, 10.0))
        >>> bool(curve.stable.all()), len(curve.folds)
        (True, 0)
    """

    parameter: Array
    states: tuple[State, ...] = field(repr=False)
    stable: NDArray[np.bool_]
    folds: NDArray[np.int64]
    system: Callable[[float], System] = field(repr=False)

    __repr__ = short_repr

    def values(self, output: Callable[[System, State], ArrayLike]) -> Array:
        """Return a quantity along the curve, shape (points, ...).

        Args:
            output: Function of the mechanism and the state, for example
                ``lambda system, state: state.q[1]``.
        """
        function("output", output, "output(system, state)")
        pairs = zip(map(float, self.parameter), self.states, strict=True)
        return np.array([np.asarray(output(self.system(p), state)) for p, state in pairs])


def continuation(
    build: Callable[[float], System] | System,
    span: tuple[float, float],
    *,
    spin: Callable[[float], ArrayLike] | None = None,
    start: State | None = None,
    step: float = 0.02,
    longest: float = 0.05,
    max_points: int = 500,
    tolerance: float = 1e-9,
) -> EquilibriumCurve:
    """Follow a curve of equilibria or steady rotations over a parameter, around folds.

    The curve starts at the first value of the span. It ends where the parameter leaves the span, or
    after `max_points` points with a warning.

    Args:
        build: The mechanism, or a function that returns it for a value of the parameter. All
            mechanisms must have the same bodies, joints and loads.
        span: First and last value of the parameter. The last one may be smaller.
        spin: Function that returns the angular velocity of the whole mechanism, shape (3,), rad/s,
            for a value of the parameter; by default the mechanism is at rest.
        start: State near the first equilibrium; by default the initial position of the bodies.
        step: First step, relative to the length of the span.
        longest: Longest step, relative to the length of the span.
        max_points: Maximum number of points.
        tolerance: Largest unbalanced force, see `equilibrium`.

    Returns:
        The points of the curve, with stability and folds.

    Warns:
        MbdWarning: The curve has `max_points` points before the parameter leaves the span.

    Raises:
        EquilibriumError: There is no first equilibrium, or the curve cannot be followed; the
            message contains the last value of the parameter.
        InputError: An argument is invalid.

    Example:
        A stiff support of an unbalanced disc, over the speed:

        >>> axes = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])  # the third axis is along x
        >>> ends = mbd.Ground({"o": mbd.Frame((0, 0, 0), axes)})
        >>> frames = {"o": mbd.Frame((0, 0, 0), axes)}
        >>> disc = mbd.RigidBody("disc", 8.0, [0.05] * 3, centre=(0, 1e-4, 0), frames=frames)
        >>> plane = mbd.planar("plane", ends.frame("o"), disc.frame("o"))
        >>> stiffness = [4e5, 4e5, 0, 0, 0, 0]
        >>> support = mbd.Bushing("support", ends.frame("o"), disc.frame("o"), stiffness, [0] * 6)
        >>> rotor = mbd.System([ends, disc], [plane], loads=[support])
        >>> def speed(p):
        ...     return (p, 0.0, 0.0)
        >>> curve = mbd.analyses.continuation(rotor, (300.0, 900.0), spin=speed)
        >>> y = curve.values(lambda system, state: state.q[1])
        >>> print(f"{1e4 * y[0]:.3f}, {1e4 * y[-1]:.3f}")  # −1e4 e at high speed, e = 1e-4 m
        -2.250, -1.066
    """
    low, high = (number("span", value) for value in vector("span", span, 2))
    if low == high:
        reject("span", span, "two different values")
    number("step", step, positive=True, high=1.0)
    number("longest", longest, positive=True, high=1.0)
    integer("max_points", max_points, low=2)
    instance("start", start, (State, type(None)))
    make = build if not isinstance(build, System) else lambda _: build
    function("build", make, "build(p)")
    if spin is not None:
        function("spin", spin, "spin(p)")
    curve = _Curve(make, spin, (low, high), tolerance)
    curve.start(start)
    curve.follow(min(step, longest), longest, max_points)
    check_deformation(make(low), curve.states)
    return EquilibriumCurve(
        np.array(curve.parameters),
        tuple(curve.states),
        np.array(curve.stable),
        np.array(curve.folds, dtype=np.int64),
        make,
    )


def warn_of_early_end(parameter: float, span: tuple[float, float], max_points: int) -> None:
    """Warn that a curve has its maximum number of points before it leaves the span."""
    text = (
        f"the curve ends after max_points = {max_points} points at the value {parameter:.6g} of "
        f"the parameter, inside the span from {span[0]:g} to {span[1]:g}; use a larger max_points, "
        "or longer steps (longest), if the curve goes on"
    )
    warn(MbdWarning(text, quantity="number of points", value=max_points, limit=max_points))


class _Point:
    """The equations near a state: forces, their derivatives, and free motions.

    Attributes:
        rows: Unbalanced forces, (nv,).
        to_free: Forces of the free motions per unbalanced force, (m, nv).
        force: Unbalanced forces of the free motions, (m,).
        K: Their derivatives with respect to z, (m, m).
        columns: Increments of all coordinates per unit of z, (nv, m).
        project: Coordinates z per increment, (m, nv).
        unbalance: Largest unbalanced force, relative to the acting forces.
        state: The state, after its constraints are satisfied.
    """

    def __init__(self, eqs: Assembler, state: State, axes: Axes) -> None:
        eqs.q[:], eqs.v[:], eqs.angles[:] = state.q, state.v, state.angles
        restore_constraints(eqs, state.time)
        motions = set_and_linearize(eqs, state.time, axes)
        basis = free_directions(motions)
        self.rows, self.to_free = eqs.rows.copy(), basis.T @ motions.to_increments.T
        self.force, self.K = self.to_free @ self.rows, basis.T @ motions.statics @ basis
        self.columns = motions.to_increments @ basis
        self.project = basis.T @ motions.mass @ motions.to_increments.T
        _, self.unbalance = unbalanced(eqs, state.time)
        self.state = eqs.state(state.time)


class _Curve:
    """The points of a curve so far, and the evaluation of the equations."""

    def __init__(
        self,
        build: Callable[[float], System],
        spin: Callable[[float], ArrayLike] | None,
        span: tuple[float, float],
        tolerance: float,
    ) -> None:
        self.build, self.spin, self.tolerance = build, spin, tolerance
        self.span, self.range = span, abs(span[1] - span[0])
        self.parameters: list[float] = []
        self.states: list[State] = []
        self.stable: list[bool] = []
        self.folds: list[int] = []
        self._length = 0.0  # length of the curve in z so far
        self._unit: float | None = None  # first unit of z; later the length is larger
        self._slope: Array = np.zeros(0)  # last derivative of the unbalanced forces, (nv,)
        self._points: deque[tuple[float, State, _Point]] = deque(maxlen=3)
        self._last: tuple[float, Assembler] | None = None

    def axes(self, p: float) -> Axes:
        """Return the axes that rotate with the mechanism."""
        omega = np.zeros(3) if self.spin is None else vector("spin(p)", self.spin(p), unit="rad/s")
        return Axes.common(self.at(p).system, omega)

    def at(self, p: float) -> Assembler:
        """Return an assembler for a value of the parameter; the last one is kept."""
        if self._last is None or self._last[0] != p:
            self._last = p, Assembler(self.build(p))
        return self._last[1]

    def point(self, p: float, state: State) -> _Point:
        """Return the equations near a state; the last ones are kept."""
        for value, known, point in self._points:
            if value == p and (known is state or point.state is state):
                return point
        eqs = self.at(p)
        if len(state.q) != len(eqs.q):
            raise InputError(
                f"build({p:g}) returns a mechanism with {len(eqs.q)} coordinates, and another one "
                f"with {len(state.q)}; all mechanisms must have the same parts"
            )
        point = _Point(eqs, state, self.axes(p))
        self._points.append((p, state, point))
        return point

    def start(self, start: State | None) -> None:
        """Find the first point."""
        p = self.span[0]
        guess = {} if start is None else {"q": start.q, "angles": start.angles}
        omega = None if self.spin is None else self.spin(p)
        system = self.build(p)
        self._add(p, equilibrium(system, spin=omega, tolerance=self.tolerance, **guess))  # type: ignore[arg-type]

    def _add(self, p: float, state: State) -> None:
        """Add a point with its stability."""
        point, axes, eqs = self.point(p, state), self.axes(p), self.at(p)
        eqs.put(point.state)
        eqs.update_poses(state.time)
        if axes.spin.any():
            check_steady(eqs, state.time, axes)
        self.parameters.append(p)
        self.states.append(point.state)
        self.stable.append(not is_unstable(eqs, state.time, axes))

    def follow(self, step: float, longest: float, max_points: int) -> None:
        """Add points until the parameter leaves the span."""
        p, state = self.parameters[-1], self.states[-1]
        tangent = self._tangent(p, state, None)
        while len(self.states) < max_points:
            point = self._correct(p, state, tangent, step)
            next_tangent = None if point is None else self._tangent(*point, tangent)
            angle = np.pi if next_tangent is None else self._angle(p, state, tangent, next_tangent)
            if point is None or next_tangent is None or angle > _SHARPEST:
                step *= 0.5
                if step < _SMALLEST:
                    raise EquilibriumError(
                        f"the curve of equilibria cannot be followed beyond the value {p:.10g} of "
                        "the parameter: it ends or branches there, or the mechanism is not a "
                        "smooth function of the parameter"
                    )
                continue
            outside = self._outside(point[0])
            if tangent[-1] * next_tangent[-1] < 0:
                self._add_fold(p, state, tangent, step)
            elif outside:
                self._add_end(p, state, tangent, step)
            if outside:
                return
            self._length += (
                float(np.linalg.norm(self.point(p, state).project @ tangent[:-1])) * step
            )
            self._add(*point)
            (p, state), tangent = point, next_tangent
            if angle < _SMOOTH:
                step = min(1.5 * step, longest)
        warn_of_early_end(p, self.span, max_points)

    def _outside(self, p: float) -> bool:
        """Return whether the span does not contain a value of the parameter."""
        return not min(self.span) <= p <= max(self.span)

    def _add_fold(self, p: float, state: State, tangent: Array, step: float) -> None:
        """Add the point within a step at which the parameter turns back, found by secants."""
        # Distances along the tangent, and the rates of the parameter there
        (low, low_rate), (high, high_rate) = (0.0, float(tangent[-1])), (step, 0.0)
        last: tuple[float, State] | None = None
        for k in range(_SECANTS):
            middle = 0.5 * (low + high)
            # `high` has a rate only after bisections: that at the end of the step is not computed
            if k > 1 and high_rate * low_rate < 0:
                middle = (low * high_rate - high * low_rate) / (high_rate - low_rate)
            point = self._correct(p, state, tangent, middle)
            if point is None:
                break
            rate = float(self._tangent(*point, tangent)[-1])
            last = point
            if rate * low_rate > 0:
                low, low_rate = middle, rate
            else:
                high, high_rate = middle, rate
            if abs(rate) * (high - low) <= _FOLD * self.range:
                break
        if last is not None and not self._outside(last[0]):
            self.folds.append(len(self.states))
            self._add(*last)

    def _add_end(self, p: float, state: State, tangent: Array, step: float) -> None:
        """Add the point at the end of the span, within a step."""
        end = min(max(p + step * float(tangent[-1]), min(self.span)), max(self.span))
        low, high = 0.0, step
        point: tuple[float, State] | None = None
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            point = self._correct(p, state, tangent, middle)
            if point is None:
                break
            if abs(point[0] - end) <= _FOLD * self.range:
                break
            low, high = (low, middle) if self._outside(point[0]) else (middle, high)
        if point is not None:
            self._add(end, self._equilibrium_near(end, point[1]))

    def _equilibrium_near(self, p: float, state: State) -> State:
        """Return the equilibrium for a value of the parameter near a state."""
        point = self.point(p, state)
        for _ in range(_CORRECTIONS):
            if point.unbalance <= self.tolerance:
                break
            change = np.linalg.lstsq(point.K, -point.force, rcond=_RANK)[0]
            point = self.point(p, self._moved(p, point.state, point.columns @ change))
        return point.state

    def _derivative(self, p: float, point: _Point) -> Array:
        """Return the derivative of the unbalanced forces of free motions with respect to p.

        That of all unbalanced forces is kept for the next corrections (`_slope`).
        """
        h = _DIFFERENCE * self.range
        centre = min(max(p, min(self.span) + h), max(self.span) - h)  # stay within the span
        after, before = (self.point(value, point.state).rows for value in (centre + h, centre - h))
        self._slope = (after - before) / (2 * h)
        return np.asarray(point.to_free @ self._slope, dtype=float)

    def _tangent(self, p: float, state: State, along: Array | None) -> Array:
        """Return the unit tangent (nv + 1,) in increments and p, in the sense of `along`."""
        point = self.point(p, state)
        f_p = self._derivative(p, point)
        if self._unit is None:
            slope = np.linalg.lstsq(point.K, -f_p, rcond=_RANK)[0]
            self._unit = max(_FIRST_UNIT * self.range * float(np.linalg.norm(slope)), 1e-300)
        units = self._units(len(point.K))
        null = np.linalg.svd(np.column_stack([point.K, f_p]) * units)[2][-1]
        if along is None:
            sense = (self.span[1] - self.span[0]) * null[-1]
        else:
            sense = null @ (self._coordinates(point, along) / units)
        null = (null if sense >= 0 else -null) * units
        return np.append(point.columns @ null[:-1], null[-1])

    def _units(self, count: int) -> Array:
        """Return the units of z (count,) and of p."""
        assert self._unit is not None
        return np.append(np.full(count, max(self._unit, self._length)), self.range)

    def _coordinates(self, point: _Point, tangent: Array) -> Array:
        """Return z and p (m + 1,) of a tangent in increments and p (nv + 1,)."""
        return np.append(point.project @ tangent[:-1], tangent[-1])

    def _angle(self, p: float, state: State, first: Array, second: Array) -> float:
        """Return the angle between two tangents, rad."""
        point = self.point(p, state)
        a, b = (self._coordinates(point, x) / self._units(len(point.K)) for x in (first, second))
        return float(np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1)))

    def _correct(
        self, p: float, state: State, tangent: Array, step: float
    ) -> tuple[float, State] | None:
        """Return the point at a distance along the tangent; None if there is no convergence."""
        value = p + step * float(tangent[-1])
        try:
            point = self.point(value, self._moved(p, state, step * tangent[:-1]))
            for k in range(_CORRECTIONS):
                if point.unbalance <= self.tolerance:
                    return value, point.state
                if k >= _REUSES:
                    self._derivative(value, point)
                units = self._units(len(point.K))
                matrix = np.column_stack([point.K, point.to_free @ self._slope]) * units
                # The last equation: the change is at right angles to the tangent
                normal = self._coordinates(point, tangent) / units
                bordered = np.vstack([matrix, float(np.abs(matrix).max()) * normal])
                right = np.append(-point.force, 0.0)
                change = np.linalg.lstsq(bordered, right, rcond=_RANK)[0]
                if not np.linalg.norm(change) <= max(_GROWTH * step, _LEAST_LIMIT):
                    return None  # it diverges, or is NaN
                change *= units
                value += float(change[-1])
                delta = point.columns @ change[:-1]
                point = self.point(value, self._moved(value, point.state, delta))
        except (AssemblyError, np.linalg.LinAlgError):
            return None
        return None

    def _moved(self, p: float, state: State, delta: Array) -> State:
        """Return a state after increments (nv,) of its coordinates and of the states of loads."""
        eqs, states = self.at(p), self.at(p).system.states
        eqs.q[:], eqs.v[:], eqs.angles[:] = state.q, state.v, state.angles
        move = delta.copy()
        move[states] = 0.0
        eqs.move(state.q, move)
        eqs.v[states] += delta[states]
        eqs.update_poses(state.time)
        return eqs.state(state.time)
