"""Export of superelement matrices to Abaqus, Nastran (DMIG and OP4) and Simscape.

The matrices have six coordinates for each interface (along the axes of the body), then one for each
fixed-interface mode. K has six zero eigenvalues, and M is positive definite. The argument
`interfaces` of each function selects interfaces and their order; by default all are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import scipy.io
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import integer
from dolfinx_mbd.io.export.common import ExportReport, Task
from dolfinx_mbd.io.export.superelement import Superelement, superelement
from dolfinx_mbd.io.export.text import ascii_text
from dolfinx_mbd.io.export.units import Units
from dolfinx_mbd.kernels.rotations import quaternion_from_matrix

Array = NDArray[np.float64]

NODES_PER_LINE, VALUES_PER_LINE = 10, 4  # in Abaqus files
WIDTH = 16  # number of characters in a large field of Nastran
LARGEST = 99_999_999  # largest number of a grid or scalar point in Nastran
SYMMETRIC, RECTANGULAR = 6, 2  # Nastran's codes for the form of a matrix
DOUBLE = 2  # Nastran's code for real numbers in double precision
SELECTIONS = {"KAAX": "K2GG", "MAAX": "M2GG", "BAAX": "B2GG"}  # entries of case control


def write_abaqus(
    task: Task, *, interfaces: Sequence[str] | None = None, first_node: int = 1
) -> ExportReport:
    """Write Abaqus matrices (`.mtx`) in the form of `*SUBSTRUCTURE MATRIX OUTPUT`.

    The file defines a linear user element. Each interface is a node with degrees of freedom 1 to 6,
    and each mode is a node with degree of freedom 1. Stiffness and mass are lower triangles.
    Numbers have 14 digits in fields of 20 characters, because Abaqus reads this width. `first_node`
    is the number of the first interface node; the other interface nodes and the modes follow.
    """
    element = superelement(task.body, interfaces)
    first = integer("first_node", first_node, low=1)
    lines = _abaqus_lines(task.body, element, task.report.units, first)
    note = "to use it in an input file add TYPE=U1 to the keyword line *USER ELEMENT"
    return task.save(lines, notes=[note])


def _abaqus_lines(
    body: ReducedBody, element: Superelement, units: Units, first: int
) -> Iterator[str]:
    """Yield the lines of a user element; `first` is the number of its first node."""
    count = len(element.names)
    nodes = [first + k for k in range(count + element.num_modes)]
    yield "**"
    yield f"** reduced body {ascii_text(repr(body.name))}"
    yield f"** units {units.statement}"
    for node, interface in zip(nodes[:count], element.interfaces, strict=True):
        x, y, z = interface.point
        name = ascii_text(repr(interface.name))
        yield f"** node {node}: interface {name} at {x:.9g}, {y:.9g}, {z:.9g}"
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
    """Yield the lines of a lower triangle; a line with a single number ends in a comma."""
    for k, row in enumerate(A):
        for start in range(0, k + 1, VALUES_PER_LINE):
            values = row[start : min(start + VALUES_PER_LINE, k + 1)]
            yield ", ".join(f"{value:20.13E}" for value in values) + "," * (len(values) == 1)


def write_dmig(
    task: Task, *, interfaces: Sequence[str] | None = None, first_point: int = 1
) -> ExportReport:
    """Write Nastran bulk data with `GRID*`, `SPOINT` for modes, `ASET1`, and K, M and C as DMIG.

    Case control selects the symmetric matrices `KAAX`, `MAAX` and, if the body has damping, `BAAX`.
    A field of 16 characters has 10 or 11 digits, so that the six zero eigenvalues of K are zero
    only to this accuracy. `first_point` is the number of the first interface's grid; the other
    grids and the modes follow.
    """
    element = superelement(task.body, interfaces)
    highest = LARGEST - len(element.names) - element.num_modes + 1
    first = integer("first_point", first_point, low=1, high=highest)
    lines = _dmig_lines(task.body, element, task.report.units, first)
    case = f"include it in the bulk data; case control: {_case_control(element)}"
    return task.save(lines, notes=[case, "numbers have 10 digits; OP4 files have 17"])


def _case_control(element: Superelement) -> str:
    """Return the entries of case control that select the matrices."""
    return ", ".join(f"{SELECTIONS[name]} = {name}" for name in element.nastran_matrices())


def _dmig_lines(
    body: ReducedBody, element: Superelement, units: Units, first: int
) -> Iterator[str]:
    """Yield the lines of bulk data; `first` is the number of the first grid."""
    grids = [first + k for k in range(len(element.names))]
    modes = [grids[-1] + 1 + k for k in range(element.num_modes)]
    matrices = element.nastran_matrices()
    yield f"$ reduced body {ascii_text(repr(body.name))}"[:72]
    yield f"$ units {units.statement}"
    yield f"$ case control: {_case_control(element)}"
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
        yield from _dmig_matrix(name, matrix, coordinates)


def _dmig_matrix(name: str, A: Array, coordinates: list[tuple[int, int]]) -> Iterator[str]:
    """Yield the lines of a DMIG matrix: the nonzero entries of its lower triangle by columns."""
    yield f"{'DMIG':<8}{name:<8}{0:>8}{SYMMETRIC:>8}{DOUBLE:>8}{0:>8}"
    for j, (point, component) in enumerate(coordinates):
        rows = j + np.flatnonzero(A[j:, j])
        if len(rows):
            yield f"{'DMIG*':<8}{name:<16}{point:>16}{component:>16}"
        for i in rows:
            row_point, row_component = coordinates[i]
            yield f"{'*':<8}{row_point:>16}{row_component:>16}{field(A[i, j])}"


def field(value: float, letter: str = "D") -> str:
    """Return a number in 16 characters, right-aligned, with the largest possible precision."""
    most_decimals = WIDTH - len("0.") - len("E+0")
    for digits in range(most_decimals, 0, -1):
        mantissa, exponent = f"{value:.{digits}E}".split("E")
        text = f"{mantissa}{letter}{int(exponent):+d}"
        if len(text) <= WIDTH:
            return f"{text:>{WIDTH}}"
    raise AssertionError(f"{value!r} does not fit into a field")


def write_op4(task: Task, *, interfaces: Sequence[str] | None = None) -> ExportReport:
    """Write a Nastran OUTPUT4 text file with `KAAX`, `MAAX` and, if the body has damping, `BAAX`.

    An additional matrix `XYZ` has the points of the interfaces as columns. Numbers have 17 digits.
    As in Nastran's text files, the record of a column contains the count of its numbers.
    """
    element = superelement(task.body, interfaces)
    matrices = {name: (SYMMETRIC, A) for name, A in element.nastran_matrices().items()}
    lines = matrix_lines(matrices | {"XYZ": (RECTANGULAR, element.points.T)})
    return task.save(lines, notes=["OP4 has no comments: the file does not state its units"])


def matrix_lines(matrices: Mapping[str, tuple[int, Array]]) -> Iterator[str]:
    """Yield the lines of an OP4 text file; `matrices` maps each name to a form and a matrix."""
    for name, (form, matrix) in matrices.items():
        rows, columns = matrix.shape
        yield f"{columns:8d}{rows:8d}{form:8d}{DOUBLE:8d}{name:<8s}1P,3E24.16"
        for j, column in enumerate(matrix.T, 1):
            rows_used = np.flatnonzero(column)
            if len(rows_used):
                values = column[rows_used[0] : rows_used[-1] + 1]
                yield f"{j:8d}{rows_used[0] + 1:8d}{len(values):8d}"
                for k in range(0, len(values), 3):
                    yield "".join(f"{value:24.16E}" for value in values[k : k + 3])
        # The end of a matrix is an additional column with one number
        yield f"{columns + 1:8d}{1:8d}{1:8d}"
        yield f"{1.0:24.16E}"


def write_simscape(task: Task, *, interfaces: Sequence[str] | None = None) -> ExportReport:
    """Write a MATLAB v5 file for the block *Reduced Order Flexible Solid* of Simscape Multibody.

    The block's parameters are the variables `origins` (p, 3) and `quaternions` (p, 4; w, x, y, z)
    of the p interface frames in the body frame, `K`, `M` and, if the body has damping, `C`. Other
    variables are `names` (of the interfaces), `frequencies` (m, 1) of the m modes in cycles per
    unit of time, `units` and `description`. The block approximates the coupling of rotation and
    deformation.
    """
    body = task.body
    element = superelement(body, interfaces)
    names = np.array([ascii_text(name) for name in element.names], dtype=object)
    data: dict[str, Any] = {
        "origins": element.points,
        "quaternions": np.array([quaternion_from_matrix(i.axes) for i in element.interfaces]),
        "K": element.stiffness,
        "M": element.mass,
        "frequencies": element.frequencies[:, None],
        "names": names[:, None],
        "units": task.report.units.statement,
        "description": ascii_text(f"reduced body {body.name!r}, reference {body.reference}"),
    }
    if element.damping.any():
        data["C"] = element.damping

    def dump(file: BinaryIO) -> None:
        scipy.io.savemat(file, data, format="5", do_compression=False, oned_as="column")
        file.seek(0)  # replace the date, so that files of the same body are equal
        file.write(b"MATLAB 5.0 MAT-file, written by dolfinx_mbd".ljust(116))

    note = "origins, quaternions, K and M are parameters of Reduced Order Flexible Solid"
    return task.save(dump, notes=[note])
