"""Classes and functions by the kind of an entry, imported when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

__all__ = ["Maker", "Makers"]

Maker = Callable[..., Any]


class Makers(Mapping[str, Maker]):
    """Makers by kind. A maker may be a text ``module:name``, whose module is not yet imported.

    Args:
        entries: Makers, or the texts that name them, by kind.
    """

    def __init__(self, entries: Mapping[str, Maker | str]) -> None:
        self._entries = dict(entries)

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, str) and kind in self._entries  # lists cannot be looked up

    def __getitem__(self, kind: str) -> Maker:
        entry = self._entries[kind]
        if isinstance(entry, str):
            module, _, name = entry.partition(":")
            entry = attrgetter(name)(importlib.import_module(module))
            self._entries[kind] = entry
        return entry  # type: ignore[return-value]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def kind_of(self, value: Any) -> str | None:
        """Return the kind whose maker is, or returns, the class of a value; None without one.

        If several functions return the class, the kind is the attribute `kind` of the value.
        """
        class_name = type(value).__name__
        label = str(getattr(value, "kind", "")).replace("-", "_").replace(" ", "_")
        result = None
        for kind, entry in self._entries.items():
            if isinstance(entry, str) and entry.partition(":")[0] not in sys.modules:
                continue  # no value of its class exists
            maker = self[kind]
            if maker is type(value):
                return kind
            returned = getattr(maker, "__annotations__", {}).get("return")
            if returned == class_name and label in (kind, ""):
                result = kind
        return result
