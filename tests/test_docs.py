"""Documentation: it covers every public name, and names only tests and files that exist."""

from __future__ import annotations

import ast
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="reads sources only")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "api" not in p.parts)


def test_every_public_name_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    from api import PARTS, page

    stub = ast.parse((ROOT / "dolfinx_mbd" / "__init__.pyi").read_text(encoding="utf-8"))
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            part = max(
                (p for p in PARTS if f"{node.module}.".startswith(f"{p}.")), default="", key=len
            )
            if all(f"{node.module}.{alias.name}" in PARTS for alias in node.names):
                continue  # a folder
            assert part, f"dolfinx_mbd.{node.module} has no page"
            text = page(part, PARTS[part])
            for alias in node.names:
                names = [f".. autoclass:: {alias.name}\n", f".. autofunction:: {alias.name}\n"]
                constant = alias.name.isupper()
                assert constant or any(name in text for name in names), alias.name
    monkeypatch.delitem(sys.modules, "api")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_files_that_a_page_names_exist(path: Path) -> None:
    for name in re.findall(r"`((?:tests|demos|benchmarks|meshes|docs)/[\w/.]+)`", path.read_text()):
        assert (ROOT / name).exists(), name


def test_every_page_is_in_a_table_of_contents() -> None:
    entries = set()
    for path in PAGES:
        for block in re.findall(r"```\{toctree\}\n(.*?)```", path.read_text(), re.DOTALL):
            for line in block.splitlines():
                if line and not line.startswith(":"):
                    entries.add((path.parent / line).resolve())
    missing = [p for p in PAGES if p.with_suffix("").resolve() not in entries]
    assert [p.relative_to(DOCS).as_posix() for p in missing] == ["index.md"]


def test_parts_of_files_that_pages_include_exist() -> None:
    """Included files exist, and contain each text at which a part starts or ends exactly once."""
    block = re.compile(r"```\{include\} (\S+)\n(.*?)```", re.DOTALL)
    options = re.compile(r"^:(?:start-after|end-before): (.*)$", re.MULTILINE)
    includes = [(page, *match) for page in PAGES for match in block.findall(page.read_text())]
    assert includes
    for page, name, text in includes:
        target = (page.parent / name).resolve()
        for marker in options.findall(text):
            assert target.read_text().count(marker.strip("\"'")) == 1, (page.name, marker)


COMPLETE = ["howto/engines", "howto/engine_bearings", "howto/model_files", "theory/constraints"]
"""Pages that are not executed at the build, and whose Python blocks together are a script."""


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPLETE)
def test_scripts_of_pages_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), f"{name}.md", "exec"), {"__name__": "__main__"})


@pytest.mark.slow
@pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="Exudyn runs on one rank")
def test_the_model_in_both_programs_moves_alike() -> None:
    pytest.importorskip("exudyn")
    names = runpy.run_path(str(DOCS / "coming_from" / "exudyn_pendulum.py"))
    ours, theirs = names["tip"], names["theirs"]
    assert ours.shape == theirs.shape and np.ptp(ours[:, 1]) > 0.05
    assert np.abs(ours - theirs).max() < 1e-7
