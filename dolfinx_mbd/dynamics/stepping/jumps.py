"""Accelerations and multipliers after a jump of inputs between two steps.

They satisfy linear equations, in which the iteration matrix of the step replaces the mass matrix so
that motions that are too stiff for the step do not react. This matrix may be outdated; two
corrections reduce its error to second order. The changes that unit jumps of the inputs cause vary
little from step to step, so that they are kept as an estimate for the next jump, after which one
correction is enough.

References:
    C. G. Broyden, A class of methods for solving nonlinear simultaneous equations, Mathematics of
    Computation 19 (1965) (updates of the changes by unit jumps).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.stepping.corrections import Corrector
from dolfinx_mbd.dynamics.stepping.formulas import AlphaFormulas
from dolfinx_mbd.kernels.time_steps import largest_product
from dolfinx_mbd.mechanism.system import State

__all__ = ["Jumps"]

_SMALL = 0.01  # largest correction, relative to the whole change, without a second one
_LEAST = 0.01  # smallest jump relative to the jumps before that updates the estimates
_LARGER = 2.0  # largest jump of an input relative to the jumps before for which estimates are used


class Jumps:
    """Changes of accelerations and multipliers by jumps of the inputs.

    Args:
        corrector: Iteration matrix and corrections of the steps.
        formulas: Formulas of the method.
    """

    def __init__(self, corrector: Corrector, formulas: AlphaFormulas) -> None:
        self._corrector, self._formulas = corrector, formulas
        # changes of a and λ by unit jumps (inputs, nv + nc), and sizes of the jumps before
        self._unit_changes, self._sizes = np.zeros((0, 0)), list[float]()

    def apply(self, state: State, dt: float, jump: list[float]) -> State:
        """Return the state for the next step after a jump of inputs; the assembler contains it.

        Args:
            state: State before the jump.
            dt: Next time step, s.
            jump: Changes of the inputs.
        """
        corrector, eqs = self._corrector, self._corrector.eqs
        n, lengths = len(state.v), corrector.measure.lengths
        total = self._estimate(len(state.v) + len(state.lam), jump)
        eqs.a += total[:n]
        eqs.lam += total[n:]
        for _ in range(2):
            eqs.residual(state.time)
            is_new = not corrector.has_factor_for(dt)
            if is_new:
                corrector.refactor(state.time, dt, np.zeros(n), self._formulas.derivatives(dt))
            change = corrector.correct_accelerations()
            total += change
            size, whole = (largest_product(x, lengths) for x in (change, total))
            is_small = size <= _SMALL * whole
            if is_new or is_small:
                break
        self._update(jump, total, is_small)
        a, lam = total[:n], total[n:]
        memory = state.memory | {
            "algorithmic": state.memory["algorithmic"] + a,
            "earlier": tuple((x + a, y + lam) for x, y in state.memory.get("earlier", ())),
        }
        return State(
            state.time, state.q, state.v, state.a + a, state.lam + lam, state.angles, memory
        )

    def _estimate(self, unknowns: int, jump: list[float]) -> Array:
        """Return the expected changes of a and λ (nv + nc,)."""
        if len(self._sizes) != len(jump):
            self._unit_changes, self._sizes = np.zeros((len(jump), unknowns)), [0.0] * len(jump)
        pairs = zip(jump, self._sizes, strict=True)
        if any(abs(x) > _LARGER * size for x, size in pairs):
            return np.zeros(unknowns)
        return np.array(jump) @ self._unit_changes

    def _update(self, jump: list[float], total: Array, was_close: bool) -> None:
        """Correct the changes by unit jumps so that they have no error for this jump."""
        pairs = zip(jump, self._sizes, strict=True)
        self._sizes = [
            max(abs(x), size) if was_close or x == 0.0 else abs(x) for x, size in pairs
        ]
        pairs = zip(jump, self._sizes, strict=True)
        relative = [x / size if size else 0.0 for x, size in pairs]
        square = sum(x * x for x in relative)
        if square < _LEAST**2:  # the changes by smaller jumps consist of round-off
            return
        pairs = zip(relative, self._sizes, strict=True)
        weights = np.array([x / (square * size) if size else 0.0 for x, size in pairs])
        error = total - np.array(jump) @ self._unit_changes
        self._unit_changes = self._unit_changes + weights[:, None] * error

    def memory(self) -> dict[str, Any]:
        """Return the estimates, to store them in a checkpoint."""
        if not self._sizes:
            return {}
        return {"unit_changes": self._unit_changes, "jumps": self._sizes}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Restore what `memory` returned."""
        self._unit_changes = np.asarray(memory.get("unit_changes", np.zeros((0, 0))))
        self._sizes = [*map(float, memory.get("jumps", ()))]
