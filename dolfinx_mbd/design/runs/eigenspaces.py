"""Left and right eigenvectors of the poles of ẋ = A x, and derivatives of the poles.

The derivatives of k equal poles with the bases L, R of their left and right eigenvectors, LᴴR = I,
are the eigenvalues of LᴴA′R. A pole is defective if it has fewer than k eigenvectors; it then
changes with a root of the change of A.

References:
    P. Lancaster, On eigenvalues of matrices dependent on a parameter, 1964.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dolfinx_mbd.body.multiple import MULTIPLE_TOLERANCE

__all__ = ["Eigenspace", "count_zeros", "eigenspaces", "pole_slopes"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_ZERO = 1e-7  # poles below this fraction of the largest one count as zero, as in `linearize`
# A group of poles λ is defective if its matrix differs from λ by more than this fraction of λ
_COUPLING = 1e-3
# Product of left and right vectors, relative to that of an undamped pole, below which they are
# nearly orthogonal: the pole is defective
_ORTHOGONAL = 1e-6


class Eigenspace(NamedTuple):
    """Left (k, 2m) and right (2m, k) vectors of a group of k equal poles, left @ right = 1.

    They are eigenvectors of the entrywise product of A and `scale`. `branch` is the index of the
    pole in its group.
    """

    left: Complex
    right: Complex
    scale: Array
    branch: int


def _scale(A: Array) -> Array:
    """Return factors of the entries of A for the state (ωz, ż), with a typical ω in 1/s."""
    m = len(A) // 2
    omega = np.sqrt(np.abs(A[m:, :m]).max()) or np.abs(A[m:, m:]).max() or 1.0
    units = np.repeat([omega, 1.0], m)
    return np.asarray(units[:, None] / units)


def count_zeros(A: Array) -> int:
    """Return the number of zero eigenvalues."""
    sizes = np.abs(np.linalg.eigvals(A * _scale(A)))
    return int(np.sum(sizes <= _ZERO * sizes.max()))


def eigenspaces(A: Array, poles: Complex) -> list[Eigenspace | None]:
    """Return the eigenvectors of each pole; None if the pole is zero or defective."""
    scale, m = _scale(A), len(A) // 2
    A = A * scale
    values, left, right = scipy.linalg.eig(A, left=True)
    spaces: list[Eigenspace | None] = []
    for index, pole in enumerate(poles):
        k, limit = int(np.abs(values - pole).argmin()), MULTIPLE_TOLERANCE * abs(pole)
        if pole == 0:
            pair = None
        elif np.sum(np.abs(values - values[k]) <= limit) > 1:
            pair = _group(A, values[k], limit)
        else:
            L, R = left[:, [k]].conj().T, right[:, [k]]
            # |L @ R| of an undamped pole with vectors of these sizes
            size = 2 * abs(pole) * scale[m, 0] * np.linalg.norm(L[:, m:]) * np.linalg.norm(R[:m])
            pair = (L / (L @ R), R) if abs(L @ R) > _ORTHOGONAL * size else None
        branch = int(np.sum(np.abs(poles[:index] - pole) <= limit))
        spaces.append(None if pair is None else Eigenspace(*pair, scale, branch))
    return spaces


def _group(A: Array, pole: complex, limit: float) -> tuple[Complex, Complex] | None:
    """Return bases of the left and right eigenvectors of a multiple pole; None if defective."""
    # The first k rows of the triangular matrix T belong to the group
    T, Q, k = scipy.linalg.schur(A, "complex", sort=lambda value: abs(value - pole) <= limit)
    if np.abs(T[:k, :k] - pole * np.eye(k)).max() > _COUPLING * abs(pole):
        return None
    X = scipy.linalg.solve_sylvester(T[:k, :k], -T[k:, k:], T[:k, k:])
    return np.hstack([np.eye(k), X]) @ Q.conj().T, Q[:, :k]


def pole_slopes(change: Array, spaces: Sequence[Eigenspace | None]) -> Complex:
    """Return the derivatives of the poles for a derivative of A.

    The result is zero for poles whose eigenspace is None.
    """
    slopes = np.zeros(len(spaces), dtype=complex)
    for k, space in enumerate(spaces):
        if space is not None:
            branches = np.linalg.eigvals(space.left @ (change * space.scale) @ space.right)
            oscillates = np.abs(branches.imag).max() > np.abs(branches.real).max()
            order = np.argsort(branches.imag if oscillates else branches.real, kind="stable")
            slopes[k] = branches[order[space.branch]]
    return slopes
