"""Error at the interfaces due to the fixed-interface modes that a reduction omits.

With the constraint modes Ψ, the fixed-interface modes φ_k and p_k = ΨᵀMφ_k, the dynamic stiffness
of the interfaces is

    D(ω) = ΨᵀKΨ − ω² ΨᵀMΨ − ω⁴ Σ_k p_k p_kᵀ / (ω_k² − ω²).

The sum of p_k p_kᵀ / ω_k² over *all* modes is ΨᵀM K⁻¹ MΨ with the stiffness K of the held body. Let
D_n be the dynamic stiffness with the n computed modes, and S the part of the above sum that belongs
to the other modes. At frequencies below the last computed ω_n, the error has the bound

    0 ≤ D_n(ω) − D(ω) ≤ ω⁴ S / (1 − ω²/ω_n²).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.participation import most_of
from dolfinx_mbd.body.parts import EffectiveMasses
from dolfinx_mbd.html import HtmlView


@dataclass(frozen=True, eq=False)
class Truncation(HtmlView):
    """Dynamic stiffness of the interfaces of a body with fixed-interface modes, and its error.

    The m coordinates are the translations and rotations of one interface after the other, in body
    components. `rigid` contains the values of the coordinates for rigid motions about the centre of
    mass; this array is empty if the stiffness has supports. n is the number of fixed-interface
    modes.

    Example:
        >>> bound = bar.truncation.error([100.0, 1e9])
        >>> bool(bound[0] < 1e-3), float(bound[1])
        (True, inf)
    """

    stiffness: Array  # ΨᵀKΨ, (m, m)
    mass: Array  # ΨᵀMΨ, (m, m)
    squares: Array  # ω² (n,), ascending, (rad/s)²
    participations: Array  # p_k, (n, m)
    residual: Array  # S, (m, m)
    rigid: Array  # (m, 6), in the plane (m, 3), with supports (m, 0)
    groups: NDArray[np.int64] | None = None  # groups of equal eigenvalues, (n,); None if simple

    def _html_rows(self) -> list[tuple[str, str]]:
        """Return the titles and the texts of the table that notebooks show."""
        frequencies = np.sqrt(self.squares) / (2 * np.pi)
        ends = f", {frequencies[0]:.5g} to {frequencies[-1]:.5g} Hz" if len(frequencies) else ""
        return [
            ("fixed-interface modes", f"{len(frequencies)}{ends}"),
            ("coordinates of the interfaces", str(len(self.stiffness))),
            *(
                (
                    f"error below {100 * tolerance:g} %",
                    f"up to {self.accurate_to(tolerance):.4g} Hz",
                )
                for tolerance in (0.01, 0.1)
            ),
        ]

    def dynamic_stiffness(self, frequency: ArrayLike, num_modes: int | None = None) -> Array:
        """Return D at a frequency in Hz with `num_modes` modes, shape (m, m), N/m, N and N m.

        For frequencies of shape (f,), the shape is (f, m, m).
        """
        square = ((2 * np.pi * np.asarray(frequency)) ** 2)[..., None, None]
        p = self.participations[:num_modes]
        modes = p.T @ (p / (self.squares[:num_modes, None] - square))
        return np.asarray(self.stiffness - square * self.mass - square**2 * modes)

    def error(self, frequencies: ArrayLike) -> Array:
        """Return a bound of the relative error of the dynamic stiffness at frequencies in Hz.

        The norm is the spectral norm after a scaling of the coordinates by their stiffness and
        inertia at the first fixed-interface mode, so that forces and moments have equal weight. The
        bound is infinite from the frequency of the last computed mode on.
        """
        f = np.atleast_1d(np.asarray(frequencies, dtype=float))
        result = np.full(len(f), np.inf)
        if not len(self.squares):
            return result
        first, last = self.squares[[0, -1]]
        scale = 1 / np.sqrt(np.maximum(np.diag(self.stiffness), 0) + first * np.diag(self.mass))
        size = float(np.linalg.norm(scale[:, None] * self.residual * scale, 2))
        squares = (2 * np.pi * f) ** 2
        below = squares < last
        squares = squares[below]
        D = scale[:, None] * self.dynamic_stiffness(f[below]) * scale
        norms = np.abs(np.linalg.eigvalsh(D)).max(axis=1)  # D is symmetric
        result[below] = squares**2 * size / (1 - squares / last) / norms
        return result

    def accurate_to(self, tolerance: float) -> float:
        """Return the frequency, Hz, up to which the error is below a tolerance; 0 without modes.

        It is a multiple of 1/400 of the frequency of the last computed mode.
        """
        if not len(self.squares):
            return 0.0
        f = np.linspace(0.0, np.sqrt(self.squares[-1]) / (2 * np.pi), 401)[:-1]
        large = np.flatnonzero(self.error(f[1:]) > tolerance)
        return float(f[large[0]] if len(large) else f[-1])

    @property
    def effective_masses(self) -> Array:
        """Each mode's share of mass and moments of inertia, shape (n, 6) or (n, 3).

        The columns are the rigid translations and rotations. The sum of a column is at most 1, and
        approaches 1 with more modes. `ReducedBody.effective_masses` has labels and frequencies.
        """
        total = np.einsum("ij,ik,kj->j", self.rigid, self.mass, self.rigid)
        return (self.participations @ self.rigid) ** 2 / total

    def labelled_masses(self) -> EffectiveMasses | None:
        """Return the effective masses with frequencies; None without modes or with supports."""
        if not len(self.squares) or not self.rigid.shape[1]:
            return None
        return EffectiveMasses(np.sqrt(self.squares) / (2 * np.pi), self.effective_masses)

    def by_effective_mass(self, share: float) -> list[int]:
        """Return the numbers (from 1) of the modes that together have a share of effective mass.

        In each direction, the modes with the largest effective masses are selected until these add
        up to the share. The modes of a multiple eigenvalue are selected together. The share is
        between 0 and 1.
        """
        return [row + 1 for row in most_of(self.effective_masses, share, self.groups)]
