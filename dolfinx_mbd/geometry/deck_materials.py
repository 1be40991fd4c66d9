"""Constants of the materials of decks, in the units of the deck.

The readers of Abaqus and CalculiX (`*MATERIAL`) and of Ansys (`MPDATA`, `MP`) are here; that of
Nastran is in `nastran_decks`. A material that cannot be represented has an `error`, and one that is
represented in part has `remarks`: whoever only uses the mesh is not concerned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from dolfinx_mbd.geometry.deck_contents import LeftOut, ansys_element, similar_command

__all__ = [
    "MATERIAL_OPTIONS",
    "AbaqusMaterials",
    "DeckMaterial",
    "ansys_materials",
    "as_json",
    "axes_of_points",
    "from_json",
    "number",
    "shear_error",
    "with_material_sets",
    "without_other_elements",
]

Three = tuple[float, float, float]

_ELASTICITY = {
    *("HYPERELASTIC", "HYPERFOAM", "HYPOELASTIC", "ANISOTROPIC HYPERELASTIC", "POROUS ELASTIC"),
    *("USER MATERIAL", "FABRIC", "LOW DENSITY FOAM", "SUPERELASTIC", "DEFORMATION PLASTICITY"),
}
"""Keywords of Abaqus and CalculiX for elasticity that is not linear."""
_LEFT_OUT = {
    *("PLASTIC", "CYCLIC HARDENING", "RATE DEPENDENT", "CREEP", "VISCOUS", "VISCOELASTIC"),
    *("DAMPING", "DAMAGE INITIATION", "DAMAGE EVOLUTION", "DRUCKER PRAGER", "MOHR COULOMB"),
    *("CAP PLASTICITY", "CAST IRON PLASTICITY", "CLAY PLASTICITY", "CRUSHABLE FOAM", "CONCRETE"),
    *("CONCRETE DAMAGED PLASTICITY", "BRITTLE CRACKING", "POROUS METAL PLASTICITY", "POTENTIAL"),
    *("SWELLING", "MULLINS EFFECT", "HYSTERESIS", "NO COMPRESSION", "NO TENSION", "PIEZOELECTRIC"),
    *("CONCRETE COMPRESSION HARDENING", "CONCRETE TENSION STIFFENING", "TENSION STIFFENING"),
    *("DRUCKER PRAGER HARDENING", "MOHR COULOMB HARDENING", "CAST IRON COMPRESSION HARDENING"),
    *("CAST IRON TENSION HARDENING", "SHEAR FAILURE", "TENSILE FAILURE", "PERMANENT SET"),
}
"""Keywords for properties that are left out with a remark."""
_WITHOUT_EFFECT = {
    *("CONDUCTIVITY", "SPECIFIC HEAT", "LATENT HEAT", "INELASTIC HEAT FRACTION", "DEPVAR"),
    *("ELECTRICAL CONDUCTIVITY", "JOULE HEAT FRACTION", "DIFFUSIVITY", "SOLUBILITY"),
    *("PERMEABILITY", "MAGNETIC PERMEABILITY", "DIELECTRIC", "USER OUTPUT VARIABLES"),
    *("FAIL STRESS", "FAIL STRAIN", "FLUID CONSTANTS", "EMISSIVITY"),
}
"""Keywords for properties without effect on the motion of an elastic body."""
MATERIAL_OPTIONS = _ELASTICITY | _LEFT_OUT | _WITHOUT_EFFECT | {"ELASTIC", "DENSITY", "EXPANSION"}
"""Keywords of materials of Abaqus and CalculiX."""

_IMPLAUSIBLE_SHEAR = 0.01
"""Relative difference of E/(2(1+ν)) from G above which constants contradict each other."""


@dataclass(frozen=True)
class DeckMaterial:
    """A material of a deck, in its units.

    Attributes:
        name: Name in the deck.
        young: Young's modulus; E₁, E₂, E₃ of an orthotropic material.
        poisson: Poisson's ratio; ν₁₂, ν₁₃, ν₂₃.
        shear: G₁₂, G₁₃, G₂₃ of an orthotropic material; None if it is isotropic.
        density: Mass density.
        expansion: Coefficient or coefficients of thermal expansion, if known.
        axes: Rows of the matrix whose columns are the axes of an orthotropic material.
        error: Reason why the material cannot be used; empty if it can.
        remarks: Properties that are left out.
    """

    name: str
    young: float | Three = 0.0
    poisson: float | Three = 0.0
    shear: Three | None = None
    density: float = 0.0
    expansion: float | Three | None = None
    axes: tuple[Three, Three, Three] | None = None
    error: str = ""
    remarks: tuple[str, ...] = ()


def as_json(materials: Mapping[str, DeckMaterial]) -> dict[str, Any]:
    """Return materials by group as dictionaries for JSON."""
    return {group: asdict(material) for group, material in materials.items()}


def from_json(entries: Mapping[str, Any]) -> dict[str, DeckMaterial]:
    """Return materials by group from the result of `as_json`."""
    return {group: DeckMaterial(**_tuples(entry)) for group, entry in entries.items()}


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _tuples(entry) for key, entry in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def number(word: str) -> float:
    """Return the number in a field, whose exponent may be written with D; raise a ValueError."""
    return float(re.sub("d", "e", word.strip(), flags=re.I))


def shear_error(young: float, poisson: float, shear: float) -> str:
    """Return an error if a shear modulus contradicts the constants of an isotropic material."""
    expected = young / (2 * (1 + poisson))
    if abs(expected / shear - 1) <= _IMPLAUSIBLE_SHEAR:
        return ""
    return f"its shear modulus is {shear:g}, but E and ν give {expected:g}: it is not isotropic"


def axes_of_points(a: Any, b: Any, axis: int = 1, degrees: float = 0.0) -> tuple[Any, ...]:
    """Return axes as the rows of a matrix with the axes as columns.

    Axis 1 is along `a`, and axis 2 in the plane of `a` and `b`. Then they are rotated about one of
    them.

    Args:
        a: Point on axis 1, shape (3,).
        b: Point in the plane of the axes 1 and 2, shape (3,).
        axis: Number of the axis of the rotation, 1 to 3.
        degrees: Angle of the rotation, degrees.
    """
    one, three = np.asarray(a, dtype=float), np.cross(a, b)
    one, three = one / np.linalg.norm(one), three / np.linalg.norm(three)
    axes = np.column_stack([one, np.cross(three, one), three])
    angle, (j, k) = np.radians(degrees), [(1, 2), (2, 0), (0, 1)][axis - 1]
    rotation = np.eye(3)
    rotation[j, j] = rotation[k, k] = np.cos(angle)
    rotation[k, j] = np.sin(angle)
    rotation[j, k] = -rotation[k, j]
    return tuple(tuple(map(float, row)) for row in axes @ rotation)


class _Unusable(Exception):
    """A property that cannot be used; the text is the reason."""


@dataclass
class _Abaqus:
    """Properties of a material of Abaqus: options and rows of each keyword."""

    name: str
    blocks: dict[str, tuple[Mapping[str, str], list[list[str]]]] = field(default_factory=dict)


class AbaqusMaterials:
    """Materials of an Abaqus or CalculiX deck, collected from its blocks."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[_Abaqus]] = {}
        self._current: _Abaqus | None = None

    def add(self, keyword: str, options: Mapping[str, str], data: list[str]) -> None:
        """Add a block of the deck; other blocks than those of materials are ignored.

        Args:
            keyword: Keyword in capitals without the star.
            options: Parameters of the keyword line.
            data: Data lines.
        """
        if keyword == "MATERIAL":
            name = options.get("NAME", "")
            self._current = _Abaqus(name)
            self._by_name.setdefault(name.upper(), []).append(self._current)
        elif keyword not in MATERIAL_OPTIONS:
            self._current = None
        elif self._current is not None:
            rows = [[word.strip() for word in line.rstrip().split(",")] for line in data]
            self._current.blocks[keyword] = options, rows

    def names(self) -> list[str]:
        """Return the names of the materials."""
        return [materials[0].name for materials in self._by_name.values()]

    def get(self, name: str, axes: Any = None) -> DeckMaterial:
        """Return a material.

        Args:
            name: Its name; capitals are ignored.
            axes: Axes of an orthotropic material, or the reason why they are not known.
        """
        if name.upper() not in self._by_name:
            return DeckMaterial(name, error="the deck does not contain it")
        material, *others_of_name = self._by_name[name.upper()]
        if any(other.blocks != material.blocks for other in others_of_name):
            text = "the deck defines it several times (*MATERIAL); keep one definition"
            return DeckMaterial(material.name, error=text)
        blocks = material.blocks
        others = tuple(f"*{key}" for key in blocks if key in _LEFT_OUT)
        remarks: tuple[str, ...] = ()
        if others:
            remarks = (f"left out: {', '.join(others)}",)
        try:
            constants = _elastic(blocks)
            density = _constants(blocks, "DENSITY", 1)
            if constants["shear"] is not None:
                if isinstance(axes, str):
                    raise _Unusable(axes)
                constants["axes"] = axes
        except _Unusable as error:
            return DeckMaterial(material.name, error=str(error), remarks=remarks)
        if "EXPANSION" in blocks:
            kind = blocks["EXPANSION"][0].get("TYPE", "ISO").upper()
            size = {"ISO": 1, "ISOTROPIC": 1, "ORTHO": 3}.get(kind)
            try:
                if size is None or (size == 3 and constants["shear"] is None):
                    raise _Unusable(f"*EXPANSION, TYPE={kind} is not read")
                values = _constants(blocks, "EXPANSION", size)
                constants["expansion"] = values if size == 3 else values[0]
            except _Unusable as error:
                remarks += (f"the thermal expansion is left out, because {error}",)
        return DeckMaterial(material.name, density=density[0], remarks=remarks, **constants)


def _elastic(blocks: Mapping[str, tuple[Mapping[str, str], list[list[str]]]]) -> dict[str, Any]:
    """Return `young`, `poisson` and `shear` of a material of Abaqus."""
    for keyword in blocks:
        if keyword in _ELASTICITY:
            raise _Unusable(f"it is not linear elastic (*{keyword})")
    if "ELASTIC" not in blocks:
        raise _Unusable("it has no *ELASTIC")
    kind = blocks["ELASTIC"][0].get("TYPE", "ISO").upper()
    if kind in ("ISO", "ISOTROPIC"):
        isotropic = _constants(blocks, "ELASTIC", 2)
        return {"young": isotropic[0], "poisson": isotropic[1], "shear": None}
    if kind in ("ENGINEERING CONSTANTS", "ORTHO", "ORTHOTROPIC"):
        values = _constants(blocks, "ELASTIC", 9)
        if kind == "ENGINEERING CONSTANTS":
            return {"young": values[:3], "poisson": values[3:6], "shear": values[6:]}
        (c11, c12, c22, c13, c23, c33), shear = values[:6], values[6:]
        try:
            S = np.linalg.inv([[c11, c12, c13], [c12, c22, c23], [c13, c23, c33]])
        except np.linalg.LinAlgError:
            raise _Unusable("its matrix *ELASTIC is singular") from None
        ratios = -S[0, 1] / S[0, 0], -S[0, 2] / S[0, 0], -S[1, 2] / S[1, 1]
        moduli = tuple(float(1 / S[k, k]) for k in range(3))
        return {"young": moduli, "poisson": tuple(map(float, ratios)), "shear": shear}
    raise _Unusable(f"*ELASTIC, TYPE={kind} is not read")


def _constants(
    blocks: Mapping[str, tuple[Mapping[str, str], list[list[str]]]], keyword: str, size: int
) -> tuple[float, ...]:
    """Return the constants of a keyword, which must not depend on anything."""
    if keyword not in blocks:
        raise _Unusable(f"it has no *{keyword}")
    options, rows = blocks[keyword]
    if int(options.get("DEPENDENCIES", "0") or 0):
        raise _Unusable(f"*{keyword} depends on fields")
    lines = 2 if size > 8 else 1  # a line has eight numbers
    table = [
        [word for row in rows[k : k + lines] for word in row[:8]][:size]
        for k in range(0, len(rows), lines)
    ]
    try:
        values = [tuple(number(word) for word in row) for row in table]
    except ValueError as error:
        raise _Unusable(f"*{keyword} is not a list of numbers ({error})") from None
    if not values or len(values[0]) < size:
        raise _Unusable(f"*{keyword} has fewer than {size} constants")
    if any(row != values[0] for row in values):
        raise _Unusable(f"*{keyword} depends on the temperature")
    return values[0]


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
                words = words[3:] if re.match(r"R\d|UNBL", words[1]) else words[1:]
                label, start, values = words[0], int(words[2] or 1), words[3:]
            elif words[0] == "MP":
                words = words[1:]
                label, start, values = words[0], 1, words[2:]
                is_constant = not any(number(w) for w in values[1:] if w)
                # a second value marks a property that depends on the temperature
                values = values[:1] if is_constant else [*values[:1], "nan"]
            elif words[0] == "TB" and words[1] not in ("", "DELE"):
                models.setdefault(int(words[2]), []).append(words[1])
                continue
            else:
                continue
            table = tables.setdefault(int(words[1]), {}).setdefault(label, {})
            table.update({start + k: number(w) for k, w in enumerate(values) if w})
        except (ValueError, IndexError):  # for example the name of a parameter
            match = re.search(r"\d+", words[1] if len(words) > 1 else "")
            if match:
                models.setdefault(int(match[0]), []).append(f"line {line.strip()!r}")
    numbers = sorted({*tables, *models})
    return {k: _ansys_material(k, tables.get(k, {}), models.get(k, [])) for k in numbers}


_ANSYS_ELASTICITY = {"HYPER", "ANEL", "ELAS", "ELASTIC", "USER", "BB", "MOONEY", "SMA"}


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
    for _, kind, _, element in _ansys_elements(lines):
        name = ansys_element(types.get(kind, 0))
        left_out.add(name, f"of type {types.get(kind, 0)}")
        if name and name not in _ANSYS_FACETS:
            removed.update(element)
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
    """Yield material, type and number of the elements of the blocks `EBLOCK`, and their lines."""
    active, active_type, k = 1, 1, 0
    while k < len(lines):
        head = lines[k].strip().upper()
        for command in head.split("$"):
            if match := re.match(r"\s*MAT\s*,\s*(\d+)", command):
                active = int(match[1])
            if match := re.match(r"\s*TYPE\s*,\s*(\d+)", command):
                active_type = int(match[1])
        k += 1
        if not head.startswith("EBLOCK"):
            continue
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
            count = int(head.split(",")[4])
            flat = [n for row in rows for n in row]
            size = len(flat) // count if count else 1
            block = range(first - 2, k)
            for n in flat[::size]:
                yield active, active_type, n, block
                block = range(0)  # its lines belong to the first one
            continue
        begin, left = 0, 0
        for i, row in enumerate(rows):
            begin, left = (i, row[8] - len(row[11:])) if left <= 0 else (begin, left - len(row))
            if left <= 0:
                material, kind, number = (rows[begin][column] for column in (0, 1, 10))
                yield material, kind, number, range(first + begin, first + i + 1)
