"""Fingerprints that identify the mechanism of a file or the study of a folder.

A fingerprint consists of digests of numbers, arrays and strings. Functions are represented by their
qualified names, default values and closure variables. Names that begin with an underscore are
ignored. With `code=True`, a digest also contains the code of the functions and the global
constants, functions and classes that they use, except those of Python and of installed packages.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dolfinx_mbd.mechanism.system import System

_LIBRARIES = [Path(functools.__file__).parent, Path(__file__).parents[2]]  # Python, this package
_CLASS_ATTRIBUTES = frozenset(vars(types.new_class("C"))) | {  # attributes of each class
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__",
    "__conditional_annotations__", "__dataclass_fields__", "__dataclass_params__",
    "__firstlineno__", "__match_args__", "__slots__", "__static_attributes__",
}  # fmt: skip
_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_IGNORED = frozenset({"provenance", "shape", "skin"})  # attributes without effect on results
# Attributes that are ignored if None, because early files of version 3 do not have them
_IGNORED_IF_NONE = frozenset({"clearance", "omega", "rate", "relation", "velocity"})


def fingerprint(system: System) -> dict[str, str]:
    """Return digests of gravity, of each body, joint, driver and load, and of their order.

    Constraints that a run has dropped are included.
    """
    whole = system.whole
    groups: dict[str, Any] = {"body": whole.bodies, "joint": whole.joints, "driver": whole.drivers}
    items = [(kind, item) for kind, group in groups.items() for item in group]
    items += [("load", load) for load in whole.loads]
    order = [[item.name for item in group] for group in groups.values()]
    return {
        **{f"{kind} {item.name!r}": digest(item) for kind, item in items},
        "gravity": digest(whole.gravity),
        "order of bodies, joints and drivers": digest(order),
    }


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Return descriptions of the differences between two fingerprints."""
    texts = [f"{key} is missing" for key in one if key not in other]
    texts += [f"{key} is new" for key in other if key not in one]
    return texts + [f"{key} differs" for key in one if key in other and one[key] != other[key]]


def digest(item: object, *, code: bool = False) -> str:
    """Return a digest of all bits of an object's numbers and of the names of its functions.

    With `code`, the digest also depends on the code of the functions and on the globals that they
    use; it is then valid for one version of Python.
    """
    return hashlib.sha256(repr(_canonical_form(item, {}, code)).encode()).hexdigest()[:32]


def _canonical_form(item: Any, visited: dict[int, tuple[int, Any]], code: bool) -> tuple[str, Any]:
    """Return an object as nested tuples of strings.

    `visited` maps the identity of each earlier object to its number and to the object itself. The
    object is kept because Python reuses the identities of deleted objects.
    """
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, _PLAIN):
        return type(item).__name__, repr(item)
    if id(item) in visited:
        return "again", visited[id(item)][0]
    visited[id(item)] = len(visited), item
    kind, contents = _parts(item, code)
    return kind, tuple(_canonical_form(part, visited, code) for part in contents)


def _parts(item: Any, code: bool) -> tuple[str, list[Any]]:
    """Return the kind and the contents of an object whose type is not in `_PLAIN`."""
    if isinstance(item, np.ndarray) and item.dtype != object:
        data = hashlib.sha256(np.ascontiguousarray(item).tobytes()).hexdigest()
        return f"array {item.dtype} {item.shape} {data}", []
    if isinstance(item, Mapping):
        return "mapping", [part for pair in item.items() for part in pair]
    if isinstance(item, (set, frozenset)):
        return "set", sorted(map(repr, item))
    if isinstance(item, (list, tuple, np.ndarray)):
        return "list", list(item)
    if callable(item) or isinstance(item, types.ModuleType):
        parts = _callable_parts(item)
        if parts is not None and code:
            parts[1].extend(_code_parts(item))
        if parts is not None:
            return parts
    names = [name for name in _attributes(item) if name not in _IGNORED]
    names = [
        name for name in names if name not in _IGNORED_IF_NONE or getattr(item, name) is not None
    ]
    values = [getattr(item, name) for name in names]
    if code:
        values += _code_parts(type(item))
    return f"object {type(item).__qualname__} {names}", values


def _callable_parts(item: Any) -> tuple[str, list[Any]] | None:
    """Return the kind and contents of a function, type or module; None for other objects."""
    if isinstance(item, functools.partial):
        return "partial", [item.func, item.args, item.keywords]
    if isinstance(item, types.MethodType):
        return f"method {item.__name__}", [item.__self__]
    if hasattr(item, "__wrapped__") and not isinstance(item, types.FunctionType):
        return "wrapped", [inspect.unwrap(item)]  # compiled by numba, or cached
    if isinstance(item, types.FunctionType):
        cells = zip(item.__code__.co_freevars, item.__closure__ or (), strict=True)
        closed = [_contents(cell) for name, cell in cells if not name.startswith("_")]
        return f"function {item.__qualname__}", [item.__defaults__, item.__kwdefaults__, closed]
    if isinstance(item, (type, types.ModuleType, types.BuiltinFunctionType)):
        return f"named {item.__name__}", []
    return None


def _code_parts(item: Any) -> list[Any]:
    """Return the code of a function or of the methods of a class, and the globals that it uses.

    Python and installed packages have no parts.
    """
    if isinstance(item, types.MethodType):
        return _code_parts(item.__func__)
    if isinstance(item, type):
        module = sys.modules.get(item.__module__)
        if item.__module__ != "__main__" and not _is_own_file(getattr(module, "__file__", None)):
            return []
        members = [
            (name, v) for name, v in sorted(vars(item).items()) if name not in _CLASS_ATTRIBUTES
        ]
        return [part for name, v in members for part in (name, getattr(v, "__func__", v))]
    if not isinstance(item, types.FunctionType) or not _is_own_file(item.__code__.co_filename):
        return []
    instructions, names = _instructions(item.__code__, item.__doc__)
    values = item.__globals__
    used = [values[name] for name in names if name in values]
    modules = [value for value in used if isinstance(value, types.ModuleType)]
    for module in modules:  # constants and functions such as `settings.SPEED`
        if _is_own_file(getattr(module, "__file__", None)):
            used += [vars(module)[name] for name in names if name in vars(module)]
    cells = zip(item.__code__.co_freevars, item.__closure__ or (), strict=True)
    private = [_contents(cell) for name, cell in cells if name.startswith("_")]
    return [instructions, *used, *private]


def _instructions(code: types.CodeType, doc: str | None = None) -> tuple[str, list[str]]:
    """Return instructions and constants of a code object without `doc`, and all names in it."""
    constants, names = [], {*code.co_names}
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            inner, more = _instructions(value)
            constants.append(inner)
            names |= {*more}
        elif isinstance(value, frozenset):
            constants.append(repr(sorted(map(repr, value))))
        elif doc is None or value != doc:
            constants.append(repr(value))
    return repr([code.co_code.hex(), constants, code.co_names, code.co_varnames]), sorted(names)


def _is_own_file(file: str | None) -> bool:
    """Return whether a file is not part of Python, of this package or of an installed package."""
    if file is None or file.startswith("<frozen"):
        return False
    path = Path(file).absolute()
    installed = {"site-packages", "dist-packages"}.intersection(path.parts)
    return not installed and not any(path.is_relative_to(folder) for folder in _LIBRARIES)


def _contents(cell: types.CellType) -> Any:
    """Return the value of a closure variable, or None if it is not assigned yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _attributes(item: Any) -> list[str]:
    """Return the names of the attributes that contain the data of an object."""
    if is_dataclass(item):
        return [f.name for f in fields(item) if f.init and not f.name.startswith("_")]
    slots = [getattr(kind, "__slots__", ()) for kind in type(item).__mro__]
    names = {name for group in slots for name in ([group] if isinstance(group, str) else group)}
    names |= set(getattr(item, "__dict__", {}))
    return sorted(name for name in names if not name.startswith("_") and hasattr(item, name))
