"""Execution on one rank, errors on all ranks, and the end of parallel jobs after errors.

All functions are collective over the communicator that they receive. MPI is not imported here.
"""

from __future__ import annotations

import copy
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, TypeVar

from dolfinx_mbd.checks import reject
from dolfinx_mbd.errors import InputError, InputTypeError, SolverError

T = TypeVar("T")


def on_rank_zero(comm: Any, work: Callable[[], T]) -> T:
    """Run a function on rank 0 and return its result, or raise its error, on every rank.

    The function must not be collective. If `comm` is None, the function runs in this process.
    """
    if comm is None:
        return work()
    if not hasattr(comm, "bcast"):
        reject("comm", comm, "an MPI communicator of mpi4py or None", InputTypeError)
    result: T | None = None
    local: Exception | None = None
    if comm.rank == 0:
        try:
            result = work()
        except Exception as caught:
            local = caught
    result, error = comm.bcast((result, None if local is None else picklable(local)), root=0)
    if error is not None:
        raise local or error
    return result  # type: ignore[return-value]


def summed(comm: Any, local: Any) -> Any:
    """Return the sum of arrays over all ranks, bitwise identical on all ranks.

    `Allreduce` may round differently on different ranks.
    """
    if comm.size == 1:
        return local
    local = local.copy(order="C")
    total = local.copy()
    comm.Reduce(local, total, root=0)
    comm.Bcast(total, root=0)
    return total


def raise_together(comm: Any, message: str | None, kind: type[Exception] = InputError) -> None:
    """Raise an error on every rank if any rank has a message; the lowest such rank provides it.

    The text names the ranks unless all ranks have a message.
    """
    texts = comm.allgather(message)
    text = next((t for t in texts if t is not None), None)
    if text is not None:
        raise kind(text + _ranks_of(texts))


def _ranks_of(errors: list[Any]) -> str:
    """Return the ranks that have an error as text; empty if all or none have one."""
    ranks = [rank for rank, error in enumerate(errors) if error is not None]
    if len(ranks) in (0, len(errors)):
        return ""
    numbers = ", ".join(map(str, ranks[:8])) + (", ..." if len(ranks) > 8 else "")
    return f" (on rank {numbers} of {len(errors)} ranks)"


@contextmanager
def shared_errors(comm: Any) -> Iterator[None]:
    """Raise an error on every rank if a block without collective calls raises one on any rank.

    A note of the error names the ranks unless all ranks have an error (Python 3.11 or newer).
    """
    local: Exception | None = None
    try:
        yield
    except Exception as error:
        local = error
    errors = comm.allgather(None if local is None else picklable(local))
    other = next((e for e in errors if e is not None), None)
    if other is not None:
        shared, ranks = local or other, _ranks_of(errors)
        if ranks and hasattr(shared, "add_note"):
            shared.add_note(ranks.strip())
        raise shared


@contextmanager
def destroying(comm: Any, *objects: Any) -> Iterator[None]:
    """Destroy PETSc objects at the end of a block; see `discard` for the case of an error."""
    try:
        yield
    except BaseException:
        discard(comm, *objects)
        raise
    for item in objects:
        item.destroy()


def discard(comm: Any, *objects: Any) -> None:
    """Destroy PETSc objects while an exception propagates, if there is only one rank.

    Destruction is collective and would cause a deadlock if only this rank has an error. Therefore,
    on several ranks, PETSc's garbage collection destroys the objects later.
    """
    if comm.size == 1:
        for item in objects:
            item.destroy()


def end_job_on_errors(comm: Any) -> None:
    """Set an exception hook that ends all ranks after an exception that was not caught.

    Otherwise the job would hang: at the end of the program PETSc waits for the other ranks, and
    these may wait for this rank. `python3 -m mpi4py` does not suffice, because it ends the job only
    after PETSc has finished.
    """
    if comm.size == 1:
        return
    show = sys.excepthook

    def show_and_end(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        print(f"error on rank {comm.rank} of {comm.size} ranks:", file=sys.stderr)
        show(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(1.0)  # other ranks may also have to show an error
        comm.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    sys.excepthook = show_and_end


def picklable(error: Exception) -> Exception:
    """Return an error, or a substitute with the same message if it cannot be pickled.

    The value of an `InputError` is omitted if it cannot be pickled, for example a function.
    """
    try:
        return pickle.loads(pickle.dumps(error))
    except Exception:
        if isinstance(error, InputError) and error.value is not None:
            substitute = copy.copy(error)
            substitute.value = None
            return picklable(substitute)
        return SolverError(f"{type(error).__name__}: {error}")
