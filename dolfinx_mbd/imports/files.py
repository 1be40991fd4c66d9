"""Full matrices from files: Matrix Market, SciPy's sparse ``.npz``, NumPy's ``.npy``, text."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.imports.matrices import FullMatrices, MatrixError

__all__ = ["read_matrices", "read_matrix", "read_nodes"]

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
    """K, M and the nodes of a free solid.

    Args:
        stiffness: Matrix Market (``.mtx``, ``.mtx.gz``) or ``.npz`` of `scipy.sparse.save_npz`, or
            ``.npy`` of a dense array.
        mass: Likewise.
        nodes: Positions (N, 3); or a file of them: ``.npy``, ``.mtx``, or text with one node a
            line, separated by blanks or commas, x y z or number x y z.
        damping: Likewise to `stiffness`.
        labels: Numbers of the nodes, unless their file has them.
        dofs: Row of each node and component, shape (N, 3), if they do not go node by node.
        triangles: Of the surface, rows of the nodes, shape (nt, 3), for pictures.

    Raises:
        MatrixError: A file is damaged or of another kind, or its numbers are not those of a solid.
        OSError: A file cannot be read.
    """
    if isinstance(nodes, (str, Path)):
        found, positions = read_nodes(nodes)
        labels = found if labels is None else labels
    else:
        positions = np.asarray(nodes, dtype=float)
    parts: dict[str, Any] = {
        "labels": None if labels is None else np.asarray(labels),
        "damping": None if damping is None else read_matrix(damping),
        "triangles": None if triangles is None else np.asarray(triangles),
    }
    K, M = read_matrix(stiffness), read_matrix(mass)
    if dofs is not None:
        return FullMatrices.in_order(K, M, positions, dofs, **parts)
    return FullMatrices(stiffness=K, mass=M, nodes=positions, **parts)


def read_matrix(path: str | Path) -> scipy.sparse.csr_array:
    """A matrix from a file.

    Raises:
        MatrixError: The file is damaged or of another kind.
        OSError: It cannot be read.
    """
    path = Path(path)
    kind = _kind(path)
    try:
        if kind == ".npz":
            return scipy.sparse.csr_array(scipy.sparse.load_npz(path))
        if kind == ".npy":
            return scipy.sparse.csr_array(np.load(path, allow_pickle=False))
        if kind == ".mtx":
            return scipy.sparse.csr_array(scipy.io.mmread(path))
    except OSError:
        raise
    except (ValueError, TypeError, KeyError, EOFError, OverflowError, zipfile.BadZipFile) as error:
        raise MatrixError(f"{path}: not a matrix, or truncated or damaged ({error})") from error
    raise MatrixError(
        f"{path}: unknown kind of file; expected .mtx (Matrix Market), .npz "
        "(scipy.sparse.save_npz) or .npy"
    )


def read_nodes(path: str | Path) -> tuple[NDArray[np.int64] | None, Array]:
    """Numbers, if the file has them, and positions (N, 3) of nodes.

    Raises:
        MatrixError: The file is damaged or of another kind.
        OSError: It cannot be read.
    """
    path = Path(path)
    kind = _kind(path)
    try:
        if kind == ".npy":
            table = np.load(path, allow_pickle=False)
        elif kind == ".mtx":
            table = np.asarray(scipy.sparse.coo_array(scipy.io.mmread(path)).toarray())
        else:
            text = path.read_text(encoding="utf-8").replace(",", " ").replace(";", " ")
            if not text.strip():
                raise ValueError("it is empty")
            table = np.loadtxt(text.splitlines(), ndmin=2, comments=("#", "%", "$"))
        table = np.array(table, dtype=float)
    except OSError:
        raise
    except (ValueError, TypeError, EOFError) as error:
        raise MatrixError(f"{path}: not a table of nodes, or damaged ({error})") from error
    if table.ndim != 2 or table.shape[1] not in (3, 4) or not len(table):
        raise MatrixError(f"{path}: expected columns x y z or number x y z, got {table.shape}")
    if table.shape[1] == 3:
        return None, table
    labels = table[:, 0].astype(np.int64)
    if not np.array_equal(labels, table[:, 0]):
        raise MatrixError(f"{path}: the first of four columns must be the numbers of the nodes")
    return labels, table[:, 1:]


def _kind(path: Path) -> str:
    """The suffix that tells the kind of a file, after a check that the file is there."""
    if not path.exists():
        raise FileNotFoundError(f"no file {str(path)!r}")
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".bz2")]
    return suffixes[-1] if suffixes else ""
