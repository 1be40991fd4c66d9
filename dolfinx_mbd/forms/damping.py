"""Viscous damping as a UFL form."""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.forms.arguments import expression, integral

__all__ = ["viscous_damping"]


def viscous_damping(
    u: Expr, v: Expr, viscosity: Expr | float, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the damping form ∫ μ u·v, which multiplies u̇; it is symmetric and semi-definite.

    With μ = 2ζωρ, a mode of the angular frequency ω has the damping ratio ζ
    (`test_logarithmic_decrement_of_viscous_damping`).

    The velocity u̇ is relative to the body frame: the form does not resist the motion of the
    frame. Unlike the stiffness, it does not vanish for rigid motions in u̇, so the damped motion
    depends on the choice of the frame. Drag in a medium at rest acts on the absolute velocity
    V + ω×(x+u) + u̇ and is a load.

    Args:
        u: Trial function, or any displacement or velocity.
        v: Test function of the same shape.
        viscosity: μ, N s/m⁴ (on a plane mesh times the thickness), not negative: a number, a
            `Constant` or a function of space.
        measure: Integration measure.

    Example:
        >>> C = viscous_damping(u, v, 2 * 0.01 * 500.0 * STEEL.density)
    """
    return integral(("viscosity", viscosity), ("u", expression("u", u)), v, measure)
