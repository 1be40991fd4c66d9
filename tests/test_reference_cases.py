"""The script of the reference cases: its page shows every case, and a deviation raises an error.

The build of the documentation computes all cases. V2 and V9, which are quick, are computed here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from mpi4py import MPI

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="the script runs on one rank")

FOLDER = Path(__file__).parents[1] / "docs" / "verification"
SCRIPT = FOLDER / "reference_cases.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """Return the script as a module."""
    spec = importlib.util.spec_from_file_location("reference_cases", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference_cases"] = module  # for its dataclass
    spec.loader.exec_module(module)
    return module


def test_page_shows_every_case(script: ModuleType) -> None:
    page = (FOLDER / "reference_cases.md").read_text(encoding="utf-8")
    names = [f"V{k}" for k in (*range(1, 14), *range(17, 22))]
    assert sorted(script.CASES) == sorted(names)
    assert re.findall(r"^## (V\d+): ", page, re.MULTILINE) == names
    assert re.findall(r'markdown\("(V\d+)"\)', page) == names
    assert page.count("**Source.**") == len(names)


def test_cases_are_computed(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "V2", "V9"]
    run = subprocess.run(
        command, cwd=tmp_path, env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"\n(\d+) numbers, 0 beyond their bounds", run.stdout)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", [1.02, np.nan])
def test_a_deviation_is_an_error(
    script: ModuleType, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = script.Row("one", 1.0, "definition", value, 0.01)
    assert not row.passed
    monkeypatch.setattr(script, "CASES", {"V1": lambda: iter([row])})
    monkeypatch.setattr(sys, "argv", ["reference_cases.py"])
    assert script.main() == 1
    with pytest.raises(AssertionError):
        script.markdown("V1")
    with pytest.raises(SystemExit):
        monkeypatch.setattr(sys, "argv", ["reference_cases.py", "V99"])
        script.main()
