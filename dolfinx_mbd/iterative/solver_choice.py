"""Choice between a factorization and the iterative solver."""

from __future__ import annotations

import logging
from typing import Literal

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.linalg.memory import factorization_memory, free_memory

__all__ = ["Solver", "choose_solver"]

Solver = Literal["direct", "iterative", "auto"]

SHARE = 0.8
"""Largest share of the free memory that a factorization may take."""

_log = logging.getLogger("dolfinx_mbd")


def choose_solver(problem: ElasticProblem, solver: Solver) -> Literal["direct", "iterative"]:
    """Return the solver of a body: a factorization if it is expected to fit into memory.

    Bodies in the plane are always factorized, unless the user has chosen otherwise.

    Args:
        problem: Matrices of the body.
        solver: The user's choice, or "auto".

    Note: Collective.
    """
    if solver != "auto":
        return solver
    if problem.dim == 2:
        return "direct"
    free, needed = free_memory(problem.comm), factorization_memory(problem.num_dofs)
    if needed <= SHARE * free:
        return "direct"
    gigabytes = needed / 1e9, free / 1e9
    _log.info("a factorization needs %.0f GB, %.0f are free: iterative solver", *gigabytes)
    return "iterative"
