"""Reports: checks with their limits, texts, tables, figures and scenes in one HTML page."""

from __future__ import annotations

import base64
import html
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dolfinx_mbd.checks import entries, instance, items, number, reject
from dolfinx_mbd.errors import MissingFileError
from dolfinx_mbd.html import html_table
from dolfinx_mbd.plotting.viewer.html_page import HtmlPage, asset, framed
from dolfinx_mbd.plotting.viewer.page import Player

__all__ = ["Check", "Report"]

_IMAGES = {".gif": "gif", ".jpg": "jpeg", ".png": "png", ".svg": "svg+xml"}


@dataclass(frozen=True)
class Check:
    """A number with its limits.

    Attributes:
        name: What the number is.
        value: The number.
        low: Lower limit.
        high: Upper limit.
        unit: Unit of the three numbers.
    """

    name: str
    value: float
    low: float
    high: float
    unit: str = ""

    @property
    def passed(self) -> bool:
        """Whether the number is within its limits; False for NaN."""
        return self.low <= self.value <= self.high

    @property
    def limits(self) -> str:
        """The limits as text."""
        if math.isinf(self.low):
            return f"at most {self.high:.6g}"
        if math.isinf(self.high):
            return f"at least {self.low:.6g}"
        return f"{self.low:.6g} to {self.high:.6g}"

    def __str__(self) -> str:
        """Return one line of text."""
        text = f"{self.name:<58} {self.value:12.6g} in [{self.low:.6g}, {self.high:.6g}]"
        return f"{'ok ' if self.passed else 'failed'} {text} {self.unit}".rstrip()


class Report(HtmlPage):
    """A page with the results of a study: one HTML file that needs no network.

    The page starts with all checks. The other items follow in the order of their addition. A
    browser prints it as PDF.

    Args:
        title: Title of the page.

    Example:
        >>> report = mbd.plotting.Report("Slider-crank")
        >>> report.check("stroke", 1e3 * 0.1, 99.0, 101.0, "mm")
        True
        >>> report.add(mbd.plotting.plot_energies(run), "Energies over two revolutions")
        >>> report.table(["part", "mass (kg)"], [["crank", 0.9], ["piston", 0.2]])
        >>> report.save("report.html").name
        'report.html'
    """

    mark = b'<meta name="generator" content="dolfinx_mbd report">'
    kind = "report"

    def __init__(self, title: str = "Report") -> None:
        self.title = instance("title", title, str)
        self._items: list[tuple[str, str]] = []  # each as text and as HTML
        self._checks: list[Check] = []

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks, with `name`, `value`, `low`, `high`, `unit` and `passed`."""
        return tuple(self._checks)

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self._checks)

    def check(
        self,
        name: str,
        value: float,
        low: float = -math.inf,
        high: float = math.inf,
        unit: str = "",
    ) -> bool:
        """Add a number with its limits, and return whether it is within them.

        Args:
            name: What the number is.
            value: The number; NaN fails.
            low: Lower limit; by default −∞.
            high: Upper limit; by default ∞.
            unit: Unit of the three numbers.

        Raises:
            InputError: There is no limit, or the limits are not ordered.
        """
        for text, argument in ((name, "name"), (unit, "unit")):
            instance(argument, text, str)
        limits = _real("low", low), _real("high", high)
        if not limits[0] <= limits[1] or limits == (-math.inf, math.inf):
            reject("low, high", (low, high), "at least one limit, and low ≤ high")
        check = Check(name, _real("value", value), *limits, unit)
        self._checks.append(check)
        self._items.append((str(check), ""))
        return check.passed

    def heading(self, text: str) -> None:
        """Add the title of a section.

        Args:
            text: The title.
        """
        text = instance("text", text, str)
        self._items.append((f"\n{text}", f"<h2>{html.escape(text)}</h2>"))

    def table(self, head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> None:
        """Add a table.

        Args:
            head: Titles of the columns, with units.
            rows: Texts and numbers of each row; numbers are shown with four digits.
            caption: Text above the table.

        Raises:
            InputError: A row does not have as many entries as there are columns.
        """
        instance("caption", caption, str)
        titles = items("head", head, str)
        lists = [entries("rows", row, "a list of lists") for row in entries("rows", rows)]
        texts = [[_cell(value) for value in row] for row in lists]
        for row in texts:
            if len(row) != len(titles):
                reject("rows", row, f"{len(titles)} entries in each row")
        columns = zip(titles, *texts, strict=True)
        widths = [max(map(len, column)) for column in columns]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in [titles, *texts]]
        page = _captioned(html_table(texts, titles), caption)
        self._items.append(("\n".join([caption, *lines] if caption else lines), page))

    def add(self, item: Any, caption: str = "") -> None:
        """Add a text, a picture or a scene.

        Args:
            item: A text, of which several lines keep their columns; the path of a picture (.png,
                .jpg, .gif or .svg) or of a page of `mbd.plotting.player` (.html); a figure of
                matplotlib; or an object that notebooks display, such as a `Picture`, the `Player`
                of `mbd.plotting.player`, a body or a run.
            caption: Text above a picture or a scene.

        Raises:
            InputError: The item is of another kind.
            MissingFileError: There is no file at the path.
        """
        instance("caption", caption, str)
        if isinstance(item, str):
            tag = "pre" if "\n" in item or "  " in item.strip() else "p"
            self._items.append((item, f"<{tag}>{html.escape(item)}</{tag}>" if item else ""))
        else:
            self._items.append(("", _captioned(_html_of(item, caption), caption)))

    @property
    def text(self) -> str:
        """The checks, texts and tables as plain text."""
        return "\n".join(text for text, _ in self._items if text).lstrip("\n")

    @property
    def html(self) -> str:
        """The page as text."""
        title = html.escape(self.title)
        body = "\n".join(page for _, page in self._items if page)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f"{self.mark.decode()}\n<title>{title}</title>\n"
            f"<style>\n{asset('report.css')}\n</style>\n</head>\n<body>\n"
            f"<h1>{title}</h1>\n{self._verdict()}{body}\n</body>\n</html>\n"
        )

    def _verdict(self) -> str:
        """Return the number of checks that passed, and the table of all checks, as HTML."""
        if not self._checks:
            return ""
        rows = []
        for check in self._checks:
            result = "passed" if check.passed else "failed"
            texts = check.name, f"{check.value:.6g}", check.limits, check.unit, result
            cells = "".join(f"<td>{html.escape(text)}</td>" for text in texts)
            rows.append(f'<tr class="{result}">{cells}</tr>')
        head = "".join(f"<th>{text}</th>" for text in ("check", "value", "limits", "unit", ""))
        passed = sum(check.passed for check in self._checks)
        count = f"{passed} of {len(self._checks)} checks passed"
        state = "passed" if self.passed else "failed"
        table = f"<table><tr>{head}</tr>{''.join(rows)}</table>"
        return f'<p class="verdict {state}">{count}</p>\n{table}\n'

    def __repr__(self) -> str:
        passed = sum(check.passed for check in self._checks)
        return f"<Report {self.title!r}: {passed} of {len(self._checks)} checks passed>"


def _cell(value: Any) -> str:
    """Return the text of a cell of a table."""
    return value if isinstance(value, str) else f"{_real('rows', value):.4g}"


def _real(argument: str, value: Any) -> float:
    """Return a number, which may be NaN or infinite."""
    if isinstance(value, float) and not math.isfinite(value):
        return float(value)
    return number(argument, value)


def _captioned(page: str, caption: str) -> str:
    """Return a figure of HTML with its caption."""
    text = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{text}{page}</figure>"


def _html_of(item: Any, caption: str) -> str:
    """Return a picture or a scene as HTML."""
    if isinstance(item, Path):
        if item.suffix.lower() not in (*_IMAGES, ".html"):
            reject("item", str(item), f"a picture or a page: {', '.join(_IMAGES)}, .html")
        if not item.is_file():
            raise MissingFileError(f"there is no file '{item}'")
        if item.suffix.lower() == ".html":
            return framed(item.read_text(encoding="utf-8"), Player.permissions)
        return _image(_IMAGES[item.suffix.lower()], item.read_bytes(), caption)
    for name in ("_repr_html_", "_repr_png_"):
        display = getattr(item, name, None)
        content = display() if callable(display) else None
        if content:
            return content if name == "_repr_html_" else _image("png", content, caption)
    if not hasattr(item, "savefig"):
        reject("item", item, "a text, the path of a picture, or an object that notebooks display")
    file = io.BytesIO()
    item.savefig(file, format="png", dpi=110)
    return _image("png", file.getvalue(), caption)


def _image(kind: str, data: bytes, caption: str) -> str:
    """Return a picture of HTML that contains its data."""
    text = base64.b64encode(data).decode()
    return f'<img alt="{html.escape(caption)}" src="data:image/{kind};base64,{text}">'
