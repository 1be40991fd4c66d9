"""Conversion and checks of option values: units, frequencies, numbers, and output files."""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dolfinx_mbd import checks
from dolfinx_mbd.checks import LENGTHS, reject
from dolfinx_mbd.errors import InputError, OverwriteError
from dolfinx_mbd.files import check_directory

_FREQUENCIES = {"": 1.0, "hz": 1.0, "khz": 1e3, "mhz": 1e6}
"""Units of frequency by name in lower case, Hz."""

MANY = 100_000
"""Largest size of a range of numbers; a larger range is considered a mistake."""


def file_units(text: str) -> str:
    """Return a known unit of length such as `mm`, or system of units such as `mm-t-s`."""
    return _checked_units(checks.file_units, text)


def unit_system(text: str) -> str:
    """Return a known system of units such as `mm-t-s`."""
    return _checked_units(checks.unit_system, text)


def _checked_units(check: Callable[[str, str], object], text: str) -> str:
    """Return units that pass a check; otherwise raise the error for options."""
    try:
        check("the unit", text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def length(text: str) -> float:
    """Return the positive length in a text such as `0.005` or `5mm`, m."""
    try:
        return checks.length("the length", text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def coordinate(text: str) -> float:
    """Return the coordinate in a text such as `-0.07` or `-70mm`, m; raise a ValueError."""
    text = text.strip()
    unit = re.sub(r".*[^a-z]", "", text)  # the last letters
    return float(text.removesuffix(unit)) * LENGTHS[unit] if unit in LENGTHS else float(text)


SHAPES = {"cylinder": (3, 3, 1), "plane": (3, 3), "box": (3, 3), "near": (3,), "tolerance": (1,)}
"""Numbers of coordinates in the parts of a value of --pick, by the argument of `pick`."""


def shapes(name: str, text: str) -> dict[str, Any]:
    """Return the arguments of `mbd.fem.pick` in a text such as `cylinder:0,0,0:0,0,1:5mm`.

    Shapes are joined by `+`. Two coordinates suffice in the plane.
    """
    result: dict[str, Any] = {}
    for word in re.split(r"\+(?=\s*[a-z])", text):  # not at the sign of a coordinate
        kind, *parts = (part.strip() for part in word.split(":"))
        counts = SHAPES.get(kind, ())
        try:
            values: list[Any] = [[coordinate(x) for x in part.split(",")] for part in parts]
        except ValueError:
            values = []
        sizes = [len(value) for value in values]
        fits = len(sizes) == len(counts) and all(
            size == count or (size, count) == (2, 3)
            for size, count in zip(sizes, counts, strict=True)
        )
        if not counts or not fits or kind in result:
            forms = (
                "cylinder:X,Y,Z:AX,AY,AZ:RADIUS, plane:X,Y,Z:NX,NY,NZ, box:X,Y,Z:X,Y,Z, near:X,Y,Z"
            )
            reject(f"--pick {name}", text, f"one of {forms}, or several joined by '+'")
        # A part with one number is a length, such as a radius
        values = [v[0] if count == 1 else v for v, count in zip(values, counts, strict=True)]
        result[kind] = values[0] if len(values) == 1 else tuple(values)
    return result


def frequency(text: str) -> float:
    """Return the frequency in a text such as `20000` or `20kHz`, Hz."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([a-zA-Z]*)\s*", text)
    value = 0.0
    if match is not None:
        with contextlib.suppress(ValueError):
            value = float(match[1]) * _FREQUENCIES.get(match[2].lower(), 0.0)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected a frequency such as 20000 or 20kHz; got {text!r}"
        )
    return value


def numbers(text: str) -> list[int]:
    """Return the whole numbers in a text such as `1,2,5-8`."""
    result: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if match is None:
            raise argparse.ArgumentTypeError(f"expected numbers such as 1,2,5-8; got {text!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if not 0 <= last - first < MANY:
            expected = f"a range of 1 to {MANY} numbers, the smallest first"
            raise argparse.ArgumentTypeError(f"{part.strip()} must be {expected}")
        result += range(first, last + 1)
    return result


def assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """Return the values by name of an option with texts of the form `NAME=VALUE`."""
    result: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            reject(option, text, "of the form NAME=VALUE")
        if name in result:
            reject(option, text, f"given once for {name!r}")
        result[name] = value
    return result


def setting(text: str) -> Any:
    """Return the value of a text that is a Python literal, or otherwise the text."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add the option that permits a command to replace a file."""
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def add_unit(parser: argparse.ArgumentParser) -> None:
    """Add the option for the units of a mesh."""
    text = "unit of length of the mesh, for example mm (default m), or system of units of a deck"
    text += " with materials, for example mm-t-s"
    parser.add_argument("--unit", type=file_units, default="m", metavar="U", help=text)


def output_path(
    output: str | None,
    source: str | os.PathLike[str] | None,
    suffix: str,
    replaces: Callable[[Path], bool] | bool = True,
) -> Path:
    """Return the path of a file to write, checked before a long computation starts.

    Without the option -o, the path is the stem of the input file `source` and a suffix, in the
    current directory. `replaces` states whether an existing file, other than the input, may be
    replaced: the option --force, or a function of the file that checks its format.
    """
    path = Path(Path(source or "").stem + suffix) if output is None else Path(output)
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a directory; give the name of a file in it")
    check_directory(path.parent)  # the writer creates it
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"no permission to write '{path}'")
    if source is not None and path.exists() and Path(source).exists() and path.samefile(source):
        reject("-o", str(path), "a file other than the input")
    if path.exists() and not (replaces if isinstance(replaces, bool) else replaces(path)):
        text = "exists and has another format than the output; choose another name"
        text = "exists; choose another name, or add --force" if replaces is False else text
        raise OverwriteError(f"'{path}' {text}")
    return path
