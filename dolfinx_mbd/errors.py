"""Errors and warnings of the package.

Every error that the package raises intentionally is an `Error`. Each class is also a subclass of
the built-in exception that Python users expect, so that `except ValueError` works too. Every
warning is an `MbdWarning`, which is a `UserWarning`.
"""

from __future__ import annotations

import inspect
import logging
import warnings
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
    """Give a warning that refers to the user's line that called the package."""
    restore_warnings()
    level, frame = 1, inspect.currentframe()
    while frame is not None and _is_inside(frame.f_globals.get("__name__", "")):
        level, frame = level + 1, frame.f_back
    warnings.warn(warning, stacklevel=level)


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
    return module.partition(".")[0] in ("dolfinx_mbd", "contextlib")
