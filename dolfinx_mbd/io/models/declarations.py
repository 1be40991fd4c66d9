"""Fields of the parts of a model, from the signatures and docstrings of classes and functions.

A part of a mechanism is declared once, by its class or function: the signature has the names, types
and defaults of its fields, the docstring their meaning and units. Model files, their schema and
their checks follow from these declarations.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

from dolfinx_mbd.mechanism.expressions.unit_expressions import parse_unit

__all__ = ["Declared", "declared_fields", "members", "type_names"]

REQUIRED = inspect.Parameter.empty
"""Default of fields that have no default."""

_UNIT = re.compile(
    r"(?:, |\(|\bor |\band |\bin )([A-Za-zµ°%²³⁴⁻¹·/ ]{1,16}?)(?=[.,;)]|:| or | and |$)"
)
"""A possible unit in a docstring: up to 16 characters after `, `, `(`, `or `, `and ` or `in `, and
before a punctuation mark, `or`, `and` or the end."""

_WORDS = ("in", "t")
"""Words of docstrings that could be mistaken for the units inch and tonne."""


class Declared(NamedTuple):
    """A field of a part of a model.

    Attributes:
        name: Name of the field.
        types: Names of its types, see `type_names`.
        default: Default value, or `REQUIRED`.
        text: Meaning, from the docstring.
        units: Units in the docstring, separated by `|`.
    """

    name: str
    types: tuple[str, ...]
    default: Any
    text: str
    units: str

    @property
    def is_required(self) -> bool:
        """Whether the field has no default."""
        return self.default is REQUIRED


@functools.cache
def declared_fields(maker: Callable[..., Any]) -> dict[str, Declared]:
    """Return the fields of a class or function by name, in the order of its arguments."""
    texts = _entries(maker)
    result = {}
    for name, parameter in inspect.signature(maker).parameters.items():
        if name.startswith("_") or parameter.kind in (
            inspect.Parameter.VAR_KEYWORD,
            inspect.Parameter.VAR_POSITIONAL,
        ):
            continue
        default = parameter.default
        # A field of a dataclass with a default factory: all these fields are mappings
        if type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
            default = {}
        text = texts.get(name, "")
        result[name] = Declared(
            name, type_names(maker, str(parameter.annotation)), default, text, _units(text)
        )
    return result


def _entries(maker: Callable[..., Any]) -> dict[str, str]:
    """Return the texts of the entries `Attributes:` or `Args:` of a docstring by name.

    A function that refers to a class for its arguments has the entries of this class, and a class
    has those of its base classes. An entry without a unit that refers to another class or function
    is replaced by the entry there.
    """
    text = inspect.getdoc(maker) or ""
    result: dict[str, str] = {}
    reference = re.search(r"[Ss]ee `(\w+)`", text)
    if reference and not re.search(r"^(Args|Attributes):", text, re.M):
        other = getattr(sys.modules[maker.__module__], reference[1], None)
        if other is not None:
            result |= _entries(other)
    for base in reversed(getattr(maker, "__mro__", ())[1:-1]):
        result |= _entries(base) if base.__module__.startswith("dolfinx_mbd") else {}
    match = re.search(r"^(?:Args|Attributes):\n((?:(?:    .*)?\n?)*)", text, re.M)
    body = match[1] if match else ""
    for entry in re.split(r"\n(?=    \w+:)", "\n" + body):
        name, colon, words = entry.strip().partition(":")
        if colon and name.isidentifier():
            result[name] = " ".join(words.split())
    see = re.compile(r"see `(\w+)`")
    for name, words in result.items():
        other = see.search(words)
        target = getattr(sys.modules[maker.__module__], other[1], None) if other else None
        if target is not None and not _units(words) and target is not maker:
            result[name] = _entries(target).get(name, words)
    return result


def _units(text: str) -> str:
    """Return the known units in a text, separated by `|`."""
    units = (match[1].strip() for match in _UNIT.finditer(re.sub(r"shape \(.*?\)", "", text)))
    return "|".join(dict.fromkeys(u for u in units if u not in _WORDS and parse_unit(u)))


def type_names(maker: Callable[..., Any], annotation: str) -> tuple[str, ...]:
    """Return the names of the types in an annotation: `float`, `ArrayLike`, `choice:a,b` ..."""
    match = re.fullmatch(r"ForwardRef\('(.*)'\)", annotation)  # an annotation of a NamedTuple
    annotation = (match[1] if match else annotation).strip().strip("'\"")
    result: list[str] = []
    for part in members(annotation):
        if part.startswith("Literal["):
            words = [word.strip().strip("'\"") for word in part[8:-1].split(",")]
            result.append("choice:" + ",".join(words))
        else:
            alias = getattr(sys.modules[maker.__module__], part, None)
            choices = get_args(alias) if str(alias).startswith("typing.Literal") else ()
            result.append("choice:" + ",".join(choices) if choices else part)
    return tuple(dict.fromkeys(result))


def members(annotation: str, sign: str = "|") -> list[str]:
    """Return the parts of an annotation between the signs that are not inside brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for k, letter in enumerate(annotation + sign):
        depth += (letter in "[(") - (letter in "])")
        if letter == sign and depth == 0:
            parts.append(annotation[start:k].strip())
            start = k + 1
    return parts
