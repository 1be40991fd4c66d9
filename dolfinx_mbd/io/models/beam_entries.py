"""Beams of model files: straight beams along the x axis of their body frame, reduced to modes."""

from __future__ import annotations

from typing import Any

from dolfinx_mbd.errors import InputError
from dolfinx_mbd.io.models.declarations import REQUIRED, Declared
from dolfinx_mbd.io.models.documents import Place, unknown
from dolfinx_mbd.io.models.values import NO_KIND, EntryError, Reader

__all__ = ["BEAM", "SECTIONS", "checked_beam", "checked_places", "reduced_beam"]

SECTIONS = {
    "circle": Declared("circle", ("float",), None, "Radius of a round section.", "m"),
    "tube": Declared("tube", ("ArrayLike",), None, "Outer radius and wall thickness.", "m"),
    "rectangle": Declared("rectangle", ("ArrayLike",), None, "Width along y, height along z.", "m"),
}
"""Fields of the cross-sections; a beam has exactly one of them."""

BEAM = {
    field.name: field
    for field in (
        Declared("length", ("float",), REQUIRED, "Length of the beam from x = 0.", "m"),
        Declared("elements", ("int",), 40, "Number of equal elements.", ""),
        *SECTIONS.values(),
    )
}
"""Fields of a beam."""


def checked_beam(reader: Reader, entry: Any, place: Place) -> dict[str, Any]:
    """Return the fields of a beam in SI units.

    Args:
        reader: Conversion of the document.
        entry: Fields by name.
        place: Their place in the document.

    Raises:
        EntryError: A field is missing, unknown or invalid.
    """
    if not isinstance(entry, dict):
        raise EntryError(place, "expected length and section of a beam, such as circle: 5mm")
    for key in entry:
        if key not in BEAM:
            raise EntryError((*place, key), unknown("field", key, BEAM))
    if "length" not in entry or len(SECTIONS.keys() & entry.keys()) != 1:
        raise EntryError(place, f"expected length and one of the sections {', '.join(SECTIONS)}")
    return {k: reader.value(BEAM[k], NO_KIND, value, (*place, k)) for k, value in entry.items()}


def checked_places(
    reader: Reader, entries: Any, beam: dict[str, Any], place: Place
) -> dict[str, float]:
    """Return the distances of interfaces from the start of a beam by name, m.

    Args:
        reader: Conversion of the document.
        entries: Distances by name, or names among `start` and `end`.
        beam: Fields of the beam.
        place: Place of the entries in the document.

    Raises:
        EntryError: A name or a distance is invalid.
    """
    ends = {"start": 0.0, "end": beam["length"]}
    if isinstance(entries, list) and all(name in [*ends] for name in entries):
        return {name: ends[name] for name in entries}
    if not isinstance(entries, dict):
        raise EntryError(place, "expected start, end, or distances along the beam by name")
    distance = Declared("interfaces", ("float",), REQUIRED, "", "m")
    return {
        str(name): reader.value(distance, NO_KIND, value, (*place, name))
        for name, value in entries.items()
    }


def reduced_beam(fields: dict[str, Any], comm: Any) -> Any:
    """Return the reduced body of a beam (collective).

    Args:
        fields: Checked fields of the reduction.
        comm: Communicator.

    Raises:
        InputError: A value is invalid, for example an interface between two nodes.
    """
    from dolfinx.mesh import create_interval

    import dolfinx_mbd as mbd

    beam = fields["beam"]
    kind = next(name for name in SECTIONS if name in beam)
    sizes = beam[kind] if isinstance(beam[kind], list) else [beam[kind]]
    if len(sizes) != (1 if kind == "circle" else 2):
        raise InputError(f"beam: expected two lengths of the {kind}; got {sizes}")
    section = getattr(mbd.forms.Section, kind)(*sizes)
    mesh = create_interval(comm, beam.get("elements", 40), [0.0, beam["length"]])
    return mbd.reduce_beam(
        mbd.BeamModel(mesh, section, fields["material"]),
        interfaces=fields["interfaces"],
        num_modes=fields.get("num_modes", 20),
        attached_to=fields.get("attached_to"),
        stiffening=fields.get("stiffening"),
    ).body
