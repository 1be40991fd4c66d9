"""Surfaces and lines that represent the bodies of a mechanism.

A body with a floating frame declares its surface as `drawing`: a `Skin` with modes, a `Shape`, or
None if its shape is unknown; bars from its `centre` to its frames then represent it. A body
without a floating frame declares `line(q)`, which returns points (nt, points, 3) on its centre line
for coordinates q (nt, nq), or, beside a `drawing` without modes, `surface(q)`, which returns the
positions (nt, nodes, 3) of its points (see `mesh_surfaces`). Other bodies are not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import ReducedBody, Skin, StressModes
from dolfinx_mbd.checks import instance, reject
from dolfinx_mbd.kernels.columns import ORIGIN, QUATERNION
from dolfinx_mbd.mechanism.shapes import Shape, box_shape, cylinder_shape
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.scene.camera import length_of
from dolfinx_mbd.plotting.scene.description import Lines
from dolfinx_mbd.plotting.scene.moving_surface import Surface
from dolfinx_mbd.plotting.scene.tubes import normal_vectors

__all__ = ["body_lines", "body_surfaces", "skin_of", "skin_of_body", "stress_on_skin"]

Array = NDArray[np.float64]


BAR_RADIUS = 0.008
"""Radius of bars relative to the size of the mechanism."""


def skin_of(body: ReducedBody) -> Skin:
    """Return the skin of a body, or raise an error that describes how to create one."""
    instance("body", body, ReducedBody)
    if body.skin is None or len(body.skin.triangles) == 0:
        hint = "reduce it with reduce(..., skin=True), or give ReducedBody.from_arrays a Skin"
        reject("body", body, "a body with a skin", hint=hint)
    return body.skin


def stress_on_skin(body: ReducedBody) -> StressModes | None:
    """Return the stress of the modes of a body if it is known at the nodes of its skin."""
    skin, stress = body.skin, body.stress
    if skin is None or stress is None or stress.points.shape != skin.points.shape:
        return None
    tolerance = 1e-9 * length_of(skin.points)
    return stress if np.allclose(stress.points, skin.points, rtol=0, atol=tolerance) else None


def skin_of_body(body: Any, length: float) -> tuple[Skin, bool] | None:
    """Return the surface of a body, and whether bars replace its unknown shape.

    The thickness of bars depends on the length of the mechanism (m). The result is None for bodies
    without a floating frame.
    """
    if not hasattr(body, "drawing") or hasattr(body, "surface"):
        return None
    shape = body.drawing
    if isinstance(shape, Skin) and len(shape.triangles):
        return shape, False
    bars = not isinstance(shape, Shape)
    surface = _bars(body, BAR_RADIUS * length) if bars else shape
    return Skin(surface.points, surface.triangles, np.zeros((0, len(surface.points), 3))), bars


def _bars(body: Any, radius: float) -> Shape:
    """Return a block at the centre of mass and bars from it to the frames."""
    points, axes = np.zeros((len(body.frame_names), 3)), np.zeros((len(body.frame_names), 3, 3))
    rest = np.zeros(body.num_coordinates)
    rest[3] = 1.0  # no rotation
    body.poses(rest, points, axes)
    centre = np.asarray(body.centre, dtype=float)
    shape = box_shape(np.full(3, 4 * radius), centre)
    for point in points:
        along = point - centre
        size = float(np.linalg.norm(along))
        if size > radius:
            z = along / size
            bar = cylinder_shape(radius, size, centre=(0.0, 0.0, size / 2), sides=16)
            shape += Shape(centre + bar.points @ [*normal_vectors(z), z], bar.triangles)
    return shape


def body_surfaces(
    system: System, q: Array, length: float, values: Mapping[str, Array] | None = None
) -> list[Surface]:
    """Return the surfaces of all bodies with a floating frame.

    Args:
        system: The mechanism.
        q: Its coordinates, shape (nt, nq).
        length: Size of the mechanism, m.
        values: Given values at the nodes of skins, by name of the body.
    """
    surfaces = []
    for body, s in zip(system.bodies, system.q_slices, strict=True):
        drawn = skin_of_body(body, length)
        if drawn is not None:
            skin, bars = drawn
            reduced = getattr(body, "reduced", None)
            stress = stress_on_skin(reduced) if reduced is not None and not bars else None
            position, rotation = q[:, s][:, ORIGIN], q[:, s][:, QUATERNION]
            eta = q[:, s][:, 7 : 7 + len(skin.modes)]
            given_values = None if values is None else values.get(body.name)
            surface = Surface(body.name, skin, position, rotation, eta, bars, stress, given_values)
            surfaces.append(surface)
    return surfaces


def body_lines(system: System, q: Array, radius: float) -> list[Lines]:
    """Return the centre lines of all bodies that declare one, for coordinates q (nt, nq)."""
    lines = []
    for body, s in zip(system.bodies, system.q_slices, strict=True):
        line = getattr(body, "line", None)
        if line is not None:
            points = line(q[:, s])[:, None]
            lines.append(Lines(f"cable {body.name}", "cables", points, radius))
    return lines
