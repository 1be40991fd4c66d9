"""`reduce`: from a mesh to a reduced flexible body, in parallel; and back with `Reduction`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import dolfinx
import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.analysis.assembly import ElasticProblem, elastic_problem
from dolfinx_mbd.analysis.craig_bampton import MeanAxis, craig_bampton_basis, mean_axis
from dolfinx_mbd.analysis.inertia import Inertia, inertia
from dolfinx_mbd.analysis.interfaces import MeshInterface, mesh_interfaces
from dolfinx_mbd.analysis.meshing import TaggedMesh
from dolfinx_mbd.analysis.modal import check_num_modes, free_basis
from dolfinx_mbd.analysis.phases import Phases
from dolfinx_mbd.analysis.recovery import (
    History,
    as_function,
    stations,
    surface_skin,
    write_history,
)
from dolfinx_mbd.body import Interface, Mode, ReducedBody
from dolfinx_mbd.forms import Material

__all__ = ["Reduction", "reduce"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Reduction:
    """A reduced body and what ties it to its mesh.

    Attributes:
        body: The reduced body, plain data, the same bits on every rank.
        space: The displacement space.
        modes: The modes on this rank, shape (owned dofs, n), M-orthonormal.
        positions: x at the owned blocks, shape (owned blocks, 3), m.
    """

    body: ReducedBody
    space: fem.FunctionSpace
    modes: Array
    positions: Array

    def displacement(self, eta: ArrayLike, out: fem.Function | None = None) -> fem.Function:
        """Elastic displacement u = Σ ψ_k η_k in the body frame, m.

        Args:
            eta: Elastic coordinates, shape (n,).
            out: A function on `space` to be overwritten; None: a new one.

        Raises:
            ValueError: The number of coordinates is not that of the modes.

        Note: Collective.
        """
        eta = np.asarray(eta, dtype=float)
        if eta.shape != (self.modes.shape[1],):
            raise ValueError(f"expected {self.modes.shape[1]} elastic coordinates, got {eta.shape}")
        return as_function(self.space, self.modes @ eta, out)

    def write(
        self,
        path: str | Path,
        history: History,
        *,
        times: ArrayLike | None = None,
        every: int = 1,
        motion: Literal["global", "body"] = "global",
        scale: float = 1.0,
    ) -> None:
        """Write a motion as VTX for ParaView ("Warp By Vector" with `displacement`), in parallel.

        The file holds two functions: `displacement`, from the mesh to where its points are, and
        `elastic`, u in body components, never scaled.

        Args:
            path: A name that ends in ``.bp``; missing directories are made.
            history: `time` (nt,), `eta` (nt, n), `position` (nt, 3) and `rotation` (nt, 4).
            times: Instants to write, s; the nearest recorded ones are taken. None: all.
            every: Without `times`, write every so many instants.
            motion: ``global``: rigid motion included; ``body``: elastic displacement only.
            scale: Factor of the elastic part in `displacement`.

        Raises:
            ValueError: The history does not fit the body.

        Note: Collective.
        """
        write_history(
            self.space,
            self.modes,
            self.positions,
            path,
            history,
            times=times,
            every=every,
            motion=motion,
            scale=scale,
        )


def reduce(
    mesh: TaggedMesh | Mesh,
    material: Material | None = None,
    *,
    interfaces: Iterable[str] | Mapping[str, Any],
    num_modes: int = 20,
    facet_tags: MeshTags | None = None,
    space: fem.FunctionSpace | None = None,
    degree: int = 2,
    stiffness: ufl.Form | None = None,
    density: Any = None,
    points: Mapping[str, ArrayLike] | None = None,
    name: str = "body",
    skin: bool = True,
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_reduce_",
) -> Reduction:
    """Reduce a body with rigid interfaces to its mean-axis modes (Craig-Bampton, orthonormalized).

    With k interfaces the body has 6 k + `num_modes` - 6 elastic coordinates; without any, the
    `num_modes` lowest modes of the free body.

    Args:
        mesh: A tagged mesh, or a three-dimensional mesh.
        material: Isotropic material; may be missing where `stiffness` and `density` are given.
        interfaces: Names of groups of facets; or a mapping from the interface's name to a group's
            name, a tag or an `InterfaceSpec`. Interfaces must not share nodes. May be empty.
        num_modes: Fixed-interface modes.
        facet_tags: Tags of facets, if `mesh` is a plain mesh.
        space: The user's own vector Lagrange space; by default of `degree`.
        degree: Degree of the default space, at least the geometric order of the mesh.
        stiffness: The user's own bilinear form on `space`, of the free body.
        density: Number or UFL expression, kg/m³; the material's by default.
        points: Material points by name, shape (3,), m, at which displacements will be wanted.
        name: The body's name.
        skin: Keep the surface and the modes there.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...).
        petsc_options_prefix: Prefix of these options.

    Raises:
        ValueError: Something given does not fit; the same error on every rank.
        FactorizationError: The linear solver failed, for instance as a part of the body is loose.
        EigenError: The eigenvalue solver did not converge.

    Note: Collective over the mesh's communicator.
    """
    check_num_modes(num_modes)
    phases = Phases()
    with phases("assembly"):
        problem = elastic_problem(
            mesh,
            material,
            space=space,
            degree=degree,
            stiffness=stiffness,
            density=density,
        )
    with phases("interfaces"):
        found = mesh_interfaces(mesh, problem.space, interfaces, facet_tags)
    solver: dict[str, Any] = {
        "prefix": petsc_options_prefix,
        "options": petsc_options,
        "phases": phases,
    }
    if found:
        basis = craig_bampton_basis(problem, found, num_modes, **solver)
    else:
        basis = free_basis(problem, num_modes, **solver)
    with phases("projection"):
        modes = mean_axis(problem, basis)
    del basis
    with phases("inertia"):
        moments = inertia(problem, modes.vectors)
        vectors = modes.vectors * moments.signs
    with phases("points and skin"):
        places = stations(problem.space, vectors, points or {})
        surface = surface_skin(problem.space, vectors) if skin else None
    frequencies = np.sqrt(np.maximum(modes.squares, 0.0)) / (2 * np.pi)
    flipped = moments.with_signs()
    n = len(frequencies)
    body = ReducedBody(
        name=name,
        total_mass=moments.total_mass,
        first_moments=flipped.first_moments,
        second_moments=flipped.second_moments,
        mass=np.eye(n),
        stiffness=np.diag(modes.squares),
        damping=np.zeros((n, n)),
        interfaces=_interfaces(found, modes, moments),
        modes=tuple(Mode(f"elastic {k + 7}", float(f)) for k, f in enumerate(frequencies)),
        points=places,
        skin=surface,
        reference="mean axis",
        provenance=_provenance(problem, material, density, num_modes, found, modes, phases),
    )
    problem.destroy()
    return Reduction(body, problem.space, vectors, problem.positions)


def _interfaces(
    found: tuple[MeshInterface, ...], modes: MeanAxis, moments: Inertia
) -> tuple[Interface, ...]:
    """The coefficient of a constraint mode is the motion of its interface: exact for rigid ones."""
    motion = modes.transform * moments.signs
    return tuple(
        Interface(i.name, "rigid", i.point, i.axes, motion[6 * k : 6 * k + 6])
        for k, i in enumerate(found)
    )


def _provenance(
    problem: ElasticProblem,
    material: Material | None,
    density: Any,
    num_modes: int,
    found: tuple[MeshInterface, ...],
    modes: MeanAxis,
    phases: Phases,
) -> dict[str, str | int | float]:
    V = problem.space
    cells = V.mesh.topology.index_map(3).size_global
    facts: dict[str, str | int | float] = {
        "dolfinx": dolfinx.__version__,
        "cell": V.mesh.topology.cell_name(),
        "cells": int(cells),
        "degree": int(V.ufl_element().sub_elements[0].degree),
        "dofs": int(problem.num_dofs),
        "ranks": int(problem.comm.size),
        "interfaces": ", ".join(i.name for i in found),
        "fixed-interface modes" if found else "free modes": int(num_modes),
    }
    if material is not None:
        facts["material"] = material.name or "isotropic"
        facts |= {"young (Pa)": material.young, "poisson": material.poisson}
    if density is None and material is not None:
        facts["density (kg/m^3)"] = material.density
    elif isinstance(density, (int, float)):
        facts["density (kg/m^3)"] = float(density)
    if modes.dropped:
        facts["dropped"] = ", ".join(modes.dropped)
    seconds = phases.seconds(problem.comm)
    return facts | {f"seconds, {phase}": value for phase, value in seconds.items()}
