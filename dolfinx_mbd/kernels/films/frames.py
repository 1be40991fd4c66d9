"""Motion of a journal in its bore, and the law of force and moment of an oil film.

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
the power that the film dissipates. `relation` computes the wrenches on both frames.
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
from dolfinx_mbd.kernels.relation import (
    Motion,
    motion_tangents,
    pair_tangents,
    pair_wrenches,
    relative_motion,
)
from dolfinx_mbd.kernels.rotations import exp_rotation
from dolfinx_mbd.kernels.small_vectors import Array, Vector3, cross3, sum3, vector3


@inner_kernel
def _unit(k: int) -> Vector3:
    """Return the unit vector along axis k."""
    return (1.0 if k == 0 else 0.0), (1.0 if k == 1 else 0.0), (1.0 if k == 2 else 0.0)


@inner_kernel
def _axis(R: Array) -> Vector3:
    """Return the axis of the journal; its frame may be opposite to that of the bore."""
    sign = -1.0 if R[2, 2] < 0.0 else 1.0
    return sign * R[0, 2], sign * R[1, 2], sign * R[2, 2]


@inner_kernel
def _journal(motion: Motion) -> Array:
    """Return the motion y (10,)."""
    d, R, v, omega = motion
    a = _axis(R)
    a_rate, y = cross3(vector3(omega, 0), a), np.empty(10)
    for i in range(2):
        y[E_X + i] = d[i] - d[2] * a[i]
        y[T_X + i] = a[i]
        y[E_X_RATE + i] = v[i] - v[2] * a[i] - d[2] * a_rate[i]
        y[T_X_RATE + i] = a_rate[i]
    y[SPIN], y[AXIAL] = omega[2], d[2]
    return y


@inner_kernel
def _journal_slopes(motion: Motion) -> Array:
    """Return the derivatives (10, 12) of y with respect to d, θ, v and ω."""
    d, R, v, omega = motion
    a, w, Y = _axis(R), vector3(omega, 0), np.zeros((10, 12))
    a_rate, zero = cross3(w, a), (0.0, 0.0, 0.0)
    for c in range(12):
        part, unit = c // 3, _unit(c % 3)
        dd = unit if part == 0 else zero
        da = cross3(unit, a) if part == 1 else zero
        dv = unit if part == 2 else zero
        dw = unit if part == 3 else zero
        da_rate = sum3(cross3(dw, a), cross3(w, da))
        for i in range(2):
            Y[E_X + i, c] = dd[i] - dd[2] * a[i] - d[2] * da[i]
            Y[T_X + i, c] = da[i]
            Y[E_X_RATE + i, c] = dv[i] - dv[2] * a[i] - v[2] * da[i]
            Y[E_X_RATE + i, c] -= dd[2] * a_rate[i] + d[2] * da_rate[i]
            Y[T_X_RATE + i, c] = da_rate[i]
        Y[SPIN, c], Y[AXIAL, c] = dw[2], dd[2]
    return Y


@inner_kernel
def _law(y: Array, g: Array) -> Array:
    """Return force and moment (6,) on the journal from the film loads and the couple of shear."""
    tx, ty, dz = y[T_X], y[T_Y], y[AXIAL]
    couple = 0.5 * (y[E_X] * g[F_Y] - y[E_Y] * g[F_X] + tx * g[G_Y] - ty * g[G_X])
    gx, gy = g[G_X] - dz * g[F_X], g[G_Y] - dz * g[F_Y]  # about the frame of the journal
    return np.array([g[F_X], g[F_Y], 0.0, -gy, gx, tx * gy - ty * gx - g[DRAG] - couple])


@inner_kernel
def _law_change(y: Array, g: Array, dy: Array, dg: Array) -> Array:
    """Return the change (6,) of force and moment for changes of y and g."""
    tx, ty, dz = y[T_X], y[T_Y], y[AXIAL]
    couple = 0.5 * (
        dy[E_X] * g[F_Y] - dy[E_Y] * g[F_X] + dy[T_X] * g[G_Y] - dy[T_Y] * g[G_X]
        + y[E_X] * dg[F_Y] - y[E_Y] * dg[F_X] + tx * dg[G_Y] - ty * dg[G_X]
    )  # fmt: skip
    gx, gy = g[G_X] - dz * g[F_X], g[G_Y] - dz * g[F_Y]
    hx = dg[G_X] - dz * dg[F_X] - dy[AXIAL] * g[F_X]  # changes of gx and gy
    hy = dg[G_Y] - dz * dg[F_Y] - dy[AXIAL] * g[F_Y]
    twist = dy[T_X] * gy - dy[T_Y] * gx + tx * hy - ty * hx - dg[DRAG] - couple
    return np.array([dg[F_X], dg[F_Y], 0.0, -hy, hx, twist])


@kernel
def film_motion(p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array) -> Array:
    """Return the motion y (10,) of a journal in its bore from poses and velocities."""
    return _journal(relative_motion(p1, Q1, u1, p2, Q2, u2))


@kernel
def film_wrenches(Q1: Array, y: Array, g: Array) -> Array:
    """Return the wrenches (12,) on bore and journal in global components from the film loads."""
    dz = y[AXIAL]
    d = np.array([y[E_X] + dz * y[T_X], y[E_Y] + dz * y[T_Y], dz])
    return pair_wrenches(Q1, d, _law(y, g))


@kernel
def gap_gradients(
    p1: Array,
    Q1: Array,
    u1: Array,
    p2: Array,
    Q2: Array,
    u2: Array,
    delay: float,
    by_journal: Array,
    gradients: Array,
    changes: Array,
) -> None:
    """Write wrenches of forces on the coefficients of a gap, and derivatives of the coefficients.

    `gradients` are the wrenches of unit forces on the coefficients. Without the couple of shear and
    for a small slope of the journal, they are the derivatives of the coefficients by the poses.

    The rates of the coefficients depend on the poses also through their derivatives. `changes` are
    therefore the derivatives after the time `delay` (s) at constant velocities. They have nine
    columns for each frame. With the derivatives e by position and m by rotation after that time,
    and the rotation R of the frame in that time, these are Rᵀ e and Rᵀ m, the derivatives in axes
    that rotate with the frame, and e − Rᵀ e for translations of the body, which are in global axes.

    Args:
        p1: Position of the frame of the bore, (3,), m.
        Q1: Its axes, (3, 3).
        u1: Its velocity and angular velocity, (6,).
        p2: Position of the frame of the journal, (3,), m.
        Q2: Its axes, (3, 3).
        u2: Its velocity and angular velocity, (6,).
        delay: Time, s.
        by_journal: Derivatives of the coefficients by e and t, (m, 4).
        gradients: Present wrenches, (m, 12), a result.
        changes: Derivatives after the time `delay`, (m, 18), a result.
    """
    y, unit, later = film_motion(p1, Q1, u1, p2, Q2, u2), np.empty((4, 12)), np.empty((4, 18))
    for k in range(4):
        load = np.zeros(5)
        load[k] = 1.0
        unit[k] = film_wrenches(Q1, y, load)
    turn1, turn2 = exp_rotation(delay * u1[3:]), exp_rotation(delay * u2[3:])
    P1, P2 = turn1 @ Q1, turn2 @ Q2
    motion = relative_motion(p1 + delay * u1[:3], P1, u1, p2 + delay * u2[:3], P2, u2)
    slopes = _journal_slopes(motion)[:4] @ motion_tangents(P1, u1, motion)[0]  # of e and t
    for k in range(4):
        for side in range(2):
            turn = turn1 if side == 0 else turn2
            by_position = slopes[k, 6 * side : 6 * side + 3]
            rotated = turn.T @ by_position
            later[k, 9 * side : 9 * side + 3] = rotated
            later[k, 9 * side + 3 : 9 * side + 6] = turn.T @ slopes[k, 6 * side + 3 : 6 * side + 6]
            later[k, 9 * side + 6 : 9 * side + 9] = by_position - rotated
    gradients[:] = by_journal @ unit
    changes[:] = by_journal @ later


@kernel
def film_tangents(
    p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array, g: Array, dg: Array
) -> tuple[Array, Array]:
    """Return the derivatives of the wrenches by poses and by velocities, (12, 12) each.

    `g` (5,) are the film loads and `dg` (5, 9) their derivatives with respect to the first nine
    entries of y.
    """
    motion = relative_motion(p1, Q1, u1, p2, Q2, u2)
    y, Y, slopes = _journal(motion), _journal_slopes(motion), np.empty((6, 12))
    loads = dg @ Y[:9]
    for c in range(12):
        slopes[:, c] = _law_change(y, g, Y[:, c], loads[:, c])
    return pair_tangents(Q1, u1, motion, _law(y, g), slopes)


@kernel
def surface_tangents(
    p1: Array, Q1: Array, u1: Array, p2: Array, Q2: Array, u2: Array, g: Array, dg: Array
) -> tuple[Array, Array]:
    """Return the derivatives of wrenches and forces on the coefficients s of a deformed bore.

    `g` (5 + m,) are film loads and forces on s, `dg` (5 + m, 9 + 2m) their derivatives with respect
    to the first nine entries of y, s and ds/dt. The results (12 + m, 12 + m) are the derivatives
    with respect to poses and s, and to velocities and ds/dt.
    """
    m = len(g) - 5
    motion = relative_motion(p1, Q1, u1, p2, Q2, u2)
    y, Y, motions = _journal(motion), _journal_slopes(motion), motion_tangents(Q1, u1, motion)
    unit, out = np.empty((12, 5)), np.zeros((2, 12 + m, 12 + m))
    for c in range(5):
        load = np.zeros(5)
        load[c] = 1.0
        unit[:, c] = film_wrenches(Q1, y, load)
    parts = film_tangents(p1, Q1, u1, p2, Q2, u2, g[:5].copy(), dg[:5, :9].copy())
    for k in range(2):
        first, change = 9 + k * m, Y @ motions[k]
        out[k, :12, :12] = parts[k]
        for r in range(5):
            for i in range(12):
                for c in range(m):
                    out[k, i, 12 + c] += unit[i, r] * dg[r, first + c]
        for r in range(m):
            for i in range(9):
                for c in range(12):
                    out[k, 12 + r, c] += dg[5 + r, i] * change[i, c]
            for c in range(m):
                out[k, 12 + r, 12 + c] = dg[5 + r, first + c]
    return out[0], out[1]
