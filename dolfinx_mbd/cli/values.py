"""What people type as values: lengths and frequencies with a unit, names with their meaning."""

from __future__ import annotations

import argparse
import ast
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["assignments", "frequency", "length_unit", "numbers", "output_path", "setting"]

_LENGTHS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 1e-3, "um": 1e-6, "in": 0.0254, "ft": 0.3048}
_FREQUENCIES = {"": 1.0, "hz": 1.0, "khz": 1e3, "mhz": 1e6}


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
            raise ValueError(f"{what}: expected NAME=VALUE, got {text!r}")
        if name in result:
            raise ValueError(f"{what}: {name!r} is given twice")
        result[name] = value
    return result


def setting(text: str) -> Any:
    """A value as Python reads it, or else the text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def output_path(given: str | None, source: str | os.PathLike[str], suffix: str) -> Path:
    """Where to write: as given, or beside the current directory under the source's name.

    Raises:
        OSError: It cannot be written; found before anything is computed.
    """
    path = Path(given) if given else Path(Path(source).stem + suffix)
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory; give the name of a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no directory '{path.parent}' to write '{path.name}' to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"'{path}' may not be written")
    return path
