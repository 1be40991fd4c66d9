"""What `reduce` and `modal_analysis` are given is checked before anything is assembled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh

from dolfinx_mbd.analysis import compat
from dolfinx_mbd.forms import PLANES, GradedMaterial, Material, Orthotropic

__all__ = ["check_form", "check_plane", "check_types", "checked_density", "checked_space"]


def check_types(mesh: Any, material: Any) -> None:
    """Refuse what is no mesh and what is no material.

    Raises:
        TypeError: Says what makes one.
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"expected a mesh, got {mesh!r}; make one with read_mesh('part.msh', comm) or "
            "build_mesh(builder, comm), or give a dolfinx.mesh.Mesh"
        )
    given = list(material.values()) if isinstance(material, Mapping) else [material]
    for one in given:
        if one is None and not isinstance(material, Mapping):
            continue
        if not isinstance(one, (Material, GradedMaterial, Orthotropic)):
            raise TypeError(
                f"expected a material, got {one!r}; give STEEL, material('steel') or another "
                "Material(young, poisson, density), or a mapping from groups of cells to materials"
            )


def checked_space(mesh: Mesh, space: fem.FunctionSpace | None, degree: int) -> fem.FunctionSpace:
    """The user's space, or Lagrange of that degree, if x and the rotations lie in it."""
    dim = mesh.topology.dim
    if dim not in (2, 3) or mesh.geometry.dim != dim:
        raise ValueError(
            "a body needs a mesh of volumes in space, or of faces in the plane; this one has "
            f"topological dimension {dim} and geometric dimension {mesh.geometry.dim}"
        )
    order = compat.geometry_degree(mesh)
    if space is None:
        if not isinstance(degree, (int, np.integer)) or degree < 1:
            raise ValueError(f"the degree of the space must be 1, 2, ...; got {degree!r}")
        chosen = int(degree)
    else:
        element = space.ufl_element()
        scalar = element.sub_elements[0] if element.num_sub_elements else element
        if (
            space.mesh.ufl_domain() != mesh.ufl_domain()
            or space.dofmap.bs != dim
            or scalar.family_name not in ("P", "Q")
            or scalar.discontinuous
            or scalar.reference_value_shape != ()
        ):
            raise ValueError(
                f"the space must be a continuous vector Lagrange space with {dim} components on "
                f"this mesh, functionspace(mesh, ('Lagrange', degree, ({dim},))); got {element}"
            )
        chosen = scalar.degree
    if chosen < order:
        raise ValueError(
            f"the space has degree {chosen} and the mesh geometric order {order}: rotations would "
            f"not lie in the space; use degree={order} or more"
        )
    return fem.functionspace(mesh, ("Lagrange", chosen, (dim,))) if space is None else space


def check_plane(V: fem.FunctionSpace, plane: Any, thickness: Any, stiffness: Any) -> None:
    """Refuse a plane body without its thickness or assumption, and one in space with them."""
    if V.dofmap.bs == 3:
        if plane is not None or thickness is not None:
            raise ValueError("plane and thickness are for plane meshes; this mesh is in space")
        return
    numbers = (int, float, np.integer, np.floating)
    if (
        not isinstance(thickness, numbers)
        or isinstance(thickness, bool)
        or not 0 < thickness < np.inf
    ):
        raise ValueError(
            f"a plane body needs its thickness, a positive number, m; got {thickness!r}"
        )
    if plane is None and stiffness is None:
        raise ValueError(
            "a plane body needs plane='stress' (a plate that is free on both sides) or "
            "plane='strain' (no strain across)"
        )
    if plane is not None and plane not in PLANES:
        raise ValueError(f"plane is 'strain' or 'stress'; got {plane!r}")


def checked_density(mesh: Mesh, own: Any, density: Any) -> Any:
    """The density as UFL: a positive number as a constant, an expression as it is.

    Args:
        mesh: Where constants live.
        own: The density of the materials, as UFL; None where there is none.
        density: What the user gives instead, or None.
    """
    if density is None:
        if own is None:
            raise ValueError("give a material or a density")
        return own
    if isinstance(density, (int, float, np.number)):
        if not (np.isfinite(density) and density > 0):
            raise ValueError(f"density must be positive, in kg/m^3 (steel: 7850); got {density}")
        return fem.Constant(mesh, default_scalar_type(density))
    if not isinstance(density, ufl.core.expr.Expr):
        raise ValueError(f"density must be a number, kg/m^3, or a UFL expression; got {density!r}")
    return density


def check_form(form: ufl.Form, V: fem.FunctionSpace) -> None:
    """Refuse what is no bilinear form on the space."""
    if not isinstance(form, ufl.Form) or len(form.arguments()) != 2:
        raise ValueError("stiffness must be a bilinear UFL form in a trial and a test function")
    if any(argument.ufl_function_space() != V for argument in form.arguments()):
        raise ValueError(
            "the arguments of the stiffness form must be on `space`; give both together"
        )
