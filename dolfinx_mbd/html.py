"""Views of objects: short texts, and tables with optional scenes for notebooks."""

from __future__ import annotations

import html
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

LONGEST = 60
"""Largest number of characters of a field in the text of an object."""

_SCENES: dict[type, Callable[[Any], str]] = {}
_SOURCES: dict[str, Callable[[], Any]] = {}


def supply(name: str, load: Callable[[], Any]) -> None:
    """Register a function that imports what views need from higher layers; see `supplied`."""
    _SOURCES[name] = load


def supplied(name: str) -> Any:
    """Return what the function that `supply` registered imports."""
    return _SOURCES[name]()


def register_scene(kind: type, scene: Callable[[Any], str]) -> None:
    """Register a function that returns the scene of an object of a class as HTML.

    `dolfinx_mbd.plotting` calls this function, so that the classes do not depend on it.
    """
    _SCENES[kind] = scene


def short_repr(self: Any) -> str:
    """Return one line of text about an object, with large arrays as shapes and long texts cut."""
    named = getattr(self, "_fields", None) or [f.name for f in fields(self) if f.repr]
    parts = [f"{name}={_short_text(getattr(self, name))}" for name in named]
    return f"{type(self).__name__}({', '.join(parts)})"


def _short_text(value: Any) -> str:
    """Return a short text of an attribute."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and hasattr(value, "tolist"):
        return f"array{shape}" if value.size > 4 else repr(value.tolist())
    text = " ".join(repr(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


class HtmlView(ABC):
    """Base class of objects that notebooks show as a table, with a scene if one is registered."""

    @abstractmethod
    def _html_rows(self) -> Iterable[tuple[str, str]]:
        """Return the rows of the table."""

    def _repr_html_(self) -> str:
        """Return the table and, if a scene of this class exists, the scene as HTML, for IPython."""
        supplied("scenes")
        scenes = (scene(self) for kind, scene in _SCENES.items() if isinstance(self, kind))
        return f"{html_table(self._html_rows())}{next(scenes, '')}"


def html_table(rows: Iterable[Iterable[str]], head: Iterable[str] = ()) -> str:
    """Return a table of texts as HTML; the first text of each row is its heading."""

    def cells(kind: str, texts: Iterable[str]) -> str:
        style = "style='text-align:left'"
        return "".join(f"<{kind} {style}>{html.escape(text)}</{kind}>" for text in texts)

    lines = [cells("th", head)] if head else []
    for first, *others in rows:
        lines.append(cells("th", [first]) + cells("td", others))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def table_head(titles: str) -> list[str]:
    """Return a blank line, the titles of columns and a line that underlines them."""
    return ["", titles, re.sub(r"\S+(?: \S+)*", lambda title: "-" * len(title[0]), titles)]


def vector_text(values: Iterable[float], scale: float = 1.0) -> str:
    """Return scaled numbers in columns; lengths in m, scaled by 1000, are rounded to 1e-8 m."""
    texts = []
    for value in values:
        number = round(float(value), 8) if scale != 1.0 else float(value)
        texts.append(f"{scale * number if abs(number) >= 1e-12 else 0.0:10.4g}")
    return "  ".join(texts)
