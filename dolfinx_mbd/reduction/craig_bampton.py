"""Craig-Bampton basis: constraint modes of all interfaces, then fixed-interface modes.

References:
    Craig, Bampton (1968), Coupling of substructures for dynamic analyses, AIAA J. 6, 1313-1319.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.multiple import end_of_group, groups_of
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, point_motion
from dolfinx_mbd.fem.interfaces.averaged import border_rows
from dolfinx_mbd.fem.interfaces.bores import BorePatterns, bore_patterns
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.iterative.solver_choice import Solver
from dolfinx_mbd.fem.linalg.block_lanczos import num_accurate
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.eigenvalues import log_completed_group
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.linalg.round_off import round_off
from dolfinx_mbd.parallel import destroying, discard
from dolfinx_mbd.phases import Phases
from dolfinx_mbd.reduction.basis import Basis, Column, ColumnKind, numbered
from dolfinx_mbd.reduction.held_stiffness import HeldStiffness
from dolfinx_mbd.reduction.stiffening import UnitCases, unit_cases
from dolfinx_mbd.reduction.truncation import Truncation

# Coordinates of an interface in space and in the plane
MOTION_LABELS = {3: ("ux", "uy", "uz", "rx", "ry", "rz"), 2: ("ux", "uy", "rz")}
# Largest relative errors of a rigid motion of all interfaces. The second limit applies if the
# residual is round-off (the error is 1e-2 for a strip that is 1000 times as long as thick).
RIGID_TOLERANCE, LOOSE_RIGID_TOLERANCE = 1e-4, 0.1
ROUND_OFF_RESIDUAL = 1e-13  # largest residual force / (‖K‖‖u‖), usually 1e-15, of round-off
BALANCE_TOLERANCE = 1e-8  # relative difference of nodal forces that are balanced, up to round-off
EXTRA_MODES = 2  # less accurate modes beyond the requested ones, to find the end of a group


def craig_bampton_basis(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
    phases: Phases | None = None,
    **request: Any,
) -> Basis:
    """Return the basis of one reduction; `request` holds keywords of `CraigBampton.basis`."""
    check_enough_dofs(problem, interfaces, num_modes)
    shared = CraigBampton(problem, interfaces, prefix=prefix, options=options, phases=phases)
    with destroying(problem.comm, shared):
        return shared.basis(num_modes, phases=phases, **request)


def check_enough_dofs(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], num_modes: int
) -> int:
    """Return the number of dofs that no interface holds; raise an error if there are too few."""
    rigid = problem.comm.allreduce(sum(len(i.dofs) for i in interfaces if i.kind == "rigid"))
    averaged = sum(i.kind == "averaged" for i in interfaces)
    free = int(problem.num_dofs - rigid - problem.num_rigid * averaged)
    if num_modes > free:
        raise InputError(
            f"num_modes={num_modes}, but the mesh has only {free} dofs that no interface holds",
            argument="num_modes",
            value=num_modes,
        )
    return free


class CraigBampton:
    """Data that all Craig-Bampton bases of a body share; all methods are collective.

    The data are the factors, the static solutions and the fixed-interface modes computed so far.
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
            self.held = HeldStiffness(problem, interfaces, prefix, options, solver)
        try:
            with phases("constraint modes"):
                self._constraint, self._reactions = self.held.constraint_modes()
                if not problem.supported:
                    self._constraint = self._with_rigid_motions(self._constraint)
        except BaseException:
            discard(problem.comm, self.held)
            raise
        self._cases: UnitCases | None = None
        self._patterns: tuple[BorePatterns, ...] | None = None
        self._inertia: Array | None = None  # M times the constraint modes
        self._static_inertia: Array = np.zeros((problem.num_owned, 0))
        self._flexibility: Array = np.zeros((0, 0))
        self._num_accurate = 0  # number of fixed-interface modes with accurate vectors
        self._values: Array = np.zeros(0)
        self._errors: Array = np.zeros(0)
        self._fixed: Array = np.zeros((problem.num_owned, 0))

    def destroy(self) -> None:
        """Free the factors."""
        self.held.destroy()

    def basis(
        self,
        num_modes: int,
        *,
        stiffening: bool = False,
        loads: Mapping[str, Array] | None = None,
        effective_mass: float | None = None,
        phases: Phases | None = None,
    ) -> Basis:
        """Return constraint modes, fixed-interface modes, load modes and pressure modes.

        All modes of a multiple eigenvalue are kept. A load mode is the displacement under a load
        with all interfaces held. Together with the constraint modes it makes the static response to
        this load exact. A load that the interfaces carry without deformation has no load mode.

        Args:
            num_modes: Requested number of fixed-interface modes.
            stiffening: Whether to compute the responses to unit products ω_iω_j and unit wrenches,
                from which geometric stiffening follows.
            loads: Forces by name, shape (owned dofs,); each gets a load mode.
            effective_mass: Share of the effective mass in each direction that the kept modes must
                have; by default all computed modes are kept.
            phases: Collects the wall-clock times.
        """
        phases = phases or Phases()
        problem = self.problem
        max_modes = check_enough_dofs(problem, self.interfaces, num_modes)
        with phases("static solutions"):
            load_names, static = self._statics(stiffening, loads or {})
            patterns = self._pressure_patterns()
        # Last, because SLEPc may change the factors of the stiffness of the held body
        with phases("fixed-interface modes"):
            num_computed = self._complete_group(num_modes, max_modes)
        with phases("truncation"):
            truncation = self._truncation(num_computed)
        rows = list(range(num_computed))
        if effective_mass is not None:
            rows = [number - 1 for number in truncation.by_effective_mass(effective_mass)]
        coordinates = [(i.name, c) for i in self.interfaces for c in MOTION_LABELS[problem.dim]]
        return Basis(
            vectors=np.asfortranarray(
                np.hstack(
                    [
                        self._constraint,
                        self._fixed[:, rows],
                        static,
                        *(pattern.displacements for pattern in patterns),
                    ]
                )
            ),
            columns=(
                *(Column(ColumnKind.CONSTRAINT, *names) for names in coordinates),
                *numbered(ColumnKind.FIXED, rows),
                *(Column(ColumnKind.LOAD, name) for name in load_names),
                *(Column(ColumnKind.LOAD, b.interface.name, x) for b in patterns for x in b.labels),
            ),
            num_modes=num_computed,
            averaged=self.held.averaged,
            reactions=self._reactions,
            cases=self._cases if stiffening else None,
            truncation=truncation,
            bores=patterns,
        )

    def _pressure_patterns(self) -> tuple[BorePatterns, ...]:
        """Return the pressure patterns of all bores, computed once."""
        if self._patterns is None:
            bores = [i for i in self.interfaces if i.pressure_modes is not None]
            solve = self.held.solve_body
            self._patterns = tuple(bore_patterns(self.problem, bore, solve) for bore in bores)
        return self._patterns

    def _complete_group(self, num_modes: int, max_modes: int) -> int:
        """Compute `num_modes` modes and the rest of the last group; return the number of modes.

        A group contains the modes of a multiple eigenvalue. There are at most `max_modes` modes.
        """
        extra, count = EXTRA_MODES, num_modes
        while num_modes:
            count = end_of_group(self._values, num_modes, self._errors)
            complete = count < len(self._values) or len(self._values) == max_modes
            if num_modes <= count <= self._num_accurate and complete:
                break
            strict = max(num_modes, min(count, len(self._values)))
            total = min(max_modes, strict + extra)
            self._values, self._fixed = self.held.modes(total, total - strict)
            self._num_accurate = num_accurate(self._values, strict)
            self._errors = round_off(self.problem, self._fixed)
            extra *= 2
        log_completed_group(num_modes, count, self._values)
        return count

    def _with_rigid_motions(self, constraint: Array) -> Array:
        """Return constraint modes that reproduce rigid motions of all interfaces exactly.

        A connected body moves as a rigid body if all its interfaces do. An error larger than
        round-off indicates an inaccurate linear solver.
        """
        problem, interfaces = self.problem, self.interfaces
        origin = problem.comm.bcast(interfaces[0].point, root=0)
        C = rigid_rows(interfaces, origin, problem.dim)
        R = problem.rigid_motions(origin)
        excess = constraint @ C - R
        error = float(np.max(_maxima(problem, excess) / _maxima(problem, R)))
        if not error <= RIGID_TOLERANCE:
            residual = self._residual(constraint)
            # The constraint modes of a single interface are the rigid motions, which replace them
            limit = LOOSE_RIGID_TOLERANCE if len(interfaces) > 1 else np.inf
            if not (residual <= ROUND_OFF_RESIDUAL and error <= limit):
                raise FactorizationError(
                    "the constraint modes do not reproduce a rigid motion (relative error "
                    f"{error:.1e}, residual of the linear solver {residual:.1e}): the linear "
                    "solver is inaccurate, or the body is too thin for its length; use the "
                    "default solver, larger cells or a beam model"
                )
        return np.asfortranarray(constraint - excess @ np.linalg.pinv(C))

    def _residual(self, constraint: Array) -> float:
        """Return the largest force of constraint modes at free dofs, relative to ‖K‖‖u‖."""
        problem = self.problem
        forces = multiply(problem.stiffness, constraint)
        border = border_rows(problem.num_owned, self.interfaces)
        if border is not None:
            forces -= border @ self._reactions
        forces[self.held.dofs] = 0.0
        scale = problem.stiffness.norm(PETSc.NormType.NORM_INFINITY)
        return float(np.max(_maxima(problem, forces) / _maxima(problem, constraint)) / scale)

    def _statics(self, stiffening: bool, loads: Mapping[str, Array]) -> tuple[list[str], Array]:
        """Compute all missing static solutions by one call of the solver.

        Return the names of the loads that deform the held body, and their static displacements.
        """
        problem, constraint = self.problem, self._constraint
        known = self._inertia is not None
        empty: Array = np.zeros((problem.num_owned, 0))
        inertia = empty if known else problem.apply_mass(constraint)
        spins = problem.spin_loads() if stiffening and self._cases is None else empty
        forces = np.column_stack([empty, *loads.values()])
        deforms = self._deforms(forces)
        solutions = self.held.solve_body(np.hstack([inertia, spins, forces]))
        ends = np.cumsum([inertia.shape[1], spins.shape[1]])
        static_inertia, static_spins, static = np.split(solutions, ends, axis=1)
        if not known:
            self._inertia, self._static_inertia = inertia, static_inertia
            self._flexibility = gram(problem.comm, inertia, static_inertia)
        if spins.shape[1]:
            motions = rigid_rows(self.interfaces, np.zeros(3), problem.dim)
            static_rigid = self._static_inertia @ motions
            self._cases = unit_cases(
                problem, self.interfaces, constraint, static_spins, static_rigid
            )
        names = [name for name, acts in zip(loads, deforms, strict=True) if acts]
        return names, static[:, deforms]

    def _deforms(self, forces: Array) -> NDArray[np.bool_]:
        """Return whether forces (owned dofs, k) deform the body with all interfaces held, (k,).

        They do not if the reactions at the interfaces balance them node by node, such as a uniform
        pressure on a flat averaged interface. The static displacement would be round-off.
        """
        remaining = forces.copy()
        border = border_rows(self.problem.num_owned, self.interfaces)
        if border is not None:  # the reactions are the work on the constraint modes
            constraint = self._constraint[:, self.held.averaged]
            remaining -= border @ gram(self.problem.comm, constraint, forces)
        remaining[self.held.dofs] = 0.0
        largest = _maxima(self.problem, forces)
        return np.asarray(_maxima(self.problem, remaining) > BALANCE_TOLERANCE * largest)

    def _truncation(self, num_computed: int) -> Truncation:
        """Return the data from which the error of omitted modes is estimated (collective)."""
        assert self._inertia is not None
        problem, constraint = self.problem, self._constraint
        values, fixed = self._values[:num_computed], self._fixed[:, :num_computed]
        mass = gram(problem.comm, constraint, self._inertia)
        participations = gram(problem.comm, fixed, self._inertia)
        rigid: Array = np.zeros((len(mass), 0))
        if not problem.supported:
            rigid = _motions_about_centre(self.interfaces, problem.dim, mass)
        return Truncation(
            stiffness=gram(problem.comm, constraint, multiply(problem.stiffness, constraint)),
            mass=mass,
            squares=values,
            participations=participations,
            groups=groups_of(values, self._errors[:num_computed]),
            residual=self._flexibility - participations.T @ (participations / values[:, None]),
            rigid=rigid,
        )


def _motions_about_centre(interfaces: tuple[MeshInterface, ...], dim: int, mass: Array) -> Array:
    """Return the motion of the interfaces for rigid motions about the centre of mass.

    The constraint modes span the rigid motions, so that their mass matrix determines the centre.
    """
    motions = rigid_rows(interfaces, np.zeros(3), dim)
    M, moments = motions.T @ mass @ motions, np.zeros(3)  # moments are ∫ρx, ∫ρy and ∫ρz
    moments[:dim] = (M[1, 5], M[2, 3], M[0, 4]) if dim == 3 else (M[1, 2], -M[0, 2])
    return rigid_rows(interfaces, moments / M[0, 0], dim)


def rigid_rows(interfaces: tuple[MeshInterface, ...], point: Array, dim: int) -> Array:
    """Return the motion of all interfaces for unit rigid motions about a point."""
    return np.vstack([point_motion(i.point - point, dim) for i in interfaces])


def _maxima(problem: ElasticProblem, X: Array) -> Array:
    """Return the largest magnitude in each column over all ranks; infinity if it is not finite."""
    local = np.array([np.abs(x).max(initial=0.0) for x in X.T])
    local = np.where(np.isfinite(local), local, np.inf)
    return np.asarray(np.max(problem.comm.allgather(local), axis=0))
