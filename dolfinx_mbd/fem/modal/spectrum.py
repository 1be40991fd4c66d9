"""Lowest modes above the rigid motions of a body, and the proof that no mode is missing.

The rigid motions follow from the mesh and the held degrees of freedom (`free_motions`). A body with
rigid motions has a singular stiffness, so the eigenvalue solver works on K + σM, and the rigid
motions are projected out of the computed modes. The shift σ follows from a Rayleigh-Ritz estimate.
Sylvester's law of inertia proves that all modes were found, including rigid motions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.multiple import end_of_group
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.fem.free_motions import centred_motions
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.dense_problems import solve_small_problem
from dolfinx_mbd.fem.linalg.eigenvalues import EigenError, log_completed_group, lowest_modes
from dolfinx_mbd.fem.linalg.factorization import FactorizationError, cholesky, count_below
from dolfinx_mbd.fem.linalg.options import Options
from dolfinx_mbd.fem.linalg.round_off import round_off, warn_of_round_off
from dolfinx_mbd.fem.linalg.sparse_matrices import constrain
from dolfinx_mbd.fem.prestress import BUCKLED
from dolfinx_mbd.fem.surface_integrals import bounding_box
from dolfinx_mbd.parallel import destroying, on_rank_zero
from dolfinx_mbd.phases import Phases

SHIFT = 1e-2
"""Ratio of the shift σ to the estimate of the first elastic ω²."""

MIN_SHIFT_RATIO = 1e-2
"""Least ratio of the first elastic ω² to σ. If it is smaller, σ is lowered.

Errors of ω² are about 1e-9 σ.
"""

NEGATIVE_ENERGY = (
    "the stiffness is not positive: a motion of the body has negative energy; check its form"
)

MAX_RUNS = 8
"""Largest number of solver runs until no mode is missing and the last group is complete."""


@dataclass(frozen=True, eq=False)
class ElasticModes:
    """Modes of a body and the proof that no mode is missing."""

    squares: Array  # ω² of the elastic modes, shape (num_modes,)
    vectors: Array  # shape (owned dofs, num_modes)
    num_rigid: int
    num_below: int  # number of modes below `limit`, including rigid motions
    limit: float  # ω² up to which modes were counted


def elastic_modes(
    problem: ElasticProblem,
    num_modes: int,
    held: NDArray[np.int32],
    motions: Array,
    *,
    prefix: str,
    options: Options,
    phases: Phases | None = None,
    estimate: float | None = None,
) -> ElasticModes:
    """Compute elastic modes above the rigid motions; prove that no mode is missing (collective).

    More than `num_modes` modes are returned if the last one belongs to a multiple eigenvalue.
    `motions` (owned dofs, r) have no stiffness, and are zero at held degrees of freedom. `estimate`
    is an upper bound of the first elastic ω² of the free body, computed by default.
    """
    free = problem.num_dofs - problem.comm.allreduce(len(held))
    if num_modes > free - motions.shape[1]:
        raise InputError(
            f"num_modes={num_modes}, but the mesh has only {free - motions.shape[1]} free dofs "
            "in addition to the rigid motions",
            argument="num_modes",
            value=num_modes,
        )
    solver = {"prefix": prefix, "options": options}
    pencil = _Pencil(problem, held, motions, free, solver, phases or Phases())
    shift = 0.0
    if motions.shape[1]:
        shift = SHIFT * (_estimate(problem) if estimate is None else estimate)
    while True:
        result = pencil.elastic_modes(num_modes, shift)
        errors = round_off(problem, result.vectors[:, :1])
        # Not less than round-off; ∞ if no modes are requested
        lower = np.max([result.squares[:1], 1e3 * errors], initial=0.0) or np.inf
        if lower > MIN_SHIFT_RATIO * shift:
            break
        shift = lower
    # K of a material without prestress gives rigid motions no energy
    invariant = getattr(problem, "materials", None) is not None and not problem.prestress
    if invariant and result.vectors.shape[1] and not motions.shape[1]:
        result, errors = _without_rigid_energy(problem, held, result, errors)
    warn_of_round_off(result.squares, errors)
    return result


def _without_rigid_energy(
    problem: ElasticProblem, held: NDArray[np.int32], result: ElasticModes, errors: Array
) -> tuple[ElasticModes, Array]:
    """Compute ω² of a held body again without the round-off that K gives to rigid motions.

    A slow mode of a thin held body is for the most part a rigid motion, which has no energy but
    multiplies the round-off in K. With modes Ψ and rigid motions R, the energy of Ψ is that of
    Ψ - R A; A minimizes the estimate of the round-off (see `round_off`). The second result is the
    minimal estimate for the first ω², plus the square of the estimate without A, `errors`, divided
    by the distance of this ω² from `result.limit`: round-off also mixes the first mode with modes
    above this limit.
    """
    vectors, comm = result.vectors, problem.comm
    diagonal = problem.stiffness.getDiagonal()
    R = centred_motions(problem)
    R /= np.sqrt(np.diag(gram(comm, R, R)))
    weighted = np.asfortranarray(diagonal.array_r[:, None] * R)
    diagonal.destroy()
    A = np.linalg.solve(gram(comm, weighted, R), gram(comm, weighted, vectors))
    deformation = np.asfortranarray(vectors - R @ A)
    image = problem.apply_mass(vectors)
    image[held] = 0.0
    K = gram(comm, deformation, multiply(problem.stiffness, deformation))
    M, no_motions = gram(comm, vectors, image), np.zeros((vectors.shape[1], 0))
    squares, coefficients = on_rank_zero(comm, lambda: solve_small_problem(K, M, no_motions)[:2])
    mixing = errors**2 / max(result.limit - squares[0], float(errors[0]))
    errors = mixing + round_off(problem, np.asfortranarray(deformation @ coefficients[:, :1]))
    changed = np.asfortranarray(vectors @ coefficients)
    return replace(result, squares=squares, vectors=changed), errors


@dataclass(frozen=True, eq=False)
class _Pencil:
    """K and M of a body with held degrees of freedom and known rigid motions."""

    problem: ElasticProblem
    held: NDArray[np.int32]
    motions: Array
    free: int  # number of degrees of freedom that are not held, on all ranks
    solver: dict[str, Any]
    phases: Phases

    def elastic_modes(self, num_modes: int, shift: float) -> ElasticModes:
        """Compute modes with K + σM; see the function `elastic_modes`."""
        problem, num_rigid = self.problem, self.motions.shape[1]
        with self.phases("factorization"):
            M = problem.mass()
            K = problem.stiffness.copy()
            if shift:
                K.axpy(shift, M, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
            constrain(K, self.held, 1.0)
            constrain(M, self.held, 0.0)
            try:
                ksp = cholesky(K, **self.solver)
            except FactorizationError as error:
                raise FactorizationError(f"{BUCKLED} ({error})") if problem.prestress else error
        with destroying(problem.comm, ksp, K, M):
            extra, expected, limit, counted = 2, 0, 0.0, 0
            for _ in range(MAX_RUNS):
                total = min(self.free, num_modes + num_rigid + extra)
                with self.phases("modes"):
                    pairs = lowest_modes(K, M, ksp, total, self.held, **self.solver)
                    values, vectors = self._without_motions(pairs[0] - shift, pairs[1])
                    errors = round_off(problem, vectors)
                if (values < -100 * errors).any():  # much more negative than by round-off
                    raise FactorizationError(BUCKLED if problem.prestress else NEGATIVE_ENERGY)
                count = end_of_group(values, num_modes, errors)
                if count == len(values) and total < self.free:
                    extra *= 2  # the last group may continue
                    continue
                num_elastic, limit = _gap(values, count, complete=total == self.free)
                expected = num_rigid + num_elastic
                with self.phases("count"):
                    counted = count_below(K, M, limit + shift)
                if counted == expected:
                    log_completed_group(num_modes, count, values)
                    return ElasticModes(
                        values[:count], vectors[:, :count], num_rigid, counted, limit
                    )
                extra += max(2, counted - expected)  # a copy of a multiple mode was missed
        raise EigenError(
            f"the solver found {expected} modes below {hertz(np.array(limit)):.6g} Hz, and the "
            f"inertia of K - λM counts {counted}; raise the option eps_ncv or lower eps_tol"
        )

    def _without_motions(self, values: Array, vectors: Array) -> tuple[Array, Array]:
        """Remove the rigid motions from modes that include them."""
        if not self.motions.shape[1]:
            return values, vectors
        comm, image = self.problem.comm, self.problem.apply_mass(vectors)
        image[self.held] = 0.0
        M, B = gram(comm, vectors, image), gram(comm, image, self.motions)
        K = gram(comm, vectors, multiply(self.problem.stiffness, vectors))
        values, coefficients = on_rank_zero(comm, lambda: solve_small_problem(K, M, B)[:2])
        return values, np.asfortranarray(vectors @ coefficients)


def _gap(values: Array, at_least: int, *, complete: bool) -> tuple[int, float]:
    """Return the number of values below the widest gap, and the middle of this gap.

    At least `at_least` values are below the gap. If the values are `complete`, or if no gap is
    known, the limit is above all values.
    """
    if complete or at_least >= len(values):
        return len(values), 1.01 * values[-1] if len(values) else 1.0
    first = max(at_least, 1)
    below, above = values[first - 1 : -1], values[first:]
    k = int(np.argmax((above - below) / np.abs(above)))
    return first + k, float(below[k] + above[k]) / 2


def _estimate(problem: ElasticProblem) -> float:
    """Return an upper bound of the first elastic ω² of the free body from quadratic fields."""
    low, high = bounding_box(problem.comm, problem.positions)
    xi = (problem.positions - (low + high) / 2) / (np.max(high - low) / 2)
    products = [xi[:, i] * xi[:, j] for i in range(problem.dim) for j in range(i + 1)]
    monomials = np.column_stack([np.ones(len(xi)), xi, *products])
    Q = np.asfortranarray(np.kron(monomials, np.eye(problem.dim)))
    return ritz_estimate(problem, Q, rigid_motions(xi))


def ritz_estimate(problem: ElasticProblem, Q: Array, R: Array) -> float:
    """Return an upper bound of the first elastic ω² of the free body (collective).

    The span of the fields Q (owned dofs, k) contains the rigid motions R, which may refer to any
    point and have any size.
    """
    comm, MQ = problem.comm, problem.apply_mass(Q)
    K = gram(comm, Q, multiply(problem.stiffness, Q))
    M, B = gram(comm, Q, MQ), gram(comm, MQ, R)
    squares = on_rank_zero(comm, lambda: solve_small_problem(K, M, B)[0])
    return float(max(squares[0], 1e-9 * squares[-1]))


def hertz(squares: Array) -> Array:
    """Return frequencies, Hz, from ω²."""
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi))
