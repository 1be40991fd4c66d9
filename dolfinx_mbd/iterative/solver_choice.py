"""Whether a body's stiffness is factorized or its systems are solved by iteration."""

from __future__ import annotations

import logging
import os
from typing import Literal

from mpi4py import MPI

from dolfinx_mbd.fem.assembly import ElasticProblem

__all__ = ["Solver", "choose_solver", "expected_factor"]

Solver = Literal["direct", "iterative", "auto"]

FACTOR_GB = 11.0
"""Peak memory of a direct reduction of a million dofs, which grows with the power 4/3."""

SHARE = 0.8
"""Part of the free memory that a factor may take."""

_log = logging.getLogger("dolfinx_mbd")


def expected_factor(num_dofs: int) -> float:
    """Memory of a direct reduction with tetrahedra in space, bytes."""
    return FACTOR_GB * 1e9 * (num_dofs / 1e6) ** (4 / 3)


def choose_solver(problem: ElasticProblem, wanted: Solver) -> Literal["direct", "iterative"]:
    """What ``auto`` means for a body: direct while the factor is expected to fit into memory.

    A body in the plane is always factorized.

    Note: Collective.
    """
    if wanted != "auto":
        return wanted
    if problem.dim == 2:
        return "direct"
    free, needed = _free_memory(problem.comm), expected_factor(problem.num_dofs)
    if needed <= SHARE * free:
        return "direct"
    _log.info("a factor would take %.0f GB, %.0f are free: iterative", needed / 1e9, free / 1e9)
    return "iterative"


def _free_memory(comm: MPI.Comm) -> float:
    """Bytes that are free on all computers that take part, the same on every rank."""
    node = comm.Split_type(MPI.COMM_TYPE_SHARED)
    own = 0.0
    if node.rank == 0:
        own = float(os.sysconf("SC_AVPHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    node.Free()
    return float(comm.bcast(comm.reduce(own, root=0), root=0))
