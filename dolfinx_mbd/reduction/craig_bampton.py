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

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.body.multiple import end_of_group, groups_of
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, point_motion
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.iterative.solver_choice import Solver
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.eigenvalues import log_completed_group
from dolfinx_mbd.linalg.factorization import FactorizationError
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.linalg.round_off import round_off
from dolfinx_mbd.parallel import discard, released
from dolfinx_mbd.reduction.averaged import border_rows
from dolfinx_mbd.reduction.basis import Basis, Column, ColumnKind, numbered
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.reduction.stiffening import UnitCases, unit_cases
from dolfinx_mbd.reduction.truncation import Truncation

__all__ = [
    "MOTION_LABELS",
    "CraigBampton",
    "check_enough_dofs",
    "craig_bampton_basis",
]

Array = NDArray[np.float64]

MOTION_LABELS = {3: ("ux", "uy", "uz", "rx", "ry", "rz"), 2: ("ux", "uy", "rz")}
"""Coordinates of an interface in space and in the plane."""

REPRODUCTION_TOLERANCE, MOST_REPRODUCTION = 1e-4, 0.1
"""Relative error of a rigid motion of all interfaces up to which the solver is accurate whatever
its residual; and the greatest with several interfaces.

Round-off makes 1e-2 of a strip held at one end and 1000 times as long as thick, which is no error
of the solver: its residual is that of round-off.
"""

AHEAD = 2
"""Modes that are computed beyond the requested ones, to see where the last group ends."""

RESIDUAL = 1e-13
"""Force left by the linear solver over ‖K‖‖u‖, up to which it is accurate (round-off: 1e-15)."""


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
    with released(problem.comm, shared):
        return shared.basis(
            num_modes,
            stiffening=stiffening,
            loads=loads,
            effective_mass=effective_mass,
            phases=phases,
        )


def check_enough_dofs(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], num_modes: int
) -> None:
    """Refuse more modes than there are degrees of freedom.

    Note: Collective.
    """
    free = _num_free(problem, interfaces)
    if num_modes > free:
        raise InputError(
            f"num_modes={num_modes}, but the mesh has only {free} dofs that no interface holds",
            argument="num_modes",
            value=num_modes,
        )


def _num_free(problem: ElasticProblem, interfaces: tuple[MeshInterface, ...]) -> int:
    """Return how many degrees of freedom no interface holds."""
    rigid = problem.comm.allreduce(sum(len(i.dofs) for i in interfaces if i.kind == "rigid"))
    averaged = sum(i.kind == "averaged" for i in interfaces)
    return int(problem.num_dofs - rigid - problem.num_rigid * averaged)


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
                self._constraint = modes
                if not problem.supported:
                    self._constraint = self._with_rigid_motions(modes)
        except BaseException:
            discard(problem.comm, self._held)
            raise
        self._cases: UnitCases | None = None
        self._inertia: Array | None = None  # M times the constraint modes
        self._under_inertia: Array = np.zeros((problem.num_owned, 0))
        self._flexibility: Array = np.zeros((0, 0))
        self._values: Array = np.zeros(0)
        self._errors: Array = np.zeros(0)
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
            num_modes: Number of fixed-interface modes; if it cuts through a multiple eigenvalue,
                all modes of that are taken.
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
        with phases("fixed-interface modes"):  # last: SLEPc would take the factors over
            count = self._complete(num_modes)
        with phases("truncation"):
            truncation = self._truncation(count)
        numbers = list(range(count))
        if effective_mass is not None:
            numbers = truncation.by_effective_mass(effective_mass)
        columns = [
            Column(ColumnKind.CONSTRAINT, i.name, c)
            for i in interfaces
            for c in MOTION_LABELS[problem.dim]
        ]
        columns += numbered(ColumnKind.FIXED, numbers)
        columns += [Column(ColumnKind.LOAD, name) for name in acting]
        vectors = np.asfortranarray(np.hstack([constraint, self._fixed[:, numbers], static]))
        return Basis(
            vectors,
            tuple(columns),
            np.sqrt(np.maximum(self._values[numbers], 0.0)) / (2 * np.pi),
            count,
            self._held.averaged,
            self._reactions,
            self._cases if stiffening else None,
            truncation,
        )

    def _complete(self, num_modes: int) -> int:
        """Compute modes up to the end of a group; returns how many complete some modes."""
        most, ahead = _num_free(self.problem, self.interfaces), AHEAD
        count = num_modes
        while num_modes:
            count = end_of_group(self._values, num_modes, self._errors)
            if num_modes <= count < len(self._values) or len(self._values) == most:
                break
            total = min(most, max(num_modes, count) + ahead)
            self._values, self._fixed = self._held.modes(total)
            self._errors = round_off(self.problem, self._fixed)
            ahead *= 2
        log_completed_group(num_modes, count, self._values)
        return count

    def _with_rigid_motions(self, constraint: Array) -> Array:
        """Return constraint modes less the error in a rigid motion of all interfaces.

        All interfaces moving as one body move the whole body with them, which is known exactly.
        The mesh is known to be connected, so that an error is that of the linear solver.

        Raises:
            FactorizationError: The linear solver is inaccurate.
        """
        problem, interfaces = self.problem, self.interfaces
        origin = problem.comm.bcast(interfaces[0].point, root=0)
        C = rigid_rows(interfaces, origin, problem.dim)
        R = problem.rigid_motions(origin)
        excess = constraint @ C - R
        error = float(np.max(_largest(problem, excess) / _largest(problem, R)))
        if not error <= REPRODUCTION_TOLERANCE:
            residual = self._residual(constraint)
            most = MOST_REPRODUCTION if len(interfaces) > 1 else np.inf
            if not (residual <= RESIDUAL and error <= most):
                raise FactorizationError(
                    "the constraint modes do not reproduce a rigid motion (relative error "
                    f"{error:.1e}, residual of the linear solver {residual:.1e}): the linear "
                    "solver is inaccurate, or the body is too thin for its length; use the "
                    "default solver, larger cells or a beam model"
                )
        return np.asfortranarray(constraint - excess @ np.linalg.pinv(C))

    def _residual(self, constraint: Array) -> float:
        """Return the forces of constraint modes where nothing holds them, over ‖K‖‖u‖."""
        problem = self.problem
        forces = multiply(problem.stiffness, constraint)
        if self._reactions is not None:
            parts = [(i.dofs, i.rows) for i in self.interfaces if i.rows is not None]
            forces -= border_rows(problem.num_owned, parts) @ self._reactions
        forces[self._held.dofs] = 0.0
        scale = problem.stiffness.norm(PETSc.NormType.NORM_INFINITY)
        return float(np.max(_largest(problem, forces) / _largest(problem, constraint)) / scale)

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
            groups=groups_of(values, self._errors[:num_modes]),
            residual=self._flexibility - participations.T @ (participations / values[:, None]),
            rigid=np.zeros((len(mass), 0))
            if problem.supported
            else _about_centre(self.interfaces, problem.dim, mass),
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


def _largest(problem: ElasticProblem, X: Array) -> Array:
    """Return the greatest magnitude in each column on all ranks; infinity if it is not finite."""
    local = np.array([np.abs(x).max(initial=0.0) for x in X.T])
    local = np.where(np.isfinite(local), local, np.inf)
    return np.asarray(np.max(problem.comm.allgather(local), axis=0))
