"""Worker processes that do the cases of a parameter study.

Workers are new processes (``spawn``), never forks: this one may have MPI, PETSc and threads in it.
The function and all parameters are sent to a worker once; then a case is a number. A worker has one
BLAS thread, leaves Ctrl-C to this process and ends when this process ends, in whatever way.
"""

from __future__ import annotations

import io
import multiprocessing
import multiprocessing.connection
import multiprocessing.resource_tracker
import os
import pickle
import signal
import sys
import threading
import time
import types
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.studies.outcomes import Call, Outcome, WorkerError, died
from dolfinx_mbd.threads import THREADS

__all__ = ["in_workers", "packed"]

#: Of variables by which an MPI launcher tells a process its rank: a worker is no rank.
_LAUNCHED = ("OMPI_COMM_", "OMPI_UNIVERSE", "PMIX_", "PMI_", "PRTE_", "HYDRA_", "MPI_LOCAL")
_PATIENCE = 5.0  # s that a worker has to end


def packed(call: Call) -> bytes:
    """What is sent to each worker.

    Raises:
        ValueError: If it cannot be sent, or a worker could not find it; with cause and cure.
    """
    data = b""
    for what, item in (
        ("the run", call.run),
        *((f"fixed {name!r}", value) for name, value in call.fixed.items()),
        *((f"a value of {name!r}", given) for name, given in call.plan.values.items()),
        ("the study", tuple(call)),
    ):
        try:
            data = pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # an object's own pickling may raise anything
            cure = (
                "define it by def at the top level of a script or a module, not as a lambda or "
                "inside another function"
                if what == "the run"
                else "make it inside the run, of numbers and bodies (a System may hold functions)"
            )
            raise InputError(
                f"{what} cannot be sent to worker processes ({error}): {cure}; or give workers=1"
            ) from error
    if b"__main__" in data and not _main_can_be_imported():
        raise InputError(
            "the run is defined in a notebook, an interactive session or python -c, where worker "
            "processes cannot find it: write it to a module (in Jupyter with %%writefile cases.py) "
            "and import it from there; or give workers=1"
        )
    return data


def in_workers(data: bytes, cases: Iterable[int], count: int) -> Iterator[tuple[int, Outcome]]:
    """Do cases in worker processes; a worker that is free gets the next.

    Args:
        data: What :func:`packed` made.
        cases: Numbers of the cases.
        count: Number of workers.

    Yields:
        A case and its outcome, in the order in which they end.

    Raises:
        WorkerError: If a worker cannot start.
    """
    pending = list(reversed(list(cases)))
    workers: list[_Worker] = []
    asked: dict[Any, _Worker] = {}

    def start() -> None:
        workers.append(_Worker(data))
        asked[workers[-1].connection] = workers[-1]

    try:
        for _ in range(min(count, len(pending))):
            start()
        while asked:
            for connection in multiprocessing.connection.wait(list(asked)):
                worker = asked[connection]
                k, outcome = worker.case, worker.receive()
                if pending and not worker.gone:
                    worker.send(pending.pop())
                else:
                    asked.pop(connection).connection.close()
                    if pending:
                        start()
                if outcome is not None:
                    assert k is not None
                    yield k, outcome
    finally:
        for worker in asked.values():  # none, if all went well
            worker.process.terminate()
        for worker in workers:
            worker.end()


class _Worker:
    """A worker process as its parent sees it."""

    def __init__(self, data: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self.process: BaseProcess = context.Process(target=_serve, args=(other,), daemon=True)
        self.case: int | None = None
        self.ready = self.gone = False
        self._begun = 0.0
        self._main = b"__main__" in data
        with closing(other), _surroundings(main=self._main):
            self.process.start()
        try:
            self.connection.send_bytes(data)
        except OSError:  # it has ended already, which is seen when it is to say that it is ready
            pass

    def send(self, k: int) -> None:
        """Give it a case."""
        self.case, self._begun = k, time.perf_counter()
        try:
            self.connection.send(k)
        except OSError:
            pass  # (as above)

    def receive(self) -> Outcome | None:
        """What it says: None when it is ready for its first case."""
        try:
            said = self.connection.recv()
        except (EOFError, OSError):
            self.gone = True
            self.process.join(_PATIENCE)
            if not self.ready:
                raise WorkerError(self._not_started()) from None
            return died(self.process.exitcode, time.perf_counter() - self._begun)
        if not self.ready:
            if said is not None:
                raise WorkerError(
                    f"a worker process cannot take the run ({said}): define it at the top level of "
                    "a script or a module, not under if __name__ == '__main__': nor in what only "
                    "this process has imported; or give workers=1"
                )
            self.ready = True
            return None
        return Outcome(*said)

    def _not_started(self) -> str:
        text = f"a worker process ended while it started (exit code {self.process.exitcode})"
        if self._main:
            text += (
                "; its own message is above. It imports the script anew for the function in it: "
                "what starts the work belongs under if __name__ == '__main__':"
            )
        return f"{text}; or give workers=1"

    def end(self) -> None:
        """See that it ends, as it does where nobody asks any more."""
        self.connection.close()
        self.process.join(_PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def _serve(connection: Connection) -> None:
    """What a worker does: take the function, then case after case until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        data = connection.recv_bytes()
        try:
            call = Call(*pickle.load(io.BytesIO(data)))
        except Exception as error:  # whatever it is, the parent must hear of it
            connection.send(f"{type(error).__name__}: {error}")
            return
        connection.send(None)
        while True:
            connection.send(tuple(call.perform(connection.recv())))
    except (EOFError, OSError):  # nobody asks, nobody listens
        return


def _end_with_parent() -> None:
    """End this process at once when its parent has ended, also in the middle of a case."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _main_can_be_imported() -> bool:
    """Whether a new process can import the main module of this one, as `spawn` does."""
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is not None or hasattr(main, "__file__")


@contextmanager
def _surroundings(*, main: bool) -> Iterator[None]:
    """What a process that starts shall find: one thread, no rank of MPI, no Ctrl-C.

    Args:
        main: Whether it needs the main module of this process. If it does not, it is not imported:
            a worker then starts faster, and a script needs no guard.
    """
    changed = dict.fromkeys(THREADS, "1")
    removed = [name for name in os.environ if name.startswith(_LAUNCHED)]
    before = {name: os.environ.get(name) for name in (*changed, *removed)}
    own = sys.modules["__main__"]
    mask = None
    if hasattr(signal, "pthread_sigmask"):  # a new process has the mask of this one
        multiprocessing.resource_tracker.ensure_running()  # which would take it away
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        os.environ.update(changed)
        for name in removed:
            del os.environ[name]
        if not main:
            sys.modules["__main__"] = types.ModuleType("__main__")
        yield
    finally:
        sys.modules["__main__"] = own
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
