"""Materials by name, from the package or from a TOML file.

A file contains a table for each material:

[bronze]
young = 110e9              # Pa
poisson = 0.34
density = 8800             # kg/m3
thermal_expansion = 18e-6  # 1/K, optional
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dolfinx_mbd.cli.values import assignments
from dolfinx_mbd.errors import FileError, InputError, MissingFileError
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.materials import MATERIALS, material

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["chosen_materials", "known_materials"]


def known_materials(file: str | None) -> dict[str, Material]:
    """Return all materials by name: those of the package and those of a file.

    Args:
        file: Path of a TOML file; None: no file. Its materials replace those of the package with
            the same name.

    Raises:
        MissingFileError: The file does not exist.
        FileError: The file is not a TOML file, or a material in it is invalid.
    """
    return {**MATERIALS, **({} if file is None else _from_file(file))}


def chosen_materials(words: Iterable[str], file: str | None) -> Any:
    """Return one material, or a dictionary of materials by group.

    Args:
        words: Values of the option --material: `steel`, or `shank=steel` and `bush=bronze`.
        file: Path of a TOML file; None: no file.

    Raises:
        MissingFileError: The file does not exist.
        InputError: A name is unknown, a group occurs twice, or a group is missing.
    """
    words = list(words)
    materials = {} if file is None else _from_file(file)
    if len(words) == 1 and "=" not in words[0]:
        return _named(words[0], materials)
    plain = [word for word in words if "=" not in word]
    if plain:
        raise InputError(
            f"--material: each of several materials needs a group, GROUP={plain[0]}",
            argument="--material",
            value=words,
        )
    return {
        group: _named(name, materials) for group, name in assignments(words, "--material").items()
    }


def _named(name: str, materials: dict[str, Material]) -> Material:
    if name in materials:
        return materials[name]
    try:
        return material(name)
    except ValueError as error:
        others = f"; your file has {', '.join(map(repr, materials))}" if materials else ""
        raise InputError(
            f"--material: {error}{others}", argument="--material", value=name
        ) from None


def _from_file(file: str) -> dict[str, Material]:
    path = Path(file)
    if not path.is_file():
        raise MissingFileError(f"no file of materials '{file}'")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"'{file}' is not a TOML file: {error}", path=path) from None
    result = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            text = f"'{file}': {name!r} must be a table [{name}] with young, poisson and density"
            raise FileError(text, path=path)
        try:
            result[name] = Material(**{"name": name, **table})
        except InputError as error:
            raise FileError(f"'{file}': [{name}]: {error}", path=path) from None
        except TypeError:
            raise FileError(
                f"'{file}': [{name}] needs young (Pa), poisson and density (kg/m3), and "
                f"optionally thermal_expansion (1/K); it has {', '.join(table) or 'nothing'}",
                path=path,
            ) from None
    return result
