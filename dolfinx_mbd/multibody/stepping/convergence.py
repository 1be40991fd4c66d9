"""Convergence of the iterations of a time step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.time_steps import relative_residual
from dolfinx_mbd.multibody.assembly.assembler import Assembler
from dolfinx_mbd.multibody.model.protocol import Body, BodyState
from dolfinx_mbd.multibody.model.system import SystemData

Array = NDArray[np.float64]

_SAFETY = 10.0  # ratio of tolerance to predicted error above which the error is not evaluated
_SLOW = 0.05  # ratio of successive errors above which the next step uses a new matrix
_TOO_SLOW = 0.3  # ratio of successive errors above which this step uses a new matrix
_TINY = 1e-14  # increments below this, relative to the size of the mechanism, are round-off
_MANY = 4  # number of iterations that cost more than a new matrix


class Monitor:
    """History of the errors of the iterations of one step, each relative to its tolerance.

    With a fixed matrix, the ratio of successive errors grows towards the spectral radius of the
    iteration. The first correction reduces the error more than later ones, and matrices become
    outdated, so that the next error is predicted only from two or more ratios of the same step: the
    largest, with a margin. If all loads are smooth, the residual is not evaluated after a
    correction whose error is predicted to be at most a tenth of its tolerance.
    """

    def __init__(self, smooth: bool) -> None:
        self.smooth = smooth  # whether no load can jump between two evaluations
        self.error = math.nan  # error of the last evaluation
        self.tiny = False  # whether the last correction was round-off of the positions
        self.exhausted = False  # whether such a correction did not reduce the error
        self._factor = 0.0
        self._factors = -1  # number of known factors

    def see(self, error: float) -> None:
        """Record the evaluated error of an iteration."""
        self._factors += 1
        self.exhausted = self.tiny and error > 0.5 * self.error
        if self._factors > 0:
            self._factor = max(self._factor, error / self.error)
        self.error = error

    def renewed(self) -> None:
        """Forget the factors because the matrix is new."""
        self._factor, self._factors = 0.0, 0

    @property
    def last(self) -> bool:
        """Whether the residual need not be evaluated after the next correction."""
        return self.smooth and self._factors > 1 and self.error * self._factor * _SAFETY <= 1.0

    @property
    def slow(self) -> bool:
        """Whether later steps are faster with a new matrix."""
        return self._factor > _SLOW

    def too_slow(self, left: int) -> bool:
        """Return whether a new matrix is worthwhile if `left` iterations remain after this one."""
        return self._factor > _TOO_SLOW or self.error * self._factor ** min(_MANY, left) > 1.0


class Measure:
    """Measure of the residual of a step, relative to the forces on each body.

    The residual of a body is divided by the largest sum of magnitudes of terms among its equations
    of the same kind (forces, moments, elastic forces), so that the loads on one body do not affect
    the accuracy of another body. The violation of a constraint is relative to the displacement that
    such forces on its two bodies cause in one step.

    `lengths` (nv,) is the displacement of a body (root mean square over its mass) per unit of each
    coordinate increment.
    """

    def __init__(self, system: SystemData) -> None:
        self._groups = row_groups(system)
        masses, forces = np.ones(len(system.bodies)), np.full(len(system.bodies), -1)
        lengths: list[Array] = []
        for k, body in enumerate(system.bodies):
            if body.num_velocities:
                masses[k], forces[k] = body.typical_mass, 3 * k
                lengths.append(np.sqrt(_mass_diagonal(body, system.gravity) / body.typical_mass))
        self.lengths, self._masses = np.concatenate(lengths), np.repeat(masses, 3)
        bodies = system.frame_body[np.column_stack([system.first, system.second])]
        self._pairs = forces[bodies[system.row_entry]].reshape(-1, 2)
        self._rotations = np.isin(system.row_motion, (3, 4, 5))

    def error(self, at: Assembler, tolerance: float, by_rate: float) -> float:
        """Return the largest ratio of a residual to its tolerance; infinite if one is not finite.

        `by_rate` is the derivative of the accelerations with respect to the increments.
        """
        return relative_residual(
            at.rows, at.scale, self._groups, self._masses, at.values, self._pairs, self._rotations,
            largest_coordinate(at), tolerance, by_rate,
        )  # fmt: skip

    def is_round_off(self, move: Array, length: float) -> bool:
        """Return whether increments (nv,) are round-off in a mechanism of size `length`, m."""
        return bool(np.max(np.abs(move) * self.lengths, initial=0.0) <= _TINY * length)


def largest_coordinate(at: Assembler) -> float:
    """Return the largest coordinate of any frame, at least 1e-3 m."""
    return float(np.max(np.abs(at.position), initial=1e-3))


def row_groups(system: SystemData) -> NDArray[np.int64]:
    """Return the group of each equation (nv,): forces 3k, moments 3k + 1, elastic forces 3k + 2."""
    groups = np.zeros(system.num_velocities, dtype=np.int64)
    for k, part in enumerate(system.v_slices):
        groups[part] = 3 * k
        groups[part][3:6] += 1
    groups[system.elastic] = 3 * (groups[system.elastic] // 3) + 2
    return groups


def _mass_diagonal(body: Body, gravity: Array) -> Array:
    q, v = body.initial_coordinates(), np.zeros(body.num_velocities)
    wrenches = np.zeros((len(body.frame_names), 6))
    return np.diag(body.tangent(BodyState(0.0, q, v, v, gravity, wrenches))[2])
