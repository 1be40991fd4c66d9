"""Natural frequencies and modes of a body that is free or held on groups of facets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from dolfinx import fem
from dolfinx.mesh import Mesh

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import integer
from dolfinx_mbd.fem.assembly import elastic_problem
from dolfinx_mbd.fem.elastic_model import ElasticModel, elastic_model
from dolfinx_mbd.fem.facets import facet_groups, held_dofs
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.fem.free_motions import free_motions
from dolfinx_mbd.fem.inertia import inertia
from dolfinx_mbd.fem.linalg.options import solver_options
from dolfinx_mbd.fem.material_fields import Materials
from dolfinx_mbd.fem.meshing import TaggedMesh
from dolfinx_mbd.fem.modal.spectrum import elastic_modes, hertz
from dolfinx_mbd.fem.prestress import prestressed
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.phases import Phases


@dataclass(frozen=True, eq=False)
class ModalAnalysis:
    """Natural frequencies and modes of a body.

    Attributes:
        frequencies: Frequencies of the elastic modes, shape (num_modes,), ascending, Hz.
        modes: Elastic modes with ∫ρ ψ·ψ = 1; their signs do not depend on the number of ranks.
        num_rigid: Number of rigid motions: six for a free body in one piece (three in the plane),
            zero if it is held.
        num_below: Number of modes below `limit`, including rigid motions: the number of negative
            eigenvalues of K - λM (Sylvester's inertia). The solver has found the same number.
        limit: Frequency up to which modes were counted, Hz.
        space: Displacement space.
        seconds: Wall-clock time by phase, s.
        num_requested: Number of requested elastic modes; more are returned if the last ones share a
            frequency.

    Example:
        >>> from mpi4py import MPI
        >>> from dolfinx.mesh import create_box
        >>> import dolfinx_mbd as mbd
        >>> mesh = create_box(MPI.COMM_WORLD, [(0, 0, 0), (1, 0.1, 0.2)], (8, 1, 1))
        >>> result = mbd.modal_analysis(mesh, mbd.STEEL, num_modes=1)
        >>> print(result.summary().splitlines()[1])
        mode   frequency (Hz)
    """

    frequencies: Array
    modes: tuple[fem.Function, ...]
    num_rigid: int
    num_below: int
    limit: float
    space: fem.FunctionSpace
    seconds: Mapping[str, float]
    num_requested: int

    __repr__ = short_repr

    def summary(self) -> str:
        """Return the frequencies of the elastic modes as a table; mode 1 is the first of them."""
        counted = f"{self.num_below} modes below {self.limit:.6g} Hz by the inertia of K - λM"
        lines = [f"{self.num_rigid} rigid modes; {counted}, all found"]
        count = len(self.frequencies)
        if count > self.num_requested:
            lines += [f"{count} modes instead of {self.num_requested}: the last share a frequency"]
        lines += ["mode   frequency (Hz)"]
        lines += [f"{k:4d} {f:16.4f}" for k, f in enumerate(self.frequencies, 1)]
        return "\n".join(lines)


def modal_analysis(
    model: ElasticModel | TaggedMesh | Mesh,
    material: Materials | None = None,
    *,
    num_modes: int = 10,
    held: Iterable[str] | Mapping[str, Any] = (),
    petsc_options: Mapping[str, Any] | None = None,
    petsc_options_prefix: str = "dolfinx_mbd_modal_",
) -> ModalAnalysis:
    """Compute the lowest elastic modes of a body that is free or held at groups of facets.

    Args:
        model: An `ElasticModel`, or a mesh together with `material`.
        material: Material of a mesh; see `ElasticModel`.
        num_modes: Number of elastic modes, without rigid motions. If the last mode belongs to a
            multiple frequency, all modes of that frequency are returned.
        held: Groups of facets without displacement: names, or a mapping from name to tag; by
            default the body is free.
        petsc_options: Options of the linear solver (``pc_type`` ...) and of the eigenvalue solver
            (``eps_ncv`` ...).
        petsc_options_prefix: Prefix of these options.

    Returns:
        The frequencies and modes, with a proof that no mode is missing.

    Raises:
        InputError: An argument is invalid; every rank raises the same error.
        FactorizationError: The linear solver failed.
        EigenError: The eigenvalue solver failed, or missed a mode.

    Note: Collective over the communicator of the mesh.

    Example:
        >>> from mpi4py import MPI
        >>> from dolfinx.mesh import create_box
        >>> import dolfinx_mbd as mbd
        >>> mesh = create_box(MPI.COMM_WORLD, [(0, 0, 0), (1, 0.1, 0.1)], (8, 1, 1))
        >>> mbd.modal_analysis(mesh, mbd.STEEL, num_modes=4).num_rigid
        6
    """
    integer("num_modes", num_modes, low=0)
    solver = solver_options(petsc_options_prefix, petsc_options)
    phases = Phases()
    with phases("assembly"):
        body = elastic_model(model, material)
        groups = facet_groups(body.mesh, held, body.facet_tags)
        problem = elastic_problem(body)
    V = problem.space
    dofs = held_dofs(V, groups)
    if body.prestress is not None:
        with phases("prestress"):
            problem = prestressed(problem, body.prestress, held=dofs, **solver)
    motions = free_motions(problem, dofs)
    result = elastic_modes(problem, num_modes, dofs, motions, phases=phases, **solver)
    signs = inertia(problem, result.vectors).signs
    modes = tuple(as_function(V, s * v) for s, v in zip(signs, result.vectors.T, strict=True))
    problem.destroy()
    return ModalAnalysis(
        frequencies=hertz(result.squares),
        modes=modes,
        num_rigid=result.num_rigid,
        num_below=result.num_below,
        limit=float(hertz(np.array(result.limit))),
        space=V,
        seconds=phases.seconds(problem.comm),
        num_requested=num_modes,
    )
