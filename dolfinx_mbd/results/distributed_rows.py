"""Coordinates over time whose nodal values are distributed over MPI ranks.

A body on a mesh that several ranks share declares `distribution`: a communicator, and the columns
of its coordinates that each rank stores. All other columns are on every rank. MPI is not imported
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.mechanism.system import State, System

__all__ = ["DistributedRows", "Distribution", "local_row", "whole"]

Array = NDArray[np.float64]
Columns = NDArray[np.int64]


class Part(NamedTuple):
    """Adjacent columns that the ranks of a communicator share.

    Attributes:
        comm: The communicator.
        first: First column.
        columns: Increasing columns of each rank, relative to the first column of the part, in the
            order of the ranks.
        counts: Number of columns of each rank.
    """

    comm: Any
    first: int
    columns: Columns
    counts: tuple[int, ...]

    @property
    def of_rank(self) -> Columns:
        """The columns of this rank, relative to the first column of the part."""
        start = sum(self.counts[: self.comm.rank])
        return self.columns[start : start + self.counts[self.comm.rank]]


class Distribution:
    """Distribution of the coordinates of a system: the columns that this rank stores.

    Args:
        system: The mechanism.

    Attributes:
        width: Number of coordinates.
        parts: Columns that several ranks share.
        columns: Increasing columns that this rank stores.
    """

    def __init__(self, system: System) -> None:
        self.width = system.num_coordinates
        parts: list[Part] = []
        body: Any
        for body, q in zip(system.bodies, system.q_slices, strict=True):
            for part in getattr(body, "distribution", ()):
                parts.append(part._replace(first=q.start + part.first))
        self.parts = tuple(parts)
        stored = np.ones(self.width, dtype=bool)
        for part in parts:
            stored[part.first : part.first + len(part.columns)] = False
            stored[part.first + part.of_rank] = True
        self.columns: Columns = np.flatnonzero(stored)

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def comm(self) -> Any:
        """Communicator of the first part, or None if no columns are shared."""
        return self.parts[0].comm if self.parts else None

    def of(self, q: Array) -> Array:
        """Return the columns that this rank stores, from q with all columns or only with these."""
        return q if len(q) == len(self.columns) else q[self.columns]

    def rows(self, states: Sequence[State]) -> DistributedRows:
        """Return the coordinates of states, one row for each state."""
        return DistributedRows(self, np.array([self.of(state.q) for state in states]))


class DistributedRows:
    """Coordinates over time, shape (nt, n), of which this rank stores some columns.

    Each row contains the coordinates at one time. An integer index returns one row. A slice or an
    array of indices returns another object of this class, and `np.asarray` returns all rows as an
    array. Access to columns that several ranks share is collective over the communicator of their
    part, and gathers the rows one by one.

    Args:
        distribution: Columns that this rank stores.
        stored: Values in these columns, shape (nt, stored columns).
        window: First column of this object, and the column after its last one; by default all
            columns of the system.
        shape: Shape of the values at one time.
    """

    def __init__(
        self,
        distribution: Distribution,
        stored: Array,
        window: tuple[int, int] | None = None,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        self._distribution, self._stored = distribution, stored
        self._window = window or (0, distribution.width)
        self._shape = shape or (self._window[1] - self._window[0],)

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole array."""
        return len(self), *self._shape

    @property
    def ndim(self) -> int:
        """Number of axes of the whole array."""
        return len(self.shape)

    def __iter__(self) -> Iterator[Array]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """Return the row of one time, the rows of several times, or columns of them."""
        if isinstance(key, int | np.integer):
            return self._gathered(range(len(self))[key])
        if not isinstance(key, tuple):
            stored = self._stored[key]
            return DistributedRows(self._distribution, stored, self._window, self._shape)
        rows, *others = key
        if len(others) == 1 and isinstance(others[0], slice) and len(self._shape) == 1:
            first, stop, step = others[0].indices(self._shape[0])
            if step == 1:
                part = self.columns(first, max(first, stop))
                return part[rows] if part._is_shared else np.asarray(part)[rows]
        return np.asarray(self)[key]

    def columns(
        self, first: int, stop: int, shape: tuple[int, ...] | None = None
    ) -> DistributedRows:
        """Return the columns `first:stop`, with an optional shape of the values at one time."""
        start = self._window[0]
        window = start + first, start + stop
        return DistributedRows(self._distribution, self._stored, window, shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the whole array (collective if other ranks store a part of it)."""
        out = np.empty(self.shape, dtype=dtype)
        for row, values in zip(out, self, strict=True):
            row[...] = values
        return out

    def stored(self, row: int) -> Array:
        """Return the values that this rank stores at one time, without those of other ranks.

        All axes but the first one are those of the values at one time.
        """
        part = self._stored[row, self._places()]
        return np.asarray(part.reshape(-1, *self._shape[1:]))

    def local(self, row: int) -> Array:
        """Return the values at one time, with NaN for values that other ranks store."""
        out = np.full(self._distribution.width, np.nan)
        out[self._distribution.columns] = self._stored[row]
        return out[slice(*self._window)].reshape(self._shape)

    def _places(self) -> slice:
        """Return the range of the stored columns that lie in the window."""
        first, stop = np.searchsorted(self._distribution.columns, self._window)
        return slice(int(first), int(stop))

    @property
    def _is_shared(self) -> bool:
        """Whether some columns are on other ranks."""
        return bool(self._parts())

    def _parts(self) -> list[Part]:
        """Return the shared parts that overlap the window."""
        first, stop = self._window
        parts = self._distribution.parts
        return [p for p in parts if p.first < stop and p.first + len(p.columns) > first]

    def _gathered(self, row: int) -> Array:
        """Return the values at one time, gathered from all ranks (collective)."""
        out = np.full(self._distribution.width, np.nan)
        columns, values = self._distribution.columns, self._stored[row]
        out[columns] = values
        for part in self._parts():
            values_of_ranks = part.comm.allgather(out[part.first + part.of_rank])
            out[part.first + part.columns] = np.concatenate(values_of_ranks)
        return out[slice(*self._window)].reshape(self._shape).copy()


def local_row(q: Array | DistributedRows, row: int) -> Array:
    """Return the coordinates at one time, with NaN for values that other ranks store."""
    return q.local(row) if isinstance(q, DistributedRows) else q[row]


def whole(values: Any) -> Any:
    """Return distributed rows as an array (collective), and other values unchanged."""
    return np.asarray(values) if isinstance(values, DistributedRows) else values
