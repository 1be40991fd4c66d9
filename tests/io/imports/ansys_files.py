"""A writer of `.full` files of free solids, in the records that ansys-mapdl-reader expects.

The headers are those of the reader's example; see test_ansys.py. A row of a matrix consists of two
records: the column numbers after the diagonal, followed by that of the diagonal, and the values in
this order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from ansys.mapdl.reader import examples
from ansys.mapdl.reader.full import SYMBOLIC_FULL_HEADER_KEYS

INTEGERS, DOUBLES = -(2**31), 0  # kinds of records


def _record(data: np.ndarray, kind: int = INTEGERS) -> np.ndarray:
    """Return a record as integers: its length, its kind, its data, and its length."""
    words = np.ascontiguousarray(data).view("<i4")
    return np.concatenate([[len(words), kind], words, [len(words)]]).astype("<i4")


def _rows(matrix: Any) -> np.ndarray:
    """Return the records of the upper triangle of a symmetric matrix."""
    upper, diagonal = scipy.sparse.triu(matrix, 1).tocsr(), matrix.diagonal()
    upper.sort_indices()
    records = []
    for k in range(upper.shape[0]):
        part = slice(upper.indptr[k], upper.indptr[k + 1])
        records.append(_record(np.append(upper.indices[part], k).astype("<i4") + 1))
        records.append(_record(np.append(upper.data[part], diagonal[k]), DOUBLES))
    return np.concatenate(records)


def write_full(path: Path, stiffness: Any, mass: Any, numbers: np.ndarray) -> Path:
    """Write matrices with three displacements at each node, whose numbers are given."""
    example = np.frombuffer(Path(examples.fullfile).read_bytes(), dtype="<i4")
    # Each of the two headers is a record of 100 words, with 2 words before and 1 after them.
    standard, header = example[:103], example[103:206].copy()
    size, count = stiffness.shape[0], len(numbers)
    start = np.concatenate(
        [
            _record(np.array([1, 2, 3], dtype="<i4")),
            _record(numbers.astype("<i4")),
        ]
    )
    K, M = _rows(stiffness), _rows(mass)
    degrees = np.concatenate(
        [
            _record(np.full(count, 3, dtype="<i4")),
            _record(np.tile(np.arange(1, 4, dtype="<i4"), count)),
        ]
    )
    places = {"ptrSTFl": len(standard) + len(header) + len(start)}
    places["ptrMASl"] = places["ptrSTFl"] + len(K)
    places["ptrDOFl"] = places["ptrMASl"] + len(M)
    places["ptrENDl"] = places["ptrDOFl"] + len(degrees)
    matrices = {"ntermKl": stiffness, "ntermMl": mass}
    terms = {key: scipy.sparse.triu(A, 1).nnz + size for key, A in matrices.items()}
    for key, value in {**places, **terms, "neqn": size, "nNodes": count}.items():
        header[2 + SYMBOLIC_FULL_HEADER_KEYS.index(key)] = value
    path.write_bytes(np.concatenate([standard, header, start, K, M, degrees]).tobytes())
    return path
