"""Consistent initial states: positions, velocities, accelerations and multipliers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import null_space

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, choice, instance, number
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.assembly.rates import accelerations, rate_rows, saddle, velocities
from dolfinx_mbd.dynamics.start.mesh_start import mesh_state
from dolfinx_mbd.dynamics.start.named_vectors import named_vector
from dolfinx_mbd.dynamics.start.position_assembly import (
    assemble,
    coordinates,
    fit_misfits,
    redundant_rows,
    restore,
    warn_of_moves,
)
from dolfinx_mbd.dynamics.start.quasi_static import Balance
from dolfinx_mbd.dynamics.stepping.convergence import Measure
from dolfinx_mbd.errors import InputError, PlacementWarning
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["check_state", "consistent_state", "move", "transferred_state"]

Index = NDArray[np.integer]

_MAX_ITERATIONS = 50
_RANK_TOLERANCE = 1e-10  # singular values below this fraction of the largest one count as zero
_RATE_TOLERANCE = 1e-7  # largest error of the initial velocities relative to the largest one


def consistent_state(
    system: System,
    t: float = 0.0,
    *,
    elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
    q: ArrayLike | Mapping[str, ArrayLike] | None = None,
    v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    rates: Mapping[str, float] | None = None,
) -> State:
    """Compute a state that satisfies the constraints and their first two time derivatives.

    Positions are as close as possible to the initial positions of the bodies. The difference of the
    velocities from `v` has the least kinetic energy. Without `v`, bodies and joints have their
    specified velocities. If a body specifies only one of `velocity` and `omega`, the other one is
    zero or, if joints determine it, as small as possible. The kinetic energy of the other bodies is
    as small as possible. The rates of a quasi-static deformation then change the velocities of
    bodies slightly.

    Without `q` and `v`, joints with clearance move as ideal joints, unless the initial velocities
    of bodies contradict ideal joints. Rigid bodies remain where they are if this is within the
    clearances.

    Args:
        system: The mechanism.
        t: Time, s.
        elastic_start: With `quasi-static`, elastic forces balance all other forces at η̈ = 0, and
            η̇ is the rate of this equilibrium, so that no vibrations are excited. With
            `undeformed`, η and η̇ are taken from `q` and `v` and are zero by default.
        q: Start coordinates, shape (nq,), or by name: ``rod.position``, ``rod.rotation`` and
            ``rod.eta`` as in `BodyHistory`, or ``rod`` for all coordinates of a body. By default,
            and for other bodies, the initial coordinates of the bodies.
        v: Start velocities, shape (nv,), or by name: ``rod.velocity``, ``rod.omega`` and
            ``rod.eta_rate``, or ``rod``; other velocities then follow as those of bodies that
            specify initial velocities. The default is zero if `q` is given, or if t is not 0 and
            the mechanism has drivers; otherwise it follows from `velocity` and `omega` of the
            bodies and `rate` of the joints.
        rates: Rates of joints by name: rotation of revolute, cylindrical and planar joints (rad/s),
            displacement of prismatic and point-on-line joints (m/s). If the joint itself
            has a different `rate`, an error is raised.

    Returns:
        The state, with accelerations and multipliers.

    Warns:
        PlacementWarning: The assembly moves a body by more than 1e-3 of the size of the mechanism
            or 1e-3 rad, at t = 0 or in a mechanism without drivers.

    Raises:
        AssemblyError: The constraints cannot be satisfied, are redundant, or contradict the rates
            or the velocities of bodies; the message names the cause.
        EquilibriumError: No quasi-static equilibrium was found.
        InputError: A joint is unknown or has no single rate, or another argument is invalid.

    Example:
        >>> state = mbd.dynamics.consistent_state(pendulum, rates={"hinge": 2.0})
        >>> round(state.v[5].item(), 9)
        2.0
        >>> state = mbd.dynamics.consistent_state(pendulum, v={"rod.omega": (0, 0, 2)})
        >>> round(state.v[5].item(), 9)
        2.0
    """
    instance("system", system, System)
    t = number("t", t, unit="s")
    choice("elastic_start", elastic_start, ("quasi-static", "undeformed"))
    if isinstance(q, Mapping):
        q = named_vector(system, "q", q)
    speeds = named_vector(system, "v", v) if isinstance(v, Mapping) else None
    if system.with_rigid_bodies is not system:
        return mesh_state(system, t, elastic_start, (q, v, rates), consistent_state)
    by_default = q is None and v is None and (t == 0.0 or not system.drivers)
    rates = _joint_rates(system, rates, by_default)
    if q is None and v is None and system.has_clearance:
        state = _ideal_state(system, t, elastic_start, rates)
        if state is not None:
            return state
    eqs, free = Assembler(system), np.arange(system.num_velocities)
    eqs.q[:] = coordinates(system, q)
    if q is None:
        assemble(eqs, t, system.rigid)
        if t == 0.0 or not system.drivers:  # at other times drivers have moved the bodies
            warn_of_moves(eqs, t)
    start = np.zeros(len(free))
    start[system.states] = system.initial_states
    if speeds is not None:
        start[:] = _start_velocities(eqs, t, rates, speeds)
    elif v is not None:
        start[:] = array("v", v, start.shape)
    elif by_default:
        start[:] = _start_velocities(eqs, t, rates, _body_velocities(system))
    if elastic_start == "undeformed" or not len(system.elastic):
        restore(eqs, t, start, rates, free)
    else:
        start[system.elastic] = 0.0
        rows = _held_by_deformation(eqs, t)
        if rows:
            part = system.without_rows(rows)
            state = consistent_state(part, t, q=eqs.q, v=start, rates=rates)
            return _with_held_rows(eqs, state, rows)
        Balance(eqs, t, rates).start(start)
    eqs.update_poses(t)
    if problem := eqs.problem():
        raise AssemblyError(f"at t = {t:g} s: {problem}")
    return eqs.state(t)


def _ideal_state(
    system: System,
    t: float,
    elastic_start: Literal["quasi-static", "undeformed"],
    rates: Mapping[str, float],
) -> State | None:
    """Return the state in which the joints with clearance move as ideal joints.

    Return None if the initial velocities of bodies contradict ideal joints. Rigid bodies remain at
    their initial positions if these are within the clearances.
    """
    eqs = Assembler(system)
    eqs.q[:] = coordinates(system)
    assemble(eqs, t, system.rigid)
    eqs.update_poses(t)
    eqs.frames.update_velocities()
    fits = not len(system.elastic) and not (eqs.loads.contact_states()[:, 0] < 0.0).any()
    try:
        with warnings.catch_warnings():
            if fits:
                warnings.simplefilter("ignore", PlacementWarning)
            ideal, redundant = fit_misfits(system.whole.ideal, t)
            if redundant:
                ideal = ideal.without_rows([r.row for r in redundant])
            state = consistent_state(ideal, t, elastic_start=elastic_start, rates=rates)
    except AssemblyError:
        return None
    if fits:
        state = replace(state, q=eqs.q.copy())
    return transferred_state(state, ideal, system)


def _joint_rates(
    system: System, rates: Mapping[str, float] | None, by_default: bool
) -> dict[str, float]:
    """Return the requested rates of joints, and with `by_default` those that the joints specify."""
    rates = dict(instance("rates", {} if rates is None else rates, Mapping))
    for name, rate in rates.items():
        number(f"rates[{name!r}]", rate)
        joint = system.joint(name)
        if not joint.motions:
            raise InputError(f"{joint.kind} joint {name!r} has no single rate to start with")
        if by_default and joint.rate not in (None, rate):
            raise InputError(
                f"joint {name!r} has the initial rate {joint.rate:g}, but the start specifies "
                f"{rate:g}; specify one of them",
                argument="rates",
                value=rate,
            )
    specified = {j.name: j.rate for j in system.joints if j.rate is not None}
    return {**specified, **rates} if by_default else rates


def _body_velocities(system: System) -> Array:
    """Return the initial velocities of the bodies, (nv,); NaN where a body specifies none."""
    speeds = np.full(system.num_velocities, np.nan)
    for body, part in zip(system.bodies, system.v_slices, strict=True):
        if hasattr(body, "initial_velocities"):
            speeds[part] = body.initial_velocities()
    return speeds


def _start_velocities(eqs: Assembler, t: float, rates: Mapping[str, float], speeds: Array) -> Array:
    """Return velocities (nv,) with some velocities of bodies and the rates of joints.

    `speeds` (nv,) contains NaN for unknown velocities. Unknown elastic rates are zero, and so are
    unknown velocities of bodies with known velocities if the joints permit this. The kinetic energy
    of the rigid motions of other bodies is as small as possible. Without known velocities of
    bodies, all velocities are zero.
    """
    s, v = eqs.system, np.zeros(len(speeds))
    v[s.elastic] = np.nan_to_num(speeds[s.elastic])
    states = speeds[s.states]
    v[s.states] = np.where(np.isnan(states), s.initial_states, states)
    preset = np.intersect1d(np.flatnonzero(np.isfinite(speeds)), s.rigid)
    if not preset.size:
        return v
    parts = zip(s.bodies, s.v_slices, strict=True)
    names = [repr(body.name) for body, part in parts if np.isfinite(speeds[part]).any()]
    eqs.update_poses(t)
    eqs.v[:], eqs.a[:], eqs.lam[:] = 0.0, 0.0, 0.0
    eqs.residual(t)
    tangent = eqs.tangent(t)
    rows = np.vstack([tangent.B, rate_rows(eqs, rates), np.eye(len(v))[preset]])[:, s.rigid]
    right = [-eqs.constraint_rates(t)[0], np.array([*rates.values()], dtype=float), speeds[preset]]
    values, mass = np.concatenate(right), tangent.M[np.ix_(s.rigid, s.rigid)]
    u = np.linalg.lstsq(rows, values, rcond=_RANK_TOLERANCE)[0]
    if np.abs(rows @ u - values).max() > _RATE_TOLERANCE * max(float(np.abs(values).max()), 1e-3):
        raise AssemblyError(
            f"the initial velocities of {', '.join(names)} contradict the constraints or each "
            f"other at t = {t:g} s; specify fewer velocities, and the others follow"
        )
    free = null_space(rows, rcond=_RANK_TOLERANCE)
    rest = np.isin(s.rigid, _unknown_of_known_bodies(s, speeds))
    weights = Measure(s).lengths[s.rigid][rest]
    left, sizes, modes = np.linalg.svd(weights[:, None] * free[rest])
    rank = int(np.sum(sizes > _RANK_TOLERANCE * weights.max(initial=0.0)))
    u -= free @ modes[:rank].T @ (left[:, :rank].T @ (weights * u[rest]) / sizes[:rank])
    free = free @ modes[rank:].T
    u -= free @ np.linalg.lstsq(free.T @ mass @ free, free.T @ mass @ u, rcond=_RANK_TOLERANCE)[0]
    v[s.rigid] = u
    return v


def _unknown_of_known_bodies(system: System, speeds: Array) -> Index:
    """Return the unknown rigid velocities of bodies of which some rigid velocity is known."""
    indices: list[int] = []
    for part in system.v_slices:
        rigid = np.intersect1d(np.arange(part.start, part.stop), system.rigid)
        known = np.isfinite(speeds[rigid])
        if known.any():
            indices += rigid[~known].tolist()
    return np.array(indices, dtype=np.int64)


def transferred_state(state: State, source: System, system: System) -> State:
    """Return the consistent state of a system with the motion of the bodies of another system.

    Bodies and joints are matched by name. Other bodies start from their initial positions; their
    velocities follow from the constraints. Rotations of joints keep their full turns.
    """
    instance("system", system, System)
    q, v = coordinates(system), np.zeros(system.num_velocities)
    names = [body.name for body in source.bodies]
    moving = [body.name for body in source.bodies if body.num_velocities]
    if not any(body.name in moving for body in system.bodies):
        choices = ", ".join(map(repr, moving)) or "none"
        text = f"no body of the system has the name of a body of the run that moves: {choices}"
        raise InputError(text, argument="system", value=system)
    for k, body in enumerate(system.bodies):
        if body.name not in names or not body.num_velocities:
            continue
        part = names.index(body.name)
        q_part, v_part = state.q[source.q_slices[part]], state.v[source.v_slices[part]]
        sizes = len(q_part), len(v_part)
        if sizes != (body.num_coordinates, body.num_velocities):
            raise InputError(
                f"body {body.name!r} has {body.num_coordinates} coordinates, but {sizes[0]} in the "
                "run; rename it if it is another body",
                argument="system",
                value=system,
            )
        q[system.q_slices[k]], v[system.v_slices[k]] = q_part, v_part
    start = consistent_state(system, state.time, elastic_start="undeformed", q=q, v=v)
    turns = dict(zip((joint.name for joint in source.joints), state.angles, strict=True))
    angles = np.array([turns.get(joint.name, 0.0) for joint in system.joints])
    full = 2 * np.pi * np.round((angles - start.angles) / (2 * np.pi))
    return replace(start, angles=start.angles + full)


def check_state(argument: str, state: State, system: System) -> None:
    """Raise an error if a value is not a state of a system."""
    instance(argument, state, State, "as equilibrium or a solution's final_state")
    if len(state.q) != system.num_coordinates or len(state.v) != system.num_velocities:
        raise InputError(
            f"{argument} has {len(state.q)} coordinates, the system {system.num_coordinates}: it "
            "is the state of another system",
            argument=argument,
            value=state,
        )


def move(eqs: Assembler, delta: Array) -> None:
    """Move the coordinates of the assembler by increments (nv,)."""
    eqs.move(eqs.q.copy(), delta)


# ---- constraints that are redundant for rigid bodies --------------------------------------------
def _held_by_deformation(eqs: Assembler, t: float) -> list[int]:
    """Return the constraints that are redundant for rigid bodies, but not for deformable bodies."""
    limit = assemble(eqs, t, eqs.system.rigid)
    rows = [r.row for r in redundant_rows(eqs, limit, eqs.system.rigid)]
    return [] if rows and redundant_rows(eqs, limit) else rows


def _with_held_rows(eqs: Assembler, state: State, rows: list[int]) -> State:
    """Return the quasi-static state in which deformation also satisfies the constraints `rows`."""
    s, t = eqs.system, state.time
    others, free = np.setdiff1d(np.arange(s.num_constraints), rows), np.arange(s.num_velocities)
    eqs.q[:], eqs.v[:], eqs.a[:], eqs.angles[:] = (state.q, state.v, state.a, state.angles)
    eqs.lam[:], eqs.lam[others] = 0.0, state.lam
    _deform(eqs, t, rows, others)
    velocities(eqs, t, state.v, free)
    accelerations(eqs, t, free)
    return eqs.state(t)


def _deform(eqs: Assembler, t: float, rows: list[int], others: Index) -> None:
    """Deform the bodies so that they satisfy constraints that are redundant for rigid bodies.

    H and R are the gradients of the redundant and of the other constraints, with the columns Hᵣ and
    Rᵣ of rigid motions and the columns Hₑ and Rₑ of elastic coordinates. R determines the rigid
    motion δ = −Rᵣ⁺ Rₑ ε due to a deformation ε. With W = Hᵣ Rᵣ⁺, the redundant constraints then
    have the gradient H̃ = Hₑ − W Rₑ with respect to ε. The multipliers μ of H̃ change the
    multipliers of R by −Wᵀμ:

        [K H̃ᵀ; H̃ 0] (ε, μ) = −(elastic residual, values of H − W R)
    """
    s = eqs.system
    for _ in range(_MAX_ITERATIONS):
        eqs.residual(t)
        tangent = eqs.tangent(t)
        rigid, elastic = tangent.B[:, s.rigid], tangent.B[:, s.elastic]
        inverse = np.linalg.pinv(rigid[others], rcond=1e-10)
        W = rigid[rows] @ inverse
        error = W @ eqs.values[others] - eqs.values[rows]
        step, change = saddle(
            tangent.K[np.ix_(s.elastic, s.elastic)],
            elastic[rows] - W @ elastic[others],
            -eqs.rows[s.elastic],
            error,
        )
        delta = np.zeros(s.num_velocities)
        delta[s.elastic] = step
        delta[s.rigid] = -inverse @ (eqs.values[others] + elastic[others] @ step)
        move(eqs, delta)
        eqs.lam[rows] += change
        eqs.lam[others] -= W.T @ change
        if np.abs(error).max() <= 1e-12 * s.size:
            return
    raise AssemblyError(
        "no quasi-static start in which the deformation of the bodies satisfies the constraints "
        "was found; simulate with elastic_start='undeformed'"
    )
