"""Values of options: lengths and frequencies with units, names with values, output files."""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dolfinx_mbd.checks import refuse
from dolfinx_mbd.errors import MissingFileError, OverwriteError

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
"""Size of a range of numbers above which it is considered a mistake."""


def length_unit(text: str) -> float:
    """Return the length of a unit such as `mm` or `in`, m."""
    if text not in _LENGTHS:
        raise argparse.ArgumentTypeError(
            f"unknown unit of length {text!r}; known are {', '.join(_LENGTHS)}"
        )
    return _LENGTHS[text]


def frequency(text: str) -> float:
    """Return the frequency of a text such as `20000` or `20kHz`, Hz."""
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
    """Return the whole numbers of a text such as `1,2,5-8`."""
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


def assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return texts of the form `NAME=VALUE` as a dictionary.

    Args:
        texts: The texts.
        option: Name of the option, for messages.

    Raises:
        InputError: A text has another form, or a name occurs twice.
    """
    result: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            refuse(option, text, "of the form NAME=VALUE")
        if name in result:
            refuse(option, text, f"given once for {name!r}")
        result[name] = value
    return result


def setting(text: str) -> Any:
    """Return a text as a Python literal if it is one, else the text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that lets a command replace a file."""
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def output_path(
    output: str | None,
    source: str | os.PathLike[str] | None,
    suffix: str,
    replaces: Callable[[Path], bool] = lambda path: True,
) -> Path:
    """Return the path of a file to write, after checks that avoid errors after a computation.

    Args:
        output: Value of the option -o; None: the stem of the source in the current directory.
        source: Input of the command, which must not be replaced; None: no input.
        suffix: Suffix that is added to the stem of the source.
        replaces: Function that returns whether an existing file may be replaced.

    Raises:
        InputError: The path is that of the input.
        OverwriteError: The file exists and may not be replaced.
        OSError: The file cannot be written.
    """
    path = Path(Path(source or "").stem + suffix) if output is None else Path(output)
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise MissingFileError(f"no directory '{path.parent}' for the file '{path.name}'")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"no permission to write '{path}'")
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        refuse("-o", str(path), "a file other than the input")
    if path.exists() and not replaces(path):
        raise OverwriteError(
            f"'{path}' exists and has another format than the output; choose another name"
        )
    return path
