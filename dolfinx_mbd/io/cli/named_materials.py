"""Materials by name, from the package or from a TOML file.

A file contains a table for each material:

[bronze]
young = 110e9              # Pa
poisson = 0.34
density = 8800             # kg/m3
thermal_expansion = 18e-6  # 1/K, optional
yield_strength = 140e6     # Pa, optional
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dolfinx_mbd.errors import FileError, InputError
from dolfinx_mbd.files import read_tables
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.materials import MATERIALS, material
from dolfinx_mbd.io.cli.option_values import assignments


def known_materials(file: str | None) -> dict[str, Material]:
    """Return the materials of the package and of a file by name; the file has precedence."""
    return {**MATERIALS, **_file_materials(file)}


def chosen_materials(words: Iterable[str], file: str | None) -> Any:
    """Return one material, or materials by group, for values of the option --material.

    Valid values are, for example, `steel`, or `shank=steel` and `bush=bronze`. Without a value the
    result is None.
    """
    words, materials = list(words), _file_materials(file)
    if not words:
        return None
    if len(words) == 1 and "=" not in words[0]:
        return _material(words[0], materials)
    for word in words:
        if "=" not in word:
            text = f"--material: each of several materials needs a group, GROUP={word}"
            raise InputError(text, argument="--material", value=words)
    groups = assignments(words, "--material")
    return {group: _material(name, materials) for group, name in groups.items()}


def _material(name: str, materials: dict[str, Material]) -> Material:
    """Return a material of a file or of the package by its name."""
    if name in materials:
        return materials[name]
    try:
        return material(name)
    except ValueError as error:
        others = f"; your file has {', '.join(map(repr, materials))}" if materials else ""
        text = f"--material: {error}{others}"
        raise InputError(text, argument="--material", value=name) from None


def _file_materials(file: str | None) -> dict[str, Material]:
    """Return the materials of a TOML file by name; none without a file."""
    if file is None:
        return {}
    tables = read_tables(file, "file of materials", "young, poisson and density")
    result = {}
    for name, table in tables.items():
        try:
            result[name] = Material(**{"name": name, **table})
        except InputError as error:
            raise FileError(f"'{file}': [{name}]: {error}", path=file) from None
        except TypeError:
            text = f"'{file}': [{name}] needs young (Pa), poisson and density (kg/m3), and"
            text += f" optionally thermal_expansion (1/K); it has {', '.join(table) or 'nothing'}"
            raise FileError(text, path=file) from None
    return result
