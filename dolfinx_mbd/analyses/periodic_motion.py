"""The result of `periodic`, and its error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dolfinx_mbd.analyses.closed_run import ClosedRun
from dolfinx_mbd.analyses.shooting import PeriodMap
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.mechanism.system import State

__all__ = ["PeriodicError", "PeriodicMotion"]


class PeriodicError(SolverError):
    """No periodic motion was found.

    Args:
        message: Text of the error.
        closure: Smallest relative difference of the states at both ends of a period, or NaN. The
            error has an attribute with the same name.
    """

    def __init__(self, message: str, *, closure: float = float("nan")) -> None:
        super().__init__(message)
        self.closure = closure


class PeriodicMotion(ClosedRun):
    """A run over one period whose last state equals its first one; see `periodic`.

    All analyses of a run accept it. Its last time is the first time of the next period. With
    ``axes="global"``, quantities that do not turn with a rotor are equal at both ends: orbits,
    forces on fixed bodies and films, but not the stress at a point of the rotor.

    Attributes:
        period: Period, s.
        multipliers: Floquet multipliers μ by decreasing |μ|, shape (c,): a small disturbance grows
            by the factor μ in each period. Disturbances decay if all |μ| are below 1.
        closure: Largest relative difference of the states at both ends, and of the oil in films.
        corrections: Number of corrections of the state.
        periods: Number of simulated periods.
        autonomous: Whether the period was unknown; one multiplier is then 1.
        states: States at all times, with the memory of the integrator.
        period_map: Derivative of the state after a period with respect to the state at its start.

    Example:
        >>> spring = mbd.JointLoad("spring", "pin", "rotation", lambda t, x, v: -40 * x - 4 * v)
        >>> push = mbd.JointLoad("push", "pin", "rotation", lambda t, x, v: 5 * np.cos(9 * t))
        >>> rocker = mbd.System([ground, bob], [pin], loads=[spring, push])
        >>> cycle = mbd.analyses.periodic(rocker, 2 * np.pi / 9, dt=5e-3)
        >>> cycle.stability
        'stable'
        >>> swing = np.abs(cycle.harmonics(cycle.joint("pin").rotation, 1)[1])
        >>> print(f"{swing:.4f} rad")  # 5/|40 - 2.01·81 + 4·9i|
        0.0391 rad
    """

    closure: float
    corrections: int
    periods: int
    period_map: PeriodMap

    def _later(self, state: State, count: int) -> State:
        """Return a state some periods later; rotors have rotated by their spin."""
        later, rotors = super()._later(state, count), self.period_map.rotors
        if not rotors:
            return later
        turned = rotors.back(state, -count * self.period)
        return replace(turned, time=later.time)

    def __repr__(self) -> str:
        largest = float(np.abs(self.multipliers).max(initial=0.0))
        return (
            f"<PeriodicMotion: period {self.period:.6g} s, {self.stability}, largest multiplier "
            f"{largest:.6g}, closed to {self.closure:.1e} after {self.corrections} corrections, "
            f"{self.periods} periods of simulation>"
        )
