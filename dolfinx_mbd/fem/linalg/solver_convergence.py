"""Convergence of iterative solvers: errors, stagnation, and the level of round-off.

A residual r = b - K x cannot be computed more accurately than about ε|K||x| with the machine
precision ε. The norms refer to the stiffness scaled to a unit diagonal, so that soft and stiff
parts of a body have equal weight. With D = diag K the level of round-off is

    ‖D^-½ r‖ / (ε ‖D^½ x‖).

The smallest level that can be expected is one. Iterations may stop at a higher level, because K has
about a hundred entries per row and recurrences add further round-off.
"""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.linalg.blocks import column_sums
from dolfinx_mbd.fem.linalg.eigenvalues import EigenError
from dolfinx_mbd.fem.linalg.factorization import FactorizationError

ROUND_OFF = 1e3  # largest accepted level of a residual that no longer decreases
INTERVAL = 10  # number of iterations between two checks for stagnation


class IterationError(FactorizationError, EigenError):
    """An iteration that reached neither its tolerance nor the level of round-off.

    `error` and `tolerance` are relative errors, estimated with the preconditioner.
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
    """Return the level of round-off of each residual (column of R) of the solutions X.

    `scale` is the diagonal of D^½, with zeros in held rows.
    """
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    scaled = R * inverse[:, None], X * scale[:, None]
    residual, size = (column_sums(comm, a, a) for a in scaled)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = np.sqrt(residual / size) / np.finfo(float).eps
    return np.asarray(np.where(residual > 0, level, 0.0))


class Stagnation:
    """Check of the decrease of an error, made every `INTERVAL` iterations."""

    def __init__(self) -> None:
        self._smallest = self._previous = np.inf

    def check(self, count: int, error: float) -> bool:
        """Return True if the smallest error was not halved since the previous check."""
        self._smallest = min(self._smallest, error)
        if count % INTERVAL:
            return False
        previous, self._previous = self._previous, self._smallest
        return bool(self._smallest > previous / 2)
