"""Reader of Matrix Market files, because SciPy's reader crashes on some damaged files."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse

__all__ = ["read_matrix_market"]

_OPEN: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}


def read_matrix_market(path: Path) -> scipy.sparse.csr_array:
    """Return a real, general or symmetric matrix from a Matrix Market file (`.gz`, `.bz2` too)."""
    with _OPEN.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8") as file:
        words = file.readline().lower().split()
        if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5:
            raise ValueError("its first line is not a Matrix Market header")
        layout, field, symmetry = words[2:]
        if field not in ("real", "double", "integer") or symmetry not in ("general", "symmetric"):
            raise ValueError(f"its matrix is {field} and {symmetry}, not real and symmetric")
        if layout == "coordinate":
            return _coordinate(file, symmetry == "symmetric")
        if layout == "array":
            return _array(file, symmetry == "symmetric")
    raise ValueError(f"its layout is {layout!r}, not 'coordinate' or 'array'")


def _sizes(file: IO[str], count: int) -> list[int]:
    """Return the integers of the line after the comments."""
    line = next((text for text in file if text.strip() and not text.startswith("%")), "")
    sizes = [int(word) for word in line.split()]
    if len(sizes) != count or min(sizes) < 0:
        raise ValueError(f"its line of sizes is {line.strip()[:80]!r}")
    return sizes


def _table(file: IO[str], rows: int, columns: int) -> Any:
    table = np.loadtxt(file, ndmin=2, comments="%") if rows else np.zeros((0, columns))
    if table.shape != (rows, columns):
        raise ValueError(f"expected {rows} lines of {columns} numbers, got a table {table.shape}")
    return table


def _coordinate(file: IO[str], symmetric: bool) -> scipy.sparse.csr_array:
    n, m, rows = _sizes(file, 3)
    table = _table(file, rows, 3)
    indices, values = table[:, :2].astype(np.int64) - 1, table[:, 2]
    if not ((indices + 1 == table[:, :2]) & (indices >= 0) & (indices < (n, m))).all():
        raise ValueError(f"a row or a column is not a whole number within {n} x {m}")
    A = scipy.sparse.coo_array((values, (indices[:, 0], indices[:, 1])), shape=(n, m)).tocsr()
    return _mirrored(A) if symmetric else A


def _array(file: IO[str], symmetric: bool) -> scipy.sparse.csr_array:
    n, m = _sizes(file, 2)
    if not symmetric:
        return scipy.sparse.csr_array(_table(file, n * m, 1).reshape(m, n).T)
    A = np.zeros((n, m))
    column, row = np.triu_indices(n)
    A[row, column] = _table(file, len(row), 1)[:, 0]
    return _mirrored(scipy.sparse.csr_array(A))


def _mirrored(A: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return a symmetric matrix from its lower or upper triangle."""
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"its matrix is declared as symmetric and has the shape {A.shape}")
    return (A + A.T - scipy.sparse.diags_array(A.diagonal())).tocsr()
