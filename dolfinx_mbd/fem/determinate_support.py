"""Statically determinate supports, whose reactions to loads in equilibrium are zero."""

from __future__ import annotations

import numpy as np
import scipy
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem


def centred_motions(problem: ElasticProblem) -> Array:
    """Return rigid motions about the mean of all nodes, shape (owned dofs, 6 or 3)."""
    comm, x = problem.comm, problem.positions
    total, count = comm.allreduce(x.sum(axis=0)), comm.allreduce(len(x))
    return problem.rigid_motions(total / count)


def determinate_dofs(comm: MPI.Intracomm, R: Array) -> NDArray[np.int32]:
    """Return the owned degrees of freedom of a determinate support against rigid motions R.

    The support consists of the pivots of a QR factorization of Rᵀ over all ranks. Collective.
    """
    R = R / np.max(comm.allgather(np.abs(R).max(axis=0, initial=0.0)), axis=0)
    local = _pivots(R)
    candidates = comm.gather(R[local], root=0)
    pivots = comm.bcast(None if candidates is None else _pivots(np.vstack(candidates)), root=0)
    start = comm.exscan(len(local)) or 0
    rows_here = pivots[(pivots >= start) & (pivots < start + len(local))] - start
    return np.sort(local[rows_here]).astype(np.int32)


def _pivots(rows: Array) -> NDArray[np.int64]:
    """Return the indices of the most independent rows, at most one for each column."""
    order = scipy.linalg.qr(rows.T, mode="r", pivoting=True)[1] if len(rows) else np.zeros(0)
    return np.asarray(order[: rows.shape[1]], dtype=np.int64)
