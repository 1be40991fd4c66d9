"""Scenes of the player as JSON objects: surfaces, motions, marks and curves.

A surface point is drawn at R + A (x + s Ψη), with the scale s of the elastic displacement. Modes
that do not contribute to a motion are omitted. All numbers are in SI units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import ReducedBody, Skin
from dolfinx_mbd.checks import array, choice, reject
from dolfinx_mbd.dynamics.start.consistent_state import consistent_state
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.bodies import FlexibleBody
from dolfinx_mbd.mechanism.protocol import Body
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.scenes.arrows import frame_histories
from dolfinx_mbd.plotting.scenes.bodies import skin_of, stress_on_skin
from dolfinx_mbd.plotting.scenes.mechanism import drawn_part, mechanism_camera, system_length
from dolfinx_mbd.plotting.scenes.scene import camera_of, length_of
from dolfinx_mbd.plotting.viewer.data import block, continuous, integers, sampled_rows
from dolfinx_mbd.plotting.viewer.marks import Signals, cable_lines, marks_of, signal_curves
from dolfinx_mbd.results.histories import rotation_matrices
from dolfinx_mbd.results.solution import Solution

__all__ = [
    "body_scene",
    "modes_scene",
    "motion_scene",
    "system_scene",
    "whirl_title",
]

Array = NDArray[np.float64]

FRAMES = 1500
"""Largest number of instants in a page."""
PIXEL = 0.5 / 1000
"""Permitted error of positions relative to the scene: half a pixel in a view of 1000 pixels."""
AMPLITUDE_ERROR = 1 / 300
"""Permitted error of elastic displacements relative to the body's largest displacement."""
NEGLIGIBLE = 1e-3
"""Modes are omitted if they contribute less than this fraction of the largest displacement."""
MODE_AMPLITUDE = 0.06
"""Largest displacement of a mode shape relative to the size of the scene."""


@dataclass
class _Surfaces:
    """Surfaces of a page, each stored once even if several bodies share it."""

    parts: list[dict[str, Any]] = field(default_factory=list)
    _index: dict[Any, int] = field(default_factory=dict)

    def add(
        self,
        key: Any,
        points: Array,
        triangles: Any,
        modes: Array,
        stress: Any = None,
        field: Any = None,
    ) -> int:
        """Return the index of the surface with a `key`; store the surface at the first call."""
        if key not in self._index:
            self._index[key] = len(self.parts)
            self.parts.append(
                {
                    "points": block(points),
                    "triangles": block(triangles, "u4"),
                    "modes": integers(modes) if len(modes) else None,
                    "stress": None if stress is None or not len(modes) else integers(stress),
                    "field": None if field is None else block(field),
                }
            )
        return self._index[key]


def body_scene(body: ReducedBody, modes: list[int]) -> dict[str, Any]:
    """Return the scene that shows modes of a body side by side."""
    skin = skin_of(body)
    views = [
        {
            "title": f"{number + 1}: {body.modes[number].label}",
            "frequency": body.modes[number].frequency,
        }
        for number in modes
    ]
    return modes_scene(body.name, skin, skin.modes[modes], views, _skin_stress(body, modes))


def modes_scene(
    name: str, skin: Skin, shapes: Any, views: list[dict[str, Any]], stress: Array | None = None
) -> dict[str, Any]:
    """Return the scene that shows real or complex shapes of a surface side by side.

    Args:
        name: Name of the body.
        skin: The surface at rest.
        shapes: Modes z at its points, shape (m, ns, 3); the view shows Re(z exp(iφ)).
        views: Title, frequency (Hz) and, optionally, damping ratio of each mode.
        stress: Stress of each real mode, shape (m, ns, 6), or None.
    """
    surfaces, length = _Surfaces(), length_of(skin.points)
    m, waves = len(shapes), np.iscomplexobj(shapes)
    parts = np.concatenate([shapes.real, shapes.imag]) if waves else shapes
    part = surfaces.add(0, skin.points, skin.triangles, parts, stress)
    sizes = largest_displacements(np.abs(shapes))
    for k, view in enumerate(views):
        eta = np.zeros(len(parts), dtype=complex)
        eta[k] = MODE_AMPLITUDE * length / (sizes[k] or 1.0)
        if waves:
            eta[m + k] = 1j * eta[k]
        view["bodies"] = [increment(np.zeros(6), eta)]
    item = _body_item(name, part, np.zeros((1, 3)), _identity(1), np.zeros((1, len(parts))))
    return {
        **_frame_of(camera_of(skin.points, None), skin.points),
        "kind": "modes",
        "time": block([0.0], "f8"),
        "parts": surfaces.parts,
        "bodies": [item],
        "views": views,
    }


def whirl_title(number: int, whirl: float) -> str:
    """Return the title of a mode with its whirl (1 for forward circles)."""
    sense = "forward whirl" if whirl > 0 else "backward whirl"
    return f"mode {number + 1}" + (f": {sense}" if abs(whirl) > 0.1 else "")


def system_scene(system: System) -> dict[str, Any]:
    """Return the scene of an assembled mechanism at rest."""
    return motion_scene(Solution(system, [consistent_state(system, 0.0)]), signals={})


def motion_scene(
    run: Solution, *, signals: Signals, field: Mapping[str, ArrayLike] | None = None
) -> dict[str, Any]:
    """Return the scene of a simulated motion.

    Args:
        run: Result of a simulation.
        signals: Curves by label, shape (nt,) each, or None for the magnitudes of joint forces.
        field: Constant values at the points of the skin of flexible bodies, by name of the body.
    """
    values = _checked_field(run.system, field or {})
    system, surfaces = run.system, _Surfaces()
    length = system_length(system, run.q[0])
    numbers = _kept_modes(run)
    rows = sampled_rows(run.time, _curves(run, numbers, length), limit=FRAMES)
    q = run.q[rows]
    bodies = [
        _part_with_motion(body, q[:, s], numbers[k], surfaces, length, values.get(body.name))
        for k, body, s in _body_numbers(system)
    ]
    for (_, body, s), item in zip(_body_numbers(system), bodies, strict=True):
        if item is not None and surfaces.parts[item["part"]]["stress"] is not None:
            _add_stress_range(item, body, run.q[:, s])
    shown = [item for item in bodies if item is not None]
    lines = cable_lines(run, rows)
    corners = np.vstack(
        [item.pop("corners") for item in shown]
        + [line[:: max(1, len(rows) // 50)].reshape(-1, 3) for line in lines.values()]
        + [frame_histories(system, q[:1])[0][0]]
    )
    camera = mechanism_camera(system, q[0], corners, None)
    return {
        **_frame_of(camera, corners),
        "kind": "motion",
        "time": block(run.time[rows], "f8"),
        "parts": surfaces.parts,
        "bodies": shown,
        "cables": [
            {"name": name, "count": line.shape[1], "points": block(line)}
            for name, line in lines.items()
        ],
        "signals": signal_curves(run, signals),
        **marks_of(run, rows),
    }


# ---- bodies -------------------------------------------------------------------------------------
def _body_numbers(system: System) -> list[tuple[int, Body, slice]]:
    bodies = system.mechanical_bodies
    slices = system.q_slices[: len(bodies)]
    return [(k, body, s) for k, (body, s) in enumerate(zip(bodies, slices, strict=True))]


def _kept_modes(run: Solution) -> dict[int, NDArray[np.int64]]:
    """Return the indices of the elastic coordinates that contribute to a motion, by body.

    Bodies with the same surface have the same list of coordinates, so that the page stores the
    modes once.
    """
    union: dict[int, NDArray[np.int64]] = {}
    skins = {}
    for k, body, s in _body_numbers(run.system):
        skin = body.reduced.skin if isinstance(body, FlexibleBody) else None
        if skin is None or not len(skin.modes):
            continue
        share = np.abs(run.q[:, s][:, 7:]).max(axis=0) * largest_displacements(skin.modes)
        some = np.flatnonzero(share > NEGLIGIBLE * share.max(initial=0.0))
        every = np.arange(len(skin.modes))
        skins[k] = id(skin)
        union[id(skin)] = np.union1d(union.get(id(skin), []), every if len(run) == 1 else some)
    none = np.zeros(0, dtype=np.int64)
    return {
        k: union[skins[k]].astype(np.int64) if k in skins else none
        for k in range(len(run.system.bodies))
    }


def largest_displacements(modes: Array) -> Array:
    """Return the largest displacement of each mode (m, ns, 3), shape (m,)."""
    return np.asarray(np.sqrt((modes**2).sum(axis=2).max(axis=1, initial=0.0)))


def _curves(run: Solution, numbers: Mapping[int, NDArray[np.int64]], length: float) -> Array:
    """Return the motion of all bodies in units of the permitted errors, shape (nt, n)."""
    curves: list[Any] = []
    for k, body, s in _body_numbers(run.system):
        q = run.q[:, s]
        part = drawn_part(body, length)
        if part is None:
            curves.append(q / (PIXEL * length) if q.shape[1] else q)
            continue
        radius = np.linalg.norm(part.skin.points, axis=1).max(initial=0.0)
        turns = 2 * radius * continuous(q[:, 3:7])
        curves += [q[:, :3] / (PIXEL * length), turns / (PIXEL * length)]
        if len(numbers[k]):
            eta = q[:, 7 + numbers[k]] * largest_displacements(part.skin.modes[numbers[k]])
            greatest = np.abs(eta).max(initial=0.0)
            curves.append(eta / (AMPLITUDE_ERROR * greatest or 1.0))
    return np.hstack(curves)


def _checked_field(system: System, field: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """Return the values of a field by body; raise an error if a value does not fit."""
    values = {}
    skins = {b.name: b.reduced.skin for b in system.bodies if isinstance(b, FlexibleBody)}
    for name, numbers in field.items():
        skin = skins[choice("field: name of a flexible body", name, skins)]
        if skin is None:
            raise InputError(f"field: body {name!r} has no skin", argument="field", value=name)
        values[name] = array(f"field of body {name!r}", numbers, (len(skin.points),))
        if values[name].min() < 0:
            reject(f"field of body {name!r}", numbers, "values that are not negative")
    return values


def _part_with_motion(
    body: Body,
    q: Array,
    numbers: NDArray[np.int64],
    surfaces: _Surfaces,
    length: float,
    field: Array | None = None,
) -> dict[str, Any] | None:
    """Return one body of a scene with its motion (nt, nq), or None if it is not drawn."""
    part = drawn_part(body, length)
    if part is None:
        return None
    stress: Array | None = None
    key: Any = body.name
    if isinstance(body, FlexibleBody) and len(numbers):
        stress = _skin_stress(body.reduced, numbers)
        key = (id(body.reduced.skin), tuple(numbers))
    if field is not None:
        key = body.name
    modes = part.skin.modes[numbers] if len(numbers) else np.zeros((0, len(part.skin.points), 3))
    index = surfaces.add(key, part.skin.points, part.skin.triangles, modes, stress, field)
    item = _body_item(body.name, index, q[:, :3], continuous(q[:, 3:7]), q[:, 7 + numbers])
    item["bars"] = part.bars
    item["ranges"] = {} if field is None else {"field": float(field.max())}
    if len(numbers):
        item["ranges"]["displacement"] = _largest_displacement(modes, q[:, 7 + numbers])
    item["corners"] = _corners(part.skin.points, q)
    return item


def _add_stress_range(item: dict[str, Any], body: Body, q: Array) -> None:
    """Add the greatest stress of a motion (nt, nq): averaged over cells, and in one cell."""
    stress = body.reduced.stress if isinstance(body, FlexibleBody) else None
    if stress is not None:
        item["ranges"]["stress"] = float(stress.envelope("von Mises", q[:, 7:]).value.max())
        item["peak"] = stress.peak("von Mises", q[:, 7:])


def _body_item(
    name: str, part: int, position: Array, rotation: Array, eta: Array
) -> dict[str, Any]:
    return {
        "name": name,
        "part": part,
        "position": block(position),
        "rotation": block(rotation),
        "eta": block(eta),
    }


def _largest_displacement(modes: Array, eta: Array) -> float:
    """Return the largest displacement (m) during a motion, computed in blocks of instants."""
    flat, most = modes.reshape(len(modes), -1), 0.0
    for start in range(0, len(eta), 64):
        field = (eta[start : start + 64] @ flat).reshape(-1, 3)
        most = max(most, float((field**2).sum(axis=1).max(initial=0.0)))
    return most**0.5


def _skin_stress(body: ReducedBody, modes: Any) -> Array | None:
    """Return the stress of modes at the nodes of the skin, shape (m, ns, 6), if it is known."""
    stress = stress_on_skin(body)
    return None if stress is None else np.moveaxis(stress.stress[:, :, modes], (2, 1, 0), (0, 1, 2))


def _corners(points: Array, q: Array) -> Array:
    """Return corners of boxes around a surface at some instants of a motion, shape (n, 3)."""
    low, high = points.min(axis=0), points.max(axis=0)
    box = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (high - low) + low
    some = q[:: max(1, len(q) // 50)]
    corners = np.einsum("tij,pj->tpi", rotation_matrices(some[:, 3:7]), box)
    return np.asarray((some[:, None, :3] + corners).reshape(-1, 3))


def _identity(count: int) -> Array:
    return np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))


def _frame_of(camera: Any, points: Array) -> dict[str, Any]:
    """Return centre, size and view of a scene."""
    low, high = points.min(axis=0), points.max(axis=0)
    return {
        "centre": (0.5 * (low + high)).tolist(),
        "length": float(np.linalg.norm(high - low)) or 1.0,
        "hull": _extreme_points(points).tolist(),
        "towards": camera.towards.tolist(),
        "up": camera.up.tolist(),
    }


def _extreme_points(points: Array) -> Array:
    """Return the outermost points in 300 evenly distributed directions."""
    k = np.arange(300)
    z, angle = 1 - (2 * k + 1) / 300, np.pi * (1 + 5**0.5) * k  # spiral of Fibonacci
    ring = np.sqrt(1 - z**2)
    directions = np.stack([ring * np.cos(angle), ring * np.sin(angle), z])
    return np.asarray(points[np.unique((points @ directions).argmax(axis=0))])


# ---- small motions ------------------------------------------------------------------------------
def real_and_imaginary(values: Any) -> list[list[float]]:
    """Return the real and the imaginary parts of complex numbers."""
    return [np.real(values).tolist(), np.imag(values).tolist()]


def increment(rigid: Any, eta: Any) -> dict[str, Any]:
    return {"rigid": real_and_imaginary(rigid), "eta": real_and_imaginary(eta)}
