"""The base class of HTML pages that need no server and no network: saving and display."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from importlib.resources import files
from pathlib import Path
from typing import BinaryIO

from dolfinx_mbd.checks import file_path
from dolfinx_mbd.files import contains, write_atomically

__all__ = ["HtmlPage", "asset", "framed"]


class HtmlPage(ABC):
    """A page in one HTML file; notebooks display it.

    A subclass defines `mark`, a part of each of its pages by which files are recognized, `kind`,
    the name of such a page in errors, and `permissions` of the frame in notebooks.
    """

    mark: bytes
    kind = "page"
    permissions = "allow-scripts"

    @property
    @abstractmethod
    def html(self) -> str:
        """The page as text."""

    def save(self, path: str | Path) -> Path:
        """Write the page to a file and return its path; missing directories are created.

        Args:
            path: File to write, with the suffix `.html`. It may replace an earlier page of the
                same kind.

        Raises:
            InputError: The suffix is not `.html`.
            OverwriteError: The existing file is not a page of this kind.
            OSError: The file cannot be written; an existing file is then unchanged.
        """
        path = file_path("path", path, (".html",))
        return write_atomically(path, self._write, self.kind, replaces=contains(self.mark))

    def _write(self, file: BinaryIO) -> None:
        """Write the page as UTF-8."""
        file.write(self.html.encode(errors="replace"))

    def _repr_html_(self) -> str:
        """Return the page in a frame, for IPython."""
        return framed(self.html, self.permissions)


def framed(page: str, permissions: str) -> str:
    """Return a frame that shows a page inside another one.

    Args:
        page: The page as text.
        permissions: What the page may do, as the attribute `sandbox` of HTML.
    """
    style = f'style="width:100%;height:560px;border:0" sandbox="{permissions}"'
    return f'<iframe {style} srcdoc="{html.escape(page)}"></iframe>'


def asset(name: str) -> str:
    """Return the text of a file of the folder `assets` for a page.

    Scripts and styles of the package are shortened: without indentation, and without lines that
    contain only a comment.
    """
    text = (files("dolfinx_mbd.plotting") / "assets" / name).read_text(encoding="utf-8")
    if name not in ("player.js", "player.css"):
        return text
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("//", "/*")))
