"""Pictures of mechanisms with their bodies, joints and frames."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import StressModes
from dolfinx_mbd.body.parts import Skin
from dolfinx_mbd.body.quantities import QUANTITIES
from dolfinx_mbd.checks import array, choice, flag, instance, names, number, reject
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.dynamics.start.position_assembly import coordinates
from dolfinx_mbd.mechanism.bodies import FlexibleBody, RigidBody
from dolfinx_mbd.mechanism.protocol import Body, Frame
from dolfinx_mbd.mechanism.shapes import Shape, box_shape, cylinder_shape
from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.plotting.scenes import scene
from dolfinx_mbd.plotting.scenes.arrows import frame_poses
from dolfinx_mbd.plotting.scenes.bodies import skin_displacement, skin_points, stress_on_skin
from dolfinx_mbd.plotting.scenes.marks import MARKS, Marks
from dolfinx_mbd.plotting.scenes.output import Picture, check_drawing
from dolfinx_mbd.plotting.scenes.scene import CMAP, Camera, DrawnSurface, camera_of, length_of
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]

_RIGID_COLOUR = "#8fa3b5"
DISPLACEMENT = "displacement"
STRESSES = tuple(q.name for q in QUANTITIES.values() if q.needs == ("stress",) and not q.shape)
"""Quantities that determine colours."""
DRAWN = ("joints", "springs", "ground", "loads")
"""Marks that are drawn by default."""


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
    their frames.

    Args:
        source: A mechanism, drawn in its initial position, or the result of a simulation.
        time: Time, s; the nearest saved time of a result is drawn. By default the start.
        path: File to write (`.png`, `.jpg` or `.pdf`); by default no file is written.
        scale: Scale factor of the elastic displacement; colours are not scaled.
        quantity: Quantity that determines the colours: `displacement`, or a scalar stress such as
            `von Mises`. For a stress, a body needs the stress of its modes; see
            `mbd.recovery.skin_stress`.
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
        run, rows = _initial_state(source, time or 0.0, assembled), np.zeros(1, dtype=np.int64)
    if not (isinstance(source, Solution) or assembled):
        kinds = [kind for kind in kinds if kind not in ("loads", "joint forces")]
    check_drawing(path, cmap)
    drawing = Drawing(run, rows, scale=scale, quantity=quantity, marks=kinds, view=view)
    canvas = scene.plotter_of(plotter, window)
    drawing.add_to(canvas, cmap=cmap, opacity=opacity)
    drawing.marks.add_labels(canvas, 0)
    return scene.complete(canvas, drawing.caption(0), drawing.camera, path, plotter, drawing.foot)


def _initial_state(system: System, t: float, assembled: bool) -> Solution:
    """Return the initial state of a mechanism, or the bodies at their given positions."""
    if assembled:
        return Solution(system, [consistent_state(system, t)])
    v, lam = np.zeros(system.num_velocities), np.zeros(system.num_constraints)
    state = State(t, coordinates(system), v, v, lam, np.zeros(len(system.joints)))
    return Solution(system, [state])


def check_marks(marks: Iterable[str]) -> list[str]:
    """Return kinds of marks as a list; raise an error if a kind is unknown."""
    return [choice("every entry of marks", mark, MARKS) for mark in names("marks", marks)]


def saved_rows(solution: Solution, argument: str, times: ArrayLike) -> NDArray[np.int64]:
    """Return the indices of the saved times of a solution that are nearest to given times (s)."""
    t = solution.time
    requested = array(argument, np.atleast_1d(array(argument, times)).ravel())
    slack = 1e-9 + 1e-6 * (t[-1] - t[0])
    if requested.size == 0 or requested.min() < t[0] - slack or requested.max() > t[-1] + slack:
        reject(argument, times, f"within the solution, {t[0]:g} to {t[-1]:g} s")
    return np.array([np.argmin(np.abs(t - value)) for value in requested])


@dataclass(frozen=True, eq=False)
class Part:
    """The drawn surface of one body, in the body frame; a rigid part has no modes."""

    skin: Skin
    bars: bool = False  # whether bars replace an unknown shape of the body
    stress: StressModes | None = None  # at the nodes of the skin

    @property
    def flexible(self) -> bool:
        """Whether the part is coloured by its elastic displacement."""
        return len(self.skin.modes) > 0

    def points(self, q: Array, scale: float) -> Array:
        """Return the points for the coordinates q = (position, quaternion, η), shape (ns, 3), m."""
        eta = q[7:] if self.flexible else np.zeros(0)
        return skin_points(self.skin, eta, scale=scale, position=q[:3], rotation=q[3:7])

    def has(self, quantity: str) -> bool:
        """Return whether a quantity is known at the points."""
        return self.flexible and (quantity == DISPLACEMENT or self.stress is not None)

    def values(self, q: Array, quantity: str) -> Array:
        """Return a quantity at the points, shape (ns,), m or Pa."""
        if quantity == DISPLACEMENT or self.stress is None:
            return np.linalg.norm(skin_displacement(self.skin, q[7:]), axis=1)
        return self.stress.values(quantity, q[7:])[0]

    def limits(self, states: Array, quantity: str) -> tuple[float, float]:
        """Return the extreme values of a quantity at states (nt, nq), m or Pa."""
        if quantity == DISPLACEMENT or self.stress is None:
            return 0.0, max(float(self.values(q, quantity).max()) for q in states)
        extremes = (
            self.stress.envelope(quantity, states[:, 7:], extreme=extreme).value
            for extreme in ("least", "greatest")
        )
        low, high = extremes
        return float(low.min()), float(high.max())

    def peak(self, states: Array, quantity: str) -> float | None:
        """Return the largest stress in single cells at states (nt, nq), Pa, if it is known."""
        if not self.flexible or self.stress is None or quantity == DISPLACEMENT:
            return None
        return self.stress.peak(quantity, states[:, 7:])


def drawn_part(body: Body, length: float) -> Part | None:
    """Return the skin, the shape or bars that represent a body, or None for the ground.

    The thickness of bars depends on the length of the mechanism (m).
    """
    shape: Shape | None = None
    if isinstance(body, FlexibleBody):
        reduced = body.reduced
        if reduced.skin is not None and len(reduced.skin.triangles):
            return Part(reduced.skin, stress=stress_on_skin(reduced))
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
    """Surfaces and marks of a mechanism at the saved times `rows` of a run, and a camera.

    Instants are indices into `rows`. The range of the colours includes all instants.
    """

    def __init__(
        self,
        run: Solution,
        rows: NDArray[np.int64],
        *,
        scale: float,
        quantity: str,
        marks: Iterable[str],
        view: str | ArrayLike | None,
    ) -> None:
        system, self.states, self.time = run.system, run.q[rows], run.time[rows]
        self.scale = scale
        self.quantity = choice("quantity", quantity, (DISPLACEMENT, *STRESSES))
        length = system_length(system, self.states[0])
        parts = [drawn_part(body, length) for body in system.bodies]
        self.parts = [(p, s) for p, s in zip(parts, system.q_slices, strict=True) if p is not None]
        self.surfaces = [DrawnSurface(part.skin) for part, _ in self.parts]
        self._set_limits()
        self._add_peak(run, rows)
        some = np.unique(np.linspace(0, len(rows) - 1, 40).round().astype(int))
        visible = [points for k in some for points in self.points(k)]
        frames = frame_poses(system, self.states[0])[0]
        camera = mechanism_camera(system, self.states[0], np.vstack([frames, *visible]), view)
        self.marks = Marks(run, rows, marks, camera)
        if self.marks.shapes:
            visible += [self.marks.points(k) for k in some]
            camera = mechanism_camera(system, self.states[0], np.vstack(visible), view)
        self.camera = camera

    def _set_limits(self) -> None:
        """Determine the range of the colours, their unit, and the texts that describe them."""
        coloured = [(part, s) for part, s in self.parts if part.has(self.quantity)]
        flexible = any(part.flexible for part, _ in self.parts)
        if flexible and not coloured:
            how = "add the stress of the modes: body.replace(stress=mbd.recovery.skin_stress(...))"
            expected = f"{DISPLACEMENT!r}, because no body has stress at its skin"
            reject("quantity", self.quantity, expected, hint=how)
        limits = [part.limits(self.states[:, s], self.quantity) for part, s in coloured]
        low = min((low for low, _ in limits), default=0.0)
        high = max((high for _, high in limits), default=0.0)
        self.factor, unit = 1e-6, "MPa"
        title = self.quantity + " stress" * ("stress" not in self.quantity)
        if self.quantity == DISPLACEMENT:
            (self.factor, unit), title = scene.unit_of(high), "elastic displacement"
        top = scene.rounded_up(self.factor * high)
        self.limits = (min(0.0, self.factor * low), top) if coloured else None
        averaged = "" if self.quantity == DISPLACEMENT else ", averaged over cells"
        self.title = f"{title}{averaged} ({unit})"
        self.foot = scene.FOOT if coloured else 0.02
        self.note = f", elastic part × {self.scale:g}" if flexible and self.scale != 1 else ""

    def _add_peak(self, run: Solution, rows: NDArray[np.int64]) -> None:
        """Add the peak in single cells to the note: of this instant, or of the run in a film."""
        if self.quantity == DISPLACEMENT:
            return
        states = run.q[rows] if len(rows) == 1 else run.q
        peaks = [part.peak(states[:, s], self.quantity) for part, s in self.parts]
        known = [peak for peak in peaks if peak is not None]
        if known:
            when = "" if len(rows) == 1 else " of the run"
            self.note += f", peak{when} {self.factor * max(known):.4g} MPa in one cell"

    def caption(self, k: int, digits: str = ".4g") -> str:
        """Return the saved time with index k, and the scale factor, as text."""
        return f"t = {1e3 * self.time[k]:{digits}} ms{self.note}"

    def points(self, k: int) -> list[Array]:
        """Return the points of every part at the saved time with index k."""
        return [part.points(self.states[k, s], self.scale) for part, s in self.parts]

    def move(self, k: int) -> None:
        """Move surfaces and marks to their places at an instant."""
        for (part, s), surface, points in zip(
            self.parts, self.surfaces, self.points(k), strict=True
        ):
            values = None
            if part.has(self.quantity):
                values = self.factor * part.values(self.states[k, s], self.quantity)
            surface.move(points, values)
        self.marks.move(k)

    def add_to(self, plotter: Any, *, cmap: str, opacity: float) -> None:
        """Add surfaces and marks at the first instant to a plotter, and a colour bar."""
        self.move(0)
        for (part, _), surface in zip(self.parts, self.surfaces, strict=True):
            if part.has(self.quantity):
                surface.add_to(plotter, limits=self.limits, cmap=cmap)
            elif part.bars or part.flexible:
                surface.add_to(plotter, color=_RIGID_COLOUR)
            else:
                surface.add_glass(plotter, _RIGID_COLOUR, opacity)
        self.marks.add_to(plotter, 0)
        if self.limits is not None:
            scene.add_bar(plotter, self.title, self.limits, cmap)


def system_length(system: System, q: Array) -> float:
    """Return the size of a mechanism from its frames and the origins of its bodies, m."""
    slices = system.q_slices[: len(system.mechanical_bodies)]
    origins = [q[s][:3] for s in slices if s.stop > s.start]
    return length_of(np.vstack([frame_poses(system, q)[0], *origins]))


def mechanism_camera(
    system: System, q: Array, points: Array, view: str | ArrayLike | None
) -> Camera:
    """Return a camera that shows points (np, 3), by default obliquely to the joints' plane."""
    turning = [j.first for j in system.joints if j.kind in ("revolute", "cylindrical")]
    normal = None
    if turning:
        z = frame_poses(system, q)[1][[system.frame_index(frame) for frame in turning], :, 2]
        normal = np.linalg.eigh(z.T @ z)[1][:, -1]
        normal = normal * np.sign(normal[np.argmax(np.abs(normal))])
    up = -system.gravity if system.gravity.any() else None
    return camera_of(points, view, normal=normal, up=up)
