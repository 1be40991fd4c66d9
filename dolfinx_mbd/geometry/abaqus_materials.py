"""Constants of the materials of Abaqus and CalculiX decks (`*MATERIAL`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dolfinx_mbd.geometry.deck_materials import DeckMaterial, number

__all__ = ["MATERIAL_OPTIONS", "AbaqusMaterials"]

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
            compliance = np.linalg.inv([[c11, c12, c13], [c12, c22, c23], [c13, c23, c33]])
        except np.linalg.LinAlgError:
            raise _Unusable("its matrix *ELASTIC is singular") from None
        moduli = tuple(float(1 / compliance[k, k]) for k in range(3))
        ratios = tuple(-compliance[i, j] * moduli[i] for i, j in ((0, 1), (0, 2), (1, 2)))
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
