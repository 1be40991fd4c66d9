"""Ansys decks (`.cdb`): materials (`MPDATA`, `MP`), and the form that meshlane reads."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping

from dolfinx_mbd.checks import LENGTHS
from dolfinx_mbd.geometry.deck_contents import (
    LeftOut,
    ansys_element,
    similar_command,
)
from dolfinx_mbd.geometry.deck_materials import DeckMaterial, number, shear_error
from dolfinx_mbd.geometry.deck_mesh import add_numbers

__all__ = ["ansys_materials", "unit_of_length", "with_material_sets", "without_other_elements"]


def ansys_materials(text: str) -> dict[int, DeckMaterial]:
    """Return the materials of an Ansys deck by number.

    Args:
        text: The deck.
    """
    tables: dict[int, dict[str, dict[int, float]]] = {}
    models: dict[int, list[str]] = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split("!")[0].upper().split(",")]
        try:
            if words[0] == "MPDATA":
                # An optional release and keyword precede label, material, first index and values
                words = words[3:] if re.match(r"R\d|UNBL", words[1]) else words[1:]
                label, start, values = words[0], int(words[2] or 1), words[3:]
            elif words[0] == "MP":
                words = words[1:]
                label, start, values = words[0], 1, words[2:]
                is_constant = not any(number(w) for w in values[1:] if w)
                # The other values are coefficients of powers of the temperature. A second value in
                # the table marks a property that depends on the temperature
                values = values[:1] if is_constant else [*values[:1], "nan"]
            elif words[0] == "TB" and words[1] not in ("", "DELE"):
                models.setdefault(int(words[2]), []).append(words[1])
                continue
            else:
                continue
            table = tables.setdefault(int(words[1]), {}).setdefault(label, {})
            table.update({start + k: number(w) for k, w in enumerate(values) if w})
        except (ValueError, IndexError):  # for example, the name of a parameter instead of a number
            # The whole line takes the place of a model of this material, which makes it unusable
            match = re.search(r"\d+", words[1] if len(words) > 1 else "")
            if match:
                models.setdefault(int(match[0]), []).append(f"line {line.strip()!r}")
    numbers = sorted({*tables, *models})
    return {k: _ansys_material(k, tables.get(k, {}), models.get(k, [])) for k in numbers}


_ANSYS_ELASTICITY = {"HYPER", "ANEL", "ELAS", "ELASTIC", "USER", "BB", "MOONEY", "SMA"}
"""Labels of the command TB for elasticity that replaces the constants of MP."""


def _ansys_material(
    number: int, table: Mapping[str, Mapping[int, float]], models: list[str]
) -> DeckMaterial:
    """Return a material from its tables of values over the temperature and its TB commands."""
    name = f"MAT {number}"
    others = [f"TB,{model}" for model in models if not model.startswith("line")]
    remarks: tuple[str, ...] = (f"left out: {', '.join(others)}",) if others else ()
    values = {label: next(iter(column.values())) for label, column in table.items() if column}
    error = ""
    unread = [model for model in models if model.startswith("line")]
    elastic = [model for model in models if model in _ANSYS_ELASTICITY]
    variable = [
        label
        for label in ("EX", "EY", "EZ", "NUXY", "PRXY", "GXY", "DENS")
        if len({*table.get(label, {}).values()}) > 1
    ]
    ratio = values.get("PRXY", values.get("NUXY"))
    if unread:
        error = f"it is not read: {unread[0]}"
    elif elastic:
        error = f"it is not linear elastic (TB,{elastic[0]})"
    elif variable:
        error = f"it depends on the temperature ({', '.join(variable)})"
    elif "EX" not in values or ratio is None:
        missing = "Young's modulus (EX)" if "EX" not in values else "Poisson's ratio (PRXY, NUXY)"
        error = f"it has no {missing}"
    elif any(values.get(label, values["EX"]) != values["EX"] for label in ("EY", "EZ")):
        error = "it is orthotropic (EY, EZ)"
    elif any(
        values.get(f"{kind}{pair}", values.get(f"{kind}XY", ratio)) != ratio
        for kind in ("PR", "NU")
        for pair in ("XY", "YZ", "XZ")
    ):
        error = "it is orthotropic (PRYZ, PRXZ)"
    elif "DENS" not in values:
        error = "it has no density (DENS)"
    for label in ("GXY", "GYZ", "GXZ"):
        if not error and label in values:
            error = shear_error(values["EX"], ratio or 0.0, values[label])
    if error:
        return DeckMaterial(name, error=error, remarks=remarks)
    expansion = {x for label in ("ALPX", "ALPY", "ALPZ") for x in table.get(label, {}).values()}
    if len(expansion) > 1:
        remarks += ("the thermal expansion is left out, because it is not constant or isotropic",)
    if label := next((k for k in ("CTEX", "THSX") if k in values), ""):
        remarks += (f"the thermal expansion {label} is left out; only ALPX is read",)
    if values.get("DMPR") or values.get("DAMP") or values.get("BETD"):
        remarks += ("its damping is left out",)
    alpha = expansion.pop() if len(expansion) == 1 else None
    assert ratio is not None
    return DeckMaterial(
        name, values["EX"], ratio, density=values["DENS"], expansion=alpha, remarks=remarks
    )


_LENGTHS = {
    **dict.fromkeys(("SI", "MKS"), "m"),
    **{"UMKS": "um", "CGS": "cm", "MPA": "mm", "BFT": "ft", "BIN": "in"},
}
"""Units of length of the systems of units of Ansys."""


def unit_of_length(text: str) -> float | None:
    """Return the unit of length that an Ansys deck declares with `/UNITS`, m, or None.

    Of several declarations, the last one counts.

    Args:
        text: The deck.
    """
    result = None
    for line in re.findall(r"^\s*/UNIT[^\n!]*", text, re.I | re.MULTILINE):
        words = [word.strip().upper() for word in line.split(",")]
        label, factor = [*words, "", ""][1:3]
        result = LENGTHS[_LENGTHS[label]] if label in _LENGTHS else None
        with contextlib.suppress(ValueError):
            if label in ("USER", "") and number(factor) > 0:
                result = number(factor)
    return result


def with_material_sets(text: str) -> tuple[str, dict[str, int]]:
    """Return an Ansys deck with a component of the elements of each material.

    Args:
        text: The deck.

    Returns:
        The deck, and the numbers of the materials by the name of a component.
    """
    members: dict[int, list[int]] = {}
    for material, _, element, _ in _ansys_elements(text.splitlines()):
        members.setdefault(material, []).append(element)
    blocks, names = [], {}
    for material, elements in sorted(members.items()):
        name = f"material@{material}"
        names[name] = material
        rows = (elements[k : k + 4] for k in range(0, len(elements), 4))
        lines = ["".join(f"{element:20d}" for element in row) for row in rows]
        blocks += [f"CMBLOCK,{name},ELEM,{len(elements)}", "(4i20)", *lines]
    return "\n".join([text.rstrip("\n"), *blocks, ""]), names


def without_other_elements(text: str) -> tuple[str, LeftOut]:
    """Return an Ansys deck without the elements that are neither solids nor shells.

    Args:
        text: The deck.

    Returns:
        The deck, and what is left out.
    """
    lines, left_out = text.splitlines(), LeftOut()
    types = _ansys_types(lines)
    removed: set[int] = set()
    for _, kind, _, lines_of_element in _ansys_elements(lines):
        name = ansys_element(types.get(kind, 0))
        left_out.add(name, f"of type {types.get(kind, 0)}")
        if name and name not in _ANSYS_FACETS:
            removed.update(lines_of_element)
    for line in lines:
        word = line.partition(",")[0].strip().upper()
        left_out.add(_ANSYS_COMMANDS.get(word), word)
        if word.isalpha() and (other := similar_command(word)):
            left_out.add_unknown(line, other)
    rows = (line for k, line in enumerate(lines) if k not in removed)
    return "\n".join([*rows, ""]), left_out


_ANSYS_FACETS = ("shells and membranes",)
_ANSYS_COMMANDS = {
    **dict.fromkeys(("CE", "CP", "CERIG", "RBE3"), "rigid elements and constraints"),
    **dict.fromkeys(("F", "FBLOCK", "SFE", "SFEBLOCK"), "loads"),
    "D": "boundary conditions",
}


_MATERIAL, _TYPE, _NUM_NODES, _NUMBER, _FIRST_NODE = 0, 1, 8, 10, 11
"""Fields of the first line of an element in a block `EBLOCK` of solids."""


def _ansys_types(lines: list[str]) -> dict[int, int]:
    """Return the numbers of types of elements, such as 185, by their numbers in a deck."""
    result: dict[int, int] = {}
    for k, line in enumerate(lines):
        if match := re.match(r"\s*ET\s*,\s*(\d+)\s*,\s*[A-Z]*(\d+)", line, re.I):
            result[int(match[1])] = int(match[2])
        elif match := re.match(r"\s*ETBLOCK\s*,\s*(\d+)", line, re.I):
            rows = (row.split() for row in lines[k + 2 : k + 2 + int(match[1])])
            result |= {int(row[0]): int(row[1]) for row in rows if len(row) > 1 and row[0] != "-1"}
    return result


def _ansys_elements(lines: list[str]) -> Iterator[tuple[int, int, int, range]]:
    """Yield material, type and number of the elements of the blocks `EBLOCK`, and their lines.

    The first line of an element of a solid block has material, type, six other fields, the number
    of nodes, another field, the number of the element and its first nodes.
    """
    active_material, active_type, k = 1, 1, 0
    known: set[int] = set()
    while k < len(lines):
        head = lines[k].strip().upper()
        for command in head.split("$"):  # several commands in a line are separated by $
            if match := re.match(r"\s*MAT\s*,\s*(\d+)", command):
                active_material = int(match[1])
            if match := re.match(r"\s*TYPE\s*,\s*(\d+)", command):
                active_type = int(match[1])
        k += 1
        if not head.startswith("EBLOCK"):
            continue
        # The next line is the Fortran format of the numbers, such as (19i9)
        width = int(match[1]) if (match := re.search(r"\d+i(\d+)", lines[k], re.I)) else 9
        rows: list[list[int]] = []
        k += 1
        first = k
        while k < len(lines) and re.fullmatch(r"[\s\d]+", lines[k]):
            line = lines[k].rstrip()
            words = (line[i : i + width] for i in range(0, len(line), width))
            rows.append([int(word) for word in words if word.strip()])
            k += 1
        if "COMPACT" in head:
            # Number and nodes of each element; material and type are the active ones
            count = int(head.split(",")[4])
            flat = [n for row in rows for n in row]
            size = len(flat) // count if count else 1
            block = range(first - 2, k)  # from the line with EBLOCK
            for n in flat[::size]:
                yield active_material, active_type, n, block
                block = range(0)  # its lines belong to the first one
            continue
        begin, missing_nodes = 0, 0
        numbers: list[int] = []
        for i, row in enumerate(rows):
            if missing_nodes <= 0:  # a new element begins
                begin, missing_nodes = i, row[_NUM_NODES] - len(row[_FIRST_NODE:])
            else:
                missing_nodes -= len(row)
            if missing_nodes <= 0:
                material, kind, number = (rows[begin][c] for c in (_MATERIAL, _TYPE, _NUMBER))
                numbers.append(number)
                yield material, kind, number, range(first + begin, first + i + 1)
        if "SOLID" in head:
            add_numbers(known, numbers)
