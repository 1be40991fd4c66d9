"""Marks in pictures of mechanisms: joints, springs, the ground, cables, frames, and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.mechanism.joints import FrameRef, Joint
from dolfinx_mbd.mechanism.load_protocol import Load
from dolfinx_mbd.plotting.scenes import scene
from dolfinx_mbd.plotting.scenes.arrows import (
    Arrow,
    frame_histories,
    joint_arrows,
    load_arrows,
    value_text,
)
from dolfinx_mbd.plotting.scenes.mark_shapes import (
    cone,
    force_arrow,
    length_and_direction,
    merged,
    moment_arrow,
    spiral,
    spring_or_sleeve,
    tube,
)
from dolfinx_mbd.results.solution import Solution

__all__ = ["MARKS", "Marks"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Build = Callable[[int], Any]

MARKS = ("joints", "springs", "ground", "loads", "joint forces", "frames", "names")
"""Kinds of marks."""

COLOURS = {
    "joints": "#c8551b",
    "springs": "#2f9e63",
    "ground": "#777777",
    "loads": "#8f47c2",
    "joint forces": "#d63a6a",
    "cables": "#3b62c2",
    "frames x": "#c23b3b",
    "frames y": "#3a8f4d",
    "frames z": "#3b62c2",
}
_SLIDES = ("prismatic", "point_on_line")
_LONGEST = 0.2, 0.07  # longest force and radius of the largest moment / size
_INVISIBLE = 0.01  # arrows below this fraction of the longest arrow are not drawn


class Marks:
    """Marks of a mechanism at the saved times `rows` of a run; instants are indices into `rows`.

    `kinds` are some of `MARKS`. Sizes are relative to the depth of the camera (the size of the
    mechanism). Symbols and labels are aligned with the camera. Cables are always drawn.
    """

    def __init__(
        self, run: Solution, rows: Rows, kinds: Iterable[str], camera: scene.Camera
    ) -> None:
        self.kinds, self.system = tuple(kinds), run.system
        self.length, self.camera = camera.depth, camera
        self.radius = 0.014 * self.length
        self.position, self.rotation = frame_histories(run.system, run.q[rows])
        self.arrows: list[Arrow] = []
        if "loads" in self.kinds:
            self.arrows += load_arrows(run, rows) + joint_arrows(run, rows, drivers=True)
        if "joint forces" in self.kinds:
            self.arrows += joint_arrows(run, rows)
        sizes = [(arrow.unit, arrow.size) for arrow in self.arrows]
        self.greatest = {unit: max(s for u, s in sizes if u == unit) for unit, _ in sizes}
        self.shapes = [*self._cables(run, rows), *self._marks()]
        self._drawn: list[tuple[Any, Any, Build]] = []

    @property
    def note(self) -> str:
        """Text with the largest force and the largest moment that are drawn."""
        names = {"N": "force", "N m": "moment"}
        sizes = [
            f"{names[unit]} {value_text(x, unit)}" for unit, x in sorted(self.greatest.items())
        ]
        return f", largest {', '.join(sizes)}" if sizes else ""

    def points(self, k: int) -> Array:
        """Return points on all marks at an instant, shape (n, 3), m.

        If there is one instant only, the points include the ends of labels.
        """
        shapes = [build(k) for *_, build in self.shapes]
        width = 0.16 * self.length * self.camera.right
        labels = [point + width for point, _ in self._labels(k) if len(self.position) == 1]
        return np.vstack([np.zeros((0, 3)), *(s.points for s in shapes if s is not None), *labels])

    def add_to(self, plotter: Any, k: int) -> None:
        """Add the marks at an instant to a plotter."""
        for name, colour, build in self.shapes:
            mesh = scene.pyvista().Sphere()
            options = {"color": COLOURS[colour], "ambient": 0.3, "name": name}
            actor = plotter.add_mesh(mesh, reset_camera=False, **options)
            actor.prop.interpolation = "Phong"
            if colour in ("loads", "joint forces"):
                scene.put_in_front(actor)
            self._drawn.append((actor, mesh, build))
        self.move(k)

    def move(self, k: int) -> None:
        """Move the marks to their places at an instant."""
        for actor, mesh, build in self._drawn:
            shape = build(k)
            actor.visibility = shape is not None
            if shape is not None:
                mesh.copy_from(shape)

    def add_labels(self, plotter: Any, k: int) -> None:
        """Add names and values of arrows, and names of joints; labels at one place share a box."""
        points: list[Array] = []
        labels: list[str] = []
        for point, text in self._labels(k):
            gaps = [float(np.linalg.norm(x - point)) for x in points]
            if gaps and min(gaps) < 0.01 * self.length:
                labels[int(np.argmin(gaps))] += f"\n{text}"
            else:
                points.append(point)
                labels.append(text)
        if points:
            scene.add_labels(plotter, np.array(points), labels)

    def _labels(self, k: int) -> Iterator[tuple[Array, str]]:
        """Yield the places and the texts of labels, to the right of the described marks."""
        right = 0.015 * self.length * self.camera.right
        for arrow in self.arrows:
            if self._is_visible(arrow, k):
                yield self._ends(arrow, k)[2] + right, arrow.text(k)
        if "names" in self.kinds:
            for joint in self.system.joints:
                yield self._pose(joint.second, k)[0] + right, joint.name

    # ---- shape of each mark at an instant -------------------------------------------------------
    def _marks(self) -> Iterator[tuple[str, str, Build]]:
        """Yield the name, the colour and a function that returns the shape of each mark."""
        if "ground" in self.kinds and any(True for _ in self._fixed_points(0)):
            yield "ground", "ground", self._ground
        if "joints" in self.kinds:
            for joint in self.system.joints:
                yield f"joint {joint.name}", "joints", partial(self._joint, joint)
        if "springs" in self.kinds:
            for load in self.system.loads:
                if _is_spring(load):
                    yield f"spring {load.name}", "springs", partial(self._spring, load)
        for arrow in self.arrows:
            name = f"{arrow.group}: {arrow.name} ({arrow.unit})"
            yield name, arrow.group, partial(self._arrow, arrow)
        if "frames" in self.kinds:
            for axis, letter in enumerate("xyz"):
                yield f"frames {letter}", f"frames {letter}", partial(self._axes, axis)

    def _cables(self, run: Solution, rows: Rows) -> Iterator[tuple[str, str, Build]]:
        for body in run.system.bodies:
            motion = getattr(body, "motion", None)
            if motion is not None:
                build = partial(self._cable, motion(run).position[rows])
                yield f"cable {body.name}", "cables", build

    def _cable(self, lines: Array, k: int) -> Any:
        return merged(tube(lines[k], 0.3 * self.radius))

    def _pose(self, frame: FrameRef, k: int) -> tuple[Array, Array]:
        """Return position (3,) and z axis (3,) of a frame."""
        index = self.system.frame_index(frame)
        return self.position[k, index], self.rotation[k, index, :, 2]

    def _rail(self, joint: Joint, k: int) -> Array:
        """Return the ends (2, 3) of a line of sliding that is long enough for the whole motion."""
        first, second = (self.system.frame_index(f) for f in (joint.first, joint.second))
        axis = self.rotation[:, first, :, 2]
        travel = np.einsum("ti,ti->t", axis, self.position[:, second] - self.position[:, first])
        ends = np.array([travel.min() - 9 * self.radius, travel.max() + 9 * self.radius])
        return np.asarray(self.position[k, first] + ends[:, None] * axis[k])

    def _joint(self, joint: Joint, k: int) -> Any:
        """Return a pin along a free axis, a ball, a line of sliding, a rod or a block."""
        pv, r = scene.pyvista(), self.radius
        (p1, z), (p2, _) = self._pose(joint.first, k), self._pose(joint.second, k)
        if joint.kind in ("revolute", "cylindrical"):
            return merged(pv.Cylinder(center=p2, direction=z, radius=0.6 * r, height=5 * r))
        if joint.kind == "spherical":
            return merged(pv.Sphere(radius=r, center=p2))
        if joint.kind == "distance":
            return merged(tube([p1, p2], 0.25 * r))
        if joint.kind in _SLIDES:
            return merged(tube(self._rail(joint, k), 0.25 * r))
        return merged(pv.Cube(center=p2, x_length=2 * r, y_length=2 * r, z_length=2 * r))

    def _fixed_points(self, k: int) -> Iterator[tuple[Array, Array]]:
        """Yield points of joints and springs that are fixed to the ground, and upward directions.

        For a spring, the direction is the direction of the spring.
        """
        fixed = [body.name for body in self.system.bodies if not body.num_velocities]
        items: list[tuple[Joint | Load, tuple[FrameRef, ...]]] = [
            (joint, (joint.first, joint.second)) for joint in self.system.joints
        ]
        springs = (load for load in self.system.loads if load.port == "pair")
        items += [(load, load.acting_frames(self.system)) for load in springs]
        for item, frames in items:
            ends = np.array([self._pose(end, k)[0] for end in frames])
            if isinstance(item, Joint) and item.kind in _SLIDES and item.first.body in fixed:
                yield from ((end, self.camera.up) for end in self._rail(item, k))
                continue
            size, along = length_and_direction(ends[1] - ends[0])
            straight = not isinstance(item, Joint) and size > 2 * self.radius
            for end, point, sign in zip(frames, ends, (1, -1), strict=True):
                if end.body in fixed:
                    yield point, sign * along if straight else self.camera.up

    def _ground(self, k: int) -> Any:
        """Return cones on plates; the fixed points are at the tips of the cones."""
        r, parts = self.radius, []
        places = {tuple(np.round(p, 9)): (p, up) for p, up in reversed([*self._fixed_points(k)])}
        for p, up in places.values():
            plate = {"center": p - 2.8 * r * up, "direction": up, "height": 0.4 * r}
            parts.append(scene.pyvista().Cylinder(**plate, radius=2.4 * r))
            parts.append(cone(p - 2.6 * r * up, up, 2.6 * r, 1.5 * r))
        return merged(*parts)

    def _spring(self, load: Load, k: int) -> Any:
        """Return the shape of a pair, or a spiral about the axis of a joint."""
        first, second = load.acting_frames(self.system)
        (start, z), (end, _), r = self._pose(first, k), self._pose(second, k), self.radius
        if "spiral" not in load.marks:
            return spring_or_sleeve(load.marks, start, end, z, r)
        radii = r * np.linspace(0.8, 2.8, 160, dtype=float)
        return merged(tube(spiral(end, np.zeros(3), z, radii, 3.5), 0.2 * r))

    def _is_visible(self, arrow: Arrow, k: int) -> bool:
        size = float(np.linalg.norm(arrow.vectors[k]))
        return size > _INVISIBLE * self.greatest[arrow.unit]

    def _ends(self, arrow: Arrow, k: int) -> Array:
        """Return the start of an arrow, its vector and the place of its label, shape (3, 3), m.

        A force that mostly points to the middle of the mechanism ends at its point of action.
        """
        moment = arrow.unit == "N m"
        unit = _LONGEST[moment] * self.length / self.greatest[arrow.unit]
        vector = unit * arrow.vectors[k]
        outwards = arrow.points - self.camera.centre
        sizes = np.linalg.norm(outwards, axis=1) * np.linalg.norm(arrow.vectors, axis=1)
        start = arrow.points[k]
        if moment:
            return np.array([start, vector, start])
        if np.einsum("ti,ti->", outwards, arrow.vectors) < -0.3 * sizes.sum():
            return np.array([start - vector, vector, start - vector])
        return np.array([start, vector, start + vector])

    def _arrow(self, arrow: Arrow, k: int) -> Any:
        if not self._is_visible(arrow, k):
            return None
        start, vector, _ = self._ends(arrow, k)
        return (moment_arrow if arrow.unit == "N m" else force_arrow)(start, vector, self.radius)

    def _axes(self, axis: int, k: int) -> Any:
        starts = self.position[k]
        ends = starts + 0.06 * self.length * self.rotation[k, :, :, axis]
        lines = zip(starts, ends, strict=True)
        return merged(*(tube(line, 0.12 * self.radius) for line in lines))


def _is_spring(load: Load) -> bool:
    """Return whether a load is drawn as a spring, a damper or a spiral."""
    return not {"coil", "damper", "spiral"}.isdisjoint(load.marks)
