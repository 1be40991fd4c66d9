"""Numbers and names as text, and files that are written as a whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.files import write_aside

__all__ = ["ascii_labels", "ascii_text", "number_lines", "write_binary", "write_text"]


def ascii_text(text: str) -> str:
    """Text on one line and in ASCII, for a comment; what is neither becomes ``?``."""
    return " ".join(text.split()).encode("ascii", "replace").decode("ascii")


def ascii_labels(names: Iterable[str], length: int = 60) -> list[str]:
    """Identifiers of letters, digits and underscores, unique without regard to case."""
    labels: list[str] = []
    for name in names:
        root = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_")[:length] or "unnamed"
        label, count = root, 1
        while label.lower() in {other.lower() for other in labels}:
            count += 1
            label = f"{root[: length - 1 - len(str(count))]}_{count}"
        labels.append(label)
    return labels


def number_lines(values: ArrayLike, per_line: int = 5, template: str = "%24.16E") -> list[str]:
    """Numbers as lines of text, row by row, each row of a matrix on lines of its own.

    The default has 17 digits, so that a number read back is the same to the bit.
    """
    array = np.asarray(values, dtype=float)
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    return [
        " ".join(template % value for value in row[start : start + per_line])
        for row in rows
        for start in range(0, len(row), per_line)
    ]


def write_text(path: Path, lines: Iterable[str], what: str, *, overwrite: bool = False) -> Path:
    """Write lines of ASCII text as a whole or not at all; see `write_aside`."""

    def write(file: BinaryIO) -> None:
        for line in lines:
            file.write(line.encode("ascii") + b"\n")

    return write_aside(path, write, what, replaces=lambda _: overwrite)


def write_binary(
    path: Path, write: Callable[[BinaryIO], None], what: str, *, overwrite: bool = False
) -> Path:
    """Write by `write(file)` as a whole or not at all; see `write_aside`."""
    return write_aside(path, write, what, replaces=lambda _: overwrite)
