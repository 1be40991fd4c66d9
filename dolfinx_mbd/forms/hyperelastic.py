"""Energy densities of hyperelastic materials as UFL functions of the displacement, J/m³.

The first derivative of an energy is the internal force, the second the tangent stiffness:

    energy = saint_venant_kirchhoff(u, material) * dx
    force = ufl.derivative(energy, u, v)
    tangent = ufl.derivative(force, u, w)

Notation: F = I + ∇u, J = det F, C = FᵀF, Green-Lagrange strain E = (C - I)/2. At u = 0 the tangent
equals the linear elastic stiffness of the material (`test_tangents_at_rest_are_hookes_stiffness`).
In a deformed state it includes the geometric stiffness.
"""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.checks import object_with, reject
from dolfinx_mbd.forms.arguments import expression
from dolfinx_mbd.forms.elasticity import (
    DISPLACEMENT_SHAPES,
    Plane,
    check_plane,
    plane_lame,
    strain,
    stress,
)
from dolfinx_mbd.forms.materials import Material


def linear_elastic(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """Return ½ σ(u):ε(u), the energy of Hooke's law with small strains.

    Args:
        u: Displacement, m; three components, or two on a plane mesh.
        material: See `stress`.
        plane: See `stress`.

    Example:
        >>> energy = linear_elastic(fem.Function(V), STEEL) * ufl.dx
    """
    return ufl.inner(stress(u, material, plane=plane), strain(u)) / 2


def saint_venant_kirchhoff(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """Return μ E:E + λ/2 tr(E)², Hooke's law for large rotations and small strains.

    The law is not valid under large compression, because its resistance then vanishes.

    Args:
        u: Displacement, m; three components, or two on a plane mesh.
        material: An object with the moduli `shear` and `lame`, Pa.
        plane: With two components, plane strain (E_zz = 0) or plane stress (S_zz = 0, with
            2λμ/(λ+2μ) in place of λ).

    Raises:
        InputError: `plane` is unknown.

    Example:
        >>> w = fem.Function(V)
        >>> force = ufl.derivative(saint_venant_kirchhoff(w, STEEL) * ufl.dx, w)
    """
    grad = _gradient(u, material, plane)
    E = (grad + grad.T + grad.T * grad) / 2
    lame = material.lame if u.ufl_shape == (3,) else plane_lame(material, plane)
    return material.shear * ufl.inner(E, E) + lame / 2 * ufl.tr(E) ** 2


def neo_hookean(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """Return μ/2 (tr C − 3 − 2 ln J) + λ/2 (ln J)², a compressible law for large strains.

    Args:
        u: Displacement, m; three components, or two on a plane mesh.
        material: An object with the moduli `shear` and `lame`, Pa.
        plane: Must be `"strain"` with two components. Plane stress would require solving for the
            strain out of the plane at each point.

    Raises:
        InputError: `plane` is `"stress"` with two components.

    References:
        J. Bonet, R. D. Wood: Nonlinear Continuum Mechanics for Finite Element Analysis, Cambridge
        2008, eq. 6.27.

    Example:
        >>> energy = neo_hookean(fem.Function(V), material("brass")) * ufl.dx
    """
    grad = _gradient(u, material, plane)
    dim = u.ufl_shape[0]
    if dim == 2 and plane != "strain":
        reject("plane", plane, "'strain' for neo_hookean; use saint_venant_kirchhoff or a 3D mesh")
    F = ufl.Identity(dim) + grad
    log_volume = ufl.ln(ufl.det(F))
    distortion = ufl.inner(F, F) - dim - 2 * log_volume
    return material.shear / 2 * distortion + material.lame / 2 * log_volume**2


def _gradient(u: Expr, material: Material, plane: Plane) -> Expr:
    """Return the gradient of a displacement after checking the arguments of an energy."""
    object_with("material", material, "shear", "lame")
    check_plane(plane)
    return ufl.grad(expression("u", u, DISPLACEMENT_SHAPES))
