"""Text of a deck with the contents of the files that it includes."""

from __future__ import annotations

import re
from pathlib import Path

from dolfinx_mbd.errors import MeshError

__all__ = ["DECKS", "text_of"]

DECKS = {
    ".inp": re.compile(r"^\*INCLUDE\s*,.*?INPUT\s*=\s*([^,\n]+).*$", re.I | re.M),
    ".bdf": re.compile(r"^\s*INCLUDE\s+('[^']+'|\"[^\"]+\"|\S+)\s*$", re.I | re.M),
}
"""Lines that include a file by the suffix of the deck; the group is the name of the file."""
DECKS[".nas"] = DECKS[".bdf"]

# A keyword line that reads its data from a file: keyword and parameters, file, other parameters
_DATA = re.compile(r"^(\*(?!\*)[^\n]*?),\s*INPUT\s*=\s*([^,\n]+)([^\n]*)$", re.I | re.M)
_DEPTH = 20  # largest number of files that include one another


def text_of(path: Path, suffix: str, depth: int = 0) -> str:
    """Return the text of a deck; `INCLUDE` and, in Abaqus decks, `INPUT=` are replaced.

    Args:
        path: The file. Names of included files are relative to its folder.
        suffix: Suffix of the deck, see `DECKS`.
        depth: Number of files that include this one.

    Raises:
        MeshError: An included file does not exist, or files include each other.
        OSError: The file cannot be read.
    """
    text = path.read_text(encoding="latin-1")  # the same bytes if it is written as Latin-1

    def contents(name: str) -> str:
        other = path.parent / name.strip().strip("'\"")
        if depth >= _DEPTH:
            raise MeshError(f"the file {other.name!r} includes itself")
        if not other.is_file():
            raise MeshError(f"the included file '{other}' does not exist")
        return text_of(other, suffix, depth + 1).rstrip("\n")

    text = DECKS[suffix].sub(lambda match: contents(match[1]), text)
    if suffix == ".inp":
        text = _DATA.sub(lambda match: f"{match[1]}{match[3]}\n{contents(match[2])}", text)
    return text
