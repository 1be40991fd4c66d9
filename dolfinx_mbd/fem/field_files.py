"""Files of fields for ParaView: VTX folders (`.bp`) and VTK files (`.pvd`), written in parallel.

A file is written under a temporary name and gets its final name when it is complete. A file
`rod.pvd` refers to one `.vtu` file for each time and rank, all in the folder `rod_vtu`.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol

import basix.ufl
import numpy as np
from dolfinx import fem
from dolfinx.io import VTKFile, VTXWriter
from dolfinx.mesh import CellType
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.stress_modes import motion_of, rows_at
from dolfinx_mbd.checks import choice, file_path, number
from dolfinx_mbd.errors import FileWarning, OverwriteError, warn
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.fields import as_function
from dolfinx_mbd.files import create_directory
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.parallel import on_rank_zero

__all__ = ["History", "field_file", "frame_rows", "write_history", "write_shapes"]

Array = NDArray[np.float64]

SUFFIXES = (".bp", ".pvd")
FRAMES = 200
"""Largest number of times that are written if the user chooses none."""
LARGE = 500e6
"""Size in bytes above which a warning announces a file."""
_BYTES = {".bp": (8, 8), ".pvd": (23, 7)}
"""Bytes per number and per index; DOLFINx writes both as text in `.vtu` files."""


class History(Protocol):
    """The motion of a flexible body, as a simulation returns it."""

    @property
    def time(self) -> Array:
        """Time, shape (nt,), s."""

    @property
    def eta(self) -> Array:
        """Elastic coordinates, shape (nt, n)."""

    @property
    def position(self) -> Array:
        """Origin of the body frame, shape (nt, 3), m."""

    @property
    def rotation(self) -> Array:
        """Quaternions (w, x, y, z) from body to global components, shape (nt, 4)."""


def frame_rows(
    time: Array, times: ArrayLike | None = None, stride: int | None = None
) -> NDArray[np.int64]:
    """Return the indices of the saved times that are written, the frames of the file.

    These are the instants nearest to `times`, or every `stride`-th instant; by default all
    instants, or 200 that are distributed evenly over the time if there are more.
    """
    if times is None and stride is None and len(time) > FRAMES:
        times = np.linspace(time[0], time[-1], FRAMES)
    return rows_at(time, times, 1 if stride is None else stride)


@contextmanager
def field_file(
    path: str | Path, functions: Sequence[fem.Function], frames: int
) -> Iterator[Callable[[float], None]]:
    """Open a file for ParaView with several times. Collective.

    Yield a function of the time, s; each call writes the present values of `functions` as one of
    the `frames` times.

    The suffix selects the format. An existing file of the same format is replaced at the end; any
    other existing file raises an `OverwriteError`. A `FileWarning` announces a large file, and an
    `OSError` is raised if it does not fit on the disk.
    """
    comm = functions[0].function_space.mesh.comm
    path = file_path("path", path, SUFFIXES)
    size = size_on_disk(functions, frames, path.suffix.lower())
    folder = on_rank_zero(comm, lambda: _new_temporary_folder(path, size))
    written = folder / f"fields{path.suffix.lower()}"
    if size > LARGE:
        text = f"'{path}' takes {size / 1e9:.2g} GB: {frames} times with {len(functions)} fields"
        warn(FileWarning(text, quantity="size on disk", value=size, limit=LARGE))
    vtx, writers = path.suffix.lower() == ".bp", list[Any]()

    def write(time: float) -> None:
        if vtx:
            writers[0].write(time)
        else:
            writers[0].write_function(list(functions), time)

    try:
        if vtx:  # with the mesh at each time, for versions of ParaView before 5.12
            writers.append(VTXWriter(comm, str(written), list(functions)))
        else:
            writers.append(VTKFile(comm, str(written), "w"))
        yield write
        writers[0].close()
        writers.clear()  # VTKFile writes again when it is deleted
    except BaseException:
        if comm.size == 1:  # other ranks may still write; the next call removes the folder
            writers.clear()
            shutil.rmtree(folder, ignore_errors=True)
        raise
    comm.Barrier()
    renumbered = _has_renumbered_cells(functions[0].function_space)
    on_rank_zero(comm, lambda: _move_to_path(written, path, renumbered))


def size_on_disk(functions: Sequence[fem.Function], frames: int, suffix: str) -> float:
    """Return the size of a file with functions at several times, bytes, to within 20 %. Collective.

    The functions share their mesh and their scalar element. Each time contains the mesh.
    """
    space = functions[0].function_space
    mesh, blocks, cells = space.mesh, space.dofmap.index_map, space.mesh.topology.index_map
    num_cells = cells(mesh.topology.dim).size_local + cells(mesh.topology.dim).num_ghosts
    num_nodes = blocks.size_local + blocks.num_ghosts
    components = sum(f.function_space.dofmap.bs for f in functions)
    real, index = _BYTES[suffix]
    grid = num_nodes * (3 * real + index) + num_cells * (space.dofmap.list.shape[1] + 1) * index
    return float(frames * mesh.comm.allreduce(num_nodes * components * real + grid))


def _pieces(path: Path) -> Path:
    """Return the folder of the `.vtu` files of a `.pvd` file."""
    return path.with_name(f"{path.stem}_vtu")


def _new_temporary_folder(path: Path, size: float) -> Path:
    """Check that a file of fields can be written; return an empty folder to write it in."""
    folder = path.with_name(f".{path.name}.part")
    try:
        create_directory(path.parent)
        if not _replaceable(path):
            text = f"'{path}' exists and is not a {path.suffix.lower()} output of fields"
            raise OverwriteError(f"{text}; choose another name")
        if folder.is_dir():  # left by an interrupted program
            shutil.rmtree(folder)
        folder.mkdir()
        free = shutil.disk_usage(folder).free
        if size > free:
            folder.rmdir()
            text = f"{size / 1e9:.2g} GB are needed and {free / 1e9:.2g} GB are free"
            raise OSError(errno.ENOSPC, text, str(path))
    except OverwriteError:
        raise
    except OSError as error:
        raise OSError(f"cannot write {path}: {error}") from error
    return folder


def _replaceable(path: Path) -> bool:
    """Return True if no file has this name, or if an earlier call wrote the file."""
    if path.suffix.lower() == ".bp":
        empty = path.is_dir() and not any(path.iterdir())
        return not path.exists() or empty or (path / "md.idx").is_file()
    pieces = _pieces(path)
    foreign = pieces.exists() and not (
        pieces.is_dir() and all(p.suffix in (".vtu", ".pvtu") for p in pieces.iterdir())
    )
    if not path.exists():
        return not foreign
    head = path.read_bytes()[:500] if path.is_file() else b"directory"
    return not foreign and (not head or b'type="Collection"' in head)


def _has_renumbered_cells(space: fem.FunctionSpace) -> bool:
    """Return whether version 2 of VTK's format numbers the nodes of the cells differently."""
    hexahedra = space.mesh.topology.cell_type == CellType.hexahedron
    return bool(hexahedra and space.dofmap.list.shape[1] > 8)


def _set_version(piece: Path) -> None:
    """Replace the version of VTK's format in a file by 1.0, which meshio reads too."""
    with piece.open("r+b") as file:
        head = file.read(200)
        file.seek(0)
        file.write(re.sub(rb'(<VTKFile[^>]*version=)"2\.\d"', rb'\1"1.0"', head))


def _move_to_path(whole: Path, path: Path, renumbered: bool) -> None:
    """Give a complete file its name, in place of an older one; the `.pvd` file comes last."""
    if path.is_dir():
        shutil.rmtree(path)
    if whole.suffix == ".pvd":
        pieces = _pieces(path)
        text = whole.read_text(encoding="utf-8").replace('file="', f'file="{pieces.name}/')
        whole.write_text(text, encoding="utf-8")
        path.unlink(missing_ok=True)
        if pieces.is_dir():
            shutil.rmtree(pieces)
        pieces.mkdir()
        for piece in whole.parent.glob("*.*vtu"):
            if not renumbered:
                _set_version(piece)
            os.replace(piece, pieces / piece.name)
    os.replace(whole, path)
    whole.parent.rmdir()


def _three_component_space(space: fem.FunctionSpace) -> fem.FunctionSpace:
    """Return the space with three components; a plane body may move out of its plane."""
    element = space.ufl_element().sub_elements[0]
    return fem.functionspace(space.mesh, basix.ufl.blocked_element(element, shape=(3,)))


def write_history(
    space: fem.FunctionSpace,
    modes: Array,
    positions: Array,
    path: str | Path,
    history: History,
    *,
    times: ArrayLike | None = None,
    stride: int | None = None,
    motion: Literal["global", "body"] = "global",
    scale: float = 1.0,
) -> None:
    """Write the motion of a body for ParaView; see `Reduction.write`. Collective.

    `modes` (owned dofs, n) are the displacements of the n modes, and `positions` (owned nodes, dim)
    are the nodes of the undeformed body, m.
    """
    choice("motion", motion, ("global", "body"))
    number("scale", scale)
    file_path("path", path, SUFFIXES)
    time, eta = motion_of(history, modes.shape[1])  # eta (nt, n): elastic coordinates
    rows = frame_rows(time, times, stride)
    space_of_output = _three_component_space(space)
    total = fem.Function(space_of_output, name="displacement")
    elastic = fem.Function(space_of_output, name="elastic")
    x = in_space(positions)
    with field_file(path, [total, elastic], len(rows)) as write:
        for row in rows:
            u = in_space((modes @ eta[row]).reshape(-1, space.dofmap.bs))
            as_function(space_of_output, u.ravel(), elastic)
            displaced = scale * u
            if motion == "global":
                A = rotation_matrix(np.asarray(history.rotation[row], dtype=float))
                displaced = history.position[row] + (x + displaced) @ A.T - x
            as_function(space_of_output, displaced.ravel(), total)
            write(float(time[row]))


def write_shapes(
    space: fem.FunctionSpace, shapes: Array, names: Sequence[str], path: str | Path
) -> None:
    """Write displacement fields (owned dofs, n) for ParaView, each with its name. Collective."""
    file_path("path", path, SUFFIXES)
    space_of_output, functions = _three_component_space(space), []
    for shape, name in zip(shapes.T, names, strict=True):
        u = in_space(shape.reshape(-1, space.dofmap.bs))
        plain = re.sub(r"[<>&\"'/\\]", "_", name)  # these characters have a meaning in the files
        functions.append(fem.Function(space_of_output, name=plain))
        as_function(space_of_output, u.ravel(), functions[-1])
    with field_file(path, functions, 1) as write:
        write(0.0)
