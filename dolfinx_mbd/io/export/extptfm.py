"""Export of support structures to the module ExtPtfm of OpenFAST (file format `FlexASCII`).

The file contains the matrices of M ẍ + C ẋ + K x = f(t) + f_c and a time series of the loads f. The
coordinates x are the six motions of the interface with the turbine, along the axes of the body, and
then one coordinate for each mode with fixed interfaces. f_c are the loads of the turbine at the
interface. Other interfaces are held on the ground. A superelement has the transformation (r, η) =
T x to the six rigid motions r and the n elastic coordinates η of the body. With the virtual work Q
of a load on (r, η), the load is f = Tᵀ Q.

The axes of the body are the axes of OpenFAST: x downwind and z upwards. Its interface is at the
platform reference point.

References:
    OpenFAST, module ExtPtfm, `ReadFlexASCII` in ExtPtfm_MCKF_IO.f90 (rules of the reader).
    NREL, openfast_toolbox, class `ExtPtfmFile` in fast_input_file.py (rules of another reader).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import choice, file_path, names, reject, vector
from dolfinx_mbd.errors import FileError, InputError
from dolfinx_mbd.files import read_text
from dolfinx_mbd.io.export.common import ExportReport, Task
from dolfinx_mbd.io.export.superelement import Superelement, superelement
from dolfinx_mbd.io.export.text import ascii_text, number_lines

_LINE = 4096  # number of characters in the longest line of loads that OpenFAST reads
_NUMBER_WIDTH = 25  # characters of a number in a line, with a space
_STANDARD_GRAVITY = (0.0, 0.0, -9.80665)  # m/s²


def write_extptfm(
    task: Task,
    *,
    interface: str | None = None,
    held: Sequence[str] | None = None,
    gravity: ArrayLike = _STANDARD_GRAVITY,
    loads: str | Path | None = None,
) -> ExportReport:
    """Write a superelement of OpenFAST's module ExtPtfm, in SI units.

    `interface` is the interface with the turbine, by default the first one. The interfaces `held`
    are fixed on the ground, by default all others. `gravity` (m/s²) gives constant loads. `loads`
    is a file of comma-separated values: its header names `time` (s) and distributed loads of the
    body, its columns are the amplitudes at times with equal steps.
    """
    body = task.original
    if task.body is not task.original:
        reject("units", task.report.units.name, "m-kg-s, the units of OpenFAST")
    valid_names = [i.name for i in body.interfaces]
    main = valid_names[0] if interface is None else choice("interface", interface, valid_names)
    others = [name for name in valid_names if name != main]
    fixed = others if held is None else list(names("held", held))
    for name in fixed:
        choice("held", name, others)
    element = superelement(body, [main, *fixed])
    # All coordinates but those of held interfaces, which come directly after the main interface
    free = np.r_[0:6, 6 * (1 + len(fixed)) : len(element.stiffness)]
    T = element.transform[:, free]
    constant = T.T @ _gravity_load(body, vector("gravity", gravity, unit="m/s²"))
    time, forces = np.array([0.0, 1.0]), np.tile(constant, (2, 1))
    if loads is not None:
        time, amplitudes = _read_loads(file_path("loads", loads), body)
        works = [[*load.force, *load.moment, *load.modes] for load in body.loads]
        forces = constant + amplitudes @ np.array(works) @ T
    lines = list(_lines(body, main, fixed, element, free, time, forces))
    load_lines = lines[-len(time) :]
    if max(map(len, load_lines)) > _LINE:
        max_modes = _LINE // _NUMBER_WIDTH - 7  # besides the time and the six interface loads
        raise InputError(
            f"OpenFAST reads at most {max_modes} modes; the file would have {len(free) - 6}"
        )
    return task.save(lines, notes=_notes(main, fixed, loads))


def _notes(main: str, fixed: Sequence[str], loads: str | Path | None) -> list[str]:
    """Return notes about the input file of ExtPtfm, the interfaces and the loads."""
    held = ", ".join(fixed) or "none: the structure floats"
    result = [
        "in the input file of ExtPtfm use FileFormat 1 and this file as Red_FileName",
        f"interface with the turbine: {main}; held on the ground: {held}",
    ]
    if loads is None:
        result.append("the loads are constant and contain gravity only (loads=... adds others)")
    return result


def _gravity_load(body: ReducedBody, g: Array) -> Array:
    """Return the generalized forces Q of gravity on six rigid motions r and on η, (6 + n,)."""
    moment = np.cross(body.first_moments[0], g)
    return np.concatenate([body.total_mass * g, moment, body.first_moments[1:] @ g])


def _read_loads(path: Path, body: ReducedBody) -> tuple[Array, Array]:
    """Return the times (nt,) and the amplitudes of all distributed loads of a body (nt, loads)."""
    text = read_text(path, "a table of loads").splitlines()
    header = [word.strip() for word in text[0].split(",")] if text else []
    valid_names = [load.name for load in body.loads]
    unknown = [name for name in header[1:] if name not in valid_names]
    if not header or header[0].lower() != "time" or unknown or len(set(header)) < len(header):
        loads = ", ".join(valid_names) or "none"
        reason = f"expected a header with time and distributed loads of the body ({loads})"
        raise FileError(f"{path}: {reason}; got {header}", path=path)
    try:
        table = np.loadtxt(text[1:], delimiter=",", ndmin=2)
    except ValueError as error:
        raise FileError(f"{path}: not a table of numbers ({error})", path=path) from error
    if table.shape[0] < 2 or table.shape[1] != len(header) or not np.isfinite(table).all():
        reason = f"{path}: expected at least two rows of {len(header)} numbers"
        raise FileError(reason, path=path)
    time, steps = table[:, 0], np.diff(table[:, 0])
    if time[0] != 0 or not steps.min() > 0 or np.ptp(steps) > 1e-6 * steps.max():
        raise FileError(f"{path}: the times must start at 0 and have equal steps", path=path)
    amplitudes = np.zeros((len(time), len(valid_names)))
    for k, name in enumerate(header[1:], 1):
        amplitudes[:, valid_names.index(name)] = table[:, k]
    return time, amplitudes


def _lines(
    body: ReducedBody,
    main: str,
    fixed: Sequence[str],
    element: Superelement,
    free: Array,
    time: Array,
    forces: Array,
) -> Iterator[str]:
    """Yield the lines of a file; `free` are the indices of the coordinates x of the element.

    The form satisfies two readers. OpenFAST finds the numbers in lines with `!` by their column, so
    that the texts before them must not change. NREL's openfast_toolbox takes the dimension from the
    third line, truncates end/step to the number of steps, and expects each row in one line.
    """
    count = len(free)
    dimension = f"!Dimension: {count}"
    step, end = _step_and_end(time)
    yield f"!Reduced body {ascii_text(repr(body.name))}, SI units"
    yield "!Flex 5 Format"
    yield dimension
    yield f"!Time increment in simulation: {step!r}"
    yield f"!Total simulation time in file: {end!r}"
    yield f"!Coordinates 1 to 6: translations and rotations of interface {ascii_text(repr(main))}"
    yield f"!Held interfaces: {ascii_text(', '.join(fixed)) or 'none'}"
    for k, frequency in enumerate(element.frequencies, 7):
        yield f"!Coordinate {k}: mode with fixed interfaces, {frequency:.6g} Hz"
    for name, matrix in (
        ("Mass Matrix (Units (kg,m))", element.mass),
        ("Stiffness Matrix (Units (N,m))", element.stiffness),
        ("Damping Matrix (Units (N,m,s))", element.damping),
    ):
        yield f"!{name}"
        yield dimension
        yield from number_lines(matrix[np.ix_(free, free)], count)
    yield "!Loading (Units (N,m))"
    yield f"!Dimension: 1 time column - {count} force columns"
    yield from number_lines(np.column_stack([time, forces]), count + 1)


def _step_and_end(time: Array) -> tuple[float, float]:
    """Return step and end of the times, s.

    Readers truncate end/step; it must not be below the number of steps by round-off.
    """
    steps, end = len(time) - 1, float(time[-1])
    step = end / steps
    while end / step < steps:
        end = math.nextafter(end, math.inf)
    return step, end
