"""Work on rank 0 and the end of all ranks after an error, without an import of MPI."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from dolfinx_mbd.checks import refuse
from dolfinx_mbd.errors import InputTypeError

__all__ = ["end_job_on_errors", "on_rank_zero", "picklable"]

T = TypeVar("T")


def on_rank_zero(comm: Any, work: Callable[[], T]) -> T:
    """Run a function on rank 0 and return its result, or raise its error, on every rank.

    Args:
        comm: Communicator of mpi4py; None: run the function in this process.
        work: The function; it must not call anything collective.

    Raises:
        InputTypeError: `comm` is neither a communicator nor None.

    Note: Collective over `comm`.
    """
    if comm is None:
        return work()
    if not hasattr(comm, "bcast"):
        refuse("comm", comm, "an MPI communicator of mpi4py or None", InputTypeError)
    result: T | None = None
    error: Exception | None = None
    if comm.rank == 0:
        try:
            result = work()
        except Exception as caught:
            error = caught
    shared = comm.bcast((result, None if error is None else picklable(error)), root=0)
    if error is not None:
        raise error
    if shared[1] is not None:
        raise shared[1]
    return shared[0]


def end_job_on_errors(comm: Any) -> None:
    """End all ranks after an exception that was not caught has ended this rank.

    Otherwise the job would hang: at the end of the program PETSc waits for the other ranks, which
    may wait for this one. `python3 -m mpi4py` does not suffice, because it ends the job only after
    PETSc has finished.

    Args:
        comm: Communicator of mpi4py with all ranks. Nothing happens if it has one rank.
    """
    if comm.size == 1:
        return
    show = sys.excepthook

    def show_and_end(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        show(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(1.0)  # other ranks may also have to show an error
        comm.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = show_and_end


def picklable(error: Exception) -> Exception:
    """Return the error, or one with the same message if it cannot be sent to another rank."""
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
