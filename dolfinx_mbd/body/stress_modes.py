"""Stress per elastic coordinate at points of a body, and envelopes over time; no mesh is needed.

At each instant the components of stress are one product of modes and elastic coordinates. An
envelope runs over blocks of points and instants that fit the processor's cache: a product (BLAS),
the quantity from its result, its greatest value; no history is stored. Principal stresses are
computed only where a bound, which costs as little as von Mises stress, exceeds what was reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body.parts import assign, frozen, mode_numbers
from dolfinx_mbd.body.quantities import QUANTITIES, Quantity, quantity
from dolfinx_mbd.checks import array, choice, integer, refuse
from dolfinx_mbd.errors import InputError

__all__ = [
    "Extreme",
    "PointEnvelope",
    "StressModes",
    "envelope_over_time",
    "motion_of",
    "rows_at",
    "values_over_time",
]

Array = NDArray[np.float64]
Extreme = Literal["greatest", "least"]

BLOCK = 128
"""Points, and instants, of a block: 128 × 128 × 5 numbers are 0.6 MB."""


class PointEnvelope(NamedTuple):
    """The extreme value over time at each point, (np,), and when it was first reached, (np,), s."""

    value: Array
    time: Array


def motion_of(history: Any, num_modes: int) -> tuple[Array, Array]:
    """Times (nt,) and elastic coordinates (nt, n) of a history.

    Args:
        history: Something with `time` (nt,) and `eta` (nt, n); or elastic coordinates alone, (nt,
            n) or (n,), whose "times" are the numbers 0, 1, ... of their rows.
        num_modes: n.

    Raises:
        ValueError: The shapes do not fit, there is no instant, or a number is not finite.
    """
    if hasattr(history, "eta") and hasattr(history, "time"):
        time, eta = np.asarray(history.time, float), np.asarray(history.eta, dtype=float)
    else:
        expected = (
            "a history with `time` (nt,) and `eta` (nt, n), or an array of elastic coordinates"
        )
        eta = array("history", history, expected=expected)
        eta = eta[None] if eta.ndim == 1 else eta
        time = np.arange(float(len(eta))) if eta.ndim else np.zeros(0)
    if time.ndim != 1 or eta.shape != (len(time), num_modes):
        raise InputError(
            f"expected elastic coordinates of shape ({len(time)}, {num_modes}) for {len(time)} "
            f"times, got {eta.shape}"
        )
    if not len(time):
        raise InputError("the history has no instants")
    if not (np.isfinite(eta).all() and np.isfinite(time).all()):
        raise InputError("the history has numbers that are not finite: the run failed")
    return time, eta


def rows_at(time: Array, times: ArrayLike | None, stride: int = 1) -> NDArray[np.int64]:
    """Rows of the recorded instants nearest to the given times, each once; or every n-th row.

    Raises:
        ValueError: A time lies outside the history, by more than half a step, or there is none.
    """
    if times is None:
        return np.arange(0, len(time), min(integer("stride", stride, low=1), len(time)))
    wanted = np.atleast_1d(array("times", times)).ravel()
    if not len(wanted):
        refuse("times", times, "a list that is not empty, or None for all times")
    steps = np.abs(np.diff(time))
    margin = 0.5 * steps.max() if len(steps) else np.inf
    for t in wanted:
        if not time.min() - margin <= t <= time.max() + margin:
            raise InputError(
                f"time {t:g} s is outside the history, which goes from {time.min():g} to "
                f"{time.max():g} s"
            )
    return np.unique([int(np.argmin(np.abs(time - t))) for t in wanted])


def values_over_time(modes: Array, eta: Array, what: Quantity) -> Array:
    """Values of a quantity at all points and instants, shape (nt, np, *shape).

    Args:
        modes: Ingredients per elastic coordinate, shape (ingredients, np, n).
        eta: Elastic coordinates, shape (nt, n).
        what: The quantity.
    """
    rows = np.asarray(np.tensordot(what.matrix, modes @ eta.T, axes=1), dtype=np.float64)
    return np.moveaxis(what.evaluate(rows), 1, 0)


def envelope_over_time(
    modes: Sequence[Array], eta: Array, what: Quantity, extreme: Extreme = "greatest"
) -> tuple[Array, NDArray[np.int64]]:
    """Extreme value of a scalar quantity at each point, and the first instant that has it.

    Args:
        modes: Ingredients per elastic coordinate, shapes (ingredients, np, n), which are stacked.
        eta: Elastic coordinates, shape (nt, n).
        what: The quantity.
        extreme: ``greatest`` or ``least``.

    Returns:
        Values (np,) and rows of `eta` (np,).

    Raises:
        ValueError: The quantity is no scalar, or `extreme` is unknown.
    """
    if what.shape:
        raise InputError(
            f"an envelope is that of a scalar; {what.name!r} has shape {what.shape}. Scalars are "
            + ", ".join(repr(q.name) for q in QUANTITIES.values() if not q.shape)
        )
    choice("extreme", extreme, ("greatest", "least"))
    sign = 1.0 if extreme == "greatest" else -1.0
    count = modes[0].shape[1]
    best, when = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
    starts = range(0, len(eta), BLOCK)
    parts = [(k, np.ascontiguousarray(eta[k : k + BLOCK].T)) for k in starts]
    if what.bound is not None:  # large values first leave the fewest to compute
        parts.sort(key=lambda part: -float(np.abs(part[1]).max()))
    for start in range(0, count, BLOCK):
        block = np.concatenate([m[:, start : start + BLOCK] for m in modes])
        local = np.tensordot(what.matrix, block, axes=1)
        top, row = best[start : start + BLOCK], when[start : start + BLOCK]
        points = np.arange(len(top))
        for k, part in parts:
            values = _signed(local @ part, what, sign, top)
            at = values.argmax(axis=1)
            found = values[points, at]
            better = (found > top) | ((found == top) & (at + k < row))
            top[better] = found[better]
            row[better] = at[better] + k
    best *= sign
    return (best if what.finish is None else what.finish(best)), when


def _signed(rows: Array, what: Quantity, sign: float, top: Array) -> Array:
    """±values (np, nt) of rows (rows, np, nt); −∞ where they cannot exceed `top` (np,)."""
    if what.bound is None or what.combine is None:
        values = rows[0] if what.combine is None else what.combine(rows)
        return values if sign > 0 else -values
    bound = what.bound(rows, sign)
    points = np.arange(len(top))
    reached = sign * what.combine(rows[:, points, bound.argmax(axis=1)])
    near = np.flatnonzero(bound >= np.maximum(top, reached)[:, None])
    bound[:] = -np.inf
    bound.reshape(-1)[near] = sign * what.combine(rows.reshape(len(rows), -1).take(near, axis=1))
    return bound


@dataclass(frozen=True, eq=False)
class StressModes:
    """Stress per unit elastic coordinate at points of a body.

    Attributes:
        points: Shape (np, 3), m.
        stress: Components xx, yy, zz, xy, yz, zx, body axes, shape (6, np, n), Pa.
    """

    points: Array
    stress: Array

    def __post_init__(self) -> None:
        points = frozen("stress modes: points", self.points, (-1, 3))
        stress = frozen("stress modes: stress", self.stress, (6, len(points), -1))
        assign(self, points=points, stress=stress)

    @property
    def num_modes(self) -> int:
        """Number of elastic coordinates n."""
        return int(self.stress.shape[2])

    def selected(self, modes: NDArray[np.int64]) -> StressModes:
        """Return those of some elastic coordinates only."""
        modes = mode_numbers("modes", modes, self.num_modes)
        return StressModes(self.points, self.stress[:, :, modes])

    def values(
        self, name: str, history: Any, *, times: ArrayLike | None = None, stride: int = 1
    ) -> Array:
        """A quantity at all points and at some instants, shape (nt, np, *shape of the quantity).

        Args:
            name: One of the quantities of stress, such as ``von Mises`` or ``stress xx``.
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n) or (n,).
            times: Instants, s; the nearest recorded ones are taken. None: all.
            stride: Without `times`, take every n-th instant.

        Raises:
            ValueError: The quantity is unknown or needs more than stress, or the history does not
                fit.
        """
        what = self._quantity(name)
        time, eta = motion_of(history, self.num_modes)
        return values_over_time(self.stress, eta[rows_at(time, times, stride)], what)

    def envelope(self, name: str, history: Any, *, extreme: Extreme = "greatest") -> PointEnvelope:
        """The greatest (or least) value over time at each point, and when.

        Args:
            name: A scalar quantity of stress, such as ``von Mises`` or ``stress xx``.
            history: `time` (nt,) and `eta` (nt, n); or elastic coordinates (nt, n), whose rows
                then count as times 0, 1, ...
            extreme: ``greatest`` or ``least``.

        Raises:
            ValueError: The quantity is unknown, no scalar or needs more than stress, or the history
                does not fit.
        """
        what = self._quantity(name)
        time, eta = motion_of(history, self.num_modes)
        value, row = envelope_over_time([self.stress], eta, what, extreme)
        return PointEnvelope(value, time[row])

    @staticmethod
    def _quantity(name: str) -> Quantity:
        what = quantity(name)
        if what.needs != ("stress",):
            raise InputError(
                f"{name!r} needs {' and '.join(what.needs)}, and stress modes hold stress only; "
                "recover it on the mesh"
            )
        return what
