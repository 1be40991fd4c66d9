"""Kernels for the frames at which joints and loads act on a body in a floating frame.

Frame k has the position r = R + A (x_k + d) and the orientation A exp(θ) A_k. Displacement and
rotation are quadratic in the elastic coordinates, (d, θ) = D η − ½ ηᵀ B η with `motion` D (F, 6, n)
and `bend` B (F, 6, n, n), which may be empty. B is the geometric stiffness of unit wrenches at the
frame: forces at the frame stiffen the body in tension and soften it in compression.
"""

from __future__ import annotations

from dolfinx_mbd.kernels.body_table import (
    AXES,
    BEND,
    FIRST_FRAME,
    FIRST_Q,
    FIRST_V,
    MOTION,
    NUM_BENDS,
    NUM_FRAMES,
    NUM_MODES,
    POINTS,
    matrix,
)
from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import (
    quaternion_exp,
    rotation_rows,
    skew3,
    tangent3,
    tangent_derivative3,
    tangent_times,
)
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Table,
    Vector3,
    add_column3,
    cross3,
    mm3,
    mv3,
    put3,
    put33,
    scaled3,
    scaled33,
    sum3,
    vector3,
)
from dolfinx_mbd.kernels.vector_operations import product


@inner_kernel
def orientation(row: Table, q: Array) -> Matrix3:
    """Return the rotation matrix of a body."""
    i = row[FIRST_Q] + 3
    return rotation_rows(q[i], q[i + 1], q[i + 2], q[i + 3])


@inner_kernel
def frame_motion(row: Table, data: Array, q: Array) -> tuple[Array, Array]:
    """Return (d, θ) of all frames of a body (6F,) and its derivative with respect to η (6F, n).

    The derivative is D − B η.
    """
    n, lines, first = row[NUM_MODES], 6 * row[NUM_FRAMES], row[FIRST_Q] + 7
    jacobian = matrix(data, row[MOTION], lines, n)
    motion = product(jacobian, q, first)
    if row[NUM_BENDS] > 0:
        # first B η, then the derivative D − B η
        change = matrix(product(matrix(data, row[BEND], lines * n, n), q, first), 0, lines, n)
        second = product(change, q, first)
        for c in range(lines):
            motion[c] -= 0.5 * second[c]
            for k in range(n):
                change[c, k] = jacobian[c, k] - change[c, k]
        jacobian = change
    return motion, jacobian


@inner_kernel
def lever_and_rotation(row: Table, data: Array, motion: Array, k: int) -> tuple[Vector3, Vector3]:
    """Return x_k + d and θ of frame k in body components."""
    lever = sum3(vector3(data, row[POINTS] + 3 * k), vector3(motion, 6 * k))
    return lever, vector3(motion, 6 * k + 3)


@kernel
def frame_poses(table: Table, data: Array, q: Array, position: Array, rotation: Array) -> None:
    """Compute positions (frames, 3) and orientations (frames, 3, 3) of the frames of all bodies."""
    for b in range(table.shape[0]):
        row = table[b]
        A = orientation(row, q)
        motion, _ = frame_motion(row, data, q)
        for k in range(row[NUM_FRAMES]):
            lever, theta = lever_and_rotation(row, data, motion, k)
            w, x, y, z = quaternion_exp(theta)
            start, frame = row[AXES] + 9 * k, row[FIRST_FRAME] + k
            axes = vector3(data, start), vector3(data, start + 3), vector3(data, start + 6)
            put33(rotation[frame], 0, 0, mm3(mm3(A, rotation_rows(w, x, y, z)), axes))
            put3(position[frame], 0, sum3(vector3(q, row[FIRST_Q]), mv3(A, lever)))


@kernel
def frame_jacobians(table: Table, data: Array, q: Array, out: Array) -> None:
    """Compute the derivatives of all `frame_velocities` with respect to v.

    They are written into the first 6+n columns of `out` (frames, 6, ·).
    """
    for b in range(table.shape[0]):
        row = table[b]
        A = orientation(row, q)
        motion, jacobian = frame_motion(row, data, q)
        for k in range(row[NUM_FRAMES]):
            lever, theta = lever_and_rotation(row, data, motion, k)
            back = scaled3(-1.0, theta)
            J = out[row[FIRST_FRAME] + k]
            clear(J)
            J[0, 0] = J[1, 1] = J[2, 2] = 1.0
            put33(J, 0, 3, mm3(A, skew3(scaled3(-1.0, lever))))
            put33(J, 3, 3, A)
            _add_columns(A, jacobian, 6 * k, J, 0)
            _add_columns(mm3(A, tangent3(back)), jacobian, 6 * k + 3, J, 3)


@inner_kernel
def clear(out: Array) -> None:
    """Set all entries of a matrix to zero."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0


@inner_kernel
def _add_columns(A: Matrix3, D: Array, line: int, out: Array, r: int) -> None:
    """Add A times three rows of D (·, n), the first one `line`, to `out` at row r, column 6."""
    for j in range(D.shape[1]):
        add_column3(out, r, 6 + j, mv3(A, (D[line, j], D[line + 1, j], D[line + 2, j])))


@kernel
def frame_velocities(table: Table, data: Array, q: Array, v: Array, out: Array) -> None:
    """Compute velocities and angular velocities (frames, 6) of all frames in global components."""
    for b in range(table.shape[0]):
        row = table[b]
        A, j = orientation(row, q), row[FIRST_V]
        motion, jacobian = frame_motion(row, data, q)
        rates = product(jacobian, v, j + 6)
        omega = vector3(v, j + 3)
        for k in range(row[NUM_FRAMES]):
            lever, theta = lever_and_rotation(row, data, motion, k)
            move, turn = vector3(rates, 6 * k), vector3(rates, 6 * k + 3)
            move = mv3(A, sum3(cross3(omega, lever), move))
            turn = mv3(A, sum3(omega, tangent_times(scaled3(-1.0, theta), turn)))
            frame = out[row[FIRST_FRAME] + k]
            put3(frame, 0, sum3(vector3(v, j), move))
            put3(frame, 3, turn)


@kernel
def frame_velocity_tangents(table: Table, data: Array, q: Array, v: Array, out: Array) -> None:
    """Compute the derivatives of all `frame_velocities` with respect to increments of q.

    They are written into the first 6+n columns of `out` (frames, 6, ·). Their products with v are
    the accelerations of the frames for v̇ = 0.
    """
    for b in range(table.shape[0]):
        row = table[b]
        n, j, A = row[NUM_MODES], row[FIRST_V], orientation(row, q)
        motion, jacobian = frame_motion(row, data, q)
        omega = vector3(v, j + 3)
        rates, lines = product(jacobian, v, j + 6), 6 * row[NUM_BENDS]
        bend = product(matrix(data, row[BEND], lines * n, n), v, j + 6)
        change = matrix(bend, 0, lines, n)  # B η̇
        minus, by_spin = scaled33(-1.0, A), mm3(A, skew3(omega))
        for k in range(row[NUM_FRAMES]):
            lever, theta = lever_and_rotation(row, data, motion, k)
            turn, back = vector3(rates, 6 * k + 3), scaled3(-1.0, theta)
            speed = sum3(cross3(omega, lever), vector3(rates, 6 * k))
            D = out[row[FIRST_FRAME] + k]
            clear(D)
            put33(D, 0, 3, mm3(minus, skew3(speed)))
            put33(D, 3, 3, mm3(minus, skew3(sum3(omega, tangent_times(back, turn)))))
            _add_columns(by_spin, jacobian, 6 * k, D, 0)
            _add_columns(mm3(minus, tangent_derivative3(back, turn)), jacobian, 6 * k + 3, D, 3)
            if lines > 0:
                _add_columns(minus, change, 6 * k, D, 0)
                _add_columns(mm3(minus, tangent3(back)), change, 6 * k + 3, D, 3)
