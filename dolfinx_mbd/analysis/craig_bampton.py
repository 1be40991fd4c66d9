"""Craig-Bampton basis of a body with rigid interfaces, and its mean-axis form.

The basis is Ψ = [constraint modes | fixed-interface modes]: one unit displacement or rotation of an
interface with the others held, and the lowest modes with all interfaces held. One factorization of
the stiffness with the interfaces held serves both. With the full K and M the small matrices ΨᵀKΨ
and ΨᵀMΨ follow; the six rigid motions, which lie in the span of Ψ, are removed by M-orthogonal
projection, and the eigenvectors of what remains are the modes of the body: M = I, K = diag(ω²), all
elastic and M-orthogonal to the rigid motions (Tisserand's mean axis).

References:
    Craig, Bampton (1968), Coupling of substructures for dynamic analyses, AIAA J. 6, 1313-1319.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dolfinx_mbd.analysis.assembly import ElasticProblem, rigid_motions
from dolfinx_mbd.analysis.eigen import lowest_modes
from dolfinx_mbd.analysis.interfaces import MeshInterface
from dolfinx_mbd.analysis.la import (
    FactorizationError,
    Options,
    agreed,
    cholesky,
    constrain,
    gram,
    multiply,
    solve,
)
from dolfinx_mbd.analysis.phases import Phases

__all__ = ["Basis", "MeanAxis", "craig_bampton_basis", "mean_axis"]

Array = NDArray[np.float64]

COMPONENTS = ("ux", "uy", "uz", "rx", "ry", "rz")

REPRODUCTION_TOLERANCE = 1e-6
"""Relative error of a rigid motion of all interfaces from which the body is in parts."""

DEPENDENT_TOLERANCE = 1e-10
"""Squared M-norm of what is new in a column, relative to the column, below which it is dropped."""


@dataclass(frozen=True, eq=False)
class Basis:
    """Columns that span the reduced space, before orthonormalization.

    Attributes:
        vectors: Shape (owned dofs, columns), Fortran order.
        labels: What each column is.
        frequencies: Of the fixed-interface (or free) modes among them, Hz.
    """

    vectors: Array
    labels: tuple[str, ...]
    frequencies: Array


def craig_bampton_basis(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    num_modes: int,
    *,
    prefix: str,
    options: Options = None,
    phases: Phases | None = None,
) -> Basis:
    """Constraint modes of all interfaces (6 each, body axes), then fixed-interface modes.

    Args:
        problem: Matrices of the free body.
        interfaces: At least one, without common degrees of freedom.
        num_modes: Fixed-interface modes.
        prefix: PETSc options prefix.
        options: PETSc options without the prefix.
        phases: Collects the seconds.

    Raises:
        FactorizationError: A part of the body is not held, or the solver failed.
        EigenError: The eigenvalue solver did not converge.
        ValueError: More modes are asked for than there are free degrees of freedom.

    Note: Collective.
    """
    phases = phases or Phases()
    held = np.concatenate([interface.dofs for interface in interfaces])
    free = problem.num_dofs - problem.comm.allreduce(len(held))
    if num_modes > free:
        raise ValueError(
            f"num_modes={num_modes}, but the mesh has only {free} dofs that no interface holds"
        )
    with phases("factorization"):
        K = problem.stiffness.copy()
        constrain(K, held, 1.0)
        ksp = cholesky(K, prefix=prefix, options=options)
    try:
        with phases("constraint modes"):
            T = _interface_motions(problem, interfaces)
            B = multiply(problem.stiffness, T)
            np.negative(B, out=B)
            B[held] = T[held]
            constraint = solve(ksp, B)
            del B, T
            _check_reproduction(problem, interfaces, constraint)
        with phases("fixed-interface modes"):
            M = problem.mass()
            constrain(M, held, 0.0)
            values, fixed = lowest_modes(K, M, ksp, num_modes, held, prefix=prefix, options=options)
            M.destroy()
    finally:
        ksp.destroy()
        K.destroy()
    labels = [f"constraint {i.name} {c}" for i in interfaces for c in COMPONENTS]
    labels += [f"fixed {k + 1}" for k in range(num_modes)]
    frequencies = np.sqrt(np.maximum(values, 0.0)) / (2 * np.pi)
    vectors = np.asfortranarray(np.hstack([constraint, fixed]))
    return Basis(vectors, tuple(labels), frequencies)


def _interface_motions(problem: ElasticProblem, interfaces: tuple[MeshInterface, ...]) -> Array:
    """Rigid motions of each interface on its own degrees of freedom, zero elsewhere."""
    T = np.zeros((problem.num_owned, 6 * len(interfaces)), order="F")
    for k, interface in enumerate(interfaces):
        motions = rigid_motions(problem.positions[interface.blocks], interface.point)
        T[interface.dofs, 6 * k : 6 * k + 6] = motions
    return T


def _check_reproduction(
    problem: ElasticProblem, interfaces: tuple[MeshInterface, ...], constraint: Array
) -> None:
    """All interfaces moving as one body must move the whole body with them."""
    origin = problem.comm.bcast(interfaces[0].point, root=0)
    C = np.vstack([_point_motion(interface.point - origin) for interface in interfaces])
    R = rigid_motions(problem.positions, origin)
    local = np.array(
        [[np.abs(X[:, j]).max(initial=0.0) for j in range(6)] for X in (constraint @ C - R, R)]
    )
    local[0] = np.where(np.isfinite(local[0]), local[0], np.inf)
    error, size = np.max(problem.comm.allgather(local), axis=0)
    if not (error <= REPRODUCTION_TOLERANCE * size).all():
        raise FactorizationError(
            "the constraint modes do not reproduce a rigid motion (relative error "
            f"{(error / size).max():.1e}): a part of the body is not connected to any interface, "
            "or the linear solver is inaccurate"
        )


def _point_motion(r: Array) -> Array:
    """Motion (d, θ) of a point at r for unit rigid motions about the origin, shape (6, 6)."""
    motion = np.eye(6)
    motion[:3, 3:] = np.column_stack([np.cross(e, r) for e in np.eye(3)])
    return motion


@dataclass(frozen=True, eq=False)
class MeanAxis:
    """Orthonormal elastic modes and how they follow from the basis.

    Attributes:
        vectors: Shape (owned dofs, n), Fortran order; M = I, M-orthogonal to rigid motions.
        squares: ω², shape (n,), ascending, (rad/s)².
        transform: vectors = basis · transform, shape (columns of the basis, n).
        dropped: Labels of the columns that depended on others.
    """

    vectors: Array
    squares: Array
    transform: Array
    dropped: tuple[str, ...]


def mean_axis(problem: ElasticProblem, basis: Basis) -> MeanAxis:
    """Remove the six rigid motions from a basis that spans them, and orthonormalize the rest.

    Raises:
        ValueError: Modes without stiffness remain: the body is in parts.

    Note: Collective.
    """
    comm, Psi = problem.comm, basis.vectors
    local = problem.positions.sum(axis=0), len(problem.positions)
    sums = comm.bcast(comm.reduce(np.array([*local[0], local[1]]), root=0), root=0)
    R = rigid_motions(problem.positions, sums[:3] / sums[3])
    MPsi = problem.apply_mass(Psi)
    M, B = gram(comm, Psi, MPsi), gram(comm, MPsi, R)
    del MPsi
    K = gram(comm, Psi, multiply(problem.stiffness, Psi))
    result = None
    with agreed(comm):
        if comm.rank == 0:
            result = solve_small_problem(K, M, B)
            _check_elastic(result[0])
    squares, transform, dropped = comm.bcast(result, root=0)
    vectors = np.asfortranarray(Psi @ transform)
    return MeanAxis(vectors, squares, transform, tuple(basis.labels[k] for k in dropped))


def solve_small_problem(K: Array, M: Array, B: Array) -> tuple[Array, Array, list[int]]:
    """Eigenvalues and vectors of (K, M) on the M-complement of the rigid motions; dropped columns.

    Args:
        K: ΨᵀKΨ.
        M: ΨᵀMΨ.
        B: ΨᵀMR, shape (columns, 6).
    """
    scale = 1 / np.sqrt(np.diag(M))
    K = (K + K.T) / 2 * np.outer(scale, scale)
    M = (M + M.T) / 2 * np.outer(scale, scale)
    kept = independent_columns(M, DEPENDENT_TOLERANCE)
    B = (B * scale[:, None])[kept]
    q, _ = np.linalg.qr(B / np.linalg.norm(B, axis=0), mode="complete")
    Z = q[:, 6:]
    grid = np.ix_(kept, kept)
    squares, V = scipy.linalg.eigh(Z.T @ K[grid] @ Z, Z.T @ M[grid] @ Z)
    transform = np.zeros((len(K), len(squares)))
    transform[kept] = Z @ V
    dropped = sorted(set(range(len(K))) - set(kept))
    return squares, transform * scale[:, None], dropped


def independent_columns(M: Array, tolerance: float) -> list[int]:
    """Columns of a Gram matrix with unit diagonal that are independent, by pivoted Cholesky.

    Returns:
        Their numbers in ascending order.
    """
    rest = np.array(M)
    kept: list[int] = []
    for _ in range(len(M)):
        diagonal = np.diag(rest).copy()
        diagonal[kept] = -np.inf
        k = int(np.argmax(diagonal))
        if diagonal[k] < tolerance:
            break
        kept.append(k)
        rest -= np.outer(rest[:, k], rest[k]) / rest[k, k]
    return sorted(kept)


def _check_elastic(squares: Array) -> None:
    loose = int(np.sum(squares < 1e-12 * squares.max(initial=0.0)))
    if loose:
        raise ValueError(
            f"{loose} modes without stiffness remain after the six rigid motions are removed: "
            "the mesh is in parts that are not connected, or parts are hinged"
        )
