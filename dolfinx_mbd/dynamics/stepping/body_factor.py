"""Factors of the iteration matrix from the inverses of the matrices of bodies.

Joints and oil films in elastic bores connect bodies whose own matrices are nearly constant in axes
that rotate with the bodies. The iteration matrix is

    S = [T + Lᵀ D L   Bᵀ]
        [B            0 ]

where T has one block for each group of bodies that other loads couple strongly, B are the
derivatives of the constraints, and L those of the coefficients σ of the gaps of all films.
`a_by_move` and `v_by_move` are the derivatives of accelerations and velocities with respect to the
increments of a step. −D `a_by_move` is the derivative of the forces of the films with respect to σ,
plus `v_by_move` times that with respect to dσ/dt.

The gradients G of gaps and constraints with respect to the poses of their frames change as the
bodies rotate, but they have few entries. With the Jacobian J of the frames, [L; B] = G J. The
matrices T⁻¹, T⁻¹ Jᵀ and W = J T⁻¹ Jᵀ are constant in the axes of the bodies and are kept while the
iterations converge. Each step computes G at the beginning, and H = G W Gᵀ, which has one row for
each coefficient of a gap and each constraint. The forces φ = D L x of the films and the multipliers
μ for a right-hand side (r, r_B) follow from

    [1 + D H_LL   D H_LB] [φ]   [D L T⁻¹ r     ]
    [H_BL         H_BB  ] [μ] = [B T⁻¹ r − r_B],   x = T⁻¹ r − T⁻¹ Jᵀ Gᵀ (φ, μ).

D is renewed while a step is solved, for films whose forces differ from the prediction by the last
correction. S neglects weak couplings by other loads, and the couplings of bodies by the drag of
films and by the rotation of the forces of films and joints; the residual contains them.

The rates dσ/dt = L(q) v depend on the increments also through L. Their derivative is `v_by_move`
times L at the point that is reached, at constant velocity, after the time 1 / `v_by_move`. In the
columns of S, G contains these gradients, because the largest terms of D are the derivatives with
respect to the rates; in its rows, G is that of the present point.

Reference:
    C. Farhat, F.-X. Roux, A method of finite element tearing and interconnecting and its parallel
    solution algorithm, Int. J. Numer. Methods Eng. 32 (1991) (forces of connections as unknowns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.sparse.csgraph import connected_components

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.formulas import Derivatives
from dolfinx_mbd.kernels.body_factor import (
    connect_bodies,
    expand_from_connections,
    reduce_to_connections,
    write_gradients,
)
from dolfinx_mbd.kernels.body_table import FIRST_Q, FIRST_V
from dolfinx_mbd.kernels.columns import ELASTIC, QUATERNION
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

# A film keeps its derivatives if the error that they probably cause in its next force is smaller
# than this fraction of the largest error of a film in its last force
_SMALL_ERROR = 1e-4

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))
_AS_THEY_ARE, _TRANSPOSED = False, True  # blocks in `rotate_rows`
_PREFIX = "bodies_"  # of the entries in the memory of a stepper
# Results of `BodyFactor.connect` and `BodyFactor.renew_films`
_PRESENT = (
    "g", "changes", "H", "lu", "pivots", "by_joints", "of_films", "joint_lu", "joint_pivots"
)  # fmt: skip


class BodyMatrices:
    """Matrices of the bodies of a system, from which factors are computed.

    Args:
        eqs: Assembler of the system.
        scale: Mass that scales constraints and multipliers, kg.

    Attributes:
        film_sizes: Numbers of coefficients of the gaps of all oil films in elastic bores.
    """

    def __init__(self, eqs: Assembler, scale: float) -> None:
        self.eqs, self.scale = eqs, scale
        s, table = eqs.system, eqs.frames.bodies.table
        self.bodies = np.column_stack([table[:, FIRST_V], table[:, FIRST_Q] + QUATERNION.start])
        self.columns = np.ascontiguousarray(self.bodies[:, 0])
        self.rows = np.column_stack([s.row_entry, s.row_motion])
        self._ranges = [np.arange(s.num_velocities)[s.v_slices[k]] for k in eqs.frames.moving]
        # the index of a moving body, and its place in the table of bodies with rotating axes
        self._index = {k: i for i, k in enumerate(eqs.frames.moving)}
        self._places = {k: row for row, k in enumerate(eqs.frames.bodies.members)}
        films = eqs.loads.elastic_films
        self._surfaces = [np.asarray(film.surface) for film, *_ in films]
        self._bores = [self._body(one) for _, one, _ in films]  # bodies
        self.film_sizes = np.array([len(surface) for surface in self._surfaces], dtype=np.int64)
        # Frames of each connection: of the coefficients of all gaps, then of the constraints
        ends = [films[int(k)][1:] for k in np.repeat(np.arange(len(films)), self.film_sizes)]
        self._ends = [*ends, *map(tuple, eqs.frames.entry_frames[s.row_entry].tolist())]
        moving = {int(k) for pair in self._ends for k in pair if self._body(k) in self._index}
        self._frames = sorted(moving)
        self._motions, self._motion_bodies = self._list_motions()

    def __bool__(self) -> bool:
        excluded = self.eqs.system.velocity_rows.any() or not all(
            self._body(frame) in self._places for frame in self._frames
        )
        if not COMPILED or not self._frames or excluded:
            return False
        return self.has_films or self._is_faster([[k] for k in range(len(self._ranges))])

    @property
    def has_films(self) -> bool:
        """Whether factors contain oil films in elastic bores."""
        return bool(self._surfaces)

    def _body(self, frame: int) -> int:
        """Return the body of a frame."""
        return int(self.eqs.system.frame_body[frame])

    def _list_motions(self) -> tuple[dict[tuple[str, int], int], NDArray[np.int64]]:
        """Return the first motion of each frame, body and film, and the body of each motion.

        The motions are those of the frames, then the translations of the bodies at films, and the
        coefficients of the displacements of the bores.
        """
        films = int(self.film_sizes.sum())
        bodies = sorted({self._body(frame) for pair in self._ends[:films] for frame in pair})
        parts = [("frame", frame, self._body(frame), 6) for frame in self._frames]
        parts += [("body", k, k, 3) for k in bodies if k in self._index]
        parts += [
            ("bore", k, body, len(W))
            for k, (body, W) in enumerate(zip(self._bores, self._surfaces, strict=True))
        ]
        index: dict[tuple[str, int], int] = {}
        members: list[int] = []
        for kind, k, body, count in parts:
            index[kind, k] = len(members)
            members += [self._index[body]] * count
        return index, np.array(members, dtype=np.int64)

    def _is_faster(self, groups: list[list[int]]) -> bool:
        """Return whether a solution with the inverses of groups is faster than with the matrix."""
        n, c = sum(map(len, self._ranges)), len(self.rows)  # numbers of velocities, of constraints
        sizes = [sum(len(self._ranges[k]) for k in group) for group in groups]
        heights = [int(np.isin(self._motion_bodies, group).sum()) for group in groups]
        # T⁻¹, J and T⁻¹ Jᵀ of each group; H has c² entries
        entries = sum(size * (size + 2 * rows) for size, rows in zip(sizes, heights, strict=True))
        size = n + c
        return size >= _FEWEST_UNKNOWNS and entries + c * c <= _LARGEST_FRACTION * size * size

    def axes(self) -> Array:
        """Return the rotation matrices of all bodies with rotating axes, (bodies, 3, 3)."""
        q = self.eqs.q
        axes = [rotation_matrix(q[place : place + 4]) for _, place in self.bodies]
        return np.array(axes).reshape(-1, 3, 3)

    def factor(
        self, matrix: Array, dt: float, mass: Array, tangents: Array, derivatives: Derivatives
    ) -> BodyFactor | None:
        """Return a factor of the matrix at the present point, or None if it would not be faster.

        Args:
            matrix: Iteration matrix, evaluated with the present Jacobians of the frames.
            dt: Time step, s.
            mass: Mass matrix, (nv, nv).
            tangents: Tangent operators of the rotations of the bodies in the step.
            derivatives: Derivatives of the step.
        """
        n, axes = len(mass), self.axes()
        T = np.ascontiguousarray(matrix[:n, :n])
        for _ in range(2):  # to the axes of the bodies: first the rows, then the columns
            rotate_rows(axes, self.columns, _TRANSPOSED, T)
            T = np.ascontiguousarray(T.T)
        left, right = self._jacobians(axes, tangents, n)
        ports = self._ports()
        stiffness = [
            self.film_stiffness(k, derivatives, assembled=True) for k in range(len(self._surfaces))
        ]
        arrays: dict[str, Any] = {
            "dt": np.array(dt),
            "delay": np.array(1.0 / derivatives.v_by_move),  # of the gradients, see the module
            "mass": mass,
            "axes": axes,
            "stiffness": np.concatenate([np.zeros(0), *(D.ravel() for D in stiffness)]),
        }
        g, changes = self.gradients(ports, float(arrays["delay"]))
        self._subtract_films(T, ports, (g, changes), (left, right), stiffness)
        starts = np.array([indices[0] for indices in self._ranges])
        groups = coupled_bodies(T, starts, _COUPLED)
        if not (self.has_films or self._is_faster(groups)):
            return None
        unknowns = [np.concatenate([self._ranges[k] for k in group]) for group in groups]
        try:
            inverses = [np.linalg.inv(T[np.ix_(index, index)]) for index in unknowns]
        except np.linalg.LinAlgError:
            return None
        # For each group: T⁻¹, the Jacobians L and R of its motions by velocities and increments,
        # N = T⁻¹ Lᵀ and W = R N; the tables are described in `kernels.body_factor`
        table, matrices = [], []
        ordered: list[tuple[int, ...]] = []
        first = start = 0
        count = len(self._ends)
        by_bores = np.zeros((count, count))  # part of H that is constant
        for group, index, inverse in zip(groups, unknowns, inverses, strict=True):
            motions = np.flatnonzero(np.isin(self._motion_bodies, group))
            L, R = left[motions][:, index], right[motions][:, index]
            N = inverse @ L.T
            W = R @ N
            part = [x.ravel() for x in (inverse, R, N, W)]
            of_group = self._ports_of_motions(ports, motions)
            bores = np.array([(c, k) for c, *_, k in of_group if k >= 0], np.int64).reshape(-1, 2)
            by_bores[np.ix_(bores[:, 0], bores[:, 0])] = W[np.ix_(bores[:, 1], bores[:, 1])]
            moved = sum(motion >= 0 for _, motion, *_ in of_group)
            row = first, len(index), len(motions), len(ordered), moved, len(of_group), start
            table.append(row)
            first, start = first + len(index), start + sum(map(len, part))
            matrices += part
            ordered += of_group
        arrays |= {
            "groups": np.array(table, dtype=np.int64),
            "matrices": np.concatenate(matrices),
            "ports": np.array(ordered, dtype=np.int64).reshape(-1, 6),
            "unknowns": np.concatenate(unknowns),
            "by_bores": by_bores,
        }
        factor = BodyFactor(self, arrays)
        factor.connect()
        return factor if factor.is_regular else None

    def _jacobians(self, axes: Array, tangents: Array, n: int) -> tuple[Array, Array]:
        """Return the Jacobians of all motions in the axes of their bodies, (motions, nv) each.

        The second ones are the derivatives with respect to the increments of the step.
        """
        left = np.zeros((len(self._motion_bodies), n))
        for (kind, k), first in self._motions.items():
            if kind == "frame":
                unknowns = self._ranges[self._index[self._body(k)]]
                A = axes[self._places[self._body(k)]]
                J = self.eqs.frames.jacobian_table[k, :, : len(unknowns)].reshape(2, 3, -1)
                J = (A.T @ J).reshape(6, -1)
                J[:, :3] = J[:, :3] @ A
                left[first : first + 6, unknowns] = J
            elif kind == "body":
                columns = self._ranges[self._index[k]][:3]
                left[first : first + 3, columns] = np.eye(3)
            else:
                columns = self._ranges[self._index[self._bores[k]]][ELASTIC]
                left[first : first + len(self._surfaces[k]), columns] = self._surfaces[k]
        right = left.copy()
        for column, tangent in zip(self.columns, tangents, strict=True):
            part = slice(column + 3, column + 6)
            right[:, part] = right[:, part] @ tangent
        return left, right

    def _ports(self) -> list[tuple[int, ...]]:
        """Return the rows of all ports; see `kernels.body_factor`."""
        films = len(self._ends) - len(self.rows)
        bores = [(k, i) for k, size in enumerate(self.film_sizes) for i in range(size)]
        moved = [moves for film, *_ in self.eqs.loads.elastic_films for moves in film.moves_gap]
        ports: list[tuple[int, ...]] = []
        for c, ends in enumerate(self._ends):
            for side, frame in enumerate(map(int, ends)):
                if frame not in self._frames:
                    continue
                body, surface, translation = self._body(frame), -1, -1
                motion = self._motions["frame", frame]
                if c < films:
                    translation = self._motions["body", body]
                    if not moved[c]:
                        motion = translation = -1
                    if not side:
                        film, row = bores[c]
                        surface = self._motions["bore", film] + row
                if motion >= 0 or surface >= 0:
                    place = int(self.bodies[self._places[body], 1])
                    ports.append((c, motion, side, place, translation, surface))
        return ports

    @staticmethod
    def _ports_of_motions(
        ports: list[tuple[int, ...]], motions: NDArray[np.int64]
    ) -> list[tuple[int, ...]]:
        """Return the ports at the motions of a group, with the places of these in the group."""
        places = {int(k): place for place, k in enumerate(motions)} | {-1: -1}
        of_group = [
            (c, places[motion], side, place, places[translation], places[surface])
            for c, motion, side, place, translation, surface in ports
            if max(motion, surface) in places
        ]
        return sorted(of_group, key=lambda port: port[1] < 0)  # those at frames come first

    def gradients(self, ports: Any, delay: float) -> tuple[Array, Array]:
        """Return the gradients of ports at the present poses, (ports, 6) and (ports, 9).

        See `kernels.body_factor.write_gradients`; `delay` is that of `gap_gradients`, s.
        """
        ports = np.array(ports, dtype=np.int64).reshape(-1, 6)
        eqs, g, changes = self.eqs, np.zeros((len(ports), 6)), np.zeros((len(ports), 9))
        coefficients = int(self.film_sizes.sum())
        now, later = np.empty((coefficients, 12)), np.empty((coefficients, 18))
        eqs.loads.write_gap_gradients(delay, now, later)
        joints = eqs.joints.gradients()
        write_gradients(ports, eqs.q, self.rows, joints, self.scale, now, later, g, changes)
        return g, changes

    def film_stiffness(self, k: int, derivatives: Derivatives, *, assembled: bool) -> Array:
        """Return the matrix D of the film k; see `Loads.gap_stiffness`."""
        a_by_move, v_by_move, _ = derivatives
        block = self.eqs.loads.gap_stiffness(k, v_by_move, assembled=assembled)
        return np.asarray(block / -a_by_move, dtype=np.float64)

    def _subtract_films(
        self,
        T: Array,
        ports: list[tuple[int, ...]],
        gradients: tuple[Array, Array],
        jacobians: tuple[Array, Array],
        stiffness: list[Array],
    ) -> None:
        """Subtract Lᵀ D L of all films from the matrix of the bodies, in their axes."""
        count = int(self.film_sizes.sum())
        rows, columns = np.zeros((2, count, len(self._motion_bodies)))
        for (c, motion, _, _, translation, surface), by_force, by_motion in zip(
            ports, *gradients, strict=True
        ):
            if c >= count:
                continue
            if surface >= 0:
                rows[c, surface] = columns[c, surface] = 1.0
            if motion >= 0:
                rows[c, motion : motion + 6] += by_force
                columns[c, motion : motion + 6] += by_motion[:6]
                columns[c, translation : translation + 3] += by_motion[6:]
        left, right = rows @ jacobians[0], columns @ jacobians[1]
        first = 0
        for D in stiffness:
            part = slice(first, first := first + len(D))
            T -= left[part].T @ (D @ right[part])


class BodyFactor:
    """A factor of the iteration matrix with the interface of `DenseFactor`.

    Args:
        bodies: Bodies of the system.
        arrays: Arrays by name: length of the step, mass matrix and axes of the bodies at the
            factorization, time `delay` of `gap_gradients`, matrices D of the films, tables and
            matrices of the kernels, and those that `connect` creates.

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
        self._delay, self._stiffness = float(arrays["delay"]), arrays["stiffness"].copy()
        self._blocks = self._film_blocks()
        self._film_forces: Array = np.zeros(0)
        joints, films = len(bodies.rows), int(bodies.film_sizes.sum())
        # Matrices in the order of LAPACK (lu), or row by row
        self._lu: Array = np.zeros((films, films), order="F")
        self._joint_lu: Array = np.zeros((joints, joints), order="F")
        self._pivots, self._joint_pivots = np.zeros((2, 0), dtype=np.int32)
        self._H: Array = np.zeros((films, films))
        self._by_joints: Array = np.zeros((films, joints))
        self._of_films: Array = np.zeros((joints, films))
        self._work: Array = np.zeros((films + joints, films + joints))
        self._g: Array = np.zeros((0, 6))
        self._changes: Array = np.zeros((0, 9))
        if "lu" in arrays:
            for name in _PRESENT:
                copied = np.asfortranarray if name.endswith("lu") else np.ascontiguousarray
                setattr(self, f"_{name}", copied(arrays[name]).copy(order="K"))

    def connect(self) -> None:
        """Compute the gradients of films and joints at the present poses, and their factor."""
        self.steps += 1
        (groups, matrices, ports), bodies = self._tables, self._bodies
        self._g, self._changes = bodies.gradients(ports, self._delay)
        H, n = self._work, len(self._H)
        H[:] = self._arrays["by_bores"]
        connect_bodies(groups, matrices, ports, self._g, self._changes, H)
        self._joint_lu[:] = H[n:, n:].T
        self._joint_pivots, self.is_regular = _factorize(self._joint_lu)
        if n:
            # H_LB H_BB⁻¹, and the matrix of the films without constraints
            self._of_films[:], self._by_joints[:] = H[n:, :n], H[:n, n:]
            if self._by_joints.size and self.is_regular:
                _getrs(self._joint_lu, self._joint_pivots, self._by_joints.T, overwrite_b=True)
            np.matmul(self._by_joints, self._of_films, out=self._H)
            np.subtract(H[:n, :n], self._H, out=self._H)
            self._factorize_films()

    def _factorize_films(self) -> None:
        """Factorize the matrix of the forces of the films."""
        matrix, first = self._lu.T, 0
        for D in self._blocks:
            part = slice(first, first := first + len(D))
            np.matmul(D, self._H[part], out=matrix[part])
        np.einsum("ii->i", matrix)[:] += 1.0
        self._pivots, is_regular = _factorize(self._lu)
        self.is_regular = self.is_regular and is_regular

    def _film_blocks(self) -> list[Array]:
        """Return views of the matrices D of the films."""
        blocks, first = [], 0
        for m in map(int, self._bodies.film_sizes):
            blocks.append(self._stiffness[first : first + m * m].reshape(m, m))
            first += m * m
        return blocks

    def renew_films(
        self, derivatives: Derivatives, forces: tuple[Array, Array] | None = None
    ) -> None:
        """Compute the matrices D of films at the last residual, and a new factor.

        Args:
            derivatives: Derivatives of the step.
            forces: Result of `predict` for the last correction; only those films are renewed whose
                forces differ too much from the prediction. Without it, all films are renewed.
        """
        for k in self._inaccurate_films(forces):
            self._blocks[k][:] = self._bodies.film_stiffness(k, derivatives, assembled=False)
        self._factorize_films()

    def predict(self, derivatives: Derivatives) -> tuple[Array, Array] | None:
        """Return the last forces of all films, and those after the last solution.

        They are the forces on the coefficients of the gaps, (coefficients,), N; None without films.
        """
        if not self._bodies.has_films:
            return None
        forces = np.concatenate(self._bodies.eqs.loads.gap_forces())
        return forces, forces - derivatives.a_by_move * self._film_forces

    def _inaccurate_films(self, forces: tuple[Array, Array] | None) -> Sequence[int]:
        """Return the films whose derivatives are too inaccurate for another correction."""
        sizes = self._bodies.film_sizes
        if forces is None:
            return range(len(sizes))
        first, now = np.cumsum([0, *sizes])[:-1], self._bodies.eqs.loads.gap_forces()
        changes, errors = (
            np.maximum.reduceat(np.abs(np.concatenate(now) - x), first) for x in forces
        )
        # predicted error of the next force: the last error times its ratio to the last change
        is_accurate = errors * errors <= _SMALL_ERROR * errors.max() * changes
        return [int(k) for k in np.flatnonzero(~is_accurate)]

    def solve(self, rhs: Array) -> Array:
        """Return the solution for a right-hand side (unknowns,), or several (unknowns, columns).

        A single right-hand side is overwritten.
        """
        if rhs.ndim > 1:
            return np.column_stack([self._solution(column.copy())[0] for column in rhs.T])
        x, self._film_forces = self._solution(rhs)
        return x

    def _solution(self, rhs: Array) -> tuple[Array, Array]:
        """Return the solution, which overwrites the right-hand side, and the forces of the films.

        With X = H_LB H_BB⁻¹ and the values a of the films and b of the constraints, φ follows from
        (1 + D (H_LL − X H_BL)) φ = D (a − X b), and μ from H_BB μ = b − H_BL φ.
        """
        n, films, q = len(self.mass), len(self._H), self._bodies.eqs.q
        (groups, matrices, ports), (unknowns, bodies) = self._tables, self._places
        motion, values = np.empty(n), np.empty(films + len(self._of_films))
        reduce_to_connections(
            groups, matrices, ports, unknowns, bodies, q, self._changes, rhs, motion, values
        )
        of_films, of_joints = values[:films], values[films:]
        if films:
            of_films -= self._by_joints @ of_joints
            first = 0
            for D in self._blocks:
                part = slice(first, first := first + len(D))
                of_films[part] = D @ of_films[part]
            of_films[:] = _getrs(self._lu, self._pivots, of_films, trans=1)[0]
            of_joints -= self._of_films @ of_films
        if len(of_joints):
            of_joints[:] = _getrs(self._joint_lu, self._joint_pivots, of_joints, trans=1)[0]
        expand_from_connections(
            groups, matrices, ports, unknowns, bodies, q, self._g, motion, values, rhs
        )
        return rhs, of_films

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
        present = {
            "stiffness": self._stiffness.copy(),
            **{name: getattr(self, f"_{name}").copy() for name in _PRESENT},
        }
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
        if "by_bores" not in arrays or not bodies:
            return None
        return cls(bodies, arrays)


def _factorize(matrix: Array) -> tuple[NDArray[np.int32], bool]:
    """Overwrite a matrix by its LU factors; return the pivots and whether none is zero."""
    if not len(matrix):
        return np.zeros(0, np.int32), True
    _, pivots, info = _getrf(matrix, overwrite_a=True)
    return pivots, bool(info == 0 and np.isfinite(matrix[-1]).all())


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
