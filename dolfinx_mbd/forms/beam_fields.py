"""The displacement of a beam's material points from the values at its nodes; see `beams`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain
from ufl.geometry import CellVertices

from dolfinx_mbd.forms.arguments import expression, scalar, triad

__all__ = ["BeamField", "arm"]


class BeamField:
    """The displacement of a beam from its nodal displacements and rotations.

    Vectors are in the beam's own axes: x along it, y and z those of the section.

    Args:
        q: P1 field (d, θ) of six body components on an interval mesh: an argument, a function, or
            any expression of them.
        axes: Columns are the beam's direction and its section's y and z in body components, shape
            (3, 3).
    """

    def __init__(self, q: Expr, axes: Any = None) -> None:
        domain = extract_unique_domain(expression("q", q, ((6,),)))
        own = triad("axes", axes)
        self.axes = ufl.as_matrix(own.tolist())
        J, x, ends = ufl.Jacobian(domain), ufl.SpatialCoordinate(domain), CellVertices(domain)
        gdim = J.ufl_shape[0]
        self._direction = [1.0] if gdim == 1 else [float(e) for e in own[:gdim, 0]]
        middle = [(ends[0, i] + ends[1, i]) / 2 for i in range(gdim)]
        self._h = ufl.sqrt(sum(J[i, 0] ** 2 for i in range(gdim)))
        offset = sum((x[i] - middle[i]) * e for i, e in enumerate(self._direction))
        self._xi = offset / self._h + 0.5  # from the cell's end at the smaller x
        pad = [0.0] * (3 - gdim)
        self._position = x[0] * self.axes[:, 0] if gdim == 1 else ufl.as_vector([*x, *pad])
        d, theta = (_turned([q[i] for i in parts], own.T) for parts in ((0, 1, 2), (3, 4, 5)))
        self._u, self._phi = d[0], theta[0]
        self._bending = tuple(
            self._hermite(*pair) for pair in ((d[1], theta[2]), (d[2], -theta[1]))
        )

    def along(self, f: Expr) -> Expr:
        """Derivative of a scalar or a vector along the beam."""
        if expression("f", f).ufl_shape:
            return ufl.as_vector([self.along(f[i]) for i in range(f.ufl_shape[0])])
        gradient = ufl.grad(f)
        return sum(gradient[i] * e for i, e in enumerate(self._direction) if e)

    def _hermite(self, w: Expr, slope: Expr) -> tuple[Expr, Expr, Expr]:
        """Value, slope and curvature of the cubic with these values and slopes at the ends."""
        h, xi = self._h, self._xi
        chord, rate = self.along(w), self.along(slope)
        at_a, at_b = slope - xi * h * rate, slope + (1 - xi) * h * rate
        value = w + h * xi * (1 - xi) * ((1 - xi) * (at_a - chord) - xi * (at_b - chord))
        first = (1 - 4 * xi + 3 * xi**2) * at_a + (3 * xi**2 - 2 * xi) * at_b
        first += 6 * xi * (1 - xi) * chord
        second = (12 * xi - 6) / h * (slope - chord) + (12 * xi - 12 * xi**2 - 2) * rate
        return value, first, second

    @property
    def stretch(self) -> Expr:
        """Axial strain u′ of the axis."""
        return self.along(self._u)

    @property
    def twist_rate(self) -> Expr:
        """φ′, 1/m."""
        return self.along(self._phi)

    @property
    def axis(self) -> Expr:
        """Displacement of the axis (u, v, w), m."""
        return ufl.as_vector([self._u, *(w[0] for w in self._bending)])

    @property
    def axis_rate(self) -> Expr:
        """Its derivative along the beam (u′, v′, w′)."""
        return ufl.as_vector([self.stretch, *(w[1] for w in self._bending)])

    @property
    def rotation(self) -> Expr:
        """Rotation of the section θ = (φ, −w′, v′)."""
        (_, v_rate, _), (_, w_rate, _) = self._bending
        return ufl.as_vector([self._phi, -w_rate, v_rate])

    @property
    def rotation_rate(self) -> Expr:
        """Twist and curvatures θ′ = (φ′, −w″, v″), 1/m."""
        (_, _, v_second), (_, _, w_second) = self._bending
        return ufl.as_vector([self.twist_rate, -w_second, v_second])

    def at(self, y: Expr, z: Expr) -> Expr:
        """Displacement of the point (y, z) of the section, m."""
        return self.axis + ufl.cross(self.rotation, arm(y, z))

    def rate_at(self, y: Expr, z: Expr) -> Expr:
        """Its derivative along the beam, of which the first component is the strain ε_xx."""
        return self.axis_rate + ufl.cross(self.rotation_rate, arm(y, z))

    def strain_at(self, y: Expr, z: Expr) -> Expr:
        """Axial strain ε_xx = u′ − y v″ − z w″."""
        (_, _, v_second), (_, _, w_second) = self._bending
        return self.stretch - scalar("y", y) * v_second - scalar("z", z) * w_second

    def position_at(self, y: Expr, z: Expr) -> Expr:
        """Reference position of the point (y, z) of the section, **body components**, m."""
        return self._position + self.in_body(arm(y, z))

    def in_body(self, vector: Expr) -> Expr:
        """A vector in the beam's axes as one in body components."""
        return ufl.dot(self.axes, expression("vector", vector, ((3,),)))


def _turned(vector: Sequence[Expr], rotation: Any) -> list[Expr]:
    """A constant matrix times a vector, without the terms that are zero."""
    return [
        sum((float(c) * f for c, f in zip(row, vector, strict=True) if c), ufl.as_ufl(0.0))
        for row in rotation
    ]


def arm(y: Expr, z: Expr) -> Expr:
    """From the axis to the point (y, z) of the section."""
    return ufl.as_vector([0.0, scalar("y", y), scalar("z", z)])
