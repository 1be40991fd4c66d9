"""Few degrees of freedom that hold a free body and take no force from loads in equilibrium."""

from __future__ import annotations

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.fem.assembly import ElasticProblem

__all__ = ["centred_motions", "determinate_dofs"]

Array = NDArray[np.float64]


def centred_motions(problem: ElasticProblem) -> Array:
    """Rigid motions about the mean of all nodes, shape (owned dofs, 6), in the plane 3.

    Note: Collective.
    """
    comm, x = problem.comm, problem.positions
    total, count = comm.allreduce(x.sum(axis=0)), comm.allreduce(len(x))
    return problem.rigid_motions(total / count)


def determinate_dofs(comm: MPI.Intracomm, R: Array) -> NDArray[np.int32]:
    """Owned degrees of freedom that together with those of other ranks hold the body, just so.

    They are the pivots of Rᵀ, each the one in which the rigid motions that are left move most.

    Args:
        comm: Communicator of the rows.
        R: Rigid motions, shape (owned dofs, 6), in the plane 3.

    Note: Collective.
    """
    size = np.max(comm.allgather(np.abs(R).max(axis=0, initial=0.0)), axis=0)
    own = _pivots(R / size)
    every = comm.gather(R[own] / size, root=0)
    chosen = comm.bcast(None if every is None else _pivots(np.concatenate(every)), root=0)
    first = comm.exscan(len(own)) or 0
    mine = chosen[(chosen >= first) & (chosen < first + len(own))] - first
    return np.sort(own[mine]).astype(np.int32)


def _pivots(rows: Array) -> NDArray[np.int64]:
    """The most independent rows, as many as there are columns (or rows)."""
    order = scipy.linalg.qr(rows.T, mode="r", pivoting=True)[1] if len(rows) else np.zeros(0)
    return np.asarray(order[: rows.shape[1]], dtype=np.int64)
