"""Demos: tutorials are short and end with checks; converted to notebooks, they run.

`.ci/run` runs all demos as scripts, on one rank and on two.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from pathlib import Path

import pytest
from mpi4py import MPI

ROOT = Path(__file__).parents[1]
DEMOS = ROOT / "demos"
# `parameter_study.py` needs an importable main module, as every script with worker processes does.
TUTORIALS = sorted(set(DEMOS.glob("*.py")) - {DEMOS / "helpers.py", DEMOS / "parameter_study.py"})
AUDITS = sorted((DEMOS / "papers").glob("*.py"))
LINES = {"engine.py": 200}  # at most; 150 for the other tutorials
#: Prefixes of environment variables by which an MPI process that a test starts would take itself
#: for a part of the job of pytest.
MPI_VARIABLES = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "HYDRA_", "MPI_LOCALRANKID")


def name(path: Path) -> str:
    """Return the name of a demo for the list of tests."""
    return path.relative_to(DEMOS).as_posix()


@pytest.mark.parametrize("path", [*TUTORIALS, *AUDITS], ids=name)
def test_demo_has_a_title_and_checks_its_numbers(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    titles = [line for line in source.splitlines() if line.startswith("# # ")]
    assert ast.get_docstring(ast.parse(source))
    assert len(titles) == 1
    assert source.count("\n# +\n") - source.count("\n# -\n") in (0, 1), "a cell is not closed"
    assert re.search(r"^ *check(_close)?\(", source.split("\n# +\n")[-1], re.MULTILINE)
    assert "sys.exit" not in source
    assert not re.search(r"(mpl|matplotlib)\.use\(", source)
    assert path.name in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TUTORIALS, ids=name)
def test_tutorial_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES.get(path.name, 150)


@pytest.mark.parametrize("value", [0.9, 2.1, float("nan")])
def test_failed_check_raises(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DEMOS))
    from helpers import check, check_close

    check("inside", 1.5, 1.0, 2.0)
    check_close("close", 1.5, 1.4, 0.1)
    with pytest.raises(AssertionError):
        check("outside", value, 1.0, 2.0)
    with pytest.raises(AssertionError):
        check_close("far", value, 1.5, 0.1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="a notebook has one rank")
@pytest.mark.parametrize("path", TUTORIALS, ids=name)
def test_tutorial_runs_as_a_notebook(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jupytext = pytest.importorskip("jupytext")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    for variable in [v for v in os.environ if v.startswith(MPI_VARIABLES)]:
        monkeypatch.delenv(variable)
    monkeypatch.delenv("MPLBACKEND", raising=False)
    shutil.copy(DEMOS / "helpers.py", tmp_path)
    notebook = jupytext.read(path, fmt="py:light")
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds.count("markdown") > 2 and kinds.count("code") > 2
    folder = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources=folder
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    text = "".join(output.text for output in outputs if output.output_type == "stream")
    assert "ok  " in text
    assert "Warning" not in text
    pictures = [o for o in outputs if "image/png" in o.get("data", {})]
    assert len(pictures) >= path.read_text(encoding="utf-8").count("with helpers.figure(")
