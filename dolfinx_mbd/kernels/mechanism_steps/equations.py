"""Equations of a mechanism at one time and state, as compiled functions of its `Model`.

They compute what `Assembler` and `Loads` compute, with the same kernels, so that `steps` is
compiled as a whole.
"""

from __future__ import annotations

import math

import numpy as np

from dolfinx_mbd.kernels.columns import ALONG_Z
from dolfinx_mbd.kernels.compilation import inner_kernel
from dolfinx_mbd.kernels.floating_frame import increment, residual
from dolfinx_mbd.kernels.floating_frame_tangents import tangents
from dolfinx_mbd.kernels.frames import (
    frame_jacobians,
    frame_poses,
    frame_velocities,
    frame_velocity_tangents,
)
from dolfinx_mbd.kernels.joints import (
    ABOUT,
    ALONG,
    add_axis_forces,
    axis_coordinates,
    constraint_rows,
    joint_frames,
    joint_gradients,
    joint_second_derivatives,
    rotation_second_derivatives,
)
from dolfinx_mbd.kernels.matrices import add_bodies, add_gradients, add_products
from dolfinx_mbd.kernels.mechanism_steps.model import (
    ANGLE,
    DAMPING,
    DRIVEN_JOINT,
    DRIVER_ENTRY,
    DRIVER_MOTION,
    DRIVER_NUMBERS,
    FIRST_FRAME,
    FRAME,
    FRAME_NUMBERS,
    FREE_LENGTH,
    FREE_POSITION,
    IN_AXES,
    IS_TORQUE,
    JOINT,
    JOINT_DAMPING,
    JOINT_NUMBERS,
    JOINT_OF_ROW,
    JOINT_STIFFNESS,
    KIND,
    MOTION,
    OF_FRAME_LOAD,
    OF_JOINT_LOAD,
    OF_SPRING,
    OFFSET,
    SECOND_FRAME,
    SPEED,
    SPRING,
    SPRING_NUMBERS,
    STIFFNESS,
    VALUE,
    Model,
)
from dolfinx_mbd.kernels.rotations import skew3
from dolfinx_mbd.kernels.small_vectors import Array, add_scaled33, vector3


@inner_kernel
def update_poses(m: Model, t: float) -> None:
    """Compute the poses of all frames, and the positions of the drivers at t."""
    frame_poses(m.table, m.data, m.q, m.position, m.rotation)
    for k in range(m.drivers.shape[0]):
        first = DRIVER_NUMBERS * k
        angle, speed = m.parameters[first + ANGLE], m.parameters[first + SPEED]
        value = angle + speed * t + m.parameters[first + OFFSET]
        if m.drivers[k, DRIVER_MOTION] == ABOUT:
            m.turns[m.drivers[k, DRIVER_ENTRY]] = value
            m.angles[m.drivers[k, DRIVEN_JOINT]] = value
        else:
            for c in range(m.row_drivers.shape[0]):
                if m.row_drivers[c] == k:
                    m.offsets[c] = value + m.misfit[c]


@inner_kernel
def move(m: Model) -> None:
    """Add the increments since the start of the step to the coordinates at the start."""
    increment(m.table, m.q0, m.move, m.q)


@inner_kernel
def first_number(m: Model, kind: int, k: int) -> int:
    """Return the first place in `parameters` of the k-th load of a kind such as OF_SPRING."""
    place = DRIVER_NUMBERS * m.drivers.shape[0]
    if kind == OF_JOINT_LOAD:
        return place + JOINT_NUMBERS * k
    place += JOINT_NUMBERS * m.joint_loads.shape[0]
    if kind == OF_FRAME_LOAD:
        return place + FRAME_NUMBERS * k
    return place + FRAME_NUMBERS * m.frame_loads.shape[0] + SPRING_NUMBERS * k


@inner_kernel
def joint_load(m: Model, k: int, s: float, rate: float) -> float:
    """Return a torque about or a force along a joint axis, at the position s with its rate."""
    p = first_number(m, OF_JOINT_LOAD, k)
    if m.joint_loads[k, KIND] == SPRING:
        stiffness, damping = m.parameters[p + JOINT_STIFFNESS], m.parameters[p + JOINT_DAMPING]
        return -(stiffness * (s - m.parameters[p + FREE_POSITION]) + damping * rate)
    return m.parameters[p + VALUE]


@inner_kernel
def frame_load(m: Model, k: int) -> tuple[float, float, float]:
    """Return a force or torque at a frame in global components."""
    frame, value = m.frame_loads[k, FRAME], vector3(m.parameters, first_number(m, OF_FRAME_LOAD, k))
    if m.frame_loads[k, IN_AXES] == 0:
        return value
    Q, (x, y, z) = m.rotation[frame], value
    return (
        Q[0, 0] * x + Q[0, 1] * y + Q[0, 2] * z,
        Q[1, 0] * x + Q[1, 1] * y + Q[1, 2] * z,
        Q[2, 0] * x + Q[2, 1] * y + Q[2, 2] * z,
    )


@inner_kernel
def spring_line(m: Model, k: int, n: Array, speed: Array) -> tuple[float, float, float]:
    """Return length, rate and tension of a spring; write its direction and relative velocity."""
    first, second = m.springs[k, FIRST_FRAME], m.springs[k, SECOND_FRAME]
    square = 0.0
    for i in range(3):
        n[i] = m.position[second, i] - m.position[first, i]
        speed[i] = m.velocities[second, i] - m.velocities[first, i]
        square += n[i] * n[i]
    length, rate, p = math.sqrt(square), 0.0, first_number(m, OF_SPRING, k)
    for i in range(3):
        n[i] /= length
        rate += n[i] * speed[i]
    stiffness, damping = m.parameters[p + STIFFNESS], m.parameters[p + DAMPING]
    tension = stiffness * (length - m.parameters[p + FREE_LENGTH]) + damping * rate
    return length, rate, tension


@inner_kernel
def coordinates(m: Model) -> tuple[Array, Array, Array]:
    """Return values, rates and gradients of the joint motions about and along z."""
    return axis_coordinates(
        m.position, m.rotation, m.velocities, m.joint_first, m.joint_second, m.angles
    )


@inner_kernel
def _apply_loads(m: Model) -> None:
    """Add the wrenches of all loads."""
    frame_velocities(m.table, m.data, m.q, m.v, m.velocities)
    for k in range(m.frame_loads.shape[0]):
        value, column = frame_load(m, k), 3 * m.frame_loads[k, IS_TORQUE]
        for i in range(3):
            m.wrenches[m.frame_loads[k, FRAME], column + i] += value[i]
    n, speed = np.zeros(3), np.zeros(3)
    for k in range(m.springs.shape[0]):
        _, _, tension = spring_line(m, k, n, speed)
        for i in range(3):
            m.wrenches[m.springs[k, FIRST_FRAME], i] += tension * n[i]
            m.wrenches[m.springs[k, SECOND_FRAME], i] -= tension * n[i]
    L = m.joint_loads.shape[0]
    if L > 0:
        values, rates, gradients = coordinates(m)
        sizes, axes, frames = np.zeros(L), np.zeros((L, 2), np.int64), np.zeros((L, 2), np.int64)
        for k in range(L):
            j, motion = m.joint_loads[k, JOINT], m.joint_loads[k, MOTION]
            axes[k, 0], axes[k, 1] = j, motion
            frames[k, 0], frames[k, 1] = m.ends[j, FIRST_FRAME], m.ends[j, SECOND_FRAME]
            sizes[k] = joint_load(m, k, values[j, motion], rates[j, motion])
        add_axis_forces(sizes, gradients, axes, frames, m.wrenches)


@inner_kernel
def evaluate(m: Model, t: float) -> None:
    """Compute the residual, its scale and the constraints, as `Assembler.residual`."""
    update_poses(m, t)
    m.wrenches[:] = 0.0
    if m.frame_loads.shape[0] + m.springs.shape[0] + m.joint_loads.shape[0] > 0:
        _apply_loads(m)
    constraint_rows(
        m.position, m.rotation, m.first, m.second, m.turns, m.axes_signs, m.rows_of, m.offsets,
        m.lam, m.spread, m.wrenches, m.values,
    )  # fmt: skip
    residual(m.table, m.data, m.q, m.v, m.a, m.gravity, m.wrenches, m.rows, m.scale)


@inner_kernel
def derivatives(m: Model, t: float) -> None:
    """Compute K, C, M and B after `evaluate` at the same point, as `Assembler.tangent`."""
    for matrix in (m.K, m.C, m.M, m.B):
        matrix[:] = 0.0
    tangents(m.table, m.data, m.q, m.v, m.a, m.gravity, m.wrenches, m.blocks)
    add_bodies(m.blocks, m.counts, m.first_v, m.K, m.C, m.M)
    frame_jacobians(m.table, m.data, m.q, m.jacobians)
    multipliers = np.zeros(m.spread.shape)
    for j in range(multipliers.shape[0]):
        for c in range(6):
            multipliers[j, c] = m.spread[j, c]
    if m.frame_loads.shape[0] + m.springs.shape[0] + m.joint_loads.shape[0] > 0:
        frame_velocity_tangents(m.table, m.data, m.q, m.v, m.tangents)
        _add_frame_loads(m)
        _add_springs(m)
        _add_joint_loads(m, multipliers)
    if m.first.shape[0] == 0:
        return
    p1, Q1, p2, Q2 = joint_frames(m.position, m.rotation, m.first, m.second, m.turns, m.axes_signs)
    D = joint_second_derivatives(p1, Q1, p2, Q2, multipliers)
    G = joint_gradients(p1, Q1, p2, Q2)
    add_products(
        D, m.ends, m.ends, m.jacobians, m.jacobians, m.widths, m.end_starts, m.end_starts, m.K
    )
    nc = m.rows_of.shape[0]
    starts = np.zeros((nc, 2), np.int64)
    for c in range(nc):
        j = m.rows_of[c, JOINT_OF_ROW]
        starts[c, FIRST_FRAME] = m.end_starts[j, FIRST_FRAME]
        starts[c, SECOND_FRAME] = m.end_starts[j, SECOND_FRAME]
    add_gradients(G, m.rows_of, m.ends, m.jacobians, m.widths, starts, m.B)


@inner_kernel
def _add_pair(m: Model, one: int, two: int, D: Array, E: Array, rates: bool) -> None:
    """Add derivatives by the poses, D, and velocities, E, of two frames to K and C.

    D and E have the shape (1, 12, 12). E is used only with `rates`.
    """
    frames, starts = np.zeros((1, 2), np.int64), np.zeros((1, 2), np.int64)
    frames[0, 0], frames[0, 1] = one, two
    starts[0, 0], starts[0, 1] = m.starts[one], m.starts[two]
    if rates:
        add_products(E, frames, frames, m.jacobians, m.jacobians, m.widths, starts, starts, m.C)
        add_products(E, frames, frames, m.jacobians, m.tangents, m.widths, starts, starts, m.K)
    add_products(D, frames, frames, m.jacobians, m.jacobians, m.widths, starts, starts, m.K)


@inner_kernel
def _add_frame_loads(m: Model) -> None:
    """Add the derivatives of loads with components in the axes of frames."""
    for k in range(m.frame_loads.shape[0]):
        if m.frame_loads[k, IN_AXES] == 1:
            D, row = np.zeros((1, 12, 12)), 3 * m.frame_loads[k, IS_TORQUE]
            add_scaled33(D[0], row, 3, 1.0, skew3(frame_load(m, k)))
            _add_pair(m, m.frame_loads[k, FRAME], m.frame_loads[k, FRAME], D, D, False)


@inner_kernel
def _add_springs(m: Model) -> None:
    """Add the derivatives of springs."""
    n, speed = np.zeros(3), np.zeros(3)
    for k in range(m.springs.shape[0]):
        length, _, tension = spring_line(m, k, n, speed)
        p = first_number(m, OF_SPRING, k)
        stiffness, damping = m.parameters[p + STIFFNESS], m.parameters[p + DAMPING]
        D, E, speed_along = np.zeros((1, 12, 12)), np.zeros((1, 12, 12)), 0.0
        for i in range(3):
            speed_along += n[i] * speed[i]
        for i in range(3):
            for j in range(3):
                across = ((1.0 if i == j else 0.0) - n[i] * n[j]) / length
                rate_by_d = (speed[j] - n[j] * speed_along) / length
                by_d = stiffness * n[i] * n[j] + tension * across + damping * n[i] * rate_by_d
                by_u = damping * n[i] * n[j]
                for r in (0, 6):
                    for c in (0, 6):
                        sign = 1.0 if r == c else -1.0
                        D[0, r + i, c + j], E[0, r + i, c + j] = sign * by_d, sign * by_u
        _add_pair(m, m.springs[k, FIRST_FRAME], m.springs[k, SECOND_FRAME], D, E, damping != 0.0)


@inner_kernel
def _add_joint_loads(m: Model, multipliers: Array) -> None:
    """Add the derivatives of loads on joints; forces along axes are added to the multipliers."""
    L = m.joint_loads.shape[0]
    if L == 0:
        return
    values, rates, gradients = coordinates(m)
    for k in range(L):
        j, motion = m.joint_loads[k, JOINT], m.joint_loads[k, MOTION]
        first, second = m.ends[j, FIRST_FRAME], m.ends[j, SECOND_FRAME]
        size = joint_load(m, k, values[j, motion], rates[j, motion])
        Q1, Q2 = m.rotation[first : first + 1], m.rotation[second : second + 1]
        if motion == ALONG:
            multipliers[j, ALONG_Z] -= size
            unit = np.zeros((1, 6))
            unit[0, ALONG_Z] = 1.0
            p1, p2 = m.position[first : first + 1], m.position[second : second + 1]
            H = joint_second_derivatives(p1, Q1, p2, Q2, unit)
        else:
            H = rotation_second_derivatives(Q1, Q2)
        # derivatives of the residual by the poses, D, and by the velocities, E; H is that of g
        D, E = np.zeros((1, 12, 12)), np.zeros((1, 12, 12))
        for i in range(12 if motion == ABOUT else 0):
            for c in range(12):
                D[0, i, c] = -size * H[0, i, c]
        damping = 0.0
        if m.joint_loads[k, KIND] == SPRING:
            p, g = first_number(m, OF_JOINT_LOAD, k), gradients[j, motion]
            stiffness, damping = m.parameters[p + JOINT_STIFFNESS], m.parameters[p + JOINT_DAMPING]
            for c in range(12):
                by_pose = -stiffness * g[c]  # derivative of the load
                for i in range(12):
                    frame = first if i < 6 else second
                    by_pose -= damping * m.velocities[frame, i % 6] * H[0, i, c]
                for i in range(12):
                    D[0, i, c] -= g[i] * by_pose
                    E[0, i, c] = g[i] * damping * g[c]
        _add_pair(m, first, second, D, E, damping != 0.0)
