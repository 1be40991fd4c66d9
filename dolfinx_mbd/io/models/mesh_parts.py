"""Models of mesh bodies in model files, read from and written to mesh files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dolfinx_mbd.errors import Error, InputError
from dolfinx_mbd.io.models.declarations import Declared
from dolfinx_mbd.io.models.documents import Place
from dolfinx_mbd.io.models.flexible_parts import (
    FIELDS,
    facets,
    material,
    materials,
    mesh_fields,
    mesh_of,
    picked_interfaces,
    reduced_body,
)
from dolfinx_mbd.io.models.values import NO_KIND, EntryError, Reader

__all__ = ["MODEL", "SPECIAL", "model_entry", "write_mesh_of"]

_FIELD_NAMES = ("mesh", "step", "rod", "size", "unit", "material", "degree")

MODEL = {
    **{name: FIELDS[name] for name in _FIELD_NAMES},
    "prestress": Declared("prestress", ("Temperature",), None, "Rise of the temperature.", "K"),
}
"""Fields of the model of a mesh body."""


def _elastic_model(reader: Reader, entry: Any, place: Place) -> Any:
    """Return the model that an entry describes; equal entries are one model (collective)."""
    from mpi4py import MPI

    import dolfinx_mbd as mbd

    if not isinstance(entry, dict):
        text = "expected a mesh and a material, such as {mesh: part.msh, material: steel}"
        raise EntryError(place, f"{text}; got {entry!r}")
    folder = reader.document.file_of(place).parent  # paths are relative to it
    key = "ElasticModel", str(folder), json.dumps(entry, default=str)
    if key not in reader.loaded:
        fields = mesh_fields(reader, entry, place, MODEL, ("mesh", "step", "rod"))
        material_by_group = None
        if "material" in entry:
            material_by_group = materials(reader, entry["material"], (*place, "material"))
        prestress = fields.get("prestress")
        if isinstance(prestress, dict):
            prestress = reader.value(MODEL["prestress"], NO_KIND, prestress, (*place, "prestress"))
        try:
            mesh = mesh_of(reader, fields, place, MPI.COMM_WORLD)
            model = mbd.ElasticModel(
                mesh, material_by_group, degree=fields.get("degree", 2), prestress=prestress
            )
        except (Error, OSError) as error:
            raise EntryError(place, str(error)) from None
        reader.loaded[key] = model
    return reader.loaded[key]


def _interfaces(reader: Reader, entry: Any, place: Place) -> Any:
    """Return the interfaces: names of groups if the entry has only names, else fields by name.

    `pick` selects facets of the mesh of the same body.
    """
    result = picked_interfaces(reader, entry, place)
    if isinstance(entry, (list, str)):
        return list(result)
    if not any(pick for _, pick in result.values()):
        return {name: spec for name, (spec, _) in result.items()}
    body: Any = reader.document.data
    for key in place[:-1]:
        body = body[key]
    model = _elastic_model(reader, body.get("model"), (*place[:-1], "model"))
    return facets(model.mesh, result, place)


SPECIAL: Mapping[str, Callable[[Reader, Any, Place], Any]] = {
    "ReducedBody": reduced_body,
    "ElasticModel": _elastic_model,
    "Interfaces": _interfaces,
    "Material": material,
    "Materials": materials,
}
"""Conversions of entries to values of types that need a mesh or a file."""


def model_entry(model: Any, plain: Callable[[Any, str], Any], place: str) -> dict[str, Any]:
    """Return the fields of the model of a body, without its mesh.

    Args:
        model: The model, an `ElasticModel`.
        plain: Function of a value and its place that returns lists, dictionaries and numbers.
        place: Place of the model, for messages.

    Raises:
        InputError: The model has a stiffness form, a density of its own or another prestress.
    """
    for name in ("stiffness", "density"):
        if getattr(model, name) is not None:
            raise InputError(
                f"{place}: the {name} of an ElasticModel cannot be written to a model file; give "
                "it a material",
                argument="system",
                value=getattr(model, name),
            )
    degree = model.displacements.ufl_element().degree
    result = {"material": plain(model.material, f"{place}.material"), "degree": int(degree)}
    if model.prestress is not None:
        result["prestress"] = plain(model.prestress, f"{place}.prestress")
    return result


def write_mesh_of(model: Any, path: Path) -> None:
    """Write the mesh of a model with its groups to a mesh file (collective).

    Args:
        model: The model, an `ElasticModel`.
        path: File with the suffix .msh; an existing mesh file is replaced.
    """
    from dolfinx_mbd.fem.mesh_gathering import gathered_mesh
    from dolfinx_mbd.files import write_atomically
    from dolfinx_mbd.geometry.msh_text import msh_text

    arrays = gathered_mesh(model.mesh, model.cell_tags, model.facet_tags)
    if arrays is not None:
        data = msh_text(arrays).encode()
        write_atomically(path, lambda file: _write(file, data), "mesh", replaces=_is_mesh)


def _write(file: Any, data: bytes) -> None:
    """Write bytes."""
    file.write(data)


def _is_mesh(path: Path) -> bool:
    """Return whether a file is a mesh of Gmsh."""
    return path.read_bytes()[:11] == b"$MeshFormat"
