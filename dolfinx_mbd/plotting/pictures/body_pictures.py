"""Pictures of one body: modes, a deformed state, or scalars such as the stress on its skin."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody, Skin
from dolfinx_mbd.body.parts import chosen_modes
from dolfinx_mbd.checks import array, flag, increasing, instance, integer, number, reject
from dolfinx_mbd.plotting.pictures import canvas
from dolfinx_mbd.plotting.pictures.canvas import (
    CMAP,
    DrawnSurface,
    add_bar,
    add_text,
    apply_camera,
)
from dolfinx_mbd.plotting.pictures.output import Picture, check_drawing, check_size, taken
from dolfinx_mbd.plotting.scene.camera import Camera, camera_of, length_of
from dolfinx_mbd.plotting.scene.colours import rounded_up, unit_of
from dolfinx_mbd.plotting.scene.moving_surface import skin_displacement, skin_points
from dolfinx_mbd.plotting.scene.surfaces import skin_of

Array = NDArray[np.float64]


BAR_HEIGHT, BAR_WIDTH = 80, 420
"""Height of the row with the colour bar of `plot_modes`, and largest width of the bar, pixels."""
DRAWN_SIZE = 0.08
"""Largest displacement of a body in a picture, relative to its size, by default."""
CLEARANCE = 1e-3
"""Distance from a point at which the line to the eye starts, relative to the scene."""


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
    """Draw modes in a grid, each with number, label and frequency, coloured by displacement.

    Args:
        body: A reduced body with a skin.
        modes: Numbers of the modes, starting at 1; by default the first six, or all if there are
            fewer.
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        columns: Number of columns of the grid.
        amplitude: Largest displacement in each picture, relative to the size of the body.
        outline: Whether to draw the edges of the undeformed body.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); by default it is chosen automatically.
        panel: Width and height of each picture in the grid, pixels.

    Raises:
        InputError: The body has no skin or no such mode, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_modes(body, [1, 2], panel=(150, 100))
        <Picture: 300 × 180 pixels>
    """
    skin = skin_of(body)
    check_size("panel", panel)
    columns = integer("columns", columns, low=1)
    if body.num_modes == 0:
        reject("body", body, "a body with modes, not a rigid body")
    numbers = chosen_modes(modes, body.num_modes)
    flag("outline", outline)
    check_drawing(path, cmap)
    columns = min(columns, len(numbers))
    rows, foot = math.ceil(len(numbers) / columns), BAR_HEIGHT
    width, height = columns * panel[0], rows * panel[1] + foot
    plotter = canvas.new_plotter(
        (width, height),
        shape=(rows + 1, columns),
        row_weights=[*[panel[1] / height] * rows, foot / height],
        groups=[(rows, range(columns))],
    )
    greatest = number("amplitude", amplitude) * length_of(skin.points)
    shapes = []
    for k in numbers:
        size = np.linalg.norm(skin.modes[k], axis=1).max()
        shapes.append(skin.modes[k] * (greatest / size if size > 0 else 0.0))
    camera = camera_of(np.vstack([skin.points, *(skin.points + u for u in shapes)]), view)
    for i, (k, u) in enumerate(zip(numbers, shapes, strict=True)):
        plotter.subplot(*divmod(i, columns))
        values = np.linalg.norm(u, axis=1) / greatest
        _draw(plotter, skin, skin.points + u, values, (0.0, 1.0), cmap, outline)
        title = f"{k + 1}: {body.modes[k].label}, {_hertz(body.modes[k].frequency)}"
        add_text(plotter, title, (0.5, 0.96), ("center", "top"))
        apply_camera(camera, plotter, above=0.08, margin=0.04)
    plotter.subplot(rows, 0)
    bar_width = min(0.8, BAR_WIDTH / width)
    place = 0.5 - bar_width / 2, 0.15, bar_width, 0.4
    add_bar(plotter, "displacement / maximum of the mode", (0.0, 1.0), cmap, place=place, gap=0.1)
    return taken(plotter, None, path)


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
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        scale: Scale factor of the displacement; colours are not scaled. By default the largest
            displacement is drawn as about 8 % of the size of the body.
        outline: Whether to draw the edges of the undeformed body.
        cmap: Colour map of matplotlib.
        view: View as for `plot_modes`.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for example of an interactive window; the function
            neither shows nor closes it. By default a new plotter without a window.

    Raises:
        InputError: The body has no skin, or the number of coordinates or an option is invalid.

    Example:
        >>> mbd.plotting.plot_body(body, [0.01, 0.0], window=(200, 150))
        <Picture: 200 × 150 pixels>
    """
    skin = skin_of(body)
    values = np.linalg.norm(skin_displacement(skin, eta), axis=1)
    greatest = number("largest displacement due to eta", float(values.max()), unit="m")
    flag("outline", outline)
    check_drawing(path, cmap, window)
    if scale is None:
        size = DRAWN_SIZE * length_of(skin.points)
        scale = float(f"{size / greatest:.1g}") if greatest > 0 else 1.0
    factor, unit = unit_of(greatest)
    limits = 0.0, rounded_up(factor * greatest)
    points = skin_points(skin, eta, scale=scale)
    plane = canvas.plotter_of(plotter, window)
    _draw(plane, skin, points, factor * values, limits, cmap, outline)
    add_bar(plane, f"displacement ({unit})", limits, cmap)
    camera = camera_of(np.vstack([skin.points, points]), view)
    caption = f"{body.name}, displacement × {scale:g}"
    return canvas.complete(plane, caption, camera, path, plotter)


def plot_skin(
    body: ReducedBody,
    values: ArrayLike | Any,
    path: str | Path | None = None,
    *,
    label: str = "",
    factor: float = 1e-6,
    title: str = "",
    limits: tuple[float, float] | None = None,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (900, 620),
) -> Picture:
    """Draw a body coloured by values at the nodes of its skin, and mark the maximum.

    A ring marks the largest value, or the least value if no value is positive. The caption states
    this value and its position. By default the camera is on a side on which the ring is visible.

    Args:
        body: A reduced body with a skin.
        values: The result of `mbd.envelope`, a scalar `fem.Function` on the mesh of the body, or
            values at the nodes, shape (nodes,), such as `mbd.durability.skin_values` returns. The
            colours of an envelope or a function are averages over the cells around each node; the
            ring and the caption show the largest value in a single cell, which is that of
            `mbd.most_stressed`.
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        label: Title of the colour bar; by default "von Mises stress (MPa)", or the quantity of an
            envelope.
        factor: Factor between the values and the numbers on the colour bar; by default from Pa to
            MPa.
        title: Title of the picture; by default the name of the body.
        limits: Limits of the colours, after multiplication by `factor`; by default from 0 (or from
            the minimum if it is negative) to the maximum.
        cmap: Colour map of matplotlib.
        view: View as for `plot_modes`.
        window: Width and height, pixels.

    Raises:
        InputError: The body has no skin, or the number of values or an option is invalid.

    Example:
        >>> mbd.plotting.plot_skin(body, [0.0, 1e6, 2e6, 3e6], window=(200, 150))
        <Picture: 200 × 150 pixels>
    """
    skin = skin_of(body)
    instance("label", label, str)
    instance("title", title, str)
    factor = number("factor", factor)
    numbers, peak, quantity = _values_on_skin(body, values)
    scaled = factor * numbers
    label = label or quantity
    check_drawing(path, cmap, window)
    if limits is None:
        limits = min(0.0, float(scaled.min())), rounded_up(float(scaled.max()))
    elif len(increasing("limits", limits)) != 2:
        reject("limits", limits, "the minimum and the maximum of the colours")
    plotter = canvas.new_plotter(window)
    surface = _draw(plotter, skin, skin.points, scaled, limits, cmap, outline=True)
    add_bar(plotter, label if peak is None else f"{label}, averaged over cells", limits, cmap)
    if peak is None:
        k = np.argmax(scaled) if scaled.max() > 0 else np.argmin(scaled)
        peak = numbers[k], skin.points[k], ""
    extreme, point, when = factor * peak[0], *peak[1:]
    name = "maximum" if extreme > 0 else "minimum"
    camera = camera_of(skin.points, view)
    cameras = [camera] if view is not None else _mirror_cameras(skin, camera)
    visible = [each for each in cameras if _is_visible(each, surface, point)]
    camera = visible[0] if visible else camera
    value = " ".join([f"{extreme:.4g}", *re.findall(r"\((.*)\)$", label)])  # unit of the label
    canvas.add_ring(plotter, point)
    length = length_of(skin.points)
    canvas.add_labels(plotter, point[None] + 0.02 * length * camera.right, [value])
    per_metre, unit = (1e3, "mm") if length < 10 else (1.0, "m")
    # Round-off of coordinates that are zero is not shown, nor a minus sign
    rounded = length * np.round(point / length, 9) + 0.0
    position = ", ".join(f"{x:.4g}" for x in per_metre * rounded)
    hidden = "" if visible else " (behind the surface)"
    caption = f"{title or body.name}: {name} {value}{when} at ({position}) {unit}{hidden}"
    return canvas.complete(plotter, caption, camera, path)


def _mirror_cameras(skin: Skin, camera: Camera) -> list[Camera]:
    """Return a camera and its mirror images in planes normal to the axes."""
    _, *signs = itertools.product((1.0, -1.0), repeat=3)  # the first signs are those of the camera
    # Reversed, so that mirror images along x come first
    images = [camera_of(skin.points, camera.towards * np.array(s)[::-1]) for s in signs]
    return [camera, *images]


def _is_visible(camera: Camera, surface: DrawnSurface, point: Array) -> bool:
    """Return whether a camera sees a point of a surface."""
    start = point + CLEARANCE * camera.depth * camera.towards
    hits, _ = surface.mesh.ray_trace(start, point + 2 * camera.depth * camera.towards)
    return len(hits) == 0


def _draw(
    plotter: Any,
    skin: Skin,
    points: Array,
    values: Array,
    limits: tuple[float, float],
    cmap: str,
    outline: bool,
) -> DrawnSurface:
    """Draw a skin with its nodes at `points`, coloured by `values`.

    With `outline`, its undeformed edges are drawn, too.
    """
    surface = DrawnSurface(skin)
    surface.move(points, values)
    surface.add_to(plotter, limits=limits, cmap=cmap)
    if outline:
        surface.add_outline(plotter)
    return surface


def _hertz(frequency: float) -> str:
    """Return a frequency with about five digits, at most three of them decimals."""
    digits = 4 - math.floor(math.log10(max(frequency, 1.0)))
    return f"{frequency:.{max(0, min(3, digits))}f} Hz"


def _values_on_skin(
    body: ReducedBody, values: Any
) -> tuple[Array, tuple[float, Array, str] | None, str]:
    """Return values at the nodes of a skin, the peak in single cells, and the label of the colours.

    The peak is the extreme value of a function on the mesh, its position and a text with its time;
    it is None for values at the nodes.
    """
    time = getattr(values, "time", None)
    label, count = "von Mises stress (MPa)", len(skin_of(body).points)
    expected = f"{count} finite numbers, one for each node of the skin"
    quantity = getattr(values, "quantity", None)
    if hasattr(values, "points") and hasattr(values, "value"):  # an envelope on the mesh
        values = values.value
        if quantity is not None and quantity.unit == "Pa":
            label = f"{values.name}{'' if 'stress' in quantity.name else ' stress'} (MPa)"
    if not hasattr(values, "function_space"):
        hint = "give the attribute `value` of this result" if hasattr(values, "value") else ""
        if hint:
            reject("values", values, expected, hint=hint)
        return array("values", values, (count,), expected=expected), None, label
    at_nodes = array("values", _skin_values(values), (count,), expected=expected)
    function, space = values.x.array, values.function_space
    k = np.argmax(function) if function.max() > 0 else np.argmin(function)
    when = "" if time is None else f" (t = {1e3 * time.x.array[k]:.4g} ms)"
    return at_nodes, (float(function[k]), space.tabulate_dof_coordinates()[k], when), label


def _skin_values(function: Any) -> Array:
    """Return the values of a function at the nodes of the skin; the mesh must be on one rank."""
    from dolfinx_mbd.durability.recovery import skin_values

    if function.function_space.mesh.comm.size > 1:
        hint = "call mbd.durability.skin_values(function) on all ranks, and draw its result on one"
        expected = "numbers at the nodes of the skin, or a function on one rank"
        reject("values", function, expected, hint=hint)
    return skin_values(function)
