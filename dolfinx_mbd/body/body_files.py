"""Saving and loading of reduced bodies as archives in the format of `dolfinx_mbd.archive`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dolfinx_mbd.archive import Kind, archive_writer, errors_as, is_archive, read_archive
from dolfinx_mbd.body.tree import array_fields, leaves, part_fields
from dolfinx_mbd.checks import file_path
from dolfinx_mbd.errors import FileError
from dolfinx_mbd.files import has_content, write_atomically

if TYPE_CHECKING:
    from dolfinx_mbd.body.reduced_body import ReducedBody

T = TypeVar("T")

FORMAT_VERSION = 2  # newest version of the file format that can be read


class BodyFileError(FileError):
    """Error for a file that is not a reduced body, is damaged, or has a newer format version."""


_KIND = Kind("dolfinx_mbd reduced body", "reduced body", FORMAT_VERSION, BodyFileError)


def save_body(body: ReducedBody, path: str | Path) -> Path:
    """Write a body to a file and return its path; see `ReducedBody.save`."""
    path = file_path("path", path)
    if not path.suffix and not path.is_dir():
        path = path.with_suffix(".npz")
    header = {"units": "SI: m, kg, s, rad"} | _header(body)
    arrays = {place: value for place, _, value in leaves(body)}
    write = archive_writer(_KIND, header, arrays)
    return write_atomically(path, write, "body file", replaces=is_body_file)


def is_body_file(path: Path) -> bool:
    """Return whether a file is empty or has the header of a reduced body."""
    return not has_content(path) or is_archive(path, _KIND)


def read_body(path: str | Path, create: type[T]) -> T:
    """Return the body in a file as an instance of a class."""
    if file_path("path", path).suffix.lower() == ".msh":
        text = f"{path}: a mesh, not a reduced body; read it with read_mesh and reduce it"
        raise BodyFileError(f"{text}, or use 'dolfinx-mbd reduce'", path=path)
    header, arrays = read_archive(path, _KIND)
    with errors_as(_KIND, path):
        return _read(create, header, arrays, "")


def _header(tree: Any) -> dict[str, Any]:
    """Return the texts and numbers of a body or of a part, without arrays."""
    arrays, parts = array_fields(tree), part_fields(tree)
    header: dict[str, Any] = {}
    for entry in fields(tree):
        name, value = entry.name, getattr(tree, entry.name)
        if name not in parts:
            if name not in arrays or not arrays[name].axes:
                header[name] = dict(value) if isinstance(value, Mapping) else value
        elif parts[name].is_list:
            heads = [_header(part) for part in value]
            header[name] = [h["name"] if set(h) == {"name"} else h for h in heads]
        elif value is not None and (head := _header(value)):
            header[name] = head
    return header


def _read(
    kind: type[T], header: Mapping[str, Any] | str, arrays: Mapping[str, Any], prefix: str
) -> T:
    """Return a body or a part from its texts and numbers, and its arrays in the file.

    The names of the arrays start with `prefix`. Files of earlier versions lack some entries.
    """
    header = {"name": header} if isinstance(header, str) else header
    values: dict[str, Any] = {}
    declarations, parts = array_fields(kind), part_fields(kind)
    for entry in fields(kind):  # type: ignore[arg-type]
        name, array = entry.name, declarations.get(entry.name)
        if array is not None and array.axes:
            place = f"{prefix}{array.file_name or name}"
            if place in arrays or entry.default is not None:
                values[name] = arrays[place]
        elif name not in parts:
            if name in header:
                values[name] = header[name]
        elif parts[name].is_list:
            part, start = parts[name], f"{prefix}{parts[name].label}_"
            values[name] = tuple(
                _read(part.kind, head, arrays, f"{start}{k}_")
                for k, head in enumerate(header.get(name, []))
            )
        else:
            start = f"{prefix}{parts[name].label}_"
            if name in header or any(place.startswith(start) for place in arrays):
                values[name] = _read(parts[name].kind, header.get(name, {}), arrays, start)
    return kind(**values)
