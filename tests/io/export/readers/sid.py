"""Reader of SID_FEM files, written only from the grammar of the standard input data.

``part / new modal / refmod, frame, Taylor series / end modal / end part`` with ``name = value``;
structure 0 zero, 1 diagonal, 2 symmetric (lower triangle), 3 full, 4 unit; missing entries are
zero. The caller decides on the order of the indices of m1 and of the columns of Gr and Ge.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ENTRY = re.compile(r"(m[01])\(([\d ,]+)\)\s*=\s*(\S+)$")
KEYS = ("order", "nrow", "ncol", "nq", "nqn", "structure")
NODE_PARTS = ("origin", "phi", "psi", "AP", "sigma")
MODAL_PARTS = ("mdCM", "J", "Ct", "Cr", "Me", "Gr", "Ge", "Oe", "ksigma", "Ke", "De")


@dataclass
class Taylor:
    """Series M0 + M1 q of a matrix: M0 has the shape (rows, columns), M1 (rows, nq, columns)."""

    m0: np.ndarray
    m1: np.ndarray
    order: int

    def at(self, q: np.ndarray) -> np.ndarray:
        """Return M0 + M1 q."""
        return self.m0 + np.einsum("rqc,q->rc", self.m1, q)


@dataclass
class SidFile:
    """Contents of a file."""

    first_line: str
    mass: float = 0.0
    modes: list[str] = field(default_factory=list)
    nodes: dict[str, dict[str, Taylor]] = field(default_factory=dict)
    parts: dict[str, Taylor] = field(default_factory=dict)
    name: str = ""

    def __getitem__(self, name: str) -> Taylor:
        return self.parts[name]

    def by_mode(self, name: str, columns: str) -> np.ndarray:
        """Return the matrices of Gr or Ge, shape (nq, rows, 3).

        Args:
            name: ``"Gr"`` or ``"Ge"``.
            columns: Number of the column of mode l and axis a (from 1): ``"(a-1)*nq+l"`` or
                ``"3*(l-1)+a"``.
        """
        m0 = self[name].m0
        if columns == "(a-1)*nq+l":
            return m0.reshape(len(m0), 3, -1).transpose(2, 0, 1)
        assert columns == "3*(l-1)+a"
        return m0.reshape(len(m0), -1, 3).transpose(1, 0, 2)


def read_sid(path: Path, *, q_second: bool) -> SidFile:
    """Read a file; raise ``ValueError`` if it violates the grammar.

    Args:
        path: The file.
        q_second: Whether the elastic coordinate is the second index of m1, or the third.
    """
    lines = [line.strip() for line in path.read_text(encoding="ascii").splitlines()]
    reader = _Reader(lines, q_second)
    file = SidFile(reader.next())
    reader.expect("part")
    head, _, file.name = (word.strip() for word in reader.next().partition("="))
    if head != "new modal":  # some write "new modal = name"
        raise ValueError("expected 'new modal'")
    reader.expect("refmod")
    _refmod(reader, file)
    reader.expect("frame")
    while (line := reader.next()) != "end frame":
        name = reader.value(line, "new node")
        reader.value(reader.next(), "rframe")
        file.nodes[name] = {}
        while (part := reader.next()) != "end node":
            if part not in NODE_PARTS:
                raise ValueError(f"unknown part of a node {part!r}")
            file.nodes[name][part] = reader.taylor(part)
    while (part := reader.next()) != "end modal":
        if part not in MODAL_PARTS or part in file.parts:
            raise ValueError(f"unknown part {part!r}, or twice")
        file.parts[part] = reader.taylor(part)
    reader.expect("end part")
    if reader.lines:
        raise ValueError("text after the end")
    return file


def _refmod(reader: _Reader, file: SidFile) -> None:
    """Read the mass and the names of the modes."""
    count = 0
    while (line := reader.next()) != "end refmod":
        if line.startswith("mass"):
            file.mass = float(reader.value(line, "mass").replace("D", "e"))
        elif line.startswith("nelastq"):
            count = int(reader.value(line, "nelastq"))
        elif line.startswith("ielastq"):
            file.modes.append(reader.value(line, "ielastq"))
        else:
            raise ValueError(f"unknown line of refmod {line!r}")
    if len(file.modes) != count:
        raise ValueError(f"{count} modes announced, {len(file.modes)} named")


class _Reader:
    """Lines of a file, which are read from the first to the last."""

    def __init__(self, lines: list[str], q_second: bool) -> None:
        self.lines, self.q_second = lines, q_second

    def next(self) -> str:
        return self.lines.pop(0)

    def expect(self, text: str) -> None:
        if (line := self.next()) != text:
            raise ValueError(f"expected {text!r}, got {line!r}")

    @staticmethod
    def value(line: str, key: str) -> str:
        left, sign, right = line.partition("=")
        if not sign or not left.startswith(key):
            raise ValueError(f"expected {key} = ..., got {line!r}")
        return right.strip()

    def taylor(self, name: str) -> Taylor:
        # the head of a series, then its entries m0(row, column) and m1(row, q, column)
        head = {key: int(self.value(self.next(), key)) for key in KEYS}
        rows, columns, nq = head["nrow"], head["ncol"], head["nq"]
        m0, m1 = np.zeros((rows, columns)), np.zeros((rows, nq, columns))
        if head["structure"] == 4:
            m0 = np.eye(rows)
        while (line := self.next()) != f"end {name}":
            match = ENTRY.match(line)
            if match is None:
                raise ValueError(f"{name}: expected an entry, got {line!r}")
            index = tuple(int(word) - 1 for word in match.group(2).split(","))
            number = float(match.group(3).replace("D", "e"))
            if len(index) == 3 and not self.q_second:
                index = (index[0], index[2], index[1])
            limits = (rows, columns) if len(index) == 2 else (rows, nq, columns)
            if any(not 0 <= i < limit for i, limit in zip(index, limits, strict=True)):
                raise ValueError(f"{name}: {line!r} lies outside")
            if match.group(1) == "m0":
                if len(index) != 2 or (head["structure"] == 1 and index[0] != index[1]):
                    raise ValueError(f"{name}: {line!r} does not fit structure {head['structure']}")
                m0[index] = number
                if head["structure"] == 2:
                    m0[index[::-1]] = number
            else:
                if head["order"] < 1 or len(index) != 3:
                    raise ValueError(f"{name}: {line!r} does not fit order {head['order']}")
                m1[index] = number
        if head["structure"] == 0 and (m0.any() or m1.any()):
            raise ValueError(f"{name}: structure 0 has entries")
        return Taylor(m0, m1, head["order"])
