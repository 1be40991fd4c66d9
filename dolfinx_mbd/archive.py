"""Archives: uncompressed `.npz` files with a JSON header and arrays, without pickled objects.

All files that the package reads back are archives. The header identifies the kind of file, lists
the arrays with types and shapes, and contains a SHA-256 checksum of all other data. Archives of
version 0.1 (format version 1) have neither list nor checksum; reading them gives a `FileWarning`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import file_path, reject
from dolfinx_mbd.errors import FileError, FileWarning, MissingFileError, warn

_CHECKSUM_VERSION = 2  # first format version with a list of arrays and a checksum
_CHUNK_BYTES = 2**22  # size of the parts in which an array is read


@dataclass(frozen=True)
class Kind:
    """Properties of a kind of archive."""

    format: str  # identification in the header, for example `dolfinx_mbd solution`
    title: str  # name for messages, for example `solution`
    version: int  # format version that is written; files of newer versions are rejected
    error: type[FileError] = FileError  # class of the error for files that cannot be used


def archive_writer(
    kind: Kind, header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Callable[[BinaryIO], None]:
    """Return a function that writes an archive of numbers or text into an open binary file."""
    contents = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    entries = {name: [a.dtype.str, list(a.shape)] for name, a in contents.items()}
    complete = {"format": kind.format, "version": kind.version, **header, "arrays": entries}
    digest = _digest(complete)
    for name, array in contents.items():
        if array.dtype.hasobject:
            reject(name, array, "numbers or text")
        digest.update(array.reshape(-1).view(np.uint8))
    text = json.dumps({**complete, "sha256": digest.hexdigest()})

    def write(file: BinaryIO) -> None:
        np.savez(file, header=np.array(text), **contents)  # type: ignore[arg-type]

    return write


def read_archive(path: str | Path, kind: Kind) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of an archive of the given kind.

    An error of the class `kind.error` is raised for files of another kind or of a newer version and
    for damaged files.
    """
    path = file_path("path", path)
    if not path.exists():
        raise MissingFileError(f"no {kind.title} file {str(path)!r} exists")
    if path.is_dir():
        raise kind.error(f"{path}: not a {kind.title}, but a directory", path=path)
    with path.open("rb") as file:
        return read_archive_file(file, os.fstat(file.fileno()).st_size, kind, path)


def read_archive_file(
    file: BinaryIO, size: int, kind: Kind, path: str | Path
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the header and the arrays of the archive in an open file.

    `size` is the size of the file in bytes, and `path` is its name for messages.
    """
    with errors_as(kind, path):
        archive = zipfile.ZipFile(file)
        members = _members(archive, size)
        if "header" not in members:
            raise ValueError("it has no header")
        header = _header(archive, members.pop("header"), kind, path)
        checked = header["version"] >= _CHECKSUM_VERSION or "sha256" in header
        if checked:
            arrays = _checked_arrays(archive, members, header)
        else:
            arrays = {name: _array(archive, info) for name, info in members.items()}
    if not checked:
        text = f"{path}: this {kind.title} has no checksum (format version 1), so damage can "
        warn(FileWarning(f"{text}remain undetected; write the file again"))
    return header, arrays


def is_archive(path: Path, kind: Kind) -> bool:
    """Return whether a file is an archive of the given kind, judged by its header."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = _members(archive, path.stat().st_size)
            header = json.loads(str(_array(archive, members["header"])))
    except Exception:  # other files can cause any error in zipfile, NumPy and JSON
        return False
    return isinstance(header, dict) and header.get("format") == kind.format


@contextlib.contextmanager
def errors_as(kind: Kind, path: str | Path) -> Iterator[None]:
    """Convert errors that occur while a file is read to `kind.error` with the path of the file."""
    try:
        yield
    except (kind.error, MemoryError):
        raise
    except Exception as error:  # damage can cause any error
        reason = str(error) or type(error).__name__
        text = f"{path}: not a {kind.title}, or truncated or damaged ({reason})"
        raise kind.error(text, path=path) from error


def _members(archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by array name, after a check of their sizes and compression."""
    members = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name in members:
            raise ValueError(f"its member {info.filename!r} is not an array or occurs twice")
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise ValueError(f"its member {info.filename!r} is compressed")
        members[name] = info
    if sum(info.file_size for info in members.values()) > size:
        raise ValueError("its members are larger than the file")
    return members


def _header(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, kind: Kind, path: str | Path
) -> dict[str, Any]:
    """Return the header of a file; raise an error if its format or version does not fit."""
    header = json.loads(str(_array(archive, info)))
    if not isinstance(header, dict) or header.get("format") != kind.format:
        raise kind.error(f"{path}: not a {kind.title} (its header has another format)", path=path)
    version = header.get("version")
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"its version is {version!r}")
    if version > kind.version:
        text = f"{path}: written as format {version}, this program reads up to {kind.version}"
        raise kind.error(f"{text}; update dolfinx_mbd or write the file again", path=path)
    return header


def _checked_arrays(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], header: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """Return the arrays after a check with the list and the checksum in the header."""
    checksum = header.pop("sha256")
    digest = _digest(header)
    entries = header.pop("arrays")
    if members.keys() != entries.keys():
        raise ValueError("its arrays differ from the list in its header")
    arrays = {
        name: _array(archive, members[name], entry, digest) for name, entry in entries.items()
    }
    if digest.hexdigest() != checksum:
        raise ValueError("its contents do not match its checksum")
    return arrays


def _array(
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    entry: tuple[str, list[int]] | None = None,
    digest: Any = None,
) -> NDArray[Any]:
    """Read an array, compare its type and shape with `entry`, and add its bytes to `digest`."""
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)  # type: ignore[no-untyped-call]
        formats = np.lib.format
        read = {1: formats.read_array_header_1_0, 2: formats.read_array_header_2_0}[version[0]]
        shape, fortran, dtype = read(member)  # type: ignore[no-untyped-call]
        if dtype.hasobject:
            raise ValueError(f"{info.filename} contains Python objects")
        if entry is not None and [dtype.str, list(shape), fortran] != [*entry, False]:
            raise ValueError(f"{info.filename} has a type or shape that differs from the header")
        count = math.prod(shape)
        if count * dtype.itemsize != info.file_size - member.tell():
            raise ValueError(f"{info.filename} has a length that does not fit its shape")
        data = np.empty(count * dtype.itemsize, dtype=np.uint8)
        start = 0
        while chunk := member.read(_CHUNK_BYTES):
            data[start : start + len(chunk)] = np.frombuffer(chunk, dtype=np.uint8)
            start += len(chunk)
            if digest is not None:
                digest.update(chunk)
    if start != len(data):
        raise ValueError(f"{info.filename} ends early")
    return data.view(dtype).reshape(shape, order="F" if fortran else "C")


def _digest(header: Mapping[str, Any]) -> Any:
    """Return a SHA-256 digest of a header without its checksum; the caller adds the arrays."""
    text_keys = json.loads(json.dumps(header))  # JSON converts numeric keys to text
    return hashlib.sha256(json.dumps(text_keys, sort_keys=True).encode())
