"""Parameter studies over the ranks of MPI, for tests."""

from __future__ import annotations

from typing import Any

import xarray
from mpi4py import MPI
from mpi4py.futures import MPICommExecutor

from dolfinx_mbd.analyses import sweep


def sweep_on_ranks(comm: MPI.Intracomm, *arguments: Any, **options: Any) -> xarray.Dataset:
    """Return a study whose cases the ranks share; an error of the study is raised on all ranks.

    A single rank computes all cases in its process.
    """
    study, problem = None, None
    if comm.size == 1:
        return sweep(*arguments, workers=1, **options)
    with MPICommExecutor(comm, root=0) as executor:
        if executor is not None:
            try:
                study = sweep(*arguments, executor=executor, **options)
            except Exception as error:
                problem = error
    # Only rank 0 raises the error itself: one with a dataset in it cannot be sent to other ranks.
    failed = comm.bcast(problem is not None)
    if problem is not None:
        raise problem
    if failed:
        raise RuntimeError("rank 0 has an error")
    return comm.bcast(study)
