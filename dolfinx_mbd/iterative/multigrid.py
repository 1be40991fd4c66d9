"""Preconditioners of a stiffness with held rows: two levels of elements, or algebraic multigrid.

Two levels: Chebyshev iteration with the diagonal smooths what the elements of degree two and more
resolve, and linear elements on the same cells, about eight times fewer unknowns, carry the rest.
The stiffness of the coarse level is PᵀKP with the interpolation P, whatever K is made of, and it is
factorized while its factor fits. Constraints C u = 0 are imposed on the coarse level.

References:
    Sundar, Stadler, Biros (2015), Comparison of multigrid algorithms for high-order continuous
    finite element discretizations, Numer. Linear Algebra Appl. 22, 664-680.
    Adams, Brezina, Hu, Tuminaro (2003), Parallel multigrid smoothing: polynomial versus
    Gauss-Seidel, J. Comput. Phys. 188, 593-610.
"""

from __future__ import annotations

import logging
from typing import Protocol

import numpy as np
import scipy
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from numpy.typing import NDArray
from petsc4py import PETSc

from dolfinx_mbd.fem.assembly import rigid_motions
from dolfinx_mbd.iterative.products import Products, column_sums
from dolfinx_mbd.linalg.bordered import bordered_stiffness
from dolfinx_mbd.linalg.factorization import Options, cholesky, multiply, solve

__all__ = ["Algebraic", "Preconditioner", "TwoLevel"]

Array = NDArray[np.float64]

SWEEPS, RANGE = 2, 8.0
"""Degree of the smoothing polynomial, and ratio of the ends of the interval in which it is small.

Of degrees 1 to 6 and ratios 3 to 30 about the best at 105 k and 281 k dofs; all take about as many
products with K.
"""

COARSE_FACTOR = 1_000_000
"""Unknowns of the coarse level from which algebraic multigrid takes the place of its factor."""

GAMG = {
    "pc_type": "gamg",
    "pc_gamg_threshold": 0.01,
    "pc_gamg_aggressive_coarsening": 1,
    "mg_levels_ksp_type": "chebyshev",
    "mg_levels_ksp_max_it": 3,
    "mg_levels_pc_type": "jacobi",
}
"""Smoothed aggregation with the rigid motions, smoothing without coupling of the ranks."""

_log = logging.getLogger("dolfinx_mbd")


class Preconditioner(Protocol):
    """T ≈ K⁻¹, linear, symmetric and positive definite; held rows are zero before and after."""

    def __call__(self, B: Array) -> Array:
        """T B for up to `COLUMNS` columns, shape (owned rows, k)."""
        ...

    def destroy(self) -> None:
        """Free what is PETSc's."""
        ...


class Algebraic:
    """Algebraic multigrid by smoothed aggregation, for linear elements.

    It needs the matrix with its held rows, of unit diagonal.

    Raises:
        FactorizationError: PETSc cannot set it up.

    Note: Collective, as all methods are.
    """

    def __init__(self, K: PETSc.Mat, motions: Array, *, prefix: str, options: Options) -> None:
        _set_near_null_space(K, motions)
        self._ksp = cholesky(K, prefix=prefix, options={**GAMG, **(options or {})})

    def __call__(self, B: Array) -> Array:
        """T B."""
        return solve(self._ksp, B)

    def destroy(self) -> None:
        """Free the hierarchy."""
        self._ksp.destroy()


class TwoLevel:
    """One cycle between the elements of a space and linear ones on the same cells.

    Attributes:
        interpolation: P; rows and columns of what is held are zero.
        coarse: PᵀKP, held rows with unit diagonal; bordered if there are constraints.
        coarse_held: Owned held unknowns of the coarse level.
        largest: Of the eigenvalues of D⁻¹K with the diagonal D, an estimate.

    Raises:
        FactorizationError: The stiffness is not positive definite, or the coarse level is not held.

    Note: Collective, as all methods are.
    """

    def __init__(
        self,
        products: Products,
        space: fem.FunctionSpace,
        border: scipy.sparse.csr_matrix | None,
        *,
        prefix: str,
        options: Options,
    ) -> None:
        self._products = products
        K = products.A
        self.interpolation, self.coarse_held, positions = interpolation(space, products.held)
        self._restriction = self.interpolation.transpose(out=PETSc.Mat())
        self.coarse = K.PtAP(self.interpolation)
        _add_to_diagonal(self.coarse, self.coarse_held)
        self.num_border = 0
        if border is not None:
            self._set_border(border)
        self._coarse = self._coarse_solver(positions, prefix, options)
        diagonal = K.getDiagonal()
        self._inverse: Array = 1.0 / diagonal.array_r
        diagonal.destroy()
        self._inverse[products.held] = 0.0
        self.largest = self._largest_eigenvalue()

    def _set_border(self, border: scipy.sparse.csr_matrix) -> None:
        """Put the constraints on the coarse level."""
        rows = multiply(self._restriction, np.asfortranarray(border.toarray()))
        inner, self.num_border = self.coarse, border.shape[1]
        self.coarse = bordered_stiffness(inner, scipy.sparse.csr_matrix(rows))
        inner.destroy()

    def _coarse_solver(self, positions: Array, prefix: str, options: Options) -> PETSc.KSP:
        """A factor, or one cycle of algebraic multigrid if it is large or the user says so."""
        name = "mg_coarse_"
        own = {k.removeprefix(name): v for k, v in (options or {}).items() if k.startswith(name)}
        size = self.coarse.getSize()[0]
        if size > COARSE_FACTOR and not self.num_border and "pc_type" not in own:
            own = {**GAMG, **own}
        if not self.num_border:
            motions = rigid_motions(positions)
            motions[self.coarse_held] = 0.0
            _set_near_null_space(self.coarse, motions)
        _log.info("coarse level: %d unknowns, %s", size, own.get("pc_type", "factorized"))
        return cholesky(self.coarse, prefix=prefix + name, options=own, negative=self.num_border)

    def solve_coarse(self, B: Array) -> Array:
        """The coarse level's solution, shape (owned unknowns, k)."""
        owned, rows = len(B), self.coarse.getLocalSize()[0]
        full = np.zeros((rows, B.shape[1]), order="F")
        full[:owned] = B
        return np.asfortranarray(solve(self._coarse, full)[:owned])

    def multiply_coarse(self, X: Array) -> Array:
        """The coarse stiffness times X, but for forces of constraints."""
        owned, rows = len(X), self.coarse.getLocalSize()[0]
        full = np.zeros((rows, X.shape[1]), order="F")
        full[:owned] = X
        return np.asfortranarray(multiply(self.coarse, full)[:owned])

    def __call__(self, B: Array) -> Array:
        """T B."""
        columns = B.shape[1]
        D = self._products.input(columns)
        R, X = B.copy(order="F"), np.zeros(B.shape, order="F")
        self._smooth(R, X, D)
        _subtract(R, self._products.product(columns))
        D[:] = multiply(self.interpolation, self.solve_coarse(multiply(self._restriction, R)))
        X += D
        _subtract(R, self._products.product(columns))
        self._smooth(R, X, D)
        return X

    def _smooth(self, R: Array, X: Array, D: Array) -> None:
        """Chebyshev iteration on K x = r: adds to X, leaves the last step in D, not yet in R."""
        upper = 1.1 * self.largest
        lower = upper / RANGE
        middle, half = (upper + lower) / 2, (upper - lower) / 2
        rho, scaled = half / middle, self._inverse / middle
        for r, x, d in zip(R.T, X.T, D.T, strict=True):
            np.multiply(scaled, r, out=d)
            x += d
        for _ in range(SWEEPS - 1):
            Y = self._products.product(R.shape[1])
            new = 1.0 / (2.0 * middle / half - rho)
            scaled, step = (2.0 * new / half) * self._inverse, np.empty(len(R))
            for r, x, d, y in zip(R.T, X.T, D.T, Y.T, strict=True):
                r -= y
                np.multiply(scaled, r, out=step)
                d *= new * rho
                d += step
                x += d
            rho = new

    def _largest_eigenvalue(self, steps: int = 15) -> float:
        """Of D⁻¹K, by Lanczos iteration; some per cent low at most."""
        comm = self.coarse.comm.tompi4py()
        root = np.sqrt(np.abs(self._inverse))[:, None]
        q = np.random.default_rng(comm.rank).standard_normal(root.shape) * (root > 0)
        q /= np.sqrt(column_sums(comm, q, q))
        last, beta = np.zeros_like(q), 0.0
        alphas, betas = [], []
        for _ in range(steps):
            w = root * self._products.multiply(root * q) - beta * last
            alphas.append(column_sums(comm, q, w)[0])
            w -= alphas[-1] * q
            beta = float(np.sqrt(column_sums(comm, w, w))[0])
            betas.append(beta)
            if beta <= 1e-12 * abs(alphas[0]):
                break
            last, q = q, w / beta
        values = scipy.linalg.eigvalsh_tridiagonal(np.array(alphas), np.array(betas[:-1]))
        return float(values[-1])

    def destroy(self) -> None:
        """Free the coarse level."""
        self._coarse.destroy()
        for matrix in (self.coarse, self.interpolation, self._restriction):
            matrix.destroy()


def interpolation(
    space: fem.FunctionSpace, held: NDArray[np.int32]
) -> tuple[PETSc.Mat, NDArray[np.int32], Array]:
    """Linear elements in a space of higher degree; held rows and columns are zero.

    Args:
        space: Blocked Lagrange, of degree two or more.
        held: Owned held degrees of freedom.

    Returns:
        P, which the caller destroys; the owned held unknowns of the linear elements; the positions
        of their owned nodes, shape (nodes, dim).

    Note: Collective.
    """
    fine = fem.functionspace(space.mesh, space.ufl_element().sub_elements[0])
    linear = fem.functionspace(space.mesh, ("Lagrange", 1))
    scalar = fem_petsc.interpolation_matrix(linear, fine)
    scalar.assemble()
    dim = space.dofmap.bs
    (rows, size), (columns, coarse_size) = scalar.getSizes()
    indptr, indices, values = scalar.getValuesCSR()
    local = scipy.sparse.csr_matrix((values, indices, indptr), shape=(rows, coarse_size))
    scalar.destroy()
    local.data[np.abs(local.data) < 1e-12] = 0.0
    local.eliminate_zeros()
    full = scipy.sparse.kron(local, np.eye(dim), format="csr")
    sizes = ((dim * rows, dim * size), (dim * columns, dim * coarse_size))
    comm = space.mesh.comm
    starts, where = full.indptr.astype(PETSc.IntType), full.indices.astype(PETSc.IntType)
    at_vertex = (np.abs(full.data - 1.0) < 1e-9).astype(float)
    same = PETSc.Mat().createAIJ(sizes, csr=(starts, where, at_vertex), comm=comm)
    P = PETSc.Mat().createAIJ(sizes, csr=(starts, where, full.data), comm=comm, bsize=dim)
    keep_rows, keep_columns = P.createVecLeft(), P.createVecRight()
    keep_rows.array[held] = 1.0
    same.multTranspose(keep_rows, keep_columns)
    coarse_held = np.flatnonzero(keep_columns.array_r > 0.5).astype(np.int32)
    for vector in (keep_rows, keep_columns):
        vector.array[:] = vector.array_r < 0.5
    P.diagonalScale(keep_rows, keep_columns)
    for item in (same, keep_rows, keep_columns):
        item.destroy()
    return P, coarse_held, linear.tabulate_dof_coordinates()[:columns, :dim]


def _subtract(R: Array, Y: Array) -> None:
    for r, y in zip(R.T, Y.T, strict=True):
        r -= y


def _add_to_diagonal(A: PETSc.Mat, rows: NDArray[np.int32]) -> None:
    """Put a one on the diagonal of these owned rows, which are zero."""
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    vector = A.createVecLeft()
    vector.array[rows] = 1.0
    A.setDiagonal(vector, addv=PETSc.InsertMode.ADD_VALUES)
    A.assemble()
    vector.destroy()


def _set_near_null_space(A: PETSc.Mat, motions: Array) -> None:
    """Attach rigid motions, shape (owned rows, k), to a matrix."""
    vectors = []
    for column in motions.T:
        vectors.append(A.createVecRight())
        vectors[-1].array[:] = column
    for k, vector in enumerate(vectors):  # PETSc wants them orthonormal
        for other in vectors[:k]:
            vector.axpy(-vector.dot(other), other)
        vector.normalize()
    space = PETSc.NullSpace().create(vectors=vectors, comm=A.comm)
    A.setNearNullSpace(space)
    for item in (space, *vectors):
        item.destroy()
