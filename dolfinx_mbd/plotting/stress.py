"""Pictures of scalars on the skin of a body, such as an envelope of stress over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody
from dolfinx_mbd.checks import array, increasing, instance, number, refuse
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.plotting.camera import camera_of
from dolfinx_mbd.plotting.geometry import required_skin
from dolfinx_mbd.plotting.output import Picture, check_drawing, finished
from dolfinx_mbd.plotting.scene import (
    CMAP,
    DrawnSurface,
    add_axes,
    add_bar,
    add_text,
    new_plotter,
    rounded_up,
)

__all__ = ["plot_skin"]


def plot_skin(
    body: ReducedBody,
    values: ArrayLike | Any,
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
        values: Values at the nodes, shape (ns,), such as
            `body.stress.envelope("von Mises", run.body("rod")).value`. Or a scalar `fem.Function`
            on the mesh of the body, such as the `value` that `mbd.envelope` returns; each node gets
            the mean of the cells around it.
        path: File to write: `.png`, `.jpg` or `.pdf`. None: no file.
        label: Title of the colour bar.
        factor: Factor between the values and the numbers on the colour bar; by default from Pa to
            MPa.
        title: Title of the picture; empty: the name of the body.
        limits: Limits of the colours, after multiplication by `factor`; None: from 0, or a negative
            least value, to the greatest value.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); None: chosen automatically.
        window: Width and height, pixels.

    Raises:
        InputError: The body has no skin, the values do not fit, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_skin(body, [0.0, 1e6, 2e6, 3e6], window=(200, 150))
        <Picture: 200 × 150 pixels>
    """
    skin = required_skin(body)
    instance("label", label, str)
    instance("title", title, str)
    if hasattr(values, "function_space"):
        values = _on_skin(values)
    count = len(skin.points)
    expected = f"{count} finite numbers, one for each node of the skin"
    shown = number("factor", factor) * array("values", values, (count,), expected=expected)
    check_drawing(path, window, cmap=cmap)
    if limits is None:
        least, greatest = float(shown.min()), float(shown.max())
        limits = (min(0.0, least), rounded_up(greatest))
    elif len(increasing("limits", limits)) != 2:
        refuse("limits", limits, "the least and the greatest value of the colours")
    plotter = new_plotter(window)
    surface = DrawnSurface(skin)
    surface.move(skin.points, shown)
    surface.add_to(plotter, limits=limits, cmap=cmap)
    surface.add_outline(plotter)
    add_bar(plotter, label, limits, cmap)
    add_text(plotter, title or body.name, (0.02, 0.97), align=("left", "top"))
    camera_of(skin.points, view).apply(plotter, below=0.13, above=0.05)
    add_axes(plotter)
    return finished(plotter, None, path)


def _on_skin(function: Any) -> NDArray[np.float64]:
    """Return the values of a function at the nodes of the skin; the mesh must be on one rank."""
    from dolfinx_mbd.recovery import skin_values

    if function.function_space.mesh.comm.size > 1:
        raise InputError(
            "values is a function that is distributed over several ranks: call "
            "dolfinx_mbd.recovery.skin_values(function) on all of them, and draw its result on one",
            argument="values",
            value=function,
            expected="numbers at the nodes of the skin, or a function on one rank",
        )
    return skin_values(function)
