"""Velocities, accelerations and multipliers that satisfy the time derivatives of constraints."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.multibody.model.system import State, SystemData

__all__ = [
    "accelerations",
    "consistent_rates",
    "jerk_at",
    "rate_rows",
    "restart",
    "saddle",
    "steady_accelerations",
    "velocities",
]

Array = NDArray[np.float64]
Index = NDArray[np.integer]

_OFF = 1e-7  # largest error of constraint and joint rates relative to the largest rate


def consistent_rates(system: SystemData, state: State) -> State:
    """Return the state with velocities, accelerations and multipliers for Φ̇ = 0 and Φ̈ = 0.

    Velocities change as little as possible in kinetic energy; coordinates do not change.
    """
    at = Assembler(system)
    at.q[:], at.angles[:] = state.q, state.angles
    free = np.arange(system.num_velocities)
    velocities(at, state.time, state.v, free)
    accelerations(at, state.time, free)
    return State(state.time, state.q, at.v.copy(), at.a.copy(), at.lam.copy(), state.angles)


def jerk_at(system: SystemData, state: State, dt: float) -> tuple[Array, Array]:
    """Return the jerk (rate of the accelerations) and its constrained part, (nv,) each.

    The constrained part has the same product with B and the smallest norm in the mass metric.
    """
    at, step = _ahead(system, state, dt)
    at.update_poses(state.time + step)
    accelerations(at, state.time + step, np.arange(system.num_velocities))
    jerk = np.asarray((at.a - state.a) / step, dtype=float)
    if system.num_constraints == 0:
        return jerk, np.zeros_like(jerk)
    tangent = at.tangent(state.time + step)
    constrained, _ = saddle(tangent.M, tangent.B, np.zeros_like(jerk), tangent.B @ jerk)
    return jerk, constrained


def _ahead(system: SystemData, state: State, dt: float) -> tuple[Assembler, float]:
    """Return an assembler a hundredth of a step after a state, and this time interval (s)."""
    at, step = Assembler(system), 0.01 * dt
    at.q[:], at.angles[:] = state.q, state.angles
    at.move(at.q.copy(), step * state.v + 0.5 * step * step * state.a)
    at.v[:] = state.v + step * state.a
    return at, step


def restart(
    system: SystemData, state: State, dt: float, offset: Array
) -> tuple[State, Array, Array]:
    """Return the consistent state, its constrained jerk and the unconstrained part of an offset.

    `offset` (nv,) is an offset of the accelerations. The jerk (nv,) follows from the third time
    derivative of the constraints alone, without stiff forces.
    """
    fresh = consistent_rates(system, state)
    if system.num_constraints == 0:
        return fresh, np.zeros_like(offset), offset
    at, step = _ahead(system, fresh, dt)
    at.residual(fresh.time + step)
    tangent = at.tangent(fresh.time + step)
    _, bias = at.constraint_rates(fresh.time + step)
    zero = np.zeros_like(offset)
    below = np.asarray(-(tangent.B @ fresh.a + bias) / step, dtype=float)
    constrained, _ = saddle(tangent.M, tangent.B, zero, below)
    part, _ = saddle(tangent.M, tangent.B, zero, tangent.B @ offset)
    return fresh, constrained, offset - part


def velocities(
    at: Assembler, t: float, v: Array, free: Index, rates: Mapping[str, float] | None = None
) -> None:
    """Set velocities with Bv + ∂Φ/∂t = 0 and the joint rates `rates`, rad/s or m/s.

    They are as close as possible to `v` (nv,) in the mass metric and differ from it only at the
    indices `free`. Raises an `AssemblyError` if no velocities have these rates.
    """
    rates = rates or {}
    at.update_poses(t)
    at.v[:] = v
    if at.system.num_constraints == 0 and not rates:
        return
    at.a[:], at.lam[:] = 0.0, 0.0
    at.residual(t)
    tangent = at.tangent(t)
    B = np.concatenate([tangent.B, rate_rows(at, rates)])
    speeds = np.concatenate([-at.constraint_rates(t)[0], np.array([*rates.values()], dtype=float)])
    part = np.ix_(free, free)
    try:
        change, _ = saddle(tangent.M[part], B[:, free], np.zeros(len(free)), speeds - B @ v)
    except np.linalg.LinAlgError:
        change = np.full(len(free), np.nan)
    at.v[free] += change
    off = np.abs(B @ at.v - speeds).max()
    if np.isnan(off) or (rates and off > _OFF * max(float(np.abs(speeds).max()), 1e-3)):
        names = ", ".join(map(repr, rates))
        reason = f"the rates of {names} contradict the constraints or each other"
        singular = "no unique velocities: the equations are singular"
        raise AssemblyError(f"{reason if rates else singular} at t = {t:g} s")


def rate_rows(at: Assembler, rates: Mapping[str, float]) -> Array:
    """Return the derivatives of joint rates with respect to v, shape (rates, nv)."""
    rows = [at.axis_gradient(name, at.system.joint(name).axis_by_default) for name in rates]
    return np.array(rows).reshape(len(rows), at.system.num_velocities)


def accelerations(at: Assembler, t: float, free: Index) -> None:
    """Set multipliers and free accelerations at the current q and v; see `steady_accelerations`."""
    s = at.system
    at.a[:], at.lam[:] = steady_accelerations(at, free), 0.0
    at.residual(t)
    tangent = at.tangent(t)
    below = -at.constraint_rates(t)[1] - tangent.B @ at.a if s.num_constraints else np.zeros(0)
    part = np.ix_(free, free)
    try:
        at.a[free], at.lam[:] = saddle(tangent.M[part], tangent.B[:, free], -at.rows[free], below)
    except np.linalg.LinAlgError as error:
        raise AssemblyError(
            f"no unique accelerations at t = {t:g} s: the equations are singular"
        ) from error


def steady_accelerations(at: Assembler, free: Index) -> Array:
    """Return the accelerations that are not free: the `steady_rates` of a body, or zero."""
    s = at.system
    out = np.zeros(s.num_velocities)
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        steady = getattr(body, "steady_rates", None)
        if steady is not None:
            out[vs] = steady(at.q[qs], at.v[vs])
    out[free] = 0.0
    return out


def saddle(M: Array, B: Array, right: Array, below: Array) -> tuple[Array, Array]:
    """Solve [M Bᵀ; B 0] (x, y) = (right, below) with B scaled to the size of M."""
    n, m = len(M), len(B)
    scale = max(float(np.abs(np.diag(M)).max(initial=0.0)), 1e-300)
    S = np.zeros((n + m, n + m))
    S[:n, :n], S[:n, n:], S[n:, :n] = M, scale * B.T, scale * B
    solution = np.linalg.solve(S, np.concatenate([right, scale * below]))
    return solution[:n], scale * solution[n:]
