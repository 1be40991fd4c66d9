"""Language of all sources: plain words, spelling; of the package: docstrings, short functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mpi4py import MPI

from tests.models.sources import Rule, offences

pytestmark = pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="reads sources only")

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dolfinx_mbd"
VAGUE = {
    *("asked", "caught", "felt", "found", "given", "got", "kept", "own", "refused", "said"),
    *("told", "want", "wanted"),
}
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
    r"\bfirst edition\b": "version 0.1",
    r"\bis as it was\b": "is unchanged",
    r"\bmakes no sense\b": "is invalid",
    r"\bthose that are there\b": "a noun: 'the known names'",
    r"\bthose there are\b": "a noun: 'the known names'",
    r"\b(is|are) wanted\b": "is requested",
    r"\bas the table has them\b": "in the table",
    r"\bin parts of\b": "relative to",
    r"\bto the bit\b": "exactly",
    r"\bone's own\b": "your own",
    r"\btakes? for granted\b": "assumes",
    r"\bdo(es)? not tell\b": "does not determine",
    r"\bas it has it\b": "as in `...`",
    r"\bwhat (it|they) (is|are) called\b": "name",
    r"\bbeyond all measure\b": "too large",
    r"\bcame out\b": "state the result",
    r"\bthose to keep\b": "the names of ...",
    r"\bis lost and said\b": "say what is reported",
}
"""Phrases of a private dialect, as regular expressions, and what to write."""

LINES = 60
"""Greatest number of code lines of a function, without its docstring and comments."""


FOLDERS = ["tests", "benchmarks", "demos", "meshes", "docs/_ext"]
"""Folders outside the package whose names and phrases follow the same rules."""


def sources(*folders: str) -> list[Path]:
    """Return the files of the package and of other folders, without this file."""
    paths = [path for folder in ("dolfinx_mbd", *folders) for path in (ROOT / folder).rglob("*.py")]
    return sorted(path for path in paths if path != Path(__file__))


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line numbers and the texts of all comments and strings of a file."""
    source = path.read_text(encoding="utf-8")
    for number, line in enumerate(source.splitlines(), 1):
        if "#" in line:
            yield number, line.partition("#")[2]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def phrases(path: Path) -> Iterator[str]:
    """Yield the phrases of the private dialect in a file."""
    for line, text in texts(path):
        for pattern, better in PHRASES.items():
            match = re.search(pattern, " ".join(text.split()), re.IGNORECASE)
            if match:
                yield f"line {line}: {match[0]!r}; write {better}"


def vague_names(path: Path) -> Iterator[str]:
    """Yield the names of variables and functions that do not say what they hold or return."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = None
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef):
            name = node.name
        if name in VAGUE:
            yield f"line {getattr(node, 'lineno', 0)}: {name}"


def test_plain_phrases() -> None:
    assert offences(sources(*FOLDERS), phrases) == []


def test_names_of_variables() -> None:
    assert offences(sources(*FOLDERS), vague_names) == []


def code_lines(node: ast.FunctionDef, lines: list[str]) -> int:
    """Return the number of lines of a function without its docstring, comments and blanks."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    if not body:
        return 0
    code = lines[body[0].lineno - 1 : node.end_lineno]
    return sum(1 for line in code if line.strip() and not line.strip().startswith("#"))


def long_functions(path: Path) -> Iterator[str]:
    """Yield the functions with too many lines of code."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            count = code_lines(node, source.splitlines())
            if count > LINES:
                yield f"{node.name} has {count} lines of code"


def test_functions_are_short() -> None:
    assert offences(sources(), long_functions) == []


def parameters(node: ast.FunctionDef) -> list[str]:
    """Return the names of the parameters as docstrings write them, without `self` and `cls`."""
    a = node.args
    names = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
    names += [f"*{a.vararg.arg}"] if a.vararg else []
    names += [arg.arg for arg in a.kwonlyargs]
    return names + ([f"**{a.kwarg.arg}"] if a.kwarg else [])


def documented(docstring: str) -> list[str]:
    """Return the names in the section `Args:` of a docstring."""
    section = re.search(r"^Args:\n((?:(?: .*)?\n)*)", docstring + "\n", re.MULTILINE)
    return re.findall(r"^    (\*{0,2}\w+): ", section[1], re.MULTILINE) if section else []


def signatures(tree: ast.AST) -> Iterator[tuple[str, list[str], str]]:
    """Yield names, parameters and docstrings of public functions and of classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            inits = [
                f for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"
            ]
            for init in inits:
                yield node.name, parameters(init), ast.get_docstring(node) or ""
            yield from signatures(node)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node.name, parameters(node), ast.get_docstring(node) or ""


def test_sections_of_arguments_are_read() -> None:
    source = '''
def f(a, /, b, *c, d=1, **e):
    """Return nothing.

    Args:
        a: First.
            With more: text.
        *c: Third.

    Returns:
        x: None.
    """
'''
    ((name, names, docstring),) = signatures(ast.parse(source))
    assert (name, names) == ("f", ["a", "b", "*c", "d", "**e"])
    assert documented(docstring) == ["a", "*c"]


def incomplete_sections(path: Path) -> Iterator[str]:
    """Yield the functions whose section of arguments differs from the signature."""
    for name, names, docstring in signatures(ast.parse(path.read_text(encoding="utf-8"))):
        sections = re.search(r"^[A-Z]\w+:$", docstring, re.MULTILINE)  # not in plain text
        if sections and documented(docstring) != names:
            yield f"{name}({', '.join(names)}) documents {documented(docstring)}"


def test_docstrings_name_the_parameters() -> None:
    """Sections of arguments are complete and in the order of the signature."""
    assert offences(sources(), incomplete_sections) == []


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (phrases, "# what is no mesh"),
        (phrases, "'gone on with'"),
        (vague_names, "found = 1"),
        (vague_names, "def f(own): pass"),
        (vague_names, "def refused(): pass"),
        (long_functions, "def f():\n" + "    x = 1\n" * (LINES + 1)),
        (incomplete_sections, 'def f(a, b):\n    """F.\n\n    Args:\n        a: A.\n    """'),
    ],
)
def test_rules_name_the_files(rule: Rule, source: str, tmp_path: Path) -> None:
    """A rule reports every file that breaks it, and no other file."""
    texts = {"a.py": source, "b.py": "x = 1  # fine\n", "c.py": source}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    places = offences(sorted(tmp_path.iterdir()), rule)
    assert [Path(text.split(":")[0]).name for text in places] == ["a.py", "c.py"]


def test_spelling() -> None:
    """Words are spelled correctly (codespell); `.codespell-ignore` lists words of the field."""
    pytest.importorskip("codespell_lib")
    command = [sys.executable, "-m", "codespell_lib", "-I", str(ROOT / ".codespell-ignore")]
    command += ["--skip", "*.min.js"]  # three.js
    paths = [PACKAGE, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "demos"]
    run = subprocess.run([*command, *map(str, paths)], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
