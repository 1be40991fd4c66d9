"""Formulas of the generalized-α method, and its prediction of a step.

References:
    M. Arnold, O. Brüls, A. Cardona, Convergence analysis of generalized-α Lie group time
    integrators for constrained systems, Multibody Dynamics 2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.time_steps import predict
from dolfinx_mbd.mechanism.system import State
from dolfinx_mbd.time_integration import GeneralizedAlpha

__all__ = ["AlphaFormulas", "Derivatives", "extrapolate", "resample"]

# The last change a − a₁ of the accelerations is like the one before, a₁ − a₂, if their product is
# at least this times (a₁ − a₂)². Otherwise, the mean (a₁ + a₂) / 2 would have predicted a better
# than the extrapolation 2 a₁ − a₂
_ALIKE = 0.25


class Derivatives(NamedTuple):
    """Derivatives of the unknowns of a step.

    Attributes:
        a_by_move: Derivative of accelerations with respect to increments, 1/s².
        v_by_move: Derivative of velocities with respect to increments, 1/s.
        ratio: Derivative of algorithmic accelerations with respect to accelerations.
    """

    a_by_move: float
    v_by_move: float
    ratio: float


class AlphaFormulas:
    """Formulas of a generalized-α method.

    Args:
        method: The method.

    Attributes:
        parameters: α_m, α_f, β and γ, (4,).
    """

    def __init__(self, method: GeneralizedAlpha) -> None:
        self.method, m = method, method
        self._last: tuple[float, Derivatives] | None = None  # length of a step and its derivatives
        self.parameters = np.array([m.alpha_m, m.alpha_f, m.beta, m.gamma])

    def derivatives(self, dt: float) -> Derivatives:
        """Return the derivatives of a step of length dt (s)."""
        if self._last is None or self._last[0] != dt:
            m = self.method
            ratio = (1 - m.alpha_f) / (1 - m.alpha_m)
            values = Derivatives(1 / (dt * dt * m.beta * ratio), m.gamma / (dt * m.beta), ratio)
            self._last = dt, values
        return self._last[1]

    def start_offsets(self, dt: float) -> tuple[float, float]:
        """Return the factors of v̈ in the differences that `Stepper.begin` describes."""
        m = self.method
        return ((m.alpha_m - m.alpha_f) * dt, (1 / 6 - m.beta + 0.5 * (m.gamma - 0.5)) * dt * dt)

    def predict(
        self, eqs: Assembler, state: State, dt: float, lengths: Array | None, *, from_rest: bool
    ) -> tuple[Array, Array]:
        """Predict a, λ and v; return the increments and the algorithmic accelerations, (nv,) each.

        Args:
            eqs: The assembler, which receives the prediction.
            state: State before the step.
            dt: Time step, s.
            lengths: Displacements per unit of the coordinates, or None; see `extrapolate`.
            from_rest: Whether the accelerations are predicted to be zero.
        """
        if from_rest:
            eqs.a[:], eqs.lam[:] = 0.0, state.lam
        else:
            eqs.a[:], eqs.lam[:] = extrapolate(state, lengths)
        old = state.memory.get("algorithmic", state.a)
        velocity = state.memory.get("velocity", state.v)
        algorithmic, move = np.empty(len(old)), np.empty(len(old))
        predict(eqs.a, state.a, old, velocity, self.parameters, dt, algorithmic, move, eqs.v)
        return move, algorithmic


def extrapolate(state: State, lengths: Array | None) -> tuple[Array, Array]:
    """Return the next accelerations and multipliers, extrapolated from up to three states.

    The parabola through three states amplifies vibrations that are too stiff for the step, whose
    accelerations change their sign in each step, by seven. With `lengths` (see `Measure`), a + a₁ −
    a₂ replaces it where the last two changes of the accelerations are not alike. It is exact for
    linear and for alternating accelerations.
    """
    earlier = state.memory.get("earlier", ())
    if len(earlier) == 2:
        (a1, lam1), (a2, lam2) = earlier
        if lengths is not None:
            change, before = lengths * (state.a - a1), lengths * (a1 - a2)
            if change @ before < _ALIKE * (before @ before):
                return state.a + a1 - a2, state.lam + lam1 - lam2
        return 3 * (state.a - a1) + a2, 3 * (state.lam - lam1) + lam2
    if len(earlier) == 1:
        ((a1, lam1),) = earlier
        return 2 * state.a - a1, 2 * state.lam - lam1
    return state.a.copy(), state.lam


def resample(state: State, ratio: float) -> tuple[tuple[Array, Array], ...]:
    """Return a and λ at one and two new steps before the state, interpolated between old steps.

    `ratio` is the length of the new steps relative to that of the old ones.
    """

    def interpolate(x: float, now: Array, *before: Array) -> Array:
        slope = now - before[0]
        if len(before) == 1:
            return now + x * slope
        return now + x * slope + 0.5 * x * (x + 1) * (now - 2 * before[0] + before[1])

    a, lam = zip((state.a, state.lam), *state.memory["earlier"], strict=True)
    return tuple((interpolate(-k * ratio, *a), interpolate(-k * ratio, *lam)) for k in (1, 2))
