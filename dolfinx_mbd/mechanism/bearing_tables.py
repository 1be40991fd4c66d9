"""Tables of stiffness and damping over the speed of rotation, as ROSS writes them.

ROSS (ross-rotordynamics) stores the coefficients of a bearing by the names `kxx`, `kxy`, ..., `czz`
over `frequency`, in SI units and rad/s. The shaft is along z and rotates from x to y; the force on
the shaft is −K x − C ẋ. `BearingElement.save` writes TOML or JSON, and `format_table` gives a table
that can be saved with commas.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, file_path, increasing, number, reject
from dolfinx_mbd.errors import FileError
from dolfinx_mbd.files import read_text
from dolfinx_mbd.html import short_repr

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["BearingTable"]

_ENTRIES = ("xx", "xy", "xz", "yx", "yy", "yz", "zx", "zy", "zz")  # entries of a matrix, row by row
_SPEEDS = ("frequency", "speed")  # names of the column of the speed
_UNITS = {"rad/s": 1.0, "rpm": np.pi / 30, "n/m": 1.0, "n*s/m": 1.0, "kg": 1.0}
"""Units in SI by their names in lower case."""


@dataclass(frozen=True, eq=False)
class BearingTable:
    """Stiffness and damping of a bearing over the speed of rotation.

    Attributes:
        speed: Increasing speeds, shape (n,), rad/s. With one row the coefficients do not depend on
            the speed.
        stiffness: Stiffness matrix at each speed, shape (n, 3, 3), N/m; it need not be symmetric.
        damping: Damping matrix at each speed, shape (n, 3, 3), N s/m.

    Raises:
        InputError: The speeds do not increase, or the shapes do not match.

    Example:
        >>> speed, shape = [0.0, 200.0], (2, 1, 1)
        >>> stiffness = np.reshape([1e7, 2e7], shape) * np.diag([1.0, 1.0, 0.0])
        >>> table = mbd.mechanism.BearingTable(speed, stiffness, 1e-3 * stiffness)
        >>> print(table.matrices(100.0)[0][0, 0, 0])
        15000000.0
    """

    speed: ArrayLike
    stiffness: ArrayLike
    damping: ArrayLike
    # Coefficients over the speed
    _curve: scipy.interpolate.PchipInterpolator | None = field(init=False, repr=False)
    # Their derivatives by the speed
    _rate: scipy.interpolate.PchipInterpolator | None = field(init=False, repr=False)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        speed = np.array(increasing("speed", self.speed, least=1, unit="rad/s"), dtype=float)
        shape = len(speed), 3, 3
        tables = [array(name, getattr(self, name), shape) for name in ("stiffness", "damping")]
        assign(self, speed=speed, stiffness=tables[0], damping=tables[1], _curve=None, _rate=None)
        if len(speed) > 1:
            curve = scipy.interpolate.PchipInterpolator(speed, np.stack(tables, axis=1))
            assign(self, _curve=curve, _rate=curve.derivative())

    @property
    def range(self) -> tuple[float, float]:
        """Smallest and largest speed, rad/s; unlimited if the table has one row."""
        speed = np.asarray(self.speed)
        if self._curve is None:
            return -np.inf, np.inf
        return float(speed[0]), float(speed[-1])

    def matrices(self, speed: float) -> tuple[Array, Array]:
        """Return stiffness and damping at a speed, and their derivatives with respect to the speed.

        A monotone cubic curve with continuous slope (PCHIP) interpolates each coefficient. Outside
        the range of the table, the result has the values of the nearest speed.

        Args:
            speed: Speed, rad/s.

        Returns:
            The matrices and their derivatives, shape (2, 3, 3) each: stiffness, then damping.

        Raises:
            InputError: The speed is not a finite number.
        """
        return self.at(number("speed", speed, unit="rad/s"))

    def at(self, speed: float) -> tuple[Array, Array]:
        """Return the result of `matrices` without a check of the speed."""
        low, high = self.range
        if self._curve is None or self._rate is None:
            values: Array = np.array([self.stiffness, self.damping], dtype=float)[:, 0]
            return values, np.zeros_like(values)
        nearest = min(max(speed, low), high)
        rate = self._rate(nearest)
        return self._curve(nearest), rate if nearest == speed else np.zeros_like(rate)

    @classmethod
    def read(cls, path: str | Path, *, name: str | None = None) -> BearingTable:
        r"""Read the coefficients of a bearing from a file of ROSS.

        Args:
            path: A file that `BearingElement.save` of ROSS wrote (`.toml`, `.json`), or a table
                with commas (`.csv`) whose header names the columns, such as `Frequency [rad/s]`,
                `speed [rpm]`, `kxx [N/m]` and `cxx [N*s/m]`. Columns without a unit have SI units
                and rad/s; absent coefficients are zero, except that `kyy` and `cyy` are then equal
                to `kxx` and `cxx`.
            name: Tag of the bearing, if the file has several elements.

        Raises:
            FileError: The file is damaged, has no such bearing, has a coefficient of mass other
                than zero, or has an unknown unit.
            InputError: The table is not valid; see `BearingTable`.
            OSError: The file cannot be read.

        Example:
            >>> from pathlib import Path
            >>> text = "speed [rpm],kxx [N/m],kxy,kyx,cxx [N*s/m]\n"
            >>> text += "0,1e7,0,0,2e4\n3000,2e7,1e6,-1e6,1e4\n"
            >>> _ = Path("bearing.csv").write_text(text)
            >>> print(mbd.mechanism.BearingTable.read("bearing.csv").range[1])
            314.159...
        """
        path = file_path("path", path)
        readers = {".toml": _elements, ".json": _elements, ".csv": _columns}
        if path.suffix.lower() not in readers:
            reject("path", str(path), f"a file with the suffix {', '.join(readers)}")
        try:
            elements = readers[path.suffix.lower()](path)
            columns = {k: np.atleast_1d(v) for k, v in _element(elements, name).items()}
            numbers = {k: np.asarray(v, dtype=float) for k, v in columns.items() if _is_column(k)}
            speed = next((numbers.pop(key) for key in _SPEEDS if key in numbers), np.zeros(1))
            count = len(speed)
            return cls(speed, _matrices(numbers, "k", count), _matrices(numbers, "c", count))
        except (ValueError, KeyError, TypeError, AttributeError, csv.Error) as error:
            text = f"{path}: expected the coefficients of a bearing as ROSS writes them ({error})"
            raise FileError(text, path=path) from error


def _is_column(name: str) -> bool:
    """Return whether a name is that of a speed, stiffness, damping or mass."""
    return name in _SPEEDS or (name[0] in "kcm" and name[1:] in _ENTRIES)


def _elements(path: Path) -> dict[str, Any]:
    """Return the bearings of a TOML or JSON file by their names."""
    text = read_text(path, "a table of a bearing")
    data = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    return {k: v for k, v in data.items() if isinstance(v, Mapping) and "kxx" in v}


def _element(elements: dict[str, Any], name: str | None) -> dict[str, Any]:
    """Return the coefficients of the bearing with the given tag or key."""
    tags = {key: str(value.get("tag", "")) for key, value in elements.items()}
    keys = [key for key, tag in tags.items() if name is None or name in (tag, key)]
    if len(keys) != 1:
        names = ", ".join(map(repr, tags.values())) or "none"
        request = "name=... must select one bearing" if name is None else f"no bearing {name!r}"
        raise ValueError(f"{request}; the file has {names}")
    return {key: value for key, value in elements[keys[0]].items() if value is not None}


def _columns(path: Path) -> dict[str, Any]:
    """Return the columns of a table with commas, in SI units, as one element without a name."""
    lines = read_text(path, "a table of a bearing").splitlines()
    header, *rows = [row for row in csv.reader(lines) if any(cell.strip() for cell in row)]
    names, factors = [], []
    for cell in header:
        name, _, unit = cell.strip().lower().partition("[")
        unit = unit.rstrip("] ").replace("·", "*") or "rad/s"  # no unit: factor 1, SI units
        if unit not in _UNITS:
            raise ValueError(f"column {cell!r}: known units are {', '.join(_UNITS)}")
        names.append(name.strip())
        factors.append(_UNITS[unit])
    table = np.array(rows, dtype=float).reshape(-1, len(names))
    columns = {name: table[:, k] * factors[k] for k, name in enumerate(names)}
    return {"": columns}


def _matrices(columns: dict[str, Array], letter: str, count: int) -> Array:
    """Return the stiffness (letter k) or damping matrices (letter c), shape (count, 3, 3)."""
    if any(column.any() for name, column in columns.items() if name[0] == "m"):
        raise ValueError("coefficients of mass are not possible; add the mass to the shaft")
    values = {name: columns[letter + name] for name in _ENTRIES if letter + name in columns}
    if "xx" not in values:
        raise ValueError(f"there is no column {letter}xx")
    values.setdefault("yy", values["xx"])
    result = np.zeros((9, count))
    for name, column in values.items():
        if column.shape not in ((count,), (1,)):
            raise ValueError(f"{letter}{name} has {len(column)} values for {count} speeds")
        result[_ENTRIES.index(name)] = column
    return result.T.reshape(count, 3, 3)
