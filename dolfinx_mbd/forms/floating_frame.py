"""Inertia of a deformable body in a moving frame: one UFL form for each term of the weak form.

The position of a material point is r = R + A(x + u), where R and A are the position and rotation of
the body frame, x is the reference position and u the elastic displacement, both in the body frame.
Its acceleration, in body components, is

    a₀ + α×(x+u) + ω×(ω×(x+u)) + 2 ω×u̇ + ü

with the angular velocity ω, the angular acceleration α and the acceleration a₀ of the frame's
origin, all in **body components**. Each term is multiplied by ρ and a test function v, and
integrated. The terms with u are the operators of this module. The terms without u are the loads, on
the right-hand side with a minus sign:

    mass(ü) + coriolis(u̇) + centrifugal_stiffness(u) + euler_stiffness(u) + elastic_stiffness(u)
        = translational_load + euler_load + centrifugal_load + gravity_load + traction_load

ω, α and a₀ may be numbers, any UFL expressions, or `dolfinx.fem.Constant`s, whose values can change
without a new compilation. In three dimensions they are vectors. In the plane ω and α are scalars
(the components about z). The density is a number, a `Constant` or a function of space, kg/m³; in
the plane it is the mass per area ρ t, kg/m², and tractions are forces per length.
"""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr
from ufl.domain import extract_unique_domain

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import Value, as_ufl_value, expression, integral


def _position(v: Expr, x: Expr | None) -> Expr:
    """Return the reference position x; by default the coordinates of the mesh of `v`."""
    if x is not None:
        return expression("x", x)
    return ufl.SpatialCoordinate(extract_unique_domain(expression("v", v)))


def cross(omega: Value, u: Value) -> Expr:
    """Return ω×u.

    Args:
        omega: Vector of shape (3,); or a scalar, which stands for (0, 0, ω).
        u: Vector of shape (3,); or of shape (2,) if ω is a scalar.

    Raises:
        InputError: The shapes do not match.

    Example:
        >>> cross(2.0, (1.0, 0.0)).ufl_shape
        (2,)
    """
    w, a = as_ufl_value(omega, "omega"), as_ufl_value(u, "u")
    match w.ufl_shape, a.ufl_shape:
        case (3,), (3,):
            return ufl.cross(w, a)
        case (), (2,):
            return ufl.as_vector((-w * a[1], w * a[0]))
    expected = "of shape (3,) with vectors of shape (3,), or a scalar with vectors of shape (2,)"
    text = f"omega must be {expected}; got shapes {w.ufl_shape} and {a.ufl_shape}"
    raise InputError(text, argument="omega", value=omega, expected=expected)


def mass(u: Expr, v: Expr, density: Value, measure: ufl.Measure = ufl.dx) -> ufl.Form:
    """Return the mass form ∫ ρ u·v, which multiplies ü; it is symmetric and positive definite.

    Args:
        u: Trial function, or any displacement, velocity or acceleration.
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        measure: Integration measure.

    Example:
        The mass of the unit cube, from a rigid translation:

        >>> shift = ufl.as_vector([1.0, 0.0, 0.0])
        >>> form = mass(shift, shift, 7850.0, ufl.dx(domain=box))
        >>> round(fem.assemble_scalar(fem.form(form)), 6)
        7850.0
    """
    return integral(("density", density), ("u", expression("u", u)), v, measure)


def coriolis(
    u: Expr, v: Expr, density: Value, omega: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the Coriolis form 2 ∫ ρ (ω×u)·v, which multiplies u̇; it is skew-symmetric.

    Args:
        u: Trial function, or any velocity.
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        omega: ω in body components, rad/s.
        measure: Integration measure.

    Example:
        >>> spin = fem.Constant(box, (0.0, 0.0, 100.0))
        >>> C = coriolis(u, v, 7850.0, spin)
    """
    return integral(("density", density), ("u", 2 * cross(omega, u)), v, measure)


def centrifugal_stiffness(
    u: Expr, v: Expr, density: Value, omega: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the spin softening ∫ ρ (ω×(ω×u))·v; it is symmetric and negative semi-definite.

    Args:
        u: Trial function, or any displacement.
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        omega: ω in body components, rad/s.
        measure: Integration measure.

    Example:
        >>> K = centrifugal_stiffness(u, v, 7850.0, (0.0, 0.0, 100.0))
    """
    return integral(("density", density), ("u", cross(omega, cross(omega, u))), v, measure)


def euler_stiffness(
    u: Expr, v: Expr, density: Value, alpha: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the Euler form ∫ ρ (α×u)·v; it is skew-symmetric.

    Args:
        u: Trial function, or any displacement.
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        alpha: α in body components, rad/s².
        measure: Integration measure.

    Example:
        >>> K = euler_stiffness(u, v, 7850.0, (0.0, 0.0, 5.0))
    """
    return integral(("density", density), ("u", cross(alpha, u)), v, measure)


def translational_load(
    v: Expr, density: Value, acceleration: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the inertia load -∫ ρ a₀·v due to the acceleration of the frame's origin.

    Args:
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        acceleration: a₀ in body components, m/s².
        measure: Integration measure.

    Example:
        >>> load = translational_load(v, 7850.0, (1.0, 0.0, 0.0))
    """
    return -integral(("density", density), ("acceleration", acceleration), v, measure)


def euler_load(
    v: Expr, density: Value, alpha: Value, measure: ufl.Measure = ufl.dx, *, x: Expr | None = None
) -> ufl.Form:
    """Return the inertia load -∫ ρ (α×x)·v due to the angular acceleration of the frame.

    Its resultant is -m α×c with the centre of mass c, and its moment about the origin is -Jα.

    Args:
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        alpha: α in body components, rad/s².
        measure: Integration measure.
        x: Reference position relative to the frame's origin, m; by default the mesh coordinates.

    Example:
        >>> load = euler_load(v, 7850.0, (0.0, 0.0, 5.0))
    """
    return -integral(("density", density), ("x", cross(alpha, _position(v, x))), v, measure)


def centrifugal_load(
    v: Expr, density: Value, omega: Value, measure: ufl.Measure = ufl.dx, *, x: Expr | None = None
) -> ufl.Form:
    """Return the centrifugal load -∫ ρ (ω×(ω×x))·v due to the rotation of the frame.

    Its resultant is -m ω×(ω×c): m ω² times the vector from the axis to the centre of mass c.

    Args:
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        omega: ω in body components, rad/s.
        measure: Integration measure.
        x: Reference position relative to the frame's origin, m; by default the mesh coordinates.

    Example:
        >>> load = centrifugal_load(v, 7850.0, (0.0, 0.0, 100.0))
    """
    acceleration = cross(omega, cross(omega, _position(v, x)))
    return -integral(("density", density), ("x", acceleration), v, measure)


def gravity_load(
    v: Expr, density: Value, gravity: Value, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the gravity load ∫ ρ g·v.

    Args:
        v: Test function.
        density: ρ, kg/m³ (in the plane kg/m²).
        gravity: Aᵀg in **body components**, m/s², which change as the frame rotates.
        measure: Integration measure.

    Example:
        >>> load = gravity_load(v, 7850.0, (0.0, 0.0, -9.81))
    """
    return integral(("density", density), ("gravity", gravity), v, measure)


def traction_load(v: Expr, traction: Value, measure: ufl.Measure = ufl.ds) -> ufl.Form:
    """Return the load ∫ t·v of a traction on the boundary.

    Args:
        v: Test function.
        traction: t in body components, Pa.
        measure: Integration measure of the boundary or a part of it.

    Example:
        A pressure of 1 bar:

        >>> load = traction_load(v, -1e5 * ufl.FacetNormal(box))
    """
    return integral(("factor", 1.0), ("traction", traction), v, measure)


def viscous_damping(u: Expr, v: Expr, viscosity: Value, measure: ufl.Measure = ufl.dx) -> ufl.Form:
    """Return the damping form ∫ μ u·v, which multiplies u̇; it is symmetric and semi-definite.

    With μ = 2ζωρ, a mode with the angular frequency ω has the damping ratio ζ
    (`test_logarithmic_decrement_of_viscous_damping`).

    The velocity u̇ is relative to the body frame: the form does not resist the motion of the
    frame. Unlike the stiffness, it does not vanish for rigid motions in u̇, so the damped motion
    depends on the choice of the frame. Drag in a medium at rest acts on the absolute velocity
    V + ω×(x+u) + u̇ and is a load.

    Args:
        u: Trial function, or any displacement or velocity.
        v: Test function of the same shape.
        viscosity: μ ≥ 0, N s/m⁴ (multiplied by the thickness of a plane body): a number, a
            `Constant` or a function of space.
        measure: Integration measure.

    Example:
        >>> C = viscous_damping(u, v, 2 * 0.01 * 500.0 * STEEL.density)
    """
    return integral(("viscosity", viscosity), ("u", expression("u", u)), v, measure)
