"""Checks of the arguments of public functions and classes.

Each check returns the value in the form that the package uses (a `float` for a number, a read-only
array for a vector). It raises `InputTypeError` if the value has the wrong type and `InputError` if
the value is invalid for another reason:

    speed = number("speed", speed, unit="rad/s")
    radius = number("crank_radius", crank_radius, positive=True)
    kind = choice("kind", kind, ("rigid", "averaged"))

The first two parameters of each check are the name of the argument (for the message) and its value.
The limits `low` and `high` are inclusive; None stands for no limit. The message contains `unit`.
"""

from __future__ import annotations

import io
import math
import operator
import os
import re
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from dolfinx_mbd.errors import InputError, InputTypeError


class _Representation(reprlib.Repr):
    """Representation without addresses in memory, which differ between ranks and runs.

    A path is shown as a string.
    """

    def repr_instance(self, x: Any, level: int) -> str:
        if isinstance(x, Path):
            return self.repr_str(str(x), level)
        text, half = re.sub(r" at 0x[0-9A-Fa-f]+", "", repr(x)), (self.maxother - 3) // 2
        return text if len(text) <= self.maxother else f"{text[:half]}...{text[-half:]}"


_REPR = _Representation()
_REPR.maxstring = _REPR.maxother = 80


def reject(
    argument: str,
    value: Any,
    expected: str,
    error: type[InputError] = InputError,
    *,
    hint: str = "",
) -> NoReturn:
    """Raise an error with the name of an argument, its value and a description of valid values.

    `hint` tells the user how to obtain a valid value.
    """
    advice = f" ({hint})" if hint else ""
    text = f"{argument} must be {expected}{advice}; got {short(value)}"
    raise error(text, argument=argument, value=value, expected=expected)


def unknown(kind: str, value: Any, names: Iterable[str], intro: str) -> NoReturn:
    """Raise an error about an unknown name of a `kind`; `intro` precedes the list of names."""
    valid = ", ".join(map(repr, names)) or "none"
    text = f"unknown {kind} {short(value)}; {intro} {valid}"
    raise InputError(text, argument=kind, value=value, expected=valid)


def short(value: Any) -> str:
    """Return a representation of a value on one line of about 80 characters at most."""
    try:
        text = _REPR.repr(value)
    except Exception:  # the user's __repr__ may fail
        text = f"an object of type {type(value).__name__}"
    return " ".join(text.split())


def number(
    argument: str,
    value: Any,
    *,
    positive: bool = False,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
) -> float:
    """Return a finite number as a `float`; a `bool` is rejected."""
    # `value - value` is zero for finite numbers only. The first test is fast, for results of user
    # functions, which are checked at every call
    if isinstance(value, float) and value - value == 0.0 and not positive and low is high is None:
        return float(value)
    import numpy as np

    expected = _describe("finite number", positive, low, high, unit)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.timedelta64)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        reject(argument, value, expected, InputTypeError)
    try:
        real = float(value)
    except OverflowError:
        reject(argument, value, expected)
    if real - real != 0.0 or (positive and real <= 0) or _is_outside(real, low, high):
        reject(argument, value, expected)
    return real


LENGTHS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 1e-3, "um": 1e-6, "in": 0.0254, "ft": 0.3048}
"""Units of length by name, m."""


def length(argument: str, value: Any) -> float:
    """Return a positive length in m; a text consists of a number, a unit, or both, such as `5mm`.

    A unit without a number, such as `mm`, means one unit.
    """
    expected = f"a positive length in m, or with a unit, such as '5mm' ({', '.join(LENGTHS)})"
    if not isinstance(value, str):
        return number(argument, value, positive=True, unit="m, or a text such as '5mm'")
    match = re.fullmatch(r"\s*(\d*\.?\d*(?:[eE][-+]?\d+)?)\s*([a-z]*)\s*", value)
    if match is None or not value.strip() or match[2] not in ("", *LENGTHS):
        reject(argument, value, expected)
    try:
        real = float(match[1] or 1.0) * LENGTHS[match[2] or "m"]
    except ValueError:
        reject(argument, value, expected)
    if not 0.0 < real < float("inf"):
        reject(argument, value, expected)
    return real


MASSES = {
    "kg": 1.0,
    "g": 1e-3,
    "t": 1e3,
    "lb": 0.45359237,
    "slug": 0.45359237 * 9.80665 / 0.3048,  # lbf s²/ft
    "slinch": 0.45359237 * 9.80665 / 0.0254,  # lbf s²/in
}
"""Units of mass by name, kg."""

TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
"""Units of time by name, s."""


class UnitFactors(NamedTuple):
    """Units of a file in SI units; mass and time are None if only the length is known."""

    name: str
    length: float
    mass: float | None = None
    time: float | None = None

    @property
    def stress(self) -> float:
        """Unit of stress, Pa."""
        assert self.mass is not None and self.time is not None
        return self.mass / (self.length * self.time**2)

    @property
    def density(self) -> float:
        """Unit of mass density, kg/m³."""
        assert self.mass is not None
        return self.mass / self.length**3


def file_units(argument: str, value: Any) -> UnitFactors:
    """Return the units of a file: its length, or a system of units such as `mm-t-s`.

    The unit of length 1 m alone means SI units.
    """
    if (units := _unit_system(value)) is not None:
        return units
    try:
        size = length(argument, value)
    except InputError:
        if not isinstance(value, str):
            raise
        _reject_units(argument, value, "a unit of length, such as 'mm', or ")
    if size == 1.0:
        return UnitFactors("m-kg-s", 1.0, 1.0, 1.0)
    name = next((key for key, factor in LENGTHS.items() if factor == size), f"{size:g} m")
    return UnitFactors(name, size)


def unit_system(argument: str, value: Any) -> UnitFactors:
    """Return the units of a system LENGTH-MASS-TIME, such as `mm-t-s`."""
    if (units := _unit_system(value)) is None:
        _reject_units(argument, value)
    return units


def _unit_system(value: Any) -> UnitFactors | None:
    """Return the units of a name LENGTH-MASS-TIME, or None."""
    words = value.strip().split("-") if isinstance(value, str) else []
    if len(words) != 3 or any(
        word not in units for word, units in zip(words, (LENGTHS, MASSES, TIMES), strict=True)
    ):
        return None
    return UnitFactors(value.strip(), LENGTHS[words[0]], MASSES[words[1]], TIMES[words[2]])


def _reject_units(argument: str, value: Any, other: str = "") -> NoReturn:
    """Raise an error that lists the units; `other` is what else is valid."""
    expected = (
        f"{other}a system of units LENGTH-MASS-TIME, such as 'mm-t-s', with a length of "
        f"{', '.join(LENGTHS)}, a mass of {', '.join(MASSES)} and a time of {', '.join(TIMES)}"
    )
    if not isinstance(value, str):
        reject(argument, value, expected, InputTypeError)
    similar = "-".join(re.findall("[a-z]+", value.lower()))
    similar += "-s" if similar.count("-") == 1 else ""
    hint = "" if _unit_system(similar) is None else f"did you mean {similar!r}?"
    reject(argument, value, expected, hint=hint)


_DEPTH = 32
"""Largest number of dimensions of a nested list."""


def metres(value: Any) -> Any:
    """Return a length or a position; texts with a unit, such as `-5mm`, become numbers in m.

    Everything else is returned unchanged; check the result with `number` or `vector`.
    """
    if isinstance(value, (list, tuple)) and any(isinstance(entry, str) for entry in value):
        return [metres(entry) if isinstance(entry, str) else entry for entry in value]
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-z]+)\s*", value)
        if match is not None and match[2] in LENGTHS:
            return float(match[1]) * LENGTHS[match[2]]
    return value


def integer(argument: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number as an `int`; floats and `bool`s are rejected."""
    import numpy as np

    expected = _describe("whole number", positive=False, low=low, high=high, unit="")
    if isinstance(value, (bool, np.bool_)) or hasattr(value, "__len__"):
        reject(argument, value, expected, InputTypeError)
    try:
        whole = operator.index(value)
    except TypeError:
        reject(argument, value, expected, InputTypeError)
    if _is_outside(whole, low, high):
        reject(argument, value, expected)
    return whole


def _is_outside(real: float, low: float | None, high: float | None) -> bool:
    """Return whether a number is below or above its limits, which may be None."""
    return (low is not None and real < low) or (high is not None and real > high)


def _describe(kind: str, positive: bool, low: float | None, high: float | None, unit: str) -> str:
    """Return the description of a valid number for messages."""
    text = f"a positive {kind}" if positive else f"a {kind}"
    if low is not None and high is not None:
        text += f" from {low:g} to {high:g}"
    elif low is not None:
        text += f" of at least {low:g}"
    elif high is not None:
        text += f" of at most {high:g}"
    return f"{text} in {unit}" if unit else text


def memory(argument: str, value: Any, size: float) -> None:
    """Raise an error if a value requires more memory (`size` bytes) than this machine has."""
    try:
        limit = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # unknown on this system
        limit = 1e13
    if not size <= limit:
        required = float(min(size, 1e300)) / 1e9  # an int may exceed the range of floats
        sizes = f"this one requires at least {required:.3g} GB, and the machine has"
        reject(argument, value, f"a value that fits into memory: {sizes} {limit / 1e9:.3g} GB")


def flag(argument: str, value: Any) -> bool:
    """Return a `bool`."""
    import numpy as np

    if not isinstance(value, (bool, np.bool_)):
        reject(argument, value, "True or False", InputTypeError)
    return bool(value)


def vector(argument: str, value: Any, size: int = 3, *, unit: str = "") -> Any:
    """Return finite numbers as a read-only array of shape (size,)."""
    in_unit = f" in {unit}" if unit else ""
    return array(argument, value, (size,), expected=f"{size} finite numbers{in_unit}")


def array(
    argument: str,
    value: Any,
    shape: Sequence[int | None] | None = None,
    *,
    finite: bool = True,
    expected: str | None = None,
) -> Any:
    """Return numbers as a read-only array of floats.

    None in `shape` stands for an axis of any length; by default every shape is valid. `expected`
    describes valid values for the message; by default it is derived from the shape.
    """
    import numpy as np

    if expected is None:
        entries = "finite numbers" if finite else "numbers"
        of = "" if shape is None else f" of shape {tuple(shape)}".replace("None", "any")
        expected = f"an array of {entries}{of}"
    if _is_expression(value):
        reject(argument, value, expected, InputTypeError)
    try:
        raw = np.asarray(value)
    except Exception:  # ragged sequences, or objects whose conversion fails
        reject(argument, value, expected, InputTypeError)
    if raw.dtype.kind not in "iuf" and raw.size:
        reject(argument, value, expected, InputTypeError)
    lengths = raw.shape if shape is None else tuple(shape)
    if raw.ndim != len(lengths) or any(
        n not in (None, m) for n, m in zip(lengths, raw.shape, strict=True)
    ):
        text = f"{argument} must be {expected}; got an array of shape {raw.shape}"
        raise InputError(text, argument=argument, value=value, expected=expected)
    numbers = np.array(raw, dtype=float)
    if finite and not np.isfinite(numbers).all():
        reject(argument, value, expected)
    numbers.flags.writeable = False
    return numbers


def rotation_matrix(argument: str, value: Any) -> Any:
    """Return a right-handed orthonormal triad (columns) as a read-only array of shape (3, 3)."""
    import numpy as np

    axes = array(argument, value, (3, 3))
    # Without the first condition, the products of large numbers would overflow
    orthonormal = np.abs(axes).max() < 2 and np.allclose(axes.T @ axes, np.eye(3), atol=1e-8)
    if not orthonormal or np.linalg.det(axes) < 0:
        reject(argument, value, "a rotation matrix: orthonormal columns, a right-handed triad")
    return axes


def increasing(argument: str, value: Any, *, least: int = 1, unit: str = "") -> Any:
    """Return at least `least` increasing finite numbers as a read-only array (n,)."""
    count = f"{least} or more " if least > 1 else ""
    expected = f"a list of {count}finite numbers that increase{f', in {unit}' if unit else ''}"
    if isinstance(value, Iterator):
        value = list(value)
    numbers = array(argument, value, (None,), expected=expected)
    if len(numbers) < least or (numbers[1:] <= numbers[:-1]).any():
        reject(argument, value, expected)
    return numbers


def choice(argument: str, value: Any, options: Iterable[Any], *, none: bool = False) -> Any:
    """Return a value that is one of the options; None is valid if `none` is True."""
    valid = list(options)
    if value is None and none:
        return value
    for option in valid:
        same = type(value) is type(option) or (isinstance(value, str) and isinstance(option, str))
        if same and value == option:
            return option
    texts = ", ".join(map(repr, valid)) + (", None" if none else "")
    reject(argument, value, f"one of {texts}" if texts else "omitted, because no value is valid")


def name(argument: str, value: Any) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str):
        reject(argument, value, "a text", InputTypeError)
    if not value.strip():
        reject(argument, value, "a text that is not empty")
    return value


def entries(argument: str, value: Any, expected: str = "a list") -> tuple[Any, ...]:
    """Return the entries of a collection as a tuple; texts, open files and scalars are rejected."""
    scalar = isinstance(value, (str, bytes, io.IOBase)) or getattr(value, "ndim", 1) == 0
    if scalar or not isinstance(value, Iterable):
        reject(argument, value, expected, InputTypeError)
    return tuple(value)


def names(argument: str, value: Any) -> tuple[str, ...]:
    """Return different names as a tuple; a single text is rejected, as it is often a mistake."""
    texts = entries(argument, value, "a list of names")
    texts = tuple(name(f"every entry of {argument}", entry) for entry in texts)
    if len(set(texts)) < len(texts):
        reject(argument, value, "a list of different names")
    return texts


def instance(
    argument: str, value: Any, kinds: type[Any] | tuple[type[Any], ...], hint: str = ""
) -> Any:
    """Return an instance of one of the classes; `hint` tells the user how to obtain one."""
    if not isinstance(value, kinds):
        classes = kinds if isinstance(kinds, tuple) else (kinds,)
        # Public subclasses may have titles
        titles = [getattr(k, "_title", k.__name__) for k in classes]
        text = " or ".join("None" if title == "NoneType" else title for title in titles)
        reject(argument, value, f"{text}{f' ({hint})' if hint else ''}", InputTypeError)
    return value


def items(
    argument: str, value: Any, kinds: type[Any] | tuple[type[Any], ...], hint: str = ""
) -> tuple[Any, ...]:
    """Return the entries of a collection as a tuple; each must be an `instance` of `kinds`."""
    if isinstance(value, Mapping):
        reject(argument, value, "a list", InputTypeError)
    every = f"every entry of {argument}"
    return tuple(instance(every, entry, kinds, hint) for entry in entries(argument, value))


def object_with(argument: str, value: Any, *attributes: str) -> Any:
    """Return an object that has all the named attributes; a class is rejected."""
    if isinstance(value, type) or not all(hasattr(value, item) for item in attributes):
        reject(argument, value, f"an object with {', '.join(attributes)}", InputTypeError)
    return value


def function(
    argument: str, value: Any, signature: str = "", *keywords: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a function; it must accept the keys of all `keywords` as keyword arguments.

    `signature` describes the call for the message. If it starts like ``"law(s, rate)"``, the
    function must accept this number of positional arguments.
    """
    if not callable(value):
        called = f" that is called as {signature}" if signature else ""
        reject(argument, value, f"a function{called}", InputTypeError)
    import inspect

    try:
        parameters = inspect.signature(value)
    except (TypeError, ValueError):  # the function is not written in Python
        return value
    if call := re.match(r"\w+\(([\w.]+(?:, [\w.]+)*)\)", signature):
        try:
            parameters.bind(*call[1].split(", "))
        except TypeError as error:
            expected = f"a function that is called as {call[0]} ({error})"
            reject(argument, value, expected, InputTypeError)
    if keywords:
        names = [name for group in keywords for name in group]
        try:
            parameters.bind(**dict.fromkeys(names))
            reason = f"a name is given twice: {names}" if len(set(names)) < len(names) else ""
        except TypeError as error:
            reason = str(error)
        if reason:
            reject(argument, value, f"a function that accepts {names} ({reason})", InputTypeError)
    return value


def file_path(argument: str, value: Any, suffixes: Sequence[str] = ()) -> Path:
    """Return a path; `suffixes` lists valid suffixes such as `.npz`, by default all are valid."""
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        reject(argument, value, "the path of a file", InputTypeError)
    text = os.fspath(value)
    if not text or "\0" in text:
        reject(argument, value, "the path of a file")
    if suffixes and Path(text).suffix.lower() not in suffixes:
        reject(argument, value, f"a path that ends with {' or '.join(suffixes)}")
    return Path(text)


def _is_expression(value: Any, depth: int = 0) -> bool:
    """Return whether a value is or contains a UFL expression such as a `fem.Function`.

    The conversion of a UFL expression to a number recurses infinitely. A UFL expression can be
    indexed, but is neither a sequence nor an array.
    """
    if isinstance(value, (float, int)):  # most values are numbers
        return False
    if isinstance(value, (list, tuple)):  # (a list may contain itself)
        return depth < _DEPTH and any(_is_expression(entry, depth + 1) for entry in value)
    kind = type(value)
    return (
        hasattr(kind, "__getitem__")
        and not isinstance(value, (Sequence, Mapping))
        and not any(hasattr(kind, name) for name in ("__array__", "__array_interface__"))
    )


def parameter_limits(names: Sequence[str], bounds: Any) -> list[tuple[float, float]]:
    """Return lower and upper bounds of all parameters, infinite without bounds.

    Args:
        names: Names of the parameters.
        bounds: Mapping from some of the names to a lower and an upper bound, or None.
    """
    limits = dict.fromkeys(names, (-math.inf, math.inf))
    for name, pair in instance("bounds", {} if bounds is None else bounds, Mapping).items():
        if name not in limits:
            unknown("parameter", name, names, "start has")
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            reject(f"bounds: {name}", pair, "a lower and an upper bound")
        low, high = (number(f"bounds: {name}", value) for value in pair)
        if not low < high:
            reject(f"bounds: {name}", pair, "a lower and a larger upper bound")
        limits[name] = low, high
    return list(limits.values())
