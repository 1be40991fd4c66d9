"""Pictures of a scalar on the skin of a body, such as the envelope of its stress over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.plotting.camera import camera_of
from dolfinx_mbd.plotting.geometry import needed_skin
from dolfinx_mbd.plotting.output import PICTURE_SUFFIXES, Picture, checked_path, finished
from dolfinx_mbd.plotting.scene import (
    CMAP,
    Surface,
    add_axes,
    add_bar,
    add_text,
    new_plotter,
    rounded_up,
)

__all__ = ["plot_skin"]


def plot_skin(
    body: ReducedBody,
    values: ArrayLike,
    path: str | Path | None = None,
    *,
    label: str = "von Mises stress (MPa)",
    factor: float = 1e-6,
    title: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (900, 620),
) -> Picture:
    """Draw a body coloured by values at the nodes of its skin.

    Args:
        body: A reduced body with a skin.
        values: At its nodes, shape (ns,): ``body.stress.envelope("von Mises", run["rod"]).value``.
        path: File to write as well.
        label: Beside the colours.
        factor: From the values to what is shown, for the stress of the label from Pa to MPa.
        title: Above the body; empty: the body's name.
        limits: Of the colours, as shown; None: 0, or the least value, to the greatest.
        cmap: A colour map of matplotlib.
        view: A name ("xy", "xz", "yz", "iso") or the direction to the eye, (3,); None: chosen.
        window: Width and height, pixels.

    Raises:
        ValueError: If the body has no skin, the values do not fit, or the suffix is unknown.
        ImportError: If pyvista is not installed.
        OSError: If the file cannot be written.
    """
    skin = needed_skin(body)
    shown = factor * np.asarray(values, dtype=float)
    if shown.shape != (len(skin.points),) or not np.isfinite(shown).all():
        raise ValueError(
            f"expected {len(skin.points)} finite values, one for each node of the skin, got shape "
            f"{shown.shape}"
        )
    if path is not None:
        checked_path(path, PICTURE_SUFFIXES)
    if limits is None:
        least, greatest = float(shown.min()), float(shown.max())
        limits = (min(0.0, least), rounded_up(greatest))
    plotter = new_plotter(window)
    surface = Surface(skin)
    surface.move(skin.points, shown)
    surface.add_to(plotter, limits=limits, cmap=cmap)
    surface.add_outline(plotter)
    add_bar(plotter, label, limits, cmap)
    add_text(plotter, title or body.name, (0.02, 0.97), align=("left", "top"))
    camera_of(skin.points, view).apply(plotter, below=0.13, above=0.05)
    add_axes(plotter)
    return finished(plotter, None, path)
