"""Files of reduced bodies: archives, as the module `dolfinx_mbd.archive` defines them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from dolfinx_mbd.archive import Kind, archive_writer, damage_as, is_archive, read_archive
from dolfinx_mbd.body.data import BodyData
from dolfinx_mbd.body.parts import Interface, LoadPattern, Mode, Skin, Station, Stiffening
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import FileError
from dolfinx_mbd.files import has_content, write_aside

__all__ = ["FORMAT_VERSION", "BodyFileError", "is_body_file", "read_body", "save_body"]

T = TypeVar("T")

FORMAT_VERSION = 2
"""Version of the file format; files of newer versions are refused."""

_MATRICES = ("first_moments", "second_moments", "mass", "stiffness", "damping")
_INTERFACE = ("point", "axes", "motion")
_POINT = ("position", "modes")
_LOAD = ("force", "moment", "modes", "moments")
_SKIN = ("points", "triangles", "modes")


class BodyFileError(FileError):
    """A file that is not a reduced body, is damaged, or has a newer format version.

    Example:
        >>> issubclass(mbd.body.BodyFileError, ValueError)
        True
    """


_KIND = Kind("dolfinx_mbd reduced body", "reduced body", FORMAT_VERSION, BodyFileError)


def save_body(body: BodyData, path: str | Path) -> Path:
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
        "modes": [asdict(m) for m in body.modes],
        "left_out": [asdict(m) for m in body.left_out],
        "provenance": dict(body.provenance),
    }
    write = archive_writer(_KIND, header, _arrays(body))
    return write_aside(path, write, "body file", replaces=is_body_file)


def _arrays(body: BodyData) -> dict[str, Any]:
    arrays = {name: getattr(body, name) for name in _MATRICES}
    for prefix, parts, keys in (
        ("interface", body.interfaces, _INTERFACE),
        ("point", body.points, _POINT),
        ("load", body.loads, _LOAD),
    ):
        for k, part in enumerate(parts):
            arrays |= {f"{prefix}_{k}_{key}": getattr(part, key) for key in keys}
    if body.skin is not None:
        arrays |= {f"skin_{key}": getattr(body.skin, key) for key in _SKIN}
    if body.stiffening is not None:
        arrays["stiffening_spin"] = body.stiffening.spin
        arrays["stiffening_interfaces"] = body.stiffening.interfaces
        if body.stiffening.work is not None:
            arrays["stiffening_work"] = body.stiffening.work
    if body.stress is not None:
        arrays["stress_points"] = body.stress.points
        arrays["stress_modes"] = body.stress.stress
    return arrays


def is_body_file(path: Path) -> bool:
    """Return whether a file is empty or has the header of a reduced body."""
    return not has_content(path) or is_archive(path, _KIND)


def read_body(path: str | Path, create: Callable[..., T]) -> T:
    """Return the body in a file; see `ReducedBody.load` for the errors.

    Args:
        path: Path of the file.
        create: Class of the body, called with the attributes of `BodyData` as keywords.
    """
    header, arrays = read_archive(path, _KIND)
    with damage_as(_KIND, path):
        return create(**_values(header, arrays))


def _values(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    def parts(kind: type[Any], prefix: str, heads: list[Any], keys: tuple[str, ...]) -> Any:
        return tuple(
            kind(**head, **{key: arrays[f"{prefix}_{k}_{key}"] for key in keys})
            for k, head in enumerate(heads)
        )

    skin = stiffening = stress = None
    if "skin_points" in arrays:
        skin = Skin(*(arrays[f"skin_{key}"] for key in _SKIN))
    if "stiffening_spin" in arrays:
        stiffening = Stiffening(
            arrays["stiffening_spin"],
            arrays["stiffening_interfaces"],
            arrays.get("stiffening_work"),
        )
    if "stress_modes" in arrays:
        stress = StressModes(arrays["stress_points"], arrays["stress_modes"])
    points = [{"name": name} for name in header["points"]]
    loads = [{"name": name} for name in header.get("loads", [])]
    interfaces = [{"name": i["name"], "kind": i["kind"]} for i in header["interfaces"]]
    return dict(
        name=header["name"],
        total_mass=header["total_mass"],
        interfaces=parts(Interface, "interface", interfaces, _INTERFACE),
        points=parts(Station, "point", points, _POINT),
        loads=parts(LoadPattern, "load", loads, _LOAD),
        skin=skin,
        stiffening=stiffening,
        stress=stress,
        modes=_modes(header["modes"]),
        left_out=_modes(header.get("left_out", [])),
        reference=header["reference"],
        provenance=header["provenance"],
        **{name: arrays[name] for name in _MATRICES},
    )


def _modes(rows: list[dict[str, Any]]) -> tuple[Mode, ...]:
    return tuple(
        Mode(m["label"], m["frequency"], m.get("character", ""), m.get("reason", "")) for m in rows
    )
