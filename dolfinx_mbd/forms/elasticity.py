"""Linear elasticity: small strains, Hooke's law, thermal stress and the stiffness forms.

On a plane mesh a displacement has two components, and an assumption says what happens across the
plane: `plane="strain"`, ε_zz = 0, for a slice of something long or held between walls, or
`plane="stress"`, σ_zz = 0, for a plate that is free on both sides. Integrals over a plane mesh are
over an area; the thickness makes them those of a body.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.checks import choice, having, instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.forms.arguments import expression, integration, nonzero, scalar
from dolfinx_mbd.forms.materials import GradedMaterial, Material, expansion
from dolfinx_mbd.forms.orthotropic import VOIGT, Orthotropic

__all__ = [
    "PLANES",
    "AnyMaterial",
    "Plane",
    "elastic_stiffness",
    "geometric_stiffness",
    "plane_lame",
    "strain",
    "stress",
    "tensor",
    "thermal_modulus",
    "thermal_stress",
    "turned",
    "turning_axes",
    "voigt_strain",
    "voigt_stress",
]

VECTORS = ((2,), (3,))
"""Shapes of a displacement."""

AnyMaterial: TypeAlias = Material | GradedMaterial | Orthotropic
"""What a body may be made of."""

Plane: TypeAlias = Literal["strain", "stress"]
"""What happens across a plane body."""

PLANES = ("strain", "stress")

PLANE_VOIGT = ((0, 0), (1, 1), (0, 1))
"""Components of a symmetric tensor in a plane in Voigt's order."""


def strain(u: Expr) -> Expr:
    """Linear strain ε(u) = (∇u + ∇uᵀ)/2 of a displacement `u`."""
    return ufl.sym(ufl.grad(expression("u", u, VECTORS)))


def stress(u: Expr, material: Any, *, plane: Plane = "strain") -> Expr:
    """Stress of a displacement `u`, Pa: of an isotropic material σ(u) = 2με + λ tr(ε) I.

    Args:
        u: Displacement of three components, or of two on a plane mesh.
        material: `Material`, `GradedMaterial` or `Orthotropic`; or what has moduli `shear` and
            `lame`.
        plane: With two components, `strain` for plane strain, or `stress` for plane stress, whose
            λ is 2λμ/(λ+2μ) = Eν/(1-ν²).

    Raises:
        ValueError: `plane` is neither, or an orthotropic material does not fit the plane.
    """
    eps = strain(u)
    dim = eps.ufl_shape[0]
    check_plane(plane)
    if isinstance(material, Orthotropic):
        C = ufl.as_matrix(material.matrix(dim, plane).tolist())
        return voigt_stress(eps, C, turning_axes(material, dim))
    having("material", material, "shear", "lame")
    lame = material.lame if dim == 3 else plane_lame(material, plane)
    return 2 * material.shear * eps + lame * ufl.tr(eps) * ufl.Identity(dim)


def thermal_stress(
    rise: Any, material: AnyMaterial, dim: int = 3, *, plane: Plane = "strain"
) -> Expr:
    """Stress −C:(α ΔT) of a body that a rise of temperature finds held at its size, Pa.

    With the stress of the displacement it is the stress C:(ε(u) − α ΔT) of a body that is free to
    expand. Of an isotropic material it is −(3λ+2μ) α ΔT in each direction, in plane stress
    −E/(1−ν) α ΔT.

    Args:
        rise: Rise of temperature ΔT above the state without stress, K: a number or UFL.
        material: With `thermal_expansion`.
        dim: 3, or 2 for a plane body.
        plane: See `stress`.

    Returns:
        Shape (dim, dim).

    Raises:
        ValueError: The material has no `thermal_expansion`, or does not fit the plane.
    """
    rise = scalar("rise", rise)
    instance("material", material, (Material, GradedMaterial, Orthotropic))
    choice("dim", dim, (2, 3))
    check_plane(plane)
    if not isinstance(material, Orthotropic):
        return -rise * thermal_modulus(material, dim, plane) * ufl.Identity(dim)
    beta = ufl.as_vector(material.thermal_matrix(dim, plane).tolist())
    return -rise * turned(tensor(beta), turning_axes(material, dim))


def thermal_modulus(material: Material | GradedMaterial, dim: int, plane: str) -> Any:
    """Of an isotropic material: what −`thermal_stress` is in each direction, over ΔT, Pa/K."""
    if dim == 2 and check_plane(plane) == "stress":
        return material.young / (1 - material.poisson) * expansion(material)
    return material.young / (1 - 2 * material.poisson) * expansion(material)


def voigt_stress(eps: Expr, C: Expr, axes: Expr | None = None) -> Expr:
    """Stress of a strain through a matrix in Voigt's order.

    Args:
        eps: Strain, shape (dim, dim).
        C: Stress over strain, xx, yy, zz, yz, xz, xy with shears γ = 2ε, shape (6, 6); in the plane
            xx, yy, xy, shape (3, 3).
        axes: Columns are the axes to which C refers, shape (dim, dim); None: those of `eps`.
    """
    return turned(tensor(ufl.dot(C, voigt_strain(eps, axes))), axes)


def voigt_strain(eps: Expr, axes: Expr | None = None) -> Expr:
    """A strain in Voigt's order with shears γ = 2ε, in the given axes; shape (6,) or (3,)."""
    e = eps if axes is None else ufl.dot(axes.T, ufl.dot(eps, axes))
    pairs = VOIGT if eps.ufl_shape[0] == 3 else PLANE_VOIGT
    return ufl.as_vector([e[i, j] if i == j else 2 * e[i, j] for i, j in pairs])


def tensor(components: Expr) -> Expr:
    """The symmetric tensor of a stress in Voigt's order, of 6 components or 3."""
    pairs = VOIGT if components.ufl_shape == (6,) else PLANE_VOIGT
    index = {pair: k for k, (i, j) in enumerate(pairs) for pair in ((i, j), (j, i))}
    dim = 3 if len(pairs) == 6 else 2
    return ufl.as_matrix([[components[index[i, j]] for j in range(dim)] for i in range(dim)])


def turned(stress: Expr, axes: Expr | None) -> Expr:
    """A stress in the axes of a material as one in the body frame."""
    return stress if axes is None else ufl.dot(axes, ufl.dot(stress, axes.T))


def turning_axes(material: Orthotropic, dim: int) -> Expr | None:
    """The axes of a material if they are an expression, checked for their shape."""
    if not isinstance(material.axes, Expr):
        return None
    if material.axes.ufl_shape != (dim, dim):
        raise InputError(
            f"the axes of an orthotropic material have shape {(dim, dim)} where displacements have "
            f"{dim} components; got {material.axes.ufl_shape}"
        )
    return material.axes


def check_plane(plane: str) -> str:
    """Return the assumption, which is plane strain or plane stress."""
    return str(choice("plane", plane, PLANES))


def plane_lame(material: Any, plane: str) -> Any:
    """λ of a plane body."""
    if check_plane(plane) == "strain":
        return material.lame
    return 2 * material.lame * material.shear / (material.lame + 2 * material.shear)


def elastic_stiffness(
    u: Expr,
    v: Expr,
    material: Any,
    measure: ufl.Measure = ufl.dx,
    *,
    plane: Plane = "strain",
    thickness: Any = 1.0,
) -> ufl.Form:
    """Stiffness ∫ σ(u):ε(v): symmetric; zero for the rigid motions and for nothing else.

    Args:
        u: Displacement.
        v: Test function.
        material: See `stress`.
        measure: Where to integrate.
        plane: See `stress`; for displacements of two components.
        thickness: Of a plane body, m: a number, a `Constant` or a function of space.
    """
    expression("v", v, VECTORS)
    stiffness = ufl.inner(stress(u, material, plane=plane), strain(v))
    thickness = nonzero("thickness", thickness)
    if isinstance(thickness, Expr) or thickness != 1:
        stiffness = thickness * stiffness
    return stiffness * integration(measure)


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
    expression("reference_stress", reference_stress, ((2, 2), (3, 3)))
    shape = expression("u", u).ufl_shape
    gradients = ufl.grad(u), ufl.grad(expression("v", v, (shape,)))
    return ufl.inner(ufl.dot(gradients[0], reference_stress), gradients[1]) * integration(measure)
