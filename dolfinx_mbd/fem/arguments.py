"""Checks of the parts of an `ElasticModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh

from dolfinx_mbd.checks import choice, instance, integer, number
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.forms import PLANES, GradedMaterial, Material, Orthotropic, Temperature

__all__ = [
    "check_form",
    "check_plane",
    "check_prestress",
    "check_types",
    "checked_density",
    "checked_space",
]

MAX_DEGREE = 20
"""Greatest degree of a space: beyond it DOLFINx has no quadrature for a stiffness."""


def check_types(mesh: Any, material: Any) -> None:
    """Raise an error if the mesh or the material has the wrong type.

    Raises:
        InputTypeError: The message says how to make one.
    """
    if not isinstance(mesh, Mesh):
        raise InputTypeError(
            f"expected a mesh, got {mesh!r}; make one with read_mesh('part.msh', comm) or "
            "build_mesh(builder, comm), or give a dolfinx.mesh.Mesh or an ElasticModel",
            argument="mesh",
            value=mesh,
        )
    materials = list(material.values()) if isinstance(material, Mapping) else [material]
    for one in materials:
        if one is None and not isinstance(material, Mapping):
            continue
        if not isinstance(one, (Material, GradedMaterial, Orthotropic)):
            raise InputTypeError(
                f"expected a material, got {one!r}; give STEEL, material('steel') or another "
                "Material(young, poisson, density), or a mapping from groups of cells to materials",
                argument="material",
                value=one,
            )


def checked_space(mesh: Mesh, space: fem.FunctionSpace | None, degree: int) -> fem.FunctionSpace:
    """Return the user's space or the Lagrange space of a degree, if it contains the rotations."""
    dim = mesh.topology.dim
    if dim not in (2, 3) or mesh.geometry.dim != dim:
        raise InputError(
            "a body needs a mesh of volumes in space, or of faces in the plane; this one has "
            f"topological dimension {dim} and geometric dimension {mesh.geometry.dim}"
        )
    order = compat.geometry_degree(mesh)
    if space is None:
        chosen = integer("degree", degree, low=1, high=MAX_DEGREE)
    else:
        instance("space", space, fem.FunctionSpace)
        element = space.ufl_element()
        scalar = element.sub_elements[0] if element.num_sub_elements else element
        if (
            space.mesh.ufl_domain() != mesh.ufl_domain()
            or space.dofmap.bs != dim
            or scalar.family_name not in ("P", "Q")
            or scalar.discontinuous
            or scalar.reference_value_shape != ()
        ):
            raise InputError(
                f"the space must be a continuous vector Lagrange space with {dim} components on "
                f"this mesh, functionspace(mesh, ('Lagrange', degree, ({dim},))); got {element}"
            )
        chosen = scalar.degree
    if chosen < order:
        raise InputError(
            f"the space has degree {chosen} and the mesh geometric order {order}: rotations would "
            f"not lie in the space; use degree={order} or more"
        )
    return fem.functionspace(mesh, ("Lagrange", chosen, (dim,))) if space is None else space


def check_plane(V: fem.FunctionSpace, plane: Any, thickness: Any, stiffness: Any) -> None:
    """Raise an error unless a plane body, and only that, has a thickness and an assumption."""
    if V.dofmap.bs == 3:
        if plane is not None or thickness is not None:
            raise InputError("plane and thickness are for plane meshes; this mesh is in space")
        return
    if thickness is None:
        raise InputError(
            "a plane body needs its thickness, a positive number, m; got None",
            argument="thickness",
        )
    number("thickness", thickness, positive=True, unit="m")
    if plane is None and stiffness is None:
        raise InputError(
            "a plane body needs plane='stress' (a plate that is free on both sides) or "
            "plane='strain' (no strain across)"
        )
    choice("plane", plane, PLANES, none=True)


def checked_density(mesh: Mesh, own: Any, density: Any) -> Any:
    """Return the density as UFL: a constant for a number, or an expression unchanged.

    Args:
        mesh: Mesh of the constant.
        own: Density of the materials as UFL; None without a material.
        density: Density that replaces it, kg/m³; None: the density of the materials.
    """
    if density is None:
        if own is None:
            raise InputError("give a material or a density")
        return own
    if isinstance(density, ufl.core.expr.Expr):
        return density
    return fem.Constant(
        mesh, default_scalar_type(number("density", density, positive=True, unit="kg/m³"))
    )


def check_form(form: ufl.Form, V: fem.FunctionSpace) -> None:
    """Raise an error unless the form is a bilinear form on the space."""
    if not isinstance(form, ufl.Form) or len(form.arguments()) != 2:
        raise InputError(
            "stiffness must be a bilinear UFL form in a trial and a test function",
            argument="stiffness",
            value=form,
        )
    if any(argument.ufl_function_space() != V for argument in form.arguments()):
        raise InputError(
            "the arguments of the stiffness form must be on `space`; give both together"
        )


def check_prestress(prestress: Any, dim: int) -> None:
    """Raise an error unless a prestress is None, a temperature or a stress of a dimension."""
    if prestress is None or isinstance(prestress, Temperature):
        return
    if not isinstance(prestress, ufl.core.expr.Expr) or prestress.ufl_shape != (dim, dim):
        expression = isinstance(prestress, ufl.core.expr.Expr)
        shown = f"shape {prestress.ufl_shape}" if expression else repr(prestress)
        raise InputError(
            f"prestress is Temperature(rise) or a symmetric stress as UFL, shape {(dim, dim)}, Pa; "
            f"got {shown}",
            argument="prestress",
            value=prestress,
        )
