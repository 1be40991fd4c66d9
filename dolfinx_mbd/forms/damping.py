"""Damping as UFL: a viscous density against the velocity of the deformation."""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.forms.arguments import expression, integral

__all__ = ["viscous_damping"]


def viscous_damping(
    u: Expr, v: Expr, viscosity: Expr | float, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Damping ∫ μ u·v, to act on u̇: symmetric, positive semi-definite.

    It is the derivative of the dissipation ½ ∫ μ |u̇|² to u̇, and stands on the left-hand side beside
    the mass: with μ = 2ζωρ a mode decays with the ratio ζ
    (`test_logarithmic_decrement_of_viscous_damping`).

    The velocity u̇ is that relative to the body frame: the form does not resist the motion of the
    frame.  It would do so if the absolute velocity V + ω×(x+u) + u̇ stood in place of u̇, as for a
    medium at rest in the world, which is a load and no damping of the body.  But it is not zero for
    a rigid motion in u̇, as the stiffness is: which motion it damps depends on the frame.

    Args:
        u: Displacement; u̇ as a trial function.
        v: Test function of the same shape.
        viscosity: μ, N s/m⁴ (in the plane: times the thickness): a number, a `Constant` or a
            function of space, nowhere negative.
        measure: Where to integrate.
    """
    return integral(("viscosity", viscosity), ("u", expression("u", u)), v, measure)
