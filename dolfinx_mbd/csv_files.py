"""Tables of numbers as comma-separated values."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.files import write_atomically

__all__ = ["write_table"]


def write_table(
    path: str | Path, names: Sequence[str], columns: Array, *, outputs: Collection[str] = ()
) -> Path:
    """Write columns (nt, nc) and a header line as comma-separated values; return the path.

    Numbers have full precision. An existing file is replaced only if it is such a table. `outputs`
    are names of columns without units that its header may contain.
    """
    head = io.StringIO()
    csv.writer(head, lineterminator="\n").writerow(map(_table_cell, names))

    def write(file: BinaryIO) -> None:
        file.write(head.getvalue().encode())
        np.savetxt(file, columns, fmt="%.17g", delimiter=",")

    without_units = {_table_cell(name) for name in outputs}
    return write_atomically(
        path, write, "table", replaces=lambda path: _is_table(path, head.getvalue(), without_units)
    )


def _is_table(path: Path, head: str, outputs: Collection[str]) -> bool:
    """Return whether a file begins with `head`, or with outputs or quantities by time.

    Quantities have names with units, such as `rod.force.x [N]`.
    """
    with path.open("rb") as file:
        line = file.readline(2**20).decode(errors="replace")
    time, _, names = line.strip().partition(",")
    columns = next(csv.reader([names]), [])
    known = (name in outputs or re.fullmatch(r".+\..+ \[[^\[\]]+\]", name) for name in columns)
    return line == head or (time == "time [s]" and bool(columns) and all(known))


def _table_cell(text: str) -> str:
    """Return text that a spreadsheet does not interpret as a formula."""
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@") else text
