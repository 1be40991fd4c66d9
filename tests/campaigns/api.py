"""Calls with hostile arguments: one argument of a valid call is replaced at a time."""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import GeneratorType
from typing import Any

import numpy as np

from tests.campaigns.bench import Bench
from tests.campaigns.calls import CALLS
from tests.campaigns.cases import Case, UserFaultError


def _raise(*_: Any, **__: Any) -> None:
    """Raise an error, as a function of the user may do."""
    raise UserFaultError("raised by a function of the user")


class Anything:
    """A class that takes all arguments."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass


def _recursive(value: Any) -> Any:
    """Return a list or a dictionary that contains itself."""
    if isinstance(value, dict):
        value["itself"] = value
    else:
        value.append(value)
    return value


HOSTILE: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "text": lambda: "hostile",
    "empty text": lambda: "",
    "null character": lambda: "a\0b",
    "bytes": lambda: b"hostile",
    "object": object,
    "class": lambda: Anything,
    "function": lambda: lambda *_, **__: None,
    "function that raises": lambda: _raise,
    "0": lambda: 0,
    "-1": lambda: -1,
    "10**9": lambda: 10**9,
    "10**400": lambda: 10**400,
    "0.5": lambda: 0.5,
    "-1.5": lambda: -1.5,
    "1e300": lambda: 1e300,
    "1e-300": lambda: 1e-300,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "complex": lambda: 1j,
    "numpy nan": lambda: np.float64("nan"),
    "[]": lambda: [],
    "[nan] * 3": lambda: [math.nan] * 3,
    "[inf] * 6": lambda: [math.inf] * 6,
    "ragged": lambda: [[1.0], [2.0, 3.0]],
    "texts": lambda: ["a", "b", "c"],
    "same texts": lambda: ["a", "a"],
    "[None]": lambda: [None],
    "2 numbers": lambda: [1.0, 2.0],
    "4 numbers": lambda: (1.0, 2.0, 3.0, 4.0),
    "zeros (3, 3)": lambda: np.zeros((3, 3)),
    "nan (3, 3)": lambda: np.full((3, 3), math.nan),
    "empty (0, 3)": lambda: np.zeros((0, 3)),
    "complex array": lambda: np.ones(3, dtype=complex),
    "object array": lambda: np.array([object(), None, "x"], dtype=object),
    "text array": lambda: np.array(["1", "2", "3"]),
    "{}": dict,
    "dict of objects": lambda: {"hostile": object()},
    "dict of numbers": lambda: {1: math.nan},
    "set": lambda: {1, "a"},
    "generator": lambda: (x for x in (1, None, "a")),
    "recursive list": lambda: _recursive([1.0]),
    "recursive dict": lambda: _recursive({}),
    "timedelta": lambda: dt.timedelta(seconds=1),
    "timedelta array": lambda: np.array([1, 2, 3], dtype="timedelta64[s]"),
    "date": lambda: dt.datetime(2026, 1, 1),
    "0-d nan": lambda: np.array(math.nan),
    "0-d text": lambda: np.array("hostile"),
    "0-d object": lambda: np.array(object(), dtype=object),
    "open file": lambda: Path(__file__).open(encoding="utf-8"),
    "open binary file": lambda: Path(__file__).open("rb"),
}
"""Hostile values that replace an argument; they are created for each call."""

POISON = {
    "bytes", "object", "nan", "inf", "-inf", "complex", "numpy nan", "[nan] * 3", "[inf] * 6",
    "ragged", "nan (3, 3)", "complex array", "object array", "text array", "dict of objects",
    "recursive list", "recursive dict", "timedelta", "timedelta array", "date", "0-d nan",
    "0-d text", "0-d object", "open file", "open binary file",
}  # fmt: skip
"""Values that no argument accepts, except the arguments in `ANYTHING`."""

ANYTHING = {
    "ReducedBody.provenance",
}  # fmt: skip
"""Arguments, as ``function.argument``, for which every value is allowed."""

INNER = (
    "None", "text", "object", "0", "-1", "nan", "inf", "complex", "bytes", "[]", "1e300",
    "recursive list", "timedelta", "0-d nan", "open file",
)  # fmt: skip
"""Values that replace the first entry of a list, a tuple or a dictionary."""

ALLOWED = {("sweep.parameters", "recursive list inside")}
"""Values that are valid for an argument: a list of values of any kind may contain itself."""

UNBOUNDED = {
    ("simulate", "t_end"), ("simulate", "dt"), ("transient", "t_end"),
    ("transient", "t_start"), ("transient", "dt"), ("modal_transient", "t_end"),
    ("modal_transient", "dt"), ("modal_transient", "t_start"),
}  # fmt: skip
"""Arguments that determine the number of time steps.

They are not replaced by values of `MANY_STEPS`, which are valid but would make the run too long.
"""

MANY_STEPS = {"10**9", "10**400", "1e300", "1e-300", "-1", "-1.5", "0.5"}
"""Values that give too many time steps, as a late end, an early start or a short step."""

NAN_RESULTS = {"SNLine.life", "quasi_static_deformation"}
"""Functions whose results may contain NaN or infinity, as their documentation states."""


def cases(folder: Path, *, only: str | None = None, seed: int = 0) -> Iterator[Case]:
    """Return all cases: first each valid call, then its variations.

    Args:
        folder: A folder for files; each case runs in it.
        only: Name of a function, or ``function.argument``; all by default.
        seed: Not used, since nothing is random here.
    """
    bench = Bench(folder)
    for name, call in CALLS.items():
        if only is not None and only != name and not only.startswith(f"{name}."):
            continue
        yield Case(name, "", "valid call", lambda c=call: _valid(bench, c))
        function, arguments = call(bench)
        for item in _parameters(function, arguments):
            if only is not None and only not in (name, f"{name}.{item}"):
                continue
            yield from _variations(bench, name, call, item, arguments.get(item))


def _parameters(function: Callable[..., Any], arguments: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments, and first those that the signature does not name."""
    parameters = inspect.signature(function).parameters.values()
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    names = [p.name for p in parameters if p.kind not in variable and not p.name.startswith("_")]
    return [n for n in arguments if n not in names] + names


def _variations(bench: Bench, name: str, call: Any, item: str, good: Any) -> Iterator[Case]:
    """Yield the calls with hostile values in place of one argument."""
    for attack, make in HOSTILE.items():
        if (name, item) in UNBOUNDED and attack in MANY_STEPS:
            continue
        yield Case(name, item, attack, lambda a=attack, m=make: _hostile(bench, call, item, a, m))
    if isinstance(good, (list, tuple, dict)) and len(good) and not hasattr(good, "_fields"):
        for attack in INNER:
            yield Case(
                name, item, f"{attack} inside",
                lambda a=attack: _hostile(
                    bench, call, item, f"{a} inside", lambda: _with_first(good, HOSTILE[a]())
                ),
            )  # fmt: skip


def _with_first(good: Any, value: Any) -> Any:
    """Return a collection with its first entry replaced."""
    if isinstance(good, dict):
        return {**good, next(iter(good)): value}
    return type(good)([value, *good[1:]])


def _do(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function; an iterator that it returns is run."""
    named = {n: v for n, v in arguments.items() if not n.startswith("*")}
    rest: Any = ()
    for n, v in arguments.items():
        if n.startswith("**"):
            named |= v
        elif n.startswith("*"):
            rest = v if isinstance(v, tuple) else (v,)
    result = function(*rest, **named)
    return list(result) if isinstance(result, GeneratorType) else result


def _valid(bench: Bench, call: Any) -> str | None:
    """Return the error of the valid call, or None."""
    try:
        result = _do(*call(bench))
    except Exception as error:
        return f"the valid call fails: {type(error).__name__}: {error}"
    _finish(result)
    return None


def _hostile(
    bench: Bench, call: Any, item: str, attack: str, make: Callable[[], Any]
) -> str | None:
    """Call with one argument replaced; return what is wrong if the value is accepted."""
    function, arguments = call(bench)
    value = make()
    if item.startswith("**") and not (
        isinstance(value, dict) and all(isinstance(key, str) for key in value)
    ):
        return None
    result = _do(function, {**arguments, item: value})
    place = f"{_name_of(call)}.{item}"
    accepted = attack.removesuffix(" inside") in POISON and place not in ANYTHING
    accepted = accepted and (place, attack) not in ALLOWED
    fault = f"{attack} is accepted" if accepted else None
    free = place in ANYTHING or _name_of(call) in NAN_RESULTS
    if fault is None and not free and not _finite(result):
        fault = "the result has numbers that are not finite"
    _finish(result)
    return fault


def _name_of(call: Any) -> str:
    """Return the name of a call."""
    return next(name for name, other in CALLS.items() if other is call)


def _finish(result: Any) -> None:
    """Close the figures if the result is one."""
    if type(result).__module__.startswith("matplotlib"):
        import matplotlib.pyplot as plt

        plt.close("all")


def _finite(value: Any, depth: int = 0) -> bool:
    """Return whether the numbers in a result are finite, down to some depth."""
    if isinstance(value, (float, complex, np.number)):
        return bool(np.isfinite(value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
    if depth > 2:
        return True
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        public = [f.name for f in dataclasses.fields(value) if not f.name.startswith("_")]
        fields = [getattr(value, name) for name in public]
        return all(_finite(x, depth + 1) for x in fields)
    if isinstance(value, Mapping):
        return all(_finite(x, depth + 1) for x in value.values())
    if isinstance(value, (list, tuple)):
        return all(_finite(x, depth + 1) for x in value)
    return True
