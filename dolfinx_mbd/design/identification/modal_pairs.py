"""Pairs of measured and computed modes.

Modes are paired by the modal assurance criterion (MAC) of their shapes at the sensors, not by the
order of their frequencies. A pair therefore remains the same while modes cross.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.html import short_repr

CLOSE = 1e-3  # relative distance of two frequencies up to which their modes form a group
INVISIBLE = 1e-6  # smallest size of a shape at the sensors relative to the largest one
FREQUENCY_WEIGHT = 0.2  # weight of |ln(f/f_measured)|, at most 1, next to 1 - MAC


def mac(first: ArrayLike, second: ArrayLike) -> Array:
    """Return the modal assurance criterion |aᴴb|²/(aᴴa bᴴb) of all pairs of shapes.

    It is 1 for proportional shapes, and 0 for orthogonal shapes or if a shape is zero.

    Args:
        first: Shapes, real or complex, shape (m, sensors).
        second: Shapes, real or complex, shape (n, sensors).

    Returns:
        Numbers between 0 and 1, shape (m, n).

    Raises:
        InputError: The shapes have different numbers of sensors.

    Example:
        >>> mbd.design.mac([[1.0, 0.0]], [[2.0, 0.0], [1.0, 1.0]]).round(3)
        array([[1. , 0.5]])
    """
    a, b = mode_shapes("first", first), mode_shapes("second", second)
    if a.shape[1] != b.shape[1]:
        text = f"shapes at {a.shape[1]} sensors cannot be compared with shapes at {b.shape[1]}"
        raise InputError(text, argument="second", value=second)
    sizes = np.outer(np.sum(np.abs(a) ** 2, axis=1), np.sum(np.abs(b) ** 2, axis=1))
    products = np.abs(a.conj() @ b.T) ** 2
    return np.divide(products, sizes, out=np.zeros(sizes.shape), where=sizes > 0)


@dataclass(frozen=True, eq=False)
class ModalPairs:
    """Computed modes that belong to measured ones.

    Attributes:
        modes: Index of the computed mode for each measured mode, from 0, shape (m,).
        mac: MAC of each pair, shape (m,).
        combinations: Combination of the computed modes whose shape is compared, shape (m, n): a row
            of the unit matrix, except for modes of nearly equal frequencies.

    Example:
        >>> test = mbd.design.ModalTest([120.0], [[0.1, 1.0]], [("left", "y"), ("right", "y")])
        >>> test.pair([100.0, 130.0], [[1.0, 0.0], [0.0, 1.0]]).modes
        array([1])
    """

    modes: NDArray[np.int64]
    mac: Array
    combinations: Array

    __repr__ = short_repr


def close_groups(frequencies: Array) -> NDArray[np.int64]:
    """Return the number of the group of each mode, shape (n,), for ascending frequencies."""
    steps = np.diff(frequencies, prepend=frequencies[:1])
    return np.cumsum(steps > CLOSE * frequencies)


def paired(measured: Array, units: Array, frequencies: Array, shapes: NDArray) -> ModalPairs:
    """Return the pairs of measured and computed modes.

    Args:
        measured: Measured frequencies, shape (m,), Hz.
        units: Measured shapes of unit length, shape (m, sensors).
        frequencies: Computed frequencies, ascending, shape (n,), n ≥ m, Hz.
        shapes: Computed shapes, real or complex, shape (n, sensors).
    """
    groups = close_groups(frequencies)
    closeness = np.zeros((len(units), len(frequencies)))
    for group in np.unique(groups):
        k = np.flatnonzero(groups == group)
        closeness[:, k] = _subspace_mac(units, shapes, k)[:, None]
    distance = np.abs(np.log(frequencies / measured[:, None]))
    cost = 1 - closeness + FREQUENCY_WEIGHT * np.minimum(distance, 1.0)
    modes = np.asarray(scipy.optimize.linear_sum_assignment(cost)[1])
    combinations = np.zeros(closeness.shape, dtype=shapes.dtype)
    for group in np.unique(groups[modes]):
        of_group, k = (np.flatnonzero(a == group) for a in (groups[modes], groups))
        combinations[np.ix_(of_group, k)] = _combined(shapes[k], units[of_group])
    return ModalPairs(modes, np.diag(mac(units, combinations @ shapes)).copy(), combinations)


def _subspace_mac(units: Array, shapes: NDArray, k: NDArray[np.int64]) -> Array:
    """Return the largest MAC of each measured shape with a combination of the shapes k."""
    size = np.linalg.norm(shapes, axis=1)
    if size[k].max() <= INVISIBLE * size.max():
        return np.zeros(len(units))
    basis, singular, _ = np.linalg.svd(shapes[k].T, full_matrices=False)
    basis = basis[:, singular > INVISIBLE * singular[0]]
    return np.asarray(np.sum(np.abs(units @ basis.conj()) ** 2, axis=1))


def _combined(shapes: NDArray, units: Array) -> NDArray:
    """Return orthonormal combinations of computed shapes that are closest to measured ones."""
    if len(shapes) == 1:
        return np.ones((1, 1))
    x = np.linalg.lstsq(shapes.T, units.T, rcond=INVISIBLE)[0]
    x = x / np.maximum(np.linalg.norm(x, axis=0), 1e-300)
    return np.asarray(scipy.linalg.polar(x)[0].T)


def mode_shapes(argument: str, value: Any) -> NDArray:
    """Return real or complex shapes, shape (modes, sensors)."""
    try:
        numbers = np.asarray(value)
    except ValueError:  # rows of different lengths
        numbers = np.zeros(0)
    if np.iscomplexobj(numbers):
        parts = numbers.real, numbers.imag
        real, imaginary = (array(argument, part, (None, None)) for part in parts)
        return np.asarray(real + 1j * imaginary)
    return np.asarray(array(argument, value, (None, None)))
