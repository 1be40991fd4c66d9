"""A part of a body: magnets."""

from __future__ import annotations

from dataclasses import dataclass, field

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.tree import array_of, freeze_arrays, number_of

__all__ = ["Magnet"]


@dataclass(frozen=True, eq=False)
class Magnet:
    """A magnet with its displacement and rotation per elastic coordinate."""

    name: str
    strength: float = field(metadata=number_of("N m2"))
    motion: Array = field(metadata=array_of("wn", "m"))

    def __post_init__(self) -> None:
        freeze_arrays(self, f"magnet {self.name!r}")
