"""All bodies in floating frames of a system at once: one call of a kernel instead of one a body.

The bodies' arrays lie in one buffer, with a table of where they begin; bodies that are reduced from
the same part share theirs.  The kernels go over the table and call those of a single body.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels import floating_frame as kernels
from dolfinx_mbd.kernels import frames as frame_kernels
from dolfinx_mbd.kernels.compilation import kernel
from dolfinx_mbd.multibody.model.floating_body import FloatingBody
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
        table: A row for each: modes n, frames F, cases of spin and of bend, first coordinate,
            velocity and frame in the system, and where its arrays begin in the buffer.
        data: The buffer.
        members: Numbers of the bodies in the system.
    """

    def __init__(self, system: SystemData) -> None:
        self.members = [k for k, body in enumerate(system.bodies) if _plain(body)]
        parts: list[Array] = []
        places: dict[bytes, int] = {}
        size = 0
        rows = []
        for k in self.members:
            body = system.bodies[k]
            assert isinstance(body, FloatingBody)
            motion, bend = body._motion
            row = [
                body.num_elastic,
                len(body.frame_names),
                len(body._spin),
                len(bend),
                system.q_slices[k].start,
                system.v_slices[k].start,
                system.frame_slices[k].start,
            ]
            mass, *inertia = body._inertia
            arrays = (np.array([mass]), *inertia, *body._matrices, body._spin)
            for array in (*arrays, body._points, body._axes, motion, bend, body._pairs):
                key = array.tobytes()
                if key not in places:
                    places[key] = size
                    parts.append(array.ravel())
                    size += array.size
                row.append(places[key])
            rows.append(row)
        self.table = np.array(rows, dtype=np.int64).reshape(len(rows), 19)
        self.data = np.concatenate([np.zeros(0), *parts])

    def increment(self, q: Array, delta: Array, out: Array) -> None:
        """q moved by an increment, as that of each body."""
        increment(self.table, q, delta, out)

    def poses(self, q: Array, position: Array, rotation: Array) -> None:
        """Poses of all frames of the bodies."""
        poses(self.table, self.data, q, position, rotation)

    def velocities(self, q: Array, v: Array, out: Array) -> None:
        """Velocities of all frames of the bodies."""
        velocities(self.table, self.data, q, v, out)

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
        residual(self.table, self.data, q, v, a, gravity, wrenches, out, scale)

    def tangents(
        self, q: Array, v: Array, a: Array, gravity: Array, wrenches: Array
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Derivatives of the rows of each body to q (increments), v and a, in the bodies' order."""
        sizes = [6 + int(n) for n in self.table[:, 0]]
        flat = np.empty(3 * sum(size * size for size in sizes))
        tangents(self.table, self.data, q, v, a, gravity, wrenches, flat)
        start = 0
        for size in sizes:
            stop = start + 3 * size * size
            K, C, M = flat[start:stop].reshape(3, size, size)
            yield K, C, M
            start = stop

    def jacobians(self, q: Array, out: Array) -> None:
        """Jacobians of all frames of the bodies, into the first columns of ``out`` (nf, 6, ·)."""
        jacobians(self.table, self.data, q, out)


def _plain(body: Body) -> bool:
    """Whether a body is in a floating frame and does all that the kernels do as its class does."""
    return isinstance(body, FloatingBody) and all(
        getattr(type(body), name) is getattr(FloatingBody, name) for name in _FUNCTIONS
    )


@kernel
def _coordinates(row: Table) -> tuple[slice, slice, slice]:
    """Slices of a body's coordinates, velocities and frames."""
    n = row[0]
    return (
        slice(row[4], row[4] + 7 + n),
        slice(row[5], row[5] + 6 + n),
        slice(row[6], row[6] + row[1]),
    )


@kernel
def _inertia(row: Table, data: Array):  # type: ignore[no-untyped-def]
    """m, S, H_rows, M, C, K, spin of a body, as views of the buffer."""
    n, cases = row[0], row[2]
    n1, square = n + 1, n * n
    return (
        data[row[7]],
        data[row[8] : row[8] + 3 * n1].reshape((n1, 3)),
        data[row[9] : row[9] + 9 * n1 * n1].reshape((9 * n1, n1)),
        data[row[10] : row[10] + square].reshape((n, n)),
        data[row[11] : row[11] + square].reshape((n, n)),
        data[row[12] : row[12] + square].reshape((n, n)),
        data[row[13] : row[13] + cases * square].reshape((cases, n, n)),
    )


@kernel
def _frames(row: Table, data: Array):  # type: ignore[no-untyped-def]
    """Points, motion and bend of the frames of a body, as views of the buffer."""
    n, F, bent = row[0], row[1], row[3]
    return (
        data[row[14] : row[14] + 3 * F].reshape((F, 3)),
        data[row[16] : row[16] + 6 * F * n].reshape((F, 6, n)),
        data[row[17] : row[17] + 6 * bent * n * n].reshape((bent, 6, n, n)),
    )


@kernel
def increment(table: Table, q: Array, delta: Array, out: Array) -> None:
    """See :meth:`FloatingBodies.increment`."""
    for k in range(table.shape[0]):
        own, rates, _ = _coordinates(table[k])
        kernels.increment(q[own], delta[rates], out[own])


@kernel
def poses(table: Table, data: Array, q: Array, position: Array, rotation: Array) -> None:
    """See :meth:`FloatingBodies.poses`."""
    for k in range(table.shape[0]):
        own, _, frames = _coordinates(table[k])
        points, motion, bend = _frames(table[k], data)
        F, start = table[k, 1], table[k, 15]
        axes = data[start : start + 9 * F].reshape((F, 3, 3))
        frame_kernels.frame_poses(
            points, axes, motion, bend, q[own], position[frames], rotation[frames]
        )


@kernel
def velocities(table: Table, data: Array, q: Array, v: Array, out: Array) -> None:
    """See :meth:`FloatingBodies.velocities`."""
    for k in range(table.shape[0]):
        own, rates, frames = _coordinates(table[k])
        points, motion, bend = _frames(table[k], data)
        frame_kernels.frame_velocities(points, motion, bend, q[own], v[rates], out[frames])


@kernel
def residual(
    table: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
    out: Array,
    scale: Array,
) -> None:
    """See :meth:`FloatingBodies.residual`."""
    for k in range(table.shape[0]):
        own, rates, frames = _coordinates(table[k])
        m, S, H_rows, M, C, K, spin = _inertia(table[k], data)
        points, motion, bend = _frames(table[k], data)
        kernels.body_residual(
            m, S, H_rows, M, C, K, spin, points, motion, bend,
            q[own], v[rates], a[rates], gravity, wrenches[frames], out[rates], scale[rates],
        )  # fmt: skip


@kernel
def tangents(
    table: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    gravity: Array,
    wrenches: Array,
    flat: Array,
) -> None:
    """See :meth:`FloatingBodies.tangents`; one after the other, row by row."""
    start = 0
    for k in range(table.shape[0]):
        own, rates, frames = _coordinates(table[k])
        m, S, H_rows, M, C, K, spin = _inertia(table[k], data)
        points, motion, bend = _frames(table[k], data)
        n, pairs = table[k, 0], table[k, 18]
        H_pairs = data[pairs : pairs + 9 * (n + 1) ** 2].reshape(((n + 1) ** 2, 9))
        parts = kernels.body_tangent(
            m, S, H_rows, H_pairs, M, C, K, spin, points, motion, bend,
            q[own], v[rates], a[rates], gravity, wrenches[frames],
        )  # fmt: skip
        for part in parts:
            flat[start : start + part.size] = part.ravel()
            start += part.size


@kernel
def jacobians(table: Table, data: Array, q: Array, out: Array) -> None:
    """See :meth:`FloatingBodies.jacobians`."""
    for k in range(table.shape[0]):
        own, rates, frames = _coordinates(table[k])
        points, motion, bend = _frames(table[k], data)
        width = 6 + table[k, 0]
        out[frames, :, :width] = frame_kernels.frame_jacobians(points, motion, bend, q[own])
