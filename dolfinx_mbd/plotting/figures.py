"""Figures of matplotlib that notebooks display without `%matplotlib inline`."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Chart"]


class Chart(Figure):
    """A figure of matplotlib that displays itself in a notebook.

    IPython displays an ordinary `Figure` only after pyplot was imported or the magic was run.
    """

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()
