"""Reference conditions: which motion of a basis is the body frame's, and the modes that remain.

*Mean axis* (Tisserand, Buckens): the rigid motions, which lie in the span of the basis, are removed
by M-orthogonal projection, and the eigenvectors of what remains are the modes: M = I,
K = diag(ω²), all M-orthogonal to the rigid motions. Well conditioned, and right at speed.

*Attached* to an interface: its constraint modes leave the basis, so that the interface does not
move in the body frame. What remains is orthonormalized likewise, or kept as it is. For a frame
whose motion is prescribed, for small loads, and to compare with other programs. Without stiffening
the two differ by what grows as Ω² (`demos/reference_conditions.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dolfinx_mbd import checks
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
from dolfinx_mbd.reduction.basis import Basis
from dolfinx_mbd.reduction.interfaces import MeshInterface

__all__ = [
    "ReducedModes",
    "attached",
    "check_attached",
    "check_options",
    "check_reference",
    "mean_axis",
    "placed_interfaces",
    "raw_attached",
    "reduced_modes",
]

Array = NDArray[np.float64]

MOTION_ROWS = {3: [0, 1, 2, 3, 4, 5], 2: [0, 1, 5]}
"""Where the coordinates of an interface are in a motion (d, θ) in space."""

REACTION_TOLERANCE = 1e-6
"""Relative difference of two computations of the forces at averaged interfaces."""

NOISE = 30.0
"""Difference of the two over the round-off in them (5 in strips as long as 5000 thicknesses)."""


@dataclass(frozen=True, eq=False)
class ReducedModes:
    """The modes of a body and how they follow from the basis.

    Attributes:
        vectors: Shape (owned dofs, n), Fortran order.
        stiffness: Shape (n, n), diag(squares) if orthonormal.
        squares: ω², shape (n,), (rad/s)²; of a column that is no eigenvector its Rayleigh quotient.
        transform: vectors = basis · transform, shape (columns of the basis, n).
        labels: What each mode is called, n of them.
        shares: Part of the strain energy that is in constraint modes, shape (n,).
        left_out: What else the basis held, and why it is not there.
        reference: Name of the reference condition.
        orthonormal: Whether M = I.
    """

    vectors: Array
    stiffness: Array
    squares: Array
    transform: Array
    labels: tuple[str, ...]
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
        """Modes whose sign has a meaning: constraint modes as they are, one unit of motion."""
        return np.array([label.startswith("constraint ") for label in self.labels], dtype=bool)


def check_reference(attached_to: Any, up_to: Any, orthonormalize: bool) -> None:
    """Refuse what is no name, no frequency, or does not go together."""
    if attached_to is not None:
        checks.name("attached_to", attached_to)
    if up_to is not None:
        checks.number("up_to", up_to, positive=True, unit="Hz")
    checks.flag("orthonormalize", orthonormalize)
    if not orthonormalize and attached_to is None:
        raise InputError(
            "orthonormalize=False needs attached_to: only without the six constraint modes of one "
            "interface have the others no rigid motion in them"
        )
    if not orthonormalize and up_to is not None:
        raise InputError("up_to needs modes that have frequencies: orthonormalize=True")


def check_options(effective_mass: Any, loads: Any, stiffening: Any, points: Any, name: Any) -> None:
    """Raise an error if an option of a reduction has the wrong type or value."""
    checks.name("name", name)
    if effective_mass is not None:
        checks.number("effective_mass", effective_mass, low=0.0, high=1.0)
    for argument, mapping in (("loads", loads), ("points", points)):
        checks.instance(argument, mapping, (Mapping, type(None)))
        for key in mapping or {}:
            checks.name(f"every name in {argument}", key)
    if stiffening is not None:
        checks.flag("stiffening", stiffening)


def check_attached(attached_to: str | None, found: tuple[MeshInterface, ...]) -> None:
    """Refuse an interface that the body does not have."""
    names = [i.name for i in found]
    if attached_to is not None and attached_to not in names:
        known = ", ".join(map(repr, names)) or "none"
        raise InputError(f"attached_to: unknown interface {attached_to!r}; this body has {known}")


def reduced_modes(
    problem: ElasticProblem,
    basis: Basis,
    attached_to: str | None,
    up_to: float | None,
    orthonormalize: bool,
) -> ReducedModes:
    """The modes of a basis under the reference condition that is asked for."""
    if attached_to is None:
        return mean_axis(problem, basis, up_to=up_to)
    if orthonormalize:
        return attached(problem, basis, attached_to, up_to=up_to)
    return raw_attached(problem, basis, attached_to)


def mean_axis(problem: ElasticProblem, basis: Basis, *, up_to: float | None = None) -> ReducedModes:
    """Remove the rigid motions from a basis that spans them, and orthonormalize the rest.

    Args:
        problem: Matrices of the free body.
        basis: From `craig_bampton_basis` or `free_basis`.
        up_to: Modes above this frequency are left out, Hz.

    Raises:
        ValueError: Modes without stiffness remain: the body is in parts. Or none is below `up_to`.

    Note: Collective.
    """
    rigid = tuple(
        Mode(f"rigid {k + 1}", 0.0, reason="the body frame carries it")
        for k in range(problem.num_rigid)
    )
    columns = np.arange(len(basis.labels))
    return _orthonormal(problem, basis, columns, rigid, "mean axis", up_to)


def attached(
    problem: ElasticProblem, basis: Basis, name: str, *, up_to: float | None = None
) -> ReducedModes:
    """Remove the constraint modes of an interface, and orthonormalize the rest.

    Args:
        problem: Matrices of the free body.
        basis: From `craig_bampton_basis`.
        name: The interface.
        up_to: Modes above this frequency are left out, Hz.

    Raises:
        ValueError: The basis has no such interface. Or no mode is below `up_to`.

    Note: Collective.
    """
    columns, _ = _without(basis, name)
    return _orthonormal(problem, basis, columns, (), f"attached to {name}", up_to)


def raw_attached(problem: ElasticProblem, basis: Basis, name: str) -> ReducedModes:
    """Remove the constraint modes of an interface, and keep the other columns as they are.

    Nothing is dropped either; M and K are those of the columns.

    Note: Collective.
    """
    columns, gone = _without(basis, name)
    K, M, _ = _small_matrices(problem, basis, reference_motions=False)
    squares = np.diag(K) / np.diag(M)
    constraint = _constraint_columns(basis)
    return ReducedModes(
        vectors=np.asfortranarray(basis.vectors[:, columns]),
        stiffness=K[np.ix_(columns, columns)],
        squares=squares[columns],
        transform=np.eye(len(squares))[:, columns],
        labels=tuple(basis.labels[k] for k in columns),
        shares=constraint[columns].astype(float),
        left_out=_table(basis, squares, gone, f"the body frame is attached to {name}"),
        reference=f"attached to {name}",
        orthonormal=False,
    )


def _without(basis: Basis, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns without and of the constraint modes of an interface."""
    own = [label.rpartition(" ")[0] == f"constraint {name}" for label in basis.labels]
    if not any(own):
        raise InputError(f"the basis has no constraint modes of an interface {name!r}")
    return np.flatnonzero(np.logical_not(own)), np.flatnonzero(own)


def _constraint_columns(basis: Basis) -> NDArray[np.bool_]:
    return np.array([label.startswith("constraint ") for label in basis.labels], dtype=bool)


def _table(
    basis: Basis, squares: Array, columns: NDArray[np.int64] | list[int], reason: str
) -> tuple[Mode, ...]:
    return tuple(Mode(basis.labels[k], float(hertz(squares[k])), reason=reason) for k in columns)


def _orthonormal(
    problem: ElasticProblem,
    basis: Basis,
    columns: NDArray[np.int64],
    rigid: tuple[Mode, ...],
    reference: str,
    up_to: float | None,
) -> ReducedModes:
    """Orthonormal modes of some columns of a basis, after their rigid motions are removed."""
    comm = problem.comm
    K, M, B = _small_matrices(problem, basis, reference_motions=bool(rigid))
    noise = round_off(problem, basis.vectors)
    result = None
    with agreed(comm):
        if comm.rank == 0:
            _check_reactions(basis, K, noise)
            grid = np.ix_(columns, columns)
            found, small, dropped = solve_small_problem(K[grid], M[grid], B[columns])
            transform = np.zeros((len(K), len(found)))
            transform[columns] = small
            lost = _dropped(basis, K, M, columns, dropped)
            result = found, transform, lost, _shares(basis, K, transform, found)
    squares, transform, lost, shares = comm.bcast(result, root=0)
    vectors = np.asfortranarray(basis.vectors @ transform)
    errors = round_off(problem, vectors)
    _check_resolved(problem, squares, errors)
    count = _below(squares, up_to, errors)
    first = len(rigid) + 1
    labels = [f"elastic {first + k}" for k in range(len(squares))]
    above = tuple(
        Mode(label, float(hertz(square)), reason=f"above {up_to:g} Hz")
        for label, square in zip(labels[count:], squares[count:], strict=True)
    )
    gone = np.setdiff1d(np.arange(len(K)), columns)
    rayleigh = np.diag(K) / np.diag(M)
    left_out = rigid + _table(basis, rayleigh, gone, f"the body frame is {reference}")
    return ReducedModes(
        vectors=np.asfortranarray(vectors[:, :count]),
        stiffness=np.diag(squares[:count]),
        squares=squares[:count],
        transform=transform[:, :count],
        labels=tuple(labels[:count]),
        shares=shares[:count],
        left_out=left_out + lost + above,
        reference=reference,
    )


def _small_matrices(
    problem: ElasticProblem, basis: Basis, *, reference_motions: bool
) -> tuple[Array, Array, Array]:
    """ΨᵀKΨ, ΨᵀMΨ and ΨᵀMR with the rigid motions R, or no R; the same bits on every rank."""
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
    """Return how many modes are not above a frequency, and all that share the last frequency."""
    if up_to is None or not len(squares):
        return len(squares)
    count = int(np.sum(hertz(squares) <= (1 + MULTIPLE) * up_to))  # (one that was read off counts)
    if not count:
        raise InputError(
            f"no mode is below up_to={up_to:g} Hz; the first is at {hertz(squares)[0]:.6g} Hz"
        )
    return end_of_group(squares, count, errors)


def _shares(basis: Basis, K: Array, transform: Array, squares: Array) -> Array:
    """Strain energy in constraint modes over the whole: fixed-interface modes share none of it."""
    own = _constraint_columns(basis)
    T = transform[own]
    return np.einsum("ik,ij,jk->k", T, K[np.ix_(own, own)], T) / squares


def _dropped(
    basis: Basis, K: Array, M: Array, columns: NDArray[np.int64], dropped: list[int]
) -> tuple[Mode, ...]:
    """The table of dependent columns, each with the columns that it depends on."""
    kept = np.delete(columns, dropped)
    size = np.sqrt(np.diag(M))
    unit = M / np.outer(size, size)
    rows: list[Mode] = []
    for k in columns[dropped]:
        weights = np.abs(np.linalg.lstsq(unit[np.ix_(kept, kept)], unit[kept, k], rcond=None)[0])
        main = [kept[j] for j in np.argsort(-weights)[:3] if weights[j] > 0.1 * weights.max()]
        reason = "depends on " + ", ".join(basis.labels[j] for j in sorted(main))
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
    problem: ElasticProblem, found: tuple[MeshInterface, ...], modes: ReducedModes, moments: Inertia
) -> tuple[Interface, ...]:
    """The coefficient of a constraint mode is the motion of its interface, exactly."""
    per, rows = problem.num_rigid, MOTION_ROWS[problem.dim]
    result = []
    for k, i in enumerate(found):
        motion = np.zeros((6, len(modes.squares)))
        motion[rows] = modes.transform[per * k : per * k + per] * moments.signs
        result.append(Interface(i.name, i.kind, i.point, i.axes, motion))
    return tuple(result)
