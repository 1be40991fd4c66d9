"""Wall-clock times of the phases of an analysis; each phase is logged when it begins."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from mpi4py import MPI

log = logging.getLogger("dolfinx_mbd")


class Phases:
    """Wall-clock seconds by phase, in the order in which the phases began."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time of a ``with`` block to the named phase."""
        if name not in self._seconds:
            log.info("%s", name)
        start = perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + perf_counter() - start

    def seconds(self, comm: MPI.Comm) -> dict[str, float]:
        """Return rank 0's seconds by phase on every rank (collective)."""
        rounded = {name: round(seconds, 4) for name, seconds in self._seconds.items()}
        result: dict[str, float] = comm.bcast(rounded, root=0)
        return result
