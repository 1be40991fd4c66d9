"""The file of a reduced body: one ``.npz`` of plain arrays and a JSON header, never a pickle."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dolfinx_mbd.body.parts import Interface, LoadPattern, Mode, Skin, Station, Stiffening
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.body.stress_modes import StressModes

__all__ = ["FORMAT_VERSION", "BodyFileError", "load_body", "save_body", "write_aside"]

#: Version of the file format; a reader refuses a newer one.
FORMAT_VERSION = 1

_FORMAT = "dolfinx_mbd reduced body"
_LOAD_PARTS = ("force", "moment", "modes", "moments")
_MATRICES = ("first_moments", "second_moments", "mass", "stiffness", "damping")


class BodyFileError(ValueError):
    """A file is not a reduced body, is damaged, or is newer than this program."""


def save_body(body: ReducedBody, path: str | Path) -> Path:
    """Write a body to ``path`` (``.npz`` is added if it has no suffix) and return the path.

    The file appears under its name only when it is complete; under MPI every rank may call this.

    Raises:
        OSError: If the file cannot be written; a file that was there before is left as it was.
    """
    path = Path(path)
    if not path.suffix and not path.is_dir():
        path = path.with_suffix(".npz")
    header = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
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
    if body.stress is not None:
        arrays["stress_points"] = body.stress.points
        arrays["stress_modes"] = body.stress.stress

    def write(file: BinaryIO) -> None:
        np.savez(file, header=np.array(json.dumps(header)), **arrays)

    return write_aside(path, write, "body file")


def write_aside(path: str | Path, write: Callable[[BinaryIO], None], what: str) -> Path:
    """Write a file aside and give it its name when it is complete; return its path.

    Several processes may write the same file: each has its own beside it until the last step.

    Args:
        path: Where the file shall be.
        write: Writes all of it into an open binary file.
        what: What the file is, for an error.

    Raises:
        OSError: If it cannot be written (no space left, no such folder, a directory); then nothing
            is left of it, and a file that was there before is as it was.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, f"cannot write {what} (a directory; add a file's name)", str(path)
        )
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if not isinstance(error, OSError):
            raise
        reason = error.strerror or error
        raise OSError(
            error.errno, f"cannot write {what} ({reason}); nothing was written", str(path)
        ) from error
    return path


def load_body(path: str | Path) -> ReducedBody:
    """Read a body that :func:`save_body` wrote.

    Raises:
        BodyFileError: If the file is not a body, is damaged, or is of a newer version.
        OSError: If the file cannot be read.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"no body file {str(path)!r}")
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile) or "header" not in file.files:
                raise BodyFileError(f"{path}: not a reduced body (it has no header)")
            header = json.loads(str(file["header"]))
            if not isinstance(header, dict) or header.get("format") != _FORMAT:
                raise BodyFileError(f"{path}: not a reduced body (its header is of another format)")
            if int(header["version"]) > FORMAT_VERSION:
                raise BodyFileError(
                    f"{path}: written as format {header['version']}, this program reads up to "
                    f"{FORMAT_VERSION}; update dolfinx_mbd or write the body again"
                )
            arrays = {name: file[name] for name in file.files if name != "header"}
        return _body(header, arrays)
    except BodyFileError:
        raise
    except (zipfile.BadZipFile, EOFError, KeyError, TypeError, ValueError) as error:
        raise BodyFileError(
            f"{path}: not a reduced body, or truncated or damaged ({error})"
        ) from error


def _body(header: dict[str, Any], arrays: dict[str, Any]) -> ReducedBody:
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
        stiffening = Stiffening(arrays["stiffening_spin"], arrays["stiffening_interfaces"])
    stress = None
    if "stress_modes" in arrays:
        stress = StressModes(arrays["stress_points"], arrays["stress_modes"])
    return ReducedBody(
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
