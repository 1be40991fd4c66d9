"""Errors and warnings of the package.

Every error that the package raises intentionally is an `Error`. Each class is also a subclass of
the built-in exception that Python users expect, so that `except ValueError` works too. Every
warning is an `MbdWarning`, which is a `UserWarning`.
"""

from __future__ import annotations

import inspect
import logging
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

__all__ = [
    "AccuracyWarning",
    "Error",
    "FileError",
    "FileWarning",
    "InputError",
    "InputTypeError",
    "MbdWarning",
    "MeshError",
    "MeshWarning",
    "MissingFileError",
    "ModelRangeWarning",
    "OverwriteError",
    "PlacementWarning",
    "SolverError",
    "UnitsWarning",
    "recorded_warnings",
    "restore_warnings",
    "warn",
]


class Error(Exception):
    """Base class of the errors of the package."""


class InputError(Error, ValueError):
    """An argument with an invalid value.

    The arguments other than the message are attributes of the error.

    Args:
        message: Text of the error.
        argument: Name of the argument, or None if the error concerns several arguments.
        value: Value of the argument.
        expected: Description of valid values.

    Example:
        >>> try:
        ...     body.interface("top")
        ... except mbd.errors.InputError as error:
        ...     print(error.expected)
        'left', 'right'
    """

    def __init__(
        self,
        message: str = "",
        *,
        argument: str | None = None,
        value: Any = None,
        expected: str | None = None,
    ) -> None:
        super().__init__(message)
        self.argument, self.value, self.expected = argument, value, expected


class InputTypeError(InputError, TypeError):
    """An argument of the wrong type."""


class MeshError(InputError):
    """A mesh that cannot be used, for example because it has a degenerate cell."""


class FileError(Error, ValueError):
    """A file that is damaged or has the wrong format.

    Args:
        message: Text of the error.
        path: Path of the file, or None if the file has no name; an attribute of the error.
    """

    def __init__(self, message: str = "", *, path: Any = None) -> None:
        super().__init__(message)
        self.path = None if path is None else str(path)


class MissingFileError(Error, FileNotFoundError):
    """A file that does not exist."""


class OverwriteError(Error, FileExistsError):
    """A file that exists and must not be overwritten without a request by the user."""


class SolverError(Error, RuntimeError):
    """A computation that failed, for example an iteration that did not converge."""


class MbdWarning(UserWarning):
    """Base class of the warnings of the package.

    The arguments other than the message are attributes of the warning.

    Args:
        message: Text of the warning.
        quantity: Name of the quantity that the warning concerns, for example `elastic rotation`,
            or None if the warning does not concern a number.
        value: Value of the quantity.
        limit: Limit above which the warning is given.
    """

    def __init__(
        self,
        message: str = "",
        *,
        quantity: str | None = None,
        value: float | None = None,
        limit: float | None = None,
    ) -> None:
        super().__init__(message)
        self.quantity, self.value, self.limit = quantity, value, limit


class UnitsWarning(MbdWarning):
    """A size, density, stiffness or pressure that suggests units other than SI."""


class MeshWarning(MbdWarning):
    """A mesh or an element that makes results inaccurate."""


class PlacementWarning(MbdWarning):
    """A body that the assembly of the joints moved away from its initial position."""


class ModelRangeWarning(MbdWarning):
    """A result outside the range of the theory, for example a large elastic rotation."""


class AccuracyWarning(MbdWarning):
    """A result that is numerically inaccurate, for example due to a large time step."""


class FileWarning(MbdWarning):
    """A file that was not written, was written only partly, is large, or has no checksum."""


def warn(warning: MbdWarning) -> None:
    """Give a warning that refers to the line of the user's code that called the package.

    With Python's default filters, equal warnings of a line are shown once. Python itself would
    repeat them in a loop, because it forgets which warnings it has shown whenever a library
    changes the filters temporarily (`warnings.catch_warnings`).
    """
    for record in _records:
        record.append(warning)
    restore_warnings()
    level, frame = 1, inspect.currentframe()
    while frame is not None and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    if frame is not None and _is_shown_once(warning, frame):
        key = type(warning), str(warning), frame.f_lineno
        place = _shown.get(id(frame.f_code))
        if place is None or place[0]() is not frame.f_code:
            place = _shown[id(frame.f_code)] = weakref.ref(frame.f_code), set()
        if key in place[1]:
            return
        place[1].add(key)
    warnings.warn(warning, stacklevel=level)


@contextmanager
def recorded_warnings() -> Iterator[list[MbdWarning]]:
    """Return a list to which all warnings inside the context are added; they are also shown."""
    record: list[MbdWarning] = []
    _records.append(record)
    try:
        yield record
    finally:
        _records[:] = [other for other in _records if other is not record]


_records: list[list[MbdWarning]] = []

# Warnings that were shown for the lines of each code object, by its id. A cell of a notebook that
# runs again is a new code object. The weak reference shows whether an id still belongs to the same
# object
_shown: dict[int, tuple[weakref.ref[CodeType], set[tuple[type, str, int]]]] = {}


def _is_shown_once(warning: MbdWarning, frame: FrameType) -> bool:
    """Return whether the filters of Python show equal warnings of a line only once."""
    module = str(frame.f_globals.get("__name__", "<unknown>"))
    for action, text, category, place, line in warnings.filters:
        if (
            isinstance(warning, category)
            and _matches(text, str(warning))
            and _matches(place, module)
            and line in (0, frame.f_lineno)
        ):
            return action == "default"
    return True  # without a filter, Python's action is `default`


def _matches(pattern: Any, text: str) -> bool:
    """Return whether a text matches a pattern of a filter: None, a string or a `re.Pattern`."""
    if pattern is None or isinstance(pattern, str):
        return pattern in (None, text)
    return bool(pattern.match(text))


def restore_warnings() -> None:
    """Let Python show warnings again if they are redirected to a logger without a handler.

    FFCx 0.9, which DOLFINx 0.9 imports, calls `logging.captureWarnings` without adding a handler.
    Python then shows no warnings. A redirection to a logger with a handler is not changed.
    """
    if getattr(warnings.showwarning, "__module__", None) != "logging":
        return
    logger: logging.Logger | None = logging.getLogger("py.warnings")
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return
        logger = logger.parent if logger.propagate else None
    logging.captureWarnings(False)


def _is_inside(module: str) -> bool:
    """Return whether a module is in this package, or is `contextlib`, which calls its functions."""
    return module.partition(".")[0] in ("dolfinx_mbd", "contextlib")
