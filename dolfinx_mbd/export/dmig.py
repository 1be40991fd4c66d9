"""Nastran bulk data: K, M and C as DMIG in coordinates of interfaces and modes.

One file to include in the bulk data: ``GRID*`` for the point of each interface, ``SPOINT`` for the
fixed-interface modes, ``ASET1`` for all of them, and the matrices ``KAAX``, ``MAAX`` and, if the
body has damping, ``BAAX``, symmetric, lower triangle.  Case control selects them by
``K2GG = KAAX``, ``M2GG = MAAX`` and ``B2GG = BAAX``.  A field of 16 characters holds 10 or 11
digits: the six zero modes of K are zero to that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.export.common import SI, ExportReport, Units, ascii_text, prepare, write_text
from dolfinx_mbd.export.superelement import Superelement, superelement

__all__ = ["field", "write"]

Array = NDArray[np.float64]

WIDTH = 16
"""Characters of a large field."""

LARGEST = 99_999_999
"""Greatest number of a grid or scalar point."""


def write(
    body: ReducedBody,
    path: str | Path,
    *,
    units: Units | str = SI,
    interfaces: Sequence[str] | None = None,
    first_point: int = 1,
    overwrite: bool = False,
) -> ExportReport:
    """Write a bulk data file with the matrices of a superelement.

    Args:
        body: In SI, with interfaces.
        path: The file; ``.pch`` is added if it has no suffix.
        units: Of the numbers in the file.
        interfaces: Those to keep, in order; None: all.
        first_point: Number of the first interface's grid; the others follow, then the modes.
        overwrite: Replace a file that is there already and has another content.

    Raises:
        ValueError: If there are no interfaces, or their motions are dependent, or the numbers of
            the points do not fit.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written.
    """
    scaled, path, report = prepare(body, path, "dmig", units)
    element = superelement(scaled, interfaces)
    last = first_point + len(element.names) + element.num_modes - 1
    if not (isinstance(first_point, (int, np.integer)) and 1 <= first_point and last <= LARGEST):
        raise InputError(
            f"first_point={first_point!r}: numbers of points must be in 1 ... {LARGEST}, and this "
            f"body needs {len(element.names) + element.num_modes}"
        )
    text = _lines(body, element, report.units, int(first_point))
    return report.with_files(
        write_text(path, text, "DMIG file", overwrite=overwrite),
        notes=[
            "include it in the bulk data; case control: K2GG = KAAX, M2GG = MAAX, B2GG = BAAX",
            "a field holds 10 digits of a number; OP4 holds them all",
        ],
    )


def _lines(body: ReducedBody, element: Superelement, units: Units, first: int) -> Iterator[str]:
    grids = [first + k for k in range(len(element.names))]
    modes = [grids[-1] + 1 + k for k in range(element.num_modes)]
    matrices = {"KAAX": element.stiffness, "MAAX": element.mass}
    if element.damping.any():
        matrices["BAAX"] = element.damping
    selection = {"KAAX": "K2GG", "MAAX": "M2GG", "BAAX": "B2GG"}
    yield f"$ reduced body {ascii_text(repr(body.name))}"[:72]
    yield f"$ units {units.statement}"
    yield "$ case control: " + ", ".join(f"{selection[name]} = {name}" for name in matrices)
    for number, interface in zip(grids, element.interfaces, strict=True):
        yield f"$ grid {number}: interface {ascii_text(repr(interface.name))}"[:72]
        x, y, z = (field(value, "E") for value in interface.point)
        yield f"{'GRID*':<8}{number:>16}{'':16}{x}{y}"
        yield f"{'*':<8}{z}"
    yield (
        f"{'ASET1':<8}{123456:>8}{grids[0]:>8}{'THRU':>8}{grids[-1]:>8}"
        if len(grids) > 1
        else f"{'ASET1':<8}{123456:>8}{grids[0]:>8}"
    )
    for number, frequency in zip(modes, element.frequencies, strict=True):
        yield f"$ scalar point {number}: mode with interfaces held, {frequency:.6g} Hz"
    if modes:
        through = f"{'THRU':>8}{modes[-1]:>8}" if len(modes) > 1 else ""
        yield f"{'SPOINT':<8}{modes[0]:>8}{through}"
        yield f"{'ASET1':<8}{0:>8}{modes[0]:>8}{through}"
    coordinates = [(g, c) for g in grids for c in range(1, 7)] + [(s, 0) for s in modes]
    for name, matrix in matrices.items():
        yield from _matrix(name, matrix, coordinates)


def _matrix(name: str, A: Array, coordinates: list[tuple[int, int]]) -> Iterator[str]:
    """Lower triangle, column by column; what is zero is left out."""
    form, double = 6, 2
    yield f"{'DMIG':<8}{name:<8}{0:>8}{form:>8}{double:>8}{0:>8}"
    for j, (point, component) in enumerate(coordinates):
        rows = j + np.flatnonzero(A[j:, j])
        if not len(rows):
            continue
        yield f"{'DMIG*':<8}{name:<16}{point:>16}{component:>16}"
        for i in rows:
            row, at = coordinates[i]
            yield f"{'*':<8}{row:>16}{at:>16}{field(A[i, j])}"


def field(value: float, letter: str = "D") -> str:
    """A number in 16 characters with as many digits as fit, right-aligned."""
    for digits in range(WIDTH - 5, 0, -1):
        mantissa, exponent = f"{value:.{digits}E}".split("E")
        text = f"{mantissa}{letter}{int(exponent):+d}"
        if len(text) <= WIDTH:
            return f"{text:>{WIDTH}}"
    raise AssertionError(f"{value!r} does not fit a field")
