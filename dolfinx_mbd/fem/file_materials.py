"""Materials of the file of a mesh, converted to SI units when they are used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dolfinx_mbd.checks import LENGTHS, UnitFactors
from dolfinx_mbd.errors import FileError, FileWarning, InputError, warn
from dolfinx_mbd.forms import AnyMaterial, Material, Orthotropic
from dolfinx_mbd.geometry.deck_materials import DeckMaterial

__all__ = ["FileMaterials"]


class FileMaterials(Mapping[str, AnyMaterial]):
    """Materials by the name of a group of cells, in SI units.

    An entry that cannot be used raises an error when it is read. Groups of the same material have
    the same object.

    Args:
        path: Name of the file, for messages.
        constants: Materials in the units of the file by group.
        units: Units of the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        constants: Mapping[str, DeckMaterial],
        units: UnitFactors,
    ) -> None:
        self._path, self._constants, self._units = os.fspath(path), constants, units
        self._known: dict[DeckMaterial, AnyMaterial] = {}

    def __getitem__(self, group: str) -> AnyMaterial:
        constants = self._constants[group]
        if constants not in self._known:
            label = f"'{self._path}': the material {constants.name!r} of the cells {group!r}"
            self._known[constants] = self._converted(constants, label)
            for remark in constants.remarks:
                warn(FileWarning(f"{label}: {remark}"))
        return self._known[constants]

    def __iter__(self) -> Iterator[str]:
        return iter(self._constants)

    def __len__(self) -> int:
        return len(self._constants)

    def __repr__(self) -> str:
        names = (f"{group!r}: {entry.name!r}" for group, entry in self._constants.items())
        return f"{{{', '.join(names)}}}"

    def _converted(self, constants: DeckMaterial, label: str) -> AnyMaterial:
        """Return a material in SI units."""
        cure = "give the materials of the cells yourself"
        if constants.error:
            text = f"{label} cannot be used: {constants.error}; {cure}"
            raise FileError(text, path=self._path)
        if self._units.mass is None:
            system = f"{self._units.name if self._units.name in LENGTHS else 'mm'}-t-s"
            raise FileError(
                f"{label} cannot be converted to SI units: unit='{self._units.name}' gives only "
                f"the length. Read the file with its system of units, such as "
                f"unit='{system}' (--unit {system}), or {cure}",
                path=self._path,
            )
        stress, density = self._units.stress, constants.density * self._units.density
        young = np.multiply(constants.young, stress)
        common = {
            "density": density,
            "name": constants.name,
            "thermal_expansion": constants.expansion,
        }
        try:
            if constants.shear is None:
                poisson: Any = constants.poisson
                return Material(young=float(young), poisson=poisson, **common)  # type: ignore[arg-type]
            return Orthotropic(
                young=tuple(young),
                poisson=constants.poisson,  # type: ignore[arg-type]
                shear=tuple(np.multiply(constants.shear, stress)),
                axes=constants.axes,
                **common,  # type: ignore[arg-type]
            )
        except InputError as error:
            text = f"{label} cannot be used: {error}; {cure}"
            raise FileError(text, path=self._path) from None
