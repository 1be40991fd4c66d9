"""OUTPUT2 files with the data blocks of an external superelement, written word by word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.io.export.superelement import superelement


@dataclass(frozen=True)
class Words:
    """Words of 4 or 8 bytes, in the byte order `<` or `>`.

    A record has its length (4 bytes) before and after its data; a key is a record of one integer.
    """

    size: int = 4
    order: str = "<"

    def integers(self, *values: Any) -> bytes:
        return np.array(values, f"{self.order}i{self.size}").tobytes()

    def reals(self, values: Any) -> bytes:
        return np.asarray(values, f"{self.order}f{self.size}").tobytes()

    def doubles(self, values: Any) -> bytes:
        return np.asarray(values, f"{self.order}f8").tobytes()

    def name(self, text: str) -> bytes:
        """Return a name as two words of four characters each."""
        data = f"{text:<8}".encode("ascii")
        return b"".join(data[k : k + 4].ljust(self.size) for k in (0, 4))

    def record(self, data: bytes) -> bytes:
        length = np.array(len(data), f"{self.order}i4").tobytes()
        return length + data + length

    def keys(self, *values: int) -> bytes:
        return b"".join(self.record(self.integers(value)) for value in values)

    def counted(self, data: bytes, most: int = 10**9) -> bytes:
        """Return a key and a record for each part of a list, with a limited number of words."""
        step = most * self.size
        parts = [data[k : k + step] for k in range(0, len(data), step)]
        return b"".join(self.keys(len(p) // self.size) + self.record(p) for p in parts)

    def block(self, name: str, records: Sequence[bytes], most: int = 10**9) -> bytes:
        """Return a data block with its name, trailer, header and records."""
        data = self.counted(self.name(name)) + self.keys(-1)
        data += self.counted(self.integers(101, 1, 0, 8, 0, 0, 0))
        for k, record in enumerate([self.name(name), *records]):
            data += self.keys(-2 - k, 1, 0) + self.counted(record, most)
        return data + self.keys(-3 - len(records), 1, 0, 0)

    def file(self, blocks: Sequence[bytes], label: bool = True) -> bytes:
        data = b"".join(blocks) + self.keys(0)
        if label:
            text = "NASTRAN FORT TAPE ID CODE - ".encode("ascii")
            words = b"".join(text[k : k + 4].ljust(self.size) for k in range(0, 28, 4))
            # a date, the label and the version
            head = self.counted(self.integers(1, 2, 26)) + self.counted(words)
            data = head + self.counted(self.name("NX2021.1")) + self.keys(-1, 0) + data
        return data

    def dmig(self, A: Any, coordinates: Sequence[tuple[int, int]], kind: int = 2) -> bytes:
        """Return the lower triangle of a symmetric matrix; `kind` is 1 (single) or 2 (double)."""
        data = self.integers(114, 1, 120) + self.name("EXTDB")
        # form 6 (symmetric), types of the numbers in the file and in the matrix, number of columns
        data += self.integers(0, 6, kind, kind, 0, 0, len(coordinates))
        value = self.doubles if kind == 2 else self.reals
        for j, column in enumerate(coordinates):
            rows = [k for k in range(j, len(coordinates)) if A[k, j]]
            if rows:
                data += self.integers(*column)
                data += b"".join(self.integers(*coordinates[k]) + value(A[k, j]) for k in rows)
                data += self.integers(-1, -1)
        return data + self.integers(-1, -1)

    def grids(self, points: Mapping[int, Any], cd: int = 0, double: bool = False) -> bytes:
        real = self.doubles if double else self.reals
        cards = [self.integers(n, 0) + real(x) + self.integers(cd, 0, 0) for n, x in points.items()]
        return self.integers(4501, 45, 1) + b"".join(cards)

    def system(self, number: int, origin: Any, z: Any, x: Any, kind: Any = (2101, 21, 8)) -> bytes:
        """Return a coordinate system: its origin, and a point on its z axis and in its xz plane.

        `kind` is the key of the record, by default that of CORD2R, rectangular systems.
        """
        values = self.reals(np.ravel([origin, z, x]))
        return self.integers(*kind) + self.integers(number, 1, 2, 0) + values

    def superelement(
        self,
        geometry: Sequence[Sequence[bytes]],
        matrices: Mapping[str, bytes],
        most: int = 10**9,
        label: bool = True,
    ) -> bytes:
        """Return the directory, data blocks of the geometry, and the matrices, all called EXTDB."""
        names = [f"GEOM{k}EX" for k in range(1, len(geometry) + 1)] + list(matrices)
        blocks = [self.block("XSOP2DIR", [self.name(n) for n in ["PVT0", *names]])]
        blocks += [self.block("PVT0", [self.integers(1, 2, 3)])]
        blocks += [self.block("EXTDB", records, most) for records in geometry]
        blocks += [self.block("EXTDB", [record], most) for record in matrices.values()]
        return self.file(blocks, label)


def write_op2(path: Path, body: Any, words: Words | None = None, **options: Any) -> None:
    """Write the superelement of a body with the grids 1, 2 ... and the scalar points 101 ...

    Options: `first`, the component of the first row; `double`, whether positions have 8 bytes;
    `kind`, see `Words.dmig`; the others are those of `Words.superelement`.
    """
    words = words or Words()
    element = superelement(body)
    count = len(element.points)
    modes = range(101, 101 + len(element.stiffness) - 6 * count)
    coordinates = [(g, c) for g in range(1, count + 1) for c in range(1, 7)]
    coordinates[0] = (1, options.pop("first", 1))
    coordinates += [(mode, 0) for mode in modes]
    double = options.pop("double", True)
    grids = words.grids(dict(enumerate(element.points, 1)), double=double)
    geometry = [[grids], [words.integers(5551, 49, 105, *modes)]]
    matrices = {"MATK": element.stiffness, "MATM": element.mass, "MATB": element.damping}
    kind = options.pop("kind", 2)
    records = {k: words.dmig(A, coordinates, kind) for k, A in matrices.items() if np.any(A)}
    path.write_bytes(words.superelement(geometry, records, **options))
