"""Initial velocities of the nodes of a mesh body in addition to its rigid motion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from dolfinx import fem
from ufl.core.expr import Expr

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.compat import interpolated

if TYPE_CHECKING:
    from dolfinx_mbd.structures.mesh_bodies.mesh_body import MeshBody

__all__ = ["relative_velocities"]

_MOVING = 1e-9  # largest velocity of an interface, relative to the largest velocity of a node


def relative_velocities(label: str, body: MeshBody) -> Array:
    """Return the initial velocities relative to the rigid motion, body components, (nodes, 3), m/s.

    Collective.

    Args:
        label: Name of the body for messages.
        body: The body with its argument `relative_velocity`.

    Raises:
        InputError: The velocities cannot be interpolated, are not finite, or move an interface.
    """
    value, forces = body.relative_velocity, body.forces
    dim = forces.embedding.dim
    if value is None:
        return np.zeros_like(body.nodes)
    function, problem = fem.Function(forces.space), ""
    try:
        if isinstance(value, Expr):
            function = interpolated(value, forces.space)
        elif callable(value):
            function.interpolate(value)
        else:
            problem = f"got {value!r}"
    except Exception as error:  # errors of UFL, of DOLFINx and of the function itself
        problem = f"{type(error).__name__}: {error}"
    problems = [text for text in forces.comm.allgather(problem) if text]
    if problems:
        raise InputError(
            f"{label}: relative_velocity must be UFL of shape ({dim},) on the mesh, or a "
            f"function that returns velocities ({dim}, n), m/s; {problems[0]}",
            argument="relative_velocity",
            value=value,
        )
    rates = forces.nodes.gathered(function.x.array[: dim * len(forces.nodes.owned)])
    u, _, frames = body.reference_state()
    G = body.constraints.node_matrix(body.motion_at(frames, u))
    held = np.abs(rates[body.held]).max(initial=0.0)
    moving = max(held, np.abs(np.einsum("nim,ni->m", G, rates)).max(initial=0.0))
    if not np.isfinite(rates).all() or moving > _MOVING * np.abs(rates).max():
        raise InputError(
            f"{label}: relative_velocity must be finite and vanish at rigid interfaces, in the "
            f"mean at averaged ones; an interface moves with {moving:.3g} m/s. Use `velocity` and "
            "`omega` for the motion of interfaces",
            argument="relative_velocity",
            value=value,
        )
    return rates @ forces.embedding.axes
