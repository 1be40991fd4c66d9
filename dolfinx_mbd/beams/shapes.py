"""A beam's shape between and around its nodes: displacements anywhere, a surface for pictures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import ufl
from dolfinx import fem
from numpy.typing import ArrayLike, NDArray
from ufl.core.expr import Expr

from dolfinx_mbd.beams.model import BeamModel, checked_place
from dolfinx_mbd.body import Skin, Station
from dolfinx_mbd.errors import InputError

__all__ = ["at_nodes", "beam_points", "beam_skin", "interpolate"]

Array = NDArray[np.float64]

CORNERS = 16
"""Of the polygon that stands for an ellipse."""


def interpolate(model: BeamModel, nodal: Array, at: Array) -> tuple[Array, Array]:
    """Displacements of the axis and rotations of the section between the nodes.

    Args:
        model: The beam.
        nodal: From `BeamModel.gathered`, shape (n, 6, k).
        at: Distances along the beam's direction, shape (m,), m; of points outside the beam those of
            its ends' tangents.

    Returns:
        Two arrays of shape (m, 3, k), body components.
    """
    s = model.chain @ model.direction
    cell = np.clip(np.searchsorted(s, at, side="right") - 1, 0, len(s) - 2)
    h = s[cell + 1] - s[cell]
    xi = (np.clip(at, s[0], s[-1]) - s[cell]) / h
    beyond = at - np.clip(at, s[0], s[-1])
    axes = np.asarray(model.axes)
    local = np.einsum("ba,nfbk->nfak", axes, nodal.reshape(len(s), 2, 3, -1))
    (d0, r0), (d1, r1) = local[cell].transpose(1, 0, 2, 3), local[cell + 1].transpose(1, 0, 2, 3)
    weight = xi[:, None, None]
    d, r = d0 + weight * (d1 - d0), r0 + weight * (r1 - r0)  # axial and twist stay so
    for across, turning, sign in ((1, 2, 1.0), (2, 1, -1.0)):
        a, b, w = sign * r0[:, turning], sign * r1[:, turning], weight[:, 0]
        chord = (d1[:, across] - d0[:, across]) / h[:, None]
        bump = h[:, None] * w * (1 - w) * ((1 - w) * (a - chord) - w * (b - chord))
        slope = (1 - 4 * w + 3 * w**2) * a + (3 * w**2 - 2 * w) * b + 6 * w * (1 - w) * chord
        d[:, across] += bump + beyond[:, None] * slope
        r[:, turning] = sign * slope
    return np.einsum("ab,nbk->nak", axes, d), np.einsum("ab,nbk->nak", axes, r)


def beam_points(
    model: BeamModel, nodal: Array, points: Mapping[str, float | ArrayLike]
) -> tuple[Station, ...]:
    """Modes at named material points, which may lie off the axis: they move with the section.

    Args:
        model: The beam.
        nodal: Modes, from `BeamModel.gathered`.
        points: Distances along the beam, m, or positions, shape (3,).

    Raises:
        ValueError: A point is beyond the ends of the beam, or no point.
    """
    s, result = model.chain @ model.direction, []
    for name, given in points.items():
        place = checked_place(f"point {name!r}", given)
        along = float(place) if place.shape == () else float(place @ model.direction)
        if not s[0] - 1e-8 * (s[-1] - s[0]) <= along <= s[-1] + 1e-8 * (s[-1] - s[0]):
            raise InputError(
                f"point {name!r} at {given!r} is beyond the ends of the beam, {s[0]:.6g} m and "
                f"{s[-1]:.6g} m"
            )
        on_axis = model.chain[0] + (along - s[0]) * model.direction
        position = on_axis if place.shape == () else place
        d, r = interpolate(model, nodal, np.array([along]))
        arm = (position - on_axis)[:, None]
        result.append(Station(name, position, (d[0] + np.cross(r[0], arm, axis=0)).T))
    return tuple(result)


def at_nodes(model: BeamModel, values: tuple[Expr | float, ...]) -> Array:
    """Functions of space at the nodes of the chain, shape (n, len(values)); at a jump, of a cell.

    Note: Collective.
    """
    count, owned = len(model.chain), len(model.positions)
    if not any(isinstance(v, Expr) for v in values):
        return np.tile(np.array(values, dtype=float), (count, 1))
    mesh, V = model.mesh, model.space
    topology = mesh.topology.index_map(1)
    cells = np.arange(topology.size_local + topology.num_ghosts, dtype=np.int32)
    local = np.zeros((owned + V.dofmap.index_map.num_ghosts, len(values)))
    expression = fem.Expression(ufl.as_vector(list(values)), np.array([[0.0], [1.0]]))
    found = np.asarray(expression.eval(mesh, cells)).reshape(len(cells), 2, len(values))
    local[V.dofmap.list[: len(cells)]] = found
    along = model.positions @ model.direction
    parts = mesh.comm.allgather((along, local[:owned]))
    order = np.argsort(np.concatenate([s for s, _ in parts]))
    return np.concatenate([v for _, v in parts])[order]


def beam_skin(model: BeamModel, nodal: Array) -> Skin:
    """A closed surface around the axis, with the modes there: what a picture of the beam shows.

    Of a rectangle it is the true surface; anything else is drawn as the ellipse with the section's
    radii of gyration.

    Args:
        model: The beam.
        nodal: Modes, from `BeamModel.gathered`, shape (n, 6, k).

    Note: Collective.
    """
    s, axes = model.section, np.asarray(model.axes)
    area, about_y, about_z = at_nodes(model, (s.area, s.Iyy, s.Izz)).T
    radii = np.sqrt(np.stack([about_z, about_y], axis=1) / area[:, None])
    if s.shape == "rectangle":
        outline = np.sqrt(3) * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])
    else:
        angle = 2 * np.pi * np.arange(CORNERS) / CORNERS
        outline = 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    n, m = len(radii), len(outline)
    arms = np.concatenate([outline[None] * radii[:, None], np.zeros((n, 1, 2))], axis=1)
    arms = arms @ axes[:, 1:].T  # (n, m + 1, 3), the last on the axis
    d, theta = nodal[:, :3], nodal[:, 3:]
    moved = d[:, None] + np.cross(theta[:, None], arms[..., None], axis=2)
    kept = np.ones((n, m + 1), dtype=bool)
    kept[1:-1, m] = False
    number = np.full((n, m + 1), -1)
    number[kept] = np.arange(kept.sum())
    points = (model.chain[:, None] + arms)[kept]
    ring, following = np.arange(m), (np.arange(m) + 1) % m
    faces = []
    for k in range(n - 1):
        a, b = number[k], number[k + 1]
        faces += [
            np.column_stack([a[ring], a[following], b[following]]),
            np.column_stack([a[ring], b[following], b[ring]]),
        ]
    faces.append(np.column_stack([np.full(m, number[0, m]), number[0, following], number[0, ring]]))
    last = number[-1]
    faces.append(np.column_stack([np.full(m, last[m]), last[ring], last[following]]))
    return Skin(points, np.concatenate(faces), np.ascontiguousarray(moved[kept].transpose(2, 0, 1)))
