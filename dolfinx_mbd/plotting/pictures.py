"""Pictures of one body: its modes, or a deformed state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody, Skin
from dolfinx_mbd.checks import integer, number, refuse
from dolfinx_mbd.errors import InputTypeError
from dolfinx_mbd.plotting.camera import camera_of
from dolfinx_mbd.plotting.geometry import length_of, required_skin, skin_displacement, skin_points
from dolfinx_mbd.plotting.output import Picture, check_drawing, checked_window, finished
from dolfinx_mbd.plotting.scene import (
    CMAP,
    DrawnSurface,
    add_axes,
    add_bar,
    add_text,
    new_plotter,
    plotter_of,
    rounded_up,
    unit_of,
)

__all__ = ["plot_body", "plot_modes"]

Array = NDArray[np.float64]


def plot_modes(
    body: ReducedBody,
    modes: Iterable[int] | None = None,
    path: str | Path | None = None,
    *,
    columns: int = 3,
    amplitude: float = 0.08,
    outline: bool = True,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    panel: tuple[int, int] = (460, 300),
) -> Picture:
    """Draw modes in a grid, each with its label and frequency, coloured by displacement.

    Args:
        body: A reduced body with a skin.
        modes: Numbers of the modes, from 0; None: the first six, or all if there are fewer.
        path: File to write: `.png`, `.jpg` or `.pdf`. None: no file.
        columns: Number of columns of the grid.
        amplitude: Greatest displacement in each picture, relative to the size of the body.
        outline: Whether to draw the edges of the undeformed body.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); None: chosen automatically.
        panel: Width and height of each picture in the grid, pixels.

    Raises:
        InputError: The body has no skin or no such mode, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_modes(body, [0, 1], panel=(150, 100))
        <Picture: 300 × 180 pixels>
    """
    skin = required_skin(body)
    checked_window(panel, "panel")
    columns = integer("columns", columns, low=1)
    numbers = _mode_numbers(body, modes)
    check_drawing(path, amplitude=amplitude, outline=outline, cmap=cmap)
    columns = min(columns, len(numbers))
    rows = math.ceil(len(numbers) / columns)
    foot = 80
    height = rows * panel[1] + foot
    plotter = new_plotter(
        (columns * panel[0], height),
        shape=(rows + 1, columns),
        row_weights=[*[panel[1] / height] * rows, foot / height],
        groups=[(rows, range(columns))],
    )
    displacement = amplitude * length_of(skin.points)
    states = {k: _scaled_mode(skin, k, displacement) for k in numbers}
    deformed = [skin_points(skin, eta) for eta in states.values()]
    camera = camera_of(np.vstack([skin.points, *deformed]), view)
    for i, (k, eta) in enumerate(states.items()):
        plotter.subplot(*divmod(i, columns))
        surface = DrawnSurface(skin)
        surface.move(
            deformed[i], np.linalg.norm(skin_displacement(skin, eta), axis=1) / displacement
        )
        surface.add_to(plotter, limits=(0.0, 1.0), cmap=cmap)
        if outline:
            surface.add_outline(plotter)
        title = f"{body.modes[k].label}: {_hertz(body.modes[k].frequency)}"
        add_text(plotter, title, (0.5, 0.96), align=("center", "top"))
        camera.apply(plotter, above=0.08, margin=0.04)
    plotter.subplot(rows, 0)
    wide = min(0.8, 420 / (columns * panel[0]))
    place = 0.5 - wide / 2, 0.15, wide, 0.4
    add_bar(plotter, "displacement / greatest of the mode", (0.0, 1.0), cmap, place=place, gap=0.1)
    return finished(plotter, None, path)


def _scaled_mode(skin: Skin, number: int, displacement: float) -> Array:
    """Return elastic coordinates (n,) of one mode with a given greatest displacement (m)."""
    eta = np.eye(len(skin.modes))[number]
    greatest = np.linalg.norm(skin_displacement(skin, eta), axis=1).max()
    return eta * (displacement / greatest if greatest > 0 else 0.0)


def _mode_numbers(body: ReducedBody, modes: Iterable[int] | None) -> list[int]:
    n = body.num_modes
    if n == 0:
        refuse("body", body, "a body with modes, not a rigid body")
    if modes is not None and not isinstance(modes, Iterable):
        refuse("modes", modes, "a list of numbers of modes", InputTypeError)
    numbers = list(range(min(6, n)) if modes is None else modes)
    if not numbers:
        refuse("modes", modes, "a list that is not empty")
    return [integer("every entry of modes", k, low=0, high=n - 1) for k in numbers]


def _hertz(frequency: float) -> str:
    digits = 4 - math.floor(math.log10(max(frequency, 1.0)))
    return f"{frequency:.{max(0, min(3, digits))}f} Hz"


def plot_body(
    body: ReducedBody,
    eta: ArrayLike,
    path: str | Path | None = None,
    *,
    scale: float | None = None,
    outline: bool = True,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (900, 620),
    plotter: Any = None,
) -> Picture:
    """Draw a body in a deformed state, coloured by the magnitude of the displacement.

    Args:
        body: A reduced body with a skin.
        eta: Elastic coordinates, shape (n,).
        path: File to write: `.png`, `.jpg` or `.pdf`. None: no file.
        scale: Scale factor of the displacement, but not of the colours; None: such that the
            greatest displacement is about 8 % of the size of the body.
        outline: Whether to draw the edges of the undeformed body.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); None: chosen automatically.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for example that of an interactive window; it is
            neither shown nor closed. None: a new plotter without a window.

    Raises:
        InputError: The body has no skin, the coordinates do not fit, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_body(body, [0.01, 0.0], window=(200, 150))
        <Picture: 200 × 150 pixels>
    """
    skin = required_skin(body)
    values = np.linalg.norm(skin_displacement(skin, eta), axis=1)
    greatest = number("greatest displacement of eta", float(values.max()), unit="m")
    check_drawing(path, window, outline=outline, cmap=cmap, scale=scale)
    if scale is None:
        scale = float(f"{0.08 * length_of(skin.points) / greatest:.1g}") if greatest > 0 else 1.0
    factor, unit = unit_of(greatest)
    limits = 0.0, rounded_up(factor * greatest)
    canvas = plotter_of(plotter, window)
    surface = DrawnSurface(skin)
    points = skin_points(skin, eta, scale=scale)
    surface.move(points, factor * values)
    surface.add_to(canvas, limits=limits, cmap=cmap)
    if outline:
        surface.add_outline(canvas)
    add_bar(canvas, f"displacement ({unit})", limits, cmap)
    add_text(canvas, f"{body.name}, displacement × {scale:g}", (0.02, 0.97), align=("left", "top"))
    camera_of(np.vstack([skin.points, points]), view).apply(canvas, below=0.13, above=0.05)
    add_axes(canvas)
    return finished(canvas, plotter, path)
