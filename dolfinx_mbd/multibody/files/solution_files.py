"""Solutions in files: saved and loaded to the bit, and tables for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.files.run_files import (
    RunFileError,
    check_system,
    read_run,
    state_arrays,
    state_from,
    states_from,
    system_rows,
    write_run,
    write_table,
)
from dolfinx_mbd.multibody.system import System

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.solution import Solution

__all__ = ["load_solution", "save_solution", "write_csv"]

Array = NDArray[np.float64]

_FILE = "solution"
_VERSION = 1  # of the file; a reader refuses a newer one
_HISTORY = ("time", "q", "v", "a", "lam", "angles")

#: Units and names of components of what a table holds; no names: counted from 1, "-": one column.
_BODY_UNITS = {
    "position": ("m", "xyz"),
    "rotation": ("1", "wxyz"),
    "velocity": ("m/s", "xyz"),
    "omega": ("rad/s", "xyz"),
    "acceleration": ("m/s²", "xyz"),
    "alpha": ("rad/s²", "xyz"),
    "eta": ("SI", ""),
    "eta_rate": ("SI/s", ""),
    "eta_acceleration": ("SI/s²", ""),
}
_JOINT_UNITS = {"force": ("N", "xyz"), "moment": ("N m", "xyz"), "rotation": ("rad", "-")}


def save_solution(solution: Solution, path: str | Path) -> Path:
    """See :meth:`~dolfinx_mbd.multibody.Solution.save`."""
    header = {
        **system_rows(solution.system, functions=False),
        "units": "SI: m, kg, s, rad",
        "complete": solution.complete,
        "iterations": solution.iterations,
        "factorizations": solution.factorizations,
    }
    arrays = {key: getattr(solution, key) for key in _HISTORY}
    arrays |= state_arrays("final", solution.final_state)
    return write_run(path, _FILE, _VERSION, header, arrays)


def load_solution(kind: type[Solution], path: str | Path, system: System) -> Solution:
    """See :meth:`~dolfinx_mbd.multibody.Solution.load`."""
    header, arrays = read_run(path, _FILE, _VERSION)
    try:
        system = check_system(path, header, system, functions=False)
        states = states_from(arrays)
        states[-1] = state_from("final", arrays)
        return kind(
            system,
            states,
            complete=bool(header["complete"]),
            iterations=int(header["iterations"]),
            factorizations=int(header["factorizations"]),
        )
    except (KeyError, IndexError, TypeError) as error:
        raise RunFileError(f"{path}: damaged ({error!r})") from error


def write_csv(solution: Solution, path: str | Path, names: Sequence[str] | None) -> Path:
    """See :meth:`~dolfinx_mbd.multibody.Solution.to_csv`."""
    columns: dict[str, Array] = {"time [s]": solution.time}
    for name in solution.names() if names is None else names:
        history = solution[name]
        units = _BODY_UNITS if hasattr(history, "eta") else _JOINT_UNITS
        for key, (unit, labels) in units.items():
            values = getattr(history, key).reshape(len(solution), -1)
            for k, column in enumerate(values.T):
                label = "" if labels == "-" else f".{labels[k] if labels else k + 1}"
                columns[f"{name}.{key}{label} [{unit}]"] = column
    quoted = ['"{}"'.format(c.replace('"', '""')) if set(c) & set(',"') else c for c in columns]
    return write_table(path, quoted, np.column_stack(list(columns.values())))
