"""Full matrices and nodes of a solid from another program, and their checks.

Besides K and M, a moving body with the modes ψ_k needs the integrals S_k = ∫ρψ_k and H_kl^ab = ∫ρ
ψ_k^a ψ_l^b. Both follow from a mass matrix of the form M = M_s ⊗ I, with one scalar matrix M_s for
the three components: H_kl^ab = ψ_k^aᵀ M_s ψ_l^b. The mass matrix of every solid with displacements
at its nodes, consistent or lumped, has this form.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from dolfinx_mbd.arrays import Array, assign
from dolfinx_mbd.checks import array, number, reject
from dolfinx_mbd.errors import FileError, InputError
from dolfinx_mbd.html import short_repr

SYMMETRY_TOLERANCE = 1e-8
"""Largest permitted entry of |A - Aᵀ| and |M - M_s ⊗ I|, relative to the largest of |A| and |M|."""

RIGID_TOLERANCE = 1e-6
"""Ratio ‖K R‖/‖K‖‖R‖ above which K resists the rigid motions R."""


class MatrixError(InputError):
    """Imported matrices or nodes that do not describe a free solid."""


class MatrixFileError(MatrixError, FileError):
    """A file of matrices or nodes that is damaged or unusable; `path` is an attribute."""

    def __init__(self, message: str = "", *, path: Any = None) -> None:
        super().__init__(message)
        self.path = None if path is None else str(path)


@contextlib.contextmanager
def in_file(path: Path, content: str) -> Iterator[None]:
    """Convert errors that occur while a file is read to `MatrixFileError`."""
    try:
        yield
    except (MatrixFileError, MemoryError):
        raise
    except MatrixError as error:
        raise MatrixFileError(f"{path}: {error}", path=path) from error
    except (Exception, SystemExit) as error:  # readers in other packages raise many types
        reason = str(error) or type(error).__name__
        text = f"{path}: not {content}, or truncated or damaged ({reason})"
        raise MatrixFileError(text, path=path) from error


@dataclass(frozen=True, eq=False)
class FullMatrices:
    """Matrices and nodes of a free solid with three displacements at each node.

    Attributes:
        stiffness: K of the body without supports, N/m, sparse or dense, shape (3 N, 3 N), with the
            degrees of freedom ordered by nodes and then x, y, z.
        mass: M, kg, of the same shape.
        nodes: Positions of the nodes, m, shape (nodes, 3).
        labels: Numbers of the nodes in the other program, shape (nodes,); by default 0, 1, 2 ...
        damping: Damping matrix of the same shape, N s/m; by default no damping.
        triangles: Triangles of the surface as zero-based rows of `nodes`, shape (nt, 3); by
            default the body has no surface for pictures.

    Raises:
        MatrixError: Shapes do not match, values are not finite, a matrix is not symmetric, the
            stiffness resists rigid motions, or the mass matrix is not of the form M_s ⊗ I.

    Example:
        >>> matrices = FullMatrices(K, M, x)
        >>> print(f"{matrices.scalar_mass.sum():.3f} kg")
        15.700 kg
    """

    stiffness: Any
    mass: Any
    nodes: Array
    labels: NDArray[np.int64] | None = None
    damping: Any = None
    triangles: NDArray[np.int64] | None = None

    __repr__ = short_repr

    def __post_init__(self) -> None:
        nodes = positions("nodes", self.nodes)
        count = len(nodes)
        labels = np.arange(count) if self.labels is None else whole_numbers("labels", self.labels)
        if labels.shape != (count,) or len(np.unique(labels)) < count:
            reject("labels", self.labels, f"{count} different numbers of nodes", MatrixError)
        values = checked_matrices(self, 3 * count, f"3 for each of {count} nodes")
        _check_rigid_motions(values["stiffness"], nodes)
        _scalar_mass(values["mass"])
        values |= {"nodes": nodes, "labels": labels}
        if self.triangles is not None:
            triangles = whole_numbers("triangles", self.triangles)
            if triangles.size % 3 or not np.isin(triangles, np.arange(count)).all():
                expected = f"rows of three numbers of nodes from 0 to {count - 1}"
                reject("triangles", self.triangles, expected, MatrixError)
            values["triangles"] = triangles.reshape(-1, 3)
        assign(self, **values)

    @classmethod
    def in_order(
        cls, stiffness: Any, mass: Any, nodes: ArrayLike, dofs: ArrayLike, **parts: Any
    ) -> FullMatrices:
        """Return matrices whose degrees of freedom have a different order.

        Args:
            stiffness: K, N/m.
            mass: M, kg.
            nodes: Positions of the nodes, m, shape (nodes, 3).
            dofs: Zero-based row of the matrices for each node and component, shape (nodes, 3).
            **parts: Further attributes of the result.

        Raises:
            MatrixError: `dofs` does not contain every row once; for other causes see the class.
        """
        points = positions("nodes", nodes)
        order, size = whole_numbers("dofs", dofs), 3 * len(points)
        rows = order.ravel()
        if order.shape != (len(points), 3) or not np.array_equal(np.sort(rows), np.arange(size)):
            expected = f"each of the {size} rows of the matrices once, an array (N, 3)"
            reject("dofs", dofs, expected, MatrixError)
        permuted = {}
        for name, matrix in {"stiffness": stiffness, "mass": mass, **parts}.items():
            if name in ("stiffness", "mass") or (name == "damping" and matrix is not None):
                A = _checked_matrix(name, matrix, size, f"3 for each of {len(points)} nodes")
                permuted[name] = A[rows][:, rows]
        return cls(nodes=points, **(parts | permuted))

    def in_si(self, *, length: float = 1.0, mass: float = 1.0, time: float = 1.0) -> FullMatrices:
        """Return the same body in SI units.

        Args:
            length: Unit of length of the matrices, m; for mm 1e-3.
            mass: Unit of mass, kg; for t 1e3.
            time: Unit of time, s.
        """
        length, mass, time = unit_factors(length=length, mass=mass, time=time)
        K, M, x = self.stiffness * (mass / time**2), self.mass * mass, self.nodes * length
        C = None if self.damping is None else self.damping * (mass / time)
        return replace(self, stiffness=K, mass=M, nodes=x, damping=C)

    @property
    def scalar_mass(self) -> scipy.sparse.csr_array:
        """Scalar mass matrix M_s in M = M_s ⊗ I, kg, shape (nodes, nodes)."""
        return _scalar_mass(self.mass)

    def rows(self, labels: ArrayLike, argument: str) -> NDArray[np.int64]:
        """Return the rows of `nodes` with the given labels; `argument` is the name in messages."""
        requested = np.atleast_1d(whole_numbers(argument, labels))
        assert self.labels is not None
        if requested.ndim != 1 or not len(requested):
            reject(argument, labels, "a list of numbers of nodes", MatrixError)
        order = np.argsort(self.labels)
        index = np.clip(np.searchsorted(self.labels[order], requested), 0, len(order) - 1)
        result = order[index]
        unknown = requested[self.labels[result] != requested]
        if len(unknown):
            label_range = f"{self.labels.min()} ... {self.labels.max()}"
            expected = f"numbers of existing nodes (the {len(order)} nodes have {label_range})"
            reject(argument, unknown.tolist(), expected, MatrixError)
        if len(np.unique(result)) < len(result):
            reject(argument, labels, "different numbers of nodes", MatrixError)
        return result


def positions(argument: str, value: Any) -> Array:
    """Return the checked positions of at least one node, shape (nodes, 3)."""
    expected = "finite positions of shape (nodes, 3) in m"
    result: Array = array(argument, value, (None, 3), expected=expected)
    if not len(result):
        reject(argument, value, expected, MatrixError)
    return result


def whole_numbers(argument: str, value: Any) -> NDArray[np.int64]:
    """Return whole numbers; floats without a fraction are accepted."""
    numbers = array(argument, value, expected="whole numbers")
    if numbers.size and (np.abs(numbers).max() > 2**53 or (numbers != np.round(numbers)).any()):
        reject(argument, value, "whole numbers")
    return np.asarray(numbers, dtype=np.int64)


def unit_factors(**units: float) -> tuple[float, ...]:
    """Return the values of units in SI; raise an error unless they are from 1e-15 to 1e15."""
    return tuple(number(key, value, low=1e-15, high=1e15) for key, value in units.items())


def checked_matrices(source: Any, size: int, reason: str) -> dict[str, Any]:
    """Return the stiffness, mass and, if present, damping of an object as sparse matrices."""
    names = ["stiffness", "mass"] + ["damping"] * (source.damping is not None)
    return {name: _checked_matrix(name, getattr(source, name), size, reason) for name in names}


def _checked_matrix(name: str, matrix: Any, size: int, reason: str) -> scipy.sparse.csr_array:
    """Return a symmetric matrix of finite real numbers; `reason` explains its size."""
    expected = f"a symmetric matrix of finite real numbers, shape ({size}, {size}), {reason}"
    try:
        A = scipy.sparse.csr_array(matrix)
    except Exception:  # SciPy raises many types
        reject(name, matrix, expected, MatrixError)

    def fail(reason: str) -> MatrixError:
        text = f"{name} must be {expected}; {reason}"
        return MatrixError(text, argument=name, value=matrix, expected=expected)

    if A.shape != (size, size):
        raise fail(f"its shape is {A.shape}")
    if np.iscomplexobj(A.data) or not np.issubdtype(A.dtype, np.number):
        raise fail(f"its type is {A.dtype}")
    A = A.astype(float)
    largest = np.abs(A.data).max(initial=0.0)
    if not 0 < largest < np.inf:
        raise fail("it is zero or has values that are not finite")
    asymmetry = np.abs((A - A.T).data).max(initial=0.0) / largest
    if asymmetry > SYMMETRY_TOLERANCE:
        raise fail(
            f"it differs from its transpose by {asymmetry:.1e} of its largest entry (a file with "
            "one triangle must declare that the matrix is symmetric)"
        )
    return scipy.sparse.csr_array((A + A.T) / 2)


def rigid_motions(positions: Array, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Return the displacements (3 N, 6) of N positions for each of six rigid motions."""
    arms = positions - np.asarray(point)
    R = np.tile(np.eye(3, 6), (len(arms), 1, 1))
    R[:, :, 3:] = np.cross(np.eye(3), arms[:, None]).swapaxes(1, 2)
    return R.reshape(-1, 6)


def rigid_coefficients(points: Array, origin: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Return the motions of p points for rigid motions about an origin, shape (6 p, 6)."""
    blocks = np.tile(np.eye(6), (len(points), 1, 1))
    blocks[:, :3] = rigid_motions(points, origin).reshape(-1, 3, 6)
    return blocks.reshape(-1, 6)


def check_free(ratio: float, tolerance: float, advice: str) -> None:
    """Raise an error if the relative size of K R for rigid motions R exceeds a tolerance."""
    if ratio > tolerance:
        raise MatrixError(
            f"the stiffness resists rigid motion (K R is not zero, relative size {ratio:.1e}): "
            f"export it without supports, {advice}",
            argument="stiffness",
        )


def _check_rigid_motions(K: scipy.sparse.csr_array, nodes: Array) -> None:
    """Raise an error if rigid motions of the nodes cause forces."""
    R = rigid_motions(nodes, nodes.mean(axis=0))
    scale = float(abs(K).sum(axis=1).max()) * np.abs(R).max(axis=0)
    ratio = np.max(np.abs(K @ R).max(axis=0) / np.where(scale > 0, scale, 1.0))
    check_free(
        ratio,
        RIGID_TOLERANCE,
        "and check that the nodes have the order of the degrees of freedom (see "
        "FullMatrices.in_order) and the same units",
    )


def _scalar_mass(M: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Return M_s in M = M_s ⊗ I."""
    blocks = [[M[a::3, b::3] for b in range(3)] for a in range(3)]
    scalar = (blocks[0][0] + blocks[1][1] + blocks[2][2]) / 3
    largest = np.abs(M.data).max()
    differences = [blocks[a][b] - (a == b) * scalar for a in range(3) for b in range(3)]
    error = max(np.abs(difference.data).max(initial=0.0) for difference in differences)
    if error > SYMMETRY_TOLERANCE * largest:
        raise MatrixError(
            "the mass matrix is not that of a solid, which has equal blocks for x, y and z and no "
            f"coupling (relative error {error / largest:.1e}); reduce a body with rotary inertia, "
            "shells or beams in the other program, and import it as ReducedMatrices",
            argument="mass",
        )
    if not scalar.sum() > 0 or not (scalar.diagonal() > 0).all():
        raise MatrixError("the mass matrix has nodes without mass, or no mass", argument="mass")
    return scipy.sparse.csr_array(scalar)
