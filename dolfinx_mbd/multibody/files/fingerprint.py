"""Fingerprints of a mechanism: a file of a run is read with the system that it belongs to.

Numbers, names and arrays are taken to the bit, functions by their code and what they close over
(line numbers and comments do not count).  What a function reads from its module counts if it is a
number, a string, an array or a function.  A variable of a closure or an attribute of an object
that begins with an underscore is taken for a cache and left out.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dolfinx_mbd.multibody.model.system import SystemData

__all__ = ["differences", "digest", "fingerprint", "names_used"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_LEFT_OUT = frozenset({"provenance", "shape", "skin"})  # where data is from, and what is drawn


def fingerprint(system: SystemData, *, functions: bool = True) -> dict[str, str]:
    """A digest of every body, joint, driver and load by name, of gravity and of the constraints.

    Args:
        system: The mechanism.
        functions: Whether the code of functions counts: it does for a run that goes on, and not
            for results that are only read.
    """
    whole = system.whole
    parts = {
        f"{kind} {item.name!r}": digest(item, functions=functions)
        for kind, items in (
            ("body", whole.bodies),
            ("joint", whole.joints),
            ("driver", whole.drivers),
            ("load", whole.loads),
        )
        for item in items
    }
    parts["gravity"] = digest(whole.gravity, functions=functions)
    order = [[item.name for item in items] for items in (whole.bodies, whole.joints, whole.drivers)]
    parts["order of bodies, joints and drivers"] = digest(order, functions=functions)
    return parts


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """What is not the same in two fingerprints, in words."""
    words = [f"{key} is missing" for key in one if key not in other]
    words += [f"{key} is new" for key in other if key not in one]
    return words + [f"{key} differs" for key in one if key in other and one[key] != other[key]]


def digest(item: object, *, functions: bool = True) -> str:
    """A digest of an object: of its numbers to the bit, and of the code of functions."""
    sha = hashlib.sha256()
    _Feeder(sha, functions).feed(item)
    return sha.hexdigest()[:32]


class _Feeder:
    """Feeds objects into a digest: kind, then contents, each object that is met again by number."""

    def __init__(self, digest: Any, functions: bool) -> None:
        self._digest = digest
        self._functions = functions
        self._met: dict[int, int] = {}
        self._kept: list[object] = []  # so that no identity is given twice

    def _word(self, *words: object) -> None:
        for word in words:
            data = word if isinstance(word, bytes) else repr(word).encode()
            self._digest.update(str(len(data)).encode() + b":" + data)

    def feed(self, item: Any) -> None:
        """Feed one object."""
        if isinstance(item, np.generic):
            item = item.item()
        if isinstance(item, _PLAIN):
            self._word(type(item).__name__, item)
            return
        if id(item) in self._met:
            self._word("again", self._met[id(item)])
            return
        self._met[id(item)] = len(self._met)
        self._kept.append(item)
        if isinstance(item, np.ndarray) and item.dtype != object:
            data = np.ascontiguousarray(item)
            self._word("array", str(data.dtype), data.shape, data.tobytes())
        elif isinstance(item, Mapping):
            self._word("mapping", len(item))
            for key, value in item.items():
                self.feed(key)
                self.feed(value)
        elif isinstance(item, (set, frozenset)):
            self._word("set", sorted(map(repr, item)))
        elif isinstance(item, (list, tuple)):
            self._word(type(item).__name__, len(item))
            for value in item:
                self.feed(value)
        elif isinstance(item, functools.partial):
            self._word("partial")
            for value in (item.func, item.args, item.keywords):
                self.feed(value)
        elif isinstance(item, types.MethodType):
            self._word("method", item.__name__)
            self.feed(item.__self__)
        elif hasattr(item, "py_func"):  # compiled by numba
            self.feed(item.py_func)
        elif hasattr(item, "__wrapped__") and not isinstance(item, types.FunctionType):
            self.feed(item.__wrapped__)  # of functools.lru_cache
        elif isinstance(item, types.FunctionType):
            self._function(item)
        elif isinstance(item, types.CodeType):
            self._code(item)
        elif isinstance(item, (type, types.ModuleType, types.BuiltinFunctionType)):
            self._word("named", getattr(item, "__module__", ""), item.__name__)
        else:
            self._object(item)

    def _function(self, function: types.FunctionType) -> None:
        self._word("function")
        if self._functions:
            self._code(function.__code__)
            for value in (function.__defaults__, function.__kwdefaults__):
                self.feed(value)
            names = names_used(function.__code__)
            self._globals(names, function.__globals__)
        # what it closes over is data, and counts for results too
        variables = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in variables:
            if name.startswith("_"):
                continue
            try:
                contents = cell.cell_contents
            except ValueError:  # not yet assigned
                self._word("empty")
                continue
            self.feed(contents)

    def _globals(self, names: Iterable[str], scope: Mapping[str, Any]) -> None:
        for name in sorted(set(names) & set(scope)):
            value = scope[name]
            if isinstance(value, (*_PLAIN, np.ndarray, np.generic, types.FunctionType)):
                self._word("global", name)
                self.feed(value)

    def _code(self, code: types.CodeType) -> None:
        self._word("code", code.co_code, code.co_names, code.co_varnames, code.co_argcount)
        for constant in code.co_consts:
            self.feed(constant)

    def _object(self, item: Any) -> None:
        kind = type(item)
        self._word("object", kind.__module__, kind.__qualname__)
        if is_dataclass(item):
            names = [f.name for f in fields(item) if f.init]
        else:
            slots = [s for c in kind.__mro__ for s in _slots(c) if hasattr(item, s)]
            names = [*sorted(slots), *sorted(getattr(item, "__dict__", {}))]
            names = [name for name in names if not name.startswith("_")]
        for name in names:
            if name not in _LEFT_OUT:
                self._word(name)
                self.feed(getattr(item, name))


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    slots = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(s for s in slots if s not in ("__dict__", "__weakref__"))


def names_used(code: types.CodeType) -> set[str]:
    """Names that a function and the functions inside it look up."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_used(constant)
    return names
