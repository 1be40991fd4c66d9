"""Readers of full matrices: Matrix Market, SciPy's sparse `.npz`, NumPy's `.npy`, text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, file_path
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.imports.matrices import (
    FullMatrices,
    MatrixError,
    MatrixFileError,
    in_file,
    whole_numbers,
)
from dolfinx_mbd.imports.matrix_market import read_matrix_market

__all__ = ["existing", "read_matrices", "read_matrix", "read_nodes"]

Array = NDArray[np.float64]


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
        stiffness: File of K: Matrix Market (`.mtx`, `.mtx.gz`), `.npz` of `scipy.sparse.save_npz`,
            or `.npy` of a dense array.
        mass: File of M.
        nodes: Positions of the nodes, shape (N, 3), or a file of them: `.npy`, `.mtx`, or text with
            the columns x y z or number x y z, separated by blanks or commas.
        damping: File of the damping matrix; by default no damping.
        labels: Numbers of the nodes, shape (N,); by default those of the file, or 0 ... N-1.
        dofs: Row of each node and component, shape (N, 3); by default ordered by nodes.
        triangles: Triangles of the surface, as rows of the nodes, shape (nt, 3); only for pictures.

    Raises:
        MatrixFileError: A file is damaged or has an unknown format.
        MatrixError: The matrices are not those of a free solid.
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
    parts: dict[str, Any] = {
        "labels": labels,
        "damping": None if damping is None else read_matrix(damping, "damping"),
        "triangles": triangles,
    }
    K, M = read_matrix(stiffness, "stiffness"), read_matrix(mass, "mass")
    if dofs is not None:
        return FullMatrices.in_order(K, M, positions, dofs, **parts)
    return FullMatrices(stiffness=K, mass=M, nodes=positions, **parts)


def read_matrix(path: str | Path, argument: str = "path") -> scipy.sparse.csr_array:
    """Return a matrix from a file, see `read_matrices`; `argument` is its name in messages."""
    path = existing(argument, path)
    kind = _kind(path)
    with in_file(path, "a matrix"):
        if kind == ".npz":
            return scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        if kind == ".npy":
            return scipy.sparse.csr_array(np.load(path, allow_pickle=False))
        if kind == ".mtx":
            return read_matrix_market(path)
    raise MatrixFileError(
        f"{path}: unknown format; expected .mtx (Matrix Market), .npz "
        "(scipy.sparse.save_npz) or .npy",
        path=path,
    )


def read_nodes(path: str | Path) -> tuple[NDArray[np.int64] | None, Array]:
    """Return the numbers of nodes, or None if the file has none, and their positions (N, 3)."""
    path = existing("nodes", path)
    kind = _kind(path)
    with in_file(path, "a table of nodes"):
        if kind == ".npy":
            table = np.load(path, allow_pickle=False)
        elif kind == ".mtx":
            table = read_matrix_market(path).toarray()
        else:
            text = path.read_text(encoding="utf-8").replace(",", " ").replace(";", " ")
            if not text.strip():
                raise InputError("it is empty")
            table = np.loadtxt(text.splitlines(), ndmin=2, comments=("#", "%", "$"))
        table = array("its table", table)
        if table.ndim != 2 or table.shape[1] not in (3, 4) or not len(table):
            raise MatrixError(f"expected columns x y z or number x y z, got {table.shape}")
        if table.shape[1] == 3:
            return None, table
        return whole_numbers("the first of four columns", table[:, 0]), table[:, 1:]


def existing(argument: str, path: str | Path) -> Path:
    """Return the path of a file; raise an error if it does not exist or is a directory."""
    checked = file_path(argument, path)
    if not checked.exists():
        raise MissingFileError(f"no file {str(path)!r}")
    if checked.is_dir():
        raise MatrixFileError(f"{path}: expected a file, got a directory", path=path)
    return checked


def _kind(path: Path) -> str:
    """Return the suffix of a file without the suffixes of compression."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2")]
    return suffixes[-1] if suffixes else ""
