"""A scene drawn with pyvista: surfaces, marks, labels, colour bar and caption."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.plotting.pictures import canvas
from dolfinx_mbd.plotting.pictures.canvas import DrawnSurface
from dolfinx_mbd.plotting.scene.camera import Camera
from dolfinx_mbd.plotting.scene.colours import field_of
from dolfinx_mbd.plotting.scene.description import COLOURS, Scene, value_text
from dolfinx_mbd.plotting.scene.mechanism_scene import VIEW_INSTANTS
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT
from dolfinx_mbd.plotting.scene.tubes import Tube, mesh_of

__all__ = ["Drawing"]

Array = NDArray[np.float64]

_PLAIN_COLOUR = "#8fa3b5"
"""Colour of bodies for which the quantity of the colours is unknown."""
_IN_FRONT = ("loads", "joint forces")
"""Groups that no surface hides."""
_LABEL_WIDTH, _LABEL_SHIFT, _LABEL_GAP = 0.16, 0.015, 0.01
"""Width of labels, their distance from marks, and the distance below which labels share a box;
relative to the size of the scene."""
_NO_BAR = 0.02
"""Fraction of the height of a picture below the objects if there is no colour bar."""


class Drawing:
    """A scene at its instants, with a fixed camera and a fixed range of the colours.

    Args:
        scene: What is drawn.
        quantity: Quantity that determines the colours.
        scale: Scale factor of the elastic displacement.
        note: Text at the end of the caption.
    """

    def __init__(
        self, scene: Scene, *, quantity: str = DISPLACEMENT, scale: float = 1.0, note: str = ""
    ) -> None:
        self.scene, self.scale = scene, scale
        self.field = field_of(quantity, scene.surfaces)
        self.surfaces = [DrawnSurface(surface.skin) for surface in scene.surfaces]
        self.foot = canvas.FOOT if self.field.limits is not None else _NO_BAR
        flexible = any(surface.flexible for surface in scene.surfaces)
        self.note = f", elastic part × {scale:g}" if flexible and scale != 1 else ""
        self.note += note
        self._drawn: dict[str, tuple[Any, Any]] = {}

    @property
    def camera(self) -> Camera:
        """The camera of the scene, which sees all marks too."""
        scene, camera = self.scene, self.scene.camera
        count = len(scene.time)
        points = [scene.points]
        for k in np.unique(np.linspace(0, count - 1, VIEW_INSTANTS).round().astype(int)):
            for _, tubes in scene.tubes(k).values():
                points += [_outline(tube, camera) for tube in tubes]
        if count == 1:
            width = _LABEL_WIDTH * scene.length * camera.right
            points += [(place + width)[None] for place, _ in self._labels(0)]
        return camera.around(np.vstack(points))

    @property
    def largest_arrows(self) -> str:
        """Text with the largest force and the largest moment that are drawn."""
        names, sizes = {"N": "force", "N m": "moment"}, sorted(self.scene.greatest.items())
        texts = [f"{names[unit]} {value_text(size, unit)}" for unit, size in sizes if size]
        return f", largest {', '.join(texts)}" if texts else ""

    def caption(self, k: int, digits: str = ".4g") -> str:
        """Return the time of an instant, the scale factor and the note, as text."""
        return f"t = {1e3 * self.scene.time[k]:{digits}} ms{self.note}"

    def add_to(self, plotter: Any, *, cmap: str, opacity: float) -> None:
        """Add surfaces and marks at the first instant to a plotter, and a colour bar."""
        self._move_surfaces(0)
        limits, name = self.field.limits, self.field.name
        for surface, drawn in zip(self.scene.surfaces, self.surfaces, strict=True):
            if limits is not None and surface.has(name):
                drawn.add_to(plotter, limits=limits, cmap=cmap)
            elif surface.bars or surface.flexible:
                drawn.add_to(plotter, color=_PLAIN_COLOUR)
            else:
                drawn.add_glass(plotter, _PLAIN_COLOUR, opacity)
        for key, (group, _) in self.scene.tubes(0).items():
            mesh = canvas.pyvista().Sphere()
            options = {"color": COLOURS[group], "ambient": 0.3, "name": key}
            actor = plotter.add_mesh(mesh, reset_camera=False, **options)
            actor.prop.interpolation = "Phong"
            if group in _IN_FRONT:
                canvas.put_in_front(actor)
            self._drawn[key] = actor, mesh
        self._move_marks(0)
        if limits is not None:
            canvas.add_bar(plotter, self.field.text, limits, cmap)

    def move(self, k: int) -> None:
        """Move surfaces and marks to their places at an instant."""
        self._move_surfaces(k)
        self._move_marks(k)

    def _move_surfaces(self, k: int) -> None:
        """Move the surfaces to their places at an instant, with their colours."""
        for surface, drawn in zip(self.scene.surfaces, self.surfaces, strict=True):
            values = None
            if surface.has(self.field.name):
                values = self.field.factor * surface.quantity(k, self.field.name)
            drawn.move(surface.points(k, self.scale), values)

    def _move_marks(self, k: int) -> None:
        """Give marks, lines and arrows their shapes at an instant."""
        for key, (_, tubes) in self.scene.tubes(k).items():
            actor, mesh = self._drawn[key]
            actor.visibility = bool(tubes)
            if tubes:
                mesh.copy_from(_smooth(tubes))

    def add_labels(self, plotter: Any, k: int) -> None:
        """Add names and values of arrows, and names of joints; labels at one place share a box."""
        points: list[Array] = []
        labels: list[str] = []
        for point, text in self._labels(k):
            gaps = [float(np.linalg.norm(x - point)) for x in points]
            if gaps and min(gaps) < _LABEL_GAP * self.scene.length:
                labels[int(np.argmin(gaps))] += f"\n{text}"
            else:
                points.append(point)
                labels.append(text)
        if points:
            canvas.add_labels(plotter, np.array(points), labels)

    def _labels(self, k: int) -> Iterator[tuple[Array, str]]:
        """Yield the places and the texts of labels, to the right of the described marks."""
        scene = self.scene
        right = _LABEL_SHIFT * scene.length * scene.camera.right
        for index, arrow in enumerate(scene.arrows):
            ends = scene.arrow_ends(index, k)
            if ends is not None:
                start, vector = ends
                at_end = arrow.unit == "N" and index not in scene.inward
                yield start + at_end * vector + right, arrow.text(k)
        if scene.frames is not None:
            for name, frame in scene.names:
                yield scene.frames.position[k, frame] + right, name


def _outline(tube: Tube, camera: Camera) -> Array:
    """Return points around a tube that a camera must see, shape (4 n, 3), m."""
    offsets = [sign * side for side in (camera.right, camera.up) for sign in (-1.0, 1.0)]
    moved = [tube.points + tube.radii[:, None] * offset for offset in offsets]
    return np.vstack(moved)


def _smooth(tubes: Iterable[Tube]) -> Any:
    """Return tubes as one surface with smooth shading except at sharp edges."""
    shape = mesh_of(tubes)
    faces = np.column_stack([np.full(len(shape.triangles), 3), shape.triangles]).ravel()
    options = {"cell_normals": False, "split_vertices": True, "feature_angle": 40.0}
    return canvas.pyvista().PolyData(shape.points, faces).compute_normals(**options)
