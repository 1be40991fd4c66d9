"""Convergence of the iterations of a time step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.columns import OMEGA
from dolfinx_mbd.kernels.time_steps import (
    largest_coordinates,
    largest_product,
    relative_forces,
    relative_residual,
    round_off,
)
from dolfinx_mbd.mechanism.protocol import Body, BodyState
from dolfinx_mbd.mechanism.system import System

# The error is not evaluated if its prediction is below the tolerance divided by this number
_SAFETY = 10.0
# The next step uses a new matrix if the ratio of successive errors is larger
_NEXT_STEP_RATIO = 0.07
_THIS_STEP_RATIO = 0.3  # this step uses a new matrix if the ratio is larger
_ROUND_OFF = 1e-14  # largest increment relative to the mechanism's size that counts as round-off
_SAMPLES = 4  # number of samples from which the round-off of the multipliers is estimated
_COSTLY_ITERATIONS = 4  # this number of iterations costs more than a new matrix


class Monitor:
    """History of the errors of the iterations of one step, each relative to its tolerance.

    With a fixed matrix, the ratio of successive errors grows towards the spectral radius of the
    iteration: the first correction reduces the error more than later corrections. The next error is
    therefore predicted from the largest of two or more ratios of the same step. If all loads are
    smooth, the residual is not evaluated after a correction whose predicted error is at most a
    tenth of the tolerance.
    """

    def __init__(self, smooth: bool) -> None:
        self.smooth = smooth  # whether no load can jump between two evaluations
        self.error = math.nan  # error of the last evaluation
        self.is_round_off = False  # whether the last correction was round-off of the positions
        self.exhausted = False  # whether a round-off correction failed to reduce the error
        self._factor = 0.0
        self._factors = -1  # number of known ratios

    def add_error(self, error: float) -> None:
        """Record the evaluated error of an iteration."""
        self._factors += 1
        self.exhausted = self.is_round_off and error > 0.5 * self.error
        if self._factors > 0:
            self._factor = max(self._factor, error / self.error)
        self.error = error

    def reset(self) -> None:
        """Delete the ratios of errors, because the matrix is new."""
        self._factor, self._factors = 0.0, 0

    @property
    def skips_residual(self) -> bool:
        """Whether the residual need not be evaluated after the next correction."""
        return self.smooth and self._factors > 1 and self.error * self._factor * _SAFETY <= 1.0

    @property
    def slow(self) -> bool:
        """Whether later steps are faster with a new matrix."""
        return self._factor > _NEXT_STEP_RATIO

    def too_slow(self, remaining: int) -> bool:
        """Return whether a new matrix is worthwhile if `remaining` iterations follow this one."""
        return _is_slow(self.error, self._factor, remaining)

    def will_be_too_slow(self, error: float, remaining: int) -> bool:
        """Return whether `too_slow` is certain after an error of at least `error`."""
        if self._factors < 0 or self.is_round_off or error <= 1.0:
            return False
        return _is_slow(error, max(self._factor, error / self.error), remaining)


def _is_slow(error: float, factor: float, remaining: int) -> bool:
    """Return whether an error that decreases by a factor in each iteration remains too large."""
    return factor > _THIS_STEP_RATIO or error * factor ** min(_COSTLY_ITERATIONS, remaining) > 1.0


class Measure:
    """Measure of the errors of a step, relative to the forces on each body and in each joint.

    The residual of a body is divided by the largest sum of magnitudes of terms among its equations
    of the same kind (forces, moments, elastic forces), so that the loads on one body do not affect
    the accuracy of another body. The residual of a state of a load, a rate, is divided by the state
    over the length of the step, or by larger terms of the rate.

    The error of a joint or driver is the change of its force and of its moment by the next
    correction. This change includes what the violations of all constraints cause in the step. It is
    divided by the force or moment itself. If a force or moment is below 1e-5 of the forces or
    moments on both bodies, this limit is the divisor. The effect of round-off in the constraints is
    not an error. The violation of a constraint is also divided by the size of the mechanism, or by
    1 rad.

    `lengths` (nv,) are the displacements of the bodies (root mean square over the mass) per unit of
    each coordinate increment.
    """

    def __init__(self, system: System) -> None:
        self._groups = row_groups(system)
        force_groups = np.full(len(system.bodies), -1)
        lengths: list[Array] = []
        for k, body in enumerate(system.bodies):
            if body.num_velocities:
                force_groups[k] = 3 * k
                lengths.append(np.sqrt(_mass_diagonal(body, system.gravity) / body.typical_mass))
        self.lengths = np.concatenate(lengths)
        self.lengths[system.states] = 0.0
        rotations = np.concatenate([np.zeros(0), *(x[OMEGA] for x in lengths if len(x) >= 6)])
        self._radius = float(rotations.max(initial=0.0))
        self._size = np.zeros(count_groups(system))  # largest sums of magnitudes by group
        self._largest = np.zeros(2)  # largest coordinates at the last residual
        self._states, self._masses = _states(system)
        # for each constraint, the groups of the forces or moments on both bodies; negative: ground
        bodies = system.frame_body[np.column_stack([system.first, system.second])]
        pairs = force_groups[bodies[system.row_entry]].reshape(-1, 2)
        self._rotations = np.isin(system.row_motion, (3, 4, 5))
        self._pairs = np.where((pairs >= 0) & self._rotations[:, None], pairs + 1, pairs)
        # each joint or driver has two parts: its force and its moment
        self._parts = 2 * system.row_entry + self._rotations
        # signs of round-off in a sample of corrections
        shape = system.num_velocities + system.num_constraints, _SAMPLES
        self._signs = np.random.default_rng(0).choice([-1.0, 1.0], shape)

    def residual(self, eqs: Assembler, tolerance: float, a_by_move: float) -> float:
        """Return the largest ratio of residual to tolerance; infinite if a residual is not finite.

        The constraints are not included. `a_by_move` is the derivative of the accelerations with
        respect to the increments.
        """
        if len(self._states):
            speeds = math.sqrt(a_by_move) * np.abs(eqs.v[self._states])
            eqs.scale[self._states] += self._masses * speeds
        _write_largest_coordinates(eqs, self._largest)
        return relative_residual(eqs.rows, eqs.scale, self._groups, tolerance, self._size)

    def forces(
        self, eqs: Assembler, solution: Array, factor: float, noise: Array, tolerance: float
    ) -> float:
        """Return the largest ratio of an error of a joint or driver to its tolerance.

        Call `residual` first. The last entries of `solution`, times `factor`, are the changes of
        the multipliers by the next correction; `noise` (nc,) is the round-off of the multipliers.
        """
        return relative_forces(
            solution, factor, eqs.lam, noise, eqs.values, self._rotations, self._parts,
            self._pairs, self._size, self._largest, tolerance,
        )  # fmt: skip

    def round_off(self, eqs: Assembler, a_by_move: float, mass: float) -> Array:
        """Return right-hand sides of corrections (nv + nc, samples) that consist of round-off."""
        out = np.empty(self._signs.shape, order="F")
        round_off(eqs.scale, self._rotations, self._signs, self.length, a_by_move, mass, out)
        return out

    @property
    def length(self) -> float:
        """Largest coordinate of any frame or origin of a body at the last `residual`, m."""
        return float(self._largest[1])

    def is_round_off(self, move: Array, length: float, nodal: float = 0.0) -> bool:
        """Return whether increments (nv,) are round-off.

        `length` is the largest coordinate, and `nodal` the largest increment of the nodes of mesh
        bodies, m. A small body may have a large radius of gyration about the origin of its frame;
        the round-off of its rotation moves it accordingly.
        """
        length = max(length, self._radius)
        return bool(max(largest_product(move, self.lengths), nodal) <= _ROUND_OFF * length)


def largest_coordinate(eqs: Assembler) -> float:
    """Return the largest coordinate of any frame or origin of a body, at least 1e-3 m.

    The round-off of positions is proportional to it.
    """
    out = np.empty(2)
    _write_largest_coordinates(eqs, out)
    return float(out[1])


def _write_largest_coordinates(eqs: Assembler, out: Array) -> None:
    """Write the largest coordinates of frames, and of frames and bodies, m, into `out` (2,)."""
    largest_coordinates(eqs.position, eqs.q, eqs.frames.bodies.origins, 1e-3, out)


def row_groups(system: System) -> NDArray[np.int64]:
    """Return the group of each equation (nv,): forces 3k, moments 3k + 1, elastic forces 3k + 2.

    Each state of a load has a group of its own, after those of the bodies.
    """
    groups = np.zeros(system.num_velocities, dtype=np.int64)
    for k, part in enumerate(system.v_slices):
        groups[part] = 3 * k
        groups[part][OMEGA] += 1
    groups[system.elastic] = 3 * (groups[system.elastic] // 3) + 2
    groups[system.states] = 3 * len(system.bodies) + np.arange(len(system.states))
    return groups


def count_groups(system: System) -> int:
    """Return the number of groups of `row_groups`."""
    return 3 * len(system.bodies) + len(system.states)


def _states(system: System) -> tuple[NDArray[np.int64], Array]:
    """Return the indices of the states of loads, and the masses that scale their equations."""
    masses = [
        np.full(body.num_velocities, body.typical_mass)
        for body in system.bodies[len(system.mechanical_bodies) :]
    ]
    return system.states, np.concatenate([np.zeros(0), *masses])


def _mass_diagonal(body: Body, gravity: Array) -> Array:
    q, v = body.initial_coordinates(), np.zeros(body.num_velocities)
    wrenches = np.zeros((len(body.frame_names), 6))
    _, _, M = body.tangent(BodyState(0.0, q, v, v, gravity, wrenches))
    return np.diag(M)
