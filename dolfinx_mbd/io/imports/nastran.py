"""Readers of Nastran matrices in OUTPUT4 files and DMIG bulk data, based on pyNastran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, instance
from dolfinx_mbd.io.imports.full_matrices import FullMatrices, MatrixError, MatrixFileError, in_file
from dolfinx_mbd.io.imports.matrix_files import existing_file
from dolfinx_mbd.io.imports.reduced_matrices import ReducedMatrices
from dolfinx_mbd.optional import optional_module


def read_op4(
    path: str | Path,
    *,
    points: ArrayLike | None = None,
    nodes: ArrayLike | None = None,
    stiffness: str = "KAAX",
    mass: str = "MAAX",
    damping: str | None = None,
    names: Sequence[str] | None = None,
) -> ReducedMatrices | FullMatrices:
    """Return the matrices of an OUTPUT4 file, text or binary.

    Args:
        path: The file.
        points: For a superelement, the points of its interfaces, m, shape (p, 3). The matrices have
            six coordinates for each point, then the modes. By default the columns of the matrix
            `XYZ` of the file; `export` writes this matrix.
        nodes: For a full model, the positions of its nodes, m, shape (N, 3). The matrices have
            three coordinates for each node. By default the file is a superelement.
        stiffness: Name of the stiffness matrix.
        mass: Name of the mass matrix.
        damping: Name of the damping matrix; by default `BAAX` if the file has it.
        names: Names of the interfaces of a superelement.

    Raises:
        MatrixError: A matrix is missing, the file is damaged, or the sizes do not match.
        OSError: The file cannot be read.
        ImportError: pyNastran is not installed.

    Example:
        >>> report = export(body, "block", "op4")
        >>> matrices = read_op4("block.op4", names=["left", "right"])
    """
    path = _checked_path(path, stiffness, mass, damping)
    read = optional_module("pyNastran.op4.op4", "files of Nastran").read_op4

    with in_file(path, "an OP4 file"):
        _check_op4_text(path)
        entries = read(str(path), debug=None)  # objects, or pairs of form and matrix
        matrices = {k: e.data if hasattr(e, "data") else e[1] for k, e in entries.items()}
    K, M = (_matrix_named(path, matrices, name) for name in (stiffness, mass))
    C = matrices.get("BAAX") if damping is None else _matrix_named(path, matrices, damping)
    if nodes is not None:
        return FullMatrices(K, M, array("nodes", nodes), damping=C)
    if points is None:
        if "XYZ" not in matrices:
            text = (
                "OP4 contains no positions; pass points=... of the interfaces for a superelement,"
            )
            raise MatrixFileError(f"{path}: {text} or nodes=... for a full model", path=path)
        points = _dense_array(matrices["XYZ"]).T
    dense = None if C is None else _dense_array(C)
    return ReducedMatrices(_dense_array(K), _dense_array(M), array("points", points), names, dense)


def read_dmig(
    path: str | Path,
    *,
    stiffness: str = "KAAX",
    mass: str = "MAAX",
    damping: str | None = None,
    names: Sequence[str] | None = None,
) -> ReducedMatrices | FullMatrices:
    """Return the matrices of DMIG entries in bulk data with GRID and SPOINT entries.

    The result is a superelement if the matrices have rotations or scalar points, and a full model
    otherwise.

    Args:
        path: The file, with or without executive and case control.
        stiffness: Name of the stiffness matrix.
        mass: Name of the mass matrix.
        damping: Name of the damping matrix; by default `BAAX` if the file has it.
        names: Names of the interfaces of a superelement, in ascending order of their grids.

    Raises:
        MatrixError: A matrix is missing, the file is damaged, a grid has displacements in a
            coordinate system other than the basic one, or the sizes do not match.
        OSError: The file cannot be read.
        ImportError: pyNastran is not installed.

    Example:
        >>> report = export(body, "block", "dmig")
        >>> matrices = read_dmig("block.pch", names=["left", "right"])
    """
    path = _checked_path(path, stiffness, mass, damping)
    model = _bulk_data(path)
    K, M = (_dmig(path, model, name) for name in (stiffness, mass))
    with_damping = damping is not None or "BAAX" in model.dmig
    C = _dmig(path, model, damping or "BAAX") if with_damping else None
    used = sorted({key for A in (K, M) for row in A for key in row})
    scalars = [key for key in used if key[0] in model.spoints]
    grids = sorted({point for point, _ in used if point not in model.spoints})
    unknown = [g for g in grids if g not in model.nodes]
    if unknown:
        raise MatrixError(f"{path}: the matrices have points {unknown[:5]} without GRID or SPOINT")
    rotated = [g for g in grids if model.nodes[g].Cd() not in (0, -1)]
    if rotated:
        text = f"grids {rotated[:5]} have a displacement coordinate system (CD)"
        raise MatrixError(f"{path}: {text}; write the matrices in the basic system")
    positions = np.array([model.nodes[g].get_position() for g in grids], dtype=float)
    full = not scalars and all(component <= 3 for _, component in used)
    order = [(g, c) for g in grids for c in range(1, 4 if full else 7)] + scalars
    with in_file(path, "bulk data"):
        K_sorted, M_sorted = _sorted_matrix(K, order), _sorted_matrix(M, order)
        C_sorted = None if C is None else _sorted_matrix(C, order)
    if full:
        return FullMatrices(K_sorted, M_sorted, positions, np.array(grids), damping=C_sorted)
    labels = names if names is not None else [f"grid {g}" for g in grids]
    return ReducedMatrices(K_sorted, M_sorted, positions, labels, C_sorted)


def _checked_path(path: str | Path, stiffness: str, mass: str, damping: str | None) -> Path:
    """Return the path of an existing file, after a type check of the names of matrices."""
    instance("stiffness", stiffness, str)
    instance("mass", mass, str)
    instance("damping", damping, (str, type(None)))
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
            complete, last, sparse = missing == last == 0, int(line[:8]) + 1, False
        elif len(words) == 3 and all(map(str.isdecimal, words)):
            complete, missing = missing == 0, int(words[2])
            sparse = sparse or words[1] == "0"
            last = 0 if int(words[0]) == last else last
        else:
            missing -= line.upper().count("E")
            complete = missing >= 0
        if sparse:
            missing = 0
        elif not complete:
            raise ValueError(f"line {number}: a column has too few or too many values")
    if missing or last:
        raise ValueError("the last matrix is not complete")


def _dense_array(A: Any) -> Array:
    return np.asarray(A.toarray() if hasattr(A, "toarray") else A, dtype=float)


def _matrix_named(path: Path, matrices: dict[str, Any], name: str) -> Any:
    if name not in matrices:
        names = ", ".join(map(repr, matrices)) or "none"
        raise MatrixFileError(f"{path}: no matrix {name!r}; the file has {names}", path=path)
    return matrices[name]


Entries = dict[tuple[tuple[int, int], tuple[int, int]], float]


def _bulk_data(path: Path) -> Any:
    BDF = optional_module("pyNastran.bdf.bdf", "files of Nastran").BDF
    text = path.read_text(encoding="utf-8", errors="replace").upper()
    model = BDF(debug=None)
    with in_file(path, "bulk data"):
        model.read_bdf(str(path), punch="BEGIN BULK" not in text, xref=False)
        model.cross_reference(
            xref_elements=False, xref_nodes_with_elements=False, xref_properties=False,
            xref_masses=False, xref_materials=False, xref_loads=False, xref_constraints=False,
            xref_aero=False, xref_sets=False, xref_optimization=False,
        )  # fmt: skip
    return model


def _dmig(path: Path, model: Any, name: str) -> Entries:
    """Return all entries of a symmetric DMIG by (point, component) of their row and column."""
    card = _matrix_named(path, dict(model.dmig), name)
    if card.is_complex:
        raise MatrixError(f"{path}: matrix {name!r} is complex")
    entries: Entries = {}
    for row, column, value in zip(card.GCi, card.GCj, card.Real, strict=True):
        i, j = (int(row[0]), int(row[1])), (int(column[0]), int(column[1]))
        entries[i, j] = float(value)
        if card.matrix_form == 6:
            entries[j, i] = float(value)
    return entries


def _sorted_matrix(entries: Entries, order: list[tuple[int, int]]) -> Any:
    index = {key: k for k, key in enumerate(order)}
    missing = {key for pair in entries for key in pair} - set(index)
    if missing:
        raise MatrixError(f"only one of the matrices has the coordinates {sorted(missing)[:5]}")
    rows, columns = ([index[pair[k]] for pair in entries] for k in (0, 1))
    shape = len(order), len(order)
    return scipy.sparse.csr_array((list(entries.values()), (rows, columns)), shape=shape)
