"""Universal files of modes at nodes, read and written by the package pyuff.

A universal file consists of datasets, of which these are used: 55 (data at nodes), 15 and 2411
(nodes), 18 and 2420 (coordinate systems) and 164 (units). They are described in Structural Dynamics
Research Lab, University of Cincinnati, Universal File Formats for Modal Analysis Testing.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import choice, length
from dolfinx_mbd.files import contains, write_atomically
from dolfinx_mbd.io.imports.full_matrices import MatrixError, MatrixFileError, in_file
from dolfinx_mbd.io.imports.matrix_files import existing_file
from dolfinx_mbd.optional import optional_module

# Numbers of datasets
MODES, UNITS = 55, 164
LOCAL_NODES, GLOBAL_NODES = 15, 2411  # positions in any coordinate system, or in the global one
POINT_SYSTEMS, MATRIX_SYSTEMS = 18, 2420  # coordinate systems by three points, or by their axes
NODES, SYSTEMS = (LOCAL_NODES, GLOBAL_NODES), (POINT_SYSTEMS, MATRIX_SYSTEMS)
NORMAL, COMPLEX = 2, (3, 7)  # analysis types of dataset 55
MOTIONS = (0, 1, 8, 11, 12)
"""Types of data in dataset 55: unknown, general, displacement and its derivatives."""

VECTORS = (0, 2, 3)
"""Kinds of values in dataset 55: unknown, three or six components of a motion."""

GLOBAL = (0, 1)  # numbers of the global coordinate system


@dataclass(frozen=True)
class NodeData:
    """A node: position in m, and the axes of its displacements as rows, shape (3, 3)."""

    position: Array
    axes: Array


@dataclass(frozen=True)
class ModeData:
    """A mode: eigenvalue in rad/s, and the displacements (3,) of nodes by their numbers."""

    eigenvalue: complex
    shape: dict[int, NDArray]


def read_datasets(path: str | Path) -> tuple[Path, list[dict[str, Any]]]:
    """Return the path and the datasets of a universal file that describe modes at nodes.

    Args:
        path: The file.

    Raises:
        MatrixFileError: The file is damaged.
        ImportError: pyuff is not installed.
    """
    pyuff = optional_module("pyuff", "universal files")
    checked = existing_file("path", path)
    with in_file(checked, "a universal file"):
        lines = checked.read_bytes().splitlines()
        marks = sum(line.rstrip() == b"    -1" for line in lines)
        if not marks or marks % 2:
            raise ValueError(f"{marks} lines of -1 that begin and end datasets")
        file = pyuff.UFF(str(checked))
    datasets = []
    for k, kind in enumerate(file.get_set_types()):
        if int(kind) in (*NODES, MODES, *SYSTEMS, UNITS):
            with in_file(checked, f"a universal file with a valid dataset {kind}"):
                datasets.append(file.read_sets(k))
    return checked, datasets


def read_nodes(
    path: Path,
    datasets: list[dict[str, Any]],
    unit: float | str | None,
    axes: Literal["global", "node"] | None,
) -> dict[int, NodeData]:
    """Return the nodes by their numbers.

    Args:
        path: The file, for messages.
        datasets: Its datasets.
        unit: Unit of length, or None for that of dataset 164.
        axes: Axes of the displacements in dataset 55.

    Raises:
        MatrixFileError: Units, nodes or coordinate systems are missing or contradict one another.
    """
    choice("axes", axes, ("global", "node"), none=True)
    factor, systems = _unit(path, datasets, unit), _systems(path, datasets)
    nodes: dict[int, NodeData] = {}
    for dataset in datasets:
        if dataset["type"] not in NODES:
            continue
        columns = [dataset[key] for key in ("node_nums", "def_cs", "disp_cs", "x", "y", "z")]
        if len({len(column) for column in columns}) > 1:
            raise MatrixFileError(f"{path}: a dataset of nodes is not complete", path=path)
        for label, defined, moved, *x in zip(*columns, strict=True):
            position = np.array(x, dtype=float)
            if dataset["type"] == LOCAL_NODES:
                R, origin = _system(path, systems, int(defined), "nodes")
                position = position @ R + origin
            if int(moved) not in GLOBAL and axes is None:
                text = (
                    f"{path}: node {int(label)} has the displacement coordinate system "
                    f"{int(moved)}. The shapes of dataset 55 are along the global axes by its "
                    "definition, but along those of the nodes in files of some programs; choose "
                    "axes='global' or axes='node'"
                )
                raise MatrixFileError(text, path=path)
            node_axes = np.eye(3)
            if axes == "node":
                node_axes, _ = _system(path, systems, int(moved), "displacements")
            known = nodes.get(int(label))
            if known is not None and not np.allclose(known.position, position * factor, 1e-5, 1e-9):
                text = f"{path}: node {int(label)} occurs twice, with different positions"
                raise MatrixFileError(text, path=path)
            nodes.setdefault(int(label), NodeData(position * factor, node_axes))
    if not nodes:
        text = f"{path}: no nodes (dataset 15 or 2411)"
        raise MatrixFileError(text, path=path)
    return nodes


def read_modes(path: Path, datasets: list[dict[str, Any]]) -> list[ModeData]:
    """Return the modes of the file in their order; of conjugate pairs only one.

    Args:
        path: The file, for messages.
        datasets: Its datasets.

    Raises:
        MatrixFileError: There are no modes, or a mode is damaged.
    """
    modes, other = [], []
    for dataset in datasets:
        if dataset["type"] != MODES:
            continue
        kind = dataset["analysis_type"]
        is_motion = dataset["spec_data_type"] in MOTIONS and dataset["data_ch"] in VECTORS
        if not is_motion or kind not in (NORMAL, *COMPLEX):
            other.append(f"analysis type {kind}, data type {dataset['spec_data_type']}")
            continue
        modes.append(_mode(path, dataset))
    if not modes:
        text = f"{path}: no mode shapes (dataset 55, normal or complex modes of displacements)"
        text += f"; it has {', '.join(sorted(set(other)))}" if other else ""
        raise MatrixFileError(text, path=path)
    if any(mode.eigenvalue.imag > 0 for mode in modes):
        return [mode for mode in modes if mode.eigenvalue.imag >= 0]
    # Without positive imaginary parts, complex modes are the other ones of the conjugate pairs
    return [
        ModeData(mode.eigenvalue.conjugate(), {k: u.conj() for k, u in mode.shape.items()})
        for mode in modes
    ]


def _mode(path: Path, dataset: dict[str, Any]) -> ModeData:
    """Return the eigenvalue and the shape of a mode in dataset 55."""
    labels = [int(k) for k in dataset["node_nums"]]
    columns = [np.asarray(dataset[key]) for key in ("r1", "r2", "r3")]
    number = dataset["mode_n"]
    complete = all(len(column) == len(labels) for column in columns)
    if not complete or not np.isfinite(columns).all() or not labels:
        raise MatrixFileError(f"{path}: the shape of mode {number} is not complete", path=path)
    if len(set(labels)) < len(labels):
        raise MatrixFileError(f"{path}: mode {number} has a node twice", path=path)
    if dataset["analysis_type"] == NORMAL:
        omega = 2 * np.pi * dataset["freq"]
        # Viscous damping ratio, or half the loss factor of hysteretic damping
        ratio = dataset["modal_damp_vis"] or dataset["modal_damp_his"] / 2
        if not 0 <= ratio < 1 or not omega >= 0:
            text = f"{path}: mode {number} has the frequency {dataset['freq']} Hz and the damping "
            raise MatrixFileError(text + f"ratio {ratio}", path=path)
        eigenvalue = omega * complex(-ratio, np.sqrt(1 - ratio**2))
    else:
        eigenvalue = complex(dataset["eig"])
    return ModeData(eigenvalue, dict(zip(labels, np.stack(columns, axis=1), strict=True)))


def _unit(path: Path, datasets: list[dict[str, Any]], unit: float | str | None) -> float:
    """Return the unit of length of the file, m."""
    stated = {1.0 / float(d["length"]) for d in datasets if d["type"] == UNITS and d["length"] > 0}
    if unit is not None:
        chosen = length("unit", unit)
        if any(abs(value / chosen - 1) > 1e-3 for value in stated):
            text = (
                f"{path}: the unit of length is {max(stated):g} m (dataset 164), not {chosen:g} m"
            )
            raise MatrixFileError(text, path=path)
        return chosen
    if not stated:
        text = f"{path}: no units (dataset 164); state the unit of length, such as unit='mm'"
        raise MatrixFileError(text, path=path)
    if len(stated) > 1:
        raise MatrixFileError(f"{path}: different units of length: {stated} m", path=path)
    return stated.pop()


Systems = dict[int, tuple[Array, Array]]
"""Axes and origins of coordinate systems by their numbers."""


def _systems(path: Path, datasets: list[dict[str, Any]]) -> Systems:
    """Return axes (rows, in the global system) and origin of each coordinate system.

    A system that is not Cartesian is left out, so that its use raises an error.
    """
    systems: Systems = {0: (np.eye(3), np.zeros(3))}
    columns: tuple[str, ...] = "CS_sys_labels", "CS_types", "CS_matrices"
    for dataset in (d for d in datasets if d["type"] == MATRIX_SYSTEMS):
        for label, kind, matrix in zip(*(dataset[key] for key in columns), strict=True):
            if kind == 0:
                systems[int(label)] = _checked_axes(path, label, matrix[:3]), matrix[3]
    columns = "cs_num", "cs_type", "ref_cs_num", "ref_o", "x_point", "xz_point"
    for dataset in (d for d in datasets if d["type"] == POINT_SYSTEMS):
        for label, kind, base, o, x, xz in zip(*(dataset[key] for key in columns), strict=True):
            if kind == 0:
                R, origin = _system(path, systems, int(base), "other coordinate systems")
                first = (x - o) / np.linalg.norm(x - o)
                second = np.cross(xz - o, first)
                second /= np.linalg.norm(second)
                axes = np.array([first, second, np.cross(first, second)]) @ R
                systems[int(label)] = _checked_axes(path, label, axes), o @ R + origin
    return systems


def _checked_axes(path: Path, label: float, axes: Array) -> Array:
    """Return orthonormal right-handed axes; otherwise raise an error."""
    if not np.allclose(axes @ axes.T, np.eye(3), atol=1e-4) or np.linalg.det(axes) < 0:
        text = f"{path}: the axes of coordinate system {int(label)} are not orthonormal and "
        text += "right-handed"
        raise MatrixFileError(text, path=path)
    return axes


def _system(path: Path, systems: Systems, label: int, users: str) -> tuple[Array, Array]:
    """Return axes and origin of a coordinate system; `users` are the entries that refer to it."""
    if label in systems:
        return systems[label]
    if label in GLOBAL:
        return systems[0]
    text = (
        f"{path}: {users} refer to coordinate system {label}, which is not a Cartesian system of "
        "dataset 18 or 2420; write the file in global coordinates"
    )
    raise MatrixFileError(text, path=path)


def write_modes(
    path: str | Path,
    labels: NDArray[np.int64],
    positions: Array,
    frequencies: Array,
    shapes: NDArray,
    damping_ratios: Array,
) -> Path:
    """Write a universal file; the arguments are the attributes of `NodalModes`."""
    pyuff = optional_module("pyuff", "universal files")
    if np.any(damping_ratios >= 1) or np.any(damping_ratios < 0):
        raise MatrixError(
            "damping ratios of modes must be at least 0 and below 1", argument="damping_ratios"
        )
    zeros = np.zeros(len(labels), dtype=int)
    nodes = {
        "type": GLOBAL_NODES,
        "node_nums": labels,
        "def_cs": zeros,
        "disp_cs": zeros,
        "color": zeros,
    }
    nodes |= dict(zip("xyz", positions.T, strict=True))
    si = {"length": 1.0, "force": 1.0, "temp": 1.0, "temp_offset": 273.15}
    units = {"type": UNITS, "units_code": 1, "units_description": "SI: m, N", "temp_mode": 1, **si}
    datasets: list[dict[str, Any]] = [units, nodes]
    for k, (f, ratio) in enumerate(zip(frequencies, damping_ratios, strict=True)):
        omega = 2 * np.pi * f
        dataset = {
            "type": MODES, "model_type": 1, "data_ch": 2, "spec_data_type": 8, "load_case": 1,
            "mode_n": k + 1, "node_nums": labels, "id1": f"Mode {k + 1}, {f:.6g} Hz",
        }  # fmt: skip
        dataset |= {f"r{a + 1}": shapes[k, :, a] for a in range(3)}
        if np.iscomplexobj(shapes):
            eigenvalue = omega * complex(-ratio, np.sqrt(1 - ratio**2))
            dataset |= {
                "analysis_type": COMPLEX[0],
                "eig": eigenvalue,
                "modal_a": 0j,
                "modal_b": 0j,
            }
        else:
            dataset |= {"analysis_type": NORMAL, "freq": f, "modal_m": 0.0}
            dataset |= {"modal_damp_vis": ratio, "modal_damp_his": 0.0}
        datasets.append(dataset)
    with tempfile.TemporaryDirectory(prefix="dolfinx_mbd-") as folder:
        part = Path(folder, "modes.unv")
        pyuff.UFF(str(part)).write_sets(datasets, mode="overwrite")
        data = part.read_bytes()
    is_universal = contains(b"    -1")
    return write_atomically(
        path, lambda file: _write(file, data), "universal file", replaces=is_universal
    )


def _write(file: Any, data: bytes) -> None:
    """Write bytes."""
    file.write(data)
