"""Inertia operators of a moving frame on the full mesh, computed with the scalar mass matrix M_s.

Every inertia term is ∫ρ (W u)·v = vᵀ (M_s ⊗ W) u with a constant matrix W in body components: I for
the mass, 2ω̃ for the Coriolis operator, ω̃ω̃ for the centrifugal and α̃ for the Euler stiffness. A
sum of terms needs one product with M_s and no assembly. In the plane ω and α are scalars (the
components about z), and W has shape (2, 2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy
from numpy.typing import ArrayLike
from petsc4py import PETSc

from dolfinx_mbd.arrays import Array
from dolfinx_mbd.checks import array, instance, object_with, reject, vector
from dolfinx_mbd.fem.linalg.blocks import multiply

if TYPE_CHECKING:
    from dolfinx_mbd.fem.assembly import ElasticProblem


def spin_matrix(omega: ArrayLike) -> Array:
    """Return ω̃ with ω̃ u = ω×u, of shape (3, 3), or (2, 2) for a scalar ω about z.

    With the angular acceleration α as the argument, the result is the matrix α̃ of the Euler
    stiffness.
    """
    w = np.asarray(omega, dtype=float)
    if w.shape == ():
        return np.array([[0.0, -w], [w, 0.0]])
    if w.shape == (3,):
        return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]])
    reject("omega", omega, "of shape (3,), or a scalar in the plane")


def coriolis(omega: ArrayLike) -> Array:
    """Return W = 2ω̃ of the Coriolis (gyroscopic) operator on u̇; it is skew and does no work."""
    return 2.0 * spin_matrix(omega)


def centrifugal(omega: ArrayLike) -> Array:
    """Return W = ω̃ω̃ of spin softening; it is symmetric and negative semi-definite."""
    spin = spin_matrix(omega)
    return spin @ spin


def inertia_matrix(problem: ElasticProblem, W: ArrayLike) -> PETSc.Mat:
    """Return M_s ⊗ W without the zeros of W.

    Its sparsity pattern is a subset of the pattern of K, so that
    ``K.axpy(s, matrix, structure=SUBSET_NONZERO_PATTERN)`` adds it to a copy of K.

    Args:
        problem: Matrices of a body, from `elastic_problem`.
        W: Matrix that multiplies displacements, shape (dim, dim).

    Returns:
        The matrix, which the caller destroys.

    Raises:
        InputError: W has the wrong shape.

    Note: Collective.

    Example:
        >>> from dolfinx_mbd.fem.operators import coriolis
        >>> G = inertia_matrix(problem, coriolis([0.0, 0.0, 100.0]))
        >>> G.getSize()[0] == problem.num_dofs
        True
    """
    dim = _checked_problem(problem).dim
    weights = _weights(W, dim)
    indptr, columns, values = problem.scalar_mass.getValuesCSR()
    num_blocks, blocks = len(indptr) - 1, dim * columns
    # All rows of component 0, then those of component 1, ...; each entry of M_s becomes an entry
    # for each nonzero weight in the row of W. A permutation then puts the rows of a block together
    nonzero = [np.flatnonzero(row) for row in weights]
    ends = np.cumsum([0, *(len(k) * len(values) for k in nonzero)])
    entries, entry_columns = np.empty(ends[-1]), np.empty(ends[-1], dtype=columns.dtype)
    for a, k in enumerate(nonzero):  # the rows of component a
        part = slice(ends[a], ends[a + 1])
        for j, b in enumerate(k):
            np.multiply(values, weights[a, b], out=entries[part][j :: len(k)])
            np.add(blocks, blocks.dtype.type(b), out=entry_columns[part][j :: len(k)])
    starts = [ends[a] + len(k) * indptr[:-1] for a, k in enumerate(nonzero)]
    row_pointers = np.concatenate([*starts, ends[-1:]]).astype(indptr.dtype)
    sizes = problem.stiffness.getSizes()
    _, (_, num_columns) = sizes
    shape = dim * num_blocks, num_columns
    by_component = scipy.sparse.csr_matrix((entries, entry_columns, row_pointers), shape=shape)
    rows = by_component[np.arange(dim * num_blocks).reshape(dim, num_blocks).T.ravel()]
    csr = tuple(part.astype(PETSc.IntType, copy=False) for part in (rows.indptr, rows.indices))
    return PETSc.Mat().createAIJWithArrays(sizes, (*csr, rows.data), bsize=dim, comm=problem.comm)


def apply_inertia(problem: ElasticProblem, W: ArrayLike, X: Array) -> Array:
    """Return (M_s ⊗ W) X by a product with M_s, at a fraction of the cost of a product with K.

    Args:
        problem: Matrices of a body, from `elastic_problem`.
        W: Matrix that multiplies displacements, shape (dim, dim).
        X: Vectors, shape (owned dofs, k) or (owned dofs,).

    Returns:
        Vectors of the shape of `X`, Fortran order.

    Raises:
        InputError: W or X has the wrong shape.

    Note: Collective.

    Example:
        >>> R = problem.rigid_motions()
        >>> mass = R[:, 0] @ apply_inertia(problem, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], R)[:, 0]
        >>> print(f"{mass:.4g} kg")
        78.5 kg
    """
    dim = _checked_problem(problem).dim
    weights = _weights(W, dim)
    _check_rows("X", X, problem.num_owned, (1, 2))
    rows, columns = len(X) // dim, 1 if X.ndim == 1 else X.shape[1]
    vectors = X.reshape(rows, dim, columns).transpose(0, 2, 1).reshape(-1, dim)
    fields = (vectors @ weights.T).reshape(rows, columns * dim)
    result = multiply(problem.scalar_mass, fields).reshape(rows, columns, dim)
    return np.asfortranarray(result.transpose(0, 2, 1).reshape(X.shape))


def load_fields(problem: ElasticProblem) -> Array:
    """Return M_s [1, x], shape (owned blocks, 1 + dim), for `frame_load` (collective)."""
    x = problem.positions
    return multiply(problem.scalar_mass, np.column_stack([np.ones(len(x)), x]))


def frame_load(
    problem: ElasticProblem,
    acceleration: ArrayLike | None = None,
    omega: ArrayLike | None = None,
    alpha: ArrayLike | None = None,
    gravity: ArrayLike | None = None,
    *,
    fields: Array | None = None,
) -> Array:
    """Return the load -∫ρ (a₀ - g + α×x + ω×(ω×x))·v due to the motion of the frame and gravity.

    Args:
        problem: Matrices of a body, from `elastic_problem`.
        acceleration: a₀ of the frame's origin in body components, shape (dim,), m/s²; default 0.
        omega: Angular velocity ω, shape (3,), or a scalar in the plane, rad/s; default 0.
        alpha: Angular acceleration α, of the shape of `omega`, rad/s²; default 0.
        gravity: Gravity Aᵀg in body components, shape (dim,), m/s²; default 0.
        fields: Result of `load_fields`; by default it is computed. If it is given, the call is
            faster and not collective.

    Returns:
        Right-hand side, shape (owned dofs,), N; it includes the thickness of a plane body.

    Raises:
        InputError: An argument has the wrong shape.

    Note: Collective without `fields`.

    Example:
        >>> weight = frame_load(problem, gravity=[0.0, 0.0, -9.81])
        >>> print(f"{weight.sum():.1f} N")
        -770.1 N
    """
    dim = _checked_problem(problem).dim
    shape = (3,) if dim == 3 else ()
    # The acceleration of a point at rest in the frame is shift + spin x
    shift, spin = np.zeros(dim), np.zeros((dim, dim))
    if acceleration is not None:
        shift += vector("acceleration", acceleration, dim, unit="m/s²")
    if gravity is not None:
        shift -= vector("gravity", gravity, dim, unit="m/s²")
    if omega is not None:
        spin += centrifugal(array("omega", omega, shape))
    if alpha is not None:
        spin += spin_matrix(array("alpha", alpha, shape))
    if fields is None:
        fields = load_fields(problem)
    _check_rows("fields", fields, problem.num_owned // dim, (2,))
    if not np.isfinite(spin).all():
        reject("omega", omega, "a vector whose square is finite")
    return -(fields @ np.vstack([shift, spin.T])).ravel()


def _weights(W: ArrayLike, dim: int) -> Array:
    """Return W as an array, or raise an error if it has the wrong shape."""
    text = "of shape (3,)" if dim == 3 else "that are scalars"
    expected = f"numbers of shape ({dim}, {dim}), created from angular velocities {text}"
    return np.asarray(array("W", W, (dim, dim), expected=expected))


def _checked_problem(problem: ElasticProblem) -> ElasticProblem:
    """Return the problem, or raise an error if it has no scalar mass matrix (a beam has none)."""
    object_with("problem", problem, "scalar_mass", "positions", "num_owned", "dim")
    return problem


def _check_rows(argument: str, vectors: Array, rows: int, ndim: tuple[int, ...]) -> None:
    """Raise an error unless `vectors` is a real array of `rows` rows; values are not checked."""
    instance(argument, vectors, np.ndarray)
    if vectors.dtype.kind != "f" or vectors.ndim not in ndim or len(vectors) != rows:
        reject(argument, vectors, f"an array of floats with {rows} rows")
