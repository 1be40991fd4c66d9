"""Materials of Nastran bulk data, for the groups of cells that `read_mesh` makes of properties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import FileError
from dolfinx_mbd.forms import Material
from dolfinx_mbd.geometry.nastran_decks import SUFFIXES, read_bulk_data
from dolfinx_mbd.io.imports.full_matrices import unit_factors
from dolfinx_mbd.io.imports.matrix_files import existing_file


def read_nastran_materials(
    path: str | Path, *, length: float = 1.0, mass: float = 1.0, time: float = 1.0
) -> dict[str, Material]:
    """Return the materials of the solids in a Nastran deck, by the group of cells of `read_mesh`.

    Args:
        path: File with the suffix .bdf or .nas, with cards PSOLID and MAT1.
        length: Unit of length of the deck, m; for mm 1e-3.
        mass: Unit of mass of the deck, kg; for t 1e3.
        time: Unit of time of the deck, s.

    Returns:
        Materials in SI units by names such as `psolid_1`. MAT1 without density is an error, and so
        are other cards: make such materials yourself.

    Raises:
        FileError: A material is missing, not isotropic, or has no density.
        MeshError: The file cannot be read.
        ImportError: pyNastran is not installed.

    Example:
        >>> from pathlib import Path
        >>> cards = "PSOLID,1,7", "MAT1,7,2.1+5,,.3,7.85-9"
        >>> _ = Path("part.bdf").write_text(chr(10).join(cards))
        >>> materials = read_nastran_materials("part.bdf", length=1e-3, mass=1e3)
        >>> round(materials["psolid_1"].density, 6)
        7850.0
    """
    path = existing_file("path", file_path("path", path, SUFFIXES))
    length, mass, time = unit_factors(length=length, mass=mass, time=time)
    model = read_bulk_data(path)
    pressure, density = mass / (length * time**2), mass / length**3
    result = {}
    for number, card in sorted(model.properties.items()):
        if card.type != "PSOLID":
            continue
        material: Any = model.materials.get(card.mid)
        label = f"{path}: PSOLID {number}: MAT1 {card.mid}"
        if material is None or material.type != "MAT1":
            kind = "is missing" if material is None else f"is a {material.type}, not isotropic"
            raise FileError(f"{label} {kind}", path=path)
        if not material.rho:
            raise FileError(f"{label} has no density (field RHO)", path=path)
        result[f"psolid_{number}"] = Material(
            float(material.e) * pressure,
            float(material.nu),
            float(material.rho) * density,
            f"MAT1 {card.mid}",
            float(material.a) or None,
        )
    if not result:
        raise FileError(f"{path}: it has no card PSOLID", path=path)
    return result
