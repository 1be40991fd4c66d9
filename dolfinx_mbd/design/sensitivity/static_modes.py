"""Derivatives of load modes and pressure modes, the static solutions L = K⁻¹F with held interfaces.

Without interface motion, the modes of a body span the fixed-interface modes Φ and L. The exact
eigenvectors among the Ritz vectors of this span are Φ, because K⁻¹MΦ = ΦΛ⁻¹. The others are
combinations L a + Φ b. The derivative of L follows from K L′ = F′ − K′L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.sensitivity.parameters import MatrixDerivatives
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.linalg.blocks import gram, multiply

EXACT = 1e-4  # size of K⁻¹Mφλ − φ below which φ is an eigenvector
SPAN = 1e-5  # size of the part of a mode outside the span of Φ and L that counts as zero


@dataclass(frozen=True, eq=False)
class StaticModes:
    """Static modes L with their forces F, and their coefficients in the modes of the body."""

    forces: Array  # F, (owned dofs, m)
    vectors: Array  # L, (owned dofs, m)
    shares: Array  # coefficients of L in the modes, (m, n)
    force_changes: Callable[[MatrixDerivatives], Array | None]  # returns F′, or None if it is zero

    @property
    def part(self) -> Array:
        """Share of the static modes in each mode of the body, shape (owned dofs, n)."""
        return self.vectors @ self.shares

    def derivative(
        self, basis: Any, derivatives: MatrixDerivatives, border: Array | None, stiff: Array
    ) -> Array:
        """Return L′ times the shares, shape (owned dofs, n) (collective).

        `basis` is a `BasisDerivatives`, `border` is its `border_derivative`, C′ᵀ of the constraints
        C of averaged interfaces, and `stiff` is K′L. The residual F − K L contains the reactions
        that hold averaged interfaces.
        """
        residual = self.forces - multiply(basis.problem.stiffness, self.vectors)
        loads, averages = basis.border_terms(border, self.vectors, residual)
        loads -= stiff
        change = self.force_changes(derivatives)
        if change is not None:
            loads += change
        return basis.held.solve_moved(loads, None, averages) @ self.shares


def with_static_modes(
    split: Any,
    problem: ElasticProblem,
    solve: Callable[[Array], Array],
    forces: Array,
    force_changes: Callable[[MatrixDerivatives], Array | None],
) -> Any:
    """Return a `SplitModes` whose static modes are separate from the eigenvectors (collective).

    Args:
        split: Modes with all Ritz vectors of the held body as fixed-interface modes.
        problem: Matrices of the body.
        solve: Function that returns displacements under forces with held interfaces.
        forces: Forces of the loads, shape (owned dofs, m).
        force_changes: Function that returns the derivative of the forces.

    Raises:
        InputError: The span of the modes contains other vectors.
    """
    comm, ritz = problem.comm, split.fixed
    if not forces.shape[1] or not ritz.shape[1]:
        return split
    inertia = problem.apply_mass(ritz)
    excess = np.asfortranarray(solve(inertia) * split.squares - ritz)
    values, eigenvectors = np.linalg.eigh(gram(comm, excess, problem.apply_mass(excess)))
    exact = values < EXACT**2
    if exact.all():
        return split
    squares, y = np.linalg.eigh(
        eigenvectors[:, exact].T @ (split.squares[:, None] * eigenvectors[:, exact])
    )
    eigen, other = eigenvectors[:, exact] @ y, eigenvectors[:, ~exact]
    solutions = solve(forces)
    inside = gram(comm, inertia, solutions)  # coefficients of L in the Ritz vectors
    a = np.linalg.pinv(other.T @ inside, rcond=1e-10)
    remainder = np.asfortranarray(
        ritz @ other - (solutions - ritz @ eigen @ (eigen.T @ inside)) @ a
    )
    error = gram(comm, remainder, problem.apply_mass(remainder))
    if np.sqrt(np.abs(np.diag(error)).max(initial=0.0)) > SPAN:
        raise InputError(
            "sensitivities are not available: the modes of the body are not combinations of its "
            "constraint modes, fixed-interface modes and load modes",
            argument="reduction",
        )
    static_shares = a @ (other.T @ split.shares)
    shares = eigen.T @ split.shares - eigen.T @ inside @ static_shares
    modes = StaticModes(forces, solutions, static_shares, force_changes)
    fixed = np.asfortranarray(ritz @ eigen)
    return replace(
        split,
        fixed=fixed,
        combinations=split.combinations @ eigen,
        squares=squares,
        shares=shares,
        statics=modes,
    )
