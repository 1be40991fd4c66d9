"""The factorized iteration matrix that steps share until it has grown stale: dense or sparse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

__all__ = ["DenseFactor", "Factor", "SingularMatrix", "SparseFactor", "restored"]

Array = NDArray[np.float64]

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))


class SingularMatrix(ValueError):
    """A matrix cannot be factorized; ``row`` is where that shows."""

    def __init__(self, row: int) -> None:
        super().__init__(f"singular in row {row}")
        self.row = row


class Factor(Protocol):
    """A factorized iteration matrix.

    Attributes:
        dt: The step that it belongs to.
        mass: The mass matrix of the same instant.
    """

    dt: float
    mass: Any

    def solve(self, right: Array) -> Array:
        """Solution for a right-hand side, which may be overwritten."""

    def memory(self) -> dict[str, Any]:
        """Plain arrays from which `restored` makes the same factor, to the bit."""


class DenseFactor:
    """LAPACK's LU; the matrix is overwritten."""

    def __init__(self, matrix: Array, dt: float, mass: Array) -> None:
        self.lu, self.pivots, info = _getrf(matrix, overwrite_a=True)
        if info > 0:
            raise SingularMatrix(info - 1)
        self.dt, self.mass = dt, mass

    def solve(self, right: Array) -> Array:
        """Solution for a right-hand side, which is overwritten."""
        solution, _ = _getrs(self.lu, self.pivots, right, overwrite_b=True)
        return solution  # type: ignore[no-any-return]

    def memory(self) -> dict[str, Any]:
        """The factors themselves."""
        return {"lu": self.lu, "pivots": self.pivots, "dt": self.dt, "mass": self.mass}


class SparseFactor:
    """SuperLU, for long chains of bodies."""

    def __init__(
        self, matrix: scipy.sparse.csc_matrix, dt: float, mass: scipy.sparse.csc_matrix
    ) -> None:
        self._matrix = matrix
        try:
            self._lu = scipy.sparse.linalg.splu(matrix)
        except RuntimeError:
            _, _, info = _getrf(matrix.toarray())
            raise SingularMatrix(max(int(info) - 1, 0)) from None
        self.dt, self.mass = dt, mass

    def solve(self, right: Array) -> Array:
        """Solution for a right-hand side."""
        return self._lu.solve(right)  # type: ignore[no-any-return]

    def memory(self) -> dict[str, Any]:
        """The matrix: its factors are found again, the same."""
        parts: dict[str, Any] = {"dt": self.dt}
        for name, A in (("matrix", self._matrix), ("mass", self.mass)):
            parts |= {f"{name}_{part}": getattr(A, part) for part in ("data", "indices", "indptr")}
        return parts


def restored(memory: Mapping[str, Any]) -> Factor | None:
    """The factor of a `Factor.memory`; None if there was none."""
    if "lu" in memory:
        factor = object.__new__(DenseFactor)
        factor.lu, factor.pivots = np.asfortranarray(memory["lu"]), np.asarray(memory["pivots"])
        factor.dt, factor.mass = float(memory["dt"]), np.asarray(memory["mass"])
        return factor
    if "matrix_data" in memory:
        matrix, mass = (_columns(memory, name) for name in ("matrix", "mass"))
        return SparseFactor(matrix, float(memory["dt"]), mass)
    return None


def _columns(memory: Mapping[str, Any], name: str) -> scipy.sparse.csc_matrix:
    parts = (np.asarray(memory[f"{name}_{part}"]) for part in ("data", "indices", "indptr"))
    return scipy.sparse.csc_matrix(tuple(parts))
