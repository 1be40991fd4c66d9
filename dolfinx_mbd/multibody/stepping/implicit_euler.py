"""Implicit Euler: the first-order method that damps most, as a stepper of its own.

    q₁ = q₀ ∘ exp(dt v₁),    v₁ = v₀ + dt a₁,    r(t₁, q₁, v₁, a₁, λ₁) = 0,    Φ(q₁, t₁) = 0

It is no row of the generalized-α family, whose displacements are of second order. Every oscillation
loses energy, 1 − (ω dt)² of it a step at small ω dt; the constraints hold in the positions, the
multipliers are those of the end of the step, to first order in dt.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.multibody.model.system import State, SystemData
from dolfinx_mbd.multibody.stepping.convergence import Monitor
from dolfinx_mbd.multibody.stepping.integrators import Stepper

__all__ = ["ImplicitEuler"]

_MAX_ITERATIONS = 15


class ImplicitEuler(Stepper):
    """Takes steps of a system with implicit Euler.

    Args:
        system: The mechanism.
        tolerance: As that of :class:`~dolfinx_mbd.multibody.stepping.integrators.Stepper`.
    """

    def __init__(self, system: SystemData, *, tolerance: float = 1e-8) -> None:
        super().__init__(system, tolerance=tolerance)

    def begin(self, state: State, dt: float) -> State:
        """The state itself: the method has no memory of its own."""
        return state

    def step(self, state: State, dt: float) -> State:
        """The state at ``state.time + dt``.

        Raises:
            StepError: If Newton's method does not converge.
        """
        at = self._at
        t = state.time + dt
        by_rate, by_speed = 1 / (dt * dt), 1 / dt
        at.a[:], at.lam[:] = state.a, state.lam
        at.v[:] = state.v + dt * at.a
        move, unused = dt * at.v, np.zeros(len(at.v))  # there are no algorithmic accelerations
        at.angles[:] = state.angles
        if self._factor is not None and self._factor.dt != dt:
            self._factor = None
        monitor = Monitor(smooth=False)
        for iteration in range(_MAX_ITERATIONS + 1):
            at.move(state.q, move)
            at.residual(t)
            error = self._error(by_rate)
            monitor.see(error)
            if error <= 1.0 or monitor.exhausted:
                if monitor.slow:
                    self._factor = None
                return at.state(t)
            if not np.isfinite(error) or iteration == _MAX_ITERATIONS:
                break
            left = _MAX_ITERATIONS - iteration - 1
            if self._factor is None or monitor.too_slow(left):
                self._refactor(t, dt, move, by_rate, by_speed)
                monitor.renewed()
            monitor.tiny = self._correct(move, unused, by_rate, by_speed, 0.0)
        self._factor = None
        raise self._failure(t, dt)
