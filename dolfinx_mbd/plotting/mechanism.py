"""Pictures of mechanisms with their bodies, joints and frames."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import choice, instance, names, number, refuse
from dolfinx_mbd.multibody.model.joints import Joint
from dolfinx_mbd.multibody.model.system import SystemData
from dolfinx_mbd.multibody.results.solution import Solution
from dolfinx_mbd.multibody.start.consistent_state import consistent_state
from dolfinx_mbd.multibody.start.position_assembly import coordinates
from dolfinx_mbd.plotting.camera import Camera, camera_of
from dolfinx_mbd.plotting.geometry import drawn_part, frame_poses, length_of, system_length
from dolfinx_mbd.plotting.output import Picture, check_drawing, finished
from dolfinx_mbd.plotting.scene import (
    CMAP,
    INK,
    RIGID_COLOUR,
    DrawnSurface,
    add_axes,
    add_bar,
    add_text,
    plotter_of,
    pyvista,
    rounded_up,
    unit_of,
)

__all__ = ["Drawing", "mechanism_camera", "plot_system"]

Array = NDArray[np.float64]

_JOINT_COLOUR = "#c8551b"
_AXIS_COLOURS = ("#c23b3b", "#3a8f4d", "#3b62c2")


class Drawing:
    """Surfaces of all bodies of a mechanism, coloured by elastic displacement.

    Args:
        system: A mechanism.
        states: Coordinates, shape (nt, nq), that determine the range of the colours.
        scale: Scale factor of the elastic displacement.
    """

    def __init__(self, system: SystemData, states: Array, *, scale: float) -> None:
        length = system_length(system, states[0])
        pairs = [
            (drawn_part(body, length), s)
            for body, s in zip(system.bodies, system.q_slices, strict=True)
        ]
        self.parts = [(part, s) for part, s in pairs if part is not None]
        self.surfaces = [DrawnSurface(part.skin) for part, _ in self.parts]
        self.scale = scale
        flexible = [(part, s) for part, s in self.parts if part.flexible]
        greatest = max(
            (part.displacement(q[s]).max() for q in states for part, s in flexible), default=0.0
        )
        self.factor, unit = unit_of(greatest)
        self.limits = (0.0, rounded_up(self.factor * greatest)) if flexible else None
        self.title = f"elastic displacement ({unit})"
        self.foot = 0.13 if flexible else 0.02

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
                surface.add_to(plotter, color=RIGID_COLOUR)
            else:
                surface.add_glass(plotter, RIGID_COLOUR, opacity)
        if self.limits is not None:
            add_bar(plotter, self.title, self.limits, cmap)


def mechanism_camera(
    system: SystemData, q: Array, points: Array, view: str | ArrayLike | None
) -> Camera:
    """Return a camera with an oblique view of the plane in which the joints rotate.

    Args:
        system: A mechanism; its gravity points downwards in the picture.
        q: Coordinates, shape (nq,).
        points: Points in the picture, shape (np, 3), m.
        view: View as for `plot_system`.
    """
    turning = [j.first for j in system.joints if j.kind in ("revolute", "cylindrical")]
    normal = None
    if turning:
        z = frame_poses(system, q)[1][[system.frame_index(frame) for frame in turning], :, 2]
        normal = np.linalg.eigh(z.T @ z)[1][:, -1]
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
    up = -system.gravity if system.gravity.any() else None
    return camera_of(points, view, normal=normal, up=up)


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
        time: Time, s; for a result the nearest saved time is drawn. None: the start.
        path: File to write: `.png`, `.jpg` or `.pdf`. None: no file.
        scale: Scale factor of the elastic displacement; colours are not scaled.
        marks: Additional objects: `joints` (a pin along a free axis, a ball, a line of sliding, a
            block), `names` (of joints), `frames` (axes of all frames: x red, y green, z blue).
        assembled: Whether to draw the assembled mechanism. False draws the bodies at their given
            positions, which shows why a mechanism cannot be assembled.
        opacity: Opacity of rigid bodies; 1 hides the inside.
        cmap: Colour map of matplotlib.
        view: Name of a view (`xy`, `xz`, `yz`, `iso`), or the direction from the scene to the eye,
            shape (3,); None: an oblique view of the plane in which the joints rotate, gravity
            downwards.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for example that of an interactive window; it is
            neither shown nor closed. None: a new plotter without a window.

    Raises:
        AssemblyError: The mechanism cannot be assembled.
        InputError: The time is outside the result, or an option is invalid.

    Example:
        >>> mbd.plotting.plot_system(engine, window=(200, 150))
        <Picture: 200 × 150 pixels>
        >>> picture = mbd.plotting.plot_system(run, time=0.005, path="engine.png")
    """
    instance("source", source, (SystemData, Solution))
    check_drawing(None, window, scale=number("scale", scale), opacity=opacity, cmap=cmap, time=time)
    check_drawing(assembled=assembled)
    marks = [choice("every entry of marks", mark, _MARKS) for mark in names("marks", marks)]
    system, q, t = _state_of(source, time, assembled)
    check_drawing(path)
    canvas = plotter_of(plotter, window)
    drawing = Drawing(system, q[None], scale=scale)
    points = drawing.move(q)
    drawing.add_to(canvas, cmap=cmap, opacity=opacity)
    length = length_of(points)
    for mark in marks:
        _MARKS[mark](canvas, system, q, length)
    note = f", elastic part × {scale:g}" if drawing.limits is not None and scale != 1 else ""
    add_text(canvas, f"t = {1e3 * t:.4g} ms{note}", (0.02, 0.97), align=("left", "top"))
    mechanism_camera(system, q, points, view).apply(canvas, below=drawing.foot, above=0.05)
    add_axes(canvas)
    return finished(canvas, plotter, path)


def _state_of(
    source: SystemData | Solution, time: float | None, assembled: bool
) -> tuple[SystemData, Array, float]:
    """Return the system, its coordinates (nq,) and the time."""
    if isinstance(source, SystemData):
        t = 0.0 if time is None else float(time)
        if assembled:
            return source, consistent_state(source, t).q, t
        return source, coordinates(source), t
    t = source.time[0] if time is None else float(time)
    slack = 1e-9 + 1e-6 * abs(source.time[-1] - source.time[0])
    if not source.time[0] - slack <= t <= source.time[-1] + slack:
        refuse("time", time, f"within the solution, {source.time[0]:g} to {source.time[-1]:g} s")
    k = int(np.argmin(np.abs(source.time - t)))
    return source.system, source.q[k], float(source.time[k])


def _draw_joints(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    """Mark each joint where its frames meet."""
    pv = pyvista()
    position, rotation = frame_poses(system, q)
    r = 0.014 * length
    for joint in system.joints:
        p, z = _place(system, joint, position), rotation[system.frame_index(joint.first), :, 2]
        if joint.kind in ("revolute", "cylindrical"):
            mark = pv.Cylinder(center=p, direction=z, radius=0.6 * r, height=5 * r)
        elif joint.kind == "spherical":
            mark = pv.Sphere(radius=r, center=p)
        elif joint.kind == "distance":
            mark = pv.Line(pointa=position[system.frame_index(joint.first)], pointb=p).tube(
                radius=0.25 * r
            )
        elif joint.kind in ("prismatic", "point_on_line"):
            mark = pv.Line(pointa=p - 9 * r * z, pointb=p + 9 * r * z).tube(radius=0.25 * r)
        else:
            mark = pv.Cube(center=p, x_length=2 * r, y_length=2 * r, z_length=2 * r)
        plotter.add_mesh(
            mark, color=_JOINT_COLOUR, smooth_shading=joint.kind == "spherical", ambient=0.3
        )


def _draw_frames(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    pv = pyvista()
    for p, axes in zip(*frame_poses(system, q), strict=True):
        for axis, colour in zip(axes.T, _AXIS_COLOURS, strict=True):
            plotter.add_mesh(
                pv.Line(pointa=p, pointb=p + 0.06 * length * axis), color=colour, line_width=3
            )


def _place(system: SystemData, joint: Joint, position: Array) -> Array:
    """Return the position of a joint, that of its second frame, which slides."""
    return position[system.frame_index(joint.second)]


def _name_joints(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    """Add labels; joints at the same position share one."""
    position, _ = frame_poses(system, q)
    places: list[tuple[Array, list[str]]] = []
    for joint in system.joints:
        p = _place(system, joint, position)
        for at, labels in places:
            if np.linalg.norm(at - p) < 0.01 * length:
                labels.append(joint.name)
                break
        else:
            places.append((p, [joint.name]))
    plotter.add_point_labels(
        np.array([p for p, _ in places]),
        ["\n".join(labels) for _, labels in places],
        font_size=14,
        text_color=INK,
        shape="rounded_rect",
        shape_color="white",
        shape_opacity=0.8,
        show_points=False,
        always_visible=True,
    )


_MARKS = {"joints": _draw_joints, "frames": _draw_frames, "names": _name_joints}
"""Functions that draw additional objects, by name."""
