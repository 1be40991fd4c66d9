"""One case of a parameter study: called, measured, and what went wrong kept in words.

A case is done in the same way in this process, in a worker and on an MPI rank: on one BLAS thread,
so that its numbers are the same bits.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import InputError, InputTypeError, SolverError
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.studies.plan import Plan
from dolfinx_mbd.threads import one_thread

__all__ = ["Call", "Outcome", "WorkerError", "died"]

_KINDS = "biufcUS"  # of arrays that a file without pickles holds


class WorkerError(SolverError):
    """A worker process could not start; the message says why and what would do."""


class Outcome(NamedTuple):
    """What came of a case: values by name, or an error."""

    values: dict[str, NDArray[Any]]
    error: str | None
    traceback: str
    seconds: float


class Call(NamedTuple):
    """What is done in every case: it is sent to a worker once."""

    run: Callable[..., Any]
    fixed: Mapping[str, Any]
    plan: Plan

    def perform(self, k: int) -> Outcome:
        """Do case k.  Whatever it raises is its outcome, but for Ctrl-C."""
        start = time.perf_counter()
        values: dict[str, NDArray[Any]] = {}
        error, trace = None, ""
        try:
            with one_thread():
                values = _named(self.run(**self.fixed, **self.plan.case(k)))
                for name in set(values) & set(self.plan.values):
                    raise InputError(f"{name!r} is the name of a parameter and of a result")
        except (Exception, SystemExit) as problem:
            values, error = {}, f"{type(problem).__name__}: {problem}"
            trace = traceback.format_exc()
        return Outcome(values, error, trace, time.perf_counter() - start)


def died(exit_code: int | None, seconds: float) -> Outcome:
    """The outcome of a case that took its process with it."""
    if exit_code is not None and exit_code < 0:
        how = f"was killed by signal {-exit_code}"
        if exit_code == -9:
            how += ", as it is when memory runs out"
    else:
        how = f"ended with exit code {exit_code}"
    return Outcome({}, f"WorkerDied: the process that did this case {how}", "", seconds)


def _named(result: Any) -> dict[str, NDArray[Any]]:
    """Arrays by name of what a run returns."""
    if isinstance(result, Solution):
        return _histories(result)
    if hasattr(result, "_asdict"):  # a named tuple
        result = result._asdict()
    if not isinstance(result, Mapping):
        result = {"result": result}
    values = {}
    for name, value in result.items():
        if not isinstance(name, str):
            raise InputTypeError(f"results must have names, got {name!r}")
        array = np.asarray(value)
        if array.dtype.kind not in _KINDS:
            raise InputTypeError(
                f"the run returned {type(value).__name__} for {name!r}; it must return numbers, "
                "strings or arrays, by name, or a Solution"
            )
        values[name] = array
    return values


def _histories(solution: Solution) -> dict[str, NDArray[Any]]:
    """Every history of a solution, as ``rod.position``; and ``time``."""
    if not solution.complete:
        raise SolverError(f"the simulation was interrupted at t = {solution.time[-1]:g} s")
    values = {"time": solution.time}
    for name in solution.names():
        for key, value in vars(solution[name]).items():
            if isinstance(value, np.ndarray) and key != "time" and value.size:
                values[f"{name}.{key}"] = value
    return values
