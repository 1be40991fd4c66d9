"""Evaluation of all floating-frame bodies of a system with one call of a kernel.

The arrays of the bodies are in one buffer; bodies with the same reduced body share their arrays.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels import floating_frame as kernels
from dolfinx_mbd.kernels import frames as frame_kernels
from dolfinx_mbd.kernels.body_table import (
    COLUMNS,
    FIRST_FRAME,
    FIRST_Q,
    FIRST_V,
    MASS,
    NUM_MODES,
    TANGENTS,
    array_sizes,
)
from dolfinx_mbd.kernels.matrices import add_bodies
from dolfinx_mbd.mechanism.floating_body import FloatingBody, body_tangents
from dolfinx_mbd.mechanism.protocol import Body
from dolfinx_mbd.mechanism.system import System

Table = NDArray[np.int64]

#: Methods of a body that the kernels replace.
_METHODS = (
    "increment",
    "poses",
    "residual",
    "tangent",
    "frame_jacobians",
    "frame_velocities",
    "frame_velocity_tangents",
    "frame_bias",
)


class FloatingBodies:
    """Table and buffer (`dolfinx_mbd.kernels.body_table`) of the bodies with indices `members`.

    `origins` contains the indices of the first coordinates of their origins.
    """

    def __init__(self, system: System) -> None:
        self.members = [k for k, body in enumerate(system.bodies) if _uses_kernels(body)]
        parts: list[Array] = []
        positions: dict[bytes, int] = {}
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
                if key not in positions:
                    positions[key] = size
                    parts.append(array)
                    size += count
                row[column] = positions[key]
            rows.append(row)
        self.table = np.array(rows, dtype=np.int64).reshape(len(rows), COLUMNS)
        self.data = np.concatenate([np.zeros(0), *parts])
        self._sizes = [6 + int(n) for n in self.table[:, NUM_MODES]]
        self._counts = np.array(self._sizes, dtype=np.int64)
        self._first = self.table[:, FIRST_V].copy()
        self.origins = self.table[:, FIRST_Q].copy()
        entries = [0, *(3 * size * size for size in self._sizes)]
        self.table[:, TANGENTS] = np.cumsum(entries)[:-1]

    def subset(self, members: Iterable[int]) -> FloatingBodies:
        """Return those of the bodies that have the indices `members`; tangents are excluded."""
        part = copy.copy(self)
        chosen = set(members)
        rows = [row for row, k in enumerate(self.members) if k in chosen]
        part.members = [self.members[row] for row in rows]
        part.table = np.array([self.table[row] for row in rows], np.int64).reshape(-1, COLUMNS)
        return part

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """Move the coordinates by an increment."""
        kernels.increment(self.table, q, delta, out)

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Compute the poses of all frames of the bodies."""
        frame_kernels.frame_poses(self.table, self.data, q, position, rotation)

    def velocities(self, q: Array, v: Array, out: Array) -> None:
        """Compute the velocities of all frames of the bodies."""
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
        """Compute the residuals of all bodies and the magnitudes of their terms."""
        kernels.residual(self.table, self.data, q, v, a, gravity, wrenches, out, scale)

    def tangents(
        self, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the derivatives K, C and M of the residual of each body; see `body_tangents`."""
        flat = self._flat_tangents(q, v, a, gravity, wrenches)
        for start, size in zip(self.table[:, TANGENTS], self._sizes, strict=True):
            K, C, M = flat[start : start + 3 * size * size].reshape(3, size, size)
            yield K, C, M

    def add_tangents(
        self, point: tuple[Array, Array, Array, Array, Array], K: Array, C: Array, M: Array
    ) -> None:
        """Add the derivatives at (q, v, a, gravity, wrenches) to the matrices of the system."""
        add_bodies(self._flat_tangents(*point), self._counts, self._first, K, C, M)

    def _flat_tangents(self, *point: Array) -> Array:
        """Return the derivatives of all residuals in one array; see `body_tangents`."""
        return body_tangents(self.table, self.data, *point)

    def jacobians(self, q: Array, out: Array) -> None:
        """Write the Jacobians of all frames into the first columns of `out` (frames, 6, ·)."""
        frame_kernels.frame_jacobians(self.table, self.data, q, out)

    def velocity_tangents(self, q: Array, v: Array, out: Array) -> None:
        """Write the derivatives of all frame velocities with respect to q into `out`."""
        frame_kernels.frame_velocity_tangents(self.table, self.data, q, v, out)


def _uses_kernels(body: Body) -> bool:
    """Return whether a body is a `FloatingBody` that overrides no method in `_METHODS`."""
    return isinstance(body, FloatingBody) and all(
        getattr(type(body), name) is getattr(FloatingBody, name) for name in _METHODS
    )
