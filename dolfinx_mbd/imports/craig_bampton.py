"""Craig-Bampton reduction of matrices from another program, by SciPy's sparse direct solver.

The same body as `dolfinx_mbd.reduce` makes from a mesh, for matrices that fit one process; without
geometric stiffening, for which the stress would be needed.  A rigid interface moves its nodes as
one.  The motion d of an averaged one is the rigid motion R d that is closest to the displacements u
of its nodes: it minimizes (u − R d)ᵀW(u − R d), so d = (RᵀWR)⁻¹RᵀW u. The weights W of the nodes
decide what the mean is. `dolfinx_mbd.reduce` takes the mean over the area; `NodeInterface` says
which weights give the same.

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
from dolfinx_mbd.checks import array, choice, instance, integer, refuse, vector
from dolfinx_mbd.checks import name as checked_name
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

    Without weights, all nodes count the same in the mean of an averaged interface, so that a finely
    meshed part of the surface counts more than a coarse one. For a mean over the surface, as
    `dolfinx_mbd.reduce` takes it, give the area that belongs to each node, w_i = ∫N_i dA. A facet
    of area A adds to the weights of its nodes:

    - a triangle with 3 nodes A/3 each; a quadrilateral with 4 nodes A/4 each;
    - a triangle with 6 nodes A/3 to each mid-side node and nothing to the corners;
    - a quadrilateral with 9 nodes A/36 to the corners, A/9 to the mid-side nodes, 4A/9 to the
      middle one.

    These weights make the mean displacement exact, and the mean rotation exact up to the variation
    of the displacements within a facet. With the matrix W_ij = ∫N_i N_j dA as weights, both are
    those of `reduce`, in high modes too; it is also the choice for quadrilaterals with 8 nodes,
    whose corners have negative areas.

    Attributes:
        nodes: Numbers of the nodes, as in `FullMatrices.labels`, shape (n,).
        kind: ``"rigid"`` (RBE2) or ``"averaged"`` (RBE3).
        point: Reference point, shape (3,), m; None: the weighted mean of the nodes.
        axes: Columns are the axes, z that of a bore, shape (3, 3); None: those of the body.
        weights: Weights of the nodes, at least 0, in the order of `nodes`, shape (n,); or a
            symmetric positive semidefinite matrix (n, n). None: all equal.

    Example:
        A square surface of two triangles; nodes 11 and 13 belong to both:

        >>> import numpy as np
        >>> from dolfinx_mbd.imports import NodeInterface
        >>> x = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])  # of the nodes
        >>> triangles = np.array([[0, 1, 2], [0, 2, 3]])  # rows of x
        >>> a, b, c = (x[triangles[:, k]] for k in range(3))
        >>> areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
        >>> weights = np.zeros(len(x))
        >>> np.add.at(weights, triangles, areas[:, None] / 3)
        >>> print(weights.round(4))
        [0.3333 0.1667 0.3333 0.1667]
        >>> end = NodeInterface([11, 12, 13, 14], kind="averaged", weights=weights)
    """

    nodes: ArrayLike
    kind: Literal["rigid", "averaged"] = "rigid"
    point: ArrayLike | None = None
    axes: ArrayLike | None = None
    weights: ArrayLike | None = None

    def __post_init__(self) -> None:
        array("nodes", self.nodes, expected="numbers of nodes")
        choice("kind", self.kind, ("rigid", "averaged"))
        if self.point is not None:
            vector("point", self.point, unit="m")
        if self.axes is not None:
            array("axes", self.axes, (3, 3))
        if self.weights is not None:
            array("weights", self.weights)


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
    instance("matrices", matrices, FullMatrices)
    num_modes = integer("num_modes", num_modes, low=0)
    checked_name("name", name)
    placed = _placed(matrices, interfaces)
    size = 3 * len(matrices.nodes)
    held = np.concatenate([i.dofs for i in placed if i.kind == "rigid"] or [np.zeros(0, int)])
    border = sum(6 for i in placed if i.kind == "averaged")
    if num_modes >= size - len(held) - border - 1:
        raise MatrixError(
            f"num_modes={num_modes}, but only {size - len(held) - border} degrees of freedom are "
            "not held by the interfaces",
            argument="num_modes",
            value=num_modes,
        )
    solver = _Held(matrices, placed, held)
    constraint = _with_rigid_motions(matrices, placed, solver.constraint_modes())
    Psi = np.hstack([constraint, solver.modes(num_modes)])
    return _body(matrices, placed, Psi, num_modes, name)


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
    label = f"interface {name!r}"
    kind = choice(f"{label}: kind", spec.kind, ("rigid", "averaged"))
    W = _weights(f"{label}: weights", spec.weights, len(x))
    weighted = W[:, None] * x if W.ndim == 1 else W @ x
    total = float(W.sum())
    centre = weighted.sum(axis=0) / total
    moments = x.T @ weighted - total * np.outer(centre, centre)
    extent = np.sqrt(np.maximum(np.linalg.eigvalsh((moments + moments.T) / 2), 0.0))
    if not extent[1] > FLAT * extent[2]:
        raise MatrixError(
            f"{label}: its {len(x)} nodes (those with a weight) lie in a line or in a point, which "
            "does not tell its rotation; name at least three that do not",
            argument=f"{label}: nodes",
        )
    point = centre if spec.point is None else vector(f"{label}: point", spec.point, unit="m")
    axes = np.eye(3) if spec.axes is None else array(f"{label}: axes", spec.axes, (3, 3))
    motions = rigid_motions(x, point)
    rows: NDArray | None = None
    if kind == "averaged":
        blocks = motions.reshape(len(x), 18)
        columns = (W[:, None] * blocks if W.ndim == 1 else W @ blocks).reshape(-1, 6)
        rows = np.linalg.solve(motions.T @ columns, columns.T)
    dofs = (3 * nodes[:, None] + np.arange(3)).ravel()
    return _Placed(name, kind, point, axes, dofs, motions, rows)


def _weights(argument: str, weights: ArrayLike | None, count: int) -> Array:
    """Weights of nodes, shape (count,) or (count, count)."""
    if weights is None:
        return np.ones(count)
    if np.ndim(weights) == 2:
        matrix: Array = array(argument, weights, (count, count))
        if not np.allclose(matrix, matrix.T, rtol=0, atol=1e-9 * np.abs(matrix).max(initial=0.0)):
            refuse(argument, weights, "symmetric, if it is a matrix")
        if not (matrix.diagonal() >= 0).all() or not matrix.sum() > 0:
            refuse(argument, weights, "positive semidefinite and not zero, if it is a matrix")
        return matrix
    values: Array = array(argument, weights, (count,), expected=f"{count} weights, at least 0")
    if (values < 0).any() or not values.sum() > 0:
        refuse(argument, weights, f"{count} weights, at least 0 and not all of them 0")
    return values


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
    """Return scalar fields of the components, mode by mode, shape (N, 3 n)."""
    count, n = len(modes) // 3, modes.shape[1]
    return modes.reshape(count, 3, n).transpose(0, 2, 1).reshape(count, 3 * n)
