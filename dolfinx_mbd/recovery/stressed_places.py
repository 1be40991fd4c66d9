"""The most stressed places of a body, apart from each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.body import Interface
from dolfinx_mbd.checks import instance, integer, number
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.recovery.fields import Envelope
from dolfinx_mbd.recovery.stress import Recovery, What, recovery_of
from dolfinx_mbd.reduction.result import Reduction

__all__ = ["MostStressed", "StressedPlace", "most_stressed"]

Array = NDArray[np.float64]

APART = 0.05
"""Least distance of two places, over the size of the body, if none is given."""


@dataclass(frozen=True)
class StressedPlace:
    """A place and its greatest value.

    Attributes:
        value: SI.
        time: When it is reached, s.
        position: m.
        interface: The nearest one; empty if there is none.
        distance: To the point of that interface, m.
    """

    value: float
    time: float
    position: tuple[float, float, float]
    interface: str = ""
    distance: float = float("nan")


@dataclass(frozen=True)
class MostStressed:
    """A table of places, falling; `print` shows it.

    Attributes:
        quantity: What is greatest there.
        unit: Of the values.
        apart: Least distance of two places, m.
        places: The rows.
    """

    quantity: str
    unit: str
    apart: float
    places: tuple[StressedPlace, ...]

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, row: int) -> StressedPlace:
        return self.places[row]

    def __iter__(self) -> Iterator[StressedPlace]:
        return iter(self.places)

    def __str__(self) -> str:
        factor, unit = (1e-6, "MPa") if self.unit == "Pa" else (1.0, self.unit)
        head = f"{'':>3} {unit:>12} {'time (ms)':>11} {'x, y, z (mm)':>29}  nearest interface"
        lines = [f"greatest {self.quantity}, at least {1e3 * self.apart:.3g} mm apart", head]
        for k, p in enumerate(self.places, 1):
            at = " ".join(f"{1e3 * x:9.3f}" for x in p.position)
            near = f"{p.interface}, {1e3 * p.distance:.1f} mm" if p.interface else "-"
            value = f"{factor * p.value:.4f}" if unit == "MPa" else f"{p.value:.5g}"
            lines.append(f"{k:>3} {value:>12} {1e3 * p.time:>11.4f} {at}  {near}")
        return "\n".join(lines)


def most_stressed(
    source: Reduction | Recovery,
    history: Any,
    count: int = 10,
    *,
    what: What = "von Mises",
    apart: float | None = None,
    envelope: Envelope | None = None,
) -> MostStressed:
    """The places with the greatest values over time, none within some distance of a greater one.

    The table does not depend on the partition of the mesh.

    Args:
        source: A reduction, or a `Recovery` with another stress law or other points.
        history: As in `Recovery.envelope`.
        count: Rows of the table; there may be fewer if the body is small.
        what: A scalar quantity.
        apart: Least distance of two places, m; None: 5 % of the body's size.
        envelope: From `recovery.envelope(what, history)`, if it is there already.

    Raises:
        ValueError: As in `Recovery.envelope`; or `count` or `apart` is not positive.

    Note: Collective.
    """
    recovery = recovery_of(source)
    instance("envelope", envelope, (Envelope, type(None)))
    integer("count", count, low=1)
    size = body_size(recovery.space.mesh)
    radius = APART * size if apart is None else number("apart", apart, positive=True, unit="m")
    found = envelope if envelope is not None else recovery.envelope(what, history)
    comm = recovery.space.mesh.comm
    value, time = found.values()
    x = recovery.positions()
    value, rows = value.copy(), []
    interfaces = recovery.reduction.body.interfaces
    for _ in range(int(count)):
        best = comm.allreduce(float(value.max(initial=-np.inf)), MPI.MAX)
        if not np.isfinite(best):
            break
        # of equal values the one with the smallest coordinates, on whichever rank it is
        own = np.flatnonzero(value == best)
        here = [(tuple(np.round(x[k] / size, 9)), tuple(x[k]), float(time[k])) for k in own]
        _, position, when = min(min(part) for part in comm.allgather(here) if part)
        name, distance = _nearest(np.array(position), interfaces)
        rows.append(StressedPlace(best, when, position, name, distance))
        value[np.linalg.norm(x - position, axis=1) < radius] = -np.inf
    return MostStressed(found.quantity.name, found.quantity.unit, radius, tuple(rows))


def _nearest(x: Array, interfaces: tuple[Interface, ...]) -> tuple[str, float]:
    """Name of the interface whose point is nearest, and its distance."""
    distances = [float(np.linalg.norm(x - i.point)) for i in interfaces]
    if not distances:
        return "", float("nan")
    k = int(np.argmin(distances))
    return interfaces[k].name, distances[k]
