"""Every demo says what it shows and ends by checking numbers; .ci/run runs it on 1 and 2 ranks."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMOS = sorted((ROOT / "demos").glob("*.py"))


@pytest.mark.parametrize("path", DEMOS, ids=lambda path: path.name)
def test_demo_is_one_to_read(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    title = [line for line in source.splitlines() if line.startswith("# # ")]
    assert ast.get_docstring(tree) and len(title) == 1, "a docstring and one jupytext title"
    assert source.count("\n# +\n") - source.count("\n# -\n") in (0, 1), "a cell is not closed"
    last = ast.unparse(tree.body[-1])
    assert "exit" in last or "assert" in last or "raise" in last, "the last lines check numbers"
    assert path.name in (ROOT / "README.md").read_text(encoding="utf-8"), "not in README.md"
