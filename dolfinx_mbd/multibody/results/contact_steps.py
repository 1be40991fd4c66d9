"""Comparison of the time steps of a run with the duration of its impacts."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.errors import AccuracyWarning, warn
from dolfinx_mbd.multibody.assembly.assembler import Assembler

__all__ = ["ContactSteps"]

# A Hertzian impact with the approach speed v and the depth δ lasts 2.94 δ/v
_PERIOD = 2.94
_STEPS = 20  # smallest number of steps in an impact without a warning
_WEAK = 0.2  # impacts with a smaller fraction of the largest penetration are ignored


class ContactSteps:
    """Steps of the run relative to the duration of its impacts.

    Call `update` after each step, while the assembler is at the new state.
    """

    def __init__(self, eqs: Assembler) -> None:
        self._eqs = eqs
        eqs.update_velocities()
        self._names = eqs.contact_names()
        self._last = eqs.contact_states()
        count = len(self._names)
        self._speed, self._depth, self._step = np.zeros((3, count))  # of compressions
        self._compressed = np.zeros(count, dtype=bool)
        self._impacts: list[tuple[float, float, float, float, int]] = []

    def update(self, time: float, dt: float) -> None:
        """Compare the length of a step with the duration of an impact at the new time."""
        if not self._names:
            return
        before, states = self._last, self._eqs.contact_states()
        self._last = states
        touches, starts = states[:, 0] < 0.0, before[:, 0] >= 0.0
        self._compressed |= starts & touches
        self._speed = np.where(starts, -before[:, 1], self._speed)
        self._depth = np.where(starts, 0.0, self._depth)
        self._depth = np.maximum(self._depth, -states[:, 0])
        self._step = np.where(starts, dt, np.maximum(self._step, dt))
        peaks = self._compressed & ((states[:, 1] >= 0.0) | ~touches)
        self._compressed &= ~peaks
        for k in map(int, np.flatnonzero(peaks & (self._speed > 0.0))):
            period = _PERIOD * float(self._depth[k] / self._speed[k])
            ratio, depth = float(self._step[k]) / max(period, 1e-300), float(self._depth[k])
            self._impacts.append((ratio, time, period, depth, k))

    def warn(self) -> None:
        """Give a warning if a strong impact has fewer than 20 steps."""
        limit = _WEAK * max((impact[3] for impact in self._impacts), default=0.0)
        strong = [impact for impact in self._impacts if impact[3] >= limit]
        ratio, time, period, _, k = max(strong, default=(0.0,) * 4 + (0,))
        if ratio * _STEPS <= 1.0:
            return
        text = (
            f"contact {self._names[k]!r}: an impact at t = {time:g} s lasts about {period:.2g} s, "
            f"only {1.0 / ratio:.2g} steps. Fewer than {_STEPS} steps cause errors of several per "
            f"cent in forces and losses. Choose dt below {period / _STEPS:.2g} s, or mbd.Adaptive "
            "with a smaller tolerance"
        )
        quantity = "time step relative to the duration of an impact"
        warn(AccuracyWarning(text, quantity=quantity, value=ratio, limit=1.0 / _STEPS))
