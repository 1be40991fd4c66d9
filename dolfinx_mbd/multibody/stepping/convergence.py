"""Prediction and correction of a step, and when it has converged.

The measure of a residual, and what its history foretells.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.time_steps import relative_residual
from dolfinx_mbd.multibody.model.protocol import Body, BodyState
from dolfinx_mbd.multibody.model.system import SystemData

__all__ = [
    "Measure",
    "Monitor",
    "row_kinds",
]

Array = NDArray[np.float64]

_SAFETY = 10.0  # by which a residual that is not evaluated is foretold to be below its tolerance
_SLOW = 0.05  # contraction per iteration above which the next step makes the matrix anew
_TOO_SLOW = 0.3  # above which this iteration does
_TINY = 1e-14  # of the size of the mechanism: increments that may be round-off
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
        tiny: Whether the last correction was round-off of the positions.
        exhausted: Whether such a correction did not reduce the error, so that none will.
    """

    def __init__(self, smooth: bool) -> None:
        self.smooth = smooth
        self.error = math.nan
        self.tiny = self.exhausted = False
        self._factor = 0.0
        self._factors = -1  # how many are known

    def see(self, error: float) -> None:
        """Take in the error of an evaluated iteration."""
        self._factors += 1
        self.exhausted = self.tiny and error > 0.5 * self.error
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


class Measure:
    """Measure of the residual of a step, for each body by itself.

    The rows of a body count relative to the greatest sum of magnitudes of terms among its rows of
    the same kind (forces, moments, elastic forces), so that what acts on one body does not change
    how well another one is balanced.  A constraint may be off by what changes the accelerations of
    its two bodies no more than that.

    Args:
        system: The mechanism.

    Attributes:
        lengths: Displacements of a body (root mean square over its mass) per unit of each increment
            of coordinates, shape (nv,).
    """

    def __init__(self, system: SystemData) -> None:
        n = system.num_velocities
        self._groups = np.zeros(n, dtype=np.int64)
        self.lengths = np.ones(n)
        masses: list[float] = []
        forces = np.full(len(system.bodies), -1)
        for k, (body, part) in enumerate(zip(system.bodies, system.v_slices, strict=True)):
            if not body.num_velocities:
                continue
            forces[k] = 3 * len(masses)
            self._groups[part] = row_kinds(body) + forces[k]
            self.lengths[part] = np.sqrt(_mass_diagonal(body, system.gravity) / body.typical_mass)
            masses.append(body.typical_mass)
        self._masses = np.repeat(np.array(masses), 3)
        bodies = system.frame_body[np.column_stack([system.first, system.second])]
        self._pairs = forces[bodies[system.row_entry]].reshape(-1, 2)
        self._rotations = np.isin(system.row_motion, (3, 4, 5))

    def error(
        self, rows: Array, scale: Array, values: Array, length: float, tolerance: float, rate: float
    ) -> float:
        """Return the greatest residual over its tolerance; infinite where one is not finite.

        Args:
            rows, scale: Rows (nv,) and the magnitudes of their terms.
            values: Of the constraints (nc,).
            length: Size of the mechanism, m.
            tolerance: Relative tolerance of the rows.
            rate: Change of accelerations per increment, 1/s².
        """
        return relative_residual(
            rows, scale, self._groups, self._masses, values, self._pairs, self._rotations,
            length, tolerance, rate,
        )  # fmt: skip

    def is_round_off(self, move: Array, length: float) -> bool:
        """Return whether increments (nv,) are round-off of positions in a mechanism of a size."""
        return bool(np.max(np.abs(move) * self.lengths, initial=0.0) <= _TINY * length)


def row_kinds(body: Body) -> NDArray[np.int64]:
    """Return the kind of each row of a body, shape (nv,): 0 force, 1 moment, 2 elastic."""
    kinds = np.zeros(body.num_velocities, dtype=np.int64)
    kinds[3:6] = 1
    kinds[body.num_velocities - body.num_elastic :] = 2
    return kinds


def _mass_diagonal(body: Body, gravity: Array) -> Array:
    q, v = body.initial_coordinates(), np.zeros(body.num_velocities)
    wrenches = np.zeros((len(body.frame_names), 6))
    return np.diag(body.tangent(BodyState(0.0, q, v, v, gravity, wrenches))[2])
