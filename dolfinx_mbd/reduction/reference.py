"""Reference conditions: the motion of the body frame, and the modes relative to it.

*Mean axis* (Tisserand, Buckens): the rigid motions, which lie in the span of the basis, are removed
by M-orthogonal projection. The modes are the eigenvectors of the remaining space: M = I,
K = diag(ω²), all M-orthogonal to the rigid motions. It is well conditioned, and accurate at speed.

*Attached* to an interface: the constraint modes of the interface are removed, so that the interface
does not move in the body frame. The other columns are orthonormalized in the same way, or kept
unchanged. It is for a frame with a prescribed motion, for small loads, and for comparisons with
other programs. Without stiffening the difference grows as Ω² (`demos/reference_conditions.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd.body import Interface, Mode
from dolfinx_mbd.body.multiple import MULTIPLE, end_of_group
from dolfinx_mbd.errors import InputError, SolverError
from dolfinx_mbd.fem.assembly import ElasticProblem
from dolfinx_mbd.fem.inertia import Inertia
from dolfinx_mbd.fem.prestress import BUCKLED
from dolfinx_mbd.linalg.blocks import gram, multiply
from dolfinx_mbd.linalg.dense_problems import solve_small_problem
from dolfinx_mbd.linalg.factorization import FactorizationError
from dolfinx_mbd.linalg.round_off import round_off, warn_of_round_off
from dolfinx_mbd.modal.spectrum import hertz
from dolfinx_mbd.parallel import agreed
from dolfinx_mbd.reduction.basis import Basis, Column, ColumnKind, numbered
from dolfinx_mbd.reduction.interfaces import MeshInterface
from dolfinx_mbd.reduction.options import ReductionOptions

__all__ = [
    "ReducedModes",
    "attached",
    "check_attached",
    "mean_axis",
    "placed_interfaces",
    "raw_attached",
    "reduced_modes",
    "signed",
]

Array = NDArray[np.float64]

MOTION_ROWS = {3: [0, 1, 2, 3, 4, 5], 2: [0, 1, 5]}
"""Indices of the coordinates of an interface in a motion (d, θ) in space."""

REACTION_TOLERANCE = 1e-6
"""Relative difference of two computations of the forces at averaged interfaces."""

NOISE = 30.0
"""Difference of the two over the round-off in them (5 in strips as long as 5000 thicknesses)."""


@dataclass(frozen=True, eq=False)
class ReducedModes:
    """Modes of a body, and their coefficients in the basis.

    Attributes:
        vectors: Shape (owned dofs, n), Fortran order.
        stiffness: Shape (n, n), diag(squares) if orthonormal.
        squares: ω², shape (n,), (rad/s)²; the Rayleigh quotient if a mode is not an eigenvector.
        transform: vectors = basis · transform, shape (columns of the basis, n).
        columns: Descriptions of the modes, n of them.
        shares: Share of the strain energy in constraint modes, shape (n,).
        left_out: Other motions of the basis, and the reason why they are left out.
        reference: Name of the reference condition.
        orthonormal: Whether M = I.
    """

    vectors: Array
    stiffness: Array
    squares: Array
    transform: Array
    columns: tuple[Column, ...]
    shares: Array
    left_out: tuple[Mode, ...]
    reference: str
    orthonormal: bool = True

    @property
    def frequencies(self) -> Array:
        """Shape (n,), Hz."""
        return hertz(self.squares)

    @property
    def fixed_signs(self) -> NDArray[np.bool_]:
        """Whether the sign of a mode is fixed: that of a constraint mode, a unit motion."""
        return np.array([c.kind is ColumnKind.CONSTRAINT for c in self.columns], dtype=bool)


def check_attached(attached_to: str | None, interfaces: tuple[MeshInterface, ...]) -> None:
    """Raise an error if the body does not have the interface."""
    names = [i.name for i in interfaces]
    if attached_to is not None and attached_to not in names:
        known = ", ".join(map(repr, names)) or "none"
        raise InputError(f"attached_to: unknown interface {attached_to!r}; this body has {known}")


def reduced_modes(
    problem: ElasticProblem, basis: Basis, attached_to: str | None, options: ReductionOptions
) -> ReducedModes:
    """Return the modes of a basis: mean axis, or attached to an interface."""
    if attached_to is None:
        return mean_axis(problem, basis, up_to=options.up_to)
    if options.orthonormalize:
        return attached(problem, basis, attached_to, up_to=options.up_to)
    return raw_attached(problem, basis, attached_to)


def signed(modes: ReducedModes, moments: Inertia) -> tuple[Inertia, Array]:
    """Return the inertia with the signs of the modes, and the modes with these signs."""
    moments = replace(moments, signs=np.where(modes.fixed_signs, 1.0, moments.signs))
    return moments, modes.vectors * moments.signs


def mean_axis(problem: ElasticProblem, basis: Basis, *, up_to: float | None = None) -> ReducedModes:
    """Remove the rigid motions from a basis that spans them, and orthonormalize the rest.

    Args:
        problem: Matrices of the free body.
        basis: From `craig_bampton_basis` or `free_basis`.
        up_to: Leave out modes above this frequency, Hz; None: keep all.

    Raises:
        SolverError: Modes without stiffness remain, for example because the body is in parts.
        InputError: No mode is below `up_to`.

    Note: Collective.
    """
    rigid = tuple(
        Mode(column.label, 0.0, reason="the body frame carries it")
        for column in numbered(ColumnKind.RIGID, range(problem.num_rigid))
    )
    columns = np.arange(len(basis.columns))
    return _orthonormal(problem, basis, columns, rigid, "mean axis", up_to)


def attached(
    problem: ElasticProblem, basis: Basis, name: str, *, up_to: float | None = None
) -> ReducedModes:
    """Remove the constraint modes of an interface, and orthonormalize the rest.

    Args:
        problem: Matrices of the free body.
        basis: From `craig_bampton_basis`.
        name: Name of the interface.
        up_to: Leave out modes above this frequency, Hz; None: keep all.

    Raises:
        InputError: The basis has no such interface, or no mode is below `up_to`.

    Note: Collective.
    """
    columns, _ = _without(basis, name)
    return _orthonormal(problem, basis, columns, (), f"attached to {name}", up_to)


def raw_attached(problem: ElasticProblem, basis: Basis, name: str) -> ReducedModes:
    """Remove the constraint modes of an interface, and keep the other columns unchanged.

    Dependent columns are kept, too; M and K are those of the columns.

    Note: Collective.
    """
    columns, gone = _without(basis, name)
    K, M, _ = _small_matrices(problem, basis, reference_motions=False)
    squares = np.diag(K) / np.diag(M)
    return ReducedModes(
        vectors=np.asfortranarray(basis.vectors[:, columns]),
        stiffness=K[np.ix_(columns, columns)],
        squares=squares[columns],
        transform=np.eye(len(squares))[:, columns],
        columns=tuple(basis.columns[k] for k in columns),
        shares=basis.is_constraint[columns].astype(float),
        left_out=_table(basis, squares, gone, f"the body frame is attached to {name}"),
        reference=f"attached to {name}",
        orthonormal=False,
    )


def _without(basis: Basis, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the columns without, and those of, the constraint modes of an interface."""
    removed = basis.is_constraint & np.array([c.name == name for c in basis.columns], dtype=bool)
    if not removed.any():
        raise InputError(f"the basis has no constraint modes of an interface {name!r}")
    return np.flatnonzero(~removed), np.flatnonzero(removed)


def _table(
    basis: Basis, squares: Array, columns: NDArray[np.int64] | list[int], reason: str
) -> tuple[Mode, ...]:
    return tuple(
        Mode(basis.columns[k].label, float(hertz(squares[k])), reason=reason) for k in columns
    )


def _orthonormal(
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
    noise = round_off(problem, basis.vectors)
    result = None
    with agreed(comm):
        if comm.rank == 0:
            _check_reactions(basis, K, noise)
            grid = np.ix_(columns, columns)
            squares, small, dropped = solve_small_problem(K[grid], M[grid], B[columns])
            transform = np.zeros((len(K), len(squares)))
            transform[columns] = small
            lost = _dropped(basis, K, M, columns, dropped)
            result = squares, transform, lost, _shares(basis, K, transform, squares)
    squares, transform, lost, shares = comm.bcast(result, root=0)
    vectors = np.asfortranarray(basis.vectors @ transform)
    errors = round_off(problem, vectors)
    _check_resolved(problem, squares, errors)
    count = _below(squares, up_to, errors)
    elastic = numbered(ColumnKind.ELASTIC, range(len(rigid), len(rigid) + len(squares)))
    above = tuple(
        Mode(column.label, float(hertz(square)), reason=f"above {up_to:g} Hz")
        for column, square in zip(elastic[count:], squares[count:], strict=True)
    )
    gone = np.setdiff1d(np.arange(len(K)), columns)
    rayleigh = np.diag(K) / np.diag(M)
    left_out = rigid + _table(basis, rayleigh, gone, f"the body frame is {reference}")
    return ReducedModes(
        vectors=np.asfortranarray(vectors[:, :count]),
        stiffness=np.diag(squares[:count]),
        squares=squares[:count],
        transform=transform[:, :count],
        columns=elastic[:count],
        shares=shares[:count],
        left_out=left_out + lost + above,
        reference=reference,
    )


def _small_matrices(
    problem: ElasticProblem, basis: Basis, *, reference_motions: bool
) -> tuple[Array, Array, Array]:
    """Return ΨᵀKΨ, ΨᵀMΨ and ΨᵀMR with the rigid motions R, or no R; the same on every rank."""
    comm, Psi = problem.comm, basis.vectors
    MPsi = problem.apply_mass(Psi)
    M = gram(comm, Psi, MPsi)
    B: Array = np.zeros((Psi.shape[1], 0))
    if reference_motions:
        local = problem.positions.sum(axis=0), len(problem.positions)
        sums = comm.bcast(comm.reduce(np.array([*local[0], local[1]]), root=0), root=0)
        R = problem.rigid_motions(sums[:-1] / sums[-1])
        B = gram(comm, MPsi, R)
    del MPsi
    K = gram(comm, Psi, multiply(problem.stiffness, Psi))
    return (K + K.T) / 2, (M + M.T) / 2, B


def _below(squares: Array, up_to: float | None, errors: Array) -> int:
    """Return the number of modes up to a frequency, with all modes of the last frequency."""
    if up_to is None or not len(squares):
        return len(squares)
    count = int(np.sum(hertz(squares) <= (1 + MULTIPLE) * up_to))  # (a rounded limit includes it)
    if not count:
        raise InputError(
            f"no mode is below up_to={up_to:g} Hz; the first is at {hertz(squares)[0]:.6g} Hz"
        )
    return end_of_group(squares, count, errors)


def _shares(basis: Basis, K: Array, transform: Array, squares: Array) -> Array:
    """Return the share of the strain energy in constraint modes.

    Constraint and fixed-interface modes are K-orthogonal, so that the energies add up.
    """
    constraint = basis.is_constraint
    T = transform[constraint]
    return np.einsum("ik,ij,jk->k", T, K[np.ix_(constraint, constraint)], T) / squares


def _dropped(
    basis: Basis, K: Array, M: Array, columns: NDArray[np.int64], dropped: list[int]
) -> tuple[Mode, ...]:
    """Return the table of dependent columns, each with the columns that it depends on."""
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
        rows += _table(basis, np.diag(K) / np.diag(M), [k], reason)
    return tuple(rows)


def _check_resolved(problem: ElasticProblem, squares: Array, errors: Array) -> None:
    """Raise an error if round-off hides the stiffness of the first mode; warn if it changes it."""
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
    """Raise an error unless multipliers of averaged interfaces are their rows of ΨᵀKΨ.

    Args:
        basis: The basis.
        K: ΨᵀKΨ.
        noise: Round-off in the diagonal of K.
    """
    if basis.reactions is None:
        return
    expected = K[basis.averaged][:, : basis.reactions.shape[1]]
    size = np.sqrt(np.maximum(np.diag(K), 0.0) + NOISE * noise / REACTION_TOLERANCE)
    scale = np.outer(size[basis.averaged], size[: basis.reactions.shape[1]])
    error = float(np.max(np.abs(basis.reactions - expected) / scale))
    if not error <= REACTION_TOLERANCE:
        raise FactorizationError(
            f"the forces at averaged interfaces are off by {error:.1e} of their size: the linear "
            "solver is inaccurate"
        )


def placed_interfaces(
    problem: ElasticProblem,
    interfaces: tuple[MeshInterface, ...],
    modes: ReducedModes,
    moments: Inertia,
) -> tuple[Interface, ...]:
    """Return the interfaces of a reduced body.

    The coefficient of a constraint mode is the motion of its interface, exactly.
    """
    per, rows = problem.num_rigid, MOTION_ROWS[problem.dim]
    result = []
    for k, i in enumerate(interfaces):
        motion = np.zeros((6, len(modes.squares)))
        motion[rows] = modes.transform[per * k : per * k + per] * moments.signs
        result.append(Interface(i.name, i.kind, i.point, i.axes, motion))
    return tuple(result)
