"""Names and files of functional mock-up units."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from dolfinx_mbd.checks import file_path, reject
from dolfinx_mbd.files import write_atomically

__all__ = ["checked_path", "variable_names", "write_unit"]

_IDENTIFIER = r"[A-Za-z_]\w*"


def variable_names(names: Iterable[str]) -> list[str]:
    """Return the names of variables for inputs and outputs, in their order.

    A space becomes an underscore, and a number after the last dot an index, as in ``rod.eta[1]``.

    Args:
        names: Names of inputs and outputs.

    Raises:
        InputError: A name does not consist of identifiers and dots, or two names are equal.
    """
    variables: dict[str, str] = {}
    for name in names:
        variable = re.sub(r"\.(\d+)$", r"[\1]", name.replace(" ", "_"))
        if not re.fullmatch(rf"{_IDENTIFIER}(\.{_IDENTIFIER})*(\[\d+\])?", variable, re.ASCII):
            expected = "letters, digits, underscores and spaces, with dots"
            reject("name of an input or output", name, expected)
        if variable in variables:
            expected = f"names that differ: {variables[variable]!r} is also {variable!r} in the FMU"
            reject("name of an input or output", name, expected)
        variables[variable] = name
    return [*variables]


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
