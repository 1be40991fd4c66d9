"""Kernels of the frames of a body in a floating frame: where joints and forces meet it.

Frame k stands at r = R + A (x_k + d) with the orientation A exp(θ) A_k.  Displacement and rotation
are quadratic in the elastic coordinates, (d, θ) = D η − ½ ηᵀ B η with ``motion`` D (F, 6, n) and
``bend`` B (F, 6, n, n), the geometric stiffness of a unit wrench at the frame (none: shape (0, 6,
n, n)); so that a force at the frame does the work that makes the body stiffer in tension and softer
in compression.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.kernels.body_table import (
    AXES,
    BEND,
    BENDS,
    FIRST_FRAME,
    FIRST_Q,
    FIRST_V,
    FRAMES,
    MODES,
    MOTION,
    POINTS,
    as_matrix,
    matrix,
)
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import (
    rotation_rows,
    skew3,
    tangent3,
    tangent_derivative3,
    tangent_times,
    turning,
)
from dolfinx_mbd.kernels.small_vectors import (
    Matrix3,
    Vector3,
    add,
    add3,
    cross3,
    mm3,
    mv,
    mv3,
    put3,
    put33,
    scaled3,
    vector3,
)

__all__ = [
    "clear",
    "frame_jacobians",
    "frame_motion",
    "frame_poses",
    "frame_velocities",
    "frame_velocity_tangents",
    "lever_and_turn",
    "orientation",
]

Array = NDArray[np.float64]
Table = NDArray[np.int64]


@inner_kernel
def orientation(row: Table, q: Array) -> Matrix3:
    """Rotation matrix of a body by rows."""
    i = row[FIRST_Q] + 3
    return rotation_rows(q[i], q[i + 1], q[i + 2], q[i + 3])


@inner_kernel
def frame_motion(row: Table, data: Array, q: Array) -> tuple[Array, Array]:
    """(d, θ) of all frames of a body, shape (6F,), and its derivatives to η, shape (6F, n)."""
    n, lines, first = row[MODES], 6 * row[FRAMES], row[FIRST_Q] + 7
    eta = q[first : first + n]
    jacobian = matrix(data, row[MOTION], lines, n)
    motion = mv(jacobian, eta)
    if row[BENDS] > 0:
        change = as_matrix(mv(matrix(data, row[BEND], lines * n, n), eta), lines, n)
        jacobian = jacobian.copy()
        add(jacobian, change, -1.0)
        second = mv(change, eta)
        for c in range(lines):
            motion[c] -= 0.5 * second[c]
    return motion, jacobian


@inner_kernel
def lever_and_turn(row: Table, data: Array, motion: Array, k: int) -> tuple[Vector3, Vector3]:
    """x_k + d and θ of frame k, body components."""
    lever = add3(vector3(data, row[POINTS] + 3 * k), vector3(motion, 6 * k))
    return lever, vector3(motion, 6 * k + 3)


@kernel
def frame_poses(table: Table, data: Array, q: Array, position: Array, rotation: Array) -> None:
    """Positions (nf, 3) and orientations (nf, 3, 3) of the frames of all bodies."""
    for b in range(table.shape[0]):
        row = table[b]
        A = orientation(row, q)
        motion, _ = frame_motion(row, data, q)
        for k in range(row[FRAMES]):
            lever, theta = lever_and_turn(row, data, motion, k)
            w, x, y, z = turning(theta)
            start, frame = row[AXES] + 9 * k, row[FIRST_FRAME] + k
            axes = vector3(data, start), vector3(data, start + 3), vector3(data, start + 6)
            put33(rotation[frame], mm3(mm3(A, rotation_rows(w, x, y, z)), axes))
            put3(position[frame], add3(vector3(q, row[FIRST_Q]), mv3(A, lever)))


@kernel
def frame_jacobians(table: Table, data: Array, q: Array, out: Array) -> None:
    """Velocity and angular velocity of the frames of all bodies, global, per unit of v.

    They are written into the first 6+n columns of ``out`` (nf, 6, ·).
    """
    for b in range(table.shape[0]):
        row = table[b]
        A = orientation(row, q)
        motion, jacobian = frame_motion(row, data, q)
        for k in range(row[FRAMES]):
            lever, theta = lever_and_turn(row, data, motion, k)
            J = out[row[FIRST_FRAME] + k]
            arm = np.array(mm3(A, skew3(lever)))
            factors = np.array((A, mm3(A, tangent3(scaled3(-1.0, theta)))))
            clear(J)
            for r in range(3):
                J[r, r] = 1.0
                for c in range(3):
                    J[r, 3 + c] = -arm[r, c]
                    J[3 + r, 3 + c] = factors[0, r, c]
            add_columns(factors, jacobian[6 * k : 6 * k + 6], J)


@inner_kernel
def clear(out: Array) -> None:
    """Set all entries of a matrix to zero."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0


@inner_kernel
def add_columns(factors: Array, D: Array, out: Array) -> None:
    """Add products (3, 3) times (3, n) of the halves of D (6, n) to ``out`` (6, 6+n), column 6 on.

    ``factors`` (2, 3, 3) are those of displacements and of rotations.
    """
    for h in range(2):
        for r in range(3):
            x, y, z = factors[h, r, 0], factors[h, r, 1], factors[h, r, 2]
            for j in range(D.shape[1]):
                change = x * D[3 * h, j] + y * D[3 * h + 1, j] + z * D[3 * h + 2, j]
                out[3 * h + r, 6 + j] += change


@kernel
def frame_velocities(table: Table, data: Array, q: Array, v: Array, out: Array) -> None:
    """Velocities and angular velocities of the frames of all bodies, global, (nf, 6)."""
    for b in range(table.shape[0]):
        row = table[b]
        A, j = orientation(row, q), row[FIRST_V]
        motion, jacobian = frame_motion(row, data, q)
        rates = mv(jacobian, v[j + 6 : j + 6 + row[MODES]])
        omega = vector3(v, j + 3)
        for k in range(row[FRAMES]):
            lever, theta = lever_and_turn(row, data, motion, k)
            move, turn = vector3(rates, 6 * k), vector3(rates, 6 * k + 3)
            move = mv3(A, add3(cross3(omega, lever), move))
            turn = mv3(A, add3(omega, tangent_times(scaled3(-1.0, theta), turn)))
            frame = out[row[FIRST_FRAME] + k]
            put3(frame[:3], add3(vector3(v, j), move))
            put3(frame[3:], turn)


@kernel
def frame_velocity_tangents(table: Table, data: Array, q: Array, v: Array, out: Array) -> None:
    """Derivatives of the velocities of the frames of all bodies to q (increments), v held.

    They are written into the first 6+n columns of ``out`` (nf, 6, ·).  Their product with v is the
    accelerations of the frames at zero rates of v.
    """
    for b in range(table.shape[0]):
        row = table[b]
        n, j, A = row[MODES], row[FIRST_V], orientation(row, q)
        motion, jacobian = frame_motion(row, data, q)
        omega, rate = vector3(v, j + 3), v[j + 6 : j + 6 + n]
        rates, lines = mv(jacobian, rate), 6 * row[BENDS]
        change = as_matrix(mv(matrix(data, row[BEND], lines * n, n), rate), lines, n)
        for k in range(row[FRAMES]):
            lever, theta = lever_and_turn(row, data, motion, k)
            turn = vector3(rates, 6 * k + 3)
            speed = add3(cross3(omega, lever), vector3(rates, 6 * k))
            back = scaled3(-1.0, theta)
            spin = add3(omega, tangent_times(back, turn))
            D = out[row[FIRST_FRAME] + k]
            clear(D)
            minus = scaled3(-1.0, A[0]), scaled3(-1.0, A[1]), scaled3(-1.0, A[2])
            by_turn = np.array((mm3(minus, skew3(speed)), mm3(minus, skew3(spin))))
            for h in range(2):
                for r in range(3):
                    for c in range(3):
                        D[3 * h + r, 3 + c] = by_turn[h, r, c]
            slope = mm3(minus, tangent_derivative3(back, turn))
            factors = np.array((mm3(A, skew3(omega)), slope))
            add_columns(factors, jacobian[6 * k : 6 * k + 6], D)
            if lines > 0:
                factors = np.array((minus, mm3(minus, tangent3(back))))
                add_columns(factors, change[6 * k : 6 * k + 6], D)
