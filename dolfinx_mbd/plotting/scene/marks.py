"""Marks of joints, force elements and supports.

A joint or a load declares its shape as `mark`, a name in `SHAPES`, and the frames or the joint
on which it acts. Loads with the mark `arrow` are drawn as arrows, those without a mark not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.checks import choice
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.scene.description import Frames, Lines, Mark
from dolfinx_mbd.plotting.scene.tubes import SHAPES, STRETCHED, Tube, Z, support

__all__ = ["axes_of_frames", "element_marks", "joint_marks", "supports"]

Array = NDArray[np.float64]


_OVERHANG = 9  # length of a rail beyond the motion, relative to the size of marks
_AXES = 0.06  # length of the axes of frames, relative to the size of the scene


class _Item(NamedTuple):
    """A joint or a load between two frames."""

    name: str
    shape: str
    first: int
    second: int
    is_joint: bool


def _items(system: System) -> Iterator[_Item]:
    """Yield all joints and loads that declare a shape."""
    items: list[tuple[Any, bool]] = [(joint, True) for joint in system.joints]
    items += [(load, False) for load in system.loads]
    for item, is_joint in items:
        shape = choice(f"mark of {item.name!r}", item.mark, ("", "arrow", *SHAPES))
        if shape in SHAPES:
            ends = (item.first, item.second) if is_joint else item.acting_frames(system)
            first, second = map(system.frame_index, ends)
            yield _Item(item.name, shape, first, second, is_joint)


def _travel(item: _Item, frames: Frames, r: float) -> tuple[float, float]:
    """Return the ends of a rail on the z axis of the first frame, long enough for the motion, m."""
    axis = frames.rotation[:, item.first, :, 2]
    distance = frames.position[:, item.second] - frames.position[:, item.first]
    travel = np.einsum("ti,ti->t", axis, distance)
    return float(travel.min() - _OVERHANG * r), float(travel.max() + _OVERHANG * r)


def _mark(item: _Item, group: str, frames: Frames, r: float) -> Mark:
    """Return the mark of a joint or load of size r (m); a rail has the length of its travel."""
    name = f"{group.removesuffix('s')} {item.name}"  # such as "joint crank pin"
    tubes, second = SHAPES[item.shape](r), item.second
    if item.shape == "rail":
        ends = np.outer(_travel(item, frames, r), Z)
        tubes, second = (Tube(ends, np.full(2, 0.25 * r), 12),), item.first
    return Mark(name, group, tubes, item.first, second, item.shape, r)


def joint_marks(system: System, frames: Frames, r: float) -> list[Mark]:
    """Return the marks of all joints, of size r (m)."""
    return [_mark(item, "joints", frames, r) for item in _items(system) if item.is_joint]


def element_marks(system: System, frames: Frames, r: float) -> list[Mark]:
    """Return the marks of all springs, dampers and other force elements, of size r (m)."""
    return [_mark(item, "springs", frames, r) for item in _items(system) if not item.is_joint]


def supports(system: System, frames: Frames, r: float, up: Array) -> list[Mark]:
    """Return a mark at all points of joints and force elements that are fixed to the ground.

    A rail has supports at both ends. The support of an element between two frames has the direction
    of the element at the first instant; the support of a joint points upwards.
    """
    places: list[tuple[Array, Array]] = []
    for item in _items(system):
        ends = frames.position[0, [item.first, item.second]]
        if not item.is_joint and item.shape not in STRETCHED and item.shape != "sleeve":
            continue
        if item.shape == "rail" and frames.fixed[item.first]:
            z = frames.rotation[0, item.first, :, 2]
            places += [(ends[0] + s * z, up) for s in _travel(item, frames, r)]
            continue
        along = ends[1] - ends[0]
        distance = float(np.linalg.norm(along))
        has_direction = not item.is_joint and distance > 2 * r
        for frame, point, sign in ((item.first, ends[0], 1), (item.second, ends[1], -1)):
            if frames.fixed[frame]:
                places.append((point, sign * along / distance if has_direction else up))
    unique = {tuple(np.round(p, 9)): (p, direction) for p, direction in reversed(places)}
    tubes = [tube for p, direction in unique.values() for tube in support(p, direction, r)]
    return [Mark("ground", "ground", tuple(tubes))] if tubes else []


def axes_of_frames(frames: Frames, length: float, r: float) -> list[Lines]:
    """Return the axes of all frames as lines."""
    starts, lines = frames.position, []
    for axis, letter in enumerate("xyz"):
        ends = starts + _AXES * length * frames.rotation[:, :, :, axis]
        points = np.stack([starts, ends], axis=2)
        lines.append(Lines(f"frames {letter}", f"frames {letter}", points, 0.12 * r))
    return lines
