"""Abaqus substructure matrices (``.mtx``), as ``*SUBSTRUCTURE MATRIX OUTPUT`` writes them.

A linear user element with one node per interface (degrees of freedom 1 to 6 along the body's axes),
then one node per fixed-interface mode with degree of freedom 1; stiffness and mass as lower
triangles.  Real numbers have 14 digits, in the 20 characters that Abaqus reads.  To use the element
in an input file add ``TYPE=U1`` to its keyword line.
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

__all__ = ["write"]

Array = NDArray[np.float64]

NODES_PER_LINE, VALUES_PER_LINE = 10, 4


def write(
    body: ReducedBody,
    path: str | Path,
    *,
    units: Units | str = SI,
    interfaces: Sequence[str] | None = None,
    first_node: int = 1,
    overwrite: bool = False,
) -> ExportReport:
    """Write stiffness and mass of a superelement.

    Args:
        body: In SI, with interfaces.
        path: The file; ``.mtx`` is added if it has no suffix.
        units: Of the numbers in the file.
        interfaces: Those to keep, in order; None: all.
        first_node: Number of the first interface's node; the others follow, then the modes.
        overwrite: Replace a file that is there already and has another content.

    Raises:
        ValueError: If there are no interfaces, or their motions are dependent, or the number of a
            node is not positive.
        OverwriteError: If the file is there already, with another content.
        OSError: If the file cannot be written.
    """
    scaled, path, report = prepare(body, path, "abaqus", units)
    element = superelement(scaled, interfaces)
    if not (isinstance(first_node, (int, np.integer)) and first_node >= 1):
        raise InputError(f"first_node must be a positive number, got {first_node!r}")
    text = _lines(body, element, report.units, int(first_node))
    return report.with_files(
        write_text(path, text, "Abaqus file", overwrite=overwrite),
        notes=["to use it in an input file add TYPE=U1 to the keyword line *USER ELEMENT"],
    )


def _lines(body: ReducedBody, element: Superelement, units: Units, first: int) -> Iterator[str]:
    count = len(element.names)
    nodes = [first + k for k in range(count + element.num_modes)]
    yield "**"
    yield f"** reduced body {ascii_text(repr(body.name))}"
    yield f"** units {units.statement}"
    for node, i in zip(nodes[:count], element.interfaces, strict=True):
        x, y, z = i.point
        yield f"** node {node}: interface {ascii_text(repr(i.name))} at {x:.9g}, {y:.9g}, {z:.9g}"
    for node, frequency in zip(nodes[count:], element.frequencies, strict=True):
        yield f"** node {node}: mode with interfaces held, {frequency:.6g} Hz"
    yield "** GENERATION OF SUBSTRUCTURE Z1"
    yield f"*USER ELEMENT, NODES={len(nodes):10d}, LINEAR"
    yield "** ELEMENT NODES"
    for start in range(0, len(nodes), NODES_PER_LINE):
        line = ", ".join(f"{node:10d}" for node in nodes[start : start + NODES_PER_LINE])
        more = start + NODES_PER_LINE < len(nodes)
        yield f"** {line}{', ' if more else ''}"
    yield ", ".join(f"{k:10d}" for k in range(1, 7))
    if element.num_modes:
        yield f"{count + 1:10d}, {1:10d}"
    for kind, matrix in (("STIFFNESS", element.stiffness), ("MASS", element.mass)):
        yield f"*MATRIX,TYPE={kind}"
        yield from _triangle(matrix)


def _triangle(A: Array) -> Iterator[str]:
    """Lower triangle row by row, each row on lines of its own; a lone number ends in a comma."""
    for k, row in enumerate(A):
        for start in range(0, k + 1, VALUES_PER_LINE):
            values = row[start : min(start + VALUES_PER_LINE, k + 1)]
            line = ", ".join(f"{value:20.13E}" for value in values)
            yield line + ("," if len(values) == 1 else "")
