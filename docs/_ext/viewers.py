"""Viewers as files of their own, which share one copy of three.js and are loaded when visible."""

from __future__ import annotations

import hashlib
import html
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from dolfinx_mbd.plotting.viewer.html_page import asset

FOLDER = "_viewers"
FRAME = re.compile(r'<iframe style="[^"]*" sandbox="[^"]*" srcdoc="([^"]*)"></iframe>')
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"\s+content="[^"]*">\n')
SHARED = ("three.min.js", "player.js", "player.css")


def assets() -> dict[str, str]:
    """Return the texts that all viewers contain, by file names with a hash of the text."""
    texts = ((Path(name), asset(name)) for name in SHARED)
    return {
        f"{path.stem}-{hashlib.sha256(text.encode()).hexdigest()[:8]}{path.suffix}": text
        for path, text in texts
    }


def linked(page: str, texts: dict[str, str]) -> str:
    """Return the page of a viewer with links in place of the shared texts.

    The content security policy of the page is removed, because it forbids linked files.
    """
    for name, text in texts.items():
        link = f'<script src="{name}"></script>'
        start, end = "<script>", "</script>"
        if name.endswith(".css"):
            start, end, link = "<style>", "</style>", f'<link rel="stylesheet" href="{name}">'
        page = page.replace(f"{start}\n{text}\n{end}", link)
    return POLICY.sub("", page)


def move_viewers(app: Sphinx, name: str, template: str, context: dict[str, Any], _: Any) -> None:
    """Replace each viewer in a page by a frame that loads it from a file."""
    body = context.get("body")
    if not body or "srcdoc=" not in body or app.builder.format != "html":
        return
    folder = Path(app.outdir, FOLDER)
    folder.mkdir(exist_ok=True)
    texts, to_root = assets(), "../" * name.count("/")
    number = 0

    def frame(match: re.Match[str]) -> str:
        nonlocal number
        number += 1
        path = folder / f"{name.replace('/', '-')}-{number}.html"
        path.write_text(linked(html.unescape(match[1]), texts), encoding="utf-8")
        return (
            f'<iframe class="viewer" loading="lazy" src="{to_root}{FOLDER}/{path.name}" '
            'title="Interactive scene" allowfullscreen></iframe>'
        )

    context["body"] = FRAME.sub(frame, body)
    for file_name, text in texts.items():
        if not (folder / file_name).exists():
            (folder / file_name).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Move the viewers when a page is written."""
    app.connect("html-page-context", move_viewers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
