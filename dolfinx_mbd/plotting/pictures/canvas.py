"""Elements of pictures in pyvista: camera, moving surfaces, colour bar and text."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import instance
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.optional import optional_module
from dolfinx_mbd.plotting.pictures.output import Picture, taken
from dolfinx_mbd.plotting.pictures.rounding import Rounding
from dolfinx_mbd.plotting.scene.camera import Camera

Array = NDArray[np.float64]

INK = "#2b2f36"
CMAP = "turbo"
FINE = 20_000  # a surface with more triangles is not subdivided
DIVISIONS = 2  # largest number of subdivisions
FEATURE_ANGLE = 30.0  # angle between triangles from which their edge is drawn, degrees
FOOT = 0.13  # fraction of the height of a picture that its colour bar occupies


def pyvista() -> Any:
    """Return the module pyvista; raise an error if it is missing or cannot draw here."""
    pv = optional_module("pyvista", "pictures")
    vtkVersion = optional_module("vtkmodules.vtkCommonCore", "pictures").vtkVersion
    version = vtkVersion.GetVTKMajorVersion(), vtkVersion.GetVTKMinorVersion()
    display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform.startswith("linux") and not display and version < (9, 4):
        raise SolverError(
            f"VTK {vtkVersion.GetVTKVersion()} cannot draw without a display; install a newer one "
            "(pip install 'vtk>=9.5') or start a virtual display (xvfb-run)"
        )
    return pv


def new_plotter(window: tuple[int, int], **options: Any) -> Any:
    """Return a plotter without a window and with a white background."""
    pv = pyvista()
    theme = pv.themes.DocumentTheme()
    size = list(window)
    plotter = pv.Plotter(off_screen=True, window_size=size, theme=theme, border=False, **options)
    plotter.enable_anti_aliasing("ssaa")
    return plotter


def plotter_of(plotter: Any, window: tuple[int, int]) -> Any:
    """Return the plotter of the caller, or a new one if it is None."""
    if plotter is None:
        return new_plotter(window)
    return instance("plotter", plotter, pyvista().BasePlotter)


def apply_camera(
    camera: Camera, plotter: Any, *, below: float = 0.0, above: float = 0.0, margin: float = 0.06
) -> None:
    """Set the camera of a plotter.

    `below`, `above` and `margin` (on all sides) are the fractions of the picture that remain
    free of objects.
    """
    left, bottom, right, top = plotter.renderer.GetViewport()
    width, height = plotter.window_size
    aspect = width * (right - left) / (height * (top - bottom))
    free = 1.0 - below - above - 2 * margin
    scale = max(camera.half[1] / free, camera.half[0] / (aspect * (1.0 - 2 * margin)))
    focal = camera.centre + scale * (above - below) * camera.up
    plotter.enable_parallel_projection()
    plotter.camera.focal_point = focal
    plotter.camera.position = focal + 4 * camera.depth * camera.towards
    plotter.camera.up = camera.up
    plotter.camera.parallel_scale = scale
    plotter.renderer.ResetCameraClippingRange()


class DrawnSurface:
    """The surface of a skin with moving points and smooth shading except at sharp edges.

    Coarse surfaces are subdivided, so that curved faces look round.
    """

    def __init__(self, skin: Skin) -> None:
        self.roundings: list[Rounding] = []
        points, triangles = skin.points, skin.triangles
        while len(triangles) < FINE and len(self.roundings) < DIVISIONS:
            self.roundings.append(Rounding(points, triangles))
            points, triangles = self.roundings[-1].points(points), self.roundings[-1].triangles
        faces = np.column_stack([np.full(len(triangles), 3), triangles]).ravel()
        mesh = pyvista().PolyData(np.array(points), faces)
        mesh.point_data["node"] = np.arange(len(points))
        self.outline = mesh.extract_feature_edges(
            FEATURE_ANGLE, boundary_edges=True, manifold_edges=False, non_manifold_edges=False
        )
        self.edge_nodes = np.array(self.outline.point_data["node"])
        self.mesh = mesh.compute_normals(
            cell_normals=False,
            split_vertices=True,
            feature_angle=FEATURE_ANGLE,
            auto_orient_normals=True,
        )
        self.nodes = np.array(self.mesh.point_data["node"])
        self.mesh.point_data.remove("node")
        self.points, self.edges_move = points, False

    def move(self, points: Array, values: Array | None = None) -> None:
        """Move the nodes to points (nodes, 3); set the values (nodes,) that are coloured."""
        for rounding in self.roundings:
            points = rounding.points(points)
            values = None if values is None else rounding.values(values)
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
        """Add the surface to a plotter, in one colour or, with limits, coloured by its values."""
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


def add_bar(
    plotter: Any,
    title: str,
    limits: tuple[float, float],
    cmap: str,
    *,
    place: tuple[float, float, float, float] = (0.3, 0.035, 0.4, 0.05),
    gap: float = 0.012,
) -> None:
    """Add a horizontal colour bar with a title above it.

    `place` (left, bottom, width, height) and the distance `gap` of the title from the bar are
    fractions of the viewport.
    """
    pv = pyvista()
    left, bottom, width, height = place
    mapper = pv.DataSetMapper(pv.Sphere())
    mapper.lookup_table = pv.LookupTable(cmap, scalar_range=limits)
    mapper.scalar_range = limits
    geometry = {"position_x": left, "position_y": bottom, "width": width, "height": height}
    labels = {"n_labels": 5, "fmt": "%.3g", "label_font_size": 15, "unconstrained_font_size": True}
    plotter.add_scalar_bar(title="", mapper=mapper, vertical=False, color=INK, **geometry, **labels)
    add_text(plotter, title, (left + 0.5 * width, bottom + height + gap))


def add_text(
    plotter: Any,
    text: str,
    place: tuple[float, float] = (0.02, 0.97),
    align: tuple[str, str] = ("center", "bottom"),
) -> Any:
    """Add text at a position in fractions of the viewport, and return its actor."""
    actor = plotter.add_text(text, position=place, viewport=True, color=INK, name=f"text {place}")
    actor.prop.font_size = 15
    actor.prop.justification_horizontal, actor.prop.justification_vertical = align
    return actor


def add_ring(plotter: Any, point: Array) -> None:
    """Add a ring around a point (3,), m; no surface hides the ring."""
    rendering = optional_module("vtkmodules.vtkRenderingCore", "pictures")
    ring = pyvista().Disc(inner=5.0, outer=8.0, c_res=40)  # pixels
    for colour, scale in (("white", 1.25), (INK, 1.0)):
        mapper = rendering.vtkPolyDataMapper2D()
        mapper.SetInputData(ring.scale(scale, inplace=False))
        actor = rendering.vtkActor2D()
        actor.SetMapper(mapper)
        actor.GetProperty().SetColor(pyvista().Color(colour).float_rgb)
        actor.GetPositionCoordinate().SetCoordinateSystemToWorld()
        actor.GetPositionCoordinate().SetValue(*point)
        plotter.add_actor(actor, name=f"ring {colour}", reset_camera=False)


def put_in_front(actor: Any) -> None:
    """Draw a closed surface in front of all others."""
    # The offset is larger than the range of a depth buffer of 16 bits: all points have the least
    # depth, so that without culling the back of the surface would cover its front
    actor.prop.culling = "back"
    actor.mapper.SetResolveCoincidentTopologyToPolygonOffset()
    actor.mapper.SetRelativeCoincidentTopologyPolygonOffsetParameters(0.0, -66000.0)


def add_labels(plotter: Any, points: Array, labels: list[str], name: str = "labels") -> None:
    """Add texts in boxes at points (n, 3); no surface hides the boxes.

    Labels replace those of the same name.
    """
    font = {"font_size": 14, "text_color": INK, "always_visible": True}
    box = {"shape": "rounded_rect", "shape_color": "white", "shape_opacity": 0.8}
    options = {"show_points": False, "reset_camera": False, "name": name}
    plotter.add_point_labels(points, labels, **font, **box, **options)


def add_caption(plotter: Any, caption: str, camera: Camera, foot: float = FOOT) -> Any:
    """Add a caption and the directions of x, y, z, set the camera, and return the caption."""
    apply_camera(camera, plotter, below=foot, above=0.05)
    plotter.add_axes(color=INK, line_width=2)
    return add_text(plotter, caption, align=("left", "top"))


def complete(
    canvas: Any,
    caption: str,
    camera: Camera,
    path: str | Path | None,
    plotter: Any = None,
    foot: float = FOOT,
) -> Picture:
    """Add a caption, axes and a camera to a scene, and return its picture; see `taken`."""
    add_caption(canvas, caption, camera, foot)
    return taken(canvas, plotter, path)
