"""Constraints of joints with a relation: values, gradients, forces and second derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.relation import (
    apply_constraints,
    constraint_gradients,
    constraint_seconds,
    relative_poses,
)
from dolfinx_mbd.mechanism.joint_relations import JointRelation
from dolfinx_mbd.mechanism.system import System


class RelationRows:
    """The constraints of all relations of a system, n in total.

    Relations of one class are evaluated together. `rows` (n,) are the indices of the constraints
    in the system, `entries` and `motions` (n,) their joints and numbers, and `on_velocities` (n,)
    tells which of them restrict velocities. `values` (n,) belong to the last `update`.
    """

    def __init__(self, system: System) -> None:
        self._joints = [k for k, joint in enumerate(system.joints) if joint.constraint is not None]
        relations = [joint.constraint for joint in system.joints if joint.constraint is not None]
        self._relations: list[JointRelation] = relations
        joints = np.array(self._joints, dtype=np.int64)
        self._first, self._second = system.first[joints], system.second[joints]
        owner = {entry: pair for pair, entry in enumerate(self._joints)}
        rows = []
        for row, number in enumerate(map(int, system.row_motion)):
            pair = owner.get(int(system.row_entry[row]), -1)
            if pair >= 0 and number in relations[pair].rows:
                place = [*relations[pair].rows].index(number)
                rows.append((row, self._joints[pair], number, pair, place))
        # `_pairs` are indices of relations, `_place` those of constraints within their relation
        table = np.array(rows, dtype=np.int64).reshape(len(rows), 5).T.copy()
        self.rows, self.entries, self.motions, self._pairs, self._place = table
        self.on_velocities = system.velocity_rows[self.rows]
        self._is_present = len(rows) > 0
        self._has_velocities = bool(self.on_velocities.any())
        self._frames = np.column_stack([self._first, self._second])
        self._groups = list(self._group(relations))
        # Relations that cannot hold in every position
        self._limited = [
            pair
            for pair, relation in enumerate(relations)
            if type(relation).problem is not JointRelation.problem
            or type(relation).initial_problem is not JointRelation.initial_problem
        ]
        count = max((len(relation.rows) for relation in relations), default=0)
        self._values: Array = np.zeros((len(relations), count))
        self._slopes: Array = np.zeros((len(relations), count, 6))
        # One class, and all its constraints in order: the arrays of its joints need no selection
        order = np.arange(len(relations) * count)
        in_order = np.array_equal(count * self._pairs + self._place, order)
        self._is_plain = len(self._groups) == 1 and in_order
        self.values: Array = np.zeros(len(rows))
        self._row_slopes: Array = np.zeros((len(rows), 6))

    @staticmethod
    def _group(relations: list[JointRelation]) -> Iterator[tuple[type[JointRelation], Any, Any]]:
        """Yield each class of relations with the parameters and the indices of its joints."""
        kinds = dict.fromkeys(type(relation) for relation in relations)
        for kind in kinds:
            pairs = [k for k, relation in enumerate(relations) if type(relation) is kind]
            yield kind, kind.parameters([relations[k] for k in pairs]), np.array(pairs)

    def __bool__(self) -> bool:
        return self._is_present

    def update(self, position: Array, rotation: Array) -> None:
        """Compute `values` and the derivatives of the constraints at the poses of all frames."""
        self._rotation = rotation
        self._d, self._R = relative_poses(position, rotation, self._first, self._second)
        if self._is_plain:
            ((kind, parameters, _),) = self._groups
            values, slopes = kind.evaluate(parameters, self._d, self._R)
            self.values, self._row_slopes = values.ravel(), slopes.reshape(-1, 6)
        else:
            for kind, parameters, pairs in self._groups:
                values, slopes = kind.evaluate(parameters, self._d[pairs], self._R[pairs])
                self._values[pairs, : values.shape[1]] = values
                self._slopes[pairs, : values.shape[1]] = slopes
            self.values = self._values[self._pairs, self._place]
            self._row_slopes = self._slopes[self._pairs, self._place]
        if self._has_velocities:
            self.values[self.on_velocities] = 0.0

    def gradients(self) -> Array:
        """Return the gradients (n, 12) with respect to the poses of both frames."""
        return constraint_gradients(
            self._rotation, self._first, self._pairs, self._d, self._row_slopes
        )

    def rates(self, velocities: Array) -> Array:
        """Return the rates of the m constraints on velocities, (m,), at velocities (frames, 6)."""
        frames, rows = self._frames[self._pairs], self.on_velocities
        u = velocities[frames[rows]].reshape(-1, 12)
        return np.asarray(np.einsum("nk,nk->n", self.gradients()[rows], u))

    def subtract_forces(self, lam: Array, wrenches: Array) -> None:
        """Subtract the gradients times the multipliers λ (nc,) from the wrenches (frames, 6)."""
        apply_constraints(
            self._rotation, self._frames, self._pairs, self.rows, self._d, self._row_slopes, lam,
            wrenches,
        )  # fmt: skip

    def seconds(self) -> Array:
        """Return the derivatives (n, 12, 12) of the gradients, after `update`."""
        points = zip(self._relations, self._d, self._R, strict=True)
        parts = [relation.second(d, R) for relation, d, R in points]
        second = [parts[k][i] for k, i in zip(self._pairs, self._place, strict=True)]
        law = np.array(second, dtype=float).reshape(len(second), 6, 6)
        return constraint_seconds(
            self._rotation, self._first, self._pairs, self._d, self._row_slopes, law
        )

    def problem(self, position: Array, rotation: Array, initial: bool) -> tuple[int, str] | None:
        """Return the index of the first joint that cannot be in its position, and the reason."""
        if self._limited:
            d, R = relative_poses(position, rotation, self._first, self._second)
            for pair in self._limited:
                relation = self._relations[pair]
                check = relation.initial_problem if initial else relation.problem
                if text := check(d[pair], R[pair]):
                    return self._joints[pair], text
        return None
