"""Nastran bulk data with K, M and C as DMIG in coordinates of interfaces and modes.

The file is included in the bulk data. It contains `GRID*` for the point of each interface, `SPOINT`
for the fixed-interface modes, `ASET1` for all of them, and the lower triangles of the symmetric
matrices `KAAX`, `MAAX` and, if the body has damping, `BAAX`. Case control selects them by
`K2GG = KAAX`, `M2GG = MAAX` and `B2GG = BAAX`. A field of 16 characters holds 10 or 11 digits,
which limits the accuracy of the six zero eigenvalues of K.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import integer
from dolfinx_mbd.export.common import ExportReport, Task
from dolfinx_mbd.export.superelement import Superelement, superelement
from dolfinx_mbd.export.text import ascii_text
from dolfinx_mbd.export.units import Units

__all__ = ["field", "write"]

Array = NDArray[np.float64]

WIDTH = 16  # number of characters of a large field
LARGEST = 99_999_999  # largest number of a grid or scalar point


def write(
    task: Task, *, interfaces: Sequence[str] | None = None, first_point: int = 1
) -> ExportReport:
    """Write the matrices of a superelement with some interfaces, in their order; by default all.

    `first_point` is the number of the first interface's grid; other grids follow, then modes.
    """
    element = superelement(task.body, interfaces)
    highest = LARGEST - len(element.names) - element.num_modes + 1
    first = integer("first_point", first_point, low=1, high=highest)
    lines = _lines(task.body, element, task.report.units, first)
    case = "include it in the bulk data; case control: K2GG = KAAX, M2GG = MAAX, B2GG = BAAX"
    return task.save(lines, notes=[case, "numbers have 10 digits; OP4 files have 17"])


def _lines(body: ReducedBody, element: Superelement, units: Units, first: int) -> Iterator[str]:
    grids = [first + k for k in range(len(element.names))]
    modes = [grids[-1] + 1 + k for k in range(element.num_modes)]
    matrices = element.nastran_matrices()
    selection = {"KAAX": "K2GG", "MAAX": "M2GG", "BAAX": "B2GG"}
    yield f"$ reduced body {ascii_text(repr(body.name))}"[:72]
    yield f"$ units {units.statement}"
    yield "$ case control: " + ", ".join(f"{selection[name]} = {name}" for name in matrices)
    for number, interface in zip(grids, element.interfaces, strict=True):
        yield f"$ grid {number}: interface {ascii_text(repr(interface.name))}"[:72]
        x, y, z = (field(value, "E") for value in interface.point)
        yield f"{'GRID*':<8}{number:>16}{'':16}{x}{y}"
        yield f"{'*':<8}{z}"
    through = f"{'THRU':>8}{grids[-1]:>8}" if len(grids) > 1 else ""
    yield f"{'ASET1':<8}{123456:>8}{grids[0]:>8}{through}"
    for number, frequency in zip(modes, element.frequencies, strict=True):
        yield f"$ scalar point {number}: fixed-interface mode, {frequency:.6g} Hz"
    if modes:
        through = f"{'THRU':>8}{modes[-1]:>8}" if len(modes) > 1 else ""
        yield f"{'SPOINT':<8}{modes[0]:>8}{through}"
        yield f"{'ASET1':<8}{0:>8}{modes[0]:>8}{through}"
    coordinates = [(g, c) for g in grids for c in range(1, 7)] + [(s, 0) for s in modes]
    for name, matrix in matrices.items():
        yield from _matrix(name, matrix, coordinates)


def _matrix(name: str, A: Array, coordinates: list[tuple[int, int]]) -> Iterator[str]:
    """Yield the nonzero entries of the lower triangle by columns."""
    form, double = 6, 2
    yield f"{'DMIG':<8}{name:<8}{0:>8}{form:>8}{double:>8}{0:>8}"
    for j, (point, component) in enumerate(coordinates):
        rows = j + np.flatnonzero(A[j:, j])
        if len(rows):
            yield f"{'DMIG*':<8}{name:<16}{point:>16}{component:>16}"
        for i in rows:
            row, direction = coordinates[i]
            yield f"{'*':<8}{row:>16}{direction:>16}{field(A[i, j])}"


def field(value: float, letter: str = "D") -> str:
    """Return a number in 16 characters, right-aligned, with the largest possible precision."""
    for digits in range(WIDTH - 5, 0, -1):
        mantissa, exponent = f"{value:.{digits}E}".split("E")
        text = f"{mantissa}{letter}{int(exponent):+d}"
        if len(text) <= WIDTH:
            return f"{text:>{WIDTH}}"
    raise AssertionError(f"{value!r} does not fit into a field")
