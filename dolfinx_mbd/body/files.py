"""Saving and loading of reduced bodies as archives in the format of `dolfinx_mbd.archive`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dolfinx_mbd.archive import Kind, archive_writer, errors_as, is_archive, read_archive
from dolfinx_mbd.body.gauges import StrainGauge
from dolfinx_mbd.body.parts import (
    Bore,
    EffectiveMasses,
    Interface,
    LoadPattern,
    MaterialPoint,
    Mode,
    Skin,
    Stiffening,
)
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import FileError
from dolfinx_mbd.files import has_content, write_atomically

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody

T = TypeVar("T")

FORMAT_VERSION = 2  # newest version of the file format that can be read

_MATRICES = ("first_moments", "second_moments", "mass", "stiffness", "damping")

_LISTS: dict[str, tuple[type[Any], str, tuple[str, ...]]] = {
    "interfaces": (Interface, "interface", ("point", "axes", "motion")),
    "points": (MaterialPoint, "point", ("position", "modes")),
    "loads": (LoadPattern, "load", ("force", "moment", "modes", "moments")),
    "gauges": (StrainGauge, "gauge", ("position", "normal", "directions", "modes")),
    "bores": (Bore, "bore", ("displacement",)),
}
"""Class, prefix and array attributes of the entries of each list of the body.

The name of an array in the file is `<prefix>_<index>_<attribute>`.
"""

_BORE = ("name", "radius", "length", "error")

_PARTS: dict[str, tuple[type[Any], dict[str, str]]] = {
    "skin": (Skin, {f"skin_{key}": key for key in ("points", "triangles", "modes")}),
    "stiffening": (Stiffening, {f"stiffening_{k}": k for k in ("spin", "interfaces", "work")}),
    "stress": (
        StressModes,
        {"stress_points": "points", "stress_modes": "stress", "stress_cells": "cells"},
    ),
    "effective_masses": (
        EffectiveMasses,
        {f"effective_mass_{key}": key for key in ("frequencies", "shares")},
    ),
}
"""Optional parts of the body: class, and a mapping from array names to attributes."""


class BodyFileError(FileError):
    """Error for a file that is not a reduced body, is damaged, or has a newer format version."""


_KIND = Kind("dolfinx_mbd reduced body", "reduced body", FORMAT_VERSION, BodyFileError)


def save_body(body: ReducedBody, path: str | Path) -> Path:
    """Write a body to a file and return its path; see `ReducedBody.save`."""
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_suffix(".npz")
    header = {
        "units": "SI: m, kg, s, rad",
        "name": body.name,
        "total_mass": body.total_mass,
        "reference": body.reference,
        "interfaces": [{"name": i.name, "kind": i.kind} for i in body.interfaces],
        "points": [p.name for p in body.points],
        "loads": [p.name for p in body.loads],
        "gauges": [{"name": g.name, "length": g.length} for g in body.gauges],
        "bores": [{key: getattr(b, key) for key in _BORE} for b in body.bores],
        "modes": [asdict(m) for m in body.modes],
        "left_out": [asdict(m) for m in body.left_out],
        "provenance": dict(body.provenance),
    }
    arrays = {name: getattr(body, name) for name in _MATRICES}
    for attribute, (_, prefix, keys) in _LISTS.items():
        for k, entry in enumerate(getattr(body, attribute)):
            arrays |= {f"{prefix}_{k}_{key}": getattr(entry, key) for key in keys}
    for attribute, (_, names) in _PARTS.items():
        part = getattr(body, attribute)
        values = {name: getattr(part, key, None) for name, key in names.items()}
        arrays |= {name: value for name, value in values.items() if value is not None}
    write = archive_writer(_KIND, header, arrays)
    return write_atomically(path, write, "body file", replaces=is_body_file)


def is_body_file(path: Path) -> bool:
    """Return whether a file is empty or has the header of a reduced body."""
    return not has_content(path) or is_archive(path, _KIND)


def read_body(path: str | Path, create: Callable[..., T]) -> T:
    """Return the body in a file; `create` is called with the attributes of a body."""
    if file_path("path", path).suffix.lower() == ".msh":
        text = f"{path}: a mesh, not a reduced body; read it with read_mesh and reduce it"
        raise BodyFileError(f"{text}, or use 'dolfinx-mbd reduce'", path=path)
    header, arrays = read_archive(path, _KIND)
    with errors_as(_KIND, path):
        heads: dict[str, list[dict[str, Any]]] = {
            "interfaces": [{"name": i["name"], "kind": i["kind"]} for i in header["interfaces"]],
            "points": [{"name": name} for name in header["points"]],
            "loads": [{"name": name} for name in header.get("loads", [])],
            "gauges": [{k: g[k] for k in ("name", "length")} for g in header.get("gauges", [])],
            "bores": [{key: b[key] for key in _BORE} for b in header.get("bores", [])],
        }
        parts: dict[str, Any] = {name: arrays[name] for name in _MATRICES}
        for attribute, (kind, prefix, keys) in _LISTS.items():
            parts[attribute] = [
                kind(**head, **{key: arrays[f"{prefix}_{k}_{key}"] for key in keys})
                for k, head in enumerate(heads[attribute])
            ]
        for attribute, (kind, names) in _PARTS.items():
            values = {key: arrays[name] for name, key in names.items() if name in arrays}
            parts[attribute] = kind(**values) if values else None
        return create(
            name=header["name"],
            total_mass=header["total_mass"],
            modes=_modes(header["modes"]),
            left_out=_modes(header.get("left_out", [])),
            reference=header["reference"],
            provenance=header["provenance"],
            **parts,
        )


def _modes(rows: list[dict[str, Any]]) -> list[Mode]:
    return [
        Mode(m["label"], m["frequency"], m.get("character", ""), m.get("reason", "")) for m in rows
    ]
