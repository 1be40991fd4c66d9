"""Folders to which a run is written while it is computed.

`rows.npy` contains one row for each saved time and grows in blocks. `checkpoint.npz` is an archive
that contains the number of these rows. It is replaced after each block, so that a process may be
killed at any time. Rows beyond this number are ignored.
"""

from __future__ import annotations

import math
import os
import shutil
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.archive import is_archive, read_archive
from dolfinx_mbd.errors import InputError, MissingFileError, OverwriteError
from dolfinx_mbd.files import create_directory
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.parallel import shared_errors
from dolfinx_mbd.results.files.fingerprint import differences, fingerprint
from dolfinx_mbd.results.files.run_files import RunFileError, run_kind, write_run
from dolfinx_mbd.workers import runs_under_mpi

try:
    import fcntl
except ImportError:  # pragma: no cover  (other systems than Linux and macOS)
    fcntl = None  # type: ignore[assignment]

__all__ = ["CHECKPOINT", "KIND", "Rows", "RunFolder", "check_disk", "read_folder"]

Layout = Sequence[tuple[str, Sequence[int]]]
"""Names and shapes of the values in a row."""

KIND = run_kind("run")
ROWS, CHECKPOINT = "rows.npy", "checkpoint.npz"

_CHUNK = 2**22  # bytes that are read at once for the checksum
_ALIGNMENT, _DIGITS = 64, 20  # header of an .npy file: alignment, digits of the number of rows


class Rows:
    """Rows of named numbers in an open ``.npy`` file that grows.

    Args:
        file: The file, open for reading; for `append` also for writing.
        layout: Names and shapes of the values in a row.
        count: Number of rows that the file contains.
        checksum: CRC-32 of these rows.
    """

    def __init__(self, file: IO[bytes], layout: Layout, count: int = 0, checksum: int = 0) -> None:
        self._file, self.count, self.checksum = file, count, checksum
        self.layout = [(str(name), [int(n) for n in shape]) for name, shape in layout]
        self.dtype = np.dtype([(name, "<f8", tuple(shape)) for name, shape in self.layout])
        self._start = len(self._header(0))

    def append(self, rows: NDArray[np.void]) -> None:
        """Write rows to the end of the file, and then their number to its header."""
        data = np.ascontiguousarray(rows, dtype=self.dtype).tobytes()
        self._file.seek(self._start + self.count * self.dtype.itemsize)
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.count, self.checksum = self.count + len(rows), zlib.crc32(data, self.checksum)
        self._file.seek(0)
        self._file.write(self._header(self.count))
        self._file.flush()

    def copy_to(self, file: IO[bytes]) -> None:
        """Copy the header and the rows to another file, in which `append` then continues."""
        self._file.seek(0)
        remaining = self._start + self.count * self.dtype.itemsize
        while remaining and (chunk := self._file.read(min(_CHUNK, remaining))):
            file.write(chunk)
            remaining -= len(chunk)
        self.close()
        self._file = file

    def mapped(self) -> NDArray[np.void]:
        """Return the rows; the operating system reads them from the file when they are used."""
        return np.memmap(self._file, self.dtype, "r", self._start, (self.count,))  # type: ignore[call-overload, no-any-return]

    def close(self) -> None:
        """Close the file; memory-mapped rows remain available."""
        self._file.close()

    def check(self) -> None:
        """Raise an error if the file is too short or its rows do not match the checksum."""
        self._file.seek(self._start)
        remaining, checksum = self.count * self.dtype.itemsize, 0
        while remaining:
            chunk = self._file.read(min(_CHUNK, remaining))
            if not chunk:
                raise ValueError("it ends early")
            checksum, remaining = zlib.crc32(chunk, checksum), remaining - len(chunk)
        if checksum != self.checksum:
            raise ValueError("its rows do not match their checksum")

    def _header(self, count: int) -> bytes:
        """Return the header of the file; its length does not depend on the number of rows."""
        descr = [(name, "<f8", tuple(shape)) for name, shape in self.layout]
        entries = {"descr": descr, "fortran_order": False, "shape": (count,)}
        text, magic = repr(entries).encode(), np.lib.format.magic(3, 0)
        # Magic string, length of the rest in 4 bytes, text with the largest count, and a newline
        longest = len(magic) + 4 + len(text) - len(str(count)) + _DIGITS + 1
        length = _ALIGNMENT * math.ceil(longest / _ALIGNMENT) - len(magic) - 4
        return magic + struct.pack("<I", length) + text.ljust(length - 1) + b"\n"


class RunFolder:
    """A folder to which this process writes a run.

    Only one process writes to a folder. Ranks of a communicator `comm`, which share a mesh, read
    the rows that its rank 0 writes; all calls are then collective. Other ranks of an MPI program
    that computes the same run on all ranks write their rows to temporary files. A new run replaces
    an earlier run of the same mechanism, `system`; with `rows`, the run of these rows continues.
    """

    def __init__(
        self,
        path: Path,
        rows: Rows | None = None,
        system: System | None = None,
        comm: Any = None,
    ) -> None:
        self.path, self.rows = path.resolve(), None
        self._lock: int | None = None
        self._comm, self._reads = comm, False
        if comm is None:
            self._open(path, rows, system)
            return
        paths = comm.allgather(str(self.path))
        if len(set(paths)) > 1:
            raise InputError(
                f"ranks that share a mesh write a run to one folder; got {paths[0]!r} on rank 0 "
                f"and {next(p for p in paths if p != paths[0])!r} on another rank",
                argument="path",
                value=str(path),
            )
        with shared_errors(comm):
            if comm.rank == 0:
                self._open(path, rows, system)
        if comm.bcast(self._lock is not None, root=0):
            self._reads = comm.rank > 0
            self.rows = rows if self._reads else self.rows
            return
        with shared_errors(comm):
            if comm.rank > 0:
                self._open(path, rows, system)

    def _open(self, path: Path, rows: Rows | None, system: System | None) -> None:
        """Create and lock the folder, and check its contents."""
        if path.exists() and not path.is_dir():
            raise OverwriteError(f"'{path}' is a file, but a run is written to a folder")
        create_directory(path)
        self._lock = _lock(self.path)
        self.rows = None if rows is None else self._continued(rows)
        if rows is None:
            try:
                if self._lock is not None:
                    _check_contents(self.path)
                if system is not None:
                    _check_mechanism(self.path, system)
            except BaseException:
                self.close()
                raise

    def append(self, rows: NDArray[np.void]) -> None:
        """Write rows to the end; the first rows determine the layout of the file."""
        if self._comm is None:
            self._append(rows)
            return
        with shared_errors(self._comm):
            if not self._reads:
                self._append(rows)
        with shared_errors(self._comm):
            if self._reads and self.rows is None:
                self.rows = Rows((self.path / ROWS).open("rb"), _layout(rows))
            if self._reads and self.rows is not None:
                self.rows.count += len(rows)

    def _append(self, rows: NDArray[np.void]) -> None:
        """Write rows to the end of the file of this rank."""
        if self.rows is None:
            self.rows = Rows(self._new_file(), _layout(rows))
        try:
            self.rows.append(rows)
        except OSError as error:
            text = f"cannot write rows of the run ({error.strerror or error}); resume continues it"
            raise OSError(error.errno, text, str(self.path / ROWS)) from error

    def write(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Replace the checkpoint, with the number of rows."""
        with nullcontext() if self._comm is None else shared_errors(self._comm):
            self._write(header, arrays)

    def _write(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Replace the checkpoint if this process writes to the folder."""
        if self._lock is None:
            return
        assert self.rows is not None
        facts = {key: getattr(self.rows, key) for key in ("layout", "count", "checksum")}
        write_run(self.path / CHECKPOINT, KIND, {**header, "rows": facts}, arrays, in_folder=True)

    def close(self) -> None:
        """Permit other processes to write to the folder."""
        if self.rows is not None:
            self.rows.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _new_file(self) -> IO[bytes]:
        """Return a new file for the rows, or a temporary one if another rank writes to it."""
        if self._lock is None:
            return TemporaryFile(dir=self.path)  # type: ignore[return-value]
        path = self.path / ROWS
        (self.path / CHECKPOINT).unlink(missing_ok=True)  # first: it belongs to the earlier rows
        path.unlink(missing_ok=True)  # earlier runs that are open keep their data
        return path.open("x+b")

    def _continued(self, rows: Rows) -> Rows:
        """Return the rows in a file to which this process can append."""
        if self._lock is None:
            rows.copy_to(self._new_file())
        else:
            rows.close()
            rows._file = (self.path / ROWS).open("r+b")
        return rows


def _layout(rows: NDArray[np.void]) -> Layout:
    """Return names and shapes of the values in a row."""
    return [(name, rows.dtype[name].shape) for name in rows.dtype.names or ()]


def _lock(path: Path) -> int | None:
    """Return the descriptor of the locked folder, or None if another MPI rank writes to it."""
    descriptor = os.open(path, os.O_RDONLY)
    if fcntl is None:  # pragma: no cover
        return descriptor
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        if runs_under_mpi():
            return None
        text = f"another process writes a run to '{path}'; choose another folder"
        raise InputError(text, argument="path", value=str(path)) from None
    return descriptor


def _check_contents(path: Path) -> None:
    """Raise an error if a folder contains other files than those of a run."""
    names = {entry.name for entry in path.iterdir() if not entry.name.startswith(".")}
    is_run = not names or (is_archive(path / CHECKPOINT, KIND) and names <= {ROWS, CHECKPOINT})
    if not is_run and names != {ROWS}:  # a process that was killed before its first checkpoint
        others = sorted(names - {ROWS, CHECKPOINT}) or [CHECKPOINT]
        raise OverwriteError(
            f"folder '{path}' contains other files than those of a run, for example "
            f"{others[0]!r}; choose a new folder"
        )


def _check_mechanism(path: Path, system: System) -> None:
    """Raise an error if a folder contains a run of another mechanism."""
    try:
        header, _ = read_archive(path / CHECKPOINT, KIND)
    except MissingFileError:  # no run, or another MPI rank has begun to replace it
        return
    except RunFileError:  # damaged, or of a newer version
        changes = ["its checkpoint cannot be read"]
    else:
        changes = differences(dict(header["system"]), fingerprint(system))
    if changes:
        more = f" and {len(changes) - 5} more" if len(changes) > 5 else ""
        raise OverwriteError(
            f"folder '{path}' contains a run of another mechanism ({', '.join(changes[:5])}{more}) "
            "and is not replaced; choose another folder, or delete this one"
        )


def read_folder(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]], Rows]:
    """Return the header and the arrays of the checkpoint of a run, and the checked rows."""
    if not path.exists():
        raise MissingFileError(f"no run exists at {str(path)!r}")
    if not path.is_dir():
        raise RunFileError(f"{path}: this is a file, but a run is saved in a folder", path=path)
    header, arrays = read_archive(path / CHECKPOINT, KIND)
    try:
        facts = header.pop("rows")
        rows = Rows((path / ROWS).open("rb"), facts["layout"], facts["count"], facts["checksum"])
        rows.check()
    except Exception as error:  # damage can cause any error
        reason = str(error) or type(error).__name__
        text = f"{path / ROWS}: truncated or damaged ({reason})"
        raise RunFileError(text, path=path / ROWS) from error
    return header, arrays, rows


def check_disk(path: Path, size: float) -> None:
    """Raise an error if the disk of a folder has less free space than a number of bytes."""
    folder = next(
        parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists()
    )
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(
            f"the run needs {size / 1e9:.3g} GB in '{path}', but its disk has {free / 1e9:.3g} GB: "
            "save fewer steps (stride=) or only some quantities (outputs=)",
            argument="path",
            value=str(path),
        )
