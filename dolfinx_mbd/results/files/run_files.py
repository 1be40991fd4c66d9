"""Reading and writing of files of runs: solutions, and tables for other programs.

A file is an archive (see `dolfinx_mbd.archive`) whose header identifies the system. It replaces an
existing file only when it is complete, so that the process may be killed at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import Kind, archive_writer, is_archive
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.dynamics.assembly.loads import CONTENT_MEMORY
from dolfinx_mbd.errors import FileError, FileWarning, warn
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.files.fingerprint import differences, fingerprint

Array = NDArray[np.float64]

VERSION = 3
"""Version of the files of runs; since version 3, fingerprints ignore the code of functions."""

HISTORY = ("time", "q", "v", "a", "lam", "angles")
"""Attributes of a state that are saved at each time."""

OIL = ("content_before", "content_step")
"""Content of oil films before the step to a state (m), and the length of this step (s)."""

_EARLIER_STATES = 2
"""Greatest number of earlier states whose pairs (a, λ) `State.memory["earlier"]` has."""

_MEMORY = ("algorithmic", "velocity", "nodes", *CONTENT_MEMORY)
"""Keys of the other entries of `State.memory`, which are arrays."""


class RunFileError(FileError):
    """Error of a file that is damaged, has a newer format, or belongs to another system."""


def run_kind(title: str) -> Kind:
    """Return the kind of archive with the given title, for files of runs."""
    return Kind(f"dolfinx_mbd {title}", title, VERSION, RunFileError)


def write_run(
    path: str | Path,
    kind: Kind,
    header: Mapping[str, Any],
    arrays: Mapping[str, Any],
    *,
    in_folder: bool = False,
) -> Path:
    """Write a header and arrays to one file, completely or not at all, and return its path.

    An existing file of another kind is not replaced, unless `in_folder` is True: the file is then
    in a folder to which only this package writes.
    """
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_suffix(".npz")
    return write_atomically(
        path,
        archive_writer(kind, header, arrays),
        kind.title,
        replaces=lambda path: in_folder or is_archive(path, kind),
    )


# ---- systems ------------------------------------------------------------------------------------
def system_rows(system: System) -> dict[str, Any]:
    """Return the header entries that identify a system and its dropped constraints."""
    return {
        "system": fingerprint(system),
        "dropped": np.flatnonzero(~system.held).tolist(),
        "least_norm": bool(system.least_norm),
        "misfit": system.whole.misfit.tolist(),
    }


def check_system(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Any], system: System
) -> System:
    """Return the system without the constraints that were dropped in the run of a file.

    The entries of `system_rows` are compared; a difference raises a `RunFileError`.
    """
    current, saved = fingerprint(system), dict(header["system"])
    if header["version"] < VERSION:
        text = f"{path} is of an earlier version: only names and sizes of the system are checked"
        warn(FileWarning(text))
        current, saved = dict.fromkeys(current, ""), dict.fromkeys(saved, "")
        current["number of coordinates"] = str(system.num_coordinates)
        saved["number of coordinates"] = str(arrays["q"].shape[-1])
    changes = differences(saved, current)
    if changes:
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        raise RunFileError(
            f"{path}: belongs to another system: {', '.join(changes[:5])}{more}. Build the system "
            "as it was when the file was written",
            path=path,
        )
    # The system with all constraints, and their violations at the start (m or rad), which the
    # run retained
    complete, misfit = system.whole, np.array(header.get("misfit", []))
    if misfit.any():
        complete = complete.with_misfit(misfit)
    if not header["dropped"]:
        return complete
    return complete.without_rows(header["dropped"], least_norm=header["least_norm"])


# ---- states -------------------------------------------------------------------------------------
def state_arrays(prefix: str, state: State) -> dict[str, Array]:
    """Return a state and its memory as arrays by name."""
    arrays = {f"{prefix}_{key}": np.asarray(getattr(state, key)) for key in HISTORY}
    arrays |= {f"{prefix}_memory_{k}": state.memory[k] for k in _MEMORY if k in state.memory}
    for k, (a, lam) in enumerate(state.memory.get("earlier", ())):
        arrays[f"{prefix}_earlier_{k}_a"], arrays[f"{prefix}_earlier_{k}_lam"] = a, lam
    return arrays


def state_from(prefix: str, arrays: Mapping[str, Any]) -> State:
    """Return the state from the arrays of `state_arrays`."""
    names = {key: f"{prefix}_memory_{key}" for key in _MEMORY}
    memory: dict[str, Any] = {k: arrays[name] for k, name in names.items() if name in arrays}
    indices = range(_EARLIER_STATES)
    pairs = [[f"{prefix}_earlier_{k}_{key}" for key in ("a", "lam")] for k in indices]
    earlier = [(arrays[a], arrays[lam]) for a, lam in pairs if a in arrays]
    if earlier:
        memory["earlier"] = tuple(earlier)
    values: dict[str, Any] = {key: arrays[f"{prefix}_{key}"] for key in HISTORY}
    return State(**values | {"time": float(values["time"]), "memory": memory})


def states_from(arrays: Mapping[str, Any]) -> list[State]:
    """Return the states whose attributes are given as arrays over time."""
    rows = zip(*(arrays[key] for key in HISTORY), strict=True)
    oil = {key: arrays[key] for key in OIL if key in arrays}
    return [
        replace(State(float(t), *row), memory={key: values[k] for key, values in oil.items()})
        for k, (t, *row) in enumerate(rows)
    ]


def oil_arrays(states: Sequence[State]) -> dict[str, Array]:
    """Return the arrays `OIL` over time, or nothing if they are unknown.

    Their shapes are (nt, nodes of all films) and (nt,). The first state of a run may have no
    content, because its films are those of a steady motion. The files mark this by a content of
    −1 m at all nodes and a step of 0 s.
    """
    content, step = OIL
    known = [state.memory for state in states if content in state.memory]
    if not known or len(known) < len(states) - (content not in states[0].memory):
        return {}
    steady = {content: -np.ones_like(known[0][content]), step: 0.0}
    memories = [state.memory if content in state.memory else steady for state in states]
    return {key: np.array([memory[key] for memory in memories]) for key in OIL}


def row_bytes(state: State, oil: Mapping[str, Array]) -> int:
    """Return the number of bytes of a state and of the content of oil films in a file."""
    parts = [*(getattr(state, key) for key in HISTORY), *oil.values()]
    return 8 * sum(np.size(part) for part in parts)
