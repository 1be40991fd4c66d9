"""Units of variables in the description of a functional mock-up unit."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement

from dolfinx_mbd.mechanism.expressions.unit_expressions import parse_unit

__all__ = ["add_units"]

_BASE_UNITS = {"length": "m", "mass": "kg", "time": "s", "temperature": "K", "angle": "rad"}


def add_units(root: Element, units: dict[str, str]) -> None:
    """Add the known units of variables to a description."""
    names = {name: _unit_name(unit) for name, unit in units.items()}
    known = {_unit_name(unit): _base_unit(unit) for unit in units.values()}
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


def _base_unit(unit: str) -> dict[str, str] | None:
    """Return the exponents of the SI base units and the factor to them.

    None: the unit is unknown, has a fractional exponent or counts cycles.
    """
    known = parse_unit(unit)
    if known is None or known[1].cycle or any(power % 1.0 for power in known[1]):
        return None
    factor, dimension = known
    powers = dimension._asdict()
    exponents = {unit: f"{powers[key]:.0f}" for key, unit in _BASE_UNITS.items() if powers[key]}
    return exponents if factor == 1.0 else exponents | {"factor": repr(factor)}
