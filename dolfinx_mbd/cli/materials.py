"""Materials by name, and from a TOML file:

[bronze]
young = 110e9              # Pa
poisson = 0.34
density = 8800             # kg/m3
thermal_expansion = 18e-6  # 1/K, may be missing
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dolfinx_mbd.cli.values import assignments
from dolfinx_mbd.errors import InputError, MissingFileError
from dolfinx_mbd.forms import Material
from dolfinx_mbd.forms.materials import MATERIALS, material

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["chosen_materials", "known_materials"]


def known_materials(file: str | None) -> dict[str, Material]:
    """All materials by name: those of the package, then those of a file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no TOML, or a material in it is not possible.
    """
    return {**MATERIALS, **({} if file is None else _own(file))}


def chosen_materials(words: Iterable[str], file: str | None) -> Any:
    """One material, or one for each group: from ``steel`` or ``shank=steel``, ``bush=bronze``.

    Raises:
        ValueError: Unknown names, groups twice, or words of both forms.
    """
    words = list(words)
    own = {} if file is None else _own(file)
    if len(words) == 1 and "=" not in words[0]:
        return _named(words[0], own)
    plain = [word for word in words if "=" not in word]
    if plain:
        raise InputError(
            f"--material: with several materials each needs its group, GROUP={plain[0]}"
        )
    return {group: _named(name, own) for group, name in assignments(words, "--material").items()}


def _named(name: str, own: dict[str, Material]) -> Material:
    if name in own:
        return own[name]
    try:
        return material(name)
    except ValueError as error:
        yours = f"; your file has {', '.join(map(repr, own))}" if own else ""
        raise InputError(f"--material: {error}{yours}") from None


def _own(file: str) -> dict[str, Material]:
    path = Path(file)
    if not path.is_file():
        raise MissingFileError(f"no file of materials '{file}'")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"'{file}' is no TOML file: {error}") from None
    result = {}
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InputError(f"'{file}': expected a table [{name}] with young, poisson and density")
        try:
            result[name] = Material(**{"name": name, **table})
        except InputError as error:
            raise InputError(f"'{file}': [{name}]: {error}") from None
        except TypeError:
            raise InputError(
                f"'{file}': [{name}] needs young (Pa), poisson and density (kg/m3), and may have "
                f"thermal_expansion (1/K); it has {', '.join(table) or 'nothing'}"
            ) from None
    return result
