"""Isotropic linear elasticity: small strains, Hooke's law and the stiffness form."""

from __future__ import annotations

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.forms.materials import Material

__all__ = ["elastic_stiffness", "strain", "stress"]


def strain(u: Expr) -> Expr:
    """Linear strain ε(u) = (∇u + ∇uᵀ)/2 of a displacement `u`."""
    return ufl.sym(ufl.grad(u))


def stress(u: Expr, material: Material) -> Expr:
    """Cauchy stress σ(u) = 2με + λ tr(ε) I of a displacement `u`, Pa.

    A displacement of two components on a plane mesh is in plane strain.
    """
    eps = strain(u)
    return 2 * material.shear * eps + material.lame * ufl.tr(eps) * ufl.Identity(eps.ufl_shape[0])


def elastic_stiffness(
    u: Expr, v: Expr, material: Material, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Stiffness ∫ σ(u):ε(v): symmetric; zero for the rigid motions and for nothing else."""
    return ufl.inner(stress(u, material), strain(v)) * measure
