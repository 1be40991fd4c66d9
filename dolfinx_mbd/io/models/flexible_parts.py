"""Reduced bodies of model files: from a file, or from a mesh that is reduced once."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import dolfinx_mbd
from dolfinx_mbd import errors
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import Error, warn
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.geometry import ConnectingRod, included_files
from dolfinx_mbd.io.models.beam_entries import checked_beam, checked_places, reduced_beam
from dolfinx_mbd.io.models.declarations import REQUIRED, Declared, declared_fields
from dolfinx_mbd.io.models.documents import Place, unknown
from dolfinx_mbd.io.models.kinds import VALUES
from dolfinx_mbd.io.models.values import NO_KIND, EntryError, Reader
from dolfinx_mbd.mechanism import mechanisms

__all__ = [
    "FIELDS",
    "PICK",
    "cache_folder",
    "facets",
    "material",
    "materials",
    "mesh_fields",
    "mesh_of",
    "picked_interfaces",
    "reduced_body",
]

_ARRAY = ("ArrayLike",)

FIELDS = {
    field.name: field
    for field in (
        Declared("mesh", ("str",), None, "Mesh file with named groups (.msh).", ""),
        Declared("step", ("str",), None, "STEP file with named faces; see `size`.", ""),
        Declared("rod", ("Any",), None, "Dimensions of a `ConnectingRod`.", "m"),
        Declared("beam", ("Any",), None, "Length, elements and section of a beam.", "m"),
        Declared("size", ("float",), None, "Size of the cells of a STEP part.", "m"),
        Declared(
            "unit", ("str",), "m", "Unit of length of the mesh file, or its units: mm-t-s.", ""
        ),
        Declared(
            "material",
            ("str", "Any"),
            None,
            "Name of a material, its constants, or by group; by default those of the mesh file.",
            "",
        ),
        Declared(
            "interfaces",
            ("list[str]", "Any"),
            REQUIRED,
            "Names of groups, or by name the fields of an InterfaceSpec and `pick`.",
            "",
        ),
        Declared("num_modes", ("int",), 20, "Number of fixed-interface modes.", ""),
        Declared("degree", ("int",), 2, "Polynomial degree of the elements.", ""),
        Declared("stiffening", ("bool",), None, "Whether to compute geometric stiffening.", ""),
        Declared("attached_to", ("str",), None, "Interface of the body frame.", ""),
    )
}
"""Fields of a body that is reduced from a mesh."""

PICK = {
    field.name: field
    for field in (
        Declared("cylinder", _ARRAY, None, "Point on the axis, direction, and radius.", "m"),
        Declared("plane", _ARRAY, None, "Point on the plane, and its normal.", "m"),
        Declared("box", _ARRAY, None, "Smallest and largest coordinates of a box.", "m"),
        Declared("near", _ARRAY, None, "Point near a smooth surface.", "m"),
        Declared("tolerance", ("float",), None, "Largest distance from the shapes.", "m"),
    )
}
"""Arguments of `pick` that select the facets of an interface by geometry."""

log = logging.getLogger("dolfinx_mbd")


def cache_folder() -> Path:
    """Return the folder of reduced bodies, in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dolfinx_mbd-bodies"


def reduced_body(reader: Reader, entry: Any, place: Place) -> ReducedBody:
    """Return the reduced body that an entry of a model file describes.

    The entry is the path of a body file, a `rigid_rod`, or a mesh with the fields `FIELDS`. A
    reduction is saved in the `cache_folder` under a name that depends on the contents of the mesh,
    on all fields and on the version of this package. Its warnings are saved with it, and repeated
    whenever the body is loaded.

    Args:
        reader: Conversion of the document.
        entry: The entry.
        place: Its place in the document.

    Raises:
        EntryError: The entry is invalid, or the file cannot be read.
    """
    try:
        if isinstance(entry, str):
            return _load_once(reader, reader.path(entry, place))
        if isinstance(entry, dict) and entry.get("type") == "rigid_rod":
            fields = {key: value for key, value in entry.items() if key != "type"}
            return reader.build(mechanisms.rigid_rod, "rigid_rod", fields, place)  # type: ignore[no-any-return]
        if isinstance(entry, dict):
            return _reduced_or_cached(reader, _checked_fields(reader, entry, place), place)
    except (Error, OSError) as error:
        raise EntryError(place, str(error)) from None
    raise EntryError(
        place, "expected a body file such as rod.npz, or a mesh with material and interfaces"
    )


def _checked_fields(reader: Reader, entry: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the checked fields of a reduction, with one source: a mesh, a part or a beam."""
    result = mesh_fields(reader, entry, place, FIELDS, ("mesh", "step", "rod", "beam"))
    if "material" in entry:
        convert = material if "beam" in entry else materials
        result["material"] = convert(reader, entry["material"], (*place, "material"))
    at = (*place, "interfaces")
    if "beam" in entry:
        beam = checked_beam(reader, entry["beam"], (*place, "beam"))
        places = checked_places(reader, entry["interfaces"], beam, at)
        return {**result, "beam": beam, "interfaces": places}
    result["interfaces"] = picked_interfaces(reader, entry["interfaces"], at)
    return result


def mesh_fields(
    reader: Reader,
    entry: dict[str, Any],
    place: Place,
    fields: Mapping[str, Declared],
    kinds: tuple[str, ...],
) -> dict[str, Any]:
    """Return the checked fields of a mesh; exactly one of the fields `kinds` is its source.

    Args:
        reader: Conversion of the document.
        entry: Fields by name.
        place: Their place in the document.
        fields: Declarations of the fields.
        kinds: Fields that are sources of a mesh.

    Raises:
        EntryError: A field is unknown, missing or invalid, or there is not one source.
    """
    for key in entry:
        if key not in fields:
            raise EntryError((*place, key), unknown("field", key, fields))
    if len([key for key in kinds if key in entry]) != 1:
        names = f"{', '.join(kinds[:-1])} and {kinds[-1]}"
        raise EntryError(place, f"expected one of the fields {names}")
    missing = [name for name, field in fields.items() if field.is_required and name not in entry]
    # A mesh file may contain the materials
    missing += [] if "mesh" in entry or "material" in entry else ["material"]
    if missing:
        raise EntryError(place, f"the field {missing[0]!r} is missing")
    result: dict[str, Any] = {}
    for key, value in entry.items():
        is_converted_later = isinstance(value, dict) or "Any" in fields[key].types
        at = (*place, key)
        result[key] = value
        if not is_converted_later:
            result[key] = reader.value(fields[key], NO_KIND, value, at)
    if isinstance(result.get("rod"), dict):
        declared = declared_fields(ConnectingRod)
        length = Declared("rod", ("float",), REQUIRED, "", "m")
        for key, value in result["rod"].items():
            at = (*place, "rod", key)
            if key not in declared:
                raise EntryError(at, unknown("field", key, declared))
            field = length if "float" in declared[key].types else declared[key]
            result["rod"] = result["rod"] | {key: reader.value(field, NO_KIND, value, at)}
    return result


def material(reader: Reader, entry: Any, place: Place) -> Any:
    """Return the material whose name, or whose type and constants, an entry contains.

    The entry is the name of a known material such as steel, or its constants by name with a `type`
    of `VALUES["Material"]`, by default isotropic. The result is a `Material` or an `Orthotropic`.

    Args:
        reader: Conversion of the document.
        entry: The entry.
        place: Its place in the document.

    Raises:
        EntryError: The entry is invalid.
    """
    from dolfinx_mbd.forms.materials import material as material_of

    if isinstance(entry, str):
        try:
            return material_of(entry)
        except Error as error:
            raise EntryError(place, str(error)) from None
    if not isinstance(entry, dict):
        raise EntryError(place, f"expected the name or the constants of a material; got {entry!r}")
    makers = VALUES["Material"]
    fields = {key: value for key, value in entry.items() if key != "type"}
    kind = entry.get("type", "isotropic")
    if kind not in makers:
        raise EntryError((*place, "type"), unknown("type", kind, makers))
    return reader.build(makers[kind], kind, fields, place)


def materials(reader: Reader, entry: Any, place: Place) -> Any:
    """Return a material, or materials by the name or the tag of a group of cells.

    Args:
        reader: Conversion of the document.
        entry: The entry.
        place: Its place in the document.

    Raises:
        EntryError: The entry is invalid.
    """
    if not isinstance(entry, dict) or not all(
        isinstance(value, (dict, str)) and key != "type" for key, value in entry.items()
    ):
        return material(reader, entry, place)
    from dolfinx_mbd.forms.materials import Material

    if entry.keys() & {field.name for field in dataclass_fields(Material)}:
        return material(reader, entry, place)
    return {
        int(key) if str(key).isdigit() else key: material(reader, value, (*place, key))
        for key, value in entry.items()
    }


def picked_interfaces(reader: Reader, entries: Any, place: Place) -> dict[str, tuple[Any, Any]]:
    """Return the interfaces by name, each with the arguments of `pick` or None."""
    import dolfinx_mbd as mbd

    entries = [entries] if isinstance(entries, str) else entries
    if isinstance(entries, list) and all(isinstance(name, str) for name in entries):
        entries = dict.fromkeys(entries)
    if not isinstance(entries, dict):
        text = "expected a list of names, or interfaces by name, such as"
        text += f" {{big: {{}}, small: {{kind: averaged}}}}; got {entries!r}"
        raise EntryError(place, text)
    result = {}
    for name, entry in entries.items():
        at = (*place, name)
        entry = {} if entry is None else entry
        if isinstance(entry, (str, int)) and not isinstance(entry, bool):
            entry = {"facets": entry}
        if not isinstance(entry, dict):
            raise EntryError(at, f"expected fields by name, such as pick; got {entry!r}")
        fields = {key: value for key, value in entry.items() if key != "pick"}
        if "pick" in entry and "facets" in entry:
            raise EntryError((*at, "pick"), "expected either facets or pick")
        pick = _pick(reader, entry["pick"], (*at, "pick")) if "pick" in entry else None
        result[str(name)] = reader.build(mbd.InterfaceSpec, NO_KIND, fields, at), pick
    return result


def _pick(reader: Reader, entry: Any, place: Place) -> dict[str, Any]:
    """Return the checked arguments of `pick`."""
    if not isinstance(entry, dict) or not entry:
        raise EntryError(place, f"expected one or more of {', '.join(PICK)}")
    for key in entry:
        if key not in PICK:
            raise EntryError((*place, key), unknown("field", key, PICK))
    return {k: reader.value(PICK[k], NO_KIND, value, (*place, k)) for k, value in entry.items()}


def _reduced_or_cached(reader: Reader, fields: dict[str, Any], place: Place) -> ReducedBody:
    """Return the body of a mesh from the cache, or reduce it and save it there (collective)."""
    from mpi4py import MPI

    from dolfinx_mbd.parallel import on_rank_zero

    comm = MPI.COMM_WORLD
    key_fields = dict(fields)
    if isinstance(key_fields.get("material"), dict):  # names and tags cannot be sorted together
        key_fields["material"] = sorted(
            ([str(k), m] for k, m in key_fields["material"].items()), key=str
        )
    digest = hashlib.sha256(json.dumps(key_fields, sort_keys=True, default=_plain).encode())
    digest.update(dolfinx_mbd.__version__.encode())
    for key in ("mesh", "step"):
        if key in fields:
            file = reader.path(fields[key], place)
            if not on_rank_zero(comm, file.is_file):
                raise EntryError((*place, key), f"'{file}' does not exist")
            digest.update(on_rank_zero(comm, partial(_contents, file)))
    path = cache_folder() / f"{digest.hexdigest()[:32]}.npz"
    stored_warnings = on_rank_zero(comm, partial(_stored_warnings, path))
    if stored_warnings is not None and on_rank_zero(comm, path.exists):
        log.info("reduced body from %s", path)
        for name, arguments in stored_warnings:
            warn(getattr(errors, name)(**arguments))
        return _load_once(reader, path)
    with errors.recorded_warnings() as record:
        body = _compute_reduction(reader, fields, place, comm)
    on_rank_zero(comm, partial(_store_warnings, path, record))
    body.save(path, comm=comm)
    return body


def _store_warnings(path: Path, record: list[errors.MbdWarning]) -> None:
    """Write the warnings of a reduction beside its body."""
    entries = []
    for warning in record:
        # The class of a warning may be private; its nearest base class in `errors` can be loaded
        kind = next(k.__name__ for k in type(warning).__mro__ if k.__module__ == errors.__name__)
        fields = {"quantity": warning.quantity, "value": warning.value, "limit": warning.limit}
        entries.append((kind, {"message": str(warning), **fields}))
    data = json.dumps(entries, default=float).encode()
    write_atomically(path.with_suffix(".json"), lambda file: _write(file, data), "warnings")


def _write(file: Any, data: bytes) -> None:
    """Write bytes."""
    file.write(data)


def _stored_warnings(path: Path) -> Any:
    """Return the warnings of a reduction: class and arguments; None if they are not known."""
    try:
        return json.loads(path.with_suffix(".json").read_bytes())
    except (OSError, ValueError):
        return None


def _contents(path: Path) -> bytes:
    """Return the contents of a file, with those of the files that a deck includes."""
    suffix = path.suffix.lower()
    if suffix in included_files.DECKS:
        return included_files.text_of(path, suffix).encode("latin-1")
    return path.read_bytes()


def _load_once(reader: Reader, path: Path) -> ReducedBody:
    """Return the body of a file; several parts of a mechanism can share it."""
    if path not in reader.loaded:
        reader.loaded[path] = ReducedBody.load(path)
    body: ReducedBody = reader.loaded[path]
    return body


def _compute_reduction(
    reader: Reader, fields: dict[str, Any], place: Place, comm: Any
) -> ReducedBody:
    """Reduce the body of a beam or of a mesh (collective)."""
    import dolfinx_mbd as mbd

    if "beam" in fields:
        return reduced_beam(fields, comm)  # type: ignore[no-any-return]
    mesh = mesh_of(reader, fields, place, comm)
    return mbd.reduce(
        mbd.ElasticModel(mesh, fields.get("material"), degree=fields.get("degree", 2)),
        interfaces=facets(mesh, fields["interfaces"], (*place, "interfaces")),
        num_modes=fields.get("num_modes", 20),
        stiffening=fields.get("stiffening"),
        attached_to=fields.get("attached_to"),
    ).body


def mesh_of(reader: Reader, fields: dict[str, Any], place: Place, comm: Any) -> Any:
    """Return the mesh of checked fields (collective).

    Args:
        reader: Conversion of the document.
        fields: Fields with a source of the mesh, see `mesh_fields`.
        place: Their place in the document.
        comm: Communicator.

    Raises:
        EntryError: The file does not exist, or neither it nor the entry has a material.
    """
    import dolfinx_mbd as mbd

    if "rod" in fields:
        return mbd.build_mesh(mbd.ConnectingRod(**(fields["rod"] or {})), comm)
    if "step" in fields:
        size = {} if fields.get("size") is None else {"size": fields["size"]}
        return mbd.build_mesh(mbd.StepPart(reader.path(fields["step"], place), **size), comm)
    path, unit = reader.path(fields["mesh"], place), fields.get("unit", "m")
    if not path.exists():
        raise EntryError((*place, "mesh"), f"'{path}' does not exist")
    mesh = mbd.read_mesh(path, comm, unit=unit)
    if "material" not in fields and not mesh.materials:
        raise EntryError(place, f"the field 'material' is missing, and '{path}' has no materials")
    return mesh


def facets(mesh: Any, interfaces: Mapping[str, tuple[Any, Any]], place: Place) -> dict[str, Any]:
    """Return interfaces by name with the facets that `pick` selects.

    Args:
        mesh: The mesh.
        interfaces: Interfaces with the arguments of `pick` or None, see `picked_interfaces`.
        place: Place of the interfaces in the document.

    Raises:
        EntryError: The arguments select no facets, or are invalid.
    """
    return {
        name: spec if pick is None else replace(spec, facets=_facets(mesh, pick, (*place, name)))
        for name, (spec, pick) in interfaces.items()
    }


def _facets(mesh: Any, pick: Mapping[str, Any], place: Place) -> Any:
    """Return the facets that `pick` selects for the interface at the end of a place."""
    import dolfinx_mbd as mbd

    try:
        return mbd.fem.pick(mesh, **pick)
    except Error as error:
        # The argument of the error may have a prefix, such as "pick: tolerance"
        field = str(getattr(error, "argument", "") or "").split(" ")[-1]
        at = (*place, "pick")
        raise EntryError((*at, field) if field in pick else at, str(error)) from None


def _plain(value: Any) -> Any:
    """Return a dataclass or an array as fields or lists for JSON."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclass_fields(value)}
    return value.tolist() if hasattr(value, "tolist") else str(value)
