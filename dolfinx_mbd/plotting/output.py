"""What drawing gives back, and files that are written whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import array, file_path, flag, integer, number, refuse
from dolfinx_mbd.files import part_of, write_aside

__all__ = [
    "PICTURE_SUFFIXES",
    "Picture",
    "check_drawing",
    "checked_path",
    "checked_window",
    "finished",
    "new_figure",
    "save_figure",
]

#: Kinds of file that a picture can be saved as.
PICTURE_SUFFIXES = (".jpg", ".pdf", ".png")


LARGEST = 16384
"""Longest side of a picture that graphics libraries can draw, pixels."""


class Picture:
    """A picture: notebooks show it, `save` writes it, `image` is its pixels.

    Attributes:
        plotter: The pyvista plotter that was given to draw into, or None.
    """

    def __init__(self, image: NDArray[np.uint8] | None = None, plotter: Any = None) -> None:
        self._image = image
        self.plotter = plotter

    @property
    def image(self) -> NDArray[np.uint8]:
        """Pixels, (height, width, 3), red, green and blue."""
        if self._image is None:
            self._image = np.array(self.plotter.screenshot(None, return_img=True)[..., :3])
        return self._image

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file and return its path; missing directories are made.

        Raises:
            ValueError: If the suffix is not one of :data:`PICTURE_SUFFIXES`.
            OSError: If the file cannot be written; one that was there before stays.
        """
        path = checked_path(path, PICTURE_SUFFIXES)
        return write_aside(path, lambda file: self._write(file, path.suffix.lower()), "picture")

    def _write(self, file: Any, suffix: str) -> None:
        from PIL import Image

        kind = {".jpg": "JPEG", ".pdf": "PDF", ".png": "PNG"}[suffix]
        Image.fromarray(self.image).save(file, format=kind)

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self._write(file, ".png")
        return file.getvalue()

    def __repr__(self) -> str:
        if self._image is None:
            return "<Picture, not taken yet>"
        return f"<Picture: {self._image.shape[1]} × {self._image.shape[0]} pixels>"


def checked_path(path: str | Path, suffixes: Sequence[str]) -> Path:
    """The path, if its suffix is known; its directory is made.

    Raises:
        ValueError: If the suffix is not one of those given; the message lists them.
        OSError: If the directory cannot be made or written to.
    """
    path = file_path("path", path, suffixes)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    part.touch()
    part.unlink()
    return path


def checked_window(window: Any, argument: str = "window") -> tuple[int, int]:
    """Return width and height of a picture, pixels.

    Raises:
        InputError: They are not two whole numbers from 1 to `LARGEST`.
    """
    array(argument, window, (2,), expected="a width and a height, pixels")
    width, height = (integer(argument, side, low=1, high=LARGEST) for side in window)
    return width, height


def check_drawing(path: Any = None, window: Any = (1, 1), **values: Any) -> None:
    """Check what several pictures take: the path of a picture, or None, the size of the window,
    `opacity` from 0 to 1, a map of colours `cmap`, flags, and numbers, of which `scale` and `time`
    may be None.
    """
    checked_window(window)
    if path is not None:
        checked_path(path, PICTURE_SUFFIXES)
    for name, value in values.items():
        if value is None and name in ("scale", "time"):
            continue
        if name == "opacity":
            number(name, value, low=0.0, high=1.0)
        elif name == "cmap":
            _check_colours(value)
        elif name in _FLAGS:
            flag(name, value)
        else:
            number(name, value)


_FLAGS = {"assembled", "frames", "joints", "names", "outline"}


def _check_colours(cmap: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    if not (isinstance(cmap, Colormap) or (isinstance(cmap, str) and cmap in colormaps)):
        refuse("cmap", cmap, "a colour map of matplotlib, for example 'turbo'")


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure; width and height in inches.

    Raises:
        ImportError: If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("charts are drawn with matplotlib: pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: str | Path | None) -> Any:
    """Draw the grid of a matplotlib figure, write it unless the path is None, and return it."""
    for axes in figure.axes:
        axes.margins(x=0)
        axes.grid(alpha=0.3, which="both")
    if path is not None:
        suffixes = [f".{kind}" for kind in figure.canvas.get_supported_filetypes()]
        figure.savefig(checked_path(path, suffixes), dpi=110)
    return figure


def finished(drawn: Any, given: Any, path: str | Path | None) -> Picture:
    """The picture of a plotter, which is closed unless it was given by the caller."""
    if given is not None:
        picture = Picture(plotter=given)
    else:
        picture = Picture(np.array(drawn.screenshot(None, return_img=True)[..., :3]))
        drawn.close()
    if path is not None:
        picture.save(path)
    return picture
