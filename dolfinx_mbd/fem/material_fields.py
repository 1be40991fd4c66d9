"""Materials of the cells of a mesh, and their constants as coefficients of forms.

A single material gives `Constant`s, and several materials give piecewise constant functions. A
compiled form is therefore reused for other values. Expressions (graded materials, axes that depend
on the position) are compiled into the form, without their numbers (`fem.compilation`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
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
from dolfinx_mbd.fem.meshing import TaggedMesh, plain_mesh, tagged_entities
from dolfinx_mbd.fem.surface_integrals import squared_norms
from dolfinx_mbd.forms import AnyMaterial, Orthotropic, Plane, strain
from dolfinx_mbd.forms.elasticity import (
    plane_lame,
    rotated,
    tensor,
    thermal_modulus,
    variable_axes,
    voigt_strain,
    voigt_stress,
)

Materials: TypeAlias = AnyMaterial | Mapping[Any, AnyMaterial]
"""One material, or a mapping from groups of cells, by name or tag, to their materials."""

Cells = NDArray[np.int32]

AXES_TOLERANCE = 1e-6
"""Root mean square of QᵀQ − I above which axes Q given as UFL are rejected as not orthonormal."""


@dataclass(frozen=True, eq=False)
class BodyMaterials:
    """Materials of a body, with their density and stress as UFL."""

    by_group: Mapping[str, AnyMaterial]  # by group of cells; a single material has the key ""
    density: Expr  # kg/m³
    law: Callable[[Expr], Expr]  # stress as a function of the strain
    thermal_tensor: Callable[[], Expr]  # C:α; an error if a material has no `thermal_expansion`
    out_of_plane: Callable[[Expr], Expr] | None = None  # σ_zz of a strain, for plane strain only
    cells: tuple[Cells, ...] | None = None  # owned cells of each group; None: one material

    def stress(self, u: Expr) -> Expr:
        """Return the stress σ(u), Pa; for a plane body, under its plane assumption."""
        return self.law(strain(u))

    def stress_in_space(self, u: Expr) -> Expr:
        """Return σ(u) with all components, shape (3, 3), Pa, also for a plane body."""
        return self.law_in_space(strain(u))

    def law_in_space(self, eps: Expr) -> Expr:
        """Return all components of the stress for a given strain, shape (3, 3), Pa."""
        sigma = self.law(eps)
        if sigma.ufl_shape == (3, 3):
            return sigma
        zz = ufl.as_ufl(0.0) if self.out_of_plane is None else self.out_of_plane(eps)
        rows = [[sigma[i, 0], sigma[i, 1], 0.0] for i in range(2)]
        return ufl.as_matrix([*rows, [0.0, 0.0, zz]])

    def thermal_stress(self, rise: Any) -> Expr:
        """Return the stress −C:(α ΔT) of the body held at its undeformed shape, Pa."""
        return -rise * self.thermal_tensor()


def body_materials(
    mesh: TaggedMesh | Mesh,
    material: Materials,
    cell_tags: MeshTags | None = None,
    plane: Plane | None = None,
) -> BodyMaterials:
    """Return the materials of all cells; each cell must have exactly one (collective)."""
    plain, assumption = plain_mesh(mesh), plane or "strain"
    dim = plain.geometry.dim
    if isinstance(material, Mapping):
        by_group = {str(key): value for key, value in material.items()}
        field = _Field(plain, _material_cells(mesh, material, cell_tags))
    else:
        by_group, field = {"": material}, _Field(plain, None)
    numbered = dict(enumerate(by_group.values()))
    isotropic = {k: m for k, m in numbered.items() if not isinstance(m, Orthotropic)}
    orthotropic = {k: m for k, m in numbered.items() if isinstance(m, Orthotropic)}
    axes = {k: variable_axes(m, dim) for k, m in orthotropic.items()}
    fixed = {k: m for k, m in orthotropic.items() if axes[k] is None}
    varying = {k: m for k, m in orthotropic.items() if axes[k] is not None}
    for k in varying:
        _check_rotation(plain, axes[k], field.where(k))
    shear = field({k: m.shear for k, m in isotropic.items()})
    lame = field(
        {k: m.lame if dim == 3 else plane_lame(m, assumption) for k, m in isotropic.items()}
    )
    matrix = field({k: m.matrix(dim, assumption) for k, m in fixed.items()})
    matrices = {k: field.constant(m.matrix(dim, assumption)) for k, m in varying.items()}

    def combined(
        of_isotropic: Callable[[], Expr],
        of_fixed: Callable[[], Expr],
        of_varying: Callable[[int], Expr],
    ) -> Expr:
        """Return the sum over the kinds of materials; each term is zero in the other cells."""
        parts = [of_isotropic()] if isotropic else []
        parts += [of_fixed()] if fixed else []
        parts += [field.where(k) * of_varying(k) for k in varying]
        return sum(parts[1:], start=parts[0])

    def law(eps: Expr) -> Expr:
        return combined(
            lambda: 2 * shear * eps + lame * ufl.tr(eps) * ufl.Identity(dim),
            lambda: voigt_stress(eps, matrix),
            lambda k: voigt_stress(eps, matrices[k], axes[k]),
        )

    def thermal_tensor() -> Expr:
        moduli = {k: thermal_modulus(m, dim, assumption) for k, m in isotropic.items()}
        thermal = {k: m.thermal_matrix(dim, assumption) for k, m in orthotropic.items()}
        return combined(
            lambda: field(moduli) * ufl.Identity(dim),
            lambda: tensor(field({k: thermal[k] for k in fixed})),
            lambda k: rotated(tensor(field.constant(thermal[k])), axes[k]),
        )

    def out_of_plane(eps: Expr) -> Expr:
        rows = {k: m.normal_row() for k, m in orthotropic.items()}
        return combined(
            lambda: lame * ufl.tr(eps),
            lambda: ufl.dot(field({k: rows[k] for k in fixed}), voigt_strain(eps)),
            lambda k: ufl.dot(field.constant(rows[k]), voigt_strain(eps, axes[k])),
        )

    density = field({k: m.density for k, m in numbered.items()})
    normal = out_of_plane if dim == 2 and assumption == "strain" else None
    cells = None if field.cells is None else tuple(field.cells)
    return BodyMaterials(by_group, density, law, thermal_tensor, normal, cells)


def completed_materials(
    mesh: TaggedMesh | Mesh, materials: Materials, cell_tags: MeshTags | None
) -> Materials:
    """Return materials by group with those of the file of the mesh for all other groups."""
    if (
        not isinstance(mesh, TaggedMesh)
        or not isinstance(materials, Mapping)
        or not materials
        or not mesh.materials
        or cell_tags is not None
    ):
        return materials
    others = [
        group
        for group in mesh.materials
        if group not in materials and mesh.groups[group][1] not in materials
    ]
    return {**materials, **{group: mesh.materials[group] for group in others}}


def file_materials(mesh: TaggedMesh | Mesh) -> Materials | None:
    """Return the materials of the file of a mesh, or one if all cells have the same (collective).

    Return None if the mesh has no materials.
    """
    materials = dict(mesh.materials) if isinstance(mesh, TaggedMesh) else {}
    if len({id(material) for material in materials.values()}) == 1:
        _material_cells(mesh, materials, None)  # each cell has the material
        return next(iter(materials.values()))
    return materials or None


class _Field:
    """Coefficients made from the constants of each material: numbers, arrays or expressions."""

    def __init__(self, mesh: Mesh, cells: list[Cells] | None) -> None:
        self.mesh, self.cells = mesh, cells
        self.indicators: dict[int, Expr] = {}

    def constant(self, value: Any) -> Expr:
        """Return a number or an array as a `Constant`; an expression is returned unchanged."""
        if isinstance(value, Expr):
            return value
        return fem.Constant(self.mesh, np.asarray(value, dtype=default_scalar_type))

    def where(self, k: int) -> Any:
        """Return 1 in the cells of a material and 0 elsewhere."""
        if self.cells is None:
            return 1
        if k not in self.indicators:
            self.indicators[k] = self._piecewise_constant({k: 1.0})
        return self.indicators[k]

    def __call__(self, values: Mapping[int, Any]) -> Any:
        """Return a coefficient with a value in the cells of each material and 0 elsewhere."""
        if not values:
            return None
        expressions = {k: v for k, v in values.items() if isinstance(v, Expr)}
        for expression in expressions.values():
            _check_domain(expression, self.mesh)
        if self.cells is None:
            (value,) = values.values()
            return value if expressions else self.constant(value)
        numbers = {k: v for k, v in values.items() if k not in expressions}
        parts: list[Any] = [self._piecewise_constant(numbers)] if numbers else []
        parts += [self.where(k) * v for k, v in expressions.items()]
        return sum(parts[1:], start=parts[0])

    def _piecewise_constant(self, values: Mapping[int, Any]) -> fem.Function:
        """Return the function with a value in the cells of each group (collective)."""
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


def _material_cells(
    mesh: TaggedMesh | Mesh, materials: Mapping[Any, Any], cell_tags: MeshTags | None
) -> list[Cells]:
    """Return the owned cells of each material; raise an error unless every cell has one."""
    if not materials:
        raise InputError("a mapping from groups of cells to materials must not be empty")
    plain, keys = plain_mesh(mesh), list(materials)
    comm, index_map = plain.comm, plain.topology.index_map(plain.topology.dim)
    owner = np.full(index_map.size_local, -1)
    cells: list[Cells] = []
    for k, key in enumerate(keys):
        if not isinstance(key, (str, int, np.integer)) or isinstance(key, bool):
            raise InputError(
                f"materials are selected by the name or the tag of a group of cells; got {key!r}"
            )
        key = key if isinstance(key, str) else int(key)
        local = tagged_entities(mesh, f"the material of {key!r}", key, cell_tags, "cell")
        cells.append(local[local < index_map.size_local])
        if comm.allreduce(len(cells[k])) == 0:
            raise InputError(f"the group of cells {key!r}, which has a material, has no cells")
        before = owner[cells[k]]
        if overlap := comm.allreduce(int(np.sum(before >= 0))):
            other = keys[comm.allreduce(int(before.max(initial=-1)), op=MPI.MAX)]
            raise InputError(
                f"{overlap} cells have two materials, those of the groups {other!r} and {key!r}; "
                "a cell has exactly one"
            )
        owner[cells[k]] = k
    missing = np.flatnonzero(owner < 0).astype(np.int32)
    if count := comm.allreduce(len(missing)):
        raise InputError(
            f"{count} of the {index_map.size_global} cells have no material: "
            f"{_describe(mesh, cell_tags, missing)}; give each group of cells its material"
        )
    return cells


def _describe(mesh: TaggedMesh | Mesh, tags: MeshTags | None, cells: Cells) -> str:
    """Return the number of cells in each group as text, equal on all ranks."""
    plain, names = plain_mesh(mesh), {}
    if isinstance(mesh, TaggedMesh):
        tags = mesh.cell_tags if tags is None else tags
        dim = plain.topology.dim
        names = {tag: repr(name) for name, (d, tag) in mesh.groups.items() if d == dim}
    of_cell = {} if tags is None else dict(zip(tags.indices, tags.values.tolist(), strict=True))
    groups = Counter(chain(*plain.comm.allgather([of_cell.get(cell) for cell in cells])))
    untagged = groups.pop(None, 0)
    texts = [
        f"{number} in the group {names.get(tag, f'of tag {tag}')}"
        for tag, number in sorted(groups.items())
    ]
    return ", ".join(texts + ([f"{untagged} without a tag"] if untagged else []))


def _check_domain(expression: Expr, mesh: Mesh) -> None:
    """Raise an error if an expression is on another mesh."""
    if any(domain != mesh.ufl_domain() for domain in extract_domains(expression)):
        raise InputError(f"a material constant is given on another mesh: {expression}")


def _check_rotation(mesh: Mesh, axes: Any, where: Any) -> None:
    """Raise an error if axes, given as an expression, are not orthonormal."""
    _check_domain(axes, mesh)
    excess = ufl.dot(axes.T, axes) - ufl.Identity(axes.ufl_shape[0])
    square, size = squared_norms(mesh, excess, ufl.as_ufl(1.0), weight=where)
    if not np.sqrt(square / size) < AXES_TOLERANCE:
        raise InputError(
            "the axes of an orthotropic material are not a rotation everywhere (QᵀQ − I has RMS "
            f"{np.sqrt(square / size):.1e}); their columns must be unit vectors at right angles"
        )
