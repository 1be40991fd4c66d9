"""Elements of a scene in pyvista: moving surfaces, a colour bar and text."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import SolverError

__all__ = [
    "CMAP",
    "INK",
    "RIGID_COLOUR",
    "DrawnSurface",
    "add_axes",
    "add_bar",
    "add_text",
    "new_plotter",
    "plotter_of",
    "pyvista",
    "rounded_up",
    "unit_of",
]

Array = NDArray[np.float64]

RIGID_COLOUR = "#8fa3b5"
INK = "#2b2f36"

CMAP = "turbo"
"""Colour map of displacements."""


def pyvista() -> Any:
    """Return the module pyvista.

    Raises:
        ImportError: pyvista is not installed; the message names the command that installs it.
        SolverError: There is no display, and this version of VTK would crash without one.
    """
    try:
        import pyvista as pv
        from vtkmodules.vtkCommonCore import vtkVersion
    except ImportError as error:
        raise ImportError(
            "pictures are drawn with pyvista, which is not installed: pip install pyvista "
            "(or pip install 'dolfinx_mbd[plot]')"
        ) from error
    version = vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform.startswith("linux") and not display and version < (9, 4):
        raise SolverError(
            f"VTK {vtkVersion.GetVTKVersion()} cannot draw without a display; install a newer one "
            "(pip install 'vtk>=9.5') or start a virtual display (xvfb-run)"
        )
    return pv


def plotter_of(plotter: Any, window: tuple[int, int]) -> Any:
    """Return the plotter of the caller, or a new one if it is None."""
    if plotter is None:
        return new_plotter(window)
    return instance("plotter", plotter, pyvista().BasePlotter)


def new_plotter(window: tuple[int, int], **options: Any) -> Any:
    """Return a plotter without a window and with a white background."""
    pv = pyvista()
    theme = pv.themes.DocumentTheme()
    plotter = pv.Plotter(
        off_screen=True, window_size=list(window), theme=theme, border=False, **options
    )
    plotter.enable_anti_aliasing("ssaa")
    return plotter


class DrawnSurface:
    """A surface whose points move; sharp edges stay sharp, the rest is shaded smoothly.

    Args:
        skin: Triangles, and the points that determine which edges are sharp.
    """

    def __init__(self, skin: Skin) -> None:
        pv = pyvista()
        faces = np.column_stack([np.full(len(skin.triangles), 3), skin.triangles]).ravel()
        mesh = pv.PolyData(np.array(skin.points), faces)
        mesh.point_data["node"] = np.arange(len(skin.points))
        self.outline = mesh.extract_feature_edges(
            30.0, boundary_edges=True, manifold_edges=False, non_manifold_edges=False
        )
        self.edge_nodes = np.array(self.outline.point_data["node"])
        self.mesh = mesh.compute_normals(
            cell_normals=False, split_vertices=True, feature_angle=30.0, auto_orient_normals=True
        )
        self.nodes = np.array(self.mesh.point_data["node"])
        self.mesh.point_data.remove("node")
        self.points, self.edges_move = skin.points, False

    def move(self, points: Array, values: Array | None = None) -> None:
        """Move the nodes to points (ns, 3), and set the values (ns,) that determine the colours."""
        self.mesh.points = points[self.nodes]
        self.mesh.compute_normals(
            cell_normals=False, split_vertices=False, consistent_normals=False, inplace=True
        )
        self.points = points
        if self.edges_move:
            self.outline.points = points[self.edge_nodes]
        if values is not None:
            self.mesh.point_data["values"] = values[self.nodes]

    def add_to(
        self, plotter: Any, *, limits: tuple[float, float] | None = None, **options: Any
    ) -> None:
        """Add the surface to a plotter, coloured by its values within limits or in one colour."""
        if limits is not None:
            options |= {"scalars": "values", "clim": limits, "show_scalar_bar": False}
        actor = plotter.add_mesh(self.mesh, ambient=0.28, diffuse=0.78, specular=0.12, **options)
        actor.prop.interpolation = "Phong"

    def add_glass(self, plotter: Any, colour: str, opacity: float) -> None:
        """Add the surface and its edges to a plotter, transparent if the opacity is below 1."""
        culling = "back" if opacity < 1 else None  # one transparent layer suffices
        self.add_to(plotter, color=colour, opacity=opacity, culling=culling)
        self.edges_move = True
        self.outline.points = self.points[self.edge_nodes]
        self.add_outline(plotter, opacity=0.7)

    def add_outline(self, plotter: Any, *, opacity: float = 0.5) -> None:
        """Add the edges to a plotter at their present positions."""
        if self.outline.n_points:
            plotter.add_mesh(self.outline, color=INK, line_width=1, opacity=opacity)


def rounded_up(value: float) -> float:
    """Return the next greater number with two digits that is divisible by four, for labels."""
    if value <= 0:
        return 1.0
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    return 4 * math.ceil(value / power / 4 - 1e-9) * power


def unit_of(greatest: float) -> tuple[float, str]:
    """Return the factor and name of a suitable unit of length for a displacement (m)."""
    for factor, name in ((1.0, "m"), (1e3, "mm"), (1e6, "µm")):
        if greatest * factor >= 0.1:
            return factor, name
    return (1e9, "nm") if greatest > 0 else (1e3, "mm")


def add_bar(
    plotter: Any,
    title: str,
    limits: tuple[float, float],
    cmap: str,
    *,
    place: tuple[float, float, float, float] = (0.3, 0.035, 0.4, 0.05),
    size: int = 15,
    gap: float = 0.012,
) -> None:
    """Add a horizontal colour bar with a title above it.

    Args:
        plotter: A pyvista plotter.
        title: Title of the colour bar.
        limits: Least and greatest value.
        cmap: Colour map of matplotlib.
        place: Left, bottom, width and height in fractions of the viewport.
        size: Size of the letters, pixels.
        gap: Distance of the title from the bar in fractions of the viewport.
    """
    pv = pyvista()
    table = pv.LookupTable(cmap, scalar_range=limits)
    left, bottom, width, height = place
    mapper = pv.DataSetMapper(pv.Sphere())
    mapper.lookup_table = table
    mapper.scalar_range = limits
    plotter.add_scalar_bar(
        title="",
        mapper=mapper,
        vertical=False,
        position_x=left,
        position_y=bottom,
        width=width,
        height=height,
        n_labels=5,
        fmt="%.3g",
        label_font_size=size,
        color=INK,
        unconstrained_font_size=True,
    )
    add_text(plotter, title, (left + 0.5 * width, bottom + height + gap), size=size)


def add_text(
    plotter: Any,
    text: str,
    place: tuple[float, float],
    *,
    size: int = 15,
    align: Sequence[str] = ("center", "bottom"),
) -> Any:
    """Add text and return its actor.

    Args:
        plotter: A pyvista plotter.
        text: The text.
        place: Position in fractions of the viewport.
        size: Size of the letters, pixels.
        align: Horizontal and vertical justification.
    """
    actor = plotter.add_text(text, position=place, viewport=True, color=INK, name=f"text {place}")
    actor.prop.font_size = size
    actor.prop.justification_horizontal, actor.prop.justification_vertical = align
    return actor


def add_axes(plotter: Any) -> None:
    """Add the directions of x, y and z in the lower left corner."""
    plotter.add_axes(color=INK, line_width=2)
