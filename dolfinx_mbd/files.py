"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import filecmp
import glob
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import InputError, OverwriteError

__all__ = ["has_content", "part_of", "write_aside"]

_DAY = 86400.0  # s


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
        if has_content(path) and not filecmp.cmp(part, path, shallow=False) and not replaces(path):
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


def has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0
