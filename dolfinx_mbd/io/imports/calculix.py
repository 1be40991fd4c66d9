"""Reader of the matrices that CalculiX stores with `*FREQUENCY, SOLVER=MATRIXSTORAGE`.

A job `bar` writes the upper triangles of stiffness (`bar.sti`) and mass (`bar.mas`) as lines of
row, column and value, and a file `bar.dof` that contains `node.direction` for each row. The
positions of the nodes are in the input deck.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.io.imports.full_matrices import FullMatrices, MatrixError, MatrixFileError, in_file
from dolfinx_mbd.io.imports.matrix_files import existing_file

_SUFFIXES = (".sti", ".mas", ".dof", ".inp")
_MAX_DEPTH = 50  # largest depth of files that include each other


def read_calculix(job: str | Path, *, nodes: str | Path | None = None) -> FullMatrices:
    r"""Return the matrices and nodes of a free solid from the files of a CalculiX job.

    The deck must have no supports (`*BOUNDARY`), constraints or contact, and one step with
    `*FREQUENCY, SOLVER=MATRIXSTORAGE`. CalculiX has no units; for a deck in mm and t apply
    `in_si(length=1e-3, mass=1e3)` to the result.

    Args:
        job: Name of the job with its folder, such as `"runs/bar"`, or one of its files.
        nodes: Input deck with the `*NODE` lines; by default the deck of the job, `bar.inp`. Files
            that it includes are read as well.

    Raises:
        MatrixFileError: A file is damaged, or a node of the matrices is not in the deck.
        MatrixError: The matrices do not describe a free solid.
        OSError: A file cannot be read.

    Example:
        The files of the block, as CalculiX would write them:

        >>> import scipy.sparse
        >>> from pathlib import Path
        >>> numbers = range(1, len(x) + 1)
        >>> nodes = [f"{k}, {p[0]}, {p[1]}, {p[2]}" for k, p in zip(numbers, x)]
        >>> lines = {".inp": ["*NODE", *nodes]}
        >>> lines[".dof"] = [f"{k}.{direction}" for k in numbers for direction in (1, 2, 3)]
        >>> for suffix, A in {".sti": K, ".mas": M}.items():
        ...     U = scipy.sparse.triu(A).tocoo()
        ...     rows = zip(U.row + 1, U.col + 1, U.data)
        ...     lines[suffix] = [f"{i} {j} {value:.13e}" for i, j, value in rows]
        >>> for suffix in lines:
        ...     _ = Path(f"block{suffix}").write_text("\n".join(lines[suffix]))
        >>> print(f"{read_calculix('block').scalar_mass.sum():.3f} kg")
        15.700 kg
    """
    path = file_path("job", job)
    stem = path.with_suffix("") if path.suffix.lower() in _SUFFIXES else path
    sti, mas, dof = (existing_file("job", f"{stem}{suffix}") for suffix in _SUFFIXES[:3])
    deck = existing_file("nodes", f"{stem}.inp" if nodes is None else nodes)
    with in_file(dof, "a list of node.direction"):
        labels, order = _degrees_of_freedom(dof)
    size = order.size
    matrices = []
    for file in (sti, mas):
        with in_file(file, "a matrix of CalculiX"):
            matrices.append(_symmetric_matrix(file, size))
    positions = _positions(deck)
    numbers = [int(label) for label in labels]
    missing = [number for number in numbers if number not in positions]
    if missing:
        text = (
            f"{deck}: no *NODE line for nodes {missing[:5]} of {dof.name}; give the complete deck"
        )
        text += " with nodes=..., and use no elements with internal nodes (C3D8I)"
        raise MatrixFileError(text, path=deck)
    points = np.array([positions[number] for number in numbers])
    return FullMatrices.in_order(matrices[0], matrices[1], points, order, labels=labels)


def _degrees_of_freedom(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the nodes (nodes,) and the row of each of their displacements (nodes, 3)."""
    rows: dict[int, dict[int, int]] = {}
    for row, word in enumerate(path.read_text(encoding="ascii").split()):
        node, direction = map(int, word.split("."))
        if direction in rows.setdefault(node, {}):
            raise ValueError(f"{word} occurs twice")
        rows[node][direction] = row
    if not rows:
        raise ValueError("it is empty")
    for node, entries in rows.items():
        if set(entries) != {1, 2, 3}:
            directions = ", ".join(map(str, sorted(entries)))
            raise MatrixError(
                f"node {node} has the directions {directions} instead of 1, 2, 3: remove supports "
                "and constraints from the deck (shells, beams and contact are not possible)"
            )
    order = [[rows[node][direction] for direction in (1, 2, 3)] for node in rows]
    return np.array(list(rows), dtype=np.int64), np.array(order, dtype=np.int64)


def _symmetric_matrix(path: Path, size: int) -> scipy.sparse.csr_array:
    """Return a matrix from the entries of its upper triangle."""
    table = np.loadtxt(path, ndmin=2)
    if table.ndim != 2 or table.shape[1] != 3:
        raise ValueError(f"expected lines of row, column and value, got a table {table.shape}")
    i, j = (table[:, k].astype(np.int64) - 1 for k in (0, 1))
    are_integers = (i + 1 == table[:, 0]).all() and (j + 1 == table[:, 1]).all()
    if not are_integers or i.min() < 0 or (i > j).any() or j.max() != size - 1:
        raise ValueError(f"expected the upper triangle of a matrix with {size} rows")
    upper = scipy.sparse.coo_array((table[:, 2], (i, j)), shape=(size, size)).tocsr()
    return upper + upper.T - scipy.sparse.diags_array(upper.diagonal())


def _positions(deck: Path) -> dict[int, Array]:
    """Return the positions of the nodes of an input deck by their numbers."""
    positions: dict[int, Array] = {}
    in_nodes = False
    for path, line in _lines(deck.resolve(), (), set()):
        if line.startswith("*"):
            words = [word.strip().upper() for word in line.split(",")]
            in_nodes = words[0] == "*NODE"
            if in_nodes and any(word.startswith("SYSTEM") for word in words[1:]):
                text = f"{path}: {line}: only rectangular coordinates are possible"
                raise MatrixFileError(text, path=path)
        elif in_nodes:
            with in_file(path, "an input deck of CalculiX"):
                number, *values = [word for word in line.split(",") if word.strip()]
                x = [float(value) for value in values[:3]]
                positions[int(number)] = np.array(x + [0.0] * (3 - len(x)))
    return positions


def _lines(deck: Path, parents: tuple[Path, ...], read: set[Path]) -> Iterator[tuple[Path, str]]:
    """Yield the lines of a deck and of the files that it includes, without comments.

    A file that is included again is not read again: its nodes are known.
    """
    if deck in parents:
        raise MatrixFileError(f"{deck}: the file includes itself", path=deck)
    if len(parents) > _MAX_DEPTH:
        text = f"{deck}: more than {_MAX_DEPTH} files include each other in a chain"
        raise MatrixFileError(text, path=deck)
    if not deck.is_file():
        raise MatrixFileError(f"{deck}: expected a file, not a device or a pipe", path=deck)
    read.add(deck)
    with in_file(deck, "an input deck of CalculiX"):
        lines = deck.read_text(encoding="utf-8", errors="replace").splitlines()
    for text in lines:
        line = text.strip()
        if not line or line.startswith("**"):
            continue
        if line.upper().startswith("*INCLUDE"):
            name = line.partition("=")[2].strip().strip('"')
            path = existing_file("nodes", deck.parent / name).resolve()
            if path not in read or path in (*parents, deck):
                yield from _lines(path, (*parents, deck), read)
        else:
            yield deck, line
