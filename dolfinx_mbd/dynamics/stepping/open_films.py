"""Limits of the corrections of a step that keep oil films open."""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.formulas import Derivatives
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.kernels.columns import GAP
from dolfinx_mbd.kernels.time_steps import correct
from dolfinx_mbd.mechanism.system import State

__all__ = ["OpenFilms"]

# Largest fraction of an oil film that a correction may close, and largest number of halvings
_LARGEST_CLOSURE, _HALVINGS = 0.7, 8
_NO_CLOSURE = 0.01  # a displacement below this fraction of the gap is not checked


class OpenFilms:
    """Gaps of the oil films of a system during the iterations of a step.

    Args:
        eqs: Assembler of the stepper.
        lengths: Displacements of the bodies per unit of each coordinate increment, (nv,), m.
    """

    def __init__(self, eqs: Assembler, lengths: Array) -> None:
        self._eqs, self.lengths, self._films = eqs, lengths, eqs.loads.films()
        self._gaps: Array = np.zeros((0, 2))  # smallest gap and clearance of each film, m
        self._accepted: tuple[Array, Array] | None = None  # coordinates and gaps of the last state

    def __bool__(self) -> bool:
        return bool(self._films)

    def check_start(self, state: State) -> None:
        """Raise an error if the deformation at the start closes an oil film."""
        if not self._films:
            return
        self._eqs.angles[:] = state.angles
        gaps = self._gaps_at(state)[:, GAP]
        k = int(np.argmin(gaps))
        if gaps[k] <= 0.0:
            raise InputError(
                f"bearing {self._films[k].name!r}: the deformation at the start closes the oil "
                f"film; its smallest gap is {gaps[k]:.3g} m. Start where the load of the bearing "
                "is small, or with elastic_start='undeformed'",
                argument="start",
                value=float(gaps[k]),
            )

    def correct_prediction(
        self, state: State, dt: float, move: Array, algorithmic: Array, derivatives: Derivatives
    ) -> None:
        """Predict constant velocities if the extrapolation closes an oil film.

        Args:
            state: State before the step.
            dt: Time step, s.
            move: Predicted increments, (nv,), which may change.
            algorithmic: Predicted algorithmic accelerations, (nv,), which may change.
            derivatives: Derivatives of velocities and accelerations with respect to increments.
        """
        eqs, t, (a_by_move, v_by_move, ratio) = self._eqs, state.time + dt, derivatives
        if self._accepted is not None and self._accepted[0] is state.q:
            self._gaps = self._accepted[1]
        else:
            self._gaps = self._gaps_at(state)
        if _is_closing(self._gaps, self._gaps_after(state, move, t)):
            change = np.zeros(len(move) + len(eqs.lam))
            change[: len(move)] = dt * state.v - move
            correct(
                change, v_by_move, a_by_move, ratio, 1.0, move, eqs.v, eqs.a, algorithmic, eqs.lam
            )
            self._gaps = self._gaps_after(state, move, t)

    def limited(self, state: State, t: float, move: Array, solution: Array) -> Array:
        """Return a correction, halved until it leaves all oil films open.

        Args:
            state: State before the step.
            t: Time after the step, s.
            move: Increments before the correction, (nv,).
            solution: The correction: increments, then multipliers, (nv + nc,).
        """
        n = len(move)
        if np.abs(solution[:n] * self.lengths).sum() < _NO_CLOSURE * self._gaps.min():
            return solution
        for _ in range(_HALVINGS):
            gaps = self._gaps_after(state, move + solution[:n], t)
            if not _is_closing(self._gaps, gaps):
                break
            solution = 0.5 * solution
        self._gaps = gaps
        return solution

    def accept(self, state: State) -> None:
        """Store the gaps of an accepted state, at which the assembler has its poses."""
        self._accepted = state.q, self._eqs.loads.film_gaps()

    def reset(self) -> None:
        """Delete the stored gaps, because the films or the state have changed."""
        self._accepted = None

    @property
    def accepted_gaps(self) -> Array:
        """Smallest gaps of the films at the last accepted state, (films,), m."""
        gaps = self._eqs.loads.film_gaps() if self._accepted is None else self._accepted[1]
        return gaps[:, GAP]

    @property
    def are_open(self) -> bool:
        """Whether all gaps are positive after the last correction."""
        return bool(self._gaps[:, GAP].min() >= 0.0)

    def overload(self, limit: float) -> str:
        """Return a text about the films whose surfaces overlap by more than `limit` clearances."""
        text = ""
        for film, (gap, clearance) in zip(self._films, self._eqs.loads.film_gaps(), strict=True):
            if not gap >= -limit * clearance:
                text += (
                    f"; the load presses the journal through oil film {film.name!r}: the surfaces "
                    f"overlap by {-gap:.3g} m, and the clearance is {clearance:.3g} m. Check load, "
                    "clearance and viscosity"
                )
        return text

    def _gaps_at(self, state: State) -> Array:
        """Return the gaps of a state; bitwise identical to those of `accept`."""
        self._eqs.q[:] = state.q
        self._eqs.update_poses(state.time)
        return self._eqs.loads.film_gaps()

    def _gaps_after(self, state: State, move: Array, t: float) -> Array:
        """Return the gaps after increments (nv,)."""
        self._eqs.move(state.q, move)
        self._eqs.update_poses(t)
        return self._eqs.loads.film_gaps()


def _is_closing(before: Array, after: Array) -> bool:
    """Return whether a gap decreases too much; rows (films, 2) are gaps and clearances.

    A gap below 2 % of the clearance may decrease as much as one of 2 %.
    """
    return any(
        old - new > _LARGEST_CLOSURE * max(old, 0.02 * clearance)
        for old, clearance, new in zip(*map(list, (*before.T, after[:, GAP])), strict=True)
    )
