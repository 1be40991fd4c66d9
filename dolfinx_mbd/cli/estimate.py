"""Estimate of the time and memory of a reduction, fitted to measurements.

The time and memory of the sparse factorization of a solid grow faster than linearly with its size.
The power laws here deviate by at most an eighth from the measurements in `benchmarks/README.md`
(quadratic tetrahedra, 24 modes, one rank) and extrapolate beyond them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["Estimate", "estimate"]


@dataclass(frozen=True)
class Estimate:
    """Time and memory of a reduction, within a factor of two.

    Attributes:
        seconds: Time on one core of the machine of the benchmarks, s.
        gigabytes: Memory of all ranks together, GB.
        available: Memory of this machine, GB; None if unknown.
    """

    seconds: float
    gigabytes: float
    available: float | None

    def __str__(self) -> str:
        lines = [
            f"expected time   about {self.seconds:.2g} s on one core",
            f"expected memory about {self.gigabytes:.2g} GB",
        ]
        if self.available is not None:
            fits = "" if self.gigabytes < 0.9 * self.available else ": it will not fit"
            lines[1] += f", this machine has {self.available:.3g} GB{fits}"
        return "\n".join(lines)


def estimate(dofs: int, num_modes: int, *, stiffening: bool) -> Estimate:
    """Return the estimated cost of a reduction with a direct solver.

    Args:
        dofs: Number of displacement degrees of freedom.
        num_modes: Number of fixed-interface modes.
        stiffening: Whether the reduction includes the geometric stiffening.
    """
    seconds = 1.8 * (dofs / 33e3) ** 1.3 * (0.5 + 0.5 * num_modes / 24)
    if stiffening:
        seconds *= 1.45
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, OSError, ValueError):
        available = None
    return Estimate(seconds, 0.2 + 11.4 * (dofs / 889e3) ** 1.2, available)
