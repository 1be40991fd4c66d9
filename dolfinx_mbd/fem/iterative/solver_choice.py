"""Choice between a factorization and the iterative solver."""

from __future__ import annotations

import logging
from typing import Literal

from mpi4py import MPI

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.linalg.memory import factorization_memory, free_memory
from dolfinx_mbd.fem.linalg.single_precision import is_large

Solver = Literal["direct", "double", "iterative", "auto"]

MAX_SHARE = 0.8
"""Largest share of the free memory that a factorization may use."""

_log = logging.getLogger("dolfinx_mbd")


def choose_solver(
    problem: ElasticProblem, solver: Solver
) -> Literal["direct", "double", "iterative"]:
    """Return the user's choice; for "auto" return "direct" if the factors should fit into memory.

    With "auto", plane bodies always use the direct solver. Collective.
    """
    if solver != "auto" or problem.dim == 2:
        return "direct" if solver == "auto" else solver
    single = is_large(problem.num_dofs, problem.comm.size)
    fits = factor_fits(problem.comm, problem.num_dofs, single=single, other="iterative solver")
    return "direct" if fits else "iterative"


def factor_fits(comm: MPI.Comm, num_dofs: int, *, single: bool = False, other: str) -> bool:
    """Return whether a factorization should fit into the free memory (collective).

    If not, a line of the log names the `other` solver.
    """
    free = free_memory(comm)
    needed = factorization_memory(num_dofs, single=single, num_ranks=comm.size)
    if needed > MAX_SHARE * free:
        gigabytes = needed / 1e9, free / 1e9
        _log.info(f"a factorization needs %.0f GB, %.0f GB are free: {other}", *gigabytes)
    return needed <= MAX_SHARE * free
