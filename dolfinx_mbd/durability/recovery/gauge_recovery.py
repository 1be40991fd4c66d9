"""Virtual strain gauges: strains along short lines on the surface of a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from dolfinx import fem
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import StrainGauge
from dolfinx_mbd.checks import array, choice, instance, length, metres, name, vector
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem import compat
from dolfinx_mbd.fem.assembly import in_space
from dolfinx_mbd.fem.fields import POINT_TOLERANCE, material_points, surface_skin
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.reduction.result import MESH_HINT, Reduction

__all__ = ["GaugeSpec", "gauges"]

Array = NDArray[np.float64]

ANGLES = {"single": (0.0,), "rectangular": (0.0, 45.0, 90.0), "delta": (0.0, 60.0, 120.0)}
"""Angles of the grids of each kind of gauge, counterclockwise from outside, degrees."""

STEPS = 16  # straight pieces of a line from the centre of a grid to each of its ends
TOLERANCE = 0.01  # default distance from the surface / size of the body
TOUCHING = 1e-6  # distance of a triangle that touches a point / size of the body
FLAT = np.cos(np.deg2rad(30.0))  # at an edge, a normal differs by more than 30° from the mean
TANGENTIAL = 0.5  # smallest tangential part of a direction: 60° from the surface
BEND = 0.5  # largest distance of the end of a step from the surface / step: a bend by 30°
CURVED = 0.01  # distance between triangles and curved faces / size of the body
STEP = 1e-4  # largest displacement of the surface in a difference quotient / size of the body
PULL_BACKS = 4  # iterations that map points of the moved mesh to points of the mesh
# Weights of the values at these multiples of the step in a difference quotient of fourth order
WEIGHTS = {-2: 1 / 12, -1: -8 / 12, 1: 8 / 12, 2: -1 / 12}


@dataclass(frozen=True, eq=False)
class GaugeSpec:
    """Place, direction, length and kind of a strain gauge.

    Attributes:
        position: Centre of the grids, shape (3,), m or with units, or the name of a point of the
            body. It is moved to the nearest point of the surface.
        direction: Direction of the first grid in body axes, shape (3,). Its part in the surface is
            used. It must be within 60° of the surface.
        length: Length of a grid, m, or a text with a unit, such as ``3mm``.
        kind: ``single``: one grid. ``rectangular``: three grids at 0°, 45° and 90°. ``delta``:
            three grids at 0°, 60° and 120°. Angles are counterclockwise if you look at the surface
            from outside. All grids have the same centre.

    Raises:
        InputError: A value is invalid.

    Example:
        >>> mbd.durability.GaugeSpec((0.1, 0.01, 0.01), (1, 0, 0), "3mm", "delta").length
        0.003
    """

    position: ArrayLike | str
    direction: ArrayLike
    length: float | str
    kind: Literal["single", "rectangular", "delta"] = "single"

    __repr__ = short_repr

    def __post_init__(self) -> None:
        position, direction = self.position, vector("direction", self.direction)
        if not direction.any():
            raise InputError("direction must not be zero", argument="direction", value=direction)
        if isinstance(position, str):
            name("position", position)
        else:
            expected = "three numbers in m (two in the plane), or the name of a point"
            position = array("position", metres(position), (None,), expected=expected)
            if len(position) not in (2, 3):
                raise InputError(
                    f"position must be {expected}; got {len(position)} numbers",
                    argument="position",
                    value=position,
                )
            position = in_space(position)
        choice("kind", self.kind, ANGLES)
        values = {"position": position, "direction": direction / np.linalg.norm(direction)}
        values["length"] = length("length", self.length)
        for key, value in values.items():
            object.__setattr__(self, key, value)


class _AttachedGauge(NamedTuple):
    """A gauge on the surface, without its strain per mode; see `StrainGauge`."""

    name: str
    position: Array
    normal: Array
    directions: Array
    length: float


def gauges(
    reduction: Reduction,
    gauges: Mapping[str, GaugeSpec],
    *,
    tolerance: float | str | None = None,
) -> Reduction:
    """Attach strain gauges and rosettes to a body.

    The strain of a grid is its elongation divided by its length. This is exactly the average of the
    strain along the grid. The grid follows a curved surface. The gauges are saved with the body,
    so that a body without its mesh still has them. They measure the strain of the modes, without
    static correction and without prestress.

    Args:
        reduction: The reduced body with its mesh.
        gauges: Places of the gauges by name.
        tolerance: Largest distance of a position from the surface, m; by default 1 % of the
            diagonal of the bounding box of the body.

    Returns:
        The reduction with a body that also has these gauges; see `ReducedBody.gauge` and
        `Solution.gauge`.

    Raises:
        InputError: A position is too far from the surface or on an edge, a direction is normal to
            the surface, a grid extends beyond the surface, or a name is in use.

    Note: Collective. The result does not depend on the number of ranks.

    Example:
        >>> top = mbd.durability.GaugeSpec(
        ...     (0.1, 0.01, 0.01), (1, 0, 0), length=5e-3, kind="rectangular"
        ... )
        >>> with_gauges = mbd.gauges(bar, {"top": top})
        >>> with_gauges.body.gauge("top").history(eta).strain.shape
        (1, 3)
    """
    body, space = instance("reduction", reduction, Reduction, MESH_HINT).body, reduction.space
    instance("gauges", gauges, Mapping)
    skin = body.skin or surface_skin(space, np.zeros((len(reduction.modes), 0)))
    surface = _Surface(skin.points[skin.triangles], float(np.linalg.norm(np.ptp(skin.points, 0))))
    limit = TOLERANCE * surface.size if tolerance is None else length("tolerance", tolerance)
    placed = {}
    for label, spec in gauges.items():
        instance(f"gauge {name('every name of gauges', label)!r}", spec, GaugeSpec)
        named = isinstance(spec.position, str)
        placed[label] = body.point(spec.position).position if named else spec.position
    attached, lines = _attached(surface, gauges, placed, limit)
    new = _strain_gauges(attached, _mean_strains(space, reduction.modes, lines))
    return replace(reduction, body=body.replace(gauges=(*body.gauges, *new)))


def gauge_derivatives(
    reduction: Reduction, changes: Array, velocity: Array | None
) -> tuple[StrainGauge, ...]:
    """Return the derivatives of the gauges of a body with respect to a parameter.

    The gauges keep their lengths and the directions of their first grids; their centres move with
    the body. The lines along the grids follow the moved surface, and differences of fourth order
    differentiate them.

    Args:
        reduction: The reduction.
        changes: Derivatives of the modes, shape (owned dofs, n).
        velocity: Velocity of the nodes, shape (owned blocks, dim), or None if no node moves.

    Returns:
        Derivatives of positions, normals, directions and modes, with the lengths of the gauges.

    Note: Collective.
    """
    body, space = reduction.body, reduction.space
    if not body.gauges:
        return ()
    specs = {g.name: _spec_of(g) for g in body.gauges}
    centres = {g.name: g.position for g in body.gauges}
    if velocity is None:
        modes = gauges(replace(reduction, modes=changes, body=body.replace(gauges=())), specs)
        zero = np.zeros(3)
        return tuple(
            replace(g, position=zero, normal=zero, directions=np.zeros_like(g.directions))
            for g in modes.body.gauges
        )
    # The velocity takes the place of a single mode, whose values at points are displacements
    # of these points per unit of the parameter
    V = np.asfortranarray(velocity.reshape(-1, 1))
    skin = surface_skin(space, V)
    rates, size = skin.modes[0], float(np.linalg.norm(np.ptp(skin.points, 0)))
    shifts = {p.name: p.modes[0] for p in material_points(space, V, centres, CURVED)}
    step = STEP * size / np.abs(rates).max()
    _, undeformed_lines = _attached(
        _Surface(skin.points[skin.triangles], size), specs, centres, size
    )
    moved_gauges: dict[int, list[_AttachedGauge]] = {}
    strains = {}
    for k in WEIGHTS:
        h = k * step  # change of the parameter
        surface = _Surface((skin.points + h * rates)[skin.triangles], size)
        moved = {key: x + h * shifts[key] for key, x in centres.items()}
        moved_gauges[k], lines = _attached(surface, specs, moved, size)
        # Positions of the points of `lines` in the undeformed mesh
        places = np.reshape(undeformed_lines, (-1, 3))
        for _ in range(PULL_BACKS):
            places = np.reshape(lines, (-1, 3)) - h * _values(space, V, places)[:, :, 0]
        modes = reduction.modes + h * changes
        strains[k] = _mean_strains(space, modes, lines, np.reshape(places, np.shape(lines)))

    def derivative(values: Mapping[int, Array]) -> Array:
        return np.asarray(sum(w * values[k] for k, w in WEIGHTS.items()) / step)

    derivatives = []
    for j, label in enumerate(specs):
        gauge_at = {k: moved_gauges[k][j] for k in WEIGHTS}
        derivatives.append(
            _AttachedGauge(
                label,
                derivative({k: gauge.position for k, gauge in gauge_at.items()}),
                derivative({k: gauge.normal for k, gauge in gauge_at.items()}),
                derivative({k: gauge.directions for k, gauge in gauge_at.items()}),
                float(specs[label].length),
            )
        )
    return _strain_gauges(derivatives, derivative(strains))


def _spec_of(gauge: StrainGauge) -> GaugeSpec:
    """Return the place, direction, length and kind of a gauge."""
    kind: Any = "single"
    if len(gauge.directions) == 3:
        cosine = abs(gauge.directions[0] @ gauge.directions[2])  # 0 at 90°, 0.5 at 120°
        kind = "rectangular" if cosine < 0.1 else "delta"
    return GaugeSpec(gauge.position, gauge.directions[0], gauge.length, kind)


def _attached(
    surface: _Surface, specs: Mapping[str, GaugeSpec], positions: Mapping[str, Any], limit: float
) -> tuple[list[_AttachedGauge], list[Array]]:
    """Return the gauges on the surface, and points on lines along all grids.

    `limit` is the largest distance of a position from the surface, m.
    """
    attached, lines = [], []
    for label, spec in specs.items():
        text = f"gauge {label!r}"
        centre, normal = surface.place(text, np.asarray(positions[label]), limit)
        directions, grid_length = _directions(text, spec, normal), float(spec.length)
        patch = surface.around(centre, grid_length)
        lines += [patch.line(text, centre, direction, grid_length) for direction in directions]
        attached.append(_AttachedGauge(label, centre, normal, directions, grid_length))
    return attached, lines


def _strain_gauges(attached: list[_AttachedGauge], strains: Array) -> tuple[StrainGauge, ...]:
    """Return gauges with the strains of their grids, shape (lines, n)."""
    result, first = [], 0
    for gauge in attached:
        end = first + len(gauge.directions)
        result.append(StrainGauge(*gauge, strains[first:end]))
        first = end
    return tuple(result)


def _directions(text: str, spec: GaugeSpec, normal: Array) -> Array:
    """Return unit vectors along the grids in the tangent plane, shape (grids, 3)."""
    direction = np.asarray(spec.direction)
    tangent = direction - (direction @ normal) * normal
    # Cosine of the angle to the surface; the direction is a unit vector
    cosine = np.linalg.norm(tangent)
    if cosine < TANGENTIAL:
        angle = np.rad2deg(np.arccos(min(float(cosine), 1.0)))
        raise InputError(
            f"{text}: the direction ({_numbers(direction)}) is {angle:.0f}° from the surface, "
            f"whose normal is ({_numbers(normal)}); give a direction along the surface",
            argument="direction",
            value=direction,
        )
    angles = np.deg2rad(ANGLES[spec.kind])[:, None]
    tangent = tangent / cosine
    return np.cos(angles) * tangent + np.sin(angles) * np.cross(normal, tangent)


def _mean_strains(
    space: fem.FunctionSpace, modes: Array, lines: list[Array], places: Array | None = None
) -> Array:
    """Return the strain of each line per unit of each elastic coordinate, (lines, n). Collective.

    The integral of t·ε t along a straight piece with the direction t is the difference of t·u
    between its ends, also if it crosses several cells. If the lines are on a surface that was moved
    for a difference quotient, `places` are the same material points in the mesh, which was not
    moved.
    """
    straight = compat.geometry_degree(space.mesh) == 1 and places is None
    x = np.reshape(lines, (len(lines), 2 * STEPS + 1, 3))
    points = np.reshape(x if places is None else places, (-1, 3))
    values = _values(space, modes, points, POINT_TOLERANCE if straight else CURVED)
    u = values.reshape(*x.shape, modes.shape[1])
    pieces = np.diff(x, axis=1)
    sizes = np.linalg.norm(pieces, axis=2)
    elongations = np.einsum("lia,lian->ln", pieces / sizes[:, :, None], np.diff(u, axis=1))
    return elongations / sizes.sum(axis=1)[:, None]


def _values(space: fem.FunctionSpace, modes: Array, x: Array, tolerance: float = CURVED) -> Array:
    """Return modes (owned dofs, n) at points x (points, 3), shape (points, 3, n). Collective."""
    points = {str(k): position for k, position in enumerate(x)}
    stations = material_points(space, modes, points, tolerance)
    return np.array([s.modes.T for s in stations]).reshape(len(x), 3, modes.shape[1])


class _Surface:
    """The triangles of a body's skin, with projections to the nearest point.

    Args:
        corners: Corners of the triangles, shape (nt, 3, 3), m; equal on all ranks.
        size: Size of the body, m.
    """

    def __init__(self, corners: Array, size: float) -> None:
        self.corners, self.size = corners, size
        edges = self.corners[:, [1, 2]] - self.corners[:, [0]]
        self.area_vectors = np.cross(edges[:, 0], edges[:, 1])  # unit normals times twice the area
        lengths = np.linalg.norm(self.area_vectors, axis=1, keepdims=True)
        self.normals = self.area_vectors / lengths

    def around(self, x: Array, radius: float) -> _Surface:
        """Return the triangles within a radius around a point."""
        return _Surface(self.corners[self._projections(x)[1] <= radius], self.size)

    def nearest(self, x: Array) -> tuple[Array, Array]:
        """Return the nearest point of the surface and the outward normal there, (3,) each.

        At an edge, the normal is the mean of the normals of the adjacent triangles by area.
        """
        points, gaps = self._projections(x)
        point = points[gaps.argmin()]
        normal = self.area_vectors[self._touching_triangles(point)].sum(axis=0)
        return point, normal / np.linalg.norm(normal)

    def _touching_triangles(self, point: Array) -> NDArray[np.bool_]:
        """Return which triangles contain a point of the surface."""
        return np.asarray(self._projections(point)[1] < TOUCHING * self.size)

    def _projections(self, x: Array) -> tuple[Array, Array]:
        """Return the point of each triangle that is nearest to x, (nt, 3), and its distance."""
        # Indices of einsum: triangle k, edge e of the triangle, axis a
        start = self.corners
        edges = np.roll(start, -1, axis=1) - start
        t = np.einsum("kea,kea->ke", x - start, edges) / np.einsum("kea,kea->ke", edges, edges)
        on_edges = start + np.clip(t, 0.0, 1.0)[:, :, None] * edges
        heights = np.einsum("ka,ka->k", x - start[:, 0], self.normals)
        foot = x - heights[:, None] * self.normals
        outwards = np.cross(edges, self.normals[:, None])
        inside = (np.einsum("kea,kea->ke", foot[:, None] - start, outwards) <= 0).all(axis=1)
        candidates = np.concatenate([on_edges, foot[:, None]], axis=1)
        gaps = np.linalg.norm(candidates - x, axis=2)
        gaps[~inside, -1] = np.inf  # the foot of the perpendicular, if outside the triangle
        rows, best = np.arange(len(gaps)), gaps.argmin(axis=1)
        return candidates[rows, best], gaps[rows, best]

    def place(self, text: str, x: Array, tolerance: float) -> tuple[Array, Array]:
        """Return the point of the surface nearest to x and the normal there, or raise an error.

        `text` names the gauge in the errors.
        """
        point, normal = self.nearest(x)
        gap = float(np.linalg.norm(point - x))
        if gap > tolerance:
            raise InputError(
                f"{text}: the position ({_numbers(x)}) is {gap:.3g} m from the surface, more than "
                f"the tolerance of {tolerance:.3g} m; the nearest point of the surface is "
                f"({_numbers(point)})",
                argument="position",
                value=x,
            )
        if (self.normals[self._touching_triangles(point)] @ normal).min() < FLAT:
            raise InputError(
                f"{text}: the position ({_numbers(point)}) is on an edge of the body; move it to a "
                "face",
                argument="position",
                value=x,
            )
        return point, normal

    def line(self, text: str, centre: Array, direction: Array, grid_length: float) -> Array:
        """Return points along a grid on the surface, from one end to the other, (points, 3)."""
        step = grid_length / (2 * STEPS)
        halves = []
        for tangent in (-direction, direction):
            point, half = centre, []
            for _ in range(STEPS):
                ahead = point + step * tangent
                point, normal = self.nearest(ahead)
                if np.linalg.norm(point - ahead) > BEND * step:
                    raise InputError(
                        f"{text}: a grid of {grid_length:.3g} m in the direction "
                        f"({_numbers(direction)}) crosses an edge of the body near "
                        f"({_numbers(point)}); move the gauge or give a shorter length",
                        argument="length",
                        value=grid_length,
                    )
                tangent = tangent - (tangent @ normal) * normal
                tangent /= np.linalg.norm(tangent)
                half.append(point)
            halves.append(half)
        return np.array([*halves[0][::-1], centre, *halves[1]])


def _numbers(values: Array) -> str:
    """Return coordinates as text."""
    return ", ".join(f"{value + 0.0:.6g}" for value in np.round(values, 12))
