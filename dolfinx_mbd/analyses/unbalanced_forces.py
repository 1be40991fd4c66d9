"""How far a state is from equilibrium: unbalanced forces and rates of constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.convergence import (
    count_groups,
    largest_coordinate,
    row_groups,
)

__all__ = ["constraint_speed", "unbalanced"]

_ROUND_OFF = 16 * np.finfo(float).eps  # error of a coordinate, relative to its size
_SMALL = 1e-10  # relative residual up to which round-off need not be subtracted


def unbalanced(at: Assembler, t: float) -> tuple[int, float]:
    """Return the index of the equation with the largest relative residual, and this residual.

    The scale is the largest sum of magnitudes of terms in equations of the same kind and body. It
    contains each load, because the loads on one frame may cancel. The round-off of lever arms is
    subtracted from the residuals of moments, and the round-off of coordinates in stiff springs from
    all residuals.
    """
    s, scale, jacobians = at.system, at.scale.copy(), at.frames.jacobians()
    for _, frames, wrench in at.loads.wrenches(t):
        for frame, part in zip(frames, np.reshape(wrench, (-1, 6)), strict=True):
            k = int(s.frame_body[frame])
            J = jacobians[k][frame - s.frame_slices[k].start]
            scale[s.v_slices[k]] += np.abs(J).T @ np.abs(part)
    groups = row_groups(s)
    if len(s.states):
        scale[s.states] += _state_scale(at, t, groups)
    sizes, noise = np.full(count_groups(s), 1e-300), np.zeros(count_groups(s))
    np.maximum.at(sizes, groups, scale)
    bodies = slice(3 * len(s.bodies))
    # Groups 3k, 3k + 1 and 3k + 2 are the forces, moments and elastic forces of body k
    noise[bodies][1::3] = _ROUND_OFF * largest_coordinate(at) * sizes[bodies][0::3]
    forces = np.maximum(np.abs(np.nan_to_num(at.rows, nan=np.inf)) - noise[groups], 0.0)
    ratios = forces / sizes[groups]
    if ratios.max(initial=0.0) > _SMALL:
        ratios = np.maximum(forces - _spring_noise(at, t, groups), 0.0) / sizes[groups]
    row = int(np.argmax(ratios))
    return row, float(ratios[row])


def _state_scale(at: Assembler, t: float, groups: NDArray[np.int64]) -> Array:
    """Return the sizes of the terms of the rates of states, which cancel in an equilibrium."""
    tangent, states = at.tangent(t), at.system.states
    by_states = np.abs(tangent.C[np.ix_(states, states)]) @ np.abs(at.v[states])
    return np.asarray(by_states + np.abs(tangent.K[states]) @ _lengths(at, groups))


def _lengths(at: Assembler, groups: NDArray[np.int64]) -> Array:
    """Return the size of each rigid coordinate, m or rad, and zero for the others, (nv,)."""
    lengths = np.array([largest_coordinate(at), 1.0, 0.0])[groups % 3]
    lengths[at.system.states] = 0.0
    return lengths


def _spring_noise(at: Assembler, t: float, groups: NDArray[np.int64]) -> Array:
    """Return the forces (nv,) that stiffness assigns to the round-off of rigid coordinates."""
    return np.asarray(_ROUND_OFF * np.abs(at.tangent(t).K) @ _lengths(at, groups))


def constraint_speed(at: Assembler, t: float) -> tuple[int, float]:
    """Return the index of the constraint with the largest rate, and this rate, m/s or rad/s."""
    rates_of_drivers, _ = at.constraint_rates(t)
    rates = at.constraint_matrix() @ at.v + rates_of_drivers
    row = int(np.argmax(np.abs(rates)))
    return row, float(np.abs(rates[row]))
