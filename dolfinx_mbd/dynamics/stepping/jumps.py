"""Accelerations and multipliers after a jump of inputs between two steps.

They satisfy linear equations, in which the iteration matrix of the step replaces the mass matrix so
that motions that are too stiff for the step do not react. The residual is therefore evaluated at
the increments and velocities that belong to the changed accelerations at the end of a step. The
factorized matrix may be outdated; two corrections reduce its error to second order, but for the
constraints. The changes that unit jumps of the inputs cause vary little from step to step, so that
they are kept as an estimate for the next jump, after which one correction is enough. If several
estimates were almost exact, only every fourth one is corrected.

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

_CORRECTIONS = 2  # largest number of corrections
_SMALL = 0.01  # largest correction, relative to the whole change, without a second one
_EXACT = 1e-4  # largest correction, relative to the whole change, of an exact estimate
_FREE = 3  # number of jumps without a correction after such estimates
_LEAST = 0.05  # smallest jump relative to the jumps before that updates the estimates
_DECREASE = 0.7  # factor of the sizes of jumps after a smaller one
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
        self._unit_changes: Array = np.zeros((0, 0))
        self._sizes: list[float] = []
        # number of successive estimates that were exact, and of jumps that need no correction
        self._exact = self._free = 0
        self._may_skip = not corrector.eqs.loads.has_contacts

    def apply(self, state: State, dt: float, jump: list[float]) -> State:
        """Return the state for the next step after a jump of inputs, whose assembler is at `state`.

        Args:
            state: State before the jump.
            dt: Next time step, s.
            jump: Changes of the inputs.
        """
        n, lengths = len(state.v), self._corrector.measure.lengths
        total, is_known = self._estimate(n + len(state.lam), jump)
        if is_known and self._free:
            self._free -= 1
            return _changed(state, total)
        before, error, is_exact = np.inf, np.nan, False  # error of the estimate
        for number in range(_CORRECTIONS):
            change, is_new = self._correction(state, dt, total)
            total += change
            size, whole = (largest_product(x, lengths) for x in (change, total))
            if not size < 0.5 * before:  # the equations are not linear in these changes
                total, _ = self._correction(state, dt, np.zeros(len(total)))
                self._exact = 0
                return _changed(state, total)
            if number == 0:
                # an estimate is exact if it satisfies the equations as accurately as a step
                error, is_exact = size, is_known and (size <= _EXACT * whole or self._solves(dt))
            before = size
            if is_new or is_exact or size <= _SMALL * whole:
                break
        if is_exact:
            self._exact += 1
            self._free = _FREE if self._may_skip and self._exact > 2 * len(jump) else 0
        elif all(abs(x) < _LEAST * size for x, size in zip(jump, self._sizes, strict=True)):
            # the correction consists of the residual of the step before
            self._sizes = [_DECREASE * size for size in self._sizes]
        else:
            self._exact = self._free = 0
            self._update(jump, total, is_known and error <= _SMALL * whole)
        return _changed(state, total)

    def _correction(self, state: State, dt: float, total: Array) -> tuple[Array, bool]:
        """Return the correction of the changes `total`, and whether the matrix is new."""
        corrector, eqs, n = self._corrector, self._corrector.eqs, len(state.v)
        derivatives = self._formulas.derivatives(dt)
        a_by_move, v_by_move, _ = derivatives
        move: Array = np.divide(total[:n], a_by_move)
        eqs.move(state.q, move)
        eqs.v[:] = state.v + v_by_move * move
        eqs.a[:] = state.a + total[:n]
        eqs.lam[:] = state.lam + total[n:]
        eqs.residual(state.time)
        is_new = not corrector.has_factor_for(dt)
        if is_new:
            corrector.refactor(state.time, dt, move, derivatives)
        return corrector.acceleration_change(), is_new

    def _solves(self, dt: float) -> bool:
        """Return whether the evaluated residual is within the tolerance of a step."""
        corrector, (a_by_move, _, _) = self._corrector, self._formulas.derivatives(dt)
        error = corrector.measure.residual(corrector.eqs, corrector.tolerance, a_by_move)
        return error <= 1.0

    def _estimate(self, unknowns: int, jump: list[float]) -> tuple[Array, bool]:
        """Return the expected changes of a and λ (nv + nc,), and whether they are known."""
        if len(self._sizes) != len(jump):
            self._unit_changes, self._sizes = np.zeros((len(jump), unknowns)), [0.0] * len(jump)
        pairs = zip(jump, self._sizes, strict=True)
        if any(abs(x) > _LARGER * size for x, size in pairs):
            return np.zeros(unknowns), False
        return np.array(jump) @ self._unit_changes, True

    def _update(self, jump: list[float], total: Array, was_close: bool) -> None:
        """Correct the changes by unit jumps so that they have no error for this jump."""
        pairs = zip(jump, self._sizes, strict=True)
        self._sizes = [max(abs(x), size) if was_close or x == 0.0 else abs(x) for x, size in pairs]
        pairs = zip(jump, self._sizes, strict=True)
        relative = [x / size if size else 0.0 for x, size in pairs]
        square = sum(x * x for x in relative)
        pairs = zip(relative, self._sizes, strict=True)
        weights = np.array([x / (square * size) if size else 0.0 for x, size in pairs])
        error = total - np.array(jump) @ self._unit_changes
        self._unit_changes = self._unit_changes + weights[:, None] * error

    def memory(self) -> dict[str, Any]:
        """Return the estimates, to store them in a checkpoint."""
        if not self._sizes:
            return {}
        counts = [self._exact, self._free]
        return {"unit_changes": self._unit_changes, "jumps": self._sizes, "exact_jumps": counts}

    def restore(self, memory: Mapping[str, Any]) -> None:
        """Restore what `memory` returned."""
        self._unit_changes = np.asarray(memory.get("unit_changes", np.zeros((0, 0))))
        self._sizes = [*map(float, memory.get("jumps", ()))]
        self._exact, self._free = map(int, memory.get("exact_jumps", (0, 0)))


def _changed(state: State, total: Array) -> State:
    """Return a state with changes of a and λ (nv + nc,) also in its memory."""
    n = len(state.v)
    a, lam = total[:n], total[n:]
    memory = state.memory | {
        "algorithmic": state.memory["algorithmic"] + a,
        "earlier": tuple((x + a, y + lam) for x, y in state.memory.get("earlier", ())),
    }
    return State(state.time, state.q, state.v, state.a + a, state.lam + lam, state.angles, memory)
