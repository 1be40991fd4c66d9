"""Meshes of universal files (`.unv`) with their groups.

Nodes are those of the datasets 15, 781 and 2411, elements those of 780 and 2412. Groups, also those
of nodes, are in one of several datasets. Materials of universal files are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.geometry.deck_materials import number as number_in
from dolfinx_mbd.geometry.deck_mesh import Block, DeckMesh, Integers, add_numbers

__all__ = ["read_universal_mesh"]

_NODES = {15: 1, 781: 2, 2411: 2}
"""Lines of a node by the number of the dataset."""
_GLOBAL = 2411  # its positions are in global coordinates
_ELEMENTS = {780: 8, 2412: 6}
"""Integers in the first line of an element by the number of the dataset."""
_GROUPS = {
    **dict.fromkeys((2417, 2429, 2430, 2432), 2),
    **dict.fromkeys((2435, 2452, 2467, 2477), 4),
}
"""Integers of a member of a group by the number of the dataset."""
_UNITS = 164  # dataset with the units
_NODE, _ELEMENT = 7, 8  # kinds of members of groups

_BEAMS = (11, 21, 22, 23, 24)  # their elements have another line of integers
_SOLIDS = {
    111: ("tetra", 4),
    112: ("wedge", 6),
    113: ("wedge15", 15),
    115: ("hexahedron", 8),
    116: ("hexahedron20", 20),
    118: ("tetra10", 10),
}
_SHELLS = {3: "triangle", 4: "quad", 6: "triangle6", 8: "quad8"}
_LINES = {2: "line", 3: "line3"}
_ORDER = {
    "tetra10": [0, 2, 4, 9, 1, 3, 5, 6, 7, 8],
    "hexahedron20": [
        *(0, 2, 4, 6, 12, 14, 16, 18, 1, 3, 5, 7, 13, 15, 17, 19, 8, 9, 10, 11),
    ],
    "triangle6": [0, 2, 4, 1, 3, 5],
    "quad8": [0, 2, 4, 6, 1, 3, 5, 7],
    "line3": [0, 2, 1],
}
"""Places of VTK's nodes in the order of the file, in which corners and mid-side nodes alternate."""


@dataclass
class _Contents:
    """Contents of a universal file: elements by type, and members of groups by name."""

    labels: list[int] = field(default_factory=list)
    points: list[list[float]] = field(default_factory=list)
    elements: dict[str, list[tuple[int, list[int]]]] = field(default_factory=dict)
    groups: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    unit: float | None = None  # m

    def add(self, number: int, rows: list[str]) -> None:
        """Add a dataset; raise a ValueError or an IndexError if it is damaged."""
        if number in _NODES:
            step = _NODES[number]
            for head, row in zip(rows[::step], rows[step - 1 :: step], strict=True):
                label, system = map(int, head.split()[:2])
                if number != _GLOBAL and system not in (0, 1):
                    raise ValueError(f"node {label} is in another coordinate system")
                self.labels.append(label)
                self.points.append([number_in(word) for word in row.split()[-3:]])
        elif number in _ELEMENTS:
            for kind, label, nodes in _elements(rows, _ELEMENTS[number]):
                self.elements.setdefault(kind, []).append((label, nodes))
        elif number in _GROUPS:
            for name, members in _groups(rows, _GROUPS[number]):
                self.groups.setdefault(name, []).extend(members)
        elif number == _UNITS:
            self.unit = 1.0 / number_in(rows[1].split()[0])  # units in a metre


def read_universal_mesh(path: Path) -> DeckMesh:
    """Return the mesh of a universal file with its groups.

    Args:
        path: The file.

    Raises:
        MeshError: The file is damaged, or has no mesh.
    """
    contents = _Contents()
    for number, rows in _datasets(path):
        try:
            contents.add(number, rows)
        except (ValueError, IndexError, ZeroDivisionError) as error:
            raise MeshError(f"its dataset {number} cannot be read: {error}") from None
    if not contents.labels or not contents.elements:
        raise MeshError("it has no nodes (dataset 2411) or no elements (dataset 2412)")
    labels: set[int] = set()
    for entries in contents.elements.values():
        add_numbers(labels, [label for label, _ in entries])
    row_of = {label: k for k, label in enumerate(contents.labels)}
    blocks = [_block(kind, entries, row_of) for kind, entries in contents.elements.items()]
    numbers = [
        {label: k for k, (label, _) in enumerate(entries)} for entries in contents.elements.values()
    ]
    cell_sets, point_sets = dict[str, list[Integers]](), dict[str, Integers]()
    for name, members in contents.groups.items():
        cells = [label for kind, label in members if kind == _ELEMENT]
        nodes = [row_of[label] for kind, label in members if kind == _NODE and label in row_of]
        if cells:
            parts = ([of[label] for label in cells if label in of] for of in numbers)
            cell_sets[name] = [np.array(part, dtype=np.int64) for part in parts]
        if nodes:
            point_sets[name] = np.unique(nodes)
    points = np.array(contents.points)
    return DeckMesh(points, blocks, cell_sets, point_sets, {}, contents.unit)


def _datasets(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the lines of each dataset; a line with −1 is before and after it."""
    is_inside, rows = False, list[str]()
    with path.open(encoding="latin-1") as file:
        for line in file:
            if line.strip() == "-1":
                head = rows[0].split() if rows else []
                if head and head[0].isdecimal():
                    yield int(head[0]), rows[1:]
                is_inside, rows = not is_inside, []
            elif is_inside:
                rows.append(line.rstrip("\n"))
    if is_inside:
        raise MeshError("it is incomplete: its last dataset has no end")


def _elements(rows: list[str], size: int) -> Iterator[tuple[str, int, list[int]]]:
    """Yield the type, the label and the nodes of each solid, shell and line element.

    Args:
        rows: Lines of the dataset.
        size: Number of integers in the first line of an element; the last is the number of nodes.
    """
    k = 0
    while k < len(rows):
        head = [int(word) for word in rows[k].split()]
        if len(head) < size:
            raise ValueError(f"an element has the line {rows[k].strip()!r}")
        label, descriptor, count = head[0], head[1], head[size - 1]
        k += 2 if descriptor in _BEAMS else 1
        nodes: list[int] = []
        while len(nodes) < count:
            nodes += [int(word) for word in rows[k].split()]
            k += 1
        kind = ""
        if descriptor in _SOLIDS:
            kind, expected = _SOLIDS[descriptor]
            if count != expected:
                raise ValueError(f"element {label} has {count} instead of {expected} nodes")
        elif 110 < descriptor < 120:  # the range of solids
            raise ValueError(f"element {label} is a solid of the unknown type {descriptor}")
        elif 40 < descriptor < 100:  # the range of plane elements and shells
            kind = _SHELLS.get(count, "")
        elif descriptor in _BEAMS:
            kind = _LINES.get(count, "")
        if kind:
            yield kind, label, nodes


def _groups(rows: list[str], size: int) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield the name of each group, with the kind and the label of each member.

    Args:
        rows: Lines of the dataset.
        size: Number of integers of a member.
    """
    k = 0
    while k < len(rows):
        head = [int(word) for word in rows[k].split()]
        name, count = rows[k + 1].strip(), head[7]  # the eighth integer is the number of members
        k += 2
        words: list[int] = []
        while len(words) < size * count:
            words += [int(word) for word in rows[k].split()]
            k += 1
        while k < len(rows) and not rows[k].strip():
            k += 1
        yield name or f"group_{head[0]}", list(zip(words[::size], words[1::size], strict=True))


def _block(kind: str, entries: list[tuple[int, list[int]]], row_of: dict[int, int]) -> Block:
    """Return the elements of one type as a block, with rows of nodes in the order of VTK."""
    try:
        data = np.array([[row_of[n] for n in nodes] for _, nodes in entries], dtype=np.int64)
    except KeyError as error:
        raise MeshError(f"an element has the node {error}, which does not exist") from None
    solids = {name for name, _ in _SOLIDS.values()}
    dim = 3 if kind in solids else (2 if kind in _SHELLS.values() else 1)
    return Block(kind, data[:, _ORDER.get(kind, slice(None))], dim)
