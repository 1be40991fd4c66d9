"""Pictures in memory and in files, and checks of the options that drawing functions share."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import array, file_path, integer, number, reject
from dolfinx_mbd.files import create_directory, temporary_path, write_atomically
from dolfinx_mbd.optional import optional_module

_FORMATS = {".jpg": "JPEG", ".pdf": "PDF", ".png": "PNG"}
LARGEST = 16384  # longest side of a picture that graphics libraries support, pixels


class Picture:
    """A picture; notebooks display it.

    Args:
        image: Pixels, shape (height, width, 3); by default taken from the plotter when needed.
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
            path: File to write: `.png`, `.jpg` or `.pdf`.

        Raises:
            InputError: The suffix is unknown.
            OSError: The file cannot be written; an existing file is then unchanged.
        """
        path = checked_path(path, list(_FORMATS))
        kind = _FORMATS[path.suffix.lower()]
        return write_atomically(path, lambda file: self._write(file, kind), "picture")

    def _write(self, file: Any, kind: str) -> None:
        """Write the picture in a format of Pillow."""
        from PIL import Image

        Image.fromarray(self.image).save(file, format=kind)

    def _repr_png_(self) -> bytes:
        """Return the picture as PNG, for IPython."""
        file = io.BytesIO()
        self._write(file, "PNG")
        return file.getvalue()

    def __repr__(self) -> str:
        if self._image is None:
            return "<Picture, not taken yet>"
        return f"<Picture: {self._image.shape[1]} × {self._image.shape[0]} pixels>"


def checked_path(path: str | Path, suffixes: Sequence[str]) -> Path:
    """Return a path after a check of its suffix; create its directory, and test writing there."""
    path = file_path("path", path, suffixes)
    create_directory(path.parent)
    test_file = temporary_path(path)
    test_file.touch()
    test_file.unlink()
    return path


def check_size(argument: str, size: Any) -> None:
    """Raise an error unless `size` is a width and a height in pixels."""
    array(argument, size, (2,), expected="a width and a height, pixels")
    for side in size:
        integer(argument, side, low=1, high=LARGEST)


def check_drawing(path: Any, cmap: Any, window: Any = (1, 1), opacity: float = 1.0) -> None:
    """Raise an error if an option that several drawing functions share is invalid."""
    colormaps = optional_module("matplotlib", "pictures").colormaps
    Colormap = optional_module("matplotlib.colors", "pictures").Colormap
    check_size("window", window)
    number("opacity", opacity, low=0.0, high=1.0)
    if not (isinstance(cmap, Colormap) or (isinstance(cmap, str) and cmap in colormaps)):
        reject("cmap", cmap, "a colour map of matplotlib, for example 'turbo'")
    if path is not None:
        checked_path(path, list(_FORMATS))


def taken(canvas: Any, plotter: Any, path: str | Path | None) -> Picture:
    """Return the picture of a canvas; close the canvas unless it is the caller's plotter."""
    picture = Picture(plotter=canvas)
    if plotter is None:
        picture = Picture(picture.image)
        canvas.close()
    if path is not None:
        picture.save(path)
    return picture
