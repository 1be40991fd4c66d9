"""Sets and surfaces of Abaqus and CalculiX decks in the form that meshlane reads.

meshlane reads nodes, elements, parts and instances. Of sets it reads lists of numbers only;
therefore `plain_deck` replaces ranges (GENERATE) and names of other sets by numbers, and merges the
blocks of a set. Surfaces become sets of elements with the label of a face, and sections
(`*SOLID SECTION`) sets of elements with a material.

A set belongs to the deck, to a part, to an instance, or to the assembly, where the parameter
INSTANCE names the instance.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from dolfinx_mbd.errors import MeshError
from dolfinx_mbd.geometry.abaqus_materials import MATERIAL_OPTIONS, AbaqusMaterials
from dolfinx_mbd.geometry.deck_contents import LeftOut, abaqus_element
from dolfinx_mbd.geometry.deck_materials import DeckMaterial, axes_of_points, number
from dolfinx_mbd.geometry.deck_mesh import add_numbers

__all__ = ["FACES", "PlainDeck", "Surfaces", "plain_deck"]

Surfaces = dict[str, list[tuple[str, str]]]
"""Names of sets of elements and labels of faces, such as `S1`, by the name of a surface."""

FACES: dict[str, list[tuple[int, ...]]] = {
    "tetra": [(0, 1, 2), (0, 1, 3), (1, 2, 3), (0, 2, 3)],
    "hexahedron": [
        *[(0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (1, 2, 5, 6), (2, 3, 6, 7), (0, 3, 4, 7)],
    ],
    "triangle": [(0, 1), (1, 2), (0, 2)],
    "quad": [(0, 1), (1, 2), (2, 3), (0, 3)],
}
"""Corners of the faces S1, S2 ... (edges of plane elements) by the type of the element."""

_UNSUPPORTED = {
    "SYSTEM": "positions in another coordinate system (*SYSTEM)",
    **dict.fromkeys(("NGEN", "NFILL", "NCOPY", "NMAP"), "generated nodes (*NGEN, *NFILL, *NCOPY)"),
    **dict.fromkeys(("ELGEN", "ELCOPY"), "generated elements (*ELGEN, *ELCOPY)"),
}
_SCOPES = ("PART", "INSTANCE", "ASSEMBLY")
_SOLID = re.compile(r"C3D(\d+)[A-Z]*")
_SIZES = (4, 5, 6, 8, 10, 13, 15, 20)  # numbers of nodes of solids
_NUMBERS_PER_LINE = 16  # largest number that Abaqus reads in a line of a set


@dataclass
class PlainDeck:
    """A deck with sets of numbers, and what it contains besides the mesh.

    Attributes:
        text: The deck.
        surfaces: Sets of elements and labels of faces by the name of a surface.
        auxiliary: Names in capitals of the sets that only surfaces and sections need.
        sections: Materials by the name of a set of elements.
        only_of_surfaces: Names in capitals of the sets whose faces are surfaces and that no section
            names.
        internal_nodes: Names in capitals of the sets of nodes with the parameter INTERNAL.
        unassigned: Material with the reason why the sections give the cells none; None if the deck
            has no material.
        remarks: Texts on contents that are left out, for warnings.
        unit: Unit of length that the file declares, m, or None.
    """

    text: str = ""
    surfaces: Surfaces = field(default_factory=dict)
    auxiliary: set[str] = field(default_factory=set)
    sections: dict[str, DeckMaterial] = field(default_factory=dict)
    only_of_surfaces: set[str] = field(default_factory=set)
    internal_nodes: set[str] = field(default_factory=set)
    unassigned: DeckMaterial | None = None
    remarks: list[str] = field(default_factory=list)
    unit: float | None = None


@dataclass
class _Scope:
    """Sets of the deck, a part, an instance or the assembly, by kind and name in capitals."""

    kind: str
    name: str = ""
    part: str = ""
    sets: dict[tuple[str, str], dict[str, list[int]]] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    sections: list[dict[str, str]] = field(default_factory=list)  # options of *SOLID SECTION
    axes: dict[str, Any] = field(default_factory=dict)  # `_axes` by the name of the *ORIENTATION
    elements: set[int] = field(default_factory=set)  # numbers, unique within a scope only

    def add(self, kind: str, name: str, numbers: list[int], instance: str = "") -> None:
        """Add numbers to a set, for an instance in the assembly."""
        key = kind, name.upper()
        self.names.setdefault(key, name)
        self.sets.setdefault(key, {}).setdefault(instance, []).extend(numbers)

    def lines(self) -> Iterator[str]:
        """Yield the lines that define the sets."""
        for (kind, upper), parts in self.sets.items():
            name = self.names[kind, upper]
            for instance, numbers in parts.items():
                if numbers:
                    where = f", INSTANCE={instance}" if instance else ""
                    yield f"*{kind}, {kind}={name}{where}\n"
                    for k in range(0, len(numbers), _NUMBERS_PER_LINE):
                        yield ", ".join(map(str, numbers[k : k + _NUMBERS_PER_LINE])) + "\n"


class _Deck:
    """The state of the reading of a deck."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.surfaces: Surfaces = {}
        # Names of sets in capitals
        self.internal: set[str] = set()  # sets of elements with the parameter INTERNAL
        self.internal_nodes: set[str] = set()  # sets of nodes with the parameter INTERNAL
        # Sets of elements that `add_surface` makes, and internal sets that a surface names
        self.internal_of_surfaces: set[str] = set()
        self.of_surfaces: set[str] = set()  # all sets of elements that surfaces name
        self.nodes: set[int] = set()
        self.elements: set[int] = set()
        self.solid_nodes: set[int] = set()
        self.left_out = LeftOut()
        self.remarks: list[str] = []
        self.scopes = [_Scope("DECK")]
        self.closed: dict[tuple[str, str], _Scope] = {}  # scopes that have ended, by kind and name
        self.materials = AbaqusMaterials()
        self.section_options: dict[str, dict[str, str]] = {}
        # By the set of a section: the axes of its orientation, the reason why they are unknown
        # (a text), or None for a section without orientation
        self.axes: dict[str, Any] = {}
        self.has_rotated_instance = False

    def begin(self, keyword: str, options: dict[str, str]) -> None:
        """Begin a part, an instance or the assembly."""
        name, part = options.get("NAME", ""), options.get("PART", "")
        self.scopes.append(_Scope(keyword, name.upper(), part.upper()))

    def end(self) -> None:
        """Write the sets of the innermost scope, also those of its sections."""
        for options in self.scopes[-1].sections:
            name = f"section@{len(self.section_options)}"
            self.section_options[name] = options
            orientation = options.get("ORIENTATION", "").upper()
            self.axes[name] = f"its orientation {orientation!r} is missing" if orientation else None
            for scope in self.scopes:
                self.axes[name] = scope.axes.get(orientation, self.axes[name])
            elements = options.get("ELSET", "")
            self._check_name("ELSET", elements, "*SOLID SECTION")
            for place, numbers in self._members("ELSET", elements, "").items():
                self.scopes[-1].add("ELSET", name, numbers, place)
        scope = self.scopes.pop()
        self.lines.extend(scope.lines())
        self.closed[scope.kind, scope.name] = scope

    def sections(self) -> dict[str, DeckMaterial]:
        """Return the materials of the sections, by the names of their sets of elements."""
        result = {}
        for name, options in self.section_options.items():
            label, axes = options.get("MATERIAL", ""), self.axes[name]
            if self.has_rotated_instance:
                axes = "it is orthotropic, and an instance of the assembly is rotated"
            material = self.materials.get(label, axes)
            if not label or "COMPOSITE" in options:
                elements = options.get("ELSET", "")
                text = f"the *SOLID SECTION of {elements!r} does not name it"
                if "COMPOSITE" in options:
                    text = f"it is the composite section of {elements!r}"
                material = DeckMaterial(label, error=text)
            result[name] = material
        return result

    def add_set(self, keyword: str, options: dict[str, str], rows: list[list[str]]) -> None:
        """Add a block of a set of nodes or elements."""
        name, instance = options.get(keyword, ""), options.get("INSTANCE", "")
        scope = self.scopes[-1]
        if not name:
            raise MeshError(f"*{keyword} without the parameter {keyword}=")
        if "INTERNAL" in options:
            (self.internal if keyword == "ELSET" else self.internal_nodes).add(name.upper())
        scope.add(keyword, name, [], instance)
        for row in rows:
            if "GENERATE" in options:
                first, last, step = [*map(int, row), 1][:3]
                scope.add(keyword, name, [*range(first, last + 1, step)], instance)
                continue
            for word in row:
                self._check_name(keyword, word, f"the set '{name}'")
                for place, numbers in self._members(keyword, word, instance).items():
                    scope.add(keyword, name, numbers, place)

    def _members(self, keyword: str, word: str, instance: str) -> dict[str, list[int]]:
        """Return the numbers that a word names, by instance; the word is a number or a set."""
        if word.isdecimal():
            return {instance: [int(word)]}
        before, dot, after = word.upper().rpartition(".")
        if dot and after.isdecimal():
            return {before: [int(after)]}
        if dot and ("INSTANCE", before) in self.closed:
            scope = self.closed["INSTANCE", before]
            part = self.closed.get(("PART", scope.part), scope)
            sets = {**part.sets, **scope.sets}.get((keyword, after), {})
            return {before: [n for numbers in sets.values() for n in numbers]}
        for scope in reversed(self.scopes):
            if (keyword, word.upper()) in scope.sets:
                return {k: list(v) for k, v in scope.sets[keyword, word.upper()].items()}
        return {}  # for example a set of elements without a mesh, such as springs

    def _check_name(self, keyword: str, word: str, user: str) -> None:
        """Add a remark if a word is the name of a set that does not exist."""
        name = word.upper()
        is_number = name.rpartition(".")[2].isdecimal()
        if is_number or "." in name or any((keyword, name) in s.sets for s in self.scopes):
            return
        self.remarks.append(f"{user} names the unknown set '{word}', which is left out")

    def add_nodes(self, options: dict[str, str], data: list[str]) -> None:
        """Check a block of nodes, and add it to its set."""
        numbers = list(_first_numbers(data))
        for line in data:
            count = line.rstrip().rstrip(",").count(",")
            if not 0 < count < 4:  # Abaqus takes missing coordinates as zero
                text = f"a node has {count} coordinates instead of 1 to 3"
                raise MeshError(f"{text}: '{line.strip()}'")
        self.nodes.update(numbers)
        if "NSET" in options:
            self.scopes[-1].add("NSET", options["NSET"], numbers)

    def add_elements(self, options: dict[str, str], line: str, data: list[str]) -> str:
        """Check a block of elements, add it to its set, and return its keyword line."""
        kind = options.get("TYPE", "").upper()
        if not kind:
            raise MeshError(f"the type of elements is missing: '{line.strip()}'")
        solid = _SOLID.fullmatch(kind)
        size = int(solid[1]) if solid else 0
        if kind.startswith("C3D") and size not in _SIZES:
            raise MeshError(f"the type of elements {kind} is unknown: '{line.strip()}'")
        rows = list(_elements(data, size))
        numbers = [row[0] for row in rows]
        add_numbers(self.scopes[-1].elements, numbers)
        self.elements.update(numbers)
        if solid:
            for row in rows:
                if len(row) != size + 1:
                    text = f"the element {row[0]} has {len(row) - 1} nodes instead of {size}"
                    raise MeshError(f"{text} ({kind})")
            self.solid_nodes.update(n for row in rows for n in row[1:])
        else:
            self.left_out.add(abaqus_element(kind), kind, len(rows))
        if "ELSET" in options:
            self.scopes[-1].add("ELSET", options["ELSET"], numbers)
        return f"*ELEMENT, TYPE={f'C3D{size}' if solid else kind}\n"

    def check(self) -> None:
        """Raise an error without elements, and for nodes of solids and sets that do not exist.

        A set with an element that does not exist gives a remark only.
        """
        if not self.elements:
            what = "elements (*ELEMENT)" if self.nodes else "nodes and elements (*NODE, *ELEMENT)"
            raise MeshError(f"it has no {what}; it is empty, incomplete or of another program")
        # A node may be missing because its keyword is misspelt and therefore unknown
        hint = "".join(f"; {text}" for text in self.left_out.unknown())
        if missing := self.solid_nodes - self.nodes:
            raise MeshError(f"elements have the node {min(missing)}, which does not exist{hint}")
        for scope in self.closed.values():
            for (kind, name), parts in scope.sets.items():
                known = self.elements if kind == "ELSET" else self.nodes
                is_auxiliary = "@" in name  # a set that this class has made
                missing = {*chain(*parts.values())} - known
                if is_auxiliary or not missing:
                    continue
                text = f"the set '{scope.names[kind, name]}' has the "
                if kind == "NSET":
                    text += f"node {min(missing)}, which does not exist; correct the set"
                    raise MeshError(f"{text}{hint}")
                self.remarks.append(f"{text}element {min(missing)}, which does not exist")

    def unassigned(self) -> DeckMaterial | None:
        """Return a material with the reason why the sections give the cells none."""
        names = self.materials.names()
        if not names:
            return None
        sets = ", ".join(f"'{o.get('ELSET', '')}'" for o in self.section_options.values())
        reason = f"*SOLID SECTION names {sets}, without solids" if sets else "no *SOLID SECTION"
        return DeckMaterial(", ".join(names), error=f"no cells have it ({reason})")

    def add_surface(self, options: dict[str, str], rows: list[list[str]]) -> None:
        """Add a surface of faces of elements, or of nodes."""
        name = options.get("NAME", "")
        if options.get("TYPE", "ELEMENT").upper() == "NODE":
            self.add_set("NSET", {"NSET": name}, [row[:1] for row in rows])
            return
        for row in rows:
            label = row[1].upper() if len(row) > 1 else ""
            elements = f"{name}@{label or 'all'}"
            self._check_name("ELSET", row[0], f"the surface '{name}'")
            self.of_surfaces.add(row[0].upper())
            members = self._members("ELSET", row[0], "")
            if not members:
                continue
            self.internal_of_surfaces |= {elements.upper()} | ({row[0].upper()} & self.internal)
            for place, numbers in members.items():
                self.scopes[-1].add("ELSET", elements, numbers, place)
            if (elements, label) not in self.surfaces.setdefault(name, []):
                self.surfaces[name].append((elements, label))


def plain_deck(text: str) -> PlainDeck:
    """Return a deck whose sets are lists of numbers, with its surfaces and its materials.

    Args:
        text: The deck, without `INCLUDE`.

    Raises:
        MeshError: The deck has nodes in other coordinates, generates nodes or elements, or refers
            to nodes or elements that do not exist.
    """
    deck = _Deck()
    in_step = False
    for keyword, line, data in _blocks(text):
        try:
            _add_block(deck, keyword, line, data, in_step=in_step)
        except MeshError:
            raise
        except (ValueError, IndexError) as error:
            raise MeshError(f"'{line.strip()}' has data that are not read: {error}") from None
        in_step = keyword == "STEP" or (in_step and keyword != "END STEP")
    while deck.scopes:
        deck.end()
    deck.check()
    of_sections = {options.get("ELSET", "").upper() for options in deck.section_options.values()}
    return PlainDeck(
        text="".join(deck.lines),
        surfaces=deck.surfaces,
        auxiliary=deck.internal_of_surfaces | {name.upper() for name in deck.section_options},
        sections=deck.sections(),
        only_of_surfaces=deck.of_surfaces - of_sections,
        internal_nodes=deck.internal_nodes,
        unassigned=deck.unassigned(),
        remarks=deck.left_out.remarks() + deck.remarks,
    )


def _add_block(deck: _Deck, keyword: str, line: str, data: list[str], *, in_step: bool) -> None:
    """Add a block to a deck."""
    options = _options(line)
    deck.left_out.add_keyword(keyword, line, MATERIAL_OPTIONS, in_step=in_step)
    if keyword in _UNSUPPORTED or (keyword == "NODE" and options.get("SYSTEM", "R").upper() != "R"):
        what = _UNSUPPORTED.get(keyword, "nodes in cylindrical or spherical coordinates")
        text = f"it has {what}; write a deck with all nodes and elements in global rectangular"
        raise MeshError(f"{text} coordinates")
    if keyword.startswith("END ") and keyword[4:] in _SCOPES and len(deck.scopes) > 1:
        deck.end()
    deck.materials.add(keyword, options, data)
    if keyword == "SOLID SECTION":
        deck.scopes[-1].sections.append(options)
    if keyword == "ORIENTATION":
        deck.scopes[-1].axes[options.get("NAME", "").upper()] = _axes(options, data)
    # The first line of data of an instance is its translation, the second one its rotation
    deck.has_rotated_instance |= keyword == "INSTANCE" and len(data) > 1
    if keyword in ("NSET", "ELSET"):
        deck.add_set(keyword, options, _rows(data))
        return
    if keyword == "SURFACE":
        deck.add_surface(options, _rows(data))
        return
    if keyword == "ELEMENT":
        line = deck.add_elements(options, line, data)
    if keyword == "NODE":
        deck.add_nodes(options, data)
    if keyword in _SCOPES:
        deck.begin(keyword, options)
    deck.lines += [line, *data]


def _axes(options: dict[str, str], data: list[str]) -> Any:
    """Return the axes of an orientation (`axes_of_points`), or the reason why they are not read."""
    system = options.get("SYSTEM", "RECTANGULAR").upper()
    definition = options.get("DEFINITION", "COORDINATES").upper()
    if not "RECTANGULAR".startswith(system) or definition != "COORDINATES":
        return f"*ORIENTATION, SYSTEM={system}, DEFINITION={definition} is not read"
    try:
        rows = [[number(word) for word in line.split(",") if word.strip()] for line in data]
        rotation = (int(rows[1][0]), rows[1][1]) if len(rows) > 1 and len(rows[1]) > 1 else ()
        a, b, origin = rows[0][:3], rows[0][3:6], rows[0][6:]
        if any(origin):
            a = [x - c for x, c in zip(a, origin, strict=True)]
            b = [x - c for x, c in zip(b, origin, strict=True)]
        axes = axes_of_points(a, b, *rotation)
    except (ValueError, IndexError, ZeroDivisionError) as error:
        return f"its *ORIENTATION is not a list of numbers ({error})"
    is_defined = not any(math.isnan(x) for row in axes for x in row)  # NaN if a and b are parallel
    return axes if is_defined else "its *ORIENTATION has no axes"


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield keyword, keyword line and data lines of each block, without comments."""
    line, data = "", list[str]()
    for row in text.splitlines(keepends=True):
        if row.startswith("**") or not row.strip():
            continue
        if row.lstrip().startswith("*"):
            if line.rstrip().endswith(","):  # a keyword line continues after a comma
                line = line.rstrip() + " " + row
                continue
            if line:
                yield _keyword(line), line, data
            line, data = row.lstrip(), []
        elif line.rstrip().endswith(",") and not data:  # the continuation may lack a star
            line = line.rstrip() + " " + row
        else:
            data.append(row)
    if line:
        yield _keyword(line), line if line.endswith("\n") else line + "\n", data


def _keyword(line: str) -> str:
    """Return the keyword of a line in capitals, without the star."""
    return " ".join(line.partition(",")[0].strip().lstrip("*").upper().split())


def _options(line: str) -> dict[str, str]:
    """Return the values of the parameters of a keyword line, by name in capitals."""
    words = (word.partition("=") for word in line.strip().split(",")[1:])
    return {name.strip().upper(): value.strip().strip('"') for name, _, value in words}


def _rows(data: list[str]) -> list[list[str]]:
    """Return the words of each data line."""
    rows = ([word.strip().strip('"') for word in line.split(",")] for line in data)
    return [[word for word in row if word] for row in rows]


def _first_numbers(data: list[str]) -> Iterator[int]:
    """Yield the first number of each entry, which continues on the next line after a comma."""
    continues = False
    for line in data:
        if not continues:
            yield int(line.partition(",")[0])
        continues = line.rstrip().endswith(",")


def _elements(data: list[str], size: int) -> Iterator[list[int]]:
    """Yield the number and nodes of elements, which continue on the next line after a comma.

    An element also continues on the next line if it has fewer than `size` nodes so far.
    """
    row: list[int] = []
    for line in data:
        row += map(int, filter(str.strip, line.split(",")))
        if len(row) > size and (size or not line.rstrip().endswith(",")):
            yield row
            row = []
    if row:
        yield row
