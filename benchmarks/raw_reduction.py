"""Craig-Bampton with two rigid interfaces as a plain script: DOLFINx, petsc4py, slepc4py.

The benchmarks compare `dolfinx_mbd.reduce` with this script. It computes the inertia from one Gram
matrix, has no checks and no skin, and runs on one process. It uses either MUMPS and SLEPc's
Krylov-Schur, or the factorization and the eigenvalue solver of the package; the latter shows the
cost of the other parts of the package.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import ufl
from dolfinx import fem
from dolfinx.fem import petsc as fem_petsc
from mpi4py import MPI
from numpy.typing import NDArray
from petsc4py import PETSc
from slepc4py import SLEPc

__all__ = ["assemble", "craig_bampton", "scipy_matrices"]

Array = NDArray[np.float64]
YOUNG, POISSON, DENSITY = 210e9, 0.3, 7850.0


def assemble(mesh: Any, ends: Sequence[str]) -> tuple[PETSc.Mat, PETSc.Mat, Array, list[Any]]:
    """Return K, the mass M of one component, positions (N, 3) and the nodes of each interface."""
    V = fem.functionspace(mesh.mesh, ("Lagrange", 2, (3,)))
    W = fem.functionspace(mesh.mesh, ("Lagrange", 2))
    u, v, p, q = (
        ufl.TrialFunction(V),
        ufl.TestFunction(V),
        ufl.TrialFunction(W),
        ufl.TestFunction(W),
    )
    mu = YOUNG / (2 * (1 + POISSON))
    lam = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
    strain = ufl.sym(ufl.grad(u))
    stress = 2 * mu * strain + lam * ufl.tr(strain) * ufl.Identity(3)
    K = fem_petsc.assemble_matrix(fem.form(ufl.inner(stress, ufl.sym(ufl.grad(v))) * ufl.dx))
    M = fem_petsc.assemble_matrix(fem.form(DENSITY * p * q * ufl.dx))
    K.assemble()
    M.assemble()
    nodes = [fem.locate_dofs_topological(V, 2, mesh.facets(end)) for end in ends]
    return K, M, W.tabulate_dof_coordinates(), nodes


def vector_mass(M: PETSc.Mat) -> scipy.sparse.csr_matrix:
    """Return the mass matrix M ⊗ I of the three components of displacements."""
    indptr, columns, values = M.getValuesCSR()
    scalar = scipy.sparse.csr_matrix((values, columns, indptr), shape=M.getSize())
    return scipy.sparse.kron(scalar, scipy.sparse.eye(3), format="csr")


def scipy_matrices(
    K: PETSc.Mat, M: PETSc.Mat
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    """Return K and M ⊗ I in SciPy's format."""
    indptr, columns, values = K.getValuesCSR()
    return scipy.sparse.csr_matrix((values, columns, indptr), shape=K.getSize()), vector_mass(M)


def dense(X: Array) -> PETSc.Mat:
    """Return a dense PETSc matrix that shares the memory of an array."""
    D = PETSc.Mat().createDense(X.shape, array=X, comm=PETSc.COMM_SELF)
    D.assemble()
    return D


def product(A: PETSc.Mat, X: Array) -> Array:
    """Return A X as a copy, because the array of a PETSc matrix does not keep the matrix alive."""
    Y = A.matMult(dense(X))
    values = Y.getDenseArray().copy(order="F")
    Y.destroy()
    return values


def krylov_schur_modes(K: PETSc.Mat, M: PETSc.Mat, ksp: PETSc.KSP, num_modes: int) -> Array:
    """Return the lowest modes by SLEPc."""
    eps = SLEPc.EPS().create(PETSc.COMM_SELF)
    eps.setOperators(K, M)
    eps.setProblemType(SLEPc.EPS.ProblemType.GHEP)
    eps.setTarget(0.0)
    eps.setWhichEigenpairs(SLEPc.EPS.Which.TARGET_MAGNITUDE)
    eps.setDimensions(num_modes, max(2 * num_modes, num_modes + 15))
    eps.setTolerances(1e-9, 200)
    st = eps.getST()
    st.setType(SLEPc.ST.Type.SINVERT)
    st.setShift(0.0)
    st.setKSP(ksp)
    eps.solve()
    modes = np.empty((K.getSize()[0], num_modes), order="F")
    w = K.createVecRight()
    for k in range(num_modes):
        eps.getEigenvector(k, w)
        modes[:, k] = w.array_r
    eps.destroy()
    return modes


def block_modes(K: PETSc.Mat, M: PETSc.Mat, ksp: PETSc.KSP, num_modes: int) -> Array:
    """Return the lowest modes by the block Lanczos method of the package."""
    from dolfinx_mbd.fem.linalg.block_lanczos import BLOCK_SIZE, block_lanczos

    def solve(B: Array) -> Array:
        X = np.zeros(B.shape, order="F")
        ksp.matSolve(dense(np.asfortranarray(B)), dense(X))
        return X

    def mass(X: Array) -> Array:
        return product(M, np.asfortranarray(X))

    start = mass(np.random.default_rng(0).standard_normal((BLOCK_SIZE, K.getSize()[0])).T)
    return block_lanczos(MPI.COMM_SELF, solve, mass, start, num_modes, tolerance=1e-9)[1]


def craig_bampton(
    K: PETSc.Mat, M: PETSc.Mat, x: Array, nodes: list[Any], num_modes: int, *, block: bool = False
) -> tuple[Array, dict[str, float]]:
    """Return the frequencies of the free body, Hz, and the time of each part, s.

    With `block`, the factorization and the block Lanczos method of the package are used.
    """
    clock = [time.perf_counter()]
    held = np.concatenate([(3 * n[:, None] + np.arange(3)).ravel() for n in nodes]).astype(np.int32)
    size = K.getSize()[0]
    inner = K.copy()
    inner.zeroRowsColumns(held, 1.0)
    inner.setOption(PETSc.Mat.Option.SPD, True)
    if block:
        from dolfinx_mbd.fem.linalg.factorization import cholesky

        ksp = cholesky(inner, prefix="raw_")
    else:
        ksp = PETSc.KSP().create(PETSc.COMM_SELF)
        ksp.setOperators(inner)
        ksp.setType("preonly")
        ksp.getPC().setType("cholesky")
        ksp.getPC().setFactorSolverType("mumps")
        ksp.setUp()
    clock.append(time.perf_counter())

    # rigid motions of the interfaces: three translations and three rotations each
    T = np.zeros((size, 6 * len(nodes)), order="F")
    for k, indices in enumerate(nodes):
        r = x[indices] - x[indices].mean(axis=0)
        rows = 3 * indices[:, None] + np.arange(3)
        for i in range(3):
            T[rows[:, i], 6 * k + i] = 1.0
            T[rows, 6 * k + 3 + i] = np.cross(np.eye(3)[i], r)
    B = -product(K, T)  # the static shapes are T at the interfaces and in equilibrium elsewhere
    B[held] = T[held]
    constraint = np.zeros_like(B, order="F")
    ksp.matSolve(dense(np.asfortranarray(B)), dense(constraint))
    clock.append(time.perf_counter())

    mass = vector_mass(M)
    vector = PETSc.Mat().createAIJ((size, size), csr=(mass.indptr, mass.indices, mass.data))
    vector.zeroRowsColumns(held, 0.0)
    basis = np.zeros((size, constraint.shape[1] + num_modes), order="F")
    basis[:, : constraint.shape[1]] = constraint
    modes = block_modes if block else krylov_schur_modes
    basis[:, constraint.shape[1] :] = modes(inner, vector, ksp, num_modes)
    clock.append(time.perf_counter())

    reduced_K = basis.T @ product(K, basis)
    # moments H_kl = ∫ρ ψ_k⊗ψ_l of the positions ψ_0 = x and the modes, from one Gram matrix of all
    # components; the reduced mass is the sum over their diagonal
    columns = basis.reshape(len(x), 3, -1).transpose(0, 2, 1).reshape(len(x), -1)
    fields = np.asfortranarray(np.column_stack([np.ones(len(x)), x, columns]))
    gram = fields.T @ product(M, fields)
    H = gram[1:, 1:].reshape(len(gram) // 3, 3, len(gram) // 3, 3)
    reduced_M = np.einsum("kala->kl", H[1:, :, 1:])
    squares, small = scipy.linalg.eigh((reduced_K + reduced_K.T) / 2, (reduced_M + reduced_M.T) / 2)
    modes = basis @ small[:, 6:]
    assert modes.shape == (size, 6 * len(nodes) + num_modes - 6)
    clock.append(time.perf_counter())
    names = ("factorization", "constraint modes", "fixed-interface modes", "projection, inertia")
    for item in (ksp, inner, vector):
        item.destroy()
    return np.sqrt(squares[6:]) / (2 * np.pi), dict(zip(names, np.diff(clock), strict=True))
