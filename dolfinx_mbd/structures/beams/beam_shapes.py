"""Interpolation of the motion of a beam to points, and a surface for pictures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import ufl
from dolfinx import fem
from numpy.typing import ArrayLike
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import MaterialPoint, Skin
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compilation import compiled_expression
from dolfinx_mbd.forms.beam_sections import Section
from dolfinx_mbd.structures.beams.model import BeamModel, checked_place, gather_in_order

CORNERS = 16  # number of corners of the polygon that approximates an ellipse
# Deflections along y and z: the axes of displacement and rotation, and the sign of the rotation for
# a positive slope
BENDING = (1, 2, 1.0), (2, 1, -1.0)


def _interpolate(model: BeamModel, nodal: Array, distances: Array) -> tuple[Array, Array]:
    """Return displacements of the axis and rotations of the section at distances along the beam.

    The nodal values have the shape (n, 6, k), the distances have the shape (m,), and each result
    has the shape (m, 3, k). All are in body components. Beyond its ends, the beam continues along
    its tangents.
    """
    s = model.chain @ model.direction
    cell = np.clip(np.searchsorted(s, distances, side="right") - 1, 0, len(s) - 2)
    h = s[cell + 1] - s[cell]
    xi = (np.clip(distances, s[0], s[-1]) - s[cell]) / h
    overhang = distances - np.clip(distances, s[0], s[-1])
    axes = np.asarray(model.axes)
    local = np.einsum("ba,nfbk->nfak", axes, nodal.reshape(len(s), 2, 3, -1))
    (d0, r0), (d1, r1) = local[cell].transpose(1, 0, 2, 3), local[cell + 1].transpose(1, 0, 2, 3)
    weight = xi[:, None, None]
    d, r = d0 + weight * (d1 - d0), r0 + weight * (r1 - r0)  # linear: axial motion and twist
    # Cubic deflections from the slopes a and b at both ends of the cell
    for axis, rotation_axis, sign in BENDING:
        a, b, w = sign * r0[:, rotation_axis], sign * r1[:, rotation_axis], weight[:, 0]
        chord = (d1[:, axis] - d0[:, axis]) / h[:, None]
        deflection = h[:, None] * w * (1 - w) * ((1 - w) * (a - chord) - w * (b - chord))
        slope = (1 - 4 * w + 3 * w**2) * a + (3 * w**2 - 2 * w) * b + 6 * w * (1 - w) * chord
        d[:, axis] += deflection + overhang[:, None] * slope
        r[:, rotation_axis] = sign * slope
    return np.einsum("ab,nbk->nak", axes, d), np.einsum("ab,nbk->nak", axes, r)


def beam_points(
    model: BeamModel, nodal: Array, points: Mapping[str, float | ArrayLike]
) -> tuple[MaterialPoint, ...]:
    """Return modes at named points; points off the axis move with the section."""
    s, result = model.chain @ model.direction, []
    margin = 1e-8 * (s[-1] - s[0])
    for name, place in points.items():
        position = checked_place(f"point {name!r}", place)
        distance = float(position) if position.shape == () else float(position @ model.direction)
        if not s[0] - margin <= distance <= s[-1] + margin:
            ends = f"the ends of the beam, {s[0]:.6g} m and {s[-1]:.6g} m"
            raise InputError(f"point {name!r} at {place!r} is beyond {ends}")
        on_axis = model.chain[0] + (distance - s[0]) * model.direction
        if position.shape == ():
            position = on_axis
        d, r = _interpolate(model, nodal, np.array([distance]))
        arm = (position - on_axis)[:, None]
        result.append(MaterialPoint(name, position, (d[0] + np.cross(r[0], arm, axis=0)).T))
    return tuple(result)


def point_rates(
    model: BeamModel, nodal: Array, points: Mapping[str, ArrayLike], velocity: Array
) -> tuple[Array, Array]:
    """Return the rates of the modes at points and of the positions, if nodes move along the beam.

    Rates are derivatives with respect to a parameter that moves the nodes.

    Args:
        model: The beam.
        nodal: Nodal values of the modes, which are constant, shape (n, 6, k).
        points: Positions by name, m. A point keeps its place in its cell and its distance from
            the axis.
        velocity: Rates of the nodes along the beam, shape (n,), m per unit of the parameter.

    Returns:
        Arrays of shape (points, k, 3) and (points, 3).
    """
    s, direction = model.chain @ model.direction, model.direction
    axes, k = np.asarray(model.axes), nodal.shape[2]
    modes, shifts = np.zeros((len(points), k, 3)), np.zeros((len(points), 3))
    for row, position in enumerate(points.values()):
        x = np.asarray(position, dtype=float)
        distance = float(np.clip(x @ direction, s[0], s[-1]))
        c = min(int(np.searchsorted(s, distance, side="right")) - 1, len(s) - 2)
        h, rate = s[c + 1] - s[c], velocity[c + 1] - velocity[c]
        w = (distance - s[c]) / h
        (d0, r0), (d1, r1) = np.einsum("ba,nfbk->nfak", axes, nodal[c : c + 2].reshape(2, 2, 3, k))
        # Derivatives of Hermite's polynomials with respect to the length h of the cell
        d, r = np.zeros((2, 3, k))
        for axis, rotation_axis, sign in BENDING:
            a, b = sign * r0[rotation_axis], sign * r1[rotation_axis]
            d[axis] = rate * w * (1 - w) * ((1 - w) * a - w * b)
            r[rotation_axis] = -sign * 6 * w * (1 - w) * (d1[axis] - d0[axis]) * rate / h**2
        arm = x - model.chain[0] - (x @ direction - s[0]) * direction
        modes[row] = (axes @ d + np.cross(axes @ r, arm[:, None], axis=0)).T
        shifts[row] = (velocity[c] + w * rate) * direction
    return modes, shifts


def _nodal_values(model: BeamModel, values: tuple[Expr | float, ...]) -> Array:
    """Return functions of space at the nodes of the chain, shape (n, len(values)).

    At a discontinuity, the value is taken from an arbitrary cell.
    """
    if not any(isinstance(v, Expr) for v in values):
        return np.tile(np.array(values, dtype=float), (len(model.chain), 1))
    nodal = fem.Function(fem.functionspace(model.mesh, ("Lagrange", 1, (len(values),))))
    nodal.interpolate(compiled_expression(ufl.as_vector(list(values)), np.array([[0.0], [1.0]])))
    owned = nodal.x.array.reshape(-1, len(values))[: len(model.positions)]
    return gather_in_order(model, owned)


def beam_skin(model: BeamModel, nodal: Array) -> Skin:
    """Return a closed surface around the axis for pictures, with modes from nodal values (n, 6, k).

    A rectangle has its true surface. Any other section is drawn as the ellipse with the same radii
    of gyration.
    """
    return surface_around(model.chain, skin_arms(model, radii_of_gyration(model)), nodal)


def radii_of_gyration(model: BeamModel, change: Section | None = None) -> Array:
    """Return the radii of gyration along y and z at the nodes of the chain, shape (n, 2), m.

    With the derivative of a section, return the derivatives of the radii.
    """
    s = model.section
    area, *inertias = _nodal_values(model, (s.area, s.Izz, s.Iyy)).T
    radii = np.sqrt(np.stack(inertias, axis=1) / area[:, None])
    if change is None:
        return radii
    by_area, *by_inertias = _nodal_values(model, (change.area, change.Izz, change.Iyy)).T
    squares = (np.stack(by_inertias, axis=1) - radii**2 * by_area[:, None]) / area[:, None]
    return np.asarray(squares / (2 * radii))


def skin_arms(model: BeamModel, radii: Array) -> Array:
    """Return the outline of the section and its centre at the nodes; a linear function of radii."""
    # Half a side of a rectangle is √3 radii of gyration, half an axis of an ellipse 2 radii
    if model.section.shape == "rectangle":
        outline = np.sqrt(3) * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1.0]])
    else:
        angle = 2 * np.pi * np.arange(CORNERS) / CORNERS
        outline = 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    arms = np.concatenate([outline[None] * radii[:, None], np.zeros((len(radii), 1, 2))], axis=1)
    return arms @ np.asarray(model.axes)[:, 1:].T


def surface_around(chain: Array, arms: Array, nodal: Array) -> Skin:
    """Return a closed surface around a line, with modes that keep its sections plane.

    Args:
        chain: Positions along the line, shape (n, 3), m.
        arms: Outline of each section relative to the line, shape (n, m + 1, 3), m; the last point
            is on the line.
        nodal: Displacement and rotation of each section in each mode, shape (n, 6, k).
    """
    n, m = len(arms), arms.shape[1] - 1
    d, theta = nodal[:, :3], nodal[:, 3:]
    displacements = d[:, None] + np.cross(theta[:, None], arms[..., None], axis=2)
    on_surface = np.ones((n, m + 1), dtype=bool)  # only the ends of the axis are on it
    on_surface[1:-1, m] = False
    number = np.cumsum(on_surface).reshape(n, m + 1) - 1
    ring, next_ring = number[:, :m], np.roll(number[:, :m], -1, axis=1)
    first, last = np.full((2, m), number[[0, -1], m][:, None])
    faces = [
        (ring[:-1], next_ring[:-1], next_ring[1:]),
        (ring[:-1], next_ring[1:], ring[1:]),
        (first, next_ring[0], ring[0]),
        (last, ring[-1], next_ring[-1]),
    ]
    triangles = np.concatenate([np.stack(face, axis=-1).reshape(-1, 3) for face in faces])
    points = (chain[:, None] + arms)[on_surface]
    modes = np.ascontiguousarray(displacements[on_surface].transpose(2, 0, 1))
    return Skin(points, triangles, modes)
