"""Split of the modes of a reduced body into constraint modes and fixed-interface modes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.design.sensitivity.static_modes import StaticModes
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.reduction.craig_bampton import rigid_rows

RANK_TOLERANCE = 1e-9  # motions of interfaces above this relative size count as independent


@dataclass(frozen=True, eq=False)
class SplitModes:
    """Modes Ψ = C N + Φ Z of a body, and its rigid motions R̂ with R̂ᵀMR̂ = I.

    C are the constraint modes and Φ the fixed-interface modes. Ψ, Φ and R̂ have the shape
    (owned dofs, columns).
    """

    modes: Array  # Ψ
    rigid: Array  # R̂, M-orthonormal
    rigid_factor: Array  # R̂ = R · rigid_factor, with R about the origin
    motions: Array  # N, motion of the interfaces in each mode (coordinates, n)
    rigid_interfaces: Array  # motion of the interfaces in R̂ (coordinates, rigid motions)
    fixed: Array  # Φ
    combinations: Array  # Φ = (R̂, Ψ) · combinations
    squares: Array  # λ of Φ
    shares: Array  # Z (fixed-interface modes, n)
    statics: StaticModes | None = None  # load modes, which Φ does not contain


def split_modes(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    modes: Array,
    motions: Array,
    *,
    attached: bool = False,
) -> SplitModes:
    """Return the constraint and fixed-interface parts of orthonormal modes (collective).

    Args:
        problem: Matrices of the body.
        interfaces: Interfaces of the body.
        modes: Modes Ψ with ΨᵀMΨ = I, shape (owned dofs, n).
        motions: Motion of the interfaces, shape (coordinates, n).
        attached: Whether the body frame is attached to an interface; otherwise ΨᵀMR = 0.
    """
    comm, dim = problem.comm, problem.dim
    R: Array = problem.rigid_motions()[:, : 0 if attached else problem.num_rigid]
    factor = np.linalg.inv(np.linalg.cholesky(gram(comm, R, problem.apply_mass(R)))).T
    rigid = np.asfortranarray(R @ factor)
    of_rigid: Array = np.zeros((0, len(factor)))
    if interfaces:
        of_rigid = rigid_rows(interfaces, np.zeros(3), dim)[:, : len(factor)] @ factor
    all_motions = np.hstack([of_rigid, motions])
    size = np.linalg.norm(all_motions, axis=1)
    moving = all_motions[size > 0] / size[size > 0, None]  # an attached interface does not move
    null = scipy.linalg.null_space(moving) if len(moving) else np.eye(all_motions.shape[1])
    K = np.zeros((all_motions.shape[1],) * 2)
    K[len(factor) :, len(factor) :] = stiffness = gram(
        comm, modes, multiply(problem.stiffness, modes)
    )
    squares, y = scipy.linalg.eigh(null.T @ K @ null)
    if not interfaces:  # the first modes are the rigid motions
        squares, y = squares[len(factor) :], y[:, len(factor) :]
    coefficients = null @ y
    fixed = np.asfortranarray(np.hstack([rigid, modes]) @ coefficients)
    shares = coefficients[len(factor) :].T @ stiffness / squares[:, None]
    return SplitModes(modes, rigid, factor, motions, of_rigid, fixed, coefficients, squares, shares)


def deformed_part(split: SplitModes) -> tuple[Array, Array]:
    """Return A and an orthonormal F with C N = R̂ A + (C N − R̂ A) FᵀF.

    A is the rigid motion closest to the motion N of the interfaces. The rows of F span the other
    motions of the interfaces. Without interfaces, F has no rows.
    """
    rigid = np.linalg.pinv(split.rigid_interfaces) @ split.motions
    left = split.motions - split.rigid_interfaces @ rigid
    _, values, rows = np.linalg.svd(left, full_matrices=False)
    largest = np.linalg.norm(split.motions, 2) if split.motions.size else 0.0
    return rigid, rows[values > RANK_TOLERANCE * largest]
