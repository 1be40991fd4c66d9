"""The displacement of the material points of a beam as a function of its nodal values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain
from ufl.geometry import CellVertices

from dolfinx_mbd.forms.arguments import expression, scalar, triad


class BeamField:
    """The displacement of a beam with given nodal displacements and rotations.

    Vectors have components along the axes of the beam: x along the beam, y and z of the section.

    Args:
        q: P1 field (d, θ) of six body components on an interval mesh: an argument, a function, or
            a linear expression of them. d in m, θ in rad.
        axes: Matrix whose columns are the direction of the beam and the axes y and z of its section
            in body components, shape (3, 3); by default the identity.
        motion: Displacement along the beam that moves its nodes, a scalar P1 function; by default
            zero. The mesh itself does not change.

    Example:
        >>> field = BeamField(fem.Function(beam_space))
        >>> field.rotation.ufl_shape
        (3,)
    """

    def __init__(self, q: Expr, axes: Any = None, motion: Expr | None = None) -> None:
        domain = extract_unique_domain(expression("q", q, ((6,),)))
        columns = triad("axes", axes)
        self.axes = ufl.as_matrix(columns.tolist())
        J, x, ends = ufl.Jacobian(domain), ufl.SpatialCoordinate(domain), CellVertices(domain)
        gdim = J.ufl_shape[0]
        self._direction = [1.0] if gdim == 1 else [float(e) for e in columns[:gdim, 0]]
        middle = [(ends[0, i] + ends[1, i]) / 2 for i in range(gdim)]
        self._h = ufl.sqrt(sum(J[i, 0] ** 2 for i in range(gdim)))
        offset = sum((x[i] - middle[i]) * e for i, e in enumerate(self._direction))
        self._xi = offset / self._h + 0.5  # 0 at the end of the cell with the smaller x
        pad = [0.0] * (3 - gdim)
        self._position = x[0] * self.axes[:, 0] if gdim == 1 else ufl.as_vector([*x, *pad])
        self.length_ratio: Any = None  # length of a cell with its motion over that without
        if motion is not None:
            ratio = 1 + self.derivative(motion)
            self._h, self.length_ratio = ratio * self._h, ratio
            self._position += motion * self.axes[:, 0]
        d = _product(columns.T, [q[i] for i in range(3)])
        theta = _product(columns.T, [q[i] for i in range(3, 6)])
        self._u, self._phi = d[0], theta[0]
        # Deflection, slope and curvature of v and of w, whose slopes are θ_z and −θ_y
        self._bending = tuple(
            hermite(self._h, self._xi, w, slope, self.derivative(w), self.derivative(slope))
            for w, slope in ((d[1], theta[2]), (d[2], -theta[1]))
        )

    def derivative(self, f: Expr) -> Expr:
        """Return the derivative of a scalar or a vector along the beam."""
        if expression("f", f).ufl_shape:
            return ufl.as_vector([self.derivative(f[i]) for i in range(f.ufl_shape[0])])
        gradient = ufl.grad(f)
        rate = sum(gradient[i] * e for i, e in enumerate(self._direction) if e)
        return rate if self.length_ratio is None else rate / self.length_ratio

    @property
    def stretch(self) -> Expr:
        """Axial strain u′ of the beam axis."""
        return self.derivative(self._u)

    @property
    def twist_rate(self) -> Expr:
        """Twist per length φ′, 1/m."""
        return self.derivative(self._phi)

    @property
    def axis(self) -> Expr:
        """Displacement (u, v, w) of the beam axis, m."""
        return ufl.as_vector([self._u, *(w[0] for w in self._bending)])

    @property
    def axis_rate(self) -> Expr:
        """Derivative (u′, v′, w′) of `axis` along the beam."""
        return ufl.as_vector([self.stretch, *(w[1] for w in self._bending)])

    @property
    def rotation(self) -> Expr:
        """Rotation θ = (φ, −w′, v′) of the section."""
        (_, v_rate, _), (_, w_rate, _) = self._bending
        return ufl.as_vector([self._phi, -w_rate, v_rate])

    @property
    def rotation_rate(self) -> Expr:
        """Twist and curvatures θ′ = (φ′, −w″, v″), 1/m."""
        (_, _, v_second), (_, _, w_second) = self._bending
        return ufl.as_vector([self.twist_rate, -w_second, v_second])

    def at(self, y: Expr, z: Expr) -> Expr:
        """Return the displacement of the point (y, z) of the section, m."""
        return self.axis + ufl.cross(self.rotation, arm(y, z))

    def rate_at(self, y: Expr, z: Expr) -> Expr:
        """Return the derivative of `at` along the beam; its first component is the strain ε_xx."""
        return self.axis_rate + ufl.cross(self.rotation_rate, arm(y, z))

    def strain_at(self, y: Expr, z: Expr) -> Expr:
        """Return the axial strain ε_xx = u′ − y v″ − z w″."""
        (_, _, v_second), (_, _, w_second) = self._bending
        return self.stretch - scalar("y", y) * v_second - scalar("z", z) * w_second

    def position_at(self, y: Expr, z: Expr) -> Expr:
        """Return the reference position of the point (y, z) in **body components**, m."""
        return self._position + self.in_body(arm(y, z))

    def in_body(self, vector: Expr) -> Expr:
        """Return the body components of a vector with components along the axes of the beam."""
        return ufl.dot(self.axes, expression("vector", vector, ((3,),)))


def hermite(
    h: Expr, xi: Expr, w: Expr, slope: Expr, chord: Expr, rate: Expr
) -> tuple[Expr, Expr, Expr]:
    """Return the value, slope and curvature of Hermite's cubic on a cell of length h, 0 ≤ xi ≤ 1.

    `w` and `slope` are the linear interpolants of the values and slopes at both ends; `chord` and
    `rate` are their derivatives.
    """
    slope_a, slope_b = slope - xi * h * rate, slope + (1 - xi) * h * rate
    value = w + h * xi * (1 - xi) * ((1 - xi) * (slope_a - chord) - xi * (slope_b - chord))
    first = (1 - 4 * xi + 3 * xi**2) * slope_a + (3 * xi**2 - 2 * xi) * slope_b
    first += 6 * xi * (1 - xi) * chord
    second = (12 * xi - 6) / h * (slope - chord) + (12 * xi - 12 * xi**2 - 2) * rate
    return value, first, second


def arm(y: Expr, z: Expr) -> Expr:
    """Return the vector from the beam axis to the point (y, z) of the section."""
    return ufl.as_vector([0.0, scalar("y", y), scalar("z", z)])


def _product(matrix: Any, vector: Sequence[Expr]) -> list[Expr]:
    """Return a constant matrix times a vector, without the terms that are zero."""
    return [
        sum((float(c) * f for c, f in zip(row, vector, strict=True) if c), ufl.as_ufl(0.0))
        for row in matrix
    ]
