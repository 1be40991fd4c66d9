"""Kernels that let the factor of an outdated iteration matrix rotate with the bodies.

Forces and displacements of a body are in global axes, so that its part of an iteration matrix
changes when it rotates; in axes that rotate with the body, it hardly changes. The gradients of a
joint change only because its two bodies rotate relative to each other.

A row of the table `bodies` describes a body:

    place   index of the first coordinate of its quaternion, or −1 if it does not rotate
    first   its first velocity
    n       number of its velocities
    follow  1 if its forces and displacements are taken to rotating axes, else 0

A row of `joints` describes a joint or driver:

    one, two   bodies of its two frames
    main       that of the two bodies whose gradients are exact
    row, count first constraint and number of constraints

Its axes `axes` (joints, 3, 3) are those of its first frame at the factorization. The rotations of
the bodies since then are `turns` (bodies, 3, 3). The constraints rotate from the axes of the first
body to those of the main one.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.rotations import rotation_rows
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Table,
    mm3,
    mv3,
    put3,
    put33,
    tmv3,
    transposed3,
    vector3,
)

_SMALL = 1e-9  # rotation that is neglected, rad


@kernel
def to_factor(
    bodies: Table,
    joints: Table,
    motions: Table,
    axes: Array,
    orientations: Array,
    q: Array,
    turns: Array,
    x: Array,
) -> None:
    """Rotate right-hand sides x to the axes at the factorization, and compute `turns`.

    Args:
        bodies: Table of the bodies, see the module.
        joints: Table of joints and drivers.
        motions: Motion of each constraint, (nc,).
        axes: Axes of the joints at the factorization.
        orientations: Orientations of the bodies at the factorization, (bodies, 3, 3).
        q: Coordinates.
        turns: Receives the rotations of the bodies since the factorization, (bodies, 3, 3).
        x: Right-hand side of equations of motion and constraints.
    """
    for b in range(bodies.shape[0]):
        place = bodies[b, 0]
        if place >= 0:
            A = rotation_rows(q[place], q[place + 1], q[place + 2], q[place + 3])
            put33(turns[b], 0, 0, mm3(A, transposed3(_matrix3(orientations[b]))))
    _rotate(bodies, joints, motions, axes, turns, True, x)


@kernel
def from_factor(
    bodies: Table, joints: Table, motions: Table, axes: Array, turns: Array, x: Array
) -> None:
    """Rotate a correction x from the axes at the factorization to the present axes."""
    _rotate(bodies, joints, motions, axes, turns, False, x)


@inner_kernel
def _matrix3(A: Array) -> Matrix3:
    """Return an array (3, 3) as a tuple of rows."""
    return vector3(A[0], 0), vector3(A[1], 0), vector3(A[2], 0)


@inner_kernel
def _rotate(
    bodies: Table, joints: Table, motions: Table, axes: Array, turns: Array, back: bool, x: Array
) -> None:
    """Rotate forces or displacements, and constraints, to the axes of the factor or from them."""
    start, R, old = x.shape[0] - motions.shape[0], np.zeros((3, 3)), np.zeros(6)
    for b in range(bodies.shape[0]):
        if bodies[b, 3] == 1:
            X, first = _matrix3(turns[b]), bodies[b, 1]
            put3(x, first, tmv3(X, vector3(x, first)) if back else mv3(X, vector3(x, first)))
    for j in range(joints.shape[0]):
        one, main, row, count = joints[j, 0], joints[j, 2], joints[j, 3], joints[j, 4]
        if one == main:
            continue
        if _relative(axes[j], turns[main], turns[one], R) < _SMALL:
            continue
        for i in range(count):
            old[i] = x[start + row + i]
        # Motions 0 to 2 are displacements and 3 to 5 rotations, which rotate separately
        for i in range(count):
            p, value = motions[row + i], 0.0
            for k in range(count):
                r = motions[row + k]
                if p // 3 == r // 3:
                    value += (R[p % 3, r % 3] if back else R[r % 3, p % 3]) * old[k]
            x[start + row + i] = value


@inner_kernel
def _relative(axes: Array, first: Array, second: Array, out: Array) -> float:
    """Compute QᵀX₁ᵀX₂Q for the axes Q; return the largest difference from the unit matrix."""
    Q = _matrix3(axes)
    left, right = mm3(_matrix3(first), Q), mm3(_matrix3(second), Q)
    put33(out, 0, 0, mm3(transposed3(left), right))
    size = 0.0
    for i in range(3):
        for k in range(3):
            size = max(size, abs(out[i, k] - (1.0 if i == k else 0.0)))
    return size


@kernel
def outdated_gradients(
    bodies: Table,
    joints: Table,
    motions: Table,
    axes: Array,
    turns: Array,
    B: Array,
    x: Array,
    out: Array,
) -> bool:
    """Compute the residual of a correction x that the outdated gradients of joints cause.

    Args:
        bodies: Table of the bodies, see the module.
        joints: Table of joints and drivers.
        motions: Motion of each constraint, (nc,).
        axes: Axes of the joints at the factorization.
        turns: Rotations of the bodies since the factorization, (bodies, 3, 3).
        B: Gradients in the factorized matrix, (nc, nv).
        x: Correction in the axes at the factorization.
        out: Receives the residual.

    Returns:
        Whether any gradient has changed.
    """
    start, changed, unit = B.shape[1], False, np.eye(3)
    R, y = np.zeros((3, 3)), np.zeros(6)
    out[:] = 0.0
    for j in range(joints.shape[0]):
        main, row, count = joints[j, 2], joints[j, 3], joints[j, 4]
        for side in range(2):
            b = joints[j, side]
            for part in range(2):  # displacements, then rotations and elastic coordinates
                follows = part == 1 or bodies[b, 3] == 1
                low = bodies[b, 1] + 3 * part
                high = bodies[b, 1] + bodies[b, 2] if part == 1 else low + 3
                if bodies[b, 2] < 3 or low == high or (b == main and follows):
                    continue
                if _relative(axes[j], turns[main], turns[b] if follows else unit, R) < _SMALL:
                    continue
                changed = True
                for i in range(count):
                    y[i] = 0.0
                    for k in range(low, high):
                        y[i] += B[row + i, k] * x[k]
                for i in range(count):
                    p, force = motions[row + i], 0.0
                    for k in range(count):
                        r = motions[row + k]
                        if p // 3 == r // 3:
                            one = 1.0 if p == r else 0.0
                            out[start + row + i] -= (R[p % 3, r % 3] - one) * y[k]
                            force += (R[r % 3, p % 3] - one) * x[start + row + k]
                    for k in range(low, high):
                        out[k] -= B[row + i, k] * force
    return changed
