"""Parameter studies: the same run for many values of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dolfinx_mbd.checks import choice, file_path, flag, function, having, instance, refuse
from dolfinx_mbd.errors import MbdWarning, SolverError, warn
from dolfinx_mbd.multibody.analyses.simulation import progress_bar
from dolfinx_mbd.multibody.files.case_files import CaseFiles
from dolfinx_mbd.multibody.files.fingerprint import digest
from dolfinx_mbd.multibody.studies.cases import MISSING, cases_of, describe, perform, table_of
from dolfinx_mbd.workers import LostWorkError, completed, worker_count

if TYPE_CHECKING:
    from xarray import Dataset

__all__ = ["StudyError", "sweep"]


class StudyError(SolverError):
    """An error that ends a study: a failed case with `on_error="raise"`, or a lost worker process.

    Attributes:
        cases: Numbers of the cases that failed, or that were in progress.
        study: The results until then.
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
    progress: bool = False,
) -> Dataset:
    """Call a run for all combinations of parameters, or for each of a list of cases.

        def run(speed, rod):
            solution = mbd.simulate(mbd.mechanisms.inline_engine(rod, speed=speed), ...)
            return {"force": np.linalg.norm(solution.joint("crank pin 1").force, axis=1)}

        study = mbd.sweep(run, {"speed": [300.0, 450.0]}, fixed={"rod": rod}, path="results")
        study["force"].sel(speed=450.0).max()

    Each case has one BLAS thread, so that its numbers are the same bits wherever it is done.

    Args:
        run: A function that is called with the parameters of a case as keywords. It returns
            numbers, texts or arrays by name, a single one ("result"), or a `Solution`, of which all
            histories are kept ("rod.position").
        parameters: Lists of values by name, for all combinations; or a list of cases, each with
            its parameters by name.
        fixed: Arguments that are the same in every case, for example bodies.
        workers: Number of worker processes; by default one for each core that this process may
            use. With 1 the cases are done in this process, with 0 none is done.
        executor: Instead of `workers`, an executor whose tasks run in other processes one at a
            time: `mpi4py.futures.MPICommExecutor` for ranks, `client.get_executor()` of Dask, ...
        path: A folder to which the outcome of each case is written. The same call goes on from
            there: with the same parameters, fixed arguments and name of the run. A change inside
            the function is not noticed.
        on_error: "keep" records the errors of cases among the results; "raise" ends the study.
        retry_failed: Whether cases that failed before (see `path`) are done again.
        progress: Whether to show a progress bar (with tqdm).

    Returns:
        A dataset whose dimensions are the parameters, or "case" for a list of cases. `case_status`
        is "done", "failed" or "missing"; results that are not there are NaN or empty texts.
        `case_error`, `case_traceback` and `case_seconds` hold more about each case. After Ctrl-C
        the cases that were done are returned, with a warning.

    Raises:
        InputError: The arguments do not fit together, or cannot be sent to other processes.
        StudyError: A case failed and `on_error` is "raise", or a worker process was lost.
        RunFileError: `path` belongs to another study; the message names the differences.
        OSError: The folder cannot be created.
    """
    fixed = dict(instance("fixed", fixed, (Mapping, type(None))) or {})
    columns, cases = cases_of(parameters)
    function("run", run, "run(**parameters)", fixed, cases[0])
    stop = choice("on_error", on_error, ("keep", "raise")) == "raise"
    retry, show = flag("retry_failed", retry_failed), flag("progress", progress)
    if executor is not None:
        having("executor", executor, "submit")
        if workers is not None:
            refuse("workers", workers, "absent with an executor")
    limit = worker_count(workers) if executor is None else len(cases)
    files = CaseFiles(None, {})
    if path is not None:
        files = CaseFiles(file_path("path", path), _identity(run, fixed, cases))
    outcomes = {k: row for k, row in files.read().items() if not (retry and row[0]["error"])}
    ended = limit == 0 or (stop and any(facts["error"] for facts, _ in outcomes.values()))
    todo = [k for k in range(len(cases)) if k not in outcomes and not ended]
    limit = min(limit, max(2, len(todo)))  # (a single case is not done here if there are workers)
    tasks = completed(executor, limit, perform, (run, fixed), [(k, cases[k]) for k in todo])
    reason: KeyboardInterrupt | LostWorkError | None = None
    try:
        with (
            closing(tasks),
            progress_bar(len(todo), show and bool(todo), "sweep", "case") as bar,
        ):
            for k, outcome in tasks:
                outcomes[k] = outcome
                files.write(k, outcome)
                if bar is not None:
                    bar.update()
                if stop and outcome[0]["error"]:
                    break
    except (KeyboardInterrupt, LostWorkError) as error:
        reason = error
    if isinstance(reason, LostWorkError) and executor is None:
        for k in reason.keys:  # (or they would come first again when the study is continued)
            outcomes[k] = MISSING | {"status": "failed", "error": str(reason)}, {}
            files.write(k, outcomes[k])
    rows = [outcomes.get(k, (MISSING, {})) for k in range(len(cases))]
    study = table_of(columns, isinstance(parameters, Mapping), rows)
    _report(study, [facts for facts, _ in rows], cases, reason, stop, path)
    return study


def _identity(
    run: Callable[..., Any], fixed: Mapping[str, Any], cases: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the digests that identify a study."""
    parts = {"run": run} | {f"fixed argument {name!r}": value for name, value in fixed.items()}
    for name in cases[0]:
        parts[f"parameter {name!r}"] = [case[name] for case in cases]
    return {name: digest(part) for name, part in parts.items()}


def _report(
    study: Dataset,
    facts: Sequence[Mapping[str, Any]],
    cases: Sequence[Mapping[str, Any]],
    reason: KeyboardInterrupt | LostWorkError | None,
    stop: bool,
    path: str | Path | None,
) -> None:
    """Warn of cases that failed or are missing, or raise a `StudyError`."""
    if isinstance(reason, LostWorkError):
        place = "" if path is None else f"; the same call goes on from {path}"
        during = ", ".join(describe(k, cases[k]) for k in reason.keys)
        raise StudyError(f"{reason} during {during}{place}", reason.keys, study) from reason
    failed = [k for k, entry in enumerate(facts) if entry["error"]]
    done = sum(entry["status"] != "missing" for entry in facts)
    text = f"{len(failed)} of {len(cases)} cases failed"
    if failed:
        text += f", the first of them {describe(failed[0], cases[failed[0]])}: "
        text += facts[failed[0]]["error"]
    if failed and stop:
        raise StudyError(text, failed, study)
    if reason is not None:
        text = f"interrupted after {done} of {len(cases)} cases; what was done is returned"
        warn(MbdWarning(text, quantity="cases done", value=done, limit=len(cases)))
    elif failed:
        warn(MbdWarning(text, quantity="cases failed", value=len(failed), limit=0))
