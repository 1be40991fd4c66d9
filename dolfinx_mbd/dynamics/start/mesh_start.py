"""Start of mechanisms with bodies on their whole mesh: undeformed, with the motion of rigid bodies.

The mechanism with rigid bodies in their place is assembled first. Joints that are redundant for
rigid bodies are then satisfied because the bodies fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import accelerations, velocities
from dolfinx_mbd.dynamics.start.position_assembly import coordinates, fit_misfits
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["mesh_state"]

_MISFIT = 1e-9  # largest violation of a constraint, relative to the size of the mechanism


def mesh_state(
    system: System,
    t: float,
    elastic_start: str,
    start: tuple[Any, Any, Any],
    consistent_state: Callable[..., State],
) -> State:
    """Return a consistent state of a system with bodies on their mesh.

    Args:
        system: The mechanism.
        t: Time, s.
        elastic_start: Start of the reduced bodies; see `consistent_state`.
        start: Coordinates, velocities and rates of joints at the start, or None; coordinates and
            velocities of the whole mechanism are arrays.
        consistent_state: The function for the mechanism with rigid bodies.
    """
    q, v, rates = start
    eqs, free = Assembler(system), np.arange(system.num_velocities)
    if isinstance(q, np.ndarray) and isinstance(v, np.ndarray):
        eqs.q[:], speeds = coordinates(system, q), v
    else:
        rigid, redundant = fit_misfits(system.with_rigid_bodies, t)
        if redundant:
            rigid = rigid.without_rows([item.row for item in redundant])
        state = consistent_state(rigid, t, elastic_start=elastic_start, q=q, v=v, rates=rates)
        eqs.q[:], speeds = _transferred(system, rigid, state)
    eqs.update_poses(t)
    values = eqs.constraints(t)
    if np.abs(values).max(initial=0.0) > _MISFIT * system.size:
        row = int(np.argmax(np.abs(values)))
        joint = (*system.joints, *system.drivers)[system.row_entry[row]]
        raise AssemblyError(
            f"the mechanism cannot be assembled at t = {t:g} s without deforming a body on its "
            f"mesh: {system.constraint_name(row)} is off by {abs(values[row]):.3g} m or rad. Place "
            "the bodies so that the joints fit",
            joint=joint.name,
            misfit=float(abs(values[row])),
        )
    velocities(eqs, t, speeds, free)
    accelerations(eqs, t, free)
    eqs.update_poses(t)
    return eqs.state(t)


def _transferred(system: System, rigid: System, state: State) -> tuple[Array, Array]:
    """Return coordinates and velocities with the motion of a mechanism with rigid bodies."""
    q, v = np.zeros(system.num_coordinates), np.zeros(system.num_velocities)
    parts = zip(
        system.bodies, system.q_slices, system.v_slices, rigid.q_slices, rigid.v_slices, strict=True
    )
    for body, qs, vs, rigid_qs, rigid_vs in parts:
        place, speed = state.q[rigid_qs], state.v[rigid_vs]
        if hasattr(body, "placed"):
            q[qs], v[vs] = body.placed(place, speed)
        else:
            q[qs], v[vs] = place, speed
    return q, v
