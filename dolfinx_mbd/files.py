"""Writing of files, either completely or not at all, and tables of TOML files."""

from __future__ import annotations

import codecs
import contextlib
import errno
import filecmp
import glob
import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from dolfinx_mbd.checks import file_path, reject
from dolfinx_mbd.errors import FileError, MissingFileError, OverwriteError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DAY = 86400.0  # s


def write_atomically(
    path: str | Path,
    write: Callable[[BinaryIO], None],
    title: str,
    *,
    replaces: Callable[[Path], bool] = lambda path: True,
) -> Path:
    """Write a file under a temporary name, rename it when it is complete, and return its path.

    Missing directories of the path are created. Each process has its own temporary file, which is
    deleted after an error. `replaces` returns whether an existing file with other contents may be
    replaced; `title` is the kind of file for messages. An `OSError` is raised if the file cannot be
    written.
    """
    path = file_path("path", path)
    if path.is_dir():
        text = f"cannot write {title} (a directory; add a file's name)"
        raise IsADirectoryError(errno.EISDIR, text, str(path))
    if path.exists() and not path.is_file():  # the rename would replace even /dev/null
        reject("path", str(path), "the path of a file, not of a device or a pipe")
    part = temporary_path(path)
    try:
        create_directory(path.parent)
        _remove_stale_parts(path)
        with part.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if has_content(path) and not filecmp.cmp(part, path, shallow=False) and not replaces(path):
            raise OverwriteError(
                f"'{path}' exists and is not replaced by this {title}; choose another name, delete "
                "the file, or use overwrite=True or --force if there is such an option"
            )
        os.replace(part, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if isinstance(error, OverwriteError) or not isinstance(error, OSError):
            raise
        text = f"cannot write {title} ({error.strerror or error}); nothing was written"
        raise OSError(error.errno, text, str(path)) from error
    return path


def create_directory(path: Path) -> None:
    """Create a directory and its missing parents, if they do not exist."""
    check_directory(path)
    path.mkdir(parents=True, exist_ok=True)


def check_directory(path: Path) -> None:
    """Raise an `OSError` if a directory neither exists nor can be created."""
    absolute = path.absolute()
    existing = next(place for place in (absolute, *absolute.parents) if os.path.lexists(place))
    if not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"'{existing}' is not a directory", str(path))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write in '{existing}'", str(path))


def temporary_path(path: Path) -> Path:
    """Return the temporary name under which this process writes a file."""
    return path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.part")


def _remove_stale_parts(path: Path) -> None:
    """Remove temporary files that are older than a day or whose process on this host has ended."""
    start, end = f".{path.name}.", ".part"
    for part in path.parent.glob(f"{glob.escape(start)}*{end}"):
        host, _, process = part.name[len(start) : -len(end)].rpartition(".")
        same_host = host in ("", socket.gethostname())  # version 0.1 wrote no host name
        with contextlib.suppress(OSError):
            old = time.time() - part.lstat().st_mtime > _DAY
            if process.isdecimal() and (old or (same_host and not _is_running(int(process)))):
                part.unlink()


def _is_running(process: int) -> bool:
    """Return whether a process with this number exists."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it belongs to another user
        return True
    return True


def contains(mark: bytes) -> Callable[[Path], bool]:
    """Return a function that checks whether the file at a path contains given bytes."""
    return lambda path: mark in path.read_bytes()


def has_content(path: Path) -> bool:
    """Return whether a path refers to a file that is not empty."""
    return path.is_file() and path.stat().st_size > 0


def read_text(path: Path, title: str) -> str:
    """Return the contents of a text file that other programs wrote.

    The encoding is UTF-8, UTF-16 with a byte order mark, or otherwise Windows-1252. Digits are read
    correctly in other encodings that contain ASCII. `title` is the kind of file for messages.
    """
    data = path.read_bytes()
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    for encoding in ("utf-16",) if utf16 else ("utf-8-sig", "cp1252", "latin-1"):
        with contextlib.suppress(UnicodeDecodeError):
            text = data.decode(encoding)
            if "\0" not in text:
                return text.replace("\r\n", "\n").replace("\r", "\n")
    raise FileError(f"'{path}' is not a text file ({title} is expected)", path=path)


def read_tables(path: str | Path, title: str, contents: str) -> dict[str, dict[str, Any]]:
    """Return the tables of a TOML file by name.

    `title` is the kind of file and `contents` names the entries of a table, for messages.
    """
    if not str(path):
        raise MissingFileError(f"no {title} ''")
    path = file_path("path", path)
    if not path.is_file():
        raise MissingFileError(f"no {title} '{path}'")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"'{path}' is not a TOML file: {error}", path=path) from None
    for name, table in tables.items():
        if not isinstance(table, dict):
            text = f"'{path}': {name!r} must be a table [{name}] with {contents}"
            raise FileError(text, path=path)
    return tables
