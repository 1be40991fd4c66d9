"""README.md can be followed: its commands name what exists, its snippets are of this package.

Run as a script, for .ci/run, it prints the commands that start with ./with-fenicsx, or the example.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from mpi4py import MPI

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
#: Other programs whose commands may be shown: ways to get the project and DOLFINx.
OTHERS = {"cd", "conda", "docker", "git", "pip", "sudo"}


def blocks(*languages: str) -> list[str]:
    """Return the fenced blocks of README.md in these languages."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for language, text in fences if language in languages]


def commands() -> list[str]:
    r"""Return all commands in README.md without prompts and comments.

    A `\` at the end of a line joins it with the next one.
    """
    lines: list[str] = []
    for block in blocks("bash", "console", "sh", "shell"):
        prompts = re.findall(r"^\$ (.*)$", block.replace("\\\n", " "), re.MULTILINE)
        lines += prompts or block.replace("\\\n", " ").splitlines()
    stripped = (re.sub(r"(^|\s)#.*", "", line) for line in lines)
    return [" ".join(line.split()) for line in stripped if line.strip()]


def our_commands() -> list[str]:
    """Return the commands of README.md that use the launcher."""
    return [command for command in commands() if command.startswith("./with-fenicsx ")]


def test_opens_with_the_two_commands() -> None:
    assert our_commands()[:2] == [
        "./with-fenicsx python3 demos/engine.py",
        "./with-fenicsx python3 -m pytest",
    ]


@pytest.mark.parametrize("command", commands())
def test_command_can_be_typed(command: str) -> None:
    words = shlex.split(command)
    named = [word for word in words if re.fullmatch(r"(demos|meshes|tests)/\S*", word)]
    for path in named:
        assert (ROOT / path).exists(), f"there is no {path}"
    for part in re.split(r" && ", command):
        assert part.split()[0] in OTHERS | {"./with-fenicsx", "python3", ".ci/run", "export"}
    if command.startswith("./with-fenicsx "):  # .ci/run splits these at blanks
        assert command.split() == words and "&&" not in words


@pytest.mark.slow
@pytest.mark.parametrize("snippet", blocks("python"))
def test_snippet_runs(
    snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comm: MPI.Intracomm
) -> None:
    """The example of README.md runs in an empty folder."""
    monkeypatch.chdir(Path(comm.bcast(str(tmp_path), root=0)))
    exec(compile(snippet, "README.md", "exec"), {"__name__": "__main__"})


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


if __name__ == "__main__":
    parts = {"commands": our_commands(), "example": blocks("python")}
    print("\n".join(parts[sys.argv[1]]))
