"""Marks in pictures of mechanisms: joints, springs, the ground, cables, frames, and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.force_elements import JointSpring, PairElement, SpringDamper
from dolfinx_mbd.multibody.model.joints import FrameRef, Joint
from dolfinx_mbd.multibody.model.loads import FrameLoad, JointLoad
from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.results.histories import rotation_matrices
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.plotting import scene

__all__ = [
    "MARKS",
    "Arrow",
    "Marks",
    "frame_histories",
    "frame_poses",
    "joint_arrows",
    "load_arrows",
]

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


# ---- data of arrows -----------------------------------------------------------------------------
def frame_poses(system: SystemData, q: Array) -> tuple[Array, Array]:
    """Return positions (F, 3) and rotation matrices (F, 3, 3) of all frames for coordinates q."""
    position, rotation = np.zeros((system.num_frames, 3)), np.zeros((system.num_frames, 3, 3))
    for body, qs, fs in zip(system.bodies, system.q_slices, system.frame_slices, strict=True):
        body.poses(q[qs], position[fs], rotation[fs])
    return position, rotation


def frame_histories(system: SystemData, q: Array) -> tuple[Array, Array]:
    """Return positions (nt, F, 3) and rotations (nt, F, 3, 3) of all frames."""
    poses = [frame_poses(system, row) for row in q]
    return np.array([p for p, _ in poses]), np.array([A for _, A in poses])


@dataclass(frozen=True, eq=False)
class Arrow:
    """A force or a moment at nt times in global components."""

    name: str
    group: str  # a kind of marks
    unit: str  # N or N m
    frame: int  # index of the frame at which it acts; -1 for the resultant of a distributed load
    points: Array  # points at which it acts, (nt, 3), m
    vectors: Array  # (nt, 3)

    @property
    def size(self) -> float:
        """Largest magnitude over time."""
        return float(np.linalg.norm(self.vectors, axis=1).max(initial=0.0))

    def text(self, k: int) -> str:
        """Return name and value at an instant."""
        return f"{self.name}: {_value(float(np.linalg.norm(self.vectors[k])), self.unit)}"


def _arrows(name: str, group: str, frame: int, points: Array, wrenches: Array) -> list[Arrow]:
    """Return the force and the moment of wrenches (nt, 6), unless they are always zero."""
    parts = ("N", wrenches[:, :3]), ("N m", wrenches[:, 3:])
    arrows = [Arrow(name, group, unit, frame, points, part) for unit, part in parts]
    return [arrow for arrow in arrows if arrow.size > 0.0]


def joint_arrows(run: Solution, rows: Rows, *, drivers: bool = False) -> list[Arrow]:
    """Return the forces and moments of joints, or of drivers as loads, on their second bodies.

    The forces of distance joints are omitted: they act along the line between the points.
    """
    system, arrows = run.system, []
    position, rotation = frame_histories(system, run.q[rows])
    pairs = [(joint.name, joint) for joint in system.joints]
    if drivers:
        pairs = [(driver.name, system.joint(driver.joint)) for driver in system.drivers]
    for name, joint in pairs:
        if joint.kind != "distance":
            first, second = system.frame_index(joint.first), system.frame_index(joint.second)
            history = run.joint(name)
            local = np.stack([history.force[rows], history.moment[rows]], axis=1)
            wrenches = np.einsum("tij,tkj->tki", rotation[:, first], local).reshape(-1, 6)
            group = "loads" if drivers else "joint forces"
            arrows += _arrows(name, group, second, position[:, second], wrenches)
    return arrows


def load_arrows(run: Solution, rows: Rows) -> list[Arrow]:
    """Return the forces and moments of loads at frames, and of joint loads on the second bodies.

    A distributed load is represented by its resultant force at a point of its line of action.
    """
    system, at = run.system, Assembler(run.system)
    count = len(system.loads)
    numbers = {load.name: k for k, load in enumerate(system.loads)}
    frames, points = np.full(count, -1), np.zeros((len(rows), count, 3))
    wrenches = np.zeros((len(rows), count, 6))
    for i, row in enumerate(rows):
        t = float(run.time[row])
        at.q[:], at.v[:], at.angles[:] = run.q[row], run.v[row], run.angles[row]
        at.update_poses(t)
        at.update_velocities()
        for load, ends, wrench in at.load_wrenches(t):
            k, frame = numbers[load.name], ends[-1]
            frames[k], points[i, k], wrenches[i, k] = frame, at.position[frame], wrench[-6:]
        for pattern, body, amplitude, pattern_rows in at.pattern_forces(t):
            k, q = numbers[pattern.name], at.q[system.q_slices[body]]
            push = amplitude * pattern_rows
            force, moment = push[:3], rotation_matrices(q[3:7]) @ push[3:6]
            arm = np.cross(force, moment) / max(float(force @ force), 1e-300)
            points[i, k], wrenches[i, k, :3] = q[:3] + arm, force
    return [
        arrow
        for k, load in enumerate(system.loads)
        if isinstance(load, FrameLoad | JointLoad) or frames[k] < 0
        for arrow in _arrows(load.name, "loads", int(frames[k]), points[:, k], wrenches[:, k])
    ]


def _value(value: float, unit: str) -> str:
    """Return a number with three digits and its unit with a prefix, such as 25.6 kN."""
    factors = ((1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"))
    factor, prefix = next((pair for pair in factors if value >= pair[0]), (1.0, ""))
    return f"{value / factor:.3g} {prefix}{unit}"


# ---- shapes -------------------------------------------------------------------------------------
def _merge(*parts: Any) -> Any:
    """Return surfaces as one surface with smooth shading except at sharp edges."""
    whole = scene.pyvista().merge(list(parts)) if len(parts) > 1 else parts[0]
    options = {"cell_normals": False, "split_vertices": True, "feature_angle": 40.0}
    return whole.triangulate().compute_normals(**options)


def _tube(points: Any, radius: float) -> Any:
    """Return a tube along points (n, 3)."""
    return scene.pyvista().MultipleLines(np.asarray(points)).tube(radius=radius, n_sides=12)


def _cone(base: Array, axis: Array, height: float, radius: float) -> Any:
    """Return a cone with its tip at base + height · axis."""
    centre = base + 0.5 * height * axis
    return scene.pyvista().Cone(
        center=centre, direction=axis, height=height, radius=radius, resolution=24
    )


def _spiral(start: Array, along: Array, axis: Array, radii: Array, turns: float) -> Array:
    """Return points on a spiral or helix about an axis, advancing by `along` in total."""
    x, y = _normal_vectors(axis)
    s = np.linspace(0.0, 1.0, len(radii))[:, None]
    angle = 2 * np.pi * turns * s
    directions = np.cos(angle) * x + np.sin(angle) * y
    return np.asarray(start + s * along + radii[:, None] * directions)


def _normal_vectors(z: Array) -> tuple[Array, Array]:
    """Return two unit vectors that form a right-handed triad with the unit vector z."""
    _, x = _length_and_direction(np.cross(np.eye(3)[np.argmin(np.abs(z))], z))
    return x, np.asarray(np.cross(z, x), dtype=float)


def _length_and_direction(vector: Array) -> tuple[float, Array]:
    """Return the length and the direction of a vector."""
    length = float(np.linalg.norm(vector))
    return length, np.asarray(vector / (length or 1.0), dtype=float)


def _force(start: Array, vector: Array, r: float) -> Any:
    """Return an arrow along a vector (m)."""
    length, n = _length_and_direction(vector)
    head = min(2.8 * r, 0.6 * length)
    neck = start + vector - head * n
    return _merge(_tube([start, neck], 0.13 * head), _cone(neck, n, head, 0.38 * head))


def _moment(point: Array, vector: Array, r: float) -> Any:
    """Return an arrow on a circle about a vector (m); the radius is the length of the vector."""
    radius, z = _length_and_direction(vector)
    head = min(2.8 * r, radius)
    arc = _spiral(point, np.zeros(3), z, np.full(60, radius), 0.75)
    tangent = np.cross(z, (arc[-1] - point) / radius)
    return _merge(_tube(arc, 0.13 * head), _cone(arc[-1], tangent, head, 0.38 * head))


def _spring_or_sleeve(
    load: PairElement | JointSpring, start: Array, end: Array, z: Array, r: float
) -> Any:
    """Return a coil, a damper or both; a sleeve about the axis z if the points are close."""
    pv, along = scene.pyvista(), end - start
    length, n = _length_and_direction(along)
    if length < 2 * r:
        return _merge(
            pv.Cylinder(center=0.5 * (start + end), direction=z, radius=1.6 * r, height=2.4 * r)
        )
    parts, kinds = [], (SpringDamper, JointSpring)
    if not isinstance(load, kinds) or load.stiffness > 0 or load.law is not None:
        coil = _spiral(start + 0.15 * along, 0.7 * along, n, np.full(240, 1.4 * r), 8)
        ends = start + 0.12 * along, end - 0.12 * along
        parts.append(_tube(np.vstack([start, ends[0], coil, ends[1], end]), 0.2 * r))
    if isinstance(load, kinds) and (load.damping > 0 or not parts):
        parts.append(_tube([start, end], 0.25 * r))
        centre = start + 0.45 * along
        parts.append(pv.Cylinder(center=centre, direction=n, radius=0.75 * r, height=0.35 * length))
    return _merge(*parts)


# ---- all marks of a mechanism -------------------------------------------------------------------
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
        sizes = [f"{names[unit]} {_value(x, unit)}" for unit, x in sorted(self.greatest.items())]
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
                if isinstance(load, PairElement | JointSpring):
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
        return _merge(_tube(lines[k], 0.3 * self.radius))

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
            return _merge(pv.Cylinder(center=p2, direction=z, radius=0.6 * r, height=5 * r))
        if joint.kind == "spherical":
            return _merge(pv.Sphere(radius=r, center=p2))
        if joint.kind == "distance":
            return _merge(_tube([p1, p2], 0.25 * r))
        if joint.kind in _SLIDES:
            return _merge(_tube(self._rail(joint, k), 0.25 * r))
        return _merge(pv.Cube(center=p2, x_length=2 * r, y_length=2 * r, z_length=2 * r))

    def _fixed_points(self, k: int) -> Iterator[tuple[Array, Array]]:
        """Yield points of joints and springs that are fixed to the ground, and upward directions.

        For a spring, the direction is the direction of the spring.
        """
        fixed = [body.name for body in self.system.bodies if not body.num_velocities]
        items: list[Joint | PairElement] = list(self.system.joints)
        items += [load for load in self.system.loads if isinstance(load, PairElement)]
        for item in items:
            ends = np.array([self._pose(end, k)[0] for end in (item.first, item.second)])
            if isinstance(item, Joint) and item.kind in _SLIDES and item.first.body in fixed:
                yield from ((end, self.camera.up) for end in self._rail(item, k))
                continue
            size, along = _length_and_direction(ends[1] - ends[0])
            straight = not isinstance(item, Joint) and size > 2 * self.radius
            for end, point, sign in zip((item.first, item.second), ends, (1, -1), strict=True):
                if end.body in fixed:
                    yield point, sign * along if straight else self.camera.up

    def _ground(self, k: int) -> Any:
        """Return cones on plates; the fixed points are at the tips of the cones."""
        r, parts = self.radius, []
        places = {tuple(np.round(p, 9)): (p, up) for p, up in reversed([*self._fixed_points(k)])}
        for p, up in places.values():
            plate = {"center": p - 2.8 * r * up, "direction": up, "height": 0.4 * r}
            parts.append(scene.pyvista().Cylinder(**plate, radius=2.4 * r))
            parts.append(_cone(p - 2.6 * r * up, up, 2.6 * r, 1.5 * r))
        return _merge(*parts)

    def _spring(self, load: PairElement | JointSpring, k: int) -> Any:
        """Return the shape of a pair, or a spiral about the axis of a joint."""
        ends, r = (
            self.system.joint(load.joint) if isinstance(load, JointSpring) else load,
            self.radius,
        )
        (start, z), (end, _) = self._pose(ends.first, k), self._pose(ends.second, k)
        if not isinstance(load, JointSpring) or load.motion == "displacement":
            return _spring_or_sleeve(load, start, end, z, r)
        radii = r * np.linspace(0.8, 2.8, 160, dtype=float)
        return _merge(_tube(_spiral(end, np.zeros(3), z, radii, 3.5), 0.2 * r))

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
        return (_moment if arrow.unit == "N m" else _force)(start, vector, self.radius)

    def _axes(self, axis: int, k: int) -> Any:
        starts = self.position[k]
        ends = starts + 0.06 * self.length * self.rotation[k, :, :, axis]
        lines = zip(starts, ends, strict=True)
        return _merge(*(_tube(line, 0.12 * self.radius) for line in lines))
