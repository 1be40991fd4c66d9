"""A consistent start: positions, velocities, accelerations, multipliers are solved for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.checks import array, choice, instance, number
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.multibody.assembly.assembler import Assembler, AssemblyError
from dolfinx_mbd.multibody.assembly.rates import accelerations, velocities
from dolfinx_mbd.multibody.assembly.redundancy import find_redundant
from dolfinx_mbd.multibody.model.joints import SLIDING, TURNING
from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.start.over_constrained import hold_by_deformation
from dolfinx_mbd.multibody.start.position_assembly import (
    assemble,
    coordinates,
    redundancies,
    warn_of_moves,
)
from dolfinx_mbd.multibody.start.quasi_static import Balance

__all__ = [
    "AssemblyError",
    "assemble",
    "check_state",
    "consistent_state",
    "move",
    "redundancies",
]

Array = NDArray[np.float64]
Index = NDArray[np.integer]


def consistent_state(
    system: SystemData,
    t: float = 0.0,
    *,
    elastic_start: Literal["quasi-static", "undeformed"] = "quasi-static",
    q: ArrayLike | None = None,
    v: ArrayLike | None = None,
    rates: Mapping[str, float] | None = None,
) -> State:
    """Solve for a state that fulfils the constraints and their first two derivatives.

    Positions are the nearest to the bodies' own ones, velocities the nearest to ``v`` in kinetic
    energy.

    Args:
        system: The mechanism.
        t: Time, s.
        elastic_start: ``quasi-static``: elastic forces balance the forces of the motion at η̈ = 0,
            and η̇ is the rate at which that balance moves, so that nothing rings; ``undeformed``:
            η and η̇ as in ``q`` and ``v`` (zero by default), η̈ follows.
        q: Coordinates to start from, shape (nq,); None: the bodies' own.
        v: Velocities to start from, shape (nv,); None: rest.
        rates: Rates of joints at the start, by name: rad/s about the axis of revolute and
            cylindrical joints, m/s along that of prismatic ones.

    Warns:
        PlacementWarning: If a body is not where it was placed, by more than a thousandth of the
            size of the mechanism or of a radian, at t = 0 or in a mechanism without drivers.

    Raises:
        AssemblyError: If the constraints cannot be met or repeat each other, or contradict the
            rates; the message names them.
        EquilibriumError: If the elastic forces find no balance.
        ValueError: If ``elastic_start`` or a joint is unknown, or a joint has no rate.
    """
    instance("system", system, SystemData)
    t = number("t", t, unit="s")
    choice("elastic_start", elastic_start, ("quasi-static", "undeformed"))
    rates = instance("rates", {} if rates is None else rates, Mapping)
    for name, rate in rates.items():
        number(f"rates[{name!r}]", rate)
        joint = system.joint(name)
        if joint.kind not in TURNING + SLIDING:
            raise InputError(f"{joint.kind} joint {name!r} has no single rate to start with")
    at = Assembler(system)
    at.q[:] = coordinates(system, q)
    if q is None:
        assemble(at, t, system.rigid)
        if t == 0.0 or not system.drivers:  # (at other times drivers have moved the bodies)
            warn_of_moves(at, t)
    start = np.zeros(system.num_velocities)
    if v is not None:
        start[:] = array("v", v, start.shape)
    if elastic_start == "undeformed" or not len(system.elastic):
        _restore(at, t, start, rates, np.arange(system.num_velocities))
    else:
        start[system.elastic] = 0.0
        held = _held_by_deformation(at, t)
        if held:
            return _over_constrained(at, t, held, start, rates)
        restore = partial(_restore, free=system.rigid)
        restore(at, t, start, rates)
        balance = Balance(at, t, restore, rates)
        start = at.v.copy()
        balance.settle(start)
        along = start.copy()
        along[system.elastic] = balance.rate()
        balance.settle_along(along)
    at.update_poses(t)
    return at.state(t)


def check_state(argument: str, state: State, system: SystemData) -> None:
    """Raise an error if a value is not a state of a system."""
    instance(argument, state, State, "as equilibrium or a solution's final_state")
    if len(state.q) != system.num_coordinates or len(state.v) != system.num_velocities:
        raise InputError(
            f"{argument} has {len(state.q)} coordinates, the system {system.num_coordinates}: it "
            "is the state of another system",
            argument=argument,
            value=state,
        )


def _held_by_deformation(at: Assembler, t: float) -> list[int]:
    """Return the constraints that rigid bodies would repeat, if deformation holds them all."""
    s = at.system
    limit = assemble(at, t, s.rigid)
    if s.num_constraints == 0:
        return []
    B = at.constraint_matrix(at.jacobians())
    rows = [r.row for r in find_redundant(s, B, s.rigid, limit)]
    return [] if rows and find_redundant(s, B, limit=limit) else rows


def _over_constrained(
    at: Assembler, t: float, held: list[int], wanted: Array, rates: Mapping[str, float] | None
) -> State:
    """Return the quasi-static start if the deformation holds some constraints."""
    s = at.system
    state = consistent_state(s.without_rows(held), t, q=at.q, v=wanted, rates=rates)
    at.q[:], at.v[:], at.a[:], at.angles[:] = state.q, state.v, state.a, state.angles
    at.lam[:], at.lam[np.setdiff1d(np.arange(s.num_constraints), held)] = 0.0, state.lam
    free = np.arange(s.num_velocities)
    hold_by_deformation(at, t, held)
    velocities(at, t, state.v, free)
    accelerations(at, t, free)
    return at.state(t)


def _restore(at: Assembler, t: float, v: Array, rates: Mapping[str, float], free: Index) -> None:
    """Fulfil the constraints and their derivatives, the latter with the free velocities."""
    rigid = at.system.rigid
    limit = assemble(at, t, rigid)
    _check_rank(at, free, limit)
    velocities(at, t, v, _moving(at, rigid, free, limit), rates)
    accelerations(at, t, free)


def _moving(at: Assembler, rigid: Index, free: Index, limit: float) -> Index:
    """Velocities that take up the constraints' rates: the rigid ones, if they can."""
    s = at.system
    if s.num_constraints == 0 or len(free) == len(rigid):
        return free
    B = at.constraint_matrix(at.jacobians())
    return free if find_redundant(s, B, rigid, limit) else rigid


def move(at: Assembler, delta: Array) -> None:
    """Move the assembler's coordinates by increments (nv,)."""
    s = at.system
    for body, qs, vs in zip(s.bodies, s.q_slices, s.v_slices, strict=True):
        body.increment(at.q[qs].copy(), delta[vs], at.q[qs])


def _check_rank(at: Assembler, free: Index, limit: float) -> None:
    """Refuse constraints that repeat each other in the free velocities, by name."""
    s = at.system
    if s.num_constraints == 0:
        return
    B = at.constraint_matrix(at.jacobians())
    found = find_redundant(s, B, free, limit)
    if not found:
        return
    names = "; ".join(map(str, found))
    raise AssemblyError(
        f"{len(found)} of the {s.num_constraints} constraints are redundant in this position: "
        f"{names}. Use joints that hold less (for a planar mechanism: one revolute, cylindrical "
        "and spherical ones elsewhere), or simulate with redundant='drop' or 'keep'"
    )
