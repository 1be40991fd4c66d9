"""Natural frequencies and modes of a body that is free or held on groups of facets.

A free body's stiffness is singular, so the eigenvalue solver works on K + σM with a σ that is small
against the first elastic ω². How small that must be follows from a Rayleigh-Ritz estimate with
quadratic displacement fields, and so from the body itself, whatever its size and units. That all
modes were found, rigid ones included, is then proved by Sylvester's law of inertia.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import ufl
from dolfinx import fem
from dolfinx.mesh import Mesh, MeshTags
from numpy.typing import NDArray
from petsc4py import PETSc
from ufl.core.expr import Expr

from dolfinx_mbd.analysis.assembly import (
    ElasticProblem,
    elastic_problem,
    rigid_motions,
)
from dolfinx_mbd.analysis.eigen import EigenError, lowest_modes
from dolfinx_mbd.analysis.facets import facet_groups
from dolfinx_mbd.analysis.la import (
    FactorizationError,
    Options,
    agreed,
    cholesky,
    constrain,
    count_below,
    gram,
    multiply,
)
from dolfinx_mbd.analysis.material_fields import Materials
from dolfinx_mbd.analysis.meshing import TaggedMesh
from dolfinx_mbd.analysis.phases import Phases
from dolfinx_mbd.analysis.prestress import BUCKLED, prestressed
from dolfinx_mbd.analysis.recovery.displacement import as_function
from dolfinx_mbd.analysis.reduction.craig_bampton import Basis
from dolfinx_mbd.analysis.reduction.inertia import inertia
from dolfinx_mbd.analysis.small_problem import solve_small_problem
from dolfinx_mbd.forms import Plane, Temperature

__all__ = [
    "ModalAnalysis",
    "Spectrum",
    "free_basis",
    "modal_analysis",
    "ritz_estimate",
    "spectrum",
]

Array = NDArray[np.float64]

SHIFT, RIGID = 1e-2, 1e-6
"""σ, and the greatest λ of a rigid mode, over the estimate of the first elastic ω²."""


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
    """

    frequencies: Array
    modes: tuple[fem.Function, ...]
    num_rigid: int
    num_below: int
    limit: float
    space: fem.FunctionSpace
    seconds: Mapping[str, float]

    def summary(self) -> str:
        """The frequencies as a table."""
        counted = f"{self.num_below} modes below {self.limit:.6g} Hz by the inertia of K - λM"
        lines = [f"{self.num_rigid} rigid modes; {counted}, all found", "mode   frequency (Hz)"]
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
        num_modes: Elastic modes; the rigid ones come on top and are only counted.
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
    solver: dict[str, Any] = {"prefix": petsc_options_prefix, "options": petsc_options}
    if prestress is not None:
        with phases("prestress"):
            problem = prestressed(problem, prestress, held=dofs, **solver)
    found = spectrum(problem, num_modes, dofs, phases=phases, **solver)
    signs = inertia(problem, found.vectors).signs
    modes = tuple(as_function(V, s * v) for s, v in zip(signs, found.vectors.T, strict=True))
    problem.destroy()
    return ModalAnalysis(
        frequencies=_hertz(found.squares),
        modes=modes,
        num_rigid=found.num_rigid,
        num_below=found.num_below,
        limit=float(_hertz(np.array(found.limit))),
        space=V,
        seconds=phases.seconds(problem.comm),
    )


def check_num_modes(num_modes: int) -> None:
    """Refuse a number of modes that is not a whole number from zero on."""
    if isinstance(num_modes, bool) or not isinstance(num_modes, (int, np.integer)) or num_modes < 0:
        raise ValueError(f"num_modes must be 0, 1, 2, ...; got {num_modes!r}")


def free_basis(
    problem: ElasticProblem,
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
    phases: Phases | None = None,
    estimate: float | None = None,
) -> Basis:
    """The exact rigid motions and the lowest elastic modes of a free body.

    See `spectrum`.

    Raises:
        ValueError: The body has more motions without stiffness than rigid ones.

    Note: Collective.
    """
    held = np.zeros(0, dtype=np.int32)
    solver: dict[str, Any] = {"prefix": prefix, "options": options, "phases": phases}
    found = spectrum(problem, num_modes, held, estimate=estimate, **solver)
    rigid = problem.num_rigid
    if found.num_rigid != rigid:
        raise ValueError(
            f"the body has {found.num_rigid} motions without stiffness instead of {rigid}: the "
            "mesh is in parts that are not connected, or parts are hinged"
        )
    vectors = np.asfortranarray(np.hstack([problem.rigid_motions(), found.vectors]))
    labels = [f"rigid {k + 1}" for k in range(rigid)] + [f"free {k + 1}" for k in range(num_modes)]
    return Basis(vectors, tuple(labels), _hertz(found.squares))


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Modes of a body and the proof that none is missing.

    Attributes:
        squares: ω² of the elastic modes, shape (num_modes,).
        vectors: Shape (owned dofs, num_modes).
        num_rigid: Rigid motions found.
        num_below: Modes below `limit`, rigid ones included.
        limit: ω² up to which modes were counted.
    """

    squares: Array
    vectors: Array
    num_rigid: int
    num_below: int
    limit: float


def spectrum(
    problem: ElasticProblem,
    num_modes: int,
    held: NDArray[np.int32],
    *,
    prefix: str,
    options: Options,
    phases: Phases | None = None,
    estimate: float | None = None,
) -> Spectrum:
    """Elastic modes above the rigid ones, and the proof that none is missing.

    Args:
        problem: Matrices of the free body.
        num_modes: How many elastic modes.
        held: Owned held degrees of freedom (local numbers).
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        phases: Collects the seconds.
        estimate: Of the first elastic ω² of the free body, from above; None: it is made.

    Note: Collective.
    """
    phases = phases or Phases()
    comm = problem.comm
    free = problem.num_dofs - comm.allreduce(len(held))
    if num_modes > free - (0 if free < problem.num_dofs else problem.num_rigid):
        raise ValueError(
            f"num_modes={num_modes}, but the mesh has only {free} free dofs, rigid motions included"
        )
    estimate = _estimate(problem) if estimate is None else estimate
    shift = SHIFT * estimate
    with phases("factorization"):
        M = problem.mass()
        K = problem.stiffness.copy()
        K.axpy(shift, M, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
        constrain(K, held, 1.0)
        constrain(M, held, 0.0)
        try:
            ksp = cholesky(K, prefix=prefix, options=options)
        except FactorizationError as error:
            raise FactorizationError(f"{BUCKLED} ({error})") if problem.prestress else error
    try:
        rigid = problem.num_rigid if free == problem.num_dofs else 0
        spare, last, limit, below = 2, 0, 0.0, 0
        for _ in range(4):
            wanted = min(free, num_modes + rigid + spare)
            with phases("modes"):
                values, vectors = lowest_modes(
                    K, M, ksp, wanted, held, prefix=prefix, options=options
                )
            values = values - shift
            if problem.prestress and (values < -RIGID * estimate).any():
                raise FactorizationError(BUCKLED)
            rigid = int(np.sum(values < RIGID * estimate))
            if len(values) - rigid < num_modes:
                continue
            last, limit = _gap(values, rigid + num_modes, complete=wanted == free)
            with phases("count"):
                below = count_below(K, M, limit + shift)
            if below == last:
                cut = slice(rigid, rigid + num_modes)
                return Spectrum(values[cut], vectors[:, cut], rigid, below, limit)
            spare += max(2, below - last)  # a copy of a multiple mode was missed
    finally:
        ksp.destroy()
        K.destroy()
        M.destroy()
    raise EigenError(
        f"the solver found {last} modes below {_hertz(np.array(limit)):.6g} Hz, and the inertia of "
        f"K - λM counts {below}; raise the option eps_ncv or lower eps_tol"
    )


def _gap(values: Array, at_least: int, *, complete: bool) -> tuple[int, float]:
    """Where to count, in the widest gap after the wanted ones: how many are below, and its λ."""
    if complete or at_least >= len(values):
        return len(values), 1.01 * values[-1]
    first = max(at_least, 1)
    below, above = values[first - 1 : -1], values[first:]
    k = int(np.argmax((above - below) / np.abs(above)))
    return first + k, float(below[k] + above[k]) / 2


def _estimate(problem: ElasticProblem) -> float:
    """Upper bound of the first elastic ω² of the free body: Ritz with all quadratic fields."""
    comm, x = problem.comm, problem.positions
    lower = comm.allgather((x.min(axis=0, initial=np.inf), x.max(axis=0, initial=-np.inf)))
    low, high = (
        np.min([a for a, _ in lower], axis=0),
        np.max([b for _, b in lower], axis=0),
    )
    xi = (x - (low + high) / 2) / (np.max(high - low) / 2)
    monomials = [np.ones(len(xi)), *xi.T]
    dim = problem.dim
    monomials += [xi[:, i] * xi[:, j] for i in range(dim) for j in range(i + 1)]
    fields = np.zeros((len(xi), dim, dim * len(monomials)))
    for k, monomial in enumerate(monomials):
        for i in range(dim):
            fields[:, i, dim * k + i] = monomial
    Q = np.asfortranarray(fields.reshape(problem.num_owned, dim * len(monomials)))
    return ritz_estimate(problem, Q, rigid_motions(xi))


def ritz_estimate(problem: ElasticProblem, Q: Array, R: Array) -> float:
    """Upper bound of the first elastic ω² of the free body, by Ritz.

    Args:
        problem: Matrices of the free body.
        Q: Fields that hold the rigid motions and more, shape (owned dofs, k).
        R: The rigid motions, about any point and of any size, shape (owned dofs, 6).

    Note: Collective.
    """
    comm = problem.comm
    MQ = problem.apply_mass(Q)
    K = gram(comm, Q, multiply(problem.stiffness, Q))
    M, B = gram(comm, Q, MQ), gram(comm, MQ, R)
    squares = None
    with agreed(comm):
        if comm.rank == 0:
            squares, _, _ = solve_small_problem(K, M, B)
    squares = comm.bcast(squares, root=0)
    return float(max(squares[0], 1e-9 * squares[-1]))


def _hertz(squares: Array) -> Array:
    return np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
