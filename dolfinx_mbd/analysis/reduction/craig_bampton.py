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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.analysis.assembly import ElasticProblem, point_motion
from dolfinx_mbd.analysis.eigen import lowest_modes
from dolfinx_mbd.analysis.la import (
    FactorizationError,
    Options,
    cholesky,
    constrain,
    gram,
    multiply,
    solve,
)
from dolfinx_mbd.analysis.phases import Phases
from dolfinx_mbd.analysis.reduction.averaged import border_rows, bordered_mass, bordered_stiffness
from dolfinx_mbd.analysis.reduction.interfaces import MeshInterface
from dolfinx_mbd.analysis.reduction.stiffening import UnitCases, unit_cases
from dolfinx_mbd.analysis.reduction.truncation import Truncation

__all__ = ["COMPONENTS", "Basis", "HeldStiffness", "craig_bampton_basis"]

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
    """Constraint modes of all interfaces (6 each, in the plane 3; body axes), then fixed ones.

    With loads also a static mode each: what the load does with all interfaces held, so that with
    the constraint modes its static response is in the basis whatever the interfaces do. (A load on
    rigid interfaces only has none: they do not deform.)

    Args:
        problem: Matrices of the free body.
        interfaces: At least one; rigid ones without common degrees of freedom.
        num_modes: Fixed-interface modes.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        phases: Collects the seconds.
        stiffening: Also solve for the unit loads of geometric stiffening.
        loads: Forces (owned dofs,) by name that get a static mode.
        effective_mass: Keep the fewest fixed-interface modes that have this share of the effective
            mass of all of them.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.
        EigenError: The eigenvalue solver did not converge.
        ValueError: More modes are asked for than there are free degrees of freedom.

    Note: Collective.
    """
    phases = phases or Phases()
    free = _num_free(problem, interfaces)
    if num_modes > free:
        raise ValueError(
            f"num_modes={num_modes}, but the mesh has only {free} dofs that no interface holds"
        )
    with phases("factorization"):
        held = HeldStiffness(problem, interfaces, prefix, options)
    try:
        with phases("constraint modes"):
            constraint, reactions = held.constraint_modes()
            constraint = _with_rigid_motions(problem, interfaces, constraint)
        acting: list[str] = []
        static: Array = np.zeros((problem.num_owned, 0))
        if loads:
            with phases("load modes"):
                static = held.solve_body(np.column_stack(list(loads.values())))
                size = problem.comm.allgather(np.abs(static).max(axis=0, initial=0.0))
                acts = np.max(size, axis=0) > 0
                acting = [name for name, a in zip(loads, acts, strict=True) if a]
                static = static[:, acts]
        cases = None
        if stiffening:
            with phases("stiffening"):
                cases = unit_cases(problem, interfaces, constraint, held.solve_body)
        with phases("truncation"):
            inertia = problem.apply_mass(constraint)
            flexibility = gram(problem.comm, inertia, held.solve_body(inertia))
        with phases("fixed-interface modes"):  # last: SLEPc takes the factors over
            values, fixed = held.modes(num_modes)
    finally:
        held.destroy()
    with phases("truncation"):
        stiffness = gram(problem.comm, constraint, multiply(problem.stiffness, constraint))
        mass = gram(problem.comm, constraint, inertia)
        participations = gram(problem.comm, fixed, inertia)
        truncation = Truncation(
            stiffness=stiffness,
            mass=mass,
            squares=values,
            participations=participations,
            residual=flexibility - participations.T @ (participations / values[:, None]),
            rigid=_about_centre(interfaces, problem.dim, mass),
        )
    numbers = list(range(num_modes))
    if effective_mass is not None:
        numbers = truncation.by_effective_mass(effective_mass)
    labels = [f"constraint {i.name} {c}" for i in interfaces for c in COMPONENTS[problem.dim]]
    labels += [f"fixed {k + 1}" for k in numbers] + [f"load {name}" for name in acting]
    frequencies = np.sqrt(np.maximum(values[numbers], 0.0)) / (2 * np.pi)
    vectors = np.asfortranarray(np.hstack([constraint, fixed[:, numbers], static]))
    return Basis(vectors, tuple(labels), frequencies, held.averaged, reactions, cases, truncation)


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


def _num_free(problem: ElasticProblem, interfaces: tuple[MeshInterface, ...]) -> int:
    rigid = problem.comm.allreduce(sum(len(i.dofs) for i in interfaces if i.kind == "rigid"))
    averaged = sum(i.kind == "averaged" for i in interfaces)
    return problem.num_dofs - rigid - problem.num_rigid * averaged


class HeldStiffness:
    """The factorized stiffness of a body whose interfaces are all held, and what it serves.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        problem: ElasticProblem,
        interfaces: tuple[MeshInterface, ...],
        prefix: str,
        options: Options,
    ) -> None:
        self.problem, self.interfaces = problem, interfaces
        self.solver: dict[str, Any] = {"prefix": prefix, "options": options}
        rigid = [i.dofs for i in interfaces if i.kind == "rigid"]
        self.dofs = np.concatenate([*rigid, np.zeros(0, dtype=np.int32)])
        parts = [(i.dofs, i.rows) for i in interfaces if i.rows is not None]
        self.border = border_rows(problem.num_owned, parts) if parts else None
        self.num_border = problem.num_rigid * len(parts)
        averaged = [i.rows is not None for i in interfaces]
        self.averaged = np.flatnonzero(np.repeat(averaged, problem.num_rigid))
        self.K: PETSc.Mat = problem.stiffness.copy()
        constrain(self.K, self.dofs, 1.0)
        if self.border is not None:
            inner = self.K
            self.K = bordered_stiffness(inner, self.border)
            inner.destroy()
        self.ksp = cholesky(self.K, negative=self.num_border, **self.solver)

    def destroy(self) -> None:
        """Free the factors and the matrix."""
        self.ksp.destroy()
        self.K.destroy()

    def constraint_modes(self) -> tuple[Array, Array | None]:
        """One for each coordinate of an interface; and the reactions at averaged interfaces."""
        problem, per = self.problem, self.problem.num_rigid
        T = np.zeros((problem.num_owned, per * len(self.interfaces)), order="F")
        for k, i in enumerate(self.interfaces):
            if i.kind == "rigid":
                motions = problem.rigid_motions(i.point, i.blocks)
                T[i.dofs, per * k : per * k + per] = motions
        B = np.zeros((self.K.getLocalSize()[0], T.shape[1]), order="F")
        np.negative(multiply(problem.stiffness, T), out=B[: problem.num_owned])
        B[self.dofs] = T[self.dofs]
        del T
        own = slice(problem.num_owned, None)  # the border, on one rank
        if len(B[own]):
            B[own][np.arange(self.num_border), self.averaged] = 1.0
        X = solve(self.ksp, B)
        if self.border is None:
            return X, None
        gathered = problem.comm.bcast(X[own], root=problem.comm.size - 1)
        return np.asfortranarray(X[: problem.num_owned]), -gathered

    def solve_body(self, loads: Array) -> Array:
        """Displacements (owned dofs, k) under body forces, all interfaces held."""
        B = np.zeros((self.K.getLocalSize()[0], loads.shape[1]), order="F")
        B[: self.problem.num_owned] = loads
        B[self.dofs] = 0.0
        return np.asfortranarray(solve(self.ksp, B)[: self.problem.num_owned])

    def modes(self, count: int) -> tuple[Array, Array]:
        """The lowest modes: ω², and their vectors."""
        M = self.problem.mass()
        constrain(M, self.dofs, 0.0)
        if self.border is not None:
            inner = M
            M = bordered_mass(inner, self.num_border)
            inner.destroy()
        values, vectors = lowest_modes(
            self.K, M, self.ksp, count, self.dofs, num_border=self.num_border, **self.solver
        )
        M.destroy()
        return values, vectors[: self.problem.num_owned]


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
