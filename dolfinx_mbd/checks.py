"""Checks of arguments, used at every public entry point.

Each check returns the value in the form in which the package uses it (a ``float`` for a number, a
read-only array for a vector) and raises `InputError` or `InputTypeError`, which name the argument,
the value and what the argument accepts:

    speed = number("speed", speed)
    radius = number("crank_radius", crank_radius, positive=True)
    kind = choice("kind", kind, ("rigid", "averaged"))
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dolfinx_mbd.errors import InputError, InputTypeError

__all__ = [
    "array",
    "choice",
    "file_path",
    "flag",
    "function",
    "having",
    "increasing",
    "instance",
    "integer",
    "items",
    "memory",
    "name",
    "names",
    "number",
    "refuse",
    "short",
    "vector",
]

_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80


def refuse(
    argument: str, value: Any, expected: str, error: type[InputError] = InputError
) -> NoReturn:
    """Raise an error that names an argument, what it accepts and what it was given."""
    text = f"{argument} must be {expected}; got {short(value)}"
    raise error(text, argument=argument, value=value, expected=expected)


def short(value: Any) -> str:
    """Return a representation of a value on one line of at most some 80 characters."""
    try:
        text = _REPR.repr(value)
    except Exception:  # (a user's __repr__ may fail)
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
    """Return a finite number as a ``float``.

    Args:
        argument: Name of the argument, for the message.
        value: An int, a float or a NumPy scalar; a ``bool`` is refused.
        positive: Whether the number must be above 0.
        low: Least value; None for no bound.
        high: Greatest value; None for no bound.
        unit: Unit, for the message.

    Raises:
        InputTypeError: The value is not a real number.
        InputError: The number is not finite or outside its bounds.

    Example:
        >>> number("mass", 2, positive=True)
        2.0
    """
    if isinstance(value, float) and value - value == 0.0 and not positive and low is high is None:
        return float(value)  # (without delay: functions of the user are checked at every call)
    expected = _number_in_words("number", positive, low, high, unit)
    real = _real(argument, value, expected)
    if real - real != 0.0:  # (nan or infinite)
        refuse(argument, value, expected)
    _within(argument, value, real, expected, positive, low, high)
    return real


def integer(argument: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """Return a whole number as an ``int``; a float is refused even if it has no fraction.

    Raises:
        InputTypeError: The value is not a whole number.
        InputError: The number is outside its bounds.

    Example:
        >>> integer("num_modes", 20, low=0)
        20
    """
    import numpy as np

    expected = _number_in_words("whole number", False, low, high, "")
    if (
        isinstance(value, (bool, np.bool_))
        or not hasattr(value, "__index__")
        or hasattr(value, "__len__")
    ):
        refuse(argument, value, expected, InputTypeError)
    try:
        whole = int(value.__index__())
    except TypeError:
        refuse(argument, value, expected, InputTypeError)
    _within(argument, value, whole, expected, False, low, high)
    return whole


def memory(argument: str, value: Any, size: float) -> None:
    """Raise an error if what an argument asks for does not fit into the memory of this machine.

    Args:
        argument: Name of the argument, for the message.
        value: The value.
        size: Lower bound of the memory that it needs, bytes; may be infinite.

    Raises:
        InputError: It needs more than the machine has.

    Example:
        >>> memory("frames", 100, 100 * 800 * 600)
    """
    try:
        limit = float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # (the system does not say)
        limit = 1e13
    if not size <= limit:
        size = float(min(size, 1e300))  # (an int may be too great for a float)
        expected = (
            f"a value that fits into memory: this one needs at least {size / 1e9:.3g} GB, and the "
            f"machine has {limit / 1e9:.3g} GB"
        )
        refuse(argument, value, expected)


def flag(argument: str, value: Any) -> bool:
    """Return True or False; any other value is refused.

    Raises:
        InputTypeError: The value is not a ``bool``.
    """
    import numpy as np

    if not isinstance(value, (bool, np.bool_)):
        refuse(argument, value, "True or False", InputTypeError)
    return bool(value)


def vector(argument: str, value: Any, size: int = 3, *, unit: str = "") -> Any:
    """Return finite numbers as a read-only array (size,).

    Raises:
        InputTypeError: The value holds something else than numbers.
        InputError: The shape is wrong, or a number is not finite.

    Example:
        >>> vector("gravity", (0, 0, -9.81), unit="m/s²")
        array([ 0.  ,  0.  , -9.81])
    """
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

    Args:
        argument: Name of the argument, for the message.
        value: Nested sequences of numbers, or an array.
        shape: Length of each axis, None for any length; None for any shape.
        finite: Whether NaN and infinity are refused.
        expected: What the argument accepts, in words; by default made from the shape.

    Raises:
        InputTypeError: The value holds something else than real numbers.
        InputError: The shape is wrong, or a number is not finite.

    Example:
        >>> array("eta", [[0, 1], [2, 3]], (None, 2)).shape
        (2, 2)
    """
    import numpy as np

    if expected is None:
        words = "numbers" if not finite else "finite numbers"
        of = "" if shape is None else f" of shape {_shape_in_words(shape)}"
        expected = f"an array of {words}{of}"
    if _is_expression(value):
        refuse(argument, value, expected, InputTypeError)
    try:
        raw = np.asarray(value)
    except Exception:  # (ragged sequences, objects whose conversion fails)
        refuse(argument, value, expected, InputTypeError)
    if raw.dtype.kind not in "iuf" and raw.size:
        refuse(argument, value, expected, InputTypeError)
    if shape is not None and not (
        raw.ndim == len(shape)
        and all(n is None or n == m for n, m in zip(shape, raw.shape, strict=True))
    ):
        raise InputError(
            f"{argument} must be {expected}; got an array of shape {raw.shape}",
            argument=argument,
            value=value,
            expected=expected,
        )
    numbers = np.array(raw, dtype=float)
    if finite and not np.isfinite(numbers).all():
        refuse(argument, value, expected)
    numbers.flags.writeable = False
    return numbers


def increasing(argument: str, value: Any, *, least: int = 1, unit: str = "") -> Any:
    """Return finite numbers that increase, as a read-only array (n,).

    Args:
        argument: Name of the argument, for the message.
        value: An iterable of numbers.
        least: Least number of them.
        unit: Unit, for the message.

    Raises:
        InputTypeError: The value holds something else than numbers.
        InputError: A number is not finite, they do not increase, or there are too few.

    Example:
        >>> increasing("times", range(3))
        array([0., 1., 2.])
    """
    count = f"{least} or more " if least > 1 else ""
    expected = f"a list of {count}finite numbers that increase{f', in {unit}' if unit else ''}"
    if isinstance(value, Iterator):
        value = list(value)
    numbers = array(argument, value, (None,), expected=expected)
    if len(numbers) < least or (numbers[1:] <= numbers[:-1]).any():
        refuse(argument, value, expected)
    return numbers


def choice(argument: str, value: Any, options: Iterable[Any], *, none: bool = False) -> Any:
    """Return a value that is one of some options.

    Args:
        argument: Name of the argument, for the message.
        value: The value.
        options: What it may be.
        none: Whether None is accepted too.

    Raises:
        InputError: The value is none of the options; the message lists them.

    Example:
        >>> choice("plane", "stress", ("strain", "stress"))
        'stress'
    """
    known = list(options)
    if value is None and none:
        return value
    for option in known:
        same = type(value) is type(option) or (isinstance(value, str) and isinstance(option, str))
        if same and value == option:
            return option
    words = ", ".join(map(repr, known)) + (", None" if none else "")
    refuse(argument, value, f"one of {words}" if words else "absent, because there is no option")


def name(argument: str, value: Any) -> str:
    """Return a text that is not empty.

    Raises:
        InputTypeError: The value is not a text.
        InputError: The text is empty.
    """
    if not isinstance(value, str):
        refuse(argument, value, "a text", InputTypeError)
    if not value.strip():
        refuse(argument, value, "a text that is not empty")
    return value


def names(argument: str, value: Any) -> tuple[str, ...]:
    """Return different texts as a tuple; one text alone is refused, for it is a common slip.

    Raises:
        InputTypeError: The value is not a collection of texts.
        InputError: A text is empty or given twice.
    """
    expected = "a list of names"
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(argument, value, expected, InputTypeError)
    found = tuple(name(f"every entry of {argument}", entry) for entry in value)
    if len(set(found)) < len(found):
        refuse(argument, value, "a list of different names")
    return found


def instance(
    argument: str,
    value: Any,
    kinds: type[Any] | tuple[type[Any], ...],
    hint: str = "",
) -> Any:
    """Return a value of one of some classes.

    Args:
        argument: Name of the argument, for the message.
        value: The value.
        kinds: The class or classes.
        hint: How to obtain such a value, for the message.

    Raises:
        InputTypeError: The value has another class.
    """
    if not isinstance(value, kinds):
        classes = kinds if isinstance(kinds, tuple) else (kinds,)
        words = " or ".join("None" if k is type(None) else k.__name__ for k in classes)
        refuse(argument, value, f"{words}{f' ({hint})' if hint else ''}", InputTypeError)
    return value


def items(
    argument: str, value: Any, kinds: type[Any] | tuple[type[Any], ...], hint: str = ""
) -> tuple[Any, ...]:
    """Return the entries of a collection as a tuple; each has one of some classes.

    Args:
        argument: Name of the argument, for the message.
        value: The collection.
        kinds: The class or classes of its entries.
        hint: How to obtain such an entry, for the message.

    Raises:
        InputTypeError: The value is not a collection, or an entry has another class.

    Example:
        >>> items("rows", [1, 2], int)
        (1, 2)
    """
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        refuse(argument, value, "a list", InputTypeError)
    try:
        entries = tuple(value)
    except TypeError:  # (an array without axes)
        refuse(argument, value, "a list", InputTypeError)
    return tuple(instance(f"every entry of {argument}", entry, kinds, hint) for entry in entries)


def having(argument: str, value: Any, *attributes: str) -> Any:
    """Return an object that has some attributes, whatever its class.

    Raises:
        InputTypeError: An attribute is missing, or the value is a class.
    """
    if isinstance(value, type) or not all(hasattr(value, item) for item in attributes):
        refuse(argument, value, f"an object with {', '.join(attributes)}", InputTypeError)
    return value


def function(
    argument: str, value: Any, signature: str = "", *keywords: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a function.

    Args:
        argument: Name of the argument, for the message.
        value: The function.
        signature: How it is called, for the message, for example ``"law(s, rate)"``.
        keywords: Arguments by name that it must accept together.

    Raises:
        InputTypeError: The value cannot be called, or not with the keywords.
    """
    if not callable(value):
        called = f" that is called as {signature}" if signature else ""
        refuse(argument, value, f"a function{called}", InputTypeError)
    if keywords:
        import inspect

        given = [name for group in keywords for name in group]
        try:
            parameters = inspect.signature(value)
        except (TypeError, ValueError):  # (of a function that is not written in Python)
            return value
        try:
            parameters.bind(**dict.fromkeys(given))
            reason = f"a name is given twice: {given}" if len(set(given)) < len(given) else ""
        except TypeError as error:
            reason = str(error)
        if reason:
            refuse(argument, value, f"a function that accepts {given} ({reason})", InputTypeError)
    return value


def file_path(argument: str, value: Any, suffixes: Sequence[str] = ()) -> Path:
    """Return a path.

    Args:
        argument: Name of the argument, for the message.
        value: A text or a path.
        suffixes: Endings that it may have, for example ``(".npz",)``; any by default.

    Raises:
        InputTypeError: The value is neither a text nor a path.
        InputError: The path is empty, contains a null character or has another ending.
    """
    if not isinstance(value, (str, os.PathLike)) or isinstance(os.fspath(value), bytes):
        refuse(argument, value, "the path of a file", InputTypeError)
    text = os.fspath(value)
    if not text or "\0" in text:
        refuse(argument, value, "the path of a file")
    if suffixes and Path(text).suffix.lower() not in suffixes:
        refuse(argument, value, f"a path that ends with {' or '.join(suffixes)}")
    return Path(text)


def _is_expression(value: Any) -> bool:
    """Return whether a value is, or a list contains, a UFL expression such as a `fem.Function`.

    UFL's conversion of an expression to a number calls itself without an end. Such an object can
    be indexed, but is neither a sequence nor an array.
    """
    if isinstance(value, (list, tuple)):
        return any(map(_is_expression, value))
    kind = type(value)
    return (
        hasattr(kind, "__getitem__")
        and not isinstance(value, (Sequence, Mapping))
        and not any(hasattr(kind, name) for name in ("__array__", "__array_interface__"))
    )


def _real(argument: str, value: Any, expected: str) -> float:
    import numpy as np

    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        refuse(argument, value, expected, InputTypeError)
    try:
        return float(value)
    except OverflowError:
        refuse(argument, value, expected)


def _within(
    argument: str,
    value: Any,
    real: float,
    expected: str,
    positive: bool,
    low: float | None,
    high: float | None,
) -> None:
    if (
        (positive and not real > 0)
        or (low is not None and real < low)
        or (high is not None and real > high)
    ):
        refuse(argument, value, expected)


def _number_in_words(
    kind: str, positive: bool, low: float | None, high: float | None, unit: str
) -> str:
    finite = "finite " if kind == "number" else ""
    text = f"a positive {finite}{kind}" if positive else f"a {finite}{kind}"
    if low is not None and high is not None:
        text += f" from {low:g} to {high:g}"
    elif low is not None:
        text += f" of at least {low:g}"
    elif high is not None:
        text += f" of at most {high:g}"
    return f"{text} in {unit}" if unit else text


def _shape_in_words(shape: Sequence[int | None]) -> str:
    lengths = ", ".join("any" if n is None else str(n) for n in shape)
    return f"({lengths}{',' if len(shape) == 1 else ''})"
