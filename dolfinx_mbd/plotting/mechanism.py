"""Pictures of a mechanism: bodies, joints, frames and their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import instance, number, refuse
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
    """Surfaces of all bodies, and colours of their elastic displacement over some states.

    Args:
        system: A mechanism.
        states: Coordinates, (nt, nq); the colours span what happens in them.
        scale: Enlargement of the elastic part.
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
        """Points of every part at coordinates q (nq,)."""
        return [part.points(q[s], self.scale) for part, s in self.parts]

    def move(self, q: Array) -> Array:
        """Put the surfaces where they are at coordinates q (nq,) and return all their points."""
        moved = self.points(q)
        for (part, s), surface, points in zip(self.parts, self.surfaces, moved, strict=True):
            surface.move(points, self.factor * part.displacement(q[s]) if part.flexible else None)
        return np.vstack(moved)

    def add_to(self, plotter: Any, *, cmap: str, opacity: float) -> None:
        """Draw the surfaces, and the colour bar if a body is flexible."""
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
    """A camera obliquely onto the plane in which the joints turn, gravity downwards."""
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
    joints: bool = True,
    frames: bool = False,
    names: bool = False,
    assembled: bool = True,
    opacity: float = 0.45,
    cmap: str = CMAP,
    view: str | ArrayLike | None = None,
    window: tuple[int, int] = (1000, 700),
    plotter: Any = None,
) -> Picture:
    """Draw a mechanism at one time: rigid shapes, flexible skins by elastic displacement, joints.

    Bodies without shape or skin are drawn as bars from their centre of mass to their frames.

    Args:
        source: A mechanism, which is drawn as it starts; or a solution.
        time: s; of a solution the nearest saved time is drawn. None: the start.
        path: File to write as well.
        scale: Enlargement of the elastic part; colours are never scaled.
        joints: Mark the joints: a pin along a free axis, a ball, a line to slide on, a block.
        frames: Draw the axes of all frames: x red, y green, z blue.
        names: Name the joints.
        assembled: False: draw the bodies where they were put, to see why they do not fit together.
        opacity: Of rigid bodies; 1 hides what is inside them.
        cmap: A colour map of matplotlib.
        view: A name ("xy", "xz", "yz", "iso") or the direction to the eye, (3,); None: obliquely
            onto the plane in which the joints turn, gravity downwards.
        window: Width and height, pixels.
        plotter: A pyvista plotter to draw into, for a window that can be turned; it is neither
            shown nor closed.

    Raises:
        AssemblyError: If the mechanism cannot be put together.
        ValueError: If the time is not within the solution, or the suffix is unknown.
        ImportError: If pyvista is not installed.
        OSError: If the file cannot be written.
    """
    instance("source", source, (SystemData, Solution))
    check_drawing(None, window, scale=number("scale", scale), opacity=opacity, cmap=cmap, time=time)
    check_drawing(joints=joints, frames=frames, names=names, assembled=assembled)
    system, q, t = _state_of(source, time, assembled)
    check_drawing(path)
    drawn = plotter_of(plotter, window)
    drawing = Drawing(system, q[None], scale=scale)
    points = drawing.move(q)
    drawing.add_to(drawn, cmap=cmap, opacity=opacity)
    length = length_of(points)
    if joints:
        _draw_joints(drawn, system, q, length)
    if frames:
        _draw_frames(drawn, system, q, length)
    if names:
        _name_joints(drawn, system, q, length)
    note = f", elastic part × {scale:g}" if drawing.limits is not None and scale != 1 else ""
    add_text(drawn, f"t = {1e3 * t:.4g} ms{note}", (0.02, 0.97), align=("left", "top"))
    mechanism_camera(system, q, points, view).apply(drawn, below=drawing.foot, above=0.05)
    add_axes(drawn)
    return finished(drawn, plotter, path)


def _state_of(
    source: SystemData | Solution, time: float | None, assembled: bool
) -> tuple[SystemData, Array, float]:
    """SystemData, coordinates (nq,) and time."""
    if isinstance(source, SystemData):
        t = 0.0 if time is None else float(time)
        if assembled:
            return source, consistent_state(source, t).q, t
        return source, coordinates(source), t
    t = source.time[0] if time is None else float(time)
    slack = 1e-9 + 1e-6 * abs(source.time[-1] - source.time[0])
    if not source.time[0] - slack <= t <= source.time[-1] + slack:
        refuse("time", time, f"in the solution, {source.time[0]:g} to {source.time[-1]:g} s")
    k = int(np.argmin(np.abs(source.time - t)))
    return source.system, source.q[k], float(source.time[k])


def _draw_joints(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    """A mark for each joint where its frames meet."""
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
    """Where a joint is: its second frame, which is the one that slides."""
    return position[system.frame_index(joint.second)]


def _name_joints(plotter: Any, system: SystemData, q: Array, length: float) -> None:
    """One label for all joints that are in the same place."""
    position, _ = frame_poses(system, q)
    places: list[tuple[Array, list[str]]] = []
    for joint in system.joints:
        p = _place(system, joint, position)
        for at, names in places:
            if np.linalg.norm(at - p) < 0.01 * length:
                names.append(joint.name)
                break
        else:
            places.append((p, [joint.name]))
    plotter.add_point_labels(
        np.array([p for p, _ in places]),
        ["\n".join(names) for _, names in places],
        font_size=14,
        text_color=INK,
        shape="rounded_rect",
        shape_color="white",
        shape_opacity=0.8,
        show_points=False,
        always_visible=True,
    )
