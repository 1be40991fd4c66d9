"""Time integration of mechanisms with the implicit Euler method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.convergence import Monitor
from dolfinx_mbd.dynamics.stepping.corrections import Step
from dolfinx_mbd.dynamics.stepping.formulas import AlphaFormulas, Derivatives
from dolfinx_mbd.dynamics.stepping.integrators import Stepper
from dolfinx_mbd.mechanism.system import State, System

__all__ = ["ImplicitEuler"]


class _EulerFormulas(AlphaFormulas):
    """Formulas of the implicit Euler method, which has no algorithmic accelerations."""

    def derivatives(self, dt: float) -> Derivatives:
        return Derivatives(1 / (dt * dt), 1 / dt, 0.0)

    def predict(
        self, eqs: Assembler, state: State, dt: float, lengths: Array | None, *, from_rest: bool
    ) -> tuple[Array, Array]:
        eqs.a[:], eqs.lam[:] = 0.0 if from_rest else state.a, state.lam
        eqs.v[:] = state.v + dt * eqs.a
        return dt * eqs.v, np.zeros(len(eqs.v))


class ImplicitEuler(Stepper):
    """Time steps with the implicit Euler method, which is of first order and strongly damped.

        q₁ = q₀ ∘ exp(dt v₁),    v₁ = v₀ + dt a₁,    r(t₁, q₁, v₁, a₁, λ₁) = 0,    Φ(q₁, t₁) = 0

    It does not belong to the generalized-α family, whose displacements are of second order. Every
    oscillation loses the fraction (ω dt)² of its energy in a step, for small ω dt. Use it like
    `Stepper`, with a constant step.

    Args:
        system: The mechanism.
        tolerance: Largest residual of a converged step; see `Stepper`.

    Example:
        >>> stepper = mbd.dynamics.ImplicitEuler(pendulum)
        >>> state = stepper.step(mbd.dynamics.consistent_state(pendulum), 0.01)
        >>> round(float(state.angles[0]), 5)
        -0.00098
    """

    def __init__(self, system: System, *, tolerance: float = 1e-8) -> None:
        super().__init__(system, tolerance=tolerance)
        self._formulas, self._smooth = _EulerFormulas(self.method), False

    def begin(self, state: State, dt: float) -> State:
        """Return the state itself, because the method has no memory."""
        return state

    def _accept(self, step: Step, monitor: Monitor) -> State:
        return replace(super()._accept(step, monitor), memory={})
