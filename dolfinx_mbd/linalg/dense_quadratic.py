"""Quadratic eigenvalue problems of dense matrices, and the selection of one eigenvalue per mode."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

__all__ = ["dense_modes", "improved_roots", "rates", "select_modes"]

Array = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]


def dense_modes(
    M: Array, C: Array | None, K: Array, num_modes: int | None = None
) -> tuple[ComplexArray, ComplexArray]:
    """Return the modes of λ²M + λC + K closest to zero, by LAPACK in the modes of (K, M).

    Args:
        M: Symmetric positive definite matrix.
        C: Matrix, or None.
        K: Symmetric matrix.
        num_modes: Number of modes; None for all of them. Without C all unstable modes are returned.

    Returns:
        λ, shape (num_modes,), and z, shape (n, num_modes).
    """
    n = len(M)
    squares, modes = scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2)
    if C is None:
        count = max(num_modes or n, int(np.sum(squares < 0)))
        return rates(squares[:count]), modes[:, :count].astype(complex)
    scale = np.sqrt(np.abs(squares).max())  # 1/time
    small = modes.T @ C @ modes
    A = np.zeros((2 * n, 2 * n))
    A[:n, n:], A[n:, :n], A[n:, n:] = np.eye(n), -np.diag(squares) / scale**2, -small / scale
    eigenvalues, y = np.linalg.eig(A)
    values, columns = select_modes(scale * eigenvalues)
    values, y = values[:num_modes], y[:n, columns[:num_modes]]
    products = (y, small @ y, squares[:, None] * y)
    quotients = np.array([np.einsum("ik,ik->k", y.conj(), a) for a in products])
    return improved_roots(values, quotients), modes @ y


def select_modes(values: ComplexArray) -> tuple[ComplexArray, NDArray[np.intp]]:
    """Return one eigenvalue per mode by distance from zero; real unstable ones come first.

    The one with Im λ > 0 represents a conjugate pair. Real eigenvalues are paired by distance from
    zero, and the greater one represents the pair.

    Args:
        values: All eigenvalues.

    Returns:
        The eigenvalues, and their indices in `values`.
    """
    upper = [int(k) for k in np.flatnonzero(values.imag > 0)]
    real = [int(k) for k in np.flatnonzero(values.imag == 0)]
    real.sort(key=lambda k: (abs(values[k]), values[k].real))
    pairs = [real[k : k + 2] for k in range(0, len(real), 2)]
    chosen = upper + [max(pair, key=lambda k: values[k].real) for pair in pairs]
    growing = {k for k in chosen if values[k].imag == 0 and values[k].real > 0}
    chosen.sort(key=lambda k: -abs(values[k]) if k in growing else abs(values[k]))
    columns = np.array(chosen, dtype=np.intp)
    return values[columns], columns


def improved_roots(values: ComplexArray, quotients: ComplexArray) -> ComplexArray:
    """Return the roots of (zᴴMz) λ² + (zᴴCz) λ + zᴴKz that are closest to approximate eigenvalues.

    Args:
        values: Approximate eigenvalues, shape (n,).
        quotients: zᴴMz, zᴴCz and zᴴKz, shape (3, n).
    """
    m, c, k = quotients
    m, k = m.real, k.real
    root = np.sqrt(c * c - 4 * m * k + 0j)
    both = np.array([-c + root, -c - root]) / (2 * m)
    closest = np.argmin(np.abs(both - values), axis=0)
    better = both[closest, np.arange(len(values))]
    return np.where(values.imag == 0, better.real, better.real + 1j * np.abs(better.imag))


def rates(squares: Array) -> ComplexArray:
    """Return λ = iω for positive ω², and the growth rate √(-ω²) for negative ω².

    Args:
        squares: ω².
    """
    root = np.sqrt(np.abs(squares))
    return np.where(squares < 0, root + 0j, 1j * root)
