"""Kernels for derivatives of the equations of motion with respect to parameters, at many states.

The inertia and elastic forces of a body are linear in its mass, moments and matrices. Their
derivatives are therefore the forces of a body whose data are the derivatives of the data. All other
forces are wrenches at the frames.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import (
    FIRST_FRAME,
    FIRST_V,
    MASS,
    NUM_FRAMES,
    NUM_MODES,
    NUM_SPINS,
)
from dolfinx_mbd.kernels.compilation import kernel
from dolfinx_mbd.kernels.floating_frame import (
    add_spin_rows,
    add_wrench_rows,
    elastic_forces,
    elastic_weights,
    frame_forces,
    inertia_integrals,
)
from dolfinx_mbd.kernels.frames import frame_poses, orientation
from dolfinx_mbd.kernels.joints import constraint_rows
from dolfinx_mbd.kernels.rotations import skew3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Table,
    mm3,
    put3,
    scaled3,
    sum3,
    sum33,
    tmv3,
    vector3,
)


@kernel
def inertia_forces(
    table: Table, data: Array, q: Array, v: Array, a: Array, gravity: Array, out: Array
) -> None:
    """Add inertia, gravity and elastic forces at the states (S, ·) to `out` (S, nv).

    Masses and matrices may have any sign, since they may be derivatives.
    """
    scale = np.zeros(v.shape[1])  # magnitudes of the forces, which are not used
    for s in range(q.shape[0]):
        for b in range(table.shape[0]):
            row = table[b]
            j, A = row[FIRST_V], orientation(row, q[s])
            omega, alpha = vector3(v[s], j + 3), vector3(a[s], j + 3)
            total = sum3(vector3(a[s], j), scaled3(-1.0, vector3(gravity, 0)))
            acceleration = tmv3(A, total)
            _, P, moments, Q = inertia_integrals(row, data, q[s], v[s], a[s])
            w = skew3(omega)
            W = sum33(skew3(alpha), mm3(w, w))
            m = data[row[MASS]]
            force, moment = frame_forces(m, A, acceleration, omega, W, moments, Q)
            put3(out[s], j, sum3(vector3(out[s], j), force))
            put3(out[s], j + 3, sum3(vector3(out[s], j + 3), moment))
            if row[NUM_MODES] > 0:
                weights = elastic_weights(W, w)
                inertia, elastic, damping, _ = elastic_forces(
                    row, data, q[s], v[s], a[s], P, weights, acceleration
                )
                for k in range(row[NUM_MODES]):
                    out[s, j + 6 + k] += inertia[k] + elastic[k] + damping[k]
            if row[NUM_SPINS] > 0:
                add_spin_rows(row, data, q[s], v[s], a[s], out[s], scale)


@kernel
def joint_wrenches(
    table: Table,
    data: Array,
    position: Array,
    rotation: Array,
    q: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    signs: Array,
    rows: NDArray[np.int64],
    offsets: Array,
    lam: Array,
    wrenches: Array,
    values: Array,
) -> None:
    """Add the wrenches of the joints at the states (S, ·) to `wrenches` (S, frames, 6).

    `position` (frames, 3) and `rotation` (frames, 3, 3) contain the poses of the fixed frames.
    `values` (S, nc) receives the constraints. See `constraint_rows` for the other arguments, which
    have one row per state.
    """
    spread = np.zeros((first.shape[0], 6))
    for s in range(q.shape[0]):
        frame_poses(table, data, q[s], position, rotation)
        constraint_rows(
            position,
            rotation,
            first,
            second,
            turns[s],
            signs,
            rows,
            offsets[s],
            lam[s],
            spread,
            wrenches[s],
            values[s],
        )


@kernel
def wrench_forces(table: Table, data: Array, q: Array, wrenches: Array, out: Array) -> None:
    """Subtract the forces of wrenches (S, frames, 6) at the states (S, nq) from `out` (S, nv)."""
    scale = np.zeros(out.shape[1])  # not used
    for s in range(q.shape[0]):
        for b in range(table.shape[0]):
            row, size = table[b], 0.0
            for k in range(row[NUM_FRAMES]):
                for c in range(6):
                    size = max(size, abs(wrenches[s, row[FIRST_FRAME] + k, c]))
            if size > 0.0:
                A = orientation(row, q[s])
                add_wrench_rows(row, data, q[s], A, wrenches[s], out[s], scale)
