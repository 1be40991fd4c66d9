"""Floquet multipliers of a periodic motion whose equations hold at instants of the period.

A disturbance of the motion satisfies linear equations with periodic coefficients. Let u(θ, t) be
disturbances at the time t of motions that pass the phase θ at t = 0, moved along with the phase:
a disturbance of the motion is δx(t) = u(t, t), and u has the period T in θ. At the instants θ_k,
with D as the derivative with respect to θ and the increments X_k z_k that the constraints permit,

    A₀ z + A₁ ∂z/∂t + A₂ ∂²z/∂t² = 0,

where A₀, A₁ and A₂ result from the equations of `harmonic_equations` by ẋ = (D + ∂/∂t) X z. The
eigenvalues of this problem are Hill's approximations of the exponents. Each of them occurs at many
multiples of 2πi/T, not all of them accurate, so that they would have to be sorted. Instead, smooth
functions of θ with given values at one instant are propagated for one period by the matrix
exponential. Their values at this instant are the monodromy matrix (Koopman-Hill projection).

References:
    F. Bayer, R. I. Leine, Sorting-free Hill-based stability analysis of periodic solutions through
    Koopman analysis, Nonlinear Dynamics 111 (2023).
"""

from __future__ import annotations

import numpy as np
import scipy

from dolfinx_mbd.analyses.harmonic_equations import HarmonicEquations
from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, warn

__all__ = ["multipliers_of"]

_FEWEST = 9  # instants of the first approximation
_LARGEST = 2000  # largest number of rows of a matrix whose exponential is computed
_CONVERGED = 1e-6  # difference of two approximations, relative to 1 or the largest multiplier
_ACCURATE = 1e-3  # difference of two approximations that causes a warning


def multipliers_of(equations: HarmonicEquations) -> np.typing.NDArray[np.complex128]:
    """Return the Floquet multipliers by decreasing |μ|.

    The number of instants is doubled until the multipliers do not change.

    Args:
        equations: Equations of a motion that satisfies them.

    Warns:
        AccuracyWarning: The multipliers still change.
    """
    count, error = max(len(equations.x) // 2 | 1, _FEWEST), np.inf  # odd numbers of instants
    values = _sorted(_monodromy(equations, count))
    while error > _CONVERGED and (error == np.inf or 2 * count * len(values) <= _LARGEST):
        count, before = 2 * count + 1, values
        values = _sorted(_monodromy(equations, count))
        error = float(np.abs(values - before).max(initial=0.0))
        error /= max(1.0, float(np.abs(values).max(initial=0.0)))
    if error > _ACCURATE:
        warn(
            AccuracyWarning(
                f"the Floquet multipliers change by {error:.2g} from {count // 2} to {count} "
                "instants of the period: use mbd.analyses.periodic for the stability"
            )
        )
    return values


def _sorted(matrix: Array) -> np.typing.NDArray[np.complex128]:
    """Return the eigenvalues by decreasing absolute value; in a conjugate pair, Im λ > 0 first."""
    values = np.linalg.eigvals(matrix).astype(complex)
    return values[np.lexsort((-values.imag, -values.real, -np.abs(values).round(9)))]


def _monodromy(equations: HarmonicEquations, count: int) -> Array:
    """Return the monodromy matrix from the equations at a number of instants."""
    (A0, A1, A2), X, D, num_motions = equations.at_instants(count).disturbances()
    m = X.shape[2]
    total, free = count * m, np.tile(np.arange(m) < num_motions, count)
    num_rates, rate_indices = int(free.sum()), np.flatnonzero(free)
    # The disturbances z at all instants, (total,), satisfy E ẏ = G y, where y contains z and the
    # rates of the motions in z; the states of loads in z have no rates in y
    E, G = np.zeros((2, total + num_rates, total + num_rates))
    definitions, rows = np.arange(num_rates), np.r_[rate_indices, np.flatnonzero(~free)]
    E[definitions, rate_indices] = G[definitions, total + definitions] = 1.0
    E[num_rates:, :total] = A1[rows]
    E[num_rates:, rate_indices] = 0.0
    E[num_rates:, total:] = A2[np.ix_(rows, rate_indices)]
    G[num_rates:, :total], G[num_rates:, total:] = -A0[rows], -A1[np.ix_(rows, rate_indices)]
    flow = scipy.linalg.expm(equations.period * np.linalg.solve(E, G))
    values = np.linalg.pinv(X) @ X[0]
    # `values` (count, m, m) express the first basis in the basis X of each instant; they depend
    # smoothly on the phase. The columns of `start` are the y of unit disturbances at the first
    # instant, and `read` returns the disturbance at the first instant from y
    start, read = np.zeros((2, m + num_motions, total + num_rates))
    start[:m, :total] = values.reshape(total, m).T
    start[m:, total:] = start[:num_motions, rate_indices]
    read[:m, :m] = np.eye(m)
    project = np.linalg.pinv(X[0])[:num_motions]
    read[m:, :total] = np.einsum("an,k,knb->akb", project, D[0], X).reshape(num_motions, total)
    read[m:, total : total + num_motions] = np.eye(num_motions)
    return np.asarray(read @ flow @ start.T @ np.linalg.inv(read @ start.T))
