"""Lowest modes above the rigid motions of a body, and the proof that none is missing.

The rigid motions follow from the mesh and from what is held (`free_motions`), exactly; no mode is
taken for a rigid motion because its frequency is low. A body that has some has a singular
stiffness, so the eigenvalue solver works on K + σM. σ comes from a Rayleigh-Ritz estimate of the
first elastic ω² with quadratic displacement fields, and is lowered if that is far too high; then
the rigid motions are projected out of what the solver finds. That all modes were found, rigid ones
included, is proved by Sylvester's law of inertia.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.body.multiple import end_of_group
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.fem.prestress import BUCKLED
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.dense_problems import solve_small_problem
from dolfinx_mbd.linalg.eigenvalues import EigenError, log_completed_group, lowest_modes
from dolfinx_mbd.linalg.factorization import FactorizationError, cholesky, count_below
from dolfinx_mbd.linalg.matrices import constrain
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.linalg.round_off import round_off, warn_of_round_off
from dolfinx_mbd.parallel import agreed, released

__all__ = ["ElasticModes", "elastic_modes", "hertz", "ritz_estimate"]

Array = NDArray[np.float64]

SHIFT = 1e-2
"""σ over the estimate of the first elastic ω²."""

FAR = 1e-2
"""First elastic ω² over σ below which σ is lowered: both are only known up to 1e-9 σ."""

NEGATIVE = "the stiffness is not positive: a motion of the body releases energy; check its form"

ATTEMPTS = 8
"""How often more modes are sought until none is missing and the last group is complete."""


@dataclass(frozen=True, eq=False)
class ElasticModes:
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
    """Compute elastic modes above the rigid ones, and prove that none is missing.

    Args:
        problem: Matrices of the free body.
        num_modes: How many elastic modes; more are returned if this number cuts through a multiple
            eigenvalue (`body.multiple`).
        held: Owned held degrees of freedom (local numbers).
        motions: Motions that the stiffness does not resist, zero where the body is held, shape
            (owned dofs, r).
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        phases: Collects the seconds.
        estimate: Of the first elastic ω² of the free body, from above; None: it is made.

    Note: Collective.
    """
    count = problem.num_dofs - problem.comm.allreduce(len(held)) - motions.shape[1]
    if num_modes > count:
        raise InputError(
            f"num_modes={num_modes}, but the mesh has only {count} free dofs beside the rigid "
            "motions",
            argument="num_modes",
            value=num_modes,
        )
    pencil = _Pencil(problem, held, motions, prefix, options, phases or Phases())
    shift = 0.0
    if motions.shape[1]:
        shift = SHIFT * (_estimate(problem) if estimate is None else estimate)
    while True:
        result = pencil.elastic_modes(num_modes, shift)
        errors = round_off(problem, result.vectors[:, :1])
        lower = np.max([result.squares[:1], 1e3 * errors], initial=0.0) or np.inf
        if lower > FAR * shift:
            break
        shift = lower
    warn_of_round_off(result.squares, errors)
    return result


class _Pencil:
    """K and M of a body with held degrees of freedom and known rigid motions."""

    def __init__(
        self,
        problem: ElasticProblem,
        held: NDArray[np.int32],
        motions: Array,
        prefix: str,
        options: Options,
        phases: Phases,
    ) -> None:
        self._problem, self._held, self._motions = problem, held, motions
        self._solver: dict[str, Any] = {"prefix": prefix, "options": options}
        self._phases = phases
        self._free = problem.num_dofs - problem.comm.allreduce(len(held))

    def elastic_modes(self, num_modes: int, shift: float) -> ElasticModes:
        """See the function `elastic_modes`; with K + σM.

        Note: Collective.
        """
        problem, rigid = self._problem, self._motions.shape[1]
        with self._phases("factorization"):
            M = problem.mass()
            K = problem.stiffness.copy()
            if shift:
                K.axpy(shift, M, structure=PETSc.Mat.Structure.SUBSET_NONZERO_PATTERN)
            constrain(K, self._held, 1.0)
            constrain(M, self._held, 0.0)
            try:
                ksp = cholesky(K, **self._solver)
            except FactorizationError as error:
                raise FactorizationError(f"{BUCKLED} ({error})") if problem.prestress else error
        with released(problem.comm, ksp, K, M):
            spare, last, limit, below = 2, 0, 0.0, 0
            for _ in range(ATTEMPTS):
                total = min(self._free, num_modes + rigid + spare)
                with self._phases("modes"):
                    pairs = lowest_modes(K, M, ksp, total, self._held, **self._solver)
                    values, vectors = self._elastic(pairs[0] - shift, pairs[1])
                    errors = round_off(problem, vectors)
                if (values < -100 * errors).any():
                    raise FactorizationError(BUCKLED if problem.prestress else NEGATIVE)
                count = end_of_group(values, num_modes, errors)
                if count == len(values) and total < self._free:
                    spare *= 2  # the last group may go on
                    continue
                number, limit = _gap(values, count, complete=total == self._free)
                last = rigid + number
                with self._phases("count"):
                    below = count_below(K, M, limit + shift)
                if below == last:
                    log_completed_group(num_modes, count, values)
                    return ElasticModes(values[:count], vectors[:, :count], rigid, below, limit)
                spare += max(2, below - last)  # a copy of a multiple mode was missed
        raise EigenError(
            f"the solver found {last} modes below {hertz(np.array(limit)):.6g} Hz, and the "
            f"inertia of K - λM counts {below}; raise the option eps_ncv or lower eps_tol"
        )

    def _elastic(self, values: Array, vectors: Array) -> tuple[Array, Array]:
        """Remove the rigid motions from modes that include them."""
        if self._motions.shape[1]:
            comm, problem = self._problem.comm, self._problem
            image = problem.apply_mass(vectors)
            image[self._held] = 0.0
            M, B = gram(comm, vectors, image), gram(comm, image, self._motions)
            K = gram(comm, vectors, multiply(problem.stiffness, vectors))
            small = None
            with agreed(comm):
                if comm.rank == 0:
                    small = solve_small_problem(K, M, B)[:2]
            values, coefficients = comm.bcast(small, root=0)
            vectors = np.asfortranarray(vectors @ coefficients)
        return values, vectors


def _gap(values: Array, at_least: int, *, complete: bool) -> tuple[int, float]:
    """Return where to count, in the widest gap after some modes: how many are below, and its λ."""
    if complete or at_least >= len(values):
        return len(values), 1.01 * values[-1] if len(values) else 1.0
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


def hertz(squares: Array) -> Array:
    """Return frequencies from ω²."""
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi))
