"""Constants of the materials of decks, in the units of the deck.

The readers are in `abaqus_materials`, `ansys_decks` and `nastran_decks`. A material that cannot be
represented has an `error`, and one that is represented in part has `remarks`. They are reported
only if the material is used, not if only the mesh is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["DeckMaterial", "as_json", "axes_of_points", "from_json", "number", "shear_error"]

Three = tuple[float, float, float]

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
    """Return a value whose nested lists are tuples."""
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
    first, third = np.asarray(a, dtype=float), np.cross(a, b)
    first, third = first / np.linalg.norm(first), third / np.linalg.norm(third)
    axes = np.column_stack([first, np.cross(third, first), third])
    angle, (j, k) = np.radians(degrees), [(1, 2), (2, 0), (0, 1)][axis - 1]
    rotation = np.eye(3)
    rotation[j, j] = rotation[k, k] = np.cos(angle)
    rotation[k, j] = np.sin(angle)
    rotation[j, k] = -rotation[k, j]
    return tuple(tuple(map(float, row)) for row in axes @ rotation)
