"""Reader of the stiffness and mass matrices of Ansys Mechanical APDL, by ansys-mapdl-reader.

A modal analysis with `WRFULL` writes a file `.full` with the upper triangles of the matrices, and
the node and direction of each row. The positions of the nodes are in the results (`.rst`) or in an
archive of the mesh (`.cdb`, by `CDWRITE`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array
from dolfinx_mbd.io.imports.full_matrices import (
    FullMatrices,
    MatrixError,
    MatrixFileError,
    in_file,
    whole_numbers,
)
from dolfinx_mbd.io.imports.matrix_files import existing_file, read_nodes
from dolfinx_mbd.optional import optional_module

MESH_SUFFIXES = (".rst", ".rth", ".cdb", ".dat")  # files of Ansys with positions of nodes


def read_ansys(
    path: str | Path, nodes: str | Path | ArrayLike, *, labels: ArrayLike | None = None
) -> FullMatrices:
    """Return the matrices and nodes of a free solid from a `.full` file of Ansys.

    The analysis must have no supports, constraint equations, contact or rotated nodes. Ansys has no
    units; for a model in mm and t apply `in_si(length=1e-3, mass=1e3)` to the result.

    Args:
        path: The file, written by a modal analysis of a free body (`WRFULL,1` before `SOLVE`).
        nodes: Positions of the nodes, shape (nodes, 3), or a file with them: results (`.rst`), an
            archive of the mesh (`.cdb`), or a table as in `read_matrices` with the columns number,
            x, y, z. Nodes that are not in the matrices are ignored.
        labels: Numbers of the nodes in Ansys, (nodes,), if `nodes` is an array; by default 1 ...
            N.

    Raises:
        MatrixFileError: A file is damaged, or a node of the matrices has no position.
        MatrixError: The matrices do not describe a free solid.
        OSError: A file cannot be read.
        ImportError: ansys-mapdl-reader is not installed.

    Example:
        The example of the reader is a clamped beam, which is no free body:

        >>> from ansys.mapdl.reader import examples
        >>> try:
        ...     matrices = read_ansys(examples.fullfile, examples.rstfile)
        ... except MatrixError as error:
        ...     print(str(error).split(": ")[1])
        the analysis has supports or other constraints at 63 degrees of freedom of 21 nodes
    """
    full, dofs, K, M = read_full(path)
    file = existing_file("path", path)
    if len(full.const):
        points = len(np.unique(np.asarray(full.const)[:, 0]))
        text = (
            f"{file}: the analysis has supports or other constraints at {len(full.const)} degrees "
            f"of freedom of {points} nodes: write the file without them; the interfaces of "
            "reduce_matrices take their place"
        )
        raise MatrixFileError(text, path=file)
    numbers, order = np.unique(dofs[:, 0]), np.lexsort((dofs[:, 1], dofs[:, 0]))
    components = np.tile(np.arange(3), len(numbers))
    if len(order) != 3 * len(numbers) or (dofs[order, 1] != components).any():
        text = (
            f"{file}: the matrices do not have the displacements x, y and z of each node: use "
            "solid elements without constraint equations, coupling or contact"
        )
        raise MatrixFileError(text, path=file)
    known, positions = _positions(nodes, labels)
    row = {int(label): k for k, label in enumerate(known)}
    missing = [int(number) for number in numbers if int(number) not in row]
    if missing:
        text = f"{file}: no position of the nodes {missing[:5]} in {nodes!r:.80}"
        raise MatrixFileError(text, path=file)
    places = positions[[row[int(number)] for number in numbers]]
    with in_file(file, "matrices of a free solid"):
        return FullMatrices.in_order(K, M, places, order.reshape(-1, 3), labels=numbers)


def read_full(path: str | Path) -> tuple[Any, NDArray[np.int64], Any, Any]:
    """Return an open `.full` file, the node and direction (0, 1, 2) of each row, and K and M.

    Args:
        path: The file.
    """
    reader = optional_module("ansys.mapdl.reader", "files of Ansys")
    file = existing_file("path", path)
    with in_file(file, "a .full file of Ansys"):
        full = reader.read_binary(str(file))
        if not hasattr(full, "load_km"):
            raise ValueError(f"it is a {type(full).__name__}")
        _check_records(file, full)
        dofs, *triangles = full.load_km(as_sparse=True)
        K, M = (A + scipy.sparse.triu(A, 1).T for A in triangles)
    return full, np.asarray(dofs, dtype=np.int64), K.tocsr(), M.tocsr()


def _check_records(file: Path, full: Any) -> None:
    """Raise an error if the chain of records is broken, at which the reader ends the process.

    A record has its length as a number of integers, its kind, its data, and its length again.
    """
    header, integers = full._header, np.fromfile(file, dtype="<i4")
    end_of_file = int(header["ptrENDl"]) + (int(header["ptrENDh"]) << 32)
    start_of_matrix = int(header["ptrSTFl"]) + (int(header["ptrSTFh"]) << 32)
    size, place = len(integers), 0
    while place < min(end_of_file, size):
        last = place + 2 + int(integers[place])
        if not place < last < size or integers[last] != integers[place]:
            raise ValueError(f"the record at byte {4 * place} is damaged")
        place = last + 1
    if place < end_of_file or not 0 < start_of_matrix < end_of_file:
        raise ValueError(f"it has {4 * size} of at least {4 * end_of_file} bytes")


def _positions(nodes: Any, labels: ArrayLike | None) -> tuple[NDArray[np.int64], Array]:
    """Return numbers and positions (nodes, 3) of nodes from an array or a file.

    `labels` are the numbers of the nodes of an array.
    """
    if not isinstance(nodes, (str, Path)):
        points = array("nodes", nodes, (None, 3))
        numbers = whole_numbers(
            "labels", np.arange(1, len(points) + 1) if labels is None else labels
        )
        if numbers.shape != (len(points),) or len(np.unique(numbers)) < len(points):
            text = f"labels must be {len(points)} different numbers of nodes"
            raise MatrixError(text, argument="labels", value=labels)
        return numbers, points
    file = existing_file("nodes", nodes)
    if file.suffix.lower() not in MESH_SUFFIXES:
        first_column, points = read_nodes(file)
        if first_column is None:
            text = f"{file}: the table has no numbers of nodes as its first column"
            raise MatrixFileError(text, path=file)
        return first_column, points
    reader = optional_module("ansys.mapdl.reader", "files of Ansys")
    with in_file(file, "results or an archive of Ansys"):
        if file.suffix.lower() in (".rst", ".rth"):
            mesh = reader.read_binary(str(file)).mesh
            return np.asarray(mesh.nnum, dtype=np.int64), np.array(mesh.nodes[:, :3], dtype=float)
        archive = reader.Archive(str(file), read_parameters=False, parse_vtk=False)
        return np.asarray(archive.nnum, dtype=np.int64), np.array(archive.nodes[:, :3], dtype=float)
