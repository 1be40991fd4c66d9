"""Runs over one period whose last state equals the first one."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, integer, reject
from dolfinx_mbd.mechanism.system import State
from dolfinx_mbd.results.solution import Solution

__all__ = ["ClosedRun"]

Complex = np.typing.NDArray[np.complex128]

_NEUTRAL = 1e-6  # distance of a multiplier from the unit circle that counts as zero


class ClosedRun(Solution):
    """A run over one period whose last state equals its first one.

    All analyses of a run accept it. Its last time is the first time of the next period.

    Attributes:
        period: Period, s.
        states: States at all times.
        multipliers: Floquet multipliers μ by decreasing |μ|, shape (c,): a small disturbance grows
            by the factor μ in each period. Disturbances decay if all |μ| are below 1.
        autonomous: Whether the period was unknown; one multiplier is then 1.

    Example:
        >>> spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -40 * x - 4 * v)
        >>> push = mbd.JointLoad("push", "pin", "rotation", lambda t, x, v: 5 * np.cos(9 * t))
        >>> rocker = mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> cycle = mbd.analyses.periodic(rocker, 2 * np.pi / 9, dt=5e-3)
        >>> run = cycle.repeated(3)
        >>> bool(np.isclose(run.time[-1], 3 * cycle.period))
        True
    """

    period: float
    states: list[State]
    multipliers: Complex
    autonomous: bool

    @property
    def stability(self) -> Literal["stable", "neutral", "unstable"]:
        """Whether small disturbances decay, persist or grow.

        The multiplier 1 of a motion with unknown period is not counted: it only delays the motion.
        """
        sizes = np.abs(self.multipliers)
        if self.autonomous:
            sizes = np.delete(sizes, int(np.argmin(np.abs(self.multipliers - 1))))
        largest = float(sizes.max(initial=0.0))
        if abs(largest - 1) <= _NEUTRAL:
            return "neutral"
        return "stable" if largest < 1 else "unstable"

    @property
    def exponents(self) -> Complex:
        """Floquet exponents ln μ/T, shape (c,), 1/s; imaginary parts are between ±π/T."""
        nonzero = np.where(self.multipliers == 0, 1e-300, self.multipliers)
        return np.asarray(np.log(nonzero.astype(complex)) / self.period)

    def harmonics(self, signal: Array, count: int | None = None) -> Complex:
        """Return the complex amplitudes of a signal at multiples of 1/period.

        The signal is the sum over k of the real parts of c_k exp(2πi k t/T), with t from the start
        of the run. There is no window and no leakage, because the run is closed.

        Args:
            signal: Values at the times of the run, shape (nt, ...).
            count: Highest multiple; by default half the number of steps.

        Returns:
            Shape (count + 1, ...); the first value is the mean.

        Raises:
            InputError: The signal does not have one value for each time.
        """
        x = array("signal", signal)
        if x.ndim == 0 or len(x) != len(self.time):
            reject("signal", signal, f"{len(self.time)} values along its first axis")
        steps = len(x) - 1
        highest = steps // 2
        if count is not None:
            highest = integer("count", count, low=0, high=steps // 2)
        c = np.fft.rfft(x[:-1], axis=0) / steps
        c[1 : (steps + 1) // 2] *= 2  # not the mean, nor the highest frequency of an even number
        return np.asarray(c[: highest + 1])

    def repeated(self, count: int) -> Solution:
        """Return a run of several equal periods, for example for a film or blocks of orders.

        Args:
            count: Number of periods.
        """
        count = integer("count", count, low=1, high=100_000)
        states = [self._later(s, k) for k in range(count) for s in self.states[k > 0 :]]
        return Solution(self.system, states)

    def _later(self, state: State, count: int) -> State:
        """Return a state some periods later."""
        first, last = self.states[0], self.states[-1]
        # Angles of joints count full turns, which a period may add
        full_rotations = 2 * np.pi * np.round((last.angles - first.angles) / (2 * np.pi))
        time, angles = state.time + count * self.period, state.angles + count * full_rotations
        return replace(state, time=time, angles=angles)
