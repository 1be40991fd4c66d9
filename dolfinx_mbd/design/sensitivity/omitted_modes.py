"""Derivatives of the modes of a body that is reduced with `up_to`.

The modes below the limit are eigenvectors in the span of all modes, with K = Λ and M = I. In the
coordinates of all modes their derivatives are the columns of K′_ok / (λ_k − λ_o) for the omitted
modes o and the other modes k.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body.multiple import MULTIPLE_TOLERANCE
from dolfinx_mbd.design.sensitivity.split import SplitModes
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.interfaces.averaged import border_rows
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import column_sums, gram, multiply

AT_THE_LIMIT = (
    "a reduction with a frequency at the limit `up_to`, because its number of modes changes. "
    "Reduce without `up_to`, and truncate the result: table.at(values).truncated(n)"
)


def at_the_limit(reduction: Any) -> bool:
    """Return whether the limit `up_to` does not separate the frequencies of the modes."""
    limit = reduction.body.provenance.get("up to (Hz)")
    if limit is None or reduction.omitted is None:
        return False
    return bool(reduction.body.frequencies[-1] > (1 - MULTIPLE_TOLERANCE) * float(limit))


def interface_averages(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], X: Array
) -> Array:
    """Return the motion of the interfaces in displacements, (coordinates, columns); collective."""
    comm = problem.comm
    rows: list[Array] = [np.zeros((0, X.shape[1]))]
    for interface in interfaces:
        border = border_rows(problem.num_owned, (interface,))
        if border is None:
            R = problem.rigid_motions(interface.point, interface.blocks)
            mean = np.linalg.solve(gram(comm, R, R), gram(comm, R, X[interface.dofs]))
            rows.append(np.asarray(mean, dtype=float))
        else:
            rows.append(gram(comm, border, X))  # type: ignore[arg-type]
    return np.vstack(rows)


def without_omitted_modes(
    problem: Any, split: SplitModes, forces: Array, changes: Array, motions: Array
) -> tuple[Array, Array]:
    """Return the derivatives of the first modes and of their interface motions; collective.

    Args:
        problem: Matrices of the body or of the beam.
        split: Modes, including the omitted ones.
        forces: K′Ψ with the modes Ψ that are not omitted.
        changes: Derivatives of all modes, shape (owned dofs, n).
        motions: Derivatives of the interface motions in all modes, shape (coordinates, n).
    """
    comm, K, count = problem.comm, problem.stiffness, forces.shape[1]
    modes, others = (np.asfortranarray(X) for X in np.hsplit(split.modes, [count]))
    stiffened, other_stiffened = multiply(K, modes), multiply(K, others)
    forces = forces + multiply(K, np.asfortranarray(changes[:, :count]))
    coupling = gram(comm, others, forces)
    coupling += gram(comm, np.asfortranarray(changes[:, count:]), stiffened)
    squares = column_sums(comm, modes, stiffened)
    turn = coupling / (squares - column_sums(comm, others, other_stiffened)[:, None])
    return (
        np.asfortranarray(changes[:, :count] + others @ turn),
        motions[:, :count] + split.motions[:, count:] @ turn,
    )
