"""Factors of the iteration matrix of a system with oil films in elastic bores.

Joints and elastic films connect bodies whose own matrices are nearly constant in axes that rotate
with the bodies. The iteration matrix is

    S = [T + Lᵀ D L   Bᵀ]
        [B            0 ]

where T has one block for each group of bodies that other loads couple strongly, B are the
derivatives of the constraints, and L those of the coefficients σ of the gaps of all films.
`a_by_move` and `v_by_move` are the derivatives of accelerations and velocities with respect to the
increments of a step. −D `a_by_move` is the derivative of the forces of the films with respect to σ,
plus `v_by_move` times that with respect to dσ/dt. With P = [L; B] and H = P T⁻¹ Pᵀ, the forces
φ = D L x of the films and the multipliers μ for a right-hand side (r, r_B) follow from

    [1 + D H_LL   D H_LB] [φ]   [D L T⁻¹ r     ]
    [H_BL         H_BB  ] [μ] = [B T⁻¹ r − r_B],   x = T⁻¹ (r − Pᵀ (φ, μ)),

which has one unknown for each coefficient of a gap and each constraint. B, L, D and the axes of T
are renewed without new factors of T if the iteration is slow, and D only for films whose forces
differ from the prediction by the last correction. S neglects weak couplings by other loads, and the
couplings of bodies by the drag of films and by the rotation of the forces of films and joints; the
residual contains them.

Reference:
    C. Farhat, F.-X. Roux, A method of finite element tearing and interconnecting and its parallel
    solution algorithm, Int. J. Numer. Methods Eng. 32 (1991) (forces of connections as unknowns).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, get_lapack_funcs

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.dynamics.assembly.assembler import Assembler
from dolfinx_mbd.dynamics.stepping.body_factor import coupled_bodies
from dolfinx_mbd.dynamics.stepping.formulas import Derivatives
from dolfinx_mbd.kernels.body_table import FIRST_Q, FIRST_V
from dolfinx_mbd.kernels.columns import QUATERNION
from dolfinx_mbd.kernels.rotations import rotation_matrix
from dolfinx_mbd.kernels.time_steps import rotate_rows

__all__ = ["BodyInverses", "FilmFactor", "FilmStiffness"]

Index = NDArray[np.int64] | slice
_Ports = tuple[NDArray[np.int64], Array, Array]

# A film keeps its derivatives if the error that they probably cause in its next force is smaller
# than this fraction of the largest error of a film in its last force
_SMALL_ERROR = 1e-4

# Loads couple two bodies in T if an entry, divided by the square roots of the two entries on the
# diagonal, is larger than this
_COUPLED = 0.1

_getrf, _getrs = get_lapack_funcs(("getrf", "getrs"), (np.zeros((1, 1)),))
_AS_THEY_ARE, _TRANSPOSED = False, True  # blocks in `rotate_rows`


class FilmStiffness:
    """Connections of the bodies of a system by joints and elastic films, and their derivatives.

    Args:
        eqs: Assembler of the system.
        scale: Mass that scales constraints and multipliers, kg.
    """

    def __init__(self, eqs: Assembler, scale: float) -> None:
        self._eqs, self._loads, self._scale = eqs, eqs.loads, scale
        table, s = eqs.frames.bodies.table, eqs.system
        self._columns = np.ascontiguousarray(table[:, FIRST_V])
        self._coordinates = [int(k) for k in table[:, FIRST_Q]]
        self._coefficients = eqs.loads.gap_coefficients
        # unknowns of the bodies in each group
        groups = eqs.loads.groups_without_films() if self else []
        indices = np.arange(s.num_velocities)
        self._groups = [[indices[s.v_slices[k]] for k in group] for group in groups]

    def __bool__(self) -> bool:
        return self._loads.has_elastic_films and not self._eqs.system.velocity_rows.any()

    def factor(
        self, matrix: Array, dt: float, mass: Array, derivatives: Derivatives
    ) -> FilmFactor | None:
        """Return a factor of the matrix that was assembled last, or None if it is singular."""
        films = range(len(self._loads.gap_forces()))
        blocks = [self._block(k, derivatives, assembled=True) for k in films]
        connections = self._connections(derivatives)
        first, T = 0, matrix[: len(mass), : len(mass)].copy()
        for block in blocks:
            left, right = connections[:, first : first + len(block)]
            T -= left.T @ (block @ right)
            first += len(block)
        try:
            parts: list[tuple[Index, Array]] = [
                (_index(k), np.asarray(np.linalg.inv(T[k[:, None], k]), dtype=np.float64))
                for bodies in self._groups
                for k in _coupled(T, bodies)
            ]
        except np.linalg.LinAlgError:
            return None
        rotations = self._rotations()
        bodies = BodyInverses(dt, mass, parts, self._columns, rotations)
        identities = np.tile(np.eye(3), (len(rotations), 1, 1))
        factor = FilmFactor(bodies, identities, connections, blocks)
        return factor if factor.is_regular else None

    def predict(self, factor: FilmFactor, derivatives: Derivatives) -> tuple[Array, Array]:
        """Return the last forces of all films, and those after the last solution of the factor.

        They are the forces on the coefficients of the gaps, (coefficients,), N.
        """
        forces = np.concatenate(self._loads.gap_forces())
        change = -derivatives.a_by_move * factor.film_forces[: len(forces)]
        return forces, forces + change

    def renewed(
        self,
        factor: FilmFactor,
        derivatives: Derivatives,
        forces: tuple[Array, Array] | None,
        *,
        moves: bool,
    ) -> FilmFactor:
        """Return the factor with derivatives of the films at the last residual.

        Args:
            factor: The factor.
            derivatives: Derivatives of the step.
            forces: Result of `predict` for the last correction; only those films are renewed whose
                forces differ too much from the prediction. Without it, all films are renewed.
            moves: Whether the axes of bodies and joints and the directions of films are renewed.
        """
        blocks = list(factor.blocks)
        for k in self._inaccurate_films([len(block) for block in blocks], forces):
            blocks[k] = self._block(k, derivatives, assembled=False)
        if not moves:
            return factor.with_films(blocks)
        return factor.renewed(self._connections(derivatives), blocks, self._rotations())

    def _inaccurate_films(
        self, sizes: Sequence[int], forces: tuple[Array, Array] | None
    ) -> Sequence[int]:
        """Return the films whose derivatives are too inaccurate for another correction.

        `sizes` are the numbers of coefficients of the gaps of all films; for `forces` see
        `renewed`.
        """
        if forces is None:
            return range(len(sizes))
        first, now = np.cumsum([0, *sizes])[:-1], np.concatenate(self._loads.gap_forces())
        changes, errors = (np.maximum.reduceat(np.abs(now - x), first) for x in forces)
        # predicted error of the next force: the last error times its ratio to the last change
        keep = errors * errors <= _SMALL_ERROR * errors.max() * changes
        return [int(k) for k in np.flatnonzero(~keep)]

    def _connections(self, derivatives: Derivatives) -> Array:
        """Return the matrices P of the rows and of the columns of S, (2, coefficients + nc, nv).

        The rates dσ/dt = L(q) v depend on the increments also through L. Their derivative is
        `v_by_move` times L at the point that is reached, at constant velocity, after the time
        1 / `v_by_move`. P of the columns contains this L, because the largest terms of D are the
        derivatives with respect to the rates. P of the rows contains L at the present point.
        """
        eqs, s = self._eqs, self._eqs.system
        q, t = eqs.q.copy(), eqs.frames.time
        P = np.zeros((2, self._coefficients + s.num_constraints, s.num_velocities))
        eqs.move(q, eqs.v / derivatives.v_by_move)
        eqs.update_poses(t)
        eqs.frames.update_jacobians()
        self._loads.write_gap_jacobian(P[1])
        eqs.q[:] = q
        eqs.update_poses(t)
        P[:, self._coefficients :] = self._scale * eqs.constraint_matrix()
        self._loads.write_gap_jacobian(P[0])
        return P

    def _rotations(self) -> Array:
        """Return the rotation matrices of all bodies whose translations are in global axes."""
        q = self._eqs.q
        rotations = [rotation_matrix(q[k:][QUATERNION]) for k in self._coordinates]
        return np.array(rotations).reshape(-1, 3, 3)

    def _block(self, k: int, derivatives: Derivatives, *, assembled: bool) -> Array:
        """Return the matrix D of the film k; see `Loads.gap_stiffness`."""
        a_by_move, v_by_move, _ = derivatives
        block = self._loads.gap_stiffness(k, v_by_move, assembled=assembled)
        return np.asarray(block / -a_by_move, dtype=np.float64)


class BodyInverses(NamedTuple):
    """Inverse of T.

    Attributes:
        dt: Time step, s.
        mass: Mass matrix, (nv, nv).
        parts: Unknowns of each group of bodies, and the inverse of its block of T.
        columns: First columns of the translations of bodies whose axes rotate.
        rotations: Rotation matrices of these bodies at the point of T, (bodies, 3, 3).
    """

    dt: float
    mass: Array
    parts: Sequence[tuple[Index, Array]]
    columns: NDArray[np.int64]
    rotations: Array


class FilmFactor:
    """A factor of the iteration matrix with the interface of `DenseFactor`.

    Args:
        bodies: Inverse of T.
        turns: Rotations of the bodies since the point of T, in global axes, (bodies, 3, 3).
        connections: P of rows and of columns in the axes of T, (2, coefficients + nc, nv).
        blocks: Matrix D of each film.
        other: A factor with the same first three arguments.

    Attributes:
        is_regular: Whether no pivot is zero.
        film_forces: Forces φ of all films, then multipliers, of the last solution for one
            right-hand side.
    """

    def __init__(
        self,
        bodies: BodyInverses,
        turns: Array,
        connections: Array,
        blocks: Sequence[Array],
        other: FilmFactor | None = None,
    ) -> None:
        self.dt, self.mass, self.noise = bodies.dt, bodies.mass, np.zeros(0)
        self.blocks, self._bodies = blocks, bodies
        self.film_forces: Array = np.zeros(0)
        self._turns, self._connections = turns, connections
        self._ports: list[_Ports]
        self._H: Array
        self._ports, self._H = self._responses() if other is None else (other._ports, other._H)
        matrix, films = self._film_forces(self._H), np.arange(sum(map(len, blocks)))
        matrix[films, films] += 1.0
        self._lu, self._pivots, info = _getrf(matrix.T, overwrite_a=True)
        self.is_regular = bool(info == 0 and np.isfinite(self._lu[-1]).all())

    def _responses(self) -> tuple[list[_Ports], Array]:
        """Return the connections of each group of bodies, P and T⁻¹ Pᵀ of the group, and H."""
        size = self._connections.shape[1]
        parts, H = [], np.zeros((size, size))
        for unknowns, inverse in self._bodies.parts:
            left, right = self._connections[:, :, unknowns]
            ports = np.flatnonzero(left.any(axis=1))
            right, motions = right[ports], inverse @ left[ports].T
            H[np.ix_(ports, ports)] += right @ motions
            parts.append((ports, right, motions))
        return parts, H

    def renewed(self, connections: Array, blocks: Sequence[Array], rotations: Array) -> FilmFactor:
        """Return the factor for new P, D and rotation matrices of the bodies.

        Args:
            connections: P of rows and of columns, (2, coefficients + nc, nv), which is overwritten.
            blocks: Matrix D of each film.
            rotations: Rotation matrices, (bodies, 3, 3).
        """
        turns = np.ascontiguousarray(rotations @ self._bodies.rotations.transpose(0, 2, 1))
        places = np.add.outer(self._bodies.columns, np.arange(3))
        connections[:, :, places] = np.einsum("pgbi,bij->pgbj", connections[:, :, places], turns)
        return FilmFactor(self._bodies, turns, connections, blocks)

    def with_films(self, blocks: Sequence[Array]) -> FilmFactor:
        """Return the factor with new matrices D of the films."""
        return FilmFactor(self._bodies, self._turns, self._connections, blocks, self)

    def solve(self, rhs: Array) -> Array:
        """Return the solution for right-hand sides (unknowns,) or (unknowns, columns)."""
        n, size, columns = len(self.mass), len(self._H), self._bodies.columns
        parts = self._bodies.parts
        x: Array = np.array(rhs, order="C")
        forces: Array = np.zeros((size, *rhs.shape[1:]))
        rotate_rows(self._turns, columns, _TRANSPOSED, x.reshape(len(x), -1))
        for (unknowns, inverse), (ports, right, _) in zip(parts, self._ports, strict=True):
            x[unknowns] = motion = inverse @ x[unknowns]
            forces[ports] += right @ motion
        forces = self._film_forces(forces)
        forces[size - len(rhs) + n :] -= rhs[n:]
        forces = _getrs(self._lu, self._pivots, forces, trans=1)[0].reshape(forces.shape)
        if rhs.ndim == 1:
            self.film_forces = forces
        for (unknowns, _), (ports, _, motions) in zip(parts, self._ports, strict=True):
            x[unknowns] -= motions @ forces[ports]
        rotate_rows(self._turns, columns, _AS_THEY_ARE, x.reshape(len(x), -1))
        x[n:] = forces[size - len(rhs) + n :]
        return x

    def inertia(self, increments: Array) -> Array:
        """Return the product (nv,) of the mass matrix, in its rotated axes, with increments."""
        x: Array = np.array(increments[:, None], order="C")
        rotate_rows(self._turns, self._bodies.columns, _TRANSPOSED, x)
        x = np.ascontiguousarray(self.mass @ x)
        rotate_rows(self._turns, self._bodies.columns, _AS_THEY_ARE, x)
        return x[:, 0]

    def _film_forces(self, rows: Array) -> Array:
        """Return an array in which the rows of the films are multiplied by D."""
        result, first = rows.copy(), 0
        for block in self.blocks:
            part = slice(first, first := first + len(block))
            result[part] = block @ rows[part]
        return result

    def memory(self) -> dict[str, Any]:
        """Return the arrays from which `restored` creates a bitwise identical factor."""
        _, _, inverses, columns, rotations = self._bodies
        groups = np.zeros(len(self.mass), dtype=np.int64)
        for k, (unknowns, _) in enumerate(inverses):
            groups[unknowns] = k
        parts = {"groups": groups, "inverse": block_diag(*(inverse for _, inverse in inverses))}
        parts |= {"columns": columns, "rotations": rotations, "turns": self._turns}
        parts |= {"connections": self._connections}
        parts |= {str(k): block for k, block in enumerate(self.blocks)}
        factor = {"dt": self.dt, "mass": self.mass, "noise": self.noise}
        return factor | {f"film_{name}": values for name, values in parts.items()}

    @classmethod
    def restored(cls, memory: Mapping[str, Any]) -> FilmFactor:
        """Return the factor that `memory` describes."""
        part = {
            name.removeprefix("film_"): np.asarray(values)
            for name, values in memory.items()
            if name.startswith("film_")
        }
        inverses: list[tuple[Index, Array]] = []
        first = 0
        for k in range(int(part["groups"].max()) + 1):
            unknowns = np.flatnonzero(part["groups"] == k)
            block = slice(first, first := first + len(unknowns))
            inverses.append((_index(unknowns), part["inverse"][block, block].copy()))
        dt, mass = float(memory["dt"]), np.asarray(memory["mass"])
        bodies = BodyInverses(dt, mass, inverses, part["columns"], part["rotations"])
        blocks = [part[str(k)] for k in range(len(part)) if str(k) in part]
        factor = cls(bodies, part["turns"], part["connections"], blocks)
        factor.noise = np.asarray(memory["noise"])
        return factor


def _coupled(T: Array, bodies: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Return the unknowns of groups of bodies, (unknowns of a group,), that loads couple in T."""
    unknowns, ends = np.concatenate(bodies), np.cumsum([len(body) for body in bodies])
    groups = coupled_bodies(T[np.ix_(unknowns, unknowns)], np.append(0, ends[:-1]), _COUPLED)
    return [np.sort(np.concatenate([bodies[k] for k in group])) for group in groups]


def _index(unknowns: NDArray[np.int64]) -> Index:
    """Return ascending indices as a slice if possible."""
    first, last = int(unknowns[0]), int(unknowns[-1])
    return slice(first, last + 1) if last - first + 1 == len(unknowns) else unknowns
