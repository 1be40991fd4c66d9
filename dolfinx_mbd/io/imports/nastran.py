"""Readers of Nastran matrices in OUTPUT4 files and DMIG bulk data, based on pyNastran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, instance
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.imports.full_matrices import FullMatrices, MatrixError, MatrixFileError, in_file
from dolfinx_mbd.io.imports.matrix_files import existing_file
from dolfinx_mbd.io.imports.nastran_points import (
    Entries,
    matrices_of_entries,
    matrices_of_points,
    matrix_names,
    read_bulk_data,
    retained,
)
from dolfinx_mbd.io.imports.reduced_matrices import ReducedMatrices
from dolfinx_mbd.optional import optional_module

SYMMETRIC = 6  # form of a matrix


def read_op4(
    path: str | Path,
    *,
    points: ArrayLike | None = None,
    nodes: ArrayLike | None = None,
    bulk: str | Path | None = None,
    stiffness: str | None = None,
    mass: str | None = None,
    damping: str | None = None,
    names: Sequence[str] | None = None,
) -> ReducedMatrices | FullMatrices:
    """Return the matrices of an OUTPUT4 file, text or binary.

    Args:
        path: The file.
        points: For a superelement, the points of its interfaces, m, shape (p, 3). The matrices have
            six coordinates for each point, then the modes. By default the columns of the matrix
            `XYZ` of the file; `export` writes this matrix.
        nodes: For a full model, the positions of its nodes, m, shape (nodes, 3). The matrices have
            three coordinates for each node. By default the file is a superelement.
        bulk: In place of `points`, the punch file (`.pch`) that Nastran writes for the same
            superelement (`EXTSEOUT` with `EXTBULK` and `MATOP4`): its grids, their displacement
            coordinate systems and the analysis set.
        stiffness: Name of the stiffness matrix; see `read_dmig`.
        mass: Name of the mass matrix; see `read_dmig`.
        damping: Name of the damping matrix; see `read_dmig`.
        names: Names of the interfaces of a superelement, with `bulk` in ascending order of their
            grids.

    Raises:
        MatrixError: A matrix is missing, the file is damaged, or the sizes do not match.
        InputError: More than one of `points`, `nodes` and `bulk`.
        OSError: The file cannot be read.
        ImportError: pyNastran is not installed.

    Example:
        >>> report = export(body, "block", "op4")
        >>> matrices = read_op4("block.op4", names=["left", "right"])
    """
    path = checked_path(path, stiffness, mass, damping)
    if sum(value is not None for value in (points, nodes, bulk)) > 1:
        raise InputError("pass only one of points, nodes and bulk")
    read = optional_module("pyNastran.op4.op4", "files of Nastran").read_op4

    with in_file(path, "an OP4 file"):
        _check_op4_text(path)
        entries = read(str(path), debug=None)  # objects, or pairs of form and matrix
        matrices = {k: e.data if hasattr(e, "data") else e[1] for k, e in entries.items()}
    chosen = matrix_names(path, list(matrices), stiffness, mass, damping)
    K, M = matrices[chosen[0]], matrices[chosen[1]]
    C = None if chosen[2] is None else matrices[chosen[2]]
    if damping is None and C is not None and C.shape != K.shape:
        C = None  # Nastran writes a matrix of zeros with one row
    if bulk is not None:
        return _with_bulk_data(path, existing_file("bulk", bulk), [K, M, C], names)
    if nodes is not None:
        return FullMatrices(K, M, array("nodes", nodes), damping=C)
    if points is None:
        if "XYZ" not in matrices:
            text = (
                "OP4 contains no positions; pass bulk=... or points=... of the interfaces for a "
                "superelement,"
            )
            raise MatrixFileError(f"{path}: {text} or nodes=... for a full model", path=path)
        points = _dense_array(matrices["XYZ"]).T
    dense = None if C is None else _dense_array(C)
    return ReducedMatrices(_dense_array(K), _dense_array(M), array("points", points), names, dense)


def _with_bulk_data(
    path: Path, bulk: Path, matrices: list[Any], names: Sequence[str] | None
) -> ReducedMatrices | FullMatrices:
    """Return the superelement whose analysis set is in bulk data."""
    model = read_bulk_data(bulk)
    coordinates = retained(model)
    shapes = {A.shape for A in matrices if A is not None}
    if shapes != {(len(coordinates),) * 2}:
        text = f"the matrices have the shapes {sorted(shapes)}, and {bulk} has {len(coordinates)}"
        raise MatrixError(f"{path}: {text} coordinates in its analysis set (ASET, QSET)")
    dense = [None if A is None else _dense_array(A) for A in matrices]
    return matrices_of_points(path, dense, coordinates, model, names)


def read_dmig(
    path: str | Path,
    *,
    stiffness: str | None = None,
    mass: str | None = None,
    damping: str | None = None,
    names: Sequence[str] | None = None,
) -> ReducedMatrices | FullMatrices:
    """Return the matrices of DMIG entries in bulk data with GRID and SPOINT entries.

    The result is a superelement if the matrices have rotations or scalar points, and a full model
    otherwise. Displacements along other rectangular axes (CD) are changed to the basic system.

    Args:
        path: The file, with or without executive and case control, or the punch file of one
            external superelement.
        stiffness: Name of the stiffness matrix; by default the first of `KAAX`, `KAA`, `KXX` and
            `MATK` that the file has.
        mass: Name of the mass matrix; by default `MAAX`, `MAA`, `MXX` or `MATM`.
        damping: Name of the damping matrix; by default `BAAX`, `BAA`, `BXX` or `MATB` if the file
            has it.
        names: Names of the interfaces of a superelement, in ascending order of their grids.

    Raises:
        MatrixError: A matrix is missing, the file is damaged, a grid has displacements in a
            cylindrical or spherical coordinate system, or the sizes do not match.
        OSError: The file cannot be read.
        ImportError: pyNastran is not installed.

    Example:
        >>> report = export(body, "block", "dmig")
        >>> matrices = read_dmig("block.pch", names=["left", "right"])
    """
    path = checked_path(path, stiffness, mass, damping)
    model = read_bulk_data(path)
    chosen = matrix_names(path, list(model.dmig), stiffness, mass, damping)
    matrices = [None if name is None else _dmig(path, model, name) for name in chosen]
    return matrices_of_entries(path, matrices, model, names)


def checked_path(
    path: str | Path, stiffness: str | None, mass: str | None, damping: str | None
) -> Path:
    """Return the path of an existing file, after a type check of the names of matrices."""
    for argument, name in (("stiffness", stiffness), ("mass", mass), ("damping", damping)):
        instance(argument, name, (str, type(None)))
    return existing_file("path", path)


def _check_op4_text(path: Path) -> None:
    """Check the number of values in each column of the dense matrices of a text file.

    Without this check pyNastran reads missing values as zeros.
    """
    with path.open("rb") as file:
        if b"\0" in file.read(16):  # a binary file states the length of each record
            return
    missing = 0  # values that the current column still needs
    last = 0  # number of the dummy column that ends the current matrix; 0 after this column
    sparse = False
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        words = line.split()
        fields = [line[k : k + 8].strip().lstrip("+-") for k in range(0, 32, 8)]
        if all(map(str.isdecimal, fields)):  # columns, rows, form, type, name of a matrix
            complete = missing == last == 0
            last, sparse = int(line[:8]) + 1, False
        elif len(words) == 3 and all(map(str.isdecimal, words)):  # column, first row, count
            complete = missing == 0
            missing = int(words[2])
            sparse = sparse or words[1] == "0"
            last = 0 if int(words[0]) == last else last
        else:
            missing -= line.upper().count("E")  # each number has an exponent
            complete = missing >= 0
        if sparse:
            missing = 0
        elif not complete:
            raise ValueError(f"line {number}: a column has too few or too many values")
    if missing or last:
        raise ValueError("the last matrix is not complete")


def _dense_array(A: Any) -> Array:
    """Return a dense array of a dense or sparse matrix."""
    return np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=float)


def _dmig(path: Path, model: Any, name: str) -> Entries:
    """Return all entries of a symmetric DMIG by (point, component) of their row and column."""
    card = model.dmig[name]
    if card.is_complex:
        raise MatrixError(f"{path}: matrix {name!r} is complex")
    entries: Entries = {}
    for row, column, value in zip(card.GCi, card.GCj, card.Real, strict=True):
        i, j = (int(row[0]), int(row[1])), (int(column[0]), int(column[1]))
        entries[i, j] = float(value)
        if card.matrix_form == SYMMETRIC:
            entries[j, i] = float(value)
    return entries
