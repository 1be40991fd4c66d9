"""Scenes as JSON objects of a page.

The page draws a surface point at R + A (x + s Ψη), with the scale s of the elastic displacement.
Instants between which interpolation suffices are omitted, and modes of a motion are combined to
few principal ones. All numbers are in SI units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, reject
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.scene.camera import outermost
from dolfinx_mbd.plotting.scene.colours import text_of
from dolfinx_mbd.plotting.scene.description import COLOURS, Arrow, Frames, Mark, Mode, Scene
from dolfinx_mbd.plotting.scene.mechanism_scene import DRAWN, mechanism_scene, system_length
from dolfinx_mbd.plotting.scene.mesh_surfaces import ACCURACY, moving_bodies
from dolfinx_mbd.plotting.scene.mode_scenes import largest_displacements
from dolfinx_mbd.plotting.scene.moving_surface import DISPLACEMENT, Surface
from dolfinx_mbd.plotting.scene.surfaces import body_surfaces
from dolfinx_mbd.plotting.scene.tubes import SHAPES, Tube
from dolfinx_mbd.plotting.viewer.curves import Signals, curves_of
from dolfinx_mbd.plotting.viewer.data import block, continuous, integers, sampled_rows
from dolfinx_mbd.plotting.viewer.ghosts import ghost_surfaces
from dolfinx_mbd.plotting.viewer.principal_modes import rounding_steps, with_principal_modes
from dolfinx_mbd.plotting.viewer.surface_data import SurfaceData
from dolfinx_mbd.results.distributed_rows import local_row
from dolfinx_mbd.results.solution import Solution

__all__ = ["motion_page", "page_scene"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

FRAMES = 1500
"""Largest number of instants in a page."""
OUTERMOST, BLOCK = 40, 64
"""Directions whose outermost points represent a mesh body, and instants that are read together."""
HULL, HULL_INSTANTS = 150, 8
"""Directions and instants that determine the points that are visible when a page opens."""
FEWEST, NUMBERS = 50, 50_000_000
"""Least limit of the instants if bodies on large meshes move, and largest size of their motion."""
PIXEL = 0.5 / 1000
"""Permitted error of positions relative to the scene: half a pixel in a view of 1000 pixels."""
AMPLITUDE_ERROR = 1 / 300
"""Permitted error of elastic displacements and stresses relative to the body's largest ones."""
ROUNDING = 1e-3
"""Permitted error of displacements and stresses by rounding of modes, relative to the largest."""
NEGLIGIBLE = 1e-3
"""Modes are omitted below this fraction of the largest displacement and of the largest stress."""


def motion_page(
    run: Solution,
    *,
    signals: Signals = None,
    field: Mapping[str, ArrayLike] | None = None,
    quantity: str = DISPLACEMENT,
    ghost: Solution | None = None,
    view: str | ArrayLike | None = None,
) -> dict[str, Any]:
    """Return the page of a simulated motion.

    Args:
        run: Result of a simulation.
        signals: Curves by label; see `curves_of`.
        field: Constant values at the points of the skin of flexible bodies, by name of the body.
        quantity: Quantity that determines the colours; see `mesh_surfaces`.
        ghost: A second run, whose bodies are drawn transparent at the same times.
        view: Direction from which the scene is seen at first; see `camera_of`.
    """
    length = system_length(run.system, local_row(run.q, 0))
    values = _checked_field(run.system, field or {})
    ghosts = [] if ghost is None else ghost_surfaces(ghost, run.time, length)
    original = [*body_surfaces(run.system, run.q, length, values), *ghosts]  # ghosts are last
    surfaces = with_principal_modes(original, AMPLITUDE_ERROR)
    ghosts = surfaces[len(surfaces) - len(ghosts) :]
    curves = _curves(run, surfaces, _kept_modes(surfaces), length)
    points = sum(len(body.drawing.points) for body, _ in moving_bodies(run.system))
    per_point = 9  # a displacement and the six components of the stress
    limit = min(FRAMES, max(FEWEST, NUMBERS // max(per_point * points, 1)))
    rows = sampled_rows(run.time, curves, limit=limit)
    kinds = (*DRAWN, "joint forces") if len(run) > 1 else DRAWN
    options: dict[str, Any] = {"values": values, "quantity": quantity, "accuracy": ACCURACY}
    scene = mechanism_scene(run, rows, kinds, view=view, **options)
    # The scene has mesh bodies too, already at the chosen instants
    combined = {surface.name: surface for surface in surfaces[: len(surfaces) - len(ghosts)]}
    all_times = [combined.get(surface.name, surface) for surface in scene.surfaces] + ghosts
    drawn = [surface.at(rows) if surface in surfaces else surface for surface in all_times]
    page = page_scene(replace(scene, surfaces=drawn), _kept_modes(all_times))
    exact = {surface.name: surface for surface in original}
    for item, surface in zip(page["bodies"], all_times, strict=True):
        if surface in ghosts:
            item |= {"ghost": True, "ranges": {}}
            continue
        surface = exact.get(surface.name, surface)
        if page["parts"][item["part"]]["stress"] is not None:
            _, item["ranges"]["stress"] = surface.limits("von Mises")
            item["peak"] = surface.peak("von Mises")
    return {**page, "signals": curves_of(run, signals, FRAMES)}


def page_scene(scene: Scene, modes: Sequence[Index] | None = None) -> dict[str, Any]:
    """Return a scene as a JSON object.

    Args:
        scene: The scene.
        modes: Indices of the modes to keep for each surface; by default all.
    """
    if modes is None:
        modes = [np.arange(len(surface.skin.modes)) for surface in scene.surfaces]
    parts = _Parts({} if scene.modes else rounding_steps(scene.surfaces, ROUNDING))
    pairs = zip(scene.surfaces, modes, strict=True)
    bodies = [_body(surface, rows, parts, bool(scene.modes)) for surface, rows in pairs]
    camera, points = scene.camera, scene.points
    page = {
        "kind": "modes" if scene.modes else "motion",
        "time": block(scene.time, "f8"),
        "centre": (0.5 * (points.min(axis=0) + points.max(axis=0))).tolist(),
        "length": scene.length,
        "hull": _hull(scene),
        "towards": camera.towards.tolist(),
        "up": camera.up.tolist(),
        "quantities": {DISPLACEMENT: text_of(DISPLACEMENT), "stress": text_of("von Mises")},
        "parts": parts.items,
        "bodies": bodies,
        **_marks(scene),
    }
    if scene.modes:
        page["views"] = [_view(mode) for mode in scene.modes]
    return page


# ---- surfaces -----------------------------------------------------------------------------------
class _Parts:
    """Surfaces of a page, each stored once even if several bodies share it."""

    def __init__(self, steps: Mapping[int, Sequence[Array]]) -> None:
        self._steps = steps  # to which modes are rounded, by the identity of the skin
        self.items: list[dict[str, Any]] = []
        self._index: dict[Any, int] = {}

    def index(self, surface: Surface, modes: Index) -> int:
        """Return the index of a surface with some of its modes; store it at the first call."""
        skin = surface.skin
        key = surface.name if surface.values is not None else (id(skin), tuple(modes))
        if key not in self._index:
            self._index[key] = len(self.items)
            known = surface.stress is not None and len(modes)
            stress = np.moveaxis(surface.stress.stress, (2, 1, 0), (0, 1, 2)) if known else None  # type: ignore[union-attr]
            values, data = surface.values, SurfaceData(skin)
            steps = [step[modes] for step in self._steps.get(id(skin), [np.zeros(len(skin.modes))])]
            item = {
                "points": data.points(),
                "triangles": data.triangles(),
                "modes": data.fields(skin.modes[modes], steps[0]) if len(modes) else None,
                "stress": None if stress is None else data.fields(stress[modes], steps[-1]),
                "field": None if values is None else block(values),
            }
            self.items.append(item)
        return self._index[key]


def _body(surface: Surface, modes: Index, parts: _Parts, at_rest: bool) -> dict[str, Any]:
    """Return the name, the surface, the motion and the ranges of the colours of a body."""
    item: dict[str, Any] = {
        "name": surface.name,
        "part": parts.index(surface, modes),
        "position": block(surface.position),
        "rotation": block(continuous(surface.rotation)),
        "eta": block(surface.eta[:, modes]),
        "bars": surface.bars,
        "ranges": {},
    }
    if surface.values is not None:
        item["ranges"]["field"] = float(surface.values.max())
    if len(modes) and not at_rest:
        _, item["ranges"]["displacement"] = surface.limits(DISPLACEMENT)
    return item


def _kept_modes(surfaces: Sequence[Surface]) -> list[Index]:
    """Return the indices of the modes that contribute to a motion, for each surface.

    Bodies with the same skin have the same list, so that the page stores the modes once.
    """
    union: dict[int, Index] = {}
    for surface in surfaces:
        skin, modes = id(surface.skin), surface.skin.modes
        amplitudes = np.abs(surface.eta).max(axis=0, initial=0.0)
        magnitudes = [amplitudes * largest_displacements(modes)]
        if surface.stress is not None:
            magnitudes.append(amplitudes * np.abs(surface.stress.stress).max(axis=(0, 1)))
        significant = [size > NEGLIGIBLE * size.max(initial=0.0) for size in magnitudes]
        selected = np.flatnonzero(np.any(significant, axis=0))
        if len(surface.eta) == 1:  # scenes of modes animate amplitudes that one state does not have
            selected = np.arange(len(modes))
        union[skin] = np.union1d(union.get(skin, selected), selected).astype(np.int64)
    return [union[id(surface.skin)] for surface in surfaces]


def _curves(
    run: Solution, surfaces: Sequence[Surface], modes: Sequence[Index], length: float
) -> Array:
    """Return the motion of all bodies in units of the permitted errors, shape (nt, n)."""
    names = {surface.name for surface in surfaces}
    curves: list[Any] = [np.zeros((len(run), 0))]
    for body, s in moving_bodies(run.system):
        names.add(body.name)
        points = outermost(body.drawing.points, OUTERMOST)
        starts = range(0, len(run), BLOCK)
        parts = [body.surface(run.q[k : k + BLOCK, s])[:, points] for k in starts]
        curves.append(np.concatenate(parts).reshape(len(run), -1) / (PIXEL * length))
    for body, s in zip(run.system.mechanical_bodies, run.system.q_slices, strict=False):
        if body.name not in names:
            curves.append(run.q[:, s] / (PIXEL * length))
    for surface, indices in zip(surfaces, modes, strict=True):
        radius = np.linalg.norm(surface.skin.points, axis=1).max(initial=0.0)
        rotations = 2 * radius * continuous(surface.rotation)  # a quaternion has half the angle
        curves += [surface.position / (PIXEL * length), rotations / (PIXEL * length)]
        if len(indices):
            eta = surface.eta[:, indices] * largest_displacements(surface.skin.modes[indices])
            curves.append(eta / (AMPLITUDE_ERROR * np.abs(eta).max(initial=0.0) or 1.0))
    return np.hstack(curves)


def _checked_field(system: System, field: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return the values of a field by body; raise an error if a value does not fit."""
    values = {}
    flexible = [body for body in system.bodies if hasattr(body, "reduced")]
    skins = {body.name: body.reduced.skin for body in flexible}
    skins |= {body.name: body.drawing for body, _ in moving_bodies(system)}
    for name, numbers in field.items():
        skin = skins[choice("field: name of a flexible body", name, skins)]
        if skin is None:
            raise InputError(f"field: body {name!r} has no skin", argument="field", value=name)
        values[name] = array(f"field of body {name!r}", numbers, (len(skin.points),))
        if values[name].min() < 0:
            reject(f"field of body {name!r}", numbers, "values that are not negative")
    return values


# ---- marks --------------------------------------------------------------------------------------
def _marks(scene: Scene) -> dict[str, Any]:
    """Return marks, lines and arrows with the motion of their frames."""
    known: dict[str, int] = {}
    tables: list[dict[str, Any]] = []

    def numbers_of(tubes: Sequence[Tube]) -> list[int]:
        """Return the indices of tubes, each of which the page stores once."""
        indices = []
        for table in map(_tube, tubes):
            key = repr(table)
            if key not in known:
                known[key] = len(tables)
                tables.append(table)
            indices.append(known[key])
        return indices

    def item(mark: Mark) -> dict[str, Any]:
        """Return a mark with the indices of its tubes and frames."""
        shape = {"name": mark.name, "group": mark.group, "shape": numbers_of(mark.tubes)}
        if mark.first < 0:
            return shape
        ends: dict[str, Any] = {"first": mark.first, "second": mark.second}
        if mark.connects and mark.shape != "rod":
            ends |= {"size": mark.size, "sleeve": numbers_of(SHAPES["sleeve"](mark.size))}
        return shape | ends | {"connects": mark.connects}

    marks = [item(mark) for mark in scene.marks]
    arrows = [_arrow(scene, k, arrow) for k, arrow in enumerate(scene.arrows)]
    used = {m[end] for m in marks for end in ("first", "second") if end in m}
    used |= {arrow.frame for arrow in scene.arrows if arrow.frame >= 0}
    groups = {mark.group for mark in scene.marks} | {line.group for line in scene.lines}
    groups |= {arrow.group for arrow in scene.arrows}
    return {
        "frames": [] if scene.frames is None else _frames(scene.frames, sorted(used)),
        "tubes": tables,
        "marks": marks,
        "lines": [
            {
                "name": line.name,
                "group": line.group,
                "radius": line.radius,
                "count": line.points.shape[2],
                "points": block(line.points[:, k]),
            }
            for line in scene.lines
            for k in range(line.points.shape[1])
        ],
        "arrows": arrows,
        "colours": {group: colour for group, colour in COLOURS.items() if group in groups},
    }


def _tube(tube: Tube) -> dict[str, Any]:
    """Return a tube with numbers of four digits; equal radii are stored once."""
    points, radii = ([float(f"{x:.4g}") for x in v.ravel()] for v in (tube.points, tube.radii))
    radii = radii[:1] if len(set(radii)) == 1 else radii
    return {"points": points, "radii": radii, "sides": tube.sides}


def _frames(frames: Frames, used: list[int]) -> list[dict[str, Any]]:
    """Return positions and z axes of frames; those of the ground have one instant."""
    items = []
    for f in used:
        rows = slice(0, 1) if frames.fixed[f] else slice(None)
        position, axis = frames.position[rows, f], frames.rotation[rows, f, :, 2]
        items.append({"index": f, "position": block(position), "axis": block(axis)})
    return items


def _arrow(scene: Scene, k: int, arrow: Arrow) -> dict[str, Any]:
    """Return an arrow; `scale` is its length (of moments: its radius), m, per N or N m."""
    item = {
        "name": arrow.name,
        "group": arrow.group,
        "unit": arrow.unit,
        "frame": arrow.frame,
        "vectors": integers(arrow.vectors),
        "scale": scene.arrow_scale(arrow),
        "inward": k in scene.inward,
    }
    return item if arrow.frame >= 0 else {**item, "points": block(arrow.points)}


# ---- modes and the view -------------------------------------------------------------------------
def _view(mode: Mode) -> dict[str, Any]:
    """Return one mode of a page."""
    view: dict[str, Any] = {"title": mode.title, "frequency": mode.frequency}
    if mode.damping is not None:
        view["damping"] = mode.damping
    view["bodies"] = [
        {"rigid": _complex(rigid), "eta": _complex(eta)}
        for rigid, eta in zip(mode.rigid, mode.eta, strict=True)
    ]
    view["frames"] = [_complex(frame) for frame in mode.frames]
    view["lines"] = [_complex(line.ravel()) for lines in mode.lines for line in lines]
    return view


def _complex(values: Any) -> list[list[float]]:
    """Return the real and the imaginary parts of complex numbers."""
    return [np.real(values).tolist(), np.imag(values).tolist()]


def _hull(scene: Scene) -> list[list[float]]:
    """Return the outermost points of the bodies and of the marks that are visible at the start."""
    points, hidden = [scene.points], {"joint forces"}
    for k in np.unique(np.linspace(0, len(scene.time) - 1, HULL_INSTANTS).round().astype(int)):
        tubes = scene.tubes(k).values()
        points += [tube.points for group, item in tubes if group not in hidden for tube in item]
    candidates = np.vstack(points)
    hull = candidates[outermost(candidates, HULL)]
    return [[float(f"{x:.5g}") for x in point] for point in hull]
