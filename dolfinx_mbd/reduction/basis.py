"""Basis of a reduction before the reference condition is applied; basis of a free body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.free_motions import centred_motions
from dolfinx_mbd.fem.interfaces.bores import BorePatterns
from dolfinx_mbd.fem.modal.spectrum import elastic_modes
from dolfinx_mbd.reduction.stiffening import UnitCases
from dolfinx_mbd.reduction.truncation import Truncation


class ColumnKind(Enum):
    """Kinds of columns of a basis, and of modes."""

    CONSTRAINT = "constraint"  # unit displacement or rotation of an interface, the others held
    FIXED = "fixed"  # vibration with all interfaces held
    LOAD = "load"  # static solution of a load with all interfaces held
    RIGID = "rigid"  # rigid motion
    FREE = "free"  # vibration of a body without interfaces
    ELASTIC = "elastic"  # orthonormal mode, a combination of columns


@dataclass(frozen=True)
class Column:
    """Description of a column of a basis, or of a mode."""

    kind: ColumnKind
    name: str = ""  # name of the interface or of the load
    component: str = ""  # coordinate of the interface, such as `ux` or `rz`
    number: int = 0  # number of the mode, from 1; 0 for constraint modes and loads

    @property
    def label(self) -> str:
        """Return a text for tables: ``constraint left ux``, ``fixed 3`` or ``load gas``."""
        parts = (self.kind.value, self.name, self.component, str(self.number or ""))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that span the reduced space, before orthonormalization.

    `num_modes` counts the fixed-interface (or free) modes before a selection by `effective_mass`,
    including modes that complete a multiple eigenvalue. `reactions` are the forces and moments at
    averaged interfaces in each constraint mode; they equal rows of the stiffness ΨᵀKΨ.
    """

    vectors: Array  # (owned dofs, columns), Fortran order
    columns: tuple[Column, ...]
    num_modes: int
    # indices of the constraint modes of averaged interfaces
    averaged: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    reactions: Array | None = None  # (constraint modes of averaged interfaces, constraint modes)
    cases: UnitCases | None = None
    truncation: Truncation | None = None
    bores: tuple[BorePatterns, ...] = ()

    @property
    def is_constraint(self) -> NDArray[np.bool_]:
        """Return whether each column is a constraint mode, shape (columns,)."""
        return np.array([c.kind is ColumnKind.CONSTRAINT for c in self.columns], dtype=bool)


def free_basis(
    problem: ElasticProblem, num_modes: int, *, estimate: float | None = None, **settings: Any
) -> Basis:
    """Return the exact rigid motions and the lowest elastic modes of a free body in one part.

    `estimate` is an upper bound of the first elastic ω², computed by default. `settings` are the
    arguments `prefix`, `options` and `phases` of `elastic_modes`.
    """
    held = np.zeros(0, dtype=np.int32)
    motions = centred_motions(problem)
    modes = elastic_modes(problem, num_modes, held, motions, estimate=estimate, **settings)
    rigid, count = problem.num_rigid, len(modes.squares)
    vectors = np.asfortranarray(np.hstack([motions, modes.vectors]))
    columns = numbered(ColumnKind.RIGID, range(rigid)) + numbered(ColumnKind.FREE, range(count))
    return Basis(vectors, columns, count)


def numbered(kind: ColumnKind, indices: Iterable[int]) -> tuple[Column, ...]:
    """Return a description of each column; the numbers start at 1, the indices at 0."""
    return tuple(Column(kind, number=k + 1) for k in indices)
