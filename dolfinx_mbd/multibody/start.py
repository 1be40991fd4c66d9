"""A consistent start: positions, velocities, accelerations, multipliers are solved for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.assembly import Assembler
from dolfinx_mbd.multibody.joints import SLIDING, TURNING
from dolfinx_mbd.multibody.redundancy import Redundancy, find_redundant
from dolfinx_mbd.multibody.system import State, System

__all__ = [
    "AssemblyError",
    "assemble",
    "consistent_rates",
    "consistent_state",
    "jerk_at",
    "move",
    "redundancies",
    "restart",
]

Array = NDArray[np.float64]
Index = NDArray[np.integer]

_ITERATIONS = 50


class AssemblyError(ValueError):
    """A mechanism cannot be put together: its constraints contradict or repeat each other."""


def consistent_state(
    system: System,
    t: float = 0.0,
    *,
    elastic: Literal["quasi-static", "undeformed"] = "quasi-static",
    q: Array | None = None,
    v: Array | None = None,
    rates: Mapping[str, float] | None = None,
) -> State:
    """Solve for a state that fulfils the constraints and their first two derivatives.

    Positions are the nearest to the bodies' own ones, velocities the nearest to ``v`` in kinetic
    energy.

    Args:
        system: The mechanism.
        t: Time, s.
        elastic: ``quasi-static``: elastic forces balance the forces of the motion at η̈ = 0, and η̇
            is the rate at which that balance moves, so that nothing rings; ``undeformed``: η and η̇
            as in ``q`` and ``v`` (zero by default), η̈ follows.
        q: Coordinates to start from, shape (nq,); None: the bodies' own.
        v: Velocities to start from, shape (nv,); None: rest.
        rates: Rates of joints at the start, by name: rad/s about the axis of revolute and
            cylindrical joints, m/s along that of prismatic ones.

    Raises:
        AssemblyError: If the constraints cannot be met or repeat each other; the message names
            them.
        ValueError: If ``elastic`` or a joint is unknown, or a joint has no rate.
    """
    if elastic not in ("quasi-static", "undeformed"):
        raise ValueError(f"elastic must be 'quasi-static' or 'undeformed', got {elastic!r}")
    at = Assembler(system)
    at.q[:] = _initial(system) if q is None else q
    wanted = np.zeros(system.num_velocities) if v is None else np.array(v, dtype=float)
    quasi_static = elastic == "quasi-static" and len(system.elastic) > 0
    if quasi_static:
        wanted[system.elastic] = 0.0
        free = system.rigid
    else:
        free = np.arange(system.num_velocities)
    at.v[:] = wanted
    if rates:
        assemble(at, t, system.rigid)
        _check_rank(at, free)
        wanted = _with_rates(at, t, wanted, _moving(at, system.rigid, free), rates)
    _start_at(at, t, wanted, system.rigid, free)
    if quasi_static:
        _settle(at, t, wanted)
        wanted[system.elastic] = _settled_rate(at, t)
        _start_at(at, t, wanted, system.rigid, system.rigid)
        _settle(at, t, wanted)
    at.update_poses(t)
    return State(t, at.q.copy(), at.v.copy(), at.a.copy(), at.lam.copy(), at.joint_rotations())


def _initial(system: System) -> Array:
    return np.concatenate([body.initial_coordinates() for body in system.bodies])


def _with_rates(
    at: Assembler, t: float, wanted: Array, free: Index, rates: Mapping[str, float]
) -> Array:
    """Velocities nearest to the wanted ones that fulfil the constraints and the joints' rates."""
    s = at.system
    at.update_poses(t)
    at.v[:], at.a[:], at.lam[:] = wanted, 0.0, 0.0
    at.residual(t)
    tangent = at.tangent(t)
    rows, values = [tangent.B], [-at.constraint_rates(t)[0]]
    for name, value in rates.items():
        joint = s.joint(name)
        if joint.kind not in TURNING + SLIDING:
            raise ValueError(f"{joint.kind} joint {name!r} has no single rate to start with")
        rows.append(at.axis_gradient(name, joint.axis_by_default)[None])
        values.append(np.array([float(value)]))
    B = np.concatenate(rows)
    part = np.ix_(free, free)
    below = np.concatenate(values) - B @ wanted
    try:
        change, _ = _saddle(tangent.M[part], B[:, free], np.zeros(len(free)), below)
    except np.linalg.LinAlgError as error:
        raise AssemblyError(
            f"the rates of {', '.join(map(repr, rates))} contradict the constraints or each other"
        ) from error
    out = wanted.copy()
    out[free] += change
    return out


def consistent_rates(system: System, state: State) -> State:
    """The state with velocities, accelerations and multipliers that fulfil Φ̇ = 0 and Φ̈ = 0.

    Velocities are the nearest in kinetic energy; positions and elastic coordinates stay.
    """
    at = Assembler(system)
    at.q[:], at.angles[:] = state.q, state.angles
    free = np.arange(system.num_velocities)
    _velocities(at, state.time, state.v, free)
    _accelerations(at, state.time, free)
    return State(state.time, state.q, at.v.copy(), at.a.copy(), at.lam.copy(), state.angles)


def jerk_at(system: System, state: State, dt: float) -> tuple[Array, Array]:
    """Rate of the accelerations along the motion, and its part in constrained directions, (nv,).

    That part is the nearest to zero, in the metric of the mass, that the constraints feel alike.
    """
    at = Assembler(system)
    step = 0.01 * dt
    at.q[:], at.angles[:] = state.q, state.angles
    move(at, step * state.v + 0.5 * step * step * state.a)
    at.v[:] = state.v + step * state.a
    free = np.arange(system.num_velocities)
    at.update_poses(state.time + step)
    _accelerations(at, state.time + step, free)
    jerk = np.asarray((at.a - state.a) / step, dtype=float)
    if system.num_constraints == 0:
        return jerk, np.zeros_like(jerk)
    tangent = at.tangent(state.time + step)
    held, _ = _saddle(tangent.M, tangent.B, np.zeros_like(jerk), tangent.B @ jerk)
    return jerk, held


def restart(system: System, state: State, dt: float, offset: Array) -> tuple[State, Array, Array]:
    """The consistent state, the jerk in constrained directions, and an offset without such a part.

    That jerk follows from the constraints' third derivative alone; what is stiff has no part in it.

    Args:
        system: The mechanism.
        state: A state of the integrator.
        dt: Its step, s; of it, a hundredth is that of a difference.
        offset: In the accelerations, shape (nv,).

    Returns:
        The state (:func:`consistent_rates`), and two arrays of shape (nv,).
    """
    fresh = consistent_rates(system, state)
    if system.num_constraints == 0:
        return fresh, np.zeros_like(offset), offset
    at, step = Assembler(system), 0.01 * dt
    at.q[:], at.angles[:] = fresh.q, fresh.angles
    move(at, step * fresh.v + 0.5 * step * step * fresh.a)
    at.v[:] = fresh.v + step * fresh.a
    at.residual(fresh.time + step)
    tangent = at.tangent(fresh.time + step)
    _, bias = at.constraint_rates(fresh.time + step)
    zero = np.zeros_like(offset)
    below = np.asarray(-(tangent.B @ fresh.a + bias) / step, dtype=float)
    held, _ = _saddle(tangent.M, tangent.B, zero, below)
    part, _ = _saddle(tangent.M, tangent.B, zero, tangent.B @ offset)
    return fresh, held, offset - part


def _start_at(at: Assembler, t: float, wanted: Array, rigid: Index, free: Index) -> None:
    assemble(at, t, rigid)
    _check_rank(at, free)
    _velocities(at, t, wanted, _moving(at, rigid, free))
    _accelerations(at, t, free)


def _moving(at: Assembler, rigid: Index, free: Index) -> Index:
    """Velocities that take up the constraints' rates: the rigid ones, if they can."""
    s = at.system
    if s.num_constraints == 0 or len(free) == len(rigid):
        return free
    B = at.constraint_matrix(at.jacobians())
    return free if find_redundant(s, B[:, rigid]) else rigid


def move(at: Assembler, delta: Array) -> None:
    """Move the assembler's coordinates by increments (nv,)."""
    s = at.system
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        body.increment(at.q[qs].copy(), delta[vs], at.q[qs])


def assemble(at: Assembler, t: float, rigid: Index) -> None:
    """Fulfil the constraints: Newton's method with least-norm corrections of some coordinates.

    Raises:
        AssemblyError: If it does not converge.
    """
    s = at.system
    if s.num_constraints == 0:
        return
    at.update_poses(t)
    length = max(1e-3, float(np.ptp(at.position, axis=0).max(initial=0.0)))
    best = np.inf
    for _ in range(_ITERATIONS):
        values = at.constraints(t)
        size = float(np.abs(values).max())
        if size < 1e-13 * length or (size < 1e-10 * length and size > 0.5 * best):
            break
        best = min(best, size)
        B = at.constraint_matrix(at.jacobians())[:, rigid]
        step = np.zeros(s.num_velocities)
        step[rigid] = np.linalg.lstsq(B, -values, rcond=1e-10)[0]
        largest = float(np.abs(step[rigid]).max())
        move(at, step * min(1.0, 0.5 * max(length, 1.0) / max(largest, 1e-300)))
    else:
        row = int(np.argmax(np.abs(values)))
        raise AssemblyError(
            f"the mechanism cannot be assembled at t = {t:g} s: after {_ITERATIONS} iterations "
            f"{s.constraint_name(row)} is off by {abs(values[row]):.3g} (m or rad). Check the "
            "lengths, and the positions and rotations that the bodies start from"
        )


def redundancies(system: System, t: float = 0.0, q: Array | None = None) -> list[Redundancy]:
    """Constraints that repeat each other where the mechanism is put together at time t.

    Raises:
        AssemblyError: If it cannot be put together.
    """
    at = Assembler(system)
    at.q[:] = _initial(system) if q is None else q
    assemble(at, t, system.rigid)
    if system.num_constraints == 0:
        return []
    at.update_poses(t)
    return find_redundant(system, at.constraint_matrix(at.jacobians()))


def _check_rank(at: Assembler, free: Index) -> None:
    """Refuse constraints that repeat each other in the free velocities, by name."""
    s = at.system
    if s.num_constraints == 0:
        return
    B = at.constraint_matrix(at.jacobians())
    found = find_redundant(s, B[:, free])
    if not found:
        return
    names = "; ".join(map(str, found))
    if len(free) < s.num_velocities and not find_redundant(s, B):
        raise AssemblyError(
            f"only the bodies' deformation tells some constraints apart ({names}), so that no "
            "quasi-static start can be found; use elastic_start='undeformed'"
        )
    raise AssemblyError(
        f"{len(found)} of the {s.num_constraints} constraints are redundant in this position: "
        f"{names}. Use joints that hold less (for a planar mechanism: one revolute, cylindrical "
        "and spherical ones elsewhere), or simulate with redundant='drop' or 'keep'"
    )


def _saddle(M: Array, B: Array, right: Array, below: Array) -> tuple[Array, Array]:
    """Solve [M Bᵀ; B 0] (x, y) = (right, below), rows scaled."""
    n, m = len(M), len(B)
    scale = max(float(np.abs(np.diag(M)).max(initial=0.0)), 1e-300)
    S = np.zeros((n + m, n + m))
    S[:n, :n], S[:n, n:], S[n:, :n] = M, scale * B.T, scale * B
    solution = np.linalg.solve(S, np.concatenate([right, scale * below]))
    return solution[:n], scale * solution[n:]


def _velocities(at: Assembler, t: float, wanted: Array, free: Index) -> None:
    """Velocities with Bv + ∂Φ/∂t = 0, nearest to the wanted ones in the metric of the mass."""
    s = at.system
    at.update_poses(t)
    at.v[:] = wanted
    if s.num_constraints == 0:
        return
    at.a[:], at.lam[:] = 0.0, 0.0
    at.residual(t)
    tangent = at.tangent(t)
    rate, _ = at.constraint_rates(t)
    part = np.ix_(free, free)
    change, _ = _saddle(
        tangent.M[part], tangent.B[:, free], np.zeros(len(free)), -(rate + tangent.B @ wanted)
    )
    at.v[free] += change


def _accelerations(at: Assembler, t: float, free: Index) -> None:
    """Accelerations and multipliers at given q and v; those not free are as `_steady` has them."""
    s = at.system
    at.a[:], at.lam[:] = _steady(at, free), 0.0
    at.residual(t)
    tangent = at.tangent(t)
    below = -at.constraint_rates(t)[1] - tangent.B @ at.a if s.num_constraints else np.zeros(0)
    part = np.ix_(free, free)
    try:
        at.a[free], at.lam[:] = _saddle(tangent.M[part], tangent.B[:, free], -at.rows[free], below)
    except np.linalg.LinAlgError as error:
        raise AssemblyError(
            f"no unique accelerations at t = {t:g} s: the equations are singular"
        ) from error


def _steady(at: Assembler, free: Index) -> Array:
    """Accelerations that are not free: 0, or what a body says of turning without deforming."""
    s = at.system
    out = np.zeros(s.num_velocities)
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        steady = getattr(body, "steady_rates", None)
        if steady is not None:
            out[vs] = steady(at.q[qs], at.v[vs])
    out[free] = 0.0
    return out


def _settle(at: Assembler, t: float, wanted: Array) -> None:
    """Elastic coordinates in balance with the motion: K-steps on the elastic rows, at least one.

    (Balances a moment apart differ by less than the threshold where the motion is slow.)
    """
    s = at.system
    for iteration in range(_ITERATIONS):
        at.residual(t)
        rows = at.rows[s.elastic]
        size = max(float(at.scale[s.elastic].max()), 1e-300)
        if iteration and np.abs(rows).max() <= 1e-11 * size:
            return
        stiffness = at.tangent(t).K[np.ix_(s.elastic, s.elastic)]
        step = np.zeros(s.num_velocities)
        try:
            step[s.elastic] = np.linalg.solve(stiffness, -rows)
        except np.linalg.LinAlgError as error:
            raise AssemblyError(
                "no quasi-static start: the elastic stiffness is singular; use elastic='undeformed'"
            ) from error
        move(at, step)
        _start_at(at, t, wanted, s.rigid, s.rigid)
    raise AssemblyError(
        "the quasi-static elastic start does not converge (the motion may be too fast for the "
        "body's stiffness); use elastic='undeformed'"
    )


def _settled_rate(at: Assembler, t: float) -> Array:
    """Rate of the settled elastic coordinates along the motion, by central differences."""
    s = at.system
    # the motion of a thousandth of a radian, or (at rest, where a driver may run up) a short time
    step = min(1e-5, 1e-3 / max(1e-3, float(np.abs(at.v[s.rigid]).max())))
    settled = []
    for h in (step, -step):
        beside = Assembler(s)
        beside.q[:], beside.angles[:] = at.q, at.angles
        move(beside, h * at.v + 0.5 * h * h * at.a)
        wanted = at.v + h * at.a
        _start_at(beside, t + h, wanted, s.rigid, s.rigid)
        _settle(beside, t + h, wanted)
        parts = [
            slice(q.stop - body.num_elastic, q.stop)
            for body, q in zip(s.bodies, s.q_slices, strict=True)
        ]
        settled.append(np.concatenate([beside.q[part] for part in parts]))
    return (settled[0] - settled[1]) / (2 * step)
