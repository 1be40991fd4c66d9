"""Craig-Bampton basis of a body with rigid and averaged interfaces.

The basis is Ψ = [constraint modes | fixed-interface modes]: one unit displacement or rotation of an
interface with the others held, and the lowest modes with all interfaces held. One factorization
serves both: of the stiffness with the rows of rigid interfaces held, bordered by the rows of
averaged ones if there are any.

References:
    Craig, Bampton (1968), Coupling of substructures for dynamic analyses, AIAA J. 6, 1313-1319.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.analysis.assembly import ElasticProblem, point_motion
from dolfinx_mbd.analysis.iterative.choice import Solver
from dolfinx_mbd.analysis.la import FactorizationError, Options, gram, multiply
from dolfinx_mbd.analysis.phases import Phases
from dolfinx_mbd.analysis.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.analysis.reduction.interfaces import MeshInterface
from dolfinx_mbd.analysis.reduction.stiffening import UnitCases, unit_cases
from dolfinx_mbd.analysis.reduction.truncation import Truncation

__all__ = [
    "COMPONENTS",
    "Basis",
    "CraigBampton",
    "check_enough_dofs",
    "craig_bampton_basis",
]

Array = NDArray[np.float64]

COMPONENTS = {3: ("ux", "uy", "uz", "rx", "ry", "rz"), 2: ("ux", "uy", "rz")}
"""Coordinates of an interface in space and in the plane."""

REPRODUCTION_TOLERANCE = 1e-4
"""Relative error of a rigid motion of all interfaces from which the body is in parts.

Round-off alone makes 2e-6 on a bar 130 times as long as high, a loose part makes 1.
"""


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that span the reduced space, before orthonormalization.

    Attributes:
        vectors: Shape (owned dofs, columns), Fortran order.
        labels: What each column is.
        frequencies: Of the fixed-interface (or free) modes among them, Hz.
        averaged: Columns that are constraint modes of averaged interfaces.
        reactions: Forces and moments at the averaged interfaces in each constraint mode, shape
            (len(averaged), constraint modes): rows of the stiffness ΨᵀKΨ that came from the
            multipliers.
        cases: What the unit loads of `stiffening` do, if asked for.
        truncation: What is left out at the interfaces; None without interfaces.
    """

    vectors: Array
    labels: tuple[str, ...]
    frequencies: Array
    averaged: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    reactions: Array | None = None
    cases: UnitCases | None = None
    truncation: Truncation | None = None


def craig_bampton_basis(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
    phases: Phases | None = None,
    stiffening: bool = False,
    loads: Mapping[str, Array] | None = None,
    effective_mass: float | None = None,
) -> Basis:
    """The basis of one reduction; for the arguments and errors see `CraigBampton`.

    Note: Collective.
    """
    phases = phases or Phases()
    check_enough_dofs(problem, interfaces, num_modes)
    shared = CraigBampton(problem, interfaces, prefix=prefix, options=options, phases=phases)
    try:
        return shared.basis(
            num_modes,
            stiffening=stiffening,
            loads=loads,
            effective_mass=effective_mass,
            phases=phases,
        )
    finally:
        shared.destroy()


def check_enough_dofs(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], num_modes: int
) -> None:
    """Refuse more modes than there are degrees of freedom.

    Note: Collective.
    """
    rigid = problem.comm.allreduce(sum(len(i.dofs) for i in interfaces if i.kind == "rigid"))
    averaged = sum(i.kind == "averaged" for i in interfaces)
    free = problem.num_dofs - rigid - problem.num_rigid * averaged
    if num_modes > free:
        raise ValueError(
            f"num_modes={num_modes}, but the mesh has only {free} dofs that no interface holds"
        )


class CraigBampton:
    """What all Craig-Bampton bases of a body share: factors, static solutions, the modes so far.

    Args:
        problem: Matrices of the free body.
        interfaces: At least one; rigid ones without common degrees of freedom.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        phases: Collects the seconds.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        *,
        prefix: str,
        options: Options = None,
        solver: Solver = "direct",
        phases: Phases | None = None,
    ) -> None:
        self.problem, self.interfaces = problem, interfaces
        phases = phases or Phases()
        with phases("factorization"):
            self._held = HeldStiffness(problem, interfaces, prefix, options, solver)
        try:
            with phases("constraint modes"):
                modes, self._reactions = self._held.constraint_modes()
                self._constraint = _with_rigid_motions(problem, interfaces, modes)
        except BaseException:
            self._held.destroy()
            raise
        self._cases: UnitCases | None = None
        self._inertia: Array | None = None  # M times the constraint modes
        self._under_inertia: Array = np.zeros((problem.num_owned, 0))
        self._flexibility: Array = np.zeros((0, 0))
        self._values: Array = np.zeros(0)
        self._fixed: Array = np.zeros((problem.num_owned, 0))

    def destroy(self) -> None:
        """Free the factors."""
        self._held.destroy()

    def basis(
        self,
        num_modes: int,
        *,
        stiffening: bool = False,
        loads: Mapping[str, Array] | None = None,
        effective_mass: float | None = None,
        phases: Phases | None = None,
    ) -> Basis:
        """Constraint modes of all interfaces (6 each, in the plane 3; body axes), then fixed ones.

        With loads also a static mode each: what the load does with all interfaces held, so that
        with the constraint modes its static response is in the basis whatever the interfaces do.
        (A load on rigid interfaces only has none: they do not deform.)

        Args:
            num_modes: Fixed-interface modes.
            stiffening: Also solve for the unit loads of geometric stiffening.
            loads: Forces (owned dofs,) by name that get a static mode.
            effective_mass: Keep the fewest fixed-interface modes that have this share of the
                effective mass of all of them.
            phases: Collects the seconds.

        Raises:
            FactorizationError: The solver failed.
            EigenError: The eigenvalue solver did not converge.
            ValueError: More modes are asked for than there are free degrees of freedom.

        Note: Collective.
        """
        phases = phases or Phases()
        problem, interfaces, constraint = self.problem, self.interfaces, self._constraint
        check_enough_dofs(problem, interfaces, num_modes)
        with phases("static solutions"):
            acting, static = self._statics(stiffening, loads or {})
        if num_modes > len(self._values):
            with phases("fixed-interface modes"):  # last: SLEPc would take the factors over
                self._values, self._fixed = self._held.modes(num_modes)
        with phases("truncation"):
            truncation = self._truncation(num_modes)
        numbers = list(range(num_modes))
        if effective_mass is not None:
            numbers = truncation.by_effective_mass(effective_mass)
        labels = [f"constraint {i.name} {c}" for i in interfaces for c in COMPONENTS[problem.dim]]
        labels += [f"fixed {k + 1}" for k in numbers] + [f"load {name}" for name in acting]
        vectors = np.asfortranarray(np.hstack([constraint, self._fixed[:, numbers], static]))
        return Basis(
            vectors,
            tuple(labels),
            np.sqrt(np.maximum(self._values[numbers], 0.0)) / (2 * np.pi),
            self._held.averaged,
            self._reactions,
            self._cases if stiffening else None,
            truncation,
        )

    def _statics(self, stiffening: bool, loads: Mapping[str, Array]) -> tuple[list[str], Array]:
        """What is still unknown, by one call of the solver.

        Returns the names of the loads that act on what is free, and what they do.
        """
        problem, constraint = self.problem, self._constraint
        known, rigid = self._inertia is not None, np.zeros((problem.num_owned, 0))
        inertia = problem.apply_mass(constraint) if not known else rigid
        spins = problem.spin_loads() if stiffening and self._cases is None else rigid
        forces = np.column_stack([rigid, *loads.values()])
        solved = self._held.solve_body(np.hstack([inertia, spins, forces]))
        ends = np.cumsum([inertia.shape[1], spins.shape[1]])
        under_inertia, under_spins, static = np.split(solved, ends, axis=1)
        if not known:
            self._inertia, self._under_inertia = inertia, under_inertia
            self._flexibility = gram(problem.comm, inertia, under_inertia)
        if spins.shape[1]:
            motions = rigid_rows(self.interfaces, np.zeros(3), problem.dim)
            under_rigid = self._under_inertia @ motions
            self._cases = unit_cases(problem, self.interfaces, constraint, under_spins, under_rigid)
        size = problem.comm.allgather(np.abs(static).max(axis=0, initial=0.0))
        acts = np.max(size, axis=0) > 0
        return [name for name, a in zip(loads, acts, strict=True) if a], static[:, acts]

    def _truncation(self, num_modes: int) -> Truncation:
        assert self._inertia is not None
        problem, constraint = self.problem, self._constraint
        values, fixed = self._values[:num_modes], self._fixed[:, :num_modes]
        mass = gram(problem.comm, constraint, self._inertia)
        participations = gram(problem.comm, fixed, self._inertia)
        return Truncation(
            stiffness=gram(problem.comm, constraint, multiply(problem.stiffness, constraint)),
            mass=mass,
            squares=values,
            participations=participations,
            residual=self._flexibility - participations.T @ (participations / values[:, None]),
            rigid=_about_centre(self.interfaces, problem.dim, mass),
        )


def _about_centre(interfaces: tuple[MeshInterface, ...], dim: int, mass: Array) -> Array:
    """Motion of the interfaces for rigid motions about the centre of mass.

    The constraint modes span the rigid motions, so that their mass matrix holds mass and centre.
    """
    motions = rigid_rows(interfaces, np.zeros(3), dim)
    M, centre = motions.T @ mass @ motions, np.zeros(3)
    centre[:dim] = (M[1, 5], M[2, 3], M[0, 4]) if dim == 3 else (M[1, 2], -M[0, 2])
    return rigid_rows(interfaces, centre / M[0, 0], dim)


def rigid_rows(interfaces: tuple[MeshInterface, ...], point: Array, dim: int) -> Array:
    """Motion of all interfaces for unit rigid motions about a point."""
    return np.vstack([point_motion(i.point - point, dim) for i in interfaces])


def _with_rigid_motions(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], constraint: Array
) -> Array:
    """Constraint modes less the round-off in what must be a rigid motion of the whole body.

    All interfaces moving as one body move the whole body with them, which is known exactly.

    Raises:
        FactorizationError: They do not.
    """
    origin = problem.comm.bcast(interfaces[0].point, root=0)
    C = rigid_rows(interfaces, origin, problem.dim)
    R = problem.rigid_motions(origin)
    excess = constraint @ C - R
    local = np.array([[np.abs(f).max(initial=0.0) for f in X.T] for X in (excess, R)])
    local[0] = np.where(np.isfinite(local[0]), local[0], np.inf)
    error, size = np.max(problem.comm.allgather(local), axis=0)
    if not (error <= REPRODUCTION_TOLERANCE * size).all():
        raise FactorizationError(
            "the constraint modes do not reproduce a rigid motion (relative error "
            f"{(error / size).max():.1e}): a part of the body is not connected to any interface, "
            "or the linear solver is inaccurate"
        )
    return np.asfortranarray(constraint - excess @ np.linalg.pinv(C))
