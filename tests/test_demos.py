"""Demos: tutorials are short and end with checks; converted to notebooks, they run.

`.ci/run` runs all demos as notebooks, and nearly all of those with a mesh on two ranks as scripts.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

from dolfinx_mbd.tutorials import check, check_close

ROOT = Path(__file__).parents[1]
DEMOS = ROOT / "demos"
TUTORIALS = sorted(DEMOS.glob("*.py"))
AUDITS = sorted((DEMOS / "papers").glob("*.py"))
LINES = {"engine.py": 200}  # largest numbers of lines; 150 for other tutorials
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


@pytest.mark.parametrize("path", [*TUTORIALS, *AUDITS], ids=name)
def test_demo_imports_only_what_is_installed(path: Path) -> None:
    """A demo in a notebook elsewhere needs no module and no file beside it.

    The audits of papers need the models of the papers, which are in a folder beside them.
    """
    source = path.read_text(encoding="utf-8")
    beside = {p.stem for p in (*DEMOS.rglob("*.py"), *DEMOS.iterdir())}
    beside -= {"models"} if path in AUDITS else set()
    modules: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            modules.add(str(node.module).split(".")[0])
    assert "dolfinx_mbd" in modules and not modules & beside
    assert "__file__" not in source and "sys.path" not in source


@pytest.mark.slow
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="starts another Python")
@pytest.mark.parametrize("demo", ["four_bar.py", "forms.py"])
def test_demo_runs_in_another_folder(demo: str, tmp_path: Path) -> None:
    """The text of a demo, pasted by a user, runs where only the package can be imported."""
    (tmp_path / "pasted.py").write_text((DEMOS / demo).read_text(encoding="utf-8"))
    settings = {k: v for k, v in os.environ.items() if not k.startswith((*MPI_VARIABLES, "PYTHON"))}
    run = subprocess.run(
        [sys.executable, "pasted.py"], cwd=tmp_path, env=settings, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
    assert "ok  " in run.stdout


@pytest.mark.parametrize("path", TUTORIALS, ids=name)
def test_tutorial_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LINES.get(path.name, 150)


def test_a_linkage_with_gauges_takes_25_statements() -> None:
    """The statements of `bracket.py` are counted up to the checks, without the docstring."""
    source = (DEMOS / "bracket.py").read_text(encoding="utf-8").split("# ## Checks")[0]
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    assert len(statements) - 1 <= 25
    words = ("read_mesh(", "SpringDamper(", "JointLoad(", "plot_histories(")
    assert all(word in source for word in words) and source.count("GaugeSpec(") == 3


@pytest.mark.parametrize("value", [0.9, 2.1, float("nan")])
def test_failed_check_raises(value: float) -> None:
    check("inside", 1.5, 1.0, 2.0)
    check_close("close", 1.5, 1.4, 0.1)
    with pytest.raises(AssertionError):
        check("outside", value, 1.0, 2.0)
    with pytest.raises(AssertionError):
        check_close("far", value, 1.5, 0.1)
