"""Results of drawing functions, and files that are written completely or not at all."""

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

PICTURE_SUFFIXES = (".jpg", ".pdf", ".png")
"""Suffixes of files that a picture can be saved to."""

LARGEST = 16384
"""Longest side of a picture that graphics libraries support, pixels."""


class Picture:
    """A picture, which notebooks display.

    Args:
        image: Pixels, shape (height, width, 3); None: those of the plotter when they are needed.
        plotter: The pyvista plotter that the caller provided, or None; also an attribute.

    Example:
        >>> picture = mbd.plotting.plot_body(body, [0.01, 0.0], window=(200, 150))
        >>> picture.image.shape
        (150, 200, 3)
    """

    def __init__(self, image: NDArray[np.uint8] | None = None, plotter: Any = None) -> None:
        self._image = image
        self.plotter = plotter

    @property
    def image(self) -> NDArray[np.uint8]:
        """Red, green and blue values of the pixels, shape (height, width, 3)."""
        if self._image is None:
            self._image = np.array(self.plotter.screenshot(None, return_img=True)[..., :3])
        return self._image

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file and return its path; missing directories are created.

        Args:
            path: File to write, with a suffix of `PICTURE_SUFFIXES`.

        Raises:
            InputError: The suffix is unknown.
            OSError: The file cannot be written; an existing file is then unchanged.
        """
        path = checked_path(path, PICTURE_SUFFIXES)
        suffix = path.suffix.lower()
        return write_aside(path, lambda file: self._write(file, suffix), "picture")

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
    """Return a path after a check of its suffix; its directory is created if necessary.

    Args:
        path: Path of a file to write.
        suffixes: Valid suffixes.

    Raises:
        InputError: The suffix is not valid; the message lists the valid suffixes.
        OSError: The directory cannot be created or written to.
    """
    path = file_path("path", path, suffixes)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = part_of(path)
    part.touch()
    part.unlink()
    return path


def checked_window(window: Any, argument: str = "window") -> tuple[int, int]:
    """Return the width and height of a picture, after a check.

    Args:
        window: Width and height, pixels.
        argument: Name of the argument, for the message.

    Raises:
        InputError: They are not two whole numbers from 1 to `LARGEST`.
    """
    array(argument, window, (2,), expected="a width and a height, pixels")
    width, height = (integer(argument, side, low=1, high=LARGEST) for side in window)
    return width, height


def check_drawing(path: Any = None, window: Any = (1, 1), **values: Any) -> None:
    """Check the options that several drawing functions share.

    Args:
        path: Path of a picture, or None.
        window: Width and height, pixels.
        **values: Other options by name: `opacity` (0 to 1), `cmap` (a colour map of matplotlib),
            flags, or finite numbers; `scale` and `time` may be None.

    Raises:
        InputError: An option is invalid.
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


_FLAGS = {"assembled", "outline"}


def _check_colours(cmap: Any) -> None:
    from matplotlib import colormaps
    from matplotlib.colors import Colormap

    if not (isinstance(cmap, Colormap) or (isinstance(cmap, str) and cmap in colormaps)):
        refuse("cmap", cmap, "a colour map of matplotlib, for example 'turbo'")


def new_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of a width and height in inches.

    Args:
        width: Width, inches.
        height: Height, inches.

    Raises:
        ImportError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("charts are drawn with matplotlib: pip install matplotlib") from error
    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, path: str | Path | None) -> Any:
    """Add grid lines to a matplotlib figure, write it unless `path` is None, and return it."""
    for axes in figure.axes:
        axes.margins(x=0)
        axes.grid(alpha=0.3, which="both")
    if path is not None:
        suffixes = [f".{kind}" for kind in figure.canvas.get_supported_filetypes()]
        figure.savefig(checked_path(path, suffixes), dpi=110)
    return figure


def finished(canvas: Any, plotter: Any, path: str | Path | None) -> Picture:
    """Return the picture of a plotter, and write it unless `path` is None.

    Args:
        canvas: The pyvista plotter, which is closed unless the caller provided it.
        plotter: The plotter that the caller provided, or None.
        path: File to write, or None.
    """
    if plotter is not None:
        picture = Picture(plotter=plotter)
    else:
        picture = Picture(np.array(canvas.screenshot(None, return_img=True)[..., :3]))
        canvas.close()
    if path is not None:
        picture.save(path)
    return picture
