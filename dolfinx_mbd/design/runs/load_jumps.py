"""Loads and drivers that jump at a time which depends on the motion or on a parameter.

The derivatives of a run do not contain the effect of a parameter on the time of a jump. A jump at a
fixed time has no such effect. Steps in which a load changes more than in the neighbouring steps are
bisected: the change of a continuous load vanishes with the length of the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dolfinx_mbd.analyses.small_motions import increment_between
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.mechanism.system import State

# Difference between the change of a load in a step and its mean change in the two neighbouring
# steps, relative to the change, above which the step is bisected
_IRREGULAR = 0.1
_NOISE = 1e-7  # changes that are not bisected, relative to the largest value of the load
_BISECTIONS = 30
_CONTINUOUS = 0.05  # fraction of the change that remains, below which the load is continuous
_INTERVALS = 8  # largest number of bisected intervals per block
# Jumps that raise an error or cause a warning, relative to the largest value of the load
_ERROR, _WARNING = 1e-2, 1e-5


class LoadJumps:
    """Checks of the loads and drivers of a run.

    Args:
        base: Assembler of the mechanism.
        changed: Assemblers of the changed mechanisms by the names of the parameters.
    """

    def __init__(self, base: Assembler, changed: Mapping[str, Sequence[Assembler]]) -> None:
        self._eqs, self._changed = base, changed
        self._has_loads = not all(load.is_smooth for load in base.system.loads)
        self._needed = bool(self._has_loads or base.system.drivers)
        self._largest: dict[str, float] = {}
        self._reported: set[str] = set()  # loads and drivers with known jumps
        self._ends: tuple[State, State] | None = None  # the states of `_last_increment`
        self._last_increment: Array = np.zeros(0)

    def row(self, eqs: Assembler, t: float) -> Array:
        """Return the values of loads and drivers at the point of an assembler, after a residual."""
        drivers = [value for value, *_ in eqs.driver_motions(t)]
        loads = [value for _, value in eqs.loads.values(t)] if self._has_loads else []
        return np.concatenate([drivers, *loads]) if self._needed else np.zeros(0)

    def check(self, states: Sequence[State], rows: Sequence[Array | None] | None = None) -> None:
        """Check the steps between some states.

        Args:
            states: States of consecutive steps.
            rows: Results of `row` at these states; None where it is not known.

        Raises:
            InputError: The time of a jump depends on the motion or on a parameter.

        Warns:
            AccuracyWarning: The time of a small jump depends on the motion or on a parameter.
        """
        if not self._needed or len(states) < 2:
            return
        first = self._values(self._eqs, states[0], states[0], 0.0, states[0].time)
        if not first:
            return
        owners = np.repeat(np.array(list(first), dtype=object), [len(x) for x in first.values()])
        known = rows or [None] * len(states)
        pairs = zip(states, known, strict=True)
        table = np.array([self._row(state) if row is None else row for state, row in pairs])
        scale = np.zeros(len(owners))
        for name in first:
            columns = owners == name
            size = max(self._largest.get(name, 0.0), float(np.abs(table[:, columns]).max()))
            scale[columns] = self._largest[name] = size
        for k, column in _irregular(table, scale):
            if owners[column] not in self._reported:
                self._bisect(states[k], states[k + 1], str(owners[column]), scale[column])

    def _bisect(self, before: State, after: State, name: str, scale: float) -> None:
        """Find a jump of a load between two states, and report it if it moves."""

        def value(fraction: float) -> Array:
            t = before.time + fraction * (after.time - before.time)
            return self._values(self._eqs, before, after, fraction, t)[name]

        low, high = 0.0, 1.0
        first, last = value(low), value(high)
        limit = _CONTINUOUS * _size(last - first)
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            half = value(middle)
            if _size(half - first) > _size(last - half):
                high, last = middle, half
            else:
                low, first = middle, half
            if _size(last - first) <= limit:
                return
        jump, dt = last - first, after.time - before.time
        times = [before.time + fraction * dt for fraction in (low, high)]

        def remains(eqs: Assembler) -> bool:
            """Return whether the load of a mechanism jumps in the same short interval of time."""
            ends = [self._values(eqs, before, after, low, t).get(name) for t in times]
            if ends[0] is None or ends[1] is None:  # the changed mechanism has no load of this name
                return False
            return _size(ends[1] - ends[0] - jump) < 0.5 * _size(jump)

        if not remains(self._eqs):
            self._report(name, times[1], "the motion", _size(jump) / scale)
        for parameter, assemblers in self._changed.items():
            if not all(map(remains, assemblers)):
                self._report(name, times[1], repr(parameter), _size(jump) / scale)

    def _report(self, name: str, t: float, cause: str, size: float) -> None:
        """Raise an error for a large jump, or warn of a small one; `size` is relative."""
        self._reported.add(name)
        text = (
            f"{name} jumps at t = {t:.6g} s, and this time depends on {cause}. The derivatives do "
            "not contain this effect; replace the jump by a smooth change over several time steps"
        )
        if size > _ERROR:
            raise InputError(text, argument="build")
        if size > _WARNING:
            warn(AccuracyWarning(text, quantity=f"jump of {name}", value=size, limit=_WARNING))

    def _values(
        self, eqs: Assembler, before: State, after: State, fraction: float, t: float
    ) -> dict[str, Array]:
        """Return the values of loads and drivers at a time and between two states."""
        drivers = eqs.system.drivers
        values = {f"driver {driver.name!r}": np.array([driver.at(t)[0]]) for driver in drivers}
        if self._has_loads:
            eqs.put(before)
            if fraction:
                eqs.move(before.q, fraction * self._increment(before, after))
                eqs.v += fraction * (after.v - before.v)
                eqs.angles += fraction * (after.angles - before.angles)
            eqs.update_loaded_frames(t)
            eqs.loads.evaluate(t)
            values |= {f"load {load.name!r}": value for load, value in eqs.loads.values(t)}
        return values

    def _increment(self, before: State, after: State) -> Array:
        """Return the increment (nv,) between two states, which bisection needs several times."""
        ends = before, after
        if self._ends is None or any(a is not b for a, b in zip(self._ends, ends, strict=True)):
            self._ends = ends
            self._last_increment = increment_between(self._eqs.system, before.q, after.q)
        return self._last_increment

    def _row(self, state: State) -> Array:
        """Return `_values` at a state as one array, without names."""
        if self._has_loads:
            self._eqs.put(state)
            self._eqs.update_loaded_frames(state.time)
            self._eqs.loads.evaluate(state.time)
        return self.row(self._eqs, state.time)


def _irregular(table: Array, scale: Array) -> list[tuple[int, int]]:
    """Return step and column of changes that differ from those of the neighbouring steps.

    `table` contains the values (states, columns).
    """
    change = np.diff(table, axis=0)
    padded = np.concatenate([change[1:2], change, change[-2:-1]]) if len(change) > 1 else None
    neighbours = 0.0 if padded is None else 0.5 * (padded[:-2] + padded[2:])
    size = np.abs(change)
    irregular = (np.abs(change - neighbours) > _IRREGULAR * size) & (size > _NOISE * scale)
    pairs = np.argwhere(irregular)
    order = np.argsort([-size[k, c] / scale[c] for k, c in pairs])[:_INTERVALS]
    return [(int(k), int(c)) for k, c in pairs[order]]


def _size(values: Array) -> float:
    """Return the largest absolute value."""
    return float(np.abs(values).max())
