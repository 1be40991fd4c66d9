"""The hierarchy of errors and warnings: their built-in classes, their fields, and pickling."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import pytest

from dolfinx_mbd import errors

BUILT_IN = {
    "InputError": ValueError,
    "InputTypeError": (ValueError, TypeError),
    "MeshError": ValueError,
    "FileError": ValueError,
    "MissingFileError": FileNotFoundError,
    "OverwriteError": FileExistsError,
    "SolverError": RuntimeError,
}
CLASSES = [name for name in errors.__all__ if name[0].isupper()]


def test_every_class_has_its_place() -> None:
    kinds = {name for name in CLASSES if name.endswith("Error")} - {"Error"}
    assert kinds == set(BUILT_IN)
    for name, built_in in BUILT_IN.items():
        kind = getattr(errors, name)
        assert issubclass(kind, errors.Error)
        for base in built_in if isinstance(built_in, tuple) else (built_in,):
            assert issubclass(kind, base)
    for name in set(CLASSES) - kinds - {"Error"}:
        assert issubclass(getattr(errors, name), errors.MbdWarning)
    assert issubclass(errors.MbdWarning, UserWarning)


@pytest.mark.parametrize("name", CLASSES)
def test_pickling_keeps_message_and_fields(name: str) -> None:
    """Errors are pickled when they are sent between ranks, and from workers to their parent."""
    kind = getattr(errors, name)
    if issubclass(kind, errors.InputError):
        error = kind("a text", argument="mass", value=-1.0, expected="a positive number")
    elif issubclass(kind, errors.FileError):
        error = kind("a text", path="rod.npz")
    elif issubclass(kind, errors.MbdWarning):
        error = kind("a text", quantity="rotation", value=0.5, limit=0.2)
    else:
        error = kind("a text")
    other = pickle.loads(pickle.dumps(error))
    assert type(other) is kind
    assert str(other) == "a text"
    assert vars(other) == vars(error)


CELL = """
for k in range(4):
    with warnings.catch_warnings():  # Python then forgets which warnings it has shown
        pass
    errors.warn(errors.ModelRangeWarning("too long" if k < 3 else "too short", value=k))
"""


@pytest.mark.parametrize(
    ("filters", "count"), [([], 2), (["default"], 2), (["always"], 4), (["ignore"], 0)]
)
def test_repeated_warnings_of_a_line_follow_the_filters(filters: list[Any], count: int) -> None:
    """Python's filters apply to the two texts of the cell, each time the cell is run."""
    for _ in range(2):
        with warnings.catch_warnings(record=True) as records:
            warnings.resetwarnings()
            for action in filters:
                warnings.simplefilter(action)
            names = {"__name__": "__main__", "warnings": warnings, "errors": errors}
            exec(compile(CELL, "<cell>", "exec"), names)
        assert len(records) == count
