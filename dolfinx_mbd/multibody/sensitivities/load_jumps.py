"""Loads and drivers that jump at a time which depends on the motion or on a parameter.

The derivatives of a run do not contain the effect of a parameter on the time of a jump. A jump at a
fixed time has no such effect. Steps in which a load changes more than in the neighbouring steps are
bisected: the change of a continuous load vanishes with the length of the interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, InputError, warn
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.loads import FrameLoad
from dolfinx_mbd.multibody.model.system import State

_IRREGULAR = 0.1  # change of a load relative to that of its neighbours, from which it is bisected
_NOISE = 1e-7  # changes that are not bisected, relative to the largest value of the load
_BISECTIONS = 30
_CONTINUOUS = 0.05  # share of the change that vanishes in a continuous load
_INTERVALS = 8  # largest number of bisected intervals per block
_ERROR, _WARNING = 1e-2, 1e-5  # jumps relative to the largest value of the load


class LoadJumps:
    """Checks of the loads and drivers of a run.

    Args:
        base: Assembler of the mechanism.
        changed: Assemblers of the changed mechanisms by the names of the parameters.
    """

    def __init__(self, base: Assembler, changed: Mapping[str, Sequence[Assembler]]) -> None:
        self._at, self._changed = base, changed
        self._has_loads = not all(map(_is_constant, base.system.loads))
        self._needed = bool(self._has_loads or base.system.drivers)
        self._names = [f"driver {driver.name!r}" for driver in base.system.drivers]
        self._largest: dict[str, float] = {}
        self._known: set[str] = set()

    def check(self, states: Sequence[State]) -> None:
        """Check the steps between some states.

        Args:
            states: States of consecutive steps.

        Raises:
            InputError: A jump of a load depends on the motion or on a parameter.

        Warns:
            AccuracyWarning: As above, but the jump is small.
        """
        if not self._needed or len(states) < 2:
            return
        rows = [self._values(self._at, s, s, 0.0, s.time) for s in states]
        sizes = [len(part) for part in rows[0].values()]
        owners = np.repeat(np.array(list(rows[0]), dtype=object), sizes)
        table = np.array([np.concatenate(list(row.values())) for row in rows])
        scale = np.zeros(len(owners))
        for name in rows[0]:
            columns = owners == name
            size = max(self._largest.get(name, 0.0), float(np.abs(table[:, columns]).max()))
            scale[columns] = self._largest[name] = size
        for k, column in _irregular(table, scale):
            if owners[column] not in self._known:
                self._bisect(states[k], states[k + 1], str(owners[column]), scale[column])

    def _bisect(self, before: State, after: State, name: str, scale: float) -> None:
        """Find a jump of a load between two states, and report it if it moves."""

        def value(share: float) -> Array:
            t = before.time + share * (after.time - before.time)
            return self._values(self._at, before, after, share, t)[name]

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
        times = [before.time + share * dt for share in (low, high)]

        def remains(at: Assembler) -> bool:
            ends = [self._values(at, before, after, low, t).get(name) for t in times]
            if ends[0] is None or ends[1] is None:  # the load has another name
                return False
            return _size(ends[1] - ends[0] - jump) < 0.5 * _size(jump)

        if not remains(self._at):
            self._report(name, times[1], "the motion", _size(jump) / scale)
        for parameter, assemblers in self._changed.items():
            if not all(map(remains, assemblers)):
                self._report(name, times[1], repr(parameter), _size(jump) / scale)

    def _report(self, name: str, t: float, cause: str, size: float) -> None:
        self._known.add(name)
        text = (
            f"{name} jumps at t = {t:.6g} s, and this time depends on {cause}. The derivatives do "
            "not contain this effect; replace the jump by a smooth change over several time steps"
        )
        if size > _ERROR:
            raise InputError(text, argument="build")
        if size > _WARNING:
            warn(AccuracyWarning(text, quantity=f"jump of {name}", value=size, limit=_WARNING))

    def _values(
        self, at: Assembler, before: State, after: State, share: float, t: float
    ) -> dict[str, Array]:
        """Return the values of loads and drivers at a time and between two states."""
        values = {
            name: np.array([driver.at(t)[0]])
            for name, driver in zip(self._names, at.system.drivers, strict=True)
        }
        if self._has_loads:
            at.put(before)
            if share:
                at.q += share * (after.q - before.q)
                at.v += share * (after.v - before.v)
                at.angles += share * (after.angles - before.angles)
            at.update_poses(t)
            at.update_velocities()
            for load, _, wrench in at.load_wrenches(t):
                if not _is_constant(load):
                    values[f"load {load.name!r}"] = np.asarray(wrench, dtype=float)
            for pattern, _, size, _ in at.pattern_forces(t):
                values[f"load {pattern.name!r}"] = np.array([size])
        return values


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


def _is_constant(load: object) -> bool:
    return isinstance(load, FrameLoad) and not callable(load.value)


def _size(values: Array) -> float:
    return float(np.abs(values).max())
