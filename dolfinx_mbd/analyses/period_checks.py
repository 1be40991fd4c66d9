"""Checks that the drivers and loads of a mechanism have a period, or do not depend on time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dolfinx_mbd.analyses.rotors import Rotors
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.mechanism.joints import Driver
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["check_autonomous", "check_period", "check_turned"]

_SAMPLES = 12  # number of times at which forces are compared
_TURNS = 1e-6  # largest error of the number of turns of a driver, or relative error of its rates
_FORCES = 1e-6  # largest relative difference of forces that count as equal
_DENOMINATOR = 60  # largest denominator of the ratio of two speeds with a common period
_RATIO = 1e-9  # relative error of this ratio
# Part of a period (golden section: no simple fraction, after which a load could repeat) after which
# a mechanism is compared with itself
_GOLDEN = 0.3819660112501051


def check_period(system: System, states: Sequence[State], period: float) -> None:
    """Raise an error if a driver or a load is different after a period."""
    times = [state.time for state in states[:: max(1, len(states) // _SAMPLES)]]
    rotations = {driver.name: _turns(driver, times, period) for driver in system.drivers}
    wrong = {name: n for name, n in rotations.items() if n is None or abs(n - round(n)) > _TURNS}
    if wrong:
        _reject_drivers(rotations, wrong, period)
    changed = _changed_part(system, states, period)
    if changed is not None:
        raise InputError(
            f"{changed} is different after the period {period:.9g} s. The period must be one of "
            "all drivers and loads, such as two turns of the crank of a four-stroke engine",
            argument="period",
            value=period,
        )


def check_autonomous(system: System, states: Sequence[State], period: float) -> None:
    """Raise an error if a driver moves or a load depends on time."""
    for driver in system.drivers:
        if any(driver.at(state.time)[1] for state in states[:: len(states) // 4]):
            raise InputError(
                f"driver {driver.name!r} moves, so that the period of the motion is that of the "
                "driver: omit find_period",
                argument="find_period",
                value=True,
            )
    name = _changed_part(system, states, _GOLDEN * period)
    if name is not None:
        raise InputError(
            f"{name} depends on time, so that the period of the motion is known: omit find_period",
            argument="find_period",
            value=True,
        )


def check_turned(
    rotors: Rotors, states: Sequence[State], period: float, *, autonomous: bool
) -> None:
    """Raise an error if constraints or forces change although the rotors are turned.

    With an unknown period (`autonomous`), nothing else may depend on time.
    """
    system, shift = rotors.system, _GOLDEN * period if autonomous else period
    eqs, values, L = Assembler(system), np.zeros(system.num_constraints), rotors.matrix(-shift)
    name = _changed_part(system, states, shift, rotors)
    for state in states[:: max(1, len(states) // _SAMPLES)]:
        eqs.put(state)
        eqs.update_poses(state.time)
        mass, _ = eqs.inertia(state.time)
        eqs.put(rotors.back(state, -shift))
        eqs.residual(state.time + shift)
        values = np.maximum(values, np.abs(eqs.values))
        later_mass, _ = eqs.inertia(state.time + shift)
        change = np.abs(L.T @ later_mass @ L - mass)
        change /= np.sqrt(np.outer(np.diag(mass), np.diag(mass)))
        if name is None and change.max() > _FORCES:
            name = system.row_name(int(np.argmax(change.max(axis=1))))
    if values.max(initial=0.0) > _FORCES * max(system.size, 1.0):
        name = system.constraint_name(int(np.argmax(values)))
    if name is not None:
        raise InputError(
            f"{name} is different {shift:.6g} s later, with the bodies turned by their angular "
            "velocities at the start. With axes='global', the rotors must be round and balanced "
            "and turn at constant speeds, and loads must not turn with them; with find_period, "
            "nothing else may depend on time",
            argument="axes",
            value="global",
        )


def _turns(driver: Driver, times: Sequence[float], period: float) -> float | None:
    """Return the turns of a driver in a period (0 for a closed displacement).

    None if its rates do not repeat, or its displacement is not closed.
    """
    (position, rate, _), (later, later_rate, _) = (
        np.array([driver.at(t + shift) for t in times]).T for shift in (0.0, period)
    )
    moves = later - position
    size = max(float(np.abs(rate).max()), 1e-300)
    if np.abs(later_rate - rate).max() > _TURNS * size:
        return None
    if driver.along == "displacement":
        return 0.0 if np.abs(moves).max() <= _TURNS * max(np.abs(position).max(), 1e-300) else None
    return float(moves[0] / (2 * np.pi))


def _reject_drivers(
    rotations: dict[str, float | None], wrong: dict[str, float | None], period: float
) -> None:
    """Raise an error about drivers without the period; suggest a period if there is one."""
    texts = [
        f"driver {name!r} does not repeat" if n is None else f"driver {name!r} turns {n:.9g} times"
        for name, n in wrong.items()
    ]
    advice = "The period must be a whole number of turns of all drivers"
    known = {name: abs(n) for name, n in rotations.items() if n}
    if len(known) == len(rotations):
        ratios = [
            (a, b, Fraction(known[b] / known[a]).limit_denominator(_DENOMINATOR))
            for a, b in pairwise(known)
        ]
        incommensurable = [
            (a, b)
            for a, b, ratio in ratios
            if abs(float(ratio) * known[a] / known[b] - 1) > _RATIO or ratio == 0
        ]
        if incommensurable:
            a, b = incommensurable[0]
            advice = (
                f"The speeds of {a!r} and {b!r} are incommensurable (ratio "
                f"{known[b] / known[a]:.9g}), so that the motion is not periodic; simulate it"
            )
        else:
            first = next(iter(known))
            turns = np.lcm.reduce([ratio.denominator for _, _, ratio in ratios] or [1])
            shortest = period * int(turns) / known[first]
            advice = f"All drivers repeat after {shortest:.9g} s"
    raise InputError(
        f"in the period {period:.9g} s, {', '.join(texts)}. {advice}",
        argument="period",
        value=period,
    )


def _changed_part(
    system: System, states: Sequence[State], shift: float, rotors: Rotors | None = None
) -> str | None:
    """Return the name of a load or body with other forces after a time, at the same states.

    Rotors are turned by their speeds.
    """
    eqs, rotors = Assembler(system), rotors or Rotors.none(system)
    identity = np.eye(system.num_velocities)
    rotation = rotors.matrix(-shift).T if rotors else identity
    scale, before, after = 0.0, list[list[Array]](), list[list[Array]]()
    for state in states[:: max(1, len(states) // _SAMPLES)]:
        if rotors:  # reactions would turn with the axes in which they are resolved
            state = replace(state, lam=np.zeros_like(state.lam))
        for turned, delay, forces, L in (
            (state, 0.0, before, identity),
            (rotors.back(state, -shift), shift, after, rotation),
        ):
            eqs.put(turned)
            eqs.residual(state.time + delay)
            wrenches = [np.array(w) for _, _, w in eqs.loads.wrenches(state.time + delay)]
            forces.append([L @ eqs.rows, *wrenches])
            scale = max(scale, float(eqs.scale.max(initial=0.0)))
    names = [load.name for load, _, _ in eqs.loads.wrenches(states[0].time)]
    for k in [*range(1, len(names) + 1), 0]:  # the names of loads are clearer than those of rows
        earlier, later = (np.array([x[k] for x in forces]) for forces in (before, after))
        change = np.abs(later - earlier).max(axis=0)
        size = max(float(np.abs(earlier).max(initial=0.0)), _FORCES * scale) if k else scale
        if change.max(initial=0.0) > _FORCES * max(size, 1e-300):
            return f"load {names[k - 1]!r}" if k else system.row_name(int(np.argmax(change)))
    return None
