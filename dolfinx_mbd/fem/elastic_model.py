"""`ElasticModel`: mesh, material, elements and prestress of an elastic body."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from ufl.core.expr import Expr

from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.arguments import (
    check_form,
    check_plane,
    check_prestress,
    check_types,
    checked_density,
    checked_space,
)
from dolfinx_mbd.fem.material_fields import BodyMaterials, Materials, body_materials
from dolfinx_mbd.fem.mesh_checks import check_cells, warn_of_elements, warn_of_materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import Plane, Temperature
from dolfinx_mbd.linalg.options import require_real

__all__ = ["ElasticModel", "elastic_model", "refuse_prestress"]


@dataclass(frozen=True, eq=False)
class ElasticModel:
    """An elastic body: mesh, material, finite element space and prestress.

    The model is checked when it is created. `reduce`, `Reducer`, `modal_analysis`, `transient` and
    `rotating_structure` accept it in place of a mesh and a material.

    Attributes:
        mesh: A `TaggedMesh`, whose groups of cells and facets have names, or a plain DOLFINx mesh;
            of volumes in space or of faces in the plane.
        material: A `Material`, `GradedMaterial` or `Orthotropic`; or a mapping from groups of
            cells, by name or tag, to their materials. None: `stiffness` and `density` are required.
        space: Vector Lagrange space of the displacement; None: Lagrange of `degree`.
        degree: Polynomial degree of the default space; at least the geometric order of the mesh.
        stiffness: Bilinear form on `space`, the stiffness of the body without supports. The form of
            a plane body includes the thickness. None: linear elasticity of the material.
        density: Density, a number or a UFL expression, kg/m³; None: that of the material.
        plane: Assumption of a plane mesh, ``stress`` (a plate that is free on both sides) or
            ``strain`` (no strain across); not required with `stiffness`.
        thickness: Thickness of a plane mesh, m.
        prestress: `Temperature`, or a symmetric stress as UFL, shape (dim, dim), Pa, of the body
            held at its undeformed shape. The body deforms until it is in equilibrium with its
            supports; the stress that remains changes its stiffness.
        cell_tags: Tags of cells of a plain DOLFINx mesh with several materials.
        facet_tags: Tags of facets of a plain DOLFINx mesh.
        displacements: The displacement space: `space`, or the default space.
        materials: Stress and density of the material as UFL; None with `stiffness`.
        mass_density: Density as UFL, kg/m³.

    Raises:
        InputError: A value does not fit the others; the same error on every rank.

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

    def __post_init__(self) -> None:
        require_real()
        check_types(self.plain_mesh, self.material)
        for argument in ("cell_tags", "facet_tags"):
            instance(argument, getattr(self, argument), (MeshTags, type(None)))
        V = checked_space(self.plain_mesh, self.space, self.degree)
        check_cells(self.plain_mesh)
        check_plane(V, self.plane, self.thickness, self.stiffness)
        check_prestress(self.prestress, V.dofmap.bs)
        materials = None
        if self.material is not None:
            materials = body_materials(self.mesh, self.material, self.cell_tags, self.plane)
            warn_of_materials(materials.by_group.values())
        own_density = None if materials is None else materials.density
        density = checked_density(self.plain_mesh, own_density, self.density)
        if self.stiffness is not None:
            check_form(self.stiffness, V)
            materials = None
        elif materials is None:
            raise InputError("give a material, or a stiffness form and a density")
        if self.prestress is not None and materials is None:
            raise InputError(
                "prestress needs a material, whose stress is known (no stiffness form)",
                argument="prestress",
            )
        warn_of_elements(V, () if materials is None else materials.by_group.values(), self.plane)
        object.__setattr__(self, "displacements", V)
        object.__setattr__(self, "materials", materials)
        object.__setattr__(self, "mass_density", density)

    @property
    def plain_mesh(self) -> Mesh:
        """The DOLFINx mesh."""
        return self.mesh.mesh if isinstance(self.mesh, TaggedMesh) else self.mesh


def elastic_model(
    model: ElasticModel | TaggedMesh | Mesh, material: Materials | None = None
) -> ElasticModel:
    """Return a model, or the model of a mesh and its material.

    Args:
        model: An `ElasticModel`, or a mesh.
        material: Material of a mesh; None with an `ElasticModel`, which has its own.

    Raises:
        InputError: The material is given twice, or does not fit the mesh.

    Note: Collective.
    """
    if not isinstance(model, ElasticModel):
        return ElasticModel(model, material)
    if material is not None:
        raise InputError(
            "an ElasticModel has its own material; give a mesh and a material, or the model alone",
            argument="material",
            value=material,
        )
    return model


def refuse_prestress(model: ElasticModel, analysis: str) -> None:
    """Raise an error if a model has a prestress, which an analysis does not include."""
    if model.prestress is not None:
        raise InputError(
            f"{analysis} does not include a prestress; use a model without it",
            argument="prestress",
            value=model.prestress,
        )
