"""Modes of a held body by LOBPCG with the preconditioner of the iterative solver."""

from __future__ import annotations

from functools import partial

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.iterative.preconditioner import TwoLevel
from dolfinx_mbd.fem.iterative.solver import IterativeSolver
from dolfinx_mbd.fem.linalg.blocks import multiply
from dolfinx_mbd.fem.linalg.lobpcg import guard_vectors, lobpcg
from dolfinx_mbd.parallel import destroying

TOLERANCE = 1e-17
"""Largest relative error of the eigenvalues, estimated with the preconditioner.

The error of the modes in the energy norm is the square root of this number. The frequencies of the
reduced body depend on this error in first order, because they are frequencies of a subspace.
"""

COARSE_TOLERANCE = 1e-3
"""Largest relative error of the eigenvalues of linear elements, whose modes start the iteration."""

MIN_UNKNOWNS = 4
"""Minimum number of free unknowns per iterated vector.

A step of LOBPCG searches a space of three times as many vectors as are iterated.
"""


def lowest_modes_iteratively(
    solver: IterativeSolver, problem: ElasticProblem, num_modes: int
) -> tuple[Array, Array]:
    """Return the lowest eigenvalues ω² and M-normalized modes (owned dofs, num_modes) (collective).

    The held rows and the constraints of the solver apply.
    """

    def mass(X: Array) -> Array:
        Y = problem.apply_mass(X)
        Y[solver.held] = 0.0
        return Y

    size = num_modes + guard_vectors(num_modes)
    free = problem.num_dofs - solver.comm.allreduce(len(solver.held))
    if free < MIN_UNKNOWNS * size:
        raise InputError(
            f"{num_modes} modes of a mesh with {free} free dofs are too many for an iterative "
            "solver; use solver='direct'",
            argument="num_modes",
            value=num_modes,
        )
    start = start_vectors(solver, problem, size)
    operators = solver.multiply, mass, solver.project
    return lobpcg(
        solver.comm, *operators, start, num_modes, tolerance=TOLERANCE, scale=solver.scale
    )


def start_vectors(solver: IterativeSolver, problem: ElasticProblem, size: int) -> Array:
    """Return modes of linear elements, or smoothed random vectors if there are too few unknowns."""
    random = np.random.default_rng(solver.comm.rank)
    level, guards = solver.level, guard_vectors(size)
    if level is not None:
        rows, unknowns = level.interpolation.getSizes()[1]
        if unknowns - solver.comm.allreduce(len(level.coarse_held)) >= MIN_UNKNOWNS * (
            size + guards
        ):
            start = random.standard_normal((size + guards, rows)).T
            return _coarse_modes(level, problem, start, size)
    X = np.asfortranarray(random.standard_normal((size, problem.num_owned)).T)
    X[solver.held] = 0.0
    return solver.project(X)


def _coarse_modes(level: TwoLevel, problem: ElasticProblem, random: Array, size: int) -> Array:
    """Return the modes of the coarse level, interpolated to the fine level."""
    M = problem.mass()
    coarse = M.PtAP(level.interpolation)
    M.destroy()
    with destroying(problem.comm, coarse):
        mass = partial(multiply, coarse)
        operators = level.multiply_coarse, mass, level.solve_coarse
        start = level.solve_coarse(mass(random))
        _, X = lobpcg(problem.comm, *operators, start, size, tolerance=COARSE_TOLERANCE)
    return multiply(level.interpolation, X)
