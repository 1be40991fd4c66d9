"""Stress per elastic coordinate at points of a body, and envelopes over time, without a mesh.

At each instant, the components of stress are a product of modes and elastic coordinates. An
envelope is computed in blocks of points and instants that fit into the processor's cache. Each
block needs a matrix product, the values of the quantity and their extremes. No history is stored.
Principal stresses are computed only at points and instants at which an upper bound exceeds the
extreme value so far. This bound costs as little as the von Mises stress.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.quantities import QUANTITIES, Quantity, quantity
from dolfinx_mbd.body.tree import array_of, freeze_arrays
from dolfinx_mbd.checks import array, choice, integer, reject
from dolfinx_mbd.errors import InputError, InputTypeError
from dolfinx_mbd.html import short_repr

Extreme = Literal["greatest", "least"]

BLOCK_SIZE = 128
"""Number of points and of instants in a block; 128 × 128 deviators (5 numbers) take 0.66 MB."""


class PointEnvelope(NamedTuple):
    """Extreme values over time at points.

    Attributes:
        value: Extreme value at each point, shape (points,), in the unit of the quantity.
        time: Time at which each value is first reached, shape (points,), s.
    """

    value: Array
    time: Array


def motion_of(history: Any, num_modes: int) -> tuple[Array, Array]:
    """Return the times (nt,) and the elastic coordinates (nt, n) of a history.

    The history is an object with `time` and `eta`, such as `run.body("rod")`, or elastic
    coordinates alone, shape (nt, n) or (n,), whose times are 0, 1, ...
    """
    expected = f"a history with `time` (nt,) and `eta` (nt, {num_modes}), or such an `eta`"
    if hasattr(history, "eta") and hasattr(history, "time"):
        time, eta = np.asarray(history.time, float), np.asarray(history.eta, dtype=float)
    elif hasattr(history, "final_state"):
        hint = "run.body(name) of this run"
        reject("history", history, "the history of a body", InputTypeError, hint=hint)
    else:
        eta = array("history", history, expected=expected)
        eta = eta[None] if eta.ndim == 1 else eta
        time = np.arange(float(len(eta))) if eta.ndim else np.zeros(0)
    if time.ndim != 1 or eta.shape != (len(time), num_modes):
        shape = f"elastic coordinates of shape ({len(time)}, {num_modes})"
        text = f"the history must have {shape} for {len(time)} times; got {eta.shape}"
        raise InputError(text, argument="history", value=eta, expected=shape)
    if not len(time):
        reject("history", history, "a history with one or more instants")
    if not (np.isfinite(eta).all() and np.isfinite(time).all()):
        reject("history", eta, "finite; the simulation failed")
    return time, eta


def rows_at(time: Array, times: ArrayLike | None, stride: int = 1) -> NDArray[np.int64]:
    """Return the indices of the instants nearest to `times`, or of every `stride`-th instant.

    A time may lie outside the history by half of its largest step.
    """
    if times is None:
        return np.arange(0, len(time), min(integer("stride", stride, low=1), len(time)))
    requested = np.atleast_1d(array("times", times)).ravel()
    if not len(requested):
        reject("times", times, "a list that is not empty, or None for all times")
    steps = np.abs(np.diff(time))
    margin = 0.5 * steps.max() if len(steps) else np.inf
    for t in requested:
        if not time.min() - margin <= t <= time.max() + margin:
            limits = f"{time.min():g} to {time.max():g} s"
            text = f"time {t:g} s is outside the history, {limits}"
            raise InputError(text, argument="times", value=times, expected=f"within {limits}")
    return np.unique([int(np.argmin(np.abs(time - t))) for t in requested])


class _Instants(NamedTuple):
    """Elastic coordinates at successive instants, and the index of the first one."""

    first: int
    eta: Array  # (n, instants)


def values_over_time(modes: Array, eta: Array, definition: Quantity) -> Array:
    """Return the values of a quantity at all points and instants, shape (nt, points, *shape).

    `modes` are the ingredients of the quantity per elastic coordinate, (ingredients, points, n).
    """
    rows = np.asarray(np.tensordot(definition.matrix, modes @ eta.T, axes=1), dtype=np.float64)
    return np.moveaxis(definition.evaluate(rows), 1, 0)


def envelope_over_time(
    modes: Sequence[Array], eta: Array, definition: Quantity, extreme: Extreme = "greatest"
) -> tuple[Array, NDArray[np.int64]]:
    """Return the extreme value of a scalar quantity at each point, and the index of its instant.

    `modes` are arrays of ingredients per elastic coordinate, (ingredients, points, n), to be
    stacked; `eta` has the shape (nt, n).
    """
    if definition.shape:
        scalars = ", ".join(repr(q.name) for q in QUANTITIES.values() if not q.shape)
        reject("quantity", definition.name, f"a scalar for an envelope, one of {scalars}")
    choice("extreme", extreme, ("greatest", "least"))
    sign = 1.0 if extreme == "greatest" else -1.0
    count = modes[0].shape[1]
    best, when = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
    starts = range(0, len(eta), BLOCK_SIZE)
    parts = [_Instants(k, np.ascontiguousarray(eta[k : k + BLOCK_SIZE].T)) for k in starts]
    if definition.bound is not None:  # the bounds exclude more if large values come first
        parts.sort(key=lambda part: float(np.abs(part.eta).max()), reverse=True)
    for start in range(0, count, BLOCK_SIZE):
        block = np.concatenate([m[:, start : start + BLOCK_SIZE] for m in modes])
        local = np.tensordot(definition.matrix, block, axes=1)
        # Views of the extremes so far of the points of this block
        top, instants = best[start : start + BLOCK_SIZE], when[start : start + BLOCK_SIZE]
        points = np.arange(len(top))
        for k, part in parts:
            values = _signed_values(local @ part, definition, sign, top)
            columns = values.argmax(axis=1)
            peaks = values[points, columns]
            better = (peaks > top) | ((peaks == top) & (columns + k < instants))
            top[better] = peaks[better]
            instants[better] = columns[better] + k
    best *= sign
    return (best if definition.finish is None else definition.finish(best)), when


def _signed_values(rows: Array, definition: Quantity, sign: float, top: Array) -> Array:
    """Return sign · values (points, nt) of `rows` (·, points, nt).

    If the quantity has a bound, values that are certainly below `top` or below another value of the
    same point are replaced by −∞.
    """
    if definition.bound is None or definition.combine is None:
        values = rows[0] if definition.combine is None else definition.combine(rows)
        return values if sign > 0 else -values
    bound = definition.bound(rows, sign)
    points = np.arange(len(top))
    reached = sign * definition.combine(rows[:, points, bound.argmax(axis=1)])
    candidates = np.flatnonzero(bound >= np.maximum(top, reached)[:, None])
    values = bound  # reuses the memory of the bounds
    values[:] = -np.inf
    columns = rows.reshape(len(rows), -1).take(candidates, axis=1)
    values.reshape(-1)[candidates] = sign * definition.combine(columns)
    return values


@dataclass(frozen=True, eq=False)
class StressModes:
    """Stress per unit of each elastic coordinate at points of a body.

    Attributes:
        points: Positions of the points, shape (points, 3), m.
        stress: Components xx, yy, zz, xy, yz, zx in body axes, shape (6, points, n), Pa. At a node
            of a mesh this is the average over the cells around the node.
        cells: The same components in single cells at the surface, without averages, shape (6, nc,
            n), Pa, in single precision; or None if they are unknown.

    Example:
        >>> stress = mbd.body.StressModes(np.zeros((1, 3)), np.ones((6, 1, 2)))
        >>> stress.envelope("stress xx", [[1.0, 0.0], [2.0, 1.0]])
        PointEnvelope(value=array([3.]), time=array([1.]))
    """

    points: Array = field(metadata=array_of("p3", "m"))
    stress: Array = field(metadata=array_of("6pn", "Pa", file_name="modes"))
    cells: NDArray[Any] | None = field(
        default=None, metadata=array_of("6cn", "Pa", dtype=np.float32)
    )

    __repr__ = short_repr

    def __post_init__(self) -> None:
        freeze_arrays(self, "stress modes")

    @property
    def num_modes(self) -> int:
        """Number of elastic coordinates n."""
        return int(self.stress.shape[2])

    def values(
        self, name: str, history: Any, *, times: ArrayLike | None = None, stride: int = 1
    ) -> Array:
        """Return a quantity at all points and some instants, shape (nt, points, *value shape).

        Args:
            name: A quantity of stress, such as `von Mises` or `stress xx`.
            history: An object with `time` (nt,), s, and `eta` (nt, n), such as `run.body("rod")`;
                or elastic coordinates, shape (nt, n) or (n,).
            times: Requested times, s; the nearest instants are used. By default every `stride`-th
                instant.
            stride: Step from one instant to the next if `times` is None.

        Raises:
            InputError: The quantity is unknown or needs more than stress, or the history is wrong.
        """
        definition = self._quantity(name)
        time, eta = motion_of(history, self.num_modes)
        return values_over_time(self.stress, eta[rows_at(time, times, stride)], definition)

    def envelope(self, name: str, history: Any, *, extreme: Extreme = "greatest") -> PointEnvelope:
        """Return the extreme value over time at each point, and its time.

        Args:
            name: A scalar quantity of stress, such as `von Mises` or `stress xx`.
            history: An object with `time` (nt,), s, and `eta` (nt, n), such as `run.body("rod")`;
                or elastic coordinates, shape (nt, n), whose times are 0, 1, ...
            extreme: `greatest` or `least`.

        Raises:
            InputError: The quantity is unknown, not a scalar or needs more than stress, or the
                history is wrong.
        """
        definition = self._quantity(name, scalar=True)
        time, eta = motion_of(history, self.num_modes)
        value, row = envelope_over_time([self.stress], eta, definition, extreme)
        return PointEnvelope(value, time[row])

    def peak(self, name: str, history: Any, *, extreme: Extreme = "greatest") -> float | None:
        """Return the extreme value over time in single cells, or None if `cells` is None.

        This is the value of `mbd.most_stressed` if it is reached at the surface. Averages over
        cells, which pictures show, are lower.

        Args:
            name: See `envelope`.
            history: See `envelope`.
            extreme: See `envelope`.

        Raises:
            InputError: See `envelope`.

        Example:
            >>> average, cells = np.full((6, 1, 1), 2.0), np.ones((6, 2, 1)) * [[1.0], [3.0]]
            >>> stress = mbd.body.StressModes([[0, 0, 0]], average, cells)
            >>> stress.envelope("stress xx", [5.0]).value, stress.peak("stress xx", [5.0])
            (array([10.]), 15.0)
        """
        definition = self._quantity(name, scalar=True)
        choice("extreme", extreme, ("greatest", "least"))
        _, eta = motion_of(history, self.num_modes)
        if self.cells is None or not self.cells.shape[1]:
            return None
        values, _ = envelope_over_time([self.cells], eta, definition, extreme)
        return float(values.max() if extreme == "greatest" else values.min())

    @staticmethod
    def _quantity(name: str, *, scalar: bool = False) -> Quantity:
        """Return the definition of a quantity that needs the stress alone."""

        def accepts(entry: Quantity) -> bool:
            return entry.needs == ("stress",) and not (scalar and entry.shape)

        definition = quantity(name, accepts)
        if definition.needs != ("stress",):
            needs = " and ".join(definition.needs)
            reject("name", name, f"a quantity of stress alone ({name!r} needs {needs}: recover it)")
        return definition
