"""Derivatives of the entries of a body as differences of its projection.

The modes and the forces of loads have known first derivatives. With their expansions Ψ + s Ψ′ and
so on, `project` is a smooth function of the step s, on a mesh that moves and with materials that
change. The difference of fourth order is exact for polynomials up to degree four. Stress modes are
costly; their difference of second order has a smaller step and an error below 1e-8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody, Skin, StressModes
from dolfinx_mbd.body.tree import map_arrays, with_values
from dolfinx_mbd.design.sensitivity.mode_derivatives import point_velocity
from dolfinx_mbd.design.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.durability.recovery.skin_stress import skin_averages
from dolfinx_mbd.durability.recovery.stress import six_components
from dolfinx_mbd.fem.assembly import ElasticProblem, in_space
from dolfinx_mbd.fem.fields import material_points, surface_skin
from dolfinx_mbd.fem.inertia import Inertia
from dolfinx_mbd.fem.interfaces.bores import BorePatterns
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.reduction.projection import (
    Contents,
    SolidIntegrals,
    Solutions,
    project,
)
from dolfinx_mbd.reduction.result import Reduction
from dolfinx_mbd.reduction.stiffening import WRENCH_INDICES

T = TypeVar("T")

STEP = 0.03
"""Change of element matrices and positions in one step of a difference, relative to their size."""
FINE = 7e-4
"""Step of the differences of second order of stress modes, relative to the step of fourth order."""


@dataclass(frozen=True, eq=False)
class SolvedDerivatives:
    """Derivatives that follow from linear systems, or from products with them."""

    modes: Array  # Ψ′, (owned dofs, n)
    motions: Array  # derivative of the motion of the interfaces, (coordinates, n)
    stiffness: Array  # derivative of ΨᵀKΨ, (n, n)
    forces: Array | None  # derivative of the nodal forces of the loads, None: zero
    moments: Inertia  # derivatives of the moments of mass
    largest: float  # largest norm of a column of Ψ′ by the mass matrix


def differenced(tree_at: Callable[[float], T], step: float, order: Literal[2, 4] = 4) -> T:
    """Return the derivative of an array, or of all arrays of a body, with respect to the step.

    Args:
        tree_at: Function that returns the array or the body at a step.
        step: Step of the difference.
        order: Order of its error in the step.
    """
    trees = [tree_at(k * step) for k in ((-1, 1) if order == 2 else (-2, -1, 1, 2))]

    def slope(_: Any, *values: Any) -> Any:
        if order == 2:
            b, c = (np.asarray(value) for value in values)
            return (c - b) / (2 * step)
        a, b, c, d = (np.asarray(value) for value in values)
        return (8 * (c - b) - (d - a)) / (12 * step)

    return slope(None, *trees) if isinstance(trees[0], np.ndarray) else map_arrays(slope, *trees)


class ProjectionDerivatives:
    """Derivatives of the projection of one reduction; all methods are collective.

    Args:
        reduction: The reduction.
        problem: Its matrices.
        forces: Nodal forces of its loads, shape (owned dofs, loads).
        bores: Pressure patterns of its bores.
    """

    def __init__(
        self,
        reduction: Reduction,
        problem: ElasticProblem,
        forces: Array,
        bores: tuple[BorePatterns, ...],
    ) -> None:
        self._reduction, self._problem = reduction, problem
        body = reduction.body
        self._contents = Contents(
            reduction.interfaces,
            {p.name: p.position for p in body.points},
            False,  # the skin has closed derivatives
            tuple(reduction.loads),
            forces,
            bores,
        )

    def __call__(self, matrices: MatrixDerivatives, solved: SolvedDerivatives) -> ReducedBody:
        """Return the derivatives of the arrays of a body, without gauges and effective masses."""
        points, problem = self._point_rates(matrices), self._problem
        step = step_of(problem, matrices, solved.largest)

        def body_at(step: float) -> ReducedBody:
            contents = self._contents_at(matrices, solved, points, step)
            with problem_at(problem, matrices, step) as moved:
                entries = project(SolidIntegrals(moved), self._solutions(solved, step), contents)
            missing = {"effective_masses": None, "gauges": (), "stress": None, "skin": None}
            return with_values(self._reduction.body, **entries | missing)

        def stress_at(step: float) -> ReducedBody:
            with problem_at(problem, matrices, step) as moved:
                return self._stress(moved, solved, step)

        stress = None
        if self._reduction.body.stress is not None:
            stress = differenced(stress_at, FINE * step, order=2).stress
        skin = self._skin(matrices, solved)
        return with_values(differenced(body_at, step), stress=stress, skin=skin)

    def _skin(self, matrices: MatrixDerivatives, solved: SolvedDerivatives) -> Skin | None:
        """Return the derivatives of the positions of the skin and of its modes."""
        if self._reduction.body.skin is None:
            return None
        V = matrices.velocity
        moved: Array = np.zeros((len(solved.modes), 0 if V is None else 1))
        if V is not None:
            moved[:, 0] = V.ravel()
        fields = surface_skin(self._problem.space, np.hstack([moved, solved.modes]))
        points = np.zeros_like(fields.points) if V is None else fields.modes[0]
        return with_values(fields, points=points, modes=fields.modes[moved.shape[1] :])

    def _solutions(self, solved: SolvedDerivatives, step: float) -> Solutions:
        """Return modes, and motions of interfaces, stiffness and moments to first order."""
        base, rows = self._reduction.body, WRENCH_INDICES[self._problem.dim]
        rates = solved.moments
        moments = Inertia(
            base.total_mass + step * rates.total_mass,
            base.first_moments + step * rates.first_moments,
            base.second_moments + step * rates.second_moments,
            rates.signs,
        )
        motions = [np.zeros((0, base.num_modes)), *(i.motion[rows] for i in base.interfaces)]
        return Solutions(
            np.asfortranarray(self._reduction.modes + step * solved.modes),
            np.vstack(motions) + step * solved.motions,
            base.stiffness + step * solved.stiffness,
            moments=moments,
        )

    def _stress(
        self, problem: ElasticProblem, solved: SolvedDerivatives, step: float
    ) -> ReducedBody:
        """Return a body with the stress modes at a step."""
        base, stress = self._reduction.body, None
        if base.stress is not None and problem.materials is not None:
            law, vectors = problem.materials.stress_in_space, self._solutions(solved, step).vectors
            stress = StressModes(
                *skin_averages(problem.space, vectors, lambda u: six_components(law(u)), "stress")
            )
        return with_values(base, stress=stress)

    def _contents_at(
        self,
        matrices: MatrixDerivatives,
        solved: SolvedDerivatives,
        points: dict[str, Array],
        step: float,
    ) -> Contents:
        """Return the contents of the body at a step."""
        base, forces = self._contents, self._contents.forces
        if forces is not None and solved.forces is not None:
            forces = forces + step * solved.forces
        if matrices.velocity is None:
            return replace(base, forces=forces)
        interfaces = interfaces_at(self._problem, base.interfaces, matrices, step)
        moved = {i.name: i for i in interfaces}
        bores = tuple(replace(b, interface=moved[b.interface.name]) for b in base.bores)
        places = {name: x + step * points[name] for name, x in base.points.items()}
        return replace(base, interfaces=interfaces, points=places, forces=forces, bores=bores)

    def _point_rates(self, matrices: MatrixDerivatives) -> dict[str, Array]:
        """Return the velocities of the material points by name."""
        points, V = self._contents.points, matrices.velocity
        if V is None or not points:
            return {}
        field = np.asfortranarray(V.reshape(V.size, 1))
        return {p.name: p.modes[0] for p in material_points(self._problem.space, field, points)}


@contextmanager
def problem_at(
    problem: ElasticProblem, matrices: MatrixDerivatives, step: float
) -> Iterator[ElasticProblem]:
    """Give the body with the mesh and the materials of a step, without its matrices."""
    V, t = matrices.velocity, problem.thickness
    with matrices.at_step(step):
        yield replace(
            problem,
            stiffness=None,
            scalar_mass=None,
            positions=problem.positions if V is None else problem.positions + step * V,
            thickness=None if t is None else t + step * matrices.thickness,
            materials=matrices.materials,
        )


def interfaces_at(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    matrices: MatrixDerivatives,
    step: float,
) -> tuple[MeshInterface, ...]:
    """Return the interfaces at a step; only their points move, and their sizes are constant."""
    if matrices.velocity is None:
        return interfaces
    rates = [in_space(point_velocity(problem, i, matrices)) for i in interfaces]
    return tuple(
        replace(i, point=i.point + step * v) for i, v in zip(interfaces, rates, strict=True)
    )


def step_of(problem: ElasticProblem, matrices: MatrixDerivatives, largest: float = 0.0) -> float:
    """Return the step of differences (collective).

    Matrices and positions change by the fraction `STEP`, and modes at most by their own size.
    `largest` is the largest derivative of a mode relative to the mode.
    """
    rates = [STEP * largest]
    for matrix, diagonal in (
        (problem.stiffness, matrices.stiffness_diagonal),
        (problem.scalar_mass, matrices.mass_diagonal),
    ):
        if diagonal is not None:
            base = matrix.getDiagonal()
            rates.append(_largest(diagonal / base.array_r))
            base.destroy()
    if matrices.velocity is not None:
        rates.append(_largest(matrices.velocity) / body_size(problem.space.mesh))
    rate = max(problem.comm.allgather(max(rates)))
    return STEP / rate if rate > 0 else 1.0


def _largest(values: Array) -> float:
    """Return the largest magnitude, zero for an empty array."""
    return float(np.abs(values).max(initial=0.0))
