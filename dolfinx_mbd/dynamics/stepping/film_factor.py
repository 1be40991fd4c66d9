"""Factors of an iteration matrix in which the derivatives of elastic oil films are renewed alone.

The pressure of a film exerts forces on the coefficients σ of its gap. In the iteration matrix S, it
has the term Lᵀ D L, where L are the derivatives of σ by the increments and −D a_by_move those of
the forces by σ and, times `v_by_move`, by dσ/dt. D changes much faster than the rest of S. With
factors of S and a new D + A, Woodbury's formula

    (S + Lᵀ A L)⁻¹ b = x − Z (1 + A L Z)⁻¹ A L x,   x = S⁻¹ b,   Z = S⁻¹ Lᵀ

needs the factors of a matrix with as many rows as the films have coefficients. L and the
derivatives of the drag torques remain those of S.

Reference:
    W. W. Hager, Updating the inverse of a matrix, SIAM Review 31 (1989).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg import get_lapack_funcs

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.formulas import Derivatives
from dolfinx_mbd.dynamics.stepping.iteration_matrix import DenseFactor

__all__ = ["FilmFactor", "FilmStiffness"]

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))


class FilmStiffness:
    """Derivatives of the elastic films of a system by the coefficients of their gaps.

    Args:
        eqs: Assembler of the system.
    """

    def __init__(self, eqs: Assembler) -> None:
        self._eqs, self._loads = eqs, eqs.loads

    def __bool__(self) -> bool:
        return self._loads.has_elastic_films

    def renewable(self, factor: DenseFactor, derivatives: Derivatives) -> FilmFactor:
        """Return a factor of the matrix that was assembled last, whose films can be renewed."""
        L = self._loads.gap_jacobian(self._eqs.system.num_velocities + len(self._eqs.lam))
        return FilmFactor(factor, L, self._blocks(derivatives, assembled=True))

    def renewed(self, factor: FilmFactor, derivatives: Derivatives) -> FilmFactor:
        """Return the factor with the derivatives of the films at the last residual."""
        return factor.renewed(self._blocks(derivatives, assembled=False))

    def _blocks(self, derivatives: Derivatives, *, assembled: bool) -> list[Array]:
        """Return the matrices D of all films; see `Loads.gap_stiffness`."""
        a_by_move, v_by_move, _ = derivatives
        blocks = self._loads.gap_stiffness(v_by_move, assembled=assembled)
        return [np.asarray(block / -a_by_move, dtype=np.float64) for block in blocks]


class FilmFactor:
    """A factor of the iteration matrix with the interface of `DenseFactor`.

    Args:
        base: Factors of the matrix.
        jacobian: Derivatives L of the coefficients of all gaps, (coefficients, unknowns).
        blocks: Matrix D of each film in the matrix.
        changes: Changes A of the blocks since then; none if empty.
        response: The arrays Z and L Z, if they are known.
    """

    def __init__(
        self,
        base: DenseFactor,
        jacobian: Array,
        blocks: Sequence[Array],
        changes: Sequence[Array] = (),
        response: tuple[Array, Array] | None = None,
    ) -> None:
        self.dt, self.mass, self.noise = base.dt, base.mass, np.zeros(0)
        self._base, self._L, self._blocks, self._changes = base, jacobian, blocks, changes
        if changes:
            if response is None:
                Z = base.solve(np.array(jacobian.T, order="F"))
                response = Z, jacobian @ Z
            matrix = self._product(response[1])
            matrix[np.diag_indices(len(matrix))] += 1.0
            self._lu, self._pivots, _ = _getrf(matrix.T, overwrite_a=True)
            self._Z, self._LZ = response

    def renewed(self, blocks: Sequence[Array]) -> FilmFactor:
        """Return the factor with new matrices D of the films."""
        changes = [new - old for new, old in zip(blocks, self._blocks, strict=True)]
        response = (self._Z, self._LZ) if self._changes else None
        return FilmFactor(self._base, self._L, self._blocks, changes, response)

    def solve(self, rhs: Array) -> Array:
        """Return the solution for right-hand sides (unknowns,) or (unknowns, columns).

        They are overwritten.
        """
        x = self._base.solve(rhs)
        if not self._changes:
            return x
        changes = self._product(self._L @ x)
        forces, _ = _getrs(self._lu, self._pivots, changes, trans=1, overwrite_b=True)
        return np.asarray(x - self._Z @ forces)

    def _product(self, coefficients: Array) -> Array:
        """Return A times an array with one row for each coefficient."""
        edges = np.cumsum([len(block) for block in self._changes])[:-1]
        parts = zip(self._changes, np.split(coefficients, edges), strict=True)
        return np.concatenate([block @ part for block, part in parts])

    def memory(self) -> dict[str, Any]:
        """Return the arrays from which `restored` creates a bitwise equal factor."""
        films = {f"film_{k}": block for k, block in enumerate(self._blocks)}
        films |= {f"film_change_{k}": block for k, block in enumerate(self._changes)}
        others = {"noise": self.noise, "film_jacobian": self._L}
        return self._base.memory() | films | others

    @classmethod
    def restored(cls, base: DenseFactor, memory: Mapping[str, Any]) -> FilmFactor:
        """Return the factor that `memory` describes; `base` is its factor without the films."""
        blocks, changes = (
            [np.asarray(memory[f"{name}_{k}"]) for k in range(len(memory))
             if f"{name}_{k}" in memory]
            for name in ("film", "film_change")
        )  # fmt: skip
        factor = cls(base, np.asarray(memory["film_jacobian"]), blocks, changes)
        factor.noise, base.noise = np.asarray(memory["noise"]), np.zeros(0)
        return factor
