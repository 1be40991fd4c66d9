"""Craig-Bampton reduction of matrices from another program, by SciPy's sparse direct solver.

The matrices must fit into the memory of one process. The result equals the result of
`dolfinx_mbd.reduce` without geometric stiffening, which requires the stress. The nodes of a rigid
interface move as a rigid body. An averaged interface has the motion d for which the rigid motion R
d is closest to the displacements u of its nodes: d minimizes (u − R d)ᵀW(u − R d) with the weights
W of the nodes, so that d = (RᵀWR)⁻¹RᵀW u. `NodeInterface` describes the weights for which d is the
mean over the surface, as in `dolfinx_mbd.reduce`.

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

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.body import ReducedBody, Skin
from dolfinx_mbd.checks import array, choice, instance, integer, reject, vector
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import SolverError
from dolfinx_mbd.io.imports.full_matrices import (
    FullMatrices,
    MatrixError,
    rigid_coefficients,
    rigid_motions,
)
from dolfinx_mbd.io.imports.reduced_matrices import mean_axis_modes

RIGID_TOLERANCE = 1e-4  # a body is rejected if the relative error of rigid motions is larger
LINE_RATIO = 1e-6  # nodes form a line if second largest / largest extent is smaller

_SINGULAR = "the stiffness is singular with fixed interfaces"


@dataclass(frozen=True, eq=False)
class NodeInterface:
    """The nodes of an interface, to which joints can be attached.

    By default all nodes have the same weight in the mean of an averaged interface, so that fine
    parts of a mesh have more influence than coarse ones. The weights w_i = ∫N_i dA of the surface
    give the mean over the area, as in `dolfinx_mbd.reduce`. A facet of area A adds these values to
    the weights of its nodes:

    - triangle with 3 nodes: A/3 for each; quadrilateral with 4 nodes: A/4 for each;
    - triangle with 6 nodes: A/3 for each mid-side node, and nothing for the corners;
    - quadrilateral with 9 nodes: A/36 for corners, A/9 for mid-side nodes, 4A/9 for the centre.

    These weights give the exact mean displacement. The mean rotation has an error due to the
    variation of the displacements within a facet. The matrix W_ij = ∫N_i N_j dA gives both exactly;
    use it also for quadrilaterals with 8 nodes, whose corners have negative weights.

    Attributes:
        nodes: Numbers of the nodes, see `FullMatrices.labels`, shape (n,).
        kind: `"rigid"` (RBE2) or `"averaged"` (RBE3).
        point: Reference point, m, shape (3,); by default the weighted mean of the nodes.
        axes: Matrix whose columns are the axes (for a bore, z is its axis), shape (3, 3); by
            default the axes of the body.
        weights: Non-negative weights in the order of `nodes`, shape (n,), or a symmetric positive
            semi-definite matrix, shape (n, n); by default all weights are equal.

    Example:
        The weights of a square of two triangles, which share two nodes:

        >>> corners = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
        >>> triangles = np.array([[0, 1, 2], [0, 2, 3]])  # rows of corners
        >>> a, b, c = (corners[triangles[:, k]] for k in range(3))
        >>> areas = np.linalg.norm(np.cross(b - a, c - a), axis=1) / 2
        >>> weights = np.zeros(4)
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
class _InterfaceDofs:
    """An interface with its degrees of freedom."""

    name: str
    kind: str
    point: Array
    axes: Array
    dofs: NDArray[np.int64]  # the displacements x, y, z of its nodes, shape (d,)
    motions: Array  # rigid motions of the nodes about the point, shape (d, 6)
    rows: Array | None  # (6, d), from `dofs` to the motion of an averaged interface; else None


def reduce_matrices(
    matrices: FullMatrices,
    interfaces: Mapping[str, NodeInterface],
    *,
    num_modes: int = 20,
    name: str = "body",
) -> ReducedBody:
    """Return the Craig-Bampton reduction of a body, with mean-axis modes.

    With k interfaces the body has 6 k + `num_modes` - 6 elastic coordinates.

    Args:
        matrices: Matrices and nodes in SI units.
        interfaces: At least one interface; different interfaces have no common nodes.
        num_modes: Number of fixed-interface modes.
        name: Name of the body.

    Raises:
        MatrixError: The interfaces do not match the matrices, or the body is not connected.

    Example:
        >>> body = reduce_matrices(FullMatrices(K, M, x), ends, num_modes=3)
        >>> body.num_modes
        9
    """
    instance("matrices", matrices, FullMatrices)
    num_modes = integer("num_modes", num_modes, low=0)
    checked_name("name", name)
    ends = _interface_dofs(matrices, interfaces)
    rigid = [i.dofs for i in ends if i.kind == "rigid"]
    held = np.concatenate([np.zeros(0, int), *rigid])
    averaged = sum(i.kind == "averaged" for i in ends)
    free = 3 * len(matrices.nodes) - len(held) - 6 * averaged
    if num_modes >= free - 1:
        expected = f"less than {free - 1}: the interfaces leave {free} degrees of freedom"
        reject("num_modes", num_modes, expected, MatrixError)
    solver = _FixedInterfaces(matrices, ends, held)
    constraint = _with_rigid_motions(matrices, ends, solver.constraint_modes())
    Psi = np.hstack([constraint, solver.modes(num_modes)])
    return _body(matrices, ends, Psi, num_modes, name)


def _interface_dofs(
    matrices: FullMatrices, interfaces: Mapping[str, NodeInterface]
) -> tuple[_InterfaceDofs, ...]:
    """Return the degrees of freedom of each interface; nodes belong to at most one."""
    expected = "at least one interface, {'name': NodeInterface(nodes)}"
    if not isinstance(interfaces, Mapping) or not interfaces:
        reject("interfaces", interfaces, expected, MatrixError)
    result: list[_InterfaceDofs] = []
    owner = np.full(len(matrices.nodes), -1)
    for k, (name, spec) in enumerate(interfaces.items()):
        if not isinstance(spec, NodeInterface):
            reject(f"interface {name!r}", spec, "a NodeInterface", MatrixError)
        nodes = matrices.rows(spec.nodes, f"interface {name!r}: nodes")
        shared = nodes[owner[nodes] >= 0]
        if len(shared):
            other = (
                f"without the {len(shared)} nodes of interface {result[owner[shared[0]]].name!r}"
            )
            reject(f"interface {name!r}: nodes", spec.nodes, other, MatrixError)
        owner[nodes] = k
        result.append(_dofs_on_nodes(name, spec, nodes, matrices.nodes[nodes]))
    return tuple(result)


def _dofs_on_nodes(
    name: str, spec: NodeInterface, nodes: NDArray[np.int64], x: Array
) -> _InterfaceDofs:
    """Return the degrees of freedom of an interface with its nodes at x (nodes, 3)."""
    W = _weights(f"interface {name!r}: weights", spec.weights, len(x))
    weighted, total = W @ x, float(W.sum())
    centre = weighted.sum(axis=0) / total
    moments = x.T @ weighted - total * np.outer(centre, centre)
    extent = np.sqrt(np.maximum(np.linalg.eigvalsh((moments + moments.T) / 2), 0.0))
    if not extent[1] > LINE_RATIO * extent[2]:
        expected = "at least three nodes with a weight that are not in a line"
        reject(f"interface {name!r}: nodes", spec.nodes, expected, MatrixError)
    point: Array = centre if spec.point is None else np.asarray(spec.point, dtype=float)
    axes: Array = np.eye(3) if spec.axes is None else np.asarray(spec.axes, dtype=float)
    motions = rigid_motions(x, point)
    rows: NDArray | None = None
    if spec.kind == "averaged":
        columns = (W @ motions.reshape(len(x), 18)).reshape(-1, 6)
        rows = np.linalg.solve(motions.T @ columns, columns.T)
    dofs = (3 * nodes[:, None] + np.arange(3)).ravel()
    return _InterfaceDofs(name, spec.kind, point, axes, dofs, motions, rows)


def _weights(argument: str, weights: ArrayLike | None, count: int) -> Any:
    """Return the weights of nodes as a dense or sparse matrix, shape (count, count)."""
    if weights is None or np.ndim(weights) < 2:
        values = np.ones(count) if weights is None else weights
        expected = f"{count} weights, at least 0 and not all of them 0"
        W = scipy.sparse.diags_array(array(argument, values, (count,), expected=expected))
    else:
        W = array(argument, weights, (count, count))
        expected = "symmetric, positive semi-definite and not zero, if it is a matrix"
        if not np.allclose(W, W.T, rtol=0, atol=1e-9 * np.abs(W).max(initial=0.0)):
            reject(argument, weights, expected)
    if not (W.diagonal() >= 0).all() or not W.sum() > 0:
        reject(argument, weights, expected)
    return W


class _FixedInterfaces:
    """The factorized stiffness of the body with fixed interfaces.

    Degrees of freedom of rigid interfaces are removed; averaged interfaces add constraints.
    """

    def __init__(
        self, matrices: FullMatrices, ends: tuple[_InterfaceDofs, ...], held: NDArray[np.int64]
    ) -> None:
        self.matrices, self.ends = matrices, ends
        size = 3 * len(matrices.nodes)
        self.free = np.setdiff1d(np.arange(size), held)
        self.averaged = [k for k, i in enumerate(ends) if i.rows is not None]
        C = scipy.sparse.lil_array((6 * len(self.averaged), size))
        for j, k in enumerate(self.averaged):
            C[6 * j : 6 * j + 6, ends[k].dofs] = ends[k].rows
        K = matrices.stiffness[self.free][:, self.free]
        self.M = matrices.mass[self.free][:, self.free]
        settings: dict[str, Any] = {}
        if self.averaged:
            self.scale = float(np.abs(K.diagonal()).mean())
            # Scaled, because entries of K and C differ by many orders of magnitude
            border = self.scale * scipy.sparse.csr_array(C)[:, self.free]
            K = scipy.sparse.bmat([[K, border.T], [border, None]])
        else:
            settings = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
        self.K = scipy.sparse.csc_array(K)
        try:
            self.factors = scipy.sparse.linalg.splu(self.K, permc_spec="MMD_AT_PLUS_A", **settings)
        except RuntimeError as error:
            reason = f"a part of the body is not connected to any interface ({error})"
            raise MatrixError(f"{_SINGULAR}: {reason}", argument="stiffness") from error

    def solve(self, B: Array) -> Array:
        """Return the solution of a linear system, with one step of iterative refinement."""
        X = self.factors.solve(B)
        return X + self.factors.solve(B - self.K @ X)

    def constraint_modes(self) -> Array:
        """Return one mode for each coordinate of p interfaces, with N nodes (3 N, 6 p)."""
        size, n = 3 * len(self.matrices.nodes), len(self.free)
        X = np.zeros((size, 6 * len(self.ends)))
        for k, i in enumerate(self.ends):
            if i.rows is None:
                X[i.dofs, 6 * k : 6 * k + 6] = i.motions
        B = np.zeros((self.K.shape[0], X.shape[1]))
        B[:n] = -(self.matrices.stiffness @ X)[self.free]
        for j, k in enumerate(self.averaged):
            B[n + 6 * j + np.arange(6), 6 * k + np.arange(6)] = self.scale
        X[self.free] = self.solve(B)[:n]
        if not np.isfinite(X).all():
            raise MatrixError(_SINGULAR, argument="stiffness")
        return X

    def modes(self, count: int) -> Array:
        """Return the lowest modes with fixed interfaces, shape (3 N, count)."""
        result = np.zeros((3 * len(self.matrices.nodes), count))
        if not count:
            return result
        n, num_constraints = len(self.free), self.K.shape[0] - len(self.free)

        def inverse(b: Array) -> Array:
            return self.factors.solve(np.concatenate([b.ravel(), np.zeros(num_constraints)]))[:n]

        operator = scipy.sparse.linalg.LinearOperator((n, n), matvec=inverse, dtype=float)
        start = np.random.default_rng(0).standard_normal(n)
        try:
            _, vectors = scipy.sparse.linalg.eigsh(
                self.K[:n, :n], count, self.M, sigma=0.0, OPinv=operator, v0=start,
                ncv=min(n - num_constraints, max(2 * count + 1, 20)),
            )  # fmt: skip
        except scipy.sparse.linalg.ArpackError as error:
            raise SolverError(f"the fixed-interface modes did not converge ({error})") from error
        result[self.free] = vectors
        return result


def _with_rigid_motions(
    matrices: FullMatrices, ends: tuple[_InterfaceDofs, ...], constraint: Array
) -> Array:
    """Return the constraint modes, corrected so that they reproduce rigid motions exactly."""
    origin = ends[0].point
    C = rigid_coefficients(np.array([i.point for i in ends]), origin)
    R = rigid_motions(matrices.nodes, origin)
    excess = constraint @ C - R
    error = np.max(np.abs(excess).max(axis=0) / np.abs(R).max(axis=0))
    if not error <= RIGID_TOLERANCE:
        raise MatrixError(
            f"the constraint modes do not reproduce a rigid motion (relative error {error:.1e}): "
            "a part of the body is not connected to any interface",
            argument="stiffness",
        )
    return constraint - excess @ np.linalg.pinv(C)


def _body(
    matrices: FullMatrices, ends: tuple[_InterfaceDofs, ...], Psi: Array, num_modes: int, name: str
) -> ReducedBody:
    """Return the reduced body of the modes Ψ with the mean-axis reference."""
    K, M = (Psi.T @ (A @ Psi) for A in (matrices.stiffness, matrices.mass))
    centre = matrices.nodes.mean(axis=0)
    R = np.zeros((Psi.shape[1], 6))
    R[: 6 * len(ends)] = rigid_coefficients(np.array([i.point for i in ends]), centre)
    motion = np.eye(6 * len(ends), Psi.shape[1])
    C = None if matrices.damping is None else Psi.T @ (matrices.damping @ Psi)
    mean_axis = mean_axis_modes((K + K.T) / 2, (M + M.T) / 2, R, motion)
    modes = Psi @ mean_axis.coefficients
    count, n = len(matrices.nodes), modes.shape[1]
    components = modes.reshape(count, 3, n).transpose(0, 2, 1).reshape(count, 3 * n)
    # Mass, first and second moments are the products of these fields: 1, x and the modes
    fields = np.hstack([np.ones((len(components), 1)), matrices.nodes, components])
    G = fields.T @ (matrices.scalar_mass @ fields)
    G = (G + G.T) / 2
    skin = None
    if matrices.triangles is not None:
        used, triangles = np.unique(matrices.triangles, return_inverse=True)
        shapes = modes.T.reshape(n, count, 3)[:, used]
        skin = Skin(matrices.nodes[used], triangles.reshape(-1, 3), shapes)
    return mean_axis.body(
        name,
        [(i.name, i.kind, i.point, i.axes) for i in ends],
        C,
        total_mass=float(G[0, 0]),
        first_moments=G[0, 1:].reshape(n + 1, 3),
        second_moments=G[1:, 1:].reshape(n + 1, 3, n + 1, 3).transpose(0, 2, 1, 3),
        skin=skin,
        provenance={
            "source": "matrices of another program",
            "dofs": 3 * len(matrices.nodes),
            "fixed-interface modes": num_modes,
            "inertia": "exact, from the mass matrix and the nodes",
        },
    )
