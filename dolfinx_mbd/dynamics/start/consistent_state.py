"""Consistent initial states: positions, velocities, accelerations and multipliers."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, choice, instance, number
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.dynamics.start.deformed_start import rows_held_by_deformation, with_held_rows
from dolfinx_mbd.dynamics.start.mesh_start import embedded_motion, undeformed_state
from dolfinx_mbd.dynamics.start.named_vectors import named_vector
from dolfinx_mbd.dynamics.start.position_assembly import (
    assemble,
    coordinates,
    independent_system,
    restore,
    warn_of_moves,
)
from dolfinx_mbd.dynamics.start.quasi_static import Balance
from dolfinx_mbd.dynamics.start.start_velocities import (
    body_velocities,
    joint_rates,
    start_velocities,
)
from dolfinx_mbd.errors import InputError, PlacementWarning
from dolfinx_mbd.kernels.columns import GAP
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["consistent_state", "start_state", "transferred_state"]

ElasticStart = Literal["quasi-static", "undeformed"]


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
    return start_state(Assembler(system), t, elastic_start=elastic_start, q=q, v=v, rates=rates)


def start_state(
    eqs: Assembler,
    t: float = 0.0,
    *,
    elastic_start: ElasticStart = "quasi-static",
    q: ArrayLike | Mapping[str, ArrayLike] | None = None,
    v: ArrayLike | Mapping[str, ArrayLike] | None = None,
    rates: Mapping[str, float] | None = None,
) -> State:
    """Return the result of `consistent_state` for the system of an assembler that is not yet used.

    The assembler is then at this state.
    """
    system = eqs.system
    if isinstance(q, Mapping):
        q = named_vector(system, "q", q)
    speeds = named_vector(system, "v", v) if isinstance(v, Mapping) else None
    if system.has_mesh_bodies:
        return _mesh_state(eqs, t, elastic_start, q, v, rates)
    by_default = q is None and v is None and (t == 0.0 or not system.drivers)
    rates = joint_rates(system, rates, by_default)
    if q is None and v is None and system.has_clearance:
        state = _ideal_state(eqs, t, elastic_start, rates)
        if state is not None:
            return state
    eqs.q[:] = coordinates(system, q)
    if q is None:
        assemble(eqs, t)
        if t == 0.0 or not system.drivers:  # at other times drivers have moved the bodies
            warn_of_moves(eqs, t)
    start = np.zeros(system.num_velocities)
    start[system.states] = system.initial_states
    if speeds is not None:
        start[:] = start_velocities(eqs, t, rates, speeds)
    elif v is not None:
        start[:] = array("v", v, start.shape)
    elif by_default:
        start[:] = start_velocities(eqs, t, rates, body_velocities(system))
    if elastic_start == "undeformed" or not len(system.elastic):
        restore(eqs, t, start, rates)
    else:
        start[system.elastic] = 0.0
        rows = rows_held_by_deformation(eqs, t)
        if rows:
            with_fewer_rows = system.without_rows(rows)

            def ideal(time: float, q: Array, v: Array) -> State:
                """Return the state without the constraints that need deformation."""
                prescribed = rates if time == t else None
                return start_state(Assembler(with_fewer_rows), time, q=q, v=v, rates=prescribed)

            return with_held_rows(eqs, t, rows, eqs.q.copy(), start, ideal)
        Balance(eqs, t, rates).start(start)
    eqs.update_poses(t)
    if problem := eqs.problem(initial=q is None):
        raise AssemblyError(f"at t = {t:g} s: {problem}")
    return eqs.state(t)


def _ideal_state(
    eqs: Assembler, t: float, elastic_start: ElasticStart, rates: Mapping[str, float]
) -> State | None:
    """Return the state in which the joints with clearance move as ideal joints.

    Return None if the initial velocities of bodies contradict ideal joints. Rigid bodies remain at
    their initial positions if these are within the clearances.
    """
    system = eqs.system
    eqs.q[:] = coordinates(system)
    assemble(eqs, t)
    eqs.update_poses(t)
    eqs.frames.update_velocities()
    fits = not len(system.elastic) and not (eqs.loads.contact_states()[:, GAP] < 0.0).any()
    try:
        with warnings.catch_warnings():
            if fits:
                warnings.simplefilter("ignore", PlacementWarning)
            ideal = independent_system(Assembler(system.whole.ideal), t)
            state = start_state(Assembler(ideal), t, elastic_start=elastic_start, rates=rates)
    except AssemblyError:
        return None
    if fits:
        state = replace(state, q=eqs.q.copy())
    return transferred_state(state, ideal, eqs)


def _mesh_state(
    eqs: Assembler, t: float, elastic_start: ElasticStart, q: Any, v: Any, rates: Any
) -> State:
    """Return the state of a mechanism with mesh bodies; see `start_state`.

    Unless `q` and `v` are arrays, the motion is that of the mechanism with rigid bodies.
    """
    if not (isinstance(q, np.ndarray) and isinstance(v, np.ndarray)):
        rigid = independent_system(Assembler(eqs.system.with_rigid_bodies), t)
        state = start_state(Assembler(rigid), t, elastic_start=elastic_start, q=q, v=v, rates=rates)
        q, v = embedded_motion(eqs.system, rigid, state)
    return undeformed_state(eqs, t, q, v)


def transferred_state(state: State, source: System, eqs: Assembler) -> State:
    """Return the consistent state of an assembler with the motion of the bodies of another system.

    Bodies and joints are matched by name. Other bodies start from their initial positions; their
    velocities follow from the constraints. Rotations of joints keep their full turns.
    """
    system = eqs.system
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
    start = start_state(eqs, state.time, elastic_start="undeformed", q=q, v=v)
    joint_angles = dict(zip((joint.name for joint in source.joints), state.angles, strict=True))
    angles = np.array([joint_angles.get(joint.name, 0.0) for joint in system.joints])
    full = 2 * np.pi * np.round((angles - start.angles) / (2 * np.pi))
    return replace(start, angles=start.angles + full)
