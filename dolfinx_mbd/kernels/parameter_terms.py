"""Kernels for derivatives of the equations of motion with respect to parameters, at many states.

The inertia and elastic forces of a body are linear in its mass, moments and matrices. Their
derivatives are therefore the forces of a body whose data are the derivatives of the data. All other
forces are wrenches at the frames.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import (
    DAMPING,
    FIRST_MOMENTS,
    FIRST_Q,
    FIRST_V,
    MASS,
    MASS_MATRIX,
    MODES,
    SPINS,
    STIFFNESS,
    matrix,
)
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.floating_frame import (
    add_spin_rows,
    add_wrench_rows,
    elastic_weights,
    inertia_integrals,
    squares3,
)
from dolfinx_mbd.kernels.frames import frame_poses, orientation
from dolfinx_mbd.kernels.joints import constraint_rows
from dolfinx_mbd.kernels.rotations import axial3, axial_product3, skew3
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Table,
    Vector3,
    add3,
    cross3,
    dot3,
    mm3,
    mv3,
    plus3,
    put3,
    scaled3,
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
    scale = np.zeros(v.shape[1])
    for s in range(q.shape[0]):
        for b in range(table.shape[0]):
            row = table[b]
            j, A = row[FIRST_V], orientation(row, q[s])
            omega, alpha = vector3(v[s], j + 3), vector3(a[s], j + 3)
            total = add3(vector3(a[s], j), scaled3(-1.0, vector3(gravity, 0)))
            acceleration = tmv3(A, total)
            P, (s0, s1, s2), Q = inertia_integrals(row, data, q[s], v[s], a[s])
            Q0, Q1, Q2 = squares3(Q)
            w = skew3(omega)
            W = plus3(skew3(alpha), mm3(w, w))
            force = add3(scaled3(data[row[MASS]], acceleration), add3(mv3(W, s0), s2))
            force = mv3(A, add3(force, scaled3(2.0, cross3(omega, s1))))
            turn = add3(cross3(s0, acceleration), axial_product3(Q0, W))
            turn = add3(turn, scaled3(2.0, axial_product3(Q1, w)))
            turn = add3(turn, axial3(Q2))
            put3(out[s], j, add3(vector3(out[s], j), force))
            put3(out[s], j + 3, add3(vector3(out[s], j + 3), turn))
            if row[MODES] > 0:
                weights = elastic_weights(W, w)
                _add_elastic_rows(row, data, q[s], v[s], a[s], P, weights, acceleration, out[s])
            if row[SPINS] > 0:
                add_spin_rows(row, data, q[s], v[s], a[s], out[s], scale)


@inner_kernel
def _add_elastic_rows(
    row: Table,
    data: Array,
    q: Array,
    v: Array,
    a: Array,
    P: Array,
    weights: Array,
    acceleration: Vector3,
    out: Array,
) -> None:
    """Add the forces on the elastic coordinates."""
    n, i, j, S = row[MODES], row[FIRST_Q] + 7, row[FIRST_V] + 6, row[FIRST_MOMENTS]
    contraction = np.zeros(27)
    for c in range(9):
        contraction[3 * c], contraction[3 * c + 1] = weights[c, 0], weights[c, 1]
    moving = P @ contraction
    push = matrix(data, row[MASS_MATRIX], n, n) @ a[j : j + n]
    elastic = matrix(data, row[STIFFNESS], n, n) @ q[i : i + n]
    damping = matrix(data, row[DAMPING], n, n) @ v[j : j + n]
    for k in range(n):
        inertia = moving[k + 1] + dot3(vector3(data, S + 3 * k + 3), acceleration) + push[k]
        out[j + k] += inertia + elastic[k] + damping[k]


@kernel
def external_forces(
    table: Table,
    data: Array,
    position: Array,
    rotation: Array,
    q: Array,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    turns: Array,
    form: NDArray[np.int64],
    rows: NDArray[np.int64],
    offsets: Array,
    lam: Array,
    wrenches: Array,
    out: Array,
    values: Array,
) -> None:
    """Subtract the forces of wrenches and joints at the states (S, ·) from `out` (S, nv).

    `position` (nf, 3) and `rotation` (nf, 3, 3) contain the poses of the fixed frames. `wrenches`
    (S, nf, 6) are the wrenches of loads; those of the joints are added. `values` (S, nc) receives
    the constraints. See `constraint_rows` for the other arguments, which have one row per state.
    """
    scale, spread = np.zeros(out.shape[1]), np.zeros((first.shape[0], 6))
    for s in range(q.shape[0]):
        frame_poses(table, data, q[s], position, rotation)
        constraint_rows(
            position,
            rotation,
            first,
            second,
            turns[s],
            form,
            rows,
            offsets[s],
            lam[s],
            spread,
            wrenches[s],
            values[s],
        )
        for b in range(table.shape[0]):
            row = table[b]
            A = orientation(row, q[s])
            add_wrench_rows(row, data, q[s], A, wrenches[s], out[s], scale)
