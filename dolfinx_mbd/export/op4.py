"""Nastran OUTPUT4 file, as text, of K, M and C in coordinates of interfaces and modes.

Matrices by name: ``KAAX``, ``MAAX`` and, if the body has damping, ``BAAX``, symmetric (form 6), for
each interface in turn six coordinates along the body's axes, then the fixed-interface modes; and
``XYZ``, the points of the interfaces, one a column.  Numbers have 17 digits: they come back to the
bit.  A column's record gives the count of its numbers, as Nastran does in text files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.export.common import SI, ExportReport, Units, prepare, write_text
from dolfinx_mbd.export.superelement import superelement

__all__ = ["matrix_lines", "write"]

Array = NDArray[np.float64]

SYMMETRIC, RECTANGULAR = 6, 2
"""Forms of a matrix."""


def write(
    body: ReducedBody,
    path: str | Path,
    *,
    units: Units | str = SI,
    interfaces: Sequence[str] | None = None,
    overwrite: bool = False,
) -> ExportReport:
    """Write the matrices of a superelement as text OP4.

    The format has no room for a comment: nothing in the file states its units.

    Args:
        body: In SI, with interfaces.
        path: The file; ``.op4`` is added if it has no suffix.
        units: Of the numbers in the file.
        interfaces: Those to keep, in order; None: all.
        overwrite: Replace a file that is there already and has another content.

    Raises:
        ValueError: If there are no interfaces, or their motions are dependent.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written.
    """
    scaled, path, report = prepare(body, path, "op4", units)
    element = superelement(scaled, interfaces)
    matrices: dict[str, tuple[int, Array]] = {
        "KAAX": (SYMMETRIC, element.stiffness),
        "MAAX": (SYMMETRIC, element.mass),
    }
    if element.damping.any():
        matrices["BAAX"] = (SYMMETRIC, element.damping)
    matrices["XYZ"] = (RECTANGULAR, element.points.T)
    return report.with_files(
        write_text(path, matrix_lines(matrices), "OP4 file", overwrite=overwrite),
        notes=["OP4 has no room for a comment: the file does not state its units"],
    )


def matrix_lines(matrices: Mapping[str, tuple[int, Array]]) -> Iterator[str]:
    """Lines of a text OP4 file with dense real matrices.

    Args:
        matrices: Form and matrix by name of at most eight characters.
    """
    double = 2
    for name, (form, matrix) in matrices.items():
        rows, columns = matrix.shape
        yield f"{columns:8d}{rows:8d}{form:8d}{double:8d}{name:<8s}1P,3E24.16"
        for j, column in enumerate(matrix.T, 1):
            there = np.flatnonzero(column)
            if len(there):
                values = column[there[0] : there[-1] + 1]
                yield f"{j:8d}{there[0] + 1:8d}{len(values):8d}"
                for k in range(0, len(values), 3):
                    yield "".join(f"{value:24.16E}" for value in values[k : k + 3])
        yield f"{columns + 1:8d}{1:8d}{1:8d}"
        yield f"{1.0:24.16E}"
