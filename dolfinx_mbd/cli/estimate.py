"""Expected time and memory of a reduction, for `dolfinx-mbd reduce --dry-run`."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["Estimate", "estimate"]


@dataclass(frozen=True)
class Estimate:
    """Time and memory of a reduction, accurate to a factor of two.

    Attributes:
        seconds: Time on one core of the computer of the benchmarks, s.
        gigabytes: Memory of all ranks together, GB.
        available: Memory of this computer, GB; None if the system does not report it.
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
    """Return the expected time and memory of a reduction with a direct solver.

    The time is within an eighth of the measurements in `benchmarks/README.md` (quadratic
    tetrahedra, 24 modes, one rank); see `linalg.memory` for the memory.

    Args:
        dofs: Displacement degrees of freedom.
        num_modes: Number of fixed-interface modes.
        stiffening: Whether the reduction includes the geometric stiffening.
    """
    from dolfinx_mbd.linalg.memory import factorization_memory

    seconds = 1.8 * (dofs / 33e3) ** 1.3 * (0.5 + 0.5 * num_modes / 24)
    if stiffening:
        seconds *= 1.45
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    except (AttributeError, OSError, ValueError):
        available = None
    return Estimate(seconds, factorization_memory(dofs) / 1e9, available)
