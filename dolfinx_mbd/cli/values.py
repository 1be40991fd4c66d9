"""What people type as values: lengths and frequencies with a unit, names with their meaning."""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dolfinx_mbd.errors import InputError, MissingFileError, OverwriteError

__all__ = [
    "add_force",
    "assignments",
    "frequency",
    "length_unit",
    "numbers",
    "output_path",
    "setting",
]

_LENGTHS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 1e-3, "um": 1e-6, "in": 0.0254, "ft": 0.3048}
_FREQUENCIES = {"": 1.0, "hz": 1.0, "khz": 1e3, "mhz": 1e6}


MANY = 100_000
"""Numbers in one range from which it is taken for a mistake."""


def length_unit(text: str) -> float:
    """The length of a unit, m: of ``mm``, ``in`` ..."""
    if text not in _LENGTHS:
        raise argparse.ArgumentTypeError(
            f"unknown unit of length {text!r}; known are {', '.join(_LENGTHS)}"
        )
    return _LENGTHS[text]


def frequency(text: str) -> float:
    """A frequency in Hz: ``20000``, ``20kHz``."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([a-zA-Z]*)\s*", text)
    try:
        if match is None or match[2].lower() not in _FREQUENCIES:
            raise ValueError
        value = float(match[1]) * _FREQUENCIES[match[2].lower()]
        if not 0 < value < float("inf"):
            raise ValueError
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected a frequency such as 20000 or 20kHz; got {text!r}"
        ) from None
    return value


def numbers(text: str) -> list[int]:
    """Whole numbers, with ranges: ``1,2,5-8``."""
    result: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise argparse.ArgumentTypeError(f"expected numbers such as 1,2,5-8; got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MANY:
            raise argparse.ArgumentTypeError(
                f"{part.strip()} must be a range of 1 to {MANY} numbers, the least one first"
            )
        result += range(first, last + 1)
    return result


def assignments(texts: Iterable[str], what: str) -> dict[str, str]:
    """``NAME=VALUE`` words as a dictionary.

    Raises:
        ValueError: A word has another form, or a name comes twice.
    """
    result: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"{what}: expected NAME=VALUE, got {text!r}")
        if name in result:
            raise InputError(f"{what}: {name!r} is given twice")
        result[name] = value
    return result


def setting(text: str) -> Any:
    """A value as Python reads it, or else the text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets a command replace a file."""
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace an existing file",
    )


def output_path(
    given: str | None,
    source: str | os.PathLike[str] | None,
    suffix: str,
    replaces: Callable[[Path], bool] = lambda path: True,
) -> Path:
    """Return where to write: as given, or in the current directory under the source's name.

    Args:
        given: What follows the option -o.
        source: The input of the command, which is never replaced; None: there is none.
        suffix: Added to the stem of the source.
        replaces: Whether a file that is there already may be replaced.

    Raises:
        InputError: It is the input itself.
        OverwriteError: There is a file that may not be replaced.
        OSError: It cannot be written; all errors are found before anything is computed.
    """
    path = Path(Path(source or "").stem + suffix) if given is None else Path(given)
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise MissingFileError(f"there is no directory '{path.parent}' to write '{path.name}' to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"'{path}' may not be written")
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        raise InputError(f"-o: '{path}' is the input itself; choose another name")
    if path.exists() and not replaces(path):
        raise OverwriteError(
            f"'{path}' is there already, and is not what this command writes; choose another name"
        )
    return path
