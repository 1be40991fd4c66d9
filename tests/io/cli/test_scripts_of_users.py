"""Errors in scripts of the user: the message names the script and the line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mpi4py import MPI

from dolfinx_mbd.io.cli import main

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="one rank runs the script")

# Name of a case: (script, line of the error, word of the message).
SCRIPTS = {
    "a key": ("def simulator():\n    return {}['missing']\n", 2, "KeyError"),
    "an attribute at import": ("import math\n\nmath.nothing\n", 3, "AttributeError"),
    "an error in a library": (
        "import json\ndef helper():\n    return json.loads('{')\n\n\ndef simulator():\n"
        "    return helper()\n",
        3,
        "JSONDecodeError",
    ),
    "a value": ("def simulator():\n    raise ValueError('mine')\n", 2, "mine"),
    "the end of the program": ("import sys\nsys.exit(3)\n", 2, "SystemExit"),
    "syntax": ("x = 1\ndef simulator(:\n", 2, "SyntaxError"),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_errors_name_the_script(kind: str, tmp_path: Path, capsys: Any) -> None:
    text, line, word = SCRIPTS[kind]
    script = tmp_path / "own.py"
    script.write_text(text)
    assert main(["export-fmu", str(script), "-o", str(tmp_path / "own.fmu")]) == 1
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert f"{script}, line {line}" in last and word in last
    assert "bug" not in last and list(tmp_path.iterdir()) == [script]


def test_errors_of_the_package_in_a_script(tmp_path: Path, capsys: Any) -> None:
    """A wrong argument in a script has the message of the package."""
    script = tmp_path / "own.py"
    script.write_text("import dolfinx_mbd as mbd\n\n\ndef simulator():\n    mbd.Frame('x')\n")
    assert main(["export-fmu", str(script), "-o", str(tmp_path / "own.fmu")]) == 1
    assert "bug" not in capsys.readouterr().err


def test_errors_inside_the_package_are_bugs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    monkeypatch.setattr("dolfinx_mbd.io.export.fmu.value_in_script", None)  # cannot be called
    script = tmp_path / "own.py"
    script.write_text(SCRIPTS["a key"][0])
    assert main(["export-fmu", str(script), "-o", str(tmp_path / "own.fmu")]) == 1
    assert "a bug in dolfinx_mbd" in capsys.readouterr().err
