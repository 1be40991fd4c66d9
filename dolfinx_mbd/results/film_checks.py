"""Comparison of the thickness of oil films in a run with the roughness of the surfaces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.errors import ModelRangeWarning, warn
from dolfinx_mbd.kernels.columns import GAP

__all__ = ["FilmChecks"]


class FilmChecks:
    """Smallest thickness of each oil film in a run that begins at the time `start`."""

    def __init__(self, eqs: Assembler, start: float) -> None:
        self._films = eqs.loads.films()
        self._gaps: Array = eqs.loads.film_gaps()[:, GAP]
        self._times: Array = np.full(len(self._films), start)

    def memory(self) -> list[list[float]]:
        """Return plain values from which `restore` continues."""
        return [[float(x) for x in row] for row in (self._gaps, self._times)]

    def restore(self, memory: Sequence[Sequence[float]]) -> None:
        """Continue the check of an interrupted run."""
        if len(memory) == 2 and len(memory[0]) == len(self._films):
            self._gaps, self._times = (np.array(row, dtype=float) for row in memory)

    def update(self, time: float, gaps: Array) -> None:
        """Record the gaps (films,) of the films at the new time, m."""
        smaller = gaps < self._gaps
        if smaller.any():
            self._gaps[smaller], self._times[smaller] = gaps[smaller], time

    def warn(self) -> None:
        """Give a warning for each film that was thinner than its limit."""
        for film, gap, time in zip(self._films, self._gaps, self._times, strict=True):
            limit = film.least_thickness
            if gap >= limit:
                continue
            state = (
                f"the surfaces overlap by {-gap:.3g} m"
                if gap < 0.0
                else f"its thickness falls to {gap:.3g} m"
            )
            warn(
                ModelRangeWarning(
                    f"oil film {film.name!r}: {state} at t = {time:g} s, and the roughness is "
                    f"{limit:.3g} m. The surfaces carry the load there by contact, and the loads "
                    "of the film are a rough estimate. Check load, misalignment, clearance and "
                    "viscosity",
                    quantity="film thickness",
                    value=float(gap),
                    limit=float(limit),
                )
            )
