"""Isotropic linear elasticity: small strains, Hooke's law and the stiffness form.

On a plane mesh a displacement has two components, and an assumption says what happens across the
plane: `plane="strain"`, ε_zz = 0, for a slice of something long or held between walls, or
`plane="stress"`, σ_zz = 0, for a plate that is free on both sides. Integrals over a plane mesh are
over an area; the thickness makes them those of a body.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.forms.materials import Material

__all__ = ["PLANES", "Plane", "elastic_stiffness", "geometric_stiffness", "strain", "stress"]

Plane: TypeAlias = Literal["strain", "stress"]
"""What happens across a plane body."""

PLANES = ("strain", "stress")


def strain(u: Expr) -> Expr:
    """Linear strain ε(u) = (∇u + ∇uᵀ)/2 of a displacement `u`."""
    return ufl.sym(ufl.grad(u))


def stress(u: Expr, material: Material, *, plane: Plane = "strain") -> Expr:
    """Cauchy stress σ(u) = 2με + λ tr(ε) I of a displacement `u`, Pa.

    Args:
        u: Displacement of three components, or of two on a plane mesh.
        material: Its moduli μ and λ; what has `shear` and `lame` will do.
        plane: With two components, `strain` for plane strain, or `stress` for plane stress, whose
            λ is 2λμ/(λ+2μ) = Eν/(1-ν²).

    Raises:
        ValueError: `plane` is neither.
    """
    eps = strain(u)
    dim = eps.ufl_shape[0]
    lame = material.lame if dim == 3 else _plane_lame(material, plane)
    return 2 * material.shear * eps + lame * ufl.tr(eps) * ufl.Identity(dim)


def _plane_lame(material: Material, plane: str) -> Any:
    if plane not in PLANES:
        raise ValueError(f"plane is 'strain' or 'stress'; got {plane!r}")
    if plane == "strain":
        return material.lame
    return 2 * material.lame * material.shear / (material.lame + 2 * material.shear)


def elastic_stiffness(
    u: Expr,
    v: Expr,
    material: Material,
    measure: ufl.Measure = ufl.dx,
    *,
    plane: Plane = "strain",
    thickness: Any = 1.0,
) -> ufl.Form:
    """Stiffness ∫ σ(u):ε(v): symmetric; zero for the rigid motions and for nothing else.

    Args:
        u: Displacement.
        v: Test function.
        material: Isotropic material.
        measure: Where to integrate.
        plane: See `stress`; for displacements of two components.
        thickness: Of a plane body, m: a number, a `Constant` or a function of space.
    """
    stiffness = ufl.inner(stress(u, material, plane=plane), strain(v))
    if isinstance(thickness, Expr) or thickness != 1:
        stiffness = thickness * stiffness
    return stiffness * measure


def geometric_stiffness(
    u: Expr, v: Expr, reference_stress: Expr, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Stiffness ∫ (∇u σ₀):∇v of a reference stress σ₀: tension stiffens, compression softens.

    The quadratic part of the Green-Lagrange strain, ½ ∇uᵀ∇u, does the work ½ σ₀:(∇uᵀ∇u); its second
    derivative is this form (`test_geometric_stiffness_is_a_second_derivative`). The components of a
    displacement do not mix, so that u and v may also be scalar functions, one component of it.

    Args:
        u: Displacement, or one component of it.
        v: Test function of the same shape.
        reference_stress: σ₀, symmetric, Pa; shape (dim, dim).
        measure: Where to integrate.
    """
    return ufl.inner(ufl.dot(ufl.grad(u), reference_stress), ufl.grad(v)) * measure
