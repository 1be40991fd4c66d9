"""Maggi's equations: linear velocity constraints and a projection instead of multipliers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.checks import refuse
from dolfinx_mbd.forms.arguments import Value, as_ufl_value
from dolfinx_mbd.forms.floating_frame import cross
from dolfinx_mbd.forms.formalisms.body import MovingBody, Symbols, along, total

__all__ = ["VirtualVelocities", "constrained_rate", "maggi"]


class VirtualVelocities(NamedTuple):
    """A column of Maggi's projection: the velocities due to one independent velocity.

    Attributes:
        elastic: δu̇, a test function or a function; None if the elastic velocities are zero.
        origin: δV, body components; None if the motion of the origin is prescribed.
        omega: δω, body components; None if the rotation is prescribed.
    """

    elastic: Expr | None = None
    origin: Value | None = None
    omega: Value | None = None


def maggi(body: MovingBody, column: VirtualVelocities) -> ufl.Form:
    """Return Maggi's equation of one column: Lagrange's expressions projected on free velocities.

    The free body has the velocities q̇ = (V, ω, u̇). Joints and drives are linear constraints
    A q̇ + b = 0, and Maggi's equations Eᵀ(Lagrange's expressions − Q) = 0 with A E = 0 contain no
    multipliers. If the motion of the frame is prescribed, E has the columns (0, 0, v), which give
    the elastic equations. A hinge about n adds the column (0, n, 0), which gives the equation of
    the angle. Projections that are not local (for example a joint at an interface, which moves with
    the mean of u) combine assembled rows.

    V and ω are not derivatives of coordinates. Their Lagrange expressions are those of Boltzmann
    and Hamel: d/dt ∂T/∂V + ω×∂T/∂V and d/dt ∂T/∂ω + ω×∂T/∂ω + V×∂T/∂V.

    Args:
        body: The body and its motion, which satisfies the constraints.
        column: Test functions or constants; with constants only, the form is a number.

    Returns:
        The residual of the column.

    Raises:
        InputError: The column is empty.

    References:
        Scutaru and Vlase (2023), eqs. 53 and 54, where the letters A and E are exchanged.
    """
    s = Symbols(body)
    energy = s.kinetic_energy()
    linear, angular = ufl.diff(energy, s.origin), ufl.diff(energy, s.omega)
    parts: list[ufl.Form] = []
    velocities: list[Expr] = []
    if column.elastic is not None:
        parts.append(ufl.inner(s.inertia_forces(energy), column.elastic) * body.measure)
        parts.append(ufl.derivative(body.strain_energy(), body.u, column.elastic))
        velocities.append(column.elastic)
    if column.origin is not None:
        shift = as_ufl_value(column.origin)
        parts.append(ufl.inner(s.rate(linear) + cross(s.omega, linear), shift) * body.measure)
        velocities.append(shift)
    if column.omega is not None:
        spin = as_ufl_value(column.omega)
        row = s.rate(angular) + _moment(s.origin, linear)
        if angular.ufl_shape:
            row += ufl.cross(s.omega, angular)
        parts.append(ufl.inner(row, spin) * body.measure)
        velocities.append(cross(spin, body.x + body.u))
    if not parts:
        refuse("column", column, "a column with elastic, origin or omega")
    return total(parts) - body.load_power(total(velocities))


def constrained_rate(
    body: MovingBody,
    constraint: Callable[[Expr, Expr, Expr], Expr],
    column: VirtualVelocities,
) -> Expr:
    """Return A E of a velocity constraint and a column, which is zero if the column is free.

    Args:
        body: The body and its motion.
        constraint: A q̇ + b as a function of V, ω and u̇ at a point.
        column: See `maggi`.

    Raises:
        InputError: The column is empty.
    """
    s = Symbols(body)
    c = constraint(s.origin, s.omega, s.u_dot)
    pairs = (s.origin, column.origin), (s.omega, column.omega), (s.u_dot, column.elastic)
    terms = [along(c, variable, as_ufl_value(d)) for variable, d in pairs if d is not None]
    if not terms:
        refuse("column", column, "a column with elastic, origin or omega")
    return total(terms)


def _moment(a: Expr, b: Expr) -> Expr:
    """Return a×b; in the plane its component about z."""
    return ufl.cross(a, b) if a.ufl_shape == (3,) else a[0] * b[1] - a[1] * b[0]
