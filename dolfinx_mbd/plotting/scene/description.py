"""The description of a scene: surfaces, lines, marks and arrows over time, and modes.

Instants are indices into the times of a scene. All numbers are in SI units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.plotting.scene.camera import Camera
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.plotting.scene.tubes import (
    SHAPES,
    STRETCHED,
    Tube,
    force_arrow,
    moment_arrow,
    normal_vectors,
)

__all__ = [
    "COLOURS",
    "MARK_SIZE",
    "Arrow",
    "Frames",
    "Lines",
    "Mark",
    "Mode",
    "Scene",
    "value_text",
]

Array = NDArray[np.float64]

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
"""Colours of the groups of marks, lines and arrows."""

_LONGEST = {"N": 0.2, "N m": 0.07}
"""Longest force and radius of the largest moment relative to the size of the scene."""
_INVISIBLE = 0.01
"""Arrows below this fraction of the longest arrow are not drawn."""
_INWARDS = 0.3
"""Smallest cosine of the angle between a vector and the direction to the centre, as a mean over
time, of an arrow that points inwards."""
MARK_SIZE = 0.014
"""Typical size of marks relative to the size of the scene."""


@dataclass(frozen=True, eq=False)
class Frames:
    """Motion of all frames of a mechanism.

    Attributes:
        position: Positions, shape (nt, frames, 3), m.
        rotation: Axes as columns, shape (nt, frames, 3, 3).
        fixed: Whether a frame does not move, shape (frames,).
    """

    position: Array
    rotation: Array
    fixed: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines that move, such as cables.

    Attributes:
        name: Name, unique in the scene.
        group: A key of `COLOURS`.
        points: Points, shape (nt, number of lines, points, 3), m.
        radius: Radius for drawing, m.
    """

    name: str
    group: str
    points: Array
    radius: float

    def tubes(self, k: int) -> list[Tube]:
        """Return the lines at an instant."""
        return [Tube(line, np.full(len(line), self.radius), 8) for line in self.points[k]]


@dataclass(frozen=True, eq=False)
class Mark:
    """A symbol of a joint, a force element or a support.

    Attributes:
        name: Name, unique in the scene.
        group: A key of `COLOURS`.
        tubes: Shape in local coordinates, m; if the mark connects two frames, z from 0 to 1 is the
            way from the first frame to the second.
        first: Index of the frame whose z axis is that of the mark; -1 for global coordinates.
        second: Index of the frame at which the mark is.
        shape: Name of the shape in `SHAPES`, or an empty text.
        size: Size of the shape, m. A mark between frames closer than twice this size is a sleeve.
    """

    name: str
    group: str
    tubes: tuple[Tube, ...]
    first: int = -1
    second: int = -1
    shape: str = ""
    size: float = 0.0

    @property
    def connects(self) -> bool:
        """Whether the mark extends from the first frame to the second."""
        return self.shape in STRETCHED

    def at(self, frames: Frames, k: int) -> list[Tube]:
        """Return the shape at an instant in global coordinates."""
        if self.first < 0:
            return list(self.tubes)
        tubes, origin = self.tubes, frames.position[k, self.second]
        z, length = frames.rotation[k, self.first, :, 2], 1.0
        if self.connects:
            start = frames.position[k, self.first]
            along = origin - start
            distance = float(np.linalg.norm(along))
            if self.shape != "rod" and distance < 2 * self.size:
                tubes, origin = SHAPES["sleeve"](self.size), start + 0.5 * along
            else:
                z, length, origin = along / (distance or 1.0), distance, start
        axes = np.array([*normal_vectors(z), length * z])
        return [Tube(origin + t.points @ axes, t.radii, t.sides) for t in tubes]


@dataclass(frozen=True, eq=False)
class Arrow:
    """A force or a moment.

    Attributes:
        name: Name of the load or the joint.
        group: A key of `COLOURS`.
        unit: N or N m.
        frame: Index of the frame at which it acts; -1 for the resultant of a distributed load.
        points: Points at which it acts, shape (nt, 3), m.
        vectors: Global components, shape (nt, 3).
    """

    name: str
    group: str
    unit: str
    frame: int
    points: Array
    vectors: Array

    @property
    def size(self) -> float:
        """Largest magnitude over time."""
        return float(np.linalg.norm(self.vectors, axis=1).max(initial=0.0))

    def text(self, k: int) -> str:
        """Return the name and value at an instant."""
        return f"{self.name}: {value_text(float(np.linalg.norm(self.vectors[k])), self.unit)}"

    def points_inwards(self, centre: Array) -> bool:
        """Return whether the vectors mostly point to a centre (3,)."""
        outwards = self.points - centre
        sizes = np.linalg.norm(outwards, axis=1) * np.linalg.norm(self.vectors, axis=1)
        return bool(np.einsum("ti,ti->", outwards, self.vectors) < -_INWARDS * sizes.sum())


def value_text(value: float, unit: str) -> str:
    """Return a number with three digits and its unit with a prefix, such as 25.6 kN."""
    factors = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"))
    size = abs(float(f"{value:.3g}"))
    factor, prefix = next((pair for pair in factors if size >= pair[0]), (1.0, ""))
    return f"{value / factor:.3g} {prefix}{unit}"


class Mode(NamedTuple):
    """A small motion about the first instant, the real part of z exp(iφ).

    Attributes:
        title: Text above the picture.
        frequency: Frequency, Hz.
        damping: Damping ratio, or None.
        rigid: Displacements and rotations (in body components) of each surface, (6,) each.
        eta: Elastic coordinates of each surface, shape (n,) each.
        frames: Displacements and rotations of the frames, shape (frames, 6).
        lines: Displacements of the points of each item of `Scene.lines`, shape (nl, points, 3).
    """

    title: str
    frequency: float
    damping: float | None
    rigid: Sequence[Any]
    eta: Sequence[Any]
    frames: Any = ()
    lines: Sequence[Any] = ()


@dataclass(frozen=True, eq=False)
class Scene:
    """What is seen of a body or a mechanism.

    Attributes:
        time: Times, shape (nt,), s.
        surfaces: Surfaces of the bodies.
        camera: Default view of the surfaces and the lines.
        points: Points that the camera sees, shape (n, 3), m.
        frames: Motion of the frames, or None for a body without a mechanism.
        marks: Symbols of joints, force elements and supports.
        lines: Lines such as cables.
        arrows: Forces and moments.
        names: Names of joints with the indices of their frames.
        modes: Modes, shown side by side; empty for a motion.
        gravity: Acceleration of gravity in global components, shape (3,), m/s².
    """

    time: Array
    surfaces: Sequence[Surface]
    camera: Camera
    points: Array
    frames: Frames | None = None
    marks: Sequence[Mark] = ()
    lines: Sequence[Lines] = ()
    arrows: Sequence[Arrow] = ()
    names: Sequence[tuple[str, int]] = ()
    modes: Sequence[Mode] = ()
    gravity: Array = field(default_factory=lambda: np.zeros(3))

    @property
    def length(self) -> float:
        """Size of the scene, m."""
        return self.camera.depth

    @property
    def radius(self) -> float:
        """Typical size of marks, m."""
        return MARK_SIZE * self.length

    @cached_property
    def greatest(self) -> dict[str, float]:
        """Greatest force and greatest moment of the arrows, by unit."""
        sizes = [(arrow.unit, arrow.size) for arrow in self.arrows]
        units = {unit for unit, _ in sizes}
        return {unit: max(size for u, size in sizes if u == unit) for unit in units}

    @cached_property
    def inward(self) -> set[int]:
        """Indices of forces that mostly point to the middle and end at their points of action."""
        arrows = enumerate(self.arrows)
        return {k for k, a in arrows if a.unit == "N" and a.points_inwards(self.camera.centre)}

    def arrow_scale(self, arrow: Arrow) -> float:
        """Return the length of an arrow, or the radius of a moment, per N or N m."""
        return _LONGEST[arrow.unit] * self.length / self.greatest[arrow.unit]

    def arrow_ends(self, index: int, k: int) -> tuple[Array, Array] | None:
        """Return start and vector of an arrow at an instant, m, or None if it is too small."""
        arrow = self.arrows[index]
        if np.linalg.norm(arrow.vectors[k]) <= _INVISIBLE * self.greatest[arrow.unit]:
            return None
        vector = self.arrow_scale(arrow) * arrow.vectors[k]
        start = arrow.points[k]
        if index in self.inward:
            start = start - vector
        return start, vector

    def arrow_tubes(self, index: int, k: int) -> list[Tube]:
        """Return an arrow at an instant; empty if it is too small."""
        ends = self.arrow_ends(index, k)
        if ends is None:
            return []
        shape = force_arrow if self.arrows[index].unit == "N" else moment_arrow
        return list(shape(*ends, self.radius))

    def tubes(self, k: int) -> dict[str, tuple[str, list[Tube]]]:
        """Return group and shape of all marks, lines and arrows at an instant, by name."""
        items = {line.name: (line.group, line.tubes(k)) for line in self.lines}
        for mark in self.marks:
            items[mark.name] = mark.group, mark.at(self.frames, k) if self.frames else []
        for index, arrow in enumerate(self.arrows):
            name = f"{arrow.group}: {arrow.name} ({arrow.unit})"
            items[name] = arrow.group, self.arrow_tubes(index, k)
        return items
