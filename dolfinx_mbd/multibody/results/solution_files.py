"""Files of solutions, and tables for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import damage_as, read_archive
from dolfinx_mbd.checks import choice, instance
from dolfinx_mbd.checks import names as checked_names
from dolfinx_mbd.multibody.files.run_files import (
    check_system,
    run_kind,
    state_arrays,
    state_from,
    states_from,
    system_rows,
    write_run,
    write_table,
)
from dolfinx_mbd.multibody.model.system import SystemData

if TYPE_CHECKING:
    from dolfinx_mbd.multibody.results.solution import Solution

__all__ = ["load_solution", "save_solution", "write_csv"]

Array = NDArray[np.float64]

_KIND = run_kind("solution")
_HISTORY = ("time", "q", "v", "a", "lam", "angles")

# Units and component names of the columns; without names they are numbered, "-" is one column.
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
    """Write a solution to a file; see `Solution.save`."""
    header = {
        **system_rows(solution.system),
        "units": "SI: m, kg, s, rad",
        "complete": solution.complete,
        "iterations": solution.iterations,
        "factorizations": solution.factorizations,
    }
    arrays = {key: getattr(solution, key) for key in _HISTORY}
    arrays |= state_arrays("final", solution.final_state)
    return write_run(path, _KIND, header, arrays)


def load_solution(kind: type[Solution], path: str | Path, system: SystemData) -> Solution:
    """Read a solution from a file; see `Solution.load`."""
    instance("system", system, SystemData)
    header, arrays = read_archive(path, _KIND)
    with damage_as(_KIND, path):
        system = check_system(path, header, arrays, system)
        states = states_from(arrays)
        states[-1] = state_from("final", arrays)
        return kind(
            system,
            states,
            complete=bool(header["complete"]),
            iterations=int(header["iterations"]),
            factorizations=int(header["factorizations"]),
        )


def write_csv(solution: Solution, path: str | Path, names: Sequence[str] | None) -> Path:
    """Write histories as comma-separated values; see `Solution.to_csv`."""
    columns: dict[str, Array] = {"time [s]": solution.time}
    known = solution.names()
    bodies = {body.name for body in solution.system.bodies}
    for name in known if names is None else checked_names("names", names):
        choice("every entry of names", name, known)
        history = solution.body(name) if name in bodies else solution.joint(name)
        units = _BODY_UNITS if name in bodies else _JOINT_UNITS
        for key, (unit, labels) in units.items():
            values = getattr(history, key).reshape(len(solution), -1)
            for k, column in enumerate(values.T):
                label = "" if labels == "-" else f".{labels[k] if labels else k + 1}"
                columns[f"{name}.{key}{label} [{unit}]"] = column
    return write_table(path, list(columns), np.column_stack(list(columns.values())))
