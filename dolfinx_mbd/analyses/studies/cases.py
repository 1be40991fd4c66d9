"""Cases of a parameter study: their list, their computation, and the dataset of their outcomes."""

from __future__ import annotations

import itertools
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dolfinx_mbd.checks import items, memory, names, reject, short
from dolfinx_mbd.errors import InputError, InputTypeError, SolverError
from dolfinx_mbd.results.solution import Solution

if TYPE_CHECKING:
    from xarray import Dataset

Arrays = dict[str, NDArray[Any]]
Outcome = tuple[dict[str, Any], Arrays]
"""Facts about a case, with the names in `MISSING`, and its results by name."""

MISSING: dict[str, Any] = {
    "status": "missing",  # or "done", "failed"
    "error": "",
    "traceback": "",
    "seconds": math.nan,
    "steps": False,  # whether the first axis of all results runs over the steps of a simulation
}
"""Facts about a case that was not computed."""

_FACTS = ("status", "error", "traceback", "seconds")  # variables of the dataset
_PLAIN = "biufcUS"  # kinds of arrays (`dtype.kind`) that files can store: numbers and strings
_CASE = 200.0  # minimum memory of a case, bytes


def cases_of(parameters: Any) -> tuple[dict[str, list[Any]], list[dict[str, Any]]]:
    """Return the values of each parameter, and the parameters of each case.

    The parameters are a grid (values by name; the last name varies fastest), or a list of cases.
    """
    grid = isinstance(parameters, Mapping)
    rows = (parameters,) if grid else items("parameters", parameters, Mapping)
    keys = names("parameters", rows[0] if rows else ())
    if not keys or any(row.keys() != set(keys) for row in rows):
        reject("parameters", parameters, "values by name, or cases that all have the same names")
    reserved = {f"case_{fact}" for fact in _FACTS}.intersection(keys)
    if reserved:
        expected = f"without {min(reserved)!r}, which is a name of the results"
        reject("parameters", parameters, expected)
    columns = {key: [row[key] for row in rows] for key in keys}
    if grid:
        columns = {key: [*items(f"parameters[{key!r}]", parameters[key], object)] for key in keys}
        count = math.prod(map(len, columns.values()))
        memory("parameters", count, _CASE * count)
    for values in columns.values():
        values[:] = [value.item() if isinstance(value, np.generic) else value for value in values]
    combine = itertools.product if grid else zip
    cases = [dict(zip(keys, values, strict=True)) for values in combine(*columns.values())]
    if not cases:
        reject("parameters", parameters, "lists of one or more values")
    return columns, cases


def perform(call: tuple[Callable[..., Any], dict[str, Any]], case: Mapping[str, Any]) -> Outcome:
    """Call the run for one case on one BLAS thread; return its outcome or record its error."""
    run, fixed = call
    start = time.perf_counter()
    facts, arrays = MISSING | {"status": "done"}, {}
    try:
        with threadpool_limits(1, user_api="blas"):
            result = run(**fixed, **case)
        facts["steps"] = isinstance(result, Solution)
        arrays = _arrays(result, {"case", *case})
    except (Exception, SystemExit) as error:
        text = f"{type(error).__name__}: {error}"
        facts |= {"status": "failed", "error": text, "traceback": traceback.format_exc()}
    facts["seconds"] = time.perf_counter() - start
    return facts, arrays


def outcome_of_ranks(outcome: Outcome | list[Outcome]) -> Outcome:
    """Return the outcome of a case that an executor may have computed on several MPI ranks.

    Such an executor returns a list with the outcomes of all ranks. The outcome is that of the first
    rank with an error, otherwise that of rank 0.
    """
    if isinstance(outcome, list):
        return next((entry for entry in outcome if entry[0]["error"]), outcome[0])
    return outcome


def _arrays(result: Any, reserved: set[str]) -> Arrays:
    """Return the result of a run, or the histories of a solution, as arrays by name."""
    if isinstance(result, Solution):
        if not result.complete:
            raise SolverError(f"the simulation was interrupted at t = {result.time[-1]:g} s")
        result = result.histories()
    if hasattr(result, "_asdict"):  # a named tuple
        result = result._asdict()
    values = result if isinstance(result, Mapping) else {"result": result}
    arrays = {name: np.asarray(value) for name, value in values.items()}
    for name, array in arrays.items():
        if not isinstance(name, str) or array.dtype.kind not in _PLAIN:
            raise InputTypeError(
                f"the run returned {short(values[name])} for {name!r}; it must return numbers, "
                "strings or arrays of them, by name, or a Solution"
            )
        if name in reserved or name.startswith("case_"):
            raise InputError(f"a result must not have the name {name!r}")
    return arrays


def describe(k: int, case: Mapping[str, Any]) -> str:
    """Return the number and the parameters of a case as text."""
    values = [f"{name}={getattr(value, 'name', short(value))}" for name, value in case.items()]
    return f"case {k} ({', '.join(values)})"


def table_of(columns: Mapping[str, Sequence[Any]], grid: bool, rows: Sequence[Outcome]) -> Dataset:
    """Return the outcomes of all cases as a dataset, and remove their arrays to save memory.

    If `grid`, the cases are all combinations of the values in `columns`; otherwise case k has the
    k-th value of each column.
    """
    import xarray

    dims = list(columns) if grid else ["case"]
    shape = tuple(map(len, columns.values()))[: len(dims)]
    variables: dict[str, Any] = {}
    for fact in _FACTS:
        kind: Any = object if fact in ("error", "traceback") else None  # lengths of texts differ
        column = np.array([facts[fact] for facts, _ in rows], dtype=kind)
        variables[f"case_{fact}"] = dims, column.reshape(shape)
    results = dict.fromkeys(name for _, arrays in rows for name in arrays)
    for name in results:
        present = {k: arrays.pop(name) for k, (_, arrays) in enumerate(rows) if name in arrays}
        table = _stack(present, len(rows))
        axes = [f"{name}_{axis}" for axis in range(table.ndim - 1)]
        if rows[min(present)][0]["steps"]:
            axes[0] = "step"
        axes = [f"{axis}_" if axis in {*results, *columns} else axis for axis in axes]
        variables[name] = [*dims, *axes], table.reshape(shape + table.shape[1:])
    coordinates = {name: (name if grid else "case", _labels(v)) for name, v in columns.items()}
    return xarray.Dataset(variables, coordinates)


def _labels(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of numbers or strings unchanged, and the names of other objects."""
    for kinds in (str, (bool, int, float, complex)):
        array = np.array(values) if all(isinstance(value, kinds) for value in values) else None
        if array is not None and array.dtype.kind in _PLAIN:
            return array
    return np.array([str(getattr(value, "name", short(value))) for value in values])


def _stack(rows: Mapping[int, NDArray[Any]], count: int) -> NDArray[Any]:
    """Stack arrays along a new first axis; missing entries are NaN or empty strings."""
    shapes = [row.shape for row in rows.values()]
    shape = tuple(map(max, itertools.zip_longest(*shapes, fillvalue=1)))
    dtype = np.result_type(*(row.dtype for row in rows.values()))
    if dtype.kind in "biu" and not (len(rows) == count and set(shapes) == {shape}):
        dtype = np.dtype(float)
    table = np.zeros((count, *shape), dtype)
    if dtype.kind in "fc":
        table[:] = np.nan
    for k, row in rows.items():
        index: Any = (k, *map(slice, row.shape), *(0,) * (len(shape) - row.ndim))
        table[index] = row
    return table
