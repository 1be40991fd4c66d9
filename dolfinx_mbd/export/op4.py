"""Nastran OUTPUT4 text file with K, M and C in coordinates of interfaces and modes.

The symmetric matrices (form 6) are `KAAX`, `MAAX` and, if the body has damping, `BAAX`. Their
coordinates are six for each interface along the axes of the body, then the fixed-interface modes.
The columns of `XYZ` are the points of the interfaces. Numbers have 17 digits. As in Nastran's text
files, the record of a column contains the count of its numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.export.common import ExportReport, Task
from dolfinx_mbd.export.superelement import superelement

__all__ = ["matrix_lines", "write"]

SYMMETRIC, RECTANGULAR = 6, 2  # forms of a matrix


def write(task: Task, *, interfaces: Sequence[str] | None = None) -> ExportReport:
    """Write the matrices of a superelement with some interfaces, in their order; by default all."""
    element = superelement(task.body, interfaces)
    matrices = {name: (SYMMETRIC, A) for name, A in element.nastran_matrices().items()}
    lines = matrix_lines(matrices | {"XYZ": (RECTANGULAR, element.points.T)})
    return task.save(lines, notes=["OP4 has no comments: the file does not state its units"])


def matrix_lines(matrices: Mapping[str, tuple[int, NDArray[np.float64]]]) -> Iterator[str]:
    """Yield the lines of an OP4 text file; `matrices` maps names to forms and real matrices."""
    double = 2
    for name, (form, matrix) in matrices.items():
        rows, columns = matrix.shape
        yield f"{columns:8d}{rows:8d}{form:8d}{double:8d}{name:<8s}1P,3E24.16"
        for j, column in enumerate(matrix.T, 1):
            rows_used = np.flatnonzero(column)
            if len(rows_used):
                values = column[rows_used[0] : rows_used[-1] + 1]
                yield f"{j:8d}{rows_used[0] + 1:8d}{len(values):8d}"
                for k in range(0, len(values), 3):
                    yield "".join(f"{value:24.16E}" for value in values[k : k + 3])
        yield f"{columns + 1:8d}{1:8d}{1:8d}"
        yield f"{1.0:24.16E}"
