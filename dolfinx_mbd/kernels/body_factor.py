"""Solution of the equations of a step with the inverses of the matrices of bodies.

For the equations, see `dolfinx_mbd.dynamics.stepping.body_factor`. A row of the table of groups of
bodies has the first entry of a group in the list of unknowns, the number g of its unknowns, the
number F of its frames with joints, the first port and the number of ports, and the start of its
matrices in their buffer: T⁻¹ (g, g), J (6F, g), T⁻¹ Jᵀ (g, 6F) and W (6F, 6F).

A port is the action of a constraint on a frame. A row of their table has the constraint, the frame
in its group, the first entry of the gradient (0 or 6), and the place of the quaternion of the body
in q. Vectors, gradients and Jacobians are in the axes of the bodies.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import matrix
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Table,
    mv3,
    put3,
    scaled3,
    tmv3,
    vector3,
)
from dolfinx_mbd.kernels.vector_operations import product


@inner_kernel
def _axes(q: Array, place: int) -> Matrix3:
    """Return the rotation matrix of a body whose quaternion is at a place of q."""
    return rotation_rows(q[place], q[place + 1], q[place + 2], q[place + 3])


@kernel
def connect_bodies(
    groups: Table,
    matrices: Array,
    ports: Table,
    q: Array,
    rows: Table,
    gradients: Array,
    scale: float,
    g: Array,
    H: Array,
) -> None:
    """Write the matrix of the multipliers, H (nc, nc), for gradients at the present poses.

    Args:
        groups: Table of the groups.
        matrices: Buffer of their matrices.
        ports: Table of the ports.
        q: Coordinates, (nq,).
        rows: Entry and motion of each constraint, (nc, 2).
        gradients: Gradients of all entries and motions, (entries, 6, 12).
        scale: Factor of the gradients.
        g: Gradients (ports, 6) in the axes of the bodies, a result.
        H: Result, which must be zero.
    """
    for p in range(ports.shape[0]):
        c, _, side, place = ports[p]
        A, row = _axes(q, place), gradients[rows[c, 0], rows[c, 1]]
        put3(g[p], 0, scaled3(scale, tmv3(A, vector3(row, side))))
        put3(g[p], 3, scaled3(scale, tmv3(A, vector3(row, side + 3))))
    for b in range(groups.shape[0]):
        _, size, frames, first, count, start = groups[b]
        lines = 6 * frames  # rows of the Jacobians of the group
        start += size * size + 2 * lines * size  # W follows T⁻¹, J and T⁻¹ Jᵀ
        W, y = matrix(matrices, start, lines, lines), np.empty(lines)
        for i in range(first, first + count):
            c, line = ports[i, 0], 6 * ports[i, 1]
            a0, a1, a2, a3, a4, a5 = g[i]
            r0, r1, r2 = W[line], W[line + 1], W[line + 2]
            r3, r4, r5 = W[line + 3], W[line + 4], W[line + 5]
            # y = gᵢ W, where gᵢ is the gradient of the port i
            for k in range(lines):
                y[k] = a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k] + a4 * r4[k] + a5 * r5[k]
            for j in range(first, first + count):
                part, total = 6 * ports[j, 1], 0.0
                for k in range(6):
                    total += g[j, k] * y[part + k]
                H[c, ports[j, 0]] += total


@kernel
def reduce_to_joints(
    groups: Table,
    matrices: Array,
    ports: Table,
    unknowns: NDArray[np.int64],
    bodies: Table,
    q: Array,
    g: Array,
    x: Array,
    motion: Array,
    values: Array,
) -> None:
    """Compute the motion T⁻¹ r of the bodies without joints, and the values B T⁻¹ r − r_B.

    Args:
        groups: Table of the groups.
        matrices: Buffer of their matrices.
        ports: Table of the ports.
        unknowns: Unknowns of the groups in sequence, (nv,).
        bodies: First unknown and place of the quaternion in q of each body.
        q: Coordinates, (nq,).
        g: Gradients (ports, 6), see `connect_bodies`.
        x: Right-hand side (r, r_B), (nv + nc,); r is rotated to the axes of the bodies.
        motion: Motion in the order of `unknowns`, (nv,), a result.
        values: Right-hand side of the multipliers, (nc,), a result.
    """
    n = unknowns.shape[0]
    for b in range(bodies.shape[0]):
        i, place = bodies[b]
        put3(x, i, tmv3(_axes(q, place), vector3(x, i)))
    for c in range(values.shape[0]):
        values[c] = -x[n + c]
    for k in range(n):
        motion[k] = x[unknowns[k]]
    for b in range(groups.shape[0]):
        low, size, frames, first, count, start = groups[b]
        part = product(matrix(matrices, start, size, size), motion, low)
        motion[low : low + size] = part
        u = product(matrix(matrices, start + size * size, 6 * frames, size), part, 0)
        for p in range(first, first + count):
            line, total = 6 * ports[p, 1], 0.0
            for k in range(6):
                total += g[p, k] * u[line + k]
            values[ports[p, 0]] += total


@kernel
def expand_from_joints(
    groups: Table,
    matrices: Array,
    ports: Table,
    unknowns: NDArray[np.int64],
    bodies: Table,
    q: Array,
    g: Array,
    motion: Array,
    multipliers: Array,
    x: Array,
) -> None:
    """Write the solution x (nv + nc,) for the multipliers; see `reduce_to_joints`."""
    n = unknowns.shape[0]
    for b in range(groups.shape[0]):
        low, size, frames, first, count, start = groups[b]
        lines = 6 * frames
        forces = np.zeros(lines)
        for p in range(first, first + count):
            line, factor = 6 * ports[p, 1], multipliers[ports[p, 0]]
            for k in range(6):
                forces[line + k] += factor * g[p, k]
        N = matrix(matrices, start + size * size + lines * size, size, lines)
        change = product(N, forces, 0)
        for k in range(size):
            x[unknowns[low + k]] = motion[low + k] - change[k]
    for c in range(multipliers.shape[0]):
        x[n + c] = multipliers[c]
    for b in range(bodies.shape[0]):
        i, place = bodies[b]
        put3(x, i, mv3(_axes(q, place), vector3(x, i)))
