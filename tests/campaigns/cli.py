"""The command line with hostile values: each option of each command, and each kind of file.

A command must end with the status 0, 1 or 2, without a traceback. With 1 it must print one line
that starts with the name of the program; with 2 argparse prints how the command is called.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dolfinx_mbd.io.cli.main import main, parser
from tests.campaigns.cases import Case

VALUES = (
    "", " ", "hostile", "-1", "0", "1", "nan", "inf", "-inf", "1e300", "1e-300", str(10**9),
    "9" * 400, "0x10", "1_0", "1,2", "5-1", "1-", "a=b", "a=b=c", "a=", "=b", "a=1", "a=1,2,3",
    "a=nan,0,0", "a:b:c", ":", "=", "a=b:averaged", "a\0b", "ä\n\u2028", "{}", "[]", "None",
    "__import__('os')", "(" * 300, "../..", "/", "{folder}", "{folder}/none", "{folder}/none/x.npz",
    "{folder}/rod.msh", "{folder}/rod.npz", "{folder}/own.toml", "{folder}/noise.npz",
    "{folder}/noise.msh", "{folder}/noise.step", "{folder}/empty.npz", "{folder}/empty.toml",
    "{folder}/noise.toml", "{folder}/wrong.toml", "/proc/self/x", "x" * 300,
)  # fmt: skip
"""Values of options and names of files."""

ASSIGNED = {"--option": "dialect", "--petsc": "pc_factor_mat_solver_type"}
"""A valid NAME for each option whose values have the form ``NAME=value``."""

COMMANDS: dict[str, Sequence[str]] = {
    "mesh rod": ("--size", "0.03", "--order", "1"),
    "mesh step": ("{folder}/part.step",),
    "reduce": (
        "{folder}/rod.msh", "--material", "steel", "--interface", "big_end", "--modes", "1",
        "--degree", "1", "--no-stiffening", "-q",
    ),
    "materials": (),
    "info": ("{folder}/rod.npz",),
    "compare": ("{folder}/rod.npz", "{folder}/rod.npz"),
    "modes": ("{folder}/rod.npz", "--modes", "1"),
    "export": ("{folder}/rod.npz", "--to", "sid", "-o", "{folder}/out"),
}  # fmt: skip
"""Valid words of each command."""


def cases(folder: Path, *, only: str | None = None, seed: int = 0) -> Iterator[Case]:
    """Return all cases: first the valid commands, then each option with each value.

    Args:
        folder: A folder for files; each case runs in it.
        only: A command; all by default.
        seed: Not used, since nothing is random here.
    """
    folder = folder / "files"
    _prepare(folder)
    for command, words in COMMANDS.items():
        if only not in (None, command):
            continue
        valid = [*command.split(), *words]
        yield Case(command, "", "valid call", lambda w=valid: _run(folder, w, {0}))
        yield Case(command, "", "--help", lambda w=valid: _run(folder, [*w, "--help"], {0}))
        for action in _parser_of(command)._actions:
            if isinstance(action, argparse._HelpAction):
                continue
            for attack, change in _changes(action, len(command.split()), valid):
                name = action.option_strings[-1] if action.option_strings else action.dest
                yield Case(command, name, attack, lambda w=change: _run(folder, w, {0, 1, 2}), 30.0)


def _changes(action: Any, start: int, valid: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Return the words with an option added, or with a file replaced."""
    if not action.option_strings:
        for value in VALUES:
            place = start + (action.dest == "second")
            yield ascii(value[:40]), [*valid[:place], value, *valid[place + 1 :]]
        return
    option = action.option_strings[-1]
    yield "no value", [*valid, option]
    yield "twice", [*valid, option, "a=b", option, "a=b"]
    if action.nargs != 0:
        for value in VALUES:
            yield ascii(value[:40]), [*valid, f"{option}={value}"]
            if option in ASSIGNED:
                yield f"set to {value[:40]!a}", [*valid, option, f"{ASSIGNED[option]}={value}"]


def _parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command."""
    result = parser()
    for word in command.split():
        choices = next(a for a in result._actions if isinstance(a, argparse._SubParsersAction))
        result = choices.choices[word]
    return result


def _prepare(folder: Path) -> None:
    """Write the files that the commands read."""
    from tests.campaigns.bench import Bench

    folder.mkdir(exist_ok=True)
    Bench(folder).file("part.step")
    mesh, body = str(folder / "rod.msh"), str(folder / "rod.npz")
    ends = ["--interface", "big_end", "--interface", "small_end"]
    reduce = ["reduce", mesh, "--material", "steel", "--modes", "2", "--degree", "1", "-q"]
    rod = ["mesh", "rod", "--size", "0.03", "--order", "1", "-o", mesh]
    for words in (rod, [*reduce, *ends, "-o", body]):
        assert (fault := _run(folder, words, {0})) is None, fault
    for suffix in ("npz", "msh", "step", "toml"):
        (folder / f"noise.{suffix}").write_bytes(bytes(range(256)) * 9)
        (folder / f"empty.{suffix}").touch()
    (folder / "own.toml").write_text("[wood]\nyoung = 11e9\npoisson = 0.3\ndensity = 450\n")
    (folder / "wrong.toml").write_text("[a]\nyoung = 'x'\npoisson = nan\ndensity = []\n")


def _run(folder: Path, words: Sequence[str], codes: set[int]) -> str | None:
    """Run a command; return what is wrong with its status or its output."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([word.replace("{folder}", str(folder)) for word in words])
    text = err.getvalue()
    lines = text.splitlines()
    errors = [k for k, line in enumerate(lines) if line.startswith("dolfinx-mbd: error: ")]
    shown = " | ".join(lines[-3:])[-200:]
    if code not in codes:
        return f"status {code}: {shown}"
    if "Traceback" in text:
        return f"traceback: {shown}"
    if code == 1 and errors != [len(lines) - 1] and "they differ" not in out.getvalue():
        return f"not one line: {shown}"
    if code == 1 and lines and len(lines[-1]) > 600:
        return f"a message of {len(lines[-1])} characters: {lines[-1][:100]}"
    return None
