"""The documentation as built: links and pictures exist, and pages fit on wide and narrow screens.

Build the pages first; without them all tests are skipped. The pages are opened in Chromium, if it
and the package playwright are installed.
"""

from __future__ import annotations

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from mpi4py import MPI

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = [p for p in sorted(SITE.rglob("*.html")) if not p.relative_to(SITE).parts[0][0] == "_"]
PAGE_SIZE = 700_000
"""Largest size of a page in bytes; viewers are files of their own."""

pytestmark = [
    pytest.mark.skipif(not PAGES, reason="the documentation is not built"),
    pytest.mark.skipif(MPI.COMM_WORLD.size > 1, reason="reads files only"),
]


class Page(HTMLParser):
    """The links and the targets of links in a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.targets: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.targets |= {values[key] or "" for key in ("id", "name") if key in values}
        self.links += [values[key] or "" for key in ("href", "src") if key in values]


@cache
def page(path: Path) -> Page:
    """Return a page of the documentation."""
    return Page(path)


def title(path: Path) -> str:
    """Return the name of a page in the site."""
    return path.relative_to(SITE).as_posix()


@pytest.mark.parametrize("path", PAGES, ids=title)
def test_links_lead_somewhere(path: Path) -> None:
    for link in page(path).links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        assert target.exists(), link
        if parts.fragment and target.suffix == ".html":
            assert unquote(parts.fragment) in page(target).targets, link


@pytest.mark.parametrize("path", PAGES, ids=title)
def test_pages_are_small_and_need_no_network(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    limit = 3 * PAGE_SIZE if path.name in ("genindex.html",) else PAGE_SIZE
    assert len(text.encode()) < limit
    loaded = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?://[^"]*)', text)
    assert loaded == []
    assert "srcdoc=" not in text
    assert "&lt;Figure size" not in text  # a figure that shows its text instead of itself


@pytest.mark.slow
@pytest.mark.parametrize("width", [400, 1400])
def test_pages_fit_the_screen(browser: Any, width: int) -> None:
    """No page scrolls sideways, says anything in the console, or lacks a picture."""
    tab = browser.new_page(viewport={"width": width, "height": 900})
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(f"{tab.url}: {message.text}"))
    tab.on("pageerror", lambda error: problems.append(f"{tab.url}: {error}"))

    def failed(request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # the next page ends requests of the last one
            problems.append(f"{request.frame.url}: {request.url}: {request.failure}")

    tab.on("requestfailed", failed)
    for path in PAGES:
        tab.goto(path.as_uri())
        wide = tab.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            problems.append(f"{title(path)} is {wide} pixels wide")
        for source in tab.evaluate(
            "[...document.images].filter(i => i.loading !== 'lazy' && !i.naturalWidth)"
            ".map(i => i.src)"
        ):
            problems.append(f"{title(path)}: no picture {source}")
    tab.close()
    assert problems == []
