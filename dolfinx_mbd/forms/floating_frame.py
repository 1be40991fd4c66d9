"""Inertia of a body that deforms in a moving frame: one named UFL form per term of its weak form.

A material point is at r = R + A(x + u): R and A are the position and rotation of the body frame, x
the reference position and u the elastic displacement, both in the body frame. In body components
its acceleration is

    a₀ + α×(x+u) + ω×(ω×(x+u)) + 2 ω×u̇ + ü

with the angular velocity ω, the angular acceleration α and the acceleration a₀ of the frame's
origin, all in **body components**. Times ρ and a test function v, the terms in u are the operators
below, and the terms without u, on the right-hand side and hence with a minus, are the loads:

    mass(ü) + coriolis(u̇) + centrifugal_stiffness(u) + euler_stiffness(u) + elastic_stiffness(u)
        = translational_load + euler_load + centrifugal_load + gravity_load + traction_load

ω, α and a₀ may be `dolfinx.fem.Constant`s, whose values change without compiling again, any other
UFL expression, or plain numbers. In three dimensions they are vectors; in the plane (displacements
of two components) ω and α are scalars, the components about z. The density is a number, a
`Constant`, or a function of space; in the plane it is the mass per area, ρ times the thickness, and
tractions likewise are forces per length.
"""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import Value, as_ufl_value, expression, integral

__all__ = [
    "centrifugal_load",
    "centrifugal_stiffness",
    "coriolis",
    "cross",
    "euler_load",
    "euler_stiffness",
    "gravity_load",
    "mass",
    "traction_load",
    "translational_load",
]


def _position(v: Expr, x: Expr | None) -> Expr:
    """Return the reference position x, by default that on the mesh of the test function."""
    if x is not None:
        return expression("x", x)
    return ufl.SpatialCoordinate(extract_unique_domain(expression("v", v)))


def cross(omega: Value, u: Value) -> Expr:
    """ω×u, in space with a vector ω and in the plane with a scalar ω about z.

    Args:
        omega: Shape (3,) or (), the latter for (0, 0, ω).
        u: Shape (3,) or (2,).

    Raises:
        ValueError: The shapes do not go together.
    """
    w, a = as_ufl_value(omega, "omega"), as_ufl_value(u, "u")
    match w.ufl_shape, a.ufl_shape:
        case (3,), (3,):
            return ufl.cross(w, a)
        case (), (2,):
            return ufl.as_vector((-w * a[1], w * a[0]))
    raise InputError(
        "an angular velocity or acceleration has shape (3,) with vectors of shape (3,), or is a "
        f"scalar with vectors of shape (2,); got shapes {w.ufl_shape} and {a.ufl_shape}"
    )


def mass(u: Expr, v: Expr, density: Value, measure: ufl.Measure = ufl.dx) -> ufl.Form:
    """Mass ∫ ρ u·v, to act on ü: symmetric, positive definite."""
    return integral(("density", density), ("u", expression("u", u)), v, measure)


def coriolis(
    u: Expr, v: Expr, density: Value, omega: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Coriolis (gyroscopic) operator 2 ∫ ρ (ω×u)·v, to act on u̇: skew, does no work."""
    return integral(("density", density), ("u", 2 * cross(omega, u)), v, measure)


def centrifugal_stiffness(
    u: Expr, v: Expr, density: Value, omega: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Spin softening ∫ ρ (ω×(ω×u))·v: symmetric, negative semi-definite."""
    return integral(("density", density), ("u", cross(omega, cross(omega, u))), v, measure)


def euler_stiffness(
    u: Expr, v: Expr, density: Value, alpha: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Euler operator ∫ ρ (α×u)·v: skew."""
    return integral(("density", density), ("u", cross(alpha, u)), v, measure)


def translational_load(
    v: Expr, density: Value, acceleration: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Load -∫ ρ a₀·v of the acceleration of the frame's origin, m/s², body components."""
    return -integral(("density", density), ("acceleration", acceleration), v, measure)


def euler_load(
    v: Expr, density: Value, alpha: Value, measure: ufl.Measure = ufl.dx, *, x: Expr | None = None
) -> ufl.Form:
    """Load -∫ ρ (α×x)·v of the angular acceleration of the frame.

    Its resultant is -m α×c and its moment about the origin -Jα.

    Args:
        v: Test function.
        density: ρ, kg/m³ (in the plane: kg/m²).
        alpha: α, rad/s², body components.
        measure: Where to integrate.
        x: Reference position from the frame's origin, m; the coordinates of the mesh by default.
    """
    return -integral(("density", density), ("x", cross(alpha, _position(v, x))), v, measure)


def centrifugal_load(
    v: Expr, density: Value, omega: Value, measure: ufl.Measure = ufl.dx, *, x: Expr | None = None
) -> ufl.Form:
    """Load -∫ ρ (ω×(ω×x))·v of the rotation of the frame.

    Its resultant is -m ω×(ω×c): mΩ² times the vector from the axis to the centre of mass.

    Args:
        v: Test function.
        density: ρ, kg/m³ (in the plane: kg/m²).
        omega: ω, rad/s, body components.
        measure: Where to integrate.
        x: Reference position from the frame's origin, m; the coordinates of the mesh by default.
    """
    acceleration = cross(omega, cross(omega, _position(v, x)))
    return -integral(("density", density), ("x", acceleration), v, measure)


def gravity_load(
    v: Expr, density: Value, gravity: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Load ∫ ρ g·v of gravity, whose **body components** Aᵀg turn with the frame, m/s²."""
    return integral(("density", density), ("gravity", gravity), v, measure)


def traction_load(v: Expr, traction: Value, measure: ufl.Measure = ufl.ds) -> ufl.Form:
    """Load ∫ t·v of tractions in body components, Pa, on the boundary or a part of it.

    A pressure p is the traction `-p * ufl.FacetNormal(mesh)`.
    """
    return integral(("factor", 1.0), ("traction", traction), v, measure)
