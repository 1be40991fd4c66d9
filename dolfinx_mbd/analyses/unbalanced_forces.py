"""How far a state is from equilibrium: unbalanced forces and rates of constraints."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.convergence import (
    Measure,
    count_groups,
    largest_coordinate,
    row_groups,
)

__all__ = ["constraint_speed", "unbalanced"]

_ROUND_OFF = 16 * np.finfo(float).eps  # error of a coordinate, relative to its size
_SMALL = 1e-10  # relative residual up to which round-off need not be subtracted


def unbalanced(eqs: Assembler, t: float) -> tuple[int, float]:
    """Return the index of the equation with the largest relative residual, and this residual.

    The scale is the largest sum of magnitudes of terms in equations of the same kind and body. It
    contains the magnitude of each load, because the loads on one frame may cancel. These kinds of
    round-off are subtracted from the residuals: that of lever arms in moments, that of coordinates
    in stiff springs, and that of reactions. If no load acts, all forces are round-off, and so is
    their sum; the forces that belong to displacements by round-off are then subtracted, too. Only
    the first kind is subtracted if the stiffness is not finite.
    """
    s, scale, jacobians = eqs.system, eqs.scale.copy(), eqs.frames.jacobians()
    loads = np.zeros(s.num_velocities)
    for _, frames, wrench in eqs.loads.wrenches(t):
        for frame, part in zip(frames, np.reshape(wrench, (-1, 6)), strict=True):
            k = int(s.frame_body[frame])
            J = jacobians[k][frame - s.frame_slices[k].start]
            loads[s.v_slices[k]] += np.abs(J).T @ np.abs(part)
    scale += loads
    groups = row_groups(s)
    if len(s.states):
        scale[s.states] += _state_scale(eqs, t, groups)
    sizes, noise = np.full(count_groups(s), 1e-300), np.zeros(count_groups(s))
    np.maximum.at(sizes, groups, scale)
    bodies = slice(3 * len(s.bodies))
    # Groups 3k, 3k + 1 and 3k + 2 are the forces, moments and elastic forces of body k
    noise[bodies][1::3] = _ROUND_OFF * largest_coordinate(eqs) * sizes[bodies][0::3]
    forces = np.maximum(np.abs(np.nan_to_num(eqs.rows, nan=np.inf)) - noise[groups], 0.0)
    ratios = forces / sizes[groups]
    if ratios.max(initial=0.0) > _SMALL and np.isfinite(K := np.abs(eqs.tangent(t).K)).all():
        # The forces that stiffness assigns to the round-off of rigid coordinates
        forces -= _ROUND_OFF * K @ _lengths(eqs, groups) + _reaction_noise(eqs, t, scale)
        ratios = np.maximum(forces, 0.0) / sizes[groups]
        if ratios.max(initial=0.0) > _SMALL:
            forces -= _unloaded_noise(eqs, t, groups, loads, K)
            ratios = np.maximum(forces, 0.0) / sizes[groups]
    row = int(np.argmax(ratios))
    return row, float(ratios[row])


def _state_scale(eqs: Assembler, t: float, groups: NDArray[np.int64]) -> Array:
    """Return the sizes of the terms of the rates of states, which cancel in an equilibrium."""
    tangent, states = eqs.tangent(t), eqs.system.states
    by_states = np.abs(tangent.C[np.ix_(states, states)]) @ np.abs(eqs.v[states])
    return np.asarray(by_states + np.abs(tangent.K[states]) @ _lengths(eqs, groups))


def _reaction_noise(eqs: Assembler, t: float, scale: Array) -> Array:
    """Return the round-off of reactions (nv,) in the equations with constraints.

    Reactions minimize the residuals relative to the square root of the mass, so that the round-off
    is that of the largest term. A shaft that transfers a moment has no other forces than these.
    """
    tangent = eqs.tangent(t)
    held, roots = np.abs(tangent.B).any(axis=0), np.sqrt(np.maximum(np.diag(tangent.M), 0.0))
    largest = (scale[held] / np.maximum(roots[held], 1e-300)).max(initial=0.0)
    return np.asarray(np.where(held, _ROUND_OFF * largest * roots, 0.0))


def _lengths(eqs: Assembler, groups: NDArray[np.int64]) -> Array:
    """Return the size of each rigid coordinate, m or rad, and zero for the others, (nv,)."""
    lengths = np.array([largest_coordinate(eqs), 1.0, 0.0])[groups % 3]
    lengths[eqs.system.states] = 0.0
    return lengths


def _unloaded_noise(
    eqs: Assembler, t: float, groups: NDArray[np.int64], loads: Array, K: Array
) -> Array:
    """Return the forces (nv,) of displacements by round-off, or zeros if a load acts.

    Without a load, no force exists to which a residual could be compared. With a load, nothing is
    subtracted, because a load may be so small that its deflection is less than the round-off of the
    positions; elastic coordinates are relative to their body and represent it nevertheless. `K`
    (nv, nv) contains the magnitudes of the stiffness.

    No load acts if the mechanism is at rest without gravity and the loads, whose magnitudes are
    `loads` (nv,), are not larger than the forces of springs due to round-off of their ends. An
    elastic coordinate is then uncertain by the amplitude of a displacement by round-off. The
    reactions at both ends of a body, and with them its forces and moments, contain the largest
    force of these amplitudes.
    """
    s, noise = eqs.system, np.zeros(eqs.system.num_velocities)
    bodies = slice(len(noise) - len(s.states))
    patterns = any(size != 0.0 for _, _, size, _ in eqs.loads.pattern_forces(t))
    if s.gravity.any() or eqs.v[bodies].any() or eqs.a[bodies].any() or patterns:
        return noise
    length, kinds = largest_coordinate(eqs), groups % 3
    # Forces per unit of the coordinates: 1, lever arms of moments (m), and none of elastic forces
    levers = np.array([1.0, length, np.inf])[kinds]
    levers[s.states] = np.inf
    springs = _ROUND_OFF * float((K @ _lengths(eqs, groups) / levers).max(initial=0.0))
    if float((loads / levers).max(initial=0.0)) > springs:
        return noise
    largest = springs
    if len(s.elastic):
        modes = Measure(s).lengths[s.elastic]  # m per unit of each elastic coordinate
        inverse = np.divide(1.0, modes, out=np.zeros_like(modes), where=modes > 0.0)
        elastic = _ROUND_OFF * length * K[np.ix_(s.elastic, s.elastic)] @ inverse
        largest += float((elastic * inverse).max())
        noise[s.elastic] = elastic + springs * modes
    rigid = np.isfinite(levers)
    noise[rigid] = levers[rigid] * largest
    return noise


def constraint_speed(eqs: Assembler, t: float) -> tuple[int, float]:
    """Return the index of the constraint with the largest rate, and this rate, m/s or rad/s."""
    rates_of_drivers, _ = eqs.constraint_rates(t)
    rates = eqs.constraint_matrix() @ eqs.v + rates_of_drivers
    row = int(np.argmax(np.abs(rates)))
    return row, float(np.abs(rates[row]))
