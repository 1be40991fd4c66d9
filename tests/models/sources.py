"""Rules that the source files of the package follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

Rule = Callable[[Path], Iterator[str]]
"""A function that yields a text for each place of a file that breaks the rule."""


def offences(paths: Iterable[Path], rule: Rule) -> list[str]:
    """Return all places of files that break a rule, each with the path of its file."""
    return [f"{path}: {text}" for path in paths for text in rule(path)]
