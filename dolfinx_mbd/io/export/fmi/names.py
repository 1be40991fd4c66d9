"""Names and files of functional mock-up units."""

from __future__ import annotations

import re
from pathlib import Path
from typing import BinaryIO

from dolfinx_mbd.checks import file_path, reject
from dolfinx_mbd.files import write_atomically

__all__ = ["check_names", "checked_path", "write_unit"]

_IDENTIFIER = r"[A-Za-z_]\w*"


def check_names(*names: str) -> None:
    """Raise an error unless the names of inputs and outputs consist of identifiers and dots."""
    for name in names:
        if not re.fullmatch(rf"{_IDENTIFIER}(\.{_IDENTIFIER})*", name, re.ASCII):
            reject("name of an input or output", name, "letters, digits and underscores, with dots")


def checked_path(path: str | Path) -> Path:
    """Return the path of an FMU; its stem is the identifier of the model."""
    path = file_path("path", path)
    if path.suffix != ".fmu" or not re.fullmatch(_IDENTIFIER, path.stem, re.ASCII):
        reject("path", str(path), "a name of letters, digits and underscores that ends with .fmu")
    return path


def write_unit(path: Path, content: bytes, overwrite: bool) -> Path:
    """Write an FMU completely or not at all."""

    def write(file: BinaryIO) -> None:
        file.write(content)

    return write_atomically(path, write, "FMU", replaces=lambda path: overwrite)
