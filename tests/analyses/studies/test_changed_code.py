"""A study gives a warning if the code has changed since its cases were computed."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

from dolfinx_mbd.analyses import sweep
from dolfinx_mbd.errors import FileWarning
from dolfinx_mbd.results.files import case_files

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one process writes the folder")

SOURCE = '''
"""A study of a user."""
import math
import numpy as np
import settings_of_study

FACTOR = 5.0
TABLE = np.array([1.0, 2.0])
OPTIONS = {"power": 2, "names": ["a", "b"]}
UNUSED = 1.0

class Model:
    """A model."""
    gain = 3.0

    def __init__(self, a):
        self.a = a

    @staticmethod
    def shift(value):
        return value + 1.0

    def value(self):
        return self.shift(self.gain * self.a)

MODEL = Model(2.0)

def helper(a):
    return inner(a) + 1.0

def inner(a):
    return 2.0 * a

def run(a, law=None):
    """Return numbers."""
    nested = lambda b: b + 4.0
    total = FACTOR * a + TABLE.sum() + OPTIONS["power"] + helper(a) + nested(a) + MODEL.value()
    total += Model(a).value() + settings_of_study.SPEED + math.sqrt(a)
    if a in {7.0, 8.0}:
        total += 0.5
    return {"x": total if law is None else law(total)}
'''
SETTINGS = "SPEED = 10.0\nOTHER = 1.0\n"


def load(folder: Path, name: str, source: str) -> Any:
    """Write a module and import it anew."""
    path = folder / f"{name}.py"
    path.write_text(source)
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(specification)
    exec(compile(source, str(path), "exec"), module.__dict__)  # not from a cached file
    return module


def result(folder: Path, source: str, settings: str = SETTINGS, **options: Any) -> Any:
    """Return the values of the study and its warnings."""
    load(folder, "settings_of_study", settings)
    run = load(folder, "script_of_user", source).run
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        study = sweep(run, {"a": [1.0, 2.0]}, workers=1, path=folder / "study", **options)
    assert all(issubclass(warning.category, FileWarning) for warning in records)
    return study["x"].values.tolist(), [warning.message for warning in records]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 5.0", "FACTOR = 7.0"),
        ("[1.0, 2.0]", "[1.0, 2.5]"),
        ('"power": 2', '"power": 3'),
        ("return 2.0 * a", "return 2.0 / a"),
        ("inner(a) + 1.0", "inner(a) + 1.5"),
        ("b + 4.0", "b - 4.0"),
        ("gain = 3.0", "gain = 4.0"),
        ("value + 1.0", "value + 2.0"),
        ("self.gain * self.a)", "self.gain * self.a * 2)"),
        ("Model(2.0)", "Model(3.0)"),
        ("math.sqrt", "math.exp"),
        ("{7.0, 8.0}", "{1.0, 8.0}"),
        ("FACTOR * a", "a * FACTOR ** 2"),
    ],
)
def test_changes_give_a_warning(tmp_path: Path, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    first, messages = result(tmp_path, SOURCE)
    assert messages == []
    second, messages = result(tmp_path, SOURCE.replace(old, new))
    assert second == first
    (message,) = messages
    assert message.quantity == "saved cases" and message.value == 2
    assert "'run'" in str(message) and str(tmp_path / "study") in str(message)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("UNUSED = 1.0", "UNUSED = 2.0"),
        ("FACTOR = 5.0", "# a comment\n\n\nFACTOR = 5.0"),
        ('"""Return numbers."""', '"""Return one number."""'),
        ('"""A model."""', '"""Another text."""'),
        ('"""A study of a user."""', '"""Another text."""'),
        ("def inner", "def unused(a):\n    return 3.0\n\ndef inner"),
    ],
)
def test_other_changes_give_none(tmp_path: Path, old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    first, _ = result(tmp_path, SOURCE)
    assert result(tmp_path, SOURCE.replace(old, new)) == (first, [])


def test_constants_of_other_modules_of_the_user(tmp_path: Path) -> None:
    first, _ = result(tmp_path, SOURCE)
    settings = SETTINGS.replace("OTHER = 1.0", "OTHER = 2.0")
    assert result(tmp_path, SOURCE, settings) == (first, [])
    second, (message,) = result(tmp_path, SOURCE, SETTINGS.replace("10.0", "11.0"))
    assert second == first and "'run'" in str(message)


def test_functions_among_the_arguments(tmp_path: Path) -> None:
    laws = [eval(f"lambda x: {factor} * x") for factor in (2.0, 3.0, 2.0)]
    first, messages = result(tmp_path, SOURCE, fixed={"law": laws[0]})
    assert messages == []
    second, (message,) = result(tmp_path, SOURCE, fixed={"law": laws[1]})
    assert second == first and "fixed argument 'law'" in str(message)
    assert result(tmp_path, SOURCE, fixed={"law": laws[2]}) == (first, [])


def test_other_versions_of_python_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = result(tmp_path, SOURCE)
    changes = case_files._code_changes
    monkeypatch.setattr(
        case_files, "_code_changes", lambda saved, new: changes(saved | {"Python": "2.7"}, new)
    )
    second, (message,) = result(tmp_path, SOURCE)
    assert second == first and "2.7" in str(message)
