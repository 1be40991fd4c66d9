"""Relative motion of a bore and a journal, and the wrenches of an oil film on their frames.

The first frame belongs to the bore and the second to the journal; both have their z axis along the
axis of the bearing. In the axes of the bore, d is the position of the journal's frame, t the slope
of its axis (x and y components of its unit vector), and e = d − d_z t the point where the axis
pierces the plane z = 0 of the bore. The motion y has ten entries:

    e_x, e_y, t_x, t_y, ė_x, ė_y, ṫ_x, ṫ_y, Ω, d_z

Ω is the rotation of the journal relative to the bore about z. All rates are relative to the bore.

The film loads g = (F_x, F_y, G_x, G_y, T) are the force F = ∫ f dz on the journal, its first moment
G = ∫ z f dz about the plane z = 0, and the drag torque T that resists Ω. The force f dz acts on the
journal at its axis and, reversed, on the bore at its axis. Shear by the pressure gradient adds the
couple −½ ∫ (e + z t) × f dz on each body, so that the wrenches are in balance and their power is
the power that the film dissipates.
"""

from __future__ import annotations

import numpy as np

from dolfinx_mbd.kernels.compilation import inner_kernel, kernel
from dolfinx_mbd.kernels.films.fields import (
    AXIAL,
    DRAG,
    E_X,
    E_X_RATE,
    E_Y,
    F_X,
    F_Y,
    G_X,
    G_Y,
    SPIN,
    T_X,
    T_X_RATE,
    T_Y,
)
from dolfinx_mbd.kernels.small_vectors import (
    Array,
    Matrix3,
    Vector3,
    add3,
    cross3,
    mv3,
    scaled3,
    tmv3,
    vector3,
)


@inner_kernel
def _rows(Q: Array) -> Matrix3:
    return (
        (Q[0, 0], Q[0, 1], Q[0, 2]),
        (Q[1, 0], Q[1, 1], Q[1, 2]),
        (Q[2, 0], Q[2, 1], Q[2, 2]),
    )


@inner_kernel
def _unit(k: int) -> Vector3:
    """Return the unit vector along axis k."""
    return (1.0 if k == 0 else 0.0), (1.0 if k == 1 else 0.0), (1.0 if k == 2 else 0.0)


@inner_kernel
def _relative_motion(
    p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array
) -> tuple[Vector3, Vector3, Vector3, Vector3, Vector3]:
    """Return d, a, ḋ, ω₂ − ω₁ and ω₁ in the axes of the bore; a is the axis of the journal."""
    Q = _rows(Q1)
    between = p2[0] - p1[0], p2[1] - p1[1], p2[2] - p1[2]
    v = u2[0] - u1[0], u2[1] - u1[1], u2[2] - u1[2]
    w = u2[3] - u1[3], u2[4] - u1[4], u2[5] - u1[5]
    d, omega = tmv3(Q, between), tmv3(Q, vector3(u1, 3))
    a = tmv3(Q, (Q2[0, 2], Q2[1, 2], Q2[2, 2]))
    if a[2] < 0.0:  # the axes may be opposite
        a = scaled3(-1.0, a)
    rate = add3(tmv3(Q, v), scaled3(-1.0, cross3(omega, d)))
    return d, a, rate, tmv3(Q, w), omega


@kernel
def film_motion(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Array:
    """Return the motion y (10,) of a journal in its bore from poses and velocities."""
    d, a, rate, w, _ = _relative_motion(p1, Q1, u1, p2, Q2, u2)
    turn = cross3(w, a)
    y = np.empty(10)
    for i in range(2):
        y[i] = d[i] - d[2] * a[i]
        y[T_X + i] = a[i]
        y[E_X_RATE + i] = rate[i] - rate[2] * a[i] - d[2] * turn[i]
        y[T_X_RATE + i] = turn[i]
    y[SPIN], y[AXIAL] = w[2], d[2]
    return y


@kernel
def film_wrenches(Q1: Array, y: Array, g: Array) -> Array:
    """Return the wrenches (12,) on bore and journal in global components from the film loads."""
    tx, ty, dz = y[T_X], y[T_Y], y[AXIAL]
    couple = 0.5 * (y[E_X] * g[F_Y] - y[E_Y] * g[F_X] + tx * g[G_Y] - ty * g[G_X])
    gx, gy = g[G_X] - dz * g[F_X], g[G_Y] - dz * g[F_Y]
    Q = _rows(Q1)
    force = mv3(Q, (g[F_X], g[F_Y], 0.0))
    bore = mv3(Q, (g[G_Y], -g[G_X], g[DRAG] - couple))
    journal = mv3(Q, (-gy, gx, tx * gy - ty * gx - g[DRAG] - couple))
    out = np.empty(12)
    for i in range(3):
        out[i], out[3 + i], out[6 + i], out[9 + i] = -force[i], bore[i], force[i], journal[i]
    return out


@inner_kernel
def _motion_changes(
    p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array, Y: Array
) -> None:
    """Write ∂y/∂poses and ∂y/∂velocities in the axes of the bore, (2, 10, 12)."""
    d, a, rate, w, omega = _relative_motion(p1, Q1, u1, p2, Q2, u2)
    turn = cross3(w, a)
    for column in range(12):
        end, part, k = column // 6, (column // 3) % 2, column % 3
        sign = 2.0 * end - 1.0
        unit = _unit(k)
        for kind in range(2):
            dd, da, dr, dw = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
            if kind == 0 and part == 0:
                dd = scaled3(sign, unit)
                dr = scaled3(-sign, cross3(omega, unit))
            elif kind == 0:
                da = scaled3(sign, cross3(unit, a))
                if end == 0:
                    dd, dr, dw = cross3(d, unit), cross3(rate, unit), cross3(w, unit)
            elif part == 0:
                dr = scaled3(sign, unit)
            else:
                dw = scaled3(sign, unit)
                if end == 0:
                    dr = cross3(d, unit)
            dturn = add3(cross3(dw, a), cross3(w, da))
            for i in range(2):
                Y[kind, i, column] = dd[i] - dd[2] * a[i] - d[2] * da[i]
                Y[kind, T_X + i, column] = da[i]
                Y[kind, E_X_RATE + i, column] = (
                    dr[i] - dr[2] * a[i] - rate[2] * da[i] - dd[2] * turn[i] - d[2] * dturn[i]
                )
                Y[kind, T_X_RATE + i, column] = dturn[i]
            Y[kind, SPIN, column], Y[kind, AXIAL, column] = dw[2], dd[2]


@kernel
def film_motion_changes(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Array:
    """Return ∂y/∂poses and ∂y/∂velocities in global components, (2, 10, 12)."""
    Y = np.zeros((2, 10, 12))
    _motion_changes(p1, Q1, u1, p2, Q2, u2, Y)
    Q = _rows(Q1)
    for kind in range(2):
        for r in range(10):
            for c in range(4):
                x = mv3(Q, (Y[kind, r, 3 * c], Y[kind, r, 3 * c + 1], Y[kind, r, 3 * c + 2]))
                for i in range(3):
                    Y[kind, r, 3 * c + i] = x[i]
    return Y


@inner_kernel
def _wrench_change(y: Array, g: Array, dy: Array, dg: Array, out: Array) -> None:
    """Write the change (12,) of the wrenches in the axes of the bore for changes of y and g."""
    tx, ty, dz = y[T_X], y[T_Y], y[AXIAL]
    couple = 0.5 * (
        dy[E_X] * g[F_Y] - dy[E_Y] * g[F_X] + dy[T_X] * g[G_Y] - dy[T_Y] * g[G_X]
        + y[E_X] * dg[F_Y] - y[E_Y] * dg[F_X] + tx * dg[G_Y] - ty * dg[G_X]
    )  # fmt: skip
    gx, gy = g[G_X] - dz * g[F_X], g[G_Y] - dz * g[F_Y]
    hx = dg[G_X] - dz * dg[F_X] - dy[AXIAL] * g[F_X]
    hy = dg[G_Y] - dz * dg[F_Y] - dy[AXIAL] * g[F_Y]
    out[0], out[1], out[2] = -dg[F_X], -dg[F_Y], 0.0
    out[3], out[4], out[5] = dg[G_Y], -dg[G_X], dg[DRAG] - couple
    out[6], out[7], out[8] = dg[F_X], dg[F_Y], 0.0
    out[9], out[10] = -hy, hx
    out[11] = dy[T_X] * gy - dy[T_Y] * gx + tx * hy - ty * hx - dg[DRAG] - couple


@inner_kernel
def _rotate(Q: Matrix3, D: Array) -> None:
    """Replace D (12, 12) by Q D Qᵀ for each 3×3 block."""
    for r in range(12):
        for c in range(4):
            x = mv3(Q, (D[r, 3 * c], D[r, 3 * c + 1], D[r, 3 * c + 2]))
            D[r, 3 * c], D[r, 3 * c + 1], D[r, 3 * c + 2] = x
    for c in range(12):
        for r in range(4):
            x = mv3(Q, (D[3 * r, c], D[3 * r + 1, c], D[3 * r + 2, c]))
            D[3 * r, c], D[3 * r + 1, c], D[3 * r + 2, c] = x


@kernel
def film_tangents(
    p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array, g: Array, dg: Array
) -> Array:
    """Return the derivatives of the wrenches with respect to poses and velocities, (2, 12, 12).

    `g` (5,) are the film loads and `dg` (5, 9) their derivatives with respect to the first nine
    entries of y.
    """
    y = film_motion(p1, Q1, u1, p2, Q2, u2)
    Y, D = np.zeros((2, 10, 12)), np.zeros((2, 12, 12))
    _motion_changes(p1, Q1, u1, p2, Q2, u2, Y)
    Q = _rows(Q1)
    change, loads, column = np.empty(10), np.empty(5), np.empty(12)
    for kind in range(2):
        for c in range(12):
            for i in range(10):
                change[i] = Y[kind, i, c]
            for i in range(5):
                loads[i] = 0.0
                for k in range(9):
                    loads[i] += dg[i, k] * change[k]
            _wrench_change(y, g, change, loads, column)
            for r in range(12):
                D[kind, r, c] = column[r]
    W = film_wrenches(Q1, y, g)
    for block in range(4):  # the wrenches rotate with the bore
        w = tmv3(Q, vector3(W, 3 * block))
        for k in range(3):
            turned = cross3(_unit(k), w)
            for i in range(3):
                D[0, 3 * block + i, 3 + k] += turned[i]
    _rotate(Q, D[0])
    _rotate(Q, D[1])
    return D
