"""Groups of modes with the same frequency, which must be taken or left together.

Any orthogonal combinations of the modes of a multiple eigenvalue are modes as well. Which of them a
solver finds depends on round-off, and so on the number of ranks; only the space that all of them
span has a meaning.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.errors import AccuracyWarning, warn

__all__ = ["MULTIPLE", "end_of_group", "groups_of", "warn_of_cut_groups"]

Array = NDArray[np.float64]

MULTIPLE = 1e-6
"""Relative distance up to which two eigenvalues ω² are taken for a multiple one.

The modes of two eigenvalues at a relative distance d are only known up to a rotation in their plane
by the error of the solver, some 1e-9, over d. At this distance it is 1e-3; two modes that are
closer are any two of their plane. Frequencies that differ by chance are hardly ever so close.
"""


def end_of_group(values: Array, count: int, errors: Array | None = None) -> int:
    """Return the number of modes that completes the group of the last of some modes.

    A group is a multiple eigenvalue: the distance of each value to the next is at most `MULTIPLE`
    of its size, or what round-off makes of it.

    Args:
        values: ω², ascending.
        count: Number of modes; 0 is never completed.
        errors: Errors of the values by round-off; none by default.

    Returns:
        `count` or more; the last group may go on beyond `values` if that is all of them.

    Example:
        >>> end_of_group(np.array([1.0, 4.0, 4.0, 9.0]), 2)
        3
    """
    while 0 < count < len(values):
        error = 0.0 if errors is None else 2 * errors[count]
        if values[count] - values[count - 1] > max(MULTIPLE * abs(values[count]), error):
            break
        count += 1
    return count


def groups_of(values: Array, errors: Array | None = None) -> NDArray[np.int64]:
    """Return the number of the group of each mode, shape (n,): 0, 1, ...

    Args:
        values: ω², in any order.
        errors: Errors of the values by round-off; none by default.

    Example:
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
    """Warn if only some modes of a multiple frequency are selected.

    Args:
        name: The body's name.
        K: Its stiffness.
        M: Its mass matrix; nothing is said if the coordinates are coupled by it.
        modes: Numbers of the selected modes.
    """
    masses = np.diag(M)
    if np.abs(M - np.diag(masses)).max(initial=0.0) > 1e-9 * masses.max(initial=0.0):
        return
    groups = groups_of(np.diag(K) / masses)
    size, chosen = (np.bincount(g, minlength=len(groups)) for g in (groups, groups[modes]))
    number = int(np.sum((chosen > 0) & (chosen < size)))
    if number:
        warn(
            AccuracyWarning(
                f"body {name!r}: only some modes of a multiple frequency are selected; which ones "
                "they are is chance. Take all of them or none",
                quantity="multiple frequencies that are cut",
                value=number,
                limit=0,
            )
        )
