"""Rows of a run: the physical states of its saved steps, written into arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.mechanism.system import State, System
from dolfinx_mbd.results.distributed_rows import DistributedRows, Distribution
from dolfinx_mbd.results.files.run_files import HISTORY, OIL
from dolfinx_mbd.results.saved_states import SavedStates

__all__ = ["StateRows"]

_FIRST_CAPACITY = 64  # number of rows at first, if the number of steps is not known


class StateRows:
    """Arrays of the attributes of states, with one row per saved step.

    The memory of the integrator is not stored. The contents of oil films are stored, because the
    forces of the films depend on them.

    Args:
        system: The mechanism.
        distribution: Coordinates that this rank stores.
        count: Expected number of rows; the arrays grow if there are more.
        local: Whether to store only the coordinates of this rank, and not all of them.
        oil: Content of oil films in states whose memory has none, by the names in `OIL`; empty
            without such films.
    """

    def __init__(
        self,
        system: System,
        distribution: Distribution,
        count: int | None,
        *,
        local: bool,
        oil: Mapping[str, NDArray[np.float64]],
    ) -> None:
        self._system, self._distribution = system, distribution
        self._local = local and bool(distribution)
        self._oil = oil
        self._capacity = _FIRST_CAPACITY if count is None else count
        self._arrays: dict[str, NDArray[np.float64]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, state: State) -> None:
        """Store a state."""
        self._write(state)
        self._count += 1

    def clear(self) -> None:
        """Delete all rows; arrays that were returned do not change."""
        self._arrays, self._count = {}, 0

    def arrays(self, last: State | None = None) -> dict[str, NDArray[np.float64]]:
        """Return the rows by attribute, and the state `last` as last row if it is later."""
        count = self._count
        if last is not None and (not count or self._arrays["time"][count - 1] < last.time):
            self._write(last)
            count += 1
        return {key: values[:count] for key, values in self._arrays.items()}

    def saved(self, last: State | None = None) -> SavedStates:
        """Return the saved states; see `arrays`."""
        arrays: dict[str, Any] = self.arrays(last)
        if self._distribution:
            q = arrays["q"] if self._local else arrays["q"][:, self._distribution.columns]
            arrays["q"] = DistributedRows(self._distribution, q)
        return SavedStates.of_arrays(self._system, arrays)

    def _write(self, state: State) -> None:
        """Write a state into the row after the last one."""
        k, arrays = self._count, self._arrays
        q = self._distribution.of(state.q) if self._local else state.q
        if not arrays or k >= self._capacity:
            self._grow(state, q)
            arrays = self._arrays
        arrays["time"][k] = state.time
        arrays["q"][k], arrays["v"][k], arrays["a"][k] = q, state.v, state.a
        arrays["lam"][k], arrays["angles"][k] = state.lam, state.angles
        if self._oil:
            oil = {**self._oil, **state.memory}
            for key in OIL:
                arrays[key][k] = oil[key]

    def _grow(self, state: State, q: NDArray[np.float64]) -> None:
        """Create the arrays, or larger ones with the same rows."""
        if self._arrays:
            self._capacity = 2 * self._capacity
        like_of = {key: np.asarray(getattr(state, key)) for key in HISTORY} | {"q": q, **self._oil}
        for key, like in like_of.items():
            values = np.empty((self._capacity, *like.shape))
            if self._count:
                values[: self._count] = self._arrays[key][: self._count]
            self._arrays[key] = values
