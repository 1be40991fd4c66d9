"""Pictures of one body: its modes, a deformed state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import integer, number, refuse
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.plotting.camera import camera_of
from dolfinx_mbd.plotting.geometry import length_of, needed_skin, skin_displacement, skin_points
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
        modes: Numbers of the modes, from 0; None: the first six, or as many as there are.
        path: File to write as well.
        columns: Of the grid.
        amplitude: Greatest displacement in the picture, in parts of the body's size.
        outline: Draw the edges of the undeformed body.
        cmap: A colour map of matplotlib.
        view: A name ("xy", "xz", "yz", "iso") or the direction to the eye, (3,); None: chosen.
        panel: Width and height of each picture, pixels.

    Raises:
        ValueError: If the body has no skin or no such mode, or the file's suffix is unknown.
        ImportError: If pyvista is not installed.
        OSError: If the file cannot be written.
    """
    skin = needed_skin(body)
    checked_window(panel, "panel")
    columns = integer("columns", columns, low=1)
    chosen = _chosen(body, modes)
    check_drawing(path, amplitude=amplitude, outline=outline, cmap=cmap)
    columns = min(columns, len(chosen))
    rows = math.ceil(len(chosen) / columns)
    foot = 80
    height = rows * panel[1] + foot
    plotter = new_plotter(
        (columns * panel[0], height),
        shape=(rows + 1, columns),
        row_weights=[*[panel[1] / height] * rows, foot / height],
        groups=[(rows, range(columns))],
    )
    size = length_of(skin.points)
    shown = {}
    for k in chosen:
        eta = np.eye(body.num_modes)[k]
        greatest = np.linalg.norm(skin_displacement(skin, eta), axis=1).max()
        shown[k] = eta * (amplitude * size / greatest if greatest > 0 else 0.0)
    camera = camera_of(
        np.vstack([skin.points, *(skin_points(skin, eta) for eta in shown.values())]), view
    )
    for i, (k, eta) in enumerate(shown.items()):
        plotter.subplot(*divmod(i, columns))
        values = np.linalg.norm(skin_displacement(skin, eta), axis=1) / (amplitude * size)
        surface = DrawnSurface(skin)
        surface.move(skin_points(skin, eta), values)
        surface.add_to(plotter, limits=(0.0, 1.0), cmap=cmap)
        if outline:
            surface.add_outline(plotter)
        mode = body.modes[k]
        add_text(
            plotter, f"{mode.label}: {_hertz(mode.frequency)}", (0.5, 0.96), align=("center", "top")
        )
        camera.apply(plotter, above=0.08, margin=0.04)
    plotter.subplot(rows, 0)
    wide = min(0.8, 420 / (columns * panel[0]))
    place = 0.5 - wide / 2, 0.15, wide, 0.4
    add_bar(plotter, "displacement / greatest of the mode", (0.0, 1.0), cmap, place=place, gap=0.1)
    return finished(plotter, None, path)


def _chosen(body: ReducedBody, modes: Iterable[int] | None) -> list[int]:
    n = body.num_modes
    if n == 0:
        raise InputError(f"body {body.name!r} is rigid: it has no modes to draw")
    if modes is not None and not isinstance(modes, Iterable):
        refuse("modes", modes, "a list of numbers of modes", InputTypeError)
    chosen = list(range(min(6, n)) if modes is None else modes)
    if not chosen:
        raise InputError("no modes were chosen")
    for k in chosen:
        if integer("every entry of modes", k) not in range(n):
            raise InputError(f"there is no mode {k!r}; body {body.name!r} has modes 0 to {n - 1}")
    return [int(k) for k in chosen]


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
        eta: Elastic coordinates, (n,).
        path: File to write as well.
        scale: Enlargement of the displacement, not of the colours; None: to 8 % of the body's size.
        outline: Draw the edges of the undeformed body.
        cmap: A colour map of matplotlib.
        view: A name ("xy", "xz", "yz", "iso") or the direction to the eye, (3,); None: chosen.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for a window that can be turned; it is neither
            shown nor closed.

    Raises:
        ValueError: If the body has no skin, the coordinates do not fit, or the suffix is unknown.
        ImportError: If pyvista is not installed.
        OSError: If the file cannot be written.
    """
    skin = needed_skin(body)
    values = np.linalg.norm(skin_displacement(skin, eta), axis=1)
    greatest = number("greatest displacement of eta", float(values.max()), unit="m")
    check_drawing(path, window, outline=outline, cmap=cmap, scale=scale)
    if scale is None:
        scale = float(f"{0.08 * length_of(skin.points) / greatest:.1g}") if greatest > 0 else 1.0
    factor, unit = unit_of(greatest)
    limits = 0.0, rounded_up(factor * greatest)
    drawn = plotter_of(plotter, window)
    surface = DrawnSurface(skin)
    points = skin_points(skin, eta, scale=scale)
    surface.move(points, factor * values)
    surface.add_to(drawn, limits=limits, cmap=cmap)
    if outline:
        surface.add_outline(drawn)
    add_bar(drawn, f"displacement ({unit})", limits, cmap)
    add_text(drawn, f"{body.name}, displacement × {scale:g}", (0.02, 0.97), align=("left", "top"))
    camera_of(np.vstack([skin.points, points]), view).apply(drawn, below=0.13, above=0.05)
    add_axes(drawn)
    return finished(drawn, plotter, path)
