"""Contacts in the control of adaptive steps: times of touch and separation, errors of gaps."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.columns import GAP, GAP_RATE
from dolfinx_mbd.mechanism.system import State

__all__ = ["ContactEvents", "closings", "smallest_depths"]

_MIN_DEPTH = 1e-6  # minimum scale of penetrations relative to the mechanism's size
# The relative error of a gap is 1 if its error is this fraction of its largest penetration
_GAP_ERROR = 0.25
_ACCURACY = 1e-3  # gap at an event relative to the largest penetration so far
# Because paths are curved, a gap counts as closed if its tangents at both ends of a step meet below
# this height, relative to the distance travelled in the step
_SWERVE = 0.02
# Instants inside a step, relative to its length, and weights there of the gap and dt times its rate
# at the start and at the end, by Hermite's cubic polynomials
_X = np.linspace(0.0, 1.0, 17)[1:-1, None]
_CUBIC = np.hstack(
    [(1 + 2 * _X) * (1 - _X) ** 2, _X * (1 - _X) ** 2, _X**2 * (3 - 2 * _X), _X**2 * (_X - 1)]
)


@dataclass(frozen=True)
class ContactEvents:
    """Gaps after the last accepted step, and the largest penetrations so far.

    Attributes:
        gaps: Gap of each point of a contact, m.
        rates: Rates of the gaps, m/s.
        depths: Largest penetration of each point so far, m.
    """

    gaps: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    depths: list[float] = field(default_factory=list)

    @classmethod
    def at(cls, eqs: Assembler, state: State) -> ContactEvents:
        """Return the contacts of a state before the first step."""
        eqs.put(state)
        eqs.update_poses(state.time)
        return cls().after(_states(eqs))

    def after(self, states: Array) -> ContactEvents:
        """Return the contacts after an accepted step."""
        gaps = states[:, GAP]
        depths = np.maximum(np.maximum(-gaps, self.depths or 0.0), 0.0)
        return ContactEvents(
            *(list(map(float, row)) for row in (gaps, states[:, GAP_RATE], depths))
        )

    def error(self, eqs: Assembler, local: Array, size: float) -> tuple[Array, float]:
        """Return the contact states and the relative error of the gaps at the new state.

        Args:
            eqs: Assembler at the new state.
            local: Local error of the increments of the step, (nv,).
            size: Size of the mechanism, m.

        Returns:
            Gaps, their rates and normal forces, shape (points, 3); and the largest ratio of the
            error of a closed gap to a quarter of its largest penetration.
        """
        if not self.gaps:
            return np.zeros((0, 3)), 0.0
        states, v = _states(eqs), eqs.v.copy()
        eqs.v[:] = local  # the gap rates at these velocities are the errors of the gaps
        errors = np.abs(_states(eqs)[:, GAP_RATE])
        eqs.v[:] = v
        eqs.frames.update_velocities()
        touches = (states[:, GAP] < 0.0) | (np.array(self.gaps) < 0.0)
        errors = np.where(touches, errors / (_GAP_ERROR * self._scales(states, size)), 0.0)
        return states, float(errors.max(initial=0.0))

    def change(self, states: Array) -> bool:
        """Return whether a gap changes its sign in a step to the given states."""
        return bool(((np.array(self.gaps) < 0.0) != (states[:, GAP] < 0.0)).any())

    def fraction(self, states: Array, dt: float, size: float) -> float | None:
        """Return the fraction of a step after which a gap first changes its sign.

        A gap that is positive at both ends may be negative in between; see `closings`. Return None
        if no gap changes its sign, or if the step ends at the change.
        """
        if not self.gaps:
            return None
        gaps, rates = np.array(self.gaps), np.array(self.rates)
        limits = smallest_depths(np.maximum(self.depths, -states[:, GAP]), size)
        changes = (gaps < 0.0) != (states[:, GAP] < 0.0)
        changes &= np.abs(states[:, GAP]) > limits
        inside = closings(np.column_stack([gaps, rates]), states, dt, limits, _SWERVE)
        fractions = [float(value) for value in inside if np.isfinite(value)]
        for k in map(int, np.flatnonzero(changes)):
            new_gap, new_rate, *_ = states[k]
            values, slopes = (gaps[k], new_gap), (dt * rates[k], dt * new_rate)
            target = 0.5 * np.copysign(limits[k], new_gap)  # slightly behind the change
            roots = scipy.interpolate.CubicHermiteSpline([0.0, 1.0], values, slopes).solve(
                target, extrapolate=False
            )
            fractions += [root for root in roots.tolist() if root > 0.0]
        return min(fractions, default=None)

    def _scales(self, states: Array, size: float) -> Array:
        return np.maximum(np.maximum(self.depths, -states[:, GAP]), _MIN_DEPTH * size)


def smallest_depths(depths: Array, size: float) -> Array:
    """Return the depths below which a penetration is ignored, m.

    Args:
        depths: Largest penetrations so far, (points,), m.
        size: Size of the mechanism, m.
    """
    return _ACCURACY * np.maximum(depths, _MIN_DEPTH * size)


def closings(
    before: Array, after: Array, dt: float | Array, limits: Array, swerve: float = 0.0
) -> Array:
    """Return the fraction of a step after which each gap may close and open again, (points,).

    Only gaps that are positive at both ends of the step are considered. The fraction is NaN for all
    others, and where the gap remains positive. The gap of two convex bodies in straight motion is
    convex: it lies above its tangents at both ends. Other gaps are approximated by the cubic
    polynomial with the same values and rates at both ends.

    Args:
        before: Gaps and their rates at the start of the step, (points, 2).
        after: Gaps and their rates at the end, (points, 2 or more).
        dt: Length of the step, or of the step of each gap, s.
        limits: Depths that are ignored, (points,), m.
        swerve: Distance to the tangents that counts as contact, relative to the distance travelled
            in the step.
    """
    g0, g1 = before[:, GAP], after[:, GAP]
    r0, r1 = dt * before[:, GAP_RATE], dt * after[:, GAP_RATE]
    fractions = np.full(len(g0), np.nan)
    travel = np.maximum(np.abs(r0), np.abs(r1))  # a gap that exceeds it does not close
    near = (g0 >= 0.0) & (g1 >= 0.0) & (travel > np.minimum(g0, g1))
    for k in map(int, np.flatnonzero(near)):
        if r0[k] < 0.0 < r1[k]:
            x = (g1[k] - g0[k] - r1[k]) / (r0[k] - r1[k])  # where both tangents meet
            margin = swerve * min(-r0[k], r1[k])
            if 0.0 < x < 1.0 and g0[k] + x * r0[k] < margin - limits[k]:
                # the first tangent reaches half the ignored depth, at the latest at x
                fractions[k] = min(x, (g0[k] + 0.5 * limits[k]) / -r0[k])
                continue
        below = np.flatnonzero(_CUBIC @ (g0[k], r0[k], g1[k], r1[k]) < -limits[k])
        if below.size:
            fractions[k] = _X[below[0], 0]
    return fractions


def _states(eqs: Assembler) -> Array:
    eqs.frames.update_velocities()
    return eqs.loads.contact_states()
