"""Reading of model files in YAML, TOML and JSON, with the line of each entry."""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dolfinx_mbd.errors import FileError, MissingFileError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["SUFFIXES", "Document", "ModelFileError", "Place", "read_document", "unknown"]

SUFFIXES = (".yaml", ".yml", ".toml", ".json")
"""Suffixes of model files."""

Place = tuple[Any, ...]
"""Keys and indices that lead to an entry of a document."""

_MAX_DEPTH = 40  # largest depth of nested entries and of included files
_MAX_ENTRIES = 1_000_000  # because a few aliases of YAML can denote any number of entries


def unknown(what: str, name: Any, known: Iterable[Any]) -> str:
    """Return a message about an unknown name, with the most similar and all known names."""
    names = list(map(str, known))
    similar = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {similar[0]!r}? Known" if similar else "known"
    return f"unknown {what} {name!r}; {hint} are {', '.join(names) or 'none'}"


class ModelFileError(FileError):
    """A model file with errors; the message has a line for each of them.

    Args:
        path: Path of the file.
        errors: Texts of the errors, with file and line where they are known.

    Attributes:
        errors: Texts of the errors.
    """

    def __init__(self, path: Any, errors: list[str]) -> None:
        super().__init__("\n".join(errors), path=path)
        self.errors = errors


class Document:
    """The contents of a model file, with those of included files.

    Args:
        path: Path of the file.
        data: Nested dictionaries, lists and values.
        lines: Line of each entry; entries without one have that of the entry around them.
        sources: File of each entry of a section, if it is not `path`.
    """

    def __init__(
        self,
        path: Path,
        data: dict[Any, Any],
        lines: dict[Place, int],
        sources: dict[Place, Path] | None = None,
    ) -> None:
        self.path, self.data, self.lines = path, data, lines
        self.sources = {} if sources is None else sources

    def message(self, place: Place, text: str) -> str:
        """Return the text of an error with the file, the line and the name of an entry."""
        line: int | None = None
        for length in range(len(place), -1, -1):
            if place[:length] in self.lines:
                line = self.lines[place[:length]]
                break
        path = self.file_of(place)
        where = f"{path}" if line is None else f"{path}, line {line}"
        name = ".".join(map(str, place))
        return f"{where}: {name}: {text}" if name else f"{where}: {text}"

    def file_of(self, place: Place) -> Path:
        """Return the path of the file that contains an entry."""
        for length in range(len(place), 0, -1):
            if place[:length] in self.sources:
                return self.sources[place[:length]]
        return self.path


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a model file and the files that it includes.

    Entries of a section of an included file are added to those of the including file. An entry in
    both files raises an error.

    Args:
        path: Path of the file.

    Raises:
        MissingFileError: The file does not exist.
        ModelFileError: A file has a syntax error, a repeated key, or includes itself.
    """
    return _read(Path(path), ())


def _read(path: Path, parents: tuple[Path, ...]) -> Document:
    """Read a file and the files that it includes; `parents` include this file."""
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(f"'{path}': a model file ends in {', '.join(SUFFIXES)}", path=path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise MissingFileError(f"'{path}' does not exist") from None
    except UnicodeDecodeError as error:
        raise ModelFileError(path, [f"{path}: the text is not UTF-8 ({error.reason})"]) from None
    reader = {".toml": _toml, ".json": _json}.get(path.suffix.lower(), _yaml)
    data, lines = reader(path, text)
    if not isinstance(data, dict):
        raise ModelFileError(path, [f"{path}: a model file consists of sections such as 'bodies:'"])
    document = Document(path, data, lines)
    for name in _pop_included(document):
        other, chain = path.parent / name, (*parents, path.resolve())
        if other.resolve() in chain or len(chain) > _MAX_DEPTH:
            names = " -> ".join(p.name for p in (*chain, other))
            text = f"{name!r} includes itself, {names}; remove one of these entries"
            raise ModelFileError(path, [document.message(("include",), text)])
        if not other.is_file():
            text = document.message(("include",), f"'{other}' does not exist")
            raise ModelFileError(path, [text])
        _merge(document, _read(other, chain))
    return document


def _pop_included(document: Document) -> Iterator[str]:
    """Remove the entry `include` and yield the names of the files in it."""
    names = document.data.pop("include", [])
    for name in [names] if isinstance(names, str) else names or []:
        if not isinstance(name, str):
            text = f"expected names of files; got {name!r}"
            raise ModelFileError(document.path, [document.message(("include",), text)])
        yield name


def _merge(document: Document, other: Document) -> None:
    """Add the entries of an included document."""
    for section, entries in other.data.items():
        present = document.data.setdefault(section, {} if isinstance(entries, dict) else entries)
        is_new_value = present is entries  # a section such as `title`, without entries by name
        if is_new_value or (section == "model" and present == entries):
            document.sources[section,] = other.path
        elif isinstance(present, dict) and isinstance(entries, dict):
            repeated = sorted(map(str, present.keys() & entries.keys()))
            if repeated:
                text = f"{', '.join(repeated)} also occurs in {other.path}"
                raise ModelFileError(document.path, [document.message((section,), text)])
            present.update(entries)
            document.sources.update({(section, key): other.path for key in entries})
        else:
            text = f"the section also occurs in {other.path}"
            raise ModelFileError(document.path, [document.message((section,), text)])
    document.sources.update({p: s for p, s in other.sources.items() if p not in document.sources})
    document.lines.update({p: n for p, n in other.lines.items() if p not in document.lines})


def _toml(path: Path, text: str) -> tuple[Any, dict[Place, int]]:
    """Return the contents of a TOML file and the lines of its entries."""
    try:
        return tomllib.loads(text), _toml_lines(text)
    except tomllib.TOMLDecodeError as error:
        raise ModelFileError(path, [f"{path}: {error}"]) from None


_TOML_KEY = r"""[\w-]+|"[^"]*"|'[^']*'"""
_DOTTED_KEYS = rf"\s*(?:{_TOML_KEY})(?:\s*\.\s*(?:{_TOML_KEY}))*\s*"
_TOML_LINE = re.compile(rf"\[({_DOTTED_KEYS})\]|({_DOTTED_KEYS})=")
"""The start of a table, or of an entry."""


def _toml_lines(text: str) -> dict[Place, int]:
    """Return the lines of tables and keys of a TOML file, by the places of their entries."""
    lines: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TOML_LINE.match(line.strip()):
            parts = (n.strip("\"'") for n in re.findall(_TOML_KEY, match[1] or match[2]))
            place = (*parts,) if match[1] else (*table, *parts)
            table = place if match[1] else table
            lines.setdefault(place, number)
    return lines


def _json(path: Path, text: str) -> tuple[Any, dict[Place, int]]:
    """Return the contents of a JSON file and, if it is also YAML, the lines of its entries."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ModelFileError(path, [f"{path}: {', '.join(repeated)} occurs twice"])
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        message = f"{path}, line {error.lineno}: {error.msg}"
        raise ModelFileError(path, [message]) from None
    except RecursionError:
        raise ModelFileError(path, [f"{path}: the entries are nested too deeply"]) from None
    try:
        return data, _yaml(path, text)[1]
    except ModelFileError:  # not every JSON file is YAML
        return data, {}


def _yaml(path: Path, text: str) -> tuple[Any, dict[Place, int]]:
    """Return the contents of a YAML file and the lines of its entries."""
    import yaml

    lines: dict[Place, int] = {}
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        data = None if node is None else _plain(path, loader, node, (), lines)
    except ModelFileError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f", line {mark.line + 1}"
        hint = "; check indentation, colons and quotes"
        hint = "; indent with spaces" if "\\t" in str(error.problem) else hint
        raise ModelFileError(path, [f"{path}{line}: {error.problem or error}{hint}"]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ModelFileError(path, [f"{path}: {' '.join(str(error).split())}"]) from None
    finally:
        loader.dispose()
    return data, lines


def _plain(path: Path, loader: Any, node: Any, place: Place, lines: dict[Place, int]) -> Any:
    """Return the value of a node of YAML, and record the line of each entry."""
    import yaml

    line = node.start_mark.line + 1
    lines[place] = line
    if len(place) > _MAX_DEPTH or len(lines) > _MAX_ENTRIES:
        raise ModelFileError(path, [f"{path}, line {line}: too many or too deep entries"])
    if isinstance(node, yaml.SequenceNode):
        return [_plain(path, loader, n, (*place, k), lines) for k, n in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        loader.flatten_mapping(node)
        result: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node, deep=True)
            key = key if isinstance(key, (str, int, float)) else str(key)
            if key in result:
                at = key_node.start_mark.line + 1
                raise ModelFileError(
                    path, [f"{path}, line {at}: {key!r} occurs twice; rename one of them"]
                )
            result[key] = _plain(path, loader, value_node, (*place, key), lines)
            lines[(*place, key)] = key_node.start_mark.line + 1
        return result
    return loader.construct_object(node, deep=True)
