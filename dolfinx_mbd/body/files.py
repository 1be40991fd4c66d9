"""The file of a reduced body: an archive (:mod:`dolfinx_mbd.archive`), never a pickle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dolfinx_mbd.archive import Kind, archive_writer, damage_as, is_archive, read_archive
from dolfinx_mbd.body.parts import Interface, LoadPattern, Mode, Skin, Station, Stiffening
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import FileError
from dolfinx_mbd.files import has_content, write_aside

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody

__all__ = [
    "FORMAT_VERSION",
    "BodyFileError",
    "is_body_file",
    "read_body",
    "save_body",
]

T = TypeVar("T")

#: Version of the file format; a reader refuses a newer one.
FORMAT_VERSION = 2

_LOAD_PARTS = ("force", "moment", "modes", "moments")
_MATRICES = ("first_moments", "second_moments", "mass", "stiffness", "damping")


class BodyFileError(FileError):
    """A file is not a reduced body, is damaged, or is newer than this program."""


_KIND = Kind("dolfinx_mbd reduced body", "reduced body", FORMAT_VERSION, BodyFileError)


def save_body(body: ReducedBody, path: str | Path) -> Path:
    """Write a body to ``path`` (``.npz`` is added if it has no suffix) and return the path.

    The file appears under its name only when it is complete.

    A body file that is there already is replaced; any other file is not.

    Raises:
        OverwriteError: If there is a file that is not a reduced body.
        OSError: If the file cannot be written; a file that was there before is left as it was.
    """
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
    arrays: dict[str, Any] = {name: getattr(body, name) for name in _MATRICES}
    for k, interface in enumerate(body.interfaces):
        arrays[f"interface_{k}_point"] = interface.point
        arrays[f"interface_{k}_axes"] = interface.axes
        arrays[f"interface_{k}_motion"] = interface.motion
    for k, point in enumerate(body.points):
        arrays[f"point_{k}_position"] = point.position
        arrays[f"point_{k}_modes"] = point.modes
    for k, load in enumerate(body.loads):
        for part in _LOAD_PARTS:
            arrays[f"load_{k}_{part}"] = getattr(load, part)
    if body.skin is not None:
        arrays["skin_points"] = body.skin.points
        arrays["skin_triangles"] = body.skin.triangles
        arrays["skin_modes"] = body.skin.modes
    if body.stiffening is not None:
        arrays["stiffening_spin"] = body.stiffening.spin
        arrays["stiffening_interfaces"] = body.stiffening.interfaces
        if body.stiffening.work is not None:
            arrays["stiffening_work"] = body.stiffening.work
    if body.stress is not None:
        arrays["stress_points"] = body.stress.points
        arrays["stress_modes"] = body.stress.stress
    write = archive_writer(_KIND, header, arrays)
    return write_aside(path, write, "body file", replaces=is_body_file)


def is_body_file(path: Path) -> bool:
    """Return whether a file is a reduced body, as far as its header says, or empty."""
    return not has_content(path) or is_archive(path, _KIND)


def read_body(path: str | Path, create: Callable[..., T]) -> T:
    """Read a file that `save_body` wrote.

    Args:
        path: The file.
        create: Constructor of the body, called with the values in the file.

    Warns:
        FileWarning: The file was written by the first edition and has no checksum.

    Raises:
        BodyFileError: The file is not a body, is damaged, or is of a newer version.
        MissingFileError: There is no such file.
        OSError: The file cannot be opened.
    """
    header, arrays = read_archive(path, _KIND)
    with damage_as(_KIND, path):
        return create(**_values(header, arrays))


def _values(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
    interfaces = tuple(
        Interface(
            name=i["name"],
            kind=i["kind"],
            point=arrays[f"interface_{k}_point"],
            axes=arrays[f"interface_{k}_axes"],
            motion=arrays[f"interface_{k}_motion"],
        )
        for k, i in enumerate(header["interfaces"])
    )
    points = tuple(
        Station(name, arrays[f"point_{k}_position"], arrays[f"point_{k}_modes"])
        for k, name in enumerate(header["points"])
    )
    loads = tuple(
        LoadPattern(name, **{part: arrays[f"load_{k}_{part}"] for part in _LOAD_PARTS})
        for k, name in enumerate(header.get("loads", []))
    )
    skin = None
    if "skin_points" in arrays:
        skin = Skin(arrays["skin_points"], arrays["skin_triangles"], arrays["skin_modes"])
    stiffening = None
    if "stiffening_spin" in arrays:
        stiffening = Stiffening(
            arrays["stiffening_spin"],
            arrays["stiffening_interfaces"],
            arrays.get("stiffening_work"),
        )
    stress = None
    if "stress_modes" in arrays:
        stress = StressModes(arrays["stress_points"], arrays["stress_modes"])
    return dict(
        name=header["name"],
        total_mass=header["total_mass"],
        interfaces=interfaces,
        points=points,
        loads=loads,
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
