"""Constraints that repeat each other: find them, name them, and go on without them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.multibody.system import System

__all__ = ["Redundancy", "find_redundant", "least_norm_multipliers"]

Array = NDArray[np.float64]

_DEPENDENT = 1e-9  # of a row's length: what is left of it outside the rows before it


class Redundancy(NamedTuple):
    """A constraint row that other rows hold already.

    Attributes:
        row: Its number among the system's constraints.
        name: The row in words.
        held_by: The rows, in words, that together hold the same motion.
        joints: Names of the joints and drivers of those rows.
    """

    row: int
    name: str
    held_by: tuple[str, ...]
    joints: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} (held by {', '.join(map(repr, self.joints)) or 'the ground'} already)"


def _order(system: System) -> list[int]:
    """Rows in the order in which they are kept: drivers, displacements, rotations."""
    joints = len(system.joints)

    def rank(row: int) -> tuple[int, int]:
        if system.row_entry[row] >= joints:
            return 0, row
        return (1 if system.row_motion[row] < 3 else 2), row

    return sorted(range(system.num_constraints), key=rank)


def find_redundant(system: System, B: Array) -> list[Redundancy]:
    """Rows of the constraint matrix B (nc, nv) that depend on others, with what holds them.

    Displacements are kept before rotations, since a mechanism in a plane usually repeats rotations.
    """
    lengths = np.linalg.norm(B, axis=1)
    scaled = B / np.maximum(lengths, 1e-300)[:, None]
    kept: list[int] = []
    basis = np.zeros((0, B.shape[1]))
    redundant = []
    for row in _order(system):
        rest = scaled[row]
        for _ in range(2):  # twice is enough
            rest = rest - basis.T @ (basis @ rest)
        size = float(np.linalg.norm(rest))
        if lengths[row] > 0 and size > _DEPENDENT:
            kept.append(row)
            basis = np.vstack([basis, rest / size])
            continue
        weights = (
            np.linalg.lstsq(scaled[kept].T, scaled[row], rcond=None)[0] if kept else np.zeros(0)
        )
        holders = [kept[k] for k in np.flatnonzero(np.abs(weights) > 1e-6)]
        names = tuple(system.constraint_name(k) for k in sorted(holders))
        items = (*system.joints, *system.drivers)
        joints = dict.fromkeys(items[system.row_entry[k]].name for k in sorted(holders))
        redundant.append(Redundancy(row, system.constraint_name(row), names, tuple(joints)))
    return redundant


def least_norm_multipliers(
    system: System, whole: Array, part: Array, lam: Array, length: float
) -> Array:
    """Multipliers of all rows with the same constraint forces as those of a part, and the least
    norm.

    Args:
        system: The system with all its rows.
        whole: B of all rows, shape (nc, nv).
        part: B of the kept rows, shape (nk, nv).
        lam: Multipliers of the kept rows, shape (nk,).
        length: What moments are divided by to be measured with forces, m.

    Returns:
        Shape (nc,).
    """
    weight = np.where(system.row_motion < 3, 1.0, length)
    scaled = np.linalg.lstsq(whole.T * weight, part.T @ lam, rcond=1e-10)[0]
    return weight * scaled
