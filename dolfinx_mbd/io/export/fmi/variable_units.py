"""Units of variables in the description of a functional mock-up unit."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree.ElementTree import Element, SubElement

__all__ = ["add_units"]

_BASE_UNITS = {  # exponents of the base units
    "m": {"m": 1},
    "s": {"s": 1},
    "kg": {"kg": 1},
    "rad": {"rad": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
    "W": {"kg": 1, "m": 2, "s": -3},
    "Pa": {"kg": 1, "m": -1, "s": -2},
    "1": {},
}


def add_units(root: Element, units: dict[str, str]) -> None:
    """Add the known units of variables to a description."""
    names = {name: _unit_name(unit) for name, unit in units.items()}
    known = {unit: _exponents(unit) for unit in names.values()}
    for variable in root.iterfind("ModelVariables/*"):
        unit = names[variable.attrib["name"]]
        if known[unit] is not None:
            real = variable.find("Real")  # the element of FMI 2.0 with the attributes of numbers
            (variable if real is None else real).set("unit", unit)
    definitions = Element("UnitDefinitions")
    for unit, exponents in known.items():
        if exponents is not None:
            SubElement(SubElement(definitions, "Unit", name=unit), "BaseUnit", exponents)
    if len(definitions):
        root.insert(1 + [child.tag for child in root].index("CoSimulation"), definitions)


def _unit_name(unit: str) -> str:
    """Return a unit as FMI writes it, for example ``kg.m2/s`` for ``kg m²/s``."""
    return unit.replace(" ", ".").replace("²", "2").replace("³", "3")


def _exponents(unit: str) -> dict[str, str] | None:
    """Return the exponents of the SI base units as text, or None if the unit is unknown."""
    exponents: Counter[str] = Counter()
    for sign, factors in zip((1, -1), unit.split("/"), strict=False):
        for factor in factors.split("."):
            match = re.fullmatch(r"(?P<unit>[A-Za-z]+|1)(?P<power>\d?)", factor)
            if match is None or match["unit"] not in _BASE_UNITS:
                return None
            for base, exponent in _BASE_UNITS[match["unit"]].items():
                exponents[base] += sign * exponent * int(match["power"] or 1)
    return {base: str(exponent) for base, exponent in exponents.items() if exponent}
