"""Pictures of mechanisms with their bodies, joints and frames."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, flag, instance, names, number, reject
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.parallel import on_rank_zero
from dolfinx_mbd.plotting.pictures import canvas
from dolfinx_mbd.plotting.pictures.canvas import CMAP
from dolfinx_mbd.plotting.pictures.drawing import Drawing
from dolfinx_mbd.plotting.pictures.output import Picture, check_drawing
from dolfinx_mbd.plotting.scene.colours import STRESSES, peak_text
from dolfinx_mbd.plotting.scene.mechanism_scene import (
    DRAWN,
    MARKS,
    initial_state,
    mechanism_scene,
    system_length,
)
from dolfinx_mbd.plotting.scene.mesh_surfaces import shared_mesh
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT
from dolfinx_mbd.plotting.scene.surfaces import body_surfaces
from dolfinx_mbd.results.distributed_rows import local_row
from dolfinx_mbd.results.solution import Solution

__all__ = ["check_marks", "drawing_of", "plot_system", "saved_rows"]


def plot_system(
    source: System | Solution,
    time: float | None = None,
    path: str | Path | None = None,
    *,
    scale: float = 1.0,
    quantity: str = "displacement",
    marks: Iterable[str] = DRAWN,
    assembled: bool = True,
    opacity: float = 0.45,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (1000, 700),
    plotter: Any = None,
) -> Picture:
    """Draw a mechanism at one time.

    Flexible bodies are drawn by their skins, coloured by elastic displacement or stress. Rigid
    bodies are drawn by their shapes. Other bodies are drawn as bars from their centre of mass to
    their frames. The elastic displacement of a mesh body is that from the rigid motion that fits
    its surface best.

    Args:
        source: A mechanism, drawn in its initial position, or the result of a simulation.
        time: Time, s; the nearest saved time of a result is drawn. By default the start.
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        scale: Scale factor of the elastic displacement; colours are not scaled.
        quantity: Quantity that determines the colours: `displacement`, or a scalar stress such as
            `von Mises`. For a stress, a reduced body needs the stress of its modes; see
            `mbd.durability.skin_stress`. That of a mesh body is the Cauchy stress of its energy.
        marks: Additional objects: `joints` (a pin along a free axis, a ball, a line of sliding, a
            block), `springs` (with dampers and bushings), `ground` (points that are fixed to it),
            `loads` (forces, moments and the moments of drivers, with their values), `joint forces`
            (on the second body of each joint), `names` (of joints), `frames` (axes of all frames: x
            red, y green, z blue). Arrows below 1 % of the longest one are omitted.
        assembled: Whether to draw the assembled mechanism. False draws the bodies at their given
            positions; the picture then shows why a mechanism cannot be assembled.
        opacity: Opacity of rigid bodies; 1 hides the inside.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); by default an oblique view of the plane in which the joints rotate, with
            gravity downwards.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for example of an interactive window; the function
            neither shows nor closes it. By default a new plotter without a window.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        InputError: The time is outside the simulation, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_system(engine, window=(200, 150))
        <Picture: 200 × 150 pixels>
        >>> picture = mbd.plotting.plot_system(run, time=0.005, path="engine.png")

    Note: For the stress of a mesh body, the function is collective over the ranks of its mesh, and
        rank 0 draws. In all other cases call it on one MPI rank.
    """
    instance("source", source, (System, Solution))
    scale = number("scale", scale)
    flag("assembled", assembled)
    check_drawing(None, cmap, window, opacity)
    kinds = check_marks(marks)
    time = time if time is None else number("time", time)
    if isinstance(source, Solution):
        run, rows = source, saved_rows(source, "time", source.time[0] if time is None else time)
    else:
        run = initial_state(source, time or 0.0, assembled=assembled)
        rows = np.zeros(1, dtype=np.int64)
    if not (isinstance(source, Solution) or assembled):
        kinds = [kind for kind in kinds if kind not in ("loads", "joint forces")]
    check_drawing(path, cmap)
    drawing = drawing_of(run, rows, scale=scale, quantity=quantity, marks=kinds, view=view)

    def draw() -> Picture:
        """Draw the picture on one rank."""
        plane = canvas.plotter_of(plotter, window)
        drawing.add_to(plane, cmap=cmap, opacity=opacity)
        drawing.add_labels(plane, 0)
        caption, camera = drawing.caption(0), drawing.camera
        return canvas.complete(plane, caption, camera, path, plotter, drawing.foot)

    comm = None if plotter is not None else shared_mesh(run, quantity)
    return on_rank_zero(comm, draw)


def drawing_of(
    run: Solution,
    rows: NDArray[np.int64],
    *,
    scale: float,
    quantity: str,
    marks: Iterable[str],
    view: str | ArrayLike | None,
) -> Drawing:
    """Return the drawing of a mechanism at saved times; the arguments are those of `animate`.

    The note of the caption has the peak in single cells: of the picture, or of the run in a film.
    """
    choice("quantity", quantity, (DISPLACEMENT, *STRESSES))
    scene = mechanism_scene(run, rows, marks, scale=scale, view=view, quantity=quantity)
    note = ""
    if quantity != DISPLACEMENT:
        film = len(rows) > 1
        length = system_length(run.system, local_row(run.q, rows[0]))
        whole = body_surfaces(run.system, run.q, length) if film else scene.surfaces
        note = peak_text(quantity, whole, " of the run" if film else "")
    return Drawing(scene, quantity=quantity, scale=scale, note=note)


def check_marks(marks: Iterable[str]) -> list[str]:
    """Return kinds of marks as a list; raise an error if a kind is unknown."""
    return [choice("every entry of marks", mark, MARKS) for mark in names("marks", marks)]


def saved_rows(solution: Solution, argument: str, times: ArrayLike) -> NDArray[np.int64]:
    """Return the indices of the saved times of a solution that are nearest to given times (s)."""
    t = solution.time
    requested = array(argument, np.atleast_1d(array(argument, times)).ravel())
    tolerance = 1e-9 + 1e-6 * (t[-1] - t[0])
    if (
        requested.size == 0
        or requested.min() < t[0] - tolerance
        or requested.max() > t[-1] + tolerance
    ):
        reject(argument, times, f"within the solution, {t[0]:g} to {t[-1]:g} s")
    return np.array([np.argmin(np.abs(t - value)) for value in requested])
