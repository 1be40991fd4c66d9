"""Quantities that colour surfaces: their ranges, units and the text of the colour bar.

All renderers draw stresses that are averaged over the cells around each node, because a surface has
one colour at each node. Their colour bars say so, and they state the peak in single cells, which is
the value of `mbd.most_stressed`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dolfinx_mbd.body.quantities import QUANTITIES
from dolfinx_mbd.checks import choice, reject
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT, Surface

__all__ = ["STRESSES", "Field", "field_of", "peak_text", "rounded_up", "text_of", "unit_of"]

STRESSES = tuple(q.name for q in QUANTITIES.values() if q.needs == ("stress",) and not q.shape)
"""Stresses that can determine colours."""


@dataclass(frozen=True)
class Field:
    """A quantity that colours the surfaces of a scene.

    Attributes:
        name: `displacement` or the name of a stress.
        text: Text of the colour bar.
        factor: Factor from SI units to the numbers on the colour bar.
        limits: Range of the colours, in the units of the colour bar; None without a colour.
    """

    name: str
    text: str
    factor: float
    limits: tuple[float, float] | None


def text_of(quantity: str) -> str:
    """Return the name of a quantity on colour bars, without its unit."""
    if quantity == DISPLACEMENT:
        return "elastic displacement"
    return quantity + " stress" * ("stress" not in quantity) + ", averaged over cells"


def field_of(quantity: str, surfaces: Sequence[Surface]) -> Field:
    """Return a quantity with its range on surfaces over time."""
    choice("quantity", quantity, (DISPLACEMENT, *STRESSES))
    coloured = [surface for surface in surfaces if surface.has(quantity)]
    if any(surface.flexible for surface in surfaces) and not coloured:
        hint = "add the stress of the modes: body.replace(stress=mbd.durability.skin_stress(...))"
        expected = f"{DISPLACEMENT!r}, because no body has stress at its skin"
        reject("quantity", quantity, expected, hint=hint)
    limits = [surface.limits(quantity) for surface in coloured]
    low = min((low for low, _ in limits), default=0.0)
    high = max((high for _, high in limits), default=0.0)
    factor, unit = unit_of(high) if quantity == DISPLACEMENT else (1e-6, "MPa")
    ends = min(0.0, factor * low), rounded_up(factor * high)
    return Field(quantity, f"{text_of(quantity)} ({unit})", factor, ends if coloured else None)


def peak_text(quantity: str, surfaces: Sequence[Surface], when: str) -> str:
    """Return the peak of a stress in single cells as text, or an empty text if it is unknown."""
    peaks = [surface.peak(quantity) for surface in surfaces]
    known = [peak for peak in peaks if peak is not None]
    return f", peak{when} {1e-6 * max(known):.4g} MPa in one cell" if known else ""


def rounded_up(value: float) -> float:
    """Return a value rounded up to two digits that form a multiple of 4, for five even labels."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    return 4 * math.ceil(value / power / 4 - 1e-9) * power


def unit_of(greatest: float) -> tuple[float, str]:
    """Return the factor and name of a suitable unit of length for a displacement (m)."""
    for factor, name in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        if greatest * factor >= 0.1:  # at least a tenth of the unit
            return factor, name
    return (1e9, "nm") if greatest > 0 else (1e3, "mm")
