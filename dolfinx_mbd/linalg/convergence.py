"""Convergence of the iterations: errors, stagnation, and the level of round-off.

A residual r = b - K x cannot be computed more accurately than about ε|K||x| with the machine
precision ε. The norms here are those of the stiffness scaled to a unit diagonal, so that soft and
stiff parts of a body have equal weight. With D = diag K the level of round-off is

    ‖D^-½ r‖ / (ε ‖D^½ x‖).

The smallest level that can be expected is one. K has about a hundred entries in a row and
recurrences add round-off of their own, so that iterations may stop at a higher level.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.linalg.blocks import column_sums
from dolfinx_mbd.linalg.eigenvalues import EigenError
from dolfinx_mbd.linalg.factorization import FactorizationError

__all__ = ["INTERVAL", "ROUND_OFF", "IterationError", "Stagnation", "round_off_level"]

Array = NDArray[np.float64]

ROUND_OFF = 1e3
"""Level of round-off up to which a residual is accepted if it no longer decreases."""

INTERVAL = 10
"""Number of iterations between two checks for stagnation."""


class IterationError(FactorizationError, EigenError):
    """An iteration that reached neither its tolerance nor the level of round-off.

    Args:
        message: Text of the error.
        iterations: Number of iterations.
        error: Relative residual that was reached, in the norm of the preconditioner.
        tolerance: Relative residual that was requested.
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
    scaled = R * inverse[:, None], X * scale[:, None]
    residual, size = (column_sums(comm, a, a) for a in scaled)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.sqrt(residual / size) / np.finfo(float).eps
    return np.asarray(np.where(residual > 0, level, 0.0))


class Stagnation:
    """A check every few iterations whether an error still decreases."""

    def __init__(self) -> None:
        self._least = self._before = np.inf

    def check(self, count: int, error: float) -> bool:
        """Return whether the error was not halved in the last interval.

        Args:
            count: Number of the iteration; between two checks the result is False.
            error: Error in this iteration.
        """
        self._least = min(self._least, error)
        if count % INTERVAL:
            return False
        before, self._before = self._before, self._least
        return bool(self._least > before / 2)
