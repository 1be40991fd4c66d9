"""Poles and modes of linear equations of motion M z̈ + (C + G) ż + K z = 0."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["GROWTH", "Poles", "grows", "poles_of"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

#: Real parts below this fraction of the largest pole count as zero.
GROWTH = 1e-9

# Poles below this fraction of the largest may be zero; double zeros have errors of √(round-off)
_ZERO = 1e-7
_SYMMETRIC = 1e-9  # largest asymmetry of a symmetric stiffness, relative to its largest entry
_UNDAMPED = 1e-13  # largest damping that counts as none, relative to the root of the stiffness
_INDEPENDENT = 1e-4  # smallest part of an eigenvector normal to others that are independent of it
_SINGULAR = 1e-11  # singular values of the stiffness below this fraction of the largest may be zero


class Poles:
    """Frequencies and damping ratios of poles λ with Im λ ≥ 0.

    Attributes:
        poles: λ, shape (p,), 1/s.
    """

    poles: Complex

    @property
    def frequencies(self) -> Array:
        """|λ|/2π of each pole, shape (p,), Hz."""
        return np.abs(self.poles) / (2 * np.pi)

    @property
    def damping_ratios(self) -> Array:
        """−Re λ/|λ| of each pole, shape (p,); 0 for λ = 0, ±1 for a real pole."""
        return 0.0 - self.poles.real / np.maximum(np.abs(self.poles), 1e-300)


def grows(poles: Complex) -> bool:
    """Return whether the real part of a pole is positive, beyond round-off."""
    return bool((poles.real > GROWTH * np.abs(poles).max(initial=0.0)).any())


def poles_of(M: Array, C: Array, K: Array, num_states: int = 0) -> tuple[Complex, Complex]:
    """Return the poles λ of M z̈ + C ż + K z = 0 with Im λ ≥ 0, and their eigenvectors z (m, p).

    The poles are sorted by |λ|. If loads have states, the last `num_states` entries of ż are these
    states, and those of z are their integrals, on which nothing depends. The eigenvectors contain
    the states instead of the integrals.
    """
    m, free = len(M), len(M) - num_states
    size = float(np.abs(K).max())
    scale = max(np.sqrt(size), float(np.abs(C).max()), 1e-300)
    symmetric = np.abs(K - K.T).max() <= _SYMMETRIC * size
    if symmetric and not num_states and np.abs(C).max() <= _UNDAMPED * scale:
        squares, modes = scipy.linalg.eigh(0.5 * (K + K.T), M)
        squares[np.abs(squares) <= _ZERO**2 * max(np.abs(squares).max(), 1e-300)] = 0.0
        roots = np.sqrt((-squares).astype(complex))  # iω, or the growth rate of an instability
        real = np.flatnonzero(squares < 0)  # real poles occur in ± pairs
        values = np.concatenate([roots, -roots[real]])
        vectors = np.concatenate([modes, modes[:, real]], axis=1).astype(complex)
    else:
        # The unknowns are (z, ż/scale), of similar size, without the integrals of states
        inverse, zero = np.linalg.inv(M), np.zeros((m, m))
        A = np.block([[zero, scale * np.eye(m)], [-inverse @ K / scale, -inverse @ C]])
        unknowns = np.r_[:free, m : 2 * m]
        values, state_vectors = np.linalg.eig(A[np.ix_(unknowns, unknowns)])
        values, statics = values.astype(complex), K.copy()
        statics[:, free:] = C[:, free:]  # forces of constant states
        values[_zero_poles(values, inverse @ statics)] = 0.0
        upper = values.imag >= 0
        state_vectors[free + free :] *= scale
        vectors = state_vectors[np.r_[:free, free + free : free + m], :][:, upper].astype(complex)
        values = values[upper]
        zeros = np.flatnonzero(values == 0)
        if len(zeros):  # the eigenvectors of a double zero are equal
            unit = vectors[:, zeros] / np.maximum(np.linalg.norm(vectors[:, zeros], axis=0), 1e-300)
            _, R, pivots = scipy.linalg.qr(unit, mode="economic", pivoting=True)
            repeated = zeros[pivots[int(np.sum(np.abs(np.diag(R)) > _INDEPENDENT)) :]]
            values, vectors = np.delete(values, repeated), np.delete(vectors, repeated, axis=1)
    order = np.argsort(np.abs(values), kind="stable")
    return values[order], vectors[:, order]


def _zero_poles(values: Complex, stiffness: Array) -> NDArray[np.int64]:
    """Return the indices of the poles that are zero, for the stiffness M⁻¹K.

    Each zero of the stiffness has one zero pole, or two without damping. If the stiffness is
    regular, no pole is zero, however small it is compared with the pole of a strong damper.
    """
    singular = np.linalg.svd(stiffness, compute_uv=False)
    nullity = int(np.sum(singular <= _SINGULAR * singular.max(initial=0.0)))
    sizes = np.abs(values)
    order = np.argsort(sizes, kind="stable")[: 2 * nullity]
    return order[sizes[order] <= _ZERO * sizes.max(initial=0.0)]
