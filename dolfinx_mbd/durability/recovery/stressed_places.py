"""Search for the most stressed places of a body with a minimum distance between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from dolfinx_mbd.checks import instance, integer, number
from dolfinx_mbd.durability.recovery.cell_fields import Envelope
from dolfinx_mbd.durability.recovery.stress import Source, What, any_recovery_of
from dolfinx_mbd.durability.recovery.stress import envelope as compute_envelope
from dolfinx_mbd.fem.surface_integrals import body_size
from dolfinx_mbd.html import html_table, short_repr

__all__ = ["APART", "MostStressed", "StressedPlace", "most_stressed", "worst_places"]

Array = NDArray[np.float64]

APART = 0.05  # default minimum distance between two places / size of the body


@dataclass(frozen=True)
class StressedPlace:
    """A place and the largest value over time at this place."""

    value: float  # SI
    time: float  # time at which the value is reached, s
    position: tuple[float, float, float]  # m
    interface: str = ""  # name of the nearest interface; "" without interfaces
    distance: float = float("nan")  # distance to the origin of this interface, m


@dataclass(frozen=True)
class MostStressed:
    """A sequence of places in descending order of their values; `print` shows a table.

    Attributes:
        quantity: Name of the quantity.
        unit: Unit of the values.
        apart: Minimum distance between two places, m.
        places: The places.
    """

    quantity: str
    unit: str
    apart: float
    places: tuple[StressedPlace, ...]

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, row: int) -> StressedPlace:
        return self.places[row]

    def __iter__(self) -> Iterator[StressedPlace]:
        return iter(self.places)

    @property
    def _title(self) -> str:
        """Title of the table, with the quantity and the least distance of the places."""
        return f"greatest {self.quantity}, at least {1e3 * self.apart:.3g} mm apart"

    def _repr_html_(self) -> str:
        """Return the table of the places as HTML, for IPython."""
        factor, unit = (1e-6, "MPa") if self.unit == "Pa" else (1.0, self.unit)
        rows = [
            (
                str(k),
                f"{factor * p.value:.5g}",
                f"{1e3 * p.time:.4f}",
                ", ".join(f"{1e3 * x:.3f}" for x in p.position),
                f"{p.interface}, {1e3 * p.distance:.1f} mm" if p.interface else "",
            )
            for k, p in enumerate(self.places, 1)
        ]
        head = "", unit or "value", "time (ms)", "x, y, z (mm)", "nearest interface"
        return f"<p>{escape(self._title)}</p>{html_table(rows, head)}"

    def __str__(self) -> str:
        factor, unit = (1e-6, "MPa") if self.unit == "Pa" else (1.0, self.unit)
        head = f"{'':>3} {unit:>12} {'time (ms)':>11} {'x, y, z (mm)':>29}  nearest interface"
        lines = [self._title, head]
        for k, p in enumerate(self.places, 1):
            at = " ".join(f"{1e3 * x:9.3f}" for x in p.position)
            near = f"{p.interface}, {1e3 * p.distance:.1f} mm" if p.interface else "-"
            value = f"{factor * p.value:.4f}" if unit == "MPa" else f"{p.value:.5g}"
            lines.append(f"{k:>3} {value:>12} {1e3 * p.time:>11.4f} {at}  {near}")
        return "\n".join(lines)


def most_stressed(
    source: Source,
    history: Any,
    count: int = 10,
    *,
    what: What = "von Mises",
    apart: float | None = None,
    envelope: Envelope | None = None,
) -> MostStressed:
    """Return the places with the largest values over time, at a minimum distance from each other.

    The result does not depend on the partition of the mesh.

    Args:
        source: A reduction or a mesh body, or its recovery; see `recover`.
        history: See `recover`.
        count: Number of places; there may be fewer if the body is small.
        what: A scalar quantity; see `recover`.
        apart: Minimum distance between two places, m. By default 5 % of the size of the body.
        envelope: Result of `envelope(source, history, what)`. By default it is computed.

    Raises:
        InputError: See `envelope`; or `count` or `apart` is not positive.

    Note: Collective.

    Example:
        >>> places = mbd.most_stressed(bar, eta, 3)
        >>> len(places), places[0].interface in ("left", "right")
        (3, True)
    """
    recovery = any_recovery_of(source)
    instance("envelope", envelope, (Envelope, type(None)))
    integer("count", count, low=1)
    size = body_size(recovery.space.mesh)
    radius = APART * size if apart is None else number("apart", apart, positive=True, unit="m")
    if envelope is None:
        envelope = compute_envelope(recovery, history, what)
    values, times = envelope.values()
    places = worst_places(
        recovery.space.mesh.comm,
        recovery.positions(),
        values,
        times,
        recovery.interfaces,
        count=int(count),
        apart=radius,
        size=size,
    )
    return MostStressed(envelope.quantity.name, envelope.quantity.unit, radius, places)


def worst_places(
    comm: Any,
    positions: Array,
    values: Array,
    times: Array,
    interfaces: Iterable[Any],
    *,
    count: int,
    apart: float,
    size: float,
) -> tuple[StressedPlace, ...]:
    """Return the places with the largest values, in descending order.

    Args:
        comm: MPI communicator, or None if all points are on this process.
        positions: Positions of the points of this rank, shape (points, 3), m.
        values: Values at these points, shape (points,); −∞ excludes a point.
        times: Times of these values, shape (points,), s.
        interfaces: Interfaces of the body; each place names the nearest one.
        count: Number of places; there may be fewer.
        apart: Minimum distance between two places, m.
        size: Size of the body, m; it sets the accuracy with which positions are compared.

    Note: Collective over `comm`.
    """
    values, rows = values.copy(), []
    scale = size or 1.0  # a body of one point has no size
    radius = max(apart, np.finfo(float).tiny)  # the selected point itself is always excluded
    for _ in range(count):
        highest = float(values.max(initial=-np.inf))
        best = highest if comm is None else comm.allreduce(highest, MPI.MAX)
        if not np.isfinite(best):
            break
        # among equal values, select the place with the smallest coordinates over all ranks
        equal = np.flatnonzero(values == best)
        keys = [tuple(np.round(positions[k] / scale, 9)) for k in equal]
        pairs = zip(keys, equal, strict=True)
        local = [(key, tuple(positions[k]), float(times[k])) for key, k in pairs]
        parts = [local] if comm is None else comm.allgather(local)
        _, position, time = min(min(part) for part in parts if part)
        distances = [(float(np.linalg.norm(position - i.point)), i.name) for i in interfaces]
        distance, name = min(distances, default=(float("nan"), ""), key=lambda pair: pair[0])
        rows.append(StressedPlace(best, time, position, name, distance))
        values[np.linalg.norm(positions - position, axis=1) < radius] = -np.inf
    return tuple(rows)
