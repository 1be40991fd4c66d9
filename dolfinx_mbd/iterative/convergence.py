"""Convergence of the iterations: the level of round-off, and the error if it is not reached.

A residual r = b - K x cannot be computed to better than some ε|K||x| with the machine precision ε,
whatever the tolerance is. The norms here are those of the stiffness scaled to a unit diagonal, in
which soft and stiff parts of a body count alike: with D = diag K the level of a column is

    ‖D^-½ r‖ / (ε ‖D^½ x‖).

A level of one is the least that can be expected; K has some hundred entries in a row, and
recurrences add their own round-off, so that iterations may stop somewhat above it.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.iterative.products import column_sums
from dolfinx_mbd.linalg.eigenvalues import EigenError
from dolfinx_mbd.linalg.factorization import FactorizationError

__all__ = ["ROUND_OFF", "IterationError", "Stagnation", "round_off_level"]

Array = NDArray[np.float64]

ROUND_OFF = 1e3
"""Level of round-off at or below which a residual that no longer falls is accepted."""

INTERVAL = 10
"""Iterations between two checks for stagnation."""


class IterationError(FactorizationError, EigenError):
    """An iteration that does not reach its tolerance, nor the level of round-off.

    Attributes:
        iterations: Number of iterations.
        error: Relative error that was reached.
        tolerance: Relative error that was requested.
    """

    def __init__(
        self,
        message: str = "",
        *,
        iterations: int = 0,
        error: float = np.nan,
        tolerance: float = np.nan,
    ) -> None:
        super().__init__(message)
        self.iterations, self.error, self.tolerance = iterations, error, tolerance


def round_off_level(comm: MPI.Comm, scale: Array, R: Array, X: Array) -> Array:
    """Return the level of round-off of residuals, one number for each column.

    Args:
        comm: Communicator of the distributed rows.
        scale: Diagonal of D^½, zero in held rows, shape (owned rows,).
        R: Residuals, shape (owned rows, k).
        X: Vectors that the stiffness is multiplied by, shape (owned rows, k).

    Note: Collective over `comm`.
    """
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    sums = []
    for factor, columns in ((inverse, R), (scale, X)):
        scaled = np.empty((len(factor), columns.shape[1]), order="F")
        np.multiply(columns, factor[:, None], out=scaled)
        sums.append(column_sums(comm, scaled, scaled))
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.sqrt(sums[0] / sums[1]) / np.finfo(float).eps
    return np.asarray(np.where(sums[0] > 0, level, 0.0))


class Stagnation:
    """A check, every few iterations, of which errors have stopped to fall."""

    def __init__(self) -> None:
        self._before: Array | None = None
        self._least: Array | None = None

    def found(self, count: int, errors: Array) -> NDArray[np.bool_] | None:
        """Return which errors were not halved in the last interval; None between two checks."""
        self._least = errors if self._least is None else np.minimum(self._least, errors)
        if count % INTERVAL:
            return None
        before, self._before = self._before, self._least
        if before is None:
            return np.zeros(len(errors), dtype=bool)
        return np.asarray(self._least > before / 2)
