"""Modes of a held body by the iterative solver's preconditioner, started from linear elements."""

from __future__ import annotations

from functools import partial

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.iterative.conjugate_gradients import IterativeSolver
from dolfinx_mbd.iterative.lobpcg import guards, lobpcg
from dolfinx_mbd.iterative.multigrid import TwoLevel
from dolfinx_mbd.iterative.products import COLUMNS
from dolfinx_mbd.linalg.factorization import multiply, released

__all__ = ["lowest_modes_iteratively"]

Array = NDArray[np.float64]

TOLERANCE = 1e-17
"""Relative error of the eigenvalues, as the preconditioner estimates it.

That of the modes, in the norm of energy, is its root. It enters the frequencies of the reduced body
in the first order: they are those of a subspace, not of the body.
"""

COARSE_TOLERANCE = 1e-3
"""The same of those of linear elements, which are a start only."""

SPACES = 4
"""Least free unknowns for each vector that is iterated: three span the space of a step."""


def lowest_modes_iteratively(
    solver: IterativeSolver, problem: ElasticProblem, num_modes: int
) -> tuple[Array, Array]:
    """The lowest modes with all held rows and constraints; M-normalized.

    Returns:
        Eigenvalues λ = ω², shape (num_modes,), the same on every rank; vectors, shape (owned dofs,
        num_modes).

    Raises:
        EigenError: No convergence, or the stiffness is not positive definite.
        ValueError: The mesh is too small for so many.

    Note: Collective.
    """
    held = solver.held

    def mass(X: Array) -> Array:
        Y = np.empty(X.shape, order="F")
        for part in _parts(X.shape[1]):
            Y[:, part] = problem.apply_mass(X[:, part])
        Y[held] = 0.0
        return Y

    def precondition(R: Array) -> Array:
        Z = np.empty(R.shape, order="F")
        for part in _parts(R.shape[1]):
            own = R[:, part].copy(order="F")
            Z[:, part] = solver.projected(own)
            R[:, part] = own
        return Z

    size = num_modes + guards(num_modes)
    free = problem.num_dofs - solver.comm.allreduce(len(held))
    if free < SPACES * size:
        raise InputError(
            f"{num_modes} modes of a mesh with {free} free dofs are too many for an iterative "
            "solver; take solver='direct'"
        )
    start = _start(solver, problem, size)
    return lobpcg(
        solver.comm,
        solver.products.multiply,
        mass,
        precondition,
        start,
        num_modes,
        tolerance=TOLERANCE,
        scale=solver.scale,
    )


def _parts(columns: int) -> list[slice]:
    return [slice(b, min(b + COLUMNS, columns)) for b in range(0, columns, COLUMNS)]


def _random(comm: MPI.Comm, rows: int, columns: int) -> Array:
    return np.random.default_rng(comm.rank).standard_normal((columns, rows)).T


def _start(solver: IterativeSolver, problem: ElasticProblem, size: int) -> Array:
    """Modes of linear elements; where these are too few or there are none, random vectors."""
    level = solver.precondition
    if isinstance(level, TwoLevel):
        unknowns = level.interpolation.getSize()[1] - solver.comm.allreduce(len(level.coarse_held))
        if unknowns >= SPACES * (size + guards(size)):
            return _coarse_modes(level, solver.comm, problem, size)
    X = np.asfortranarray(_random(solver.comm, problem.num_owned, size))
    X[solver.held] = 0.0
    return np.asfortranarray(np.hstack([solver.projected(X[:, p]) for p in _parts(size)]))


def _coarse_modes(level: TwoLevel, comm: MPI.Comm, problem: ElasticProblem, size: int) -> Array:
    """Interpolated modes of the coarse level."""
    M = problem.mass()
    coarse = M.PtAP(level.interpolation)
    M.destroy()
    rows = level.interpolation.getLocalSize()[1]
    random = _random(comm, rows, size + guards(size))
    with released(comm, coarse):
        _, X = lobpcg(
            comm,
            level.multiply_coarse,
            partial(multiply, coarse),
            level.solve_coarse,
            level.solve_coarse(multiply(coarse, random)),
            size,
            tolerance=COARSE_TOLERANCE,
        )
    return multiply(level.interpolation, X)
