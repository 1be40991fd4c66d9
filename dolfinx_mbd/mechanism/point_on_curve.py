"""Points that slide on a smooth curve.

The curve is a spline c(u) of its parameter u in the axes of the first frame. The point d belongs to
the parameter at which ρ = d − c(u) is normal to the curve, ρ·c′ = 0. Two vector fields m_i(u),
which are nearly normal to the curve and to each other, give the constraints m_i·ρ = 0. With the
derivative u_d = c′/D of the parameter, D = c′·c′ − ρ·c″, and κ_i = m_i′·ρ − m_i·c′,

    ∂(m_i·ρ)/∂d = m_i + κ_i u_d,    ∂²(m_i·ρ)/∂d² = m_i′⊗u_d + u_d⊗∂κ_i/∂d + κ_i u_dd.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, flag, function, instance, integer, number, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.mechanism.joint_relations import JointRelation
from dolfinx_mbd.mechanism.joints import FrameRef, Joint

__all__ = ["Curve", "PointOnCurve", "point_on_curve"]

Array = NDArray[np.float64]

_DEGREE = 5  # degree of the splines
_MAX_INTERVALS = 100_000  # largest number of intervals of a function
_SAMPLES = 8  # points between two knots at which the nearest point is searched
_ITERATIONS = 30  # largest number of Newton steps to the nearest point
_MARGIN = 1e-9  # parameter beyond an end that counts as round-off, relative to the range
_CLOSED = 1e-9  # largest distance of the ends of a closed curve, relative to its size


@dataclass(frozen=True, eq=False)
class Curve:
    """A smooth curve through points, open or closed.

    `Curve.through` interpolates points, `Curve.of` the values of a function. The curve must not
    intersect itself near the path of a point that slides on it.

    Attributes:
        points: Points on the curve, shape (n, 3), m; of a closed curve, the last is the first.
        parameters: Increasing parameters of the points, shape (n,).
        closed: Whether the curve is closed.

    Raises:
        InputError: There are fewer than six points, two successive points coincide, or a closed
            curve does not return to its start.

    Example:
        >>> circle = mbd.mechanism.Curve.of(
        ...     lambda u: (np.cos(u), np.sin(u), 0.0), 0, 2 * np.pi, closed=True
        ... )
        >>> print(f"{circle.length:.6f}")
        6.283185
    """

    points: Array
    parameters: Array
    closed: bool = False

    def __post_init__(self) -> None:
        points: Array = array("points", self.points, (None, 3))
        parameters: Array = array("parameters", self.parameters, (len(points),))
        flag("closed", self.closed)
        if len(points) < _DEGREE + 1 + self.closed:
            reject("points", self.points, "at least six points, seven of a closed curve")
        if not (np.diff(parameters) > 0).all():
            reject("parameters", self.parameters, "increasing numbers, one for each point")
        steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
        if not steps.min() > 1e-12 * steps.max():
            reject("points", self.points, "points of which no two successive ones coincide")
        if self.closed:
            if np.abs(points[-1] - points[0]).max() > _CLOSED * np.ptp(points, axis=0).max():
                reject("points", self.points, "points of which the last is the first, if closed")
            points = np.vstack([points[:-1], points[:1]])
        spline = _spline(parameters, points, self.closed)
        fine = np.interp(
            np.linspace(0, len(points) - 1, _SAMPLES * (len(points) - 1) + 1),
            np.arange(len(points)),
            parameters,
        )
        lengths = _arc_lengths(spline, fine)
        # Derivatives up to the third, normal fields, and parameters, points and arc lengths at
        # samples
        for key, value in {
            "_splines": [spline.derivative(k) if k else spline for k in range(4)],
            "_normals": _normal_fields(spline, parameters, self.closed),
            "_fine": fine,
            "_places": spline(fine),
            "_lengths": lengths,
        }.items():
            object.__setattr__(self, key, value)

    @classmethod
    def through(cls, points: ArrayLike, *, closed: bool = False) -> Curve:
        """Return a curve through points.

        Args:
            points: Points in the order of the curve, shape (n, 3), m, n ≥ 6.
            closed: Whether the curve returns from the last point to the first.

        Returns:
            A spline whose parameter is the sum of the distances of the points, m.

        Raises:
            InputError: There are too few points, or two successive points coincide.

        Example:
            >>> x = np.linspace(0, np.pi, 9)
            >>> arc = mbd.mechanism.Curve.through(np.column_stack([np.cos(x), np.sin(x), 0 * x]))
            >>> print(f"{arc.length:.3f}")
            3.142
        """
        array_of_points: Array = array("points", points, (None, 3))
        if not len(array_of_points):
            reject("points", points, "at least six points")
        if flag("closed", closed):
            array_of_points = np.vstack([array_of_points, array_of_points[:1]])
        steps = np.linalg.norm(np.diff(array_of_points, axis=0), axis=1)
        parameters = np.zeros(len(array_of_points))
        parameters[1:] = np.cumsum(steps)
        return cls(array_of_points, parameters, closed)

    @classmethod
    def of(
        cls,
        function_of_parameter: Callable[[float], ArrayLike],
        start: float,
        end: float,
        *,
        closed: bool = False,
        count: int = 400,
    ) -> Curve:
        """Return a curve that interpolates a function of a parameter.

        Args:
            function_of_parameter: Function that returns a point, shape (3,), m, for a parameter.
            start: First parameter.
            end: Last parameter.
            closed: Whether the function has the same point and derivatives at both ends.
            count: Number of intervals. The error of the curve decreases with its sixth power.

        Returns:
            The curve with the parameter of the function.

        Raises:
            InputError: An argument is invalid.

        Example:
            >>> helix = mbd.mechanism.Curve.of(lambda u: (np.cos(u), np.sin(u), 0.1 * u), 0.0, 20.0)
            >>> print(f"{helix.length / 20:.9f}, {np.hypot(1, 0.1):.9f}")
            1.004987562, 1.004987562
        """
        function("function_of_parameter", function_of_parameter, "point(u)")
        number("start", start), number("end", end)
        if not end > start:
            reject("end", end, f"a number above {start}")
        intervals = integer("count", count, low=_DEGREE + 2, high=_MAX_INTERVALS)
        parameters: Array = np.linspace(start, end, intervals + 1, dtype=float)
        points: Array = np.zeros((intervals + 1, 3))
        for k, u in enumerate(map(float, parameters)):
            points[k] = array(f"function_of_parameter({u:g})", function_of_parameter(u), (3,))
        return cls(points, parameters, closed)

    @property
    def length(self) -> float:
        """Length of the curve, m."""
        return float(self._lengths[-1])  # type: ignore[attr-defined]

    def point(self, u: float) -> Array:
        """Return the point at a parameter.

        Args:
            u: Parameter; an open curve continues along its tangents.

        Returns:
            Position in the axes of the curve, shape (3,), m.

        Example:
            >>> line = mbd.mechanism.Curve.of(lambda u: (2 * u, 0.0, 0.0), 0.0, 1.0)
            >>> print(line.point(0.25).round(9))
            [0.5 0.  0. ]
        """
        return self.derivative(number("u", u))

    def parameter(self, point: Array) -> float:
        """Return the parameter of the nearest point of the curve.

        An open curve continues along its tangents, so that the parameter may be outside the range.

        Args:
            point: Point in the axes of the curve, shape (3,), m.
        """
        fine, places = self._fine, self._places  # type: ignore[attr-defined]
        offset = places - point
        u = float(fine[int(np.argmin(np.einsum("ni,ni->n", offset, offset)))])
        for _ in range(_ITERATIONS):
            c, c1, c2 = (self.derivative(u, k) for k in range(3))
            difference = point - c
            square = float(c1 @ c1)
            # Newton's method; D may be small or negative far from the curve, where the lower bound
            # keeps the step towards the nearest point
            step = float(difference @ c1) / max(square - float(difference @ c2), 0.5 * square)
            u += step
            if abs(step) <= 1e-15 * max(abs(u), float(fine[-1] - fine[0])):
                break
        return u

    def derivative(self, u: float, order: int = 0) -> Array:
        """Return the point at a parameter, or its derivative of order 1 to 3, shape (3,)."""
        low, high = self.parameters[0], self.parameters[-1]
        splines: list[scipy.interpolate.BSpline] = self._splines  # type: ignore[attr-defined]
        if self.closed or low <= u <= high:
            return np.asarray(splines[order](u))
        end = low if u < low else high
        if order > 1:
            return np.zeros(3)
        slope = np.asarray(splines[1](end))
        return slope if order else np.asarray(splines[0](end)) + (u - end) * slope

    def normal(self, u: float, field: int, order: int = 0) -> Array:
        """Return a nearly normal field (0 or 1) at a parameter, or its derivative, shape (3,)."""
        low, high = self.parameters[0], self.parameters[-1]
        spline: scipy.interpolate.BSpline = self._normals[field][order]  # type: ignore[attr-defined]
        if self.closed or low <= u <= high:
            return np.asarray(spline(u))
        end = low if u < low else high
        return np.zeros(3) if order else np.asarray(spline(end))

    def arc_coordinate(self, points: ArrayLike) -> Array:
        """Return the lengths along the curve from its start to points on it.

        Args:
            points: Points in the axes of the curve, shape (n, 3), m, for example
                ``run.joint("bead").displacement``.

        Returns:
            Arc coordinates, shape (n,), m; of a closed curve from 0 to its length.

        Example:
            >>> line = mbd.mechanism.Curve.of(lambda u: (2 * u, 0.0, 0.0), 0.0, 1.0)
            >>> print(line.arc_coordinate([[0.5, 0.0, 0.0]]).round(6))
            [0.5]
        """
        low, high = self.parameters[0], self.parameters[-1]
        fine, lengths = self._fine, self._lengths  # type: ignore[attr-defined]
        out = []
        for point in array("points", points, (None, 3)):
            u = self.parameter(point)
            u = low + (u - low) % (high - low) if self.closed else u
            k = int(np.clip(np.searchsorted(fine, u) - 1, 0, len(fine) - 2))
            out.append(lengths[k] + _gauss(lambda x: self.derivative(float(x), 1), fine[k], u))
        return np.array(out)

    __repr__ = short_repr


def _spline(parameters: Array, points: Array, closed: bool) -> scipy.interpolate.BSpline:
    """Return the interpolating spline of degree `_DEGREE`, periodic if the curve is closed."""
    boundary = "periodic" if closed else None
    return scipy.interpolate.make_interp_spline(parameters, points, k=_DEGREE, bc_type=boundary)


def _gauss(slope: Callable[[float], Array], low: float, high: float) -> float:
    """Return the length of a short piece of a curve with the given slope, by Gauss quadrature."""
    places, weights = np.polynomial.legendre.leggauss(6)
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return float(half * weights @ [np.linalg.norm(slope(middle + half * x)) for x in places])


def _arc_lengths(spline: scipy.interpolate.BSpline, fine: Array) -> Array:
    """Return the lengths from the start to the parameters `fine`."""
    places, weights = np.polynomial.legendre.leggauss(6)
    half = 0.5 * np.diff(fine)
    u = 0.5 * (fine[1:] + fine[:-1])[:, None] + half[:, None] * places
    sizes = np.linalg.norm(spline.derivative()(u), axis=2)
    return np.concatenate([[0.0], np.cumsum(half * (sizes @ weights))])


def _normal_fields(
    spline: scipy.interpolate.BSpline, parameters: Array, closed: bool
) -> list[list[scipy.interpolate.BSpline]]:
    """Return two fields of normals with their first and second derivatives.

    A normal is transported from point to point without rotation about the tangent. For a closed
    curve, the angle between the last and the first normal is distributed over the curve.
    """
    tangents = spline.derivative()(parameters)
    tangents /= np.linalg.norm(tangents, axis=1)[:, None]
    if closed:
        tangents[-1] = tangents[0]
    first = np.zeros_like(tangents)
    first[0] = np.cross(tangents[0], np.eye(3)[int(np.argmin(np.abs(tangents[0])))])
    for k, t in enumerate(tangents):
        normal = first[max(k - 1, 0)]
        normal = normal - (normal @ t) * t
        size = float(np.linalg.norm(normal))
        if size < 0.1:  # sin 6°: the tangent turned by almost a right angle
            raise InputError("the direction of the curve jumps between two points; use more points")
        first[k] = normal / size
    second = np.cross(tangents, first)
    if closed:
        angle = np.arctan2(first[-1] @ second[0], first[-1] @ first[0])
        correction = -angle * (parameters - parameters[0]) / (parameters[-1] - parameters[0])
        c, s = np.cos(correction)[:, None], np.sin(correction)[:, None]
        first, second = c * first + s * second, c * second - s * first
        first[-1], second[-1] = first[0], second[0]
    fields = [_spline(parameters, field, closed) for field in (first, second)]
    return [[field, field.derivative(1), field.derivative(2)] for field in fields]


@dataclass(frozen=True)
class PointOnCurve(JointRelation):
    """Point of the second frame on a curve in the axes of the first frame."""

    kind: ClassVar[str] = "point_on_curve"
    rows: ClassVar[dict[int, str]] = {0: "first normal", 1: "second normal"}
    point_ends: ClassVar[tuple[str, ...]] = ("second",)
    mark: ClassVar[Literal["pin", "ball", "rod", "rail", "block"]] = "ball"
    curve: Curve

    def values(self, d: Array, R: Array) -> Array:
        """Return m_i·ρ for both normals m_i and the vector ρ from the curve to the point."""
        u = self.curve.parameter(d)
        difference = d - self.curve.derivative(u)
        return np.array([self.curve.normal(u, i) @ difference for i in range(2)])

    def slopes(self, d: Array, R: Array) -> Array:
        """Return the derivatives with respect to d, m_i + κ_i u_d (see the module)."""
        u = self.curve.parameter(d)
        c, c1, c2 = (self.curve.derivative(u, k) for k in range(3))
        difference, out = d - c, np.zeros((2, 6))
        u_by_point = c1 / (c1 @ c1 - difference @ c2)
        for i in range(2):
            m, m1 = (self.curve.normal(u, i, k) for k in range(2))
            out[i, :3] = m + (m1 @ difference - m @ c1) * u_by_point
        return out

    def second(self, d: Array, R: Array) -> Array:
        """Return the second derivatives with respect to d (see the module)."""
        u = self.curve.parameter(d)
        c, c1, c2, c3 = (self.curve.derivative(u, k) for k in range(4))
        difference, out = d - c, np.zeros((2, 6, 6))
        divisor = c1 @ c1 - difference @ c2
        u_by_point = c1 / divisor
        divisor_by_point = (3 * c1 @ c2 - difference @ c3) * u_by_point - c2
        u_by_points = np.outer(c2, u_by_point) - np.outer(u_by_point, divisor_by_point)
        u_by_points /= divisor
        for i in range(2):
            m, m1, m2 = (self.curve.normal(u, i, k) for k in range(3))
            kappa = m1 @ difference - m @ c1
            kappa_by_point = m1 + (m2 @ difference - 2 * m1 @ c1 - m @ c2) * u_by_point
            out[i, :3, :3] = np.outer(m1, u_by_point) + np.outer(u_by_point, kappa_by_point)
            out[i, :3, :3] += kappa * u_by_points
        return out

    def problem(self, d: Array, R: Array) -> str:
        """Return a text if the point has passed an end of an open curve."""
        curve, u = self.curve, self.curve.parameter(d)
        low, high = float(curve.parameters[0]), float(curve.parameters[-1])
        if curve.closed or low - _MARGIN * (high - low) <= u <= high + _MARGIN * (high - low):
            return ""
        end = "start" if u < low else "end"
        return f"the point has passed the {end} of the curve, which is open; make the curve longer"


def point_on_curve(name: str, first: FrameRef, second: FrameRef, curve: Curve) -> Joint:
    """Return a joint that keeps the second point on a curve in the axes of the first frame.

    Args:
        name: Name in the system and in the results.
        first: Frame in whose axes the curve is described.
        second: Frame of another body; its point slides on the curve without friction.
        curve: The curve.

    Returns:
        The joint. A run ends with an error if the point passes an end of an open curve.

    Raises:
        InputError: An argument is invalid.

    Example:
        >>> track = mbd.mechanism.Curve.of(lambda u: (u, u**2, 0.0), -1.0, 1.0)
        >>> joint = mbd.point_on_curve("bead", ground.frame("bearing"), rod.frame("left"), track)
        >>> joint.rows
        (0, 1)
    """
    instance(f"joint {name!r}: curve", curve, Curve)
    return Joint(name, PointOnCurve.kind, first, second, relation=PointOnCurve(curve))
