"""Reader of MBDyn's ``.fem`` files, written only from the grammar in the manual.

MBDyn input manual, appendix "Modal Element Data": records begin with ``** RECORD GROUP <n>``; one
comment line follows the header of group 1 and precedes each mode shape; values are separated by
blanks; group 1 comes first; a group that is unknown or comes twice raises an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

GROUP = re.compile(r"\*\* RECORD GROUP (\d+)")
REQUIRED = {1, 2, 5, 6, 7, 8, 9, 10}
LINE_LIMIT = 1024


@dataclass
class FemFile:
    """Contents of a file; arrays by the number of their record group."""

    labels: list[str] = field(default_factory=list)
    num_nodes: int = 0
    num_modes: int = 0
    groups: dict[int, np.ndarray] = field(default_factory=dict)
    mass: float = 0.0
    centre: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    stress_stiffening: dict[int, np.ndarray] = field(default_factory=dict)

    @property
    def positions(self) -> np.ndarray:
        """Shape (nodes, 3)."""
        return np.stack([self.groups[k] for k in (5, 6, 7)], axis=1)


class _Values:
    """Numbers of one group, which are read from the first to the last."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def line(self) -> str:
        return self.lines.pop(0)

    def words(self, count: int) -> list[str]:
        items: list[str] = []
        while len(items) < count:
            if not self.lines or self.lines[0].startswith("**"):
                raise ValueError(f"expected {count} values, found {len(items)}")
            items += self.lines.pop(0).split()
        if len(items) > count:  # the rest of the line stays
            self.lines.insert(0, " ".join(items[count:]))
        return items[:count]

    def array(self, *shape: int) -> np.ndarray:
        return np.array([float(w) for w in self.words(int(np.prod(shape)))]).reshape(shape)


def read_fem(path: Path) -> FemFile:
    """Read a file; raise ``ValueError`` if it violates the grammar."""
    text = path.read_text(encoding="ascii")
    lines = text.splitlines()
    if any(len(line) > LINE_LIMIT for line in lines):
        raise ValueError("a line is too long")
    starts = [k for k, line in enumerate(lines) if GROUP.match(line)]
    ends = [k for k, line in enumerate(lines) if line.startswith("** END OF FILE")]
    stop = ends[0] if ends else len(lines)
    file = FemFile()
    seen: list[int] = []
    for start, end in zip(starts, [*starts[1:], stop], strict=True):
        match = GROUP.match(lines[start])
        assert match is not None
        number = int(match.group(1))
        if number in seen or not 1 <= number <= 19 or (not seen and number != 1):
            raise ValueError(f"record group {number} is unknown, comes twice or too early")
        seen.append(number)
        values = _Values(lines[start + 1 : end])
        _group(file, number, values)
        for rest in values.lines:
            if rest.strip() and not rest.startswith("**"):
                raise ValueError(f"record group {number}: {rest!r} is left over")
    if not set(seen) >= REQUIRED:
        raise ValueError(f"record groups {REQUIRED - set(seen)} are missing")
    return file


def _group(file: FemFile, number: int, values: _Values) -> None:
    """Read a record group of a file."""
    nodes, n = file.num_nodes, file.num_modes
    shapes: dict[int, tuple[int, ...]] = {
        3: (n,),
        4: (n,),
        5: (nodes,),
        6: (nodes,),
        7: (nodes,),
        9: (n, n),
        10: (n, n),
        11: (nodes, 6),
        13: (n, n),
        14: (3, n),
        15: (3, n),
        16: (3, n, 3),
        17: (3, n, n),
        18: (3, n, n, 3),
    }
    if number == 1:
        values.line()
        words = values.words(6)
        counts = [int(w) for w in words[1:]]
        # nodes; normal, attachment and constraint modes, less the rejected ones
        file.num_nodes, file.num_modes = counts[0], sum(counts[1:4]) - counts[4]
    elif number == 2:
        file.labels = values.words(nodes)
    elif number == 8:
        modes = []
        for _ in range(n):
            comment = values.line()
            if comment and not comment.startswith("**"):
                raise ValueError(f"expected a comment before a mode shape, got {comment!r}")
            modes.append(values.array(nodes, 6))
        file.groups[8] = np.array(modes)
    elif number == 12:
        file.mass = float(values.words(1)[0])
        file.centre, file.inertia = values.array(3), values.array(3, 3)
    elif number == 19:
        for _ in range(int(values.words(1)[0])):
            index = int(values.words(1)[0])
            file.stress_stiffening[index] = values.array(n, n)
    else:
        file.groups[number] = values.array(*shapes[number])
