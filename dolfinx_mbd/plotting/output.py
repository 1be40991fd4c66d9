"""What drawing gives back, and files that are written whole or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PICTURE_SUFFIXES", "Picture", "checked_path", "finished", "write_whole"]

#: Kinds of file that a picture can be saved as.
PICTURE_SUFFIXES = (".jpg", ".pdf", ".png")


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
        write_whole(path, lambda file: self._write(file, path.suffix.lower()))
        return path

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
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise ValueError(
            f"unknown suffix {path.suffix!r} of {str(path)!r}; use one of {', '.join(suffixes)}"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    part = _part(path)
    part.touch()
    part.unlink()
    return path


def write_whole(path: Path, write: Callable[[Any], None]) -> None:
    """Let ``write(file)`` write a file that appears under its name only when it is complete."""
    part = _part(path)
    try:
        with part.open("wb") as file:
            write(file)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")


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
