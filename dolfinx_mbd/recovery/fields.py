"""A quantity at some instants, and its envelope over time, as functions on the mesh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dolfinx import fem
from dolfinx.io import VTXWriter
from numpy.typing import NDArray

from dolfinx_mbd.body.quantities import Quantity
from dolfinx_mbd.body.stress_modes import values_over_time
from dolfinx_mbd.errors import InputError
from dolfinx_mbd.fem.fields import output_folder
from dolfinx_mbd.recovery.field_modes import Points

__all__ = ["Envelope", "Fields", "check_writable"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fields:
    """A sequence of a quantity at some instants; ``fields[k]`` is a new `fem.Function`."""

    points: Points
    modes: Array  # linear quantities for each mode, (ingredients, np, n)
    quantity: Quantity  # defined by the linear quantities
    time: Array  # (nt,), s
    eta: Array  # (nt, n)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, row: int) -> fem.Function:
        return self.at_row(row)

    def __iter__(self) -> Iterator[fem.Function]:
        return (self.at_row(k) for k in range(len(self)))

    def new(self) -> fem.Function:
        """Return a function for the quantity, zero. Collective."""
        return fem.Function(self.points.space(self.quantity.shape), name=self.quantity.name)

    def values(self, row: int) -> Array:
        """Return the values at the points of this rank at an instant, shape (np, *value shape)."""
        return values_over_time(self.modes, self.eta[row][None], self.quantity)[0]

    def at_row(self, row: int, out: fem.Function | None = None) -> fem.Function:
        """Return the quantity at an instant, in `out` (from `new`) if given. Collective."""
        if not -len(self) <= row < len(self):
            raise IndexError(f"there are {len(self)} instants, got {row}")
        return self.points.fill(self.new() if out is None else out, self.values(row))


@dataclass(frozen=True, eq=False)
class Envelope:
    """The extreme value of a scalar over time at each point, and when it is first reached."""

    quantity: Quantity
    value: fem.Function  # on a discontinuous space
    time: fem.Function  # on the same space, s
    points: Points

    def values(self) -> tuple[Array, Array]:
        """Return values and times at the points of this rank, shape (np,) each."""
        return self.value.x.array[self.points.dofs], self.time.x.array[self.points.dofs]

    def write(self, path: str | Path) -> None:
        """Write both functions as VTX for ParaView.

        Args:
            path: A name that ends with ``.bp``; missing directories are created.

        Raises:
            InputError: The name is invalid, or the values are at quadrature points.
            OSError: The file cannot be written.

        Note: Collective.
        """
        check_writable(self.points)
        comm = self.points.mesh.comm
        with VTXWriter(comm, str(output_folder(comm, path)), [self.value, self.time]) as writer:
            writer.write(0.0)


def check_writable(points: Points) -> None:
    """Raise an error for quadrature points, whose values cannot be written."""
    if points.where == "quadrature":
        raise InputError(
            "values at quadrature points have no shape between them that a file could hold; write "
            "those of where='nodes' or 'cells'",
            argument="where",
        )
