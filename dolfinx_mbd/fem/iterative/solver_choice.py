"""Choice between a factorization and the iterative solver."""

from __future__ import annotations

import logging
from typing import Literal

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
    ranks = problem.comm.size
    single = is_large(problem.num_dofs, ranks)
    free = free_memory(problem.comm)
    needed = factorization_memory(problem.num_dofs, single=single, num_ranks=ranks)
    if needed <= MAX_SHARE * free:
        return "direct"
    gigabytes = needed / 1e9, free / 1e9
    _log.info("a factorization needs %.0f GB, %.0f GB are free: iterative solver", *gigabytes)
    return "iterative"
