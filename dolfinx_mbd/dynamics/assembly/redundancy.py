"""Detection of redundant constraints, which depend on other constraints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.kernels.columns import ABOUT_X
from dolfinx_mbd.mechanism.system import System

Index = NDArray[np.integer]

_ZERO_ROW = 1e-12  # a dimensionless row of B of at most this length constrains no motion

#: Largest distance of a redundant row of unit length from the span of the rows before it.
DEPENDENT = 1e-9

#: The same limit for joints that fit together only up to a small misfit.
NEARLY_DEPENDENT = 1e-4


class Redundancy(NamedTuple):
    """A constraint that depends on other constraints.

    Attributes:
        row: Zero-based index of the constraint in the system.
        name: Description of the constraint.
        held_by: Descriptions of the other constraints, which together constrain the same motion.
        joints: Names of the joints and drivers of the other constraints.
    """

    row: int
    name: str
    held_by: tuple[str, ...]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (held by {', '.join(map(repr, self.joints)) or 'the ground'} already)"


def _order(system: System) -> list[int]:
    """Return the constraints in order of priority; of dependent constraints, the last is redundant.

    Drivers come first, then displacements, then rotations. Relations in m such as distances, and
    displacements of hinges along their axes, come last. If the hinges are parallel, their rotation
    constraints alone keep each body in its plane in every position, so that a misfit of the planes
    does not tilt a body.
    """
    joints = len(system.joints)

    def rank(row: int) -> tuple[int, int]:
        entry, motion = int(system.row_entry[row]), int(system.row_motion[row])
        if entry >= joints:
            return 0, row
        if motion >= 3:
            return 2, row
        joint = system.joints[entry]
        related = joint.constraint is not None and motion in joint.constraint.rows
        return (3 if related or (joint.kind, motion) == ("revolute", 2) else 1), row

    return sorted(range(system.num_constraints), key=rank)


def without_units(system: System, B: Array) -> tuple[Array, Array, Array]:
    """Return the dimensionless constraint matrix and the factors of its rows and columns.

    Lengths are relative to the size of the mechanism, angles in rad. A common factor for the
    elastic coordinates of a body makes the largest entry of their columns one.
    """
    rows = np.where(system.row_motion < ABOUT_X, 1.0 / system.size, 1.0)
    columns = np.ones(system.num_velocities)
    scaled = rows[:, None] * B
    for body, part in zip(system.bodies, system.v_slices, strict=True):
        floating = body.num_velocities - body.num_elastic == 6
        if floating:
            columns[part.start : part.start + 3] = system.size
        others = slice(part.start + 6 * floating, part.stop)
        largest = float(np.abs(scaled[:, others]).max(initial=0.0))
        columns[others] = 1.0 / largest if largest > 0 else 1.0
    return scaled * columns, rows, columns


def independent_rows(
    system: System, matrix: Array, limit: float = DEPENDENT
) -> tuple[list[int], Array]:
    """Return the indices of independent rows of a matrix (nc, n), and all remainders (nc,).

    Each row is scaled to unit length. Its remainder is the length of the part outside the span of
    earlier independent rows. Rows with a remainder below the limit are redundant.
    """
    lengths = np.linalg.norm(matrix, axis=1)
    scaled = matrix / np.where(lengths > _ZERO_ROW, lengths, np.inf)[:, None]
    order = _order(system)
    if len(order) <= matrix.shape[1]:  # in most mechanisms no row is redundant
        diagonal = np.abs(np.diag(np.linalg.qr(scaled[order].T, mode="r")))
        if diagonal.min(initial=1.0) > limit:
            remainders = np.empty(len(order))
            remainders[order] = diagonal
            return order, remainders
    remainders = np.zeros(len(order))
    independent: list[int] = []
    basis = np.zeros((min(matrix.shape), matrix.shape[1]))
    for row in order:
        span = basis[: len(independent)]
        remainder = scaled[row]
        for _ in range(2):  # the second pass removes round-off
            remainder = remainder - span.T @ (span @ remainder)
        remainders[row] = np.linalg.norm(remainder)
        if remainders[row] > limit and len(independent) < len(basis):
            basis[len(independent)] = remainder / remainders[row]
            independent.append(row)
    return independent, remainders


def find_redundant(
    system: System, B: Array, columns: Index | None = None, limit: float = DEPENDENT
) -> list[Redundancy]:
    """Return the redundant constraints, each with the constraints on which it depends.

    `columns` are the indices of the free velocities, by default of all columns of B (nc, nv).
    """
    matrix, _, _ = without_units(system, B)
    if columns is not None:
        matrix = matrix[:, columns]
    independent, _ = independent_rows(system, matrix, limit)
    redundant = []
    for row in sorted(set(range(system.num_constraints)) - set(independent)):
        weights = np.linalg.lstsq(matrix[independent].T, matrix[row], rcond=limit)[0]
        others = sorted(independent[k] for k in np.flatnonzero(np.abs(weights) > max(1e-6, limit)))
        names = tuple(system.constraint_name(k) for k in others)
        items = (*system.joints, *system.drivers)
        joints = dict.fromkeys(items[system.row_entry[k]].name for k in others)
        redundant.append(Redundancy(row, system.constraint_name(row), names, tuple(joints)))
    return redundant


def least_norm_multipliers(
    system: System, B_all: Array, B_part: Array, lam: Array, length: float
) -> Array:
    """Return the minimum-norm multipliers (nc,) that give the same forces as `lam`.

    `B_all` is the matrix B of all constraints. `B_part` is the matrix B of the constraints to which
    the multipliers `lam` belong. Moments are divided by `length` to compare them with forces.
    """
    weight = np.where(system.row_motion < ABOUT_X, 1.0, length)
    rcond = NEARLY_DEPENDENT if system.misfit.any() else 1e-10
    scaled = np.linalg.lstsq(B_all.T * weight, B_part.T @ lam, rcond=rcond)[0]
    return weight * scaled
