"""`ElasticModel`: mesh, material, elements and prestress of an elastic body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh, MeshTags
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import assign
from dolfinx_mbd.checks import choice, instance, integer, number, reject
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.linalg.options import require_real
from dolfinx_mbd.fem.material_fields import (
    BodyMaterials,
    Materials,
    body_materials,
    completed_materials,
    file_materials,
)
from dolfinx_mbd.fem.mesh_checks import check_cells, warn_of_elements, warn_of_materials
from dolfinx_mbd.fem.meshing import TaggedMesh, plain_mesh
from dolfinx_mbd.forms import PLANES, GradedMaterial, Material, Orthotropic, Plane, Temperature
from dolfinx_mbd.html import short_repr

MAX_DEGREE = 20  # DOLFINx has no quadrature for a stiffness of higher degree


@dataclass(frozen=True, eq=False)
class ElasticModel:
    """An elastic body: mesh, material, finite element space and prestress.

    The model is checked when it is created. `reduce`, `Reducer`, `modal_analysis`, `transient` and
    `rotating_structure` accept it in place of a mesh and a material.

    Attributes:
        mesh: A `TaggedMesh`, whose groups of cells and facets have names, or a plain DOLFINx mesh.
            Its cells are volumes in space, or faces in the plane.
        material: A `Material`, `GradedMaterial` or `Orthotropic`; or a mapping from groups of
            cells, by name or tag, to their materials. By default the `materials` of the mesh, which
            `read_mesh` takes from some files; they also complete a mapping of some groups.
            Otherwise give `stiffness` and `density`.
        space: Vector Lagrange space of the displacement, by default of degree `degree`.
        degree: Polynomial degree of the default space; at least the geometric order of the mesh.
        stiffness: Bilinear form on `space`, the stiffness of the body without supports. The form of
            a plane body includes the thickness. By default it is linear elasticity.
        density: Density, a number or a UFL expression, kg/m³; by default the density of the
            material.
        plane: Assumption of a plane mesh, ``stress`` (a plate that is free on both sides) or
            ``strain`` (no strain out of the plane); not required with `stiffness`.
        thickness: Thickness of a plane mesh, m.
        prestress: `Temperature`, or the symmetric stress (UFL of shape (dim, dim), Pa) that the
            body has while it is held at its undeformed shape. The body deforms until it is in
            equilibrium with its supports; the remaining stress changes its stiffness.
        cell_tags: Tags of cells of a plain DOLFINx mesh with several materials.
        facet_tags: Tags of facets of a plain DOLFINx mesh.
        displacements: The displacement space: `space`, or the default space.
        materials: Stress and density of the material as UFL; None with `stiffness`.
        mass_density: Density as UFL, kg/m³.

    Raises:
        InputError: The arguments are inconsistent; every rank raises the same error.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> from mpi4py import MPI
        >>> from dolfinx.mesh import create_unit_square
        >>> import dolfinx_mbd as mbd
        >>> mesh = create_unit_square(MPI.COMM_WORLD, 4, 4)
        >>> plate = mbd.ElasticModel(mesh, mbd.STEEL, plane="stress", thickness=0.02)
        >>> mbd.modal_analysis(plate, num_modes=2).num_rigid
        3
    """

    mesh: TaggedMesh | Mesh
    material: Materials | None = None
    _: KW_ONLY
    space: fem.FunctionSpace | None = None
    degree: int = 2
    stiffness: ufl.Form | None = None
    density: Any = None
    plane: Plane | None = None
    thickness: float | None = None
    prestress: Temperature | Expr | None = None
    cell_tags: MeshTags | None = None
    facet_tags: MeshTags | None = None
    displacements: fem.FunctionSpace = field(init=False, repr=False)
    materials: BodyMaterials | None = field(init=False, repr=False)
    mass_density: Expr = field(init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        require_real()
        mesh = self.plain_mesh
        if self.material is None and self.stiffness is None and isinstance(mesh, Mesh):
            assign(self, material=file_materials(self.mesh))
        _check_types(mesh, self.material)
        for argument in ("cell_tags", "facet_tags"):
            instance(argument, getattr(self, argument), (MeshTags, type(None)))
        if self.material is not None:
            material = completed_materials(self.mesh, self.material, self.cell_tags)
            assign(self, material=material)
        V = _checked_space(mesh, self.space, self.degree)
        check_cells(mesh)
        _check_plane(V.dofmap.bs, self.plane, self.thickness, self.stiffness)
        check_prestress(self.prestress, V.dofmap.bs)
        materials, density = None, self.density
        if self.material is not None:
            materials = body_materials(self.mesh, self.material, self.cell_tags, self.plane)
            warn_of_materials(materials.by_group.values())
            density = materials.density if density is None else density
        if density is None:
            raise InputError("give a material or a density")
        if not isinstance(density, Expr):
            value = number("density", density, positive=True, unit="kg/m³")
            density = fem.Constant(mesh, default_scalar_type(value))
        if self.stiffness is not None:
            check_form(self.stiffness, V)
            materials = None
        elif materials is None:
            raise InputError("give a material, or a stiffness form and a density")
        if self.prestress is not None and materials is None:
            text = "prestress needs a material, whose stress is known (no stiffness form)"
            raise InputError(text, argument="prestress")
        warn_of_elements(V, () if materials is None else materials.by_group.values(), self.plane)
        assign(self, displacements=V, materials=materials, mass_density=density)

    @property
    def plain_mesh(self) -> Mesh:
        """The DOLFINx mesh."""
        return plain_mesh(self.mesh)


def elastic_model(
    model: ElasticModel | TaggedMesh | Mesh, material: Materials | None = None
) -> ElasticModel:
    """Return the given `ElasticModel` (`material` must be None), or make one from a mesh."""
    if not isinstance(model, ElasticModel):
        return ElasticModel(model, material)
    if material is not None:
        text = "an ElasticModel has its own material; give a mesh and a material, or only the model"
        raise InputError(text, argument="material", value=material)
    return model


def reject_prestress(model: ElasticModel, analysis: str) -> None:
    """Raise an error if a model has a prestress, which the named analysis does not include."""
    if model.prestress is not None:
        text = f"{analysis} does not include a prestress; use a model without it"
        raise InputError(text, argument="prestress", value=model.prestress)


def _check_types(mesh: Any, material: Any) -> None:
    """Raise an error with advice if the mesh or the material has the wrong type."""
    if not isinstance(mesh, Mesh):
        text = (
            f"expected a mesh, got {mesh!r}; make one with read_mesh('part.msh', comm) or "
            "build_mesh(builder, comm), or give a dolfinx.mesh.Mesh or an ElasticModel"
        )
        raise InputTypeError(text, argument="mesh", value=mesh)
    if material is None:
        return
    for entry in material.values() if isinstance(material, Mapping) else [material]:
        if not isinstance(entry, (Material, GradedMaterial, Orthotropic)):
            text = (
                f"expected a material, got {entry!r}; give STEEL, material('steel') or another "
                "Material(young, poisson, density), or a mapping from groups of cells to materials"
            )
            raise InputTypeError(text, argument="material", value=entry)


def _checked_space(mesh: Mesh, space: fem.FunctionSpace | None, degree: int) -> fem.FunctionSpace:
    """Return the user's space or the default space; raise an error if it lacks rigid rotations."""
    dim = mesh.topology.dim
    if dim not in (2, 3) or mesh.geometry.dim != dim:
        raise InputError(
            "a body needs a mesh of volumes in space, or of faces in the plane; this one has "
            f"topological dimension {dim} and geometric dimension {mesh.geometry.dim}"
        )
    if mesh.geometry.x.dtype != np.float64:
        raise InputError(
            f"the coordinates of the mesh are {mesh.geometry.x.dtype} numbers, but this package "
            "needs float64; make the mesh with dtype=np.float64",
            argument="mesh",
            value=mesh,
        )
    if space is None:
        degree = integer("degree", degree, low=1, high=MAX_DEGREE)
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
        degree = scalar.degree
    order = compat.geometry_degree(mesh)
    if degree < order:
        raise InputError(
            f"the space has degree {degree} and the mesh geometric order {order}: the space "
            f"would not contain rigid rotations; use degree={order} or more"
        )
    return fem.functionspace(mesh, ("Lagrange", degree, (dim,))) if space is None else space


def _check_plane(dim: int, plane: Any, thickness: Any, stiffness: Any) -> None:
    """Check that a plane body has a thickness and an assumption, and that a solid has neither."""
    if dim == 3:
        if plane is not None or thickness is not None:
            raise InputError("plane and thickness are for plane meshes; this mesh is in space")
        return
    if thickness is None:
        text = "a plane body needs its thickness, a positive number, m; got None"
        raise InputError(text, argument="thickness")
    number("thickness", thickness, positive=True, unit="m")
    if plane is None and stiffness is None:
        raise InputError(
            "a plane body needs plane='stress' (a plate that is free on both sides) or "
            "plane='strain' (no strain out of the plane)"
        )
    choice("plane", plane, PLANES, none=True)


def check_form(form: ufl.Form, V: fem.FunctionSpace) -> None:
    """Raise an error unless the form is a bilinear form on the space."""
    if not isinstance(form, ufl.Form) or len(form.arguments()) != 2:
        reject("stiffness", form, "a bilinear UFL form in a trial and a test function")
    if any(argument.ufl_function_space() != V for argument in form.arguments()):
        raise InputError(
            "the arguments of the stiffness form must be on `space`; give both together"
        )


def check_prestress(prestress: Any, dim: int) -> None:
    """Raise an error unless a prestress is None, a temperature or a stress of shape (dim, dim)."""
    if prestress is None or isinstance(prestress, Temperature):
        return
    expected = f"Temperature(rise) or a symmetric stress as UFL, shape {(dim, dim)}, Pa"
    if not isinstance(prestress, Expr):
        reject("prestress", prestress, expected)
    if prestress.ufl_shape != (dim, dim):
        text = f"prestress must be {expected}; got shape {prestress.ufl_shape}"
        raise InputError(text, argument="prestress", value=prestress)
