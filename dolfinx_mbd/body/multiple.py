"""Multiple eigenvalues, whose modes must be selected together.

Any orthogonal combination of the modes of a multiple eigenvalue is also a mode. The combination
that a solver returns depends on round-off, and hence on the number of ranks; only the space that
the modes span is meaningful.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.errors import AccuracyWarning, warn

MULTIPLE_TOLERANCE = 1e-6
"""Relative distance up to which two eigenvalues ω² are treated as equal.

The computed modes of two close eigenvalues may be rotated in their plane. The angle is the solver's
error (about 1e-9), divided by the relative distance of the eigenvalues: 1e-3 at this limit.
Frequencies of different modes are rarely so close.
"""


def end_of_group(values: Array, count: int, errors: Array | None = None) -> int:
    """Return the smallest number of modes, at least `count`, that does not split a group.

    The values are in ascending order. Neighbours belong to the same group if their distance is at
    most `MULTIPLE_TOLERANCE` times their size, or is within the round-off errors. If the result is
    the number of all values, the last group may be incomplete.

    >>> end_of_group(np.array([1.0, 4.0, 4.0, 9.0]), 2)
    3
    """
    while 0 < count < len(values):
        error = 0.0 if errors is None else 2 * errors[count]
        if values[count] - values[count - 1] > max(MULTIPLE_TOLERANCE * abs(values[count]), error):
            break
        count += 1
    return count


def groups_of(values: Array, errors: Array | None = None) -> NDArray[np.int64]:
    """Return the zero-based index of the group of each mode, shape (n,).

    >>> groups_of(np.array([1.0, 4.0, 4.0, 9.0]))
    array([0, 1, 1, 2])
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    sorted_errors = None if errors is None else errors[order]
    groups = np.zeros(len(values), dtype=np.int64)
    start = number = 0
    while start < len(values):
        end = end_of_group(ordered, start + 1, sorted_errors)
        groups[order[start:end]] = number
        start, number = end, number + 1
    return groups


def warn_of_cut_groups(name: str, K: Array, M: Array, modes: NDArray[np.int64]) -> None:
    """Warn if only some modes of a multiple frequency are selected and M is diagonal."""
    masses = np.diag(M)
    if np.abs(M - np.diag(masses)).max(initial=0.0) > 1e-9 * masses.max(initial=0.0):
        return
    groups = groups_of(np.diag(K) / masses)
    size, selected = (np.bincount(g, minlength=len(groups)) for g in (groups, groups[modes]))
    number = int(np.sum((selected > 0) & (selected < size)))
    if number:
        text = (
            f"body {name!r}: only some modes of a multiple frequency are selected, and the "
            "selected ones depend on round-off. Select all of them or none"
        )
        quantity = "multiple frequencies that are cut"
        warn(AccuracyWarning(text, quantity=quantity, value=number, limit=0))
