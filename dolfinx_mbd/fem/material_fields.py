"""The materials of a body on its mesh: which cell is of what, and their constants as coefficients.

The constants of one material are `Constant`s, those of several are piecewise constant functions, so
that one compiled form serves all numbers; expressions (graded materials, axes that turn from point
to point) are compiled into the form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import ufl
from dolfinx import default_scalar_type, fem
from dolfinx.mesh import Mesh, MeshTags
from mpi4py import MPI
from numpy.typing import NDArray
from ufl.core.expr import Expr
from ufl.domain import extract_domains

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.forms import AnyMaterial, Orthotropic, Plane, strain
from dolfinx_mbd.forms.elasticity import (
    plane_lame,
    tensor,
    thermal_modulus,
    turned,
    turning_axes,
    voigt_strain,
    voigt_stress,
)

__all__ = ["BodyMaterials", "Materials", "body_materials", "material_cells"]

Materials: TypeAlias = AnyMaterial | Mapping[Any, AnyMaterial]
"""One material, or a mapping from groups of cells, by name or tag, to their materials."""

Cells = NDArray[np.int32]

AXES_TOLERANCE = 1e-6
"""Mean of |QᵀQ − I| from which axes given by an expression are no rotation."""


@dataclass(frozen=True, eq=False)
class BodyMaterials:
    """What a body is made of.

    Attributes:
        by_group: The materials by the group of cells, as text; of one material by "".
        density: ρ as UFL, kg/m³.
        law: Stress of a strain, as UFL.
        heat: Stress over the rise of temperature at a held size, as UFL; raises if a material has
            no `thermal_expansion`.
        across: σ_zz of a strain, as UFL, of a body in plane strain; None of others.
    """

    by_group: Mapping[str, AnyMaterial]
    density: Expr
    law: Callable[[Expr], Expr]
    heat: Callable[[], Expr]
    across: Callable[[Expr], Expr] | None = None

    def stress(self, u: Expr) -> Expr:
        """Stress σ(u) of a displacement, Pa; of a plane body by its assumption."""
        return self.law(strain(u))

    def stress_in_space(self, u: Expr) -> Expr:
        """Stress σ(u) with all its components, shape (3, 3), Pa; in plane strain σ_zz is one."""
        sigma = self.stress(u)
        if sigma.ufl_shape == (3, 3):
            return sigma
        zz = ufl.as_ufl(0.0) if self.across is None else self.across(strain(u))
        rows = [[sigma[i, 0], sigma[i, 1], 0.0] for i in range(2)]
        return ufl.as_matrix([*rows, [0.0, 0.0, zz]])

    def thermal_stress(self, rise: Any) -> Expr:
        """Stress −C:(α ΔT) of the body held at its size, Pa.

        Raises:
            ValueError: A material has no `thermal_expansion`.
        """
        return -rise * self.heat()


def body_materials(
    mesh: TaggedMesh | Mesh,
    material: Materials,
    cell_tags: MeshTags | None = None,
    plane: Plane | None = None,
) -> BodyMaterials:
    """Materials of all cells of a mesh.

    Args:
        mesh: In space or in the plane; its groups of cells go by name if it is a tagged one.
        material: One for all cells, or by group.
        cell_tags: Tags of cells of a plain mesh.
        plane: Of a plane mesh, "strain" or "stress".

    Raises:
        ValueError: A cell has no material or two, or a material does not fit the mesh.
        TypeError: Something is no material.

    Note: Collective.
    """
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    dim, across = plain.geometry.dim, plane or "strain"
    if isinstance(material, Mapping):
        cells = material_cells(mesh, material, cell_tags)
        by_group = {str(key): value for key, value in material.items()}
        field = _Field(plain, list(cells.values()))
    else:
        by_group, field = {"": material}, _Field(plain, None)
    listed = list(enumerate(by_group.values()))
    isotropic = {k: m for k, m in listed if not isinstance(m, Orthotropic)}
    orthotropic = {k: m for k, m in listed if isinstance(m, Orthotropic)}
    axes = {k: turning_axes(m, dim) for k, m in orthotropic.items()}
    fixed = {k: m for k, m in orthotropic.items() if axes[k] is None}
    turning = {k: m for k, m in orthotropic.items() if axes[k] is not None}
    for k in turning:
        _check_rotation(plain, axes[k], field.where(k))

    shear = field({k: m.shear for k, m in isotropic.items()})
    lame = {k: m.lame if dim == 3 else plane_lame(m, across) for k, m in isotropic.items()}
    lame = field(lame)
    matrix = field({k: m.matrix(dim, across) for k, m in fixed.items()})
    own = {k: field.constant(m.matrix(dim, across)) for k, m in turning.items()}

    def combined(
        of_isotropic: Callable[[], Expr],
        of_fixed: Callable[[], Expr],
        of_turning: Callable[..., Expr],
    ) -> Expr:
        """Return the sum over the kinds of materials, each zero in the cells of the others."""
        parts = [of_isotropic()] if isotropic else []
        parts += [of_fixed()] if fixed else []
        parts += [field.where(k) * of_turning(k, m) for k, m in turning.items()]
        return sum(parts[1:], start=parts[0])

    def law(eps: Expr) -> Expr:
        return combined(
            lambda: 2 * shear * eps + lame * ufl.tr(eps) * ufl.Identity(dim),
            lambda: voigt_stress(eps, matrix),
            lambda k, _: voigt_stress(eps, own[k], axes[k]),
        )

    def heat() -> Expr:
        moduli = {k: thermal_modulus(m, dim, across) for k, m in isotropic.items()}
        matrices = {k: m.thermal_matrix(dim, across) for k, m in orthotropic.items()}
        return combined(
            lambda: field(moduli) * ufl.Identity(dim),
            lambda: tensor(field({k: matrices[k] for k in fixed})),
            lambda k, _: turned(tensor(field.constant(matrices[k])), axes[k]),
        )

    def zz(eps: Expr) -> Expr:
        return combined(
            lambda: lame * ufl.tr(eps),
            lambda: ufl.dot(
                field({k: m.row_across() for k, m in fixed.items()}), voigt_strain(eps)
            ),
            lambda k, m: ufl.dot(field.constant(m.row_across()), voigt_strain(eps, axes[k])),
        )

    rho = field({k: m.density for k, m in listed})
    flat_strain = dim == 2 and across == "strain"
    return BodyMaterials(by_group, rho, law, heat, zz if flat_strain else None)


class _Field:
    """Coefficients from the constants of each material: numbers, arrays or expressions."""

    def __init__(self, mesh: Mesh, cells: list[Cells] | None) -> None:
        self.mesh, self.cells = mesh, cells
        self.indicators: dict[int, Expr] = {}

    def constant(self, value: Any) -> fem.Constant:
        return fem.Constant(self.mesh, np.asarray(value, dtype=default_scalar_type))

    def where(self, k: int) -> Any:
        """1 in the cells of a material, 0 elsewhere."""
        if self.cells is None:
            return 1
        if k not in self.indicators:
            self.indicators[k] = self._piecewise({k: 1.0})
        return self.indicators[k]

    def __call__(self, values: Mapping[int, Any]) -> Any:
        """One coefficient that has in the cells of each material its value, elsewhere 0."""
        if not values:
            return None
        expressions = {k: v for k, v in values.items() if isinstance(v, Expr)}
        for expression in expressions.values():
            _check_domain(expression, self.mesh)
        if self.cells is None:
            (value,) = values.values()
            return value if expressions else self.constant(value)
        numbers = {k: v for k, v in values.items() if k not in expressions}
        parts: list[Any] = [self._piecewise(numbers)] if numbers else []
        parts += [self.where(k) * v for k, v in expressions.items()]
        return sum(parts[1:], start=parts[0])

    def _piecewise(self, values: Mapping[int, Any]) -> fem.Function:
        assert self.cells is not None
        shape = np.shape(next(iter(values.values())))
        element = ("DG", 0, shape) if shape else ("DG", 0)
        f = fem.Function(fem.functionspace(self.mesh, element))
        table = f.x.array.reshape(-1, int(np.prod(shape)))
        dofs = f.function_space.dofmap.list[:, 0]
        for k, value in values.items():
            table[dofs[self.cells[k]]] = np.ravel(value)
        f.x.scatter_forward()
        return f


def material_cells(
    mesh: TaggedMesh | Mesh, materials: Mapping[Any, AnyMaterial], cell_tags: MeshTags | None = None
) -> dict[Any, Cells]:
    """Owned cells of each material, after a check that every cell has exactly one.

    Args:
        mesh: A tagged mesh, whose groups go by name, or a plain mesh with `cell_tags`.
        materials: From group name or tag to material.
        cell_tags: Tags of cells of a plain mesh.

    Raises:
        ValueError: An unknown or empty group, or cells without a material or with two; the same on
            every rank.

    Note: Collective.
    """
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    comm, dim = plain.comm, plain.topology.dim
    if not materials:
        raise InputError("a mapping from groups of cells to materials must not be empty")
    tags = cell_tags
    if tags is None and isinstance(mesh, TaggedMesh):
        tags = mesh.cell_tags
    if tags is not None and tags.dim != dim:
        raise InputError(f"cell_tags must tag cells (dimension {dim}), these have {tags.dim}")
    owned = plain.topology.index_map(dim).size_local
    owner = np.full(owned, -1)
    found: dict[Any, Cells] = {}
    for k, key in enumerate(materials):
        cells = _tagged_cells(mesh, key, tags)
        cells = cells[cells < owned]
        if comm.allreduce(len(cells)) == 0:
            raise InputError(f"the group of cells {key!r}, which has a material, has no cells")
        before = owner[cells]
        twice = comm.allreduce(int(np.sum(before >= 0)))
        if twice:
            first = comm.allreduce(int(before.max(initial=-1)), op=MPI.MAX)
            raise InputError(
                f"{twice} cells have two materials, those of the groups "
                f"{list(materials)[first]!r} and {key!r}; a cell has exactly one"
            )
        owner[cells] = k
        found[key] = cells
    missing = np.flatnonzero(owner < 0).astype(np.int32)
    count = comm.allreduce(len(missing))
    if count:
        raise InputError(
            f"{count} of the {plain.topology.index_map(dim).size_global} cells have no material: "
            f"{_left_over(mesh, tags, missing)}; give each group of cells its material"
        )
    return found


def _tagged_cells(mesh: TaggedMesh | Mesh, key: Any, tags: MeshTags | None) -> Cells:
    if isinstance(key, str):
        if not isinstance(mesh, TaggedMesh):
            raise InputError(
                f"material of {key!r}: a plain mesh has no group names; give a mapping from tags "
                "to materials and cell_tags, or a TaggedMesh"
            )
        return mesh.cells(key)
    if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
        raise InputError(f"materials go by the name or the tag of a group of cells; got {key!r}")
    if tags is None:
        raise InputError(f"there is a material for the tag {key}, but no cell_tags were given")
    return tags.find(int(key))


def _left_over(mesh: TaggedMesh | Mesh, tags: MeshTags | None, missing: Cells) -> str:
    """Which groups the cells without a material belong to, in words, the same on every rank."""
    plain = mesh.mesh if isinstance(mesh, TaggedMesh) else mesh
    values = np.zeros(0, dtype=np.int64)
    if tags is not None:
        values = tags.values[np.isin(tags.indices, missing)].astype(np.int64)
    values = np.concatenate(plain.comm.allgather(values))
    names = {}
    if isinstance(mesh, TaggedMesh):
        dim = plain.topology.dim
        names = {tag: repr(name) for name, (d, tag) in mesh.groups.items() if d == dim}
    words = [
        f"{number} in the group {names.get(tag, f'of tag {tag}')}"
        for tag, number in zip(*np.unique(values, return_counts=True), strict=True)
    ]
    untagged = plain.comm.allreduce(len(missing)) - len(values)
    return ", ".join(words + ([f"{untagged} without a tag"] if untagged else []))


def _check_domain(expression: Expr, mesh: Mesh) -> None:
    if any(domain != mesh.ufl_domain() for domain in extract_domains(expression)):
        raise InputError(f"a constant of the material is given on another mesh: {expression}")


def _check_rotation(mesh: Mesh, axes: Any, where: Any) -> None:
    """Refuse axes, given as an expression, that are not orthonormal."""
    _check_domain(axes, mesh)
    excess = ufl.dot(axes.T, axes) - ufl.Identity(axes.ufl_shape[0])
    dx = ufl.dx(domain=mesh)
    one = fem.Constant(mesh, default_scalar_type(1.0))
    forms = [fem.form(where * f * dx) for f in (one * ufl.inner(excess, excess), one)]
    square, size = mesh.comm.allreduce(np.array([fem.assemble_scalar(form) for form in forms]))
    if not np.sqrt(square / size) < AXES_TOLERANCE:
        raise InputError(
            "the axes of an orthotropic material are no rotation everywhere (QᵀQ − I has the mean "
            f"{np.sqrt(square / size):.1e}); their columns must be unit vectors at right angles"
        )
