"""Start of mechanisms with mesh bodies: undeformed, with the motion of rigid bodies.

Joints that are redundant for rigid bodies are satisfied because the bodies fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import accelerations, velocities
from dolfinx_mbd.dynamics.start.position_assembly import coordinates
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["embedded_motion", "undeformed_state"]

_MISFIT = 1e-9  # largest violation of a constraint, relative to the size of the mechanism


def undeformed_state(eqs: Assembler, t: float, q: ArrayLike, v: Array) -> State:
    """Return the state with coordinates q (nq,) that satisfy the constraints.

    The velocities are as close as possible to v (nv,).
    """
    system, free = eqs.system, np.arange(eqs.system.num_velocities)
    eqs.q[:] = coordinates(system, q)
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
    velocities(eqs, t, v, free)
    accelerations(eqs, t, free)
    eqs.update_poses(t)
    return eqs.state(t)


def embedded_motion(system: System, rigid: System, state: State) -> tuple[Array, Array]:
    """Return coordinates (nq,) and velocities (nv,) of a system that moves as rigid bodies.

    Args:
        system: The mechanism with mesh bodies.
        rigid: The same mechanism with rigid bodies in their place.
        state: State of the rigid bodies.
    """
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
