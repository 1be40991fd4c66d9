"""Reader of external superelements of Nastran in OUTPUT2 files (`EXTSEOUT` with `DMIGOP2`).

An OUTPUT2 file consists of data blocks with records of words, which have four or eight bytes, in
either byte order. A superelement has

- `XSOP2DIR`: the names of all data blocks;
- `GEOM1...`, `GEOM2...` and `GEOM4...`: grids and coordinate systems, scalar points, sets;
- `EXTDB` for each matrix, in the internal format of DMIG entries. Only the directory has its name,
  such as `MATK` and `MATM`.

Displacements are along the axes (CD) of their grids; they are changed to the basic system.

Sources: MSC Nastran 2022.2, Superelements User's Guide, OUTPUT2 Files, for the data blocks; the
readers of pyNastran and pyyeti for the words of the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.io.imports.full_matrices import FullMatrices, MatrixError, MatrixFileError, in_file
from dolfinx_mbd.io.imports.nastran import checked_path
from dolfinx_mbd.io.imports.nastran_points import (
    Entries,
    matrices_of_entries,
    matrix_names,
    new_model,
    resolve,
)
from dolfinx_mbd.io.imports.reduced_matrices import ReducedMatrices

GRID, SPOINT, DMIG = (4501, 45, 1), (5551, 49, 105), (114, 1, 120)
FORM, TYPE, FIRST_COLUMN = 6, 7, 12  # words of a DMIG record
SQUARE, SYMMETRIC = 1, 6  # forms
REAL_DOUBLE = 2  # largest type that is not complex
SYSTEMS = {(2101, 21, 8): "add_cord2r", (2001, 20, 9): "add_cord2c", (2201, 22, 10): "add_cord2s"}
"""Words that begin a record of bulk data entries; for coordinate systems with pyNastran's name."""


def read_op2(
    path: str | Path,
    *,
    stiffness: str | None = None,
    mass: str | None = None,
    damping: str | None = None,
    names: Sequence[str] | None = None,
) -> ReducedMatrices | FullMatrices:
    """Return the matrices of an external superelement in an OUTPUT2 file (`DMIGOP2`).

    Args:
        path: The file.
        stiffness: Name of the stiffness matrix; see `read_dmig`.
        mass: Name of the mass matrix; see `read_dmig`.
        damping: Name of the damping matrix; see `read_dmig`.
        names: Names of the interfaces, in ascending order of their grids.

    Raises:
        MatrixError: The file has no superelement or is damaged, a matrix is missing or complex, or
            a grid has displacements in a cylindrical or spherical coordinate system.
        OSError: The file cannot be read.
        ImportError: pyNastran is not installed.

    Example:
        A file with the displacements of a run has no superelement:

        >>> from pathlib import Path
        >>> parts = [bytes([2, 0, 0, 0]), b"OUGV1   ", bytes([255] * 4), bytes(4), bytes(4)]
        >>> lengths = [len(part).to_bytes(4, "little") for part in parts]
        >>> data = b"".join(n + part + n for n, part in zip(lengths, parts))
        >>> _ = Path("run.op2").write_bytes(data)
        >>> try:
        ...     matrices = read_op2("run.op2", names=["big_end", "small_end"])
        ... except MatrixError as error:
        ...     print(str(error).split("; ")[1])
        the data blocks are OUGV1
    """
    path = checked_path(path, stiffness, mass, damping)
    model = new_model()
    with in_file(path, "an OUTPUT2 file"):
        file = Op2File(path.read_bytes())
        blocks = _named(list(file.blocks()))
        of_matrices = [block for block in blocks if file.is_dmig(block)]
        matrices = {block.name: block.records[0] for block in of_matrices}
        if len(matrices) < len(of_matrices):
            raise MatrixError("it has matrices of the same name; expected one superelement")
    if not matrices:
        text = ", ".join(dict.fromkeys(b.name for b in blocks)) or "none"
        raise MatrixFileError(
            f"{path}: no matrices of a superelement, which EXTSEOUT(DMIGOP2=unit) writes; the data "
            f"blocks are {text}",
            path=path,
        )
    chosen = matrix_names(path, list(matrices), stiffness, mass, damping)
    with in_file(path, "an OUTPUT2 file of a superelement"):
        K, M, C = (None if n is None else file.entries(n, matrices[n]) for n in chosen)
        for block in blocks:
            for record in block.records:
                file.add_points(model, record)
        resolve(model)
    return matrices_of_entries(path, [K, M, C], model, names)


@dataclass
class Block:
    """A data block: its name and, if it is a table, the words of its records as bytes."""

    name: str
    records: list[bytes] = field(default_factory=list)


def _named(blocks: list[Block]) -> list[Block]:
    """Give the data blocks `EXTDB` their names in the directory `XSOP2DIR`."""
    unnamed = [block for block in blocks if block.name == "EXTDB"]
    if unnamed:
        directory = next((b for b in blocks if b.name == "XSOP2DIR"), Block(""))
        listed = [_text(record) for record in directory.records]
        listed = [name for name in listed if name not in {b.name for b in blocks}]
        if len(listed) != len(unnamed):
            text = f"{len(unnamed)} data blocks EXTDB, and the directory names {len(listed)}"
            raise ValueError(f"it has {text}: {', '.join(listed)}")
        for block, name in zip(unnamed, listed, strict=True):
            block.name = name
    return blocks


def _text(data: bytes) -> str:
    """Return the name in the first two words, with four characters each.

    If a word has eight bytes, four blanks follow its characters.
    """
    if len(data) >= 16 and data[4:8] == data[12:16] == b"    ":
        data = data[:4] + data[8:12]
    return data[:8].decode("latin-1").strip()


class Op2File:
    """The bytes of an OUTPUT2 file, and the type of their words.

    Args:
        data: The bytes.

    Attributes:
        data: The bytes.
        at: Number of bytes that are already read.
        size: Number of bytes of a word: 4 or 8.
        length, integer, real, double: Types of the lengths of records, of words that are integers
            or reals, and of reals in double precision.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        sizes = {order: int.from_bytes(data[:4], order) for order in ("little", "big")}  # type: ignore[arg-type]
        order = next((name for name, size in sizes.items() if size in (4, 8)), None)
        if order is None:
            raise ValueError("it does not begin with a word of 4 or 8 bytes")
        self.size = sizes[order]
        sign = "<" if order == "little" else ">"
        self.length = np.dtype(f"{sign}i4")
        self.integer, self.real = (np.dtype(f"{sign}{kind}{self.size}") for kind in "if")
        self.double = np.dtype(f"{sign}f8")

    def _record(self) -> bytes:
        """Return the next record of Fortran: between two copies of its length in bytes."""
        start = self.at + 4
        length = int(np.frombuffer(self.data, self.length, 1, self.at)[0])
        end = start + length
        if length < 0 or self.data[self.at : start] != self.data[end : end + 4]:
            raise ValueError(f"the record at byte {self.at} is not complete")
        self.at = end + 4
        return self.data[start:end]

    def _key(self) -> int:
        """Return the next key: the number of words of the next record, or 0 or less at an end."""
        (key,) = np.frombuffer(self._record(), self.integer)
        return int(key)

    def _words(self, key: int) -> bytes:
        """Return the next record, which has `key` words."""
        data = self._record()
        if len(data) != key * self.size:
            raise ValueError(f"a record has {len(data)} bytes in place of {key} words")
        return data

    def blocks(self) -> Iterator[Block]:
        """Yield the data blocks in the order of the file."""
        key = self._key()
        if key == 3:  # date, label and version
            self._words(3)
            for _ in range(2):
                self._words(self._key())
            if (self._key(), self._key()) != (-1, 0):
                raise ValueError("its label is damaged")
            key = self._key()
        while key:
            block = Block(_text(self._words(key)))
            self._table(block)
            yield block
            if self.at == len(self.data):  # (some versions write no last key)
                return
            key = self._key()

    def _table(self, block: Block) -> None:
        """Read the records of a data block; the first one is its trailer, the second a header."""
        records: list[bytes] = []
        key = self._key()
        while key:
            if key > 0:
                raise ValueError(f"the data block {block.name!r} is damaged")
            is_column, data, key = False, [], self._key()
            if records:  # all but the trailer state whether they are columns of a matrix
                is_column, key = bool(self._key()), self._key()
            while key > 0:
                data.append(self._record() if is_column else self._words(key))
                key = self._key()
            records.append(b"" if is_column else b"".join(data))
        block.records = [record for record in records[2:] if record]

    def is_dmig(self, block: Block) -> bool:
        """Return whether the first record of a data block is a DMIG."""
        if not block.records:
            return False
        first = np.frombuffer(block.records[0][: 3 * self.size], self.integer)
        return len(first) == 3 and tuple(first) == DMIG

    def entries(self, name: str, record: bytes) -> Entries:
        """Return all values of a DMIG by (point, component) of their row and column."""
        words = np.frombuffer(record, self.integer)
        form, kind = int(words[FORM]), int(words[TYPE])
        if kind > REAL_DOUBLE:
            raise MatrixError(f"matrix {name!r} is complex")
        if form not in (SQUARE, SYMMETRIC) or kind < 1:
            raise MatrixError(f"matrix {name!r} is not square (form {form}, type {kind})")
        real = self.double if kind == REAL_DOUBLE else self.real
        width = max(1, real.itemsize // self.size)  # words of a number
        ends = np.flatnonzero((words[:-1] == -1) & (words[1:] == -1))
        values: Entries = {}
        at = FIRST_COLUMN
        while words[at] != -1:
            column, at = (int(words[at]), int(words[at + 1])), at + 2
            # Two words of -1 end a column, but may also be a part of a number
            candidates = ends[np.searchsorted(ends, at) :]
            end = int(next(e for e in candidates if (e - at) % (2 + width) == 0))
            rows = words[at:end].reshape(-1, 2 + width)
            numbers = np.ascontiguousarray(rows[:, 2:]).view(real)[:, 0]
            for i, j, value in zip(*rows[:, :2].T.tolist(), numbers.tolist(), strict=True):
                values[(i, j), column] = value
                if form == SYMMETRIC:
                    values[column, (i, j)] = value
            at = end + 2
        if len(words) - at > 2:
            raise ValueError(f"the data block {name!r} has more than one matrix")
        return values

    def add_points(self, model: Any, record: bytes) -> None:
        """Add the grids, coordinate systems and scalar points of a record."""
        words = np.frombuffer(record, self.integer)
        kind, words = tuple(words[:3].tolist()), words[3:]
        if kind == SPOINT:
            model.add_spoint(words.tolist())
        elif kind == GRID:
            for head, x, tail in self._cards(words, 2, 3, 3):
                model.add_grid(head[0], x, cp=head[1], cd=tail[0])
        elif kind in SYSTEMS:
            for head, x, _ in self._cards(words, 4, 9, 0):
                getattr(model, SYSTEMS[kind])(head[0], x[:3], x[3:6], x[6:], rid=head[3])

    def _cards(
        self, words: NDArray, before: int, reals: int, after: int
    ) -> Iterator[tuple[list[int], list[float], list[int]]]:
        """Yield the integers, reals and integers of each entry, with reals of one or two words.

        `before`, `reals` and `after` are their numbers. Of the two sizes of reals, the one that
        gives plausible integers and finite reals is used.
        """
        for real in dict.fromkeys((self.real, self.double)):
            middle = before + reals * (real.itemsize // self.size)
            if len(words) % (middle + after):
                continue
            rows = words.reshape(-1, middle + after)
            head, tail = rows[:, :before], rows[:, middle:]
            x = np.ascontiguousarray(rows[:, before:middle]).view(real)
            plausible = (head[:, 0] > 0).all() and (head[:, 1:] >= 0).all() and (tail >= -1).all()
            if plausible and max(head.max(), tail.max(initial=0)) < 10**8 and np.isfinite(x).all():
                yield from zip(head.tolist(), x.tolist(), tail.tolist(), strict=True)
                return
        raise ValueError("the entries of grids or coordinate systems have an unknown length")
