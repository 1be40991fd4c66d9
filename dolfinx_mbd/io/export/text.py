"""Conversion of numbers and names to ASCII text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.files import write_atomically


def ascii_text(text: str) -> str:
    """Return a text on one line in ASCII, with `?` for other characters."""
    return " ".join(text.split()).encode("ascii", "replace").decode("ascii")


def ascii_labels(names: Iterable[str], length: int = 60) -> list[str]:
    """Return identifiers of letters, digits and underscores that are unique regardless of case.

    They have at most `length` characters.
    """
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
    """Return numbers as lines of text; each row of a matrix starts on a new line.

    The default template has 17 digits, so that reading returns the same floats.
    """
    array = np.asarray(values, dtype=float)
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(1, -1)
    return [
        " ".join(template % value for value in row[start : start + per_line])
        for row in rows
        for start in range(0, len(row), per_line)
    ]


def write_text(path: Path, lines: Iterable[str], content: str, *, overwrite: bool = False) -> Path:
    """Write lines of ASCII text completely or not at all; see `write_atomically`."""

    def write(file: BinaryIO) -> None:
        for line in lines:
            file.write(line.encode("ascii") + b"\n")

    return write_atomically(path, write, content, replaces=lambda _: overwrite)
