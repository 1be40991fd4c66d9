"""Natural frequencies and modes of a body that is free or held on groups of facets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.checks import integer
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.facets import facet_groups
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import free_motions
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.fem.prestress import prestressed
from dolfinx_mbd.forms import Plane, Temperature
from dolfinx_mbd.linalg.options import solver_options
from dolfinx_mbd.modal.spectrum import hertz, spectrum

__all__ = [
    "ModalAnalysis",
    "modal_analysis",
]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModalAnalysis:
    """Modes of a body.

    Attributes:
        frequencies: Of the elastic modes, shape (num_modes,), ascending, Hz.
        modes: The elastic modes, ∫ρ ψ·ψ = 1, signs as in `inertia.sign_field`.
        num_rigid: Rigid motions found: six for a free body in one piece (three in the plane),
            none if held.
        num_below: Modes below `limit`, rigid ones included, as counted by the inertia of K - λM;
            the solver found as many.
        limit: The frequency up to which modes were counted, Hz.
        space: The displacement space.
        seconds: Wall-clock time by phase.
        num_requested: Number of elastic modes that was requested; there are more if the last ones
            share a frequency.
    """

    frequencies: Array
    modes: tuple[fem.Function, ...]
    num_rigid: int
    num_below: int
    limit: float
    space: fem.FunctionSpace
    seconds: Mapping[str, float]
    num_requested: int

    def summary(self) -> str:
        """The frequencies as a table."""
        counted = f"{self.num_below} modes below {self.limit:.6g} Hz by the inertia of K - λM"
        lines = [f"{self.num_rigid} rigid modes; {counted}, all found"]
        count = len(self.frequencies)
        if count > self.num_requested:
            lines += [f"{count} modes instead of {self.num_requested}: the last share a frequency"]
        lines += ["mode   frequency (Hz)"]
        first = self.num_rigid + 1
        lines += [f"{k:4d} {f:16.4f}" for k, f in enumerate(self.frequencies, first)]
        return "\n".join(lines)


def modal_analysis(
    mesh: TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    num_modes: int = 10,
    held: Iterable[str] | Mapping[str, Any] = (),
    prestress: Temperature | Expr | None = None,
    cell_tags: MeshTags | None = None,
    facet_tags: MeshTags | None = None,
    space: fem.FunctionSpace | None = None,
    degree: int = 2,
    stiffness: ufl.Form | None = None,
    density: Any = None,
    plane: Plane | None = None,
    thickness: float | None = None,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_modal_",
) -> ModalAnalysis:
    """Lowest elastic modes of a body, free or with groups of facets held.

    Args:
        mesh: A tagged mesh, or a plain one; in space or in the plane.
        material: `Material`, `GradedMaterial` or `Orthotropic`; or a mapping from groups of cells,
            by name or tag, to their materials.
        num_modes: Number of elastic modes; the rigid ones come on top and are only counted. If
            this number cuts through a multiple frequency, all modes of that frequency are returned.
        held: Groups of facets without displacement: names, or a mapping from name to tag.
        prestress: `Temperature` or a stress as UFL, Pa, that the body would have at its undeformed
            shape; it deforms until it is in equilibrium with what holds it, and what stress is left
            stiffens it (or softens, where it compresses).
        cell_tags: Tags of cells, if `mesh` is a plain mesh and there are several materials.
        facet_tags: Tags of facets, if `mesh` is a plain mesh.
        space: The user's own vector Lagrange space; by default of `degree`.
        degree: Degree of the default space.
        stiffness: The user's own bilinear form on `space`, of the free body.
        density: Number or UFL expression, kg/m³; the material's by default.
        plane: Of a plane mesh, ``strain`` or ``stress``; see `reduce`.
        thickness: Of a plane mesh, m.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...).
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        FactorizationError: The linear solver failed.
        EigenError: The eigenvalue solver failed, or missed a mode.

    Note: Collective over the mesh's communicator.
    """
    check_num_modes(num_modes)
    solver = solver_options(petsc_options_prefix, petsc_options)
    groups = facet_groups(mesh, held, facet_tags)
    phases = Phases()
    with phases("assembly"):
        problem = elastic_problem(
            mesh,
            material,
            cell_tags=cell_tags,
            space=space,
            degree=degree,
            stiffness=stiffness,
            density=density,
            plane=plane,
            thickness=thickness,
        )
    V = problem.space
    facets = np.concatenate([*groups.values(), np.zeros(0, dtype=np.int32)])
    dim = problem.dim
    V.mesh.topology.create_connectivity(dim - 1, dim)
    blocks = fem.locate_dofs_topological(V, dim - 1, np.unique(facets))
    blocks = blocks[blocks < V.dofmap.index_map.size_local]
    dofs = (dim * blocks[:, None] + np.arange(dim)).ravel().astype(np.int32)
    if prestress is not None:
        with phases("prestress"):
            problem = prestressed(problem, prestress, held=dofs, **solver)
    motions = free_motions(problem, dofs)
    found = spectrum(problem, num_modes, dofs, motions, phases=phases, **solver)
    signs = inertia(problem, found.vectors).signs
    modes = tuple(as_function(V, s * v) for s, v in zip(signs, found.vectors.T, strict=True))
    problem.destroy()
    return ModalAnalysis(
        frequencies=hertz(found.squares),
        modes=modes,
        num_rigid=found.num_rigid,
        num_below=found.num_below,
        limit=float(hertz(np.array(found.limit))),
        space=V,
        seconds=phases.seconds(problem.comm),
        num_requested=num_modes,
    )


def check_num_modes(num_modes: int) -> None:
    """Raise an error unless the number of modes is a whole number from zero on."""
    integer("num_modes", num_modes, low=0)
