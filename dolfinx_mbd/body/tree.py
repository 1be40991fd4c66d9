"""The arrays of a body as a tree: each field of a part declares its axes and its unit once.

A body and its parts are frozen dataclasses. `array_of` declares an array, for example

    motion: Array = field(metadata=array_of("wn", "m"))

`number_of` a number, and `part_of` and `list_of` declare parts. Selection and change of modes,
conversion of units, checks, files, summary, comparison and derivatives follow from these
declarations, so that a new part needs no other code. Each character in `axes` stands for one axis:

=========  ====================================================================================
``n``      the n elastic coordinates
``N``      the position (index 0) and the n elastic coordinates
``w``      displacement and rotation, or force and moment, six components; the unit of the last
           three is the declared one per metre
``l``      the unit loads of `Stiffening.work`, with a unit for each entry
a digit    an axis of this length
a letter   any length, the same in all arrays of the part
=========  ====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array, assign, frozen
from dolfinx_mbd.checks import reject, short
from dolfinx_mbd.errors import InputError

T = TypeVar("T")

_KEY = "dolfinx_mbd"  # key of the declaration in the metadata of a field

_UNITS = {
    "1": (0, 0, 0),
    "m": (1, 0, 0),
    "kg": (0, 1, 0),
    "s": (0, 0, 1),
    "Hz": (0, 0, -1),
    "N": (1, 1, -2),
    "J": (2, 1, -2),
    "Pa": (-1, 1, -2),
}
"""Powers of length, mass and time."""


def powers(unit: str) -> Array:
    """Return the powers of length, mass and time of a unit, shape (3,).

    >>> powers("N m-1 s2")  # kg
    array([0., 1., 0.])
    """
    total = np.zeros(3)
    for factor in unit.split():
        match = re.fullmatch(r"(?P<name>[A-Za-z]+|1)(?P<power>-?\d*)", factor)
        if match is None or match["name"] not in _UNITS:
            reject("unit", unit, f"powers of {', '.join(_UNITS)}, such as 'N m-1'")
        total += np.array(_UNITS[match["name"]]) * int(match["power"] or 1)
    return total


_ENTRY_UNITS: dict[str, tuple[list[str], list[str]]] = {
    "w": ([], ["1"] * 3 + ["m-1"] * 3),
    "l": (["J s4"] * 6, ["m N-1"] * 3 + ["N-1 m-1"] * 3),
}
"""Units of the entries along an axis: those of the first entries, and those that repeat."""


@dataclass(frozen=True)
class ArrayDeclaration:
    """Axes and unit of an array or, with empty `axes`, of a number.

    Attributes:
        axes: A character for each axis; see the module.
        unit: Unit, for example `kg m2` or `N m`.
        dtype: Type of the entries. Integers are indices: they do not change with the modes, the
            units or a parameter.
        symmetric: Whether the array contains symmetric matrices in its last two axes.
        directions: Whether the array contains unit vectors along its last axis.
        file_name: Name in body files; by default the name of the attribute.
    """

    axes: str
    unit: str
    dtype: type[Any] = float
    symmetric: bool = False
    directions: bool = False
    file_name: str = ""

    def __post_init__(self) -> None:
        powers(self.unit)  # raises an error if the unit is unknown

    def factor(self, scales: Array, shape: tuple[int, ...]) -> Array:
        """Return the factors of a conversion to units of length, mass and time.

        Args:
            scales: Values of 1 m, 1 kg and 1 s in the new units, shape (3,).
            shape: Shape of the array.

        Returns:
            Factors that can be multiplied with the array.
        """
        exponents = powers(self.unit)
        for k, letter in enumerate(self.axes):
            if letter in _ENTRY_UNITS:
                first, repeated = _ENTRY_UNITS[letter]  # as many repetitions as the length needs
                units = first + repeated * ((shape[k] - len(first)) // len(repeated))
                rows = np.array([powers(unit) for unit in units])
                exponents = exponents + rows.reshape(-1, *(1,) * (len(shape) - 1 - k), 3)
        return np.asarray(np.prod(scales**exponents, axis=-1))

    def selected(self, values: Any, rows: NDArray[np.int64]) -> Any:
        """Return the entries for some elastic coordinates, with indices from 0."""
        extended_rows = np.concatenate([[0], rows + 1])  # axis N: the position, then the modes
        for k, letter in enumerate(self.axes):
            if letter in "nN":
                values = np.take(values, extended_rows if letter == "N" else rows, axis=k)
        return values

    def transformed(self, values: Any, matrix: Array) -> Any:
        """Return the entries for other elastic coordinates η′ with η = `matrix` η′."""
        extended_matrix = scipy.linalg.block_diag(1.0, matrix)  # axis N: the position, the modes
        for k, letter in enumerate(self.axes):
            if letter in "nN":
                T = extended_matrix if letter == "N" else matrix
                values = np.moveaxis(np.tensordot(T, values, axes=(0, k)), 0, k)
        return values


@dataclass(frozen=True)
class PartDeclaration:
    """Declaration of a part, or of a list of parts.

    Attributes:
        kind: Class of the part.
        label: Name of one part in messages and in files.
        is_list: Whether the field is a tuple of parts.
        all_modes: Whether the part is invalid for a body without some of its elastic coordinates.
    """

    kind: type[Any]
    label: str
    is_list: bool
    all_modes: bool = False


def array_of(axes: str, unit: str, **options: Any) -> dict[str, ArrayDeclaration]:
    """Return the metadata of a field with an array; see `ArrayDeclaration` for the arguments."""
    return {_KEY: ArrayDeclaration(axes, unit, **options)}


def number_of(unit: str) -> dict[str, ArrayDeclaration]:
    """Return the metadata of a field with a number that has a unit."""
    return {_KEY: ArrayDeclaration("", unit)}


def part_of(kind: type[Any], label: str, **options: Any) -> dict[str, PartDeclaration]:
    """Return the metadata of a field with a part or None; see `PartDeclaration`."""
    return {_KEY: PartDeclaration(kind, label, is_list=False, **options)}


def list_of(kind: type[Any], label: str, **options: Any) -> dict[str, PartDeclaration]:
    """Return the metadata of a field with a tuple of parts; see `PartDeclaration`."""
    return {_KEY: PartDeclaration(kind, label, is_list=True, **options)}


def array_fields(tree: Any) -> dict[str, ArrayDeclaration]:
    """Return the declarations of the arrays and numbers of a dataclass by name of the attribute."""
    pairs = ((f.name, f.metadata.get(_KEY)) for f in fields(tree))
    return {name: value for name, value in pairs if isinstance(value, ArrayDeclaration)}


def part_fields(tree: Any) -> dict[str, PartDeclaration]:
    """Return the declarations of the parts of a dataclass by name of the attribute."""
    pairs = ((f.name, f.metadata.get(_KEY)) for f in fields(tree))
    return {name: value for name, value in pairs if isinstance(value, PartDeclaration)}


def map_arrays(function: Callable[..., Any], first: T, *others: T) -> T:
    """Return a tree whose arrays are values of a function of the arrays at the same place.

    The result is like the first tree, but its arrays are *not* checked: they may be differences or
    derivatives. `checked` checks them. Optional arrays and parts that a tree lacks are None in the
    result; texts and indices are those of the first tree.

    Args:
        function: It is called as `function(declaration, *arrays)` with the `ArrayDeclaration`, for
            arrays and for numbers with a unit.
        first: A body, or a part of one.
        *others: Trees of the same structure.

    Raises:
        InputError: The trees have different structures.

    Example:
        >>> from dolfinx_mbd.body.tree import map_arrays
        >>> total = map_arrays(lambda declaration, a, b: a + b, body, body)
        >>> bool(total.total_mass == 2 * body.total_mass)
        True
    """
    trees = (first, *others)
    arrays, parts = array_fields(first), part_fields(first)
    result: dict[str, Any] = {}
    for entry in fields(first):  # type: ignore[arg-type]
        name, values = entry.name, [getattr(tree, entry.name) for tree in trees]
        value = values[0]
        if name in arrays and all(v is not None for v in values):
            value = _mapped(function, name, arrays[name], values)
        elif name in arrays or (name in parts and any(v is None for v in values)):
            value = None
        elif name in parts and parts[name].is_list:
            parts_at = _same_entries(name, values)
            value = tuple(map_arrays(function, *entries) for entries in parts_at)
        elif name in parts:
            value = map_arrays(function, *values)
        result[name] = value
    same = all(value is getattr(first, name) for name, value in result.items())
    return first if same else with_values(first, **result)


def _mapped(
    function: Callable[..., Any], name: str, declaration: ArrayDeclaration, values: list[Any]
) -> Any:
    """Return the value of a function of arrays at one place of all trees."""
    shapes = [np.shape(value) for value in values]
    if any(shape != shapes[0] for shape in shapes):
        _differ(name, shapes)
    if not np.issubdtype(declaration.dtype, np.integer):
        value = function(declaration, *values)
        if not declaration.axes:
            return float(value)
        same = isinstance(value, np.ndarray) and value.dtype == declaration.dtype
        return value if same else np.asarray(value, declaration.dtype)
    if any(not np.array_equal(value, values[0]) for value in values):
        _differ(name, values)
    return values[0]


def _same_entries(name: str, values: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Return the entries at the same place of lists of parts with the same names."""
    names = [[getattr(part, "name", "") for part in parts] for parts in values]
    if any(other != names[0] for other in names):
        _differ(name, names)
    return zip(*values, strict=True)


def _differ(argument: str, values: list[Any]) -> NoReturn:
    """Raise an error about bodies of different structure."""
    text = f"the bodies have different {argument}: {' and '.join(map(short, values))}"
    raise InputError(text, argument=argument, value=values, expected="bodies of the same structure")


def with_values(tree: T, **values: Any) -> T:
    """Return a tree with some attributes changed, without checks."""
    result: T = object.__new__(type(tree))
    assign(result, **{f.name: getattr(tree, f.name) for f in fields(tree)} | values)  # type: ignore[arg-type]
    return result


def checked(tree: T, former: T | None = None) -> T:
    """Return a tree after the checks of its class and of all its parts.

    Parts that also belong to `former`, a tree that has been checked, are not checked again.
    """
    values = {f.name: getattr(tree, f.name) for f in fields(tree)}  # type: ignore[arg-type]
    for name, declaration in part_fields(tree).items():
        value, known = values[name], getattr(former, name, None)
        if declaration.is_list:
            ids = {id(part) for part in known or ()}
            values[name] = tuple(p if id(p) in ids else checked(p) for p in value)
        elif value is not known and value is not None:
            values[name] = checked(value)
    return type(tree)(**values)


class Leaf(NamedTuple):
    """An array of a tree, with its place, such as `interface_0_motion`, and its declaration."""

    place: str
    declaration: ArrayDeclaration
    value: Any


def leaves(tree: Any, prefix: str = "") -> Iterator[Leaf]:
    """Return all arrays of a body or of a part that are not None, without numbers."""
    for name, declaration in array_fields(tree).items():
        value = getattr(tree, name)
        if declaration.axes and value is not None:
            yield Leaf(prefix + (declaration.file_name or name), declaration, value)
    for name, part in part_fields(tree).items():
        value = getattr(tree, name)
        if part.is_list:
            for k, entry in enumerate(value):
                yield from leaves(entry, f"{prefix}{part.label}_{k}_")
        elif value is not None:
            yield from leaves(value, f"{prefix}{part.label}_")


def freeze_arrays(tree: Any, label: str = "") -> None:
    """Replace the arrays of a dataclass by read-only copies after a check of shapes and numbers.

    Axes with the same letter must have the same length. `label` names the part in messages.
    """
    lengths = {"w": 6}
    optional = {f.name for f in fields(tree) if f.default is None}
    for name, declaration in array_fields(tree).items():
        value = getattr(tree, name)
        if not declaration.axes or (value is None and name in optional):
            continue
        text = f"{label}: {name}" if label else name
        array = frozen(text, value, _shape(declaration.axes, lengths), declaration.dtype)
        lengths = dict(zip(declaration.axes, array.shape, strict=True)) | lengths
        if "N" in lengths:
            lengths["n"] = lengths["N"] - 1
        if array.shape != (shape := _shape(declaration.axes, lengths)):
            frozen(text, value, shape)  # raises the error about the shape
        if declaration.symmetric:
            size = np.abs(array).max(initial=0.0)
            if not np.allclose(array, np.swapaxes(array, -1, -2), rtol=0, atol=1e-9 * size):
                reject(text, array, "symmetric matrices")
        assign(tree, **{name: array})


def _shape(axes: str, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """Return the lengths of axes; −1 is any length."""
    return tuple(int(axis) if axis.isdigit() else lengths.get(axis, -1) for axis in axes)


def num_modes(part: Any) -> int | None:
    """Return the number of elastic coordinates in the arrays of a part, or None without any."""
    for _, declaration, value in leaves(part):
        for letter, length in zip(declaration.axes, np.shape(value), strict=True):
            if letter in "nN":
                return int(length) - (letter == "N")
    return None
