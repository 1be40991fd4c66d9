"""Craig-Bampton reduction of matrices from another program, by SciPy's sparse direct solver.

The same body as `dolfinx_mbd.reduce` makes from a mesh, for matrices that fit one process; without
geometric stiffening, for which the stress would be needed.  A rigid interface moves its nodes as
one.  The motion of an averaged one is that of the rigid motion closest to its nodes' displacements
in the mean with given weights: areas that belong to the nodes make of it an integral over the
surface, but for how displacements vary within an element.

References:
    Craig, Bampton (1968), Coupling of substructures for dynamic analyses, AIAA J. 6, 1313-1319.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.body import Interface, Mode, ReducedBody, Skin
from dolfinx_mbd.imports.matrices import FullMatrices, MatrixError, rigid_motions
from dolfinx_mbd.imports.modes import mean_axis_modes

__all__ = ["NodeInterface", "reduce_matrices"]

Array = NDArray[np.float64]

REPRODUCTION_TOLERANCE = 1e-4
"""Relative error of a rigid motion of all interfaces from which the body is in parts."""

FLAT = 1e-6
"""Second over greatest extent of an interface's nodes below which they lie in a line."""


@dataclass(frozen=True, eq=False)
class NodeInterface:
    """Nodes where a joint meets the body.

    Attributes:
        nodes: Their numbers, as in `FullMatrices.labels`.
        kind: ``rigid`` (RBE2) or ``averaged`` (RBE3).
        point: Reference point, shape (3,), m; None: the (weighted) mean of the nodes.
        axes: Columns are the axes, z that of a bore, shape (3, 3); None: those of the body.
        weights: Of the nodes, positive; None: equal.
    """

    nodes: ArrayLike
    kind: Literal["rigid", "averaged"] = "rigid"
    point: ArrayLike | None = None
    axes: ArrayLike | None = None
    weights: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class _Placed:
    """An interface on the nodes: its degrees of freedom, and the rows of an averaged one."""

    name: str
    kind: str
    point: Array
    axes: Array
    dofs: NDArray[np.int64]
    motions: Array
    rows: Array | None


def reduce_matrices(
    matrices: FullMatrices,
    interfaces: Mapping[str, NodeInterface],
    *,
    num_modes: int = 20,
    name: str = "body",
) -> ReducedBody:
    """Reduce a body with interfaces to few modes (Craig-Bampton, orthonormalized, mean axis).

    With k interfaces the body has 6 k + `num_modes` - 6 elastic coordinates. Its skin is that of
    `matrices.triangles`, if given.

    Args:
        matrices: K, M and nodes in SI.
        interfaces: At least one; they share no nodes.
        num_modes: Fixed-interface modes.
        name: The body's name.

    Raises:
        MatrixError: Something given does not fit, or a part of the body is loose.
    """
    placed = _placed(matrices, interfaces)
    size = 3 * len(matrices.nodes)
    held = np.concatenate([i.dofs for i in placed if i.kind == "rigid"] or [np.zeros(0, int)])
    border = sum(6 for i in placed if i.kind == "averaged")
    if not isinstance(num_modes, (int, np.integer)) or num_modes < 0:
        raise MatrixError(f"num_modes must be a number of modes, got {num_modes!r}")
    if num_modes >= size - len(held) - border - 1:
        raise MatrixError(
            f"num_modes={num_modes}, but only {size - len(held) - border} degrees of freedom are "
            "not held by the interfaces"
        )
    solver = _Held(matrices, placed, held)
    constraint = _with_rigid_motions(matrices, placed, solver.constraint_modes())
    Psi = np.hstack([constraint, solver.modes(int(num_modes))])
    return _body(matrices, placed, Psi, int(num_modes), name)


def _placed(matrices: FullMatrices, interfaces: Mapping[str, NodeInterface]) -> tuple[_Placed, ...]:
    if not isinstance(interfaces, Mapping) or not interfaces:
        raise MatrixError("interfaces: expected at least one, as {'name': NodeInterface(nodes)}")
    result, owner = [], np.full(len(matrices.nodes), -1)
    names = list(interfaces)
    for k, (name, spec) in enumerate(interfaces.items()):
        if not isinstance(spec, NodeInterface):
            raise MatrixError(f"interface {name!r}: expected a NodeInterface, got {spec!r}")
        nodes = matrices.rows(spec.nodes, f"interface {name!r}")
        shared = nodes[owner[nodes] >= 0]
        if len(shared):
            raise MatrixError(
                f"interfaces {names[owner[shared[0]]]!r} and {name!r} share {len(shared)} nodes"
            )
        owner[nodes] = k
        result.append(_on_nodes(name, spec, nodes, matrices.nodes[nodes]))
    return tuple(result)


def _on_nodes(name: str, spec: NodeInterface, nodes: NDArray[np.int64], x: Array) -> _Placed:
    if spec.kind not in ("rigid", "averaged"):
        raise MatrixError(
            f"interface {name!r}: the kind is 'rigid' or 'averaged', not {spec.kind!r}"
        )
    weights = np.ones(len(x)) if spec.weights is None else np.array(spec.weights, dtype=float)
    if weights.shape != (len(x),) or not (weights > 0).all() or not np.isfinite(weights).all():
        raise MatrixError(f"interface {name!r}: expected {len(x)} positive weights")
    centre = weights @ x / weights.sum()
    extent = np.linalg.svd(np.sqrt(weights)[:, None] * (x - centre), compute_uv=False)
    if len(extent) < 2 or not extent[1] > FLAT * extent[0]:
        raise MatrixError(
            f"interface {name!r}: its {len(x)} nodes lie in a line or in a point, which does not "
            "tell its rotation; name at least three that do not"
        )
    point = centre if spec.point is None else np.array(spec.point, dtype=float)
    axes = np.eye(3) if spec.axes is None else np.array(spec.axes, dtype=float)
    if point.shape != (3,) or axes.shape != (3, 3):
        raise MatrixError(f"interface {name!r}: expected a point (3,) and axes (3, 3)")
    motions = rigid_motions(x, point)
    rows: NDArray | None = None
    if spec.kind == "averaged":
        weighted = np.repeat(weights, 3)[:, None] * motions
        rows = np.linalg.solve(motions.T @ weighted, weighted.T)
    dofs = (3 * nodes[:, None] + np.arange(3)).ravel()
    return _Placed(name, spec.kind, point, axes, dofs, motions, rows)


class _Held:
    """The factorized stiffness with all interfaces held: rows of rigid ones left out, those of
    averaged ones bordered."""

    def __init__(
        self, matrices: FullMatrices, placed: tuple[_Placed, ...], held: NDArray[np.int64]
    ) -> None:
        self.matrices, self.placed = matrices, placed
        size = 3 * len(matrices.nodes)
        self.free = np.setdiff1d(np.arange(size), held)
        self.averaged = [k for k, i in enumerate(placed) if i.rows is not None]
        C = scipy.sparse.lil_array((6 * len(self.averaged), size))
        for j, k in enumerate(self.averaged):
            C[6 * j : 6 * j + 6, placed[k].dofs] = placed[k].rows
        K = matrices.stiffness[self.free][:, self.free]
        self.M = matrices.mass[self.free][:, self.free]
        settings: dict[str, Any] = {}
        if self.averaged:
            scale = float(np.abs(K.diagonal()).mean())
            border = scale * scipy.sparse.csr_array(C)[:, self.free]
            K = scipy.sparse.bmat([[K, border.T], [border, None]])
            self.scale = scale
        else:
            settings = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        self.K = scipy.sparse.csc_array(K)
        try:
            self.factors = scipy.sparse.linalg.splu(self.K, permc_spec="MMD_AT_PLUS_A", **settings)
        except RuntimeError as error:
            raise MatrixError(
                "the stiffness is singular with all interfaces held: a part of the body is not "
                f"connected to any interface ({error})"
            ) from error

    def solve(self, B: Array) -> Array:
        """With one step of iterative refinement."""
        X = self.factors.solve(B)
        return X + self.factors.solve(B - self.K @ X)

    def constraint_modes(self) -> Array:
        """One for each coordinate of an interface, shape (3 N, 6 p)."""
        size, n = 3 * len(self.matrices.nodes), len(self.free)
        X = np.zeros((size, 6 * len(self.placed)))
        for k, i in enumerate(self.placed):
            if i.rows is None:
                X[i.dofs, 6 * k : 6 * k + 6] = i.motions
        B = np.zeros((self.K.shape[0], X.shape[1]))
        B[:n] = -(self.matrices.stiffness @ X)[self.free]
        for j, k in enumerate(self.averaged):
            B[n + 6 * j + np.arange(6), 6 * k + np.arange(6)] = self.scale
        X[self.free] = self.solve(B)[:n]
        if not np.isfinite(X).all():
            raise MatrixError("the stiffness is singular with all interfaces held")
        return X

    def modes(self, count: int) -> Array:
        """The lowest modes with all interfaces held, shape (3 N, count)."""
        result = np.zeros((3 * len(self.matrices.nodes), count))
        if not count:
            return result
        n, extra = len(self.free), self.K.shape[0] - len(self.free)

        def inverse(b: Array) -> Array:
            return self.factors.solve(np.concatenate([b.ravel(), np.zeros(extra)]))[:n]

        operator = scipy.sparse.linalg.LinearOperator((n, n), matvec=inverse, dtype=float)
        start = np.random.default_rng(0).standard_normal(n)
        try:
            _, vectors = scipy.sparse.linalg.eigsh(
                self.K[:n, :n], count, self.M, sigma=0.0, OPinv=operator, v0=start,
                ncv=min(n - extra, max(2 * count + 1, 20)),
            )  # fmt: skip
        except scipy.sparse.linalg.ArpackError as error:
            raise MatrixError(f"the fixed-interface modes were not found ({error})") from error
        result[self.free] = vectors
        return result


def _with_rigid_motions(
    matrices: FullMatrices, placed: tuple[_Placed, ...], constraint: Array
) -> Array:
    """Constraint modes less the round-off in what must be a rigid motion of the whole body.

    Raises:
        MatrixError: If it is not one: a part of the body is not connected to an interface.
    """
    origin = placed[0].point
    C = _rigid_coefficients(placed, origin)
    R = rigid_motions(matrices.nodes, origin)
    excess = constraint @ C - R
    error = np.max(np.abs(excess).max(axis=0) / np.abs(R).max(axis=0))
    if not error <= REPRODUCTION_TOLERANCE:
        raise MatrixError(
            f"the constraint modes do not reproduce a rigid motion (relative error {error:.1e}): "
            "a part of the body is not connected to any interface"
        )
    return constraint - excess @ np.linalg.pinv(C)


def _rigid_coefficients(placed: tuple[_Placed, ...], origin: Array) -> Array:
    """Motion of all interfaces in rigid motions about a point, shape (6 p, 6)."""
    C = np.tile(np.eye(6), (len(placed), 1))
    for k, i in enumerate(placed):
        C[6 * k : 6 * k + 3] = rigid_motions((i.point - origin)[None])
    return C


def _body(
    matrices: FullMatrices, placed: tuple[_Placed, ...], Psi: Array, num_modes: int, name: str
) -> ReducedBody:
    K, M = (Psi.T @ (A @ Psi) for A in (matrices.stiffness, matrices.mass))
    centre = matrices.nodes.mean(axis=0)
    R = np.zeros((Psi.shape[1], 6))
    R[: 6 * len(placed)] = _rigid_coefficients(placed, centre)
    motion = np.eye(6 * len(placed), Psi.shape[1])
    squares, T, dependent = mean_axis_modes((K + K.T) / 2, (M + M.T) / 2, R, motion)
    modes = Psi @ T
    n = modes.shape[1]
    fields = np.hstack([np.ones((len(matrices.nodes), 1)), matrices.nodes, _blocked(modes)])
    G = fields.T @ (matrices.scalar_mass @ fields)
    G = (G + G.T) / 2
    damping = np.zeros((n, n))
    if matrices.damping is not None:
        damping = modes.T @ (matrices.damping @ modes)
        damping = (damping + damping.T) / 2
    skin = None
    if matrices.triangles is not None:
        used, triangles = np.unique(matrices.triangles, return_inverse=True)
        shapes = modes.T.reshape(n, -1, 3)[:, used]
        skin = Skin(matrices.nodes[used], triangles.reshape(-1, 3), shapes)
    frequencies = np.sqrt(squares) / (2 * np.pi)
    left_out = [Mode(f"rigid {k + 1}", 0.0, reason="the body frame carries it") for k in range(6)]
    left_out += [
        Mode(f"dependent {k + 1}", 0.0, reason="columns of the basis depend on others")
        for k in range(dependent)
    ]
    return ReducedBody(
        name=name,
        total_mass=float(G[0, 0]),
        first_moments=G[0, 1:].reshape(n + 1, 3),
        second_moments=G[1:, 1:].reshape(n + 1, 3, n + 1, 3).transpose(0, 2, 1, 3),
        mass=np.eye(n),
        stiffness=np.diag(squares),
        damping=damping,
        interfaces=tuple(
            Interface(i.name, i.kind, i.point, i.axes, T[6 * k : 6 * k + 6])
            for k, i in enumerate(placed)
        ),
        modes=tuple(Mode(f"elastic {7 + k}", float(f)) for k, f in enumerate(frequencies)),
        left_out=tuple(left_out),
        skin=skin,
        reference="mean axis",
        provenance={
            "source": "matrices of another program",
            "dofs": 3 * len(matrices.nodes),
            "fixed-interface modes": num_modes,
            "inertia": "exact, from the mass matrix and the nodes",
        },
    )


def _blocked(modes: Array) -> Array:
    """Scalar fields of the components, mode by mode, shape (N, 3 n)."""
    return modes.reshape(-1, 3, modes.shape[1]).transpose(0, 2, 1).reshape(len(modes) // 3, -1)
