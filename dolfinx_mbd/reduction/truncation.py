"""What a Craig-Bampton reduction leaves out at its interfaces: a bound, and each mode's weight.

With the constraint modes Ψ, the fixed-interface modes φ_k and p_k = ΨᵀMφ_k, the dynamic stiffness
of the interfaces is

    D(ω) = ΨᵀKΨ − ω² ΨᵀMΨ − ω⁴ Σ_k p_k p_kᵀ / (ω_k² − ω²).

The sum over *all* modes of p_k p_kᵀ / ω_k² is known without them: it is ΨᵀM K⁻¹ MΨ with the
stiffness of the held body, one solve with the factors that are there. What the modes that were
computed do not have of it, S, bounds what the others would add below the last computed frequency
ω_n:

    0 ≤ D_n(ω) − D(ω) ≤ ω⁴ S / (1 − ω²/ω_n²).

`tests/reduction/test_truncation.py` compares the bound with the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.participation import most_of

__all__ = ["Truncation"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Truncation:
    """Interfaces of a body with fixed-interface modes: their dynamic stiffness and its error.

    Attributes:
        stiffness: ΨᵀKΨ, shape (m, m); m coordinates of the interfaces, in the order of the body's
            interfaces (translations, then rotations; body axes).
        mass: ΨᵀMΨ, shape (m, m).
        squares: ω² of the fixed-interface modes, shape (n,), ascending.
        participations: p_k, shape (n, m).
        residual: S, shape (m, m).
        rigid: Motion of the interfaces for rigid motions about the centre of mass, shape (m, 6), in
            the plane (m, 3); no columns if the stiffness of the body has supports.
        groups: Number of the multiple eigenvalue that each mode belongs to, shape (n,); None: all
            eigenvalues differ.
    """

    stiffness: Array
    mass: Array
    squares: Array
    participations: Array
    residual: Array
    rigid: Array
    groups: NDArray[np.int64] | None = None

    def dynamic_stiffness(self, frequency: float, num_modes: int | None = None) -> Array:
        """D of the reduced body at a frequency (Hz), shape (m, m), N/m, N, N m.

        Args:
            frequency: Hz.
            num_modes: Use only so many fixed-interface modes.
        """
        square = (2 * np.pi * frequency) ** 2
        n = len(self.squares) if num_modes is None else num_modes
        p = self.participations[:n]
        modes = p.T @ (p / (self.squares[:n, None] - square))
        return self.stiffness - square * self.mass - square**2 * modes

    def error(self, frequencies: ArrayLike) -> Array:
        """Bound of the relative error of the interfaces' dynamic stiffness.

        Coordinates are scaled by the stiffness and inertia at the first fixed-interface mode, so
        that forces and moments count alike, and the spectral norm of the error is taken over that
        of D.

        Args:
            frequencies: Hz, shape (nf,).

        Returns:
            Shape (nf,); infinite from the frequency of the last computed mode on, where nothing is
            known.
        """
        f = np.atleast_1d(np.asarray(frequencies, dtype=float))
        result = np.full(len(f), np.inf)
        if not len(self.squares):
            return result
        first, last = self.squares[[0, -1]]
        scale = 1 / np.sqrt(np.maximum(np.diag(self.stiffness), 0) + first * np.diag(self.mass))
        size = float(np.linalg.norm(scale[:, None] * self.residual * scale, 2))
        for k, frequency in enumerate(f):
            square = (2 * np.pi * frequency) ** 2
            if square < last:
                D = scale[:, None] * self.dynamic_stiffness(frequency) * scale
                bound = square**2 * size / (1 - square / last)
                result[k] = bound / np.linalg.norm(D, 2)
        return result

    def accurate_to(self, tolerance: float) -> float:
        """The frequency up to which the error is bounded by a tolerance, Hz; 0 if there is none."""
        if not len(self.squares):
            return 0.0
        last = np.sqrt(self.squares[-1]) / (2 * np.pi)
        f = np.linspace(0.0, last, 401)[1:-1]
        bad = np.flatnonzero(self.error(f) > tolerance)
        if len(bad):
            return float(f[bad[0] - 1]) if bad[0] else 0.0
        return float(f[-1])

    @property
    def effective_masses(self) -> Array:
        """Share of each fixed-interface mode in the rigid translations' and rotations' mass.

        Shape (n, 6), in the plane (n, 3); a column sums to at most 1, which it approaches with the
        number of modes if the interfaces hold little mass.
        """
        total = np.einsum("ij,ik,kj->j", self.rigid, self.mass, self.rigid)
        return (self.participations @ self.rigid) ** 2 / total

    def by_effective_mass(self, share: float) -> list[int]:
        """The fewest fixed-interface modes that have a share of what all of them have.

        In each direction those with the greatest effective mass, until their sum is enough; all
        modes of a multiple eigenvalue or none of them.

        Args:
            share: Between 0 and 1.

        Raises:
            ValueError: It is not.
        """
        return most_of(self.effective_masses, share, self.groups)
