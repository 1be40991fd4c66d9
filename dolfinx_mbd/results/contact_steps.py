"""Checks of the contacts of a run: duration of impacts, contacts missed by a step, penetrations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.contact_events import closings, smallest_depths
from dolfinx_mbd.errors import AccuracyWarning, ModelRangeWarning, warn
from dolfinx_mbd.kernels.columns import GAP, GAP_RATE

__all__ = ["ContactSteps"]

_HERTZ_DURATION = 2.94
"""Factor of δ/v in the duration of a Hertzian impact with the approach speed v and the depth δ."""

_MIN_STEPS = 20  # smallest number of steps in an impact without a warning
_WEAK = 0.2  # impacts with a smaller fraction of the largest penetration are ignored
_BLOCK = 256  # number of steps that are inspected together
PENETRATION = 0.1  # largest penetration relative to the size of a contact without a warning


class _Impact(NamedTuple):
    """A compression of a contact point, with the longest step in it relative to its duration."""

    steps: float = 0.0  # length of the longest step relative to the duration of the impact
    time: float = 0.0  # time of the largest penetration, s
    period: float = 0.0  # duration of the impact, s
    depth: float = 0.0  # largest penetration, m
    point: int = 0  # index of the contact point


class ContactSteps:
    """Record of short impacts, missed contacts and large penetrations of a run.

    Call `update` after each step, while the assembler is at the new state.
    """

    def __init__(self, eqs: Assembler, time: float) -> None:
        self._eqs = eqs
        eqs.frames.update_velocities()
        self._names = eqs.loads.contact_names()
        count = len(self._names)
        # Of the present compression of each contact point: speed at its start (m/s), largest
        # penetration (m) and longest step (s) so far; and whether there is one
        self._speed, self._depth, self._step = np.zeros((3, count))
        self._compressed = np.zeros(count, dtype=bool)
        self._impacts: list[_Impact] = []
        # Ends and lengths of the last steps and the states at their ends, which `_inspect` clears
        self._steps: list[tuple[float, float, Array]] = []
        self._before = eqs.loads.contact_states()  # states at the start of these steps
        gap, *_ = self._before.T
        self._deepest = np.maximum(-gap, 0.0)
        self._deepest_time = np.full(count, time)
        self._missed: tuple[float, float, int] | None = None  # end and length of a step, and point

    def update(self, time: float, dt: float) -> None:
        """Record the states of the contacts after a step."""
        if self._names:
            self._steps.append((time, dt, self._eqs.loads.contact_states()))
            if len(self._steps) == _BLOCK:
                self._inspect()

    def _inspect(self) -> None:
        """Record impacts, largest penetrations and the first missed contact of the last steps."""
        if not self._steps:
            return
        times, lengths, states = zip(*self._steps, strict=True)
        table = np.array([self._before, *states])
        self._find_impacts(times, lengths, table)
        num_steps, points = table.shape[0] - 1, table.shape[1]
        deepest, columns = np.argmin(table[1:, :, GAP], axis=0), np.arange(points)
        depths = -table[1:, :, GAP][deepest, columns]
        deeper = depths > self._deepest
        self._deepest[deeper] = depths[deeper]
        self._deepest_time[deeper] = np.array(times)[deepest[deeper]]
        if self._missed is None:
            limits = np.tile(smallest_depths(self._deepest, self._eqs.system.size), num_steps)
            before, after = (part.reshape(-1, 3) for part in (table[:-1], table[1:]))
            # Fraction of the step after which a gap may close and open again; NaN if it does not
            fractions = closings(before, after, np.repeat(lengths, points), limits)
            missed = np.flatnonzero(np.isfinite(fractions))
            if missed.size:
                i, k = divmod(int(missed[0]), points)
                self._missed = times[i], lengths[i], k
        self._steps, self._before = [], states[-1]

    def _find_impacts(self, times: Sequence[float], lengths: Sequence[float], table: Array) -> None:
        """Compare the lengths of steps with the durations of the impacts that end in them.

        `table` (steps + 1, points, 3) contains gap, gap rate and normal force of the contact points
        before and after each step. A compression begins when the gap closes, and ends when its rate
        changes sign or the gap opens.
        """
        gaps, rates = table[:, :, GAP], table[:, :, GAP_RATE]
        touches = gaps < 0.0
        begins = touches[1:] & ~touches[:-1]
        any_begins: Array = np.any(begins, axis=1)
        for i, (time, dt) in enumerate(zip(times, lengths, strict=True), 1):
            if not (any_begins[i - 1] or self._compressed.any()):
                continue
            new, gap = begins[i - 1], gaps[i]
            self._compressed |= new
            self._speed[new] = -rates[i - 1, new]
            self._depth[new], self._step[new] = 0.0, 0.0
            self._depth = np.maximum(self._depth, -gap)
            self._step = np.maximum(self._step, dt)
            # Of the step in which a contact begins, only the time in contact counts
            self._step[new] *= -gap[new] / (gaps[i - 1, new] - gap[new])
            peaks = self._compressed & ((rates[i] >= 0.0) | ~touches[i])
            self._compressed &= ~peaks
            for k in map(int, np.flatnonzero(peaks & (self._speed > 0.0))):
                period = _HERTZ_DURATION * float(self._depth[k] / self._speed[k])
                ratio, depth = float(self._step[k]) / max(period, 1e-300), float(self._depth[k])
                self._impacts.append(_Impact(ratio, time, period, depth, k))

    def warn(self) -> None:
        """Warn of missed contacts, large penetrations, and impacts with fewer than 20 steps."""
        self._inspect()
        self._warn_of_missed()
        self._warn_of_depth()
        self._warn_of_steps()

    def _warn_of_missed(self) -> None:
        """Warn if bodies may have passed through each other within a step."""
        if self._missed is None:
            return
        time, dt, k = self._missed
        text = (
            f"contact {self._names[k]!r}: in the step from t = {time - dt:g} s to {time:g} s, the "
            "bodies may have passed through each other: the gap is positive before and after the "
            "step, but its rates indicate a contact in between. Choose a smaller dt, or "
            "dt='adaptive'"
        )
        warn(AccuracyWarning(text, quantity="step over a contact", value=dt))

    def _warn_of_depth(self) -> None:
        """Warn if a penetration is not small relative to the bodies."""
        sizes = self._eqs.loads.contact_sizes()
        ratios = self._deepest / sizes
        k = int(np.argmax(ratios)) if len(ratios) else -1
        if k < 0 or ratios[k] <= PENETRATION:
            return
        text = (
            f"contact {self._names[k]!r}: the penetration of {self._deepest[k]:.3g} m at "
            f"t = {self._deepest_time[k]:g} s is {ratios[k]:.2g} times the size of the bodies in "
            f"contact, {sizes[k]:.3g} m. The laws of contact hold for penetrations far below the "
            "radii. Choose a stiffer law, and check the units and the initial positions"
        )
        quantity = "penetration relative to the size of the bodies in contact"
        warn(ModelRangeWarning(text, quantity=quantity, value=float(ratios[k]), limit=PENETRATION))

    def _warn_of_steps(self) -> None:
        """Warn if the steps do not resolve a strong impact."""
        limit = _WEAK * max((impact.depth for impact in self._impacts), default=0.0)
        strong = [impact for impact in self._impacts if impact.depth >= limit]
        # The impact with the longest step relative to its duration, the first field
        ratio, time, period, _, k = max(strong, default=_Impact())
        if ratio * _MIN_STEPS <= 1.0:
            return
        text = (
            f"contact {self._names[k]!r}: an impact at t = {time:g} s lasts about {period:.2g} s, "
            f"only {1.0 / ratio:.2g} steps. Fewer than {_MIN_STEPS} steps cause errors of several "
            "per cent in forces and dissipated energy. Choose dt below "
            f"{period / _MIN_STEPS:.2g} s, or mbd.Adaptive with a smaller tolerance"
        )
        quantity = "time step relative to the duration of an impact"
        warn(AccuracyWarning(text, quantity=quantity, value=ratio, limit=1.0 / _MIN_STEPS))
