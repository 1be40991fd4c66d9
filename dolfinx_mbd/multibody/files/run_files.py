"""Files of runs: solutions, tables for other programs, and checkpoints; plain arrays, no pickles.

A file is an archive (:mod:`dolfinx_mbd.archive`) whose header says which system it belongs
to (:mod:`dolfinx_mbd.multibody.files.fingerprint`).  It appears under its name
only when it is complete, so that a process that is killed leaves the file before it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import Kind, archive_writer, is_archive
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import FileError, FileWarning, warn
from dolfinx_mbd.files import write_aside
from dolfinx_mbd.multibody.files.fingerprint import differences, fingerprint
from dolfinx_mbd.multibody.model.system import State, SystemData

__all__ = [
    "VERSION",
    "RunFileError",
    "check_system",
    "run_kind",
    "state_arrays",
    "state_from",
    "states_from",
    "system_rows",
    "write_run",
    "write_table",
]

Array = NDArray[np.float64]

VERSION = 3
"""Version of the files of runs; from version 3 on, fingerprints hold no code of functions."""

_KEYS = ("q", "v", "a", "lam", "angles")
_ARRAYS = ("algorithmic", "velocity")  # of a state's memory; `earlier` is a list of pairs


class RunFileError(FileError):
    """A file is damaged, not what it should be, newer than this program, or of another system."""


def run_kind(title: str) -> Kind:
    """Return a kind of file that belongs to runs."""
    return Kind(f"dolfinx_mbd {title}", title, VERSION, RunFileError)


def write_run(
    path: str | Path,
    kind: Kind,
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    *,
    in_folder: bool = False,
) -> Path:
    """Write arrays and a header to one file; all of it or nothing.

    A file of the same kind is replaced; any other file is not, unless the folder is the package's
    own (`in_folder`), where it can only be a damaged one.

    Raises:
        OverwriteError: If there is a file of another kind.
        OSError: If it cannot be written; a file that was there before is as it was.
    """
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_suffix(".npz")
    write = archive_writer(kind, header, arrays)
    return write_aside(
        path, write, kind.title, replaces=lambda path: in_folder or is_archive(path, kind)
    )


# ---- systems ------------------------------------------------------------------------------------


def system_rows(system: SystemData) -> dict[str, Any]:
    """Return the fingerprint of a system and the constraints that it has dropped, for a header."""
    whole = system.whole
    kept = set(zip(map(int, system.row_entry), map(int, system.row_motion), strict=True))
    everything = zip(map(int, whole.row_entry), map(int, whole.row_motion), strict=True)
    dropped = [k for k, pair in enumerate(everything) if pair not in kept]
    return {
        "system": fingerprint(system),
        "dropped": dropped,
        "least_norm": bool(system.least_norm),
        "misfit": whole.misfit.tolist(),
    }


def check_system(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Any], system: SystemData
) -> SystemData:
    """Return a system without the constraints that the run of a file has dropped.

    Args:
        path: The file, for messages.
        header: Its header, with the entries of `system_rows`.
        arrays: Its arrays.
        system: The system that the file should belong to.

    Warns:
        FileWarning: The file is of a version whose digests cannot be compared.

    Raises:
        RunFileError: The file belongs to another system; the message names the differences.
    """
    own, other = fingerprint(system), dict(header["system"])
    if header["version"] < VERSION:
        text = f"{path} is of an earlier version: only names and sizes of its system are checked"
        warn(FileWarning(text))
        own, other = dict.fromkeys(own, ""), dict.fromkeys(other, "")
        own["number of coordinates"] = str(system.num_coordinates)
        other["number of coordinates"] = str(arrays["q"].shape[-1])
    changes = differences(other, own)
    if changes:
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        raise RunFileError(
            f"{path}: belongs to another system: {', '.join(changes[:5])}{more}. Build the system "
            "as it was when the file was written",
            path=path,
        )
    whole, misfit = system.whole, np.array(header.get("misfit", []))
    if misfit.any():
        whole = whole.with_misfit(misfit)
    if not header["dropped"]:
        return whole
    return whole.without_rows(header["dropped"], least_norm=header["least_norm"])


# ---- states -------------------------------------------------------------------------------------


def state_arrays(prefix: str, state: State) -> dict[str, Array]:
    """A state with all that the integrator carries, as arrays."""
    arrays = {f"{prefix}_{key}": getattr(state, key) for key in _KEYS}
    arrays[f"{prefix}_time"] = np.array(state.time)
    for key in _ARRAYS:
        if key in state.memory:
            arrays[f"{prefix}_memory_{key}"] = state.memory[key]
    for k, (a, lam) in enumerate(state.memory.get("earlier", ())):
        arrays[f"{prefix}_earlier_{k}_a"], arrays[f"{prefix}_earlier_{k}_lam"] = a, lam
    return arrays


def state_from(prefix: str, arrays: Mapping[str, Any]) -> State:
    """The state that :func:`state_arrays` wrote, to the bit."""
    memory: dict[str, Any] = {
        key: arrays[f"{prefix}_memory_{key}"]
        for key in _ARRAYS
        if f"{prefix}_memory_{key}" in arrays
    }
    earlier: list[tuple[Array, Array]] = []
    while f"{prefix}_earlier_{len(earlier)}_a" in arrays:
        name = f"{prefix}_earlier_{len(earlier)}"
        earlier.append((arrays[f"{name}_a"], arrays[f"{name}_lam"]))
    if earlier:
        memory["earlier"] = tuple(earlier)
    q, v, a, lam, angles = (arrays[f"{prefix}_{key}"] for key in _KEYS)
    return State(float(arrays[f"{prefix}_time"]), q, v, a, lam, angles, memory)


def states_from(arrays: Mapping[str, Any]) -> list[State]:
    """The states of a history in arrays ``time``, ``q``, ``v``, ``a``, ``lam`` and ``angles``."""
    rows = zip(*(arrays[key] for key in _KEYS), strict=True)
    return [State(float(t), *row) for t, row in zip(arrays["time"], rows, strict=True)]


def write_table(path: str | Path, names: Sequence[str], columns: Array) -> Path:
    """Write columns (nt, nc) with a line of names as comma-separated values, all or nothing.

    Numbers are written so that they are read back as they are. A table (``.csv``) is replaced; any
    other file is not.

    Raises:
        OverwriteError: If there is a file that is not a table.
        OSError: If it cannot be written; a file that was there before is as it was.
    """

    def write(file: BinaryIO) -> None:
        head = io.StringIO()
        csv.writer(head, lineterminator="\n").writerow(map(table_cell, names))
        file.write(head.getvalue().encode())
        np.savetxt(file, columns, fmt="%.17g", delimiter=",")

    return write_aside(path, write, "table", replaces=is_table)


def table_cell(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") else text


def is_table(path: Path) -> bool:
    """Return whether a file may be replaced by a table: by its name, for tables have no header."""
    return path.suffix.lower() == ".csv"
