"""Reading of mesh files by gmsh, from a private copy and in a separate process.

gmsh treats files of an unknown format as scripts and executes them; it also executes
`part.msh.opt` next to `part.msh`, and damaged meshes can crash it. Therefore the header is checked
first, gmsh reads a copy in an empty folder, and a crash of the gmsh process becomes an error.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.errors import FileError, FileWarning, MeshError, warn
from dolfinx_mbd.geometry import deck_files, included_files
from dolfinx_mbd.geometry.deck_materials import as_json, from_json
from dolfinx_mbd.geometry.gmsh_model import MeshArrays, gmsh_session, mesh_arrays
from dolfinx_mbd.geometry.separate_process import environment

_SUPPORTED = (
    "Supported are Gmsh's .msh files of format 2 and 4, in ASCII or binary, and "
    + ", ".join(deck_files.SUFFIXES)
)
_CONVERSIONS = {
    ".geo": "A .geo file is a script; mesh it with 'gmsh -3 part.geo -format msh41 -o part.msh'",
    ".step": "Mesh a STEP file with 'dolfinx-mbd mesh step' or StepPart",
}
_CONVERSIONS |= {".stp": _CONVERSIONS[".step"]}
_SAME_UNIT = 1e-3  # relative difference of units of length that are equal


def read_msh(
    path: str | os.PathLike[str], gdim: int | None = None, unit: float = 1.0
) -> MeshArrays:
    """Return the mesh of a file as arrays; call this on one rank only.

    The file is a `.msh` file of format 2 or 4, a universal file, or a deck; see `deck_files`. A
    warning says if the file declares another unit of length than `unit`, m.
    """
    suffix = Path(path).suffix.lower()
    suffix = suffix if suffix in deck_files.SUFFIXES else ".msh"
    with tempfile.TemporaryDirectory(prefix="dolfinx_mbd-") as folder:
        copied = Path(folder, f"mesh{suffix}")
        if suffix in included_files.DECKS:
            try:
                text = included_files.text_of(Path(path), suffix)
            except MeshError as error:
                text = f"cannot use '{os.fspath(path)}' as a mesh: {error}"
                raise MeshError(text, argument="path", value=path) from None
            copied.write_text(text, encoding="latin-1")
        else:
            with open(path, "rb") as file, open(copied, "wb") as copy:
                if suffix == ".msh":
                    file.seek(_start(file.read(4096), os.fspath(path)))
                shutil.copyfileobj(file, copy, 1 << 20)
        command = [sys.executable, "-m", __name__, folder, str(gdim or 0)]
        reader = subprocess.run(
            command, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if Path(folder, "mesh.npz").is_file() and not reader.returncode:
            notes = json.loads(Path(folder, "notes.json").read_text(encoding="utf-8"))
            declared = notes["unit"]
            if declared is not None and abs(declared / unit - 1) > _SAME_UNIT:
                text = f"it declares the unit of length {declared:g} m, and is read"
                notes["remarks"].append(f"{text} with {unit:g} m; use the argument unit")
            if notes["remarks"]:
                warn(FileWarning(f"'{os.fspath(path)}': {'; '.join(notes['remarks'])}"))
            return _load(Path(folder, "mesh.npz"))
        report = Path(folder, "error.json")
        if report.is_file():
            reason = json.loads(report.read_text(encoding="utf-8"))
        elif reader.returncode < 0:
            reason = f"gmsh crashed while reading it ({signal.Signals(-reader.returncode).name})"
        else:
            reason = f"the reading process failed: {reader.stderr.strip()[-500:]}"
    text = f"cannot use '{os.fspath(path)}' as a mesh: {reason}"
    raise MeshError(text, argument="path", value=path)


def _start(head: bytes, path: str) -> int:
    """Return the position of the mesh in a file; raise an error if its header is wrong."""
    blank = len(head) - len(head.lstrip())
    lines = [line.strip().decode("ascii", "replace") for line in head[blank:].split(b"\n")]
    if lines[0] != "$MeshFormat":
        conversion = _CONVERSIONS.get(Path(path).suffix.lower())
        hint = f" {conversion}." if conversion else ""
        reason = f"its first line is {lines[0][:40]!r} instead of '$MeshFormat'"
        text = f"cannot use '{path}' as a mesh: {reason}. {_SUPPORTED}.{hint}"
        raise FileError(text, path=path)
    version = lines[1] if len(lines) > 1 else ""
    if not re.fullmatch(r"(2(\.[0-2])?|4(\.[01])?) [01] 8( .*)?", version):
        text = f"cannot use '{path}' as a mesh: its format is {version[:40]!r}. {_SUPPORTED}."
        raise FileError(text, path=path)
    return blank


def _load(path: Path) -> MeshArrays:
    """Return the mesh that `_read` has written."""
    with np.load(path, allow_pickle=False) as file:
        values: dict[str, Any] = {name: file[name] for name in file.files}
    groups = json.loads(str(values["groups"]))
    values["groups"] = {name: (dim, tag) for name, (dim, tag) in groups.items()}
    values["materials"] = from_json(json.loads(str(values["materials"])))
    for name in ("cell_type", "gdim"):
        values[name] = int(values[name])
    return MeshArrays(**values)


def _num_elements(path: Path) -> int:
    """Return the number of elements that the section of elements declares or contains."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        version, binary = data[data.find(b"\n") + 1 :][:40].split()[:2]
        position = data.find(b"\n$Elements")
        position = data.find(b"\n", position + 1) + 1 if position >= 0 else 0
        if not position:
            raise MeshError("it has no section of elements")
        if version.startswith(b"2"):
            declared = int(data[position : position + 40].split(b"\n")[0])
            if binary == b"1":
                return declared
            lines = data[position : data.find(b"\n$EndElements", position)].splitlines()[1:]
            return max(declared, sum(1 for line in lines if line.strip()))
        if binary == b"1":
            return int(struct.unpack("=2Q", data[position : position + 16])[1])
        return int(data[position : position + 120].split()[1])


def _read(folder: Path, gdim: int) -> None:
    """Read the mesh of a folder, and write its arrays or an error message to the folder."""
    try:
        file = next(folder.glob("mesh.*"))
        declared = _num_elements(file) if file.suffix == ".msh" else None
        notes = deck_files.Notes()
        with gmsh_session() as gmsh:
            if file.suffix in deck_files.SUFFIXES:
                notes = deck_files.add_deck(gmsh.model, file)
            else:
                gmsh.merge(str(file))
            mesh = mesh_arrays(gmsh.model, gdim or None)
            count = sum(map(len, gmsh.model.mesh.getElements()[1]))
        if declared not in (None, count):
            raise MeshError(
                f"it has {declared} elements and gmsh reads {count}: some have a different order "
                "from the rest, an unknown type or a duplicate number"
            )
    except Exception as error:
        (folder / "error.json").write_text(json.dumps(str(error)), encoding="utf-8")
        return
    groups = {**mesh.groups, **{name: mesh.groups[other] for name, other in notes.equal.items()}}
    mesh = replace(mesh, groups=groups)
    others = {"remarks": notes.remarks, "unit": notes.unit}
    (folder / "notes.json").write_text(json.dumps(others), encoding="utf-8")
    arrays = {f.name: getattr(mesh, f.name) for f in fields(mesh)}
    arrays["groups"] = np.array(json.dumps(dict(mesh.groups)))
    arrays["materials"] = np.array(json.dumps(as_json(notes.materials)))
    np.savez(folder / "mesh.npz", **arrays)


if __name__ == "__main__":
    _read(Path(sys.argv[1]), int(sys.argv[2]))
