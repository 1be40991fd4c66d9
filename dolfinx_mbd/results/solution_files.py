"""Reading and writing of solutions: one file, or the folder that a run wrote."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.archive import errors_as, read_archive
from dolfinx_mbd.checks import file_path, instance
from dolfinx_mbd.errors import FileWarning, warn
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.distributed_rows import whole
from dolfinx_mbd.results.files.run_files import (
    HISTORY,
    check_system,
    run_kind,
    state_arrays,
    state_from,
    states_from,
    system_rows,
    write_run,
)
from dolfinx_mbd.results.files.run_folder import CHECKPOINT, KIND, Rows, read_folder
from dolfinx_mbd.results.saved_outputs import SavedOutputs
from dolfinx_mbd.results.saved_states import SavedStates

_SOLUTION_KIND = run_kind("solution")

Saved = SavedStates | SavedOutputs
"""Values that a run saved."""


def write_solution(
    path: str | Path, system: System, saved: Saved, final: State, facts: Mapping[str, Any]
) -> Path:
    """Write a solution to one file; see `Solution.save`."""
    header = {**system_rows(system), "units": "SI: m, kg, s, rad", **facts}
    if isinstance(saved, SavedOutputs):
        header |= {"outputs": [*saved.values], "requested": saved.requested}
        arrays = {f"output_{k}": values for k, values in enumerate(saved.values.values())}
        arrays["time"] = saved.time
    else:
        arrays = {key: whole(getattr(saved, key)) for key in HISTORY} | saved.oil
    return write_run(path, _SOLUTION_KIND, header, arrays | state_arrays("final", final))


def read_solution(path: str | Path, system: System) -> tuple[System, Saved, State, dict[str, Any]]:
    """Return the system of a run, its saved values, its last state, and the facts in its header."""
    instance("system", system, System)
    path = file_path("path", path)
    if path.is_dir():
        header, arrays, rows = read_folder(path)
        with errors_as(KIND, path / CHECKPOINT), contextlib.closing(rows):
            system = check_system(path, header, arrays, system)
            saved = saved_rows(system, rows, header["requested"])
            result = system, saved, state_from("now", arrays), _facts(header)
        if not header["complete"]:
            text = f"{path}: the run has not ended; it is read up to t = {saved.time[-1]:g} s. "
            warn(FileWarning(f"{text}mbd.resume continues it"))
        return result
    header, arrays = read_archive(path, _SOLUTION_KIND)
    with errors_as(_SOLUTION_KIND, path):
        system = check_system(path, header, arrays, system)
        final = state_from("final", arrays)
        if "outputs" in header:
            names = ["time", *header["outputs"]]
            values = [arrays["time"], *(arrays[f"output_{k}"] for k in range(len(names) - 1))]
            layout = [(n, "<f8", v.shape[1:]) for n, v in zip(names, values, strict=True)]
            outputs = np.empty(len(arrays["time"]), layout)
            for name, column in zip(names, values, strict=True):
                outputs[name] = column
            requested = [str(name) for name in header["requested"]]
            return system, SavedOutputs(system, outputs, requested), final, _facts(header)
        return system, SavedStates(system, states_from(arrays)), final, _facts(header)


def saved_rows(system: System, rows: Rows, requested: list[str] | None) -> Saved:
    """Return the states or the outputs in the rows of a run."""
    if requested is None:
        return SavedStates.of_rows(system, rows.mapped())
    return SavedOutputs(system, rows.mapped(), [str(name) for name in requested])


def _facts(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a run in the header of its file."""
    counts = {key: int(header[key]) for key in ("iterations", "factorizations")}
    return {"complete": bool(header["complete"]), **counts}
