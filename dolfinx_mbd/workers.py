"""Execution of tasks in worker processes, or sequentially in this process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any

import cloudpickle

from dolfinx_mbd.checks import integer
from dolfinx_mbd.errors import InputError, SolverError

_LAUNCHER = ("OMPI_COMM_", "OMPI_UNIVERSE", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "MPI_LOCAL")
"""Prefixes of the environment variables in which an MPI launcher passes the rank."""


class LostWorkError(SolverError):
    """Error of a worker process that ended during a task or could not accept a task.

    `keys` are the keys of all tasks that were in progress.
    """

    def __init__(self, message: str, keys: list[Any]) -> None:
        super().__init__(message)
        self.keys = keys


def runs_under_mpi() -> bool:
    """Return whether this process is one of several MPI ranks."""
    world = getattr(sys.modules.get("mpi4py.MPI"), "COMM_WORLD", None)
    sizes = [os.environ.get(name, "") for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")]
    return max(int(size) for size in [*filter(str.isdigit, sizes), getattr(world, "size", 1)]) > 1


def worker_count(workers: int | None) -> int:
    """Return the number of worker processes, by default one per core; 0 or 1 is this process."""
    if workers is not None and integer("workers", workers, low=0) < 2:
        return workers
    if runs_under_mpi():
        raise InputError(
            "worker processes cannot be started under MPI with several ranks: use an executor of "
            "mpi4py.futures, or workers=1",
            argument="workers",
            value=workers,
        )
    if workers is not None:
        return workers
    if multiprocessing.parent_process() is not None:  # this process is a worker itself
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def completed(
    executor: Executor | None,
    limit: int,
    function: Callable[[Any, Any], Any],
    shared: Any,
    tasks: Iterable[tuple[Any, Any]],
) -> Generator[tuple[Any, Any], None, None]:
    """Yield the key and `function(shared, item)` of each task (key, item) in order of completion.

    With an executor, `limit` is the largest number of tasks in progress. Without one, `limit` is
    the number of worker processes; if it is less than 2, the tasks run in this process. Each
    process unpacks `shared` once. `function` catches its errors and returns them as results (as
    `perform` does). `LostWorkError` is raised if a worker process is lost or cannot accept a task.
    """
    if executor is not None:
        yield from _submit(executor, limit, (function, shared), tasks)
    elif limit > 1:
        with _worker_processes(limit) as pool:
            yield from _submit(pool, limit, (function, shared), tasks)
    else:
        for key, item in tasks:
            yield key, _interruptible(function, shared, item)


def _submit(
    executor: Executor, limit: int, call: tuple[Any, Any], tasks: Iterable[tuple[Any, Any]]
) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and results of tasks that an executor computes."""
    data, waiting = _pack(call), iter(tasks)
    pending: dict[Future[Any], Any] = {}
    try:
        while True:
            for key, item in islice(waiting, limit - len(pending)):
                pending[executor.submit(_work, data, _pack(item))] = key
            if not pending:
                return
            for future in wait_for(pending, return_when=FIRST_COMPLETED).done:
                result = future.result()
                yield pending.pop(future), result
    except InputError:
        raise
    except Exception as error:  # an error of the executor; `function` returns its errors
        text = f"a worker process could not accept its task ({type(error).__name__}: {error})"
        if isinstance(error, BrokenExecutor):
            text = "a worker process ended early, for example because memory ran out"
        raise LostWorkError(text, list(pending.values())) from error
    finally:
        for future in pending:
            future.cancel()


def _pack(value: Any) -> bytes:
    """Return a value as bytes for a worker; raise an error if it cannot be sent."""
    try:
        return cloudpickle.dumps(value)  # type: ignore[no-any-return]
    except Exception as error:  # pickling may raise any exception
        raise InputError(
            f"the run or its arguments cannot be sent to other processes ({error}): create such "
            "objects inside the run, or use workers=1"
        ) from error


_unpack = lru_cache(maxsize=1)(cloudpickle.loads)  # once in each process


def _work(data: bytes, item: bytes) -> Any:
    """Compute one task in a worker process and return its result."""
    function, shared = _unpack(data)
    return _interruptible(function, shared, cloudpickle.loads(item))


def _interruptible(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function; raise `KeyboardInterrupt` after Ctrl-C, even if the function catches it."""
    default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not default or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    pressed: list[int] = []

    def interrupt(number: int, frame: types.FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        result = function(*arguments)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt
    return result


@contextmanager
def _worker_processes(count: int) -> Iterator[Executor]:
    """Provide an executor with up to `count` worker processes, which end with the context.

    The processes end even during a task or if this process is killed, and they ignore Ctrl-C. They
    do not import the main module, so that a script needs no `if __name__ == "__main__":`.
    """
    context = _Context()
    reader, writer = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(count, context, _prepare, (reader,))
    try:
        yield pool
    finally:
        writer.close()
        pool.shutdown(cancel_futures=True)
        reader.close()


class _Worker(SpawnProcess):
    """A process that is not an MPI rank, has one BLAS thread and an empty main module."""

    def start(self) -> None:
        """Start the process with its own environment variables and an empty main module."""
        main, environment = sys.modules["__main__"], dict(os.environ)
        sys.modules["__main__"] = types.ModuleType("__main__")
        for name in environment:
            if name.startswith(_LAUNCHER):
                del os.environ[name]
        os.environ["OMP_NUM_THREADS"] = "1"
        try:
            super().start()
        finally:
            sys.modules["__main__"] = main
            del os.environ["OMP_NUM_THREADS"]
            os.environ.update(environment)


class _Context(SpawnContext):
    """Multiprocessing context that starts `_Worker` processes."""

    Process = _Worker  # type: ignore[assignment]


def _prepare(reader: Connection) -> None:
    """Prepare a worker process; only the parent process has the other end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(reader,), daemon=True).start()


def _wait_for_end(reader: Connection) -> None:
    """End this process when the parent process ends."""
    wait([reader])  # until the parent process closes the other end, or ends
    os._exit(1)
