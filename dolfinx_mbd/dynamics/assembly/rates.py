"""Velocities, accelerations and multipliers that satisfy the time derivatives of constraints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.mechanism.system import State, System

Index = NDArray[np.integer]

_RATE_TOLERANCE = 1e-7  # largest error of constraint and joint rates relative to the largest rate


def consistent_rates(system: System, state: State) -> State:
    """Return the state with velocities, accelerations and multipliers for Φ̇ = 0 and Φ̈ = 0.

    The change of the velocities has the least kinetic energy; coordinates do not change.
    """
    eqs = Assembler(system)
    eqs.q[:], eqs.angles[:] = state.q, state.angles
    eqs.loads.put_content(state.memory)
    free = np.arange(system.num_velocities)
    inertia = velocities(eqs, state.time, state.v, free)
    accelerations(eqs, state.time, free, inertia)
    return State(state.time, state.q, eqs.v.copy(), eqs.a.copy(), eqs.lam.copy(), state.angles)


def jerk_at(system: System, state: State, dt: float) -> tuple[Array, Array]:
    """Return the jerk (rate of the accelerations) and its constrained part, (nv,) each.

    The constrained part is the vector of smallest norm in the mass metric that has the same product
    as the jerk with the gradients of the constraints on positions.
    """
    eqs, step = _later_assembler(system, state, dt)
    eqs.update_poses(state.time + step)
    accelerations(eqs, state.time + step, np.arange(system.num_velocities))
    jerk = np.asarray((eqs.a - state.a) / step, dtype=float)
    if system.num_constraints == 0:
        return jerk, np.zeros_like(jerk)
    M, B = eqs.inertia(state.time + step)
    return jerk, _constrained_part(M, B[~system.velocity_rows], jerk)


def _constrained_part(M: Array, B: Array, x: Array) -> Array:
    """Return the vector of smallest norm in the mass metric with the same product B x."""
    part, _ = saddle(M, B, np.zeros_like(x), B @ x)
    return part


def _later_assembler(system: System, state: State, dt: float) -> tuple[Assembler, float]:
    """Return an assembler at the time 0.01 dt after a state, and this time difference (s)."""
    eqs, step = Assembler(system), 0.01 * dt
    eqs.q[:], eqs.angles[:] = state.q, state.angles
    eqs.loads.put_content(state.memory)
    eqs.move(eqs.q.copy(), step * state.v + 0.5 * step * step * state.a)
    eqs.v[:] = state.v + step * state.a
    return eqs, step


def restart(
    system: System, state: State, dt: float, offset: Array
) -> tuple[State, Array, Array, Array]:
    """Return the consistent state, its constrained jerk and the unconstrained part of `offset`.

    `offset` (nv,) is a difference of accelerations. The jerk (nv,) follows from the third time
    derivative of the constraints alone; stiff forces do not affect it. The last result is its part
    due to the constraints on positions.
    """
    consistent = consistent_rates(system, state)
    if system.num_constraints == 0:
        return consistent, np.zeros_like(offset), offset, np.zeros_like(offset)
    eqs, step = _later_assembler(system, consistent, dt)
    eqs.update_poses(consistent.time + step)
    M, B = eqs.inertia(consistent.time + step)
    _, bias = eqs.constraint_rates(consistent.time + step)
    zero = np.zeros_like(offset)
    lower = np.asarray(-(B @ consistent.a + bias) / step, dtype=float)
    constrained, _ = saddle(M, B, zero, lower)
    free = offset - _constrained_part(M, B, offset)
    by_positions = constrained
    if system.velocity_rows.any():
        by_positions = _constrained_part(M, B[~system.velocity_rows], constrained)
    return consistent, constrained, free, by_positions


def velocities(
    eqs: Assembler, t: float, v: Array, free: Index, rates: Mapping[str, float] | None = None
) -> tuple[Array, Array] | None:
    """Set velocities with Bv + ∂Φ/∂t = 0 and the joint rates `rates`, rad/s or m/s.

    The velocities are as close as possible to `v` (nv,) in the mass metric and differ from `v` only
    at the indices `free`. Raises an `AssemblyError` if no velocities have these rates.

    Return M and B for `accelerations` at these coordinates, if they depend on q alone.
    """
    rates = rates or {}
    eqs.update_poses(t)
    eqs.v[:] = v
    if eqs.system.num_constraints == 0 and not rates:
        return None
    eqs.a[:], eqs.lam[:] = 0.0, 0.0
    M, B = inertia = eqs.inertia(t)
    B = np.concatenate([B, rate_rows(eqs, rates)])
    explicit, _ = eqs.constraint_rates(t)
    speeds = np.concatenate([-explicit, np.array([*rates.values()], dtype=float)])
    block = np.ix_(free, free)
    try:
        change, _ = saddle(M[block], B[:, free], np.zeros(len(free)), speeds - B @ v)
    except np.linalg.LinAlgError:
        change = np.full(len(free), np.nan)
    eqs.v[free] += change
    error = np.abs(B @ eqs.v - speeds).max()
    if np.isnan(error) or (
        rates and error > _RATE_TOLERANCE * max(float(np.abs(speeds).max()), 1e-3)
    ):
        names = ", ".join(map(repr, rates))
        reason = f"the rates of {names} contradict the constraints or each other"
        singular = "no unique velocities: the equations are singular"
        raise AssemblyError(f"{reason if rates else singular} at t = {t:g} s")
    return None if eqs.frames.has_others else inertia


def rate_rows(eqs: Assembler, rates: Mapping[str, float]) -> Array:
    """Return the derivatives of joint rates with respect to v, shape (rates, nv)."""
    axes = {name: eqs.system.joint(name).default_motion for name in rates}
    rows = [eqs.frames.axis_gradient(name, axis) for name, axis in axes.items()]
    return np.array(rows).reshape(len(rows), eqs.system.num_velocities)


def accelerations(
    eqs: Assembler, t: float, free: Index, inertia: tuple[Array, Array] | None = None
) -> None:
    """Set multipliers and free accelerations at the current q and v; see `steady_accelerations`.

    `inertia` is the result of `velocities` for the same coordinates.
    """
    s = eqs.system
    eqs.a[:], eqs.lam[:] = steady_accelerations(eqs, free), 0.0
    eqs.residual(t)
    M, B = eqs.inertia(t) if inertia is None else inertia
    lower: Array = np.zeros(0)
    if s.num_constraints:
        _, bias = eqs.constraint_rates(t)
        lower = -bias - B @ eqs.a
    block = np.ix_(free, free)
    try:
        eqs.a[free], eqs.lam[:] = saddle(M[block], B[:, free], -eqs.rows[free], lower)
    except np.linalg.LinAlgError as error:
        raise AssemblyError(
            f"no unique accelerations at t = {t:g} s: the equations are singular"
        ) from error
    eqs.settle(t)


def steady_accelerations(eqs: Assembler, free: Index) -> Array:
    """Return the accelerations that are not free: the `steady_rates` of a body, or zero."""
    s = eqs.system
    out = np.zeros(s.num_velocities)
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        steady = getattr(body, "steady_rates", None)
        if steady is not None:
            out[vs] = steady(eqs.q[qs], eqs.v[vs])
    out[free] = 0.0
    return out


def saddle(M: Array, B: Array, upper: Array, lower: Array) -> tuple[Array, Array]:
    """Solve [M Bᵀ; B 0] (x, y) = (upper, lower) with B scaled to the size of M."""
    n, m = len(M), len(B)
    scale = max(float(np.abs(np.diag(M)).max(initial=0.0)), 1e-300)
    S = np.zeros((n + m, n + m))
    S[:n, :n], S[:n, n:], S[n:, :n] = M, scale * B.T, scale * B
    solution = np.linalg.solve(S, np.concatenate([upper, scale * lower]))
    return solution[:n], scale * solution[n:]
