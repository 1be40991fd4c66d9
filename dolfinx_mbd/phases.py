"""Wall-clock times of the phases of an analysis; each phase is logged when it begins."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from mpi4py import MPI

log = logging.getLogger("dolfinx_mbd")


class Phases:
    """Wall-clock seconds by phase, in the order in which the phases began.

    Args:
        title: Name of the analysis, which starts all lines about its progress.
        show: Whether rank 0 prints a line to stderr when a phase begins for the first time.
    """

    def __init__(self, title: str = "", *, show: bool = False) -> None:
        self._seconds: dict[str, float] = {}
        self._title, self._show = title, show and MPI.COMM_WORLD.rank == 0
        self._start = perf_counter()

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the time of a ``with`` block to the named phase."""
        if name not in self._seconds:
            log.info("%s", name)
            self._print(name)
        start = perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + perf_counter() - start

    def end(self) -> None:
        """Print that the analysis has ended."""
        self._print("done")

    def _print(self, text: str) -> None:
        """Print a line with the elapsed time, if the progress is shown."""
        if self._show:
            seconds = perf_counter() - self._start
            print(f"{self._title} {seconds:8.1f} s  {text}", file=sys.stderr, flush=True)

    def seconds(self, comm: MPI.Comm) -> dict[str, float]:
        """Return rank 0's seconds by phase on every rank (collective)."""
        rounded = {name: round(seconds, 4) for name, seconds in self._seconds.items()}
        result: dict[str, float] = comm.bcast(rounded, root=0)
        return result
