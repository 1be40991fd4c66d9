"""Reference conditions: the motion of the body frame, and the modes relative to it.

*Mean axis* (Tisserand, Buckens): the rigid motions are removed by M-orthogonal projection, and the
modes are the eigenvectors in the remaining space. *Attached*: the constraint modes of one
interface, which does not move in the body frame, are removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import Mode
from dolfinx_mbd.body.multiple import MULTIPLE_TOLERANCE, end_of_group
from dolfinx_mbd.checks import choice
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.inertia import Inertia
from dolfinx_mbd.fem.interfaces.interfaces import MeshInterface
from dolfinx_mbd.fem.linalg.blocks import gram, multiply
from dolfinx_mbd.fem.linalg.dense_problems import solve_small_problem
from dolfinx_mbd.fem.linalg.factorization import FactorizationError
from dolfinx_mbd.fem.linalg.round_off import round_off, warn_of_round_off
from dolfinx_mbd.fem.modal.spectrum import hertz
from dolfinx_mbd.fem.prestress import BUCKLED
from dolfinx_mbd.parallel import shared_errors
from dolfinx_mbd.reduction.basis import Basis, Column, ColumnKind, numbered
from dolfinx_mbd.reduction.projection import Solutions
from dolfinx_mbd.reduction.reduction_options import ReductionOptions
from dolfinx_mbd.reduction.stiffening import UnitCases

# The forces at averaged interfaces are computed in two ways. The two results may differ by the
# first number times the forces, or by the second times the round-off. (For a strip 5000 times as
# long as thick, they differed by 5 times the round-off.)
REACTION_TOLERANCE, NOISE_FACTOR = 1e-6, 30.0
# Modes are sums of columns of the basis. If terms of this size, relative to the mode, cancel, modes
# are made orthonormal once more. The error is the unit round-off times the square of this size.
# For a connecting rod, sizes were below 8 without load modes, and 59 to 1e5 with load modes of body
# forces.
CANCELLATION = 20.0


@dataclass(frozen=True, eq=False)
class ReducedModes:
    """Modes of a body, and their coefficients in the basis."""

    vectors: Array  # (owned dofs, n), Fortran order
    stiffness: Array  # (n, n), diag(squares) if orthonormal
    squares: Array  # ω² (n,), (rad/s)²; the Rayleigh quotient if a mode is not an eigenvector
    transform: Array  # (columns of the basis, n): vectors = basis · transform
    columns: tuple[Column, ...]  # descriptions of the n modes
    shares: Array  # (n,), share of the strain energy in constraint modes
    left_out: tuple[Mode, ...]  # other motions of the basis, with reasons
    reference: str  # name of the reference condition
    orthonormal: bool = True  # M = I
    omitted: Array | None = None  # vectors of the modes above `up_to`, None without `up_to`

    @property
    def frequencies(self) -> Array:
        """Return the frequencies, shape (n,), Hz."""
        return hertz(self.squares)


def check_attached(attached_to: str | None, interfaces: tuple[MeshInterface, ...]) -> None:
    """Raise an error if the body does not have the interface `attached_to`."""
    choice("attached_to", attached_to, [*(i.name for i in interfaces), None])


def reduced_modes(
    problem: ElasticProblem, basis: Basis, attached_to: str | None, options: ReductionOptions
) -> ReducedModes:
    """Return the modes of a basis in the mean-axis frame, or attached to an interface."""
    if attached_to is None:
        rigid = tuple(
            Mode(column.label, 0.0, reason="motion of the body frame")
            for column in numbered(ColumnKind.RIGID, range(problem.num_rigid))
        )
        all_columns = np.arange(len(basis.columns))
        return _orthonormal_modes(problem, basis, all_columns, rigid, "mean axis", options.up_to)
    removed = basis.is_constraint & np.array([c.name == attached_to for c in basis.columns])
    if not removed.any():
        raise InputError(f"the basis has no constraint modes of an interface {attached_to!r}")
    columns, reference = np.flatnonzero(~removed), f"attached to {attached_to}"
    if options.orthonormalize:
        return _orthonormal_modes(problem, basis, columns, (), reference, options.up_to)
    return _basis_modes(problem, basis, columns, reference)


def apply_signs(modes: ReducedModes, moments: Inertia) -> tuple[ReducedModes, Inertia]:
    """Return modes and their moments after multiplication of each mode by its sign.

    The sign of a constraint mode is not changed, because the mode is a unit motion.
    """
    fixed = np.array([c.kind is ColumnKind.CONSTRAINT for c in modes.columns], dtype=bool)
    signs = np.where(fixed, 1.0, moments.signs)
    signed = replace(
        modes,
        vectors=modes.vectors * signs,
        stiffness=modes.stiffness * np.outer(signs, signs),
        transform=modes.transform * signs,
    )
    return signed, replace(moments, signs=signs).with_signs()


def solutions(
    problem: Any,
    interfaces: tuple[MeshInterface, ...],
    modes: ReducedModes,
    moments: Inertia,
    cases: UnitCases | None,
) -> Solutions:
    """Return the modes of a body, and the response to unit loads, for `project`.

    The coefficient of a constraint mode is exactly the motion of its interface.
    """
    motions = modes.transform[: problem.num_rigid * len(interfaces)]
    return Solutions(modes.vectors, motions, modes.stiffness, modes.orthonormal, cases, moments)


def _basis_modes(
    problem: ElasticProblem, basis: Basis, columns: NDArray[np.int64], reference: str
) -> ReducedModes:
    """Return columns of a basis, including dependent columns, as modes."""
    K, M, _ = _small_matrices(problem, basis, reference_motions=False)
    squares = np.diag(K) / np.diag(M)
    removed = np.setdiff1d(np.arange(len(K)), columns)
    return ReducedModes(
        vectors=np.asfortranarray(basis.vectors[:, columns]),
        stiffness=K[np.ix_(columns, columns)],
        squares=squares[columns],
        transform=np.eye(len(K))[:, columns],
        columns=tuple(basis.columns[k] for k in columns),
        shares=basis.is_constraint[columns].astype(float),
        left_out=_mode_rows(basis, squares, removed, f"the body frame is {reference}"),
        reference=reference,
        orthonormal=False,
    )


def _mode_rows(
    basis: Basis, squares: Array, columns: NDArray[np.int64] | list[int], reason: str
) -> tuple[Mode, ...]:
    """Return rows of the table of modes that are omitted for one reason."""
    return tuple(
        Mode(basis.columns[k].label, float(hertz(squares[k])), reason=reason) for k in columns
    )


def _orthonormal_modes(
    problem: ElasticProblem,
    basis: Basis,
    columns: NDArray[np.int64],
    rigid: tuple[Mode, ...],
    reference: str,
    up_to: float | None,
) -> ReducedModes:
    """Return the orthonormal modes of some columns of a basis, without rigid motions."""
    comm = problem.comm
    K, M, B = _small_matrices(problem, basis, reference_motions=bool(rigid))
    rayleigh = np.diag(K) / np.diag(M)
    noise = round_off(problem, basis.vectors)
    result = None
    with shared_errors(comm):
        if comm.rank == 0:
            _check_reactions(basis, K, noise)
            grid = np.ix_(columns, columns)
            squares, coefficients, dropped = solve_small_problem(K[grid], M[grid], B[columns])
            transform = np.zeros((len(K), len(squares)))
            transform[columns] = coefficients
            # Constraint and fixed-interface modes are K-orthogonal, so that energies add up.
            T, is_constraint = transform[basis.is_constraint], basis.is_constraint
            energies = np.einsum("ik,ij,jk->k", T, K[np.ix_(is_constraint, is_constraint)], T)
            dependent = _dependent_modes(basis, rayleigh, M, columns, dropped)
            result = squares, transform, dependent, energies / squares
    squares, transform, dependent, shares = comm.bcast(result, root=0)
    vectors = np.asfortranarray(basis.vectors @ transform)
    if np.max(np.sqrt(np.diag(M)) @ np.abs(transform), initial=0.0) > CANCELLATION:
        squares, rotation = _ritz_values(problem, vectors)
        vectors, transform = np.asfortranarray(vectors @ rotation), transform @ rotation
    errors = round_off(problem, vectors)
    _check_resolved(problem, squares, errors)
    count = _num_modes_up_to(squares, up_to, errors)
    elastic = numbered(ColumnKind.ELASTIC, range(len(squares)))
    above = tuple(
        Mode(column.label, float(hertz(square)), reason=f"above {up_to:g} Hz")
        for column, square in zip(elastic[count:], squares[count:], strict=True)
    )
    removed = np.setdiff1d(np.arange(len(K)), columns)
    attached = _mode_rows(basis, rayleigh, removed, f"the body frame is {reference}")
    return ReducedModes(
        vectors=np.asfortranarray(vectors[:, :count]),
        stiffness=np.diag(squares[:count]),
        squares=squares[:count],
        transform=transform[:, :count],
        columns=elastic[:count],
        shares=shares[:count],
        left_out=rigid + attached + dependent + above,
        reference=reference,
        omitted=None if up_to is None else np.asfortranarray(vectors[:, count:]),
    )


def _ritz_values(problem: ElasticProblem, vectors: Array) -> tuple[Array, Array]:
    """Return ω² and the coefficients of orthonormal modes in the span of independent vectors."""
    comm = problem.comm
    K = gram(comm, vectors, multiply(problem.stiffness, vectors))
    M = gram(comm, vectors, problem.apply_mass(vectors))
    pairs = None
    if comm.rank == 0:
        pairs = scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2)
    squares, rotation = comm.bcast(pairs, root=0)
    return squares, rotation


def _small_matrices(
    problem: ElasticProblem, basis: Basis, *, reference_motions: bool
) -> tuple[Array, Array, Array]:
    """Return ΨᵀKΨ, ΨᵀMΨ and ΨᵀMR with rigid motions R, or with empty R; equal on all ranks."""
    comm, Psi = problem.comm, basis.vectors
    MPsi = problem.apply_mass(Psi)
    M = gram(comm, Psi, MPsi)
    B: Array = np.zeros((Psi.shape[1], 0))
    if reference_motions:
        sums = np.array([*problem.positions.sum(axis=0), len(problem.positions)])
        sums = comm.bcast(comm.reduce(sums, root=0), root=0)
        B = gram(comm, MPsi, problem.rigid_motions(sums[:-1] / sums[-1]))
    del MPsi
    K = gram(comm, Psi, multiply(problem.stiffness, Psi))
    return (K + K.T) / 2, (M + M.T) / 2, B


def _num_modes_up_to(squares: Array, up_to: float | None, errors: Array) -> int:
    """Return the number of modes up to a frequency, including all modes of the last frequency."""
    if up_to is None or not len(squares):
        return len(squares)
    count = int(
        np.sum(hertz(squares) <= (1 + MULTIPLE_TOLERANCE) * up_to)
    )  # a mode at the limit counts even if the limit is rounded
    if not count:
        raise InputError(
            f"no mode is below up_to={up_to:g} Hz; the first is at {hertz(squares)[0]:.6g} Hz",
            argument="up_to",
            value=up_to,
        )
    return end_of_group(squares, count, errors)


def _dependent_modes(
    basis: Basis, rayleigh: Array, M: Array, columns: NDArray[np.int64], dropped: list[int]
) -> tuple[Mode, ...]:
    """Return a row for each dependent column of the basis, with the columns that it depends on.

    `columns` are the numbers of the used columns in the basis, `dropped` are the positions of the
    dependent ones among them, and `rayleigh` contains the Rayleigh quotient of each column.
    """
    others = np.delete(columns, dropped)
    size = np.sqrt(np.diag(M))
    unit = M / np.outer(size, size)
    rows: list[Mode] = []
    for k in columns[dropped]:
        weights = np.abs(
            np.linalg.lstsq(unit[np.ix_(others, others)], unit[others, k], rcond=None)[0]
        )
        main = [others[j] for j in np.argsort(-weights)[:3] if weights[j] > 0.1 * weights.max()]
        reason = "depends on " + ", ".join(basis.columns[j].label for j in sorted(main))
        rows += _mode_rows(basis, rayleigh, [k], reason)
    return tuple(rows)


def _check_resolved(problem: ElasticProblem, squares: Array, errors: Array) -> None:
    """Raise an error or warn if round-off hides or changes the stiffness of the first mode."""
    if not len(squares):
        return
    if problem.prestress and squares[0] < -errors[0]:
        raise FactorizationError(BUCKLED)
    if squares[0] <= errors[0]:
        raise SolverError(
            f"the stiffness of the first mode, ω² = {squares[0]:.1e} 1/s², is lost in round-off, "
            f"{errors[0]:.1e} 1/s²: the body is too thin for its length (use larger cells or a "
            "beam model), or the stiffness form leaves a motion without stiffness"
        )
    warn_of_round_off(squares, errors)


def _check_reactions(basis: Basis, K: Array, noise: Array) -> None:
    """Raise an error unless the reactions at averaged interfaces equal their rows of K.

    `K` is the reduced stiffness matrix, and `noise` the round-off in its diagonal. The reactions
    are those to the constraint modes, which are the first columns.
    """
    if basis.reactions is None:
        return
    count = basis.reactions.shape[1]
    size = np.sqrt(np.maximum(np.diag(K), 0.0) + NOISE_FACTOR * noise / REACTION_TOLERANCE)
    scale = np.outer(size[basis.averaged], size[:count])
    error = float(np.max(np.abs(basis.reactions - K[basis.averaged][:, :count]) / scale))
    if not error <= REACTION_TOLERANCE:
        raise FactorizationError(
            f"the forces at averaged interfaces have a relative error of {error:.1e}: the linear "
            "solver is inaccurate"
        )
