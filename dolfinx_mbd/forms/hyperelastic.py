"""Energy densities of hyperelastic materials as UFL, J/m³, functions of the displacement.

Their first derivative in the displacement is the internal force, the second the tangent stiffness:

    energy = saint_venant_kirchhoff(u, material) * dx
    force = ufl.derivative(energy, u, v)
    tangent = ufl.derivative(force, u, w)

With F = I + ∇u, J = det F, C = FᵀF, Green-Lagrange strain E = (C - I)/2. At u = 0 the tangent of
each is the linear elastic stiffness of the same material
(`test_tangents_at_rest_are_hookes_stiffness`); about a deformed state it holds the geometric
stiffness and the stiffness of the displaced material besides.

On a plane mesh the displacement has two components, and `plane` says what happens across.
"""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.checks import having
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import expression
from dolfinx_mbd.forms.elasticity import VECTORS, Plane, check_plane, plane_lame, strain, stress
from dolfinx_mbd.forms.materials import Material

__all__ = ["linear_elastic", "neo_hookean", "saint_venant_kirchhoff"]


def linear_elastic(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """½ σ(u):ε(u), Hooke's law with small strains: without any effect of the deformed state."""
    return ufl.inner(stress(u, material, plane=plane), strain(u)) / 2


def saint_venant_kirchhoff(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """μ E:E + λ/2 tr(E)²: Hooke's law for great rotations and small strains.

    Not for great compression, where it has no resistance.

    Args:
        u: Displacement of three components, or of two on a plane mesh.
        material: Its moduli μ and λ; what has `shear` and `lame` will do.
        plane: With two components, ``strain`` (E_zz = 0) or ``stress`` (S_zz = 0), whose λ is
            2λμ/(λ+2μ).

    Raises:
        ValueError: `plane` is neither.
    """
    grad = _gradient(u, material, plane)
    E = (grad + grad.T + grad.T * grad) / 2
    lame = material.lame if u.ufl_shape == (3,) else plane_lame(material, plane)
    return material.shear * ufl.inner(E, E) + lame / 2 * ufl.tr(E) ** 2


def neo_hookean(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """μ/2 (tr C − 3 − 2 ln J) + λ/2 (ln J)², compressible, for great strains.

    Args:
        u: Displacement of three components, or of two on a plane mesh.
        material: Its moduli μ and λ; what has `shear` and `lame` will do.
        plane: With two components ``strain`` only: for ``stress`` the strain across would have to
            be solved for at each point.

    Raises:
        ValueError: Plane stress is asked for.

    References:
        J. Bonet, R. D. Wood: Nonlinear Continuum Mechanics for Finite Element Analysis, Cambridge
        2008, eq. 6.27.
    """
    grad = _gradient(u, material, plane)
    dim = u.ufl_shape[0]
    if dim == 2 and plane != "strain":
        raise InputError(
            f"plane={plane!r}: a neo-Hookean plane body is one of plane strain; take "
            "saint_venant_kirchhoff for plane stress, or a mesh in space"
        )
    F = ufl.Identity(dim) + grad
    log_volume = ufl.ln(ufl.det(F))
    distortion = ufl.inner(F, F) - dim - 2 * log_volume
    return material.shear / 2 * distortion + material.lame / 2 * log_volume**2


def _gradient(u: Expr, material: Material, plane: Plane) -> Expr:
    """Return the gradient of a displacement after checks of all arguments of an energy."""
    having("material", material, "shear", "lame")
    check_plane(plane)
    return ufl.grad(expression("u", u, VECTORS))
