"""The factorized iteration matrix that several steps share: dense or sparse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csc_matrix

__all__ = ["DenseFactor", "Factor", "SingularMatrix", "SparseFactor", "restored"]

Array = NDArray[np.float64]

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))
_PARTS = ("data", "indices", "indptr")


class SingularMatrix(ValueError):
    """A matrix that cannot be factorized because of the pivot in `row`."""

    def __init__(self, row: int) -> None:
        super().__init__(f"singular in row {row}")
        self.row = row


class DenseFactor:
    """LU factors by LAPACK of the matrix of a step `dt`, with the mass matrix at the same time."""

    def __init__(self, lu: Array, pivots: NDArray[np.int32], dt: float, mass: Array) -> None:
        self.lu, self.pivots, self.dt, self.mass = lu, pivots, dt, mass

    @classmethod
    def of(cls, matrix: Array, dt: float, mass: Array) -> DenseFactor:
        """Factorize a matrix, which is overwritten."""
        lu, pivots, info = _getrf(matrix, overwrite_a=True)
        if info > 0:
            raise SingularMatrix(info - 1)
        return cls(lu, pivots, dt, mass)

    def solve(self, right: Array) -> Array:
        """Return the solution for a right-hand side, which is overwritten."""
        solution, _ = _getrs(self.lu, self.pivots, right, overwrite_b=True)
        return solution  # type: ignore[no-any-return]

    def memory(self) -> dict[str, Any]:
        """Return arrays from which `restored` makes a factor with the same bits."""
        return dict(vars(self))


class SparseFactor:
    """LU factors by SuperLU, for long chains of bodies; otherwise as `DenseFactor`."""

    def __init__(self, matrix: csc_matrix, dt: float, mass: csc_matrix) -> None:
        self.matrix, self.dt, self.mass = matrix, dt, mass
        try:
            self.lu = scipy.sparse.linalg.splu(matrix)
        except RuntimeError:
            _, _, info = _getrf(matrix.toarray())
            raise SingularMatrix(max(int(info) - 1, 0)) from None

    def solve(self, right: Array) -> Array:
        """Return the solution for a right-hand side."""
        return self.lu.solve(right)  # type: ignore[no-any-return]

    def memory(self) -> dict[str, Any]:
        """Return the matrix, whose factors always have the same bits."""
        matrices = {"matrix": self.matrix, "mass": self.mass}
        parts = {f"{k}_{part}": getattr(A, part) for k, A in matrices.items() for part in _PARTS}
        return {"dt": self.dt, **parts}


Factor = DenseFactor | SparseFactor


def restored(memory: Mapping[str, Any]) -> Factor | None:
    """Return the factor of a `memory`; None if there was no factor."""
    if "lu" in memory:
        lu, pivots = np.asfortranarray(memory["lu"]), np.asarray(memory["pivots"])
        return DenseFactor(lu, pivots, float(memory["dt"]), np.asarray(memory["mass"]))
    if "matrix_data" in memory:
        matrix, mass = (
            csc_matrix(tuple(np.asarray(memory[f"{name}_{part}"]) for part in _PARTS))
            for name in ("matrix", "mass")
        )
        return SparseFactor(matrix, float(memory["dt"]), mass)
    return None
