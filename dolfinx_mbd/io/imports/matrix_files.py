"""Readers of full matrices from files of Matrix Market, SciPy (`.npz`) and NumPy (`.npy`)."""

from __future__ import annotations

import bz2
import gzip
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, file_path
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.files import read_text
from dolfinx_mbd.io.imports.full_matrices import (
    FullMatrices,
    MatrixError,
    MatrixFileError,
    in_file,
    whole_numbers,
)

_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
"""Functions that open compressed files, by suffix."""

_FREE_BYTES = 2**27  # size of contents that are always read
_MAX_RATIO = 100  # largest permitted ratio of larger contents to the size of their file


def read_matrices(
    stiffness: str | Path,
    mass: str | Path,
    nodes: str | Path | ArrayLike,
    *,
    damping: str | Path | None = None,
    labels: ArrayLike | None = None,
    dofs: ArrayLike | None = None,
    triangles: ArrayLike | None = None,
) -> FullMatrices:
    """Return the matrices and nodes of a free solid from files.

    Args:
        stiffness: File with K: Matrix Market (`.mtx`, `.mtx.gz`), `scipy.sparse.save_npz` (`.npz`),
            or a dense array (`.npy`).
        mass: File with M.
        nodes: Positions of the nodes, (nodes, 3), or a file with them: `.npy`, `.mtx`, or text
            with the columns x y z or number x y z, separated by blanks or commas.
        damping: File with the damping matrix; by default no damping.
        labels: Numbers of the nodes, (nodes,); by default those in the file, or 0, 1, 2, ...
        dofs: Zero-based row of K for each node and component, (nodes, 3); by default the rows are
            ordered by nodes.
        triangles: Zero-based rows of `nodes` of surface triangles for pictures, shape (nt, 3).

    Raises:
        MatrixFileError: A file is damaged or has an unknown format.
        MatrixError: The matrices do not describe a free solid.
        OSError: A file cannot be read.

    Example:
        >>> import scipy.sparse
        >>> scipy.sparse.save_npz("K.npz", K)
        >>> scipy.sparse.save_npz("M.npz", M)
        >>> matrices = read_matrices("K.npz", "M.npz", x)
    """
    if isinstance(nodes, (str, Path)):
        numbers, positions = read_nodes(nodes)
        labels = numbers if labels is None else labels
    else:
        positions = array("nodes", nodes)
    C = None if damping is None else _read_matrix("damping", damping)
    K, M = _read_matrix("stiffness", stiffness), _read_matrix("mass", mass)
    parts: dict[str, Any] = {"labels": labels, "damping": C, "triangles": triangles}
    if dofs is not None:
        return FullMatrices.in_order(K, M, positions, dofs, **parts)
    return FullMatrices(stiffness=K, mass=M, nodes=positions, **parts)


def _read_matrix(argument: str, file: str | Path) -> scipy.sparse.csr_array:
    """Return the matrix of a file in one of the known formats."""
    path = existing_file(argument, file)
    kind = _kind(path)
    with in_file(path, "a matrix"):
        if kind == ".npz":
            with zipfile.ZipFile(path) as archive:
                _check_size(path, sum(info.file_size for info in archive.infolist()))
            return scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        if kind == ".npy":
            return scipy.sparse.csr_array(np.load(path, allow_pickle=False))
        if kind == ".mtx":
            return read_matrix_market(path)
    formats = ".mtx (Matrix Market), .npz (scipy.sparse.save_npz) or .npy"
    raise MatrixFileError(f"{path}: unknown format; expected {formats}", path=path)


def read_nodes(file: str | Path) -> tuple[NDArray[np.int64] | None, Array]:
    """Return the numbers (or None if the file has none) and the positions (nodes, 3) of nodes."""
    path = existing_file("nodes", file)
    kind = _kind(path)
    with in_file(path, "a table of nodes"):
        if kind == ".npy":
            table = np.load(path, allow_pickle=False)
        elif kind == ".mtx":
            table = read_matrix_market(path).toarray()
        else:
            text = read_text(path, "a table of nodes").replace(",", " ").replace(";", " ")
            if not text.strip():
                raise InputError("it is empty")
            table = np.loadtxt(text.splitlines(), ndmin=2, comments=("#", "%", "$"))
        table = array("its table", table)
        if table.ndim != 2 or table.shape[1] not in (3, 4) or not len(table):
            raise MatrixError(f"expected columns x y z or number x y z, got {table.shape}")
        if table.shape[1] == 3:
            return None, table
        return whole_numbers("the first of four columns", table[:, 0]), table[:, 1:]


def existing_file(argument: str, path: str | Path) -> Path:
    """Return the path of a file; raise an error if it does not exist or is a directory."""
    checked = file_path(argument, path)
    if not checked.exists():
        raise MissingFileError(f"no file {str(path)!r}")
    if checked.is_dir():
        raise MatrixFileError(f"{path}: expected a file, got a directory", path=path)
    return checked


def _kind(path: Path) -> str:
    """Return the suffix of a file, without suffixes of compression such as `.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in _OPEN]
    return suffixes[-1] if suffixes else ""


def read_matrix_market(path: Path) -> scipy.sparse.csr_array:
    """Return a real, general or symmetric matrix from a Matrix Market file (`.gz`, `.bz2` too).

    SciPy's own reader is not used, because it crashes on some damaged files.
    """
    if path.suffix.lower() in _OPEN:
        with _OPEN[path.suffix.lower()](path, "rb") as file:
            size = 0
            while chunk := file.read(2**20):
                size += len(chunk)
                _check_size(path, size)
    with _OPEN.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8") as file:
        words = file.readline().lower().split()
        if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5:
            raise ValueError("its first line is not a Matrix Market header")
        layout, field, symmetry = words[2:]
        if field not in ("real", "double", "integer") or symmetry not in ("general", "symmetric"):
            raise ValueError(f"its matrix is {field} and {symmetry}, not real and symmetric")
        if layout == "coordinate":
            n, m, rows = _sizes(file, 3)
            table = _table(file, rows, 3)
            indices = table[:, :2].astype(np.int64) - 1
            if not ((indices + 1 == table[:, :2]) & (indices >= 0) & (indices < (n, m))).all():
                raise ValueError(f"a row or a column is not a whole number within {n} x {m}")
            A = scipy.sparse.coo_array((table[:, 2], tuple(indices.T)), shape=(n, m)).tocsr()
        elif layout == "array":
            n, m = _sizes(file, 2)
            if symmetry == "general":
                return scipy.sparse.csr_array(_table(file, n * m, 1).reshape(m, n).T)
            dense = np.zeros((n, m))
            column, row = np.triu_indices(n)
            dense[row, column] = _table(file, len(row), 1)[:, 0]
            A = scipy.sparse.csr_array(dense)
        else:
            raise ValueError(f"its layout is {layout!r}, not 'coordinate' or 'array'")
    if symmetry == "general":
        return A
    if n != m:
        raise ValueError(f"its matrix is declared as symmetric and has the shape {A.shape}")
    return (A + A.T - scipy.sparse.diags_array(A.diagonal())).tocsr()


def _check_size(path: Path, size: int) -> None:
    """Raise an error if a compressed file expands to many more bytes than usual matrices."""
    if size > max(_FREE_BYTES, _MAX_RATIO * path.stat().st_size):
        raise ValueError(
            f"its contents are more than {_MAX_RATIO} times as large as the file; if you trust it, "
            "decompress it first"
        )


def _sizes(file: IO[str], count: int) -> list[int]:
    """Return the integers in the first line after the comments."""
    line = next((text for text in file if text.strip() and not text.startswith("%")), "")
    sizes = [int(word) for word in line.split()]
    if len(sizes) != count or min(sizes) < 0:
        raise ValueError(f"the line with its sizes is {line.strip()[:80]!r}")
    return sizes


def _table(file: IO[str], rows: int, columns: int) -> Any:
    """Return the numbers in the remaining lines, shape (rows, columns)."""
    table = np.loadtxt(file, ndmin=2, comments="%") if rows else np.zeros((0, columns))
    if table.shape != (rows, columns):
        raise ValueError(f"expected {rows} lines of {columns} numbers, got a table {table.shape}")
    return table
