"""Factorization of the matrix of a step; bodies with many coordinates are eliminated first."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.kernels.elimination import eliminate, expand_columns, reduce_columns

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))

_FEWEST_VELOCITIES = 12  # smallest body that is eliminated


class StepFactor:
    """LU factors of the matrix of a step, or of its transpose.

    Bodies with many coordinates that are not coupled to each other are eliminated first. If this is
    inaccurate, because the matrix of a body alone is nearly singular, the complete matrix is
    factorized.

    Args:
        at: Assembler of the system.

    Attributes:
        dt: Length of the step whose matrix is factorized, s; `StepEquations` sets it and `mass`.
        mass: Mass matrix of the same point, (nv, nv).
        noise: Round-off of the multipliers (nc,), or empty if it was not computed.
    """

    dt: float
    mass: Array

    def __init__(self, at: Assembler) -> None:
        s = at.system
        size = s.num_velocities + s.num_constraints
        table, neighbours = _fronts(at) if COMPILED else ([], [])
        self._table = np.array(table, dtype=np.int64).reshape(-1, 5)
        self._neighbours = np.array(neighbours, dtype=np.int64)
        eliminated = np.zeros(size, dtype=bool)
        for first, count, *_ in table:
            eliminated[first : first + count] = True
        self._rest = np.flatnonzero(~eliminated)
        self._places = np.searchsorted(self._rest, self._neighbours)
        _, _, sizes, _, _ = self._table.T
        self._fronts = np.zeros(int((sizes**2).sum()))
        self._exchanges = np.zeros(size, dtype=np.int64)
        self._R = np.zeros((len(self._rest), len(self._rest)))
        self._parts = False  # whether bodies were eliminated before the rest

    def factorize(self, S: Array, transposed: bool) -> int:
        """Factorize S (unknowns, unknowns), in column order, in place; return LAPACK's info.

        Args:
            S: The matrix.
            transposed: Whether `solve` solves the transposed equations.
        """
        self._transposed, self.noise = int(transposed), np.zeros(0)
        # the kernels decompose Sᵀ, whose rows are contiguous, and solve the transposed equations
        self._parts = len(self._table) > 0 and eliminate(
            S.T,
            transposed,
            self._table,
            self._neighbours,
            self._places,
            self._rest,
            self._fronts,
            self._exchanges,
            self._R,
        )
        self._lu, self._row_pivots, info = _getrf(self._R.T if self._parts else S, overwrite_a=True)
        return int(info)

    def solve(self, right: Array) -> Array:
        """Return the solution for right-hand sides (unknowns, columns), or one (unknowns,).

        The right-hand sides are overwritten.
        """
        if right.ndim == 1:
            return self.solve(right[:, None])[:, 0]
        if not self._parts:
            trans = self._transposed
            solution, _ = _getrs(self._lu, self._row_pivots, right, trans=trans)
            return np.asarray(solution)
        fronts = self._table, self._neighbours, self._rest, self._fronts
        remaining = np.empty((right.shape[1], len(self._rest)))
        reduce_columns(*fronts, self._exchanges, right.T, remaining)
        solution, _ = _getrs(self._lu, self._row_pivots, remaining.T, overwrite_b=True)
        expand_columns(*fronts, solution.T, right.T)
        return right

    def memory(self) -> dict[str, Any]:
        """Return nothing: a stepper that is restored computes a factor of its own."""
        return {}


class ExtrapolatedFactor:
    """Inverse of the matrix of the next step, extrapolated from the last two steps.

    The error of 2 S⁻¹ − S₀⁻¹, with the matrices S and S₀ of steps of equal length, is of second
    order in the change of the matrix in a step. Most steps then need one correction only.

    Args:
        factor: Factors of S, with the attributes `dt` and `mass`.
        before: Factors of S₀.
    """

    def __init__(self, factor: StepFactor, before: StepFactor) -> None:
        self.dt, self.mass, self.noise = factor.dt, factor.mass, np.zeros(0)
        self._factor, self._before = factor, before

    def solve(self, right: Array) -> Array:
        """Return the product with right-hand sides (unknowns,) or (unknowns, columns).

        The right-hand sides are overwritten.
        """
        before = self._before.solve(right.copy(order="F"))
        return np.asarray(2.0 * self._factor.solve(right) - before)

    def memory(self) -> dict[str, Any]:
        """Return nothing, as `StepFactor.memory`."""
        return {}


def _fronts(at: Assembler) -> tuple[list[list[int]], list[int]]:
    """Return the table of eliminated bodies, the largest first, and the unknowns coupled to them.

    A row of the table has the first velocity and the number of velocities of a body, the size of
    its front, and the places of its coupled unknowns and of its front in their arrays. No two of
    these bodies are coupled. A front is the dense matrix of the unknowns of a body and of the
    unknowns coupled to it.
    """
    s, couplings = at.system, at.loads.couplings()
    table: list[list[int]] = []
    neighbours: list[int] = []
    blocked: set[int] = set()
    entry = 0
    bodies = sorted(range(len(s.bodies)), key=lambda k: -s.bodies[k].num_velocities)
    for body in bodies:
        count = s.bodies[body].num_velocities
        if count < _FEWEST_VELOCITIES or body in blocked:
            continue
        blocked |= couplings[body]
        coupled = [i for k in sorted(couplings[body]) for i in range(*_range(s.v_slices[k]))]
        first, second = s.frame_body[s.first], s.frame_body[s.second]
        rows = np.flatnonzero(((first == body) | (second == body))[s.row_entry])
        coupled += (s.num_velocities + rows).tolist()
        table.append([s.v_slices[body].start, count, count + len(coupled), len(neighbours), entry])
        neighbours += coupled
        entry += (count + len(coupled)) ** 2
    return (table, neighbours) if neighbours else ([], [])


def _range(part: slice) -> tuple[int, int]:
    return part.start, part.stop
