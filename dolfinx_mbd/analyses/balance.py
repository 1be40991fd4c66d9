"""Balance of forces in a steady rotation: its evaluation, Newton's method, and its checks.

The unknowns are the motions that the constraints permit, resolved in `axes` (see `small_motions`).
Newton's method finds equilibria of any kind, also those with an indefinite stiffness. A correction
is shortened until the next correction, computed with the same stiffness, is smaller (Deuflhard's
natural monotonicity test).

References:
    P. Deuflhard, Newton Methods for Nonlinear Problems, Springer 2004, chapter 3.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.analyses.poles import grows, poles_of
from dolfinx_mbd.analyses.small_motions import (
    Axes,
    SmallMotions,
    balanced_motions,
    free_directions,
    move_steadily,
    set_steady_velocities,
    steady_rates,
)
from dolfinx_mbd.analyses.unbalanced_forces import unbalanced
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.position_assembly import assemble
from dolfinx_mbd.dynamics.start.quasi_static import EquilibriumError
from dolfinx_mbd.dynamics.stepping.convergence import row_groups

__all__ = [
    "bounded",
    "check_steady",
    "is_unstable",
    "newton_balance",
    "restore_constraints",
    "set_and_linearize",
    "small_step",
]

# Largest step: a rotation, rad, or a displacement relative to the mechanism's size (at least 1 m)
_MAX_STEP = 0.3
_RANK = 1e-12  # singular values of the stiffness below this fraction of the largest are ignored
_ITERATIONS = 50  # corrections of Newton's method
_HALVINGS = 10  # halvings of one correction
_DECREASE = 0.25  # least decrease of the next correction, per fraction of a correction
_ROUND_OFF = 1e-12  # ratio of unbalanced forces below which the next correction is only round-off
_STEADY = 1e-6  # largest unbalanced force of a steady rotation, relative to the acting forces
_ROTATION = 0.3  # rotation of the mechanism after which its forces must balance as before, rad


def set_and_linearize(eqs: Assembler, t: float, axes: Axes) -> SmallMotions:
    """Set velocities, accelerations and reactions (least squares); return the linear equations."""
    set_steady_velocities(eqs, axes)
    eqs.a[:] = steady_rates(eqs, axes)
    return balanced_motions(eqs, t, axes)


def restore_constraints(eqs: Assembler, t: float) -> None:
    """Satisfy the constraints by moving the bodies or, if that fails, by deforming them."""
    s = eqs.system
    q = eqs.q.copy()
    try:
        assemble(eqs, t)
    except AssemblyError:
        if not len(s.elastic):
            raise
        eqs.q[:] = q
        assemble(eqs, t, columns=np.arange(s.num_velocities))  # all coordinates may change
    eqs.update_poses(t)


def bounded(eqs: Assembler, increments: Array) -> Array:
    """Return increments (nv,), scaled if a displacement, m, or rotation, rad, is large."""
    rigid = eqs.system.rigid
    is_rotation = row_groups(eqs.system)[rigid] % 3 == 1  # group 3k + 1: moments of body k
    sizes = np.where(is_rotation, 1.0, max(eqs.system.size, 1.0))  # rad or m
    largest = float((np.abs(increments[rigid]) / sizes).max(initial=0.0))
    return increments * min(1.0, _MAX_STEP / max(largest, 1e-300))


def small_step(eqs: Assembler, t: float, axes: Axes, delta: Array) -> SmallMotions:
    """Move by increments (nv,) from the state of `eqs`; then `set_and_linearize`."""
    states = eqs.system.states  # states of loads; their values are in v, not in q
    move = delta.copy()
    move[states] = 0.0
    eqs.move(eqs.q.copy(), move)
    eqs.v[states] += delta[states]
    restore_constraints(eqs, t)
    return set_and_linearize(eqs, t, axes)


def newton_balance(eqs: Assembler, t: float, axes: Axes, tolerance: float) -> bool:
    """Move to the equilibrium that Newton's method finds; return whether it converged."""
    try:
        motions = set_and_linearize(eqs, t, axes)
        for _ in range(_ITERATIONS):
            _, ratio = unbalanced(eqs, t)
            if ratio <= tolerance:
                return True
            basis = free_directions(motions)
            K = basis.T @ motions.statics @ basis
            if not basis.shape[1] or not np.isfinite(K).all():
                return False
            force = basis.T @ (motions.to_increments.T @ eqs.rows)  # unbalanced
            step = _solve(K, force)  # in the coordinates of the free motions
            moved = _damped_step(eqs, t, axes, motions, basis, K, step)
            if moved is None:
                return False
            motions = moved
    except (AssemblyError, np.linalg.LinAlgError):
        return False
    return False


def _solve(K: Array, force: Array) -> Array:
    """Return the correction −K⁻¹ f for unbalanced forces f, of least norm if K is singular."""
    return np.asarray(np.linalg.lstsq(K, -force, rcond=_RANK)[0], dtype=float)


def _damped_step(
    eqs: Assembler,
    t: float,
    axes: Axes,
    motions: SmallMotions,
    basis: Array,
    K: Array,
    step: Array,
) -> SmallMotions | None:
    """Move by a fraction of a correction that is followed by a smaller one; None if none is."""
    start = eqs.state(t)
    increments = basis @ step
    delta = bounded(eqs, increments)
    fraction = float(np.linalg.norm(delta)) / max(float(np.linalg.norm(increments)), 1e-300)
    size = float(np.linalg.norm(step))
    for _ in range(_HALVINGS):
        eqs.put(start)
        try:
            trial = small_step(eqs, t, axes, motions.to_increments @ (fraction * increments))
        except AssemblyError:
            trial = None
        if trial is not None and np.isfinite(eqs.rows).all():
            next_step = _solve(K, basis.T @ (trial.to_increments.T @ eqs.rows))
            if np.linalg.norm(next_step) <= (1 - _DECREASE * fraction) * size:
                return trial
            _, ratio = unbalanced(eqs, t)
            if ratio <= _ROUND_OFF:
                return trial
        fraction *= 0.5
    return None


def is_unstable(eqs: Assembler, t: float, axes: Axes) -> bool:
    """Return whether small disturbances of the steady rotation grow."""
    motions = set_and_linearize(eqs, t, axes)
    basis = free_directions(motions)
    if not basis.shape[1]:
        return False
    poles, _ = poles_of(*motions.reduced(basis), len(eqs.system.states))
    return grows(poles)


def check_steady(eqs: Assembler, t: float, axes: Axes) -> None:
    """Raise an error if the forces do not balance after a part of the rotation."""
    state, speed = eqs.state(t), float(np.linalg.norm(axes.spin[0]))
    if axes.rotors is not None:
        speed = max(speed, float(np.linalg.norm(axes.rotors, axis=1).max()))
    if not speed:
        return
    step = _ROTATION / speed
    later_axes = move_steadily(eqs, axes, step)
    eqs.a[:] = steady_rates(eqs, later_axes)
    balanced_motions(eqs, t + step, later_axes)
    row, ratio = unbalanced(eqs, t + step)
    force = abs(eqs.rows[row])
    eqs.put(state)
    eqs.update_poses(t)
    if ratio > _STEADY:
        raise EquilibriumError(
            f"no steady rotation at t = {t:g} s: the forces change while the mechanism rotates; "
            f"after {_ROTATION:g} rad, {eqs.system.row_name(row)} is left with {force:.3g} (N or "
            "N m) unbalanced. Gravity across the axis, time-dependent loads, or supports with "
            "different stiffness in two directions have this effect; a round and balanced rotor "
            "has an equilibrium in axes='global'. Otherwise use mbd.analyses.periodic"
        )
