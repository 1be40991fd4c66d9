"""Linear elasticity: small strains, Hooke's law, thermal stress and the stiffness forms.

On a plane mesh a displacement has two components, and `plane` states the assumption about the
direction z out of the plane: `"strain"` (ε_zz = 0, for example a slice of a long body) or
`"stress"` (σ_zz = 0, for example a thin plate with free faces). Integrals over a plane mesh are per
unit of thickness unless a thickness is given.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import ufl
from ufl.core.expr import Expr

from dolfinx_mbd.checks import choice, instance, object_with
from dolfinx_mbd.forms.arguments import expression, integration, nonzero, scalar
from dolfinx_mbd.forms.materials import GradedMaterial, Material, expansion
from dolfinx_mbd.forms.orthotropic import VOIGT, Orthotropic

DISPLACEMENT_SHAPES = ((2,), (3,))
"""Shapes of a displacement on a plane mesh and in space."""

AnyMaterial: TypeAlias = Material | GradedMaterial | Orthotropic
"""A material of a body."""

Plane: TypeAlias = Literal["strain", "stress"]
"""Assumption about the direction out of the plane of a plane body."""

PLANES = get_args(Plane)

PLANE_VOIGT = ((0, 0), (1, 1), (0, 1))  # components xx, yy, xy


def strain(u: Expr) -> Expr:
    """Return the linear strain ε(u) = (∇u + ∇uᵀ)/2.

    Args:
        u: Displacement, m, shape (2,) or (3,).

    Example:
        >>> strain(u).ufl_shape
        (3, 3)
    """
    return ufl.sym(ufl.grad(expression("u", u, DISPLACEMENT_SHAPES)))


def stress(u: Expr, material: Any, *, plane: Plane = "strain") -> Expr:
    """Return the stress of a displacement, Pa; for isotropic materials 2με + λ tr(ε) I.

    Args:
        u: Displacement, m; three components, or two on a plane mesh.
        material: A `Material`, `GradedMaterial` or `Orthotropic`, or any object with the moduli
            `shear` and `lame`, Pa.
        plane: Plane strain or plane stress, used with two components. In plane stress,
            2λμ/(λ+2μ) = Eν/(1-ν²) replaces λ.

    Raises:
        InputError: `plane` is unknown, or the axes of an orthotropic material do not fit the plane.

    Example:
        >>> sigma = stress(u, STEEL)
        >>> mises = ufl.sqrt(1.5 * ufl.inner(ufl.dev(sigma), ufl.dev(sigma)))
    """
    eps = strain(u)
    dim = eps.ufl_shape[0]
    check_plane(plane)
    if isinstance(material, Orthotropic):
        C = ufl.as_matrix(material.matrix(dim, plane).tolist())
        return voigt_stress(eps, C, variable_axes(material, dim))
    object_with("material", material, "shear", "lame")
    lame = material.lame if dim == 3 else plane_lame(material, plane)
    return 2 * material.shear * eps + lame * ufl.tr(eps) * ufl.Identity(dim)


def thermal_stress(
    rise: Any, material: AnyMaterial, dim: int = 3, *, plane: Plane = "strain"
) -> Expr:
    """Return the stress −C:(α ΔT) due to a rise of temperature in a body of fixed shape, Pa.

    Add it to the stress of the displacement to obtain the total stress C:(ε(u) − α ΔT). For an
    isotropic material it is −(3λ+2μ) α ΔT in each direction, and −E/(1−ν) α ΔT in plane stress.

    Args:
        rise: Rise of temperature ΔT above the stress-free state, K: a number or a UFL scalar.
        material: A material with `thermal_expansion`.
        dim: 3, or 2 for a plane body.
        plane: See `stress`.

    Returns:
        Tensor of shape (dim, dim).

    Raises:
        InputError: The material has no `thermal_expansion`, or its axes do not fit the plane.

    Example:
        >>> total = stress(u, STEEL) + thermal_stress(80.0, STEEL)
    """
    rise = scalar("rise", rise)
    instance("material", material, (Material, GradedMaterial, Orthotropic))
    choice("dim", dim, (2, 3))
    check_plane(plane)
    if not isinstance(material, Orthotropic):
        return -rise * thermal_modulus(material, dim, plane) * ufl.Identity(dim)
    per_kelvin = ufl.as_vector(material.thermal_matrix(dim, plane).tolist())  # Voigt, Pa/K
    return -rise * rotated(tensor(per_kelvin), variable_axes(material, dim))


def thermal_modulus(material: Material | GradedMaterial, dim: int, plane: str) -> Any:
    """Return the thermal pressure per kelvin of an isotropic material of fixed shape, Pa/K."""
    if dim == 2 and check_plane(plane) == "stress":
        return material.young / (1 - material.poisson) * expansion(material)
    return material.young / (1 - 2 * material.poisson) * expansion(material)


def voigt_stress(eps: Expr, C: Expr, axes: Expr | None = None) -> Expr:
    """Return the stress of a strain with a stiffness matrix in Voigt notation.

    C maps the strains xx, yy, zz, yz, xz, xy (in the plane xx, yy, xy) with shears γ = 2ε to the
    stresses. C refers to the axes in the columns of `axes`, by default to the axes of the strain.
    """
    return rotated(tensor(ufl.dot(C, voigt_strain(eps, axes))), axes)


def voigt_strain(eps: Expr, axes: Expr | None = None) -> Expr:
    """Return a strain in Voigt notation with shears γ = 2ε, along `axes`, shape (6,) or (3,)."""
    e = eps if axes is None else ufl.dot(axes.T, ufl.dot(eps, axes))
    pairs = VOIGT if eps.ufl_shape[0] == 3 else PLANE_VOIGT
    return ufl.as_vector([e[i, j] if i == j else 2 * e[i, j] for i, j in pairs])


def tensor(components: Expr) -> Expr:
    """Return the symmetric tensor of a stress with 6 or 3 components in Voigt notation."""
    pairs = VOIGT if components.ufl_shape == (6,) else PLANE_VOIGT
    index = {pair: k for k, (i, j) in enumerate(pairs) for pair in ((i, j), (j, i))}
    dim = 3 if len(pairs) == 6 else 2
    return ufl.as_matrix([[components[index[i, j]] for j in range(dim)] for i in range(dim)])


def rotated(stress: Expr, axes: Expr | None) -> Expr:
    """Return a stress in the body frame from its components along the axes of a material."""
    return stress if axes is None else ufl.dot(axes, ufl.dot(stress, axes.T))


def variable_axes(material: Orthotropic, dim: int) -> Expr | None:
    """Return the axes of a material if they are a UFL expression, otherwise None."""
    if not isinstance(material.axes, Expr):
        return None
    return expression("axes", material.axes, ((dim, dim),))


def check_plane(plane: str) -> str:
    """Return `plane` if it is `"strain"` or `"stress"`, and raise an error otherwise."""
    return str(choice("plane", plane, PLANES))


def plane_lame(material: Any, plane: str) -> Any:
    """Return the factor of tr(ε) I in the stress of a plane body, Pa."""
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
    """Return the stiffness form ∫ σ(u):ε(v).

    The form is symmetric and positive semi-definite; it vanishes for rigid motions only.

    Args:
        u: Displacement, m.
        v: Test function.
        material: See `stress`.
        measure: Integration measure.
        plane: See `stress`.
        thickness: Thickness of a plane body, m: a number, a `Constant` or a function of space.

    Example:
        >>> K = elastic_stiffness(u, v, STEEL)
        >>> len(K.arguments())
        2
    """
    expression("v", v, DISPLACEMENT_SHAPES)
    stiffness = ufl.inner(stress(u, material, plane=plane), strain(v))
    thickness = nonzero("thickness", thickness)
    if isinstance(thickness, Expr) or thickness != 1:
        stiffness = thickness * stiffness
    return stiffness * integration(measure)


def geometric_stiffness(
    u: Expr, v: Expr, reference_stress: Expr, measure: ufl.Measure = ufl.dx
) -> ufl.Form:
    """Return the geometric stiffness form ∫ (∇u σ₀):∇v of a reference stress σ₀.

    The form is the second derivative of the work ½ σ₀:(∇uᵀ∇u) of the stress on the quadratic part
    of the Green-Lagrange strain (`test_geometric_stiffness_is_a_second_derivative`). Tension
    stiffens and compression softens. The form does not couple the components of the displacement,
    so `u` and `v` may also be scalar functions that represent one component.

    Args:
        u: Displacement, m, or one of its components.
        v: Test function of the same shape.
        reference_stress: Symmetric stress σ₀, Pa, shape (dim, dim).
        measure: Integration measure.

    Example:
        >>> tension = ufl.as_matrix([[1e6, 0, 0], [0, 0, 0], [0, 0, 0]])
        >>> K = geometric_stiffness(u, v, tension)
    """
    expression("reference_stress", reference_stress, ((2, 2), (3, 3)))
    shape = expression("u", u).ufl_shape
    gradients = ufl.grad(u), ufl.grad(expression("v", v, (shape,)))
    return ufl.inner(ufl.dot(gradients[0], reference_stress), gradients[1]) * integration(measure)
