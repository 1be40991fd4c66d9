"""Stiffness, mass and nodes of a solid from another program, checked before anything is made of it.

What a moving body needs beyond K and M are the integrals S_k = ∫ρψ_k and H_kl^ab = ∫ρ ψ_k^a ψ_l^b.
They follow from the mass matrix if it is M = M_s ⊗ I, one scalar matrix for each of the three
components, as that of every solid with displacements at its nodes is, consistent or lumped:
H_kl^ab = ψ_k^aᵀ M_s ψ_l^b. Then M_s is the block of any one component.
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

from dolfinx_mbd.checks import array, number, refuse
from dolfinx_mbd.checks import name as checked_name
from dolfinx_mbd.errors import FileError, InputError

__all__ = [
    "FullMatrices",
    "MatrixError",
    "MatrixFileError",
    "checked_matrix",
    "in_file",
    "positions",
    "rigid_motions",
    "unit_factors",
    "whole_numbers",
]

Array = NDArray[np.float64]

SYMMETRY = 1e-8
"""Greatest difference of a matrix and its transpose over its greatest entry."""

RIGID_TOLERANCE = 1e-6
"""‖K R‖ over ‖K‖‖R‖ above which a stiffness is said to resist rigid motion."""


class MatrixError(InputError):
    """Matrices or nodes from elsewhere are not those of a free solid."""


class MatrixFileError(MatrixError, FileError):
    """A file of matrices or nodes that is damaged or cannot be used.

    Attributes:
        path: The file.
    """

    def __init__(self, message: str = "", *, path: Any = None) -> None:
        super().__init__(message)
        self.path = None if path is None else str(path)


@contextlib.contextmanager
def in_file(path: Path, what: str) -> Iterator[None]:
    """Raise errors of reading a file as `MatrixFileError` with its name."""
    try:
        yield
    except (MatrixFileError, MemoryError):
        raise
    except MatrixError as error:
        raise MatrixFileError(f"{path}: {error}", path=path) from error
    except (Exception, SystemExit) as error:  # (readers of other packages raise many kinds)
        reason = str(error) or type(error).__name__
        raise MatrixFileError(
            f"{path}: not {what}, or truncated or damaged ({reason})", path=path
        ) from error


@dataclass(frozen=True, eq=False)
class FullMatrices:
    """K and M of a free solid, three displacements a node, and where the nodes are.

    Attributes:
        stiffness: Shape (3 N, 3 N), sparse or dense, degrees of freedom node by node (x, y, z);
            of the free body, without supports. N/m.
        mass: Likewise, kg.
        nodes: Positions, shape (N, 3), m.
        labels: Numbers of the nodes in the other program, shape (N,); None: 0 ... N-1.
        damping: Likewise to `stiffness`, N s/m; or None.
        triangles: Surface triangles, rows of `nodes`, shape (nt, 3); or None. For pictures.

    Raises:
        MatrixError: Shapes do not fit; values that are not finite; a matrix is not symmetric; the
            stiffness resists rigid motion; the mass is not that of a solid.
    """

    stiffness: Any
    mass: Any
    nodes: Array
    labels: NDArray[np.int64] | None = None
    damping: Any = None
    triangles: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        nodes = positions("nodes", self.nodes)
        count = len(nodes)
        labels = np.arange(count) if self.labels is None else whole_numbers("labels", self.labels)
        if labels.shape != (count,) or len(np.unique(labels)) < count:
            refuse("labels", self.labels, f"{count} different numbers of nodes", MatrixError)
        matrices = {}
        for name in ("stiffness", "mass", "damping"):
            matrix = getattr(self, name)
            if name == "damping" and matrix is None:
                continue
            matrices[name] = checked_matrix(name, matrix, 3 * count, f"3 for each of {count} nodes")
        _check_rigid_motions(matrices["stiffness"], nodes)
        for name, value in {**matrices, "nodes": nodes, "labels": labels}.items():
            object.__setattr__(self, name, value)
        _scalar_mass(matrices["mass"])
        if self.triangles is not None:
            triangles = whole_numbers("triangles", self.triangles)
            if triangles.size % 3 or (
                triangles.size and not 0 <= triangles.min() <= triangles.max() < count
            ):
                expected = f"rows of three numbers of nodes from 0 to {count - 1}"
                refuse("triangles", self.triangles, expected, MatrixError)
            triangles = triangles.reshape(-1, 3)
            object.__setattr__(self, "triangles", triangles)

    @classmethod
    def in_order(
        cls, stiffness: Any, mass: Any, nodes: ArrayLike, dofs: ArrayLike, **parts: Any
    ) -> FullMatrices:
        """Matrices in the other program's own order of degrees of freedom.

        Args:
            stiffness: K.
            mass: M.
            nodes: Shape (N, 3).
            dofs: Row of the matrices (from 0) for each node and component, shape (N, 3).
            **parts: Other attributes.

        Raises:
            MatrixError: If `dofs` does not name every row once, or anything else does not fit.
        """
        places = positions("nodes", nodes)
        order, size = whole_numbers("dofs", dofs), 3 * len(places)
        if order.shape != (len(places), 3) or not np.array_equal(
            np.sort(order.ravel()), np.arange(size)
        ):
            expected = f"each of the {size} rows of the matrices once, an array (N, 3)"
            refuse("dofs", dofs, expected, MatrixError)
        matrices = {"stiffness": stiffness, "mass": mass, "damping": parts.pop("damping", None)}
        permuted = {}
        for name, matrix in matrices.items():
            if matrix is not None or name != "damping":
                A = checked_matrix(name, matrix, size, f"3 for each of {len(places)} nodes")
                permuted[name] = A[order.ravel()][:, order.ravel()]
        return cls(nodes=places, **permuted, **parts)

    def in_si(self, *, length: float = 1.0, mass: float = 1.0, time: float = 1.0) -> FullMatrices:
        """The same body in SI.

        Args:
            length: The unit of length in m; for mm 1e-3.
            mass: The unit of mass in kg; for t 1e3.
            time: The unit of time in s.
        """
        length, mass, time = unit_factors(length=length, mass=mass, time=time)
        return replace(
            self,
            stiffness=self.stiffness * (mass / time**2),
            mass=self.mass * mass,
            nodes=self.nodes * length,
            damping=None if self.damping is None else self.damping * (mass / time),
        )

    @property
    def scalar_mass(self) -> scipy.sparse.csr_array:
        """M_s of M = M_s ⊗ I, shape (N, N), kg."""
        return _scalar_mass(self.mass)

    def rows(self, labels: ArrayLike, what: str) -> NDArray[np.int64]:
        """Rows of `nodes` of some labels.

        Raises:
            MatrixError: If there is no such node, or one is named twice.
        """
        wanted = np.atleast_1d(whole_numbers(checked_name("what", what), labels))
        assert self.labels is not None
        if wanted.ndim != 1 or not len(wanted):
            refuse(what, labels, "a list of numbers of nodes", MatrixError)
        order = np.argsort(self.labels)
        place = np.clip(np.searchsorted(self.labels[order], wanted), 0, len(order) - 1)
        found = order[place]
        unknown = wanted[self.labels[found] != wanted]
        if len(unknown):
            raise MatrixError(
                f"{what}: unknown nodes {_some(unknown)}; the {len(order)} nodes have numbers "
                f"{self.labels.min()} ... {self.labels.max()}"
            )
        if len(np.unique(found)) < len(found):
            raise MatrixError(f"{what}: a node is named twice")
        return found


def positions(argument: str, value: Any) -> Array:
    """Return positions of at least one node, shape (N, 3)."""
    expected = "finite positions of shape (N, 3) in m"
    result: Array = array(argument, value, (None, 3), expected=expected)
    if not len(result):
        refuse(argument, value, expected, MatrixError)
    return result


def whole_numbers(argument: str, value: Any) -> NDArray[np.int64]:
    """Return whole numbers; floats without a fraction are accepted."""
    numbers = array(argument, value, expected="whole numbers")
    if numbers.size and (np.abs(numbers).max() > 2**53 or (numbers != np.round(numbers)).any()):
        refuse(argument, value, "whole numbers")
    return np.asarray(numbers, dtype=np.int64)


def unit_factors(**units: float) -> tuple[float, ...]:
    """Return units in SI, each a number from 1e-15 to 1e15."""
    return tuple(number(key, value, low=1e-15, high=1e15) for key, value in units.items())


def _some(values: NDArray) -> str:
    shown = ", ".join(map(str, values[:5]))
    return shown + (f" ... ({len(values)} in all)" if len(values) > 5 else "")


def checked_matrix(name: str, matrix: Any, size: int, why: str) -> scipy.sparse.csr_array:
    """A symmetric real sparse matrix of some size.

    Raises:
        MatrixError: If it is not.
    """
    try:
        A = scipy.sparse.csr_array(matrix)
    except Exception as error:  # (SciPy raises many kinds)
        raise MatrixError(
            f"{name}: expected a matrix, got {type(matrix).__name__}", argument=name, value=matrix
        ) from error
    if A.shape != (size, size):
        raise MatrixError(f"{name}: expected shape ({size}, {size}), {why}; got {A.shape}")
    if np.iscomplexobj(A.data) or not np.issubdtype(A.dtype, np.number):
        raise MatrixError(f"{name}: expected real numbers, got {A.dtype}")
    A = A.astype(float)
    if not np.isfinite(A.data).all():
        raise MatrixError(f"{name}: holds values that are not finite")
    largest = np.abs(A.data).max(initial=0.0)
    if not largest > 0:
        raise MatrixError(f"{name}: is zero")
    off = np.abs((A - A.T).data).max(initial=0.0) / largest
    if off > SYMMETRY:
        raise MatrixError(
            f"{name}: expected a symmetric matrix; it differs from its transpose by {off:.1e} of "
            "its greatest entry (a file with one triangle only must say that it is symmetric)"
        )
    return scipy.sparse.csr_array((A + A.T) / 2)


def rigid_motions(positions: Array, point: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """Translations, then rotations about a point, shape (3 N, 6)."""
    R = np.zeros((len(positions), 3, 6))
    R[:, :, :3] = np.eye(3)
    for a in range(3):
        R[:, :, 3 + a] = np.cross(np.eye(3)[a], positions - np.asarray(point))
    return R.reshape(-1, 6)


def _check_rigid_motions(K: scipy.sparse.csr_array, nodes: Array) -> None:
    R = rigid_motions(nodes, nodes.mean(axis=0))
    scale = float(abs(K).sum(axis=1).max()) * np.abs(R).max(axis=0)
    ratio = np.max(np.abs(K @ R).max(axis=0) / np.where(scale > 0, scale, 1.0))
    if ratio > RIGID_TOLERANCE:
        raise MatrixError(
            f"the stiffness resists rigid motion (K R is not zero, relative size {ratio:.1e}): "
            "export it without supports, check that the nodes are in the order of the degrees of "
            "freedom (FullMatrices.in_order) and in the same units"
        )


def _scalar_mass(M: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    blocks = [[M[a::3, b::3] for b in range(3)] for a in range(3)]
    scalar = (blocks[0][0] + blocks[1][1] + blocks[2][2]) / 3
    largest = np.abs(M.data).max()
    off = max(
        np.abs((blocks[a][b] - (scalar if a == b else 0 * scalar)).data).max(initial=0.0)
        for a in range(3)
        for b in range(3)
    )
    if off > SYMMETRY * largest:
        raise MatrixError(
            "the mass matrix is not that of a solid, one scalar matrix for x, y and z (it differs "
            f"by {off / largest:.1e} of its greatest entry): with rotary inertia, shells or beams "
            "reduce the body in the other program and import it as a ReducedMatrices"
        )
    if not scalar.sum() > 0 or not (scalar.diagonal() > 0).all():
        raise MatrixError("the mass matrix has nodes without mass, or no mass at all")
    return scipy.sparse.csr_array(scalar)
