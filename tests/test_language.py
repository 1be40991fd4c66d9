"""Language of the package: complete docstrings, plain words, spelling, short functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi4py import MPI

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="reads sources only")

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dolfinx_mbd"
REWRITTEN: tuple[str, ...] = ("iterative", "linalg")
"""Folders and files of the package whose text follows the rules; it must cover all of them."""

VAGUE = {"felt", "found", "given", "kept", "own", "told", "wanted"}
"""Words that are no names of variables: they do not say what the variable holds."""

PHRASES = {
    r"\bso manieth\b": "every n-th",
    r"\bevery so many\b": "every n-th",
    r"^as all others": "see `...`",
    r"\bwhat is no\b": "a noun: 'the argument is not a mesh'",
    r"\bof what is\b": "a noun",
    r"\bgone on with\b": "continued",
    r"\b(came|comes) to no end\b": "did not converge",
    r"\bfrom where the\b": "relative to the initial positions",
    r"\bas if by itself\b": "automatically",
    r"\bfor a person\b": "say what the text contains",
    r"\bto the letter\b": "exactly",
    r"\bin words\b": "say what the message contains",
    r"\bis asked for\b": "is requested",
    r"\bthere is none\b": "say what is missing",
    r"\bis there already\b": "exists",
    r"\bgoes wrong\b": "fails",
    r"\bwent wrong\b": "failed",
}
"""Phrases of a private dialect, as regular expressions, and what to write."""

LINES = 60
"""Greatest number of code lines of a function, without its docstring and comments."""


def sources() -> list[Path]:
    """Return the files that are listed in `REWRITTEN`."""
    paths = [PACKAGE / name for name in REWRITTEN]
    return sorted(f for p in paths for f in (p.rglob("*.py") if p.is_dir() else [p]))


def place(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line numbers and the texts of all comments and strings of a file."""
    source = path.read_text(encoding="utf-8")
    for number, line in enumerate(source.splitlines(), 1):
        if "#" in line:
            yield number, line.partition("#")[2]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


@pytest.mark.parametrize("path", sources(), ids=place)
def test_plain_phrases(path: Path) -> None:
    for line, text in texts(path):
        for pattern, better in PHRASES.items():
            match = re.search(pattern, " ".join(text.split()), re.IGNORECASE)
            assert not match, f"line {line}: {match and match[0]!r}; write {better}"


@pytest.mark.parametrize("path", sources(), ids=place)
def test_names_of_variables(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = node.id if isinstance(node, ast.Name) else getattr(node, "arg", None)
        if not isinstance(node, ast.keyword):
            assert name not in VAGUE, f"line {getattr(node, 'lineno', 0)}: {name}"


def code_lines(node: ast.FunctionDef, lines: list[str]) -> int:
    """Return the number of lines of a function without its docstring, comments and blanks."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    if not body:
        return 0
    code = lines[body[0].lineno - 1 : node.end_lineno]
    return sum(1 for line in code if line.strip() and not line.strip().startswith("#"))


@pytest.mark.parametrize("path", sources(), ids=place)
def test_functions_are_short(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            count = code_lines(node, source.splitlines())
            assert count <= LINES, f"{node.name} has {count} lines of code"


def test_docstrings_name_the_parameters() -> None:
    """Sections of arguments are complete and in the order of the signature (pydoclint)."""
    if not sources():
        return
    options = {
        "--style": "google",
        "--arg-type-hints-in-docstring": "False",
        "--check-return-types": "False",
        "--check-yield-types": "False",
        "--skip-checking-raises": "True",
        "--check-class-attributes": "False",
        "--skip-checking-short-docstrings": "True",
        "--skip-checking-private-functions": "True",
        "--allow-init-docstring": "True",
    }
    command = [sys.executable, "-m", "pydoclint.main", "--quiet"]
    command += [word for pair in options.items() for word in pair]
    run = subprocess.run([*command, *map(str, sources())], capture_output=True, text=True)
    assert "Traceback" not in run.stderr, run.stderr
    output = run.stdout + run.stderr
    violations = [line for line in output.splitlines() if re.search(r"DOC(1|6)\d\d", line)]
    assert not violations, output


def test_spelling() -> None:
    """Words are spelled correctly (codespell); `.codespell-ignore` lists words of the field."""
    command = [sys.executable, "-m", "codespell_lib", "-I", str(ROOT / ".codespell-ignore")]
    paths = [PACKAGE, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "demos"]
    run = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
