"""What a parameter study is of: a folder of its cases is gone on with only by the same study."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

from dolfinx_mbd.multibody.files.fingerprint import digest, names_used
from dolfinx_mbd.multibody.studies.outcomes import Call

__all__ = ["function_name", "identity"]


def identity(call: Call) -> dict[str, str]:
    """A digest of the function with what it reads, and of each parameter and fixed argument."""
    parts = {f"the function {function_name(call.run)}": digest([call.run, dict(_read(call.run))])}
    parts |= {f"fixed {name!r}": digest(value) for name, value in call.fixed.items()}
    parts |= {f"parameter {name!r}": digest(values) for name, values in call.plan.values.items()}
    order = [call.plan.combine, list(call.plan.values)]
    return parts | {"how parameters are combined": digest(order)}


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function, or of that which a partial one calls."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def _read(function: Any, met: set[int] | None = None) -> Iterator[tuple[str, Any]]:
    """Bodies, tables and the like that a function and those it calls read from their module.

    Numbers, arrays and functions are in the digest of a function anyway; a name that begins with an
    underscore is taken for a cache.
    """
    met = set() if met is None else met
    while isinstance(function, functools.partial):
        function = function.func
    if not isinstance(function, (types.FunctionType, types.MethodType)):
        function = getattr(type(function), "__call__", None)
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType) or id(function) in met:
        return
    met.add(id(function))
    scope = function.__globals__
    for name in sorted(names_used(function.__code__) & set(scope)):
        value = scope[name]
        if isinstance(value, types.FunctionType) and value.__globals__ is scope:
            yield from _read(value, met)
        elif not name.startswith("_") and not isinstance(value, type):
            if is_dataclass(value) or isinstance(value, (list, tuple, dict, set, frozenset)):
                yield name, value
