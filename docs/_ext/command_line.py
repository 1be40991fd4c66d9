"""The page of the command line, from the help texts of all commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx

COMMANDS = (
    "mesh",
    "reduce",
    "info",
    "compare",
    "modes",
    "view",
    "strength",
    "fatigue",
    "export",
    "materials",
    "run",
    "check",
    "schema",
    "completion",
)


def help_of(*command: str) -> str:
    """Return the help text of a command."""
    arguments = [sys.executable, "-m", "dolfinx_mbd", *command, "--help"]
    environment = {**os.environ, "COLUMNS": "88"}  # width of the help text, in characters
    result = subprocess.run(arguments, capture_output=True, text=True, env=environment, check=True)
    return result.stdout


def write_page(app: Sphinx) -> None:
    """Write the page into the source folder."""
    lines = ["# Command line", "", "```text", help_of().rstrip(), "```", ""]
    for command in COMMANDS:
        lines += [f"## {command}", "", "```text", help_of(command).rstrip(), "```", ""]
    page = "\n".join(lines)
    path = Path(app.srcdir, "reference", "command_line.md")
    if not path.exists() or path.read_text(encoding="utf-8") != page:
        path.write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before the sources are read."""
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
