"""Parameter studies: the same run for many values of its parameters."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dolfinx_mbd.analyses.studies.cases import (
    MISSING,
    cases_of,
    describe,
    outcome_of_ranks,
    perform,
    table_of,
)
from dolfinx_mbd.checks import choice, file_path, flag, function, instance, object_with, reject
from dolfinx_mbd.errors import MbdWarning, SolverError, warn
from dolfinx_mbd.progress import Progress, is_shown, progress_bar
from dolfinx_mbd.results.files.case_files import CaseFiles
from dolfinx_mbd.results.files.fingerprint import digest
from dolfinx_mbd.workers import LostWorkError, completed, worker_count

if TYPE_CHECKING:
    from xarray import Dataset


class StudyError(SolverError):
    """An error that ends a study: a failed case with `on_error="raise"`, or a lost worker process.

    `cases` lists the numbers of failed or unfinished cases; `study` contains the results so far.
    """

    def __init__(self, message: str, cases: list[int], study: Dataset) -> None:
        super().__init__(message)
        self.cases, self.study = cases, study


def sweep(
    run: Callable[..., Any],
    parameters: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    fixed: Mapping[str, Any] | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    path: str | Path | None = None,
    on_error: Literal["keep", "raise"] = "keep",
    retry_failed: bool = False,
    progress: Progress = False,
) -> Dataset:
    """Call a function for all combinations of parameters, or for each case of a list.

    Each case runs on one BLAS thread, so that its results are bitwise identical in all processes.

    Args:
        run: Function that is called with the parameters of a case as keyword arguments. It returns
            numbers, strings or arrays by name, one value (stored as "result"), or a `Solution`,
            whose histories are stored by name ("rod.position").
        parameters: Lists of values by parameter name, for all combinations; or a list of cases,
            each with its parameters by name.
        fixed: Arguments that are the same in every case, for example bodies; by default none.
        workers: Number of worker processes; by default one for each core that this process may
            use. With 1, this process computes the cases; with 0, no case is computed.
        executor: Executor to use instead of `workers`, for example `mpi4py.futures.MPICommExecutor`
            for ranks, `client.get_executor()` of Dask, or `SlurmJobExecutor` of executorlib, which
            can run each case on several MPI ranks; the results are then those of rank 0. Each of
            its processes must run one task at a time.
        path: Folder to which the outcome of each case is written; by default none. A repeated call
            continues the study if the parameters, the fixed arguments and the function's name are
            equal. If the code of the function has changed, or a global constant, function or class
            that it uses, a `FileWarning` says so, and the saved results are kept. Changes in
            installed packages are not detected.
        on_error: "keep" records the errors of cases in the results; "raise" ends the study.
        retry_failed: Whether cases that failed in an earlier call (see `path`) are computed again.
        progress: Whether to show a bar (with tqdm) on a terminal or in a notebook; "always"
            also shows it if the output goes to a file.

    Returns:
        A dataset whose dimensions are the parameters, or "case" for a list of cases. `case_status`
        is "done", "failed" or "missing"; results of failed and missing cases are NaN or empty
        strings. `case_error`, `case_traceback` and `case_seconds` describe each case. After Ctrl-C
        the completed cases are returned, with a warning.

    Raises:
        InputError: The arguments contradict one another, or cannot be sent to other processes.
        StudyError: A case failed and `on_error` is "raise", or a worker process was lost.
        RunFileError: `path` belongs to another study; the message names the differences.
        OSError: The folder cannot be created.

    Example:
        >>> def kinetic_energy(mass, speed):
        ...     return {"energy": mass * speed**2 / 2}
        >>> study = mbd.sweep(kinetic_energy, {"speed": [1.0, 2.0]}, fixed={"mass": 3.0}, workers=1)
        >>> float(study["energy"].sel(speed=2.0))
        6.0
    """
    fixed = dict(instance("fixed", fixed, (Mapping, type(None))) or {})
    columns, cases = cases_of(parameters)
    function("run", run, "run(**parameters)", fixed, cases[0])
    stop = choice("on_error", on_error, ("keep", "raise")) == "raise"
    retry = flag("retry_failed", retry_failed)
    is_shown(progress)  # checks the argument
    if executor is not None:
        object_with("executor", executor, "submit")
        if workers is not None:
            reject("workers", workers, "absent with an executor")
    limit = worker_count(workers) if executor is None else len(cases)
    files = CaseFiles(None, {})
    if path is not None:
        files = CaseFiles(file_path("path", path), *_identity(run, fixed, cases))
    outcomes = {k: row for k, row in files.read().items() if not (retry and row[0]["error"])}
    none_left = limit == 0 or (stop and any(facts["error"] for facts, _ in outcomes.values()))
    open_cases = [(k, case) for k, case in enumerate(cases) if k not in outcomes and not none_left]
    limit = min(limit, max(2, len(open_cases)))  # a single case also runs in a worker process
    tasks = completed(executor, limit, perform, (run, fixed), open_cases)
    interruption: KeyboardInterrupt | LostWorkError | None = None
    show = progress if open_cases else False
    try:
        with closing(tasks), progress_bar(len(open_cases), show, "sweep", "case") as bar:
            for k, result in tasks:
                outcomes[k] = outcome = outcome_of_ranks(result)
                files.write(k, outcome)
                if bar is not None:
                    bar.update()
                if stop and outcome[0]["error"]:
                    break
    except (KeyboardInterrupt, LostWorkError) as error:
        interruption = error
    if isinstance(interruption, LostWorkError) and executor is None:
        for k in interruption.keys:  # otherwise a repeated call would compute these cases first
            outcomes[k] = MISSING | {"status": "failed", "error": str(interruption)}, {}
            files.write(k, outcomes[k])
    rows = [outcomes.get(k, (MISSING, {})) for k in range(len(cases))]
    study = table_of(columns, isinstance(parameters, Mapping), rows)
    if isinstance(interruption, LostWorkError):
        place = "" if path is None else f"; the same call continues the study in {path}"
        lost = ", ".join(describe(k, cases[k]) for k in interruption.keys)
        raise StudyError(
            f"{interruption} during {lost}{place}", interruption.keys, study
        ) from interruption
    _report(study, [facts for facts, _ in rows], cases, interruption is not None, stop, path)
    return study


def _identity(
    run: Callable[..., Any], fixed: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the digests that identify a study, and those of its code."""
    parts = {"run": run} | {f"fixed argument {name!r}": value for name, value in fixed.items()}
    for name in cases[0]:
        parts[f"parameter {name!r}"] = [case[name] for case in cases]
    code = {name: digest(part, code=True) for name, part in parts.items()}
    python = {"Python": ".".join(map(str, sys.version_info[:2]))}
    return {name: digest(part) for name, part in parts.items()}, python | code


def _report(
    study: Dataset,
    facts: Sequence[Mapping[str, Any]],
    cases: Sequence[Mapping[str, Any]],
    interrupted: bool,
    stop: bool,
    path: str | Path | None,
) -> None:
    """Warn of failed or missing cases, or raise a `StudyError` for failed cases if `stop`."""
    failed = [k for k, entry in enumerate(facts) if entry["error"]]
    text = f"{len(failed)} of {len(cases)} cases failed"
    if failed:
        first = failed[0]
        text += f", the first is {describe(first, cases[first])}: {facts[first]['error']}"
        if path is not None:
            text += f"; the failures are saved in {path}, retry_failed=True computes them again"
        if stop:
            raise StudyError(text, failed, study)
    if interrupted:
        done = sum(entry["status"] != "missing" for entry in facts)
        text = f"interrupted after {done} of {len(cases)} cases; the completed ones are returned"
        warn(MbdWarning(text, quantity="cases done", value=done, limit=len(cases)))
    elif failed:
        warn(MbdWarning(text, quantity="cases failed", value=len(failed), limit=0))
