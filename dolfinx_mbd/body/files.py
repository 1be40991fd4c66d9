"""The file of a reduced body: an archive (:mod:`dolfinx_mbd.body.archive`), never a pickle."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import glob
import os
import socket
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from dolfinx_mbd.body.archive import Kind, archive_writer, damage_as, is_archive, read_archive
from dolfinx_mbd.body.parts import Interface, LoadPattern, Mode, Skin, Station, Stiffening
from dolfinx_mbd.body.reduced_body import ReducedBody
from dolfinx_mbd.body.stress_modes import StressModes
from dolfinx_mbd.checks import file_path, instance
from dolfinx_mbd.errors import FileError, InputError, OverwriteError

__all__ = [
    "FORMAT_VERSION",
    "BodyFileError",
    "is_body_file",
    "load_body",
    "part_of",
    "save_body",
    "write_aside",
]

#: Version of the file format; a reader refuses a newer one.
FORMAT_VERSION = 2

_DAY = 86400.0  # s
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
    instance("body", body, ReducedBody)
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


def write_aside(
    path: str | Path,
    write: Callable[[BinaryIO], None],
    what: str,
    *,
    replaces: Callable[[Path], bool] = lambda path: True,
) -> Path:
    """Write a file aside and give it its name when it is complete; return its path.

    Several processes may write the same file: each has its own beside it until the last step.
    Those of processes that were killed are removed. A file that is there already and has the same
    content is never in the way.

    Args:
        path: Where the file shall be.
        write: Writes all of it into an open binary file.
        what: What the file is, for an error.
        replaces: Whether a file that is there already may be replaced; by default any may be.

    Raises:
        InputError: If the path is that of a device or a pipe.
        OverwriteError: If a file that is there already must not be replaced.
        OSError: If it cannot be written (no space left, no such folder, a directory); then nothing
            is left of it, and a file that was there before is as it was.
    """
    path = file_path("path", path)
    if path.is_dir():
        raise IsADirectoryError(
            errno.EISDIR, f"cannot write {what} (a directory; add a file's name)", str(path)
        )
    if path.exists() and not path.is_file():  # (the rename below would replace it, even /dev/null)
        raise InputError(f"'{path}' is a device or a pipe; give the name of a file")
    _remove_stale_parts(path)
    part = part_of(path)
    try:
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if _has_content(path) and not filecmp.cmp(part, path, shallow=False) and not replaces(path):
            raise OverwriteError(
                f"'{path}' is there already and is not replaced by this {what}; choose another "
                "name, delete it, or ask for it where there is such an option (overwrite=True, "
                "--force)"
            )
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OverwriteError) or not isinstance(error, OSError):
            raise
        reason = error.strerror or error
        raise OSError(
            error.errno, f"cannot write {what} ({reason}); nothing was written", str(path)
        ) from error
    return path


def part_of(path: Path) -> Path:
    """Return the name under which this process writes a file before it is complete."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.part")


def _remove_stale_parts(path: Path) -> None:
    """Remove incomplete files of processes of this computer that ended, or older than a day."""
    start, end = f".{path.name}.", ".part"
    for part in path.parent.glob(f"{glob.escape(start)}*{end}"):
        host, _, process = part.name[len(start) : -len(end)].rpartition(".")
        with contextlib.suppress(OSError):
            old = time.time() - part.lstat().st_mtime > _DAY
            if process.isdecimal() and (old or (_is_here(host) and not _is_running(int(process)))):
                part.unlink()


def _is_here(host: str) -> bool:
    return host in ("", socket.gethostname())  # (the first edition wrote no name of a computer)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def is_body_file(path: Path) -> bool:
    """Return whether a file is a reduced body, as far as its header says, or empty."""
    return not _has_content(path) or is_archive(path, _KIND)


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def load_body(path: str | Path) -> ReducedBody:
    """Read a body that :func:`save_body` wrote.

    Warns:
        FileWarning: The file was written by the first edition and has no checksum.

    Raises:
        BodyFileError: The file is not a body, is damaged, or is of a newer version.
        MissingFileError: There is no such file.
        OSError: The file cannot be opened.
    """
    header, arrays = read_archive(path, _KIND)
    with damage_as(_KIND, path):
        return _body(header, arrays)


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
        stiffening = Stiffening(
            arrays["stiffening_spin"],
            arrays["stiffening_interfaces"],
            arrays.get("stiffening_work"),
        )
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
