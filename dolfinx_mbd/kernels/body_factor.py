"""Solution of the equations of a step with the inverses of the matrices of bodies.

For the equations, see `dolfinx_mbd.dynamics.stepping.body_factor`. A row of the table of groups of
bodies has the first entry of a group in the list of unknowns, the number g of its unknowns, the
number l of its motions, the first port, the number of ports at frames, which come first, the number
of ports, and the start of its matrices in their buffer: T⁻¹ (g, g), J (l, g), T⁻¹ Jᵀ (g, l) and W
(l, l). The motions of a group are those of
frames (6 each), translations of bodies (3 each), and coefficients of the displacement of bores.

A connection is a coefficient of the gap of an oil film or a constraint. A port is its action on a
body. A row of their table has the columns

    CONNECTION   the connection; films come first
    MOTION       first of the six motions of the frame, or −1 if the frame does not change the gap
    SIDE         0 for the first frame, 1 for the second
    PLACE        place of the quaternion of the body in q
    TRANSLATION  first motion of the translation of the body, or −1
    SURFACE      motion that is a coefficient of the displacement of a bore, or −1

Each port has two gradients: one by which its forces act, with 6 entries for the frame, and one by
which motions change it, with 3 further entries for the translation; see `gap_gradients`. Vectors,
gradients and Jacobians are in the axes of the bodies.
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

CONNECTION, MOTION, SIDE, PLACE, TRANSLATION, SURFACE = range(6)


@inner_kernel
def _axes(q: Array, place: int) -> Matrix3:
    """Return the rotation matrix of a body whose quaternion is at a place of q."""
    return rotation_rows(q[place], q[place + 1], q[place + 2], q[place + 3])


@inner_kernel
def _put_rotated(out: Array, A: Matrix3, factor: float, values: Array, first: int) -> None:
    """Write vectors of global components, from `values[first]` on, in the axes A of a body."""
    for k in range(0, len(out), 3):
        put3(out, k, scaled3(factor, tmv3(A, vector3(values, first + k))))


@kernel
def write_gradients(
    ports: Table,
    q: Array,
    rows: Table,
    joints: Array,
    scale: float,
    films: Array,
    film_changes: Array,
    g: Array,
    changes: Array,
) -> None:
    """Write the gradients of all ports at the present poses.

    Args:
        ports: Table of the ports.
        q: Coordinates, (nq,).
        rows: Entry and motion of each constraint, (nc, 2).
        joints: Gradients of all entries and motions, (entries, 6, 12).
        scale: Factor of the gradients of joints.
        films: Gradients of the coefficients of gaps, (coefficients, 12).
        film_changes: Gradients for their changes, (coefficients, 18).
        g: Gradients of the ports by which forces act, (ports, 6), a result.
        changes: Gradients of the ports by which motions change them, (ports, 9), a result.
    """
    first = films.shape[0]
    for p in range(ports.shape[0]):
        c, motion, side, place, _, _ = ports[p]
        if motion < 0:
            continue
        A = _axes(q, place)
        if c < first:
            _put_rotated(g[p], A, 1.0, films[c], 6 * side)
            _put_rotated(changes[p], A, 1.0, film_changes[c], 9 * side)
        else:
            gradient = joints[rows[c - first, 0], rows[c - first, 1]]
            _put_rotated(g[p], A, scale, gradient, 6 * side)
            changes[p, :6] = g[p]


@kernel
def connect_bodies(
    groups: Table, matrices: Array, ports: Table, g: Array, changes: Array, H: Array
) -> None:
    """Add the parts of the matrix of the connections that depend on the gradients of frames.

    The other part, W of the coefficients of the displacements of bores, is constant.

    Args:
        groups: Table of the groups.
        matrices: Buffer of their matrices.
        ports: Table of the ports.
        g: Gradients of the ports by which forces act, (ports, 6).
        changes: Gradients of the ports by which motions change them, (ports, 9).
        H: Matrix (connections, connections).
    """
    for b in range(groups.shape[0]):
        _, size, lines, first, moved, count, start = groups[b]
        start += size * size + 2 * lines * size  # W follows T⁻¹, J and T⁻¹ Jᵀ
        W, y = matrix(matrices, start, lines, lines), np.empty(lines)
        last, moved_last = first + count, first + moved
        for i in range(first, moved_last):
            c, motion, translation = ports[i, CONNECTION], ports[i, MOTION], ports[i, TRANSLATION]
            # y: product of the gradient of the port i and W
            a0, a1, a2 = vector3(changes[i], 0)
            a3, a4, a5 = vector3(changes[i], 3)
            r0, r1, r2 = W[motion], W[motion + 1], W[motion + 2]
            r3, r4, r5 = W[motion + 3], W[motion + 4], W[motion + 5]
            for k in range(lines):
                y[k] = a0 * r0[k] + a1 * r1[k] + a2 * r2[k] + a3 * r3[k] + a4 * r4[k] + a5 * r5[k]
            if translation >= 0:
                a0, a1, a2 = vector3(changes[i], 6)
                r0, r1, r2 = W[translation], W[translation + 1], W[translation + 2]
                for k in range(lines):
                    y[k] += a0 * r0[k] + a1 * r1[k] + a2 * r2[k]
            for j in range(first, moved_last):
                part, total = ports[j, MOTION], 0.0
                for k in range(6):
                    total += g[j, k] * y[part + k]
                H[c, ports[j, CONNECTION]] += total
            for j in range(first, last):
                if ports[j, SURFACE] >= 0:
                    H[c, ports[j, CONNECTION]] += y[ports[j, SURFACE]]
        for i in range(first, last):
            c, surface = ports[i, CONNECTION], ports[i, SURFACE]
            if surface >= 0:
                for j in range(first, moved_last):
                    part, total = ports[j, MOTION], 0.0
                    for k in range(6):
                        total += g[j, k] * W[surface, part + k]
                    H[c, ports[j, CONNECTION]] += total


@inner_kernel
def _port_value(ports: Table, p: int, gradients: Array, y: Array) -> float:
    """Return the value of the port p for the motions y, without the translation of its body."""
    motion, surface, total = ports[p, MOTION], ports[p, SURFACE], 0.0
    if surface >= 0:
        total += y[surface]
    if motion >= 0:
        for k in range(6):
            total += gradients[p, k] * y[motion + k]
    return total


@kernel
def reduce_to_connections(
    groups: Table,
    matrices: Array,
    ports: Table,
    unknowns: NDArray[np.int64],
    bodies: Table,
    q: Array,
    changes: Array,
    x: Array,
    motion: Array,
    values: Array,
) -> None:
    """Compute the motion of the bodies without connections, and the values of these.

    Args:
        groups: Table of the groups.
        matrices: Buffer of their matrices.
        ports: Table of the ports.
        unknowns: Unknowns of the groups in sequence, (nv,).
        bodies: First unknown and place of the quaternion in q of each body with rotating axes.
        q: Coordinates, (nq,).
        changes: Gradients by which motions change the ports, (ports, 9).
        x: Right-hand side (r, r_B), (nv + nc,); r is rotated to the axes of the bodies.
        motion: Motion T⁻¹ r in the order of `unknowns`, (nv,), a result.
        values: L T⁻¹ r of the films, then B T⁻¹ r − r_B, (connections,), a result.
    """
    n = unknowns.shape[0]
    joints = len(x) - n  # number of constraints
    first_joint = len(values) - joints
    for b in range(bodies.shape[0]):
        i, place = bodies[b]
        put3(x, i, tmv3(_axes(q, place), vector3(x, i)))
    values[:first_joint] = 0.0
    for c in range(joints):
        values[first_joint + c] = -x[n + c]
    for k in range(n):
        motion[k] = x[unknowns[k]]
    for b in range(groups.shape[0]):
        low, size, lines, first, _, count, start = groups[b]
        part = product(matrix(matrices, start, size, size), motion, low)
        motion[low : low + size] = part
        u = product(matrix(matrices, start + size * size, lines, size), part, 0)
        for p in range(first, first + count):
            total, line = _port_value(ports, p, changes, u), ports[p, TRANSLATION]
            if line >= 0:
                for k in range(3):
                    total += changes[p, 6 + k] * u[line + k]
            values[ports[p, CONNECTION]] += total


@kernel
def expand_from_connections(
    groups: Table,
    matrices: Array,
    ports: Table,
    unknowns: NDArray[np.int64],
    bodies: Table,
    q: Array,
    g: Array,
    motion: Array,
    forces: Array,
    x: Array,
) -> None:
    """Write the solution x (nv + nc,) for the forces of films and multipliers (connections,).

    For the arguments see `reduce_to_connections`; g (ports, 6) are the gradients by which forces
    act.
    """
    n, c = unknowns.shape[0], len(x) - unknowns.shape[0]
    for b in range(groups.shape[0]):
        low, size, lines, first, _, count, start = groups[b]
        loads = np.zeros(lines)
        for p in range(first, first + count):
            connection, line, _, _, _, surface = ports[p]
            factor = forces[connection]
            if surface >= 0:
                loads[surface] += factor
            if line >= 0:
                for k in range(6):
                    loads[line + k] += factor * g[p, k]
        N = matrix(matrices, start + size * size + lines * size, size, lines)
        change = product(N, loads, 0)
        for k in range(size):
            x[unknowns[low + k]] = motion[low + k] - change[k]
    x[n:] = forces[len(forces) - c :]
    for b in range(bodies.shape[0]):
        i, place = bodies[b]
        put3(x, i, mv3(_axes(q, place), vector3(x, i)))
