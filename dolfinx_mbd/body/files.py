"""The file of a reduced body: one ``.npz`` of plain arrays and a JSON header, never a pickle."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.body.parts import Interface, Mode, Skin, Station, Stiffening
from dolfinx_mbd.body.reduced_body import ReducedBody

__all__ = ["FORMAT_VERSION", "BodyFileError", "load_body", "save_body"]

#: Version of the file format; a reader refuses a newer one.
FORMAT_VERSION = 1

_FORMAT = "dolfinx_mbd reduced body"
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
    if path.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, "cannot write body file (a directory; add a file's name)", str(path)
        )
    path = path if path.suffix else path.with_suffix(".npz")
    header = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "units": "SI: m, kg, s, rad",
        "name": body.name,
        "total_mass": body.total_mass,
        "reference": body.reference,
        "interfaces": [{"name": i.name, "kind": i.kind} for i in body.interfaces],
        "points": [p.name for p in body.points],
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
    if body.skin is not None:
        arrays["skin_points"] = body.skin.points
        arrays["skin_triangles"] = body.skin.triangles
        arrays["skin_modes"] = body.skin.modes
    if body.stiffening is not None:
        arrays["stiffening_spin"] = body.stiffening.spin
        arrays["stiffening_interfaces"] = body.stiffening.interfaces
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        reason = error.strerror or error
        raise OSError(
            error.errno, f"cannot write body file ({reason}); nothing was written", str(path)
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
    skin = None
    if "skin_points" in arrays:
        skin = Skin(arrays["skin_points"], arrays["skin_triangles"], arrays["skin_modes"])
    stiffening = None
    if "stiffening_spin" in arrays:
        stiffening = Stiffening(arrays["stiffening_spin"], arrays["stiffening_interfaces"])
    return ReducedBody(
        name=header["name"],
        total_mass=header["total_mass"],
        interfaces=interfaces,
        points=points,
        skin=skin,
        stiffening=stiffening,
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
