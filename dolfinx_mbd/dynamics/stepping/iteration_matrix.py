"""The iteration matrix of a step and its factorization, dense or sparse.

The matrix contains the derivatives of all equations with respect to increments and multipliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.sparse import csc_matrix

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler, TangentBlocks
from dolfinx_mbd.dynamics.assembly.blocks import RepeatedAssembly, SparseBlocks
from dolfinx_mbd.dynamics.stepping.step_factor import ExtrapolatedFactor, StepFactor
from dolfinx_mbd.kernels.matrices import fill
from dolfinx_mbd.mechanism.system import System

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))
_PARTS = ("data", "indices", "indptr")


class IterationMatrix:
    """Iteration matrices of a system.

    The equations of motion are divided by `a_by_move`, the derivative of the accelerations with
    respect to the increments. Constraints and multipliers are scaled by a mass (kg). The condition
    number then does not grow as dt decreases.
    """

    def __init__(self, system: System, mass: float, sparse: bool) -> None:
        self._system, self._mass, self.sparse = system, mass, sparse
        n = system.num_velocities
        rows = [slice(s.start + n, s.stop + n) for s in system.entry_slices]
        self._unknowns = [*system.v_slices, *rows]
        self._assembly = RepeatedAssembly(self._unknowns, self._unknowns)
        self._mass_assembly = RepeatedAssembly(system.v_slices, system.v_slices)
        zero = np.zeros(n)
        rotating = [
            k
            for k, (body, part) in enumerate(zip(system.bodies, system.v_slices, strict=True))
            if body.num_velocities and len(body.increment_tangent(zero[part]))
        ]
        # a body may have several rotations, each after a displacement
        counts = [system.bodies[k].increment_tangent(zero[system.v_slices[k]]).size // 9
                  for k in rotating]  # fmt: skip
        starts = np.cumsum([0, *counts]).tolist()
        # indices of the tangent operators of each body, and first column of each rotation
        self._tangent_index = {k: range(*starts[i : i + 2]) for i, k in enumerate(rotating)}
        self._columns = np.array(
            [
                system.v_slices[k].start + 3 + 6 * j
                for k, count in zip(rotating, counts, strict=True)
                for j in range(count)
            ],
            dtype=np.int64,
        )

    def evaluate(
        self, eqs: Assembler, t: float, move: Array, a_by_move: float, v_by_move: float
    ) -> tuple[Any, Any]:
        """Return the iteration matrix and the mass matrix, after `residual` at the same point.

        `move` contains the increments since the last step (nv,); `a_by_move` and `v_by_move` are
        the derivatives of accelerations and velocities with respect to the increments.
        """
        tangents = self.rotation_tangents(move)
        if self.sparse:
            return self._block_matrices(eqs.tangent_blocks(t), tangents, a_by_move, v_by_move)
        tangent = eqs.tangent(t)
        size = len(tangent.M) + len(tangent.B)
        S = np.zeros((size, size), order="F")
        fill(tangent.K, tangent.C, tangent.M, tangent.B, self._columns, tangents,
             a_by_move, v_by_move, self._mass, S)  # fmt: skip
        if self._system.velocity_rows.any():
            self._add_velocity_rows(eqs, tangents, v_by_move, S)
        return S, tangent.M

    def _add_velocity_rows(
        self, eqs: Assembler, tangents: Array, v_by_move: float, S: Array
    ) -> None:
        """Add the derivatives of constraints on velocities with respect to positions.

        These rows of the matrix are divided by `v_by_move`.
        """
        n, rows = self._system.num_velocities, np.flatnonzero(self._system.velocity_rows)
        change = eqs.constraint_derivatives(eqs.v)[rows]
        for column, turn in zip(self._columns, tangents, strict=True):
            part = slice(column, column + 3)
            change[:, part] = change[:, part] @ turn
        S[n + rows, :n] += self._mass / v_by_move * change

    def _block_matrices(
        self, tangent: TangentBlocks, tangents: Array, a_by_move: float, v_by_move: float
    ) -> tuple[Any, Any]:
        """Return the iteration matrix and the mass matrix, sparse and without zero blocks."""
        bodies, S = len(self._system.bodies), SparseBlocks(self._unknowns)
        for (i, j), block in tangent.M.items():
            S.add(i, j, block)
        for (i, j), block in tangent.C.items():
            S.add(i, j, (v_by_move / a_by_move) * block)
        for (i, j), block in tangent.K.items():
            S.add(i, j, self._convert_columns(block, tangents, j) / a_by_move)
        for (entry, j), block in tangent.B.items():
            scaled = self._mass * block
            S.add(j, bodies + entry, scaled.T)
            S.add(bodies + entry, j, self._convert_columns(scaled, tangents, j))
        return self._assembly.matrix(S), self._mass_assembly.matrix(tangent.M)

    def rotation_tangents(self, move: Array) -> Array:
        """Return the tangent operators of the rotations of all bodies that rotate, (·, 3, 3)."""
        bodies, slices = self._system.bodies, self._system.v_slices
        tangents = [
            bodies[k].increment_tangent(move[slices[k]]).reshape(-1, 3, 3)
            for k in self._tangent_index
        ]
        return np.concatenate([np.zeros((0, 3, 3)), *tangents])

    def _convert_columns(self, block: Array, tangents: Array, body: int) -> Array:
        """Convert the rotation columns of a block from small rotations to rotation vectors.

        The Newton corrections of a rotation are added to the rotation vector of its increment.
        """
        if body not in self._tangent_index:
            return block
        block = block.copy()
        for j, index in enumerate(self._tangent_index[body]):
            part = slice(3 + 6 * j, 6 + 6 * j)
            block[:, part] = block[:, part] @ tangents[index]
        return block


class SingularMatrix(ValueError):
    """Error of a singular matrix; its argument is the row of the zero pivot."""


class DenseFactor:
    """LAPACK's LU factors of the iteration matrix for steps of length `dt`, and the mass matrix.

    `noise` is the round-off of the multipliers (nc,), or empty if it was not computed.
    """

    def __init__(self, lu: Array, pivots: NDArray[np.int32], dt: float, mass: Array) -> None:
        self.lu, self.pivots, self.dt, self.mass = lu, pivots, dt, mass
        self.noise: Array = np.zeros(0)

    @classmethod
    def of(cls, matrix: Array, dt: float, mass: Array) -> DenseFactor:
        """Factorize a matrix, which is overwritten."""
        lu, pivots, info = _getrf(matrix, overwrite_a=True)
        if info > 0:
            raise SingularMatrix(info - 1)
        return cls(lu, pivots, dt, mass)

    def solve(self, rhs: Array) -> Array:
        """Return the solution for a right-hand side, which is overwritten."""
        solution, _ = _getrs(self.lu, self.pivots, rhs, overwrite_b=True)
        return solution  # type: ignore[no-any-return]

    def memory(self) -> dict[str, Any]:
        """Return the arrays from which `restore_factor` creates a bitwise identical factor."""
        return dict(vars(self))


class SparseFactor:
    """SuperLU's factors, for long chains of bodies, with the interface of `DenseFactor`."""

    def __init__(self, matrix: csc_matrix, dt: float, mass: csc_matrix) -> None:
        self.matrix, self.dt, self.mass = matrix, dt, mass
        self.noise: Array = np.zeros(0)
        try:
            self.lu = scipy.sparse.linalg.splu(matrix)
        except RuntimeError:
            _, _, info = _getrf(matrix.toarray())
            raise SingularMatrix(max(int(info) - 1, 0)) from None

    def solve(self, rhs: Array) -> Array:
        """Return the solution for a right-hand side."""
        return self.lu.solve(rhs)  # type: ignore[no-any-return]

    def memory(self) -> dict[str, Any]:
        """Return the matrices; factorizing them again gives bitwise identical factors."""
        matrices = {"matrix": self.matrix, "mass": self.mass}
        parts = {f"{k}_{part}": getattr(A, part) for k, A in matrices.items() for part in _PARTS}
        return {"dt": self.dt, "noise": self.noise, **parts}


Factor = DenseFactor | SparseFactor | StepFactor | ExtrapolatedFactor


def restore_factor(memory: Mapping[str, Any]) -> Factor | None:
    """Return the factor that `memory` describes, or None without a factor."""
    factor: Factor
    if "lu" in memory:
        lu, pivots = np.asfortranarray(memory["lu"]), np.asarray(memory["pivots"])
        factor = DenseFactor(lu, pivots, float(memory["dt"]), np.asarray(memory["mass"]))
    elif "matrix_data" in memory:
        matrix, mass = (
            csc_matrix(tuple(np.asarray(memory[f"{name}_{part}"]) for part in _PARTS))
            for name in ("matrix", "mass")
        )
        factor = SparseFactor(matrix, float(memory["dt"]), mass)
    else:
        return None
    factor.noise = np.asarray(memory["noise"])
    return factor
