"""Factors of the iteration matrix of large systems, from the inverses of the matrices of bodies.

The iteration matrix of bodies with joints is

    S = [T  Bᵀ]
        [B  0 ]

where T has one block for each group of bodies that loads couple strongly; weak couplings are
neglected. In axes that rotate with the bodies, T and the Jacobians J of the frames are nearly
constant. The gradients G of the joints with respect to the poses of their frames are not, but they
have few entries, and B = G J. The matrices T⁻¹, T⁻¹ Jᵀ and W = J T⁻¹ Jᵀ are therefore kept while
the iterations converge. Each step computes G at the beginning, and factorizes H = G W Gᵀ, which has
one row for each constraint. For a right-hand side (r, r_B) of the equations of motion and of the
constraints, the multipliers μ and the increments x follow from

    H μ = B T⁻¹ r − r_B,   x = T⁻¹ r − T⁻¹ Jᵀ Gᵀ μ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.sparse.csgraph import connected_components

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.kernels.body_factor import connect_bodies, expand_from_joints, reduce_to_joints
from dolfinx_mbd.kernels.body_table import FIRST_Q, FIRST_V
from dolfinx_mbd.kernels.columns import QUATERNION
from dolfinx_mbd.kernels.compilation import COMPILED
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.kernels.time_steps import rotate_rows

__all__ = ["BodyFactor", "BodyMatrices", "coupled_bodies"]

# Bodies are coupled in T if an entry, divided by the square roots of the two entries on the
# diagonal, is larger than this
_COUPLED = 0.01
_FEWEST_UNKNOWNS = 100  # smallest size of a system whose matrix is factorized by bodies
# Largest number of entries of the matrices of a solution, relative to that of the iteration matrix
_LARGEST_FRACTION = 0.4

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))
_AS_THEY_ARE, _TRANSPOSED = False, True  # blocks in `rotate_rows`
_PREFIX = "bodies_"  # of the entries in the memory of a stepper


class BodyMatrices:
    """Matrices of the bodies of a system, from which factors are computed.

    Args:
        eqs: Assembler of the system.
        scale: Mass that scales constraints and multipliers, kg.
    """

    def __init__(self, eqs: Assembler, scale: float) -> None:
        self.eqs, self.scale = eqs, scale
        s, table = eqs.system, eqs.frames.bodies.table
        self.bodies = np.column_stack([table[:, FIRST_V], table[:, FIRST_Q] + QUATERNION.start])
        self.columns = np.ascontiguousarray(self.bodies[:, 0])
        self.rows = np.column_stack([s.row_entry, s.row_motion])
        # frames of joints on moving bodies, and the rows of their bodies in the table
        members = {k: row for row, k in enumerate(eqs.frames.bodies.members)}
        frames = np.unique(eqs.frames.entry_frames)
        self._frames = [int(frame) for frame in frames if int(s.frame_body[frame]) in members]
        self._frame_bodies = np.array([members[int(s.frame_body[k])] for k in self._frames])
        self._starts = np.append(self.columns, s.num_velocities)

    def __bool__(self) -> bool:
        excluded = self.eqs.frames.has_others or self.eqs.system.velocity_rows.any()
        each = [[k] for k in range(len(self.bodies))]  # no coupling: each body is one group
        return bool(COMPILED and self._frames and not excluded) and self._is_faster(each)

    def _is_faster(self, groups: list[list[int]]) -> bool:
        """Return whether a solution with the inverses of groups of bodies is faster."""
        n, c = self._starts[-1], len(self.rows)  # numbers of velocities and of constraints
        sizes = [sum(len(self._range(k)) for k in group) for group in groups]
        heights = [6 * len(self._frames_of(group)) for group in groups]  # rows of Jacobians
        # T⁻¹, J and T⁻¹ Jᵀ of each group; H has c² entries
        entries = sum(size * (size + 2 * rows) for size, rows in zip(sizes, heights, strict=True))
        size = int(n + c)
        return size >= _FEWEST_UNKNOWNS and entries + c * c <= _LARGEST_FRACTION * size * size

    def _frames_of(self, group: list[int]) -> NDArray[np.int64]:
        """Return the places in `_frames` of the frames of a group of bodies."""
        return np.flatnonzero(np.isin(self._frame_bodies, group))

    def axes(self) -> Array:
        """Return the rotation matrices of all bodies, (bodies, 3, 3)."""
        q = self.eqs.q
        return np.array([rotation_matrix(q[place : place + 4]) for _, place in self.bodies])

    def factor(self, matrix: Array, dt: float, mass: Array, tangents: Array) -> BodyFactor | None:
        """Return a factor of the matrix at the present point, or None if it would not be faster.

        Args:
            matrix: Iteration matrix, evaluated with the present Jacobians of the frames.
            dt: Time step, s.
            mass: Mass matrix, (nv, nv).
            tangents: Tangent operators of the rotations of the bodies in the step.
        """
        n, axes = len(mass), self.axes()
        T = np.ascontiguousarray(matrix[:n, :n])
        for _ in range(2):  # to the axes of the bodies: first the rows, then the columns
            rotate_rows(axes, self.columns, _TRANSPOSED, T)
            T = np.ascontiguousarray(T.T)
        groups = coupled_bodies(T, self.columns, _COUPLED)
        if not self._is_faster(groups):
            return None
        unknowns = [np.concatenate([self._range(k) for k in group]) for group in groups]
        frames = [self._frames_of(group) for group in groups]
        left, right = self._jacobians(axes, tangents, n)
        table: list[list[int]] = []
        matrices: list[Array] = []
        first = start = 0
        try:
            inverses = [np.linalg.inv(T[np.ix_(index, index)]) for index in unknowns]
        except np.linalg.LinAlgError:
            return None
        # For each group: the inverse T⁻¹, the Jacobian R by the increments, N = T⁻¹ Jᵀ and W
        for index, part, inverse in zip(unknowns, frames, inverses, strict=True):
            L, R = (J[part].reshape(-1, n)[:, index] for J in (left, right))
            N = inverse @ L.T
            matrices += [x.ravel() for x in (inverse, R, N, R @ N)]
            table.append([first, len(index), len(part), 0, 0, start])
            first, start = first + len(index), sum(map(len, matrices))
        ports: list[tuple[int, int, int, int]] = []  # the tables are described in `connect_bodies`
        for row, part in zip(table, frames, strict=True):
            group_ports = self._ports(part)
            row[3:5] = len(ports), len(group_ports)
            ports += group_ports
        arrays = {
            "dt": np.array(dt),
            "mass": mass,
            "axes": axes,
            "groups": np.array(table, dtype=np.int64),
            "matrices": np.concatenate(matrices),
            "ports": np.array(ports, dtype=np.int64),
            "unknowns": np.concatenate(unknowns),
        }
        factor = BodyFactor(self, arrays)
        factor.connect()
        return factor if factor.is_regular else None

    def _range(self, body: int) -> NDArray[np.int64]:
        """Return the unknowns of a body."""
        return np.arange(*self._starts[body : body + 2])

    def _jacobians(self, axes: Array, tangents: Array, n: int) -> tuple[Array, Array]:
        """Return the Jacobians of all frames in the axes of their bodies, (frames, 6, nv) each.

        The second ones are the derivatives with respect to the increments of the step.
        """
        left, right = np.zeros((2, len(self._frames), 6, n))
        for k, (frame, body) in enumerate(zip(self._frames, self._frame_bodies, strict=True)):
            part, A = self._range(body), axes[body]
            J = self.eqs.frames.jacobian_table[frame, :, : len(part)].reshape(2, 3, -1)
            J = (A.T @ J).reshape(6, -1)
            J[:, :3] = J[:, :3] @ A
            left[k][:, part] = J
            J[:, 3:6] = J[:, 3:6] @ tangents[body]
            right[k][:, part] = J
        return left, right

    def _ports(self, frames: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
        """Return the rows of the ports at some frames of `_frames`, see `connect_bodies`."""
        places = {self._frames[k]: place for place, k in enumerate(frames)}
        quaternions = {self._frames[k]: self.bodies[self._frame_bodies[k], 1] for k in frames}
        return [
            (c, places[frame], 6 * side, int(quaternions[frame]))
            for c, (entry, _) in enumerate(self.rows)
            for side, frame in enumerate(map(int, self.eqs.frames.entry_frames[entry]))
            if frame in places
        ]


class BodyFactor:
    """A factor of the iteration matrix with the interface of `DenseFactor`.

    Args:
        bodies: Bodies of the system.
        arrays: Arrays by name: length of the step, mass matrix and axes of the bodies at the
            factorization, tables and matrices of the kernels, and those that `connect` creates.

    Attributes:
        is_regular: Whether no pivot is zero.
        steps: Number of calls of `connect` after the first one.
    """

    def __init__(self, bodies: BodyMatrices, arrays: Mapping[str, Any]) -> None:
        self._bodies, self._arrays = bodies, dict(arrays)
        self.dt, self.mass = float(arrays["dt"]), arrays["mass"]
        self.noise: Array = np.asarray(arrays.get("noise", np.zeros(0)))
        self.is_regular, self.steps = True, int(arrays.get("steps", -1))
        self._tables: tuple[Any, ...] = (arrays["groups"], arrays["matrices"], arrays["ports"])
        self._places = arrays["unknowns"], bodies.bodies
        if "lu" in arrays:
            self._gradients, self._lu, self._pivots = (
                arrays[name] for name in ("gradients", "lu", "pivots")
            )

    def connect(self) -> None:
        """Compute the gradients of the joints at the present poses, and their factor."""
        self.steps += 1
        (groups, matrices, ports), bodies = self._tables, self._bodies
        H = np.zeros((len(bodies.rows), len(bodies.rows)))
        self._gradients = g = np.empty((len(ports), 6))
        q, joint_gradients = bodies.eqs.q, bodies.eqs.joints.gradients()
        connect_bodies(groups, matrices, ports, q, bodies.rows, joint_gradients, bodies.scale, g, H)
        self._lu, self._pivots, info = _getrf(H.T, overwrite_a=True)
        self.is_regular = bool(info == 0 and np.isfinite(self._lu[-1]).all())

    def solve(self, rhs: Array) -> Array:
        """Return the solution for a right-hand side (unknowns,), or several (unknowns, columns).

        A single right-hand side is overwritten.
        """
        if rhs.ndim > 1:
            return np.column_stack([self.solve(column.copy()) for column in rhs.T])
        n, q, g = len(self.mass), self._bodies.eqs.q, self._gradients
        (groups, matrices, ports), (unknowns, bodies) = self._tables, self._places
        motion, values = np.empty(n), np.empty(len(rhs) - n)
        reduce_to_joints(groups, matrices, ports, unknowns, bodies, q, g, rhs, motion, values)
        values, _ = _getrs(self._lu, self._pivots, values, trans=1, overwrite_b=True)
        expand_from_joints(groups, matrices, ports, unknowns, bodies, q, g, motion, values, rhs)
        return rhs

    def inertia(self, increments: Array) -> Array:
        """Return the product (nv,) of the mass matrix, in its rotated axes, with increments."""
        columns = self._bodies.columns
        turns = self._bodies.axes() @ self._arrays["axes"].transpose(0, 2, 1)
        x: Array = np.array(increments[:, None], order="C")
        rotate_rows(turns, columns, _TRANSPOSED, x)
        x = np.ascontiguousarray(self.mass @ x)
        rotate_rows(turns, columns, _AS_THEY_ARE, x)
        return x[:, 0]

    def memory(self) -> dict[str, Any]:
        """Return the arrays from which `restored` creates a bitwise identical factor."""
        present = {"gradients": self._gradients, "lu": self._lu, "pivots": self._pivots}
        arrays = self._arrays | present | {"noise": self.noise, "steps": np.array(self.steps)}
        return {f"{_PREFIX}{name}": values for name, values in arrays.items()}

    @classmethod
    def restored(cls, bodies: BodyMatrices, memory: Mapping[str, Any]) -> BodyFactor | None:
        """Return the factor that `memory` describes, or None if it describes another one."""
        arrays = {
            name.removeprefix(_PREFIX): np.asarray(values)
            for name, values in memory.items()
            if name.startswith(_PREFIX)
        }
        if not arrays or not bodies:
            return None
        arrays["lu"] = np.asfortranarray(arrays["lu"])
        return cls(bodies, arrays)


def coupled_bodies(T: Array, columns: NDArray[np.int64], limit: float) -> list[list[int]]:
    """Return groups of the numbers of bodies between which an entry of T is large.

    Args:
        T: Square matrix of the bodies.
        columns: First column of each body, ascending from 0.
        limit: Smallest large entry, divided by the square roots of the two entries on the diagonal.
    """
    size = np.sqrt(np.abs(T.diagonal()))
    coupled = np.abs(T) > limit * np.outer(size, size)
    for axis in range(2):
        coupled = np.logical_or.reduceat(coupled, columns, axis=axis)
    count, labels = connected_components(coupled, directed=False)
    return [[int(body) for body in np.flatnonzero(labels == k)] for k in range(count)]
