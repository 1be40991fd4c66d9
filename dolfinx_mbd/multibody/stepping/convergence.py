"""Prediction and correction of a step, and when it has converged.

The measure of a residual, and what its history foretells.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body.jit import kernel

__all__ = ["Monitor", "correct", "predict", "relative_residual", "right_side"]

Array = NDArray[np.float64]

_SAFETY = 10.0  # by which a residual that is not evaluated is foretold to be below its tolerance
_SLOW = 0.05  # contraction per iteration above which the next step makes the matrix anew
_TOO_SLOW = 0.3  # above which this iteration does
_MANY = 4  # iterations that are more than a new matrix costs


class Monitor:
    """Follows the errors of a step's iterations, each relative to its tolerance.

    With one matrix the errors fall by a factor per iteration that grows towards the greatest
    eigenvalue of the iteration: the first correction takes away most of what is easy, and says
    nothing of later ones, nor do steps before, since a matrix ages.  Two factors of this step, the
    greater with a margin, foretell the next error.  Where all that acts is smooth, a correction
    after which that is a tenth of its tolerance is the last, and is not evaluated.

    Args:
        smooth: Whether nothing acts that may jump between two evaluations.

    Attributes:
        error: Of the last evaluation.
    """

    def __init__(self, smooth: bool) -> None:
        self.smooth = smooth
        self.error = math.nan
        self._factor = 0.0
        self._factors = -1  # how many are known

    def see(self, error: float) -> None:
        """Take in the error of an evaluated iteration."""
        self._factors += 1
        if self._factors > 0:
            self._factor = max(self._factor, error / self.error)
        self.error = error

    def renewed(self) -> None:
        """The matrix is new: factors of the old one say nothing."""
        self._factor, self._factors = 0.0, 0

    @property
    def last(self) -> bool:
        """Whether the next correction needs no evaluation after it."""
        return self.smooth and self._factors > 1 and self.error * self._factor * _SAFETY <= 1.0

    @property
    def slow(self) -> bool:
        """Whether later steps are better off with a new matrix."""
        return self._factor > _SLOW

    def too_slow(self, left: int) -> bool:
        """Whether the next correction is better off with a new matrix, of as many as are left."""
        return self._factor > _TOO_SLOW or self.error * self._factor ** min(_MANY, left) > 1.0


@kernel
def relative_residual(
    rows: Array,
    scale: Array,
    kinds: NDArray[np.int64],
    values: Array,
    turning: NDArray[np.bool_],
    position: Array,
    tolerance: float,
    stiffness: float,
    round_off: float,
) -> float:
    """Greatest residual over its tolerance; infinite where one is not finite.

    Args:
        rows, scale: Rows (nv,) and the magnitudes of their terms.
        kinds: Of each row 0, 1 or 2; residuals count relative to the greatest scale of their kind.
        values: Of the constraints (nc,).
        turning: Which of these are rotations.
        position: Of all frames (nf, 3): their greatest coordinate is the mechanism's length.
        tolerance: Of rows.
        stiffness: Force over displacement that makes the one of constraints.
        round_off: That constraints may have, over the length.
    """
    most, size = np.zeros(3), np.zeros(3)
    for i in range(rows.shape[0]):
        if not math.isfinite(rows[i]):
            return math.inf
        most[kinds[i]] = max(most[kinds[i]], abs(rows[i]))
        size[kinds[i]] = max(size[kinds[i]], scale[i])
    error = 0.0
    for kind in range(3):
        error = max(error, most[kind] / max(tolerance * size[kind], 1e-300))
    length = 1e-3
    for k in range(position.shape[0]):
        for i in range(3):
            length = max(length, abs(position[k, i]))
    allowed = tolerance * size[0] / stiffness + round_off * length
    for c in range(values.shape[0]):
        if not math.isfinite(values[c]):
            return math.inf
        error = max(error, abs(values[c]) * (length if turning[c] else 1.0) / allowed)
    return error


@kernel
def right_side(rows: Array, values: Array, by_rate: float, mass: float, out: Array) -> None:
    """What a correction is solved for: rows and constraints, scaled, with the sign changed."""
    n = rows.shape[0]
    for i in range(n):
        out[i] = -rows[i] / by_rate
    for c in range(values.shape[0]):
        out[n + c] = -mass * values[c]


@kernel
def correct(
    solution: Array,
    by_speed: float,
    by_rate: float,
    ratio: float,
    mass: float,
    move: Array,
    v: Array,
    a: Array,
    new: Array,
    lam: Array,
) -> None:
    """Add a correction (increments, scaled multipliers) to what it corrects.

    `new` are the algorithmic accelerations, which change by `ratio` times what a does.
    """
    n = move.shape[0]
    for i in range(n):
        move[i] += solution[i]
        v[i] += by_speed * solution[i]
        a[i] += by_rate * solution[i]
        new[i] += ratio * by_rate * solution[i]
    for c in range(lam.shape[0]):
        lam[c] += by_rate * mass * solution[n + c]


@kernel
def predict(
    guess: Array,
    a: Array,
    old: Array,
    velocity: Array,
    numbers: Array,
    dt: float,
    new: Array,
    move: Array,
    v: Array,
) -> None:
    """Newmark's formulas for a guess of the next accelerations.

    Args:
        guess, a: Accelerations, the next and the last.
        old: The last algorithmic ones.
        velocity: The last.
        numbers: α_m, α_f, β, γ.
        dt: Step.
        new, move, v: Become algorithmic accelerations, increments and velocities.
    """
    alpha_m, alpha_f, beta, gamma = numbers
    for i in range(guess.shape[0]):
        new[i] = ((1 - alpha_f) * guess[i] + alpha_f * a[i] - alpha_m * old[i]) / (1 - alpha_m)
        move[i] = dt * velocity[i] + dt * dt * ((0.5 - beta) * old[i] + beta * new[i])
        v[i] = velocity[i] + dt * ((1 - gamma) * old[i] + gamma * new[i])
