"""Parameter studies: a run for each case, side by side over processes or MPI ranks, resumable."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from signal import SIGINT, default_int_handler, getsignal, signal
from types import FrameType
from typing import Any, Literal

import numpy as np

from dolfinx_mbd.checks import choice, file_path, flag, function, instance, integer
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import InputError, InputTypeError, MbdWarning, SolverError, warn
from dolfinx_mbd.multibody.analyses.simulation import progress_bar
from dolfinx_mbd.multibody.studies.guard import unguarded_line
from dolfinx_mbd.multibody.studies.identity import function_name
from dolfinx_mbd.multibody.studies.outcomes import Call, Outcome
from dolfinx_mbd.multibody.studies.plan import Combine, Parameters, Plan
from dolfinx_mbd.multibody.studies.study import Case, Study
from dolfinx_mbd.multibody.studies.study_files import StudyFolder, assembled
from dolfinx_mbd.parallel import picklable
from dolfinx_mbd.threads import available_cores

__all__ = ["CaseError", "dealt", "sweep"]


class CaseError(SolverError):
    """A case went wrong, and the study was to end then.

    Attributes:
        case: The case.
        study: What was done before.
    """

    def __init__(self, case: Case, study: Study) -> None:
        super().__init__(f"{case}: {case.error}\n\n{case.traceback}".rstrip())
        self.case, self.study = case, study

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.case, self.study)


def sweep(
    run: Callable[..., Any],
    parameters: Parameters,
    *,
    combine: Combine = "product",
    fixed: Mapping[str, Any] | None = None,
    workers: int | None = None,
    comm: Any = None,
    path: str | Path | None = None,
    on_error: Literal["keep", "raise"] = "keep",
    retry_failed: bool = False,
    progress: bool = False,
) -> Study:
    """Do a run for each combination of parameters.

        def run(speed, damping, rod):
            engine = mbd.mechanisms.inline_engine(rod, speed=speed, damping_ratio=damping)
            solution = mbd.simulate(engine, t_end=0.04, dt=1e-5)
            return {"force": np.linalg.norm(solution["crank pin 1"].force, axis=1).max()}

        if __name__ == "__main__":
            rod = mbd.ReducedBody.load("rod.npz")
            speeds, dampings = [300.0, 450.0, 600.0], [0.01, 0.02]
            study = mbd.sweep(run, {"speed": speeds, "damping": dampings}, fixed={"rod": rod})
            study["force"]  # (3, 2)

    The numbers are the same bits on any number of workers or ranks, of a run that depends on
    nothing but its arguments: each case has one BLAS thread, wherever it is done.

    Args:
        run: Called with the parameters of a case as keywords. It returns numbers, strings or arrays
            by name (a single one is named ``result``); or a :class:`Solution`, of which all
            histories are kept as ``rod.position`` and ``time``. It must not communicate over
            `comm`.
        parameters: Lists of values by name; or a list of cases, each a dictionary.
        combine: ``product``: all combinations of the values; ``zip``: the first of each, the second
            of each, and so on.
        fixed: Arguments that are the same in every case: bodies, settings. They are sent to a
            worker once.
        workers: Processes; None: one for each core that this process may use; 1: here, in this
            process. For more than one `run` is defined at the top level of a module or of a script,
            which starts the study under ``if __name__ == "__main__":``. Workers are new processes,
            no forks, so that MPI may be in use here.
        comm: A communicator of mpi4py: its ranks share the cases, which are dealt out beforehand in
            a mixed order, and have the same study in the end. `workers` then counts on a single
            rank only.
        path: A folder to which each case is written when it is done. With the same function and
            parameters the study goes on from there, also after kill -9.
        on_error: Of a case that goes wrong: ``keep`` its message (:attr:`Study.failed`) and go on,
            with a warning in the end; or ``raise``.
        retry_failed: Do cases again that `path` has as failed.
        progress: Show a progress bar (with tqdm, where it is installed).

    Returns:
        The study. After Ctrl-C: what was done so far, with a warning and ``complete == False``.

    Raises:
        TypeError, ValueError: If parameters do not fit the run, or it cannot be sent to workers.
        CaseError: If a case goes wrong and `on_error` is ``raise``; under MPI when each rank has
            done or stopped its part. ``error.study`` has the others.
        WorkerError: If a worker process cannot start.
        RunFileError: If `path` is that of another study; the message says what differs.
        OSError: If the folder cannot be made.

    Note:
        Collective over `comm`.
    """
    choice("on_error", on_error, ("keep", "raise"))
    function("run", run, "run(**parameters)")
    instance("fixed", fixed, (Mapping, type(None)))
    flag("retry_failed", retry_failed)
    flag("progress", progress)
    path = None if path is None else file_path("path", path)
    plan = Plan.of(parameters, combine)
    call = Call(run, dict(fixed or {}), plan)
    _check_arguments(call)
    ranks = _Ranks(comm)
    count = min(_workers(workers, ranks.size), len(plan))
    data = _packed(call) if count > 1 else b""  # before anything is written
    folder = None if path is None else StudyFolder(path, call)
    outcomes, digest = ranks.from_root(lambda: _opened(folder, retry_failed))
    if folder is not None:
        folder.study = digest
    todo = dealt([k for k in range(len(plan)) if k not in outcomes], ranks.rank, ranks.size)
    if on_error == "raise" and any(outcome.error is not None for outcome in outcomes.values()):
        todo = []

    def work() -> tuple[dict[int, Outcome], bool]:
        pooled = count > 1 and len(todo) > 1
        cases = _in_workers(data, todo, count) if pooled else _one_by_one(call, todo)
        return _done(cases, len(todo), folder, on_error, progress and ranks.rank == 0)

    interrupted = False
    for own, stopped in ranks.gathered(work):
        outcomes, interrupted = outcomes | own, interrupted or stopped
    study = assembled(plan, outcomes, function_name(run))
    _tell(study, interrupted, on_error)
    return study


def dealt(cases: Sequence[int], rank: int, size: int) -> list[int]:
    """The share of a rank: mixed, so that no rank has all of the slowest row of a grid."""
    if size == 1:
        return list(cases)
    mixed = np.random.default_rng(0).permutation(len(cases))
    return [cases[k] for k in sorted(mixed[rank::size])]


def _opened(folder: StudyFolder | None, retry_failed: bool) -> tuple[dict[int, Outcome], str]:
    """What is done already, and the digest of the study."""
    if folder is None:
        return {}, ""
    found = folder.open()
    kept = {k: o for k, o in found.items() if not (retry_failed and o.error is not None)}
    return kept, folder.study


def _done(
    cases: Iterator[tuple[int, Outcome]],
    total: int,
    folder: StudyFolder | None,
    on_error: str,
    progress: bool,
) -> tuple[dict[int, Outcome], bool]:
    """Outcomes of cases as they come, each written at once; and whether Ctrl-C ended it."""
    outcomes: dict[int, Outcome] = {}
    failed = 0
    try:
        bar_shown = progress_bar(total, progress and total > 0, "sweep", "case")
        with bar_shown as bar, closing(cases):  # type: ignore[type-var]
            for k, outcome in cases:
                outcomes[k] = outcome
                if folder is not None:
                    folder.write(k, outcome)
                failed += outcome.error is not None
                if bar is not None:
                    bar.set_postfix(failed=failed)
                    bar.update()
                if outcome.error is not None and on_error == "raise":
                    break
    except KeyboardInterrupt:
        return outcomes, True
    return outcomes, False


def _tell(study: Study, interrupted: bool, on_error: str) -> None:
    """Warn of what went wrong, or raise it."""
    failed = study.failed
    if interrupted:
        done = sum(case.done for case in study.cases)
        text = f"interrupted after {done} of {len(study)} cases; what was done is returned"
        warn(MbdWarning(text, quantity="cases done", value=done, limit=len(study)))
    elif failed and on_error == "raise":
        raise CaseError(failed[0], study)
    elif failed:
        text = (
            f"{len(failed)} of {len(study)} cases failed, the first of them {failed[0]}: "
            f"{failed[0].error}"
        )
        warn(MbdWarning(text, quantity="cases failed", value=len(failed), limit=0))


# ---- checks -------------------------------------------------------------------------------------


def _check_arguments(call: Call) -> None:
    """That the run takes what it is to be given."""
    for name in call.fixed:
        checked_name("every name in fixed", name)
    twice = sorted(set(call.fixed) & set(call.plan.values))
    if twice:
        raise InputError(f"{', '.join(map(repr, twice))}: a parameter as well as fixed")
    try:
        signature = inspect.signature(call.run)
    except (TypeError, ValueError):  # of a function that does not tell
        return
    try:
        signature.bind(**call.fixed, **call.plan.case(0))
    except TypeError as error:
        given = ", ".join([*call.plan.values, *call.fixed])
        raise InputTypeError(
            f"{function_name(call.run)}{signature} cannot be called with {given}: {error}"
        ) from error


def _workers(workers: int | None, ranks: int) -> int:
    """Number of processes besides this one, or 1 for this one."""
    if workers is not None:
        workers = integer("workers", workers, low=1)
    if ranks > 1 or workers == 1:
        return 1
    launched = _launched()
    if launched > 1:
        raise InputError(
            f"this process is one of {launched} that MPI has started: give comm=MPI.COMM_WORLD, so "
            "that they share the cases, or workers=1 to do all of them on each"
        )
    import multiprocessing

    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SolverError(_UNGUARDED.format(where="the script"))
    if multiprocessing.current_process().daemon:  # a worker itself; it may have no children
        return 1
    return available_cores() if workers is None else workers


def _launched() -> int:
    """Number of processes of an MPI run that this is one of, as the launcher or mpi4py tells."""
    names = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    told = [int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()]
    mpi = getattr(sys.modules.get("mpi4py.MPI"), "COMM_WORLD", None)
    return max([*told, 1 if mpi is None else mpi.size])


_UNGUARDED = (
    "{where} starts worker processes when it is imported, and each of them imports it anew for the "
    "function in it: put what starts the study under if __name__ == '__main__':, or the function "
    "into a module; or give workers=1"
)


# ---- in workers, or in this process -------------------------------------------------------------


def _packed(call: Call) -> bytes:
    """What workers are sent, if they can be started from here."""
    from dolfinx_mbd.multibody.studies.pool import packed  # takes 30 ms, which most do not need

    data = packed(call)
    where = unguarded_line() if b"__main__" in data else None
    if where is not None:
        raise SolverError(_UNGUARDED.format(where=where))
    return data


def _in_workers(data: bytes, cases: Sequence[int], count: int) -> Iterator[tuple[int, Outcome]]:
    from dolfinx_mbd.multibody.studies.pool import in_workers

    return in_workers(data, cases, count)


def _one_by_one(call: Call, cases: Sequence[int]) -> Iterator[tuple[int, Outcome]]:
    """Do cases here.  One that Ctrl-C met is not kept, whatever its function made of that."""
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    ours = ours and getsignal(SIGINT) is default_int_handler
    for k in cases:
        if ours:
            signal(SIGINT, note)
        try:
            outcome = call.perform(k)
        finally:
            if ours:
                signal(SIGINT, default_int_handler)
        if pressed:
            raise KeyboardInterrupt
        yield k, outcome


# ---- ranks --------------------------------------------------------------------------------------


class _Ranks:
    """The ranks of a communicator, or this process alone."""

    def __init__(self, comm: Any) -> None:
        needed = ("rank", "size", "allgather")
        if comm is not None and not all(hasattr(comm, name) for name in needed):
            raise InputTypeError(f"comm must be a communicator of mpi4py, or None; got {comm!r}")
        self._comm = comm
        self.rank, self.size = (0, 1) if comm is None else (int(comm.rank), int(comm.size))

    def gathered(self, work: Callable[[], Any]) -> list[Any]:
        """What work gives on every rank, on every rank; what any rank raises, all raise."""
        if self._comm is None or self.size == 1:
            return [work()]
        result, own = None, None
        try:
            result = work()
        except Exception as error:  # whatever it is, the other ranks must hear of it
            own = picklable(error)
        pairs = self._comm.allgather((result, own))
        for rank, (_, problem) in enumerate(pairs):
            if problem is not None:
                raise own if own is not None and rank == self.rank else problem
        return [given for given, _ in pairs]

    def from_root(self, work: Callable[[], Any]) -> Any:
        """What work gives on rank 0, on every rank."""
        return self.gathered(work if self.rank == 0 else lambda: None)[0]
