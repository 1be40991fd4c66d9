"""Maggi's equations: linear constraints of velocities, and a projection in place of multipliers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import Value, as_ufl_value
from dolfinx_mbd.forms.floating_frame import cross
from dolfinx_mbd.forms.formalisms.body import MovingBody, Symbols, along

__all__ = ["VirtualVelocities", "constrained_rate", "maggi"]


class VirtualVelocities(NamedTuple):
    """A column of Maggi's projection: the velocities that one independent velocity brings.

    Attributes:
        elastic: δu̇, a test function or a function; None where the elastic velocities stay zero.
        origin: δV, body components; None for zero, the origin being prescribed.
        omega: δω; None for zero, the rotation being prescribed.
    """

    elastic: Expr | None = None
    origin: Value | None = None
    omega: Value | None = None


def maggi(body: MovingBody, column: VirtualVelocities) -> ufl.Form:
    """Maggi's equations: Lagrange's expressions of all velocities, projected on the free ones.

    The free body has the velocities q̇ = (V, ω, u̇). Joints and drives are linear constraints
    A q̇ + b = 0, and Maggi's equations Eᵀ(Lagrange's expressions − Q) = 0, with A E = 0, hold
    without multipliers. The motion prescribed for the whole frame is A = (1 0), so that E has the
    columns (0, 0, v), and they are the elastic equations. A hinge about n leaves the column
    (0, n, 0) as well: the equation of the angle. Projections that are not local (a joint at an
    interface moves with the mean of u there) combine the assembled rows.

    V and ω are no rates of coordinates, so that their expressions are those of Boltzmann and Hamel:
    d/dt ∂T/∂V + ω×∂T/∂V and d/dt ∂T/∂ω + ω×∂T/∂ω + V×∂T/∂V.

    Args:
        body: The body and its motion, at which the constraints hold.
        column: Test functions or constants; with constants only, the form is a number.

    Returns:
        The residual of the column.

    Raises:
        ValueError: The column is empty.

    References:
        Scutaru and Vlase (2023), eqs. 53 and 54, where the projection has the constraints' letter.
    """
    s = Symbols(body)
    energy = s.kinetic_energy()
    linear, angular = ufl.diff(energy, s.origin), ufl.diff(energy, s.omega)
    parts: list[ufl.Form] = []
    moved: list[Expr] = []  # what the column does to a point
    if column.elastic is not None:
        inertia = s.rate(ufl.diff(energy, s.u_dot)) - ufl.diff(energy, s.u)
        parts.append(ufl.inner(inertia, column.elastic) * body.measure)
        parts.append(ufl.derivative(body.strain_energy(), body.u, column.elastic))
        moved.append(column.elastic)
    if column.origin is not None:
        shift = as_ufl_value(column.origin)
        parts.append(ufl.inner(s.rate(linear) + cross(s.omega, linear), shift) * body.measure)
        moved.append(shift)
    if column.omega is not None:
        about = as_ufl_value(column.omega)
        row = s.rate(angular) + _turn(s.origin, linear)
        if angular.ufl_shape:
            row += ufl.cross(s.omega, angular)
        parts.append(ufl.inner(row, about) * body.measure)
        moved.append(cross(about, body.x + body.u))
    if not parts:
        raise InputError("the column moves nothing: give elastic, origin or omega")
    residual = sum(parts[1:], parts[0])
    loads = body.load_power(sum(moved[1:], moved[0]))
    return residual if loads is None else residual - loads


def constrained_rate(
    body: MovingBody,
    constraint: Callable[[Expr, Expr, Expr], Expr],
    column: VirtualVelocities,
) -> Expr:
    """A E of a velocity constraint and a column of a projection: zero where the column is free.

    Args:
        body: The body and its motion.
        constraint: A q̇ + b as a function of V, ω and u̇ at a point.
        column: See `maggi`.
    """
    s = Symbols(body)
    c = constraint(s.origin, s.omega, s.u_dot)
    terms = [
        along(c, variable, as_ufl_value(direction))
        for variable, direction in (
            (s.origin, column.origin),
            (s.omega, column.omega),
            (s.u_dot, column.elastic),
        )
        if direction is not None
    ]
    if not terms:
        raise InputError("the column moves nothing: give elastic, origin or omega")
    return sum(terms[1:], terms[0])


def _turn(a: Expr, b: Expr) -> Expr:
    """a×b of two vectors: the component about z in the plane."""
    return ufl.cross(a, b) if a.ufl_shape == (3,) else a[0] * b[1] - a[1] * b[0]
