"""What the loads of all ports share in the assembly: derivatives, and rates of states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.blocks import Blocks, FrameTerms, Index
from dolfinx_mbd.dynamics.assembly.frames import Frames


class LoadDerivatives(NamedTuple):
    """Matrices to which loads add their derivatives.

    `second` contains the derivatives of the wrenches on frames with respect to poses, and `rates`
    those with respect to velocities, from which terms of K and C follow. A force along the axis of
    a joint adds to the `multipliers` (entries, 6) instead.
    """

    second: FrameTerms
    rates: FrameTerms
    multipliers: Array
    K: Blocks
    C: Blocks

    def add_pair(self, ends: Index, D: Array, E: Array) -> None:
        """Add the derivatives (12, 12) with respect to poses and velocities of two frames."""
        self.second.add(D[None], ends, ends)
        if E.any():
            self.rates.add(E[None], ends, ends)


class StatesOfLoads:
    """States of loads, and their rates at the point of evaluation of the frames."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self._bodies = frames, frames.system.state_bodies
        self.forces: dict[str, tuple[int, Array]] = {}  # body and force on it, by load

    def body(self, load: str) -> tuple[int, ...]:
        """Return the index of the body with the states of a load as a tuple, empty without them."""
        return self._bodies.get(load, ())

    def values(self, load: str) -> Array:
        """Return the states of a load, shape (m,)."""
        for k in self.body(load):
            return self._frames.views[k].v
        return np.zeros(0)

    def mass(self, body: int) -> float:
        """Return the factor of the equations of the states, kg."""
        return self._frames.system.bodies[body].typical_mass

    def set_rates(self, load: str, rates: Array) -> None:
        """Store the rates of the states of a load as forces on the body of the states."""
        for k in self.body(load):
            self.forces[load] = k, self.mass(k) * rates

    def subtract_forces(self) -> None:
        """Subtract the forces on the bodies of the states from the residual."""
        for k, force in self.forces.values():
            self._frames.views[k].rows[:] -= force
            self._frames.views[k].scale[:] += np.abs(force)


def add_outer(
    frames: Frames,
    target: Blocks,
    column: Array,
    rows_of: Iterable[int],
    row: Array,
    columns_of: Iterable[int],
) -> None:
    """Add column ⊗ row, nonzero only at the bodies `rows_of` and `columns_of`."""
    vs = frames.system.v_slices
    for k in set(rows_of):
        for m in set(columns_of):
            if vs[k].start == vs[k].stop or vs[m].start == vs[m].stop:
                continue
            target.add(k, m, np.outer(column[vs[k]], row[vs[m]]))
