"""Rainflow counting of a signal, and the range of one equivalent cycle."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, choice, number, reject
from dolfinx_mbd.html import short_repr
from dolfinx_mbd.kernels.fatigue.rainflow import count_history

__all__ = ["Cycles", "Residue", "count_cycles", "equivalent_range"]

Residue = Literal["half", "closed"]


class Cycles(NamedTuple):
    """Cycles of a signal in the order in which they end.

    Attributes:
        ranges: Difference between the two turning points of each cycle, shape (cycles,).
        means: Mean of the two turning points, shape (cycles,).
        counts: 1 for a full cycle and 0.5 for a half cycle, shape (cycles,).

    Example:
        >>> mbd.durability.count_cycles([0, 2, 0]).counts
        array([0.5, 0.5])
    """

    def __repr__(self) -> str:
        return short_repr(self)

    ranges: Array
    means: Array
    counts: Array


def count_cycles(history: ArrayLike, residue: Residue = "half") -> Cycles:
    """Count the cycles of a signal by the rainflow rules of ASTM E1049-85, 5.4.4.

    Args:
        history: Values of the signal, for example a force, shape (nt,).
        residue: "half" counts the remaining turning points as half cycles. "closed" repeats the
            signal, starting at its largest absolute value, so that all cycles close; use it for a
            signal that recurs, such as one turn of a machine.

    Raises:
        InputError: The signal has fewer than two values, or one that is not finite.

    Example:
        >>> cycles = mbd.durability.count_cycles([-2, 1, -3, 5, -1, 3, -4, 4, -2])
        >>> cycles.ranges.tolist(), float(cycles.counts.sum())
        ([3.0, 4.0, 4.0, 8.0, 9.0, 8.0, 6.0], 4.0)
    """
    values: Any = array("history", history, (None,))
    if len(values) < 2:
        reject("history", history, "two or more values")
    closed = choice("residue", residue, get_args(Residue)) == "closed"
    return Cycles(*np.ascontiguousarray(count_history(np.array(values), closed).T))


def equivalent_range(
    history: ArrayLike, slope: float, *, cycles: float = 1.0, residue: Residue = "half"
) -> float:
    """Return the damage-equivalent range of a load or a stress.

    Cycles of this constant range do the same damage as the signal on a line N ∝ range^(−slope),
    without an influence of the mean.

    Args:
        history: Values of the signal, shape (nt,).
        slope: Exponent of the line, for example 3 to 5 for welds and 10 for smooth steel.
        cycles: Number of equivalent cycles; by default one. For an equivalent load at 1 Hz, give
            the duration of the signal in seconds.
        residue: See `count_cycles`.

    Raises:
        InputError: See `count_cycles`; or `slope` or `cycles` is not positive.

    Example:
        >>> mbd.durability.equivalent_range([-2, 1, -3, 5, -1, 3, -4, 4, -2], 3)
        10.303998196442722
    """
    exponent = number("slope", slope, positive=True)
    total = number("cycles", cycles, positive=True)
    ranges, _, counts = count_cycles(history, residue)
    largest = ranges.max(initial=0.0)
    if not largest:
        return 0.0
    # Powers of relative ranges do not overflow
    sum_of_damages = counts @ (ranges / largest) ** exponent
    return float(largest * (sum_of_damages / total) ** (1 / exponent))
