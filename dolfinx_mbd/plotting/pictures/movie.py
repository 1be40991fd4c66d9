"""Animations of simulated motions as GIF, or as MP4 if imageio-ffmpeg is installed."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import instance, integer, memory, number, reject
from dolfinx_mbd.files import write_atomically
from dolfinx_mbd.optional import optional_module
from dolfinx_mbd.parallel import on_rank_zero
from dolfinx_mbd.plotting.pictures.canvas import CMAP, add_caption, new_plotter
from dolfinx_mbd.plotting.pictures.drawing import Drawing
from dolfinx_mbd.plotting.pictures.mechanism_pictures import check_marks, drawing_of, saved_rows
from dolfinx_mbd.plotting.pictures.output import check_drawing, checked_path
from dolfinx_mbd.plotting.scene.mechanism_scene import DRAWN
from dolfinx_mbd.plotting.scene.mesh_surfaces import shared_mesh
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]
Image = NDArray[np.uint8]


class Animation:
    """An animation in a file; notebooks display it.

    The arguments are attributes of the animation.

    Args:
        path: Path of the file.
        time: Times of the pictures, shape (number of pictures,), s.
        fps: Pictures per second.

    Example:
        >>> movie = mbd.plotting.animate(run, "run.gif", frames=2, window=(120, 90))
        >>> movie.path.name
        'run.gif'
    """

    def __init__(self, path: Path, time: Array, fps: float) -> None:
        self.path, self.time, self.fps = path, time, fps

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """Return the animation as a GIF or an MP4 video, for IPython."""
        data = base64.b64encode(self.path.read_bytes()).decode()
        if self.path.suffix.lower() == ".gif":
            return {"image/gif": data, "text/plain": repr(self)}
        video = f'<video controls loop autoplay muted src="data:video/mp4;base64,{data}"></video>'
        return {"text/html": video, "text/plain": repr(self)}

    def __repr__(self) -> str:
        count = len(self.time)
        return f"<Animation {self.path}: {count} pictures, {count / self.fps:.3g} s>"


def animate(
    solution: Solution,
    path: str | Path,
    *,
    times: ArrayLike | None = None,
    frames: int = 100,
    scale: float = 50.0,
    quantity: str = DISPLACEMENT,
    marks: Iterable[str] = DRAWN,
    fps: float = 25.0,
    opacity: float = 0.45,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (800, 600),
) -> Animation:
    """Write an animation of a motion, coloured by elastic displacement or stress.

    The range of the colours and the scale of the arrows are the same in all pictures.

    Args:
        solution: Result of a simulation.
        path: File to write, `.gif` or `.mp4`.
        times: Times to show, s; the nearest saved times are used. By default see `frames`.
        frames: Number of pictures, spread evenly over the simulation, if `times` is not given.
        scale: Scale factor of the elastic displacement; the rigid motion and the colours are not
            scaled.
        quantity: Quantity that determines the colours, as for `plot_system`.
        marks: Kinds of additional objects as for `plot_system`. Their names and values are not
            drawn; the caption has the value of the longest arrow.
        fps: Pictures per second. GIF rounds the duration of a picture to 0.01 s, and viewers show
            at most 50 pictures per second.
        opacity: Opacity of rigid bodies; 1 hides the inside.
        cmap: Colour map of matplotlib.
        view: View as for `plot_system`.
        window: Width and height, pixels; both must be even for MP4.

    Raises:
        InputError: A time is outside the simulation, or the suffix or an option is invalid.
        ImportError: imageio-ffmpeg is not installed, and the file is an MP4.

    Example:
        >>> mbd.plotting.animate(run, "run.gif", frames=2, window=(120, 90))
        <Animation run.gif: 2 pictures, 0.08 s>

    Note: See `plot_system`.
    """
    path = checked_path(path, (".gif", ".mp4"))
    instance("solution", solution, Solution)
    fps = number("fps", fps, low=0.01, high=1000.0)
    scale = number("scale", scale)
    check_drawing(None, cmap, window, opacity)
    write = _gif if path.suffix.lower() == ".gif" else _mp4_writer(window)
    rows = _rows(solution, times, frames)
    memory("window", window, 4.0 * len(rows) * window[0] * window[1])
    kinds = check_marks(marks)
    drawing = drawing_of(solution, rows, scale=scale, quantity=quantity, marks=kinds, view=view)

    def draw() -> None:
        """Write the file on one rank."""
        images = _images(drawing, {"cmap": cmap, "opacity": opacity}, window)
        write_atomically(path, lambda file: write(file, images, fps), "animation")

    on_rank_zero(shared_mesh(solution, quantity), draw)
    return Animation(path, solution.time[rows], fps)


def _rows(solution: Solution, times: ArrayLike | None, frames: int) -> NDArray[np.int64]:
    """Return the indices of the saved times to show."""
    if times is not None:
        return saved_rows(solution, "times", times)
    count, frames = len(solution.time), integer("frames", frames, low=1)
    return np.unique(np.linspace(0, count - 1, min(frames, count)).round().astype(np.int64))


def _images(drawing: Drawing, options: dict[str, Any], window: tuple[int, int]) -> Iterator[Image]:
    """Yield a picture (height, width, 3) for each instant, with a fixed camera."""
    plotter = new_plotter(window)
    try:
        drawing.add_to(plotter, **options)
        caption = add_caption(plotter, "t", drawing.camera, drawing.foot)
        for k in range(len(drawing.scene.time)):
            drawing.move(k)
            caption.input = drawing.caption(k, ".2f") + drawing.largest_arrows
            plotter.render()
            yield np.array(plotter.screenshot(None, return_img=True)[..., :3])
    finally:
        plotter.close()


def _gif(file: Any, images: Iterator[Image], fps: float) -> None:
    """Write a GIF whose pictures share a palette, so that colours do not flicker."""
    from PIL import Image as pillow

    pictures = [pillow.fromarray(image) for image in images]
    sample = np.vstack([np.asarray(p) for p in pictures[:: max(1, len(pictures) // 4)]])
    method = pillow.Quantize.MAXCOVERAGE  # the background has little influence on the palette
    palette = pillow.fromarray(sample).quantize(255, method=method, kmeans=1)
    # 255 colours, and exactly white as the last one
    palette.putpalette([*(palette.getpalette() or [])[: 3 * 255], 255, 255, 255])
    small = [picture.quantize(palette=palette, dither=pillow.Dither.NONE) for picture in pictures]
    options = {"append_images": small[1:], "duration": 1000 / fps, "loop": 0, "disposal": 1}
    small[0].save(file, format="GIF", save_all=True, **options)


def _mp4_writer(window: tuple[int, int]) -> Any:
    """Return a function that writes an MP4 file; raise an error for odd sizes."""
    imageio_ffmpeg = optional_module("imageio_ffmpeg", "MP4 films, unlike .gif,")
    if any(side % 2 for side in window):
        reject("window", window, "an even width and height in pixels for MP4")

    def write(file: Any, images: Iterator[Image], fps: float) -> None:
        options = {"macro_block_size": 2, "quality": 8, "output_params": ["-f", "mp4"]}
        sink = imageio_ffmpeg.write_frames(file.name, window, fps=fps, **options)
        sink.send(None)
        for image in images:
            sink.send(np.ascontiguousarray(image))
        sink.close()

    return write
