"""Reduced bodies of model files: from a file, or from a mesh that is reduced once."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

import dolfinx_mbd
from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.errors import Error
from dolfinx_mbd.io.models.declarations import REQUIRED, Declared
from dolfinx_mbd.io.models.documents import Place
from dolfinx_mbd.io.models.values import EntryError, Reader
from dolfinx_mbd.mechanism import mechanisms

__all__ = ["FIELDS", "cache_folder", "reduced_body"]

FIELDS = {
    field.name: field
    for field in (
        Declared("mesh", ("str",), None, "Mesh file with named groups (.msh).", ""),
        Declared("step", ("str",), None, "STEP file with named faces; see `size`.", ""),
        Declared("rod", ("Any",), None, "Dimensions of a `ConnectingRod`.", "m"),
        Declared("size", ("float",), None, "Size of the cells of a STEP part.", "m"),
        Declared("unit", ("str",), "m", "Unit of length of the mesh file, such as mm.", ""),
        Declared("material", ("str", "Any"), REQUIRED, "Name of a material, or its constants.", ""),
        Declared("interfaces", ("list[str]", "Any"), REQUIRED, "Names, or kinds by name.", ""),
        Declared("num_modes", ("int",), 20, "Number of fixed-interface modes.", ""),
        Declared("degree", ("int",), 2, "Polynomial degree of the elements.", ""),
        Declared("stiffening", ("bool",), None, "Whether to compute geometric stiffening.", ""),
        Declared("attached_to", ("str",), None, "Interface of the body frame.", ""),
    )
}
"""Fields of a body that is reduced from a mesh."""

log = logging.getLogger("dolfinx_mbd")


def cache_folder() -> Path:
    """Return the folder of reduced bodies, in the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "dolfinx_mbd-bodies"


def reduced_body(reader: Reader, entry: Any, place: Place) -> ReducedBody:
    """Return the reduced body that an entry of a model file describes.

    The entry is the path of a body file, a `rigid_rod`, or a mesh with the fields `FIELDS`. A
    reduction is saved in the `cache_folder` under a name that depends on the contents of the mesh,
    on all fields and on the version of this package.

    Args:
        reader: Conversion of the document.
        entry: The entry.
        place: Its place in the document.

    Raises:
        EntryError: The entry is invalid, or the file cannot be read.
    """
    try:
        if isinstance(entry, str):
            return ReducedBody.load(reader.path(entry, place))
        if isinstance(entry, dict) and entry.get("type") == "rigid_rod":
            fields = {key: value for key, value in entry.items() if key != "type"}
            return reader.made(mechanisms.rigid_rod, "rigid_rod", fields, place)  # type: ignore[no-any-return]
        if isinstance(entry, dict):
            return _reduced(reader, _checked(reader, entry, place), place)
    except (Error, OSError) as error:
        raise EntryError(place, str(error)) from None
    raise EntryError(
        place, "expected a body file such as rod.npz, or a mesh with material and interfaces"
    )


def _checked(reader: Reader, entry: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the fields of a reduction, with the sources of the mesh."""
    for key in entry:
        if key not in FIELDS:
            raise EntryError((*place, key), f"unknown field {key!r}; known are {', '.join(FIELDS)}")
    sources = [key for key in ("mesh", "step", "rod") if key in entry]
    if len(sources) != 1:
        raise EntryError(place, "expected one of the fields mesh, step and rod")
    missing = [name for name, field in FIELDS.items() if field.is_required and name not in entry]
    if missing:
        raise EntryError(place, f"the field {missing[0]!r} is missing")
    result: dict[str, Any] = {}
    for key, value in entry.items():
        is_plain = isinstance(value, dict) or "Any" in FIELDS[key].types
        at = (*place, key)
        result[key] = value if is_plain else reader.value(FIELDS[key], "", value, at)
    if isinstance(result.get("rod"), dict):
        lengths = Declared("rod", ("float", "bool"), REQUIRED, "", "m")
        result["rod"] = {
            k: reader.value(lengths, "", v, (*place, "rod", k)) for k, v in result["rod"].items()
        }
    return result


def _reduced(reader: Reader, fields: dict[str, Any], place: Place) -> ReducedBody:
    from mpi4py import MPI

    from dolfinx_mbd.parallel import on_rank_zero

    comm = MPI.COMM_WORLD
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True, default=str).encode())
    digest.update(dolfinx_mbd.__version__.encode())
    for key in ("mesh", "step"):
        if key in fields:
            digest.update(on_rank_zero(comm, reader.path(fields[key], place).read_bytes))
    path = cache_folder() / f"{digest.hexdigest()[:32]}.npz"
    if on_rank_zero(comm, path.exists):
        log.info("reduced body from %s", path)
        return ReducedBody.load(path)
    body = _reduction(reader, fields, place, comm)
    body.save(path, comm=comm)
    return body


def _reduction(reader: Reader, fields: dict[str, Any], place: Place, comm: Any) -> ReducedBody:
    import dolfinx_mbd as mbd
    from dolfinx_mbd.forms.materials import material

    if "rod" in fields:
        mesh = mbd.build_mesh(mbd.ConnectingRod(**(fields["rod"] or {})), comm)
    elif "step" in fields:
        size = {} if fields.get("size") is None else {"size": fields["size"]}
        mesh = mbd.build_mesh(mbd.StepPart(reader.path(fields["step"], place), **size), comm)
    else:
        unit = fields.get("unit", "m")
        mesh = mbd.read_mesh(reader.path(fields["mesh"], place), comm, unit=unit)
    constants = fields["material"]
    if isinstance(constants, str):
        chosen = material(constants)
    else:
        chosen = reader.made(mbd.Material, "material", constants, (*place, "material"), name="part")
    interfaces = fields["interfaces"]
    if isinstance(interfaces, dict):
        interfaces = {
            name: reader.made(mbd.InterfaceSpec, "", spec or {}, (*place, "interfaces", name))
            for name, spec in interfaces.items()
        }
    return mbd.reduce(
        mbd.ElasticModel(mesh, chosen, degree=fields.get("degree", 2)),
        interfaces=interfaces,
        num_modes=fields.get("num_modes", 20),
        stiffening=fields.get("stiffening"),
        attached_to=fields.get("attached_to"),
    ).body
