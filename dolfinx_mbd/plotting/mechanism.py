"""Pictures of mechanisms with their bodies, joints and frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.checks import array, choice, flag, instance, names, number, refuse
from dolfinx_mbd.multibody.model.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.multibody.model.protocol import Body, Frame
from dolfinx_mbd.multibody.model.shapes import Shape, box_shape, cylinder_shape
from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.start.consistent_state import consistent_state
from dolfinx_mbd.multibody.start.position_assembly import coordinates
from dolfinx_mbd.plotting import scene
from dolfinx_mbd.plotting.bodies import skin_displacement, skin_points
from dolfinx_mbd.plotting.output import Picture, check_drawing
from dolfinx_mbd.plotting.scene import CMAP, INK, Camera, DrawnSurface, camera_of, length_of

Array = NDArray[np.float64]

_RIGID_COLOUR = "#8fa3b5"
_JOINT_COLOUR = "#c8551b"
_AXIS_COLOURS = ("#c23b3b", "#3a8f4d", "#3b62c2")


def plot_system(
    source: SystemData | Solution,
    time: float | None = None,
    path: str | Path | None = None,
    *,
    scale: float = 1.0,
    marks: Iterable[str] = ("joints",),
    assembled: bool = True,
    opacity: float = 0.45,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (1000, 700),
    plotter: Any = None,
) -> Picture:
    """Draw a mechanism at one time.

    Flexible bodies are drawn by their skins, coloured by elastic displacement, rigid bodies by
    their shapes. Other bodies are drawn as bars from their centre of mass to their frames.

    Args:
        source: A mechanism, drawn in its initial position, or the result of a simulation.
        time: Time, s, by default the start; for a result the nearest saved time is drawn.
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        scale: Scale factor of the elastic displacement; colours are not scaled.
        marks: Additional objects: `joints` (a pin along a free axis, a ball, a line of sliding, a
            block), `names` (of joints), `frames` (axes of all frames: x red, y green, z blue).
        assembled: Whether to draw the assembled mechanism. False draws the bodies at their given
            positions, which shows why a mechanism cannot be assembled.
        opacity: Opacity of rigid bodies; 1 hides the inside.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); by default an oblique view of the plane in which the joints rotate, with
            gravity downwards.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for example of an interactive window, which is
            neither shown nor closed; by default a new plotter without a window.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        InputError: The time is outside the simulation, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_system(engine, window=(200, 150))
        <Picture: 200 × 150 pixels>
        >>> picture = mbd.plotting.plot_system(run, time=0.005, path="engine.png")
    """
    instance("source", source, (SystemData, Solution))
    scale = number("scale", scale)
    flag("assembled", assembled)
    check_drawing(None, cmap, window, opacity)
    marks = [choice("every entry of marks", mark, _MARKS) for mark in names("marks", marks)]
    time = time if time is None else number("time", time)
    if isinstance(source, Solution):
        k = 0 if time is None else saved_rows(source, "time", time)[0]
        system, q, t = source.system, source.q[k], float(source.time[k])
    else:
        system, t = source, time or 0.0
        q = consistent_state(source, t).q if assembled else coordinates(source)
    check_drawing(path, cmap)
    canvas = scene.plotter_of(plotter, window)
    drawing = Drawing(system, q[None], scale=scale)
    points = drawing.move(q)
    drawing.add_to(canvas, cmap=cmap, opacity=opacity)
    for mark in marks:
        _MARKS[mark](canvas, system, q, length_of(points))
    camera = mechanism_camera(system, q, points, view)
    caption = f"t = {1e3 * t:.4g} ms{drawing.note}"
    return scene.complete(canvas, caption, camera, path, plotter, drawing.foot)


def saved_rows(solution: Solution, argument: str, times: ArrayLike) -> NDArray[np.int64]:
    """Return the indices of the saved times of a solution that are nearest to given times (s)."""
    t = solution.time
    shown = array(argument, np.atleast_1d(array(argument, times)).ravel())
    slack = 1e-9 + 1e-6 * (t[-1] - t[0])
    if shown.size == 0 or shown.min() < t[0] - slack or shown.max() > t[-1] + slack:
        refuse(argument, times, f"within the solution, {t[0]:g} to {t[-1]:g} s")
    return np.array([np.argmin(np.abs(t - value)) for value in shown])


@dataclass(frozen=True, eq=False)
class Part:
    """The drawn surface of one body, in the body frame; a rigid part has no modes."""

    skin: Skin
    bars: bool = False  # whether bars replace an unknown shape of the body

    @property
    def flexible(self) -> bool:
        """Whether the part is coloured by its elastic displacement."""
        return len(self.skin.modes) > 0

    def points(self, q: Array, scale: float) -> Array:
        """Return the points for the coordinates q = (position, quaternion, η), shape (ns, 3), m."""
        eta = q[7:] if self.flexible else np.zeros(0)
        return skin_points(self.skin, eta, scale=scale, position=q[:3], rotation=q[3:7])

    def displacement(self, q: Array) -> Array:
        """Return the magnitude of the elastic displacement of a flexible part, shape (ns,), m."""
        return np.linalg.norm(skin_displacement(self.skin, q[7:]), axis=1)


def drawn_part(body: Body, length: float) -> Part | None:
    """Return the skin, the shape or bars that represent a body, or None for the ground.

    The thickness of bars depends on the length of the mechanism (m).
    """
    shape: Shape | None = None
    if isinstance(body, FlexibleBody):
        reduced = body.reduced
        if reduced.skin is not None and len(reduced.skin.triangles):
            return Part(reduced.skin)
        centre, points = reduced.centre, [i.point for i in reduced.interfaces]
    elif isinstance(body, RigidBody):
        points = [np.asarray(Frame(*frame).point, dtype=float) for frame in body.frames.values()]
        shape, centre = body.shape, np.asarray(body.centre, dtype=float)
    else:
        return None
    surface = _bars(centre, points, 0.008 * length) if shape is None else shape
    skin = Skin(surface.points, surface.triangles, np.zeros((0, len(surface.points), 3)))
    return Part(skin, bars=shape is None)


def _bars(centre: Array, points: list[Array], radius: float) -> Shape:
    """Return a block at the centre of mass and bars from it to the frames."""
    shape = box_shape(np.full(3, 4 * radius), centre)
    for point in points:
        along = point - centre
        size = float(np.linalg.norm(along))
        if size > radius:
            z = along / size
            x = np.cross(np.eye(3)[np.argmin(np.abs(z))], z)
            x /= np.linalg.norm(x)
            bar = cylinder_shape(radius, size, 2, (0.0, 0.0, size / 2), sides=16)
            shape += Shape(centre + bar.points @ [x, np.cross(z, x), z], bar.triangles)
    return shape


class Drawing:
    """Surfaces of all bodies of a mechanism, coloured by elastic displacement.

    The range of the colours includes the displacements at all `states`, coordinates (nt, nq).
    """

    def __init__(self, system: SystemData, states: Array, *, scale: float) -> None:
        length = system_length(system, states[0])
        parts = [drawn_part(body, length) for body in system.bodies]
        self.parts = [(p, s) for p, s in zip(parts, system.q_slices, strict=True) if p is not None]
        self.surfaces = [DrawnSurface(part.skin) for part, _ in self.parts]
        self.scale = scale
        flexible = [(part, s) for part, s in self.parts if part.flexible]
        sizes = (part.displacement(q[s]).max() for q in states for part, s in flexible)
        greatest = max(sizes, default=0.0)
        self.factor, unit = scene.unit_of(greatest)
        self.limits = (0.0, scene.rounded_up(self.factor * greatest)) if flexible else None
        self.title = f"elastic displacement ({unit})"
        self.foot = scene.FOOT if flexible else 0.02
        self.note = f", elastic part × {scale:g}" if flexible and scale != 1 else ""

    def points(self, q: Array) -> list[Array]:
        """Return the points of every part for coordinates q (nq,)."""
        return [part.points(q[s], self.scale) for part, s in self.parts]

    def move(self, q: Array) -> Array:
        """Move the surfaces to the coordinates q (nq,) and return all their points."""
        moved = self.points(q)
        for (part, s), surface, points in zip(self.parts, self.surfaces, moved, strict=True):
            surface.move(points, self.factor * part.displacement(q[s]) if part.flexible else None)
        return np.vstack(moved)

    def add_to(self, plotter: Any, *, cmap: str, opacity: float) -> None:
        """Add the surfaces to a plotter, and a colour bar if a body is flexible."""
        for (part, _), surface in zip(self.parts, self.surfaces, strict=True):
            if part.flexible:
                surface.add_to(plotter, limits=self.limits, cmap=cmap)
            elif part.bars:
                surface.add_to(plotter, color=_RIGID_COLOUR)
            else:
                surface.add_glass(plotter, _RIGID_COLOUR, opacity)
        if self.limits is not None:
            scene.add_bar(plotter, self.title, self.limits, cmap)


def frame_poses(system: SystemData, q: Array) -> tuple[Array, Array]:
    """Return positions (F, 3) and rotation matrices (F, 3, 3) of all frames for coordinates q."""
    position, rotation = np.zeros((system.num_frames, 3)), np.zeros((system.num_frames, 3, 3))
    for body, qs, fs in zip(system.bodies, system.q_slices, system.frame_slices, strict=True):
        body.poses(q[qs], position[fs], rotation[fs])
    return position, rotation


def system_length(system: SystemData, q: Array) -> float:
    """Return the size of a mechanism from its frames and the origins of its bodies, m."""
    origins = [q[s][:3] for s in system.q_slices if s.stop > s.start]
    return length_of(np.vstack([frame_poses(system, q)[0], *origins]))


def mechanism_camera(
    system: SystemData, q: Array, points: Array, view: str | ArrayLike | None
) -> Camera:
    """Return a camera that sees points (np, 3), by default obliquely to the joints' plane."""
    turning = [j.first for j in system.joints if j.kind in ("revolute", "cylindrical")]
    normal = None
    if turning:
        z = frame_poses(system, q)[1][[system.frame_index(frame) for frame in turning], :, 2]
        normal = np.linalg.eigh(z.T @ z)[1][:, -1]
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
    up = -system.gravity if system.gravity.any() else None
    return camera_of(points, view, normal=normal, up=up)


def _draw_joints(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    """Mark each joint at its second frame, the frame that slides."""
    pv = scene.pyvista()
    position, rotation = frame_poses(system, q)
    r = 0.014 * length
    for joint in system.joints:
        first, p = system.frame_index(joint.first), position[system.frame_index(joint.second)]
        z = rotation[first, :, 2]
        if joint.kind in ("revolute", "cylindrical"):
            mark = pv.Cylinder(center=p, direction=z, radius=0.6 * r, height=5 * r)
        elif joint.kind == "spherical":
            mark = pv.Sphere(radius=r, center=p)
        elif joint.kind == "distance":
            mark = pv.Line(pointa=position[first], pointb=p).tube(radius=0.25 * r)
        elif joint.kind in ("prismatic", "point_on_line"):
            mark = pv.Line(pointa=p - 9 * r * z, pointb=p + 9 * r * z).tube(radius=0.25 * r)
        else:
            mark = pv.Cube(center=p, x_length=2 * r, y_length=2 * r, z_length=2 * r)
        smooth = joint.kind == "spherical"
        plotter.add_mesh(mark, color=_JOINT_COLOUR, smooth_shading=smooth, ambient=0.3)


def _draw_frames(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    for p, axes in zip(*frame_poses(system, q), strict=True):
        for axis, colour in zip(axes.T, _AXIS_COLOURS, strict=True):
            line = scene.pyvista().Line(pointa=p, pointb=p + 0.06 * length * axis)
            plotter.add_mesh(line, color=colour, line_width=3)


def _name_joints(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    """Add labels; joints at the same position share one."""
    position, _ = frame_poses(system, q)
    points: list[Array] = []
    labels: list[str] = []
    for joint in system.joints:
        p = position[system.frame_index(joint.second)]
        same = [k for k, x in enumerate(points) if np.linalg.norm(x - p) < 0.01 * length]
        if same:
            labels[same[0]] += f"\n{joint.name}"
        else:
            points.append(p)
            labels.append(joint.name)
    text = {"font_size": 14, "text_color": INK, "show_points": False, "always_visible": True}
    box = {"shape": "rounded_rect", "shape_color": "white", "shape_opacity": 0.8}
    plotter.add_point_labels(np.array(points), labels, **text, **box)


_MARKS = {"joints": _draw_joints, "frames": _draw_frames, "names": _name_joints}
