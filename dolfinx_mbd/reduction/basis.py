"""Basis of a reduction before the reference condition: its columns, and free modes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.determinate_support import centred_motions
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.modal.spectrum import elastic_modes, hertz
from dolfinx_mbd.reduction.stiffening import UnitCases
from dolfinx_mbd.reduction.truncation import Truncation

__all__ = ["Basis", "Column", "ColumnKind", "free_basis", "numbered"]

Array = NDArray[np.float64]


class ColumnKind(Enum):
    """Kinds of columns of a basis, and of modes."""

    CONSTRAINT = "constraint"
    """Unit displacement or rotation of an interface, with the others held."""
    FIXED = "fixed"
    """Vibration with all interfaces held."""
    LOAD = "load"
    """Static solution of a load with all interfaces held."""
    RIGID = "rigid"
    """Rigid motion."""
    FREE = "free"
    """Vibration of a body without interfaces."""
    ELASTIC = "elastic"
    """Orthonormal mode, a combination of columns."""


@dataclass(frozen=True)
class Column:
    """Description of a column of a basis, or of a mode.

    Attributes:
        kind: Its kind.
        name: Name of the interface or of the load; "" for other kinds.
        component: Coordinate of the interface, such as ``ux`` or ``rz``; "" for other kinds.
        number: Number of the mode, from 1 on; 0 for constraint modes and loads.
    """

    kind: ColumnKind
    name: str = ""
    component: str = ""
    number: int = 0

    @property
    def label(self) -> str:
        """Text for tables: ``constraint left ux``, ``fixed 3`` or ``load gas``."""
        parts = (self.kind.value, self.name, self.component, str(self.number or ""))
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that span the reduced space, before orthonormalization.

    Attributes:
        vectors: Shape (owned dofs, columns), Fortran order.
        columns: Descriptions of the columns.
        frequencies: Of the fixed-interface (or free) modes among them, Hz.
        num_modes: Number of fixed-interface (or free) modes: the requested number, and those that
            complete a multiple eigenvalue. With `effective_mass` the basis has only some of them.
        averaged: Columns that are constraint modes of averaged interfaces.
        reactions: Forces and moments at the averaged interfaces in each constraint mode, shape
            (len(averaged), constraint modes): rows of the stiffness ΨᵀKΨ from the multipliers.
        cases: Displacements under the unit loads of `stiffening`; None if not requested.
        truncation: Error at the interfaces; None without interfaces.
    """

    vectors: Array
    columns: tuple[Column, ...]
    frequencies: Array
    num_modes: int
    averaged: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    reactions: Array | None = None
    cases: UnitCases | None = None
    truncation: Truncation | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Texts for tables."""
        return tuple(column.label for column in self.columns)

    @property
    def is_constraint(self) -> NDArray[np.bool_]:
        """Whether each column is a constraint mode, shape (columns,)."""
        return np.array([c.kind is ColumnKind.CONSTRAINT for c in self.columns], dtype=bool)


def free_basis(
    problem: ElasticProblem,
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
    phases: Phases | None = None,
    estimate: float | None = None,
) -> Basis:
    """Return the exact rigid motions and the lowest elastic modes of a free body in one part.

    Args:
        problem: Matrices of the body.
        num_modes: Number of elastic modes.
        prefix: Prefix of the PETSc options.
        options: PETSc options without the prefix.
        phases: Collects the times of the computation; None: not collected.
        estimate: Upper bound of the first elastic ω², (rad/s)²; None: computed.

    Note: Collective.
    """
    held = np.zeros(0, dtype=np.int32)
    solver: dict[str, Any] = {"prefix": prefix, "options": options, "phases": phases}
    motions = centred_motions(problem)
    result = elastic_modes(problem, num_modes, held, motions, estimate=estimate, **solver)
    rigid, count = problem.num_rigid, len(result.squares)
    vectors = np.asfortranarray(np.hstack([motions, result.vectors]))
    columns = numbered(ColumnKind.RIGID, range(rigid)) + numbered(ColumnKind.FREE, range(count))
    return Basis(vectors, columns, hertz(result.squares), count)


def numbered(kind: ColumnKind, indices: Iterable[int]) -> tuple[Column, ...]:
    """Return columns of a kind whose numbers are their indices plus one."""
    return tuple(Column(kind, number=k + 1) for k in indices)
