"""Figures of matplotlib that notebooks display without `%matplotlib inline`."""

from __future__ import annotations

import io

from matplotlib.figure import Figure

__all__ = ["Chart"]


class Chart(Figure):
    """A figure of matplotlib that displays itself in a notebook.

    IPython displays an ordinary `Figure` only after the import of pyplot or after the magic
    command.
    """

    def _repr_png_(self) -> bytes:
        """Return the figure as a PNG picture, for IPython."""
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()
