"""Basis of a reduction before the reference condition: columns, their labels, and free modes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.determinate_support import centred_motions
from dolfinx_mbd.fem.phases import Phases
from dolfinx_mbd.linalg.options import Options
from dolfinx_mbd.modal.spectrum import hertz, spectrum
from dolfinx_mbd.reduction.stiffening import UnitCases
from dolfinx_mbd.reduction.truncation import Truncation

__all__ = ["Basis", "free_basis"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that span the reduced space, before orthonormalization.

    Attributes:
        vectors: Shape (owned dofs, columns), Fortran order.
        labels: What each column is.
        frequencies: Of the fixed-interface (or free) modes among them, Hz.
        num_modes: Number of fixed-interface (or free) modes: as many as were requested, and those
            that complete a multiple eigenvalue. With `effective_mass` only some of them are there.
        averaged: Columns that are constraint modes of averaged interfaces.
        reactions: Forces and moments at the averaged interfaces in each constraint mode, shape
            (len(averaged), constraint modes): rows of the stiffness ΨᵀKΨ that came from the
            multipliers.
        cases: What the unit loads of `stiffening` do, if asked for.
        truncation: What is left out at the interfaces; None without interfaces.
    """

    vectors: Array
    labels: tuple[str, ...]
    frequencies: Array
    num_modes: int
    averaged: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    reactions: Array | None = None
    cases: UnitCases | None = None
    truncation: Truncation | None = None


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

    See `spectrum`.

    Note: Collective.
    """
    held = np.zeros(0, dtype=np.int32)
    solver: dict[str, Any] = {"prefix": prefix, "options": options, "phases": phases}
    motions = centred_motions(problem)
    result = spectrum(problem, num_modes, held, motions, estimate=estimate, **solver)
    rigid, count = problem.num_rigid, len(result.squares)
    vectors = np.asfortranarray(np.hstack([motions, result.vectors]))
    labels = [f"rigid {k + 1}" for k in range(rigid)] + [f"free {k + 1}" for k in range(count)]
    return Basis(vectors, tuple(labels), hertz(result.squares), count)
