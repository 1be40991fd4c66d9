"""All bodies in floating frames of a system at once: one call of a kernel instead of one a body.

The bodies' arrays lie in one buffer, with a table of where they begin; bodies that are reduced from
the same part share theirs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels import floating_frame as kernels
from dolfinx_mbd.kernels import frames as frame_kernels
from dolfinx_mbd.kernels.body_table import (
    COLUMNS,
    FIRST_FRAME,
    FIRST_Q,
    MASS,
    MODES,
    TANGENTS,
    array_sizes,
)
from dolfinx_mbd.multibody.model.floating_body import FloatingBody, body_tangents
from dolfinx_mbd.multibody.model.protocol import Body
from dolfinx_mbd.multibody.model.system import SystemData

__all__ = ["FloatingBodies"]

Array = NDArray[np.float64]
Table = NDArray[np.int64]

#: What the kernels do for a body.
_FUNCTIONS = (
    "increment",
    "poses",
    "residual",
    "tangent",
    "frame_jacobians",
    "frame_velocities",
)


class FloatingBodies:
    """The bodies in floating frames of a system, for the kernels.

    Attributes:
        table: A row for each, see `dolfinx_mbd.kernels.body_table`.
        data: The buffer.
        members: Numbers of the bodies in the system.
    """

    def __init__(self, system: SystemData) -> None:
        self.members = [k for k, body in enumerate(system.bodies) if _plain(body)]
        parts: list[Array] = []
        places: dict[bytes, int] = {}
        rows, size = [], 0
        for k in self.members:
            body = system.bodies[k]
            assert isinstance(body, FloatingBody)
            row = body._table[0].copy()
            slices = system.q_slices[k], system.v_slices[k], system.frame_slices[k]
            row[FIRST_Q : FIRST_FRAME + 1] = [part.start for part in slices]
            for column, count in enumerate(array_sizes(row), start=MASS):
                array = body._data[row[column] : row[column] + count]
                key = array.tobytes()
                if key not in places:
                    places[key] = size
                    parts.append(array)
                    size += count
                row[column] = places[key]
            rows.append(row)
        self.table = np.array(rows, dtype=np.int64).reshape(len(rows), COLUMNS)
        self.data = np.concatenate([np.zeros(0), *parts])
        self._sizes = [6 + int(n) for n in self.table[:, MODES]]
        entries = [0, *(3 * size * size for size in self._sizes)]
        self.table[:, TANGENTS] = np.cumsum(entries)[:-1]

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """q moved by an increment, as that of each body."""
        kernels.increment(self.table, q, delta, out)

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Poses of all frames of the bodies."""
        frame_kernels.frame_poses(self.table, self.data, q, position, rotation)

    def velocities(self, q: Array, v: Array, out: Array) -> None:
        """Velocities of all frames of the bodies."""
        frame_kernels.frame_velocities(self.table, self.data, q, v, out)

    def residual(
        self,
        q: Array,
        v: Array,
        a: Array,
        gravity: Array,
        wrenches: Array,
        out: Array,
        scale: Array,
    ) -> None:
        """Rows of all the bodies, and the magnitudes of their terms."""
        kernels.residual(self.table, self.data, q, v, a, gravity, wrenches, out, scale)

    def tangents(
        self, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Derivatives of the rows of each body to q (increments), v and a, in the bodies' order."""
        flat = body_tangents(self.table, self.data, q, v, a, gravity, wrenches)
        start = 0
        for size in self._sizes:
            stop = start + 3 * size * size
            K, C, M = flat[start:stop].reshape(3, size, size)
            yield K, C, M
            start = stop

    def jacobians(self, q: Array, out: Array) -> None:
        """Jacobians of all frames of the bodies, into the first columns of ``out`` (nf, 6, ·)."""
        frame_kernels.frame_jacobians(self.table, self.data, q, out)


def _plain(body: Body) -> bool:
    """Whether a body is in a floating frame and does all that the kernels do as its class does."""
    return isinstance(body, FloatingBody) and all(
        getattr(type(body), name) is getattr(FloatingBody, name) for name in _FUNCTIONS
    )
