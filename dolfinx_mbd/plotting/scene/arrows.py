"""Positions of all frames, and the forces and moments on mechanisms as arrows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.columns import FORCE, MOMENT, QUATERNION
from dolfinx_mbd.mechanism.system import System
from dolfinx_mbd.plotting.scene.description import Arrow
from dolfinx_mbd.results.distributed_rows import DistributedRows, local_row
from dolfinx_mbd.results.histories import rotation_matrices
from dolfinx_mbd.results.solution import Solution

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def frame_poses(system: System, q: Array) -> tuple[Array, Array]:
    """Return positions (frames, 3) and rotation matrices (frames, 3, 3) of all frames."""
    position, rotation = np.zeros((system.num_frames, 3)), np.zeros((system.num_frames, 3, 3))
    for body, qs, fs in zip(system.bodies, system.q_slices, system.frame_slices, strict=True):
        body.poses(q[qs], position[fs], rotation[fs])
    return position, rotation


def frame_histories(system: System, q: Array | DistributedRows) -> tuple[Array, Array]:
    """Return positions (nt, frames, 3) and rotations (nt, frames, 3, 3) of all frames."""
    poses = [frame_poses(system, local_row(q, k)) for k in range(len(q))]
    return np.array([p for p, _ in poses]), np.array([A for _, A in poses])


def _arrows(name: str, group: str, frame: int, points: Array, wrenches: Array) -> list[Arrow]:
    """Return the force and the moment of wrenches (nt, 6), unless they are always zero."""
    parts = ("N", wrenches[:, :3]), ("N m", wrenches[:, 3:])
    arrows = [Arrow(name, group, unit, frame, points, part) for unit, part in parts]
    return [arrow for arrow in arrows if arrow.size > 0.0]


def joint_arrows(run: Solution, rows: Rows, *, drivers: bool = False) -> list[Arrow]:
    """Return the forces and moments of joints on their second bodies.

    With `drivers`, return those of the drivers, in the group of the loads. The forces of rods are
    omitted: they act along the line between the points.
    """
    system, arrows = run.system, []
    position, rotation = frame_histories(system, run.q[rows])
    pairs = [(joint.name, joint) for joint in system.joints]
    if drivers:
        pairs = [(driver.name, system.joint(driver.joint)) for driver in system.drivers]
    for name, joint in pairs:
        if joint.mark != "rod":
            first, second = system.frame_index(joint.first), system.frame_index(joint.second)
            history = run.joint(name)  # a driver has a history, too
            local = np.stack([history.force[rows], history.moment[rows]], axis=1)
            wrenches = np.einsum("tij,tkj->tki", rotation[:, first], local).reshape(-1, 6)
            group = "loads" if drivers else "joint forces"
            arrows += _arrows(name, group, second, position[:, second], wrenches)
    return arrows


def load_arrows(run: Solution, rows: Rows) -> list[Arrow]:
    """Return the forces and moments of loads that declare `mark = "arrow"`, on their last frames.

    A distributed load is represented by its resultant force at a point of its line of action.
    """
    system, eqs = run.system, Assembler(run.system)
    count = len(system.loads)
    numbers = {load.name: k for k, load in enumerate(system.loads)}
    frames, points = np.full(count, -1), np.zeros((len(rows), count, 3))
    wrenches = np.zeros((len(rows), count, 6))
    for i, row in enumerate(rows):
        t = float(run.time[row])
        eqs.q[:], eqs.v[:], eqs.angles[:] = local_row(run.q, row), run.v[row], run.angles[row]
        eqs.update_poses(t)
        eqs.frames.update_velocities()
        for load, ends, wrench in eqs.loads.wrenches(t):
            k, frame = numbers[load.name], ends[-1]
            frames[k], points[i, k], wrenches[i, k] = frame, eqs.position[frame], wrench[-6:]
        for pattern, body, amplitude, pattern_rows in eqs.loads.pattern_forces(t):
            k, q = numbers[pattern.name], eqs.q[system.q_slices[body]]
            wrench = amplitude * pattern_rows
            # The line of action is at the distance F×M/|F|² from the origin of the body
            force, moment = wrench[FORCE], rotation_matrices(q[QUATERNION]) @ wrench[MOMENT]
            arm = np.cross(force, moment) / max(float(force @ force), 1e-300)
            points[i, k], wrenches[i, k, :3] = q[:3] + arm, force
    return [
        arrow
        for k, load in enumerate(system.loads)
        if load.mark == "arrow"
        for arrow in _arrows(load.name, "loads", int(frames[k]), points[:, k], wrenches[:, k])
    ]
