"""Abaqus substructure matrices (`.mtx`) in the form of `*SUBSTRUCTURE MATRIX OUTPUT`.

The file defines a linear user element. It has one node for each interface, with the degrees of
freedom 1 to 6 along the axes of the body, and one node for each fixed-interface mode, with degree
of freedom 1. Stiffness and mass are lower triangles. Numbers have 14 digits in 20 characters, the
width that Abaqus reads. To use the element in an input file add `TYPE=U1` to its keyword line.
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

__all__ = ["write"]

Array = NDArray[np.float64]

NODES_PER_LINE, VALUES_PER_LINE = 10, 4


def write(
    task: Task, *, interfaces: Sequence[str] | None = None, first_node: int = 1
) -> ExportReport:
    """Write the matrices of a superelement with some interfaces, in their order; by default all.

    `first_node` is the number of the first interface's node; other nodes follow, then modes.
    """
    element = superelement(task.body, interfaces)
    first = integer("first_node", first_node, low=1)
    lines = _lines(task.body, element, task.report.units, first)
    note = "to use it in an input file add TYPE=U1 to the keyword line *USER ELEMENT"
    return task.save(lines, notes=[note])


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
        yield f"** node {node}: fixed-interface mode, {frequency:.6g} Hz"
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
    """Yield the lower triangle; rows start on new lines, single numbers end in a comma."""
    for k, row in enumerate(A):
        for start in range(0, k + 1, VALUES_PER_LINE):
            values = row[: k + 1][start : start + VALUES_PER_LINE]
            yield ", ".join(f"{value:20.13E}" for value in values) + "," * (len(values) == 1)
